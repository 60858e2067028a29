//! User objects: what the client has graphs keep for as long as they need it.
//!
//! An object counts its references: the client's own, and those of graphs, executable graphs and runs that are not done.
//! With the last one it ends, and **its destructor is called by a thread that does nothing else**, on which the driver
//! cannot be called.

use crate::engine::{HostFunction, call_no_driver};
use crate::report::log;
use crate::state::{Handles, Kind, is_shutting_down};
use crate::types::{CUuserObject, Result, Status};
use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The objects that have references.
pub(crate) static USER_OBJECTS: Handles<UserObject> = Handles::new(Kind::UserObject);

/// Something of the client's.
pub(crate) struct UserObject {
    handle: usize,
    destructor: HostFunction,
    destroyer: Sender<HostFunction>,
    counts: Mutex<Counts>,
}

struct Counts {
    /// References of the client's own.
    client: u64,
    /// Those of graphs.
    graphs: u64,
}

/// The references that a graph has, by the objects' handles.
#[derive(Default)]
pub(crate) struct References(BTreeMap<usize, (Arc<UserObject>, u64)>);

/// What has the thread call a destructor.
fn destroyer() -> Result<Sender<HostFunction>> {
    static DESTROYER: OnceLock<Sender<HostFunction>> = OnceLock::new();
    if let Some(destroyer) = DESTROYER.get() {
        return Ok(destroyer.clone());
    }
    let (destroyer, destructors) = channel::<HostFunction>();
    let destroy = move || {
        call_no_driver();
        for destructor in destructors {
            // The client has taken down what its functions need.
            if !is_shutting_down() {
                destructor.call();
            }
        }
    };
    std::thread::Builder::new().name("cuda-destructors".into()).spawn(destroy).map_err(|error| {
        log::note(&error);
        Status::OPERATING_SYSTEM
    })?;
    // Another thread may have been faster: then the one that was just started ends.
    Ok(DESTROYER.get_or_init(|| destroyer).clone())
}

impl UserObject {
    /// An object with so many references of the client's.
    pub(crate) fn create(destructor: HostFunction, references: u32) -> Result<CUuserObject> {
        let destroyer = destroyer()?;
        let counts = Mutex::new(Counts { client: references.into(), graphs: 0 });
        let object = |handle| Arc::new(UserObject { handle, destructor, destroyer, counts });
        USER_OBJECTS.insert_with(object).map(CUuserObject)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has more references.
    pub(crate) fn retain(&self, count: u32) {
        self.counts().client += u64::from(count);
    }

    /// The client has fewer references, of which it has as many.
    pub(crate) fn release(&self, count: u32) -> Result<()> {
        self.change(|counts| {
            counts.client = counts.client.checked_sub(count.into())?;
            Some(())
        })
    }

    /// Changes the numbers, and ends with the last reference. `None` where there are not as many.
    fn change(&self, change: impl FnOnce(&mut Counts) -> Option<()>) -> Result<()> {
        let mut counts = self.counts();
        change(&mut counts).ok_or_else(|| {
            log::misuse(&format_args!("the user object {:#x} has fewer references than that", self.handle));
            Status::INVALID_VALUE
        })?;
        let ends = counts.client == 0 && counts.graphs == 0;
        drop(counts);
        if ends {
            // It is there, since objects go here alone. Where the thread is gone the process is too.
            let _ = USER_OBJECTS.remove(self.handle);
            let _ = self.destroyer.send(self.destructor);
        }
        Ok(())
    }
}

impl References {
    /// Adds references: new ones, or such that the client has and loses.
    pub(crate) fn add(&mut self, object: &Arc<UserObject>, count: u32, takes: bool) -> Result<()> {
        let count = u64::from(count);
        object.change(|counts| {
            if takes {
                counts.client = counts.client.checked_sub(count)?;
            }
            counts.graphs += count;
            Some(())
        })?;
        self.0.entry(object.handle).or_insert_with(|| (object.clone(), 0)).1 += count;
        Ok(())
    }

    /// Gives references back, of which there are as many.
    pub(crate) fn remove(&mut self, object: &Arc<UserObject>, count: u32) -> Result<()> {
        let count = u64::from(count);
        let own = self.0.get_mut(&object.handle).filter(|(_, own)| *own >= count);
        let (_, own) = own.ok_or_else(|| {
            log::misuse(&format_args!("the graph has fewer references of user object {:#x}", object.handle));
            Status::INVALID_VALUE
        })?;
        *own -= count;
        if *own == 0 {
            self.0.remove(&object.handle);
        }
        object.change(|counts| {
            counts.graphs = counts.graphs.checked_sub(count)?;
            Some(())
        })
    }

    /// A reference of each object that others have.
    pub(crate) fn add_each_of(&mut self, others: &References) -> Result<()> {
        others.0.values().try_for_each(|(object, _)| self.add(object, 1, false))
    }

    /// As many references again.
    pub(crate) fn again(&self) -> References {
        let again = |(object, count): &(Arc<UserObject>, u64)| {
            object.counts().graphs += count;
            (object.clone(), *count)
        };
        References(self.0.iter().map(|(handle, own)| (*handle, again(own))).collect())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for References {
    fn drop(&mut self) {
        for (object, count) in self.0.values() {
            // There are as many.
            let _ = object.change(|counts| {
                counts.graphs = counts.graphs.checked_sub(*count)?;
                Some(())
            });
        }
    }
}
