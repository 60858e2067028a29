//! Faults that are planted into schedules that are right: the check finds each, and says what it is.

use crate::common::{Choice, ModelConfig, Random};
use crate::{assigned, models, plan_of, schedule_of};
use warpwright_graph::persistent::{
    Assigned, Instance, Item, Origin, Phase, Schedule, ScheduleFault as Fault, Stage, Wait, check,
};
use warpwright_graph::{Arithmetic, Plan};
use warpwright_kernels::persistent::{Assignment, Op};
use warpwright_ptx::ir::Arch;

/// A schedule that is right.
struct Right {
    plan: Plan,
    schedule: Schedule,
    assigned: Assigned,
}

impl Right {
    fn random(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xfa17);
        let (_, graph) = models::random(seed);
        let plan = plan_of(&graph, random.of(&[Arithmetic::Exact, Arithmetic::Int8]));
        let schedule = schedule_of(&plan);
        let blocks = 2 + random.below(31);
        let assigned = assigned(&plan, &schedule, blocks, random.of(&Assignment::ALL));
        Right { plan, schedule, assigned }
    }

    /// The fault of a schedule that is changed, and assigned anew.
    fn with(&self, change: impl FnOnce(&mut Schedule)) -> Option<Fault> {
        let mut schedule = self.schedule.clone();
        change(&mut schedule);
        let Assigned { blocks, assignment, .. } = self.assigned;
        let assigned = schedule.assign(blocks, assignment).expect("an assignment");
        check(&schedule, &self.plan, &assigned).err()
    }

    /// The fault of an assignment that is changed.
    fn given(&self, change: impl FnOnce(&mut Assigned)) -> Option<Fault> {
        let mut assigned = self.assigned.clone();
        change(&mut assigned);
        check(&self.schedule, &self.plan, &assigned).err()
    }

    /// Some item.
    fn item(&self, random: &mut Random) -> usize {
        random.below(self.assigned.items.len() as u32) as usize
    }

    /// Some item that waits.
    fn waiting(&self, random: &mut Random) -> (usize, Wait) {
        let items = self.assigned.items.iter().enumerate();
        random.of(&items.filter_map(|(i, item)| Some((i, item.wait?))).collect::<Vec<_>>())
    }
}

/// Holds random schedules to a fault that a change of them must give.
fn each(plant: impl Fn(&Right, &mut Random) -> Option<Fault>, expected: impl Fn(&Fault) -> bool) {
    for seed in 0..40 {
        let right = Right::random(seed);
        let fault = plant(&right, &mut Random::new(seed));
        let fault = fault.unwrap_or_else(|| panic!("seed {seed}: nothing was found"));
        assert!(expected(&fault), "seed {seed}: {fault}");
    }
}

/// Whether two instances may touch the same memory at the wrong time.
fn is_order(fault: &Fault) -> bool {
    matches!(fault, Fault::ReadEarly { .. } | Fault::WrittenWhileRead { .. } | Fault::WrittenTwice { .. })
}

/// Takes an item out of its list, or puts one behind another into its list.
fn resize_list(assigned: &mut Assigned, at: usize, item: Option<Item>) {
    let list = assigned.lists.iter().position(|list| list.contains(&(at as u32))).expect("a list");
    let by = match item {
        Some(item) => {
            assigned.items.insert(at + 1, item);
            1
        }
        None => {
            assigned.items.remove(at);
            -1
        }
    };
    assigned.lists[list].end = assigned.lists[list].end.wrapping_add_signed(by);
    for list in &mut assigned.lists[list + 1..] {
        (list.start, list.end) = (list.start.wrapping_add_signed(by), list.end.wrapping_add_signed(by));
    }
}

#[test]
fn an_item_twice() {
    let twice = |right: &Right, random: &mut Random| {
        let at = right.item(random);
        right.given(|assigned| resize_list(assigned, at, Some(assigned.items[at])))
    };
    each(twice, |fault| matches!(fault, Fault::TileTwice { .. }));
}

#[test]
fn an_item_missing() {
    let missing = |right: &Right, random: &mut Random| {
        let at = right.item(random);
        right.given(|assigned| resize_list(assigned, at, None))
    };
    each(missing, |fault| matches!(fault, Fault::TileMissing { .. }));
}

#[test]
fn tiles_too_many_and_too_few() {
    let longer = |right: &Right, random: &mut Random| {
        let at = right.item(random);
        right.given(|assigned| assigned.items[at].end += 1)
    };
    each(longer, |fault| matches!(fault, Fault::TileTwice { .. } | Fault::Item { .. }));
    let later = |right: &Right, random: &mut Random| {
        let at = right.item(random);
        right.given(|assigned| assigned.items[at].first += 1)
    };
    each(later, |fault| matches!(fault, Fault::TileMissing { .. } | Fault::Item { .. }));
    let nobodys = |right: &Right, random: &mut Random| {
        let at = right.item(random);
        right.given(|assigned| assigned.items[at].instance = right.schedule.instances.len())
    };
    each(nobodys, |fault| matches!(fault, Fault::Item { .. }));
}

#[test]
fn a_wait_dropped() {
    let dropped = |right: &Right, random: &mut Random| {
        let (at, _) = right.waiting(random);
        right.given(|assigned| assigned.items[at].wait = None)
    };
    each(dropped, is_order);
}

#[test]
fn a_wait_for_another_value() {
    let off = |right: &Right, random: &mut Random| {
        let (at, wait) = right.waiting(random);
        let value = random.of(&[0, wait.value - 1, wait.value + 1, u32::MAX]);
        right.given(|assigned| assigned.items[at].wait = Some(Wait { value, ..wait }))
    };
    each(off, |fault| matches!(fault, Fault::WaitValue { .. }));
}

#[test]
fn a_wait_for_another_counter() {
    let another = |right: &Right, random: &mut Random| {
        let (at, wait) = right.waiting(random);
        let signalled = right.assigned.items.iter().filter_map(|item| item.signal);
        let others: Vec<u32> = signalled.filter(|&counter| counter != wait.counter).collect();
        let counter = random.of(&others);
        let counted = right.assigned.items.iter().filter(|item| item.signal == Some(counter)).count();
        let wait = Wait { counter, value: counted as u32 };
        right.given(|assigned| assigned.items[at].wait = Some(wait))
    };
    // Of an earlier stage of the same phase it is no fault of the wait, but comes too early.
    each(another, |fault| matches!(fault, Fault::WaitOrder { .. }) || is_order(fault));
    let own = |right: &Right, random: &mut Random| {
        let items = right.assigned.items.iter().enumerate();
        let signalling: Vec<(usize, u32)> = items.filter_map(|(i, item)| Some((i, item.signal?))).collect();
        let (at, counter) = random.of(&signalling);
        let value = signalling.iter().filter(|(_, other)| *other == counter).count() as u32;
        right.given(|assigned| assigned.items[at].wait = Some(Wait { counter, value }))
    };
    each(own, |fault| matches!(fault, Fault::WaitOrder { .. }));
    let none = |right: &Right, random: &mut Random| {
        let (at, wait) = right.waiting(random);
        let counter = random.of(&[right.assigned.counters, u32::MAX - 1]);
        right.given(|assigned| assigned.items[at].wait = Some(Wait { counter, ..wait }))
    };
    each(none, |fault| matches!(fault, Fault::Counter { .. }));
}

#[test]
fn the_head_of_a_queue_as_a_counter() {
    let plan = plan_of(&ModelConfig::small().decode(1, Choice::ArgMax), Arithmetic::Exact);
    let schedule = schedule_of(&plan);
    let assigned = assigned(&plan, &schedule, 8, Assignment::Queue);
    let right = Right { plan, schedule, assigned };
    let (at, wait) = right.waiting(&mut Random::new(0));
    let fault = right.given(|assigned| assigned.items[at].wait = Some(Wait { counter: 0, ..wait }));
    assert!(matches!(fault, Some(Fault::Counter { counter: 0, .. })), "{fault:?}");
}

#[test]
fn a_signal_dropped_or_misled() {
    let signalling = |right: &Right, random: &mut Random| {
        let items = right.assigned.items.iter().enumerate();
        random.of(&items.filter_map(|(i, item)| Some((i, item.signal?))).collect::<Vec<_>>())
    };
    let dropped = |right: &Right, random: &mut Random| {
        let (at, _) = signalling(right, random);
        right.given(|assigned| assigned.items[at].signal = None)
    };
    each(dropped, |fault| matches!(fault, Fault::WaitValue { .. }));
    let misled = |right: &Right, random: &mut Random| {
        let ((at, counter), (_, other)) = (signalling(right, random), signalling(right, random));
        let other = if other == counter { None } else { Some(other) };
        right.given(|assigned| assigned.items[at].signal = other)
    };
    each(misled, |fault| matches!(fault, Fault::WaitValue { .. } | Fault::WaitOrder { .. }));
    // Where those that wait know of it, what was not counted is what comes too early: unless nobody needs it, as where
    // what is counted has several instances.
    let known = |right: &Right, random: &mut Random| {
        let alone = |instance: usize| {
            let mut stages = right.schedule.phases.iter().flat_map(|phase| &phase.stages);
            stages.any(|stage| stage.instances == [instance])
        };
        let items = right.assigned.items.iter().enumerate().filter(|(_, item)| alone(item.instance));
        let signalling: Vec<_> = items.filter_map(|(i, item)| Some((i, item.signal?))).collect();
        let (at, counter) = random.of(&signalling);
        right.given(|assigned| {
            assigned.items[at].signal = None;
            for wait in assigned.items.iter_mut().filter_map(|item| item.wait.as_mut()) {
                wait.value -= u32::from(wait.counter == counter);
            }
        })
    };
    each(known, |fault| is_order(fault) || matches!(fault, Fault::WaitValue { value: 0, .. }));
}

#[test]
fn items_out_of_order() {
    let swapped = |right: &Right, _: &mut Random| {
        right.given(|assigned| {
            // A list with items that wait behind some that do not.
            let list = assigned.lists.iter().find(|&list| {
                let items = || list.clone().map(|item| assigned.items[item as usize].wait.is_some());
                items().any(|waits| waits) && !items().all(|waits| waits)
            });
            let list = list.expect("stages").clone();
            assigned.items[list.start as usize..list.end as usize].reverse();
        })
    };
    each(swapped, |fault| matches!(fault, Fault::ItemOrder { .. }));
}

#[test]
fn lists_that_are_none() {
    let phase = |right: &Right, random: &mut Random| {
        right.given(|assigned| {
            // The last item of a phase goes into the next one's first list.
            let phases = right.schedule.phases.len();
            let of_a_phase = assigned.lists.len() / phases;
            let next = (1 + random.below(phases as u32 - 1) as usize) * of_a_phase;
            let before = (0..next).rev().find(|&list| !assigned.lists[list].is_empty()).expect("items");
            for list in before + 1..next {
                assigned.lists[list] = assigned.lists[list].start - 1..assigned.lists[list].end - 1;
            }
            assigned.lists[before].end -= 1;
            assigned.lists[next].start -= 1;
        })
    };
    each(phase, |fault| matches!(fault, Fault::ItemPhase { .. }));
    let gap = |right: &Right, random: &mut Random| {
        let list = random.below(right.assigned.lists.len() as u32) as usize;
        match random.below(3) {
            0 => right.given(|assigned| assigned.lists[list].end += 1),
            1 => right.given(|assigned| {
                assigned.lists.pop();
            }),
            _ => right.given(|assigned| assigned.blocks += 1),
        }
    };
    for seed in 0..40 {
        let right = Right::random(seed);
        let fault = gap(&right, &mut Random::new(seed));
        let queue = right.assigned.assignment == Assignment::Queue;
        // With a queue the lists do not tell how many blocks there are.
        assert!(matches!(fault, Some(Fault::Lists { .. })) || queue && fault.is_none(), "{fault:?}");
    }
}

/// An instance that is called as another one is: another body, another piece of it, or other numbers in its record.
#[test]
fn calls_that_are_others() {
    let call = |right: &Right, random: &mut Random| {
        let instances = &right.schedule.instances;
        let first = random.below(instances.len() as u32) as usize;
        let differs = |other: &&Instance| {
            let (own, other) = (&instances[first].call, &other.call);
            own != other || own.piece() != other.piece() || !own.operands().eq(other.operands())
        };
        let (call, op) = match instances.iter().rev().find(differs) {
            Some(other) => (other.call.clone(), other.op),
            None => panic!("a schedule of one kernel"),
        };
        right.with(|schedule| {
            schedule.instances[first].call = call;
            schedule.instances[first].op = op;
        })
    };
    each(call, |fault| matches!(fault, Fault::NotThePlans { .. }));
}

/// Ops that were made for blocks of other warps, or for another architecture, in all instances that have them.
#[test]
fn ops_for_other_blocks_and_targets() {
    let other = |right: &Right, random: &mut Random| {
        let instance = random.below(right.schedule.instances.len() as u32) as usize;
        let op = right.schedule.instances[instance].op;
        let arch = right.plan.options().arch();
        let (warps, arch) = match random.below(2) {
            0 => (4, arch),
            _ => (8, if arch.sm == 90 { Arch::sm(86) } else { Arch::sm(90) }),
        };
        right.with(|schedule| {
            for instance in schedule.instances.iter_mut().filter(|instance| instance.op == op) {
                let calls = Op::of(instance.call.kernel(), warps, arch).expect("ops");
                instance.call = calls[instance.call.piece()].clone();
            }
            schedule.ops[op] = schedule.instances[instance].call.clone();
        })
    };
    each(other, |fault| matches!(fault, Fault::NotThePlans { .. }));
}

/// Removes an instance from its stage; stages and phases that have nothing any more go too.
fn take(phases: &mut Vec<Phase>, instance: usize) {
    for phase in phases.iter_mut() {
        phase.stages.iter_mut().for_each(|stage| stage.instances.retain(|&other| other != instance));
        phase.stages.retain(|stage| !stage.instances.is_empty());
    }
    phases.retain(|phase| !phase.stages.is_empty());
}

#[test]
fn an_instance_in_an_earlier_phase() {
    let earlier = |right: &Right, random: &mut Random| {
        let p = 1 + random.below(right.schedule.phases.len() as u32 - 1) as usize;
        right.with(|schedule| {
            // What the phase begins with is what depends on something large of the phase before.
            let instance = schedule.phases[p].stages.iter().flat_map(|stage| &stage.instances).min();
            let instance = *instance.expect("an instance");
            take(&mut schedule.phases, instance);
            let large = |stage: &&mut Stage| stage.instances.iter().any(|&i| schedule.instances[i].large);
            let stage = schedule.phases[p - 1].stages.iter_mut().find(large);
            stage.expect("something large").instances.push(instance);
        })
    };
    each(earlier, is_order);
}

#[test]
fn a_stage_in_an_earlier_one() {
    let earlier = |right: &Right, random: &mut Random| {
        let phases = &right.schedule.phases;
        let staged: Vec<usize> = (0..phases.len()).filter(|&p| phases[p].stages.len() > 1).collect();
        let p = random.of(&staged);
        let stage = 1 + random.below(phases[p].stages.len() as u32 - 1) as usize;
        right.with(|schedule| {
            let moved = schedule.phases[p].stages.remove(stage);
            schedule.phases[p].stages[stage - 1].instances.extend(moved.instances);
        })
    };
    each(earlier, is_order);
}

#[test]
fn a_barrier_dropped() {
    let dropped = |right: &Right, random: &mut Random| {
        let p = random.below(right.schedule.phases.len() as u32 - 1) as usize;
        right.with(|schedule| {
            let next = schedule.phases.remove(p + 1);
            let stages = &mut schedule.phases[p].stages;
            for (i, stage) in next.stages.into_iter().enumerate() {
                match stages.get_mut(i) {
                    Some(same) => same.instances.extend(stage.instances),
                    None => stages.push(stage),
                }
            }
        })
    };
    each(dropped, is_order);
}

#[test]
fn states_that_change_before_they_are_read() {
    let early = |right: &Right, _: &mut Random| {
        let advances = |origin| match origin {
            Origin::Plan { step, .. } => right.plan.program().steps()[step].op.name() == "advance",
            Origin::Appended(_) => false,
        };
        let instances = &right.schedule.instances;
        let advance = instances.iter().position(|instance| advances(instance.origin)).expect("one");
        right.with(|schedule| {
            take(&mut schedule.phases, advance);
            schedule.phases[0].stages[0].instances.push(advance);
        })
    };
    each(early, |fault| matches!(fault, Fault::WrittenWhileRead { .. }));
}

#[test]
fn instances_that_are_not_the_plans() {
    let instance =
        |right: &Right, random: &mut Random| random.below(right.schedule.instances.len() as u32) as usize;
    let what = |given: &'static str| move |fault: &Fault| matches!(fault, Fault::NotThePlans { what, .. } if what == given);
    let grid = |right: &Right, random: &mut Random| {
        let at = instance(right, random);
        right.with(|schedule| schedule.instances[at].grid[1] += 1)
    };
    each(grid, what("grid"));
    let code = |right: &Right, random: &mut Random| {
        let (at, ops) = (instance(right, random), right.schedule.ops.len());
        right.with(|schedule| {
            let instance = &mut schedule.instances[at];
            instance.op = (instance.op + 1) % ops;
        })
    };
    each(code, what("code"));
    // Memory that overlaps what it should not: another operand than the plan's.
    let memory = |right: &Right, random: &mut Random| {
        let at = instance(right, random);
        let given: Vec<_> = right.schedule.instances.iter().flat_map(|instance| &instance.args).collect();
        let (arg, own) = {
            let args = &right.schedule.instances[at].args;
            let arg = random.below(args.len() as u32) as usize;
            (arg, args[arg].1)
        };
        let others: Vec<_> = given.iter().map(|arg| arg.1).filter(|&other| other != own).collect();
        let other = random.of(&others);
        right.with(|schedule| schedule.instances[at].args[arg].1 = other)
    };
    each(memory, |fault| matches!(fault, Fault::NotThePlans { .. }));
    let lost = |right: &Right, random: &mut Random| {
        let at = instance(right, random);
        right.with(|schedule| take(&mut schedule.phases, at))
    };
    each(lost, |fault| matches!(fault, Fault::Placed { stages: 0, .. }));
    let empty = |right: &Right, random: &mut Random| {
        let p = random.below(right.schedule.phases.len() as u32) as usize;
        right.with(|schedule| schedule.phases[p].stages.push(Stage::default()))
    };
    each(empty, |fault| matches!(fault, Fault::Stage { .. }));
    let twice = |right: &Right, random: &mut Random| {
        let at = instance(right, random);
        right.with(|schedule| schedule.phases[0].stages[0].instances.push(at))
    };
    each(twice, |fault| matches!(fault, Fault::Placed { stages: 2, .. }));
    let swapped = |right: &Right, random: &mut Random| {
        let instances = &right.schedule.instances;
        let pairs = (1..instances.len()).filter(|&i| instances[i - 1].origin != instances[i].origin);
        let at = random.of(&pairs.collect::<Vec<_>>());
        right.with(|schedule| schedule.instances.swap(at - 1, at))
    };
    each(swapped, |fault| matches!(fault, Fault::InstanceOrder { .. }));
    let gone = |right: &Right, random: &mut Random| {
        let at = instance(right, random);
        right.with(|schedule| {
            schedule.instances.remove(at);
            take(&mut schedule.phases, at);
            let stages = schedule.phases.iter_mut().flat_map(|phase| &mut phase.stages);
            for other in stages.flat_map(|stage| &mut stage.instances) {
                *other -= usize::from(*other > at);
            }
        })
    };
    each(gone, |fault| matches!(fault, Fault::Instances { .. }));
}

#[test]
fn the_schedule_of_another_plan() {
    let right = Right::random(1);
    let other = plan_of(&ModelConfig::small().decode(1, Choice::ArgMax), Arithmetic::Exact);
    let fault = check(&right.schedule, &other, &right.assigned).expect_err("another plan");
    assert!(matches!(fault, Fault::Instances { .. } | Fault::NotThePlans { .. }), "{fault}");
}
