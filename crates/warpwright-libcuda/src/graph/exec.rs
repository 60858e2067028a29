//! Executable graphs: their nodes in an order that the edges allow.
//!
//! A launch of a graph is one operation of a stream. **Issued launches do not change**: parameters that are set later
//! apply to later launches. Launches of one executable graph follow one another, whatever their streams.

use super::condition::{Choice, Reset};
use super::nodes::{self, DEEPEST, Graph, NodeId, next_id};
use super::turns::{NodePlace, turns};
use super::{Condition, Kernel, References, Task, capture};
use crate::engine::{Block, Event, Recorded, Stream};
use crate::lock;
use crate::report::{calls, log};
use crate::state::{Context, Handles, Kind, settings};
use crate::types::{
    CUgraphExec, CUgraphExecUpdateResult as Update, CUgraphInstantiateResult as Instantiated, CUgraphNode,
    CUgraphNodeType, Result, Status,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use warpwright_device::{Op, Order, Signal};

/// All executable graphs.
pub(crate) static EXECS: Handles<Exec> = Handles::new(Kind::GraphExec);

/// The flags for instantiating a graph.
const AUTO_FREE_ON_LAUNCH: u64 = 1;
pub(crate) const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const USE_NODE_PRIORITY: u64 = 8;

/// An executable graph.
pub(crate) struct Exec {
    pub(crate) id: u64,
    pub(crate) flags: u64,
    /// The context of its kernels, if it has any.
    context: Option<Arc<Context>>,
    state: Mutex<State>,
}

struct State {
    nodes: Vec<Node>,
    /// The indices of the nodes in execution order.
    turns: Vec<usize>,
    /// The indices of the original graph's nodes.
    places: HashMap<NodeId, usize>,
    /// The operations of a launch, if they are always the same and have not changed since.
    ops: Option<Arc<[Op]>>,
    /// The user objects that it retains itself, as its nodes do.
    objects: Arc<References>,
    /// The end of the last launch.
    last: Option<Arc<Signal>>,
}

/// A node. The nodes of a child graph follow the node of that graph.
struct Node {
    handle: CUgraphNode,
    id: NodeId,
    task: Task,
    /// The indices of its dependencies in its graph.
    dependencies: Vec<usize>,
    /// Those of them that it may overlap with.
    programmatic: Vec<usize>,
    /// The nodes of the graphs inside of it.
    inside: Range<usize>,
    /// The bodies of a conditional node.
    bodies: Vec<Body>,
    /// Whether launches execute it.
    is_enabled: bool,
    /// The user objects of its child graph, which launches retain until they are complete.
    objects: Arc<References>,
}

/// A body of a conditional node: its nodes, and their indices in execution order.
struct Body {
    places: Range<usize>,
    turns: Vec<usize>,
}

/// What a launch does to events: it records them, anew each time.
#[derive(Default)]
struct Signals {
    recorded: Vec<NewSignal>,
    /// Whether the operations of the launch are others each time.
    differ: bool,
}

/// An event that a launch records, and its signal.
type NewSignal = (Arc<Event>, Arc<Signal>);

/// Why a graph cannot be instantiated, and the node concerned.
pub(crate) struct Failure {
    pub(crate) result: Instantiated,
    pub(crate) status: Status,
    pub(crate) node: CUgraphNode,
}

/// Why an executable graph cannot be updated, and the nodes concerned.
pub(crate) struct Mismatch {
    pub(crate) result: Update,
    pub(crate) node: CUgraphNode,
    /// The dependency that differs, if an edge does.
    pub(crate) from: CUgraphNode,
}

impl Exec {
    /// Instantiates a graph.
    pub(crate) fn create(graph: &Graph, flags: u64) -> std::result::Result<CUgraphExec, Failure> {
        let fail = |result, status, node| Failure { result, status, node };
        if flags & DEVICE_LAUNCH != 0 && flags & AUTO_FREE_ON_LAUNCH != 0 {
            return Err(fail(Instantiated::ERROR, Status::INVALID_VALUE, CUgraphNode::NULL));
        }
        if flags & DEVICE_LAUNCH != 0 {
            log::misuse(&"graphs are not launched by kernels here");
            return Err(fail(Instantiated::ERROR, Status::NOT_SUPPORTED, CUgraphNode::NULL));
        }
        if flags & !(AUTO_FREE_ON_LAUNCH | UPLOAD | USE_NODE_PRIORITY) != 0 {
            return Err(fail(Instantiated::ERROR, Status::INVALID_VALUE, CUgraphNode::NULL));
        }
        if let Err(status) = graph.is_no_moved_one() {
            return Err(fail(Instantiated::ERROR, status, CUgraphNode::NULL));
        }
        if graph.has_memory() && lock(&graph.exec).upgrade().is_some() {
            log::misuse(&"a graph that allocates or frees memory has one executable graph at a time");
            return Err(fail(Instantiated::ERROR, Status::NOT_SUPPORTED, CUgraphNode::NULL));
        }
        let mut nodes = Vec::new();
        flatten(graph, &mut nodes, 0)
            .map_err(|status| fail(Instantiated::INVALID_STRUCTURE, status, CUgraphNode::NULL))?;
        let mut context: Option<Arc<Context>> = None;
        for node in &nodes {
            let own = match &node.task {
                Task::Kernel(kernel) => &kernel.launch.function.code.context,
                Task::Conditional(conditional) => &conditional.condition.context,
                _ => continue,
            };
            if context.as_ref().is_some_and(|context| context.id != own.id) {
                log::misuse(&"the kernels of a graph are of one context here, and these are of several");
                let result = Instantiated::MULTIPLE_CTXS_NOT_SUPPORTED;
                return Err(fail(result, Status::NOT_SUPPORTED, node.handle));
            }
            if let Task::Kernel(kernel) = &node.task {
                let loaded = kernel.launch.check_loaded();
                loaded.map_err(|status| fail(Instantiated::ERROR, status, node.handle))?;
            }
            context = Some(own.clone());
        }
        let places = nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        let objects = kept(graph).map_err(|status| fail(Instantiated::ERROR, status, CUgraphNode::NULL))?;
        let order = settings().map_err(|status| fail(Instantiated::ERROR, status, CUgraphNode::NULL))?.order;
        let turns = of_places(&nodes, 0..nodes.len(), order);
        for place in 0..nodes.len() {
            let bodies = nodes[place].bodies.iter().map(|body| of_places(&nodes, body.places.clone(), order));
            let bodies: Vec<_> = bodies.collect();
            nodes[place].bodies.iter_mut().zip(bodies).for_each(|(body, turns)| body.turns = turns);
        }
        let state = Mutex::new(State { nodes, turns, places, ops: None, objects, last: None });
        let exec = Arc::new(Exec { id: next_id(), flags, context, state });
        let handle = EXECS.insert(exec.clone());
        *lock(&graph.exec) = Arc::downgrade(&exec);
        handle.map(CUgraphExec).map_err(|status| fail(Instantiated::ERROR, status, CUgraphNode::NULL))
    }

    /// Launches it on a stream, or adds it to the stream's capture.
    pub(crate) fn launch(&self, stream: &Arc<Stream>) -> Result<()> {
        if self.context.as_ref().is_some_and(|context| context.id != stream.context.id) {
            log::misuse(&"the kernels of the graph are loaded in another context than the stream's");
            return Err(Status::INVALID_HANDLE);
        }
        let mut state = lock(&self.state);
        state.nodes.iter().try_for_each(|node| node.task.check())?;
        if stream.is_capturing() {
            state.may_be_inside()?;
            let graph = state.as_graph(0..state.nodes.len())?;
            *lock(&graph.objects) = state.objects.again();
            drop(state);
            return capture::add(stream, Task::Child(graph));
        }
        let (ops, recorded) = state.ops(stream);
        // Another stream may come to the next run first: it goes on before this one, or waits for what this one has
        // behind it.
        let end = Signal::new(stream.engine.queue());
        let conditions = state.conditions();
        let others = conditions.iter().filter_map(|condition| lock(&condition.last).clone());
        let before: Vec<_> =
            state.last.iter().cloned().chain(others).filter(|last| !last.is_reached()).collect();
        let before = before.into_iter().map(Op::Wait);
        let reset = (!conditions.is_empty())
            .then(|| Op::Decide(Arc::new(Reset { conditions: conditions.clone(), call: calls::current() })));
        let run = [Op::Batch(ops, 0), Op::Signal(end.clone())];
        let left = state.left_over(self.flags)?;
        let foreign = state.freed_elsewhere()?;
        let freed = left.iter().map(|block| Op::Release(block.clone()));
        let issued = stream.submit(Op::batch(before.chain(freed).chain(reset).chain(run).collect()));
        if issued.is_err() {
            foreign.iter().for_each(|block| block.set_allocated(true));
        }
        issued?;
        state.allocated();
        conditions.iter().for_each(|condition| *lock(&condition.last) = Some(end.clone()));
        state.last = Some(end);
        // Only now: if the stream had not taken the launch, its signals would never be reached.
        recorded.into_iter().for_each(|(event, signal)| event.set(Recorded::At(signal)));
        Ok(())
    }

    /// Changes a node, given as one of the original graph.
    pub(crate) fn with_node(
        &self,
        handle: CUgraphNode,
        kind: CUgraphNodeType,
        change: impl FnOnce(&mut Task) -> Result<()>,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        let node = state.node(handle)?;
        if node.task.kind() != kind {
            return Err(Status::INVALID_VALUE);
        }
        change(&mut node.task)?;
        state.ops = None;
        Ok(())
    }

    /// Sets whether launches execute a node: a kernel, a copy or a fill.
    pub(crate) fn set_enabled(&self, handle: CUgraphNode, is_enabled: bool) -> Result<()> {
        let mut state = lock(&self.state);
        let node = state.node(handle)?;
        if !matches!(node.task, Task::Kernel(_) | Task::Copy(_) | Task::Fill(_)) {
            log::misuse(&"kernels, copies and fills can be disabled, and no other nodes");
            return Err(Status::INVALID_VALUE);
        }
        node.is_enabled = is_enabled;
        state.ops = None;
        Ok(())
    }

    /// Whether launches execute a node.
    pub(crate) fn is_enabled(&self, handle: CUgraphNode) -> Result<bool> {
        Ok(lock(&self.state).node(handle)?.is_enabled)
    }

    /// Updates a child graph node from a graph of the same shape.
    pub(crate) fn update_child(&self, handle: CUgraphNode, graph: &Graph) -> Result<()> {
        let mut state = lock(&self.state);
        let inside = match state.node(handle)? {
            Node { task: Task::Child(_), inside, .. } => inside.clone(),
            _ => return Err(Status::INVALID_VALUE),
        };
        graph.is_no_moved_one()?;
        let mut new = Vec::new();
        flatten(graph, &mut new, inside.start)?;
        let first = inside.start;
        compare(&state.nodes[inside.clone()], &new, first, self.flags).map_err(|_| Status::INVALID_VALUE)?;
        let objects = kept(graph)?;
        state.become_those(inside, new);
        state.node(handle)?.objects = objects;
        Ok(())
    }

    /// Updates it from a graph of the same shape.
    pub(crate) fn update(&self, graph: &Graph) -> std::result::Result<(), Mismatch> {
        graph.is_no_moved_one().map_err(|_| mismatch(Update::ERROR, None))?;
        let mut state = lock(&self.state);
        let mut new = Vec::new();
        flatten(graph, &mut new, 0).map_err(|_| mismatch(Update::TOPOLOGY_CHANGED, None))?;
        compare(&state.nodes, &new, 0, self.flags)?;
        state.objects = kept(graph).map_err(|_| mismatch(Update::ERROR, None))?;
        let all = 0..state.nodes.len();
        state.become_those(all, new);
        Ok(())
    }
}

impl State {
    /// The node of a client's handle.
    fn node(&mut self, handle: CUgraphNode) -> Result<&mut Node> {
        let (_, id) = nodes::node(handle)?;
        let place = self.places.get(&id).copied().ok_or_else(|| {
            log::misuse(&format_args!(
                "the executable graph was not made from the graph of node {:#x}",
                handle.0
            ));
            Status::INVALID_VALUE
        })?;
        self.nodes.get_mut(place).ok_or(Status::INVALID_VALUE)
    }

    /// The allocations of its own nodes.
    fn allocations(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.nodes.iter().filter_map(|node| match &node.task {
            Task::Alloc(alloc) => Some(&alloc.memory.block),
            _ => None,
        })
    }

    /// What its own nodes free.
    fn frees(&self) -> impl Iterator<Item = &Arc<Block>> {
        self.nodes.iter().filter_map(|node| match &node.task {
            Task::Free(block) => Some(block),
            _ => None,
        })
    }

    /// Refuses to become a part of another graph with nodes that exist once.
    fn may_be_inside(&self) -> Result<()> {
        if self.nodes.iter().any(|node| node.task.exists_once()) {
            log::misuse(
                &"a graph that allocates or frees memory or has conditional nodes is not captured into another one",
            );
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        Ok(())
    }

    /// The values of the conditional nodes.
    fn conditions(&self) -> Vec<Arc<Condition>> {
        let condition = |node: &Node| match &node.task {
            Task::Conditional(conditional) => Some(conditional.condition.clone()),
            _ => None,
        };
        self.nodes.iter().filter_map(condition).collect()
    }

    /// What earlier launches have allocated and nobody has freed. A launch frees it first if the client has wanted that,
    /// and is refused otherwise.
    fn left_over(&self, flags: u64) -> Result<Vec<Arc<Block>>> {
        let left: Vec<_> = self.allocations().filter(|block| block.is_allocated()).cloned().collect();
        if let Some(block) = left.first().filter(|_| flags & AUTO_FREE_ON_LAUNCH == 0) {
            log::misuse(&format_args!(
                "the allocation of {} bytes at {:#x} that the last launch of the graph has made was not freed: free it \
                 before the next launch, or instantiate with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH",
                block.bytes(),
                block.base()
            ));
            return Err(Status::INVALID_VALUE);
        }
        Ok(left)
    }

    /// Takes back what other graphs have allocated and this one frees.
    fn freed_elsewhere(&self) -> Result<Vec<Arc<Block>>> {
        let mut taken: Vec<Arc<Block>> = Vec::new();
        let own: HashSet<u64> = self.allocations().map(|block| block.base()).collect();
        for block in self.frees().filter(|block| !own.contains(&block.base())) {
            if !block.take() {
                log::misuse(&format_args!(
                    "the graph frees {:#x}, which is not allocated at this point",
                    block.base()
                ));
                taken.iter().for_each(|block| block.set_allocated(true));
                return Err(Status::INVALID_VALUE);
            }
            taken.push(block.clone());
        }
        Ok(taken)
    }

    /// A launch was issued: what it allocates and does not free is there from now on.
    fn allocated(&self) {
        let freed: HashSet<u64> = self.frees().map(|block| block.base()).collect();
        self.allocations().for_each(|block| block.set_allocated(!freed.contains(&block.base())));
    }

    /// Replaces some of the nodes, one by one.
    fn become_those(&mut self, places: Range<usize>, new: Vec<Node>) {
        for (node, Node { task, objects, .. }) in self.nodes[places].iter_mut().zip(new) {
            (node.task, node.objects) = (task, objects);
        }
        self.ops = None;
    }

    /// The operations of a launch, and the new signals that it gives to events.
    fn ops(&mut self, stream: &Stream) -> (Arc<[Op]>, Vec<NewSignal>) {
        if let Some(ops) = &self.ops {
            return (ops.clone(), Vec::new());
        }
        let mut signals = Signals::default();
        let ops = self.ops_of(&self.turns, stream, &mut signals);
        let kept = self.nodes.iter().map(|node| &node.objects).chain([&self.objects]);
        let kept: Vec<_> = kept.filter(|objects| !objects.is_empty()).cloned().collect();
        let keep = (!kept.is_empty()).then(|| Op::Retain { what: Arc::new(kept) });
        let ops: Arc<[Op]> = ops.into_iter().chain(keep).collect();
        if !signals.differ {
            self.ops = Some(ops.clone());
        }
        (ops, signals.recorded)
    }

    /// The operations of nodes in their turns.
    fn ops_of(&self, turns: &[usize], stream: &Stream, signals: &mut Signals) -> Vec<Op> {
        let before = std::iter::once(None).chain(turns.iter().map(Some));
        let nodes = turns.iter().zip(before);
        let nodes = nodes.filter_map(|(place, before)| Some((self.nodes.get(*place)?, before)));
        let nodes = nodes.filter(|(node, _)| node.is_enabled);
        let ops = nodes.filter_map(|(node, before)| {
            // A launch overlaps with the one that it depends on if that comes next before it.
            let overlaps =
                node.dependencies.len() == 1 && node.programmatic.first() == before && before.is_some();
            if let Task::Conditional(conditional) = &node.task {
                let bodies = node.bodies.iter().map(|body| self.ops_of(&body.turns, stream, signals).into());
                let (condition, kind) = (conditional.condition.clone(), conditional.kind);
                return Some(Op::Decide(Arc::new(Choice { condition, kind, bodies: bodies.collect() })));
            }
            node.task.op(overlaps).or_else(|| signals.op(&node.task, stream))
        });
        ops.filter(|op| !matches!(op, Op::Nothing)).collect()
    }

    /// Some of the nodes as a child graph.
    fn as_graph(&self, places: Range<usize>) -> Result<Arc<Graph>> {
        let graph = Graph::create(true)?;
        let mut ids = HashMap::new();
        let mut place = places.start;
        while place < places.end {
            let node = &self.nodes[place];
            let task = match &node.task {
                Task::Child(_) => {
                    let child = self.as_graph(node.inside.clone())?;
                    *lock(&child.objects) = node.objects.again();
                    Task::Child(child)
                }
                task => task.clone(),
            };
            let new = |places: &[usize]| -> Vec<NodeId> {
                places.iter().filter_map(|place| ids.get(place).copied()).collect()
            };
            let (behind, programmatic) = (new(&node.dependencies), new(&node.programmatic));
            let (id, _) = graph.add(task, &behind)?;
            if let Some(entry) = lock(&graph.state).get_mut(&id) {
                entry.programmatic = programmatic;
            }
            ids.insert(place, id);
            place = node.inside.end.max(place + 1);
        }
        Ok(graph)
    }
}

impl Signals {
    /// The operation of a node that is not always the same.
    fn op(&mut self, task: &Task, stream: &Stream) -> Option<Op> {
        self.differ = true;
        match task {
            Task::Record(event) => {
                let signal = Signal::new(stream.engine.queue());
                self.recorded.push((event.clone(), signal.clone()));
                Some(Op::Signal(signal))
            }
            Task::Wait(event) => {
                // Recorded earlier in this run, or before it.
                let own = self.recorded.iter().rev().find(|(other, _)| Arc::ptr_eq(other, event));
                match own.map_or_else(|| event.recorded(), |(_, signal)| Recorded::At(signal.clone())) {
                    Recorded::At(signal) => Some(Op::Wait(signal)),
                    _ => None,
                }
            }
            Task::Host(host) => Some(stream.engine.host_call(*host)),
            _ => None,
        }
    }
}

/// The execution order of a graph's nodes.
fn of_places(nodes: &[Node], places: Range<usize>, order: Order) -> Vec<usize> {
    turns(places, order, |place| {
        let node = &nodes[place];
        let goes_inside = node.bodies.is_empty();
        NodePlace { dependencies: &node.dependencies, inside: node.inside.clone(), goes_inside }
    })
}

/// The user objects of an executable graph made from a graph, or of a node of one: one reference to each object.
fn kept(graph: &Graph) -> Result<Arc<References>> {
    let mut references = References::default();
    references.add_each_of(&lock(&graph.objects))?;
    Ok(Arc::new(references))
}

/// The nodes of a graph in their order, those of a child graph after its node; indices count from `first`.
fn flatten(graph: &Graph, nodes: &mut Vec<Node>, first: usize) -> Result<()> {
    flatten_within(graph, nodes, first, DEEPEST, false)
}

fn flatten_within(
    graph: &Graph,
    nodes: &mut Vec<Node>,
    first: usize,
    depth: usize,
    is_conditional: bool,
) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or(Status::INVALID_VALUE)?;
    let mut places = HashMap::new();
    for (id, entry) in graph.ordered()? {
        if is_conditional && !entry.task.may_be_conditional() {
            log::misuse(
                &"the body of a conditional node has kernels, copies, fills, empty nodes, child graphs and conditional \
                  nodes, and no others",
            );
            return Err(Status::INVALID_VALUE);
        }
        let place = first + nodes.len();
        places.insert(id, place);
        nodes.push(Node {
            handle: entry.handle,
            id,
            task: entry.task.clone(),
            dependencies: entry.dependencies.iter().filter_map(|id| places.get(id).copied()).collect(),
            programmatic: entry.programmatic.iter().filter_map(|id| places.get(id).copied()).collect(),
            inside: 0..0,
            bodies: Vec::new(),
            is_enabled: true,
            objects: match &entry.task {
                Task::Child(graph) => kept(graph)?,
                _ => Arc::default(),
            },
        });
        let has_bodies = matches!(entry.task, Task::Conditional(_));
        let mut bodies = Vec::new();
        for graph in entry.task.graphs() {
            let begin = first + nodes.len();
            flatten_within(graph, nodes, first, depth, is_conditional || has_bodies)?;
            bodies.push(Body { places: begin..first + nodes.len(), turns: Vec::new() });
        }
        let end = first + nodes.len();
        if let Some(node) = nodes.get_mut(place - first) {
            node.inside = place + 1..end;
            node.bodies = if has_bodies { bodies } else { Vec::new() };
        }
    }
    Ok(())
}

fn mismatch(result: Update, node: Option<&Node>) -> Mismatch {
    Mismatch { result, node: node.map_or(CUgraphNode::NULL, |node| node.handle), from: CUgraphNode::NULL }
}

/// Whether nodes can be replaced by others: as many, of the same types, in the same order. Indices count from `first`.
fn compare(old: &[Node], new: &[Node], first: usize, flags: u64) -> std::result::Result<(), Mismatch> {
    if old.len() != new.len() {
        return Err(mismatch(Update::TOPOLOGY_CHANGED, None));
    }
    for (old, node) in old.iter().zip(new) {
        if old.task.kind() != node.task.kind() {
            return Err(mismatch(Update::NODE_TYPE_CHANGED, Some(node)));
        }
        if old.dependencies.len() != node.dependencies.len()
            || old.programmatic != node.programmatic
            || old.inside != node.inside
            || !old.bodies.iter().map(|body| &body.places).eq(node.bodies.iter().map(|body| &body.places))
        {
            return Err(mismatch(Update::TOPOLOGY_CHANGED, Some(node)));
        }
        if let Some(place) = node.dependencies.iter().find(|place| !old.dependencies.contains(place)) {
            let from = place.checked_sub(first).and_then(|place| new.get(place));
            let from = from.map_or(CUgraphNode::NULL, |from| from.handle);
            return Err(Mismatch { from, ..mismatch(Update::TOPOLOGY_CHANGED, Some(node)) });
        }
        if let (Task::Kernel(old), Task::Kernel(kernel)) = (&old.task, &node.task) {
            let context = |kernel: &Kernel| kernel.launch.function.code.context.id;
            if context(old) != context(kernel) {
                return Err(mismatch(Update::UNSUPPORTED_FUNCTION_CHANGE, Some(node)));
            }
            let is_cooperative = |kernel: &Kernel| kernel.launch.shape.cooperative;
            let keeps_priority = flags & USE_NODE_PRIORITY == 0 || old.priority == kernel.priority;
            if is_cooperative(old) != is_cooperative(kernel) || !keeps_priority {
                return Err(mismatch(Update::ATTRIBUTES_CHANGED, Some(node)));
            }
        }
        if node.task.check().is_err() || !old.task.takes(&node.task) {
            return Err(mismatch(Update::PARAMETERS_CHANGED, Some(node)));
        }
    }
    Ok(())
}

/// The executable graph of a handle.
pub(crate) fn exec(handle: CUgraphExec) -> Result<Arc<Exec>> {
    crate::state::state()?;
    EXECS.get(handle.0).map_err(|_| Status::INVALID_VALUE)
}
