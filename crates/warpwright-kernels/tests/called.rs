//! Bodies that another kernel calls, by teams of its warps: they do what they do where they are launched.

use std::sync::Arc;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_kernels::{Op, PersistentDecoder, QuantGemv, RmsNorm, WeightFormat};
use warpwright_qualify::common::called::Calls;

#[test]
fn a_norm_by_teams() {
    let (d, rows) = (96, 7);
    for threads in [32, 64, 256] {
        let norm = RmsNorm { threads, ..RmsNorm::new(d, 1e-5) };
        let x: Vec<f32> = (0..rows * d).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<f32> = (0..d).map(|i| i as f32 / 64.0 + 0.5).collect();
        Calls::new(&norm).dim("rows", rows.into()).input("x", &x).input("w", &w).check();
    }
}

#[test]
fn a_product_by_teams() {
    let (n, k) = (70, 256);
    for warps in [1, 2, 4, 8] {
        let gemv = QuantGemv { warps: Some(warps), ..QuantGemv::new(WeightFormat::F16, n, k) };
        let x: Vec<f32> = (0..k).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let w: Vec<u8> = (0..n * k).flat_map(|i| [(i % 251) as u8, 0x30 + (i % 7) as u8]).collect();
        Calls::new(&gemv).input("x", &x).input("w0", &w).check();
    }
}

/// Two arrays of shared memory, of which the second is not used: how far teams are apart in the first is its length alone.
struct Padded {
    first: u32,
    pad: u32,
}

impl AnyKernel for Padded {
    fn entry(&self) -> String {
        "padded".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("y", 64)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(64)
    }

    fn body(&self, k: K<'_>) {
        let shared = k.shared::<u32>(self.first);
        if self.pad > 0 {
            let _ = k.shared::<u32>(self.pad);
        }
        shared.st(0, k.tid());
        k.ptr_mut::<u32>("y").st(k.tid(), k.dim(self.first).reg());
    }
}

/// Kernels whose teams have their shared memory at other distances are not one op, nor are ops for other blocks.
#[test]
fn ops_differ_by_where_teams_have_their_memory() {
    let op = |first, pad, warps| {
        let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(Padded { first, pad });
        Op::of(&kernel, warps, Arch::sm(80)).expect("an op").remove(0)
    };
    assert!(op(64, 0, 8) == op(64, 0, 8));
    assert!(op(64, 0, 8) != op(128, 0, 8));
    // As much memory in all.
    assert!(op(16, 48, 8) != op(64, 0, 8));
    let decoder = PersistentDecoder::new(vec![op(64, 0, 4)]);
    assert!(matches!(AnyKernel::check(&decoder), Err(BuildError::Field { field: "ops", .. })));
}

/// Asks for its arguments in another order on newer targets.
struct ByTarget;

impl AnyKernel for ByTarget {
    fn entry(&self) -> String {
        "by_target".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<u32>("a", 1), ArgDesc::output::<u32>("b", 1)]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let names = if k.target().sm < 90 { ["a", "b"] } else { ["b", "a"] };
        names.into_iter().for_each(|name| k.ptr_mut::<u32>(name).st(0, 1));
    }
}

#[test]
fn a_decoder_is_built_for_targets_on_which_its_records_are_the_same() {
    let kernel: Arc<dyn AnyKernel + Send + Sync> = Arc::new(ByTarget);
    let decoder = PersistentDecoder::new(Op::of(&kernel, 8, Arch::sm(80)).expect("an op"));
    assert!(AnyKernel::build(&decoder, Arch::sm(86)).is_ok());
    assert!(AnyKernel::build(&decoder, Arch::sm(90)).is_err());
}

/// A piece of a launch calls a body that has shared memory of its own: it is not the piece's.
#[test]
fn a_piece_keeps_its_memory_when_it_calls() {
    struct Calls;

    impl AnyKernel for Calls {
        fn entry(&self) -> String {
            "calls".into()
        }

        fn args(&self) -> Vec<ArgDesc> {
            vec![ArgDesc::output::<u32>("y", 64)]
        }

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32).grid(2)
        }

        fn body(&self, k: K<'_>) {
            let y = k.ptr_mut::<u32>("y");
            k.pieces(&[1, 1], |piece, _| {
                let own = k.shared::<u32>(32);
                own.st(k.tid(), piece as u32 + 1);
                let [zero, one] = [0, 1].map(|n| k.u32(n));
                k.teams(1).run([zero; 3], [one; 3], || k.shared::<u32>(32).st(k.tid(), 99));
                y.st(piece as u32 * 32 + k.tid(), own.ld(k.tid()));
            });
        }
    }

    let run = warpwright_test::KernelTest::new(&Calls).run().expect("a run");
    assert_eq!(run.output::<u32>("y"), [[1u32; 32], [2; 32]].concat());
}
