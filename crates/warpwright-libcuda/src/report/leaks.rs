//! Leaks: objects of a client that are alive when the process or their context ends.

use super::calls::Call;
use super::sink;
use crate::code::{LIBRARIES, LINKS, MODULES};
use crate::engine::{
    ARRAYS, EVENTS, HostKind, MIPMAPPED_ARRAYS, Mappable, OBJECTS, PHYSICAL, POOLS, STREAMS, hosts,
    reservations,
};
use crate::graph::{EXECS, GRAPHS, USER_OBJECTS};
use crate::lock;
use crate::state::{CONTEXTS, config, has_forked, started};
use std::sync::Mutex;
use warpwright_report::Event;

/// A live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveObject {
    /// Its kind, in a fixed word.
    pub(crate) what: &'static str,
    /// The size of its memory; 0 if it is not memory.
    pub(crate) bytes: u64,
    /// Its context, if it has one.
    pub(crate) context: Option<u64>,
    /// The call that made it.
    pub(crate) made_by: Call,
}

/// The objects of contexts that were destroyed.
static LEFT: Mutex<Vec<LiveObject>> = Mutex::new(Vec::new());

/// All live objects, in the order of the calls that made them.
pub(crate) fn alive() -> Vec<LiveObject> {
    let mut all = Vec::new();
    let Some(state) = started().filter(|_| !has_forked()) else { return all };
    let engines = state.devices.iter().filter_map(|device| device.engine_if_started());
    let engines: Vec<_> = engines.collect();
    let mut keep = |what, bytes, context, made_by| all.push(LiveObject { what, bytes, context, made_by });
    // A primary context is the process's: the CUDA runtime never releases it.
    for context in
        CONTEXTS.alive().iter().filter(|context| context.object.is_alive() && !context.object.is_primary)
    {
        keep("context", 0, None, context.made_by);
    }
    for engine in &engines {
        for block in engine.memory.alive() {
            keep("device memory", block.bytes(), Some(block.context), block.made_by);
        }
    }
    for array in ARRAYS.alive().iter().filter(|array| !array.object.is_level) {
        keep("array", array.object.array.bytes().bytes(), Some(array.object.context), array.made_by);
    }
    for array in MIPMAPPED_ARRAYS.alive() {
        let levels = array.object.array.array.image().levels();
        let bytes = levels.iter().map(|level| level.slice * u64::from(level.slices)).sum();
        keep("mipmapped array", bytes, Some(array.object.array.context), array.made_by);
    }
    for (what, context, made_by) in OBJECTS.alive() {
        keep(what, 0, Some(context), made_by);
    }
    for memory in hosts().alive().iter().filter(|memory| memory.variable.is_none()) {
        let what = match memory.kind {
            HostKind::Pinned => "host memory",
            HostKind::Registered => "registered memory",
            HostKind::Managed => "managed memory",
        };
        keep(what, memory.bytes, Some(memory.context), memory.made_by);
    }
    for memory in PHYSICAL.alive() {
        let what = match memory.object.memory {
            Mappable::Physical(_) => "physical memory",
            Mappable::Multicast(_) => "multicast object",
        };
        keep(what, memory.object.memory.bytes(), None, memory.made_by);
    }
    for reservation in reservations().alive() {
        keep("reserved addresses", reservation.bytes, None, reservation.made_by);
    }
    for stream in STREAMS.alive() {
        keep("stream", 0, Some(stream.object.context.id), stream.made_by);
    }
    for event in EVENTS.alive() {
        keep("event", 0, Some(event.object.context.id), event.made_by);
    }
    for module in MODULES.alive().iter().filter(|module| !module.object.is_librarys) {
        keep("module", 0, Some(module.object.code.context.id), module.made_by);
    }
    for library in LIBRARIES.alive() {
        keep("library", 0, None, library.made_by);
    }
    for graph in GRAPHS.alive().iter().filter(|graph| !graph.object.is_nodes()) {
        keep("graph", 0, None, graph.made_by);
    }
    for exec in EXECS.alive() {
        keep("executable graph", 0, None, exec.made_by);
    }
    for object in USER_OBJECTS.alive() {
        keep("user object", 0, None, object.made_by);
    }
    for link in LINKS.alive() {
        keep("linker", 0, None, link.made_by);
    }
    for pool in POOLS.alive() {
        // Default pools are not made by the client.
        if engines.iter().any(|engine| engine.pools.is_own(&pool.object)) {
            continue;
        }
        keep("memory pool", 0, None, pool.made_by);
    }
    all.sort_by_key(|kept| kept.made_by.number);
    all
}

/// Notes the objects of a context that is destroyed, which are reported at the end of the process.
pub(crate) fn context_ends(context: u64) {
    if config().is_ok_and(|config| config.leaks) {
        lock(&LEFT).extend(alive().into_iter().filter(|kept| kept.context == Some(context)));
    }
}

/// Reports the leaks and their size.
pub(super) fn tell() -> u64 {
    let mut all = std::mem::take(&mut *lock(&LEFT));
    all.extend(alive());
    all.sort_by_key(|kept| kept.made_by.number);
    // What a pool has given a context outlives it, and is there twice.
    all.dedup();
    for kept in &all {
        let LiveObject { what, bytes, made_by, .. } = *kept;
        sink::tell(Event::Leak { what: what.to_owned(), bytes, call: made_by.into() });
    }
    all.len() as u64
}
