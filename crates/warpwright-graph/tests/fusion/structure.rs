//! Small graphs, each with one reason to fuse or not to.

use super::terms::Terms;
use std::cell::Cell;
use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, Formed, Fusion, Fusions, KvCache, Pointwise,
    Products, Program, RopeParams, RopeStep, StepOp, Tensor, TensorType, fuse,
};
use warpwright_kernels::{CacheDtype, TokenSequences, WeightFormat};

const WIDTH: u32 = 256;
const HEAD_DIM: u32 = 64;
const HEADS: u32 = WIDTH / HEAD_DIM;
const FORMATS: [WeightFormat; 2] = [WeightFormat::Q4K, WeightFormat::Q6K];

/// A graph of rows of one length, in which names are few and mistakes none.
struct Graph(ComputeGraph);

impl Graph {
    fn new() -> Self {
        Graph(ComputeGraph::new())
    }

    fn input(&mut self, name: &str) -> Tensor {
        self.0.input(name, TensorType::f32([1, WIDTH]))
    }

    fn weight(&mut self, name: &str, format: WeightFormat) -> Tensor {
        self.0.weight(name, TensorType::new(Element::Weights(format), [WIDTH, WIDTH]))
    }

    fn product(&mut self, name: &str, x: Tensor) -> Tensor {
        self.product_as(name, x, FORMATS[0])
    }

    fn product_as(&mut self, name: &str, x: Tensor, format: WeightFormat) -> Tensor {
        let w = self.weight(&format!("{name}.w"), format);
        self.0.mat_mul(name, x, w, None).unwrap()
    }

    fn add(&mut self, name: &str, a: Tensor, b: Tensor) -> Tensor {
        self.0.add(name, a, b).unwrap()
    }

    fn norm(&mut self, name: &str, x: Tensor) -> Tensor {
        let w = self.0.weight(&format!("{name}.w"), TensorType::f32([WIDTH]));
        self.0.rms_norm(name, x, w, 1e-5).unwrap()
    }

    fn output(&mut self, tensor: Tensor) {
        self.0.output(tensor).unwrap();
    }

    /// Its program with such fusions, held to what the graph computes.
    fn fused(&self, fusions: &[Fusion], accepts: impl Fn(&StepOp, &Program) -> bool) -> Fused {
        let mut program = Program::new(&self.0).unwrap();
        let set = fusions.iter().fold(Fusions::none(), |set, &fusion| set.with(fusion));
        let formed = fuse(&mut program, set, &|_, op, program| accepts(op, program));
        program.check().unwrap();
        let mut terms = Terms::default();
        assert_eq!(terms.of_program(&program), terms.of_graph(&self.0));
        Fused { program, formed }
    }

    fn all(&self) -> Fused {
        self.fused(&Fusion::ALL, |_, _| true)
    }
}

struct Fused {
    program: Program,
    formed: Vec<Formed>,
}

impl Fused {
    fn names(&self) -> Vec<&'static str> {
        self.program.steps().iter().map(|step| step.op.name()).collect()
    }

    fn products(&self) -> Vec<&Products> {
        let ops = self.program.steps().iter().map(|step| &step.op);
        ops.filter_map(|op| if let StepOp::Products(products) = op { Some(products) } else { None }).collect()
    }

    /// How many matrices each step of products has.
    fn matrices(&self) -> Vec<usize> {
        self.products().iter().map(|products| products.matrices.len()).collect()
    }
}

// Residuals.

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

// Norms.

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

// Products of one input.

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

// SwiGLU.

/// One node or two, and the two either way round.
#[test]
fn swiglu_in_all_its_forms() {
    for form in 0..3 {
        let mut g = Graph::new();
        let x = g.input("x");
        let (gate, up) = (g.product("gate", x), g.product("up", x));
        let y = match form {
            0 => g.0.swiglu("y", gate, up).unwrap(),
            _ => {
                let silu = g.0.silu("silu", gate).unwrap();
                let (a, b) = if form == 1 { (silu, up) } else { (up, silu) };
                g.0.mul("y", a, b).unwrap()
            }
        };
        g.output(y);
        let fused = g.all();
        assert_eq!(fused.names(), ["products"], "form {form}");
        let [products] = fused.products()[..] else { panic!("one step") };
        assert!(products.swiglu);
        let outs: Vec<_> = products.matrices.iter().map(|matrix| matrix.out).collect();
        assert_eq!(outs, [Some(y), None]);
        // With no kernel for the products, the nodes are one step still.
        let fused = g.fused(&Fusion::ALL, |op, _| matches!(op, StepOp::Elementwise { .. }));
        assert_eq!(fused.names(), ["products", "products", "swiglu"]);
        let StepOp::Elementwise { op, a, b, .. } = fused.program.steps()[2].op else { panic!("no swiglu") };
        assert_eq!((op, a, b), (Pointwise::SwiGlu, gate, Some(up)));
    }
}

/// Gate and up in formats that no SwiGLU has are two matrices of one launch, and five matrices of one input
/// become a SwiGLU and the rest.
#[test]
fn swiglu_beside_other_products() {
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
            products.matrices.len() <= 5 && (!products.swiglu || ty(0) == ty(1))
        };
        let fused = g.fused(&Fusion::ALL, accepts);
        let alike = formats[0] == formats[1];
        assert_eq!(fused.matrices(), if alike { vec![3, 2] } else { vec![5] });
        assert_eq!(fused.names().contains(&"swiglu"), !alike);
    }
}

/// What is added to gate or up is added before the SwiGLU, not after it.
#[test]
fn swiglu_of_sums() {
    for side in [0, 1] {
        let mut g = Graph::new();
        let (x, r) = (g.input("x"), g.input("r"));
        let mut sides = [g.product("gate", x), g.product("up", x)];
        sides[side] = g.add("sum", sides[side], r);
        let y = g.0.swiglu("y", sides[0], sides[1]).unwrap();
        g.output(y);
        let fused = g.all();
        assert_eq!(fused.names(), ["products", "swiglu"]);
        let fused = g.fused(&[Fusion::SwiGlu, Fusion::Residual], |_, _| true);
        assert_eq!(fused.names(), ["products", "products", "swiglu"]);
        let matrices: Vec<_> =
            fused.products().iter().flat_map(|products| products.matrices.clone()).collect();
        let residuals: Vec<_> = matrices.iter().filter_map(|matrix| matrix.residual).collect();
        assert_eq!(residuals, [r], "{side}");
    }
}

/// A residual is added to what a SwiGLU gives.
#[test]
fn residual_of_swiglu() {
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

/// Products of different inputs, or needed elsewhere, make no SwiGLU; nor does `silu(y) · y`.
#[test]
fn no_swiglu() {
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
        let fused = g.fused(&[Fusion::SwiGlu], |_, _| true);
        assert_eq!(fused.formed, [], "case {case}");
    }
}

// Rotation and the cache.

/// Queries and keys on their way to attention.
struct Heads {
    g: Graph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Tensor,
    cache: KvCache,
}

impl Heads {
    fn new() -> Self {
        let mut g = Graph::new();
        let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name));
        let positions = g.0.input("positions", TensorType::new(Element::U32, [1]));
        let cache = TensorType::new(Element::Cache(CacheDtype::F16), [1, HEADS, 16, HEAD_DIM]);
        let cache = g.0.kv_cache("cache", cache);
        Heads { g, q, k, v, positions, cache }
    }

    fn norm(&mut self, name: &str, x: Tensor, epsilon: f32) -> Tensor {
        let w = self.g.0.weight(&format!("{name}.w"), TensorType::f32([HEAD_DIM]));
        self.g.0.head_norm(name, x, w, HEAD_DIM, epsilon).unwrap()
    }

    fn rope(&mut self, name: &str, x: Tensor, base: f32) -> Tensor {
        let params = RopeParams { base, ..RopeParams::new(HEAD_DIM) };
        self.g.0.rope(name, x, self.positions, None, params).unwrap()
    }

    fn append(&mut self, cache: KvCache, k: Tensor) -> KvCache {
        let (kv, name) = ([k, self.v], format!("append{}", cache.k.index()));
        self.g.0.kv_append(&name, cache, kv, self.positions, TokenSequences::Each, None).unwrap()
    }

    fn attend(&mut self, name: &str, q: Tensor, cache: KvCache) -> Tensor {
        let mode = AttentionMode::Decode;
        let params =
            AttentionParams { heads: HEADS, kv_heads: HEADS, head_dim: HEAD_DIM, scale: 0.125, mode };
        let y = self.g.0.attention(name, q, cache, &[self.positions], params).unwrap();
        self.g.output(y);
        y
    }
}

fn rope_of(fused: &Fused) -> &RopeStep {
    let ropes = fused.program.steps().iter().filter_map(|step| match &step.op {
        StepOp::Rope(rope) if rope.append.is_some() => Some(rope),
        _ => None,
    });
    ropes.reduce(|_, later| later).expect("a way into the cache")
}

#[test]
fn rotations_and_the_cache() {
    let mut h = Heads::new();
    let (q, k) = (h.rope("q_rope", h.q, 1e4), h.rope("k_rope", h.k, 1e4));
    let after = h.append(h.cache, k);
    h.attend("y", q, after);
    let fused = h.g.all();
    assert_eq!(fused.names(), ["rope", "attention"]);
    let (rotate, append) = (rope_of(&fused).rotate.unwrap(), rope_of(&fused).append.unwrap());
    assert_eq!((rotate.x, rotate.out, append.k, append.v), (h.q, q, h.k, h.v));
    assert_eq!((append.k_cache, append.v_cache), ((h.cache.k, after.k), (h.cache.v, after.v)));
}

/// Queries that turn otherwise than keys, keys that are needed elsewhere, other positions, queries that attend
/// to the cache as it was.
#[test]
fn rotations_that_do_not_meet() {
    for case in 0..5 {
        let mut h = Heads::new();
        let q = h.rope("q_rope", h.q, if case == 0 { 1e5 } else { 1e4 });
        let k = h.rope("k_rope", h.k, 1e4);
        let positions = h.positions;
        if case == 2 {
            h.positions = h.g.0.input("others", TensorType::new(Element::U32, [1]));
        }
        let seen = if case == 3 {
            h.attend("y", q, h.cache);
            h.append(h.cache, k);
            None
        } else {
            Some(h.append(h.cache, k))
        };
        h.positions = positions;
        if let Some(seen) = seen {
            h.attend("y", q, seen);
        }
        match case {
            1 => {
                let other = h.g.0.silu("other", k).unwrap();
                h.g.output(other);
            }
            4 => h.g.output(k),
            _ => {}
        }
        assert_eq!(h.g.all().formed, [], "case {case}");
    }
}

/// Norms of heads join both at once, one where only it can, and none whose result is needed elsewhere. One
/// epsilon serves both.
#[test]
fn norms_of_heads() {
    for (case, joined) in [(0, [true, true]), (1, [true, false]), (2, [true, false]), (3, [false, true])] {
        let mut h = Heads::new();
        let mut q = h.norm("q_norm", h.q, 1e-6);
        let mut k = match case {
            1 => h.k,
            2 => h.norm("k_norm", h.k, 1e-5),
            _ => h.norm("k_norm", h.k, 1e-6),
        };
        if case == 3 {
            h.g.output(q);
        }
        (q, k) = (h.rope("q_rope", q, 1e4), h.rope("k_rope", k, 1e4));
        let after = h.append(h.cache, k);
        h.attend("y", q, after);
        let fused = h.g.all();
        let rope = rope_of(&fused);
        let norms = [rope.rotate.unwrap().norm.is_some(), rope.append.unwrap().k_norm.is_some()];
        assert_eq!(norms, joined, "case {case}");
        assert_eq!(rope.epsilon, Some(1e-6), "case {case}");
        // A kernel that norms both or none.
        let both = h.g.fused(&Fusion::ALL, |op, _| match op {
            StepOp::Rope(RopeStep { rotate: Some(rotate), append: Some(append), .. }) => {
                rotate.norm.is_some() == append.k_norm.is_some()
            }
            _ => false,
        });
        assert_eq!(rope_of(&both).epsilon.is_some(), joined == [true, true], "case {case}");
    }
}

/// Two tokens one after the other through one cache: each version is read before the next is made.
#[test]
fn versions_of_a_cache() {
    let mut h = Heads::new();
    let mut cache = h.cache;
    for i in 0..2 {
        let q = h.rope(&format!("q_rope{i}"), h.q, 1e4);
        let k = h.rope(&format!("k_rope{i}"), h.k, 1e4);
        cache = h.append(cache, k);
        h.attend(&format!("y{i}"), q, cache);
    }
    assert_eq!(h.g.all().names(), ["rope", "attention", "rope", "attention"]);
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
