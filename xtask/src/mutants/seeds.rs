//! The seeds of mutants: modules in which one line is an instruction to change.

use crate::run::{ptx_files, read, relative, root};
use crate::validate;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// The largest file of the corpus that is mutated: assembling must stay cheap.
const LARGEST_KERNEL: usize = 12_000;

/// The largest kernel of the catalogue. One that is made of the bodies of the others has more lines than they together:
/// nearly every mutant of a kernel would be one of it, and takes `ptxas` seconds.
const LARGEST_MODULE: usize = 500_000;

/// The comment after which an instruction filetest lists its forms, one to a line.
const FORMS: &str = "// forms";

/// All seeds.
pub(super) struct Seeds {
    /// Single instructions.
    pub(super) forms: Vec<Seed>,
    /// Instructions in their kernels.
    pub(super) kernels: Vec<Seed>,
    /// Modules to change as a whole.
    pub(super) modules: Vec<Rc<SeedModule>>,
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
    pub(super) registers: Vec<Register>,
    /// Every modifier that the text mentions.
    pub(super) modifiers: Vec<String>,
    /// Whether its registers are written before they are read whatever is changed.
    pub(super) initialised: bool,
}

/// A register of a module.
pub(super) struct Register {
    pub(super) name: String,
    /// The type that it is declared with, as the text has it.
    pub(super) ty: String,
}

impl Seed {
    pub(super) fn instruction(&self) -> &str {
        self.module.lines[self.line].trim()
    }
}

impl Seeds {
    pub(super) fn load() -> Result<Seeds, String> {
        let mut seeds = Seeds { forms: Vec::new(), kernels: Vec::new(), modules: Vec::new() };
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
            if text.len() <= LARGEST_KERNEL {
                seeds.add_kernel(relative(&path), &text);
            }
        }
        for (name, text) in validate::default_modules()? {
            if text.len() <= LARGEST_MODULE {
                seeds.add_kernel(name, &text);
            }
        }
        for path in ptx_files(&root().join("tests/filetests"))? {
            let (name, text) = (relative(&path), read(&path)?);
            if !name.contains("/instructions/") && is_valid_everywhere(&text) {
                seeds.modules.push(Rc::new(SeedModule::new(name, &text, false)));
            }
        }
        match seeds.forms.is_empty() {
            true => Err("tests/filetests/instructions holds no forms".to_string()),
            false => Ok(seeds),
        }
    }

    fn add_kernel(&mut self, name: String, text: &str) {
        let module = Rc::new(SeedModule::new(name, text, false));
        for line in (0..module.lines.len()).filter(|&line| is_instruction(&module.lines[line])) {
            self.kernels.push(Seed { module: module.clone(), line, left_out: 0..0 });
        }
        self.modules.push(module);
    }
}

/// Whether a filetest is a module that we and `ptxas` accept.
fn is_valid_everywhere(text: &str) -> bool {
    let mut header = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
    let is_verified = header.clone().any(|line| line.starts_with("test:") && line.contains("verify"));
    is_verified && !header.any(|line| line.starts_with("ptxas:")) && !text.contains("//~")
}

impl SeedModule {
    fn new(name: String, text: &str, initialised: bool) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut types: HashMap<&str, &str> = HashMap::new();
        for (_, declaration) in text.split(';').filter_map(|statement| statement.split_once(".reg ")) {
            let declaration = declaration.trim_start();
            let (ty, names) = declaration.split_once(char::is_whitespace).unwrap_or((declaration, ""));
            for name in names.split(',') {
                types.insert(name.split('<').next().unwrap_or_default().trim(), ty);
            }
        }
        let mut mentioned: Vec<&str> = lines
            .iter()
            .filter(|line| is_instruction(line))
            .flat_map(|line| super::mutate::names(line))
            .collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        let registers: Vec<Register> = mentioned
            .into_iter()
            .filter_map(|name| {
                let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let ty = types.get(name).or_else(|| types.get(family))?;
                Some(Register { name: name.to_string(), ty: ty.to_string() })
            })
            .collect();
        let instructions = lines.iter().filter(|line| is_instruction(line));
        let mut modifiers: Vec<String> = instructions
            .filter_map(|line| super::mutate::Parts::of(line))
            .flat_map(|p| p.modifiers)
            .collect();
        modifiers.sort();
        modifiers.dedup();
        SeedModule { name, lines, registers, modifiers, initialised }
    }

    /// Its target and its version.
    pub(super) fn header(&self) -> Option<(&str, &str)> {
        let value = |name: &str| self.lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some((value(".target")?, value(".version")?))
    }
}

/// Whether a line is one instruction and nothing else.
pub(super) fn is_instruction(line: &str) -> bool {
    let line = line.trim();
    let begins = line.starts_with(|c: char| c == '@' || c.is_ascii_lowercase());
    begins && line.ends_with(';') && line.matches(';').count() == 1 && !line.contains("//")
}
