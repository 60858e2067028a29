//! Errors of a device, and whether they were returned.
//!
//! There are two kinds of errors. A call that the driver refused has done nothing: the error is returned once, and then
//! the device goes on. An error of a running operation ends the context: every call that waits returns it from then on,
//! since nothing is executed any more.
//!
//! **While an error is pending, nothing is issued**: operations after a failed one are skipped, as on every kind of
//! device.

use super::error::CallError;
use super::sys::Status;
use crate::error::{Failure, Result, RuntimeError};
use crate::lock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex};

/// Errors of a device.
#[derive(Default)]
pub(super) struct Faults {
    /// Whether an error is pending.
    standing: AtomicBool,
    state: Mutex<State>,
    /// The number of errors that were returned.
    told: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The error that was not returned yet.
    error: Option<Box<Failure>>,
    /// The error that has ended the context.
    lost: Option<Box<Failure>>,
}

/// Launches of which one may have failed: the first and the last that are not known to be complete.
#[derive(Clone, Default)]
pub(super) struct Suspects {
    first: Option<(Arc<str>, u64)>,
    last: Option<(Arc<str>, u64)>,
}

impl Suspects {
    /// Adds launches: the first and the last of `count`, which is not zero, and the number of the first.
    pub(super) fn add(&mut self, first: &Arc<str>, last: &Arc<str>, number: u64, count: u64) {
        if self.first.is_none() {
            self.first = Some((first.clone(), number));
        }
        let number = number + count - 1;
        match &mut self.last {
            // Most launches are of few kernels: their names are not counted again.
            Some((name, at)) if Arc::ptr_eq(name, last) => *at = number,
            known => *known = Some((last.clone(), number)),
        }
    }

    /// Those of two streams.
    pub(super) fn join(&mut self, other: Suspects) {
        let number = |suspect: &(Arc<str>, u64)| suspect.1;
        self.first = [self.first.take(), other.first].into_iter().flatten().min_by_key(number);
        self.last = [self.last.take(), other.last].into_iter().flatten().max_by_key(number);
    }

    /// The failure for an error of one of them; `what` is the operation that met it.
    fn failure(self, what: &str, message: String) -> Failure {
        let (kernel, launch) = match self.first {
            Some((name, number)) => (name.to_string(), Some(number)),
            None => (what.to_owned(), None),
        };
        let last = self.last.filter(|(_, number)| Some(*number) != launch);
        let last = last.map(|(name, number)| (name.to_string(), number));
        Failure { kernel, launch, last, lost: true, message }
    }
}

impl Faults {
    /// Whether an error is pending, so that nothing must be issued.
    #[inline]
    pub(super) fn stand(&self) -> bool {
        self.standing.load(Acquire)
    }

    /// Whether the context has ended.
    pub(super) fn is_lost(&self) -> bool {
        self.stand() && lock(&self.state).lost.is_some()
    }

    /// Notes the error of a call for `what`; `suspects` are the launches that are not known to be complete.
    pub(super) fn add(&self, what: &str, error: &CallError, suspects: impl FnOnce() -> Suspects) {
        let failure = if ends_context(error.code) {
            suspects().failure(what, error.to_string())
        } else {
            let (kernel, message) = (what.to_owned(), error.to_string());
            Failure { kernel, launch: None, last: None, lost: false, message }
        };
        let mut state = lock(&self.state);
        let failure = Box::new(failure);
        if failure.lost && state.lost.is_none() {
            state.lost = Some(failure.clone());
        }
        if state.error.is_none() {
            state.error = Some(failure);
        }
        self.standing.store(true, Release);
    }

    /// Returns the pending error, or the one that ended the context.
    pub(super) fn tell(&self) -> Result<()> {
        if !self.stand() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        let error = state.error.take().or_else(|| state.lost.clone());
        self.standing.store(state.lost.is_some(), Release);
        match error {
            Some(failure) => {
                self.told.fetch_add(1, Release);
                Err(RuntimeError::Failed(failure))
            }
            None => Ok(()),
        }
    }

    /// The number of errors that were returned.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Relaxed)
    }
}

/// Whether an error of that code ends its context.
pub(super) fn ends_context(code: u32) -> bool {
    const ENDING: &[Status] = &[
        Status::DEINITIALIZED,
        Status::ECC_UNCORRECTABLE,
        Status::NVLINK_UNCORRECTABLE,
        Status::ILLEGAL_ADDRESS,
        Status::LAUNCH_TIMEOUT,
        Status::CONTEXT_IS_DESTROYED,
        Status::ASSERT,
        Status::HARDWARE_STACK_ERROR,
        Status::ILLEGAL_INSTRUCTION,
        Status::MISALIGNED_ADDRESS,
        Status::INVALID_ADDRESS_SPACE,
        Status::INVALID_PC,
        Status::LAUNCH_FAILED,
        Status::EXTERNAL_DEVICE,
        Status::CONTAINED,
        Status::TENSOR_MEMORY_LEAK,
        Status::MPS_CLIENT_TERMINATED,
        Status::UNKNOWN,
    ];
    ENDING.contains(&Status(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(result: Status) -> CallError {
        let (name, text) = ("CUDA_ERROR".into(), "it says no".into());
        CallError { call: "cuCall", code: result.0, name, text }
    }

    fn told(faults: &Faults) -> Option<Failure> {
        match faults.tell() {
            Ok(()) => None,
            Err(RuntimeError::Failed(failure)) => Some(*failure),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_refused_call_is_told_once() {
        let faults = Faults::default();
        assert!(!faults.stand() && told(&faults).is_none());
        faults.add("memset", &call(Status::INVALID_VALUE), Suspects::default);
        faults.add("copy", &call(Status::INVALID_VALUE), Suspects::default);
        assert!(faults.stand() && !faults.is_lost());
        let failure = told(&faults).expect("the first");
        assert_eq!((failure.kernel.as_str(), failure.launch, failure.lost), ("memset", None, false));
        assert!(!faults.stand() && told(&faults).is_none());
        assert_eq!(faults.told(), 1);
    }

    #[test]
    fn contexts_end_with_the_codes_that_headers_say_so_of() {
        let ending: Vec<u32> = (0..1000).filter(|&code| ends_context(code)).collect();
        let hardware = [214, 220, 226];
        let kernels = [700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721];
        let all = [&[4], &hardware[..], &kernels, &[810, 911, 999]].concat();
        assert_eq!(ending, all);
    }

    #[test]
    fn a_lost_context_is_told_to_everybody() {
        let faults = Faults::default();
        let names: [Arc<str>; 2] = ["first".into(), "last".into()];
        let [first, last] = &names;
        let mut suspects = Suspects::default();
        suspects.add(first, first, 4, 1);
        suspects.add(first, last, 5, 3);
        let mut elsewhere = Suspects::default();
        elsewhere.add(last, last, 6, 1);
        suspects.join(elsewhere);
        faults.add("memset", &call(Status::INVALID_VALUE), Suspects::default);
        faults.add("synchronize", &call(Status::ILLEGAL_ADDRESS), || suspects);
        assert_eq!(told(&faults).map(|failure| failure.kernel), Some("memset".into()));
        for _ in 0..2 {
            assert!(faults.stand() && faults.is_lost());
            let Failure { kernel, launch, last, lost, .. } = told(&faults).expect("it stays");
            assert_eq!((kernel.as_str(), launch, lost), ("first", Some(4), true));
            assert_eq!(last, Some(("last".into(), 7)));
        }
        assert_eq!(faults.told(), 3);
    }

    #[test]
    fn one_launch_is_known_to_be_it() {
        let name: Arc<str> = "alone".into();
        let mut suspects = Suspects::default();
        suspects.add(&name, &name, 9, 1);
        let failure = suspects.failure("synchronize", "it says no".into());
        assert_eq!((failure.kernel.as_str(), failure.launch, failure.last), ("alone", Some(9), None));
        let failure = Suspects::default().failure("synchronize", "it says no".into());
        assert_eq!((failure.kernel.as_str(), failure.launch), ("synchronize", None));
    }
}
