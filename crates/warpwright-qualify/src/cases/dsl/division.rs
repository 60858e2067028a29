//! Division by constants, executed: the same quotients and remainders as the host's.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_test::KernelTest;
use warpwright_testing::RunHere;

const DIVISORS: [u32; 14] = [1, 2, 3, 5, 6, 7, 10, 14, 32, 641, 4096, 65537, 1 << 31, u32::MAX];

struct Divisions;

impl AnyKernel for Divisions {
    fn entry(&self) -> String {
        "divisions".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let results = Extent::dim("n").times(DIVISORS.len() as u64);
        vec![
            ArgDesc::input::<u32>("x", Extent::dim("n")),
            ArgDesc::output::<u32>("quotients", results),
            ArgDesc::output::<u32>("remainders", results),
            ArgDesc::output::<u64>("wide", Extent::dim("n")),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid(Extent::dim("n").per(32))
    }

    fn body(&self, k: K<'_>) {
        let x = k.ptr::<u32>("x");
        let (quotients, remainders) = (k.ptr_mut::<u32>("quotients"), k.ptr_mut::<u32>("remainders"));
        let wide = k.ptr_mut::<u64>("wide");
        let i = k.global_tid();
        let n = x.ld(i);
        for (at, divisor) in (0..).zip(DIVISORS) {
            quotients.st(i * DIVISORS.len() as u32 + at, n / divisor);
            remainders.st(i * DIVISORS.len() as u32 + at, n % divisor);
        }
        let square = n.mul_wide(n);
        wide.st(i, square / 1024u64 + square % 1024u64);
    }
}

fn quotients_and_remainders_are_the_hosts() {
    let mut x: Vec<u32> = (0..16).chain([u32::MAX, u32::MAX - 1, 1 << 31]).collect();
    x.extend((0..109).map(|i: u32| i.wrapping_mul(0x9e37_79b9)));
    let run = KernelTest::new(&Divisions).dim("n", 128).input("x", &x).run_here().expect("a clean run");
    let pairs = || x.iter().flat_map(|&n| DIVISORS.map(|divisor| (n, divisor)));
    assert_eq!(run.output::<u32>("quotients"), pairs().map(|(n, d)| n / d).collect::<Vec<_>>());
    assert_eq!(run.output::<u32>("remainders"), pairs().map(|(n, d)| n % d).collect::<Vec<_>>());
    let squares = x.iter().map(|&n| u64::from(n) * u64::from(n));
    assert_eq!(run.output::<u64>("wide"), squares.map(|s| s / 1024 + s % 1024).collect::<Vec<_>>());
}

crate::case_list! {
    quotients_and_remainders_are_the_hosts,
}
