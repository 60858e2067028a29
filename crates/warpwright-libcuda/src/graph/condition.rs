//! Conditional nodes: their bodies run as values demand that kernels set.
//!
//! The handle of a value is its address, which the device function `cudaGraphSetConditional` writes to. The first launch
//! operation of a graph gives each value its default. **A value that nobody has set in a launch is undefined**: where
//! uninitialised data is looked for, a node that asks for it fails.

use super::nodes::Graph;
use crate::engine;
use crate::lock;
use crate::report::calls::{self, Call};
use crate::report::{findings, log};
use crate::state::{Context, settings};
use crate::types::{CUgraph, CUgraphConditionalNodeType as Kind, Result, Status};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use warpwright_device::{Decide, Failure, Op, Signal};
use warpwright_vm::Buffer;

/// All values, by their handles.
static CONDITIONS: Mutex<BTreeMap<u64, Weak<Condition>>> = Mutex::new(BTreeMap::new());

/// A value that decides about a conditional node.
pub(crate) struct Condition {
    /// The value, and whether it was set.
    words: Buffer<u32>,
    default: Option<u32>,
    /// The outermost graph that its node may be in.
    graph: u64,
    pub(crate) context: Arc<Context>,
    /// Whether it has a node.
    is_used: AtomicBool,
    /// The call that has launched it last, for reports.
    call: Mutex<Call>,
    /// The end of the last launch that uses it. Executable graphs made from one graph share it.
    pub(super) last: Mutex<Option<Arc<Signal>>>,
}

/// A conditional node.
#[derive(Clone)]
pub(crate) struct Conditional {
    pub(crate) condition: Arc<Condition>,
    pub(crate) kind: Kind,
    pub(crate) bodies: Arc<[Arc<Graph>]>,
    /// Their handles, which the client may read as long as the node exists.
    pub(crate) handles: Arc<[CUgraph]>,
}

/// A conditional node in a launch.
pub(super) struct Choice {
    pub(super) condition: Arc<Condition>,
    pub(super) kind: Kind,
    pub(super) bodies: Vec<Arc<[Op]>>,
}

/// The beginning of a launch.
pub(super) struct Reset {
    pub(super) conditions: Vec<Arc<Condition>>,
    pub(super) call: Call,
}

impl Condition {
    /// A value for a node of a graph, or of one inside of it; with a default, every launch begins with that.
    pub(crate) fn create(
        graph: &Graph,
        context: &Arc<Context>,
        default: Option<u32>,
    ) -> Result<Arc<Condition>> {
        let engine = engine::of(context)?;
        let name = format!("value of a conditional node ({})", calls::current());
        let words = engine.vm().alloc_named(&name, 2).map_err(|error| engine::status(&error))?;
        let condition = Arc::new(Condition {
            words,
            default,
            graph: graph.root,
            context: context.clone(),
            is_used: AtomicBool::new(false),
            call: Mutex::new(calls::current()),
            last: Mutex::default(),
        });
        lock(&CONDITIONS).insert(condition.handle(), Arc::downgrade(&condition));
        lock(&graph.conditions).push(condition.clone());
        Ok(condition)
    }

    /// The value of a handle.
    fn find(handle: u64) -> Result<Arc<Condition>> {
        let found = lock(&CONDITIONS).get(&handle).and_then(Weak::upgrade);
        found.ok_or_else(|| {
            log::misuse(&format_args!("{handle:#x} is no handle of a conditional node"));
            Status::INVALID_VALUE
        })
    }

    /// The handle.
    pub(crate) fn handle(&self) -> u64 {
        self.words.address()
    }

    /// The value, if a launch has set it.
    fn value(&self) -> Option<u32> {
        let [value, is_set] = [0, 1].map(|word| self.words.peek(word).unwrap_or(0));
        (is_set != 0).then_some(value)
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        lock(&CONDITIONS).remove(&self.handle());
    }
}

impl Conditional {
    /// A node of a graph with that many empty bodies.
    pub(crate) fn create(into: &Graph, handle: u64, kind: Kind, count: usize) -> Result<Conditional> {
        kind.check()?;
        let condition = Condition::find(handle)?;
        let refuse = |why: &str| {
            log::misuse(&format_args!("conditional node of {handle:#x}: {why}"));
            Err(Status::INVALID_VALUE)
        };
        let fits = match kind {
            Kind::IF => (1..=2).contains(&count),
            Kind::WHILE => count == 1,
            _ => count > 0,
        };
        if !fits {
            return refuse("1 or 2 bodies for IF, 1 for WHILE, at least 1 for SWITCH");
        }
        if condition.graph != into.root {
            return refuse("the handle was made for another graph");
        }
        if condition.is_used.swap(true, Relaxed) {
            return refuse("the handle has a node already");
        }
        let bodies = (0..count).map(|_| Graph::create_body(into)).collect::<Result<Arc<[_]>>>()?;
        let handles = bodies.iter().map(|body| body.handle).collect();
        Ok(Conditional { condition, kind, bodies, handles })
    }
}

impl Choice {
    fn refused(&self, why: &str) -> Box<Failure> {
        findings::condition(self.condition.handle(), why, *lock(&self.condition.call));
        engine::failure(Status::LAUNCH_FAILED)
    }
}

impl Decide for Reset {
    fn decide(self: Arc<Self>) -> warpwright_device::Result<Op> {
        for condition in &self.conditions {
            *lock(&condition.call) = self.call;
            condition.words.poke(0, condition.default.unwrap_or(0));
            condition.words.poke(1, condition.default.is_some().into());
        }
        Ok(Op::Nothing)
    }
}

impl Decide for Choice {
    fn decide(self: Arc<Self>) -> warpwright_device::Result<Op> {
        let value = match self.condition.value() {
            Some(value) => value,
            None if settings().is_ok_and(|settings| settings.checks.init) => {
                return Err(self.refused(
                    "no kernel of the launch has set its value, and it has no default: the value is undefined",
                ));
            }
            None => 0,
        };
        let body = match self.kind {
            Kind::IF => self.bodies.get(usize::from(value == 0)),
            Kind::WHILE => self.bodies.first().filter(|_| value != 0),
            _ => self.bodies.get(value as usize),
        };
        let Some(body) = body else { return Ok(Op::Nothing) };
        let run = Op::Batch(body.clone(), 0);
        if self.kind != Kind::WHILE {
            return Ok(run);
        }
        if !sets_values(body) {
            return Err(self.refused("the loop never ends, since its body has no kernel"));
        }
        Ok(Op::batch(vec![run, Op::Decide(self)]))
    }
}

/// Whether there are kernels among operations, which alone set values, or nodes that may have some.
fn sets_values(ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Launch { .. } | Op::Decide(_) => true,
        Op::Batch(ops, _) => sets_values(ops),
        _ => false,
    })
}
