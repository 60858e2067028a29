//! What mutants are made of: modules in which one line is an instruction to change.

use crate::run::{ptx_files, read, relative, root};
use std::ops::Range;
use std::rc::Rc;

/// The largest file of the corpus that is mutated: assembling must stay cheap.
const LARGEST_KERNEL: usize = 12_000;

/// The comment after which an instruction filetest lists its forms, one to a line.
const FORMS: &str = "// forms";

/// All seeds.
pub(super) struct Seeds {
    /// Single instructions.
    pub(super) forms: Vec<Seed>,
    /// Instructions in their kernels.
    pub(super) kernels: Vec<Seed>,
}

/// A module and one of its instructions.
pub(super) struct Seed {
    pub(super) module: Rc<SeedModule>,
    /// The line to change, from 0.
    pub(super) line: usize,
    /// Lines that are left out, other than that one.
    pub(super) left_out: Range<usize>,
}

/// A file.
pub(super) struct SeedModule {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    /// Every register that the text mentions.
    pub(super) registers: Vec<String>,
    /// Every modifier that the text mentions.
    pub(super) modifiers: Vec<String>,
    /// Whether its registers are written before they are read whatever is changed.
    pub(super) initialised: bool,
}

impl Seed {
    pub(super) fn instruction(&self) -> &str {
        self.module.lines[self.line].trim()
    }
}

impl Seeds {
    pub(super) fn load() -> Result<Seeds, String> {
        let mut seeds = Seeds { forms: Vec::new(), kernels: Vec::new() };
        for path in ptx_files(&root().join("tests/filetests/instructions"))? {
            let module = Rc::new(SeedModule::new(relative(&path), &read(&path)?, true));
            let start = module.lines.iter().position(|line| line.trim() == FORMS);
            let Some(start) = start else { return Err(format!("{} has no `{FORMS}`", module.name)) };
            let end =
                module.lines.iter().rposition(|line| line.trim() == "ret;").unwrap_or(module.lines.len());
            for line in (start..end).filter(|&line| is_instruction(&module.lines[line])) {
                seeds.forms.push(Seed { module: module.clone(), line, left_out: start..end });
            }
        }
        for path in ptx_files(&root().join("tests/corpus/ptx"))? {
            let text = read(&path)?;
            if text.len() > LARGEST_KERNEL {
                continue;
            }
            let module = Rc::new(SeedModule::new(relative(&path), &text, false));
            for line in (0..module.lines.len()).filter(|&line| is_instruction(&module.lines[line])) {
                seeds.kernels.push(Seed { module: module.clone(), line, left_out: 0..0 });
            }
        }
        match seeds.forms.is_empty() {
            true => Err("tests/filetests/instructions holds no forms".to_string()),
            false => Ok(seeds),
        }
    }
}

impl SeedModule {
    fn new(name: String, text: &str, initialised: bool) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut classes: Vec<&str> = Vec::new();
        for declaration in text.split(';').filter_map(|statement| statement.split_once(".reg ")) {
            for name in declaration.1.split(',') {
                let name = name.split('<').next().unwrap_or_default();
                classes.extend(name.split_whitespace().next_back());
            }
        }
        let mut registers: Vec<String> = lines
            .iter()
            .filter(|line| is_instruction(line))
            .flat_map(|line| super::mutate::names(line))
            .filter(|name| {
                classes.contains(name)
                    || classes.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit()))
            })
            .map(str::to_string)
            .collect();
        registers.sort();
        registers.dedup();
        let instructions = lines.iter().filter(|line| is_instruction(line));
        let mut modifiers: Vec<String> = instructions
            .filter_map(|line| super::mutate::Parts::of(line))
            .flat_map(|p| p.modifiers)
            .collect();
        modifiers.sort();
        modifiers.dedup();
        SeedModule { name, lines, registers, modifiers, initialised }
    }
}

/// Whether a line is one instruction and nothing else.
fn is_instruction(line: &str) -> bool {
    let line = line.trim();
    let begins = line.starts_with(|c: char| c == '@' || c.is_ascii_lowercase());
    begins && line.ends_with(';') && line.matches(';').count() == 1 && !line.contains("//")
}
