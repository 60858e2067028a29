//! Who makes a tensor, and who reads it.
//!
//! Steps are numbers here; what they are numbers of is the caller's. A step that reads a tensor twice is twice
//! among its readers, so that a tensor with one reader is needed in one place.

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

    /// Makers and readers by their places in the list.
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

    /// The step that makes a tensor; none where it is given.
    pub fn maker(&self, tensor: Tensor) -> Option<usize> {
        self.makers[tensor.index()]
    }

    /// The steps that read a tensor, each as often as it does.
    pub fn readers(&self, tensor: Tensor) -> &[usize] {
        &self.readers[tensor.index()]
    }

    /// The step that alone reads a tensor, once.
    pub fn sole_reader(&self, tensor: Tensor) -> Option<usize> {
        match *self.readers(tensor) {
            [reader] => Some(reader),
            _ => None,
        }
    }
}
