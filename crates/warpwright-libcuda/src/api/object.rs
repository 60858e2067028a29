//! User objects, which graphs retain.

use super::entries;
use crate::engine::{HostFunction, permitted};
use crate::graph::{self, USER_OBJECTS, UserObject};
use crate::lock;
use crate::types::{CUgraph, CUhostFn, CUuserObject, Out, Result, Status};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// The only flag of an object: its destructor is not synchronised with.
const NO_DESTRUCTOR_SYNC: c_uint = 1;

/// The flag that moves the client's references to a graph.
const MOVE: c_uint = 1;

entries! {
    /// Creates an object with references. The last release calls the destructor.
    fn cuUserObjectCreate(
        made: Out<CUuserObject>,
        argument: *mut c_void,
        destructor: CUhostFn,
        references: c_uint,
        flags: c_uint,
    ) {
        permitted()?;
        crate::state::state()?;
        made.required()?;
        let destructor = destructor.filter(|_| flags == NO_DESTRUCTOR_SYNC).ok_or(Status::INVALID_VALUE)?;
        made.set(UserObject::create(HostFunction::new(destructor, argument), count(references)?)?)
    }

    /// Adds references of the caller.
    fn cuUserObjectRetain(handle: CUuserObject, references: c_uint) {
        object(handle)?.retain(count(references)?)
    }

    /// Releases references of the caller.
    fn cuUserObjectRelease(handle: CUuserObject, references: c_uint) {
        object(handle)?.release(count(references)?)
    }

    /// Adds references of a graph: new ones, or those of the caller.
    fn cuGraphRetainUserObject(graph: CUgraph, handle: CUuserObject, references: c_uint, flags: c_uint) {
        let (object, references) = (object(handle)?, count(references)?);
        if flags & !MOVE != 0 {
            return Err(Status::INVALID_VALUE);
        }
        lock(&graph::graph(graph)?.objects).add(&object, references, flags == MOVE)
    }

    /// Releases references of a graph.
    fn cuGraphReleaseUserObject(graph: CUgraph, handle: CUuserObject, references: c_uint) {
        let (object, references) = (object(handle)?, count(references)?);
        lock(&graph::graph(graph)?.objects).remove(&object, references)
    }
}

fn object(handle: CUuserObject) -> Result<Arc<UserObject>> {
    permitted()?;
    crate::state::state()?;
    USER_OBJECTS.get(handle.0).map_err(|_| Status::INVALID_VALUE)
}

/// Checks a number of references.
fn count(references: c_uint) -> Result<c_uint> {
    if (1..=c_int::MAX as c_uint).contains(&references) { Ok(references) } else { Err(Status::INVALID_VALUE) }
}
