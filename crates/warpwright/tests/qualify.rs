//! `qualify` and `tune` on the virtual GPU: what they write, and that it is used.

mod common;

use common::{Folder, run, status, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use warpwright::kernels::tune::Table;

/// The tables of a file: text by text, as its rows.
fn rows(text: &str) -> Vec<String> {
    Table::parse(text).expect("a table").to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_qualification_says_what_it_found() {
    let folder = Folder::new("qualification");
    let out = folder.path().join("report");
    let only = "bandwidth,gemv,overhead";
    let output = run(&["qualify", "--device", "vm", "--only", only, "-o", out.to_str().expect("UTF-8")]);
    assert_eq!(status(&output), 0, "{}", stdout(&output));
    let report: Value =
        serde_json::from_str(&fs::read_to_string(out.join("qualify.json")).expect("JSON")).expect("JSON");
    let stages: Vec<_> = report["stages"].as_array().expect("stages").iter().collect();
    assert_eq!(stages.len(), 3);
    for stage in stages {
        assert!(stage["failure"].is_null(), "{stage}");
        for item in stage["items"].as_array().expect("items") {
            assert!(item["wrong"].is_null(), "{item}");
            let figure = &item["findings"][0]["figure"];
            let median = figure["median"].as_f64().expect("a number");
            // Quartiles are on either side.
            let [low, high] = [0, 1].map(|i| figure["quartiles"][i].as_f64().expect("a number"));
            assert!(low <= median && median <= high && median.is_finite(), "{figure}");
        }
    }
    assert_eq!(report["finished"], Value::Bool(true));
    assert!(fs::metadata(out.join("qualify.md")).is_ok_and(|page| page.len() > 0));
    let drawing = fs::read_to_string(out.join("roofline.svg")).expect("a drawing");
    // As many points as products, and one for each of the four stages in the legend.
    let products = report["stages"].as_array().expect("stages").iter();
    let products = products.filter(|stage| stage["stage"] == "gemv");
    let products: usize = products.map(|stage| stage["items"].as_array().expect("items").len()).sum();
    assert_eq!(drawing.matches("<circle").count(), products + 4);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for wrong in [
        &["qualify", "--only", "dancing"][..],
        &["qualify", "--budget", "soon"],
        &["qualify", "--budget", "0"],
        &["qualify", "--budget", "-1"],
        &["qualify", "--device", "vm", "--shapes", "/no/such/file", "--only", "tune"],
        &["tune", "/no/such/file", "--device", "vm", "-o", "/dev/null/x"],
    ] {
        assert_eq!(status(&run(wrong)), 2, "{wrong:?}");
    }
    assert!(!Path::new("qualify").exists(), "nothing has begun");
}

/// The program with a file of measured choices.
fn with_tuning(tuning: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.args(arguments).env("WARPWRIGHT_TUNING", tuning).output().expect("the program runs")
}

/// Rows of other devices and shapes stay, and plans use the rows of theirs.
#[test]
fn what_is_tuned_is_used() {
    let folder = Folder::new("tuned");
    let device = "virtual GPU (sm_90)";
    let other = "rope heads=3 tokens=5 -> rounds=2";
    let planned = with_tuning("off", &["plan", "--device", "vm", "--choices"]);
    let planned = rows(stdout(&planned));
    let attention = planned.iter().find(|row| row.starts_with("attention")).expect("a row");
    let shape = attention.split(" -> ").next().expect("a shape");
    let shapes = folder.write("shapes", &format!("[elsewhere]\n{attention}\n"));
    let wanted = format!("{shape} -> splits=1 warps=8");
    let tuning = folder.write("tuning", &format!("[card]\n{other}\n[{device}]\n{other}\n{wanted}\n"));
    // Before: what the file says.
    let before = with_tuning(&tuning, &["plan", "--device", "vm", "--choices"]);
    assert!(rows(stdout(&before)).contains(&wanted), "{}", stdout(&before));
    let tuned = with_tuning(&tuning, &["tune", &shapes, "--device", "vm"]);
    assert_eq!(status(&tuned), 0, "{}", String::from_utf8_lossy(&tuned.stderr));
    let kept = rows(&fs::read_to_string(&tuning).expect("the file"));
    let rows_of = |device: &str| {
        let from = kept.iter().position(|row| *row == format!("[{device}]")).expect("its rows");
        kept[from + 1..].iter().take_while(|row| !row.starts_with('[')).cloned().collect::<Vec<_>>()
    };
    assert_eq!(rows_of("card"), [other]);
    let [best, rope] = &rows_of(device)[..] else { panic!("{kept:?}") };
    assert!(rope == other && best.starts_with(shape), "{kept:?}");
    let after = with_tuning(&tuning, &["plan", "--device", "vm", "--choices"]);
    assert!(rows(stdout(&after)).contains(best), "{}", stdout(&after));
    // Without the file it is the estimate again.
    let without = with_tuning("off", &["plan", "--device", "vm", "--choices"]);
    assert_eq!(rows(stdout(&without)), planned);
}

/// However the program ends, what was done is kept, and nothing of an earlier run beside it.
#[test]
fn what_is_done_is_not_lost() {
    let folder = Folder::new("unfinished");
    let earlier = folder.write("roofline.svg", "of another run");
    let read = || {
        let text = fs::read_to_string(folder.path().join("qualify.json")).ok()?;
        Some(serde_json::from_str::<Value>(&text).expect("it is whole, whenever it is read"))
    };
    let items = |report: &Value| {
        let stages = report["stages"].as_array().expect("a list").iter();
        stages.map(|stage| stage["items"].as_array().expect("a list").len()).sum::<usize>()
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.args(["qualify", "--device", "vm", "--only", "cases", "-o"]).arg(folder.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let report = loop {
        match read().filter(|report| items(report) > 0) {
            Some(report) => break report,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
        assert!(child.try_wait().expect("it is known").is_none(), "it ended by itself, and wrote nothing");
    };
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    assert_eq!(report["finished"], Value::Bool(false));
    assert!(read().is_some_and(|last| items(&last) >= items(&report)));
    assert!(!Path::new(&earlier).exists());
}

/// A list without a shape is not a device that is right.
#[test]
fn what_does_nothing_is_not_right() {
    let folder = Folder::new("nothing");
    let (shapes, tuning) = (folder.write("shapes", "# none\n"), folder.path().join("tuning"));
    let tuned = run(&["tune", &shapes, "--device", "vm", "-o", tuning.to_str().expect("UTF-8")]);
    assert_eq!(status(&tuned), 1, "{}", stdout(&tuned));
}

/// The process of a stage ends when the one that holds its standard input has ended, whatever it is doing.
#[test]
fn nothing_goes_on_alone() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.args(["qualify", "--child", "cases", "--device", "vm"]).stdout(Stdio::null());
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}
