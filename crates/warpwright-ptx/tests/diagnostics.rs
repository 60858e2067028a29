//! The page of diagnostics: every code has an example there, which triggers it and nothing else. Examples
//! in Rust, of what only the DSL reports, are doctests of the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use warpwright_ptx::diag::{Code, Diagnostics};
use warpwright_ptx::ir::{ItemKind, Module, Origin};
use warpwright_ptx::{parse, verify};

const PAGE: &str = include_str!("../../../docs/diagnostics.md");

/// A section of the page: its title and its example.
struct Section<'p> {
    title: &'p str,
    /// PTX; an example in Rust is empty here.
    example: String,
    /// To be checked as if a Rust program had built it.
    built: bool,
}

fn sections() -> BTreeMap<&'static str, Section<'static>> {
    let mut found = BTreeMap::new();
    for section in PAGE.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').expect("a heading has a body");
        let (code, title) = heading.split_once(": ").expect("a heading is a code and a title");
        if body.contains("```rust\n") {
            let section = Section { title, example: String::new(), built: false };
            assert!(found.insert(code, section).is_none(), "{code} stands twice");
            continue;
        }
        let (_, example) = body.split_once("```ptx").expect("a section has an example");
        let (flags, example) = example.split_once('\n').expect("an example has lines");
        let (example, _) = example.split_once("```").expect("an example ends");
        let section = Section { title, example: example.to_string(), built: flags == " built" };
        assert!(found.insert(code, section).is_none(), "{code} stands twice");
    }
    found
}

fn as_if_built(module: &mut Module) {
    for item in &mut module.items {
        if let ItemKind::Function(function) = &mut item.kind {
            for statement in function.body.iter_mut().flatten() {
                statement.origin = Origin::Rust(Location::caller());
            }
        }
    }
}

fn findings(section: &Section<'_>) -> Diagnostics {
    let checked = parse(&section.example).and_then(|mut module| {
        if section.built {
            as_if_built(&mut module);
        }
        verify(&module)
    });
    checked.map_or_else(|errors| errors, |info| info.diagnostics)
}

#[test]
fn every_code_has_a_section() {
    let titles: BTreeMap<_, _> =
        sections().into_iter().map(|(code, section)| (code, section.title)).collect();
    let codes: BTreeMap<_, _> = Code::ALL.iter().map(|code| (code.text(), code.title())).collect();
    assert_eq!(titles, codes);
}

#[test]
fn examples_trigger_their_code_alone() {
    let wrong: Vec<_> = sections()
        .into_iter()
        .filter(|(_, section)| !section.example.is_empty())
        .filter_map(|(code, section)| {
            let found = findings(&section);
            let codes: BTreeSet<_> = found.iter().map(|diagnostic| diagnostic.code.text()).collect();
            (codes != BTreeSet::from([code])).then(|| format!("{code}: {found}"))
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}
