//! Products of one input, and gated linear units.

use super::small::{Fused, Graph, WIDTH};
use super::terms::Terms;
use std::cell::Cell;
use warpwright_graph::{Element, Fusion, Fusions, Pointwise, Program, StepOp, TensorType, fuse};
use warpwright_kernels::{Activation, WeightFormat};

/// Biases and formats are each matrix's own.
#[test]
fn q_k_v_with_biases_and_formats() {
    let mut g = Graph::new();
    let x = g.input("x");
    let mut expected = Vec::new();
    for (i, format) in [WeightFormat::Q4K, WeightFormat::F16, WeightFormat::Q6K].into_iter().enumerate() {
        let w = g.weight(&format!("w{i}"), format);
        let bias = (i != 1).then(|| g.0.weight(&format!("bias{i}"), TensorType::f32([WIDTH])));
        let y = g.0.mat_mul(&format!("y{i}"), x, w, bias).unwrap();
        g.output(y);
        expected.push((w, bias, Some(y)));
    }
    let fused = g.all();
    let [products] = fused.products()[..] else { panic!("one step") };
    let matrices: Vec<_> = products.matrices.iter().map(|m| (m.weight, m.bias, m.out)).collect();
    assert_eq!(matrices, expected);
}

/// More matrices than a launch takes are as few launches as can be; a format that goes with no other stays.
#[test]
fn groups_are_the_largest_that_are_accepted() {
    let mut g = Graph::new();
    let x = g.input("x");
    for i in 0..7 {
        let format = if i == 2 { WeightFormat::F16 } else { WeightFormat::Q4K };
        let y = g.product_as(&format!("y{i}"), x, format);
        g.output(y);
    }
    let accepts = |op: &StepOp, program: &Program| {
        let StepOp::Products(products) = op else { return false };
        let formats = products.matrices.iter().map(|matrix| program.ty(matrix.weight).element);
        let floats = formats.filter(|&e| e == Element::Weights(WeightFormat::F16)).count();
        products.matrices.len() <= 4 && floats == 0
    };
    let fused = g.fused(&Fusion::ALL, accepts);
    let mut matrices = fused.matrices();
    matrices.sort_unstable();
    assert_eq!(matrices, [1, 2, 4]);
    assert_eq!(fused.formed[0].nodes.len(), 4);
}

/// A dispatcher that has a kernel for three matrices and none for two gets three.
#[test]
fn three_or_none() {
    let mut g = Graph::new();
    let x = g.input("x");
    for i in 0..5 {
        let y = g.product(&format!("y{i}"), x);
        g.output(y);
    }
    let three = |op: &StepOp, _: &Program| matches!(op, StepOp::Products(p) if p.matrices.len() == 3);
    assert_eq!(g.fused(&Fusion::ALL, three).matrices(), [3, 1, 1]);
}

/// Of many products as many as a launch takes, and the dispatcher is not asked without end.
#[test]
fn many_products() {
    for most in [1, 4, 48] {
        let mut g = Graph::new();
        let x = g.input("x");
        for i in 0..48 {
            let y = g.product(&format!("y{i}"), x);
            g.output(y);
        }
        let asked = Cell::new(0);
        let fused = g.fused(&Fusion::ALL, |op, _| {
            asked.set(asked.get() + 1);
            matches!(op, StepOp::Products(products) if products.matrices.len() <= most)
        });
        assert_eq!(fused.matrices(), vec![most; 48 / most]);
        assert!(asked.get() < 2000, "{} questions", asked.get());
    }
}

/// A product that takes what comes of another one's result is not in its launch, though both take `x`.
#[test]
fn products_that_wait_for_one_another_stay_apart() {
    let mut g = Graph::new();
    let (x, r) = (g.input("x"), g.input("r"));
    let y = g.product("y", x);
    let gate = g.0.silu("gate", y).unwrap();
    let z = g.product("z", x);
    let sum = g.add("sum", z, gate);
    let other = g.product("other", x);
    let last = g.add("last", other, r);
    g.output(sum);
    g.output(last);
    // With the residuals in first, z waits for y; the third is free to go with either.
    let mut program = Program::new(&g.0).unwrap();
    fuse(&mut program, Fusions::none().with(Fusion::Residual), &|_, _, _| true);
    fuse(&mut program, Fusions::none().with(Fusion::SharedProducts), &|_, _, _| true);
    program.check().unwrap();
    let fused = Fused { program, formed: Vec::new() };
    assert_eq!(fused.matrices(), [2, 1]);
    let mut terms = Terms::default();
    assert_eq!(terms.of_program(&fused.program), terms.of_graph(&g.0));
}

/// Experts with the same matrix twice: each product is one of its own.
#[test]
fn weights_may_repeat() {
    let mut g = Graph::new();
    let (x, other) = (g.input("x"), g.input("other"));
    let w = g.weight("w", WeightFormat::Q4K);
    for (name, x) in [("a", x), ("b", x), ("c", other)] {
        let y = g.0.mat_mul(name, x, w, None).unwrap();
        g.output(y);
    }
    let fused = g.all();
    assert_eq!(fused.matrices(), [2, 1]);
    assert!(fused.products().iter().flat_map(|p| &p.matrices).all(|matrix| matrix.weight == w));
}

/// One node or two, and the two either way round.
#[test]
fn gates_in_all_their_forms() {
    for (form, activation) in (0..3).flat_map(|form| Activation::ALL.map(|activation| (form, activation))) {
        let mut g = Graph::new();
        let x = g.input("x");
        let (gate, up) = (g.product("gate", x), g.product("up", x));
        let y = match form {
            0 => g.0.glu("y", activation, gate, up).unwrap(),
            _ => {
                let activated = g.0.activate("activated", activation, gate).unwrap();
                let (a, b) = if form == 1 { (activated, up) } else { (up, activated) };
                g.0.mul("y", a, b).unwrap()
            }
        };
        g.output(y);
        let fused = g.all();
        assert_eq!(fused.names(), ["products"], "form {form}");
        let [products] = fused.products()[..] else { panic!("one step") };
        assert_eq!(products.gate, Some(activation));
        let outs: Vec<_> = products.matrices.iter().map(|matrix| matrix.out).collect();
        assert_eq!(outs, [Some(y), None]);
        // With no kernel for the products, the nodes are one step still.
        let fused = g.fused(&Fusion::ALL, |op, _| matches!(op, StepOp::Elementwise { .. }));
        assert_eq!(fused.names(), ["products", "products", "glu"]);
        let StepOp::Elementwise { op, a, b, .. } = fused.program.steps()[2].op else { panic!("no glu") };
        assert_eq!((op, a, b), (Pointwise::Glu(activation), gate, Some(up)));
    }
}

/// Gate and up in formats that no gated product has are two matrices of one launch, and five matrices of one input
/// become a gated product and the rest.
#[test]
fn gates_beside_other_products() {
    for formats in [[WeightFormat::Q4K, WeightFormat::Q6K], [WeightFormat::Q4K; 2]] {
        let mut g = Graph::new();
        let x = g.input("x");
        for name in ["q", "k", "v"] {
            let y = g.product(name, x);
            g.output(y);
        }
        let gate = g.product_as("gate", x, formats[0]);
        let up = g.product_as("up", x, formats[1]);
        let y = g.0.swiglu("y", gate, up).unwrap();
        g.output(y);
        let accepts = |op: &StepOp, program: &Program| {
            let StepOp::Products(products) = op else { return false };
            let ty = |i: usize| program.ty(products.matrices[i].weight);
            products.matrices.len() <= 5 && (products.gate.is_none() || ty(0) == ty(1))
        };
        let fused = g.fused(&Fusion::ALL, accepts);
        let alike = formats[0] == formats[1];
        assert_eq!(fused.matrices(), if alike { vec![3, 2] } else { vec![5] });
        assert_eq!(fused.names().contains(&"glu"), !alike);
    }
}

/// What is added to gate or up is added before they are gated, not after it.
#[test]
fn gates_of_sums() {
    for side in [0, 1] {
        let mut g = Graph::new();
        let (x, r) = (g.input("x"), g.input("r"));
        let mut sides = [g.product("gate", x), g.product("up", x)];
        sides[side] = g.add("sum", sides[side], r);
        let y = g.0.swiglu("y", sides[0], sides[1]).unwrap();
        g.output(y);
        let fused = g.all();
        assert_eq!(fused.names(), ["products", "glu"]);
        let fused = g.fused(&[Fusion::Glu, Fusion::Residual], |_, _| true);
        assert_eq!(fused.names(), ["products", "products", "glu"]);
        let matrices: Vec<_> =
            fused.products().iter().flat_map(|products| products.matrices.clone()).collect();
        let residuals: Vec<_> = matrices.iter().filter_map(|matrix| matrix.residual).collect();
        assert_eq!(residuals, [r], "{side}");
    }
}

/// A residual is added to what a gated product gives.
#[test]
fn residual_of_a_gate() {
    let mut g = Graph::new();
    let (x, r) = (g.input("x"), g.input("r"));
    let (gate, up) = (g.product("gate", x), g.product("up", x));
    let y = g.0.swiglu("y", gate, up).unwrap();
    let sum = g.add("sum", r, y);
    g.output(sum);
    let fused = g.all();
    let [products] = fused.products()[..] else { panic!("one step") };
    let ends: Vec<_> = products.matrices.iter().map(|matrix| (matrix.residual, matrix.out)).collect();
    assert_eq!(ends, [(Some(r), Some(sum)), (None, None)]);
}

/// Products of different inputs, or needed elsewhere, make no gated product; nor does `silu(y) · y`.
#[test]
fn no_gate() {
    for case in 0..3 {
        let mut g = Graph::new();
        let (x, other) = (g.input("x"), g.input("other"));
        let gate = g.product("gate", x);
        let up = match case {
            0 => g.product("up", other),
            1 => g.product("up", x),
            _ => gate,
        };
        if case == 1 {
            g.output(up);
        }
        let y = g.0.swiglu("y", gate, up).unwrap();
        g.output(y);
        let fused = g.fused(&[Fusion::Glu], |_, _| true);
        assert_eq!(fused.formed, [], "case {case}");
    }
}
