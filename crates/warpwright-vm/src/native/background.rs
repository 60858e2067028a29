//! One thread that compiles while kernels are interpreted. It is there as long as there is something to compile: nobody
//! has to end it, and a process that ends does not wait for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

/// What is to be done, if there is a thread that does it.
static QUEUE: Mutex<Option<VecDeque<Job>>> = Mutex::new(None);

fn queue() -> MutexGuard<'static, Option<VecDeque<Job>>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a job, which does not panic, behind those that came before it; not at all if the process has no thread for it.
pub(super) fn run(job: Job) {
    let mut queued = queue();
    match &mut *queued {
        Some(jobs) => jobs.push_back(job),
        None => {
            let thread = std::thread::Builder::new().name("warpwright-native".into());
            *queued = thread.spawn(work).is_ok().then(|| VecDeque::from([job]));
        }
    }
}

fn work() {
    loop {
        let mut queued = queue();
        let Some(job) = queued.as_mut().and_then(VecDeque::pop_front) else {
            *queued = None;
            return;
        };
        drop(queued);
        job();
    }
}
