//! The promise that makes launching a kernel safe on a device that checks nothing.
#![allow(unsafe_code, reason = "a promise that no compiler checks")]

use super::any::AnyKernel;

/// A kernel that stays within its arguments, so that launching it is safe on every device.
///
/// A virtual GPU checks every access, and launches any kernel. A GPU checks none: it does what the kernel says, wherever
/// memory is mapped, the host's too. So there a launch is safe for kernels whose author promises this, or that are
/// [built with checked pointers](super::build_checked), and `unsafe` for all others. The kernel shows the promise in
/// [`Kernel::bounded`](super::Kernel::bounded).
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
/// The promise is `unsafe` to give, and nobody shows one that was not given:
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
/// For every value of the type that [`check`](AnyKernel::check) accepts, and for whatever is given that the contract
/// accepts, which is what [`args`](AnyKernel::args) and [`launch`](AnyKernel::launch) say:
///
/// - The kernel reads global memory only inside the buffers among its arguments, up to the lengths that `args` says, and
///   writes it only inside those whose role is [`Out`](super::Role::Out) or [`InOut`](super::Role::InOut).
/// - It does so whatever these buffers hold, and while other launches change that: an index that was loaded is held
///   against a bound, and not loaded again behind it.
/// - It stays within its shared and local memory.
/// - Whatever is asked of the value, [`build`](AnyKernel::build) above all, answers the same each time, and its
///   [`key`](AnyKernel::key), if it has one, is no other kernel's.
///
/// A kernel that follows addresses which it finds in memory, as one that [calls](super::Call) others does, is not bounded.
pub unsafe trait Bounded: AnyKernel {}
