//! Configurations that no kernel has: they are refused by a field, and nothing that is asked of them panics.

use warpwright_dsl::{BuildError, any::AnyKernel};
use warpwright_kernels::weights::{Repack, Unpack};
use warpwright_kernels::{
    Activation, Advance, Argmax, CacheDtype, Cast, CopyBytes, Dtype, Elementwise, ElementwiseOp, Embedding,
    FlashAttention, Gemm, IncrementalAttention, Matrix, Penalties, Publish, QuantGemm, QuantGemv,
    QuantizeInt8, ResizeRows, RmsNorm, Rope, Sample, ScaleRows, Softmax, WeightFormat,
};
use warpwright_ptx::ir::Arch;

fn is_refused(kernel: &dyn AnyKernel) {
    let (entry, args, launch) = (kernel.entry(), kernel.args(), kernel.launch());
    let lengths = args.iter().map(|arg| arg.len).chain(launch.grid);
    lengths.for_each(|length| _ = length.evaluate(|_| Some(7)));
    match kernel.build(Arch::sm(80)).map(|_| ()) {
        Err(BuildError::Field { rule, .. }) => assert!(!rule.is_empty(), "{entry}"),
        other => panic!("{entry}: {other:?}"),
    }
}

#[test]
fn sizes_that_no_kernel_has_are_refused() {
    for n in [0, u32::MAX - 2] {
        is_refused(&IncrementalAttention::new(n, n, n, n));
        is_refused(&IncrementalAttention {
            cache: CacheDtype::Q8_0,
            ..IncrementalAttention::new(n, 1, 64, n)
        });
        is_refused(&IncrementalAttention { splits: n, warps: n, ..IncrementalAttention::new(8, 8, 64, 64) });
        is_refused(&FlashAttention::new(n, n, n, n));
        is_refused(&FlashAttention::new(8, n, 64, n));
        is_refused(&Rope::new(n, n, n, n));
        is_refused(&RmsNorm { threads: n, ..RmsNorm::new(n, -1.0) });
        is_refused(&Softmax { threads: n, ..Softmax::new(n) });
        is_refused(&Argmax { blocks: n, threads: n, ..Argmax::new(n) });
        is_refused(&Sample { threads: n, ..Sample::new(n) });
        is_refused(&Advance::new(n));
        is_refused(&Publish::new(n, n));
        is_refused(&CopyBytes { threads: n, ..CopyBytes::new(u64::from(n) << 32) });
        is_refused(&Penalties::new(n, n));
        is_refused(&QuantizeInt8 { threads: n, ..QuantizeInt8::new(n) });
        is_refused(&ScaleRows { terms: n, ..ScaleRows::new(n) });
        is_refused(&Elementwise { threads: n, ..Elementwise::new(ElementwiseOp::Add, n) });
        is_refused(&Cast { threads: n, ..Cast::new(n, CacheDtype::Q8_0, CacheDtype::F32) });
        is_refused(&ResizeRows { threads: n, ..ResizeRows::new(n, 8) });
        is_refused(&ResizeRows::new(8, n));
        is_refused(&Gemm { rows: n, columns: n, stages: n, ..Gemm::new(Dtype::F16, n, n) });
        for format in WeightFormat::ALL {
            is_refused(&QuantGemm { rows: n, columns: n, terms: n, ..QuantGemm::new(format, n, n) });
            is_refused(&QuantGemv { batch: n, ..QuantGemv::new(format, n, n) });
            is_refused(&QuantGemv { epsilon: Some(-1.0), ..QuantGemv::new(format, n, n) });
            is_refused(&Repack::new(format, n, n));
            is_refused(&Unpack::new(format, n, n));
            is_refused(&Embedding::new(format, n, n));
        }
    }
    let matrices = |count| vec![Matrix::new(WeightFormat::Q4K, 64); count];
    for count in [0, 5] {
        is_refused(&QuantGemv { matrices: matrices(count), ..QuantGemv::new(WeightFormat::Q4K, 64, 256) });
    }
    is_refused(&QuantGemv { gate: Some(Activation::Silu), ..QuantGemv::new(WeightFormat::Q4K, 64, 256) });
}
