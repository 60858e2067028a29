//! Commands on CUDA devices, which are virtual GPUs behind the CUDA driver API here: `warpwright exec` around this
//! program itself.
#![cfg(target_os = "linux")]

mod common;

use common::npy::{self, f32s, to_f32s};
use common::{Folder, json, libcuda, status, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    path.to_str().expect("the path is UTF-8").to_string()
}

/// A command of this program under `exec` with these options.
fn exec(options: &[&str], command: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_warpwright");
    let mut exec = Command::new(program);
    exec.arg("exec").args(options).args(["--", program]).args(command);
    // What is compiled belongs to no user of this machine.
    exec.env("WARPWRIGHT_LIBCUDA", libcuda()).env("WARPWRIGHT_CACHE", "off").env_remove("WARPWRIGHT_CHECK");
    exec.output().expect("the program starts")
}

/// 2x + y of 100 elements: the arguments of `axpy`, and the file with y.
fn axpy(folder: &Folder) -> (Vec<String>, String) {
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_string();
    fs::write(path("x.npy"), npy::file("<f4", false, "(100,)", &f32s(&x))).expect("it is written");
    fs::write(path("y.npy"), npy::file("<f4", false, "(100,)", &f32s(&[1.0; 100]))).expect("it is written");
    let inout = format!("inout:{}", path("y.npy"));
    let arguments = [&kernel("axpy.ptx"), "--grid", "4", "--block", "32", "--device", "cuda:0"];
    let values = [&format!("in:{}", path("x.npy")), &inout, "f32:2", "u32:100"];
    (arguments.iter().chain(&values).map(|text| (*text).to_string()).collect(), path("y.npy"))
}

fn expected() -> Vec<f32> {
    (0..100).map(|i| 2.0 * i as f32 + 1.0).collect()
}

#[test]
fn a_kernel_runs_and_leaves_its_results() {
    let folder = Folder::new("cuda_run");
    let (arguments, y) = axpy(&folder);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let output = exec(&["--check", "all", "--fail=9"], &[&["run"], &arguments[..], &["--json"]].concat());
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(to_f32s(&npy::read(&y).1), expected());
    let document = json(&output);
    assert_eq!((&document["version"], &document["kernel"]), (&1.into(), &"axpy".into()));
    assert_eq!((&document["device"], &document["arch"]), (&"cuda:0".into(), &"sm_90".into()));
    assert_eq!(document["written"], serde_json::json!([y]));
    assert_eq!(document["launches"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["seconds"], document["launches"][0]);
    assert!(document["error"].is_null());
    let resources = &document["resources"];
    assert_eq!((&resources["static_shared"], &resources["dynamic_shared"]), (&0.into(), &0.into()));
    let blocks = resources["blocks_per_multiprocessor"].as_u64().expect("a number");
    assert!(blocks > 0);
    assert_eq!(resources["threads_per_multiprocessor"], 32 * blocks);
}

/// Each launch of a profile begins with what the arguments say.
#[test]
fn what_is_profiled_is_launched_on_the_same_data_each_time() {
    let folder = Folder::new("cuda_profile");
    let (arguments, y) = axpy(&folder);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let profile = [&["profile"], &arguments[..], &["--repeat", "4", "--json"]].concat();
    let output = exec(&[], &profile);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(to_f32s(&npy::read(&y).1), expected());
    let document = json(&output);
    let times: Vec<f64> =
        document["launches"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    assert_eq!(times.len(), 4);
    assert_eq!(document["seconds"].as_f64(), times.iter().copied().reduce(f64::min));
}

#[test]
fn what_the_virtual_gpu_alone_can_do_is_refused() {
    let folder = Folder::new("cuda_refused");
    let (arguments, y) = axpy(&folder);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    for options in [
        &["--check", "memcheck"][..],
        &["--race", "strict"],
        &["--native", "auto"],
        &["--deterministic"],
        &["--schedule-seed", "1"],
        &["--sm", "90"],
        &["--tensor-core", "h100"],
        &["--max-instructions", "1000"],
        &["--workers", "1"],
        &["--global", "x=u32:1"],
    ] {
        let output = exec(&[], &[&["run"], &arguments[..], options].concat());
        assert_eq!((status(&output), stdout(&output)), (2, ""), "{options:?}");
    }
    assert_eq!(to_f32s(&npy::read(&y).1), [1.0; 100], "nothing has run");
    let repeat = exec(&[], &["profile", &kernel("options.ptx"), "--grid", "1", "--repeat", "2"]);
    assert_eq!(status(&repeat), 2, "the virtual GPU of the program times nothing");
    let absent = exec(&[], &["run", &kernel("axpy.ptx"), "--grid", "1", "--device", "cuda:7"]);
    assert_eq!((status(&absent), stdout(&absent)), (2, ""));
}

#[test]
fn a_kernel_that_traps_leaves_no_results() {
    let folder = Folder::new("cuda_trap");
    let output = folder.path().join("out.npy");
    let argument = format!("out:u32:1:{}", output.display());
    let arguments = [
        "run",
        &kernel("several.ptx"),
        "--entry",
        "stops",
        "--grid",
        "1",
        "--block",
        "32",
        "--device",
        "cuda:0",
    ];
    let run = exec(&["--log", "off"], &[&arguments[..], &["--json", &argument]].concat());
    assert_eq!(status(&run), 1, "{}", String::from_utf8_lossy(&run.stderr));
    let document = json(&run);
    assert!(document["error"].is_string() && document["seconds"].is_null());
    assert_eq!(document["written"], serde_json::json!([]));
    assert!(!output.exists());
}

#[test]
fn what_is_found_is_the_exit_status_and_a_line_of_the_file() {
    let folder = Folder::new("cuda_findings");
    let file = folder.path().join("found.json");
    let race = ["run", &kernel("race.ptx"), "--grid", "1", "--device", "cuda:0", "zeros:u32:64"];
    let findings = ["--findings", file.to_str().expect("UTF-8")];
    let output = exec(&[&["--check", "racecheck", "--fail=3"][..], &findings].concat(), &race);
    assert_eq!(status(&output), 3, "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&file).expect("the file is there");
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect();
    let found: Vec<_> = events.iter().filter(|event| event["event"] == "finding").collect();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0]["kind"], &found[0]["kernel"]), (&"race".into(), &"swap_warps".into()));
    let lines = [0, 1].map(|access| found[0]["accesses"][access]["source"]["line"].as_u64());
    assert_eq!(lines, [Some(4), Some(5)]);
    // The same program without the check, and with it but without a status.
    assert_eq!(status(&exec(&["--fail=3"], &race)), 0);
    assert_eq!(status(&exec(&["--check", "racecheck"], &race)), 0);
}

#[test]
fn findings_go_to_files_for_continuous_integration() {
    let folder = Folder::new("cuda_reports");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_string();
    let (sarif, junit, found) = (path("found.sarif"), path("found.xml"), path("found.json"));
    let race = ["run", &kernel("race.ptx"), "--grid", "1", "--device", "cuda:0", "zeros:u32:64"];
    let reports = ["--check", "racecheck", "--sarif", &sarif, "--junit", &junit];
    for findings in [&[][..], &["--findings", &found]] {
        let output = exec(&[&reports[..], findings].concat(), &race);
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let log = fs::read_to_string(&sarif).expect("it is there");
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let results = log["runs"][0]["results"].as_array().expect("a list");
        let lines: Vec<_> = results
            .iter()
            .map(|result| &result["locations"][0]["physicalLocation"]["region"]["startLine"])
            .collect();
        assert_eq!(lines, [4]);
        // The program itself passes, its kernel does not.
        let tests = fs::read_to_string(&junit).expect("it is there");
        assert_eq!([tests.matches("<testcase").count(), tests.matches("<failure").count()], [2, 1]);
        assert_eq!(output.stderr.is_empty(), !findings.is_empty(), "what goes to no file is shown");
    }
}

#[test]
fn devices_are_those_of_the_driver_and_the_programs_own() {
    let document = json(&exec(&["--sm", "75,90", "--memory", "3G"], &["devices", "--json"]));
    let devices = document["devices"].as_array().expect("a list");
    let column = |key: &str| devices.iter().map(|device| device[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("device"), ["cuda:0", "cuda:1", "vm"]);
    assert_eq!(column("arch")[..2], ["sm_75", "sm_90"]);
    assert_eq!(column("compute_capability")[..2], [serde_json::json!([7, 5]), serde_json::json!([9, 0])]);
    assert_eq!(column("memory")[..2], [3u64 << 30; 2]);
    assert_eq!(column("virtual"), [true; 3]);
    assert_eq!(document["auto"]["name"], devices[2]["name"], "a virtual GPU is no better behind a driver");
    assert_eq!((&document["cuda"]["driver"], &document["cuda"]["error"]), (&"13.5".into(), &Value::Null));
}

#[cfg(feature = "llm")]
#[test]
fn a_model_tells_the_same_story() {
    let prompt = ["generate", "Once upon a time", "--temp", "0", "-n", "12"];
    let [vm, compiled] = ["off", "always"]
        .map(|native| common::run(&[&prompt[..], &["--device", "vm", "--native", native]].concat()));
    assert_eq!(stdout(&compiled), stdout(&vm));
    let cuda = exec(&["--fail"], &[&prompt[..], &["--device", "cuda:0"]].concat());
    assert_eq!(status(&cuda), 0, "{}", String::from_utf8_lossy(&cuda.stderr));
    assert_eq!(stdout(&cuda), stdout(&vm));
    for option in [["--check", "all"], ["--native", "always"]] {
        let refused = exec(&[], &[&prompt[..], &["--device", "cuda:0"], &option].concat());
        assert_eq!((status(&refused), stdout(&refused)), (2, ""), "{option:?} is the driver's");
    }
}
