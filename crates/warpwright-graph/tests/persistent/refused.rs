//! Plans and numbers that have no schedule.

use crate::common::{Choice, ModelConfig};
use crate::{plan_of, schedule_of};
use warpwright_graph::persistent::{Schedule, ScheduleError, ScheduleOptions};
use warpwright_graph::{Arithmetic, Family, KernelDispatch, Plan, PlanOptions};
use warpwright_kernels::persistent::Assignment;
use warpwright_ptx::ir::Arch;

/// Does products itself.
struct OwnProducts;

impl KernelDispatch for OwnProducts {
    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }
}

fn refused(plan: &Plan) -> ScheduleError {
    Schedule::new(plan, &ScheduleOptions::default()).expect_err("no schedule")
}

#[test]
fn steps_of_a_dispatcher() {
    let graph = ModelConfig::small().decode(1, Choice::ArgMax);
    let plan = Plan::new(&graph, &PlanOptions::new(Arch::sm(90), 132), &OwnProducts).expect("a plan");
    let ScheduleError::Overridden { nodes, step } = refused(&plan) else { panic!("another error") };
    assert_eq!((&nodes[..], step), (&["blk.0.attn_q".to_owned()][..], "products"));
}

#[test]
fn several_tokens() {
    let small = ModelConfig::small();
    let plan = plan_of(&small.decode(3, Choice::ArgMax), Arithmetic::Exact);
    assert!(matches!(refused(&plan), ScheduleError::Batch { tokens: 3, .. }));
    let plan = plan_of(&small.prefill(1, 4, Choice::ArgMax), Arithmetic::Exact);
    assert!(matches!(refused(&plan), ScheduleError::Batch { tokens: 4, .. }));
    // One token of a prompt is a product of one token, and attends as a prompt does.
    let plan = plan_of(&small.prefill(1, 1, Choice::ArgMax), Arithmetic::Exact);
    let ScheduleError::Prompt { nodes } = refused(&plan) else { panic!("another error") };
    assert_eq!(nodes, ["blk.0.attention"]);
}

#[test]
fn blocks() {
    let plan = plan_of(&ModelConfig::small().decode(1, Choice::ArgMax), Arithmetic::Exact);
    let schedule = schedule_of(&plan);
    for blocks in [0, 65_536] {
        let error = schedule.assign(blocks, Assignment::Static).expect_err("no assignment");
        assert!(matches!(error, ScheduleError::Blocks { blocks: given } if given == blocks));
    }
    for warps in [0, 3, 16] {
        let mut options = ScheduleOptions::default();
        options.warps = warps;
        let error = Schedule::new(&plan, &options).expect_err("no schedule");
        assert!(matches!(error, ScheduleError::BlockWarps { warps: given } if given == warps));
    }
    // Rotations take four warps.
    let mut options = ScheduleOptions::default();
    options.warps = 2;
    let error = Schedule::new(&plan, &options).expect_err("no schedule");
    assert!(matches!(error, ScheduleError::Op { .. }), "{error}");
}
