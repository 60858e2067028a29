//! A launch that gave up, described with the names of its plan.

use super::super::placed::Placed;
use crate::persistent::{Assigned, Instance, Origin, Schedule};
use std::fmt;
use warpwright_kernels::persistent::format::{Awaited, Fault};

/// A block of a launch waited for something that did not come: the launch has ended, and its last token is missing.
///
/// States may be partly updated by that token: reset them before you continue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistentFault {
    /// The block that waited.
    pub block: u32,
    /// The token, counted from 0 in each launch.
    pub token: u32,
    /// The phase of the schedule.
    pub phase: u32,
    /// The nodes whose work the phase does.
    pub nodes: Vec<String>,
    /// What the block waited for.
    pub awaited: Awaited,
    /// The nodes whose work it waited for; at a barrier, those of the phase.
    pub awaited_nodes: Vec<String>,
    /// The value that the word was to reach.
    pub wanted: u32,
    /// The last value seen.
    pub seen: u32,
    /// The number of polls.
    pub budget: u32,
}

impl fmt::Display for PersistentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PersistentFault { block, token, phase, nodes, awaited, awaited_nodes, wanted, seen, budget } =
            self;
        write!(f, "block {block} gave up in phase {phase} ({}) of token {token}: ", list(nodes))?;
        match awaited {
            Awaited::Barrier => write!(f, "not all blocks came to the barrier behind it")?,
            Awaited::Counter(counter) => {
                write!(f, "it waited for {} (counter {counter})", list(awaited_nodes))?;
            }
            other => write!(f, "it waited for {other:?}")?,
        }
        write!(f, "; {wanted} was wanted, and {seen} seen after {budget} polls")
    }
}

impl std::error::Error for PersistentFault {}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing that the plan names".into();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// What phases and counters are, by the names of nodes.
#[derive(Debug)]
pub(super) struct Names {
    /// By phase.
    phases: Vec<Vec<String>>,
    /// By counter.
    counters: Vec<Vec<String>>,
    budget: u32,
}

impl Names {
    pub(super) fn new(placed: &Placed, schedule: &Schedule, assigned: &Assigned, budget: u32) -> Self {
        let nodes = |instance: &Instance| match instance.origin {
            Origin::Plan { step, .. } => placed.node_names(step),
            Origin::Appended(_) => vec![instance.kernel()],
        };
        let add = |names: &mut Vec<String>, instance: usize| {
            for name in schedule.instances.get(instance).map(nodes).unwrap_or_default() {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        };
        let phases = schedule.phases.iter().map(|phase| {
            let mut names = Vec::new();
            let instances = phase.stages.iter().flat_map(|stage| &stage.instances);
            instances.for_each(|&instance| add(&mut names, instance));
            names
        });
        let phases = phases.collect();
        let mut counters = vec![Vec::new(); assigned.counters as usize];
        for item in &assigned.items {
            if let Some(names) = item.signal.and_then(|counter| counters.get_mut(counter as usize)) {
                add(names, item.instance);
            }
        }
        Names { phases, counters, budget }
    }

    /// The fault with its names.
    pub(super) fn fault(&self, fault: Fault) -> PersistentFault {
        let Fault { awaited, block, phase, token, wanted, seen } = fault;
        let nodes = self.phases.get(phase as usize).cloned().unwrap_or_default();
        let awaited_nodes = match awaited {
            Awaited::Counter(counter) => self.counters.get(counter as usize).cloned().unwrap_or_default(),
            _ => nodes.clone(),
        };
        PersistentFault {
            block,
            token,
            phase,
            nodes,
            awaited,
            awaited_nodes,
            wanted,
            seen,
            budget: self.budget,
        }
    }
}
