//! Handles: opaque values that refer to objects.
//!
//! ```text
//! 63      56 55    48 47            24 23             0
//! │ 0x57    │ kind   │ generation     │ place in table │
//! ```
//!
//! The upper bits make it an invalid address in every process, so a client that dereferences one fails at once. **A
//! handle is looked up, never followed**: handles of another kind, invalid and destroyed ones are told apart. A slot
//! whose generations are used up is not reused, so no handle ever comes back.

use crate::report::calls::{self, Call};
use crate::report::log;
use crate::types::Status;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

macro_rules! kinds {
    ($($kind:ident = $number:literal $name:literal,)*) => {
        /// The kind of a handle.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind = $number,)*
        }

        impl Kind {
            /// The kind with this number in handles.
            fn of(number: usize) -> Option<Kind> {
                match number {
                    $($number => Some(Kind::$kind),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Kind::$kind => $name,)*
                })
            }
        }
    };
}

kinds! {
    Context = 1 "context",
    Stream = 2 "stream",
    Event = 3 "event",
    Module = 4 "module",
    Function = 5 "function",
    Library = 6 "library",
    Kernel = 7 "kernel",
    Link = 8 "linker",
    Pool = 9 "memory pool",
    Graph = 10 "graph",
    GraphNode = 11 "node of a graph",
    GraphExec = 12 "executable graph",
    UserObject = 13 "user object",
    JitLink = 14 "linker of libnvJitLink",
    Array = 15 "array",
    MipmappedArray = 16 "mipmapped array",
    Reference = 17 "texture or surface reference",
    Physical = 18 "physical memory",
}

/// Why a value is not a valid handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It is zero.
    Null,
    /// It was never given out.
    Unknown,
    /// It is of another kind.
    Wrong(Kind),
    /// Its object was destroyed.
    Destroyed,
}

impl From<Stale> for Status {
    fn from(_: Stale) -> Self {
        Status::INVALID_HANDLE
    }
}

const MARK: usize = 0x57;
const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 24;
const MAX_SLOTS: usize = 1 << INDEX_BITS;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// The objects of a kind.
pub(crate) struct Handles<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    /// The generation of the object in the slot, or of the next one.
    generation: u32,
    object: Option<(Arc<T>, Call)>,
}

/// An object that has not been destroyed.
pub(crate) struct Alive<T> {
    pub(crate) object: Arc<T>,
    /// The call that made it.
    pub(crate) made_by: Call,
}

impl<T> Handles<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Handles { kind, slots: RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Slots<T>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a handle for an object. There is room for 2²⁴ at once.
    pub(crate) fn insert(&self, object: Arc<T>) -> Result<usize, Status> {
        self.insert_with(|_| object).map(|(handle, _)| handle)
    }

    /// Creates a handle for an object that knows its handle. Returns both.
    pub(crate) fn insert_with(
        &self,
        object: impl FnOnce(usize) -> Arc<T>,
    ) -> Result<(usize, Arc<T>), Status> {
        let mut slots = self.write();
        let index = match slots.free.pop() {
            Some(index) => index as usize,
            None if slots.slots.len() < MAX_SLOTS => {
                slots.slots.push(Slot { generation: 0, object: None });
                slots.slots.len() - 1
            }
            None => return Err(Status::OUT_OF_MEMORY),
        };
        let slot = &mut slots.slots[index];
        let handle = self.encode(index, slot.generation);
        let (object, _) = slot.object.insert((object(handle), calls::current()));
        Ok((handle, object.clone()))
    }

    /// Replaces the object of a valid handle.
    pub(crate) fn replace_with(
        &self,
        handle: usize,
        object: impl FnOnce(usize) -> Arc<T>,
    ) -> Result<Arc<T>, Stale> {
        let (index, generation) = self.decode(handle)?;
        let mut slots = self.write();
        let slot = slots.slots.get_mut(index).filter(|slot| slot.generation == generation);
        let place = slot.and_then(|slot| slot.object.as_mut()).ok_or(Stale::Destroyed)?;
        *place = (object(handle), calls::current());
        Ok(place.0.clone())
    }

    /// The object of a handle. An invalid handle is logged.
    pub(crate) fn get(&self, handle: usize) -> Result<Arc<T>, Stale> {
        let found = self.find(handle);
        found.inspect_err(|stale| self.complain(handle, *stale))
    }

    /// The object of a handle, without logging.
    pub(crate) fn find(&self, handle: usize) -> Result<Arc<T>, Stale> {
        let (index, generation) = self.decode(handle)?;
        let slots = self.read();
        let slot = slots.slots.get(index).ok_or(Stale::Unknown)?;
        match &slot.object {
            Some((object, _)) if slot.generation == generation => Ok(object.clone()),
            _ if generation < slot.generation => Err(Stale::Destroyed),
            _ => Err(Stale::Unknown),
        }
    }

    /// Removes a handle.
    pub(crate) fn remove(&self, handle: usize) -> Result<Arc<T>, Stale> {
        let removed = self.take(handle);
        removed.inspect_err(|stale| self.complain(handle, *stale))
    }

    fn take(&self, handle: usize) -> Result<Arc<T>, Stale> {
        let (index, generation) = self.decode(handle)?;
        let mut slots = self.write();
        let slot = slots.slots.get_mut(index).ok_or(Stale::Unknown)?;
        if slot.generation != generation {
            return Err(if generation < slot.generation { Stale::Destroyed } else { Stale::Unknown });
        }
        let (object, _) = slot.object.take().ok_or(Stale::Unknown)?;
        slot.generation += 1;
        if slot.generation <= LAST_GENERATION {
            slots.free.push(index as u32);
        }
        Ok(object)
    }

    /// The live objects, in no order.
    pub(crate) fn alive(&self) -> Vec<Alive<T>> {
        let slots = self.read();
        let objects = slots.slots.iter().filter_map(|slot| slot.object.as_ref());
        objects.map(|(object, made_by)| Alive { object: object.clone(), made_by: *made_by }).collect()
    }

    /// The handles of the objects for which a condition holds.
    pub(crate) fn handles(&self, mut holds: impl FnMut(&T) -> bool) -> Vec<usize> {
        let slots = self.read();
        let all = slots.slots.iter().enumerate();
        let held = all.filter(|(_, slot)| slot.object.as_ref().is_some_and(|(object, _)| holds(object)));
        held.map(|(index, slot)| self.encode(index, slot.generation)).collect()
    }

    fn encode(&self, index: usize, generation: u32) -> usize {
        MARK << 56 | (self.kind as usize) << 48 | (generation as usize) << INDEX_BITS | index
    }

    fn decode(&self, handle: usize) -> Result<(usize, u32), Stale> {
        if handle == 0 {
            return Err(Stale::Null);
        }
        match Kind::of(handle >> 48 & 0xff) {
            Some(kind) if handle >> 56 == MARK => match kind == self.kind {
                true => {}
                false => return Err(Stale::Wrong(kind)),
            },
            _ => return Err(Stale::Unknown),
        }
        let generation = (handle >> INDEX_BITS) as u32 & LAST_GENERATION;
        Ok((handle & (MAX_SLOTS - 1), generation))
    }

    fn complain(&self, handle: usize, stale: Stale) {
        let kind = self.kind;
        match stale {
            Stale::Null => log::misuse(&format_args!("a handle of kind {kind} is needed, not null")),
            Stale::Unknown => log::misuse(&format_args!("{handle:#x} was never a handle of kind {kind}")),
            Stale::Wrong(is) => {
                log::misuse(&format_args!(
                    "{handle:#x} is a handle of kind {is}, one of kind {kind} is needed"
                ));
            }
            Stale::Destroyed => {
                log::misuse(&format_args!("the {kind} {handle:#x} was destroyed before"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_handles_are_told_apart() {
        let events = Handles::<u32>::new(Kind::Event);
        let streams = Handles::<u32>::new(Kind::Stream);
        let event = events.insert(Arc::new(7)).unwrap();
        let stream = streams.insert(Arc::new(8)).unwrap();
        assert_eq!((*events.get(event).unwrap(), *streams.get(stream).unwrap()), (7, 8));

        assert_eq!(events.get(0).unwrap_err(), Stale::Null);
        assert_eq!(events.get(stream).unwrap_err(), Stale::Wrong(Kind::Stream));
        assert_eq!(events.get(0x7fff_dead_0010).unwrap_err(), Stale::Unknown);
        assert_eq!(events.get(event + 1).unwrap_err(), Stale::Unknown, "a place that is not there");
        assert_eq!(events.get(event + MAX_SLOTS).unwrap_err(), Stale::Unknown, "a generation to come");

        assert_eq!(*events.remove(event).unwrap(), 7);
        assert_eq!(events.get(event).unwrap_err(), Stale::Destroyed);
        assert_eq!(events.remove(event).unwrap_err(), Stale::Destroyed);
        let next = events.insert(Arc::new(9)).unwrap();
        assert_ne!(next, event);
        assert_eq!(events.get(event).unwrap_err(), Stale::Destroyed, "its place is used again");
        assert_eq!(*events.get(next).unwrap(), 9);
    }

    #[test]
    fn a_place_is_given_up_before_its_handles_repeat() {
        let events = Handles::<u32>::new(Kind::Event);
        let first = events.insert(Arc::new(0)).unwrap();
        events.write().slots[0].generation = LAST_GENERATION;
        let last = events.encode(0, LAST_GENERATION);
        events.remove(last).unwrap();
        let next = events.insert(Arc::new(1)).unwrap();
        assert_eq!(next & (MAX_SLOTS - 1), 1, "another place");
        assert_eq!(events.get(first).unwrap_err(), Stale::Destroyed);
        assert_eq!(events.get(last).unwrap_err(), Stale::Destroyed);
    }

    #[test]
    fn what_is_alive_is_known() {
        let events = Handles::<u32>::new(Kind::Event);
        let made: Vec<usize> = (0..4).map(|n| events.insert(Arc::new(n)).unwrap()).collect();
        events.remove(made[1]).unwrap();
        let alive: Vec<u32> = events.alive().iter().map(|alive| *alive.object).collect();
        assert_eq!(alive, [0, 2, 3]);
        assert_eq!(events.handles(|n| *n >= 2), made[2..]);
    }
}
