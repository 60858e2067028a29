//! Who runs steps: the kernel library, or in part a user's own kernels.
//!
//! A dispatcher is asked twice. While a plan is made it says which fused steps it has kernels for, and which
//! families of steps it runs itself: fusion forms nothing else, and for those families the library's kernels are
//! neither chosen nor lowered. When the plan runs, each step goes to the method of its family.

use crate::library;
use crate::plan::{Fusion, PlanOptions, WeightLayout};
use crate::program::{Family, Program, StepOp};

/// Who runs the steps of a plan: see the [module](self).
pub trait KernelDispatch: Send + Sync {
    /// Whether there is a kernel for a step that a fusion would form: what the library says, unless told otherwise.
    fn accepts(&self, fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> bool {
        library::accepts(fusion, step, program, options)
    }

    /// Whether it runs the steps of that family itself, all of them.
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
}

/// The kernel library: it accepts what it has kernels for, and runs everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelLibrary;

impl KernelDispatch for KernelLibrary {}
