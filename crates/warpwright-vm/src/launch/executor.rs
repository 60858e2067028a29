//! The host threads of a device: they run its launches, one after the other.

use super::Launch;
use crate::simd::with_default_floats;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Host threads, and the launches that wait for them.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    launches: VecDeque<Arc<Launch>>,
    closed: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a host thread.
    fn serve(&self) {
        while let Some(launch) = self.next() {
            self.run(&launch);
        }
    }

    /// Works on a launch, and makes way for the next one at its end, or when it stands still.
    fn run(&self, launch: &Arc<Launch>) {
        with_default_floats(|| launch.work());
        let mut queue = self.queue();
        // Asked under the lock: whoever waited for the launch may have resumed and submitted it meanwhile.
        if launch.is_left() && queue.launches.front().is_some_and(|front| Arc::ptr_eq(front, launch)) {
            queue.launches.pop_front();
            if !queue.launches.is_empty() || queue.closed {
                self.changed.notify_all();
            }
        }
    }

    /// The launch that is first, once it wants a thread. `None` at the end.
    fn next(&self) -> Option<Arc<Launch>> {
        let mut queue = self.queue();
        loop {
            if let Some(front) = queue.launches.front()
                && front.wants_workers()
            {
                return Some(front.clone());
            }
            if queue.closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Executor {
    /// That many host threads.
    pub(crate) fn new(threads: u32) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let spawn = |_| {
            let shared = shared.clone();
            std::thread::Builder::new().name("warpwright-vm".into()).spawn(move || shared.serve())
        };
        let threads = (0..threads.max(1)).map(spawn).collect::<Result<_, _>>()?;
        Ok(Executor { shared, threads })
    }

    /// Runs a launch after those that came before it. One that has stood still may not have been taken out yet.
    pub(crate) fn submit(&self, launch: Arc<Launch>) {
        let mut queue = self.shared.queue();
        let before = queue.launches.len();
        queue.launches.retain(|queued| !Arc::ptr_eq(queued, &launch));
        let alone = launch.workers == 1 && queue.launches.len() == before;
        queue.launches.push_back(launch);
        drop(queue);
        if alone {
            self.shared.changed.notify_one();
        } else {
            self.shared.changed.notify_all();
        }
    }

    /// The host waits for the end of a launch, and so of those before it.
    pub(crate) fn await_end(&self, launch: &Arc<Launch>) {
        let queue = self.shared.queue();
        if queue.launches.iter().any(|queued| Arc::ptr_eq(queued, launch)) {
            for queued in &queue.launches {
                queued.host_waits();
                if Arc::ptr_eq(queued, launch) {
                    break;
                }
            }
        }
    }

    /// Lets the calling thread work on a launch that it would otherwise only wait for, if it is that one's
    /// turn.
    pub(crate) fn help(&self, launch: &Arc<Launch>) {
        self.await_end(launch);
        let first = self.shared.queue().launches.front().is_some_and(|front| Arc::ptr_eq(front, launch));
        if first {
            self.shared.run(launch);
        }
    }

    /// Ends all launches where they are.
    pub(crate) fn stop(&self) {
        self.shared.queue().launches.iter().for_each(|launch| launch.stop());
    }

    /// Waits until every launch is over.
    pub(crate) fn drain(&self) {
        let last = self.shared.queue().launches.back().cloned();
        if let Some(last) = last {
            self.await_end(&last);
            // One that stands still is not here any more.
            last.wait_for_progress();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.closed = true;
        queue.launches.iter().for_each(|launch| launch.stop());
        drop(queue);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing to say any more.
            let _ = thread.join();
        }
    }
}
