//! What a test says whose kernel is wrong: the line of Rust, and the argument by its name.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::{KernelTest, TestError};

/// `y = x + w`, with mistakes that are asked for.
struct Wrong {
    /// Words by which it goes too far in `w`.
    beyond: u32,
    /// It has threads wait for one that never comes.
    waits: bool,
}

impl AnyKernel for Wrong {
    fn entry(&self) -> String {
        "wrong".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        let n = Extent::dim("n");
        vec![
            ArgDesc::input::<f32>("x", n),
            ArgDesc::input::<f32>("w", n),
            ArgDesc::output::<f32>("y", n).may_share(&["x"]),
        ]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        let (x, w, y) = (k.ptr::<f32>("x"), k.ptr::<f32>("w"), k.ptr_mut::<f32>("y"));
        let i = k.tid();
        y.st(i, x.ld(i) + w.ld(i + self.beyond));
        if self.waits {
            k.when(i.eq(3u32), || k.op(warpwright_ptx::op::control::Trap {}));
        }
    }
}

/// What the test says of it.
fn said(kernel: &Wrong, in_place: bool) -> String {
    let data = [1.0f32; 32];
    let test = KernelTest::new(kernel).dim("n", 32).input("x", &data).input("w", &data).seed(0);
    let test = if in_place { test.in_place("y", "x") } else { test };
    match test.run() {
        Err(error @ TestError::Findings(_)) => format!("{error:?}"),
        Err(other) => panic!("{other}"),
        Ok(_) => String::new(),
    }
}

#[test]
fn a_finding_names_the_line_of_rust_and_the_argument() {
    assert_eq!(said(&Wrong { beyond: 0, waits: false }, false), "");
    assert_eq!(said(&Wrong { beyond: 1, waits: false }, false), "");
}

#[test]
fn buffers_that_are_shared_have_both_names() {
    assert_eq!(said(&Wrong { beyond: 0, waits: false }, true), "");
}

#[test]
fn a_trap_names_the_line_of_rust() {
    assert_eq!(said(&Wrong { beyond: 0, waits: true }, false), "");
}
