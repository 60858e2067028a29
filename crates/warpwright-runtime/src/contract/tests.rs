//! The contract against an oracle that knows bytes only: for arguments drawn at random, whether any byte that is
//! written is also something else's.

use super::{Argument, Arguments, Contract, ContractError, Kind, Limits, Measure, Span, Violation};
use warpwright_dsl::{ArgDesc, Extent, LaunchRule, Role};
use warpwright_ptx::ir::{Arch, Type};

const LIMITS: Limits = Limits {
    device: 7,
    arch: Arch::sm(80),
    grid: [0x7fff_ffff, 0xffff, 0xffff],
    block: [1024, 1024, 64],
    threads: 1024,
    shared: 163 << 10,
    clusters: false,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const SHARES: [&[&str]; 4] = [&[], &["a"], &["b", "c"], &["a", "d", "e"]];

/// Numbers below a bound, the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A kernel of bytes, and where its arguments lie: address, and bytes that it may touch.
struct Drawn {
    contract: Contract,
    args: Vec<ArgDesc>,
    places: Vec<(u64, u64)>,
}

fn draw(draw: &mut Draw) -> Drawn {
    let count = 2 + draw.below(4) as usize;
    let mut args = Vec::new();
    let mut places = Vec::new();
    for name in &NAMES[..count] {
        let role = [Role::In, Role::Out, Role::InOut][draw.below(3) as usize];
        let bytes = [0, 1, 16, 17, 32, 48][draw.below(6) as usize];
        let mut arg = ArgDesc::buffer(name, Type::U8, role, Extent::new(bytes));
        if role == Role::Out {
            arg = arg.may_share(SHARES[draw.below(4) as usize]);
        }
        args.push(arg);
        places.push((4096 + 16 * draw.below(12), bytes));
    }
    let contract = Contract::new("k", args.clone(), LaunchRule::new(32), LIMITS);
    Drawn { contract: contract.expect("a contract"), args, places }
}

impl Drawn {
    fn give(&self, slack: u64) -> Arguments {
        let mut arguments = self.contract.arguments();
        for (arg, &(address, bytes)) in self.args.iter().zip(&self.places) {
            let span = Span { dtype: arg.dtype, address, bytes: bytes + slack, device: LIMITS.device };
            self.contract
                .give(&mut arguments, arg.name, Argument::Buffer(span))
                .expect("a name of the kernel");
        }
        arguments
    }

    /// Whether `written` and `other` have a byte in common, and may not.
    fn clash(&self, written: usize, other: usize) -> bool {
        let bytes = |at: usize| self.places[at].0..self.places[at].0 + self.places[at].1;
        let common = bytes(written).any(|byte| bytes(other).contains(&byte));
        let same = bytes(written) == bytes(other);
        let is_input = self.args[other].role == Role::In;
        let allowed = same && is_input && self.args[written].shares.contains(&self.args[other].name);
        written != other && self.args[written].role != Role::In && common && !allowed
    }

    fn at(&self, name: &str) -> usize {
        self.args.iter().position(|arg| arg.name == name).expect("a name of the kernel")
    }
}

#[test]
fn nothing_that_is_written_is_anything_else() {
    let mut random = Draw(1);
    let mut refused = 0;
    let mut shared = 0;
    for _ in 0..20_000 {
        let drawn = draw(&mut random);
        // What is behind the bytes that a kernel may touch does not count.
        let arguments = drawn.give(random.below(3) * 40);
        let count = drawn.args.len();
        // An input that two outputs may be is not both.
        let clashes = (0..count).any(|i| (0..count).any(|j| drawn.clash(i, j)));
        let in_place = |i: usize, j: usize| {
            i != j && drawn.args[i].role == Role::Out && drawn.places[i] == drawn.places[j]
        };
        let in_place = (0..count).any(|i| drawn.places[i].1 > 0 && (0..count).any(|j| in_place(i, j)));
        match drawn.contract.resolve(&arguments, drawn.contract.block(), || 0) {
            Ok(resolved) => {
                assert!(!clashes, "{:?} at {:?}", drawn.args, drawn.places);
                assert_eq!(resolved.params.len(), count);
                shared += u32::from(in_place);
            }
            Err(error) => {
                refused += 1;
                let Violation::Overlap { argument, other, bytes, .. } = error.violation else {
                    panic!("{error}")
                };
                let (written, other) = (drawn.at(argument), drawn.at(other));
                assert!(drawn.clash(written, other) || drawn.clash(other, written), "{error}");
                let ends = [written, other].map(|at| drawn.places[at].0 + drawn.places[at].1);
                let begin = drawn.places[written].0.max(drawn.places[other].0);
                assert_eq!(bytes, ends[0].min(ends[1]) - begin);
            }
        }
    }
    assert!((5_000..15_000).contains(&refused) && shared > 20, "{refused} refused, {shared} shared");
}

#[test]
fn lengths_beyond_all_memory_are_too_large_and_not_short() {
    let n = || Extent::dims("n", "m").times(1 << 20);
    let args = vec![ArgDesc::buffer("a", Type::F64, Role::In, n())];
    let contract = Contract::new("k", args, LaunchRule::new(32), LIMITS).expect("a contract");
    let resolve = |n: u64, m: u64| {
        let mut arguments = contract.arguments();
        let span = Span { dtype: Type::F64, address: 0, bytes: u64::MAX, device: LIMITS.device };
        contract.give(&mut arguments, "a", Argument::Buffer(span)).expect("a buffer");
        contract.give_dim(&mut arguments, "n", n).expect("a number");
        contract.give_dim(&mut arguments, "m", m).expect("a number");
        contract.resolve(&arguments, contract.block(), || 0).map_err(|error| error.violation)
    };
    assert!(resolve(1 << 20, 1 << 20).is_ok());
    assert!(resolve(0, 1 << 40).is_ok());
    // 2⁶¹ elements are 2⁶⁴ bytes; 2⁶⁴ elements are no number.
    for (n, m) in [(1 << 21, 1 << 20), (1 << 22, 1 << 22), (u64::MAX, u64::MAX)] {
        assert!(matches!(resolve(n, m), Err(Violation::Overflow { .. })), "{n} and {m}");
    }
}

#[test]
fn numbers_that_lengths_depend_on_are_counts() {
    let args = vec![
        ArgDesc::buffer("a", Type::U8, Role::In, Extent::dim("n")),
        ArgDesc::scalar::<i32>("n"),
        ArgDesc::scalar::<f32>("x"),
    ];
    let contract = Contract::new("k", args, LaunchRule::new(32), LIMITS).expect("a contract");
    assert!(contract.dims.is_empty());
    let resolve = |n: i32| {
        let mut arguments = contract.arguments();
        let span = Span { dtype: Type::U8, address: 0, bytes: 100, device: LIMITS.device };
        contract.give(&mut arguments, "a", Argument::Buffer(span)).expect("a buffer");
        let n = super::Number::new(Type::S32, &n.to_le_bytes());
        contract.give(&mut arguments, "n", Argument::Number(n)).expect("a number");
        let x = super::Number::new(Type::F32, &0.5f32.to_le_bytes());
        contract.give(&mut arguments, "x", Argument::Number(x)).expect("a number");
        contract.resolve(&arguments, contract.block(), || 0).map_err(|error| error.violation)
    };
    assert!(resolve(100).is_ok() && resolve(0).is_ok());
    assert!(matches!(resolve(101), Err(Violation::TooShort { given: 100, needed: 101, .. })));
    let expected = Violation::Count { argument: "n", given: "-1".into(), needed: Type::U64 };
    assert_eq!(resolve(-1), Err(expected));
    // `dim` gives an argument of its name what fits its type.
    let mut arguments = contract.arguments();
    assert!(contract.give_dim(&mut arguments, "n", 1 << 31).is_err());
    assert!(contract.give_dim(&mut arguments, "x", 1).is_err());
    assert!(contract.give_dim(&mut arguments, "n", (1 << 31) - 1).is_ok());
}

#[test]
fn a_number_may_have_the_name_of_the_buffer_whose_length_it_is() {
    let args = vec![ArgDesc::buffer("items", Type::U8, Role::In, Extent::dim("items").times(8))];
    let contract = Contract::new("k", args, LaunchRule::new(32), LIMITS).expect("a contract");
    let mut arguments = contract.arguments();
    let span = Span { dtype: Type::U8, address: 0, bytes: 100, device: LIMITS.device };
    contract.give_dim(&mut arguments, "items", 12).expect("a number");
    contract.give(&mut arguments, "items", Argument::Buffer(span)).expect("a buffer");
    let twice = contract.give_dim(&mut arguments, "items", 12).map_err(|error| error.violation);
    assert_eq!(twice, Err(Violation::Twice { argument: "items" }));
    assert!(contract.resolve(&arguments, contract.block(), || 0).is_ok());
    let mut arguments = contract.arguments();
    contract.give_dim(&mut arguments, "items", 13).expect("a number");
    contract.give(&mut arguments, "items", Argument::Buffer(span)).expect("a buffer");
    let short = contract.resolve(&arguments, contract.block(), || 0).map_err(|error| error.violation);
    assert!(matches!(short, Err(Violation::TooShort { argument: "items", given: 100, needed: 104, .. })));
}

/// The messages, which are documentation: each names the kernel, the argument, what was given and what is needed.
#[test]
fn refusals_say_what_is_wrong_and_what_is_needed() {
    let messages = [
        (
            Violation::Unknown { argument: "z".into(), known: vec!["x", "rows"] },
            "there is no argument `z`: it takes x, rows",
        ),
        (Violation::Twice { argument: "x" }, "`x` is given twice; it takes one"),
        (
            Violation::Missing { argument: "x", needed: Kind::Buffer(Type::F32) },
            "`x` is missing: give a buffer of f32",
        ),
        (
            Violation::Kind {
                argument: "x",
                given: Kind::Number(Type::U32),
                needed: Kind::Buffer(Type::F32),
            },
            "`x` is a number of type u32; it must be a buffer of f32",
        ),
        (
            Violation::Type {
                argument: "x",
                given: Kind::Buffer(Type::F16),
                needed: Kind::Buffer(Type::F32),
            },
            "`x` is a buffer of f16; it must be a buffer of f32",
        ),
        (
            Violation::MissingDim { dim: "rows", of: Measure::Length { argument: "x" } },
            "the length of `x` depends on `rows`, which is missing: give it with `dim`",
        ),
        (
            Violation::MissingDim { dim: "rows", of: Measure::Grid },
            "the grid depends on `rows`, which is missing: give it with `dim`",
        ),
        (
            Violation::Count { argument: "rows", given: "4294967296".into(), needed: Type::U32 },
            "`rows` is 4294967296, which is no number of u32",
        ),
        (
            Violation::Overflow { of: Measure::Grid, extent: Box::new(Extent::dims("a", "b").times(3)) },
            "the grid, 3*a*b, is too large",
        ),
        (
            Violation::TooShort {
                argument: "x",
                given: 4095,
                needed: 4096,
                extent: Box::new(Extent::dim("rows").times(2048)),
            },
            "`x` has 4095 elements; it needs 4096 (2048*rows)",
        ),
        (
            Violation::Misaligned { argument: "x", given: 0x7f04, needed: 16 },
            "`x` begins at 0x7f04; its address must be a multiple of 16",
        ),
        (
            Violation::OtherDevice { argument: "x", given: 1, needed: 0 },
            "`x` is on device 1; it must be on device 0, where the kernel runs",
        ),
        (
            Violation::Overlap { argument: "y", other: "x", bytes: 8, shareable: true },
            "`y`, which it writes, overlaps `x` by 8 bytes; it may be exactly that buffer, or must be apart from it",
        ),
        (
            Violation::Overlap { argument: "y", other: "x", bytes: 8, shareable: false },
            "`y`, which it writes, overlaps `x` by 8 bytes; they must be apart",
        ),
        (
            Violation::Grid { given: [0, 1, 1], needed: [0x7fff_ffff, 0xffff, 0xffff] },
            "a grid of [0, 1, 1] blocks: each dimension must be from 1 to [2147483647, 65535, 65535]",
        ),
        (
            Violation::Block { given: [64, 1, 1], needed: [32, 1, 1], exactly: true, max: 1024 },
            "a block of [64, 1, 1] threads: it takes [32, 1, 1] and no other",
        ),
        (
            Violation::Block { given: [0, 1, 1], needed: [1024, 1024, 64], exactly: false, max: 1024 },
            "a block of [0, 1, 1] threads: it takes 1 to [1024, 1024, 64], 1024 in all at most",
        ),
        (
            Violation::SharedMemory { given: 70_000, needed: 65_536 },
            "a block has 70000 bytes of shared memory; the device gives it 65536 at most",
        ),
        (
            Violation::DynamicShared { given: 50_000, needed: 49_152, max: 166_912 },
            "a block has 50000 bytes of dynamic shared memory; 49152 are allowed, and up to 166912 by \
             `Function::set_max_dynamic_shared`",
        ),
        (Violation::ParameterCount { given: 3, needed: 4 }, "3 parameters are given; it takes 4"),
        (
            Violation::ParameterSize { index: 2, argument: "both".into(), given: 4, needed: 8 },
            "parameter 2 (`both`) has 4 bytes; it needs 8",
        ),
        (
            Violation::ParameterAlignment { index: 0, argument: "x".into(), given: 0x7f04, needed: 16 },
            "parameter 0 (`x`) is 0x7f04; it must be a multiple of 16",
        ),
        (
            Violation::Architecture { given: Arch::sm(75), needed: 80 },
            "the device is sm_75; it needs sm_80 or later",
        ),
        (
            Violation::NotResident { given: 7, needed: 6 },
            "a cooperative launch of 7 blocks, which must all be resident; at most 6 can be",
        ),
        (
            Violation::NotCallable,
            "its blocks run together, cooperatively or in clusters, as they do in a launch of its own alone; \
             operands are made for kernels whose blocks run one by one",
        ),
        (Violation::Cluster { given: [2, 1, 1] }, "clusters of [2, 1, 1] blocks; the device runs none"),
        (
            Violation::ClusterShape { given: [2, 1, 1], grid: [3, 1, 1] },
            "clusters of [2, 1, 1] blocks in a grid of [3, 1, 1]; a cluster has 1 to 8 blocks, and the grid is a \
             multiple of it along each axis",
        ),
    ];
    for (violation, message) in messages {
        assert_eq!(ContractError::new("k", violation).to_string(), format!("kernel `k`: {message}"));
    }
}

#[test]
fn a_grid_is_made_of_whole_clusters() {
    let limits = Limits { clusters: true, ..LIMITS };
    let check = |cluster, grid| limits.check_cluster(Some(cluster), grid);
    for (cluster, grid) in
        [([1, 1, 1], [1, 1, 1]), ([2, 1, 1], [6, 1, 1]), ([8, 1, 1], [8, 3, 1]), ([2, 2, 2], [4, 6, 2])]
    {
        assert_eq!(check(cluster, grid), Ok(()), "{cluster:?} in {grid:?}");
    }
    for (cluster, grid) in [
        ([2, 1, 1], [5, 1, 1]),
        ([1, 2, 1], [2, 1, 1]),
        ([16, 1, 1], [16, 1, 1]),
        ([2, 2, 4], [4, 4, 4]),
        ([0, 1, 1], [4, 1, 1]),
        ([u32::MAX; 3], [u32::MAX; 3]),
    ] {
        assert_eq!(check(cluster, grid), Err(Violation::ClusterShape { given: cluster, grid }));
    }
    assert_eq!(limits.check_cluster(None, [5, 1, 1]), Ok(()));
    assert_eq!(
        LIMITS.check_cluster(Some([1, 1, 1]), [1, 1, 1]),
        Err(Violation::Cluster { given: [1, 1, 1] })
    );
}
