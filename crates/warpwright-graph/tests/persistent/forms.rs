//! Phases, stages and tiles.

use crate::common::{Choice, ModelConfig};
use crate::{assigned, models, plan_of, schedule_of};
use std::collections::HashSet;
use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{ArgDesc, K, LaunchRule};
use warpwright_graph::persistent::{Appended, Operand, Origin, Schedule, ScheduleOptions};
use warpwright_graph::{ArgSource, Arithmetic, Element, Fusions, Plan, PlanOptions, WeightLayout};
use warpwright_kernels::persistent::Assignment;
use warpwright_ptx::ir::Arch;

/// The steps of each stage of each phase, by what they do.
fn steps(plan: &Plan, schedule: &Schedule) -> Vec<Vec<Vec<&'static str>>> {
    let name = |&instance: &usize| match schedule.instances[instance].origin {
        Origin::Plan { step, .. } => plan.program().steps()[step].op.name(),
        Origin::Appended(_) => "appended",
    };
    let stages = |phase: &warpwright_graph::persistent::Phase| {
        phase.stages.iter().map(|stage| stage.instances.iter().map(name).collect()).collect()
    };
    schedule.phases.iter().map(stages).collect()
}

/// Bytes of the planes that a plan's steps read: each matrix once.
fn weight_bytes(plan: &Plan) -> u64 {
    let matrices = plan.weights().iter().filter(|weight| weight.layouts.contains(&WeightLayout::Planes));
    matrices
        .map(|weight| {
            let ty = plan.program().ty(weight.tensor);
            let Element::Weights(format) = ty.element else { panic!("planes of {ty}") };
            WeightLayout::Planes.bytes(format, ty.shape.rows() as u32, ty.shape.columns())
        })
        .sum()
}

#[test]
fn a_layer_has_five_phases() {
    let model = ModelConfig::llama_3_2_1b();
    let plan = plan_of(&model.decode(1, Choice::at_temperature(0.7)), Arithmetic::Exact);
    let schedule = schedule_of(&plan);
    let steps = steps(&plan, &schedule);
    assert_eq!(steps.len(), 5 * 16 + 2);
    assert_eq!(steps[0], [vec!["embedding"], vec!["products"; 3]]);
    assert_eq!(steps[1], [["rope"], ["attention"]]);
    assert_eq!(steps[2..5], [[["products"]], [["products"]], [["products"]]]);
    assert_eq!(steps[5], [["products"; 3]]);
    assert_eq!(steps[80], [["products"]], "the logits");
    // What the draw reads the counters of is what advances them.
    assert_eq!(steps[81], [vec!["sample"], vec!["advance", "assign"]]);
}

#[test]
fn odd_heads_and_penalties_take_stages() {
    let graph = models::odd_heads_and_penalties().expect("a graph");
    for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
        let plan = plan_of(&graph, arithmetic);
        let schedule = schedule_of(&plan);
        let steps = steps(&plan, &schedule);
        assert_eq!(
            steps,
            [
                vec![vec!["embedding"], vec!["products"; 3]],
                // The keys that were widened lie where the queries were that are not.
                vec![vec!["resize_heads"], vec!["resize_heads"; 2], vec!["rope"], vec!["attention"]],
                vec![vec!["resize_heads"], vec!["products"]],
                vec![vec!["products"]],
                // A copy of the logits, and what lowers it.
                vec![vec!["penalties"], vec!["penalties"], vec!["sample"], vec!["advance", "assign"]],
            ]
        );
        for assignment in Assignment::ALL {
            for blocks in [1, 3, 32] {
                assigned(&plan, &schedule, blocks, assignment);
            }
        }
    }
}

#[test]
fn models_of_all_kinds_have_schedules() {
    let mut codes = HashSet::new();
    for seed in 0..60 {
        let (model, graph) = models::random(seed);
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let plan = plan_of(&graph, arithmetic);
            let schedule = schedule_of(&plan);
            let most = 5 * model.layers as usize + 4;
            assert!(schedule.barriers() <= most, "{model:?}: {} barriers", schedule.barriers());
            assert_eq!(schedule.weight_bytes(), weight_bytes(&plan), "{model:?}");
            codes.extend(schedule.ops.iter().map(warpwright_kernels::persistent::Op::name));
            for blocks in [1, 2, 7, 32, 132] {
                for assignment in Assignment::ALL {
                    assigned(&plan, &schedule, blocks, assignment);
                }
            }
        }
    }
    assert!(codes.len() > 20, "{codes:?}");
}

#[test]
fn real_models_have_schedules() {
    for (name, model) in ModelConfig::real() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            let plan = plan_of(&model.decode(1, Choice::ArgMax), arithmetic);
            let schedule = schedule_of(&plan);
            assert_eq!(schedule.barriers(), 5 * model.layers as usize + 2, "{name}");
            assert_eq!(schedule.weight_bytes(), weight_bytes(&plan), "{name}");
            assigned(&plan, &schedule, 132, Assignment::Static);
        }
    }
}

#[test]
fn what_is_not_fused_is_done_in_stages() {
    for seed in 0..20 {
        let (model, graph) = models::random(seed);
        let mut options = PlanOptions::new(Arch::sm(80), 108);
        options.fusions = Fusions::none();
        let Ok(plan) = Plan::new(&graph, &options, &warpwright_graph::KernelLibrary) else { continue };
        let schedule = schedule_of(&plan);
        assert!(schedule.barriers() <= 5 * model.layers as usize + 4, "{model:?}");
        for assignment in Assignment::ALL {
            assigned(&plan, &schedule, 13, assignment);
        }
    }
}

#[test]
fn a_product_of_several_matrices_is_balanced() {
    let plan = plan_of(&ModelConfig::llama_3_8b().decode(1, Choice::ArgMax), Arithmetic::Exact);
    let schedule = schedule_of(&plan);
    let assigned = assigned(&plan, &schedule, 132, Assignment::Static);
    // Of each phase that is a product alone, no block does more than a tile or two more than another.
    for (p, phase) in schedule.phases.iter().enumerate() {
        let [stage] = &phase.stages[..] else { continue };
        let instance = |i: usize| &schedule.instances[i];
        if !stage.instances.iter().all(|&i| instance(i).weight_bytes > 0) {
            continue;
        }
        let bytes = |block: usize| -> u64 {
            let list = assigned.lists[p * 132 + block].clone();
            list.map(|item| {
                let item = assigned.items[item as usize];
                let instance = instance(item.instance);
                instance.bytes * u64::from(item.end - item.first) / instance.tiles()
            })
            .sum()
        };
        let (least, most) = (0..132).map(bytes).fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        let tile = stage.instances.iter().map(|&i| instance(i).bytes / instance(i).tiles()).max();
        assert!(most - least <= 2 * tile.unwrap_or(0), "phase {p}: {least} to {most} bytes");
    }
}

/// Kernels of one entry whose bodies differ.
struct Stores {
    value: u32,
}

impl AnyKernel for Stores {
    fn entry(&self) -> String {
        "stores".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("y", 1)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let y = k.ptr_mut::<u32>("y");
        k.when(k.tid().eq(0), || y.st(0, self.value));
    }
}

#[test]
fn kernels_of_one_entry_and_different_bodies_are_different_ops() {
    let (_, graph) = models::random(3);
    let plan = plan_of(&graph, Arithmetic::Exact);
    let mut options = ScheduleOptions::default();
    options.appended = [7, 8, 7]
        .map(|value| Appended {
            kernel: Arc::new(Stores { value }),
            args: vec![("y", Operand::External("y"))],
            dims: Vec::new(),
        })
        .to_vec();
    let schedule = Schedule::new(&plan, &options).expect("a schedule");
    let appended =
        schedule.instances.iter().filter(|instance| matches!(instance.origin, Origin::Appended(_)));
    let ops: Vec<_> = appended.map(|instance| instance.op).collect();
    assert!(ops.len() == 3 && ops[0] == ops[2] && ops[0] != ops[1], "{ops:?}");
}

/// Whatever a kernel reads through the read-only cache is a weight.
#[test]
fn constant_arguments_are_weights() {
    let (_, graph) = models::random(3);
    let plan = plan_of(&graph, Arithmetic::Exact);
    let schedule = schedule_of(&plan);
    let mut constant = 0;
    for instance in &schedule.instances {
        for (desc, operand) in instance.operands().filter(|(desc, _)| desc.constant) {
            let weight = match operand {
                Operand::Plan(ArgSource::Weights { .. }) => true,
                Operand::Plan(ArgSource::Tensor { tensor, .. }) => {
                    plan.program().info(tensor).role == warpwright_graph::Role::Weight
                }
                _ => false,
            };
            assert!(weight, "{}: `{}`", instance.kernel(), desc.name);
            constant += 1;
        }
    }
    assert!(constant > 10);
}
