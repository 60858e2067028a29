//! One change to one instruction.

use super::Mutant;
use super::seeds::Seed;
use crate::random::Random;

/// Targets and versions that a mutant may be moved to.
const TARGETS: [(&str, &str); 11] = [
    ("sm_75", "6.3"),
    ("sm_75", "9.3"),
    ("sm_80", "7.0"),
    ("sm_89", "7.8"),
    ("sm_90", "7.8"),
    ("sm_90a", "8.0"),
    ("sm_90a", "9.0"),
    ("sm_100", "8.6"),
    ("sm_100a", "8.8"),
    ("sm_120", "8.7"),
    ("sm_120a", "9.5"),
];

/// Versions that a mutant may be moved to.
const VERSIONS: [&str; 8] = ["7.0", "7.8", "8.0", "8.3", "8.6", "8.8", "9.0", "9.5"];

/// Target and version.
type Header = (String, String);

/// Modifiers that many instructions have.
const MODIFIERS: &str = "rn rz rm rp rni rzi ftz sat relu cc approx full lo hi wide noftz nan abs \
    u8 u16 u32 u64 s8 s16 s32 s64 b8 b16 b32 b64 b128 f16 f16x2 bf16 bf16x2 tf32 f32 f64 f32x2 pred \
    e4m3x2 e5m2x2 global shared shared::cta shared::cluster local const param v2 v4 v8 weak relaxed acquire \
    release acq_rel volatile mmio gpu cta sys cluster eq ne lt ge lo ltu num and or xor add min max inc exch \
    cas uni sync aligned nc ca cg cs cv wb wt up down bfly idx all any ballot trans x2 x4 row col";

/// Modifiers that stand for one another: an instruction that has one has often the others, too.
const SIBLINGS: [&str; 24] = [
    "rn rz rm rp",
    "rni rzi rmi rpi",
    "global shared local const",
    "shared shared::cta shared::cluster",
    "b8 u8 s8",
    "b16 u16 s16 f16 bf16",
    "b32 u32 s32 f32 f16x2 bf16x2",
    "b64 u64 s64 f64 f32x2",
    "f16 f32 f64",
    "u16 u32 u64",
    "s16 s32 s64",
    "v2 v4",
    "eq ne lt le gt ge",
    "equ neu ltu leu gtu geu num nan",
    "and or xor popc",
    "add min max inc dec exch",
    "relaxed acquire release acq_rel",
    "weak volatile",
    "gpu cta sys cluster",
    "ca cg cs cv lu wb wt",
    "up down bfly idx",
    "lo hi wide",
    "row col",
    "x1 x2 x4",
];

/// Literals that mean something to one instruction or another.
const LITERALS: [&str; 16] =
    ["0", "1", "2", "3", "4", "7", "8", "15", "16", "31", "32", "63", "64", "255", "65536", "-1"];

/// Operands that are no registers of the module.
const OPERANDS: [&str; 9] = ["1", "1.0", "-1", "0f3F800000", "_", "%tid.x", "100000", "%clock64", "0x1p"];

/// An instruction taken apart.
pub(super) struct Parts<'a> {
    guard: String,
    opcode: &'a str,
    pub(super) modifiers: Vec<String>,
    operands: Vec<String>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let line = line.trim().strip_suffix(';')?;
        let (guard, rest) = match line.starts_with('@') {
            true => line.split_at(line.find(char::is_whitespace)?),
            false => ("", line),
        };
        let rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (head, operands) = rest.split_at(end);
        let mut words = head.split('.');
        let opcode = words.next()?;
        let modifiers = words.map(str::to_string).collect();
        Some(Parts { guard: guard.to_string(), opcode, modifiers, operands: split_operands(operands) })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.guard.is_empty() {
            text.push_str(&self.guard);
            text.push(' ');
        }
        text.push_str(self.opcode);
        for modifier in &self.modifiers {
            text.push('.');
            text.push_str(modifier);
        }
        if !self.operands.is_empty() {
            text.push(' ');
            text.push_str(&self.operands.join(", "));
        }
        text.push(';');
        text
    }
}

/// Splits at the commas that stand in no bracket.
fn split_operands(text: &str) -> Vec<String> {
    let mut operands = vec![String::new()];
    let mut depth = 0u32;
    for c in text.trim().chars() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                operands.push(String::new());
                continue;
            }
            _ => {}
        }
        operands.last_mut().expect("there is always one").push(c);
    }
    operands.retain_mut(|operand| {
        *operand = operand.trim().to_string();
        !operand.is_empty()
    });
    operands
}

/// The names in a line: registers, symbols, opcodes.
pub(super) fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')))
        .filter(|name| name.starts_with(|c: char| !c.is_ascii_digit()))
}

/// A mutant of the seed; `None` if the change that was drawn does not apply.
pub(super) fn mutate(seed: &Seed, random: &mut Random) -> Option<Mutant> {
    let original = seed.instruction();
    let mut parts = Parts::of(original)?;
    let mut header = None;
    let random_header = random.below(2) == 0;
    match random.below(16) {
        0 | 1 if !parts.modifiers.is_empty() => {
            let at = random.below(parts.modifiers.len());
            parts.modifiers[at] = any_modifier(seed, random);
        }
        2 if !parts.modifiers.is_empty() => {
            let at = random.below(parts.modifiers.len());
            parts.modifiers.remove(at);
        }
        3 => {
            let at = random.below(parts.modifiers.len() + 1);
            parts.modifiers.insert(at, any_modifier(seed, random));
        }
        4 if !parts.operands.is_empty() => replace_register(seed, &mut parts, random, false)?,
        5 if !parts.operands.is_empty() => change_operand(seed, &mut parts, random),
        6 if parts.operands.len() > 1 => {
            let (a, b) = (random.below(parts.operands.len()), random.below(parts.operands.len()));
            parts.operands.swap(a, b);
        }
        7 if random_header => header = Some(any_header(random)),
        7 | 8 => header = Some(later(seed, random)?),
        9 | 10 => sibling(&mut parts, random)?,
        11 | 12 if !parts.operands.is_empty() => replace_register(seed, &mut parts, random, true)?,
        13 | 14 => change_literal(&mut parts, random)?,
        15 => change_guard(seed, &mut parts, random)?,
        _ => return None,
    }
    let changed = parts.text();
    if header.is_none() && Parts::of(original).is_some_and(|parts| parts.text() == changed) {
        return None;
    }
    Some(assemble(seed, &changed, header))
}

pub(super) fn any_header(random: &mut Random) -> Header {
    let (sm, version) = *random.pick(&TARGETS);
    (sm.to_string(), version.to_string())
}

/// The header of the seed with a later version, or a later architecture of the same kind.
fn later(seed: &Seed, random: &mut Random) -> Option<Header> {
    let (sm, version) = seed.module.header()?;
    let specific = |sm: &str| sm.ends_with(|c: char| c.is_ascii_alphabetic());
    if specific(sm) || random.below(2) == 0 {
        let versions: Vec<_> = VERSIONS.iter().filter(|&&later| number(later) > number(version)).collect();
        return (!versions.is_empty()).then(|| (sm.to_string(), random.pick(&versions).to_string()));
    }
    let later = |new: &str| !specific(new) && number(new) > number(sm);
    let targets: Vec<_> = TARGETS.iter().filter(|(new, _)| later(new)).collect();
    (!targets.is_empty())
        .then(|| (random.pick(&targets).0.to_string(), VERSIONS[VERSIONS.len() - 1].to_string()))
}

/// The digits of a version or an architecture as one number.
fn number(text: &str) -> u32 {
    text.chars().filter_map(|c| c.to_digit(10)).fold(0, |number, digit| number * 10 + digit)
}

/// Puts another modifier of its kind where one stands.
fn sibling(parts: &mut Parts<'_>, random: &mut Random) -> Option<()> {
    let mut choices = Vec::new();
    for (at, modifier) in parts.modifiers.iter().enumerate() {
        for family in SIBLINGS.iter().map(|family| family.split_whitespace()) {
            if family.clone().any(|word| word == modifier) {
                choices.extend(family.filter(|word| word != modifier).map(|word| (at, word)));
            }
        }
    }
    if choices.is_empty() {
        return None;
    }
    let (at, word) = *random.pick(&choices);
    parts.modifiers[at] = word.to_string();
    Some(())
}

/// Puts another number where one stands.
fn change_literal(parts: &mut Parts<'_>, random: &mut Random) -> Option<()> {
    let with_number: Vec<usize> =
        (0..parts.operands.len()).filter(|&at| literal_in(&parts.operands[at]).is_some()).collect();
    if with_number.is_empty() {
        return None;
    }
    let operand = &mut parts.operands[*random.pick(&with_number)];
    let range = literal_in(operand)?;
    operand.replace_range(range, random.pick::<&str>(&LITERALS));
    Some(())
}

/// Where a decimal number stands in a text, as a word of its own.
pub(super) fn literal_in(text: &str) -> Option<std::ops::Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut start = 0;
    for word in text.split(|c| !is_part(c)) {
        if !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()) {
            return Some(start..start + word.len());
        }
        start += word.len() + 1;
    }
    None
}

/// Drops the guard, turns it round, or makes one.
fn change_guard(seed: &Seed, parts: &mut Parts<'_>, random: &mut Random) -> Option<()> {
    let predicates: Vec<_> = seed.module.registers.iter().filter(|register| register.ty == ".pred").collect();
    if predicates.is_empty() {
        return None;
    }
    let not = if random.below(2) == 0 { "!" } else { "" };
    parts.guard = match parts.guard.is_empty() || random.below(3) > 0 {
        true => format!("@{not}{}", random.pick(&predicates).name),
        false => String::new(),
    };
    Some(())
}

/// A modifier of the seed's file, or a common one.
fn any_modifier(seed: &Seed, random: &mut Random) -> String {
    let own = &seed.module.modifiers;
    if !own.is_empty() && random.below(2) == 0 {
        return random.pick(own).clone();
    }
    let common: Vec<&str> = MODIFIERS.split_whitespace().collect();
    random.pick(&common).to_string()
}

/// Puts another register where one stands, one of its own type if it is to fit.
fn replace_register(seed: &Seed, parts: &mut Parts<'_>, random: &mut Random, fit: bool) -> Option<()> {
    let registers = &seed.module.registers;
    // In a kernel, a destination that changes leaves a register that is read and never written.
    let first = usize::from(!seed.module.initialised);
    if parts.operands.len() <= first {
        return None;
    }
    let at = first + random.below(parts.operands.len() - first);
    let operand = parts.operands[at].clone();
    let found: Vec<_> =
        names(&operand).filter_map(|name| registers.iter().find(|r| r.name == name)).collect();
    if found.is_empty() {
        return None;
    }
    let old = *random.pick(&found);
    let choices: Vec<_> =
        registers.iter().filter(|new| new.name != old.name && (!fit || new.ty == old.ty)).collect();
    if choices.is_empty() {
        return None;
    }
    parts.operands[at] = operand.replacen(&old.name, &random.pick(&choices).name, 1);
    Some(())
}

/// Drops an operand, repeats one, or puts another in its place.
fn change_operand(seed: &Seed, parts: &mut Parts<'_>, random: &mut Random) {
    let at = random.below(parts.operands.len());
    match random.below(3) {
        0 => {
            parts.operands.remove(at);
        }
        1 => {
            let repeated = random.pick(&parts.operands).clone();
            parts.operands.insert(at, repeated);
        }
        _ => {
            let registers = &seed.module.registers;
            let plain = random.pick(&OPERANDS).to_string();
            let register =
                if registers.is_empty() { plain.clone() } else { random.pick(registers).name.clone() };
            parts.operands[at] = match random.below(6) {
                0 => format!("[{register}]"),
                1 => format!("{{{register}, {register}}}"),
                2 => format!("!{register}"),
                _ => plain,
            };
        }
    }
}

/// The module with the changed line, and without the lines that the seed leaves out.
fn assemble(seed: &Seed, changed: &str, header: Option<Header>) -> Mutant {
    let module = &seed.module;
    let lines = module.lines.iter().enumerate().filter_map(|(i, line)| match i == seed.line {
        true => Some(changed),
        false => (!seed.left_out.contains(&i)).then_some(line.as_str()),
    });
    let (text, target) = with_header(lines, header);
    Mutant { text, label: format!("{target} {changed}"), from: format!("{}:{}", module.name, seed.line + 1) }
}

/// The text of the lines under a header, their own if none is given, and what target and version are.
pub(super) fn with_header<'a>(
    lines: impl Iterator<Item = &'a str>,
    header: Option<Header>,
) -> (String, String) {
    let mut text = String::new();
    let (mut sm, mut version) = header.clone().unwrap_or_default();
    for line in lines {
        match (line.strip_prefix(".version"), line.strip_prefix(".target"), &header) {
            (Some(_), _, Some((_, version))) => text.push_str(&format!(".version {version}")),
            (_, Some(_), Some((sm, _))) => text.push_str(&format!(".target {sm}")),
            (own_version, own_sm, _) => {
                if let Some(own) = own_version {
                    version = own.trim().to_string();
                }
                if let Some(own) = own_sm {
                    sm = own.trim().to_string();
                }
                text.push_str(line);
            }
        }
        text.push('\n');
    }
    (text, format!("{sm} {version}"))
}
