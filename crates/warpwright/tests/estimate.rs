//! `warpwright profile` with estimates and samples: what it refuses and how, and what it counts. NVIDIA's programs are
//! not needed; where they would run, scripts stand in for them.

mod common;

use common::npy::{self, f32s};
use common::{Folder, json, run, status, stdout};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Output;

fn kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    path.to_str().expect("the path is UTF-8").to_string()
}

/// The arguments of a profile of `axpy`, by 40 blocks of a warp, with further options.
fn axpy(options: &[&str]) -> Vec<String> {
    let values = ["zeros:f32:1280", "zeros:f32:1280", "f32:1", "u32:1280"];
    let launch = ["profile", &kernel("axpy.ptx"), "--grid", "40", "--block", "32"];
    [&launch, options, &values].concat().into_iter().map(str::to_string).collect()
}

fn profile(options: &[&str]) -> Output {
    let arguments = axpy(options);
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Holds a command to exit with 2, to print nothing, and to say this.
fn refused(output: &Output, said: &str) {
    let stderr = std::str::from_utf8(&output.stderr).expect("messages are UTF-8");
    assert_eq!((status(output), stdout(output), stderr), (2, "", said));
}

const CARDS: &str = "A100-40GB, A100, H100, H200, B200, RTX 3090, RTX A6000, RTX 4090, RTX 5090";
const HELP: &str = "\n\nFor more information, try '--help'.\n";

#[test]
fn a_card_that_nobody_knows_is_refused_with_those_that_are_known() {
    for (cards, unknown) in [("GTX 1", "GTX 1"), ("A100,GTX 1", "GTX 1"), ("", ""), ("A100,,H100", "")] {
        let said =
            format!("error: invalid value '{unknown}' for '--estimate <CARD>': the cards are {CARDS}{HELP}");
        refused(&profile(&["--estimate", cards]), &said);
    }
}

#[test]
fn options_of_estimates_need_an_estimate() {
    for (options, shown) in [(&["--warm"][..], "--warm"), (&["--tools", "."], "--tools <DIR>")] {
        let said = format!(
            "error: the following required arguments were not provided:\n  --estimate <CARD>\n\nUsage: warpwright \
             profile --grid <X[,Y[,Z]]> --estimate <CARD> --block <X[,Y[,Z]]> {shown} <FILE> <ARG>...{HELP}"
        );
        refused(&profile(options), &said);
    }
}

#[test]
fn a_sample_has_a_whole_number_of_blocks() {
    for (sample, why) in [
        ("0", "0 is not in 1..18446744073709551615"),
        ("-1", "invalid digit found in string"),
        ("few", "invalid digit found in string"),
        ("1.5", "invalid digit found in string"),
    ] {
        refused(
            &profile(&["--sample", sample]),
            &format!("error: invalid value '{sample}' for '--sample <BLOCKS>': {why}{HELP}"),
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_without_the_programs_is_named() {
    let folder = Folder::new("estimate_no_tools");
    let missing = folder.path().join("missing");
    // A file of the name is no program.
    fs::create_dir(folder.path().join("data")).expect("it is made");
    folder.write("data/ptxas", "");
    folder.write("data/nvdisasm", "");
    let data = folder.path().join("data");
    // One of the two is not enough.
    fs::create_dir(folder.path().join("one")).expect("it is made");
    std::os::unix::fs::symlink("/bin/true", folder.path().join("one/ptxas")).expect("it is made");
    let one = folder.path().join("one");
    let absent = "No such file or directory (os error 2)";
    for (tools, program, why) in [
        (folder.path(), "ptxas", absent),
        (&missing, "ptxas", absent),
        (&data, "ptxas", "Permission denied (os error 13)"),
        (&one, "nvdisasm", absent),
    ] {
        for json in [&[][..], &["--json"]] {
            let options = [&["--estimate", "A100", "--tools", tools.to_str().expect("UTF-8")], json].concat();
            let program = tools.join(program);
            let said = format!(
                "error: the folder of `ptxas` and `nvdisasm` is not right: {}: {why}\n",
                program.display()
            );
            refused(&profile(&options), &said);
        }
    }
}

#[test]
fn a_sample_runs_so_many_blocks() {
    let launch = ["profile", &kernel("axpy.ptx"), "--json", "--grid", "40", "--block", "32"];
    for (options, blocks) in [
        (&["--sample", "1"][..], 1),
        (&["--sample", "4"], 4),
        (&["--sample", "40"], 40),
        (&["--sample", "1000"], 40),
        (&[], 40),
        // Blocks that may wait for each other all run.
        (&["--sample", "4", "--cooperative"], 40),
    ] {
        let output =
            run(&[&launch, options, &["zeros:f32:1280", "zeros:f32:1280", "f32:1", "u32:1280"]].concat());
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output);
        let counters = &document["counters"];
        assert_eq!(counters["blocks"], json!(blocks), "{options:?}");
        // Each has a warp, which executes 19 instructions, two of them loads.
        assert_eq!(counters["instructions"]["warps"], json!(19 * blocks), "{options:?}");
        assert_eq!(counters["memory"]["global"]["loads"]["requests"], json!(2 * blocks), "{options:?}");
        assert_eq!((&document["grid"], &document["findings"]), (&json!([40, 1, 1]), &json!([])));
        assert!(document.get("estimates").is_none(), "none was asked for");
    }
}

#[test]
fn a_part_of_a_result_is_not_written() {
    let folder = Folder::new("estimate_sample");
    let y = folder.path().join("y.npy");
    let before = npy::file("<f4", false, "(1280,)", &f32s(&[1.0; 1280]));
    fs::write(&y, &before).expect("it is written");
    let inout = format!("inout:{}", y.to_str().expect("UTF-8"));
    let launch = ["profile", &kernel("axpy.ptx"), "--grid", "40", "--block", "32", "--sample", "4"];
    let output = run(&[&launch[..], &["zeros:f32:1280", &inout, "f32:1", "u32:1280"]].concat());
    let said = "error: `--sample` executes a part of the grid, so `out:` and `inout:` files would have a part of the \
                result: pass `in:`, `zeros:` or `poison:` instead\n";
    refused(&output, said);
    assert_eq!(fs::read(&y).expect("it is there"), before);
}

/// What goes with the virtual GPU only, and devices that are not there. A virtual one stands behind the driver API here,
/// so it is of no matter whether the machine has a driver.
#[cfg(target_os = "linux")]
#[test]
fn estimates_and_samples_go_with_the_virtual_gpu() {
    let exec = |options: &[&str]| {
        let program = env!("CARGO_BIN_EXE_warpwright");
        let mut exec = std::process::Command::new(program);
        exec.args(["exec", "--log", "off", "--", program]).args(axpy(options));
        exec.env("WARPWRIGHT_LIBCUDA", common::libcuda()).env("WARPWRIGHT_CACHE", "off");
        exec.env_remove("WARPWRIGHT_CHECK").output().expect("the program starts")
    };
    let conflict = "error: `--estimate` and `--sample` go with the virtual GPU: `--device vm`\n";
    let absent = "error: --device cuda:9: there is no cuda:9: the driver has one, cuda:0\n";
    for (options, said) in [
        (&["--device", "cuda:0", "--estimate", "A100"][..], conflict),
        (&["--device", "cuda:0", "--sample", "4"], conflict),
        (&["--device", "cuda:0", "--sample", "4", "--estimate", "A100,H100", "--repeat", "3"], conflict),
        (&["--device", "cuda:9", "--estimate", "A100"], absent),
        (&["--device", "cuda:9", "--sample", "4"], absent),
    ] {
        refused(&exec(options), said);
    }
}

/// Scripts in place of NVIDIA's programs: what they do besides telling their version.
#[cfg(target_os = "linux")]
fn stand_ins(folder: &Folder, ptxas: &str, nvdisasm: &str) -> String {
    for (name, does) in [("ptxas", ptxas), ("nvdisasm", nvdisasm)] {
        let script = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then exit 0; fi\n{does}\n");
        let text = folder.write(&format!("{name}.txt"), &script);
        // Another process makes the program: a file that this one has open for writing, which any thread that starts a
        // process hands on for a moment, cannot be executed.
        let program = folder.path().join(name);
        let make = "cp \"$0\" \"$1\" && chmod +x \"$1\"";
        let made = std::process::Command::new("sh").args(["-c", make, &text]).arg(program).status();
        assert!(made.expect("the shell starts").success());
    }
    folder.path().to_str().expect("UTF-8").to_string()
}

#[cfg(target_os = "linux")]
const LOG: &str = "echo 'ptxas info    : Used 32 registers, 380 bytes cmem[0]' >&2";

/// The machine code of `axpy` as far as a test needs it: its accesses with their lines.
#[cfg(target_os = "linux")]
const LISTING: &str = "cat <<'END'
.section	.text.axpy,\"ax\",@progbits
.text.axpy:
//## File \".nv_debug_ptx_txt\", line 32
/*0000*/ LDG.E R2, [R4.64] ;  /* 0x0000000000000000 */
/* 0x000ea20000000000 */
//## File \".nv_debug_ptx_txt\", line 33
/*0010*/ LDG.E R3, [R6.64] ;  /* 0x0000000000000000 */
/* 0x000ea20000000000 */
//## File \".nv_debug_ptx_txt\", line 34
/*0020*/ FFMA R3, R2, c[0x0][0x170], R3 ;  /* 0x0000000000000000 */
/* 0x004fc80000000000 */
//## File \".nv_debug_ptx_txt\", line 35
/*0030*/ STG.E [R6.64], R3 ;  /* 0x0000000000000000 */
/* 0x000fe20000000000 */
//## File \".nv_debug_ptx_txt\", line 37
/*0040*/ EXIT ;  /* 0x0000000000000000 */
/* 0x000fea0000000000 */
END";

#[cfg(target_os = "linux")]
#[test]
fn estimates_come_in_the_order_in_which_cards_are_named() {
    let folder = Folder::new("estimate_cards");
    let tools = stand_ins(&folder, LOG, LISTING);
    // Bytes of x, and of y that are read and written.
    let bytes = 3.0 * 1280.0 * 4.0;
    for (options, from_memory) in [
        (&[][..], bytes),
        // A few blocks stand for the grid.
        (&["--sample", "4"], bytes),
        // What is read is in the cache already.
        (&["--warm"], bytes / 3.0),
    ] {
        let output =
            profile(&[&["--json", "--estimate", "h100,rtx4090", "--tools", &tools], options].concat());
        assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output);
        let estimates = document["estimates"].as_array().expect("a list");
        let cards: Vec<_> = estimates.iter().map(|estimate| &estimate["card"]).collect();
        assert_eq!(cards, ["H100", "RTX 4090"]);
        for (estimate, resident) in estimates.iter().zip([32, 24]) {
            let number = |field: &str| estimate[field].as_f64().expect("a number");
            assert_eq!((number("dram_bytes"), number("l2_bytes")), (from_memory, bytes), "{options:?}");
            assert_eq!((number("instructions_per_warp"), number("accounted")), (5.0, 1.0));
            assert_eq!(estimate["resident_blocks"], json!(resident), "blocks of a warp");
            let whole = number("kernel") + number("launch");
            assert!((number("seconds") / whole - 1.0).abs() < 1e-9, "but for how the text is read");
            assert!(number("floor") <= number("kernel") && number("kernel") > 0.0);
            // Longest first, and nothing that takes no time.
            let resources = estimate["resources"].as_array().expect("a list");
            let seconds: Vec<f64> =
                resources.iter().map(|one| one["seconds"].as_f64().expect("a number")).collect();
            assert!(seconds.is_sorted_by(|a, b| a >= b) && seconds.iter().all(|&seconds| seconds > 0.0));
            assert_eq!(resources[0]["resource"], json!("latency of a warp"), "a small grid only waits");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_card_without_an_estimate_does_not_cost_the_others_theirs() {
    let error = "echo 'ptxas axpy.ptx, line 3; error   : no such thing' >&2; exit 1";
    // One of the cards alone is refused.
    let some = format!("case \"$*\" in *sm_90*) {error};; esac; {LOG}");
    for (name, ptxas, nvdisasm, said) in [
        ("ptxas", error, LISTING, [Some("ptxas: error   : no such thing"); 2]),
        ("some", &some, LISTING, [None, Some("ptxas: error   : no such thing")]),
        ("nvdisasm", LOG, "echo 'no cubin' >&2; exit 1", [Some("no cubin"); 2]),
        ("no_code", LOG, "", [Some("the machine code of the kernel is empty"); 2]),
    ] {
        let folder = Folder::new(&format!("estimate_{name}_fails"));
        let tools = stand_ins(&folder, ptxas, nvdisasm);
        let output = profile(&["--json", "--estimate", "A100,H100", "--tools", &tools]);
        assert_eq!(status(&output), 1, "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output);
        assert_eq!(document["counters"]["blocks"], json!(40), "the counters are there all the same");
        for ((card, said), estimate) in ["A100", "H100"].iter().zip(said).zip(0..) {
            let estimate = &document["estimates"][estimate];
            assert_eq!((&estimate["card"], &estimate["error"]), (&json!(card), &json!(said)), "{name}");
            assert_eq!(estimate.get("seconds").is_some(), said.is_none(), "{name}, {card}");
        }
    }
}

/// A kernel for later cards than one that is asked for, one that traps, and one with a finding.
#[cfg(target_os = "linux")]
#[test]
fn what_the_kernel_has_to_do_with_it_is_said() {
    let folder = Folder::new("estimate_of_kernels");
    let tools = stand_ins(&folder, LOG, LISTING);
    let text = fs::read_to_string(kernel("axpy.ptx")).expect("it is there");
    let target = text.lines().find(|line| line.starts_with(".target")).expect("it has one");
    let later = folder.write("later.ptx", &text.replace(target, ".target sm_90"));
    let traps = folder.write("traps.ptx", &text.replacen("ld.global.f32", "trap;\n    ld.global.f32", 1));
    let estimates = |file: &str, x: &str| {
        let launch = ["profile", file, "--json", "--grid", "40", "--block", "32", "--tools", &tools];
        let values = ["--estimate", "A100,H100", x, "zeros:f32:1280", "f32:1", "u32:1280"];
        let output = run(&[&launch[..], &values].concat());
        (status(&output), json(&output)["estimates"].clone())
    };
    let (exit, found) = estimates(&later, "zeros:f32:1280");
    let error = "the file is for sm_90, which a card of sm_80 does not run";
    assert_eq!((exit, &found[0]["error"], &found[1]["error"]), (1, &json!(error), &json!(null)));
    let (exit, found) = estimates(&traps, "zeros:f32:1280");
    let error = "the kernel did not run to its end";
    assert_eq!((exit, &found[0]["error"], &found[1]["error"]), (1, &json!(error), &json!(error)));
    // The listing leaves much out, which is a doubt of its own.
    let doubts = |x| {
        let (exit, found) = estimates(&kernel("axpy.ptx"), x);
        (exit, found[0]["doubts"].as_array().map(Vec::len))
    };
    assert_eq!(doubts("zeros:f32:1280"), (0, Some(1)));
    assert_eq!(doubts("zeros:f32:1000"), (1, Some(2)), "accesses beyond its end are not performed");
}
