//! What is added to a product's result, what its activations go through first, and in which order steps then stand.

use super::small::{Fused, Graph, HEAD_DIM, WIDTH};
use warpwright_graph::{Element, Fusion, Program, StepOp, Tensor, TensorType};
use warpwright_kernels::WeightFormat;

/// The residual is there before the product, or made between it and the sum: a step has to wait for it.
#[test]
fn residual_from_before_and_after() {
    for late in [false, true] {
        let mut g = Graph::new();
        let (x, mut r) = (g.input("x"), g.input("r"));
        let y = g.product("y", x);
        if late {
            r = g.0.silu("late", r).unwrap();
        }
        let sum = if late { g.add("sum", r, y) } else { g.add("sum", y, r) };
        g.output(sum);
        let fused = g.all();
        let names: &[_] = if late { &["silu", "products"] } else { &["products"] };
        assert_eq!(fused.names(), names);
        let [products] = fused.products()[..] else { panic!("one step") };
        assert_eq!((products.matrices[0].residual, products.matrices[0].out), (Some(r), Some(sum)));
    }
}

/// What the host reads is made, and what others read too.
#[test]
fn residual_of_a_result_that_is_needed() {
    for by_host in [false, true] {
        let mut g = Graph::new();
        let (x, r) = (g.input("x"), g.input("r"));
        let y = g.product("y", x);
        let sum = g.add("sum", y, r);
        g.output(sum);
        if by_host {
            g.output(y);
        } else {
            let other = g.0.silu("other", y).unwrap();
            g.output(other);
        }
        assert_eq!(g.all().formed, []);
    }
}

/// `y + y` is no sum of `y` and something else.
#[test]
fn no_residual_with_itself() {
    let mut g = Graph::new();
    let x = g.input("x");
    let y = g.product("y", x);
    let sum = g.add("sum", y, y);
    g.output(sum);
    assert_eq!(g.all().names(), ["products", "add"]);
}

/// A residual that comes out of the product's own result cannot go into it.
#[test]
fn no_residual_that_depends_on_the_product() {
    let mut g = Graph::new();
    let x = g.input("x");
    let y = g.product("y", x);
    let z = g.product("z", x);
    let r = g.0.silu("r", z).unwrap();
    let sum = g.add("sum", y, r);
    g.output(sum);
    // As one step, y would wait for r, and r for z.
    let fused = g.all();
    assert_eq!(fused.names(), ["products", "silu", "add"]);
    // Apart, they do not.
    let fused = g.fused(&[Fusion::Residual], |_, _| true);
    assert_eq!(fused.names(), ["products", "silu", "products"]);
    assert_eq!(fused.products()[1].matrices[0].residual, Some(r));
}

/// Two results of one launch are no residuals of one another.
#[test]
fn no_residual_from_the_same_launch() {
    let mut g = Graph::new();
    let x = g.input("x");
    let (y, z) = (g.product("y", x), g.product("z", x));
    let sum = g.add("sum", y, z);
    g.output(sum);
    assert_eq!(g.all().names(), ["products", "add"]);
}

/// Of two products either can take the other: the later one does, unless its kernel cannot.
#[test]
fn sum_of_two_products() {
    let mut g = Graph::new();
    let (a, b) = (g.input("a"), g.input("b"));
    let y = g.product_as("y", a, WeightFormat::Q4K);
    let z = g.product_as("z", b, WeightFormat::Q6K);
    let sum = g.add("sum", y, z);
    g.output(sum);
    let taken = |fused: &Fused| -> Vec<Option<Tensor>> {
        fused.products().iter().map(|products| products.matrices[0].residual).collect()
    };
    assert_eq!(taken(&g.all()), [None, Some(y)]);
    let only_q4k = |op: &StepOp, program: &Program| match op {
        StepOp::Products(products) => products
            .matrices
            .iter()
            .all(|matrix| program.ty(matrix.weight).element == Element::Weights(WeightFormat::Q4K)),
        _ => false,
    };
    let fused = g.fused(&Fusion::ALL, only_q4k);
    assert_eq!(taken(&fused), [None, Some(z)]);
    assert_eq!(fused.products()[1].x, a);
}

/// One residual for each product: a second sum stays.
#[test]
fn sums_in_a_row() {
    let mut g = Graph::new();
    let (x, r, s) = (g.input("x"), g.input("r"), g.input("s"));
    let y = g.product("y", x);
    let one = g.add("one", y, r);
    let two = g.add("two", one, s);
    g.output(two);
    assert_eq!(g.all().names(), ["products", "add"]);
}

/// A norm joins one step of products, and no other.
#[test]
fn norms_and_who_takes_them() {
    type Consumers = fn(&mut Graph, Tensor) -> Vec<Tensor>;
    let cases: [(&str, Consumers, &[&str]); 5] = [
        ("one product", |g, h| vec![g.product("y", h)], &["products"]),
        ("products that are one step", |g, h| vec![g.product("y", h), g.product("z", h)], &["products"]),
        (
            "a product and a sum",
            |g, h| {
                let y = g.product("y", h);
                vec![g.add("sum", y, h)]
            },
            &["norm", "products"],
        ),
        ("no product", |g, h| vec![g.0.silu("y", h).unwrap()], &["norm", "silu"]),
        (
            "a product, and the host",
            |g, h| {
                g.output(h);
                vec![g.product("y", h)]
            },
            &["norm", "products"],
        ),
    ];
    for (case, consumers, names) in cases {
        let mut g = Graph::new();
        let x = g.input("x");
        let h = g.norm("h", x);
        for made in consumers(&mut g, h) {
            g.output(made);
        }
        assert_eq!(g.all().names(), names, "{case}");
    }
}

/// A norm of heads is none of rows.
#[test]
fn norms_of_heads_stay_out_of_products() {
    let mut g = Graph::new();
    let x = g.input("x");
    let w = g.0.weight("w", TensorType::f32([HEAD_DIM]));
    let h = g.0.head_norm("h", x, w, HEAD_DIM, 1e-5).unwrap();
    let y = g.product("y", h);
    g.output(y);
    assert_eq!(g.all().names(), ["norm", "products"]);
}

/// Where products are not gathered, the norm that they share is done once.
#[test]
fn a_shared_norm_is_done_once() {
    let mut g = Graph::new();
    let x = g.input("x");
    let h = g.norm("h", x);
    for name in ["y", "z"] {
        let y = g.product(name, h);
        g.output(y);
    }
    let fused = g.fused(&[Fusion::NormProduct], |_, _| true);
    assert_eq!(fused.names(), ["norm", "products", "products"]);
}

/// A product that reads a state cannot wait for the sum that comes after the state has changed.
#[test]
fn no_step_reads_a_state_too_late() {
    let mut g = Graph::new();
    let state = g.0.state("state", TensorType::f32([1, WIDTH]));
    let value = g.input("value");
    let y = g.product("y", state);
    let next = g.0.assign("assign", state, value).unwrap();
    let r = g.0.silu("r", next).unwrap();
    let sum = g.add("sum", y, r);
    g.output(sum);
    let fused = g.all();
    assert_eq!(fused.formed, []);
    assert_eq!(fused.names(), ["products", "assign", "silu", "add"]);
}

/// Steps that have nothing to do with what is merged keep their order.
#[test]
fn the_order_is_stable() {
    let mut g = Graph::new();
    let x = g.input("x");
    let inputs: Vec<Tensor> = (0..4).map(|i| g.input(&format!("i{i}"))).collect();
    let mut outs = Vec::new();
    let y = g.product("y", x);
    let of_y = g.0.silu("of_y", y).unwrap();
    for &input in &inputs {
        outs.push(g.0.silu(&format!("s{}", outs.len()), input).unwrap());
    }
    let z = g.product("z", x);
    for &made in [of_y, z].iter().chain(&outs) {
        g.output(made);
    }
    let fused = g.all();
    let made: Vec<Tensor> = fused.program.steps().iter().flat_map(|step| step.op.writes()).collect();
    assert_eq!(made, [outs.clone(), vec![y, z, of_y]].concat());
}
