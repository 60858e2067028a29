//! Which launches may overlap with the one in front of them.

use crate::graph::Tensor;
use crate::launch::{Action, ArgSource, PlannedLaunch, PlannedStep, ScratchId};
use crate::program::Program;
use warpwright_dsl::Role;
use warpwright_kernels::tune::Tuning;

/// The first architecture on which launches can overlap, as `sm_N`.
const OVERLAPPING: u16 = 90;

/// The memory of an argument: all versions of a state are one.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Tensor(Tensor),
    Scratch(ScratchId),
}

/// Decides for each launch whether it may overlap with the one in front of it. What is behind a copy, or behind a step of
/// the dispatcher's, does not, nor does a launch that takes as constant what the one in front of it writes: it may read
/// that before it waits.
pub(super) fn mark(program: &Program, steps: &mut [PlannedStep], tuning: &Tuning) {
    if !tuning.overlap || tuning.device.arch.sm < OVERLAPPING {
        return;
    }
    let of = |source: &ArgSource| match *source {
        ArgSource::Tensor { tensor, .. } | ArgSource::Weights { tensor, .. } => {
            Some(Of::Tensor(program.root(tensor)))
        }
        ArgSource::Scratch(id) => Some(Of::Scratch(id)),
        _ => None,
    };
    let all = |launch: &PlannedLaunch, is: fn(Role, bool) -> bool| -> Vec<Of> {
        let args = launch.args.iter().zip(launch.kernel.args());
        args.filter(|(_, desc)| is(desc.role, desc.constant))
            .filter_map(|((_, source), _)| of(source))
            .collect()
    };
    // What the launch in front writes, if a launch is in front.
    let mut front: Option<Vec<Of>> = None;
    for step in steps {
        if step.overridden {
            front = None;
        }
        for action in &mut step.actions {
            let Action::Launch(launch) = action else {
                front = None;
                continue;
            };
            let constants = all(launch, |_, constant| constant);
            let is_behind =
                front.is_some_and(|writes| !writes.iter().any(|written| constants.contains(written)));
            launch.overlaps = is_behind && !launch.kernel.rule().cooperative;
            front = Some(all(launch, |role, _| matches!(role, Role::Out | Role::InOut)));
        }
    }
}
