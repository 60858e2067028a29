//! What a test says whose kernel is wrong: the line of Rust, and the argument by its name.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::{KernelTest, TestError};

/// The line of the sum in the body, and behind it that of the trap.
const SUM: u32 = 38;

/// `y = x + w`, with mistakes that are asked for.
struct Wrong {
    /// By how many words it goes too far in `w`.
    in_w: u32,
    /// By how many words it goes too far in `y`.
    in_y: u32,
    /// A thread traps.
    traps: bool,
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
        y.st(i + self.in_y, x.ld(i) + w.ld(i + self.in_w));
        if self.traps {
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

const RIGHT: Wrong = Wrong { in_w: 0, in_y: 0, traps: false };

#[test]
fn a_finding_names_the_line_of_rust_and_the_argument() {
    assert_eq!(said(&RIGHT, false), "");
    assert_eq!(
        said(&Wrong { in_w: 1, ..RIGHT }, false),
        format!(
            "\
kernel `wrong`: 1 finding
error[memcheck]: a read of global memory is out of bounds
  --> crates/warpwright-test/tests/findings.rs:{SUM}:41
   |
{SUM} |         y.st(i + self.in_y, x.ld(i) + w.ld(i + self.in_w));
   |                                         ^^ thread (31,0,0) of block (0,0,0) reads 4 bytes at 0x700000200080
   |
   = note: in kernel `wrong`
   = note: the address is just past `w`, of 128 bytes"
        )
    );
}

#[test]
fn buffers_that_are_shared_have_both_names() {
    assert_eq!(
        said(&Wrong { in_y: 32, ..RIGHT }, true),
        format!(
            "\
kernel `wrong`: 1 finding
error[memcheck]: a write of global memory is out of bounds
  --> crates/warpwright-test/tests/findings.rs:{SUM}:11
   |
{SUM} |         y.st(i + self.in_y, x.ld(i) + w.ld(i + self.in_w));
   |           ^^ thread (0,0,0) of block (0,0,0) writes 4 bytes at 0x700000000080
   |
   = note: in kernel `wrong`
   = note: the address is just past `x` and `y`, of 128 bytes"
        )
    );
}

#[test]
fn a_trap_names_the_line_of_rust() {
    let trap = SUM + 2;
    assert_eq!(
        said(&Wrong { traps: true, ..RIGHT }, false),
        format!(
            "\
kernel `wrong`: a trap
error[trap]: the kernel executed `trap`
  --> crates/warpwright-test/tests/findings.rs:{trap}:37
   |
{trap} |             k.when(i.eq(3u32), || k.op(warpwright_ptx::op::control::Trap {{}}));
   |                                     ^^ thread (3,0,0) of block (0,0,0)
   |
   = note: kernel `wrong` did not run to its end"
        )
    );
}
