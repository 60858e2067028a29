//! Variables of modules, for the host to read and write between launches.

use super::{Device, DeviceError, Module};
use crate::memory::{Allocation, AllocationKind};
use std::sync::Arc;

/// What the `.global` variables of a module hold.
pub struct SavedVariables(Vec<(Arc<Allocation>, Vec<u8>)>);

impl SavedVariables {
    /// Gives the variables back what they held. No launch of the module may be running.
    pub fn restore(&self) {
        for (variable, data) in &self.0 {
            variable.write(0, data);
        }
    }
}

impl Module {
    /// What its `.global` variables hold. No launch of it may be running.
    pub fn save_variables(&self) -> SavedVariables {
        let map = self.variables.device.inner.memory().map.clone();
        let variables = self.variables.allocations.clone().filter_map(|id| map.get(id as u32));
        let saved = variables.filter(|variable| variable.kind == AllocationKind::Variable).map(|variable| {
            let mut data = vec![0; variable.bytes as usize];
            variable.read(0, &mut data);
            (variable.clone(), data)
        });
        SavedVariables(saved.collect())
    }
}

impl Device {
    /// Copies bytes into a global or constant variable of a module, as many as it has, after the launches so far.
    pub fn write_variable(&self, module: &Module, name: &str, data: &[u8]) -> Result<(), DeviceError> {
        let variable = self.variable(module, name)?;
        if data.len() as u64 != variable.bytes {
            return Err(DeviceError::Length { buffer: variable.bytes as usize, slice: data.len() });
        }
        self.synchronize();
        variable.write(0, data);
        variable.written.set_all();
        Ok(())
    }

    /// The bytes of a global or constant variable of a module, after the launches so far.
    pub fn read_variable(&self, module: &Module, name: &str) -> Result<Vec<u8>, DeviceError> {
        let variable = self.variable(module, name)?;
        self.synchronize();
        let mut data = vec![0; variable.bytes as usize];
        variable.read(0, &mut data);
        Ok(data)
    }

    fn variable(&self, module: &Module, name: &str) -> Result<Arc<Allocation>, DeviceError> {
        let unknown = || DeviceError::UnknownVariable { name: name.to_owned() };
        let (address, _) = module.variable(name).ok_or_else(unknown)?;
        let map = self.inner.memory().map.clone();
        let id = map.lookup(address).map(|allocation| allocation.id);
        id.and_then(|id| map.get(id)).cloned().ok_or_else(unknown)
    }
}
