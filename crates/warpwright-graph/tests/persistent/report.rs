//! Reports: what they say is what the schedule is, and its times are those of the model.

use crate::common::{Choice, ModelConfig};
use crate::{assigned, models, plan_of, schedule_of};
use warpwright_graph::persistent::render::{ScheduleReport, VERSION};
use warpwright_graph::persistent::{Appended, Operand, Origin, Schedule, ScheduleOptions, check};
use warpwright_graph::{ArgSource, Arithmetic, ComputeGraph, KernelLibrary, Plan, PlanOptions, TensorType};
use warpwright_kernels::Publish;
use warpwright_kernels::persistent::Assignment;
use warpwright_ptx::ir::Arch;

/// A schedule with the launch that hands its token to the host.
fn publishing(plan: &Plan) -> Schedule {
    let mut options = ScheduleOptions::default();
    options.appended.extend(Appended::publish(plan, Publish::new(64, 2)));
    Schedule::new(plan, &options).expect("a schedule")
}

#[test]
fn reports_add_up() {
    for seed in 0..12 {
        let (_, graph) = models::random(seed);
        let plan = plan_of(&graph, Arithmetic::Int8);
        let schedule = publishing(&plan);
        for assignment in Assignment::ALL {
            let assigned = assigned(&plan, &schedule, 11, assignment);
            let report = ScheduleReport::new(&schedule, &plan, &assigned);
            let read: ScheduleReport =
                serde_json::from_str(&report.to_json().expect("a text")).expect("a report");
            assert_eq!(read, report);
            assert_eq!((report.version, report.blocks.len()), (VERSION, 11));
            let totals = report.totals;
            assert_eq!(totals.barriers, report.phases.len());
            assert_eq!(totals.items, report.instances.iter().map(|instance| instance.items).sum::<usize>());
            assert_eq!(totals.bytes, report.instances.iter().map(|instance| instance.bytes).sum::<u64>());
            assert_eq!(totals.instances, report.ops.iter().map(|op| op.instances).sum::<usize>());
            let tiles = |i: usize| -> u64 {
                let items = report.items.iter().filter(|item| item.instance == i);
                items.map(|item| u64::from(item.end - item.first)).sum()
            };
            for (i, instance) in report.instances.iter().enumerate() {
                assert_eq!(tiles(i), instance.tiles);
            }
            for (block, of) in (0..).zip(&report.blocks) {
                let items = || report.items.iter().filter(|item| item.block == block);
                assert_eq!(items().map(|item| item.to - item.from).sum::<u64>(), of.busy);
                assert!((of.idle - (1.0 - of.busy as f64 / totals.cost as f64)).abs() <= 5e-5);
                // A block does one thing at a time.
                let mut times: Vec<(u64, u64)> = items().map(|item| (item.from, item.to)).collect();
                times.sort_unstable();
                assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            }
            for item in &report.items {
                let phase = &report.phases[report.instances[item.instance].phase];
                assert!(phase.from <= item.from && item.to <= phase.to);
                // What is waited for is done.
                let Some(wait) = item.wait else { continue };
                let counting = || report.items.iter().filter(|other| other.signal == Some(wait.counter));
                assert_eq!(counting().count(), wait.value as usize);
                assert!(counting().all(|other| other.to <= item.from));
            }
            let last = report.instances.last().expect("instances");
            assert_eq!((&*last.does, last.step), ("appended", None));
            assert_eq!(last.makes, ["ring", "control", "progress"]);
        }
    }
}

/// Of equal tiles every block has as many, and none waits.
#[test]
fn equal_shares_leave_nobody_idle() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 256]));
    let format = warpwright_graph::Element::Weights(warpwright_kernels::WeightFormat::Q8_0);
    let w = graph.weight("w", TensorType::new(format, [16 * 64, 256]));
    let y = graph.mat_mul("y", x, w, None).expect("a product");
    graph.output(y).expect("an output");
    let plan = Plan::new(&graph, &PlanOptions::new(Arch::sm(80), 108), &KernelLibrary).expect("a plan");
    let schedule = schedule_of(&plan);
    for assignment in Assignment::ALL {
        let assigned = assigned(&plan, &schedule, 8, assignment);
        let report = ScheduleReport::new(&schedule, &plan, &assigned);
        assert_eq!(report.totals.idle, 0.0, "{assignment}");
        // 8 of its 64 tiles, and their rounds.
        let instance = &schedule.instances[0];
        let rounds = 8u64.div_ceil(8 / u64::from(instance.call.warps()));
        if assignment == Assignment::Static {
            assert_eq!(report.totals.cost, instance.bytes / 8 + rounds * schedule.costs.round);
        }
    }
    // A ninth block has less to do than the others, by what a tile costs.
    let assigned = assigned(&plan, &schedule, 9, Assignment::Static);
    let report = ScheduleReport::new(&schedule, &plan, &assigned);
    assert!(report.totals.idle > 0.0 && report.blocks.iter().any(|block| block.idle == 0.0));
}

/// The token is what the plan chooses, the rest is somebody else's; it comes after everything of the plan.
#[test]
fn the_token_is_published_at_the_end() {
    for choice in [Choice::ArgMax, Choice::at_temperature(0.5)] {
        let plan = plan_of(&ModelConfig::small().decode(1, choice), Arithmetic::Exact);
        let schedule = publishing(&plan);
        let last = schedule.instances.last().expect("instances");
        assert_eq!(last.origin, Origin::Appended(0));
        let token = plan.tensor("tokens").expect("tokens");
        let source = ArgSource::Tensor { tensor: token, plane: 0, at: 0, len: 1 };
        assert_eq!(last.args[0], ("tokens", Operand::Plan(source)));
        assert!(last.args[1..].iter().all(|&(name, operand)| operand == Operand::External(name)));
        let phase = schedule.phases.last().expect("phases");
        assert!(phase.stages.iter().any(|stage| stage.instances.contains(&(schedule.instances.len() - 1))));
        assert!(schedule.barriers() <= 5 * 2 + 4);
        // Before the token is chosen it cannot be told.
        let mut early = schedule.clone();
        let publish = early.instances.len() - 1;
        for stage in early.phases.iter_mut().flat_map(|phase| &mut phase.stages) {
            stage.instances.retain(|&instance| instance != publish);
        }
        early.phases.iter_mut().for_each(|phase| phase.stages.retain(|stage| !stage.instances.is_empty()));
        early.phases[0].stages[0].instances.push(publish);
        let assigned = early.assign(4, Assignment::Static).expect("an assignment");
        assert!(check(&early, &plan, &assigned).is_err());
    }
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", TensorType::f32([1, 32]));
    let y = graph.silu("y", x).expect("a node");
    graph.output(y).expect("an output");
    let plan = Plan::new(&graph, &PlanOptions::new(Arch::sm(80), 108), &KernelLibrary).expect("a plan");
    assert!(Appended::publish(&plan, Publish::new(64, 2)).is_none(), "nothing is chosen");
}

/// The picture has every item where its block and its time are.
#[test]
fn pictures_have_every_item() {
    let plan = plan_of(&ModelConfig::small().decode(1, Choice::ArgMax), Arithmetic::Exact);
    let schedule = publishing(&plan);
    let assigned = assigned(&plan, &schedule, 5, Assignment::Static);
    let report = ScheduleReport::new(&schedule, &plan, &assigned);
    let svg = report.to_svg();
    let elements = |class: &str| -> Vec<&str> {
        let begin = format!("class=\"{class}\" ");
        svg.lines().filter_map(|line| line.split(&*begin).nth(1)).collect()
    };
    let number = |element: &str, name: &str| -> f64 {
        let value = element.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {element}"))
    };
    let items = elements("item");
    assert_eq!(items.len(), report.items.len());
    let area = elements("idle")[0];
    let scale = number(area, "width") / report.totals.cost as f64;
    for (item, element) in report.items.iter().zip(items) {
        assert_eq!(number(element, "data-instance") as usize, item.instance);
        let x = number(area, "x") + scale * item.from as f64;
        assert!((number(element, " x") - x).abs() < 0.1, "{element}");
        let row = number(area, "height") / 5.0;
        assert!((number(element, " y") - number(area, " y") - row * f64::from(item.block)).abs() < 0.1);
    }
    assert_eq!(elements("barrier").len(), report.phases.len());
}
