//! Graphs: nodes and their dependencies.
//!
//! Nodes are numbered over the whole process in the order of their creation, so a number always means the same node.
//! Edges may lead to nodes that were made before; that they lead in no circle shows when an order of them is asked for.

use super::{Alloc, Condition, Exec, References, Task};
use crate::engine::{Engine, GraphMemory, owner};
use crate::lock;
use crate::report::log;
use crate::state::{Handles, Kind};
use crate::types::{CUcontext, CUdeviceptr, CUgraph, CUgraphNode, CUmemAccessDesc, Result, Status};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// All graphs, including child graphs of nodes.
pub(crate) static GRAPHS: Handles<Graph> = Handles::new(Kind::Graph);

/// The nodes of all graphs.
pub(crate) static NODES: Handles<Node> = Handles::new(Kind::GraphNode);

/// The maximum nesting depth of graphs.
pub(crate) const DEEPEST: usize = 64;

/// The number of a node.
pub(crate) type NodeId = u64;

/// A node as its handle refers to it.
pub(crate) struct Node {
    graph: Weak<Graph>,
    id: NodeId,
}

/// A graph.
pub(crate) struct Graph {
    pub(crate) handle: CUgraph,
    pub(crate) id: u64,
    /// The graph that it is a body in, at whatever depth, or itself.
    pub(crate) root: u64,
    /// Whether it is a graph of a node, and destroyed with it.
    is_nodes: AtomicBool,
    /// Whether it was a graph of its own before.
    is_moved: AtomicBool,
    pub(crate) state: Mutex<State>,
    /// The user objects that it retains.
    pub(crate) objects: Mutex<References>,
    /// The values of its conditional nodes, and of those inside.
    pub(super) conditions: Mutex<Vec<Arc<Condition>>>,
    /// The last executable graph that was made from it.
    pub(super) exec: Mutex<Weak<Exec>>,
    this: Weak<Graph>,
}

/// What an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The node begins when the one in front of it is complete.
    Plain,
    /// A kernel may begin before the one in front of it is complete, and waits for that one by itself.
    Programmatic,
}

/// The nodes of a graph, by their numbers.
pub(crate) type State = BTreeMap<NodeId, Entry>;

/// A node as its graph stores it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) handle: CUgraphNode,
    pub(crate) task: Task,
    /// Its dependencies, each once.
    pub(crate) dependencies: Vec<NodeId>,
    /// Those of them that it may overlap with: the edge is a programmatic one, between two kernels.
    pub(crate) programmatic: Vec<NodeId>,
    /// The node that it was cloned from.
    pub(crate) original: Option<NodeId>,
}

impl Graph {
    /// An empty graph.
    pub(crate) fn create(is_nodes: bool) -> Result<Arc<Graph>> {
        Graph::create_in(is_nodes, None)
    }

    /// An empty body of a conditional node of a graph.
    pub(super) fn create_body(of: &Graph) -> Result<Arc<Graph>> {
        Graph::create_in(true, Some(of.root))
    }

    fn create_in(is_nodes: bool, root: Option<u64>) -> Result<Arc<Graph>> {
        let id = next_id();
        let make = |handle| {
            Arc::new_cyclic(|this: &Weak<Graph>| Graph {
                handle: CUgraph(handle),
                id,
                root: root.unwrap_or(id),
                is_nodes: AtomicBool::new(is_nodes),
                is_moved: AtomicBool::new(false),
                state: Mutex::default(),
                objects: Mutex::default(),
                conditions: Mutex::default(),
                exec: Mutex::default(),
                this: this.clone(),
            })
        };
        Ok(GRAPHS.insert_with(make)?.1)
    }

    /// Adds a node that depends on others of this graph, each of which counts once.
    pub(crate) fn add(&self, task: Task, dependencies: &[NodeId]) -> Result<(NodeId, CUgraphNode)> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let mut state = lock(&self.state);
        if dependencies.iter().any(|id| !state.contains_key(id)) {
            log::misuse(&"a node comes behind one of another graph");
            return Err(Status::INVALID_VALUE);
        }
        let id = IDS.fetch_add(1, Relaxed);
        let handle = CUgraphNode(NODES.insert(Arc::new(Node { graph: self.this.clone(), id }))?);
        let mut seen = HashSet::new();
        let dependencies = dependencies.iter().copied().filter(|id| seen.insert(*id)).collect();
        state.insert(id, Entry { handle, task, dependencies, programmatic: Vec::new(), original: None });
        Ok((id, handle))
    }

    /// Whether it is a graph of a node, and destroyed with it.
    pub(crate) fn is_nodes(&self) -> bool {
        self.is_nodes.load(Relaxed)
    }

    /// The graphs of its nodes.
    fn inside(&self) -> Vec<Arc<Graph>> {
        lock(&self.state).values().flat_map(|entry| entry.task.graphs().to_vec()).collect()
    }

    /// Whether it, or a graph inside of it, has such a node. Their locks are taken one after the other.
    fn has(&self, is_such: fn(&Task) -> bool) -> bool {
        let own = lock(&self.state).values().any(|entry| is_such(&entry.task));
        own || self.inside().iter().any(|graph| graph.has(is_such))
    }

    /// Whether it has nodes that allocate or free memory, or graphs inside with some.
    pub(crate) fn has_memory(&self) -> bool {
        self.has(|task| matches!(task, Task::Alloc(_) | Task::Free(_)))
    }

    /// Refuses what graphs do that were never moved into a node.
    pub(crate) fn is_no_moved_one(&self) -> Result<()> {
        if self.is_moved.load(Relaxed) {
            log::misuse(
                &"a graph that was moved into a node is not instantiated by itself, is in no other graph, and updates \
                  nothing",
            );
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// Moves it into a node of another graph, which has it from then on.
    pub(crate) fn move_into(&self, into: &Graph) -> Result<Arc<Graph>> {
        let this = self.this.upgrade().ok_or(Status::INVALID_VALUE)?;
        if self.has_inside(into) {
            log::misuse(&"a graph does not move into itself");
            return Err(Status::INVALID_VALUE);
        }
        if self.has_memory() && lock(&self.exec).upgrade().is_some() {
            log::misuse(
                &"a graph that allocates or frees memory moves before there is an executable graph of it",
            );
            return Err(Status::NOT_SUPPORTED);
        }
        if self.is_nodes.swap(true, Relaxed) {
            log::misuse(&"the graph belongs to a node already");
            return Err(Status::INVALID_VALUE);
        }
        self.is_moved.store(true, Relaxed);
        Ok(this)
    }

    /// Whether a graph is this one, or inside of it.
    fn has_inside(&self, graph: &Graph) -> bool {
        self.id == graph.id || self.inside().iter().any(|inside| inside.has_inside(graph))
    }

    /// Refuses clones, which are child graphs too, of graphs with nodes that exist once: those that allocate or free
    /// memory, and conditional ones.
    fn may_be_cloned(&self) -> Result<()> {
        if self.has(Task::exists_once) {
            log::misuse(
                &"a graph that allocates or frees memory or has conditional nodes has no clones, and is no child graph",
            );
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(())
    }

    /// The task of a node that allocates.
    pub(crate) fn alloc(
        &self,
        engine: &Arc<Engine>,
        bytes: u64,
        context: (u64, CUcontext),
        access: Vec<CUmemAccessDesc>,
    ) -> Result<Alloc> {
        self.may_have_memory()?;
        Ok(Alloc { memory: GraphMemory::create(engine, self.id, bytes, context)?, access: access.into() })
    }

    /// The task of a node that frees what a node has allocated, here or in another graph.
    pub(crate) fn free(&self, address: CUdeviceptr) -> Result<Task> {
        self.may_have_memory()?;
        let block = owner(address)?.memory.find(address).filter(|block| block.base() == address);
        let block = block.ok_or(Status::INVALID_VALUE)?;
        let frees = |entry: &Entry| matches!(&entry.task, Task::Free(other) if Arc::ptr_eq(other, &block));
        if lock(&self.state).values().any(frees) {
            log::misuse(&format_args!("a node of the graph frees {address:#x} already"));
            return Err(Status::INVALID_VALUE);
        }
        block.will_be_freed_by(self.id)?;
        Ok(Task::Free(block))
    }

    fn may_have_memory(&self) -> Result<()> {
        if self.is_nodes() {
            log::misuse(&"a graph inside of a node allocates and frees no memory");
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(())
    }

    /// Makes an edge of two nodes, or what it is.
    pub(crate) fn connect(&self, from: NodeId, to: NodeId, edge: Edge) -> Result<()> {
        let mut state = lock(&self.state);
        if from == to {
            log::misuse(&"an edge leads from a node to itself");
            return Err(Status::INVALID_VALUE);
        }
        let is_kernel = |id| matches!(state.get(&id), Some(Entry { task: Task::Kernel(_), .. }));
        if edge == Edge::Programmatic && !(is_kernel(from) && is_kernel(to)) {
            log::misuse(&"a programmatic edge leads from a kernel to a kernel");
            return Err(Status::INVALID_VALUE);
        }
        let entry = state.get_mut(&to).ok_or(Status::INVALID_VALUE)?;
        if entry.dependencies.contains(&from) {
            log::misuse(&"there is such an edge already");
            return Err(Status::INVALID_VALUE);
        }
        entry.dependencies.push(from);
        if edge == Edge::Programmatic {
            entry.programmatic.push(from);
        }
        Ok(())
    }

    /// Removes an edge of two nodes.
    pub(crate) fn disconnect(&self, from: NodeId, to: NodeId, edge: Edge) -> Result<()> {
        self.may_lose_nodes()?;
        let mut state = lock(&self.state);
        let entry = state.get_mut(&to).ok_or(Status::INVALID_VALUE)?;
        let is_there = entry.dependencies.contains(&from);
        if !is_there || entry.programmatic.contains(&from) != (edge == Edge::Programmatic) {
            log::misuse(&"there is no such edge");
            return Err(Status::INVALID_VALUE);
        }
        entry.dependencies.retain(|id| *id != from);
        entry.programmatic.retain(|id| *id != from);
        Ok(())
    }

    /// Refuses to remove nodes or edges where some allocate or free memory.
    pub(crate) fn may_lose_nodes(&self) -> Result<()> {
        if self.has_memory() {
            log::misuse(&"a graph that allocates or frees memory keeps its nodes and edges");
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(())
    }

    /// Removes a node with its edges.
    pub(crate) fn remove(&self, id: NodeId) {
        let mut state = lock(&self.state);
        let removed = state.remove(&id);
        for entry in state.values_mut() {
            entry.dependencies.retain(|other| *other != id);
            entry.programmatic.retain(|other| *other != id);
        }
        drop(state);
        if let Some(entry) = removed {
            forget(entry);
        }
    }

    /// Lets a kernel overlap with the only node in front of it, if that is a kernel too.
    pub(super) fn overlap(&self, id: NodeId) {
        let mut state = lock(&self.state);
        let Some([before]) = state.get(&id).map(|entry| &entry.dependencies[..]) else { return };
        let before = *before;
        if matches!(state.get(&before), Some(Entry { task: Task::Kernel(_), .. }))
            && let Some(entry) = state.get_mut(&id)
        {
            entry.programmatic.push(before);
        }
    }

    /// The nesting depth, including this graph.
    pub(crate) fn depth(&self) -> usize {
        1 + self.inside().iter().map(|graph| graph.depth()).max().unwrap_or(0)
    }

    /// The nodes, each behind those that it depends on, and otherwise in the order of their creation.
    pub(super) fn ordered(&self) -> Result<Vec<(NodeId, Entry)>> {
        let mut state = lock(&self.state).clone();
        let mut behind: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut open: HashMap<NodeId, usize> = HashMap::new();
        for (id, entry) in &state {
            open.insert(*id, entry.dependencies.len());
            entry.dependencies.iter().for_each(|from| behind.entry(*from).or_default().push(*id));
        }
        let mut ready: BTreeSet<NodeId> =
            open.iter().filter(|(_, open)| **open == 0).map(|(id, _)| *id).collect();
        let mut ordered = Vec::with_capacity(state.len());
        while let Some(id) = ready.pop_first() {
            ordered.extend(state.remove(&id).map(|entry| (id, entry)));
            for next in behind.remove(&id).into_iter().flatten() {
                let left = open.entry(next).and_modify(|left| *left -= 1).or_default();
                if *left == 0 {
                    ready.insert(next);
                }
            }
        }
        if !state.is_empty() {
            log::misuse(&"the edges of the graph lead in a circle");
            return Err(Status::INVALID_VALUE);
        }
        Ok(ordered)
    }

    /// The edges, in the order of their targets.
    pub(crate) fn edges(&self) -> Vec<(CUgraphNode, CUgraphNode, Edge)> {
        let state = lock(&self.state);
        let to = |entry: &Entry| {
            let edge = |from: &NodeId| match entry.programmatic.contains(from) {
                true => Edge::Programmatic,
                false => Edge::Plain,
            };
            entry.dependencies.iter().map(|from| (*from, entry.handle, edge(from))).collect::<Vec<_>>()
        };
        let edges = state.values().flat_map(to);
        edges.filter_map(|(from, to, edge)| Some((state.get(&from)?.handle, to, edge))).collect()
    }

    /// Removes all nodes and user objects.
    pub(crate) fn clear(&self) {
        let nodes = std::mem::take(&mut *lock(&self.state));
        nodes.into_values().for_each(forget);
        let objects = std::mem::take(&mut *lock(&self.objects));
        drop(objects);
        lock(&self.conditions).clear();
    }

    /// A clone of the graph.
    pub(crate) fn copy(&self, is_nodes: bool) -> Result<Arc<Graph>> {
        self.may_be_cloned()?;
        let nodes = self.ordered()?;
        let copy = Graph::create(is_nodes)?;
        *lock(&copy.objects) = lock(&self.objects).again();
        let mut copies: HashMap<NodeId, NodeId> = HashMap::new();
        for (id, entry) in &nodes {
            let copied = |ids: &[NodeId]| -> Vec<NodeId> {
                ids.iter().filter_map(|id| copies.get(id).copied()).collect()
            };
            let (behind, programmatic) = (copied(&entry.dependencies), copied(&entry.programmatic));
            let (new, _) = copy.add(entry.task.copied()?, &behind)?;
            if let Some(entry) = lock(&copy.state).get_mut(&new) {
                (entry.programmatic, entry.original) = (programmatic, Some(*id));
            }
            copies.insert(*id, new);
        }
        Ok(copy)
    }
}

/// A new number for a graph or an executable graph.
pub(super) fn next_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(1);
    IDS.fetch_add(1, Relaxed)
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Removes a node's handle and its child graph.
fn forget(entry: Entry) {
    // It is there, since nodes go here alone.
    let _ = NODES.remove(entry.handle.0);
    for graph in entry.task.graphs() {
        let _ = GRAPHS.remove(graph.handle.0);
        graph.clear();
    }
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

/// Calls a function with a node.
pub(crate) fn with_node<R>(handle: CUgraphNode, with: impl FnOnce(&mut Entry) -> Result<R>) -> Result<R> {
    let (graph, id) = node(handle)?;
    let mut state = lock(&graph.state);
    with(state.get_mut(&id).ok_or(Status::INVALID_VALUE)?)
}

/// The numbers of nodes, which must belong to one graph.
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

/// Destroys a client's graph.
pub(crate) fn destroy(handle: CUgraph) -> Result<()> {
    let graph = graph(handle)?;
    if graph.is_nodes() {
        log::misuse(&"the graph belongs to a node of another graph, and goes with that");
        return Err(Status::INVALID_VALUE);
    }
    GRAPHS.remove(handle.0).map_err(|_| Status::INVALID_VALUE)?.clear();
    Ok(())
}
