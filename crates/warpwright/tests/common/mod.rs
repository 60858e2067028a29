//! The program, run as its users run it, and folders for its files.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod npy;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder is made");
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the file is written");
        path.to_str().expect("the path is UTF-8").to_string()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    run_with(arguments, "")
}

pub(crate) fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(arguments)
        // What somebody has tuned on this machine would change what plans print.
        .env("WARPWRIGHT_TUNING", "off")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may end without reading it all.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

pub(crate) fn status(output: &Output) -> i32 {
    output.status.code().expect("the program was not killed")
}

pub(crate) fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("the output is UTF-8")
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(stdout(output)).expect("the output is JSON")
}

/// The CUDA driver API over the virtual GPU, which cargo has built beside the tests.
#[cfg(target_os = "linux")]
pub(crate) fn libcuda() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a file");
    test.with_file_name("libwarpwright_cuda.so")
}
