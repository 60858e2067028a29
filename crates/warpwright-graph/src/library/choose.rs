//! Ways of computing: what products make of their activations first.
//!
//! ```text
//!   int8, up to eight tokens                        more tokens
//!
//!   norm ──► x ──► products     norm ──► q8_1 ──► products      x ──► products     x ──► scale ──► halves ──► products
//!                                                               └───► products                        └─────► products
//! ```

use super::accepts::{formats, on_tensor_cores, quantised};
use super::{gemm, products};
use crate::fuse::{Accepts, Formed};
use crate::graph::{Element, Role, Tensor, TensorType};
use crate::plan::{Arithmetic, Fusion, PlanOptions};
use crate::program::{Access, Family, NormStep, Products, Program, Step, StepOp};
use std::collections::HashMap;
use warpwright_kernels::{Activations, Dtype};

/// Chooses how products take their activations, and adds the steps that make them so; gives the fused steps that
/// it has formed. Steps of overridden families stay as they are.
///
/// - Up to eight tokens, [`Arithmetic::Exact`]: as `f32`. [`Arithmetic::Int8`], where weights are quants: as `q8_1`,
///   which the norm before them makes, or a step for all products of the same activations; a product that shares
///   its activations with no other rounds them itself. Without [`Fusion::Quantize`] all round them themselves.
/// - More tokens: as scaled halves, two for each number or with [`Arithmetic::Int8`] one, which a step makes once for
///   all products of the same activations; weights without a kernel on the tensor cores take `f32`.
pub fn choose(
    program: &mut Program,
    options: &PlanOptions,
    overridden: &dyn Fn(Family) -> bool,
    accepts: &Accepts<'_>,
) -> Vec<Formed> {
    if overridden(Family::MatMul) {
        return Vec::new();
    }
    let accepts = |step: &StepOp, program: &Program| {
        options.fusions.contains(Fusion::Quantize) && accepts(Fusion::Quantize, step, program)
    };
    let mut choice = Choice::default();
    for (x, consumers) in consumers(program) {
        let tokens = program.ty(x).shape.rows();
        if tokens > u64::from(products::TOKENS) {
            scale(program, options, x, &consumers, &mut choice);
        } else if options.arithmetic == Arithmetic::Int8 {
            let norms = !overridden(Family::Norm);
            quantize(program, x, &consumers, norms, &accepts, &mut choice);
        }
    }
    for step in program.steps_mut() {
        if let StepOp::Products(products) = &mut step.op {
            products.activations.get_or_insert(Activations::Exact);
        }
    }
    choice.insert(program);
    choice.formed
}

/// What has been chosen besides the changes of steps.
#[derive(Default)]
struct Choice {
    /// Steps, and before which others they come.
    steps: Vec<(usize, StepOp)>,
    formed: Vec<Formed>,
}

impl Choice {
    fn insert(&mut self, program: &mut Program) {
        self.steps.sort_by_key(|&(before, _)| before);
        let mut added = std::mem::take(&mut self.steps).into_iter().peekable();
        let mut steps = Vec::with_capacity(program.steps().len() + added.len());
        for (i, step) in std::mem::take(program.steps_mut()).into_iter().enumerate() {
            while let Some((_, op)) = added.next_if(|&(before, _)| before == i) {
                steps.push(Step { op, nodes: Vec::new() });
            }
            steps.push(step);
        }
        *program.steps_mut() = steps;
    }
}

/// Activations with the products that take them, in order.
fn consumers(program: &Program) -> Vec<(Tensor, Vec<usize>)> {
    let mut of: HashMap<Tensor, usize> = HashMap::new();
    let mut all: Vec<(Tensor, Vec<usize>)> = Vec::new();
    for (i, step) in program.steps().iter().enumerate() {
        if let StepOp::Products(Products { x, activations: None, .. }) = step.op
            && program.ty(x).element == Element::F32
        {
            let at = *of.entry(x).or_insert_with(|| {
                all.push((x, Vec::new()));
                all.len() - 1
            });
            all[at].1.push(i);
        }
    }
    all
}

/// The products of a step.
fn products_of(program: &Program, step: usize) -> Option<&Products> {
    match &program.steps()[step].op {
        StepOp::Products(products) => Some(products),
        _ => None,
    }
}

/// Changes the products of steps.
fn change(program: &mut Program, steps: &[usize], change: impl Fn(&mut Products)) {
    for &step in steps {
        if let Some(Step { op: StepOp::Products(products), .. }) = program.steps_mut().get_mut(step) {
            change(products);
        }
    }
}

/// Activations of few tokens for products with quants.
fn quantize(
    program: &mut Program,
    x: Tensor,
    consumers: &[usize],
    norms: bool,
    accepts: &dyn Fn(&StepOp, &Program) -> bool,
    choice: &mut Choice,
) {
    let integer = |normed: bool| {
        let of = |&&step: &&usize| {
            products_of(program, step).is_some_and(|products| {
                quantised(program, products) == Some(true) && products.norm.is_some() == normed
            })
        };
        consumers.iter().filter(of).copied().collect::<Vec<usize>>()
    };
    let (plain, normed) = (integer(false), integer(true));
    change(program, &normed, |products| products.activations = Some(Activations::Rounded));
    let Some(&first) = plain.first() else { return };
    let name = format!("{}.q8_1", program.info(x).name);
    let quants = program.add_tensor(name, TensorType { element: Element::Q8_1, ..program.ty(x) });
    let by_norm = norms.then(|| norm_of(program, x, &plain, quants)).flatten();
    if let Some((at, norm)) = by_norm
        && accepts(&norm, program)
    {
        program.steps_mut()[at].op = norm;
        let nodes = program.steps()[at].nodes.clone();
        choice.formed.push(Formed { fusion: Fusion::Quantize, nodes });
    } else if plain.len() > 1 && accepts(&StepOp::Quantize { x, out: quants }, program) {
        choice.steps.push((first, StepOp::Quantize { x, out: quants }));
        let nodes = plain.iter().flat_map(|&step| program.steps()[step].nodes.clone()).collect();
        choice.formed.push(Formed { fusion: Fusion::Quantize, nodes });
    } else {
        change(program, &plain, |products| products.activations = Some(Activations::Rounded));
        return;
    }
    change(program, &plain, |products| {
        (products.x, products.activations) = (quants, Some(Activations::Int8));
    });
}

/// The norm that makes activations, as it would make their quants too, or alone where only those products take them.
fn norm_of(program: &Program, x: Tensor, products: &[usize], quants: Tensor) -> Option<(usize, StepOp)> {
    let makes = |step: &Step| matches!(step.op, StepOp::Norm(NormStep { out: Some(out), .. }) if out == x);
    let at = program.steps().iter().position(makes)?;
    let StepOp::Norm(norm) = &program.steps()[at].op else { return None };
    let others = program.steps().iter().enumerate().any(|(i, step)| {
        let operands = step.op.operands();
        let reads = operands.iter().filter(|o| (o.tensor, o.access) == (x, Access::Read)).count();
        // A product may take its activations as a residual too.
        reads > usize::from(products.contains(&i))
    });
    let out = norm.out.filter(|_| others || program.info(x).role == Role::Output);
    Some((at, StepOp::Norm(NormStep { out, quants: Some(quants), ..*norm })))
}

/// Activations of many tokens for products on the tensor cores.
fn scale(program: &mut Program, options: &PlanOptions, x: Tensor, consumers: &[usize], choice: &mut Choice) {
    let terms = match options.arithmetic {
        Arithmetic::Exact => 2,
        Arithmetic::Int8 => 1,
    };
    for half in [Dtype::F16, Dtype::Bf16] {
        let of = |&&step: &&usize| {
            products_of(program, step).is_some_and(|products| {
                let takes = |format| gemm::half(format, options) == Some(half);
                on_tensor_cores(program, products, options) && formats(program, products).all(takes)
            })
        };
        let steps: Vec<usize> = consumers.iter().filter(of).copied().collect();
        let Some(&first) = steps.first() else { continue };
        let name = format!("{}.{half}", program.info(x).name);
        let ty = TensorType { element: Element::Scaled { half, terms }, ..program.ty(x) };
        let scaled = program.add_tensor(name, ty);
        choice.steps.push((first, StepOp::Scale { x, out: scaled }));
        change(program, &steps, |products| products.x = scaled);
    }
}
