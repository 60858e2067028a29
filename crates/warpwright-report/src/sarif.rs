//! SARIF 2.1.0, the OASIS standard for results of static analysis, which code scanning services read.
//!
//! GitHub refuses a whole file if a result has no file: a problem without a line of source is put at the PTX or, without
//! a file of PTX, at the program.

use crate::case::{Case, Problem};
use crate::rules::RULES;
use crate::{Severity, Site, Source};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use warpwright_vm::render::symbol;

/// The name of the root folder in relative URIs.
const ROOT: &str = "%SRCROOT%";

/// A SARIF log of one run. Files below `root` have URIs relative to it; relative names of files are looked up there, then
/// in the current folder. Equal problems of several launches are one result, and its fingerprint stays the same in other
/// runs and on other machines: it depends on the kind, the kernel and the text of the lines, and not on addresses, threads
/// or line numbers.
pub fn sarif(cases: &[Case], root: &Path) -> String {
    let root = Root::new(root);
    let mut rules: Vec<(String, Value)> = RULES
        .iter()
        .map(|rule| {
            let id = format!("{}/{}", rule.tool, rule.kind);
            let described = descriptor(&id, rule.tool, rule.severity, rule.title, rule.help);
            (id, described)
        })
        .collect();
    // By fingerprints, the place in the list.
    let mut known = HashMap::<String, usize>::new();
    let mut results: Vec<(u64, Value)> = Vec::new();
    for (case, problem) in
        cases.iter().flat_map(|case| case.problems.iter().map(move |problem| (case, problem)))
    {
        let fingerprint = fingerprint(problem, &root);
        if let Some(&index) = known.get(&fingerprint) {
            results[index].0 += problem.count;
            continue;
        }
        let id = problem.rule();
        let index = rules.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            let described = descriptor(&id, &problem.tool, problem.severity, &problem.kind, &problem.kind);
            rules.push((id.clone(), described));
            rules.len() - 1
        });
        let mut result = result(problem, case, &root);
        result["ruleId"] = id.into();
        result["ruleIndex"] = index.into();
        // The second one is the only one that GitHub looks at.
        result["partialFingerprints"] =
            json!({ "warpwright/v1": fingerprint, "primaryLocationLineHash": format!("{fingerprint}:1") });
        known.insert(fingerprint, results.len());
        results.push((problem.count, result));
    }
    let results = results.into_iter().map(|(count, mut result)| {
        result["occurrenceCount"] = count.into();
        result
    });
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Warpwright",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.into_iter().map(|(_, rule)| rule).collect::<Vec<_>>(),
            } },
            "originalUriBaseIds": { ROOT: { "uri": format!("{}/", file_uri(&root.path)) } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// A rule.
fn descriptor(id: &str, tool: &str, severity: Severity, title: &str, help: &str) -> Value {
    let level = level(severity);
    // `memcheck/out-of-bounds` is `OutOfBounds`.
    let words = id.rsplit('/').next().unwrap_or(id).split('-');
    let name = words.map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_uppercase() + rest
    });
    json!({
        "id": id,
        "name": name.collect::<String>(),
        "shortDescription": { "text": title },
        "fullDescription": { "text": help },
        "help": { "text": help },
        "defaultConfiguration": { "level": level },
        "properties": { "tags": ["gpu", tool], "precision": "very-high", "problem.severity": level },
    })
}

/// A result, without its rule.
fn result(problem: &Problem, case: &Case, root: &Root) -> Value {
    let located: Vec<_> = problem.places.iter().map(|(place, label)| (place, label.as_str())).collect();
    let (first, others) = match located.split_first() {
        Some((first, others)) => (Some(first.0), others),
        None => (None, &[][..]),
    };
    let source = first.and_then(|place| root.own(place));
    let mut location = json!({ "physicalLocation": match source {
        Some(source) => of_source(source, root),
        None => of_file(first, case, root),
    } });
    if let Some(kernel) = &problem.kernel {
        location["logicalLocations"] = json!([
            { "name": symbol(kernel), "fullyQualifiedName": kernel, "kind": "function" },
        ]);
    }
    // Other accesses, and the lines that belong to the first one: what was inlined there, and where.
    let mut related = Vec::new();
    let lines = first.into_iter().filter_map(|place| place.source.as_ref()).flat_map(Source::chain);
    for (depth, line) in lines.enumerate().filter(|(_, line)| Some(*line) != source) {
        let label = if depth > 0 { "the call that was inlined" } else { "the inlined instruction" };
        related.push((of_source(line, root), label));
    }
    for &(place, label) in others {
        let physical = match root.own(place) {
            Some(source) => of_source(source, root),
            None => of_file(Some(place), case, root),
        };
        related.push((physical, label));
    }
    let mut message = problem.message.clone();
    let mut related_locations = Vec::new();
    for (index, (physical, label)) in related.into_iter().enumerate() {
        let id = index + 1;
        message += &format!("{} [{label}]({id})", if index == 0 { "\nSee" } else { "," });
        related_locations
            .push(json!({ "id": id, "physicalLocation": physical, "message": { "text": label } }));
    }
    let mut result = json!({
        "level": level(problem.severity),
        "message": { "text": message },
        "locations": [location],
    });
    if !related_locations.is_empty() {
        result["relatedLocations"] = related_locations.into();
    }
    let stack = first.and_then(|place| place.source.as_ref()).filter(|source| source.inlined_at.is_some());
    if let Some(source) = stack {
        let frame = |line| json!({ "location": { "physicalLocation": of_source(line, root) } });
        result["stacks"] = json!([{
            "message": { "text": "the calls by which the instruction was inlined" },
            "frames": source.chain().map(frame).collect::<Vec<_>>(),
        }]);
    }
    result
}

/// A line of source.
fn of_source(line: &Source, root: &Root) -> Value {
    let mut region = json!({ "startLine": line.line.max(1) });
    if line.column > 0 {
        region["startColumn"] = line.column.into();
    }
    if let Some(text) = &line.text {
        region["snippet"] = json!({ "text": text });
    }
    json!({ "artifactLocation": root.artifact(&line.file), "region": region })
}

/// What has no line of source: a line of the PTX, or the program.
fn of_file(place: Option<&Site>, case: &Case, root: &Root) -> Value {
    let place = place.filter(|_| case.is_ptx);
    let mut region = json!({ "startLine": place.and_then(|place| place.ptx_line).unwrap_or(1) });
    if let Some(ptx) = place.and_then(|place| place.ptx.as_ref()) {
        region["snippet"] = json!({ "text": ptx });
    }
    json!({ "artifactLocation": root.artifact(&case.file), "region": region })
}

/// What equal problems of different runs have in common, as a hash.
fn fingerprint(problem: &Problem, root: &Root) -> String {
    let mut hash = Fnv::new();
    hash.add(&problem.rule());
    hash.add(&problem.kernel.as_deref().map_or(problem.message.as_str().into(), stable));
    for (place, label) in &problem.places {
        // A line may read and write. Which threads do is nothing that stays.
        hash.add(label.split_once(" by ").map_or("", |(action, _)| action));
        match (&place.source, &place.ptx) {
            (Some(source), _) => {
                for line in source.chain() {
                    hash.add(&root.relative(&line.file).unwrap_or_else(|| line.file.clone()));
                    match &line.text {
                        Some(text) => hash.add(text),
                        None => hash.add(&format!("{}:{}", line.line, line.column)),
                    }
                }
            }
            (None, Some(ptx)) => hash.add(ptx),
            (None, None) => {}
        }
        hash.add("");
    }
    format!("{:016x}", hash.0)
}

/// The name of a kernel that it has in every process: numba numbers functions in the order in which it compiles them, by
/// a tag in front of its other one.
fn stable(kernel: &str) -> Cow<'_, str> {
    let numbered = |name: &str| {
        let (before, tag) = name.split_once("[abi:v")?;
        let (number, after) = tag.split_once(']')?;
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        (is_number && after.starts_with("[abi:")).then(|| format!("{before}{after}"))
    };
    numbered(&symbol(kernel)).map_or(kernel.into(), Cow::from)
}

/// The hash function FNV-1a of 64 bits, which is the same everywhere and always.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text, and that it ends.
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// The folder that relative URIs begin in.
struct Root {
    /// As an absolute path.
    path: PathBuf,
    /// The same without symbolic links.
    real: PathBuf,
}

impl Root {
    fn new(path: &Path) -> Root {
        let path = normal(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        Root { path, real }
    }

    /// A file's absolute path.
    fn absolute(&self, file: &str) -> PathBuf {
        let of_root = self.path.join(file);
        // If neither is there, it is the root's: the file may be on another machine.
        let here = std::path::absolute(file).ok().filter(|here| !of_root.exists() && here.exists());
        normal(&here.unwrap_or(of_root))
    }

    /// The name of a file relative to the root, if the file is below it.
    fn relative(&self, file: &str) -> Option<String> {
        let path = self.absolute(file);
        let below = [&self.path, &self.real].into_iter().find_map(|root| path.strip_prefix(root).ok());
        below.and_then(Path::to_str).map(str::to_owned)
    }

    /// The line that a place is shown at: the innermost one of a file below the root, for headers of others are of no use.
    fn own<'a>(&self, place: &'a Site) -> Option<&'a Source> {
        let source = place.source.as_ref()?;
        source.chain().find(|line| self.relative(&line.file).is_some()).or(Some(source))
    }

    /// The location of a file.
    fn artifact(&self, file: &str) -> Value {
        match self.relative(file) {
            Some(relative) => json!({ "uri": encoded(&relative), "uriBaseId": ROOT }),
            None => json!({ "uri": file_uri(&self.absolute(file)) }),
        }
    }
}

/// A path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

/// The URI of an absolute path.
fn file_uri(path: &Path) -> String {
    format!("file://{}", encoded(path.to_string_lossy().trim_end_matches('/')))
}

/// A path in a URI: other bytes than letters, digits, `-`, `.`, `_`, `~` and `/` are escaped.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}
