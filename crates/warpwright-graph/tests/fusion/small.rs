//! Small graphs: rows of one length, names that are few, and what became of them.

use super::terms::Terms;
use warpwright_graph::{
    ComputeGraph, Element, Formed, Fusion, Fusions, Products, Program, StepOp, Tensor, TensorType, fuse,
};
use warpwright_kernels::WeightFormat;

pub(crate) const WIDTH: u32 = 256;
pub(crate) const HEAD_DIM: u32 = 64;
pub(crate) const HEADS: u32 = WIDTH / HEAD_DIM;
pub(crate) const FORMATS: [WeightFormat; 2] = [WeightFormat::Q4K, WeightFormat::Q6K];

/// A graph of rows of one length, in which names are few and mistakes none.
pub(crate) struct Graph(pub(crate) ComputeGraph);

impl Graph {
    pub(crate) fn new() -> Self {
        Graph(ComputeGraph::new())
    }

    pub(crate) fn input(&mut self, name: &str) -> Tensor {
        self.0.input(name, TensorType::f32([1, WIDTH]))
    }

    pub(crate) fn weight(&mut self, name: &str, format: WeightFormat) -> Tensor {
        self.0.weight(name, TensorType::new(Element::Weights(format), [WIDTH, WIDTH]))
    }

    pub(crate) fn product(&mut self, name: &str, x: Tensor) -> Tensor {
        self.product_as(name, x, FORMATS[0])
    }

    pub(crate) fn product_as(&mut self, name: &str, x: Tensor, format: WeightFormat) -> Tensor {
        let w = self.weight(&format!("{name}.w"), format);
        self.0.mat_mul(name, x, w, None).unwrap()
    }

    pub(crate) fn add(&mut self, name: &str, a: Tensor, b: Tensor) -> Tensor {
        self.0.add(name, a, b).unwrap()
    }

    pub(crate) fn norm(&mut self, name: &str, x: Tensor) -> Tensor {
        let w = self.0.weight(&format!("{name}.w"), TensorType::f32([WIDTH]));
        self.0.rms_norm(name, x, w, 1e-5).unwrap()
    }

    pub(crate) fn output(&mut self, tensor: Tensor) {
        self.0.output(tensor).unwrap();
    }

    /// Its program with such fusions, held to what the graph computes.
    pub(crate) fn fused(&self, fusions: &[Fusion], accepts: impl Fn(&StepOp, &Program) -> bool) -> Fused {
        let mut program = Program::new(&self.0).unwrap();
        let set = fusions.iter().fold(Fusions::none(), |set, &fusion| set.with(fusion));
        let formed = fuse(&mut program, set, &|_, op, program| accepts(op, program));
        program.check().unwrap();
        let mut terms = Terms::default();
        assert_eq!(terms.of_program(&program), terms.of_graph(&self.0));
        Fused { program, formed }
    }

    pub(crate) fn all(&self) -> Fused {
        self.fused(&Fusion::ALL, |_, _| true)
    }
}

pub(crate) struct Fused {
    pub(crate) program: Program,
    pub(crate) formed: Vec<Formed>,
}

impl Fused {
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.program.steps().iter().map(|step| step.op.name()).collect()
    }

    pub(crate) fn products(&self) -> Vec<&Products> {
        let ops = self.program.steps().iter().map(|step| &step.op);
        ops.filter_map(|op| if let StepOp::Products(products) = op { Some(products) } else { None }).collect()
    }

    /// How many matrices each step of products has.
    pub(crate) fn matrices(&self) -> Vec<usize> {
        self.products().iter().map(|products| products.matrices.len()).collect()
    }
}
