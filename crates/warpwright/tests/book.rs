//! What the pages show is what the program prints.
//!
//! Their `console` blocks are commands with their output, standard output first. They run one after the other in
//! a folder with what the page needs. `BLESS=1` puts what the program prints into the pages. Their `rust` blocks are parts
//! of programs that are compiled.

mod common;

use common::Folder;
use common::npy::{f32s, file};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// How long a token will take, before that is said.
const ESTIMATE: &str = "on the virtual GPU a token of this model takes about";

/// Words of a command line; quotes hold one together.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (number, part) in line.split('"').enumerate() {
        if number % 2 == 1 {
            words.last_mut().expect("there is one").push_str(part);
            continue;
        }
        for (number, word) in part.split(' ').enumerate() {
            if number > 0 {
                words.push(String::new());
            }
            words.last_mut().expect("there is one").push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The program, which finds itself by its name, and the driver over the virtual GPU where cargo has built it.
fn program() -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_warpwright"));
    let mut folders = vec![path.parent().expect("it is in a folder").to_path_buf()];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut program = Command::new(path);
    program.env("PATH", std::env::join_paths(folders).expect("paths go together"));
    #[cfg(target_os = "linux")]
    program.env("WARPWRIGHT_LIBCUDA", common::libcuda());
    // What is compiled for a page belongs to no user of this machine.
    program.env("WARPWRIGHT_CACHE", "off");
    program
}

/// What a command line prints in that folder: commands of `warpwright`, with `|` between them, and at the end
/// perhaps `head -N`.
fn output(line: &str, folder: &Path) -> String {
    let mut input = Vec::new();
    let mut commands: Vec<&str> = line.split(" | ").collect();
    let most = commands
        .last()
        .and_then(|last| last.strip_prefix("head -"))
        .map(|most| most.parse().expect("a number"));
    commands.truncate(commands.len() - usize::from(most.is_some()));
    let mut errors = Vec::new();
    for command in commands {
        let words = command.strip_prefix("cargo run --release -q --").or(command.strip_prefix("warpwright"));
        let mut program = program();
        let mut child = program
            .args(split(words.unwrap_or_else(|| panic!("no command of the program: {command}"))))
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // The program may end without reading it all.
        let _ = child.stdin.take().expect("piped").write_all(&input);
        let output = child.wait_with_output().expect("the program ends");
        input = output.stdout;
        errors.extend(output.stderr);
    }
    let text = String::from_utf8([input, errors].concat()).expect("the output is UTF-8");
    let lines = text.lines().take(most.unwrap_or(usize::MAX)).map(|line| {
        // Times are never the same.
        match line.trim_start() {
            line if line.starts_with("\"seconds\":") => "  \"seconds\": 0.0002,\n".to_string(),
            line if line.starts_with(ESTIMATE) => format!("{ESTIMATE} 20 ms, one of a long prompt 3 ms\n"),
            // The next call after a kernel that failed says so: which one that is, is a matter of time.
            _ => format!(
                "{}\n",
                with_same_calls(line).replace(&failed("cuEventCreate"), &failed("cuStreamSynchronize"))
            ),
        }
    });
    lines.collect()
}

/// What is said where a call of the driver gives the error of a kernel.
fn failed(call: &str) -> String {
    format!("{call} failed: an illegal memory access")
}

/// The line with another number of each call of the driver: the runtime may come to make more of them, or fewer.
fn with_same_calls(line: &str) -> String {
    let mut parts = line.split("call ");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let name = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if name.starts_with(", cu") { "40" } else { &part[..part.len() - name.len()] };
        out.push_str(&format!("call {number}{name}"));
    }
    out
}

/// Runs the blocks of a page in the folder, and compares.
fn check(page: &str, folder: &Path) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).expect("the page is there");
    let (mut actual, mut blocks) = (String::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        actual.push_str(line);
        actual.push('\n');
        if line != "```console" {
            continue;
        }
        blocks += 1;
        for line in lines.by_ref().take_while(|line| *line != "```") {
            if let Some(command) = line.strip_prefix("$ ") {
                actual.push_str(&format!("{line}\n{}", output(command, folder)));
            }
        }
        actual.push_str("```\n");
    }
    assert!(blocks > 0, "{page}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &actual).expect("the page is written");
        return;
    }
    let differs = text.lines().zip(actual.lines()).find(|(shown, printed)| shown != printed);
    assert_eq!(differs, None, "{page}: BLESS=1 puts right what is shown");
    assert_eq!(text.lines().count(), actual.lines().count(), "{page}");
}

#[test]
fn the_first_page_shows_what_the_program_prints() {
    check("README.md", Folder::new("first_page").path());
}

#[test]
fn the_page_of_models_shows_what_the_program_prints() {
    check("docs/generate.md", Folder::new("models").path());
}

#[test]
fn the_page_of_the_persistent_decoder_shows_what_the_program_prints() {
    check("docs/persistent.md", Folder::new("persistent").path());
}

#[test]
fn the_page_of_run_shows_what_the_program_prints() {
    check("docs/run.md", with_kernels("book").path());
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_of_cuda_shows_what_the_program_prints() {
    check("docs/cuda.md", with_kernels("cuda_page").path());
}

/// A folder with the kernels of the pages and their arrays.
fn with_kernels(name: &str) -> Folder {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let folder = Folder::new(name);
    for entry in fs::read_dir(kernels).expect("the folder is there") {
        let path = entry.expect("readable").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a file"))).expect("it is copied");
    }
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    for (name, values) in [("x.npy", &x[..]), ("y.npy", &[1.0; 100])] {
        let bytes = file("<f4", false, "(100,)", &f32s(values));
        fs::write(folder.path().join(name), bytes).expect("it is written");
    }
    folder
}

/// Holds the `rust` blocks of a page against files: each has its lines in one of them, in this order, however far they
/// are indented. A line with a `…` stands for any others.
fn shows(page: &str, files: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read =
        |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()).collect()
    };
    let files: Vec<_> = files.iter().map(|path| lines(&read(path))).collect();
    let text = read(page);
    let blocks: Vec<_> = text.split("```rust\n").skip(1).map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty(), "{page}");
    for block in blocks {
        let block = lines(block.expect("it has a beginning"));
        let parts: Vec<_> = block.split(|line| line == "…").collect();
        let is_in = |file: &Vec<String>| {
            let mut rest = &file[..];
            parts.iter().all(|part| {
                let found = rest.windows(part.len()).position(|lines| lines == *part);
                rest = found.map_or(&[], |at| &rest[at + part.len()..]);
                found.is_some()
            })
        };
        assert!(files.iter().any(is_in), "{page}: no file has this: {block:#?}");
    }
}

#[test]
fn pages_show_code_that_is_compiled() {
    let kernel = |name: &str| format!("crates/warpwright-kernels/examples/ladder/{name}.rs");
    let example = |name: &str| format!("crates/warpwright-runtime/examples/{name}.rs");
    let ladder =
        ["vector_add", "rms_norm", "transpose", "softmax", "matmul_tiled", "matmul", "mat_vec"].map(kernel);
    shows("docs/ladder.md", &ladder.each_ref().map(String::as_str));
    shows("README.md", &[&kernel("rms_norm"), "crates/warpwright/examples/double.rs"]);
    let runtime = "crates/warpwright-runtime/README.md";
    shows("docs/launches.md", &[&example("launches"), runtime]);
    shows("docs/cuda.md", &[&example("devices"), &example("beside_cudarc")]);
}
