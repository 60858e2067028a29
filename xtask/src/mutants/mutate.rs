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

/// Modifiers that many instructions have.
const MODIFIERS: &str = "rn rz rm rp rni rzi ftz sat relu cc approx full lo hi wide noftz nan abs \
    u8 u16 u32 u64 s8 s16 s32 s64 b8 b16 b32 b64 b128 f16 f16x2 bf16 bf16x2 tf32 f32 f64 f32x2 pred \
    e4m3x2 e5m2x2 global shared shared::cta shared::cluster local const param v2 v4 v8 weak relaxed acquire \
    release acq_rel volatile mmio gpu cta sys cluster eq ne lt ge lo ltu num and or xor add min max inc exch \
    cas uni sync aligned nc ca cg cs cv wb wt up down bfly idx all any ballot trans x2 x4 row col";

/// Operands that are no registers of the module.
const OPERANDS: [&str; 9] = ["1", "1.0", "-1", "0f3F800000", "_", "%tid.x", "100000", "%clock64", "0x1p"];

/// An instruction taken apart.
pub(super) struct Parts<'a> {
    guard: &'a str,
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
        Some(Parts { guard, opcode, modifiers, operands: split_operands(operands) })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.guard.is_empty() {
            text.push_str(self.guard);
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
    let mut target = None;
    match random.below(11) {
        0..=3 if !parts.modifiers.is_empty() => {
            let at = random.below(parts.modifiers.len());
            parts.modifiers[at] = any_modifier(seed, random);
        }
        4 if !parts.modifiers.is_empty() => {
            let at = random.below(parts.modifiers.len());
            parts.modifiers.remove(at);
        }
        5 => {
            let at = random.below(parts.modifiers.len() + 1);
            parts.modifiers.insert(at, any_modifier(seed, random));
        }
        6 | 7 if !parts.operands.is_empty() => replace_register(seed, &mut parts, random)?,
        8 if !parts.operands.is_empty() => change_operand(seed, &mut parts, random),
        9 if parts.operands.len() > 1 => {
            let (a, b) = (random.below(parts.operands.len()), random.below(parts.operands.len()));
            parts.operands.swap(a, b);
        }
        10 => target = Some(*random.pick(&TARGETS)),
        _ => return None,
    }
    let changed = parts.text();
    if target.is_none() && Parts::of(original).is_some_and(|parts| parts.text() == changed) {
        return None;
    }
    Some(assemble(seed, &changed, target))
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

/// Puts another register where one stands.
fn replace_register(seed: &Seed, parts: &mut Parts<'_>, random: &mut Random) -> Option<()> {
    let registers = &seed.module.registers;
    // In a kernel, a destination that changes leaves a register that is read and never written.
    let first = usize::from(!seed.module.initialised);
    if registers.is_empty() || parts.operands.len() <= first {
        return None;
    }
    let at = first + random.below(parts.operands.len() - first);
    let operand = parts.operands[at].clone();
    let found: Vec<&str> = names(&operand).filter(|name| registers.iter().any(|r| r == name)).collect();
    if found.is_empty() {
        return None;
    }
    let old = *random.pick(&found);
    parts.operands[at] = operand.replacen(old, random.pick(registers).as_str(), 1);
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
            let register = if registers.is_empty() { plain.clone() } else { random.pick(registers).clone() };
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
fn assemble(seed: &Seed, changed: &str, target: Option<(&str, &str)>) -> Mutant {
    let mut text = String::new();
    let (mut sm, mut version) = (String::new(), String::new());
    for (i, line) in seed.module.lines.iter().enumerate() {
        let mut line = line.as_str();
        let header;
        if let Some(rest) = line.strip_prefix(".version") {
            version = target.map_or(rest.trim(), |(_, version)| version).to_string();
            header = format!(".version {version}");
            line = &header;
        } else if let Some(rest) = line.strip_prefix(".target") {
            sm = target.map_or(rest.trim(), |(sm, _)| sm).to_string();
            header = format!(".target {sm}");
            line = &header;
        } else if i == seed.line {
            line = changed;
        } else if seed.left_out.contains(&i) {
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    let label = format!("{sm} {version} {changed}");
    Mutant { text, label, from: format!("{}:{}", seed.module.name, seed.line + 1) }
}
