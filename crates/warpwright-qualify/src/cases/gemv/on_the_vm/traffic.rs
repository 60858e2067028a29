//! What the products with quantised matrices ask of memory, by the virtual GPU's counters: each weight once, by
//! loads of 16 bytes that fill their sectors, few activations, and no lanes that meet in a bank.

use warpwright_dsl::{ArgDesc, Role, any::AnyKernel};
use warpwright_kernels::weights::{Planes, WeightFormat};
use warpwright_kernels::{Activation, Activations, Matrix, QuantGemv};
use warpwright_ptx::ir::Type;
use warpwright_test::KernelTest;
use warpwright_vm::{Counters, Options, Report, SpaceTraffic};

/// Bytes of a sector, of a request of 16 bytes a lane, and of a pass of a cache's banks.
const SECTOR: u64 = 32;
const REQUEST: u64 = 512;
const PASS: u64 = 128;

/// Runs it with zeros everywhere; yields the report, and of each argument the traffic and the passes of the cache's banks.
fn run(kernel: &dyn AnyKernel) -> (Report, Vec<(&'static str, SpaceTraffic, u64)>) {
    let options = Options { counters: true, fetches: true, ..Options::default() };
    let args = kernel.args();
    let mut test = KernelTest::new(kernel).options(options);
    for ArgDesc { name, dtype, role, len, .. } in &args {
        let count = len.evaluate(|_| None).expect("lengths that the configuration fixes") as usize;
        if *role == Role::In {
            test = match dtype {
                Type::U8 => test.input(name, &vec![0u8; count]),
                Type::S8 => test.input(name, &vec![0i8; count]),
                _ => test.input(name, &vec![0f32; count]),
            };
        }
    }
    let report = test.run().unwrap_or_else(|error| panic!("{}: {error}", kernel.entry())).report;
    let Counters { allocations, fetches, .. } = &report.counters;
    assert_eq!((allocations.len(), fetches.len()), (args.len(), args.len()));
    let of_each = allocations.iter().zip(fetches).map(|(traffic, fetches)| (traffic.2, fetches.2.passes));
    let by_name =
        args.iter().zip(of_each).map(|(arg, (traffic, passes))| (arg.name, traffic, passes)).collect();
    (report, by_name)
}

/// What a matrix should cost: its bytes, the requests for them, and the sectors. The 512 weights of four rows are asked for
/// in 512 bytes of codes at a time, and once for each of what is beside them. Half of a sector that lies in two slices is
/// read by both.
fn needed(matrix: &Matrix, k: u32, (rows, results): (u64, u64)) -> [u64; 3] {
    let (n, mut sums) = (u64::from(matrix.n), [0; 3]);
    for plane in Planes::new(matrix.format, matrix.n, k).iter() {
        let slices = if matrix.format.is_float() { 0 } else { u64::from(k.div_ceil(512)) };
        let of_slice = plane.row_bytes.checked_div(slices).unwrap_or(SECTOR);
        let requests = match plane.name {
            "tensor_scale" => n / rows * results.div_ceil(32),
            "codes" | "values" => n * plane.row_bytes / REQUEST,
            _ => n / 4 * slices,
        };
        let sectors = match plane.name {
            "tensor_scale" => n / rows * results.div_ceil(32),
            _ if of_slice.is_multiple_of(SECTOR) => n * plane.row_bytes / SECTOR,
            _ => n * slices * of_slice.div_ceil(SECTOR),
        };
        let once = u64::from(plane.rows) * plane.row_bytes;
        sums = [sums[0] + once, sums[1] + requests, sums[2] + sectors];
    }
    sums
}

/// Yields the bytes of activations that were asked for, as a part of the weights' bytes.
fn check(gemv: &QuantGemv) -> f64 {
    let (report, traffic) = run(gemv);
    let what = gemv.entry();
    // Bytes that are made on the way are stored in words: of a store, four lanes meet four others.
    let stores = match gemv.activations {
        Activations::Rounded => {
            report.counters.blocks * u64::from(gemv.batch) * u64::from(gemv.k.next_multiple_of(512) / 128)
        }
        _ => 0,
    };
    assert_eq!(report.counters.bank_conflicts, stores, "{what}");
    let (mut weights, mut activations) = (0, 0);
    for (name, traffic, passes) in &traffic {
        let loads = traffic.loads;
        if name.starts_with("x") || *name == "norm" {
            // Two lanes ask for a scale.
            let lanes = if *name == "x_scales" { 2 } else { 1 };
            activations += loads.bytes / lanes;
            let sectors = loads.transactions * SECTOR * lanes;
            assert_eq!(sectors, loads.bytes, "{what}, {name}: sectors are read in part");
            let floats = gemv.activations != Activations::Int8;
            if floats && !gemv.matrices[0].format.is_float() {
                assert_eq!(passes * PASS, loads.bytes, "{what}, {name}: lanes meet in banks");
            }
        } else if let Some(i) = name.strip_prefix('w').and_then(|i| i.parse::<usize>().ok()) {
            let rows = if gemv.gate.is_some() || gemv.batch > 4 { 8 } else { 16 };
            let [bytes, requests, sectors] =
                needed(&gemv.matrices[i], gemv.k, (rows, rows * u64::from(gemv.batch)));
            weights += bytes;
            assert_eq!(loads.requests, requests, "{what}, {name}: in how many requests");
            let once = bytes.div_ceil(SECTOR)..=sectors;
            assert!(once.contains(&loads.transactions), "{what}, {name}: {} of {once:?}", loads.transactions);
        } else if name.starts_with('y') {
            assert_eq!(traffic.stores.transactions * SECTOR, traffic.stores.bytes, "{what}, {name}");
        }
    }
    activations as f64 / weights as f64
}

/// The lengths of feed-forward rows, and of hidden states.
const LENGTHS: [u32; 3] = [14336, 4096, 1536];

#[test]
fn weights_are_read_once_and_activations_seldom() {
    for format in WeightFormat::ALL {
        for activations in Activations::ALL {
            if format.is_float() && activations != Activations::Exact {
                continue;
            }
            for k in LENGTHS {
                let kernel = QuantGemv { activations, ..QuantGemv::new(format, 64, k) };
                let part = check(&kernel);
                // Sixteen rows take an activation of four bytes.
                let bits = format.block_bytes() as f64 / format.block() as f64;
                assert!(part * bits <= 0.27, "{}: {part}", kernel.entry());
            }
        }
    }
}

#[test]
fn pairs_and_norms_and_batches_waste_nothing_either() {
    for format in WeightFormat::ALL {
        let one = Matrix::new(format, 64);
        let gate = Some(Activation::Silu);
        let pair = QuantGemv { matrices: vec![one, one], gate, ..QuantGemv::new(format, 64, 2048) };
        check(&pair);
        for batch in [2, 4, 8] {
            let kernel = QuantGemv { batch, ..QuantGemv::new(format, 64, 2048) };
            check(&kernel);
            if !format.is_float() {
                let kernel = QuantGemv { activations: Activations::Int8, ..kernel };
                check(&kernel);
            }
        }
        check(&QuantGemv { epsilon: Some(1e-5), ..QuantGemv::new(format, 64, 2048) });
    }
}
