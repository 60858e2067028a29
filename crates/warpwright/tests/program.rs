//! The `warpwright` program as its users run it: exit statuses, what it prints where, and what it
//! leaves in files.

mod common;

use common::{Folder, json, run, run_with, status, stdout};
use serde_json::Value;
use std::fs;

const GOOD: &str = "\
.version 8.0
.target sm_80
.address_size 64

.visible .entry twice(
    .param .u64 data
)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64            %rd0, [data];
    cvta.to.global.u64      %rd1, %rd0;
    ld.global.u32           %r0, [%rd1];
    shl.b32                 %r1, %r0, 1;  // times two
    st.global.u32           [%rd1], %r1;
    ret;
}
";

/// The text with one of its lines replaced.
fn with_line(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old} stands once in the text");
    text.replace(old, new)
}

#[test]
fn check_exits_0_where_all_is_well() {
    let folder = Folder::new("check_good");
    let file = folder.write("good.ptx", GOOD);
    let output = run(&["check", &file]);
    assert_eq!((status(&output), stdout(&output)), (0, ""));
    assert!(output.stderr.is_empty());
    assert_eq!(status(&run_with(&["check", "-"], GOOD)), 0);
}

#[test]
fn check_exits_1_on_errors_and_says_where() {
    let bad = with_line(GOOD, "shl.b32                 %r1, %r0, 1;", "shl.b32 %r1, %rd0, 1;");
    let output = run_with(&["check", "--json", "-"], &bad);
    assert_eq!(status(&output), 1);
    let document = json(&output);
    assert_eq!(document["version"], 1);
    let file = &document["files"][0];
    assert_eq!(
        (&file["file"], &file["errors"], &file["warnings"]),
        (&"<stdin>".into(), &1.into(), &0.into())
    );
    let finding = &file["diagnostics"][0];
    assert_eq!((&finding["code"], &finding["severity"]), (&"E0012".into(), &"error".into()));
    assert_eq!((&finding["line"], &finding["column"]), (&14.into(), &5.into()));
}

#[test]
fn check_reports_all_errors_of_all_files() {
    let folder = Folder::new("check_all");
    let two = with_line(&with_line(GOOD, "shl.b32 ", "shll.b32 "), "ld.global.u32 ", "ld.globl.u32 ");
    let bad = folder.write("bad.ptx", &two);
    let good = folder.write("good.ptx", GOOD);
    let output = run(&["check", "--json", &bad, &good]);
    assert_eq!(status(&output), 1);
    let document = json(&output);
    let codes = |file: usize| -> Vec<(String, u64)> {
        let list = document["files"][file]["diagnostics"].as_array().expect("a list");
        list.iter()
            .map(|d| (d["code"].as_str().expect("a code").to_string(), d["line"].as_u64().expect("a line")))
            .collect()
    };
    assert_eq!(codes(0), [("E0003".to_string(), 13), ("E0002".to_string(), 14)]);
    assert_eq!(codes(1), []);
}

#[test]
fn check_exits_2_where_a_file_cannot_be_read() {
    let folder = Folder::new("check_unreadable");
    let missing = folder.path().join("missing.ptx");
    let missing = missing.to_str().expect("the path is UTF-8");
    assert_eq!(status(&run(&["check", missing])), 2);
    // The others are checked all the same.
    let bad = folder.write("bad.ptx", &with_line(GOOD, "ret;", "rett;"));
    let output = run(&["check", missing, &bad, "--json"]);
    assert_eq!(status(&output), 2);
    assert_eq!(json(&output)["files"][0]["errors"], 1);
    fs::write(folder.path().join("binary.ptx"), [0xff, 0xfe, 0x00]).expect("the file is written");
    assert_eq!(status(&run(&["check", folder.path().join("binary.ptx").to_str().expect("UTF-8")])), 2);
}

#[test]
fn check_judges_for_another_target() {
    let async_copy =
        with_line(GOOD, "shl.b32                 %r1, %r0, 1;", "mov.b32 %r1, %r0; cp.async.wait_all;");
    assert_eq!(status(&run_with(&["check", "-"], &async_copy)), 0);
    assert_eq!(status(&run_with(&["check", "--target", "sm_75", "-"], &async_copy)), 1);
    assert_eq!(status(&run_with(&["check", "--target", "sm_1", "-"], &async_copy)), 2);
}

#[test]
fn warnings_pass_unless_denied() {
    let unreachable = with_line(GOOD, "    ret;", "    ret;\n    mov.b32 %r2, 1;\n    ret;");
    let output = run_with(&["check", "--json", "-"], &unreachable);
    assert_eq!((status(&output), &json(&output)["files"][0]["warnings"]), (0, &1.into()));
    assert_eq!(status(&run_with(&["check", "--deny", "warnings", "-"], &unreachable)), 1);
}

#[test]
fn fmt_prints_checks_and_writes() {
    let folder = Folder::new("fmt");
    let messy = with_line(GOOD, "    ret;", "ret  ;  // done");
    let tidy = with_line(GOOD, "    ret;", "    ret;  // done");
    let output = run_with(&["fmt", "-"], &messy);
    assert_eq!((status(&output), stdout(&output)), (0, tidy.as_str()));

    let file = folder.write("messy.ptx", &messy);
    assert_eq!(status(&run(&["fmt", "--check", &file])), 1);
    assert_eq!(fs::read_to_string(&file).expect("readable"), messy, "--check changes nothing");
    let output = run(&["fmt", "--write", &file]);
    assert_eq!((status(&output), stdout(&output)), (0, ""));
    assert_eq!(fs::read_to_string(&file).expect("readable"), tidy);
    assert_eq!(status(&run(&["fmt", "--check", &file])), 0);
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "no other file is left");
}

#[test]
fn fmt_leaves_what_it_cannot_read() {
    let folder = Folder::new("fmt_bad");
    let bad = with_line(GOOD, "ret;", "ret");
    let file = folder.write("bad.ptx", &bad);
    assert_eq!(status(&run(&["fmt", "--write", &file])), 1);
    assert_eq!(fs::read_to_string(&file).expect("readable"), bad);
    assert_eq!(status(&run(&["fmt", &file, &file])), 2, "two texts would run together");
}

#[test]
fn every_kernel_is_listed_emits_and_checks() {
    let list = json(&run(&["kernels", "--json"]));
    let kernels = list.as_array().expect("a list");
    assert!(!kernels.is_empty());
    for kernel in kernels {
        let name = kernel["name"].as_str().expect("a name");
        let output = run(&["emit", name]);
        assert_eq!(status(&output), 0, "{name} at its defaults");
        assert_eq!(status(&run_with(&["check", "--deny", "warnings", "-"], stdout(&output))), 0, "{name}");
        // The printed text is canonical, and the defaults are what the list says.
        assert_eq!(stdout(&run_with(&["fmt", "-"], stdout(&output))), stdout(&output), "{name}");
        let defaults: Vec<String> = kernel["fields"]
            .as_array()
            .expect("fields")
            .iter()
            .map(|field| {
                let text = |key: &str| field[key].as_str().expect("a text").to_string();
                assert!(!text("type").is_empty() && !text("domain").is_empty());
                format!("{}={}", text("name"), text("default"))
            })
            .collect();
        let mut arguments = vec!["emit", name];
        defaults.iter().for_each(|assignment| arguments.extend(["--set", assignment]));
        assert_eq!(stdout(&run(&arguments)), stdout(&output), "{name} with its defaults said");
    }
}

#[test]
fn emit_says_how_to_launch() {
    let arguments = ["emit", "rms_norm", "--set", "d=128", "--set", "threads=64", "--target", "sm_90"];
    let ptx = run(&arguments);
    let output = run(&[&arguments[..], &["--json"]].concat());
    let document = json(&output);
    assert_eq!(document["ptx"].as_str(), Some(stdout(&ptx)));
    assert_eq!(document["target"], "sm_90");
    assert_eq!(document["grid"], serde_json::json!(["rows", 1, 1]));
    assert_eq!(document["block"], serde_json::json!([64, 1, 1]));
    let arguments: Vec<_> = document["arguments"].as_array().expect("a list").iter().collect();
    let column = |key: &str| arguments.iter().map(|argument| argument[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("name"), ["x", "w", "y"]);
    assert_eq!(column("dtype"), ["f32", "f32", "f32"]);
    assert_eq!(column("role"), ["in", "in", "out"]);
    assert_eq!(column("length"), [Value::from("128*rows"), Value::from(128), Value::from("128*rows")]);
    assert_eq!(column("alignment"), [16, 16, 16]);
    assert_eq!(column("may_share"), [serde_json::json!([]), serde_json::json!([]), serde_json::json!([])]);
    // The entry that the document names is the one that the text defines.
    let module = warpwright::ptx::parse(stdout(&ptx)).expect("the text is PTX");
    let entries: Vec<_> = module.entries().map(|entry| entry.name.to_string()).collect();
    assert_eq!(entries, [document["entry"].as_str().expect("a name")]);
}

#[test]
fn emit_refuses_what_no_kernel_has() {
    for arguments in [
        &["emit", "rms_nrom"][..],
        &["emit", "rms_norm", "--set", "d"],
        &["emit", "rms_norm", "--set", "d=0"],
        &["emit", "rms_norm", "--set", "rows=1"],
        &["emit", "rms_norm", "--set", "d=8", "--set", "d=9"],
        &["emit", "rms_norm", "--target", "sm_70"],
        &["emit", "rms_norm", "--target", "hopper"],
    ] {
        let output = run(arguments);
        assert_eq!((status(&output), stdout(&output)), (2, ""), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn emit_writes_to_a_file_and_names_rust_lines() {
    let folder = Folder::new("emit");
    let path = folder.path().join("kernel.ptx");
    let file = path.to_str().expect("UTF-8");
    let output = run(&["emit", "argmax", "--locations", "-o", file]);
    assert_eq!((status(&output), stdout(&output)), (0, ""));
    assert_eq!(status(&run(&["check", file])), 0);
    let module = warpwright::ptx::parse(&fs::read_to_string(&path).expect("readable")).expect("PTX");
    let files =
        module.items.iter().filter(|item| matches!(item.kind, warpwright::ptx::ir::ItemKind::File(_)));
    assert!(files.count() > 0);
}

#[test]
fn devices_name_the_one_that_is_used() {
    let document = json(&run(&["devices", "--json"]));
    assert_eq!(document["version"], 1);
    let devices = document["devices"].as_array().expect("a list");
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    assert!(names.contains(&&document["auto"]["name"]), "the one that is used is one of them");
    assert!(devices.iter().all(|device| device["multiprocessors"].as_u64().is_some_and(|count| count > 0)));
    assert!(devices.iter().any(|device| device["device"] == "vm" && device["virtual"] == true));
    let cuda = devices.iter().filter(|device| device["device"] != "vm").count();
    let (driver, error) = (&document["cuda"]["driver"], &document["cuda"]["error"]);
    assert_ne!(driver.is_null(), error.is_null(), "there is a driver, or it is said why not");
    assert!(cuda == 0 || !driver.is_null());
    let output = run(&["devices"]);
    assert_eq!((status(&output), stdout(&output).lines().count()), (0, 2 * devices.len() + 2));
}

/// The referee is of the Python package: the program becomes a Python, with the arguments as they are.
#[cfg(unix)]
#[test]
fn referee_becomes_the_python_that_has_the_package() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("referee");
    let python = |name, text: &str| {
        let file = folder.write(name, text);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the mode is set");
        file
    };
    let has_it = "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nprintf '%s|' \"$@\"\nexit 5\n";
    let cases = [
        (python("has_it", has_it), 5, "-m|warpwright.referee|spec.toml|a b.cu|--json|-|--help|"),
        (python("has_it_not", "#!/bin/sh\nexit 1\n"), 2, ""),
        (format!("{}/none", folder.path().display()), 2, ""),
    ];
    for (python, code, printed) in cases {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(["referee", "spec.toml", "a b.cu", "--json", "-", "--help"])
            .env("WARPWRIGHT_PYTHON", &python)
            .output()
            .expect("the program starts");
        assert_eq!((status(&output), stdout(&output)), (code, printed), "{python}");
        assert_eq!(output.stderr.is_empty(), code == 5);
    }
}

#[test]
fn fidelity_shows_what_is_asked_for_also_if_that_is_nothing() {
    let all = run(&["fidelity", "tensormap", "--json"]);
    assert_eq!(status(&all), 0);
    assert_eq!(json(&all)["forms"].as_array().unwrap().len(), 24);
    // All of them are executed there, and none of those that replace a field exists without the `a`.
    for (arguments, form) in [
        (["--sm", "90a", "--class", "refused"], "tensormap"),
        (["--sm", "90", "--class", "exact"], "tensormap.replace"),
    ] {
        let none = run(&[&["fidelity", form, "--json"][..], &arguments].concat());
        assert_eq!(
            (status(&none), json(&none)["forms"].as_array().map(Vec::len)),
            (0, Some(0)),
            "{arguments:?}"
        );
        let none = run(&[&["fidelity", form][..], &arguments].concat());
        assert_eq!((status(&none), stdout(&none).lines().count()), (0, 1), "{arguments:?}");
    }
    assert_eq!(status(&run(&["fidelity", "tensormapp"])), 2);
}
