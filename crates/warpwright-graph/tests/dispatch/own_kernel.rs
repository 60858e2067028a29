//! Products by a kernel of the dispatcher's, written in the DSL: a warp for each number of the result.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_graph::{
    ExecuteError, Family, Fusion, KernelDispatch, PlanOptions, Program, StepOp, StepRun, WeightLayout,
};

/// `y[t, n] = Σ x[t, i] · w[n, i]`, rows of `f32`.
struct RowProduct {
    n: u32,
    k: u32,
}

impl AnyKernel for RowProduct {
    fn entry(&self) -> String {
        format!("row_product_n{}_k{}", self.n, self.k)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let (n, k) = (u64::from(self.n), u64::from(self.k));
        vec![
            ArgDesc::input::<f32>("x", Extent::dim("tokens").times(k)),
            ArgDesc::input::<f32>("w", Extent::new(n * k)),
            ArgDesc::output::<f32>("y", Extent::dim("tokens").times(n)),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid_3d([self.n.into(), Extent::dim("tokens"), Extent::new(1)])
    }

    fn body(&self, k: K<'_>) {
        let (x, w, y) = (k.ptr::<f32>("x"), k.ptr::<f32>("w"), k.ptr_mut::<f32>("y"));
        let (x, w) = (x.at(k.ctaid_y() * self.k), w.at(k.ctaid() * self.k));
        let part = k.fold(k.strided(self.k), k.f32(0.0), |i, sum| x.ld(i).mul_add(w.ld(i), sum));
        let sum = k.block_sum(part);
        k.when(k.tid().eq(0), || y.at(k.ctaid_y() * self.n).st(k.ctaid(), sum));
    }
}

/// Runs products of `f32` weights, and accepts only fusions of other steps.
#[derive(Default)]
pub(crate) struct OwnKernel {
    launches: AtomicU64,
}

impl OwnKernel {
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Relaxed)
    }
}

impl KernelDispatch for OwnKernel {
    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }

    fn accepts(&self, fusion: Fusion, _: &StepOp, _: &Program, _: &PlanOptions) -> bool {
        fusion == Fusion::RopeAppend
    }

    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        let StepOp::Products(products) = step.op() else { return step.run_library() };
        let [matrix] = products.matrices[..] else {
            return Err(ExecuteError::dispatch("one matrix at a time"));
        };
        let out = matrix.out.ok_or_else(|| ExecuteError::dispatch("a product without a result"))?;
        let shape = step.program().ty(matrix.weight).shape;
        let tokens = step.program().ty(products.x).shape.rows();
        let kernel = RowProduct { n: shape.dims()[0], k: shape.columns() };
        let compiled = step.stream().device().kernel(&kernel)?;
        let weights = step.weights(matrix.weight, WeightLayout::Rows)?.cast::<f32>()?;
        let binder = compiled.bind().buffer("x", step.buffer::<f32>(products.x)?).buffer("w", weights);
        binder.buffer("y", step.buffer::<f32>(out)?).dim("tokens", tokens).launch(step.stream())?;
        self.launches.fetch_add(1, Relaxed);
        Ok(())
    }
}
