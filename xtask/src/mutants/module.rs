//! One change to a module as a whole: its header, its declarations, its labels, its names.

use super::Mutant;
use super::mutate::{any_header, literal_in, names, with_header};
use super::seeds::{SeedModule, is_instruction};
use crate::random::Random;

/// Types that a declaration may be given instead of its own.
const TYPES: [&str; 14] = [
    ".pred", ".b8", ".b16", ".b32", ".b64", ".b128", ".u16", ".u32", ".s32", ".u64", ".f16", ".f16x2",
    ".f32", ".f64",
];

/// Numbers that a declaration may be given instead of its own.
const NUMBERS: [&str; 10] = ["0", "1", "2", "3", "4", "8", "16", "32", "100", "1024"];

/// A mutant of the module; `None` if the change that was drawn does not apply.
pub(super) fn mutate(module: &SeedModule, random: &mut Random) -> Option<Mutant> {
    let mut lines: Vec<String> = module.lines.clone();
    let mut header = None;
    let change = match random.below(12) {
        0..=2 => {
            header = Some(any_header(random));
            "header".to_string()
        }
        3 => {
            let at = one(&lines, random, is_declaration)?;
            format!("without {}", lines.remove(at).trim())
        }
        4 => {
            let at =
                one(&lines, random, |line| is_declaration(line) || is_label(line) || is_instruction(line))?;
            lines.insert(at, lines[at].clone());
            format!("twice {}", lines[at].trim())
        }
        5 => {
            let at = one(&lines, random, |line| is_label(line) || is_instruction(line))?;
            format!("without {}", lines.remove(at).trim())
        }
        6 | 7 => {
            let has_type = |line: &str| is_declaration(line) && type_in(line).is_some();
            let at = one(&lines, random, has_type)?;
            let old = type_in(&lines[at])?.to_string();
            let new = *random.pick(&TYPES);
            replace(&mut lines, at, &old, new)?
        }
        8 => {
            let at = one(&lines, random, |line| is_declaration(line) && literal_in(line).is_some())?;
            let mut line = lines[at].clone();
            line.replace_range(literal_in(&line)?, random.pick::<&str>(&NUMBERS));
            if line == lines[at] {
                return None;
            }
            lines[at] = line;
            lines[at].trim().to_string()
        }
        9 => {
            let at = one(&lines, random, is_instruction)?;
            let known: Vec<&str> = names(&lines[at]).skip(1).collect();
            if known.is_empty() {
                return None;
            }
            let old = random.pick(&known).to_string();
            replace(&mut lines, at, &old, &format!("{old}_x"))?
        }
        10 => {
            let labels: Vec<String> = lines.iter().filter(|line| is_label(line)).cloned().collect();
            if labels.len() < 2 {
                return None;
            }
            let at = one(&lines, random, |line| is_instruction(line) && line.contains("bra"))?;
            let new: &String = random.pick(&labels);
            let old = names(&lines[at]).last()?.to_string();
            replace(&mut lines, at, &old, new.trim().trim_end_matches(':'))?
        }
        _ => {
            let at = one(&lines, random, is_instruction)?;
            let next = at + 1;
            if lines.get(next).is_none_or(|line| !is_instruction(line)) || lines[at] == lines[next] {
                return None;
            }
            lines.swap(at, next);
            format!("moved down {}", lines[next].trim())
        }
    };
    let (text, target) = with_header(lines.iter().map(String::as_str), header);
    Some(Mutant { text, label: format!("{target} module: {change}"), from: module.name.clone() })
}

/// A line that `fits`.
fn one(lines: &[String], random: &mut Random, fits: impl Fn(&str) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..lines.len()).filter(|&at| fits(&lines[at])).collect();
    (!fitting.is_empty()).then(|| *random.pick(&fitting))
}

/// Replaces the first `old` of a line; the answer is the line, trimmed.
fn replace(lines: &mut [String], at: usize, old: &str, new: &str) -> Option<String> {
    let line = lines[at].replacen(old, new, 1);
    if line == lines[at] {
        return None;
    }
    lines[at] = line;
    Some(lines[at].trim().to_string())
}

/// Whether a line declares a register, a variable, a parameter, or what a kernel demands.
fn is_declaration(line: &str) -> bool {
    let line = line.trim_start();
    let words = [".reg", ".shared", ".local", ".param", ".global", ".const", ".maxn", ".minn", ".req"];
    words.iter().any(|word| line.starts_with(word))
}

fn is_label(line: &str) -> bool {
    line.trim().strip_suffix(':').is_some_and(|name| names(name).eq([name]))
}

/// The type in a declaration.
fn type_in(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| TYPES.contains(word) || [".s64", ".s16", ".u8", ".s8"].contains(word))
}
