//! Whole graphs: names, roles, versions of states, and an order for nodes that were added in any.

mod common;

use common::{Choice, ModelConfig, Random};
use std::collections::HashMap;
use warpwright_graph::{ComputeGraph, Element, GraphError, Node, NodeId, Role, Tensor, TensorOp, TensorType};
use warpwright_kernels::{CacheDtype, TokenSequences, WeightFormat};

fn row() -> TensorType {
    TensorType::f32([1, 8])
}

fn numbers() -> TensorType {
    TensorType::new(Element::U32, [2])
}

/// Adds a node that adds two tensors to make a declared one.
#[track_caller]
fn sum(graph: &mut ComputeGraph, name: &str, inputs: [Tensor; 2], output: Tensor) {
    graph.define(name, TensorOp::Add, &inputs, &[output]).expect("a sum");
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

/// The same nodes, added in a random order: every tensor that a node makes is declared first.
fn shuffled(graph: &ComputeGraph, random: &mut Random) -> ComputeGraph {
    let mut copy = ComputeGraph::new();
    let mut tensors: Vec<Tensor> = Vec::new();
    for (info, made) in graph.tensors().iter().zip(graph.handles()) {
        tensors.push(match (info.role, info.state) {
            (Role::Input, _) => copy.input(&info.name, info.ty),
            (Role::Weight, _) => copy.weight(&info.name, info.ty),
            (Role::State, None) => copy.state(&info.name, info.ty),
            (Role::State, Some(state)) => {
                copy.declare_version(&info.name, tensors[state.index()]).expect("a version")
            }
            (Role::Output, _) => {
                let tensor = copy.declare(&info.name, info.ty);
                copy.output(tensor).expect("an output");
                tensor
            }
            (Role::Intermediate, _) => copy.declare(&info.name, info.ty),
        });
        assert_eq!(tensors.len(), made.index() + 1);
    }
    let mut nodes: Vec<&Node> = graph.nodes().iter().collect();
    while !nodes.is_empty() {
        let node = nodes.swap_remove(random.below(nodes.len() as u32) as usize);
        let all = |list: &[Tensor]| list.iter().map(|tensor| tensors[tensor.index()]).collect::<Vec<_>>();
        copy.define(&node.name, node.op, &all(&node.inputs), &all(&node.outputs)).expect("the same node");
    }
    copy
}

#[test]
fn nodes_that_were_added_in_any_order_are_run_in_one_that_works() {
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
        for _ in 0..3 {
            assert_runs(&shuffled(&graph, &mut random));
        }
    }
}

#[test]
fn models_run_in_whatever_order_they_are_written() {
    let mut random = Random::new(2);
    for choice in [Choice::ArgMax, Choice::at_temperature(1.0)] {
        let model = ModelConfig { head_norms: true, ..ModelConfig::small() };
        for graph in [model.decode(2, choice), model.prefill(2, 9, choice), model.layer(1)] {
            assert_runs(&graph);
            assert_runs(&shuffled(&graph, &mut random));
        }
    }
}

#[test]
fn nodes_that_wait_for_one_another_are_named() {
    let cycle = |graph: &ComputeGraph| match graph.check() {
        Err(GraphError::Cycle { nodes }) => nodes,
        other => panic!("{other:?}"),
    };
    // A node that takes what it makes.
    let mut graph = ComputeGraph::new();
    let (x, y) = (graph.input("x", row()), graph.declare("y", row()));
    sum(&mut graph, "self", [x, y], y);
    assert_eq!(cycle(&graph), ["self"]);

    for count in 2..6 {
        let mut graph = ComputeGraph::new();
        let x = graph.input("x", row());
        let first = graph.add("before", x, x).expect("a sum");
        let rows: Vec<Tensor> = (0..count).map(|i| graph.declare(&format!("t{i}"), row())).collect();
        graph.add("downstream", rows[0], x).expect("a sum");
        for i in 0..count {
            sum(&mut graph, &format!("n{i}"), [rows[i], first], rows[(i + 1) % count]);
        }
        let after = graph.add("after", rows[0], rows[1]).expect("a sum");
        graph.add("last", after, x).expect("a sum");
        let mut nodes = cycle(&graph);
        // Those in the cycle and no others, each after the one whose result it takes.
        let zero = nodes.iter().position(|node| node == "n0").expect("n0 is one of them");
        nodes.rotate_left(zero);
        assert_eq!(nodes, (0..count).map(|i| format!("n{i}")).collect::<Vec<_>>());
    }

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
fn every_tensor_is_made_once() {
    let mut graph = ComputeGraph::new();
    let (x, y) = (graph.input("x", row()), graph.declare("y", row()));
    let sum_of_both = graph.add("sum", x, y).expect("a sum");
    let missing = GraphError::Missing { node: "sum".into(), op: "add", tensor: "y".into() };
    assert_eq!(graph.order(), Err(missing));

    sum(&mut graph, "first", [x, x], y);
    assert_eq!(graph.check(), Ok(()));
    let whole = graph.clone();
    sum(&mut graph, "second", [x, x], y);
    let twice = |node: &str, tensor: &str, by: &str| {
        Err(GraphError::MadeTwice { node: node.into(), tensor: tensor.into(), by: by.into() })
    };
    assert_eq!(graph.check(), twice("second", "y", "node `first`"));

    for role in [Role::Input, Role::Weight, Role::State] {
        let mut graph = whole.clone();
        let given = match role {
            Role::Input => graph.input("given", row()),
            Role::Weight => graph.weight("given", row()),
            _ => graph.state("given", row()),
        };
        sum(&mut graph, "made", [sum_of_both, y], given);
        assert_eq!(graph.check(), twice("made", "given", "the host"));
    }

    let mut graph = whole;
    let z = graph.declare("z", row());
    graph.output(z).expect("an output");
    assert_eq!(graph.check(), Err(GraphError::MissingOutput { tensor: "z".into() }));
    sum(&mut graph, "third", [x, y], z);
    assert_eq!(graph.check(), Ok(()));
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
    let foreign = |what, index| GraphError::Foreign { node: "n".into(), what, index };
    assert_eq!(graph.add("n", x, theirs), Err(foreign("input", 1)));
    assert_eq!(graph.define("n", TensorOp::Add, &[x, x], &[theirs]), Err(foreign("output", 0)));
    assert_eq!(graph.output(theirs), Err(GraphError::OtherGraph { index: 1 }));
    assert_eq!(graph.ty(theirs), Err(GraphError::OtherGraph { index: 1 }));
    assert_eq!(graph.declare_version("v", theirs), Err(GraphError::OtherGraph { index: 1 }));
    // A clone knows its own additions.
    let mut clone = graph.clone();
    let new = clone.input("new", row());
    assert_eq!(graph.ty(new), Err(GraphError::OtherGraph { index: 1 }));
    assert_eq!((graph.nodes().len(), graph.tensors().len()), (0, 1));
}

#[test]
fn what_is_defined_is_what_was_declared() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    let wide = graph.declare("wide", TensorType::f32([1, 9]));
    let right = graph.declare("right", row());
    assert_eq!(
        graph.define("n", TensorOp::Add, &[x, x], &[wide]),
        Err(GraphError::Output {
            node: "n".into(),
            op: "add",
            index: 0,
            declared: TensorType::f32([1, 9]),
            inferred: row()
        })
    );
    let outputs = |declared| GraphError::Outputs { node: "n".into(), op: "add", declared, made: 1 };
    assert_eq!(graph.define("n", TensorOp::Add, &[x, x], &[]), Err(outputs(0)));
    assert_eq!(graph.define("n", TensorOp::Add, &[x, x], &[right, right]), Err(outputs(2)));
    let node = graph.define("n", TensorOp::Add, &[x, x], &[right]).expect("a node");
    assert_eq!(graph.node_of(node).map(|node| &*node.name), Some("n"));
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

    // What is no state does not change, and has no versions.
    let no_state = |op| GraphError::NoState { node: "n".into(), op, tensor: "x".into() };
    assert_eq!(graph.advance("n", &[second, x]), Err(no_state("advance")));
    assert_eq!(graph.assign("n", x, x), Err(no_state("assign")));
    let none = GraphError::NotAState { tensor: "x".into(), role: Role::Input };
    assert_eq!(graph.declare_version("v", x), Err(none));
}

#[test]
fn versions_are_declared_of_the_state_that_changes() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", row());
    let [a, b] = ["a", "b"].map(|name| graph.state(name, row()));
    let version = |declared: Option<&str>, changed: Option<&str>| {
        let op = if changed.is_some() { "assign" } else { "add" };
        let own = |name: Option<&str>| name.map(String::from);
        Err(GraphError::Version {
            node: "n".into(),
            op,
            index: 0,
            declared: own(declared),
            changed: own(changed),
        })
    };
    let of_b = graph.declare_version("v", b).expect("a version");
    assert_eq!(graph.define("n", TensorOp::Assign, &[a, x], &[of_b]), version(Some("b"), Some("a")));
    assert_eq!(graph.define("n", TensorOp::Add, &[x, x], &[of_b]), version(Some("b"), None));
    // An output is no version, or the state would not change where it is.
    let output = graph.declare("o", row());
    graph.output(output).expect("an output");
    assert_eq!(graph.define("n", TensorOp::Assign, &[a, x], &[output]), version(None, Some("a")));
    assert_eq!(graph.nodes(), &[]);
    // What was declared without a word becomes a version.
    let plain = graph.declare("p", row());
    graph.define("n", TensorOp::Assign, &[a, x], &[plain]).expect("a node");
    assert_eq!(graph.info(plain).map(|info| (info.role, info.state)), Ok((Role::State, Some(a))));
    graph.define("m", TensorOp::Assign, &[b, plain], &[of_b]).expect("a node");
    sum(&mut graph, "sum", [x, x], output);
    assert_eq!(graph.check(), Ok(()));
}
