//! Mistakes in schedules and in barriers: each is found by the checks, or ends the launch with a fault that says what was
//! waited for. None hangs.

use crate::programs::{counting, in_place, layers};
use crate::rig::{Outcome, Run};
use warpwright_dsl::Built;
use warpwright_kernels::Assignment;
use warpwright_kernels::persistent::format::{Awaited, Fault, Item};
use warpwright_ptx::ir::{Function, Imm, ItemKind, Scope, Semantics, Src, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::atomic::AtomicOp;
use warpwright_vm::{Between, FindingKind};

const BLOCKS: u32 = 4;

/// Looks that are enough for what goes right, and soon over for what does not.
const FEW: u32 = 3000;

fn races_between_blocks(outcome: &Outcome) -> bool {
    let is_race = |kind: &FindingKind| matches!(kind, FindingKind::Race { between: Between::Blocks, .. });
    outcome.report.findings.iter().any(|finding| is_race(&finding.kind))
}

fn few(assignment: Assignment) -> Run {
    // How many looks a wait takes is known where one host thread runs all blocks.
    Run { budget: FEW, grain: 1, ..Run::new(BLOCKS, assignment, 3) }.seed(1)
}

/// Runs with some mistake, in several orders, until it is found.
#[track_caller]
fn found(run: &Run, runs: impl Fn(&Run) -> Outcome) {
    let outcomes: Vec<_> = (0..4).map(|seed| runs(&run.clone().seed(seed))).collect();
    assert!(outcomes.iter().all(|outcome| outcome.report.trap.is_none()));
    assert!(outcomes.iter().any(races_between_blocks));
}

fn body(built: &mut Built) -> &mut Function {
    let function = built.module.items.iter_mut().find_map(|item| match &mut item.kind {
        ItemKind::Function(function) => Some(function),
        _ => None,
    });
    function.expect("a kernel")
}

/// Changes the first instruction that `change` can change, from the one on at which `from` holds.
fn change(built: &mut Built, from: impl Fn(&Op) -> bool, change: impl Fn(&mut Op) -> bool) {
    let statements = body(built).body.as_mut().expect("a body");
    let instructions = statements.iter_mut().filter_map(|statement| match &mut statement.kind {
        StatementKind::Instruction(instruction) => Some(&mut instruction.op),
        _ => None,
    });
    let changed = instructions.skip_while(|op| !from(op)).any(change);
    assert!(changed, "no such instruction");
}

/// The arrival at the barrier.
fn is_arrival(op: &Op) -> bool {
    matches!(op, Op::Atom(atom) if atom.op == AtomicOp::Add && atom.semantics == Some(Semantics::AcqRel))
}

#[test]
fn nothing_planted() {
    for assignment in Assignment::ALL {
        for program in [layers(), in_place(), counting(100, 2)] {
            few(assignment).agrees(&program);
        }
    }
}

/// An item a phase too early reads what has not been written.
#[test]
fn an_early_item() {
    let program = in_place();
    let run = few(Assignment::Static);
    found(&run, |run| {
        run.edited(
            &program,
            |schedule| {
                let lists = BLOCKS as usize;
                for block in 0..lists {
                    let late = std::mem::take(&mut schedule.lists[lists + block]);
                    schedule.lists[block].extend(late.into_iter().map(|item| Item { op: item.op, ..item }));
                }
            },
            |_| (),
        )
    });
}

#[test]
fn a_missing_wait() {
    let program = layers();
    for assignment in Assignment::ALL {
        found(&few(assignment), |run| {
            run.edited(
                &program,
                |schedule| schedule.lists.iter_mut().flatten().for_each(|item| item.wait = None),
                |_| (),
            )
        });
    }
}

/// A wait for fewer items than there are.
#[test]
fn a_wait_that_is_too_short() {
    let program = layers();
    for assignment in Assignment::ALL {
        found(&few(assignment), |run| {
            run.edited(
                &program,
                |schedule| {
                    for wait in schedule.lists.iter_mut().flatten().filter_map(|item| item.wait.as_mut()) {
                        wait.value -= 1;
                    }
                },
                |_| (),
            )
        });
    }
}

/// An item that two blocks do: where it changes a buffer in place, they race.
#[test]
fn an_item_twice() {
    let program = in_place();
    found(&few(Assignment::Static), |run| {
        run.edited(
            &program,
            |schedule| {
                let item = schedule.lists[0][0];
                schedule.lists[1].insert(0, item);
            },
            |_| (),
        )
    });
    found(&few(Assignment::Queue), |run| {
        run.edited(
            &program,
            |schedule| {
                let item = schedule.lists[0][0];
                schedule.lists[0].insert(0, item);
            },
            |_| (),
        )
    });
}

/// The barrier opens before the last block has come.
#[test]
fn a_barrier_of_fewer_blocks() {
    found(&few(Assignment::Static), |run| run.edited(&in_place(), |_| (), |built| miscount(built, 2)));
}

/// The barrier waits for a block that there is not.
#[test]
fn a_barrier_of_more_blocks() {
    for assignment in Assignment::ALL {
        let outcome = few(assignment).edited(&in_place(), |_| (), |built| miscount(built, 0));
        assert!(outcome.report.trap.is_none(), "{}", outcome.report);
        let Some(fault) = outcome.fault else { panic!("no fault") };
        let expected =
            Fault { awaited: Awaited::Barrier, block: fault.block, phase: 0, token: 0, wanted: 1, seen: 0 };
        assert_eq!(fault, expected);
        assert!(fault.block < BLOCKS);
    }
}

/// Compares arrivals with as many less than the number of blocks.
fn miscount(built: &mut Built, less: i64) {
    let is_last = |op: &mut Op| match op {
        Op::Sub(sub) if sub.b == Src::Imm(Imm::Int(1)) => {
            sub.b = Src::Imm(Imm::Int(less));
            true
        }
        _ => false,
    };
    change(built, is_arrival, is_last);
}

/// The last block to arrive tells nobody.
#[test]
fn a_barrier_that_never_opens() {
    let outcome = few(Assignment::Static).edited(
        &counting(100, 3),
        |_| (),
        |built| {
            change(built, is_arrival, |op| match op {
                Op::St(st) if st.semantics == Some(Semantics::Release) => {
                    // The word behind the generation.
                    st.address.offset += 4;
                    true
                }
                _ => false,
            });
        },
    );
    assert!(outcome.report.trap.is_none(), "{}", outcome.report);
    let Some(fault) = outcome.fault else { panic!("no fault") };
    assert_eq!((fault.awaited, fault.phase, fault.token), (Awaited::Barrier, 0, 0));
}

/// Blocks go through the barrier and do not see what others have written.
#[test]
fn a_barrier_that_orders_nothing() {
    let program = in_place();
    let release = |op: &mut Op| match op {
        Op::St(st) if st.semantics == Some(Semantics::Release) => {
            st.semantics = Some(Semantics::Relaxed);
            true
        }
        _ => false,
    };
    let acquire = |op: &mut Op| match op {
        Op::Ld(ld) if ld.semantics == Some(Semantics::Acquire) => {
            ld.semantics = Some(Semantics::Relaxed);
            true
        }
        _ => false,
    };
    let arrival = |op: &mut Op| match op {
        Op::Atom(atom) if atom.semantics == Some(Semantics::AcqRel) => {
            atom.semantics = Some(Semantics::Relaxed);
            true
        }
        _ => false,
    };
    let strict = |run: &Run| {
        let mut run = run.clone();
        run.options.race = warpwright_vm::Race::Strict;
        run
    };
    let run = strict(&few(Assignment::Static));
    found(&run, |run| run.edited(&program, |_| (), |built| change(built, is_arrival, release)));
    found(&run, |run| run.edited(&program, |_| (), |built| change(built, is_arrival, arrival)));
    found(&run, |run| {
        run.edited(
            &program,
            |_| (),
            |built| {
                change(built, is_arrival, acquire);
                change(built, is_arrival, acquire);
            },
        )
    });
    let outcome = run.run(&program);
    assert!(outcome.report.is_clean(), "{}", outcome.report);
}

/// The first barrier is passed by everybody at once: what is waited for has come before.
#[test]
fn a_dropped_barrier() {
    let opening = |op: &Op| matches!(op, Op::St(st) if st.semantics == Some(Semantics::Release) && st.scope == Some(Scope::Gpu));
    let generation = |op: &mut Op| match op {
        Op::Add(add) if add.b == Src::Imm(Imm::Int(1)) => {
            add.b = Src::Imm(Imm::Int(0));
            true
        }
        _ => false,
    };
    found(&few(Assignment::Static), |run| {
        run.edited(&in_place(), |_| (), |built| change(built, opening, generation))
    });
}

/// An item is missing that others wait for.
#[test]
fn an_item_left_out() {
    for assignment in Assignment::ALL {
        let outcome = few(assignment).edited(
            &in_place(),
            |schedule| {
                schedule.lists[0].remove(0);
            },
            |_| (),
        );
        assert!(outcome.report.trap.is_none(), "{}", outcome.report);
        let Some(fault) = outcome.fault else { panic!("no fault") };
        let counter = assignment.first_counter(2);
        assert_eq!((fault.awaited, fault.phase, fault.token), (Awaited::Counter(counter), 0, 0));
        assert_eq!((fault.wanted, fault.seen), (2, 1));
    }
}

/// Who gives up in a later token has published the tokens before, and no other.
#[test]
fn nothing_is_published_behind_a_fault() {
    for seed in 0..4 {
        let run = Run { tokens: 30, ..few(Assignment::Static) }.seed(seed);
        let outcome = run.edited(
            &counting(100, 30),
            |schedule| {
                // Met in the first two tokens by what stands in the counter, and not in the third.
                let last = schedule.lists.iter_mut().rev().flatten().find(|item| item.wait.is_some());
                if let Some(wait) = last.and_then(|item| item.wait.as_mut()) {
                    wait.value = 2;
                }
            },
            |_| (),
        );
        assert!(outcome.report.trap.is_none(), "{}", outcome.report);
        let Some(fault) = outcome.fault else { panic!("no fault") };
        assert_eq!((fault.token, fault.seen), (0, 1));
        assert_eq!(outcome.buffers[crate::programs::CONTROL], [0, 0]);
    }
}
