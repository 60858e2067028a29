//! Chains of kernels over many phases, stages and tokens, bit for bit as they are launch by launch.

use crate::programs::{in_place, layers};
use crate::rig::{ARCH, Run};
use warpwright_dsl::any::AnyKernel;
use warpwright_kernels::{Assignment, PersistentDecoder};
use warpwright_ptx::verify;
use warpwright_vm::Options;

#[test]
fn the_module_is_accepted() {
    let program = layers();
    for assignment in Assignment::ALL {
        let built = Run::new(1, assignment, 1).decoder(&program).build(ARCH).unwrap();
        let info = verify(&built.module).unwrap();
        let said: Vec<_> = info.diagnostics.iter().map(|diagnostic| diagnostic.to_string()).collect();
        assert_eq!(said, Vec::<String>::new(), "{assignment}");
    }
}

#[test]
fn any_number_of_blocks() {
    let program = layers();
    for assignment in Assignment::ALL {
        for blocks in [1, 2, 3, 8, 32] {
            Run::new(blocks, assignment, 2).agrees(&program);
        }
    }
}

#[test]
fn in_any_order() {
    let program = layers();
    for assignment in Assignment::ALL {
        for seed in 0..6 {
            let blocks = [2, 5, 16][seed as usize % 3];
            Run::new(blocks, assignment, 3).seed(seed).agrees(&program);
        }
    }
}

#[test]
fn items_of_any_size() {
    for grain in [1, 3, 1000] {
        for program in [layers(), in_place()] {
            let run = Run { grain, ..Run::new(3, Assignment::Queue, 2) };
            run.agrees(&program);
        }
    }
}

#[test]
fn many_tokens() {
    for assignment in Assignment::ALL {
        let options = Options::default();
        Run { options, ..Run::new(4, assignment, 64) }.agrees(&in_place());
    }
}

#[test]
fn no_tokens() {
    let program = in_place();
    let outcome = Run::new(2, Assignment::Static, 0).run(&program);
    assert!(outcome.report.is_clean(), "{}", outcome.report);
    assert_eq!(outcome.buffers, program.buffers);
}

/// What a kernel is called says what it is: which ops, in which order, and how they come to blocks.
#[test]
fn names_tell_decoders_apart() {
    let own = PersistentDecoder::new(layers().ops());
    let name = own.entry();
    assert_eq!(PersistentDecoder::new(layers().ops()).entry(), name);
    let mut turned = own.ops.clone();
    turned.swap(0, 1);
    let fewer = own.ops[1..].to_vec();
    let others = [
        PersistentDecoder { ops: turned, ..own.clone() },
        PersistentDecoder { ops: fewer, ..own.clone() },
        PersistentDecoder { assignment: Assignment::Queue, ..own.clone() },
        PersistentDecoder { warps: 4, ..own.clone() },
    ];
    for other in others {
        assert_ne!(other.entry(), name);
    }
}
