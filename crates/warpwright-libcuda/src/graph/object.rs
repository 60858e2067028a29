//! User objects: resources of the client that graphs keep alive as long as they need them.
//!
//! An object counts its references: the client's own, and those of graphs, executable graphs and launches that are not
//! complete. The last release ends it, and **its destructor is called by a thread that does nothing else**, from which
//! the driver cannot be called.

use crate::engine::{Call, Callbacks, HostFunction};
use crate::lock;
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUuserObject, Result, Status};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The objects that have references.
pub(crate) static USER_OBJECTS: Handles<UserObject> = Handles::new(Kind::UserObject);

/// A user object.
pub(crate) struct UserObject {
    handle: usize,
    destructor: HostFunction,
    counts: Mutex<Counts>,
}

struct Counts {
    /// References of the client.
    client: u64,
    /// References of graphs.
    graphs: u64,
}

/// The references of a graph, by the objects' handles.
#[derive(Default)]
pub(crate) struct References(BTreeMap<usize, (Arc<UserObject>, u64)>);

/// The thread that calls the destructors.
fn destroyer() -> &'static Callbacks {
    static DESTROYER: OnceLock<&'static Callbacks> = OnceLock::new();
    DESTROYER.get_or_init(|| Callbacks::new("cuda-objects".into()))
}

impl UserObject {
    /// An object with that many references of the client.
    pub(crate) fn create(destructor: HostFunction, references: u32) -> Result<CUuserObject> {
        let counts = Mutex::new(Counts { client: references.into(), graphs: 0 });
        let object = |handle| Arc::new(UserObject { handle, destructor, counts });
        USER_OBJECTS.insert_with(object).map(|(handle, _)| CUuserObject(handle))
    }

    /// Adds references of the client.
    pub(crate) fn retain(&self, count: u32) -> Result<()> {
        self.change(|counts| {
            counts.client += u64::from(count);
            Some(())
        })
    }

    /// Releases references of the client, which must have that many.
    pub(crate) fn release(&self, count: u32) -> Result<()> {
        self.change(|counts| {
            counts.client = counts.client.checked_sub(count.into())?;
            Some(())
        })
    }

    /// Changes the counts. The last reference ends the object, once, even if another thread has just looked it up.
    /// `None` if there are not that many references.
    fn change(&self, change: impl FnOnce(&mut Counts) -> Option<()>) -> Result<()> {
        let mut counts = lock(&self.counts);
        let is_over = counts.client == 0 && counts.graphs == 0;
        Some(()).filter(|()| !is_over).and_then(|()| change(&mut counts)).ok_or_else(|| {
            log::misuse(&format_args!("the user object {:#x} has fewer references than that", self.handle));
            Status::INVALID_VALUE
        })?;
        let ends = counts.client == 0 && counts.graphs == 0;
        drop(counts);
        if ends {
            // It is there, since objects go here alone. Where there is no thread to be had, the log says so.
            let _ = USER_OBJECTS.remove(self.handle);
            let _ = destroyer().push(Call::Host(self.destructor), None);
        }
        Ok(())
    }
}

impl References {
    /// Adds references: new ones, or some of the client's.
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

    /// Releases references, of which there must be that many.
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

    /// One reference to each object of another set.
    pub(crate) fn add_each_of(&mut self, others: &References) -> Result<()> {
        others.0.values().try_for_each(|(object, _)| self.add(object, 1, false))
    }

    /// The same number of references again.
    pub(crate) fn again(&self) -> References {
        let again = |(object, count): &(Arc<UserObject>, u64)| {
            lock(&object.counts).graphs += count;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;

    unsafe extern "C-unwind" fn ended(_: *mut c_void) {}

    #[test]
    fn what_was_found_before_its_end_has_no_references_afterwards() {
        let destructor = HostFunction::new(ended, std::ptr::null_mut());
        let handle = UserObject::create(destructor, 1).unwrap();
        // As another thread has it that is a little late.
        let found = USER_OBJECTS.get(handle.0).unwrap();
        found.release(1).unwrap();
        assert_eq!(found.retain(1), Err(Status::INVALID_VALUE));
        assert_eq!(References::default().add(&found, 1, false), Err(Status::INVALID_VALUE));
        assert_eq!(found.release(1), Err(Status::INVALID_VALUE));
        assert!(USER_OBJECTS.get(handle.0).is_err());
    }
}
