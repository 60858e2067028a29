//! Chains of kernels over many phases, stages and tokens, bit for bit as they are launch by launch.

use crate::programs::layers;
use crate::rig::{ARCH, Run};
use warpwright_kernels::Assignment;
use warpwright_ptx::dsl::Kernel;
use warpwright_ptx::verify;

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
