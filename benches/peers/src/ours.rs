//! Our kernels in the contests: built, verified and printed.

use crate::{ROW, TARGET};
use warpwright_kernels::{RmsNorm, Softmax};
use warpwright_dsl::any::AnyKernel;
use warpwright_ptx::{print, verify};

/// RMSNorm over a row.
pub(crate) fn rms_norm() -> String {
    emit(&RmsNorm::new(ROW, 1e-5))
}

/// Softmax over a row.
pub(crate) fn softmax() -> String {
    emit(&Softmax::new(ROW))
}

fn emit(kernel: &dyn AnyKernel) -> String {
    let module = kernel.module(TARGET.parse().expect("a target")).expect("the kernel is built");
    verify(&module).expect("the verifier accepts our kernels");
    print(&module)
}
