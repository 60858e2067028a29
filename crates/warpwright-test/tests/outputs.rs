//! Outputs that the kernel leaves unwritten.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::{KernelTest, TestError};
use warpwright_vm::{Checks, Options};

/// `y = x`, of every `step`-th element, by a warp.
struct Copy {
    step: u32,
}

impl AnyKernel for Copy {
    fn entry(&self) -> String {
        "copy".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        let n = Extent::dim("n");
        vec![
            ArgDesc::input::<f32>("x", n),
            ArgDesc::output::<f32>("y", n).may_share(&["x"]),
            ArgDesc::scalar::<u32>("n"),
        ]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        let (x, y, n) = (k.ptr::<f32>("x"), k.ptr_mut::<f32>("y"), k.scalar::<u32>("n"));
        let i = k.tid() * self.step;
        k.when(i.lt(n), || y.st(i, x.ld(i)));
    }
}

const COPY: Copy = Copy { step: 1 };

fn test(kernel: &Copy, n: usize) -> KernelTest<'_> {
    KernelTest::new(kernel).dim("n", n as u64).input("x", &vec![1.0f32; n]).seed(0)
}

/// What the test says.
fn said(test: KernelTest<'_>) -> String {
    match test.run() {
        Ok(_) => String::new(),
        Err(error @ TestError::Findings(_)) => error.to_string(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_nobody_wrote_is_found() {
    assert_eq!(said(test(&COPY, 32)), "");
    // The kernel has one warp.
    assert_eq!(
        said(test(&COPY, 35)),
        "\
kernel `copy`: 1 finding
error[initcheck]: the output `y` has 3 elements of 35 that were never written: the first is element 32
 |
 = note: in kernel `copy`"
    );
    assert_eq!(
        said(test(&Copy { step: 2 }, 32)),
        "\
kernel `copy`: 1 finding
error[initcheck]: the output `y` has 16 elements of 32 that were never written: the first is element 1
 |
 = note: in kernel `copy`"
    );
}

#[test]
fn what_need_not_be_written_is_not_looked_at() {
    assert_eq!(said(test(&COPY, 35).partly("y")), "", "it is said to be written in part");
    assert_eq!(said(test(&COPY, 35).input("y", &[7.0f32; 35])), "", "it holds something before");
    assert_eq!(said(test(&COPY, 35).in_place("y", "x")), "", "it is the input");
    let options = Options { checks: Checks { init: false, ..Checks::ALL }, ..Options::checked() };
    assert_eq!(said(test(&COPY, 35).options(options)), "", "it is not checked");
    match test(&COPY, 35).partly("z").run() {
        Err(TestError::Argument(message)) => {
            assert_eq!(message, "there is no argument `z`: there are x, y, n")
        }
        _ => panic!("there is no such argument"),
    }
}
