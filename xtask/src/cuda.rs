//! Runs the device tests again on CUDA devices: through the driver of `warpwright-libcuda`, or through a real one.
//!
//! The tests are listed here, and none may silently run elsewhere: each test binary lists in its tally the devices of
//! its tests, and the driver reports at the end what was launched on it.

use crate::artifacts::{artifacts, build, executable};
use crate::run::{root, target_dir};
use crate::summary::{SuiteResult, Summary};
use crate::test::{Counts, stream_output};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The driver of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    /// The library of `warpwright-libcuda`, with its checks on.
    Virtual,
    /// The machine's own driver.
    Real,
}

impl Driver {
    /// Its suite in the summary.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Driver::Virtual => "the device tests through CUDA, on the virtual driver",
            Driver::Real => "the device tests through CUDA, on the driver of the machine",
        }
    }
}

/// Integration tests that run on CUDA devices too, except those in modules called `on_the_vm`. Those of
/// `warpwright-qualify` are modules of its cases.
const SELECTED: &[(&str, &str)] = &[
    ("warpwright-runtime", "allocations contract cuda dependent graphs kernels modules operands raw runtime"),
    ("warpwright-kernels", "first_day ladder matmul"),
    (
        "warpwright-qualify",
        "advance dsl elementwise embedding flash_attention gemm gemv in_place incremental_attention \
         norm penalties publish quantize repack rope sampling",
    ),
    (
        "warpwright-graph",
        "allocations dispatch execute execute_errors hazards launches layouts models penalties \
         persistent_kernel runner store",
    ),
    ("warpwright-llm", "engine model"),
];

/// Tests that run whole models. On the virtual GPU they use memory checks alone, since the others take long.
const LONG: &[&str] = &["engine", "launches", "model", "models", "persistent_kernel", "runner"];

/// Numerical tests: prefixes of names, by test binary.
///
/// Through CUDA the same virtual GPU runs the same PTX, so the result of a launch cannot differ. The driver's part can:
/// modules, arguments, memory, copies, streams, captures, concurrency, refusals. So numerical tests of one kind of
/// launch at many shapes, formats, inputs or seeds are left out if another test of the binary has launches of that
/// kind. A real driver, and a full run, get all of them.
const NUMBERS: &[(&str, &str)] = &[
    (
        "flash_attention",
        "numbers_of_every_kind whatever_the_order_of_warps every_length_beside tiles_of_every_size \
         every_head_dimension",
    ),
    ("gemm", "quantised_products_of_any_size quantised_products_hold products_of_halves_hold"),
    (
        "gemv",
        "every_batch every_format_and_length every_kind_of_input gates_of_every_kind \
         rows_of_models",
    ),
    ("matmul", "tensor_core_products_are any_shape_of_a_block"),
    (
        "incremental_attention",
        "numbers::tests::every_group numbers::tests::every_head_dim numbers::tests::every_length \
         numbers::tests::every_type numbers::tests::inputs_that_are_hard numbers::tests::random_seeds",
    ),
    (
        "sampling",
        "argmax::tests::the_first_of_the_largest cuts::tests::logits_of_every_kind \
         cuts::tests::masks_and_infinities cuts::tests::shares_of_equals draws_are_distributed draws_are_where draws_do_not_depend \
         logits_of_every_kind ties_masks",
    ),
    ("models", "every_fusion planted:: with_integer_arithmetic"),
    ("launches", "exact_steps steps_of_eight_bits"),
    ("engine", "executors::models_of_every executors::random_models executors::seeds_and_samplers"),
    ("model", "every_architecture_in_every_format every_head_dim what_models_may_have"),
];

/// The tests of a binary that are left out.
fn left_out(driver: Driver, full: bool, test: &str) -> Vec<&'static str> {
    let numbers = NUMBERS.iter().filter(|(of, _)| *of == test && driver == Driver::Virtual && !full);
    std::iter::once(LEFT_OUT).chain(numbers.flat_map(|(_, names)| names.split(' '))).collect()
}

/// The execution order of the virtual driver.
///
/// Short tests use another order than that of the calls, which exposes a missing wait between streams. The order
/// depends on the binary's name, so that every run is the same. Long tests have few streams, and use the default order.
fn order(test: &str) -> String {
    if LONG.contains(&test) {
        return "issue".into();
    }
    // FNV-1a.
    let seed =
        test.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    if seed.is_multiple_of(2) { "reverse".into() } else { format!("random:{seed}") }
}

/// The modules of tests for the virtual GPU alone.
const LEFT_OUT: &str = "on_the_vm::";

/// The devices of the virtual driver: every architecture that a test asks for.
const DEVICES: &str = "75,80,86,89,90,100,120";

/// The exit status of a process in which the virtual driver has reported a finding.
const FOUND: &str = "97";

/// The package whose tests are cases, by module.
const CASES: &str = "warpwright-qualify";

/// A test binary, or one of the modules with cases.
struct Binary {
    package: &'static str,
    test: &'static str,
    path: PathBuf,
}

impl Binary {
    /// What the binary is to run, if not all.
    fn filter(&self) -> Option<String> {
        (self.package == CASES).then(|| format!("cases::{}::", self.test))
    }
}

/// Runs the selected tests and adds a suite to the summary.
pub(crate) fn check(driver: Driver, full: bool, summary: &mut Summary) {
    if driver == Driver::Virtual && !cfg!(target_os = "linux") {
        return summary.add_not_run(driver.part(), "the virtual driver is for Linux");
    }
    match run(driver, full) {
        Ok(part) => summary.add(part),
        Err(why) => summary.add_failure(driver.part(), &why),
    }
}

fn run(driver: Driver, full: bool) -> Result<SuiteResult, String> {
    let built = build()?;
    let binaries = select(&built)?;
    let folder = target_dir().join("cuda");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    if driver == Driver::Virtual {
        place_driver(&built, &folder)?;
    }
    let (mut counts, mut devices, mut launches, mut elsewhere) = (Counts::default(), 0, 0, 0);
    let mut orders: BTreeMap<String, usize> = BTreeMap::new();
    for binary in &binaries {
        let name = format!("{} --test {}", binary.package, binary.test);
        let order = (driver == Driver::Virtual).then(|| order(binary.test));
        match &order {
            Some(order) => {
                println!("$ WARPWRIGHT_ORDER={order} {name}, through CUDA");
                let kind = order.split(':').next().unwrap_or(order);
                *orders.entry(kind.to_string()).or_default() += 1;
            }
            None => println!("$ {name}, through CUDA"),
        }
        let tally = Tally::new(&folder, binary)?;
        let left_out = left_out(driver, full, binary.test);
        if let Err(why) = exist(&left_out, binary) {
            counts.failed += 1;
            eprintln!("{name}: {why}");
        }
        let ran = stream_output(&mut command(order.as_deref(), &left_out, binary, &folder, &tally));
        let found = match ran {
            Ok((found, status)) => {
                counts.passed += found.passed;
                counts.failed += found.failed;
                if !status.success() && found.failed == 0 {
                    counts.failed += 1;
                    eprintln!("{name}: all tests passed, and the process ended with {status}");
                }
                found
            }
            Err(why) => {
                counts.failed += 1;
                eprintln!("{name}: {why}");
                continue;
            }
        };
        match tally.judge(driver, found) {
            Ok(judged) => {
                devices += judged.devices;
                launches += judged.launches;
                elsewhere += judged.elsewhere;
            }
            Err(why) => {
                counts.failed += 1;
                eprintln!("{name}: {why}");
            }
        }
    }
    let mut remark = format!("{} binaries, {devices} devices opened", binaries.len());
    if driver == Driver::Virtual {
        remark += &format!(", {launches} launches");
        let orders: Vec<_> = orders.iter().map(|(order, count)| format!("{count} {order}")).collect();
        remark += &format!("; orders of streams: {}", orders.join(", "));
    }
    if elsewhere > 0 {
        remark += &format!("; {elsewhere} devices of no CUDA device's architecture were virtual GPUs");
    }
    Ok(SuiteResult { name: driver.part().to_string(), passed: counts.passed, failed: counts.failed, remark })
}

fn select(built: &str) -> Result<Vec<Binary>, String> {
    let tests =
        SELECTED.iter().flat_map(|&(package, tests)| tests.split(' ').map(move |test| (package, test)));
    tests
        .map(|(package, test)| {
            let of = |kind, target| executable(built, package, kind, target);
            let path = match package {
                CASES => of("lib", "warpwright_qualify"),
                _ => of("test", test).or_else(|| of("example", test)),
            };
            let path = path.ok_or_else(|| format!("{package} has no test `{test}`"))?;
            Ok(Binary { package, test, path: path.into() })
        })
        .collect()
}

/// Creates a private directory that has the library of `warpwright-libcuda` under the name of the driver's.
fn place_driver(built: &str, folder: &Path) -> Result<(), String> {
    let library = artifacts(built, "warpwright-libcuda", "cdylib", "warpwright_cuda")
        .flat_map(|line| line.split('"'))
        .find(|text| text.ends_with("/libwarpwright_cuda.so"));
    let library = library.ok_or("warpwright-libcuda was built, and no libwarpwright_cuda.so came of it")?;
    // Programs ask for both names.
    for name in ["libcuda.so.1", "libcuda.so"] {
        let link = folder.join(name);
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(|error| format!("cannot remove {}: {error}", link.display()))?;
        }
        symlink(Path::new(library), &link)
            .map_err(|error| format!("cannot make {}: {error}", link.display()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn symlink(library: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(library, link)
}

#[cfg(not(unix))]
fn symlink(library: &Path, link: &Path) -> std::io::Result<()> {
    fs::copy(library, link).map(|_| ())
}

/// Checks that the tests that are left out exist, so that the list cannot go stale.
fn exist(left_out: &[&'static str], binary: &Binary) -> Result<(), String> {
    let output =
        Command::new(&binary.path).args(["--list", "--format", "terse"]).args(binary.filter()).output();
    let output = output.map_err(|error| format!("{} cannot be run: {error}", binary.path.display()))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let missing =
        left_out.iter().find(|&&name| name != LEFT_OUT && !listed.lines().any(|test| test.contains(name)));
    match missing {
        None => Ok(()),
        Some(name) => {
            Err(format!("`NUMBERS` in xtask/src/cuda.rs leaves out `{name}`, and no test is called that"))
        }
    }
}

/// The command; `order` is for the virtual driver.
fn command(order: Option<&str>, left_out: &[&str], binary: &Binary, folder: &Path, tally: &Tally) -> Command {
    let mut command = Command::new(&binary.path);
    command.current_dir(root().join("crates").join(binary.package));
    command.args(left_out.iter().flat_map(|name| ["--skip", name])).args(binary.filter());
    if order.is_none() {
        // Tests that keep a GPU busy until the host lets go would wait for others that wait for the GPU.
        command.arg("--test-threads=1");
    }
    command.env("WARPWRIGHT_TEST_DEVICE", "cuda").env("WARPWRIGHT_TEST_TALLY", &tally.tests);
    // A cache of its own, so that a run depends on no other.
    command.env("WARPWRIGHT_CACHE_DIR", folder.join("cache"));
    if let Some(order) = order {
        let mut folders = vec![folder.to_path_buf()];
        folders.extend(
            std::env::var_os("LD_LIBRARY_PATH")
                .iter()
                .flat_map(std::env::split_paths)
                .filter(|path| path != folder),
        );
        if let Ok(folders) = std::env::join_paths(folders) {
            command.env("LD_LIBRARY_PATH", folders);
        }
        let checks = if LONG.contains(&binary.test) { "memcheck" } else { "all" };
        command.env("WARPWRIGHT_DEVICES", DEVICES).env("WARPWRIGHT_CHECK", checks);
        command.env("WARPWRIGHT_EXIT_STATUS", FOUND).env("WARPWRIGHT_LEAKS", "1");
        command.env("WARPWRIGHT_FINDINGS", &tally.driver).env("WARPWRIGHT_ORDER", order);
    }
    command
}

/// The tally of a test binary: the devices of its tests, and the driver's launches.
struct Tally {
    tests: PathBuf,
    driver: PathBuf,
}

/// The contents of a tally.
struct Judged {
    devices: usize,
    launches: u64,
    elsewhere: usize,
}

impl Tally {
    fn new(folder: &Path, binary: &Binary) -> Result<Self, String> {
        let file = |what: &str| {
            let path = folder.join(format!("{}.{}.{what}", binary.package, binary.test));
            match path.exists() {
                true => fs::remove_file(&path)
                    .map(|()| path.clone())
                    .map_err(|error| format!("cannot remove {}: {error}", path.display())),
                false => Ok(path),
            }
        };
        Ok(Tally { tests: file("devices")?, driver: file("driver")? })
    }

    fn judge(&self, driver: Driver, ran: Counts) -> Result<Judged, String> {
        if ran.passed + ran.failed == 0 {
            return Err("no test was run".into());
        }
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let tests = read(&self.tests);
        let devices = tests.lines().filter(|line| line.starts_with("cuda:")).count();
        let elsewhere = tests.lines().count() - devices;
        if devices == 0 {
            return Err("no test got a CUDA device".into());
        }
        if driver == Driver::Real {
            return Ok(Judged { devices, launches: 0, elsewhere });
        }
        if elsewhere > 0 {
            let archs: Vec<_> = tests.lines().filter(|line| !line.starts_with("cuda:")).collect();
            return Err(format!("the driver has no device for some tests: {}", archs.join(", ")));
        }
        // Lines of JSON: what was found, and at the end of each process what was launched.
        let said = read(&self.driver);
        let (ends, findings): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.contains("\"event\":\"end\""));
        findings.iter().for_each(|finding| eprintln!("{finding}"));
        let number = |line: &&str| -> Option<u64> {
            line.split_once("\"launches\":")?.1.split([',', '}']).next()?.trim().parse().ok()
        };
        let launches: u64 = ends.iter().filter_map(number).sum();
        // A test of what is refused may launch nothing.
        match ends.iter().any(|line| !line.contains("\"calls\":0,")) {
            true => Ok(Judged { devices, launches, elsewhere }),
            false => Err("no call came to the driver".into()),
        }
    }
}
