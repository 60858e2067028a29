//! Kernels as you write them: a configuration, a struct of arguments, a launch rule and a body.

use super::any::AnyKernel;
use super::args::Parameters;
use super::types::Data;
use super::{
    ArgDesc, Arguments, Body, Bounded, BuildError, Built, Config, Extent, K, Key, LaunchRule, Mode, Source,
    Unbound,
};
use warpwright_ptx::ir::{Arch, Module, Type};

/// A kernel: a struct whose fields are its host-time configuration. See [`Arguments`] for a complete example.
pub trait Kernel: Config + Sized {
    /// Its arguments: a struct that derives [`Arguments`](derive@crate::Args).
    type Args<M: Mode>: Arguments<M, Of = Self>;

    /// How it is launched. The build adds the shared memory that the body requests: see [`Built::launch`].
    fn launch(&self) -> LaunchRule;

    /// The algorithm.
    fn body<'k>(&self, k: K<'k>, args: Self::Args<Body<'k>>);

    /// Checks conditions on several fields. The caller has already checked that each field has a value of its domain;
    /// the entry name, the arguments and the launch rule may be requested for any configuration.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }

    /// The specialisation key by which caches identify the kernel without building it: two kernels with one key build
    /// to the same module for every target. `None` if the body depends on more than the fields show.
    fn cache_key(&self) -> Option<Key> {
        Some(self.key())
    }

    /// Returns itself if it is [`Bounded`]: safe launches on devices that do not check accesses require this.
    fn bounded(&self) -> Option<&dyn Bounded> {
        None
    }

    /// Its arguments, in the order of the parameters.
    fn args(&self) -> Vec<ArgDesc> {
        <Self::Args<Unbound> as Arguments<Unbound>>::describe(self)
    }

    /// Builds the kernel for a target, or returns all its mistakes.
    #[track_caller]
    fn build(&self, target: Arch) -> Result<Built, BuildError> {
        AnyKernel::build(self, target)
    }

    /// The module for a target.
    #[track_caller]
    fn module(&self, target: Arch) -> Result<Module, BuildError> {
        AnyKernel::module(self, target)
    }

    /// The PTX for a target.
    #[track_caller]
    fn ptx(&self, target: Arch) -> Result<String, BuildError> {
        AnyKernel::ptx(self, target)
    }
}

/// That the launch rule depends on numbers that are declared with the arguments, and no others.
pub(super) fn check_launch<T: Kernel>(kernel: &T) -> Result<(), BuildError> {
    let mut numbers = Numbers(Vec::new());
    <T::Args<Unbound> as Arguments<Unbound>>::ask(kernel, &mut numbers);
    let depends = kernel.launch().grid.into_iter().flat_map(Extent::depends_on);
    match depends.into_iter().find(|name| !numbers.0.contains(name)) {
        Some(unknown) => {
            let rule = match numbers.0[..] {
                [] => "a constant, for no argument is a `M::Scalar` or a `M::Dim`".to_owned(),
                _ => format!("made of the arguments that are numbers: {}", numbers.0.join(", ")),
            };
            Err(BuildError::field("launch.grid", unknown, rule))
        }
        None => Ok(()),
    }
}

/// The names of numbers among arguments.
struct Numbers(Vec<&'static str>);

impl Source<Unbound> for Numbers {
    fn input<T: Data>(&mut self, _: &'static str) {}
    fn output<T: Data>(&mut self, _: &'static str) {}
    fn in_out<T: Data>(&mut self, _: &'static str) {}
    fn scalar<T: Data>(&mut self, name: &'static str) {
        self.0.push(name);
    }
    fn any_input(&mut self, _: &'static str, _: Type) {}
    fn any_output(&mut self, _: &'static str, _: Type) {}
    fn any_in_out(&mut self, _: &'static str, _: Type) {}
    fn dim(&mut self, name: &'static str) {
        self.0.push(name);
    }
}

/// Runs the body of a kernel with the parameters of what is being built.
pub(super) fn run<'k, T: Kernel>(kernel: &T, k: K<'k>) {
    let args = <T::Args<Body<'k>> as Arguments<Body<'k>>>::ask(kernel, &mut Parameters(k));
    kernel.body(k, args);
}
