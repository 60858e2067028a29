//! Kernels of unknown type: what a device, a plan or a tool needs from a kernel.

use super::kernel::{build_with, check_args};
use super::{ArgDesc, Bounded, BuildError, Built, K, Kernel, Key, LaunchRule};
use warpwright_ptx::ir::{Arch, Module};

/// A kernel of any type. Every [`Kernel`] implements it. Implement it by hand if you cannot write a struct of typed
/// arguments, as for a kernel that is read from elsewhere.
///
/// Its methods have the same names as [`Kernel`]'s: import this trait where kernels are `dyn`, and [`Kernel`] where
/// you write kernels.
pub trait AnyKernel {
    /// The entry name.
    fn entry(&self) -> String;

    /// The specialisation key, if it is known: two kernels with one key build to the same module. `None` if only the
    /// built module can tell kernels apart.
    fn key(&self) -> Option<Key> {
        None
    }

    /// The arguments, in the order of the parameters. The body requests each once, in any order.
    fn args(&self) -> Vec<ArgDesc>;

    /// How it is launched. The build adds the shared memory that the body requests: see [`Built::launch`].
    fn launch(&self) -> LaunchRule;

    /// The algorithm.
    fn body(&self, k: K<'_>);

    /// Returns itself if it is [`Bounded`]: safe launches on devices that do not check accesses require this. The
    /// returned kernel is the one that is built and launched.
    fn bounded(&self) -> Option<&dyn Bounded> {
        None
    }

    /// Checks the configuration. [`build`](Self::build) calls it first, so the body need not check; the entry name,
    /// the arguments and the launch rule may be requested for any configuration.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }

    /// Builds the kernel for a target, or returns all its mistakes.
    #[track_caller]
    fn build(&self, target: Arch) -> Result<Built, BuildError> {
        self.check()?;
        let args = self.args();
        let built = build_with(&self.entry(), &self.launch(), target, Some(&args), false, |k| self.body(k))?;
        check_args(&args, &built, false)?;
        Ok(built)
    }

    /// The module for a target.
    #[track_caller]
    fn module(&self, target: Arch) -> Result<Module, BuildError> {
        Ok(self.build(target)?.module)
    }

    /// The PTX for a target.
    #[track_caller]
    fn ptx(&self, target: Arch) -> Result<String, BuildError> {
        Ok(warpwright_ptx::print(&self.module(target)?))
    }
}

impl<T: Kernel> AnyKernel for T {
    fn entry(&self) -> String {
        super::Config::entry(self)
    }

    fn key(&self) -> Option<Key> {
        self.cache_key()
    }

    fn args(&self) -> Vec<ArgDesc> {
        Kernel::args(self)
    }

    fn launch(&self) -> LaunchRule {
        Kernel::launch(self)
    }

    fn body(&self, k: K<'_>) {
        super::typed::run(self, k);
    }

    fn bounded(&self) -> Option<&dyn Bounded> {
        Kernel::bounded(self)
    }

    fn check(&self) -> Result<(), BuildError> {
        self.check_fields()?;
        Kernel::check(self)?;
        super::typed::check_launch(self)
    }
}
