//! What the device's global memory holds, for reports.

use super::found::Allocation;

/// Names of pieces of memory, by address.
#[derive(Default)]
pub(super) struct MemoryMap {
    /// Name, address, size.
    pieces: Vec<(String, u64, u64)>,
}

impl MemoryMap {
    pub(super) fn add(&mut self, name: String, address: u64, bytes: u64) {
        self.pieces.push((name, address, bytes));
    }

    /// The piece that the address is in, or the nearest one.
    pub(super) fn nearest(&self, address: u64) -> Option<Allocation> {
        let distance = |&&(_, start, bytes): &&(String, u64, u64)| {
            if address < start { start - address } else { address.saturating_sub(start + bytes) }
        };
        let (name, start, bytes) = self.pieces.iter().min_by_key(distance)?;
        Some(Allocation {
            name: name.clone(),
            address: *start,
            bytes: *bytes,
            offset: address.wrapping_sub(*start) as i64,
        })
    }
}
