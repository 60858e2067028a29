//! Bulk prefetches, which bring nothing that a program can see.

use super::UNIT;
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LanesOf, Machine, Step};
use crate::memory::Address;
use warpwright_ptx::ir::Type;
use warpwright_ptx::op::bulk_copy::CpAsyncBulkPrefetch;

pub(super) fn decode(d: &mut Decoder<'_, '_>, op: &CpAsyncBulkPrefetch) {
    let (from, size) = (d.address(&op.from), d.src64(&op.size, Type::U32));
    d.emit_boxed(move |m, _| m.prefetch(&from, size));
}

impl Machine<'_> {
    fn prefetch(&mut self, from: &Address, size: u32) -> Step {
        let (addresses, sizes) = (self.addresses(from), self.registers.row64(size));
        let odd = |lane: &usize| (addresses[*lane] | sizes[*lane]) % u64::from(UNIT) != 0;
        let Some(lane) = LanesOf(self.mask).find(odd) else { return Step::Next };
        let message = format!(
            "a bulk prefetch of {} bytes from {:#x}: both must be multiples of {UNIT}",
            sizes[lane], addresses[lane]
        );
        self.trap(TrapKind::BadOperand, message)
    }
}
