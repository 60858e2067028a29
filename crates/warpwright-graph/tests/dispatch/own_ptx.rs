//! Products by PTX of the dispatcher's, launched raw: a thread for each number of the result.

#![allow(unsafe_code, reason = "raw launches are unsafe")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_graph::{
    ExecuteError, Family, Fusion, KernelDispatch, PlanOptions, Program, StepOp, StepRun, WeightLayout,
};
use warpwright_runtime::{Device, Function, LaunchConfig};

/// `y[t, n] = Σ x[t, i] · w[n, i]`, and with a third buffer `+ r[t, n]`.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64

.visible .entry product(
    .param .u64 x, .param .u64 w, .param .u64 r, .param .u64 y, .param .u32 n, .param .u32 k, .param .u32 add
)
{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<11>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [w];
    ld.param.u64 %rd3, [r];
    ld.param.u64 %rd4, [y];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [k];
    ld.param.u32 %r8, [add];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    cvta.to.global.u64 %rd3, %rd3;
    cvta.to.global.u64 %rd4, %rd4;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r3, %r3, 64, %r4;
    setp.ge.u32 %p1, %r3, %r1;
    @%p1 bra DONE;
    mov.u32 %r4, %ctaid.y;
    mul.lo.u32 %r5, %r4, %r2;
    mul.wide.u32 %rd5, %r5, 4;
    add.u64 %rd1, %rd1, %rd5;
    mul.lo.u32 %r5, %r3, %r2;
    mul.wide.u32 %rd5, %r5, 4;
    add.u64 %rd2, %rd2, %rd5;
    mad.lo.u32 %r6, %r4, %r1, %r3;
    mul.wide.u32 %rd6, %r6, 4;
    add.u64 %rd3, %rd3, %rd6;
    add.u64 %rd4, %rd4, %rd6;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r7, 0;
LOOP:
    setp.ge.u32 %p2, %r7, %r2;
    @%p2 bra SUM;
    ld.global.f32 %f2, [%rd1];
    ld.global.f32 %f3, [%rd2];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.u64 %rd1, %rd1, 4;
    add.u64 %rd2, %rd2, 4;
    add.u32 %r7, %r7, 1;
    bra LOOP;
SUM:
    setp.eq.u32 %p3, %r8, 0;
    @%p3 bra STORE;
    ld.global.f32 %f4, [%rd3];
    add.f32 %f1, %f1, %f4;
STORE:
    st.global.f32 [%rd4], %f1;
DONE:
    ret;
}
";

/// Runs products of `f32` weights, with residuals.
pub(crate) struct OwnPtx {
    product: Function,
    residuals: AtomicU64,
}

impl OwnPtx {
    pub(crate) fn new(device: &Device) -> Self {
        let product =
            device.load_ptx(PTX).and_then(|module| module.load_function("product")).expect("a kernel");
        OwnPtx { product, residuals: AtomicU64::new(0) }
    }

    pub(crate) fn residuals(&self) -> u64 {
        self.residuals.load(Relaxed)
    }
}

impl KernelDispatch for OwnPtx {
    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }

    fn accepts(&self, fusion: Fusion, _: &StepOp, _: &Program, _: &PlanOptions) -> bool {
        fusion == Fusion::Residual
    }

    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        let StepOp::Products(products) = step.op() else { return step.run_library() };
        let [matrix] = products.matrices[..] else {
            return Err(ExecuteError::dispatch("one matrix at a time"));
        };
        let out = matrix.out.ok_or_else(|| ExecuteError::dispatch("a product without a result"))?;
        let shape = step.program().ty(matrix.weight).shape;
        let tokens = step.program().ty(products.x).shape.rows() as u32;
        let (n, k) = (shape.dims()[0], shape.columns());
        let (x, y) = (step.buffer::<f32>(products.x)?, step.buffer::<f32>(out)?);
        let w = step.weights(matrix.weight, WeightLayout::Rows)?;
        let residual = matrix.residual.map(|residual| step.buffer::<f32>(residual)).transpose()?;
        let add = u32::from(residual.is_some());
        let builder = step.stream().launch_builder(&self.product).arg(&x).arg(&w);
        let builder = builder.arg(residual.as_ref().unwrap_or(&y)).arg(&y).arg(n).arg(k).arg(add);
        let config = LaunchConfig {
            grid_dim: (n.div_ceil(64), tokens, 1),
            block_dim: (64, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: threads read rows of `x` and `w` and one number of the residual, and write one of `y`, which are
        // as long as the shapes say, and operands of this step alone.
        unsafe { builder.launch(config) }?;
        self.residuals.fetch_add(add.into(), Relaxed);
        Ok(())
    }
}
