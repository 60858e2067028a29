//! The makers and readers of tensors.
//!
//! Steps are indices into the caller's list. A step that reads a tensor twice is listed twice among its readers, so a
//! tensor with one reader is needed in one place.

use super::step::{Access, Step, StepOp};
use crate::graph::Tensor;

/// Makers and readers of the tensors of a list of steps.
#[derive(Clone, Debug)]
pub struct Uses {
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
}

impl Uses {
    /// Nothing is made or read yet of so many tensors.
    pub(crate) fn none(tensors: usize) -> Self {
        Uses { makers: vec![None; tensors], readers: vec![Vec::new(); tensors] }
    }

    /// The makers and readers of `tensors` tensors, as indices into `steps`.
    pub fn of(steps: &[Step], tensors: usize) -> Self {
        let mut uses = Uses::none(tensors);
        for (i, step) in steps.iter().enumerate() {
            uses.add(i, &step.op);
        }
        uses
    }

    pub(crate) fn add(&mut self, number: usize, op: &StepOp) {
        op.visit(&mut |tensor, access| match access {
            Access::Read => self.readers[tensor.index()].push(number),
            Access::Write => self.makers[tensor.index()] = Some(number),
        });
    }

    pub(crate) fn remove(&mut self, number: usize, op: &StepOp) {
        op.visit(&mut |tensor, access| match access {
            Access::Read => self.readers[tensor.index()].retain(|&reader| reader != number),
            Access::Write => self.makers[tensor.index()] = None,
        });
    }

    /// The step that makes a tensor; `None` for a given tensor.
    pub fn maker(&self, tensor: Tensor) -> Option<usize> {
        self.makers[tensor.index()]
    }

    /// The steps that read a tensor, each as often as it reads it.
    pub fn readers(&self, tensor: Tensor) -> &[usize] {
        &self.readers[tensor.index()]
    }

    /// The only reader of a tensor, if there is exactly one read.
    pub fn sole_reader(&self, tensor: Tensor) -> Option<usize> {
        match *self.readers(tensor) {
            [reader] => Some(reader),
            _ => None,
        }
    }
}
