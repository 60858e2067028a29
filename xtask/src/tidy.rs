//! `cargo xtask tidy`: the invariants of the source that a script can check.
//!
//! A rule is a function from a file to its findings; [`RULES`] lists them. [`words`] also compares files with each other.
//! CONTRIBUTING.md and ARCHITECTURE.md say what a rule is for.

mod words;

use crate::manifest::dependencies;
use crate::run::{project_files, read, relative, root};

/// Files longer than this are split.
const MAX_LINES: usize = 700;

/// Where `unsafe` may stand: in the crates that talk to a driver or to another language, in the file that enters code
/// compiled for features of the processor, where code is compiled and entered, in the one that maps model files, in the command that launches PTX of any
/// origin on a device, in the files with promises that kernels stay within their arguments, and in tests and benches
/// that launch PTX unchecked, make such a promise, count allocations, or take rights from a process.
const UNSAFE_PLACES: &[&str] = &[
    "crates/warpwright-runtime/",
    "crates/warpwright-ffi/",
    "crates/warpwright-libcuda/",
    "crates/warpwright-libcudart/",
    "crates/warpwright-libnvjitlink/",
    "crates/warpwright-libnvrtc/",
    "crates/warpwright-standin/",
    "crates/warpwright-python/src/memory.rs",
    "crates/warpwright-dsl/src/bounded.rs",
    "crates/warpwright-kernels/src/bounded.rs",
    "crates/warpwright-graph/src/run/persistent/bound.rs",
    "crates/warpwright-vm/src/native/",
    "crates/warpwright-vm/src/simd.rs",
    "crates/warpwright-llm/src/gguf/map.rs",
    "crates/warpwright-llm/tests/common/counting.rs",
    "crates/warpwright-testing/src/rig.rs",
    "crates/warpwright-qualify/src/cases/publish.rs",
    "crates/warpwright-qualify/src/measure/probes.rs",
    "crates/warpwright-graph/tests/",
    "crates/warpwright-graph/benches/",
    "crates/warpwright/src/cli/run/cuda.rs",
    "crates/warpwright/tests/native.rs",
];

/// Which of our crates a crate may depend on.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("warpwright-ptx", &[]),
    ("warpwright-vm", &["warpwright-ptx"]),
    ("warpwright-macros", &[]),
    ("warpwright-dsl", &["warpwright-macros", "warpwright-ptx"]),
    ("warpwright-report", &["warpwright-ptx", "warpwright-vm"]),
    ("warpwright-test", &["warpwright-dsl", "warpwright-ptx", "warpwright-vm"]),
    ("warpwright-kernels", &["warpwright-dsl", "warpwright-ptx"]),
    ("warpwright-estimate", &["warpwright-kernels", "warpwright-ptx", "warpwright-vm"]),
    ("warpwright-device", &["warpwright-vm"]),
    ("warpwright-runtime", &["warpwright-device", "warpwright-dsl", "warpwright-ptx", "warpwright-vm"]),
    ("warpwright-graph", &["warpwright-dsl", "warpwright-ptx", "warpwright-kernels", "warpwright-runtime"]),
    ("warpwright-llm", &["warpwright-graph", "warpwright-kernels", "warpwright-runtime"]),
    ("warpwright-ffi", &[]),
    (
        "warpwright-libcuda",
        &["warpwright-device", "warpwright-ffi", "warpwright-ptx", "warpwright-report", "warpwright-vm"],
    ),
    ("warpwright-libcudart", &["warpwright-ffi"]),
    ("warpwright-python", &["warpwright-device", "warpwright-ptx", "warpwright-report", "warpwright-vm"]),
    ("warpwright-standin", &[]),
    ("warpwright-libnvrtc", &["warpwright-standin"]),
    ("warpwright-libnvjitlink", &["warpwright-standin"]),
    (
        "warpwright-testing",
        &["warpwright-dsl", "warpwright-ptx", "warpwright-runtime", "warpwright-test", "warpwright-vm"],
    ),
    (
        "warpwright-qualify",
        &[
            "warpwright-dsl",
            "warpwright-graph",
            "warpwright-kernels",
            "warpwright-ptx",
            "warpwright-runtime",
            "warpwright-test",
            "warpwright-testing",
            "warpwright-vm",
        ],
    ),
];

/// Files that must be there.
const REQUIRED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "Cargo.lock",
    ".ci/run",
    ".cargo/config.toml",
    "tests/mutants/understood.md",
    "fuzz/Cargo.lock",
    "benches/peers/Cargo.lock",
];

/// A file of the project.
struct File {
    /// From the workspace's root, with `/`.
    path: String,
    text: String,
}

impl File {
    fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }

    /// A file of this task: it names what it looks for.
    fn is_this(&self) -> bool {
        self.path.starts_with("xtask/src/tidy")
    }

    /// Another program wrote it, and it is kept as it is.
    fn is_generated(&self) -> bool {
        self.path.starts_with("tests/corpus/ptx/") || self.path.ends_with("Cargo.lock")
    }

    /// A finding for each line that `bad` objects to.
    fn lines(&self, bad: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let findings = self.text.lines().enumerate();
        findings.filter_map(|(i, line)| Some(format!("{}:{}: {}", self.path, i + 1, bad(line)?))).collect()
    }
}

type Rule = fn(&File) -> Vec<String>;

const RULES: &[Rule] = &[
    module_doc,
    length,
    no_stubs,
    no_contains_asserts,
    no_unsafe,
    white_space,
    no_machine_paths,
    ascii_filetests,
    directions,
    words::banned,
];

pub(crate) fn run() -> Result<(), String> {
    // Files that are not text are left out.
    let texts = project_files()?.into_iter().filter_map(|path| Some((relative(&path), read(&path).ok()?)));
    let files: Vec<File> = texts.map(|(path, text)| File { path: path.replace('\\', "/"), text }).collect();
    let mut findings: Vec<String> =
        files.iter().flat_map(|file| RULES.iter().flat_map(|rule| rule(file))).collect();
    findings.extend(words::shared_names(&files));
    for required in REQUIRED {
        if !root().join(required).is_file() {
            findings.push(format!("{required}: is missing"));
        }
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    match findings.len() {
        0 => Ok(()),
        n => Err(format!("{n} findings")),
    }
}

fn module_doc(file: &File) -> Vec<String> {
    let documented = file.text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| {
        // A fuzz target begins with an attribute that must stand first.
        line.starts_with("//!") || line.starts_with("#![no_main]")
    });
    match file.is("rs") && !documented {
        true => vec![format!("{}: does not begin with `//!`: what it is for", file.path)],
        false => Vec::new(),
    }
}

fn length(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    match file.is("rs") && lines > MAX_LINES {
        true => vec![format!("{}: {lines} lines; split a file of more than {MAX_LINES}", file.path)],
        false => Vec::new(),
    }
}

fn no_stubs(file: &File) -> Vec<String> {
    if !file.is("rs") || file.is_this() {
        return Vec::new();
    }
    let stubs = ["#[ignore", "todo!(", "unimplemented!(", "FIXME", "TODO", "XXX"];
    file.lines(|line| stubs.iter().find(|stub| line.contains(*stub)).map(|stub| format!("`{stub}`")))
}

/// A test states what holds, not that a text has a word in it.
fn no_contains_asserts(file: &File) -> Vec<String> {
    if !file.is("rs") || file.is_this() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, _) in file.text.match_indices("assert!(") {
        let statement = &file.text[at..];
        let statement = &statement[..statement.find(";\n").unwrap_or(statement.len())];
        if statement.contains(".contains(\"") {
            let line = file.text[..at].lines().count();
            findings.push(format!("{}:{line}: asserts that a text contains a text", file.path));
        }
    }
    findings
}

fn no_unsafe(file: &File) -> Vec<String> {
    if !file.is("rs") || file.is_this() || UNSAFE_PLACES.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    let root = ["src/lib.rs", "src/main.rs"].iter().any(|root| file.path.ends_with(root));
    // A crate with such a file can only deny, so that the file may allow.
    let holds = |folder: &str| UNSAFE_PLACES.iter().any(|place| place.starts_with(folder));
    let level = match file.path.rsplit_once('/') {
        // The library of the program's crate is another crate, and has nothing of the program's.
        _ if file.path == "crates/warpwright/src/lib.rs" => "forbid",
        Some((folder, _)) if holds(&format!("{folder}/")) => "deny",
        _ => "forbid",
    };
    let attribute = format!("#![{level}(unsafe_code)]");
    if root && !file.text.contains(&attribute) {
        return vec![format!("{}: lacks `{attribute}`", file.path)];
    }
    file.lines(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let word = code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
        word.then(|| "`unsafe` has no place in this crate".to_string())
    })
}

fn white_space(file: &File) -> Vec<String> {
    // White space is what some templates are a test of.
    if file.is_generated() || file.is("jinja") {
        return Vec::new();
    }
    let mut findings = file
        .lines(|line| (line != line.trim_end()).then(|| "white space at the end of the line".to_string()));
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        findings.push(format!("{}: does not end with one line break", file.path));
    }
    findings
}

fn no_machine_paths(file: &File) -> Vec<String> {
    // The script that makes the corpus looks for such paths too.
    if file.is_this() || file.path == "tests/corpus/build.py" {
        return Vec::new();
    }
    let folders = ["/home/", "/root/", "/Users/", "/tmp/", "C:\\"];
    file.lines(|line| {
        let found = folders.iter().find(|folder| line.contains(*folder))?;
        Some(format!("a path of one machine: `{found}`"))
    })
}

/// We print ASCII; other characters stand only where a test is about them.
fn ascii_filetests(file: &File) -> Vec<String> {
    if !file.path.starts_with("tests/filetests/") {
        return Vec::new();
    }
    file.lines(|line| {
        (!line.is_ascii() && !line.contains("//~")).then(|| "a character that is not ASCII".to_string())
    })
}

fn directions(file: &File) -> Vec<String> {
    let Some(name) = file.path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let allowed = DIRECTIONS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    let ours = |name: &&str| name.starts_with("warpwright");
    let mut findings = Vec::new();
    for to in dependencies(&file.text).into_iter().filter(ours) {
        // The facade may depend on every library.
        let fine = allowed.map_or(name == "warpwright", |allowed| allowed.contains(&to));
        if !fine {
            findings.push(format!("{}: must not depend on `{to}`", file.path));
        }
    }
    findings
}
