//! What a graph or a program computes, as terms: two tensors are the same number if they are the same
//! expression of what is given.
//!
//! A graph is evaluated by its nodes, as expressions of expressions; a program step by step, with one memory for
//! each state, as a device has. So a step in the wrong place reads another term, and a step that does another
//! thing makes another one.

use std::collections::HashMap;
use warpwright_graph::{
    ComputeGraph, HeadNorm, Pointwise, Program, Role, RopeParams, Step, StepOp, Tensor, TensorOp,
};
use warpwright_kernels::Activation;

/// An expression: its number among those that were met.
pub(crate) type Term = usize;

#[derive(Default)]
pub(crate) struct Terms {
    numbers: HashMap<(String, Vec<Term>), Term>,
}

impl Terms {
    fn term(&mut self, name: impl Into<String>, args: &[Term]) -> Term {
        let next = self.numbers.len();
        *self.numbers.entry((name.into(), args.to_vec())).or_insert(next)
    }

    fn given(&mut self, tensor: Tensor) -> Term {
        self.term(format!("given {}", tensor.index()), &[])
    }

    /// A sum or a product, either way round.
    fn commuting(&mut self, name: &str, a: Term, b: Term) -> Term {
        self.term(name, &[a.min(b), a.max(b)])
    }

    fn activate(&mut self, activation: Activation, x: Term) -> Term {
        self.term(activation.name(), &[x])
    }

    fn glu(&mut self, activation: Activation, gate: Term, up: Term) -> Term {
        let activated = self.activate(activation, gate);
        self.commuting("mul", activated, up)
    }

    fn norm(&mut self, x: Term, weight: Term, d: u32, epsilon: f32) -> Term {
        self.term(format!("norm of {d}, {epsilon:?}"), &[x, weight])
    }

    fn product(&mut self, x: Term, weight: Term, bias: Option<Term>) -> Term {
        let product = self.term("product", &[x, weight]);
        match bias {
            Some(bias) => self.term("bias", &[product, bias]),
            None => product,
        }
    }

    fn rope(&mut self, params: RopeParams, x: Term, positions: Term, factors: Option<Term>) -> Term {
        let args: Vec<Term> = [x, positions].into_iter().chain(factors).collect();
        self.term(format!("rope {params:?}"), &args)
    }

    /// What the graph makes: the terms of its outputs, and of the last versions of its states.
    pub(crate) fn of_graph(&mut self, graph: &ComputeGraph) -> HashMap<Tensor, Term> {
        let mut values: HashMap<Tensor, Term> = HashMap::new();
        for handle in graph.handles() {
            let given = self.given(handle);
            values.insert(handle, given);
        }
        let mut last: HashMap<Tensor, Tensor> = HashMap::new();
        for id in graph.order().expect("the graph has an order") {
            let node = &graph.nodes()[id.index()];
            let inputs: Vec<Term> = node.inputs.iter().map(|tensor| values[tensor]).collect();
            let width = graph.ty(node.inputs[0]).unwrap().shape.columns();
            let made = self.node(&node.op, &inputs, width);
            assert_eq!(made.len(), node.outputs.len());
            for (&output, term) in node.outputs.iter().zip(made) {
                values.insert(output, term);
                if let Some(state) = graph.info(output).unwrap().state {
                    last.insert(state, output);
                }
            }
        }
        let outputs = graph.handles().filter(|&h| graph.info(h).unwrap().role == Role::Output);
        let mut seen: HashMap<Tensor, Term> = outputs.map(|output| (output, values[&output])).collect();
        seen.extend(last.into_iter().map(|(state, version)| (state, values[&version])));
        seen
    }

    fn node(&mut self, op: &TensorOp, inputs: &[Term], width: u32) -> Vec<Term> {
        vec![match *op {
            TensorOp::MatMul { .. } => self.product(inputs[0], inputs[1], inputs.get(2).copied()),
            TensorOp::RmsNorm { epsilon } => self.norm(inputs[0], inputs[1], width, epsilon),
            TensorOp::HeadNorm { head_dim, epsilon } => self.norm(inputs[0], inputs[1], head_dim, epsilon),
            TensorOp::Add => self.commuting("add", inputs[0], inputs[1]),
            TensorOp::Mul => self.commuting("mul", inputs[0], inputs[1]),
            TensorOp::Activate(activation) => self.activate(activation, inputs[0]),
            TensorOp::Glu(activation) => self.glu(activation, inputs[0], inputs[1]),
            TensorOp::Rope(params) => self.rope(params, inputs[0], inputs[1], inputs.get(2).copied()),
            TensorOp::KvAppend { sequences } => {
                let append = format!("append {sequences:?}");
                let (k, v) = ([inputs[0], inputs[2]], [inputs[1], inputs[3]]);
                return [k, v].map(|kv| self.term(&append, &[&kv, &inputs[4..]].concat())).to_vec();
            }
            TensorOp::Attention(params) => self.term(format!("attention {params:?}"), inputs),
            TensorOp::Advance => return inputs.iter().map(|&input| self.term("advance", &[input])).collect(),
            TensorOp::Assign => inputs[1],
            ref op => self.term(format!("{op:?}"), inputs),
        }]
    }

    /// What the program makes: the same, from one memory for each state.
    pub(crate) fn of_program(&mut self, program: &Program) -> HashMap<Tensor, Term> {
        let mut memory: HashMap<Tensor, Term> = HashMap::new();
        for tensor in program.handles() {
            let info = program.info(tensor);
            if matches!(info.role, Role::Input | Role::Weight) || program.root(tensor) == tensor {
                let given = self.given(tensor);
                memory.insert(tensor, given);
            }
        }
        let mut changed: Vec<Tensor> = Vec::new();
        for step in program.steps() {
            let made = self.step(program, step, &|tensor| memory[&program.root(tensor)]);
            for (tensor, term) in made {
                let root = program.root(tensor);
                memory.insert(root, term);
                changed.extend((root != tensor).then_some(root));
            }
        }
        let outputs = program.handles().filter(|&h| program.info(h).role == Role::Output);
        outputs.chain(changed).map(|tensor| (tensor, memory[&tensor])).collect()
    }

    fn step(&mut self, program: &Program, step: &Step, read: &dyn Fn(Tensor) -> Term) -> Vec<(Tensor, Term)> {
        match &step.op {
            StepOp::Products(products) => {
                let mut x = read(products.x);
                if let Some(HeadNorm { weight, epsilon }) = products.norm {
                    let d = program.ty(products.x).shape.columns();
                    x = self.norm(x, read(weight), d, epsilon);
                }
                let mut results: Vec<Term> = Vec::new();
                for matrix in &products.matrices {
                    results.push(self.product(x, read(matrix.weight), matrix.bias.map(read)));
                }
                if let Some(activation) = products.gate {
                    assert_eq!(results.len(), 2);
                    results = vec![self.glu(activation, results[0], results[1])];
                    assert_eq!((products.matrices[1].out, products.matrices[1].residual), (None, None));
                }
                let mut made = Vec::new();
                for (matrix, result) in products.matrices.iter().zip(results) {
                    let result = match matrix.residual {
                        Some(residual) => self.commuting("add", result, read(residual)),
                        None => result,
                    };
                    made.push((matrix.out.expect("a result"), result));
                }
                made
            }
            StepOp::Norm(norm) => {
                let term = self.norm(read(norm.x), read(norm.norm.weight), norm.d, norm.norm.epsilon);
                vec![(norm.out.expect("a result"), term)]
            }
            StepOp::Rope(rope) => {
                let mut made = Vec::new();
                let (positions, factors) = (read(rope.positions), rope.factors.map(read));
                let mut turn = |x: Tensor, norm: Option<Tensor>| {
                    let mut x = read(x);
                    if let Some(weight) = norm {
                        let d = program.ty(weight).shape.columns();
                        x = self.norm(x, read(weight), d, rope.epsilon.expect("an epsilon"));
                    }
                    match rope.params {
                        Some(params) => self.rope(params, x, positions, factors),
                        None => x,
                    }
                };
                if let Some(rotate) = rope.rotate {
                    made.push((rotate.out, turn(rotate.x, rotate.norm)));
                }
                if let Some(append) = rope.append {
                    let k = turn(append.k, append.k_norm);
                    for ((before, after), x) in [(append.k_cache, k), (append.v_cache, read(append.v))] {
                        let rest = [positions].into_iter().chain(append.listed.map(read));
                        let args: Vec<Term> = [read(before), x].into_iter().chain(rest).collect();
                        made.push((after, self.term(format!("append {:?}", append.sequences), &args)));
                    }
                }
                made
            }
            StepOp::Attention(attention) => {
                let caches = [attention.q, attention.k_cache, attention.v_cache];
                let args: Vec<Term> = caches.iter().chain(&attention.lengths).map(|&t| read(t)).collect();
                vec![(attention.out, self.term(format!("attention {:?}", attention.params), &args))]
            }
            &StepOp::Elementwise { op, a, b, out } => {
                let (a, b) = (read(a), b.map_or(0, read));
                let term = match op {
                    Pointwise::Add => self.commuting("add", a, b),
                    Pointwise::Mul => self.commuting("mul", a, b),
                    Pointwise::Activate(activation) => self.activate(activation, a),
                    Pointwise::Glu(activation) => self.glu(activation, a, b),
                };
                vec![(out, term)]
            }
            StepOp::Advance { counters } => (counters.iter())
                .map(|&(before, after)| (after, self.term("advance", &[read(before)])))
                .collect(),
            &StepOp::Assign { value, out, .. } => vec![(out, read(value))],
            // No fusion knows the others: their terms are those of their ops.
            other => {
                let reads: Vec<Term> = other.reads().map(read).collect();
                let name = match other {
                    StepOp::Embedding { .. } => format!("{:?}", TensorOp::Embedding),
                    StepOp::SelectRows { .. } => format!("{:?}", TensorOp::SelectRows),
                    StepOp::SoftMax { .. } => format!("{:?}", TensorOp::SoftMax),
                    StepOp::ArgMax { .. } => format!("{:?}", TensorOp::ArgMax),
                    other => panic!("no graph of these tests has {}", other.name()),
                };
                other.writes().map(|out| (out, self.term(&*name, &reads))).collect()
            }
        }
    }
}
