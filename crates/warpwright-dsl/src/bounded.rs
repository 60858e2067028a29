//! The promise that makes it safe to launch a kernel on a device that checks nothing.
#![allow(unsafe_code, reason = "a promise that no compiler checks")]

use super::any::AnyKernel;

/// A kernel that stays within its arguments, so that launching it is safe on every device.
///
/// A virtual GPU checks every access, so it can launch any kernel. A GPU checks none: a kernel can access all mapped
/// memory, including the host's. There a launch is safe for kernels whose author makes this promise, or that are
/// [built with checked pointers](super::build_checked), and `unsafe` for all others. The kernel exposes the promise
/// in [`Kernel::bounded`](super::Kernel::bounded).
///
/// ```
/// use warpwright_dsl::*;
///
/// /// `y = 2 x`, `n` elements of each.
/// #[derive(Config)]
/// struct Double;
///
/// #[derive(Args)]
/// #[args(of = Double)]
/// struct DoubleArgs<M: Mode> {
///     #[arg(len = n)]
///     x: M::In<f32>,
///     #[arg(len = n)]
///     y: M::Out<f32>,
///     n: M::Scalar<u32>,
/// }
///
/// // SAFETY: a thread has one index, and reads and writes only if that is less than `n`, the length of both.
/// unsafe impl Bounded for Double {}
///
/// impl Kernel for Double {
///     type Args<M: Mode> = DoubleArgs<M>;
///
///     fn launch(&self) -> LaunchRule {
///         LaunchRule::new(64).grid(Extent::dim("n").per(64))
///     }
///
///     fn body<'k>(&self, k: K<'k>, DoubleArgs { x, y, n }: DoubleArgs<Body<'k>>) {
///         let i = k.global_tid();
///         k.when(i.lt(n), || y.st(i, x.ld(i) + x.ld(i)));
///     }
///
///     fn bounded(&self) -> Option<&dyn Bounded> {
///         Some(self)
///     }
/// }
/// ```
///
/// Making the promise is `unsafe`, and a kernel cannot expose a promise that was not made:
///
/// ```compile_fail,E0200
/// # use warpwright_dsl::*;
/// # use warpwright_dsl::any::AnyKernel;
/// # struct Double;
/// # impl AnyKernel for Double {
/// #     fn entry(&self) -> String { "double".into() }
/// #     fn args(&self) -> Vec<ArgDesc> { Vec::new() }
/// #     fn launch(&self) -> LaunchRule { LaunchRule::new(64) }
/// #     fn body(&self, _: K<'_>) {}
/// # }
/// impl Bounded for Double {}
/// ```
/// ```compile_fail,E0277
/// # use warpwright_dsl::*;
/// # use warpwright_dsl::any::AnyKernel;
/// # struct Double;
/// impl AnyKernel for Double {
///     fn bounded(&self) -> Option<&dyn Bounded> { Some(self) }
/// #     fn entry(&self) -> String { "double".into() }
/// #     fn args(&self) -> Vec<ArgDesc> { Vec::new() }
/// #     fn launch(&self) -> LaunchRule { LaunchRule::new(64) }
/// #     fn body(&self, _: K<'_>) {}
/// }
/// ```
///
/// # Safety
///
/// For every value of the type that [`check`](AnyKernel::check) accepts, and for all arguments that the contract of
/// [`args`](AnyKernel::args) and [`launch`](AnyKernel::launch) accepts:
///
/// - The kernel reads global memory only inside the buffers among its arguments, up to the lengths in `args`, and
///   writes it only inside those whose role is [`Out`](super::Role::Out) or [`InOut`](super::Role::InOut).
/// - This holds whatever these buffers contain, and while other launches change them: a loaded index is compared with
///   a bound, and not loaded again after that.
/// - If its body [waits for launches](super::K::wait_for_launches), it reads only [constant](super::ArgDesc::constant)
///   arguments before, and every block waits. Other arguments it does not read with `nc`.
/// - It stays within its shared and local memory.
/// - Every method of the value, above all [`build`](AnyKernel::build), returns the same result each time, and its
///   [`key`](AnyKernel::key), if it has one, belongs to no other kernel.
///
/// A kernel that follows addresses found in memory, such as one that [calls](super::Call) others, is not bounded.
pub unsafe trait Bounded: AnyKernel {}
