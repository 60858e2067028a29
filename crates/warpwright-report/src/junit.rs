//! JUnit's XML, which continuous integration shows as a list of tests.

use crate::case::{Case, Problem};
use std::fmt::Write as _;

/// A suite with a test for each case. A test fails with the text of all its problems; one that has only warnings passes,
/// and its text is its output.
pub fn junit(cases: &[Case]) -> String {
    let failures = cases.iter().filter(|case| !case.passes()).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let totals = format!(r#"tests="{}" failures="{failures}" errors="0" time="{seconds:.6}""#, cases.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"warpwright\" {totals}>\n  \
         <testsuite name=\"warpwright\" {totals} skipped=\"0\">\n"
    );
    for case in cases {
        let (name, file) = (escaped(&case.name), escaped(&case.file));
        let _ =
            writeln!(out, r#"    <testcase name="{name}" classname="{file}" time="{:.6}">"#, case.seconds);
        let text: Vec<&str> = case.problems.iter().map(|problem| problem.rendered.trim_end()).collect();
        let text = text.join("\n\n");
        let mut output = case.output.clone();
        if case.passes() {
            output += &text;
        } else {
            let rule = case.problems.first().map(Problem::rule).unwrap_or_default();
            let messages: Vec<&str> = case.problems.iter().map(|problem| problem.message.as_str()).collect();
            let (rule, message) = (escaped(&rule), escaped(&messages.join("\n")));
            let _ = writeln!(
                out,
                r#"      <failure type="{rule}" message="{message}">{}</failure>"#,
                lines(&text)
            );
        }
        if !output.is_empty() {
            let _ = writeln!(out, "      <system-out>{}</system-out>", lines(&output));
        }
        out += "    </testcase>\n";
    }
    out + "  </testsuite>\n</testsuites>\n"
}

/// A text in an element, where lines may stay lines.
fn lines(text: &str) -> String {
    escaped(text).replace("&#10;", "\n")
}

/// A text in an attribute. Characters that XML does not allow, not even escaped, are written as in Rust.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // They would be read as spaces.
            '\n' => out += "&#10;",
            '\t' => out += "&#9;",
            '\r' => out += "&#13;",
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.extend(character.escape_unicode()),
            character => out.push(character),
        }
    }
    out
}
