//! The words of `docs/glossary.md`: phrases and names that have a standard term, and type names that mean too much.
//!
//! Only what a script can decide without false alarms stands here. Every entry is in the glossary's list of words that
//! are not used, which a test compares.

use super::File;

/// Phrases that have a standard term: as the glossary lists them, with their other forms. They are found in any case,
/// and across line breaks of comments.
const PHRASES: &[(&str, &[&str], &str)] = &[
    ("launch that stays", &["launches that stay"], "persistent kernel"),
    ("resident launch", &["resident launches"], "persistent kernel"),
    ("frozen", &[], "read-only"),
];

/// Parts of names, between `_`, that have a standard term.
const PARTS_OF_NAMES: &[(&str, &str)] = &[("eights", "n8"), ("sixteens", "k16")];

/// How the name of a constant does not begin.
const CONSTANT_PREFIX: (&str, &str) = ("MOST_", "MAX_");

/// Names that a few types may have, each where its meaning is clear.
const SHARED_NAMES: &[&str] =
    &["Place", "Part", "Given", "Mark", "Line", "Gate", "Keep", "Reaper", "Ending", "Seen"];

/// How many types may share one of those names.
const MAX_TYPES: usize = 3;

/// Words of the glossary's list in prose and in names.
pub(super) fn banned(file: &File) -> Vec<String> {
    // The glossary lists these words, and the changelog says what was renamed.
    let exempt = ["docs/glossary.md", "CHANGELOG.md"].contains(&file.path.as_str()) || file.is_this();
    if exempt || !file.is("rs") && !file.is("md") {
        return Vec::new();
    }
    // Most files have none of the words, and need no closer look.
    let text = file.text.to_lowercase();
    let phrases = PHRASES.iter().flat_map(|(listed, others, instead)| {
        [listed].into_iter().chain(*others).map(move |form| (*form, *instead))
    });
    let phrases: Vec<_> =
        phrases.filter(|(phrase, _)| phrase.split(' ').all(|word| text.contains(word))).collect();
    let mut findings = if phrases.is_empty() { Vec::new() } else { find_phrases(file, &phrases) };
    let mut parts = PARTS_OF_NAMES.iter().chain([&CONSTANT_PREFIX]).map(|(part, _)| part.to_lowercase());
    if file.is("rs") && parts.any(|part| text.contains(&part)) {
        findings.extend(file.lines(name));
    }
    findings
}

fn find_phrases(file: &File, phrases: &[(&str, &str)]) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let words: Vec<(usize, &str)> =
        lines.flat_map(|(i, line)| prose(line).split_whitespace().map(move |word| (i + 1, word))).collect();
    let mut findings = Vec::new();
    for (at, (line, _)) in words.iter().enumerate() {
        for (phrase, instead) in phrases {
            if begins_with(&words[at..], phrase) {
                findings.push(format!("{}:{line}: `{phrase}`: say {instead}", file.path));
            }
        }
    }
    findings
}

/// The line without the marks that begin a comment or a quotation.
fn prose(line: &str) -> &str {
    line.trim_start().trim_start_matches(['/', '!', '>', ' '])
}

/// Whether the words begin with the phrase. Punctuation may stand around the phrase, not in it.
fn begins_with(words: &[(usize, &str)], phrase: &str) -> bool {
    let mark = |c: char| !c.is_alphanumeric() && c != '_';
    let last = phrase.split(' ').count() - 1;
    words.len() > last
        && phrase.split(' ').zip(words).enumerate().all(|(i, (expected, (_, word)))| {
            let word = if i == 0 { word.trim_start_matches(mark) } else { word };
            let word = if i == last { word.trim_end_matches(mark) } else { word };
            word.eq_ignore_ascii_case(expected)
        })
}

fn name(line: &str) -> Option<String> {
    let code = line.split("//").next().unwrap_or_default();
    let (prefix, instead) = CONSTANT_PREFIX;
    let words: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    for (i, word) in words.iter().enumerate() {
        let defined = i > 0 && ["const", "static"].contains(&words[i - 1]);
        if defined && word.starts_with(prefix) {
            return Some(format!("`{word}`: the name of a maximum begins with `{instead}`"));
        }
        let part = |part: &str| PARTS_OF_NAMES.iter().find(|(banned, _)| part.eq_ignore_ascii_case(banned));
        if let Some((_, instead)) = word.split('_').find_map(part) {
            return Some(format!("`{word}`: say `{instead}`"));
        }
    }
    None
}

/// Names of the glossary that more than [`MAX_TYPES`] types share.
pub(super) fn shared_names(files: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for name in SHARED_NAMES {
        let definitions: Vec<String> = files
            .iter()
            .filter(|file| is_source(file) && file.text.contains(name))
            .flat_map(|file| {
                let lines = without_tests(&file.text).lines().enumerate();
                let lines = lines.filter(|(_, line)| defined_type(line) == Some(*name));
                lines.map(|(i, _)| format!("{}:{}", file.path, i + 1))
            })
            .collect();
        if let (true, Some(first)) = (definitions.len() > MAX_TYPES, definitions.first()) {
            let (count, others) = (definitions.len(), definitions[1..].join(", "));
            findings.push(format!(
                "{first}: {count} types are called `{name}`, at most {MAX_TYPES} may be: {others}"
            ));
        }
    }
    findings
}

/// Source of a crate or of the tasks, and not a file of tests.
fn is_source(file: &File) -> bool {
    let mut folders = file.path.split('/');
    let source = match folders.next() {
        Some("crates") => folders.nth(1) == Some("src"),
        Some("xtask") => folders.next() == Some("src"),
        _ => false,
    };
    source && file.is("rs") && !file.path.ends_with("/tests.rs") && !file.path.contains("/tests/")
}

/// The text before the module of tests, which stands at the end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
}

/// The type that a line begins to define. An alias begins its line: what is indented is an associated type.
fn defined_type(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    let mut code = trimmed;
    if let Some(rest) = code.strip_prefix("pub") {
        code = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1,
            None => rest,
        };
    }
    let (keyword, rest) = code.trim_start().split_once(' ')?;
    let alias = keyword == "type" && trimmed.len() == line.len();
    let defines = alias || ["struct", "enum", "union", "trait"].contains(&keyword);
    defines.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_string(), text: text.to_string() }
    }

    #[test]
    fn phrases_are_found_across_lines_and_beside_punctuation() {
        let prose = "//! A *launch that\n//! stays*, or (Resident launches).\n/// A resident. Launch it.\n";
        let found = banned(&file("crates/a/src/lib.rs", prose));
        assert_eq!(
            found,
            [
                "crates/a/src/lib.rs:1: `launch that stays`: say persistent kernel",
                "crates/a/src/lib.rs:2: `resident launches`: say persistent kernel",
            ]
        );
        assert_eq!(banned(&file("docs/a.md", "> Frozen\n")), ["docs/a.md:1: `frozen`: say read-only"]);
        for path in ["docs/glossary.md", "CHANGELOG.md", "tests/filetests/a.ptx"] {
            assert!(banned(&file(path, "A resident launch.\n")).is_empty(), "{path}");
        }
    }

    #[test]
    fn names_are_found_where_they_stand() {
        let code = "const MOST_LINES: usize = 1;\nlet n = MOST_LINES; // in eights\nfn rows_of_eights() {}\n\
                    let almost = Sixteens::MOST;\nlet weights = k8;\n";
        assert_eq!(
            banned(&file("crates/a/src/lib.rs", code)),
            [
                "crates/a/src/lib.rs:1: `MOST_LINES`: the name of a maximum begins with `MAX_`",
                "crates/a/src/lib.rs:3: `rows_of_eights`: say `n8`",
                "crates/a/src/lib.rs:4: `Sixteens`: say `k16`",
            ]
        );
    }

    #[test]
    fn a_definition_is_a_type_and_not_an_associated_one() {
        let cases = [
            ("pub(in super::super) struct Place([u8; 32]);", Some("Place")),
            ("    enum Place {", Some("Place")),
            ("pub trait Place: Sized {", Some("Place")),
            ("type Place<'a> = &'a u8;", Some("Place")),
            ("    type Place = u8;", None),
            ("struct Places;", Some("Places")),
            ("/// struct Place", None),
            ("let place = Place;", None),
        ];
        for (line, expected) in cases {
            assert_eq!(defined_type(line), expected, "{line}");
        }
    }

    #[test]
    fn four_types_of_one_name_are_too_many() {
        let text = "struct Place;\n#[cfg(test)]\nmod tests {\n    struct Place;\n}\n";
        let mut files: Vec<File> =
            ["a", "b", "c"].map(|name| file(&format!("crates/{name}/src/x.rs"), text)).into();
        files.push(file("crates/a/src/tests.rs", text));
        files.push(file("crates/a/src/x/tests/y.rs", text));
        files.push(file("crates/a/tests/x.rs", text));
        assert_eq!(shared_names(&files), Vec::<String>::new());
        files.push(file("xtask/src/x.rs", text));
        assert_eq!(
            shared_names(&files),
            ["crates/a/src/x.rs:1: 4 types are called `Place`, at most 3 may be: crates/b/src/x.rs:1, \
              crates/c/src/x.rs:1, xtask/src/x.rs:1"]
        );
    }

    #[test]
    fn the_glossary_lists_what_is_banned() {
        let page = include_str!("../../../docs/glossary.md");
        let (terms, instead) = page.split_once("## Not used here").unwrap_or((page, ""));
        let lists = |word: &str| instead.lines().any(|line| line.starts_with('|') && line.contains(word));
        let phrases = PHRASES.iter().map(|(listed, ..)| *listed);
        let names = PARTS_OF_NAMES.iter().chain([&CONSTANT_PREFIX]).map(|(name, _)| *name);
        for word in phrases.chain(names).chain(SHARED_NAMES.iter().copied()) {
            assert!(lists(word), "{word}");
        }
        let rows = terms.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let rows: Vec<String> = rows.skip(2).map(str::to_lowercase).collect();
        assert!(rows.is_sorted(), "the terms stand in the order of the alphabet");
        assert!(rows.len() > 40);
    }
}
