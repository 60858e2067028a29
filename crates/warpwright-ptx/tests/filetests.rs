//! Runs every file of `tests/filetests`.
//!
//! A file begins with comments that say how it is tested:
//!
//! ```text
//! // test: parse | roundtrip | print | verify | vm
//! // allow: W0003
//! ```
//!
//! - `parse`: the parser's diagnostics are the expected ones;
//! - `roundtrip`: it parses, and printing and parsing again gives the same module;
//! - `print`: it is written as the printer writes it;
//! - `verify`: the parser's diagnostics, or the verifier's where it parses, are the expected ones;
//! - `vm`: it is run by the virtual GPU's own tests, whose marks are not about diagnostics; here it must
//!   parse, print and verify without an error.
//!
//! An expected diagnostic stands on the line that it is about: `//~ E0012`, or with its whole message
//! `//~ E0012 message`. Whatever is not expected fails the file, notes and warnings too, unless
//! `allow` names the code. `BLESS=1 cargo test -p warpwright-ptx --test filetests` rewrites the
//! expectations, and the text of `print` files; a message is written where one stood before.

mod common;

use common::{line_of, ptx_files, read, report, round_trip, test_data};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use warpwright_ptx::diag::{Code, Diagnostics};
use warpwright_ptx::{parse, verify};

/// A diagnostic as a file states it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expected {
    line: usize,
    code: String,
    message: Option<String>,
}

/// How a file is to be tested.
struct Header {
    modes: Vec<String>,
    allow: Vec<String>,
}

#[test]
fn filetests() {
    let bless = std::env::var_os("BLESS").is_some();
    let root = test_data().join("filetests");
    let files = ptx_files(&root);
    let mut failures = Vec::new();
    for path in &files {
        let text = read(path);
        if let Err(problem) = run(path, &text, bless) {
            let name = path.strip_prefix(&root).unwrap_or(path);
            failures.push(format!("{}: {problem}", name.display()));
        }
    }
    report("filetests", files.len(), &failures);
}

/// Every code that a module can be refused with has a file that shows it.
#[test]
fn every_parser_code_is_shown() {
    if std::env::var_os("BLESS").is_some() {
        return;
    }
    let root = test_data().join("filetests");
    let shown: Vec<String> = ptx_files(&root)
        .iter()
        .flat_map(|path| expectations(&read(path)))
        .map(|expected| expected.code)
        .collect();
    for code in PARSER_CODES {
        assert!(shown.iter().any(|text| text == code.text()), "no filetest shows {code}: {}", code.title());
    }
}

/// The codes that come from the parser.
const PARSER_CODES: &[Code] = &[
    Code::Syntax,
    Code::UnknownInstruction,
    Code::UnknownModifier,
    Code::MissingModifier,
    Code::OperandCount,
    Code::OperandForm,
    Code::Undeclared,
    Code::Redeclared,
    Code::Literal,
    Code::ConstantExpression,
    Code::Header,
    Code::Label,
    Code::Linkage,
    Code::GuardType,
    Code::Directive,
    Code::SpecialRegister,
    Code::TooLarge,
    Code::Nesting,
];

fn run(path: &Path, text: &str, bless: bool) -> Result<(), String> {
    let header = header(text)?;
    let mode = |name: &str| header.modes.iter().any(|mode| mode == name);
    let parsed = parse(text);
    let found = match &parsed {
        Err(diagnostics) => diagnostics.clone(),
        Ok(module) if mode("verify") => match verify(module) {
            Ok(info) => info.diagnostics,
            Err(diagnostics) => diagnostics,
        },
        Ok(_) => Diagnostics::new(),
    };
    if mode("vm") {
        let refused = |diagnostics: &Diagnostics| {
            let list = diagnostics.iter().map(|d| format!("\n  line {}: {d}", line_of(text, d.origin)));
            Err(list.collect())
        };
        return match &parsed {
            Err(diagnostics) => refused(diagnostics),
            Ok(module) => match verify(module) {
                Err(diagnostics) => refused(&diagnostics),
                Ok(_) => round_trip(module).map(drop),
            },
        };
    }
    if bless {
        let mut blessed = with_expectations(text, &found, &header);
        if mode("print")
            && let Ok(module) = parse(&blessed)
        {
            blessed = warpwright_ptx::print(&module);
        }
        if blessed != text {
            fs::write(path, &blessed).map_err(|error| format!("cannot be rewritten: {error}"))?;
        }
        return Ok(());
    }
    let mut problem = difference(text, &found, &header);
    match &parsed {
        Ok(module) => match round_trip(module) {
            Ok(printed) if mode("print") && printed != text => {
                let line = printed.lines().zip(text.lines()).find(|(a, b)| a != b);
                let _ = write!(problem, "\n  is not written as it is printed: {line:?}");
            }
            Ok(_) => {}
            Err(why) => {
                let _ = write!(problem, "\n  {why}");
            }
        },
        Err(_) if mode("roundtrip") || mode("print") => problem.push_str("\n  does not parse"),
        Err(_) => {}
    }
    if problem.is_empty() { Ok(()) } else { Err(problem) }
}

fn header(text: &str) -> Result<Header, String> {
    let mut header = Header { modes: Vec::new(), allow: Vec::new() };
    for line in text.lines().map_while(|line| line.strip_prefix("//")) {
        let line = line.split("//~").next().unwrap_or_default();
        let words =
            |list: &str| list.split([',', ' ']).filter(|w| !w.is_empty()).map(str::to_string).collect();
        if let Some(list) = line.trim().strip_prefix("test:") {
            header.modes = words(list);
        } else if let Some(list) = line.trim().strip_prefix("allow:") {
            header.allow = words(list);
        }
    }
    if header.modes.is_empty() {
        return Err("does not begin with `// test: …`".to_string());
    }
    match header.modes.iter().find(|m| !["parse", "roundtrip", "print", "verify", "vm"].contains(&m.as_str()))
    {
        Some(unknown) => Err(format!("there is no test `{unknown}`")),
        None => Ok(header),
    }
}

/// The `//~` expectations of a file.
fn expectations(text: &str) -> Vec<Expected> {
    let mut list = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for part in line.split("//~").skip(1) {
            let (code, message) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
            let message = (!message.trim().is_empty()).then(|| message.trim().to_string());
            list.push(Expected { line: i + 1, code: code.to_string(), message });
        }
    }
    list
}

/// The expectations that are not met, and the diagnostics that were not expected.
fn difference(text: &str, found: &Diagnostics, header: &Header) -> String {
    let mut missing = expectations(text);
    let mut problem = String::new();
    for diagnostic in found {
        let line = line_of(text, diagnostic.origin);
        let met = missing.iter().position(|expected| {
            expected.line == line
                && expected.code == diagnostic.code.text()
                && expected.message.as_ref().is_none_or(|message| *message == diagnostic.message)
        });
        match met {
            Some(i) => {
                missing.remove(i);
            }
            None if header.allow.iter().any(|code| code == diagnostic.code.text()) => {}
            None => {
                let source = text.lines().nth(line - 1).unwrap_or("").trim();
                let _ = write!(problem, "\n  line {line}: unexpected {diagnostic}, at `{source}`");
            }
        }
    }
    for expected in missing {
        let message = expected.message.unwrap_or_default();
        let _ = write!(problem, "\n  line {}: missing {} {message}", expected.line, expected.code);
    }
    problem
}

/// The text with the diagnostics that were found as its expectations.
fn with_expectations(text: &str, found: &Diagnostics, header: &Header) -> String {
    let before = expectations(text);
    let mut by_line: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for diagnostic in found {
        if header.allow.iter().any(|code| code == diagnostic.code.text()) {
            continue;
        }
        let line = line_of(text, diagnostic.origin);
        let with_message =
            before.iter().any(|e| e.line == line && e.code == diagnostic.code.text() && e.message.is_some());
        let expectation = match with_message {
            true => format!(" //~ {} {}", diagnostic.code, diagnostic.message),
            false => format!(" //~ {}", diagnostic.code),
        };
        by_line.entry(line).or_default().push(expectation);
    }
    let mut blessed = String::new();
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let code = match line.find("//~") {
            Some(at) => line[..at].trim_end(),
            None => line.trim_end_matches('\n'),
        };
        blessed.push_str(code);
        by_line.remove(&(i + 1)).unwrap_or_default().iter().for_each(|e| blessed.push_str(e));
        if line.ends_with('\n') {
            blessed.push('\n');
        }
    }
    blessed
}
