//! Pointers that are chosen on the device read what they point to.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::KernelTest;
use warpwright_testing::RunHere;

/// `y[i]` is an element of `a` or `b` for each thread, both moved by constants.
struct Choose;

impl AnyKernel for Choose {
    fn entry(&self) -> String {
        "choose".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let input = |name| ArgDesc::input::<f32>(name, Extent::new(64));
        vec![input("a"), input("b"), ArgDesc::output::<f32>("y", Extent::new(64))]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }

    fn body(&self, k: K<'_>) {
        let (a, b, y) = (k.ptr::<f32>("a"), k.ptr::<f32>("b"), k.ptr_mut::<f32>("y"));
        let i = k.tid();
        y.st(i, i.lt(10).select_ptr(a, b).ld(i));
        y.st(i + 32, i.lt(20).select_ptr(a.at(7), b.at(32)).at(i).ld(0));
    }
}

fn chosen_pointers_read_what_they_point_to() {
    let numbers = |first: f32| (0..64).map(|i| first + i as f32).collect::<Vec<_>>();
    let (a, b) = (numbers(0.0), numbers(100.0));
    let run = KernelTest::new(&Choose).input("a", &a).input("b", &b).run_here().expect("a clean run");
    let first = (0..32).map(|i| if i < 10 { a[i] } else { b[i] });
    let second = (0..32).map(|i| if i < 20 { a[i + 7] } else { b[i + 32] });
    assert_eq!(run.output::<f32>("y"), first.chain(second).collect::<Vec<_>>());
}

crate::case_list! {
    chosen_pointers_read_what_they_point_to,
}
