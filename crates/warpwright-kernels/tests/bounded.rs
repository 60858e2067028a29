//! Kernels stay within their arguments, whatever these hold: the promise of `Bounded`, for every entry of the catalogue.

use warpwright_dsl::{ArgDesc, Role, any::AnyKernel};
use warpwright_kernels::catalogue;
use warpwright_ptx::ir::Arch;
use warpwright_test::KernelTest;
use warpwright_vm::{FindingKind, Options};

/// Bytes of the buffers of a configuration that is run, and how many of an entry are: the smallest.
const MAX_BYTES: u64 = 16 << 20;
const MAX_RUNS: usize = 6;

/// The numbers that lengths, the grid and scalars depend on: those that must agree do not where they can be less, so
/// that what is loaded has to be held against each of them.
fn number(name: &str, seed: u64) -> u64 {
    let one_of = |numbers: [u64; 2]| numbers[(seed % 2) as usize];
    match name {
        "starts" => one_of([1, 3]),
        "q_tokens" | "kv_tokens" => one_of([5, 40]),
        "length" => one_of([1 << 31, 77]),
        _ => 3,
    }
}

/// Bits that tend to be wrong as an index: huge, small, just beyond.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = self.0 >> 11;
        match bits % 4 {
            0 => u64::MAX,
            1 => (bits >> 8) % 8,
            2 => (bits >> 8) % 5000,
            _ => bits.rotate_left(40) ^ bits,
        }
    }

    fn give<'a>(&mut self, test: KernelTest<'a>, arg: &ArgDesc, count: usize) -> KernelTest<'a> {
        let bits: Vec<u64> = (0..count).map(|_| self.next()).collect();
        let all = || bits.iter().copied();
        match arg.dtype.bytes() {
            1 => test.input(arg.name, &all().map(|bits| bits as u8).collect::<Vec<_>>()),
            2 => test.input(arg.name, &all().map(|bits| bits as u16).collect::<Vec<_>>()),
            4 => test.input(arg.name, &all().map(|bits| bits as u32).collect::<Vec<_>>()),
            _ => test.input(arg.name, &all().collect::<Vec<_>>()),
        }
    }
}

/// Bytes of the kernel's buffers.
fn bytes(kernel: &dyn AnyKernel) -> u64 {
    let args = kernel.args();
    let buffers = args.iter().filter(|arg| arg.role != Role::Scalar);
    let len = |arg: &ArgDesc| arg.len.evaluate(|name| Some(number(name, 1))).unwrap_or(u64::MAX);
    buffers.map(|arg| len(arg).saturating_mul(arg.dtype.bytes().into())).fold(0, u64::saturating_add)
}

/// What the kernel has accessed outside of its arguments.
fn outside(kernel: &dyn AnyKernel, seed: u64) -> Vec<String> {
    let (args, rule) = (kernel.args(), kernel.launch());
    let mut bits = Bits(seed);
    let arch = Arch::sm(rule.min_sm.max(80));
    let mut test = KernelTest::new(kernel).arch(arch).options(Options::default()).seed(seed);
    let numbers = args.iter().filter(|arg| arg.role == Role::Scalar).map(|arg| arg.name);
    let extents = args.iter().map(|arg| &arg.len).chain(&rule.grid);
    for name in numbers.chain(extents.flat_map(|extent| extent.depends_on())) {
        test = test.dim(name, number(name, seed));
    }
    for arg in args.iter().filter(|arg| arg.role != Role::Scalar) {
        let count = arg.len.evaluate(|name| Some(number(name, seed))).expect("every number is known");
        test = bits.give(test, arg, count as usize);
    }
    let (_, report) = test.run_unjudged().unwrap_or_else(|error| panic!("{}: {error}", kernel.entry()));
    let accesses = report.findings.iter().filter(|finding| matches!(finding.kind, FindingKind::Access(_)));
    accesses.map(|finding| format!("{}: {finding:?}", kernel.entry())).collect()
}

#[test]
fn kernels_of_the_catalogue_stay_within_their_arguments() {
    for entry in catalogue() {
        let configure = |assignments: &&str| {
            let has_cache = entry.fields.iter().any(|field| field.name == "max_seq_len");
            let is_short = !has_cache || assignments.contains("max_seq_len");
            let assignments = format!("{assignments}{}", if is_short { "" } else { " max_seq_len=48" });
            entry.configure_text(&assignments).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
        };
        let mut kernels: Vec<_> = std::iter::once(&"").chain(entry.examples).map(configure).collect();
        if entry.name == "persistent_decoder" {
            assert!(
                kernels.iter().all(|kernel| kernel.bounded().is_none()),
                "it follows addresses in memory"
            );
            continue;
        }
        for kernel in &kernels {
            assert_eq!(kernel.bounded().expect("a promise").entry(), kernel.entry());
        }
        kernels.sort_by_cached_key(|kernel| bytes(&**kernel));
        assert!(bytes(&*kernels[0]) <= MAX_BYTES, "{} has no example that is small enough", entry.name);
        // Where lists say which part of a buffer is whose, each example is run, and each way to be wrong.
        let has_lists = |kernel: &dyn AnyKernel| {
            kernel.args().iter().any(|arg| matches!(arg.name, "starts" | "sequences" | "positions"))
        };
        for (place, kernel) in kernels.iter().enumerate().filter(|(_, kernel)| bytes(&***kernel) <= MAX_BYTES)
        {
            let seeds = if has_lists(&**kernel) { 0..2 } else { place as u64..place as u64 + 1 };
            for seed in seeds.filter(|_| place < MAX_RUNS || has_lists(&**kernel)) {
                let outside = outside(&**kernel, seed);
                assert_eq!(outside.first(), None);
            }
        }
    }
}
