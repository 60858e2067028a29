//! Address space that the host has reserved, in which it maps and unmaps memory by pages.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// How a device may access a part of reserved address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// Nothing is mapped there.
    Unmapped,
    /// Memory is mapped, and the device was given no access.
    None,
    /// It may read.
    Read,
    /// It may read and write.
    ReadWrite,
    /// These are multimem addresses: `multimem` instructions access what is at `address + distance` modulo 2⁶⁴, and no
    /// other instruction may.
    Multimem {
        /// From such an address to that of the memory, in bytes.
        distance: u64,
    },
}

/// The parts of reserved address space: where each begins, where it ends, and its access. No two that touch are alike,
/// and what is in none is not mapped.
#[derive(Debug, Default)]
pub(crate) struct Pages(RwLock<BTreeMap<u64, (u64, PageAccess)>>);

impl Pages {
    fn parts(&self) -> RwLockReadGuard<'_, BTreeMap<u64, (u64, PageAccess)>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that holds an address, if memory is mapped there: where it begins, its size and its access.
    fn part(&self, address: u64) -> Option<(u64, u64, PageAccess)> {
        let parts = self.parts();
        let (&start, &(end, access)) = parts.range(..=address).next_back()?;
        (address < end).then_some((start, end - start, access))
    }

    /// How an address may be accessed.
    pub(crate) fn access(&self, address: u64) -> PageAccess {
        self.part(address).map_or(PageAccess::Unmapped, |(_, _, access)| access)
    }

    /// The part that holds an address, if it may be accessed: where it begins, and its size.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, u64)> {
        let (start, bytes, access) = self.part(address)?;
        matches!(access, PageAccess::Read | PageAccess::ReadWrite).then_some((start, bytes))
    }

    /// The part that holds an address, if that is a multimem address: where it begins, its size, and how far from it the
    /// memory is.
    pub(crate) fn multimem(&self, address: u64) -> Option<(u64, u64, u64)> {
        match self.part(address)? {
            (start, bytes, PageAccess::Multimem { distance }) => Some((start, bytes, distance)),
            _ => None,
        }
    }

    /// Sets the access from an address on.
    pub(crate) fn set(&self, start: u64, bytes: u64, access: PageAccess) {
        let (mut start, mut end) = (start, start + bytes);
        let mut parts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Parts that reach in keep what is outside; those that are alike become one with it.
        let over: Vec<(u64, (u64, PageAccess))> = parts
            .range(..=end)
            .rev()
            .take_while(|(_, (over_end, _))| *over_end >= start)
            .map(|(&start, &part)| (start, part))
            .collect();
        for (over, (over_end, other)) in over {
            parts.remove(&over);
            if other == access {
                (start, end) = (start.min(over), end.max(over_end));
                continue;
            }
            if over < start {
                parts.insert(over, (over_end.min(start), other));
            }
            if over_end > end {
                parts.insert(over.max(end), (over_end, other));
            }
        }
        if access != PageAccess::Unmapped {
            parts.insert(start, (end, access));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PageAccess::{Multimem, None as NoAccess, Read, ReadWrite, Unmapped};
    use super::*;
    use crate::random::Random;

    /// Against an array of pages, one after the other.
    #[test]
    fn parts_are_as_pages() {
        const COUNT: u64 = 24;
        let mut random = Random::new(7);
        let (pages, mut model) = (Pages::default(), [Unmapped; COUNT as usize]);
        for _ in 0..3000 {
            let start = random.below(COUNT);
            let bytes = 1 + random.below(COUNT - start);
            let near = Multimem { distance: 64 };
            let far = Multimem { distance: 0_u64.wrapping_sub(64) };
            let access = [Unmapped, NoAccess, Read, ReadWrite, near, far][random.below(6) as usize];
            pages.set(start, bytes, access);
            model[start as usize..(start + bytes) as usize].fill(access);
            for at in 0..COUNT {
                let of = model[at as usize];
                assert_eq!(pages.access(at), of);
                let same = |at: &u64| model[*at as usize] == of;
                let first = (0..=at).rev().take_while(same).last().unwrap();
                let end = (at..COUNT).take_while(same).last().unwrap() + 1;
                let expected = matches!(of, Read | ReadWrite).then_some((first, end - first));
                assert_eq!(pages.find(at), expected);
                let Multimem { distance } = of else {
                    assert_eq!(pages.multimem(at), None);
                    continue;
                };
                assert_eq!(pages.multimem(at), Some((first, end - first, distance)));
            }
        }
    }
}
