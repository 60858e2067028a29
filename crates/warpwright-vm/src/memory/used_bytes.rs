//! Loads of which only some bytes are used, as `.pragma "used_bytes_mask"` says: compilers load a whole vector where the
//! program loads some of its elements.
//!
//! Bytes that are not used may be outside of everything, uninitialised, or written by others at the same time. The used
//! ones are checked as ever. Words without a used byte are not read: they are zero.

use super::RegionKind;
use super::access::{AccessSpec, Group};
use super::load_store::{Element, MemoryOp, Words, narrow, with_words};
use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::machine::{LANES, LanesOf, Machine, Row32, lanewise};

/// A weak load of which not all bytes are used.
#[derive(Clone, Debug)]
pub(crate) struct UsedBytes {
    op: MemoryOp,
    /// A bit for each byte of the data.
    used: u32,
}

impl UsedBytes {
    /// The load with a mask; none where all its bytes are used.
    pub(crate) fn new(op: MemoryOp, mask: u32) -> Result<UsedBytes, MemoryOp> {
        let all = u32::MAX.checked_shr(32u32.saturating_sub(op.spec(false).bytes)).unwrap_or(0);
        let used = mask & all;
        if used == all || op.order.strong.is_some() { Err(op) } else { Ok(UsedBytes { op, used }) }
    }
}

/// The runs of bits that are set: the first bit and how many.
fn runs(mut bits: u32) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let start = bits.trailing_zeros();
            let count = (bits >> start).trailing_ones();
            bits &= !(u32::MAX >> (32 - count) << start);
            (start, count)
        })
    })
}

impl<'a> Machine<'a> {
    /// Executes such a load.
    pub(crate) fn load_used(&mut self, load: &UsedBytes) {
        let UsedBytes { op, used } = load;
        let addresses = self.addresses(&op.address);
        // The whole is aligned, whatever is used of it.
        let spec = op.spec(false);
        let is_odd = |&lane: &usize| !addresses[lane].is_multiple_of(spec.align.into());
        let odd = LanesOf(self.mask).filter(is_odd).fold(0, |all, lane| all | 1 << lane);
        let mut todo = odd;
        while self.next_group(spec, &addresses, &mut todo).is_some() {}
        let mut todo = self.mask & !odd;
        if *used == 0 {
            return self.keep_used(load, None, todo);
        }
        let first = used.trailing_zeros();
        let bytes = 32 - used.leading_zeros() - first;
        let spec = AccessSpec { bytes, align: 1, ..spec };
        let addresses = addresses.map(|address| address.wrapping_add(first.into()));
        while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
            let part = |start: u32, bytes| {
                let offsets = group.offsets.map(|offset| offset.wrapping_add((start - first).into()));
                Group { bytes, offsets, ..group }
            };
            if self.checks_accesses() {
                for (start, bytes) in runs(*used) {
                    let whole = start.is_multiple_of(op.bytes) && bytes.is_multiple_of(op.bytes);
                    let element = if whole { op.bytes } else { 1 };
                    let touch = Touch { kind: AccessKind::Read, element, order: op.order };
                    self.look(touch, &part(start, bytes), &[], start);
                }
            }
            self.counted(AccessKind::Read, &group);
            let whole = group.offsets.map(|offset| offset.wrapping_sub(first.into()));
            self.keep_used(load, Some(&Group { offsets: whole, ..group }), group.mask);
        }
    }

    /// Keeps the elements of lanes, whose data begins at the group's offsets; none where nothing is used of it.
    fn keep_used(&mut self, load: &UsedBytes, group: Option<&Group<'a>>, mask: u32) {
        let UsedBytes { op, used } = load;
        let word = |m: &Self, at: u32| -> Row32 {
            match group {
                Some(group) if used >> at & 0xf != 0 => {
                    // The data may begin before the region.
                    let offsets = group.offsets.map(|offset| offset.wrapping_add(at.into()));
                    let group = Group { offsets, ..*group };
                    with_words!(m, group, |words| Words::read(words, &group, 0))
                }
                _ => [0; LANES],
            }
        };
        let wide = |m: &Self, at: u32| {
            let (low, high) = (word(m, at), word(m, at + 4));
            let mut out = [0; LANES];
            for lane in 0..LANES {
                out[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
            }
            out
        };
        for (index, &element) in op.elements.iter().enumerate() {
            let at = op.bytes * index as u32;
            match (element, op.bytes) {
                (Element::Sink, _) => {}
                (Element::Double(row), _) => {
                    for half in 0..2 {
                        let values = wide(self, at + 8 * half);
                        self.registers.set64(row + half, &values, mask);
                    }
                }
                (Element::Wide(row), 8) => {
                    let values = wide(self, at);
                    self.registers.set64(row, &values, mask);
                }
                (Element::Narrow(row) | Element::Wide(row), bytes) => {
                    let mut values = word(self, at & !3);
                    if bytes < 4 {
                        narrow(&mut values, &[0; LANES], u64::from(at), bytes, op.signed);
                    }
                    if matches!(element, Element::Narrow(_)) {
                        self.registers.set32(row, &values, mask);
                    } else {
                        let extend = |value| if op.signed { value as i32 as u64 } else { u64::from(value) };
                        self.registers.set64(row, &lanewise(&values, extend), mask);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs_of_bits() {
        let runs = |bits| super::runs(bits).collect::<Vec<_>>();
        assert_eq!(runs(0xfff), [(0, 12)]);
        assert_eq!(runs(0xf0f0), [(4, 4), (12, 4)]);
        assert_eq!(runs(u32::MAX), [(0, 32)]);
        assert_eq!(runs(0), []);
    }
}
