//! What native code calls. Most routines are asked about one access, before it is done: whether native code may do it, or the
//! interpreter must. So checks can note accesses without code of their own at each level.

mod count;
mod global;
mod product;
mod shared;

pub(super) use count::CountAccess;
pub(super) use global::NoteGlobal;
pub(super) use product::multiply;
pub(super) use shared::NoteShared;

use super::{Compiler, Frame, Result, Vectors};
use crate::memory::Allocation;
use crate::native::frame::Cache;
use iced_x86::code_asm::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What native code asks about: an access of an instruction, with a head as notes have it, of these lanes, from a place of the
/// host on, by its number in the code's table. If the head says that a warp is ascending, or all lanes at one place, the first
/// lane is there; else the frame has how far from there lanes are.
pub(super) struct Access {
    pc: u32,
    head: u32,
    mask: u32,
    place: u64,
    number: u32,
}

impl Access {
    fn bytes(&self) -> u32 {
        self.head >> 8 & 0xff
    }

    fn element(&self) -> u32 {
        self.head >> 16 & 0xff
    }

    /// The cache that answers it, and the allocation, if it is of global memory.
    ///
    /// # Safety
    ///
    /// The frame is that of the code that asks.
    #[expect(unsafe_code, reason = "the pointers of a frame")]
    unsafe fn cache<'a>(&self, frame: &Frame) -> (&'a Cache, Option<&'a Allocation>) {
        // SAFETY: there is a cache for each access. If it has an allocation, that is one of the launch, which keeps it.
        unsafe {
            let cache = &*frame.caches.add(self.number as usize);
            (cache, (cache.allocation as *const Allocation).as_ref())
        }
    }
}

/// What is asked about accesses.
pub(super) trait Routine {
    /// Whether native code may go on with an access.
    ///
    /// # Safety
    ///
    /// Native code, which was entered with this frame, asks, for an access that the cache of its number answers; and what it
    /// needs is in the frame.
    #[expect(unsafe_code, reason = "the pointers of a frame")]
    unsafe fn goes_on(frame: &mut Frame, access: &Access) -> bool;
}

/// How native code calls a routine.
///
/// # Safety
///
/// As [`Routine::goes_on`].
#[expect(unsafe_code, reason = "the pointers of a frame")]
unsafe extern "sysv64" fn enter<R: Routine>(
    frame: *mut Frame,
    pc: u32,
    head: u32,
    mask: u32,
    place: u64,
    number: u32,
) -> bool {
    let access = Access { pc, head, mask, place, number };
    // SAFETY: native code passes the frame that it was entered with, and waits meanwhile; the rest is this one's promise.
    unsafe { answer(&mut *frame, |frame| R::goes_on(frame, &access)) }
}

/// What a routine does. A panic, which native code cannot have, waits in the frame until that is left, with the access
/// undone.
pub(super) fn answer(frame: &mut Frame, work: impl FnOnce(&mut Frame) -> bool) -> bool {
    match catch_unwind(AssertUnwindSafe(|| work(frame))) {
        Ok(goes_on) => goes_on,
        Err(panic) => {
            frame.panic = Some(panic);
            false
        }
    }
}

impl<V: Vectors> Compiler<'_, V> {
    /// Asks a routine about an access from `rdx` on, by its instruction, number and head; if it says no, the access is the
    /// interpreter's.
    ///
    /// `rdx`, `ecx` and `r9` stay as they are, and so do the lanes of the instruction and what is held: who does not need
    /// that clears it before. Other registers are lost.
    pub(super) fn ask<R: Routine>(
        &mut self,
        (index, number, head): (usize, u32, u32),
        miss: CodeLabel,
    ) -> Result<()> {
        let a = &mut self.a;
        // With the registers that the prologue pushes and the way back, three keep the stack aligned.
        let kept = [rdx, rcx, r9];
        for register in kept {
            a.push(register)?;
        }
        if !self.masked {
            a.mov(ecx, -1)?;
        }
        a.mov(rdi, rbx)?;
        a.mov(esi, self.first + index as u32)?;
        a.mov(r8, rdx)?;
        a.mov(edx, head)?;
        a.mov(r9d, number)?;
        // The routine may have instructions of SSE.
        a.vzeroupper()?;
        a.mov(rax, enter::<R> as *const () as u64)?;
        a.call(rax)?;
        for register in kept.into_iter().rev() {
            a.pop(register)?;
        }
        a.test(al, al)?;
        a.jz(miss)?;
        if self.masked {
            V::mask(self)?;
        }
        let held: Vec<_> = self.held.all().collect();
        for (at, strip) in held {
            self.fetch(V::HOLD[at], strip)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Code;
    use crate::native::State;

    #[test]
    fn a_panic_waits_in_the_frame() {
        let mut state = State::new(&Code::default(), crate::tensor::TensorCore::V100);
        for goes_on in [true, false] {
            assert_eq!(answer(&mut state.frame, |_| goes_on), goes_on);
        }
        assert!(state.frame.panic.is_none());
        assert!(!answer(&mut state.frame, |_| panic!("for a test")));
        let panic = state.frame.panic.take().expect("it is there");
        assert_eq!(panic.downcast_ref(), Some(&"for a test"));
    }
}
