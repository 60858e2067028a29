//! Address resolution: the memory that the lanes of an access reach, and its faults.

use super::address::*;
use super::{Allocation, AllocationKind, Object, PageAccess, SpaceKind};
use crate::machine::{LANES, LanesOf, Machine, NONE, Row64};
use std::sync::Arc;

/// What memory a region is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegionKind<'a> {
    /// Global or constant memory.
    Global(&'a Allocation),
    /// Shared memory of a block of the cluster.
    Shared,
    /// The local memory of each thread.
    Local,
    /// The parameters of the kernel.
    Param,
}

/// Memory that belongs together: an allocation, or a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'a> {
    pub(crate) kind: RegionKind<'a>,
    /// Address of its first byte, in the form that the access uses.
    pub(crate) start: u64,
    /// Its size.
    pub(crate) bytes: u64,
    /// Where it begins in what stores it.
    pub(crate) origin: u64,
}

/// Lanes whose accesses are in one region.
pub(crate) struct Group<'a> {
    pub(crate) region: Region<'a>,
    /// Bytes of each access.
    pub(crate) bytes: u32,
    /// The lanes.
    pub(crate) mask: u32,
    /// Byte offsets of the accesses in the region's storage. Those of other lanes are meaningless.
    pub(crate) offsets: Row64,
}

impl<'a> Group<'a> {
    /// The accesses of some of the lanes.
    pub(crate) fn part(&self, mask: u32) -> Group<'a> {
        Group { mask, ..*self }
    }
}

/// The reason why an access is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// It is not completely inside a variable or allocation.
    OutOfBounds,
    /// Its address is not a multiple of its size.
    Misaligned,
    /// Its allocation was freed.
    Freed,
    /// Its address is null, or close to it.
    Null,
    /// The address belongs to another state space. Where it is a generic one of shared memory, the access was done.
    WrongSpace,
    /// It is to shared memory of a block of the cluster that has exited, or that nothing keeps from it: then it was done.
    Exited,
    /// The memory is read-only.
    ReadOnly,
    /// It is in address space that the host has reserved, where no memory is mapped.
    Unmapped,
    /// Memory is mapped, and the device was given no access to it.
    NoAccess,
    /// What an instruction takes for a texture or surface is none, or was destroyed.
    BadHandle,
    /// It is to constant memory, by an address that the host gave for one of global memory. The ISA leaves that
    /// undefined; GPUs do it, and so does the virtual one.
    Constant,
    /// It is to lanes of tensor memory that belong to another warp. The ISA leaves that undefined; GPUs access the warp's
    /// own lanes in their place, and so does the virtual one.
    OtherLanes,
    /// It is to a multimem address, by an instruction that is no `multimem` one.
    Multimem,
    /// It is a `multimem` instruction's, to an address that is no multimem address.
    NotMultimem,
}

/// A memory access that was not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The instruction.
    pub(crate) pc: u32,
    /// The block, by its number.
    pub(crate) block: u64,
    /// The thread, by its number in the block.
    pub(crate) thread: u32,
    pub(crate) space: SpaceKind,
    /// The address, in the form that the access used.
    pub(crate) address: u64,
    /// Its width.
    pub(crate) bytes: u32,
    pub(crate) write: bool,
}

/// What an access needs of its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessSpec {
    pub(crate) space: SpaceKind,
    /// Bytes from the address on.
    pub(crate) bytes: u32,
    /// What the address must be a multiple of.
    pub(crate) align: u32,
    pub(crate) write: bool,
}

/// Addresses below this are reported as null pointers.
pub(crate) const NULL_ZONE: u64 = 4096;

impl<'a> Machine<'a> {
    /// Takes from `todo` the lanes whose accesses are in one region. Lanes with faulty accesses are taken as well,
    /// and reported. `None` once no lane is left.
    #[inline(always)]
    pub(crate) fn next_group(
        &mut self,
        spec: AccessSpec,
        addresses: &Row64,
        todo: &mut u32,
    ) -> Option<Group<'a>> {
        while *todo != 0 {
            let first = todo.trailing_zeros() as usize;
            let region = self.region(spec.space, addresses[first]);
            if let Some(region) = region {
                let mask = inside(&region, spec, addresses) & *todo;
                if mask & 1 << first != 0 && (!spec.write || is_writable(&region)) {
                    *todo &= !mask;
                    if let RegionKind::Global(allocation) = region.kind {
                        self.worker.read = true;
                        self.worker.outward |= spec.write;
                        self.worker.polled_host |= allocation.is_mapped();
                    }
                    let offsets = offsets(&region, addresses);
                    return Some(Group { region, bytes: spec.bytes, mask, offsets });
                }
            }
            if region.is_none()
                && let Some(group) = self.undefined_group(spec, addresses, *todo)
            {
                *todo &= !group.mask;
                return Some(group);
            }
            self.fault(spec, first, addresses[first], region);
            *todo &= *todo - 1;
        }
        None
    }

    /// The accesses of the first lane's kind that the ISA leaves undefined, and GPUs do: those to global memory that lead to
    /// constant memory, and those to shared memory by a generic address, of which the upper half is cut off. They are
    /// reported.
    #[cold]
    fn undefined_group(&mut self, spec: AccessSpec, addresses: &Row64, todo: u32) -> Option<Group<'a>> {
        let first = todo.trailing_zeros() as usize;
        let (space, fault) = match spec.space {
            SpaceKind::Global => (SpaceKind::Const, FaultKind::Constant),
            SpaceKind::Shared | SpaceKind::SharedCluster => (SpaceKind::Generic, FaultKind::WrongSpace),
            _ => return None,
        };
        let region = self.region(space, addresses[first])?;
        let is_shared = matches!(region.kind, RegionKind::Shared);
        if is_shared != (fault == FaultKind::WrongSpace) {
            return None;
        }
        let mask = inside(&region, spec, addresses) & todo;
        if mask & 1 << first == 0 {
            return None;
        }
        self.worker.read = true;
        self.worker.outward |= spec.write;
        self.found_fault(fault, spec, first, addresses[first]);
        Some(Group { region, bytes: spec.bytes, mask, offsets: offsets(&region, addresses) })
    }

    /// Memory around an address that native code may access as this access does, and where the host has its first byte; of
    /// shared memory, from the beginning of the cluster's on.
    pub(crate) fn plain_region(&self, spec: AccessSpec, address: u64) -> Option<(Region<'a>, u64)> {
        let region = self.region_of(spec, address)?;
        let host = match region.kind {
            RegionKind::Global(allocation) => {
                if spec.write && !is_writable(&region) {
                    return None;
                }
                allocation.own_words()?.as_ptr() as u64
            }
            RegionKind::Shared => 0,
            RegionKind::Param => self.launch.shape.params.as_ptr() as u64,
            RegionKind::Local => return None,
        };
        let is_aligned = region.start.is_multiple_of(spec.align.into()) && region.origin.is_multiple_of(4);
        is_aligned.then(|| (region, host + region.origin))
    }

    /// The region that an access at an address is in.
    pub(crate) fn region_of(&self, spec: AccessSpec, address: u64) -> Option<Region<'a>> {
        self.region(spec.space, address).filter(|region| inside_one(region, spec, address))
    }

    /// The region that an address is in, or that it is just behind.
    #[inline(always)]
    fn region(&self, space: SpaceKind, address: u64) -> Option<Region<'a>> {
        match space {
            SpaceKind::Global => self.global_region(address, AllocationKind::Constant, false),
            SpaceKind::Shared => self.own_shared_region(address, 0),
            SpaceKind::SharedCluster => self.shared_region(address, 0),
            SpaceKind::Generic => match window(address) {
                Window::Global => self.global_region(address, AllocationKind::Constant, true),
                Window::Shared => self.shared_region(address - SHARED_WINDOW, SHARED_WINDOW),
                Window::Local => self.local_region(address - LOCAL_WINDOW, LOCAL_WINDOW),
                Window::Param => self.param_region(address - PARAM_WINDOW, PARAM_WINDOW),
            },
            SpaceKind::Local => self.local_region(address, 0),
            SpaceKind::Param => self.param_region(address, 0),
            SpaceKind::Const => {
                let region = self.global_region(address, AllocationKind::Constant, true)?;
                let is_constant =
                    matches!(region.kind, RegionKind::Global(a) if a.kind == AllocationKind::Constant);
                is_constant.then_some(region)
            }
            SpaceKind::Texture => self.texture_region(address),
            SpaceKind::Multimem => self.multimem_region(address),
            // Its addresses are no bytes.
            SpaceKind::Tensor => None,
        }
    }

    #[inline(always)]
    fn global_region(&self, address: u64, special: AllocationKind, allowed: bool) -> Option<Region<'a>> {
        let allocation = self.launch.memory.lookup(address)?;
        if allocation.kind == special && !allowed || allocation.freed || !allocation.is_addressable() {
            return None;
        }
        if let Some(parts) = &allocation.parts {
            let (start, bytes) = parts.find(address)?;
            let origin = start - allocation.base;
            return Some(Region { kind: RegionKind::Global(allocation), start, bytes, origin });
        }
        let (start, bytes) = (allocation.base, allocation.bytes);
        Some(Region { kind: RegionKind::Global(allocation), start, bytes, origin: 0 })
    }

    /// The memory that a multimem address stands for, as far as both reach.
    fn multimem_region(&self, address: u64) -> Option<Region<'a>> {
        let (start, bytes, distance) = self.launch.memory.lookup(address)?.pages()?.multimem(address)?;
        let there = address.wrapping_add(distance);
        let target = self.global_region(there, AllocationKind::Constant, false)?;
        let within = there.checked_sub(target.start).filter(|&within| within < target.bytes)?;
        let before = within.min(address - start);
        let after = (target.bytes - within).min(start + bytes - address);
        Some(Region {
            kind: target.kind,
            start: address - before,
            bytes: before + after,
            origin: target.origin + within - before,
        })
    }

    /// Arrays, and linear memory.
    fn texture_region(&self, address: u64) -> Option<Region<'a>> {
        let allocation = self.launch.memory.lookup(address)?;
        if allocation.kind != AllocationKind::Array {
            return self.global_region(address, AllocationKind::Constant, false);
        }
        let (start, bytes) = (allocation.base, allocation.bytes);
        let region = Region { kind: RegionKind::Global(allocation), start, bytes, origin: 0 };
        (!allocation.freed).then_some(region)
    }

    /// Shared memory of the block that runs.
    #[inline(always)]
    fn own_shared_region(&self, address: u64, window: u64) -> Option<Region<'a>> {
        let first = u64::from(self.block.rank) << RANK_BITS;
        let (start, bytes) = find(&self.launch.shape.shared_regions, address.wrapping_sub(first))?;
        let origin = self.block.shared_base + start;
        Some(Region { kind: RegionKind::Shared, start: start + first + window, bytes, origin })
    }

    /// Shared memory of any block of the cluster, as long as it is there.
    #[inline(always)]
    fn shared_region(&self, address: u64, window: u64) -> Option<Region<'a>> {
        self.own_shared_region(address, window).or_else(|| self.peer_shared_region(address, window))
    }

    fn peer_shared_region(&self, address: u64, window: u64) -> Option<Region<'a>> {
        let (rank, first) = (address >> RANK_BITS, address & !(u64::MAX << RANK_BITS));
        let peer = self.cluster.blocks.get(rank as usize)?;
        if peer.is_done() {
            return None;
        }
        let (start, bytes) = find(&self.launch.shape.shared_regions, first)?;
        let origin = self.launch.shape.shared_bytes() * rank + start;
        Some(Region { kind: RegionKind::Shared, start: start + (rank << RANK_BITS) + window, bytes, origin })
    }

    /// Whether an address is of shared memory of a block of the cluster that has exited.
    fn has_exited(&self, space: SpaceKind, address: u64) -> bool {
        let rank = match (space, window(address)) {
            (SpaceKind::SharedCluster, _) => address >> RANK_BITS,
            (SpaceKind::Generic, Window::Shared) => (address - SHARED_WINDOW) >> RANK_BITS,
            _ => return false,
        };
        let peer = self.cluster.blocks.get(rank as usize);
        rank != u64::from(self.block.rank) && peer.is_some_and(|block| block.is_done())
    }

    fn param_region(&self, offset: u64, window: u64) -> Option<Region<'a>> {
        let (start, bytes) = find(&self.launch.shape.param_regions, offset)?;
        Some(Region { kind: RegionKind::Param, start: start + window, bytes, origin: start })
    }

    /// A variable of the frame, or of one of those that called it.
    fn local_region(&self, offset: u64, window: u64) -> Option<Region<'a>> {
        let mut index = self.warp.paths[self.warp.current].frame;
        while index != NONE {
            let frame = &self.warp.frames[index as usize];
            let base = u64::from(frame.local);
            if offset >= base {
                let function = &self.launch.code.functions[frame.function as usize];
                let end = u64::from(function.local_bytes);
                // What it has allocated is one region, as large as the largest of its lanes.
                let (start, bytes) = if offset - base >= end {
                    let allocated = u64::from(frame.allocated);
                    (offset - base - end < allocated).then_some((end, allocated))?
                } else {
                    find(&function.local_regions, offset - base)?
                };
                let start = start + base;
                return Some(Region { kind: RegionKind::Local, start: start + window, bytes, origin: start });
            }
            index = frame.parent;
        }
        None
    }

    /// What a handle stands for that an instruction takes from its lanes, and the lanes of `todo` that have it, which
    /// are taken out. Lanes whose handle is none of a `wanted` object are taken as well, and reported. `None` once no
    /// lane is left.
    pub(crate) fn next_object(
        &mut self,
        wanted: fn(&Object) -> bool,
        handles: &Row64,
        write: bool,
        todo: &mut u32,
    ) -> Option<(Arc<Object>, u32)> {
        while *todo != 0 {
            let first = todo.trailing_zeros() as usize;
            let handle = handles[first];
            let lanes =
                LanesOf(*todo).filter(|&lane| handles[lane] == handle).fold(0, |all, lane| all | 1 << lane);
            *todo &= !lanes;
            let object = self.launch.memory.object(handle);
            match object.filter(|object| wanted(object)) {
                Some(object) => return Some((object, lanes)),
                None => {
                    let spec = AccessSpec { space: SpaceKind::Texture, bytes: 0, align: 1, write };
                    self.found_fault(FaultKind::BadHandle, spec, first, handle);
                }
            }
        }
        None
    }

    /// A lane's access is not allowed.
    #[cold]
    fn fault(&mut self, spec: AccessSpec, lane: usize, address: u64, region: Option<Region<'a>>) {
        let known = region.is_some();
        let kind = if address & u64::from(spec.align - 1) != 0 {
            FaultKind::Misaligned
        } else if let Some(region) = region
            && inside_one(&region, spec, address)
        {
            FaultKind::ReadOnly
        } else if known {
            FaultKind::OutOfBounds
        } else {
            self.unknown_region(spec.space, address)
        };
        self.found_fault(kind, spec, lane, address);
    }

    /// Reports a fault of a lane.
    #[cold]
    fn found_fault(&mut self, kind: FaultKind, spec: AccessSpec, lane: usize, address: u64) {
        let fault = Fault {
            kind,
            pc: self.pc,
            block: self.block.number,
            thread: self.thread(lane),
            space: spec.space,
            address,
            bytes: spec.bytes,
            write: spec.write,
        };
        // The lanes of an instruction with one kind of fault count once.
        let instruction = (self.block.number, self.block.clock);
        let (last, kinds) = &mut self.worker.faults;
        if *last != instruction {
            (*last, *kinds) = (instruction, 0);
        }
        let is_first = *kinds >> kind as u32 & 1 == 0;
        *kinds |= 1 << kind as u32;
        self.report_fault(fault, is_first);
    }

    fn unknown_region(&self, space: SpaceKind, address: u64) -> FaultKind {
        let memory = &self.launch.memory;
        match memory.lookup(address) {
            Some(allocation)
                if allocation.freed || allocation.heap().is_some_and(|heap| heap.was_released(address)) =>
            {
                return FaultKind::Freed;
            }
            Some(allocation) if allocation.pages().is_some() => {
                return match allocation.pages().map(|pages| pages.access(address)) {
                    Some(PageAccess::Unmapped) => FaultKind::Unmapped,
                    Some(PageAccess::None) => FaultKind::NoAccess,
                    Some(PageAccess::Multimem { .. }) if space == SpaceKind::Multimem => FaultKind::Unmapped,
                    Some(PageAccess::Multimem { .. }) => FaultKind::Multimem,
                    _ if space == SpaceKind::Multimem => FaultKind::NotMultimem,
                    _ => FaultKind::OutOfBounds,
                };
            }
            Some(allocation) => {
                let constant = allocation.kind == AllocationKind::Constant;
                let wanted = match space {
                    SpaceKind::Global => !constant && allocation.is_addressable(),
                    SpaceKind::Const => constant,
                    SpaceKind::Generic => allocation.is_addressable(),
                    SpaceKind::Texture => !constant,
                    _ => false,
                };
                // Past its end there is nothing of any space.
                let inside = address.wrapping_sub(allocation.base) < allocation.bytes;
                if inside && space == SpaceKind::Multimem {
                    return FaultKind::NotMultimem;
                }
                return if wanted || !inside { FaultKind::OutOfBounds } else { FaultKind::WrongSpace };
            }
            None => {}
        }
        if self.has_exited(space, address) {
            return FaultKind::Exited;
        }
        use SpaceKind::{Local, Param, Shared, SharedCluster};
        let counts_from_zero = matches!(space, Shared | SharedCluster | Local | Param);
        match window(address) {
            Window::Global if counts_from_zero => FaultKind::OutOfBounds,
            Window::Global if address < NULL_ZONE => FaultKind::Null,
            Window::Global => FaultKind::OutOfBounds,
            _ if space == SpaceKind::Generic => FaultKind::OutOfBounds,
            _ => FaultKind::WrongSpace,
        }
    }
}

/// Byte offsets, in what stores the region, of addresses that are in it.
#[inline(always)]
fn offsets(region: &Region<'_>, addresses: &Row64) -> Row64 {
    let shift = region.origin.wrapping_sub(region.start);
    let mut offsets = [0; LANES];
    for lane in 0..LANES {
        offsets[lane] = addresses[lane].wrapping_add(shift);
    }
    offsets
}

/// The interval, of those that are sorted, that holds `offset` or ends at or before it with nothing between.
#[inline(always)]
fn find(regions: &[(u64, u64)], offset: u64) -> Option<(u64, u64)> {
    if let [(start, bytes)] = *regions {
        return (offset.wrapping_sub(start) < bytes).then_some((start, bytes));
    }
    let after = regions.partition_point(|&(start, _)| start <= offset);
    let (start, bytes) = *regions.get(after.checked_sub(1)?)?;
    (offset - start < bytes).then_some((start, bytes))
}

/// The lanes, of all 32, whose access is wholly inside and aligned.
#[inline(always)]
fn inside(region: &Region<'_>, spec: AccessSpec, addresses: &Row64) -> u32 {
    if region.bytes < u64::from(spec.bytes) {
        return 0;
    }
    let last = region.bytes - u64::from(spec.bytes);
    let low = u64::from(spec.align - 1);
    let mut bits = [0u32; LANES];
    for lane in 0..LANES {
        let address = addresses[lane];
        let good = (address.wrapping_sub(region.start) <= last) & (address & low == 0);
        bits[lane] = if good { 1 << lane } else { 0 };
    }
    bits.iter().fold(0, |all, bit| all | bit)
}

fn inside_one(region: &Region<'_>, spec: AccessSpec, address: u64) -> bool {
    inside(region, spec, &[address; LANES]) != 0
}

#[inline(always)]
fn is_writable(region: &Region<'_>) -> bool {
    match region.kind {
        RegionKind::Global(allocation) => allocation.is_writable(allocation.base + region.origin),
        RegionKind::Shared | RegionKind::Local => true,
        RegionKind::Param => false,
    }
}

/// Whether each address is `step` behind the one before it.
#[inline(always)]
pub(crate) fn is_consecutive(addresses: &[u64], step: u64) -> bool {
    let mut odd = 0;
    for lane in 0..addresses.len() {
        odd |= addresses[lane] ^ addresses[0].wrapping_add(step * lane as u64);
    }
    odd == 0
}

/// Iterates the lanes of a mask: all of them without looking at it.
#[inline(always)]
pub(crate) fn for_lanes(mask: u32, mut each: impl FnMut(usize)) {
    if mask == u32::MAX {
        for lane in 0..LANES {
            each(lane);
        }
    } else {
        LanesOf(mask).for_each(each);
    }
}
