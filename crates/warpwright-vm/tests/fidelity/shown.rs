//! The tests that execute a form, by its text in what they execute; otherwise those that have other forms of its
//! opcode, or the opcode in their source: many make the text of a form while they run.

use super::{files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use warpwright_ptx::print::form;

/// Targets whose source says nothing of what an instruction computes, and those that are read otherwise.
const OTHERS: &[&str] = &[
    "differential",
    "corpus",
    "fidelity",
    "filetest",
    "filetests",
    "hostile",
    "counters",
    "fetches",
    "level",
    "render",
    "smoke",
];

/// The most files that are named for a form.
const MAX_FILES: usize = 2;

/// For each form, with its opcode, the names of tests; `~`: it has the opcode. `filetests/NAME`: files of `tests/filetests/vm`; others: targets of
/// `crates/warpwright-vm/tests`.
pub(super) fn tests<'a>(forms: &BTreeMap<&'a str, &'static str>) -> BTreeMap<&'a str, String> {
    let filetests = root().join("tests/filetests/vm");
    let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(&filetests, ".ptx") {
        let name = path.strip_prefix(&filetests).unwrap().with_extension("");
        for form in of_file(&path) {
            by_file.entry(form).or_default().push(format!("filetests/{}", name.display()));
        }
    }
    let corpus: BTreeSet<String> =
        files(&root().join("tests/corpus/ptx"), ".ptx").iter().flat_map(|path| of_file(path)).collect();
    let folder = root().join("crates/warpwright-vm/tests");
    let differential = of_differential(&fs::read_to_string(folder.join("differential/forms.rs")).unwrap());
    let targets = sources(&folder);
    let mut by_opcode: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (&form, &opcode) in forms {
        by_opcode.entry(opcode).or_default().extend(by_file.get(form).into_iter().flatten().cloned());
    }
    let tests = |(&form, &opcode): (&&'a str, &&'static str)| {
        let mut tests = by_file.get(form).cloned().unwrap_or_default();
        tests.truncate(MAX_FILES);
        let has = [("differential", &differential), ("corpus", &corpus)];
        tests
            .extend(has.iter().filter(|(_, forms)| forms.contains(form)).map(|(name, _)| (*name).to_owned()));
        if tests.is_empty() {
            let names = targets.iter().filter(|(_, source)| mentions(source, opcode)).map(|(name, _)| name);
            let names = names.chain(&by_opcode[opcode]);
            tests.extend(names.take(MAX_FILES).map(|name| format!("~{name}")));
        }
        (form, tests.join(" "))
    };
    forms.iter().map(tests).collect()
}

/// The forms of a file of PTX.
fn of_file(path: &Path) -> BTreeSet<String> {
    let module = warpwright_ptx::parse(&fs::read_to_string(path).unwrap());
    let functions = module.iter().flat_map(|module| module.functions());
    functions.flat_map(|function| function.instructions()).map(|instruction| form(&instruction.op)).collect()
}

/// The forms of the rows of the differential test: `"add.{u16/s16} h h H"`.
fn of_differential(source: &str) -> BTreeSet<String> {
    let rows = source.lines().filter_map(|line| line.trim_start().strip_prefix('"'));
    rows.filter_map(|row| row.split([' ', '"']).next()).flat_map(expanded).collect()
}

fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, (alternatives, after))) =
        pattern.split_once('{').and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
    else {
        return vec![pattern.to_owned()];
    };
    let rest = expanded(after);
    let with =
        |one: &str| -> Vec<String> { rest.iter().map(|rest| format!("{before}{one}{rest}")).collect() };
    alternatives.split('/').flat_map(with).collect()
}

/// The text of each target of tests, beside those that are read otherwise.
fn sources(folder: &Path) -> BTreeMap<String, String> {
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    for path in files(folder, ".rs") {
        let name = path.strip_prefix(folder).unwrap().components().next().unwrap();
        let name = name.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        if !OTHERS.contains(&&*name) {
            sources.entry(name).or_default().push_str(&fs::read_to_string(path).unwrap());
        }
    }
    sources
}

/// Whether the opcode stands in a text, as a word, or what it begins with: its first two words, or a first one that is
/// no other word.
fn mentions(source: &str, opcode: &str) -> bool {
    let words: Vec<&str> = opcode.split('.').collect();
    let is_opcode = |count: usize| count == words.len() || count >= 2 || words[0].len() > 3;
    (1..=words.len())
        .filter(|&count| is_opcode(count))
        .any(|count| has_word(source, &words[..count].join(".")))
}

fn has_word(source: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.%".contains(c);
    source.match_indices(word).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}
