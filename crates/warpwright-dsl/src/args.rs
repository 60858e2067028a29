//! A kernel's arguments, declared once: one struct that the body computes with, that a launch takes, and that a graph
//! lowers to.
//!
//! The [`Mode`] determines the types of the struct's fields: pointers and registers in a body ([`Body`]), buffers and
//! numbers at a launch, tensors in a graph. A misspelt or missing name does not compile in any of them.

use super::reg::Reg;
use super::types::*;
use super::{ArgDesc, K, Ptr};
use std::marker::PhantomData;
use std::panic::Location;
use warpwright_ptx::diag::Code;
use warpwright_ptx::ir::Type;

/// Determines the types of the fields of a struct of [`Arguments`].
pub trait Mode {
    /// A buffer that the kernel reads.
    type In<T: Data>;
    /// A buffer that it writes.
    type Out<T: Data>;
    /// A buffer that it reads and writes.
    type InOut<T: Data>;
    /// A number.
    type Scalar<T: Data>;
    /// A buffer that the kernel reads, with an element type chosen by the configuration.
    type AnyIn;
    /// A buffer that the kernel writes, with an element type chosen by the configuration.
    type AnyOut;
    /// A buffer that the kernel reads and writes, with an element type chosen by the configuration.
    type AnyInOut;
    /// A number that lengths or the grid depend on but that the kernel does not receive, such as `rows`.
    type Dim;
}

/// The arguments of a kernel: a struct with a type parameter of kind [`Mode`], whose fields have the mode's types.
///
/// You derive it. The attribute `#[args(of = ...)]` names the configuration, which expressions refer to as `of`.
/// Length expressions refer to each number of the struct by its field's name, as an [`Extent`](crate::Extent).
///
/// | attribute of a field | |
/// | --- | --- |
/// | `name = "..."` | its name, instead of the field's |
/// | `len = ...` | its number of elements: anything that becomes an [`Extent`](crate::Extent) |
/// | `dtype = ...` | the element type of an `Any...`: a [`Type`]; in an `Option`, an `Option<Type>` that also decides whether the argument exists |
/// | `when = ...` | of an `Option`: the configurations in which it exists |
/// | `count = ..., names(...)` | of a `Vec`: its length and the names of its elements; expressions refer to each one's number as `i`; of a `Vec` of `Option`s, `when = ...` decides for each whether it exists |
/// | `shares(x, ...)` | inputs whose buffer an output may use: see [`ArgDesc::may_share`]; `shares = ...` is an expression for their names |
/// | `constant` | it does not change while the kernel runs: see [`ArgDesc::constant`] |
///
/// ```
/// use warpwright_dsl::*;
///
/// /// `y = factor · x`.
/// #[derive(Config)]
/// struct Scale;
///
/// #[derive(Args)]
/// #[args(of = Scale)]
/// struct ScaleArgs<M: Mode> {
///     #[arg(len = n)]
///     x: M::In<f32>,
///     #[arg(len = n, shares(x))]
///     y: M::Out<f32>,
///     factor: M::Scalar<f32>,
///     n: M::Scalar<u32>,
/// }
///
/// impl Kernel for Scale {
///     type Args<M: Mode> = ScaleArgs<M>;
///
///     fn launch(&self) -> LaunchRule {
///         LaunchRule::new(128).grid(Extent::dim("n").per(128))
///     }
///
///     fn body<'k>(&self, k: K<'k>, ScaleArgs { x, y, factor, n }: ScaleArgs<Body<'k>>) {
///         let i = k.global_tid();
///         k.when(i.lt(n), || y.st(i, x.ld(i) * factor));
///     }
/// }
///
/// let ptx = Scale.ptx("sm_80".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A store to an argument declared as an input is a mistake at the body's line, and so is a buffer with an element
/// type other than the configuration's. Misspelt names do not compile:
///
/// ```compile_fail,E0026
/// # use warpwright_dsl::*;
/// # #[derive(Config)]
/// # struct Fill;
/// #[derive(Args)]
/// #[args(of = Fill)]
/// struct FillArgs<M: Mode> {
///     #[arg(len = 32)]
///     out: M::Out<f32>,
/// }
/// # impl Kernel for Fill {
/// #     type Args<M: Mode> = FillArgs<M>;
/// #     fn launch(&self) -> LaunchRule { LaunchRule::new(32) }
/// fn body<'k>(&self, k: K<'k>, FillArgs { output, .. }: FillArgs<Body<'k>>) {
///     output.st(k.tid(), k.f32(1.0));
/// }
/// # }
/// ```
pub trait Arguments<M: Mode>: Sized {
    /// The configuration that the arguments belong to.
    type Of: ?Sized;

    /// Their descriptions, in the order of the fields.
    fn describe(of: &Self::Of) -> Vec<ArgDesc>;

    /// Takes each argument from a source.
    fn ask(of: &Self::Of, source: &mut impl Source<M>) -> Self;

    /// Gives each argument that exists to a sink.
    fn give(self, sink: &mut impl Sink<M>);
}

/// Where arguments come from, by name.
pub trait Source<M: Mode> {
    /// See [`Mode::In`].
    fn input<T: Data>(&mut self, name: &'static str) -> M::In<T>;
    /// See [`Mode::Out`].
    fn output<T: Data>(&mut self, name: &'static str) -> M::Out<T>;
    /// See [`Mode::InOut`].
    fn in_out<T: Data>(&mut self, name: &'static str) -> M::InOut<T>;
    /// See [`Mode::Scalar`].
    fn scalar<T: Data>(&mut self, name: &'static str) -> M::Scalar<T>;
    /// See [`Mode::AnyIn`].
    fn any_input(&mut self, name: &'static str, dtype: Type) -> M::AnyIn;
    /// See [`Mode::AnyOut`].
    fn any_output(&mut self, name: &'static str, dtype: Type) -> M::AnyOut;
    /// See [`Mode::AnyInOut`].
    fn any_in_out(&mut self, name: &'static str, dtype: Type) -> M::AnyInOut;
    /// See [`Mode::Dim`].
    fn dim(&mut self, name: &'static str) -> M::Dim;
}

/// Where arguments go, by name.
pub trait Sink<M: Mode> {
    /// See [`Mode::In`].
    fn input<T: Data>(&mut self, name: &'static str, value: M::In<T>);
    /// See [`Mode::Out`].
    fn output<T: Data>(&mut self, name: &'static str, value: M::Out<T>);
    /// See [`Mode::InOut`].
    fn in_out<T: Data>(&mut self, name: &'static str, value: M::InOut<T>);
    /// See [`Mode::Scalar`].
    fn scalar<T: Data>(&mut self, name: &'static str, value: M::Scalar<T>);
    /// See [`Mode::AnyIn`].
    fn any_input(&mut self, name: &'static str, value: M::AnyIn);
    /// See [`Mode::AnyOut`].
    fn any_output(&mut self, name: &'static str, value: M::AnyOut);
    /// See [`Mode::AnyInOut`].
    fn any_in_out(&mut self, name: &'static str, value: M::AnyInOut);
    /// See [`Mode::Dim`].
    fn dim(&mut self, name: &'static str, value: M::Dim);
}

/// The mode of a body: pointers into global memory, and registers.
#[derive(Clone, Copy, Debug)]
pub struct Body<'k>(PhantomData<fn(&'k ()) -> &'k ()>);

impl<'k> Mode for Body<'k> {
    type In<T: Data> = Ptr<'k, Global, T>;
    type Out<T: Data> = Ptr<'k, Global, T>;
    type InOut<T: Data> = Ptr<'k, Global, T>;
    type Scalar<T: Data> = Reg<'k, T>;
    type AnyIn = AnyPtr<'k>;
    type AnyOut = AnyPtr<'k>;
    type AnyInOut = AnyPtr<'k>;
    type Dim = ();
}

/// A buffer in global memory whose element type the configuration chooses: a handle, free to copy.
#[derive(Clone, Copy, Debug)]
pub struct AnyPtr<'k> {
    bytes: Ptr<'k, Global, u8>,
    dtype: Type,
}

impl<'k> AnyPtr<'k> {
    /// The type of its elements.
    pub fn dtype(self) -> Type {
        self.dtype
    }

    /// The pointer to its elements. A type other than theirs is a mistake at the caller's line.
    #[track_caller]
    pub fn typed<T: Data>(self) -> Ptr<'k, Global, T> {
        if T::TYPE != self.dtype {
            let message =
                format!("the buffer's elements are {}; the body takes {}", self.dtype.name(), T::TYPE.name());
            self.bytes.k.state().mistake(Code::Parameter, Location::caller(), message);
        }
        self.bytes.cast()
    }

    /// See [`Ptr::anew`].
    #[track_caller]
    pub fn anew(self) -> Self {
        AnyPtr { bytes: self.bytes.anew(), ..self }
    }

    /// Its bytes, for any element type.
    pub fn bytes(self) -> Ptr<'k, Global, u8> {
        self.bytes
    }
}

/// The same pointer, as an argument of a body that takes elements of any type.
impl<'k, T: Data> From<Ptr<'k, Global, T>> for AnyPtr<'k> {
    fn from(ptr: Ptr<'k, Global, T>) -> Self {
        AnyPtr { bytes: ptr.cast(), dtype: T::TYPE }
    }
}

impl<'k> K<'k> {
    /// An argument that exists only in some configurations, for a body that requires it: `None` is a mistake at the
    /// caller's line.
    #[track_caller]
    pub fn given<T>(self, argument: Option<T>) -> Option<T> {
        if argument.is_none() {
            let message =
                "this configuration of the kernel does not have the argument that the body takes here";
            self.state().mistake(Code::Parameter, Location::caller(), message);
        }
        argument
    }
}

/// The parameters of a kernel that is being built.
pub(super) struct Parameters<'k>(pub(super) K<'k>);

impl<'k> Source<Body<'k>> for Parameters<'k> {
    fn input<T: Data>(&mut self, name: &'static str) -> Ptr<'k, Global, T> {
        self.0.ptr(name)
    }

    fn output<T: Data>(&mut self, name: &'static str) -> Ptr<'k, Global, T> {
        self.0.ptr_mut(name)
    }

    fn in_out<T: Data>(&mut self, name: &'static str) -> Ptr<'k, Global, T> {
        self.0.ptr_mut(name)
    }

    fn scalar<T: Data>(&mut self, name: &'static str) -> Reg<'k, T> {
        self.0.scalar(name)
    }

    fn any_input(&mut self, name: &'static str, dtype: Type) -> AnyPtr<'k> {
        AnyPtr { bytes: self.0.any_buffer(name, false), dtype }
    }

    fn any_output(&mut self, name: &'static str, dtype: Type) -> AnyPtr<'k> {
        AnyPtr { bytes: self.0.any_buffer(name, true), dtype }
    }

    fn any_in_out(&mut self, name: &'static str, dtype: Type) -> AnyPtr<'k> {
        AnyPtr { bytes: self.0.any_buffer(name, true), dtype }
    }

    fn dim(&mut self, _: &'static str) {}
}

/// The mode of a description, whose fields hold nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unbound;

impl Mode for Unbound {
    type In<T: Data> = ();
    type Out<T: Data> = ();
    type InOut<T: Data> = ();
    type Scalar<T: Data> = ();
    type AnyIn = ();
    type AnyOut = ();
    type AnyInOut = ();
    type Dim = ();
}
