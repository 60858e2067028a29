//! Dispatch of steps to the kernel library or to a user's own kernels.
//!
//! A dispatcher is called at two times. While a plan is made it accepts or refuses fused steps, and names the families
//! of steps that it runs itself: fusion forms no other steps, and the library plans no kernels for those families. When
//! the plan runs, each step goes to the method of its family.

use crate::graph::Tensor;
use crate::launch::{PlannedStep, WeightLayout};
use crate::library;
use crate::options::{Fusion, PlanOptions};
use crate::program::{Family, Operand, Program, Step, StepOp};
use crate::run::{Bound, ExecuteError};
use std::fmt;
use warpwright_runtime::{self as runtime, AnyBuffer, Buffer, Stream};

/// Runs a plan's steps: one method for each family of steps.
///
/// A method issues work on the step's stream and does not wait for it, unless it computes on the host. Methods that are
/// not overridden use the kernel library.
///
/// ```
/// use warpwright_graph::{ExecuteError, Family, KernelDispatch, StepOp, StepRun};
///
/// /// Sums on the host; everything else by the library.
/// struct HostAdd;
///
/// impl KernelDispatch for HostAdd {
///     fn elementwise(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
///         let StepOp::Elementwise { a, b: Some(b), out, op: warpwright_graph::Pointwise::Add } = *step.op() else {
///             return step.run_library();
///         };
///         let stream = step.stream();
///         let a = stream.clone_dtoh(&step.buffer::<f32>(a)?)?;
///         let b = stream.clone_dtoh(&step.buffer::<f32>(b)?)?;
///         let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
///         stream.memcpy_htod(&sums, &step.buffer::<f32>(out)?)?;
///         Ok(())
///     }
/// }
/// ```
pub trait KernelDispatch: Send + Sync {
    /// Whether there is a kernel for a step that a fusion would form. Fusion forms no others. Unless it says
    /// otherwise, those are the library's, but none of a family that it [overrides](Self::overrides): what such a step
    /// can hold besides its node is for it to know.
    fn accepts(&self, fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> bool {
        !self.overrides(step.family()) && library::accepts(fusion, step, program, options)
    }

    /// Whether it runs all steps of that family itself: no kernels of the library are planned for them, and no
    /// steps are added that only those ask for.
    fn overrides(&self, family: Family) -> bool {
        let _ = family;
        false
    }

    /// How weights lie that steps of a family take which it overrides: rows, as in a GGUF file, unless it says
    /// otherwise.
    fn weight_layout(&self, family: Family) -> WeightLayout {
        let _ = family;
        WeightLayout::Rows
    }

    /// A step of any family: goes to the method of its family.
    fn step(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        match step.op().family() {
            Family::Rows => self.rows(step),
            Family::MatMul => self.mat_mul(step),
            Family::Norm => self.norm(step),
            Family::Rope => self.rope(step),
            Family::Attention => self.attention(step),
            Family::Elementwise => self.elementwise(step),
            Family::Sampling => self.sampling(step),
            Family::State => self.state(step),
        }
    }

    /// Embedding and selection of rows.
    fn rows(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Products, and what they make of their activations first.
    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Norms.
    fn norm(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Rotation and the way into the cache.
    fn rope(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Attention.
    fn attention(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Operations on elements, softmax, conversions.
    fn elementwise(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// Argmax and sampling.
    fn sampling(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }

    /// What changes states.
    fn state(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        step.run_library()
    }
}

/// The kernel library, for every step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelLibrary;

impl KernelDispatch for KernelLibrary {}

/// Does the same with every step, whatever its family, for example to observe steps or to skip some.
#[derive(Clone, Copy, Debug)]
pub struct EachStep<F>(pub F);

impl<F: Fn(&mut StepRun<'_>) -> Result<(), ExecuteError> + Send + Sync> KernelDispatch for EachStep<F> {
    fn step(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        self.0(step)
    }
}

/// The step to run: its op, and the buffers of its operands.
pub struct StepRun<'a> {
    bound: &'a Bound,
    index: usize,
}

impl<'a> StepRun<'a> {
    pub(crate) fn new(bound: &'a Bound, index: usize) -> Self {
        StepRun { bound, index }
    }

    /// Its index in the program.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The program that it belongs to, with the shapes and names of tensors.
    pub fn program(&self) -> &'a Program {
        self.bound.placed.plan.program()
    }

    /// The step.
    pub fn step(&self) -> &'a Step {
        &self.program().steps()[self.index]
    }

    /// Its op.
    pub fn op(&self) -> &'a StepOp {
        &self.step().op
    }

    /// The stream that the plan's work is issued on.
    pub fn stream(&self) -> &'a Stream {
        &self.bound.placed.stream
    }

    /// The parts of an operand, in the order of [`planes`](crate::planes). For matrices of weights see
    /// [`weights`](Self::weights).
    ///
    /// Do not write operands that the step reads, except for states that the step changes.
    pub fn parts(&self, tensor: Tensor) -> Result<&'a [AnyBuffer], ExecuteError> {
        self.must_be_operand(tensor)?;
        self.bound.placed.parts(tensor)
    }

    /// An operand that is in one piece.
    pub fn buffer<T: runtime::Element>(&self, tensor: Tensor) -> Result<Buffer<T>, ExecuteError> {
        let [part] = self.parts(tensor)? else {
            return Err(ExecuteError::NoBuffer { name: self.bound.placed.name(tensor) });
        };
        let (given, needed) = (T::TYPE, part.element());
        if given != needed {
            return Err(ExecuteError::Element { name: self.bound.placed.name(tensor), given, needed });
        }
        Ok(part.typed()?)
    }

    /// A matrix of weights, in the layout that the dispatcher asked for.
    pub fn weights(&self, tensor: Tensor, layout: WeightLayout) -> Result<Buffer<u8>, ExecuteError> {
        self.must_be_operand(tensor)?;
        Ok(self.bound.placed.matrix(tensor, layout)?.typed()?)
    }

    /// The launches that the plan has for the step.
    pub fn planned(&self) -> &'a PlannedStep {
        &self.bound.placed.plan.steps()[self.index]
    }

    /// Whether the plan has launches of the kernel library for the step.
    pub fn has_library(&self) -> bool {
        !self.bound.placed.plan.steps()[self.index].overridden
    }

    /// Issues the launches of the kernel library.
    pub fn run_library(&mut self) -> Result<(), ExecuteError> {
        if !self.has_library() {
            return Err(ExecuteError::NoLibrary { family: self.op().family() });
        }
        Ok(self.bound.issue(self.index)?)
    }

    fn must_be_operand(&self, tensor: Tensor) -> Result<(), ExecuteError> {
        let is = |operand: &Operand| operand.tensor == tensor;
        if self.op().operands().iter().any(is) {
            return Ok(());
        }
        Err(ExecuteError::NotAnOperand { name: self.bound.placed.name(tensor) })
    }
}

impl fmt::Debug for StepRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepRun")
            .field("index", &self.index)
            .field("step", self.step())
            .finish_non_exhaustive()
    }
}
