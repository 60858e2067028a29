//! Kernels by configuration: each is checked and described once, however many layers launch it.

use super::lowering::Result;
use crate::launch::{ConfiguredKernel, Unsupported};
use std::collections::HashMap;
use std::sync::Arc;
use warpwright_dsl::Key;
use warpwright_dsl::any::AnyKernel;
use warpwright_ptx::ir::Arch;

/// The kernels of a plan whose configurations are told apart by a key.
#[derive(Default)]
pub(super) struct Kernels {
    known: HashMap<Key, Arc<ConfiguredKernel>>,
}

impl Kernels {
    /// The kernel, if it has the configuration and the target.
    pub(super) fn get<T>(&mut self, kernel: T, arch: Arch) -> Result<Arc<ConfiguredKernel>>
    where
        T: AnyKernel + Send + Sync + 'static,
    {
        let key = kernel.key();
        if let Some(known) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(Arc::clone(known));
        }
        check(&kernel, arch)?;
        let (entry, args, rule) = (kernel.entry(), kernel.args(), kernel.launch());
        let configured = Arc::new(ConfiguredKernel { kernel: Arc::new(kernel), entry, args, rule });
        if let Some(key) = key {
            self.known.insert(key, Arc::clone(&configured));
        }
        Ok(configured)
    }
}

/// Whether a kernel has its configuration, on such a target.
pub(super) fn check(kernel: &dyn AnyKernel, arch: Arch) -> Result<()> {
    let refused = |error| Unsupported::Configuration { kernel: kernel.entry(), error };
    kernel.check().map_err(refused)?;
    let needed = kernel.launch().min_sm;
    if arch.sm < needed {
        return Err(Box::new(Unsupported::Target { kernel: kernel.entry(), needed, given: arch }));
    }
    Ok(())
}
