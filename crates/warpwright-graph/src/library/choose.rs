//! The form in which products take their activations.
//!
//! ```text
//!   int8, up to eight tokens                        more tokens
//!
//!   norm ──► x ──► products     norm ──► int8 ──► products      x ──► products     x ──► scale ──► halves ──► products
//!                                                               └───► products                        └─────► products
//! ```

use super::accepts::{formats, on_tensor_cores, quantised};
use super::{gemm, products};
use crate::fuse::{Accepts, Formed};
use crate::graph::{Element, Role, Tensor, TensorType};
use crate::options::{Arithmetic, Fusion, PlanOptions};
use crate::program::{Family, NormStep, Products, Program, Step, StepOp};
use std::collections::{HashMap, HashSet};
use warpwright_kernels::{Activations, Dtype};

/// Chooses the form in which products take their activations, adds the steps that convert them, and returns the fused
/// steps that it has formed. Steps of overridden families do not change.
///
/// - Up to eight tokens, [`Arithmetic::Exact`]: `f32`. [`Arithmetic::Int8`] with quantised weights: `int8`, made by the
///   preceding norm or by one step for all products of the same activations; a product that shares its activations with
///   no other quantises them itself. Without [`Fusion::Quantize`] all products quantise them themselves.
/// - More tokens: scaled halves, two for each number, or one with [`Arithmetic::Int8`]; a step makes them once for all
///   products of the same activations. Weights without a kernel on the tensor cores take `f32`.
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
    let uses = program.uses();
    let (mut choice, mut scaled) = (Choice::default(), HashSet::new());
    for (x, consumers) in consumers(program) {
        let tokens = program.ty(x).shape.rows();
        if !products::are_few(tokens, options) {
            scaled.extend(scale(program, options, x, &consumers, &mut choice));
        } else if options.arithmetic == Arithmetic::Int8 {
            let maker = uses.maker(x).filter(|_| !overridden(Family::Norm));
            let activations = Activation { x, maker, readers: uses.readers(x).len() };
            quantize(program, activations, &consumers, &accepts, &mut choice);
        }
    }
    for step in program.steps_mut() {
        if let StepOp::Products(products) = &mut step.op
            && !scaled.contains(&products.x)
        {
            products.activations.get_or_insert(Activations::Exact);
        }
    }
    choice.insert(program);
    choice.formed
}

/// Activations of products.
#[derive(Clone, Copy)]
struct Activation {
    x: Tensor,
    /// The step that makes them, if its kernel is for the library to choose.
    maker: Option<usize>,
    /// How often steps read them.
    readers: usize,
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
    activations: Activation,
    consumers: &[usize],
    accepts: &dyn Fn(&StepOp, &Program) -> bool,
    choice: &mut Choice,
) {
    let of_quants = |&step: &usize| {
        products_of(program, step).is_some_and(|products| quantised(program, products) == Some(true))
    };
    let has_norm = |&step: &usize| products_of(program, step).is_some_and(|products| products.norm.is_some());
    let of_quants: Vec<usize> = consumers.iter().copied().filter(of_quants).collect();
    let (normed, plain): (Vec<usize>, Vec<usize>) = of_quants.into_iter().partition(has_norm);
    change(program, &normed, |products| products.activations = Some(Activations::Rounded));
    let Some(quants) = quantized_once(program, activations, &plain, accepts, choice) else {
        change(program, &plain, |products| products.activations = Some(Activations::Rounded));
        return;
    };
    change(program, &plain, |products| {
        (products.x, products.activations) = (quants, Some(Activations::Int8));
    });
}

/// Activations as `int8`, if the norm that makes them can make that, or a step that serves several products.
fn quantized_once(
    program: &mut Program,
    Activation { x, maker, readers }: Activation,
    products: &[usize],
    accepts: &dyn Fn(&StepOp, &Program) -> bool,
    choice: &mut Choice,
) -> Option<Tensor> {
    let &first = products.first()?;
    let norm = maker.and_then(|maker| match &program.steps()[maker].op {
        StepOp::Norm(norm) => Some((maker, *norm)),
        _ => None,
    });
    if norm.is_none() && products.len() < 2 {
        return None;
    }
    let name = format!("{}.int8", program.info(x).name);
    let quants = program.add_tensor(name, TensorType { element: Element::Int8, ..program.ty(x) });
    if let Some((maker, norm)) = norm {
        // As floats it is written only where others than these products read it.
        let read = readers > products.len() || program.info(x).role == Role::Output;
        let norm = StepOp::Norm(NormStep { out: norm.out.filter(|_| read), quants: Some(quants), ..norm });
        if accepts(&norm, program) {
            let step = &mut program.steps_mut()[maker];
            step.op = norm;
            choice.formed.push(Formed { fusion: Fusion::Quantize, nodes: step.nodes.clone() });
            return Some(quants);
        }
    }
    let quantize = StepOp::Quantize { x, out: quants };
    if products.len() < 2 || !accepts(&quantize, program) {
        return None;
    }
    choice.steps.push((first, quantize));
    let mut nodes: Vec<_> = products.iter().flat_map(|&step| program.steps()[step].nodes.clone()).collect();
    nodes.sort_unstable();
    choice.formed.push(Formed { fusion: Fusion::Quantize, nodes });
    Some(quants)
}

/// Activations of many tokens for products on the tensor cores: those that it has added.
fn scale(
    program: &mut Program,
    options: &PlanOptions,
    x: Tensor,
    consumers: &[usize],
    choice: &mut Choice,
) -> Vec<Tensor> {
    let mut all = Vec::new();
    for half in [Dtype::F16, Dtype::Bf16] {
        // One term of `bf16` has fewer bits than what it is in the place of.
        let terms = match (options.arithmetic, half) {
            (Arithmetic::Int8, Dtype::F16) => 1,
            _ => 2,
        };
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
        all.push(scaled);
    }
    all
}
