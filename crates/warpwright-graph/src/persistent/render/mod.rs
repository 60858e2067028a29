//! Reports of schedules: the items, their blocks, and the blocks that wait meanwhile.
//!
//! A [`ScheduleReport`] holds an assigned schedule's content by names, with the times of [`Schedule::timeline`], in
//! bytes plus a cost for each round of a block's warp groups. It can be printed as a table for a terminal, as JSON for
//! programs, or as a picture with blocks from top to bottom and time from left to right.

mod report;
mod svg;
mod table;

pub use report::{
    BlockReport, InstanceReport, ItemReport, OpReport, PhaseReport, ScheduleReport, ScheduleTotals, VERSION,
    WaitReport,
};

use super::assign::Assigned;
use super::schedule::{Operand, Origin, Schedule};
use crate::launch::ArgSource;
use crate::plan::Plan;
use warpwright_dsl::Role;

impl ScheduleReport {
    /// The report of a schedule of this plan with its assignment to blocks. The schedule should pass
    /// [`check`](super::check); invalid parts of others are left out.
    pub fn new(schedule: &Schedule, plan: &Plan, assigned: &Assigned) -> Self {
        let timeline = schedule.timeline(assigned);
        let mut places = vec![(0, 0); schedule.instances.len()];
        for (p, phase) in schedule.phases.iter().enumerate() {
            for (s, stage) in phase.stages.iter().enumerate() {
                for &instance in &stage.instances {
                    if let Some(place) = places.get_mut(instance) {
                        *place = (p, s);
                    }
                }
            }
        }
        let mut items_of = vec![0; schedule.instances.len()];
        for item in &assigned.items {
            if let Some(items) = items_of.get_mut(item.instance) {
                *items += 1;
            }
        }
        let ops = schedule.ops.iter().enumerate().map(|(i, op)| OpReport {
            code: op.name(),
            instances: schedule.instances.iter().filter(|instance| instance.op == i).count(),
        });
        let instances = schedule.instances.iter().enumerate().map(|(i, instance)| {
            let (step, does, family) = match instance.origin {
                Origin::Plan { step, action: _ } => {
                    let op = plan.program().steps().get(step).map(|step| &step.op);
                    (Some(step), op.map_or("", |op| op.name()), op.map_or("", |op| op.family().name()))
                }
                Origin::Appended(_) => (None, "appended", ""),
            };
            let (phase, stage) = places[i];
            InstanceReport {
                does: does.to_owned(),
                family: family.to_owned(),
                step,
                makes: makes(plan, instance),
                kernel: instance.kernel(),
                op: instance.op,
                phase,
                stage,
                grid: instance.grid,
                tiles: instance.tiles(),
                warps: instance.call.warps(),
                items: items_of[i],
                bytes: instance.bytes,
                weight_bytes: instance.weight_bytes,
            }
        });
        let items = assigned.items.iter().zip(&timeline.items).map(|(item, (block, time))| ItemReport {
            block: *block,
            instance: item.instance,
            first: item.first,
            end: item.end,
            wait: item.wait.map(|wait| WaitReport { counter: wait.counter, value: wait.value }),
            signal: item.signal,
            from: time.start,
            to: time.end,
        });
        let instances: Vec<InstanceReport> = instances.collect();
        let items: Vec<ItemReport> = items.collect();
        let blocks = f64::from(assigned.blocks.max(1));
        let phases = timeline.phases.iter().enumerate().map(|(p, time)| {
            let own = |item: &&ItemReport| places.get(item.instance).is_some_and(|place| place.0 == p);
            let busy: u64 = items.iter().filter(own).map(|item| item.to - item.from).sum();
            let length = (time.end - time.start) as f64;
            PhaseReport {
                from: time.start,
                to: time.end,
                idle: if length == 0.0 { 0.0 } else { part(1.0 - busy as f64 / (blocks * length)) },
            }
        });
        let busy =
            (0..).zip(&timeline.busy).map(|(i, &busy)| BlockReport { busy, idle: part(timeline.idle(i)) });
        ScheduleReport {
            version: VERSION,
            assignment: assigned.assignment.to_string(),
            warps: schedule.warps,
            round_bytes: schedule.costs.round,
            totals: ScheduleTotals {
                barriers: schedule.barriers(),
                stages: schedule.phases.iter().map(|phase| phase.stages.len()).sum(),
                instances: instances.len(),
                items: items.len(),
                tiles: schedule.instances.iter().map(|instance| instance.tiles()).sum(),
                bytes: schedule.bytes(),
                weight_bytes: schedule.weight_bytes(),
                cost: timeline.total(),
                idle: part(timeline.mean_idle()),
            },
            phases: phases.collect(),
            blocks: busy.collect(),
            ops: ops.collect(),
            instances,
            items,
        }
    }

    /// The report as a JSON text; [`serde_json::from_str`] reads it.
    ///
    /// # Errors
    ///
    /// Those of `serde_json`: a report made by [`new`](Self::new) has none.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// The report as tables of text, up to 110 columns where names are short.
    pub fn to_table(&self) -> String {
        table::render(self)
    }

    /// The report as a picture.
    pub fn to_svg(&self) -> String {
        svg::render(self)
    }
}

/// A part of something with four digits: more would say nothing.
fn part(part: f64) -> f64 {
    (part * 1e4).round() / 1e4
}

/// Names of the tensors that an instance writes, each once.
fn makes(plan: &Plan, instance: &super::Instance) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (desc, operand) in instance.operands() {
        let name = match operand {
            Operand::Plan(ArgSource::Tensor { tensor, .. }) if plan.program().has(tensor) => {
                plan.program().info(plan.program().root(tensor)).name.clone()
            }
            Operand::External(name) => name.to_owned(),
            Operand::Plan(_) => continue,
        };
        if matches!(desc.role, Role::Out | Role::InOut) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
