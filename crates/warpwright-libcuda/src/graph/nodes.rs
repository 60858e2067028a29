//! Graphs: nodes and which of them come before which.
//!
//! Nodes are numbered over the whole process in the order in which they are made, so that a number is one node for ever,
//! and the order of a graph's nodes is that of their numbers. A graph may have cycles until it is made ready to run.

use super::{References, Task};
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUgraph, CUgraphNode, Result, Status};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All graphs, those inside of nodes too.
pub(crate) static GRAPHS: Handles<Graph> = Handles::new(Kind::Graph);

/// The nodes of all graphs.
pub(crate) static NODES: Handles<Node> = Handles::new(Kind::GraphNode);

/// How many graphs are inside of one another, at most.
pub(crate) const DEEPEST: usize = 64;

/// The number of a node.
pub(crate) type NodeId = u64;

/// A node as its handle has it.
pub(crate) struct Node {
    graph: Weak<Graph>,
    id: NodeId,
}

/// A graph.
pub(crate) struct Graph {
    handle: CUgraph,
    id: u64,
    /// Whether a node of another graph has it, and it goes with that.
    is_nodes: bool,
    state: Mutex<State>,
    /// What it keeps for the client.
    objects: Mutex<References>,
    this: Weak<Graph>,
}

/// The nodes of a graph, by their numbers.
pub(crate) type State = BTreeMap<NodeId, Entry>;

/// A node as its graph has it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) handle: CUgraphNode,
    pub(crate) task: Task,
    /// What comes before it, each once.
    pub(crate) dependencies: Vec<NodeId>,
    /// The node that it is a copy of.
    pub(crate) copy_of: Option<NodeId>,
}

impl Graph {
    /// An empty graph.
    pub(crate) fn create(is_nodes: bool) -> Result<Arc<Graph>> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let mut made = None;
        GRAPHS.insert_with(|handle| {
            let graph = Arc::new_cyclic(|this: &Weak<Graph>| Graph {
                handle: CUgraph(handle),
                id: IDS.fetch_add(1, Relaxed),
                is_nodes,
                state: Mutex::default(),
                objects: Mutex::default(),
                this: this.clone(),
            });
            made.insert(graph).clone()
        })?;
        made.ok_or(Status::UNKNOWN)
    }

    /// What clients call it.
    pub(crate) fn handle(&self) -> CUgraph {
        self.handle
    }

    /// A number that no other graph of the process ever has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a node has it.
    pub(crate) fn is_nodes(&self) -> bool {
        self.is_nodes
    }

    /// Its nodes.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it keeps for the client.
    pub(crate) fn objects(&self) -> MutexGuard<'_, References> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node behind others of this graph, each of which counts once.
    pub(crate) fn add(&self, task: Task, dependencies: &[NodeId]) -> Result<(NodeId, CUgraphNode)> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let mut state = self.state();
        if dependencies.iter().any(|id| !state.contains_key(id)) {
            log::misuse(&"a node comes behind one of another graph");
            return Err(Status::INVALID_VALUE);
        }
        let id = IDS.fetch_add(1, Relaxed);
        let handle = CUgraphNode(NODES.insert(Arc::new(Node { graph: self.this.clone(), id }))?);
        let mut seen = HashSet::new();
        let dependencies = dependencies.iter().copied().filter(|id| seen.insert(*id)).collect();
        state.insert(id, Entry { handle, task, dependencies, copy_of: None });
        Ok((id, handle))
    }

    /// Adds edges, none of which there may be already. Either all or none.
    pub(crate) fn add_edges(&self, edges: &[(NodeId, NodeId)]) -> Result<()> {
        let mut state = self.state();
        for (place, (from, to)) in edges.iter().enumerate() {
            let known = state.contains_key(from) && from != to && !edges[..place].contains(&(*from, *to));
            match state.get(to) {
                Some(entry) if known && !entry.dependencies.contains(from) => {}
                _ => {
                    log::misuse(&"an edge of a graph joins two of its nodes, and is new");
                    return Err(Status::INVALID_VALUE);
                }
            }
        }
        for (from, to) in edges {
            if let Some(entry) = state.get_mut(to) {
                entry.dependencies.push(*from);
            }
        }
        Ok(())
    }

    /// Takes edges away, all of which there must be. Either all or none.
    pub(crate) fn remove_edges(&self, edges: &[(NodeId, NodeId)]) -> Result<()> {
        let mut state = self.state();
        let known =
            |(from, to): &(NodeId, NodeId)| state.get(to).is_some_and(|to| to.dependencies.contains(from));
        if !edges.iter().all(known) {
            return Err(Status::INVALID_VALUE);
        }
        for (from, to) in edges {
            if let Some(entry) = state.get_mut(to) {
                entry.dependencies.retain(|id| id != from);
            }
        }
        Ok(())
    }

    /// How many graphs are inside of one another here, with this one.
    pub(crate) fn depth(&self) -> usize {
        let inside = |entry: &Entry| match &entry.task {
            Task::Child(graph) => Some(graph.clone()),
            _ => None,
        };
        // Their locks are taken one after the other.
        let inside: Vec<Arc<Graph>> = self.state().values().filter_map(inside).collect();
        1 + inside.iter().map(|graph| graph.depth()).max().unwrap_or(0)
    }

    /// The edges, in the order of the nodes that they lead to.
    pub(crate) fn edges(&self) -> Vec<(CUgraphNode, CUgraphNode)> {
        let state = self.state();
        let to = |entry: &Entry| {
            let (handle, from) = (entry.handle, entry.dependencies.clone());
            from.into_iter().map(move |id| (id, handle))
        };
        let edges = state.values().flat_map(to);
        edges.filter_map(|(from, to)| Some((state.get(&from)?.handle, to))).collect()
    }

    /// Takes a node away, with its edges.
    fn remove(&self, id: NodeId) {
        let mut state = self.state();
        let removed = state.remove(&id);
        for entry in state.values_mut() {
            entry.dependencies.retain(|dependency| *dependency != id);
        }
        drop(state);
        if let Some(removed) = removed {
            forget(removed);
        }
    }

    /// Takes all nodes away, and what it keeps.
    pub(crate) fn clear(&self) {
        let nodes = std::mem::take(&mut *self.state());
        nodes.into_values().for_each(forget);
        let objects = std::mem::take(&mut *self.objects());
        drop(objects);
    }

    /// The same graph again: its nodes are copies, and know what of.
    pub(crate) fn copy(&self, is_nodes: bool) -> Result<Arc<Graph>> {
        let state = self.state().clone();
        let copy = Graph::create(is_nodes)?;
        *copy.objects() = self.objects().again();
        let mut copies = HashMap::new();
        for (&id, entry) in &state {
            let (new, _) = copy.add(entry.task.copied()?, &[])?;
            copies.insert(id, new);
        }
        let mut new = copy.state();
        for (id, entry) in &state {
            if let Some(node) = copies.get(id).and_then(|new_id| new.get_mut(new_id)) {
                node.copy_of = Some(*id);
                node.dependencies =
                    entry.dependencies.iter().filter_map(|id| copies.get(id).copied()).collect();
            }
        }
        drop(new);
        Ok(copy)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A node is gone: its handle, and the graph inside of it.
fn forget(entry: Entry) {
    // It is there, since nodes go here alone.
    let _ = NODES.remove(entry.handle.0);
    if let Task::Child(graph) = entry.task {
        let _ = GRAPHS.remove(graph.handle.0);
        graph.clear();
    }
}

/// The nodes in an order in which each comes behind what it depends on, of several the one that was made first;
/// `None` where there is a cycle.
pub(crate) fn in_order(state: &State) -> Option<Vec<NodeId>> {
    let mut open: HashMap<NodeId, usize> = HashMap::new();
    let mut behind: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let mut ready = BinaryHeap::new();
    for (&id, entry) in state {
        match entry.dependencies.len() {
            0 => ready.push(Reverse(id)),
            count => {
                open.insert(id, count);
            }
        }
        for dependency in &entry.dependencies {
            behind.entry(*dependency).or_default().push(id);
        }
    }
    let mut order = Vec::with_capacity(state.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for next in behind.remove(&id).unwrap_or_default() {
            if let Some(count) = open.get_mut(&next) {
                *count -= 1;
                if *count == 0 {
                    ready.push(Reverse(next));
                }
            }
        }
    }
    (order.len() == state.len()).then_some(order)
}

/// The graph of a handle.
pub(crate) fn graph(handle: CUgraph) -> Result<Arc<Graph>> {
    crate::state::state()?;
    // What the interface says of graphs and nodes that are none, where of other things it says that the handle is.
    GRAPHS.get(handle.0).map_err(|_| Status::INVALID_VALUE)
}

/// The node of a handle, and its graph.
pub(crate) fn node(handle: CUgraphNode) -> Result<(Arc<Graph>, NodeId)> {
    crate::state::state()?;
    let node = NODES.get(handle.0).map_err(|_| Status::INVALID_VALUE)?;
    Ok((node.graph.upgrade().ok_or(Status::INVALID_VALUE)?, node.id))
}

/// Does something with a node.
pub(crate) fn with_node<R>(handle: CUgraphNode, with: impl FnOnce(&mut Entry) -> Result<R>) -> Result<R> {
    let (graph, id) = node(handle)?;
    let mut state = graph.state();
    with(state.get_mut(&id).ok_or(Status::INVALID_VALUE)?)
}

/// The numbers of nodes that must be of one graph.
pub(crate) fn ids(graph: &Graph, handles: &[CUgraphNode]) -> Result<Vec<NodeId>> {
    let id = |handle: &CUgraphNode| {
        let (of, id) = node(*handle)?;
        match of.id == graph.id {
            true => Ok(id),
            false => {
                log::misuse(&format_args!("node {:#x} belongs to another graph", handle.0));
                Err(Status::INVALID_VALUE)
            }
        }
    };
    handles.iter().map(id).collect()
}

/// Destroys a graph of the client's.
pub(crate) fn destroy(handle: CUgraph) -> Result<()> {
    let graph = graph(handle)?;
    if graph.is_nodes {
        log::misuse(&"the graph belongs to a node of another graph, and goes with that");
        return Err(Status::INVALID_VALUE);
    }
    GRAPHS.remove(handle.0).map_err(|_| Status::INVALID_VALUE)?.clear();
    Ok(())
}

/// Destroys a node.
pub(crate) fn destroy_node(handle: CUgraphNode) -> Result<()> {
    let (graph, id) = node(handle)?;
    graph.remove(id);
    Ok(())
}
