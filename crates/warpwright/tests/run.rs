//! `warpwright run` and `warpwright profile` as their users run them: PTX and NumPy files in, files,
//! reports and exit statuses out.

mod common;

use common::npy::{self, f32s, to_f32s, to_u32s, u32s};
use common::{Folder, json, run, run_with, status, stdout};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Output;

fn kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    path.to_str().expect("the path is UTF-8").to_string()
}

/// A folder with files in it, and the arguments that name them.
struct Bench(Folder);

impl Bench {
    fn new(name: &str) -> Bench {
        Bench(Folder::new(&format!("run_{name}")))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("the path is UTF-8").to_string()
    }

    fn npy(&self, name: &str, descr: &str, shape: &str, data: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, npy::file(descr, false, shape, data)).expect("the file is written");
        path
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }
}

/// Runs `warpwright run` with a kernel's file and further arguments.
fn run_file(file: &str, arguments: &[&str]) -> Output {
    run(&[&["run", &kernel(file)], arguments].concat())
}

/// The report as JSON, with the exit status that is expected.
fn report(file: &str, arguments: &[&str], wanted: i32) -> Value {
    let output = run_file(file, &[arguments, &["--json"]].concat());
    assert_eq!(status(&output), wanted, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

#[test]
fn arrays_go_in_and_out() {
    let bench = Bench::new("axpy");
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..100).map(|i| 0.5 * i as f32).collect();
    let x_file = format!("in:{}", bench.npy("x.npy", "<f4", "(100,)", &f32s(&x)));
    let y_path = bench.npy("y.npy", "<f4", "(4, 25)", &f32s(&y));
    let arguments = [
        "--grid",
        "2",
        "--block",
        "64",
        "--check",
        "all",
        &x_file,
        &format!("inout:{y_path}"),
        "f32:2",
        "u32:100",
    ];
    let output = run_file("axpy.ptx", &arguments);
    assert_eq!((status(&output), stdout(&output)), (0, ""), "{}", String::from_utf8_lossy(&output.stderr));
    let (header, data) = npy::read(&y_path);
    assert_eq!(header, npy::header("<f4", "(4, 25)"), "the shape is kept");
    let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0 * x + y).collect();
    assert_eq!(to_f32s(&data), wanted);
    assert_eq!(bench.files(), ["x.npy", "y.npy"], "no other file is left");
}

#[test]
fn arrays_of_every_order_are_read() {
    let bench = Bench::new("orders");
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let big: Vec<u8> = x.iter().flat_map(|value| value.to_be_bytes()).collect();
    let big = bench.npy("big.npy", ">f4", "(6,)", &big);
    // Columns first: 1 4, 2 5, 3 6.
    let fortran = bench.path("fortran.npy");
    fs::write(&fortran, npy::file("<f4", true, "(2, 3)", &f32s(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])))
        .expect("written");
    for (file, shape) in [(big, "(6,)"), (fortran, "(2, 3)")] {
        let zeros = "zeros:f32:6";
        let x_file = format!("inout:{file}");
        // y = 1·0 + x.
        let output =
            run_file("axpy.ptx", &["--grid", "1", "--block", "32", zeros, &x_file, "f32:1", "u32:6"]);
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let (header, data) = npy::read(&file);
        assert_eq!((header, to_f32s(&data)), (npy::header("<f4", shape), x.to_vec()));
    }
}

#[test]
fn scalars_and_structs_arrive_as_they_are() {
    let bench = Bench::new("echo");
    let out = bench.path("out.npy");
    let out_file = format!("out:u8:28:{out}");
    let data = bench.path("e.bin");
    fs::write(&data, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).expect("written");
    for e in ["raw:0102030405060708090a0b0c", &format!("raw:@{data}")] {
        let arguments = [
            "--entry",
            "echo",
            "--grid",
            "1",
            "--block",
            "1",
            &out_file,
            "u8:250",
            "s16:-2",
            "b32:0x12345678",
            "f64:-0.1",
            e,
        ];
        let output = run_file("several.ptx", &arguments);
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let (header, bytes) = npy::read(&out);
        assert_eq!(header, npy::header("|u1", "(28,)"));
        assert_eq!(bytes[..8], (-0.1f64).to_le_bytes());
        assert_eq!(bytes[8..15], [0x78, 0x56, 0x34, 0x12, 0xfe, 0xff, 250]);
        assert_eq!(bytes[16..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}

#[test]
fn variables_of_the_module_are_written_and_read() {
    let bench = Bench::new("globals");
    let (out, counter) = (bench.path("out.npy"), bench.path("counter.npy"));
    let table = bench.npy("table.npy", "<f4", "(3,)", &f32s(&[7.0, 8.0, 9.0]));
    let arguments = |globals: &[&str]| {
        let out_file = format!("out:f32:3:{out}");
        let mut all = vec!["--entry", "count", "--grid", "1", "--block", "3"];
        globals.iter().for_each(|global| all.extend(["--global", global]));
        all.extend([&out_file, "u32:2"]);
        let output = run_file("several.ptx", &all);
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        to_f32s(&npy::read(&out).1)
    };
    // As the module initialises them; read back by the variable's own type.
    assert_eq!(arguments(&[&format!("counter=out:{counter}")]), [1.0, 2.0, 3.0]);
    let (header, data) = npy::read(&counter);
    assert_eq!((header, to_u32s(&data)), (npy::header("<u4", "()"), vec![46]));
    // As they are given.
    assert_eq!(arguments(&[&format!("table=in:{table}"), "counter=u32:1"]), [7.0, 8.0, 9.0]);
    // What was read back goes in and out again.
    arguments(&[&format!("counter=inout:{counter}")]);
    assert_eq!(to_u32s(&npy::read(&counter).1), [52]);
}

#[test]
fn what_the_kernel_prints_is_the_output() {
    let arguments = ["--entry", "print", "--grid", "1", "--block", "2", "--deterministic"];
    let wanted = "thread 0 of four\nthread 1 of four\n";
    let output = run_file("several.ptx", &arguments);
    assert_eq!((status(&output), stdout(&output)), (0, wanted));
    assert_eq!(report("several.ptx", &arguments, 0)["output"], wanted);
}

#[test]
fn a_race_is_found_with_both_accesses() {
    let bench = Bench::new("race");
    let out = bench.path("out.npy");
    let out_file = format!("out:u32:64:{out}");
    let arguments = ["--grid", "1", "--check", "racecheck", "--deterministic", &out_file];
    let document = report("race.ptx", &arguments, 1);
    assert_eq!(document["version"], 1);
    assert_eq!(document["kernel"], "swap_warps");
    assert_eq!(document["trap"], Value::Null);
    let findings = document["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = &findings[0];
    assert_eq!((&finding["tool"], &finding["kernel"]), (&json!("racecheck"), &json!("swap_warps")));
    assert!(finding["count"].as_u64().is_some_and(|count| count >= 1));
    let accesses = finding["accesses"].as_array().expect("a list");
    let mut lines: Vec<_> =
        accesses.iter().map(|access| access["ptx_line"].as_u64().expect("a line")).collect();
    lines.sort_unstable();
    assert_eq!(lines, [22, 26], "the store and the load");
    let sources: Vec<_> = accesses
        .iter()
        .map(|access| (&access["source"]["file"], access["source"]["line"].as_u64()))
        .collect();
    for (file, line) in sources {
        assert_eq!(file, "race.cu");
        assert!(matches!(line, Some(4 | 5)));
    }
    let texts: Vec<_> = accesses.iter().map(|access| access["source"]["text"].as_str()).collect();
    assert!(texts.contains(&Some("tile[i] = i;")), "the source stands beside the PTX: {texts:?}");
    let thread = |i: usize| accesses[i]["thread"][0].as_u64().expect("a thread");
    assert_eq!(thread(0) ^ thread(1), 32, "the threads are each other's partners");
    assert_eq!(accesses[0]["block"], json!([0, 0, 0]));
    assert_eq!(accesses[0]["address"], accesses[1]["address"]);
    // The results are there all the same.
    assert_eq!(npy::read(&out).0, npy::header("<u4", "(64,)"));
    // Nobody asked: nothing is found.
    assert_eq!(status(&run_file("race.ptx", &["--grid", "1", &out_file])), 0);
    assert_eq!(
        status(&run_file("race.ptx", &["--grid", "1", "--check", "memcheck,synccheck", &out_file])),
        0
    );
}

#[test]
fn lanes_that_have_exited_are_an_error_to_the_letter_only() {
    for (check, severity, wanted) in [("synccheck", "warning", 0), ("all,synccheck=strict", "error", 1)] {
        let arguments = ["--grid", "1", "--block", "64", "--check", check, "u32:40"];
        let document = report("several.ptx", &[&["--entry", "returns"], &arguments[..]].concat(), wanted);
        let finding = &document["findings"][0];
        assert_eq!((&finding["kind"], &finding["severity"]), (&json!("exited-lanes"), &json!(severity)));
    }
}

#[test]
fn accesses_out_of_bounds_are_always_found() {
    let bench = Bench::new("bounds");
    let from = bench.npy("from.npy", "<u4", "(4,)", &u32s(&[10, 11, 12, 13]));
    let to = bench.npy("to.npy", "<u4", "(1,)", &u32s(&[99]));
    let (from_file, to_file) = (format!("in:{from}"), format!("inout:{to}"));
    let report_of = |index: &str, wanted| {
        let arguments = ["--entry", "copy_one", "--grid", "1", "--block", "2", "--check", "none"];
        report("several.ptx", &[&arguments[..], &[&from_file, &to_file, index]].concat(), wanted)
    };
    for (index, offset) in [("s32:4", 16), ("s32:-1", -4)] {
        let document = report_of(index, 1);
        let findings = document["findings"].as_array().expect("a list");
        assert_eq!(findings.len(), 1, "both threads do the same at one place: {document}");
        let finding = &findings[0];
        assert_eq!((&finding["tool"], &finding["kind"]), (&json!("memcheck"), &json!("out-of-bounds")));
        assert_eq!((&finding["count"], &finding["severity"]), (&json!(1), &json!("error")));
        let allocation = &finding["allocation"];
        assert_eq!(allocation["name"], format!("from ({from_file})"));
        assert_eq!((&allocation["bytes"], &allocation["offset"]), (&json!(16), &json!(offset)));
        let access = &finding["accesses"][0];
        assert_eq!(
            (&access["ptx_line"], &access["ptx"]),
            (&json!(121), &json!("ld.global.u32 %r1, [%rd5];"))
        );
        assert_eq!((&access["block"], &access["thread"]), (&json!([0, 0, 0]), &json!([0, 0, 0])));
        let address = allocation["address"].as_i64().expect("an address") + offset;
        assert_eq!(
            (&access["address"], &access["bytes"], &access["action"]),
            (&json!(address), &json!(4), &json!("read"))
        );
        // The kernel has run to its end all the same, and the file is written.
        assert_eq!((&document["trap"], &document["written"]), (&Value::Null, &json!([to])));
    }
    let document = report_of("s32:3", 0);
    assert_eq!((&document["findings"], &document["trap"]), (&json!([]), &Value::Null));
    assert_eq!(to_u32s(&npy::read(&to).1), [13]);
}

#[test]
fn a_trap_says_where_and_leaves_the_files_as_they_are() {
    let bench = Bench::new("trap");
    let file = bench.npy("x.npy", "<u4", "(1,)", &u32s(&[99]));
    let arguments =
        ["--entry", "stops", "--grid", "3,2", "--block", "1", "--deterministic", &format!("inout:{file}")];
    let document = report("several.ptx", &arguments, 1);
    assert_eq!((&document["findings"], &document["written"]), (&json!([]), &json!([])));
    let trap = &document["trap"];
    assert_eq!((&trap["kind"], &trap["kernel"]), (&json!("instruction"), &json!("stops")));
    assert_eq!((&trap["ptx_line"], &trap["ptx"]), (&json!(162), &json!("trap;")));
    assert_eq!(trap["thread"], json!([0, 0, 0]));
    assert_eq!(to_u32s(&npy::read(&file).1), [99]);
    assert_eq!(bench.files(), ["x.npy"]);
}

#[test]
fn what_nobody_wrote_is_found_by_initcheck() {
    let arguments = |from: &'static str| {
        [
            "--entry",
            "copy_one",
            "--grid",
            "1",
            "--block",
            "1",
            "--check",
            "initcheck",
            from,
            "zeros:u32:1",
            "s32:2",
        ]
    };
    let document = report("several.ptx", &arguments("poison:u32:4"), 1);
    assert_eq!(document["findings"][0]["tool"], "initcheck");
    assert_eq!(document["findings"][0]["accesses"][0]["ptx_line"], 121);
    assert_eq!(report("several.ptx", &arguments("zeros:u32:4"), 0)["findings"], json!([]));
}

#[test]
fn a_kernel_that_does_not_end_is_stopped() {
    let arguments = ["--entry", "forever", "--grid", "1", "--block", "1", "--max-instructions", "10000"];
    let document = report("several.ptx", &arguments, 1);
    assert!(!document["trap"].is_null(), "{document}");
}

#[test]
fn what_cannot_be_run_is_a_usage_error() {
    let bench = Bench::new("usage");
    let x = format!("in:{}", bench.npy("x.npy", "<f4", "(8,)", &f32s(&[1.0; 8])));
    let y = format!("out:f32:8:{}", bench.path("y.npy"));
    let damaged = bench.path("damaged.npy");
    fs::write(&damaged, &npy::file("<f4", false, "(8,)", &[0; 32])[..100]).expect("written");
    let damaged = format!("in:{damaged}");
    let shape = ["--grid", "1", "--block", "32"];
    let nowhere = format!("out:f32:8:{}", bench.path("no/y.npy"));
    let good = [&x[..], &y, "f32:1", "u32:8"];
    let axpy = |shape: &[&str], arguments: &[&str]| run_file("axpy.ptx", &[shape, arguments].concat());
    assert_eq!(status(&axpy(&shape, &good)), 0);
    fs::remove_file(bench.path("y.npy")).expect("it was written");
    for output in [
        axpy(&shape, &[]),
        axpy(&shape, &good[..3]),
        axpy(&shape, &[&good[..], &["u32:1"]].concat()),
        axpy(&shape, &[&x, &y, "u32:1", "u32:8"]),
        axpy(&shape, &[&x, &y, "f32:1", "u32:-8"]),
        axpy(&shape, &[&x, &y, "f32:1", &x]),
        axpy(&shape, &["in:missing.npy", &y, "f32:1", "u32:8"]),
        axpy(&shape, &[&damaged, &y, "f32:1", "u32:8"]),
        axpy(&shape, &[&x, &nowhere, "f32:1", "u32:8"]),
        axpy(&shape, &[&y, &y, "f32:1", "u32:8"]),
        axpy(&shape, &["zeros:f32:1000000000000", &y, "f32:1", "u32:8"]),
        axpy(&shape, &["poison:u8:18446744073709551615", &y, "f32:1", "u32:8"]),
        axpy(&["--block", "32"], &good),
        axpy(&["--grid", "1"], &good),
        axpy(&["--grid", "0", "--block", "32"], &good),
        axpy(&["--grid", "1", "--block", "1025"], &good),
        axpy(&["--grid", "1", "--block", "32", "--shared", "1000000"], &good),
        axpy(&["--grid", "1", "--block", "32", "--sm", "75"], &good),
        axpy(&["--grid", "1", "--block", "32", "--check", "everything"], &good),
        axpy(&["--grid", "1", "--block", "32", "--check", "none,racecheck"], &good),
        axpy(&["--grid", "1", "--block", "32", "--tensor-core", "p100"], &good),
        axpy(&["--grid", "1", "--block", "32", "--global", "nothing=u32:1"], &good),
        axpy(&["--grid", "1", "--block", "32", "--entry", "saxpy"], &good),
        run_file("several.ptx", &["--grid", "1", "--block", "1"]),
        run_file(
            "several.ptx",
            &["--entry", "print", "--grid", "1", "--block", "1", "--global", "counter=u64:1"],
        ),
        run_file("several.ptx", &["--entry", "print", "--grid", "1", "--block", "1", "--global", "counter"]),
        run_file("race.ptx", &["--grid", "1", "--block", "32", "zeros:u32:64"]),
        run_file("missing.ptx", &["--grid", "1", "--block", "1"]),
        run_with(&["run", "-", "--grid", "1", "--block", "1"], "not PTX"),
    ] {
        assert_eq!(
            (status(&output), stdout(&output)),
            (2, ""),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(bench.files(), ["damaged.npy", "x.npy"], "nothing was written");
}

#[test]
fn a_kernel_is_read_from_standard_input() {
    let text = fs::read_to_string(kernel("race.ptx")).expect("readable");
    let output = run_with(&["run", "-", "--grid", "1", "zeros:u32:64"], &text);
    assert_eq!((status(&output), stdout(&output)), (0, ""));
}

#[test]
fn schedules_are_repeated_by_their_seed() {
    let print = |seed: &str| {
        let arguments =
            ["--entry", "print", "--grid", "8", "--block", "64", "--deterministic", "--schedule-seed", seed];
        let output = run_file("several.ptx", &arguments);
        assert_eq!(status(&output), 0);
        stdout(&output).to_string()
    };
    let first = print("1");
    assert_eq!(first.lines().count(), 512);
    assert_eq!(print("1"), first);
    assert!((2..10).any(|seed| print(&seed.to_string()) != first), "another seed, another order");
}

#[test]
fn a_profile_counts_what_the_hardware_would_do() {
    let arguments = ["--entry", "strided", "--grid", "2", "--block", "32", "zeros:u32:1024", "zeros:u32:32"];
    let output = run(&[&["profile", &kernel("several.ptx")], &arguments[..], &["--json"]].concat());
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output);
    let counters = &document["counters"];
    let global = &counters["memory"]["global"];
    // Each of the two warps reads 32 sectors at once; it writes 4, then the 3 of lanes 8 to 31.
    assert_eq!(
        global["loads"],
        json!({"requests": 2, "bytes": 256, "transactions": 64, "per_request": 32.0})
    );
    assert_eq!(
        global["stores"],
        json!({"requests": 4, "bytes": 2 * (128 + 96), "transactions": 2 * (4 + 3), "per_request": 3.5})
    );
    assert_eq!(counters["divergent_branches"], 2);
    let lines = document["lines"].as_array().expect("a list");
    let strided = lines.iter().find(|line| line["ptx"] == "ld.global.u32 %r1, [%rd5];").expect("it is hot");
    assert_eq!((&strided["warps"], &strided["global"]["per_request"]), (&json!(2), &json!(32.0)));
    let by_argument = counters["arguments"].as_array().expect("a list");
    let bytes: Vec<_> = by_argument
        .iter()
        .map(|argument| (&argument["parameter"], &argument["loads"]["bytes"], &argument["stores"]["bytes"]))
        .collect();
    assert_eq!(bytes, [(&json!("from"), &json!(256), &json!(0)), (&json!("to"), &json!(0), &json!(448))]);
}

/// A kernel of the virtual GPU's own tests.
fn vm_kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/vm").join(name);
    path.to_str().expect("the path is UTF-8").to_string()
}

#[test]
fn strict_races_are_by_the_letter_of_the_memory_model() {
    let file = vm_kernel("correct/last_block.ptx");
    let findings = |race: &str, wanted| {
        let output = run(&[
            "run",
            &file,
            "--entry",
            "sum",
            "--grid",
            "8",
            "--block",
            "64",
            "--check",
            "all",
            "--race",
            race,
            "--json",
            "zeros:u32:512",
            "poison:u32:8",
            "zeros:u32:1",
            "poison:u32:1",
        ]);
        assert_eq!(status(&output), wanted, "{}", String::from_utf8_lossy(&output.stderr));
        json(&output)["findings"].as_array().expect("a list").clone()
    };
    assert_eq!(findings("normal", 0), [] as [Value; 0]);
    // The reader has no fence of its own.
    let strict = findings("strict", 1);
    assert_eq!(strict.len(), 1);
    let action = |i: usize| &strict[0]["accesses"][i]["action"];
    assert_eq!((&strict[0]["kind"], action(0), action(1)), (&json!("race"), &json!("write"), &json!("read")));
}

#[test]
fn tensor_cores_round_as_the_hardware_that_is_asked_for() {
    let bench = Bench::new("tensor_core");
    let out = bench.path("out.npy");
    let out_file = format!("out:f32:1:{out}");
    let sum = |options: &[&str]| {
        let arguments = [&["--entry", "sum", "--grid", "1", "--block", "32", &out_file], options].concat();
        assert_eq!(status(&run_file("options.ptx", &arguments)), 0);
        to_u32s(&npy::read(&out).1)[0]
    };
    // The exact sum is 1 + 12 · 2⁻²⁴, which is six places above 1. An A100 cuts each product off at 2⁻²⁴ of the
    // largest, a V100 at 2⁻²³.
    let exact = sum(&["--tensor-core", "exact"]);
    let [v100, a100] = ["v100", "a100"].map(|model| sum(&["--tensor-core", model]));
    assert_eq!(exact, 1f32.to_bits() + 6);
    assert_eq!((v100, a100), (1f32.to_bits(), 1f32.to_bits() + 4));
    assert_eq!(sum(&[]), a100, "the module is for sm_80");
    assert_eq!(sum(&["--sm", "90"]), sum(&["--tensor-core", "h100"]));
}

#[test]
fn dynamic_shared_memory_is_as_much_as_is_asked_for() {
    let dynamic = |bytes| ["--entry", "dynamic", "--grid", "1", "--block", "32", "--shared", bytes];
    assert_eq!(status(&run_file("options.ptx", &dynamic("128"))), 0);
    let finding = &report("options.ptx", &dynamic("124"), 1)["findings"][0];
    assert_eq!((&finding["kind"], &finding["count"]), (&json!("out-of-bounds"), &json!(1)));
    let allocation = &finding["allocation"];
    let place = ["name", "bytes", "offset"].map(|field| &allocation[field]);
    assert_eq!(place, [&json!("scratch"), &json!(124), &json!(124)]);
    assert_eq!(finding["accesses"][0]["thread"], json!([31, 0, 0]));
    assert_eq!(report("options.ptx", &dynamic("0"), 1)["findings"][0]["count"], 1);
}

#[test]
fn a_deadlock_says_where_the_threads_wait() {
    let document = report("options.ptx", &["--entry", "apart", "--grid", "1"], 1);
    let trap = &document["trap"];
    assert_eq!(trap["kind"], "deadlock");
    let waiting: Vec<_> = trap["waiting"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|place| (&place["ptx_line"], &place["threads"], place["ptx"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        waiting,
        [(&json!(50), &json!(32), "bar.sync 1, 64;"), (&json!(53), &json!(32), "bar.sync 2, 64;")]
    );
}

#[test]
fn cooperative_blocks_can_wait_for_each_other() {
    let file = vm_kernel("sync/grid_barrier.ptx");
    let barrier = |arguments: &[&str]| {
        run(&[&["run", &file, "--json", "--max-instructions", "10000000"], arguments, &["zeros:u32:1"]]
            .concat())
    };
    assert_eq!(status(&barrier(&["--grid", "16", "--block", "32", "--cooperative"])), 0);
    let hangs = barrier(&["--grid", "300", "--block", "1024"]);
    assert_eq!(status(&hangs), 1);
    assert!(["deadlock", "budget"].map(Value::from).contains(&json(&hangs)["trap"]["kind"]));
    assert_eq!(
        status(&barrier(&["--grid", "300", "--block", "1024", "--cooperative"])),
        2,
        "too many blocks"
    );
}

#[test]
fn sixteen_bit_types_are_what_numpy_has_for_them() {
    let bench = Bench::new("dtypes");
    let out = bench.path("out.npy");
    for (ty, descr) in [
        ("f16", "<f2"),
        ("bf16", "<u2"),
        ("e4m3", "|u1"),
        ("b8", "|u1"),
        ("s8", "|i1"),
        ("s16", "<i2"),
        ("b64", "<u8"),
        ("f64", "<f8"),
    ] {
        let out_file = format!("out:{ty}:4x2:{out}");
        let copy = ["--entry", "copy_one", "--grid", "1", "--block", "1", "zeros:u32:1", &out_file, "s32:0"];
        assert_eq!(status(&run_file("several.ptx", &copy)), 0);
        assert_eq!(npy::read(&out).0, npy::header(descr, "(4, 2)"), "{ty}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_found_is_said_although_a_file_cannot_be_written() {
    let output = run_file(
        "race.ptx",
        &["--grid", "1", "--check", "racecheck", "--deterministic", "--json", "out:u32:64:/dev/full"],
    );
    assert_eq!(status(&output), 2);
    let document = json(&output);
    assert_eq!((document["findings"].as_array().map(Vec::len), &document["written"]), (Some(1), &json!([])));
}

#[test]
fn findings_go_to_files_for_continuous_integration() {
    let bench = Bench::new("reports");
    let (sarif, junit) = (bench.path("found.sarif"), bench.path("found.xml"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let reports = ["--sarif", &sarif, "--root", root.to_str().expect("UTF-8"), "--junit", &junit];
    let race = ["--grid", "1", "--check", "racecheck", "--deterministic", "zeros:u32:64"];
    let output = run_file("race.ptx", &[&race[..], &reports].concat());
    assert_eq!(status(&output), 1);
    let read = |path: &str| fs::read_to_string(path).expect("it is there");
    let log: Value = serde_json::from_str(&read(&sarif)).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["ruleId"], "racecheck/race");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&json!("race.cu"), &json!(4))
    );
    // What people read is in the test's failure, and on standard error.
    let failure = read(&junit);
    let (_, failure) = failure.split_once("<failure").expect("a failure");
    let (_, text) = failure.split_once('>').expect("a text");
    let (text, _) = text.split_once("</failure>").expect("its end");
    let unescaped = text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(Some(unescaped.as_str()), shown.split("\n\n").next());

    // A run without findings leaves none of the run before.
    let clean = run_file("race.ptx", &[&["--grid", "1", "zeros:u32:64"][..], &reports].concat());
    assert_eq!(status(&clean), 0);
    let log: Value = serde_json::from_str(&read(&sarif)).expect("JSON");
    assert_eq!(log["runs"][0]["results"], json!([]));
    assert_eq!(read(&junit).matches("<testcase").count(), 1);
    // What was not launched has no report, also none that nothing was found.
    let refused =
        run_file("race.ptx", &[&["--grid", "1", "--block", "32", "zeros:u32:64"][..], &reports].concat());
    assert_eq!((status(&refused), read(&sarif).as_str(), read(&junit).as_str()), (2, "", ""));
    let nowhere = run_file("race.ptx", &["--grid", "1", "zeros:u32:64", "--junit", "no/such/folder/x.xml"]);
    assert_eq!((status(&nowhere), stdout(&nowhere)), (2, ""));
}

#[test]
fn a_profile_shows_the_conflicts_of_a_transpose() {
    let arguments = ["profile", &kernel("several.ptx"), "--entry", "transpose", "--grid", "1", "--json"];
    let output = run(&[&arguments[..], &["--top", "1", "zeros:u32:32x32", "poison:u32:32x32"]].concat());
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output);
    // A column of 32 words lies in one bank: 32 passes for each of 32 warps, where one would do.
    let hottest = &document["lines"][0];
    assert_eq!(hottest["ptx"], "ld.shared.u32 %r8, [%r7];");
    assert_eq!((&hottest["warps"], &hottest["slots"]), (&json!(32), &json!(1024)));
    let counters = &document["counters"];
    assert_eq!(counters["memory"]["shared"]["loads"]["per_request"], 32.0);
    assert_eq!(counters["memory"]["shared"]["stores"]["per_request"], 1.0);
    assert_eq!(counters["shared_bank_conflicts"], 32 * 31);
    assert_eq!(counters["memory"]["global"]["loads"]["per_request"], 4.0);
    // All come to the barrier after as many instructions.
    assert_eq!(counters["barriers"], json!({"waits": 31, "instructions": 0}));
}
