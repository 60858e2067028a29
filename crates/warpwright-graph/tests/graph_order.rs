//! Whole graphs: names, roles, versions of states, and an order for their nodes.

mod common;

use common::{Choice, ModelConfig, Random};
use std::collections::HashMap;
use warpwright_graph::{ComputeGraph, Element, GraphError, NodeId, Role, Tensor, TensorOp, TensorType};
use warpwright_kernels::{CacheDtype, TokenSequences, WeightFormat};

fn row() -> TensorType {
    TensorType::f32([1, 8])
}

fn numbers() -> TensorType {
    TensorType::new(Element::U32, [2])
}

/// Where each node is in the order.
fn places(order: &[NodeId]) -> HashMap<usize, usize> {
    order.iter().enumerate().map(|(place, node)| (node.index(), place)).collect()
}

/// Each node once; makers before users; readers of a version before what makes the next.
fn assert_runs(graph: &ComputeGraph) {
    let order = graph.order().expect("an order");
    let places = places(&order);
    assert_eq!((order.len(), places.len()), (graph.nodes().len(), graph.nodes().len()));
    for (i, node) in graph.nodes().iter().enumerate() {
        for (j, other) in graph.nodes().iter().enumerate() {
            let makes = other.outputs.iter().any(|tensor| node.inputs.contains(tensor));
            assert!(!makes || places[&j] < places[&i], "`{}` makes what `{}` takes", other.name, node.name);
            let changed = other.op.changes(other.inputs.len()).map(|(input, _)| other.inputs[input]);
            let overwrites = i != j && { changed }.any(|tensor| node.inputs.contains(&tensor));
            assert!(
                !overwrites || places[&i] < places[&j],
                "`{}` changes what `{}` takes",
                other.name,
                node.name
            );
        }
    }
}

#[test]
fn nodes_are_run_in_an_order_that_works() {
    let mut random = Random::new(1);
    for _ in 0..60 {
        let mut graph = ComputeGraph::new();
        let mut rows = vec![graph.input("x", row()), graph.weight("w", row())];
        let mut states = vec![graph.state("a", row()), graph.state("b", row())];
        for i in 0..random.below(40) {
            let name = format!("n{i}");
            let pick = |random: &mut Random, rows: &[Tensor], states: &[Tensor]| match random.once_in(3) {
                true => random.of(states),
                false => random.of(rows),
            };
            if random.once_in(4) {
                let at = random.below(states.len() as u32) as usize;
                let value = random.of(&rows);
                states[at] = graph.assign(&name, states[at], value).expect("an assignment");
            } else {
                let inputs = [(); 2].map(|()| pick(&mut random, &rows, &states));
                rows.push(graph.add(&name, inputs[0], inputs[1]).expect("a sum"));
            }
        }
        // As they were added they can run: versions only grow.
        let in_order: Vec<usize> = (0..graph.nodes().len()).collect();
        let order = graph.order().expect("an order");
        assert_eq!(order.iter().map(|node| node.index()).collect::<Vec<_>>(), in_order);
        assert_runs(&graph);
    }
}

#[test]
fn models_run() {
    for choice in [Choice::ArgMax, Choice::at_temperature(1.0)] {
        let model = ModelConfig { head_norms: true, ..ModelConfig::small() };
        for graph in [model.decode(2, choice), model.prefill(2, 9, choice), model.layer(1)] {
            assert_runs(&graph);
        }
    }
}

#[test]
fn nodes_that_wait_for_one_another_are_named() {
    let cycle = |graph: &ComputeGraph| match graph.check() {
        Err(GraphError::Cycle { nodes }) => nodes,
        other => panic!("{other:?}"),
    };
    // What is read after it was changed: the reader waits for the second change, which waits for the reader.
    let mut graph = ComputeGraph::new();
    let (x, state) = (graph.input("x", row()), graph.state("s", row()));
    let second = graph.assign("change", state, x).expect("an assignment");
    graph.add("both", state, second).expect("a sum");
    let mut nodes = cycle(&graph);
    nodes.sort();
    assert_eq!(nodes, ["both", "change"]);

    // A state takes the value that it had before it was changed.
    let mut graph = ComputeGraph::new();
    let (x, state) = (graph.input("x", row()), graph.state("s", row()));
    let second = graph.assign("change", state, x).expect("an assignment");
    graph.assign("back", second, state).expect("an assignment");
    let mut nodes = cycle(&graph);
    nodes.sort();
    assert_eq!(nodes, ["back", "change"]);
    let names = GraphError::Cycle { nodes };
    assert_eq!(names.to_string(), "the nodes `back`, `change` wait for one another");
}

#[test]
fn what_is_found_by_name_has_a_name_of_its_own() {
    let role_of = |graph: &mut ComputeGraph, role: Role, name: &str| match role {
        Role::Input => graph.input(name, row()),
        Role::Weight => graph.weight(name, row()),
        Role::State => graph.state(name, row()),
        _ => {
            let x = graph.input("x", row());
            let y = graph.silu(name, x).expect("a node");
            graph.output(y).expect("an output");
            y
        }
    };
    let roles = [Role::Input, Role::Weight, Role::State, Role::Output];
    for first in roles {
        for second in roles {
            if (first, second) == (Role::Output, Role::Output) {
                continue;
            }
            let mut graph = ComputeGraph::new();
            let tensor = role_of(&mut graph, first, "same");
            assert_eq!(graph.named("same"), Some(tensor));
            role_of(&mut graph, second, "same");
            assert_eq!(graph.check(), Err(GraphError::Name { what: "tensors", name: "same".into() }));
        }
    }
    // Intermediate results, and versions of states, are not found by name.
    let mut graph = ComputeGraph::new();
    let (x, state) = (graph.input("x", row()), graph.state("s", row()));
    let y = graph.silu("s", x).expect("a node");
    graph.assign("x", state, y).expect("a node");
    assert_eq!((graph.named("s"), graph.named("x"), graph.named("y")), (Some(state), Some(x), None));
    assert_eq!(graph.check(), Ok(()));
    graph.silu("s", x).expect("a node");
    assert_eq!(graph.check(), Err(GraphError::Name { what: "nodes", name: "s".into() }));
}

#[test]
fn roles_have_their_elements() {
    let q4_k = |dims: [u32; 2]| TensorType::new(Element::Weights(WeightFormat::Q4K), dims);
    let cache = |dtype, dims: [u32; 4]| TensorType::new(Element::Cache(dtype), dims);
    let [numbers, weights_too, caches_too] =
        ["floats or integers", "floats, integers or a weight matrix", "floats, integers or a cache"];
    let (matrix, room) = (q4_k([2, 256]), cache(CacheDtype::F16, [1, 2, 9, 32]));
    let add = |graph: &mut ComputeGraph, role: Role, ty| match role {
        Role::Input => graph.input("t", ty),
        Role::Weight => graph.weight("t", ty),
        _ => graph.state("t", ty),
    };
    for (role, ty, rule) in [
        (Role::Input, matrix, numbers),
        (Role::Input, room, numbers),
        (Role::Input, TensorType::new(Element::Int8, [1, 32]), numbers),
        (Role::Weight, room, weights_too),
        (Role::State, matrix, caches_too),
        (Role::Input, TensorType::f32([4, 0]), "not empty"),
        (Role::Weight, q4_k([2, 300]), "in rows of a multiple of 256, its block"),
        (Role::Weight, TensorType::new(Element::Weights(WeightFormat::F16), [7]), "of 2 dimensions"),
        (Role::State, cache(CacheDtype::Q8_0, [1, 2, 9, 48]), "in rows of a multiple of 32, its block"),
        (Role::State, TensorType::new(Element::Cache(CacheDtype::F16), [9, 32]), "of 4 dimensions"),
        (Role::State, TensorType::f32([u32::MAX; 4]), "of no more than 2^40 elements"),
    ] {
        let mut graph = ComputeGraph::new();
        add(&mut graph, role, ty);
        let error = GraphError::Given { tensor: "t".into(), role, ty, rule: rule.into() };
        assert_eq!(graph.check(), Err(error));
    }
    for (role, ty) in [
        (Role::Input, TensorType::new(Element::U64, [3])),
        (Role::Weight, matrix),
        (Role::Weight, TensorType::f32([7])),
        (Role::State, room),
        (Role::State, TensorType::new(Element::U32, [])),
    ] {
        let mut graph = ComputeGraph::new();
        add(&mut graph, role, ty);
        assert_eq!(graph.check(), Ok(()));
    }
    let mut graph = ComputeGraph::new();
    let (x, state) = (graph.input("x", row()), graph.state("s", row()));
    let version = graph.assign("n", state, x).expect("a node");
    let refused = |tensor: &str, role| Err(GraphError::NoOutput { tensor: tensor.into(), role });
    assert_eq!(graph.output(x), refused("x", Role::Input));
    assert_eq!(graph.output(state), refused("s", Role::State));
    assert_eq!(graph.output(version), refused("n", Role::State));
    let y = graph.silu("y", x).expect("a node");
    assert_eq!((graph.output(y), graph.output(y)), (Ok(()), Ok(())));
}

#[test]
fn tensors_of_other_graphs_are_refused() {
    let mut other = ComputeGraph::new();
    other.input("one", row());
    let theirs = other.input("theirs", row());
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    assert_eq!(graph.add("n", x, theirs), Err(GraphError::Foreign { node: "n".into(), index: 1 }));
    assert_eq!(graph.output(theirs), Err(GraphError::OtherGraph { index: 1 }));
    assert_eq!(graph.ty(theirs), Err(GraphError::OtherGraph { index: 1 }));
    // A clone knows its own additions.
    let mut clone = graph.clone();
    let new = clone.input("new", row());
    assert_eq!(graph.ty(new), Err(GraphError::OtherGraph { index: 1 }));
    assert_eq!((graph.nodes().len(), graph.tensors().len()), (0, 1));
}

#[test]
fn states_change_one_version_after_the_other() {
    let mut graph = ComputeGraph::new();
    let (x, state) = (graph.input("x", numbers()), graph.state("s", numbers()));
    let first = graph.advance("first", &[state]).expect("a node")[0];
    let info = graph.info(first).expect("its own");
    assert_eq!((info.role, info.state), (Role::State, Some(state)));
    let mut forked = graph.clone();
    let second = graph.assign("second", first, x).expect("a node");
    assert_eq!(graph.info(second).map(|info| info.state), Ok(Some(state)));
    assert_eq!(graph.check(), Ok(()));

    // Two nodes take the same version.
    forked.assign("other", state, x).expect("a node");
    let error = GraphError::Forked { state: "s".into(), first: "first".into(), second: "other".into() };
    assert_eq!(forked.check(), Err(error));

    // One node takes a state twice, in one version or two.
    let twice = |op| GraphError::ChangedTwice { node: "n".into(), op, state: "s".into() };
    assert_eq!(graph.advance("n", &[state, state]), Err(twice("advance")));
    assert_eq!(graph.advance("n", &[state, second]), Err(twice("advance")));
    let room = graph.state("s", TensorType::new(Element::Cache(CacheDtype::F32), [1, 1, 4, 8]));
    let kv = graph.input("kv", row());
    let at = graph.input("at", TensorType::new(Element::U32, [1]));
    let op = TensorOp::KvAppend { sequences: TokenSequences::One };
    assert_eq!(graph.node("n", op, &[room, room, kv, kv, at]), Err(twice("kv_append")));

    // What is no state does not change.
    let no_state = |op| GraphError::NoState { node: "n".into(), op, tensor: "x".into() };
    assert_eq!(graph.advance("n", &[second, x]), Err(no_state("advance")));
    assert_eq!(graph.assign("n", x, x), Err(no_state("assign")));
}
