//! Real programs: the kernels of `tests/corpus`, as nvcc, clang, Triton and Numba compile them, run
//! with every check on, blocks in parallel and in an order from a seed. What they compute is compared
//! with references written plainly in f64 and integers; findings are wrong unless the source has the
//! fault.
//!
//! A table per theme names for every source its entries, launches and references. One line of a
//! table covers all files of a source: every target, compiler version and option. The last test sees
//! that no entry of the corpus is forgotten. Entries that need what is not executed (tensor maps,
//! …) are launched too, and must end with a trap that names it.

mod attention;
mod case;
mod control;
mod data;
mod elementwise;
mod floats;
mod gpu;
mod hopper;
mod images;
mod inline_asm;
mod integers;
mod layouts;
mod math;
mod matmul;
mod reductions;
mod rounding;
mod scans;
mod simd;
mod softmax_norm;
mod sorts;
mod stencils;
mod sync;
mod tensor_cores;
mod triton_matmul;

use case::{File, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use warpwright_ptx::ir::Module;
use warpwright_vm::Schedule;

/// Orders of warps and blocks that each case runs in, beside blocks in parallel.
const SEEDS: usize = 3;

const THEMES: &[&[Source]] = &[
    attention::SOURCES,
    control::SOURCES,
    elementwise::SOURCES,
    floats::SOURCES,
    hopper::SOURCES,
    images::SOURCES,
    inline_asm::SOURCES,
    integers::SOURCES,
    layouts::SOURCES,
    matmul::SOURCES,
    reductions::SOURCES,
    rounding::SOURCES,
    scans::SOURCES,
    simd::SOURCES,
    softmax_norm::SOURCES,
    sorts::SOURCES,
    stencils::SOURCES,
    sync::SOURCES,
    tensor_cores::SOURCES,
    triton_matmul::SOURCES,
];

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/ptx")
}

/// `reduce_shared-debug.nvcc.sm_80.ptx` without its text.
fn describe(name: &str) -> File {
    let mut parts = name.split('.');
    let (stem, compiler, target) = (parts.next(), parts.next(), parts.next());
    let (stem, compiler, target) =
        (stem.unwrap_or_default(), compiler.unwrap_or_default(), target.unwrap_or_default());
    let (source, variant) = stem.split_once('-').unwrap_or((stem, ""));
    File {
        name: name.to_owned(),
        source: format!("{source}.{}", compiler.trim_end_matches(|c: char| c.is_ascii_digit())),
        variant: variant.to_owned(),
        arch: target.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_default(),
        text: String::new(),
        entries: Vec::new(),
    }
}

/// The files of the corpus, by source. `CORPUS=text` leaves those whose names have the text.
fn files() -> Vec<File> {
    let only = std::env::var("CORPUS").unwrap_or_default();
    let folder = std::fs::read_dir(corpus()).expect("the corpus lies beside the crates");
    let names = folder.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".ptx") && name.contains(&only)).collect();
    names.sort();
    names.iter().map(|name| describe(name)).collect()
}

fn read(file: &mut File) -> Result<Module, String> {
    file.text = std::fs::read_to_string(corpus().join(&file.name)).map_err(|error| error.to_string())?;
    let module =
        warpwright_ptx::parse(&file.text).map_err(|errors| format!("it does not parse: {errors:?}"))?;
    file.entries = module.entries().map(|entry| entry.name.to_string()).collect();
    Ok(module)
}

fn load(file: &mut File) -> Result<gpu::Program, String> {
    let module = read(file)?;
    gpu::Program::new(module)
}

/// Runs the kernels of a theme, in all of their files.
fn run(theme: &[Source]) {
    let mut failures = Vec::new();
    let (mut ran, mut launches) = (0, 0);
    for mut file in files() {
        let Some(source) = theme.iter().find(|source| source.name == file.source) else { continue };
        let program = match load(&mut file) {
            Ok(program) => program,
            Err(problem) => {
                failures.push(format!("{}: {problem}", file.name));
                continue;
            }
        };
        ran += 1;
        for case in (source.cases)(&file) {
            for round in 0..=SEEDS {
                let schedule = if round == 0 { Schedule::Parallel } else { Schedule::Seeded(launches) };
                launches += 1;
                if let Err(problem) = gpu::run(&file, &program, &case, schedule) {
                    failures.push(format!("{} {} {schedule:?}\n      {problem}", file.name, case.entry));
                }
            }
        }
    }
    eprintln!("{ran} files, {launches} launches");
    assert!(failures.is_empty(), "{} of {launches} launches fail:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! themes {
    ($($theme:ident),* $(,)?) => {$(
        #[test]
        fn $theme() {
            run($theme::SOURCES);
        }
    )*};
}
themes!(
    attention,
    control,
    elementwise,
    floats,
    hopper,
    inline_asm,
    integers,
    layouts,
    matmul,
    reductions,
    rounding,
    scans,
    simd,
    softmax_norm,
    sorts,
    stencils,
    sync,
    tensor_cores,
    triton_matmul,
);

/// Every entry of every file is launched; no line of a table is left over.
#[test]
fn nothing_is_forgotten() {
    let tables: BTreeMap<&str, &Source> =
        THEMES.iter().copied().flatten().map(|source| (source.name, source)).collect();
    let mut left_over: BTreeSet<&str> = tables.keys().copied().collect();
    let mut problems = Vec::new();
    for mut file in files() {
        if let Err(problem) = load(&mut file) {
            problems.push(format!("{}: {problem}", file.name));
            continue;
        }
        left_over.remove(&*file.source);
        let cases = tables.get(&*file.source).map_or(Vec::new(), |source| (source.cases)(&file));
        let launched: BTreeSet<&str> = cases.iter().map(|case| &*case.entry).collect();
        let there: BTreeSet<&str> = file.entries.iter().map(String::as_str).collect();
        for entry in there.difference(&launched) {
            problems.push(format!("{}: `{entry}` is not launched", file.name));
        }
        for entry in launched.difference(&there) {
            problems.push(format!("{}: there is no `{entry}`", file.name));
        }
    }
    problems.extend(left_over.iter().map(|name| format!("no file is of `{name}`")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Programs that stand for what people run are among those that run to their end: by source, target, and
/// the instructions that make them what they are.
#[test]
fn what_people_run_is_there() {
    const TENSOR: &[&str] = &["mma.sync.aligned", "ldmatrix.sync.aligned", "cp.async", "cp.async.wait_group"];
    let programs: &[(&str, u32, &[&str])] = &[
        ("reduce_shared.nvcc", 75, &["bar.sync"]),
        ("reduce_warp.nvcc", 80, &["shfl.sync"]),
        ("reduce_last_block.nvcc", 80, &["atom", "bar.sync"]),
        ("reduce_coop.nvcc", 80, &["shfl.sync"]),
        ("grid_sync.nvcc", 75, &["atom"]),
        ("scan.nvcc", 80, &["shfl.sync"]),
        ("scan_lookback.nvcc", 86, &["ld"]),
        ("transpose.nvcc", 75, &["bar.sync"]),
        ("transpose.triton", 80, &["bar.sync"]),
        ("histogram.nvcc", 75, &["atom"]),
        ("histogram.triton", 75, &["atom"]),
        ("bitonic_sort.nvcc", 86, &["bar.sync"]),
        ("radix_sort.nvcc", 80, &["bar.sync"]),
        ("sort_rows.triton", 80, &["shfl.sync"]),
        ("stencil.nvcc", 75, &["bar.sync"]),
        ("matmul_tiled.nvcc", 80, &["bar.sync", "fma"]),
        ("matmul_f16.triton", 80, &["mma.sync.aligned", "ldmatrix.sync.aligned"]),
        ("matmul_tf32.triton", 80, &["mma.sync.aligned", "cp.async", "cp.async.wait_group"]),
        ("softmax.nvcc", 75, &["shfl.sync"]),
        ("softmax.triton", 80, &["shfl.sync"]),
        ("layer_norm.nvcc", 86, &["shfl.sync"]),
        ("layer_norm_fwd.triton", 86, &["shfl.sync"]),
        ("flash_attention.triton", 80, TENSOR),
        ("flash_attention_causal.triton", 80, TENSOR),
    ];
    let mut files = files();
    for &(source, arch, opcodes) in programs {
        let mut of_source = files
            .iter_mut()
            .filter(|file| file.source == source && file.arch == arch && file.variant.is_empty());
        let file = of_source.next().unwrap_or_else(|| panic!("there is no {source} for sm_{arch}"));
        let module = read(file).unwrap_or_else(|problem| panic!("{}: {problem}", file.name));
        let there: BTreeSet<&str> = module
            .functions()
            .flat_map(|function| function.instructions())
            .map(|instruction| instruction.op.name())
            .collect();
        for opcode in opcodes {
            assert!(there.contains(opcode), "{} has no `{opcode}`, but {there:?}", file.name);
        }
        let table = THEMES.iter().copied().flatten().find(|table| table.name == source);
        let cases = table.map_or(Vec::new(), |table| (table.cases)(file));
        assert!(
            cases.iter().any(|case| matches!(case.end, case::End::Normal))
                && cases.iter().all(|case| case.findings.is_empty()),
            "{} runs to its end, and is clean",
            file.name
        );
    }
}
