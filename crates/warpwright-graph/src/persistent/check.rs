//! Validation of a schedule against its plan, however the schedule was made.
//!
//! A plan runs its launches one after the other. A schedule is equivalent if it has the same launches, all tiles of
//! each exactly once, and keeps the plan's order for any two launches that access the same bytes with at least one
//! write: the first one is done before the second begins. *Done before* means: in an earlier phase; or in the same
//! phase, and every item of the second waits for a counter that all items of the first increment, or for items that
//! wait so. After a token the host then finds what it would find after the plan, states included: a change to a state
//! comes after all reads of the old value.
//!
//! Termination follows from the same rules: waits are for items of earlier stages of the same phase, and lists have
//! their items in the order of stages. So among the unfinished items, one of the earliest stage waits for nothing
//! unfinished, and neither does anything before it in its list.

use super::access::{Access, accesses};
use super::assign::Assigned;
use super::error::ScheduleFault;
use super::parts::Parts;
use super::schedule::{Origin, Schedule};
use crate::plan::Plan;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::persistent::Assignment;
use warpwright_ptx::ir::Arch;

/// Checks that an assigned schedule is equivalent to the plan, and terminates. Appended launches must run in their
/// order, after all of the plan's.
///
/// # Errors
///
/// The first fault that is found.
pub fn check(schedule: &Schedule, plan: &Plan, assigned: &Assigned) -> Result<(), ScheduleFault> {
    instances(schedule, plan)?;
    let places = places(schedule)?;
    let check = Check { schedule, assigned, places };
    check.lists()?;
    check.tiles()?;
    check.waits()?;
    check.order(plan)
}

/// The instances are those of the plan's launches.
fn instances(schedule: &Schedule, plan: &Plan) -> Result<(), ScheduleFault> {
    let own = |origin: Origin| {
        let instances = schedule.instances.iter().enumerate();
        instances.filter(move |(_, instance)| instance.origin == origin)
    };
    // What the plan asks for, made anew.
    let parts = Parts::new(plan, schedule.warps, schedule.costs.large)
        .map(|parts| parts.knowing(&schedule.instances));
    let needed = parts.and_then(|parts| parts.instances(&[]));
    let needed = needed.map_err(|error| ScheduleFault::Plan { error: error.to_string() })?;
    let mut wanted: BTreeMap<Origin, Vec<_>> = BTreeMap::new();
    for instance in needed {
        wanted.entry(instance.origin).or_default().push(instance);
    }
    for (i, instance) in schedule.instances.iter().enumerate() {
        if schedule.ops.get(instance.op) != Some(&instance.call) {
            let (kernel, what) = (instance.kernel(), "code".to_owned());
            return Err(ScheduleFault::NotThePlans { instance: i, kernel, what });
        }
        if let Origin::Plan { step, action } = instance.origin
            && !wanted.contains_key(&instance.origin)
        {
            return Err(ScheduleFault::Instances {
                step,
                action,
                needed: 0,
                found: own(instance.origin).count(),
            });
        }
        if i > 0 && schedule.instances[i - 1].origin > instance.origin {
            return Err(ScheduleFault::InstanceOrder { instance: i });
        }
    }
    for (origin, wanted) in wanted {
        let found = own(origin).count();
        if let Origin::Plan { step, action } = origin
            && found != wanted.len()
        {
            return Err(ScheduleFault::Instances { step, action, needed: wanted.len(), found });
        }
        for ((i, given), wanted) in own(origin).zip(&wanted) {
            let differs = |what: &str| ScheduleFault::NotThePlans {
                instance: i,
                kernel: given.kernel(),
                what: what.to_owned(),
            };
            if !same_kernel(given.call.kernel(), wanted.call.kernel(), plan.options().arch())
                || given.call.piece() != wanted.call.piece()
            {
                return Err(differs("kernel"));
            }
            if given.call != wanted.call || !given.call.operands().eq(wanted.call.operands()) {
                return Err(differs("code"));
            }
            if given.grid != wanted.grid {
                return Err(differs("grid"));
            }
            if given.args.len() != wanted.args.len() {
                return Err(differs("arguments"));
            }
            if let Some((arg, _)) =
                given.args.iter().zip(&wanted.args).find(|(given, wanted)| given != wanted)
            {
                return Err(differs(arg.0));
            }
        }
    }
    Ok(())
}

type Shared = Arc<dyn AnyKernel + Send + Sync>;

/// Whether two kernels are one, by what they are built to where nothing shorter tells.
fn same_kernel(a: &Shared, b: &Shared, target: Arch) -> bool {
    if Arc::ptr_eq(a, b) {
        return true;
    }
    match (a.key(), b.key()) {
        (Some(a), Some(b)) => a == b,
        _ => {
            let [a, b] = [a, b].map(|kernel| kernel.ptx(target).ok());
            a.is_some() && a == b
        }
    }
}

/// Phase and stage of each instance, which has one.
fn places(schedule: &Schedule) -> Result<Vec<(usize, usize)>, ScheduleFault> {
    let mut places: Vec<Vec<(usize, usize)>> = vec![Vec::new(); schedule.instances.len()];
    for (p, phase) in schedule.phases.iter().enumerate() {
        for (s, stage) in phase.stages.iter().enumerate() {
            let fault = ScheduleFault::Stage { phase: p, stage: s };
            if stage.instances.is_empty() {
                return Err(fault);
            }
            for &instance in &stage.instances {
                places.get_mut(instance).ok_or(fault.clone())?.push((p, s));
            }
        }
        if phase.stages.is_empty() {
            return Err(ScheduleFault::Stage { phase: p, stage: 0 });
        }
    }
    let one = |(instance, places): (usize, Vec<(usize, usize)>)| match places[..] {
        [place] => Ok(place),
        _ => {
            let kernel = schedule.instances[instance].kernel();
            Err(ScheduleFault::Placed { instance, kernel, stages: places.len() })
        }
    };
    places.into_iter().enumerate().map(one).collect()
}

struct Check<'a> {
    schedule: &'a Schedule,
    assigned: &'a Assigned,
    /// Phase and stage, by instance.
    places: Vec<(usize, usize)>,
}

impl Check<'_> {
    fn kernel(&self, instance: usize) -> String {
        self.schedule.instances[instance].kernel()
    }

    /// Lists have all items, each that of its phase, in the order of stages; items are tiles of instances.
    fn lists(&self) -> Result<(), ScheduleFault> {
        let Assigned { assignment, blocks, ref items, ref lists, .. } = *self.assigned;
        let (phases, of_a_phase) = (
            self.schedule.phases.len(),
            match assignment {
                Assignment::Static => blocks as usize,
                Assignment::Queue => 1,
            },
        );
        let needed = phases * of_a_phase;
        let bounds = ScheduleFault::Lists { needed, items: items.len() };
        let mut end = 0;
        for list in lists {
            if list.start != end || list.end < list.start {
                return Err(bounds);
            }
            end = list.end;
        }
        if lists.len() != needed || end as usize != items.len() || of_a_phase == 0 {
            return Err(bounds);
        }
        for (l, list) in lists.iter().enumerate() {
            let mut before = 0;
            for at in list.clone() {
                let (at, item) = (at as usize, items[at as usize]);
                let tiles = self.schedule.instances.get(item.instance).map_or(0, |instance| instance.tiles());
                if item.first >= item.end || u64::from(item.end) > tiles {
                    let (instance, first, end) = (item.instance, item.first, item.end);
                    return Err(ScheduleFault::Item { item: at, instance, first, end });
                }
                let (phase, stage) = self.places[item.instance];
                if phase != l / of_a_phase {
                    return Err(ScheduleFault::ItemPhase { item: at, listed: l / of_a_phase, phase });
                }
                if stage < before {
                    return Err(ScheduleFault::ItemOrder { item: at, stage, before });
                }
                before = stage;
            }
        }
        Ok(())
    }

    /// Every tile of every instance is in one item.
    fn tiles(&self) -> Result<(), ScheduleFault> {
        let mut parts: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.schedule.instances.len()];
        for item in &self.assigned.items {
            parts[item.instance].push((item.first, item.end));
        }
        for (instance, mut parts) in parts.into_iter().enumerate() {
            parts.sort_unstable();
            let mut next = 0;
            let kernel = || self.kernel(instance);
            for (first, end) in parts {
                if first < next {
                    return Err(ScheduleFault::TileTwice { instance, kernel: kernel(), tile: first });
                }
                if first > next {
                    return Err(ScheduleFault::TileMissing { instance, kernel: kernel(), tile: next });
                }
                next = end;
            }
            if u64::from(next) < self.schedule.instances[instance].tiles() {
                return Err(ScheduleFault::TileMissing { instance, kernel: kernel(), tile: next });
            }
        }
        Ok(())
    }

    /// The items that count each counter.
    fn signallers(&self) -> HashMap<u32, Vec<usize>> {
        let mut of: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, item) in self.assigned.items.iter().enumerate() {
            if let Some(counter) = item.signal {
                of.entry(counter).or_default().push(i);
            }
        }
        of
    }

    /// Waits are for all of what counts, in earlier stages of the phase.
    fn waits(&self) -> Result<(), ScheduleFault> {
        let Assigned { assignment, counters, ref items, .. } = *self.assigned;
        let heads = assignment.first_counter(self.schedule.phases.len() as u32);
        let signallers = self.signallers();
        for (at, item) in items.iter().enumerate() {
            let named = item.wait.map(|wait| wait.counter).into_iter().chain(item.signal);
            for counter in named {
                if !(heads..counters).contains(&counter) {
                    return Err(ScheduleFault::Counter { item: at, counter, heads, counters });
                }
            }
            let Some(wait) = item.wait else { continue };
            let (phase, stage) = self.places[item.instance];
            let counting = signallers.get(&wait.counter).map_or(&[][..], |all| all);
            let late = |&&other: &&usize| {
                let (p, s) = self.places[items[other].instance];
                p != phase || s >= stage
            };
            if let Some(&signaller) = counting.iter().find(late) {
                let counter = wait.counter;
                return Err(ScheduleFault::WaitOrder { item: at, phase, stage, counter, signaller });
            }
            if wait.value == 0 || wait.value as usize != counting.len() {
                let signallers = counting.len() as u32;
                let (counter, value) = (wait.counter, wait.value);
                return Err(ScheduleFault::WaitValue { item: at, counter, value, signallers });
            }
        }
        Ok(())
    }

    /// What two instances have in common, and one of them changes, they touch in the order of the plan.
    fn order(&self, plan: &Plan) -> Result<(), ScheduleFault> {
        let touched: Vec<Vec<Access>> =
            self.schedule.instances.iter().map(|instance| accesses(plan, instance)).collect();
        let before = Before::new(self);
        for second in 0..touched.len() {
            for first in 0..second {
                if before.is_done(first, second) {
                    continue;
                }
                let parts = self.schedule.instances[first].origin == self.schedule.instances[second].origin;
                self.compare(&touched, first, second)?;
                // The other way round too, for parts have no order.
                if parts {
                    self.compare(&touched, second, first)?;
                }
            }
        }
        Ok(())
    }

    /// That an instance may run beside one that comes before it.
    fn compare(&self, touched: &[Vec<Access>], first: usize, second: usize) -> Result<(), ScheduleFault> {
        let mut pairs = touched[first].iter().flat_map(|a| touched[second].iter().map(move |b| (a, b)));
        let Some((a, b)) = pairs.find(|(a, b)| a.conflicts(b)) else { return Ok(()) };
        let argument = b.arg.to_owned();
        let kernel = self.kernel(second);
        Err(match a.writes {
            true if b.reads => ScheduleFault::ReadEarly { reader: second, kernel, argument, writer: first },
            true => ScheduleFault::WrittenTwice { second, kernel, argument, first },
            false => ScheduleFault::WrittenWhileRead { writer: second, kernel, argument, reader: first },
        })
    }
}

/// The order of instances.
struct Before<'a> {
    check: &'a Check<'a>,
    /// By counter, the instances all items of which are done when it has its value, by their places.
    done: HashMap<u32, Vec<usize>>,
    /// By instance, the counters that its items wait for; `None` where one waits for nothing.
    waits: Vec<Option<Vec<u32>>>,
}

impl<'a> Before<'a> {
    fn new(check: &'a Check<'a>) -> Self {
        let items = &check.assigned.items;
        let instances = check.schedule.instances.len();
        let mut count = vec![0usize; instances];
        let mut waits: Vec<Option<Vec<u32>>> = vec![Some(Vec::new()); instances];
        for item in items {
            count[item.instance] += 1;
            match (item.wait, &mut waits[item.instance]) {
                (Some(wait), Some(waits)) if !waits.contains(&wait.counter) => waits.push(wait.counter),
                (None, waits) => *waits = None,
                _ => {}
            }
        }
        let signallers = check.signallers();
        // A counter's items wait for those of earlier stages: what comes before them is known when they come.
        let stage = |counter: &u32| {
            let counting = signallers.get(counter).into_iter().flatten();
            counting.map(|&item| check.places[items[item].instance]).max()
        };
        let mut counters: Vec<u32> = signallers.keys().copied().collect();
        counters.sort_unstable_by_key(|counter| (stage(counter), *counter));
        let mut reached: HashMap<u32, Vec<usize>> = HashMap::new();
        for counter in counters {
            let mut all: Vec<usize> = signallers.get(&counter).cloned().unwrap_or_default();
            let mut waited: Vec<u32> =
                all.iter().filter_map(|&item| items[item].wait).map(|wait| wait.counter).collect();
            waited.sort_unstable();
            waited.dedup();
            for other in waited {
                all.extend(reached.get(&other).into_iter().flatten());
            }
            all.sort_unstable();
            all.dedup();
            reached.insert(counter, all);
        }
        let done = reached.into_iter().map(|(counter, reached)| {
            let mut found: BTreeMap<usize, usize> = BTreeMap::new();
            for item in reached {
                *found.entry(items[item].instance).or_default() += 1;
            }
            let whole = found.into_iter().filter(|&(instance, items)| items == count[instance]);
            (counter, whole.map(|(instance, _)| instance).collect())
        });
        Before { check, done: done.collect(), waits }
    }

    /// Whether all of the first is done before any of the second begins.
    fn is_done(&self, first: usize, second: usize) -> bool {
        let (a, b) = (self.check.places[first].0, self.check.places[second].0);
        let counted =
            |counter: &u32| self.done.get(counter).is_some_and(|done| done.binary_search(&first).is_ok());
        match &self.waits[second] {
            _ if a != b => a < b,
            Some(waits) => waits.iter().all(counted) && !waits.is_empty(),
            None => false,
        }
    }
}
