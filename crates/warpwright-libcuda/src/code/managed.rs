//! Managed variables, which host and devices share. A module has its own; the modules of a library have the same ones,
//! with the values that they got where the library was loaded first.

use crate::engine::{Asker, ManagedVariable, hosts, of};
use crate::state::Context;
use crate::types::Result;
use std::collections::HashMap;
use std::sync::Arc;
use warpwright_ptx::ir;

/// Managed variables by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managed(HashMap<String, Arc<ManagedVariable>>);

impl Managed {
    /// Those of a module. Those that `self` does not have are placed. For the virtual GPU, which of them have values.
    pub(super) fn placed<'m>(
        &self,
        module: &'m ir::Module,
        context: &Context,
    ) -> Result<(Managed, Vec<warpwright_vm::ManagedVariable<'m>>)> {
        let mut all = self.clone();
        let mut placed = Vec::new();
        for (name, bytes) in warpwright_vm::managed_variables(module) {
            let known = self.0.get(name).filter(|known| known.bytes == bytes);
            let is_initialized = known.is_some();
            let variable = match known {
                Some(known) => known.clone(),
                None => {
                    let device = of(context)?.ordinal;
                    let asker = Asker { context: context.id, context_handle: context.handle, device };
                    Arc::new(hosts().variable(name, bytes, asker)?)
                }
            };
            let address = variable.address;
            placed.push(warpwright_vm::ManagedVariable { name, address, is_initialized });
            all.0.insert(name.to_owned(), variable);
        }
        Ok((all, placed))
    }

    /// Address and size of the variable of that name.
    pub(crate) fn get(&self, name: &str) -> Option<(u64, u64)> {
        self.0.get(name).map(|variable| (variable.address, variable.bytes))
    }
}
