//! The way from the interpreter into native code and back.

use super::frame::{CHANGED, GLOBAL, OUTWARD, PROGRESS, READ, SHARED, VALID};
use super::functions::{Access, Entry};
use super::{Accesses, Cache, Compiled, Native, State, Variant};
use crate::machine::{LANES, LanesOf, Machine, NONE, Step};
use crate::memory::RegionKind;
use std::panic::resume_unwind;

/// The largest distance of addresses that native code takes.
const NEAR: u64 = i32::MAX as u64;

impl<'a> Machine<'a> {
    /// The native code for the path that runs, if there is some.
    #[inline]
    pub(crate) fn native_code(&mut self, function: u32) -> Option<&'a Compiled> {
        let known = &mut self.native[usize::from(self.active == u32::MAX)];
        if let Some((_, compiled)) = known.filter(|(of, _)| *of == function) {
            return Some(compiled);
        }
        let (found, launch) = (self.find_native_code(function)?, self.launch);
        let state = || Box::new(State::new(&launch.code, launch.options.tensor_core));
        self.worker.native.get_or_insert_with(state);
        self.native[usize::from(self.active == u32::MAX)] = Some((function, found));
        Some(found)
    }

    fn find_native_code(&self, function: u32) -> Option<&'a Compiled> {
        let launch = self.launch;
        let options = &launch.options;
        if options.native == Native::Off {
            return None;
        }
        let variant = Variant {
            full: self.active == u32::MAX,
            counted: options.counters,
            accesses: if options.fetches || !self.cluster.is_alone() {
                Accesses::None
            } else if !self.checks_accesses() {
                Accesses::Plain
            } else if options.checks.race && !launch.code.async_proxy {
                Accesses::Noted
            } else {
                Accesses::None
            },
        };
        launch.code.native.get(&launch.code, function, variant, options.native)
    }

    /// Runs native code from an instruction on, with fuel for the rest of its segment, up to the next instruction that is the
    /// interpreter's, for the same lanes or for some of them. Adds the lane instructions that were executed to `lanes`;
    /// `count`: those of the path.
    pub(crate) fn run_native(
        &mut self,
        native: &Compiled,
        entry: Entry,
        pc: u32,
        count: u64,
        lanes: &mut u64,
    ) -> Step {
        let (before, warp) = (self.fuel, &self.warp);
        let reconverges_at = warp.reconverges_at();
        let Some(state) = &mut self.worker.native else { return Step::Goto(pc) };
        let entered = &mut state.entered[pc as usize];
        entered.warps = entered.warps.wrapping_add(1);
        entered.lanes = entered.lanes.wrapping_add(count);
        let frame = &mut *state.frame;
        (frame.w32, frame.w64, frame.pred) = self.registers.pointers();
        frame.entered = state.entered.as_mut_ptr();
        frame.caches = state.caches.as_ptr();
        frame.shared = self.cluster.shared.as_mut_ptr().cast();
        (frame.lanes, frame.active, frame.reconverges_at) = (count, self.active, reconverges_at);
        (frame.fuel, frame.flags, frame.corrected) = (before - entry.need, 0, 0);
        (frame.is_only_path, frame.divided_by) = ((warp.paths.len() == 1).into(), NONE);
        frame.divergent = self.worker.divergent.as_mut_ptr();
        frame.counters = &mut self.worker.memory;
        let mut noting = match native.variant.accesses {
            Accesses::Noted => {
                let shared = &mut self.cluster.checks;
                self.block.checks.noting(&mut self.worker.checks, shared, self.launch)
            }
            _ => None,
        };
        if let Some(noting) = &mut noting {
            let warp = self.warp_index as u8;
            (frame.shared_bytes, frame.warp) = (self.launch.shape.shared_bytes(), warp);
            frame.notes = noting.races.notes(warp, frame.shared_bytes);
            frame.written = noting.shared.bits().map_or(std::ptr::null(), <[u64]>::as_ptr);
            frame.noting = std::ptr::from_mut(noting).cast();
        }
        let next = native.enter(entry, frame);
        if let Some(panic) = frame.panic.take() {
            resume_unwind(panic);
        }
        if let Some(noting) = noting {
            noting.races.noted(&frame.notes);
        }
        self.fuel = frame.fuel;
        let (used, flags, corrected) = (before - frame.fuel, frame.flags, frame.corrected);
        let entered = &mut state.entered[next as usize];
        entered.warps = entered.warps.wrapping_sub(1);
        entered.lanes = entered.lanes.wrapping_sub(frame.lanes);
        self.block.clock += u64::from(used);
        *lanes = lanes.wrapping_add(count * u64::from(used)).wrapping_add(corrected as u64);
        self.worker.read |= flags & READ != 0;
        self.worker.outward |= flags & OUTWARD != 0;
        self.worker.progress |= flags & PROGRESS != 0;
        if flags & CHANGED != 0 {
            self.warp.polls = 0;
        }
        if frame.divided_by == NONE {
            return Step::Goto(next);
        }
        let branch = &self.launch.code.insts[frame.divided_by as usize];
        let (rest, taken) = (frame.active, self.active & !frame.active);
        self.warp.diverge(&[(branch.x, taken), (frame.divided_by + 1, rest)], branch.c);
        let path = self.warp.current;
        self.warp.paths[path].pc = next;
        Step::Reload
    }

    /// The interpreter is about to execute an instruction for the lanes of the mask: where native code may do it next time,
    /// if it is an access.
    pub(crate) fn fill_cache(&mut self, native: &Compiled, pc: u32) {
        let launch = self.launch;
        let Some(Access { op: at, write }) = native.access(pc) else { return };
        let op = &launch.code.memory[at as usize];
        let first = LanesOf(self.mask).next().unwrap_or(0) % LANES;
        let address = self.addresses(&op.address)[first];
        let is_noted = native.variant.accesses == Accesses::Noted;
        let are_all_used = || launch.used_loads.is_all(launch.code.meta[pc as usize].statement);
        // Who looks at it, if native code may do it.
        let noted = |kind: &RegionKind<'_>| match kind {
            _ if !is_noted => Some(0),
            RegionKind::Param => Some(0),
            RegionKind::Global(all) if !all.is_writable(address) => {
                (!write && (all.written.is_all() || !launch.options.checks.init)).then_some(0)
            }
            RegionKind::Global(_) => (are_all_used() && !launch.has_neighbours()).then_some(GLOBAL),
            RegionKind::Shared => are_all_used().then_some(SHARED),
            RegionKind::Local => None,
        };
        let region = self.plain_region(op.spec(write), address);
        let region = region.and_then(|(region, host)| Some((noted(&region.kind)?, region, host)));
        let cache = region.map(|(noted, region, host)| {
            let (start, last) = (region.start, region.bytes - u64::from(op.spec(write).bytes));
            let outward = if write { READ | OUTWARD | PROGRESS } else { READ };
            let (flags, from_shared) = match region.kind {
                RegionKind::Global(_) => (outward, 0),
                RegionKind::Shared => (outward & PROGRESS, u64::MAX),
                RegionKind::Local | RegionKind::Param => (0, 0),
            };
            let (allocation, apart) = match region.kind {
                RegionKind::Global(all) => {
                    let address = all.base + region.origin;
                    (std::ptr::from_ref(all) as u64, address.wrapping_sub(host))
                }
                _ => (0, 0),
            };
            // Differences of narrow addresses are right if these are low, too.
            let is_near = last <= NEAR && (op.address.wide || start <= NEAR);
            let start = start.wrapping_sub(op.address.offset as u64);
            let flags = if is_near { flags | VALID } else { 0 };
            Cache { start, last, host, from_shared, flags: flags.into(), noted, allocation, apart }
        });
        if let (Some(state), Some(cache)) = (&mut self.worker.native, cache) {
            state.caches[at as usize] = cache;
        }
    }
}

impl Compiled {
    /// Enters the code: the next instruction.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "entering code that was compiled here")]
    fn enter(&self, entry: Entry, frame: &mut super::frame::Frame) -> u32 {
        type Code = unsafe extern "sysv64" fn(*mut super::frame::Frame, *const u8) -> u32;
        let start = self.page.start();
        // SAFETY: the page holds a function of this type, which was compiled for features that the processor has. The
        // entry is one of its instructions. The rows that the code reads and writes are those of the function's frame,
        // for which there is room, as for handlers; `entered` has an element for each instruction, `caches` for each
        // access; memory is accessed where a cache says that the launch has it, which keeps it.
        unsafe {
            let code: Code = std::mem::transmute(start);
            code(frame, start.add(entry.at as usize))
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn enter(&self, _: Entry, _: &mut super::frame::Frame) -> u32 {
        unreachable!("nothing is compiled for this processor")
    }
}
