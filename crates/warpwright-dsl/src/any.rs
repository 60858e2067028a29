//! Kernels whose type is not known: what a device, a plan or a tool needs of one.

use super::kernel::{build_with, check_args};
use super::{ArgDesc, Bounded, BuildError, Built, K, Kernel, Key, LaunchRule};
use warpwright_ptx::ir::{Arch, Module};

/// A kernel of any type. Every [`Kernel`] is one; it is implemented by hand where a struct of typed arguments cannot be
/// written down, as for a kernel that is read from elsewhere.
///
/// Its methods have the names of [`Kernel`]'s: import this one where kernels are `dyn`, and that one where they are
/// written.
pub trait AnyKernel {
    /// The entry point's name.
    fn entry(&self) -> String;

    /// What tells the configuration from all others, if it is known: two kernels with one key are built to one module.
    /// `None` where only what is built can tell.
    fn key(&self) -> Option<Key> {
        None
    }

    /// The arguments, in the order of the parameters; the body asks for each once, in any order.
    fn args(&self) -> Vec<ArgDesc>;

    /// How it is launched. The shared memory is that which the body asks for: see [`Built::launch`].
    fn launch(&self) -> LaunchRule;

    /// The algorithm.
    fn body(&self, k: K<'_>);

    /// Itself, where it is [`Bounded`]: on a device that does not check accesses, a safe launch asks for that. What it
    /// returns is what is built and launched.
    fn bounded(&self) -> Option<&dyn Bounded> {
        None
    }

    /// Whether the configuration is one that the kernel has. [`build`](Self::build) asks first, so that the
    /// body need not; the entry's name, the arguments and the launch rule are asked of any configuration.
    fn check(&self) -> Result<(), BuildError> {
        Ok(())
    }

    /// The kernel for a target, with all its mistakes if there are any.
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
