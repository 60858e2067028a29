//! What the products with quantised matrices ask of memory, by the virtual GPU's counters: each weight once, by
//! loads of 16 bytes that fill their sectors, few activations, and no lanes that meet in a bank.

use warpwright_dsl::{ArgDesc, Role, any::AnyKernel};
use warpwright_kernels::weights::{Planes, WeightFormat};
use warpwright_kernels::{Activation, Activations, FusedNormGemv, Matrix, QuantGemv};
use warpwright_ptx::ir::Type;
use warpwright_test::KernelTest;
use warpwright_vm::{Options, Report, SpaceTraffic};

/// Bytes of a sector, and of a request of 16 bytes a lane.
const SECTOR: u64 = 32;
const REQUEST: u64 = 512;

/// Runs it with zeros everywhere; yields the report and the traffic of each argument.
fn run(kernel: &dyn AnyKernel) -> (Report, Vec<(&'static str, SpaceTraffic)>) {
    let options = Options { counters: true, ..Options::default() };
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
    let traffic: Vec<_> = report.counters.allocations.iter().map(|allocation| allocation.2).collect();
    assert_eq!(traffic.len(), args.len());
    let by_name = args.iter().map(|arg| arg.name).zip(traffic).collect();
    (report, by_name)
}

/// Bytes of all planes, without what lies between them.
fn weight_bytes(matrix: &Matrix, k: u32) -> u64 {
    let planes = Planes::new(matrix.format, matrix.n, k);
    planes.iter().map(|plane| plane.row_bytes * u64::from(matrix.n)).sum()
}

/// Yields the bytes of activations that were asked for, as a part of the weights' bytes.
fn check(kernel: &dyn AnyKernel, gemv: &QuantGemv) -> f64 {
    let (report, traffic) = run(kernel);
    let what = kernel.entry();
    assert_eq!(report.counters.bank_conflicts, 0, "{what}");
    let (mut weights, mut activations) = (0, 0);
    for (name, traffic) in &traffic {
        let loads = traffic.loads;
        if name.starts_with("x") || *name == "norm" {
            activations += loads.bytes;
            assert_eq!(loads.transactions * SECTOR, loads.bytes, "{what}, {name}: sectors are read in part");
        } else if let Some(i) = name.strip_prefix('w').and_then(|i| i.parse::<usize>().ok()) {
            let matrix = &gemv.matrices[i];
            let bytes = weight_bytes(matrix, gemv.k);
            weights += bytes;
            assert_eq!(loads.bytes, bytes, "{what}, {name}: not once");
            // Five and six bits have planes with 8 bytes a lane, and 2.
            if !matches!(matrix.format, WeightFormat::Q5K | WeightFormat::Q6K) {
                // A pair's scales are read in one request, and those of fewer rows do not fill one.
                let shared = if gemv.gate.is_some() || gemv.batch > 4 { bytes / 8 } else { 0 };
                let asked = loads.requests * REQUEST;
                assert!(asked <= bytes + shared, "{what}, {name}: less than 16 bytes a lane");
            }
            let sectors = match matrix.format {
                // The factors of a slice are 4 bytes of a row.
                WeightFormat::Q6K => bytes / SECTOR + bytes / 210 * 2 * 7 / SECTOR,
                _ => bytes / SECTOR,
            };
            assert!(loads.transactions <= sectors, "{what}, {name}: {} of {sectors}", loads.transactions);
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
                let part = check(&kernel, &kernel);
                assert!(part <= 0.5, "{}: {part}", kernel.entry());
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
        check(&pair, &pair);
        for batch in [2, 4, 8] {
            let kernel = QuantGemv { batch, ..QuantGemv::new(format, 64, 2048) };
            check(&kernel, &kernel);
            if !format.is_float() {
                let kernel = QuantGemv { activations: Activations::Int8, ..kernel };
                check(&kernel, &kernel);
            }
        }
        let normed = FusedNormGemv::new(format, 64, 2048, 1e-5);
        check(&normed, &normed.gemv);
    }
}
