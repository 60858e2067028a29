//! Kernels of other compilers in unit tests: PTX in the style of each runs, and planted mistakes are found with their
//! lines.

use warpwright_test::{PtxTest, TestError};
use warpwright_vm::{Finding, Schedule};

const RUST_CUDA: &str = include_str!("ptx/rust_cuda.ptx");
const CUDA_OXIDE: &str = include_str!("ptx/cuda_oxide.ptx");
const NVRTC: &str = include_str!("ptx/nvrtc.ptx");
const NVCC: &str = include_str!("ptx/nvcc.ptx");

/// A count, and a factor behind a gap: `struct Scale` of C++.
fn scale(count: u32, factor: f64) -> Vec<u8> {
    [&count.to_le_bytes()[..], &[0; 4], &factor.to_le_bytes()].concat()
}

fn axpy(kernel: &str, x: &[f32], y: &[f32]) -> Result<PtxTest, TestError> {
    let test = PtxTest::new(RUST_CUDA)?.kernel(kernel).grid(4).block(64);
    Ok(test.scalar(2.0f32).input(x).scalar(x.len() as u64).inout(y))
}

fn scaled(kernel: &str, x: &[f32]) -> Result<PtxTest, TestError> {
    let test = PtxTest::new(NVRTC)?.kernel(kernel).grid(4).block(64).variable("bias", &[0.5f32, 0.25]);
    Ok(test.structure(&scale(x.len() as u32, 3.0)).input(x))
}

fn histogram(kernel: &str, x: &[u8]) -> Result<PtxTest, TestError> {
    let blocks = x.len() as u32 / 64;
    Ok(PtxTest::new(NVCC)?.kernel(kernel).grid(blocks).block(64).shared(64).input(x).inout(&[0u32; 16]))
}

#[test]
fn right_kernels_compute() -> Result<(), TestError> {
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let y = vec![1.0f32; 200];
    for run in axpy("axpy", &x, &y)?.run_orders(&[1, 2])? {
        assert!(run.output::<f32>(0).iter().zip(&x).all(|(y, x)| *y == 2.0 * x + 1.0));
    }
    let words: Vec<u32> = (0..192).collect();
    let test = PtxTest::new(CUDA_OXIDE)?.kernel("reverse").grid(3).block(64);
    let run = test.input(&words).scalar(192u64).output::<u32>(192).scalar(192u64).run()?;
    let reversed: Vec<u32> = words.chunks(64).flat_map(|block| block.iter().rev().copied()).collect();
    assert_eq!(run.output::<u32>(0), reversed);
    let run = scaled("scale", &x)?.output::<f32>(200).run()?;
    let wanted: Vec<f32> = (0..200).map(|i| 3.0 * i as f32 + if i % 2 == 0 { 0.5 } else { 0.25 }).collect();
    assert_eq!(run.output::<f32>(0), wanted);
    let run = scaled("scale_even", &x)?.partial_output::<f32>(200).run()?;
    let even: Vec<f32> = run.output::<f32>(0).into_iter().step_by(2).collect();
    assert!(even.iter().enumerate().all(|(i, y)| *y == 6.0 * i as f32 + 0.5));
    let bytes: Vec<u8> = (0..256).map(|i| (i * i % 16) as u8).collect();
    let mut counts = [0u32; 16];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    for run in histogram("_Z9histogramPKhPj", &bytes)?.run_orders(&[7])? {
        assert_eq!(run.output::<u32>(0), counts);
    }
    Ok(())
}

/// The findings of a test that fails, as kinds with lines of the source.
fn found(test: &PtxTest) -> Vec<(&'static str, Vec<u32>)> {
    match test.run() {
        Err(TestError::Findings(report)) => report.findings.iter().map(kind_and_lines).collect(),
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    }
}

fn kind_and_lines(finding: &Finding) -> (&'static str, Vec<u32>) {
    let lines = finding.accesses.iter().filter_map(|access| Some(access.source.as_ref()?.line));
    (finding.kind.name(), lines.collect())
}

#[test]
fn planted_mistakes_are_found_with_their_lines() -> Result<(), TestError> {
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let unguarded = axpy("axpy_unguarded", &x, &[1.0; 256])?;
    assert_eq!(found(&unguarded), [("out-of-bounds", vec![16])], "the read of x alone");
    let words: Vec<u32> = (0..192).collect();
    let reverse = PtxTest::new(CUDA_OXIDE)?.kernel("reverse_unsynchronised").grid(3).block(64);
    let reverse = reverse.input(&words).scalar(192u64).output::<u32>(192).scalar(192u64);
    let mut races = found(&reverse);
    // A warp that is too early stores what was never written.
    races.retain(|(kind, _)| *kind != "unwritten-output");
    assert!(!races.is_empty());
    for (kind, mut lines) in races {
        lines.sort_unstable();
        assert_eq!((kind, &lines[..]), ("race", &[18, 19][..]));
    }
    let even = scaled("scale_even", &x)?.output::<f32>(200);
    assert_eq!(found(&even), [("unwritten-output", vec![])]);
    let written = PtxTest::new(NVRTC)?.kernel("scale_in_place").grid(4).block(64);
    let written = written.structure(&scale(200, 3.0)).input(&x);
    assert_eq!(found(&written), [("read-only", vec![22])]);
    let bytes: Vec<u8> = (0..256).map(|i| (i * i % 16) as u8).collect();
    let uninitialised = found(&histogram("_Z13uninitialisedPKhPj", &bytes)?);
    assert_eq!(uninitialised[0], ("uninitialized", vec![14]));
    let racing = found(&histogram("_Z6racingPKhPj", &bytes)?);
    assert!(!racing.is_empty() && racing.iter().all(|found| *found == ("race", vec![24, 24])), "{racing:?}");
    Ok(())
}

/// A test that returns the error prints what `Debug` says: the lines of the source.
#[test]
fn errors_show_the_lines() -> Result<(), TestError> {
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let error = axpy("axpy_unguarded", &x, &[1.0; 256])?.run().err().expect("it is wrong");
    let shown = format!("{error:?}");
    let line = shown.lines().find(|line| line.starts_with("16 |"));
    assert_eq!(
        line,
        Some("16 |     y.add(i).write(a * x.as_ptr().add(i).read() + y.add(i).read());"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn the_order_of_an_error_is_told() -> Result<(), TestError> {
    let x = [1.0f32; 64];
    let test = axpy("axpy_unguarded", &x, &[1.0; 256])?;
    let Err(TestError::Order(Schedule::Parallel, _)) = test.run_orders(&[]) else {
        panic!("the usual order comes first, and it is wrong");
    };
    // A block that waits for the one before it is never begun in reverse order.
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry chain(.param .u64 flags) {
        .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
        ld.param.u64 %rd0, [flags];
        mov.u32 %r0, %ctaid.x;
        mul.wide.u32 %rd1, %r0, 4;
        add.u64 %rd1, %rd0, %rd1;
        setp.eq.u32 %p0, %r0, 0;
        @%p0 bra SET;
    WAIT:
        ld.acquire.gpu.global.u32 %r1, [%rd1+-4];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra WAIT;
    SET:
        mov.u32 %r2, 1;
        st.release.gpu.global.u32 [%rd1], %r2;
        ret;
    }";
    let chain = PtxTest::new(ptx)?.grid(64).block(1).inout(&[0u32; 64]);
    chain.run()?;
    match chain.run_orders(&[]) {
        Err(TestError::Order(Schedule::Reversed, error)) => {
            let TestError::Findings(report) = *error else { panic!("{error}") };
            assert_eq!(report.trap.map(|trap| trap.kind.name()), Some("deadlock"));
        }
        other => panic!("{:?}", other.err()),
    }
    Ok(())
}

#[test]
fn what_cannot_be_launched_is_an_error_that_says_why() -> Result<(), TestError> {
    let argument = |error: Option<TestError>| match error {
        Some(TestError::Argument(message)) => message,
        other => panic!("{other:?}"),
    };
    let x = [1.0f32; 4];
    let test = || PtxTest::new(RUST_CUDA);
    assert!(matches!(PtxTest::new("PTX"), Err(TestError::Ptx(_))));
    for (test, wanted) in [
        (
            test()?.block(1),
            "there are several kernels: choose one with `kernel`, of `axpy`, `axpy_unguarded`",
        ),
        (test()?.kernel("gemm"), "there is no kernel `gemm`: there are `axpy`, `axpy_unguarded`"),
        (
            test()?.kernel("axpy").scalar(2.0f32).input(&x).scalar(4u64).inout(&x),
            "kernel `axpy` runs with blocks of any size: say how many threads, with `block`",
        ),
        (
            test()?.kernel("axpy").block(1).scalar(2.0f64).input(&x).scalar(4u64).inout(&x),
            "kernel `axpy` has other parameters than the test has arguments\n  parameters: `axpy_param_0`, f32 of 4 \
             bytes; `axpy_param_1`, u64 of 8 bytes; `axpy_param_2`, u64 of 8 bytes; `axpy_param_3`, u64 of 8 bytes\n  \
             arguments: a value of 8 bytes; the address of an array; a value of 8 bytes; the address of an array",
        ),
    ] {
        assert_eq!(argument(test.run().err()), wanted);
    }
    let too_large = test()?.kernel("axpy").block(2048).scalar(2.0f32).input(&x).scalar(4u64).inout(&x);
    assert!(matches!(too_large.run(), Err(TestError::Device(_))));
    // Arrays without elements have an address, and no element.
    let none: [f32; 0] = [];
    let run = axpy("axpy", &none, &none)?.run()?;
    assert_eq!(run.output::<f32>(0), none);
    assert_eq!(found(&axpy("axpy_unguarded", &none, &[1.0; 256])?), [("out-of-bounds", vec![16])]);
    Ok(())
}
