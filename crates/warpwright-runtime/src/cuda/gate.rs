//! Streams that wait for what CUDA knows nothing of: a virtual GPU that reaches a mark.
//!
//! A stream that ever waits for such a thing has a gate: a word of pinned memory that counts the waits of the stream
//! that are over, in their order. The device itself waits for the word, and no thread of anybody's does:
//!
//! ```text
//!  stream  ──kernel──► word ≥ 1 ──copy──► word ≥ 2 ──►      a mark is reached: its wait is over, and the word becomes the
//!  word          0                1                          number up to which all waits are
//! ```
//!
//! The comparison goes round, and so does the count. The host writes the word last, so whoever sees it sees what was
//! written before; no copy into the device's memory by a third party has to be flushed for it.
//!
//! The driver does not know what a wait waits for, and may have put several streams in one queue of the hardware. That
//! blocks nothing: what a mark comes behind was asked for before the mark was made, and so before the wait.
//!
//! **A gate opens in any case**: when the mark is reached, when it is skipped after an error, which those are told who wait
//! for its device, when its device goes, and when the gate's own does.

use super::context::Context;
use super::error::{CallError, check};
use super::handles::Stream;
use super::memory::HostBlock;
use super::reaper::{Reaper, Users};
use super::sys::{self, CUstreamWaitValue_flags, Status};
use crate::vm;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The gate of a stream.
pub(super) struct Gate {
    /// Where the device has the word.
    address: u64,
    /// What marks know of it, which may be there for longer. **The word is not theirs to give back**: that calls the driver,
    /// which may wait for a device that waits for theirs.
    shared: Arc<Shared>,
    /// The stream's number.
    stream: u64,
    reaper: Arc<Reaper>,
}

/// The waits with their word.
struct Shared(Mutex<(Waits, Option<HostBlock>)>);

/// The waits of a stream, by numbers that go round.
#[derive(Default)]
struct Waits {
    /// The last one that is over with all before it.
    over: u32,
    /// Whether those behind it are.
    open: VecDeque<bool>,
}

impl Waits {
    /// One more: its number.
    fn add(&mut self) -> u32 {
        self.open.push_back(false);
        self.over.wrapping_add(self.open.len() as u32)
    }

    /// One is over.
    fn end(&mut self, number: u32) {
        let place = number.wrapping_sub(self.over).wrapping_sub(1) as usize;
        // One that is not there is over since the gate was opened for good.
        if let Some(open) = self.open.get_mut(place) {
            *open = true;
        }
        while self.open.front() == Some(&true) {
            self.open.pop_front();
            self.over = self.over.wrapping_add(1);
        }
    }

    /// All are over.
    fn end_all(&mut self) {
        self.over = self.over.wrapping_add(self.open.len() as u32);
        self.open.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, (Waits, Option<HostBlock>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the waits, and the word to what they say. Under one lock, so that the word never goes back.
    fn change<T>(&self, change: impl FnOnce(&mut Waits) -> T) -> T {
        let (waits, block) = &mut *self.lock();
        let result = change(waits);
        if let Some(block) = block {
            // SAFETY: the block has a word, which is aligned and lives as long as it is there; all accesses of the host are
            // atomic, and the device's are none of the host's.
            unsafe { AtomicU32::from_ptr(block.start().cast()) }.store(waits.over, Release);
        }
        result
    }
}

impl Gate {
    /// The gate of the stream of that number.
    pub(super) fn new(context: &Arc<Context>, reaper: &Arc<Reaper>, stream: u64) -> Result<Self, CallError> {
        let block = HostBlock::new(context, size_of::<AtomicU32>())?;
        let block = block.ok_or_else(|| CallError::new("cuMemHostAlloc", Status::OUT_OF_MEMORY))?;
        let address = block.address()?;
        let shared = Arc::new(Shared(Mutex::new((Waits::default(), Some(block)))));
        // The word says it too.
        shared.change(|_| ());
        Ok(Gate { address, shared, stream, reaper: reaper.clone() })
    }

    /// What the stream, whose gate this is, is asked for from now on waits for the mark. The context is bound, and the
    /// stream locked.
    pub(super) fn wait(&self, stream: &Stream, mark: &vm::Mark) -> Result<(), CallError> {
        let number = self.shared.change(Waits::add);
        let at_least = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the word outlives what the stream is asked for.
        let asked = unsafe { sys::cuStreamWaitValue32_v2(stream.raw(), self.address, number, at_least) };
        let shared = self.shared.clone();
        let end = move || shared.change(|waits| waits.end(number));
        if let Err(error) = check("cuStreamWaitValue32", asked) {
            end();
            return Err(error);
        }
        mark.then(end);
        Ok(())
    }

    /// Nobody waits any more.
    pub(super) fn open(&self) {
        self.shared.change(Waits::end_all);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // When the stream is past its waits nobody wants to know.
        let block = self.shared.lock().1.take();
        if let Some(block) = block {
            self.reaper.after(&Users::Streams(&[self.stream]), Box::new(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_over_in_their_order() {
        let mut waits = Waits { over: u32::MAX - 1, ..Waits::default() };
        let numbers = [(); 4].map(|()| waits.add());
        assert_eq!(numbers, [u32::MAX, 0, 1, 2]);
        waits.end(0);
        waits.end(2);
        assert_eq!(waits.over, u32::MAX - 1, "the first one is not over");
        waits.end(u32::MAX);
        assert_eq!(waits.over, 0);
        waits.end(1);
        assert_eq!((waits.over, waits.open.len()), (2, 0));
        let last = [waits.add(), waits.add()];
        assert_eq!(last, [3, 4]);
        waits.end_all();
        // They are reached later.
        last.into_iter().for_each(|number| waits.end(number));
        assert_eq!((waits.over, waits.add()), (4, 5));
    }
}
