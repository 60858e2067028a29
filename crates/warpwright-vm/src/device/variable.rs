//! Variables of modules, for the host to read and write between launches.

use super::{Device, DeviceError, Module};
use crate::memory::Allocation;
use std::sync::Arc;

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
