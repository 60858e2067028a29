//! How what the virtual GPU computes compares with what hardware computes, for every form of an instruction.
//!
//! That a form is refused follows from its decoding; how an executed one is known, from the tables beside the arithmetic
//! (`numerics`). [`forms`] has the result for all forms, which a test derives from the files with every form of the ISA
//! and holds against `forms.txt` and `docs/fidelity.md`.

mod numerics;
mod targets;

pub use targets::Targets;

use crate::device::Module;
use crate::launch::Launch;
use crate::names::named;
use crate::tensor::TensorCore;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use warpwright_ptx::ir::{Arch, Instruction, Statement, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_ptx::print::form;

named! {
    /// How the results of an instruction compare with hardware's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Class {
        /// The ISA defines every bit, and these are the bits.
        Exact = "exact",
        /// The ISA leaves bits open; these are the ones that hardware was measured to compute.
        Measured = "measured",
        /// Hardware stays within a documented bound, and so do these; bits may differ.
        Bounded = "bounded",
        /// Neither the ISA nor a measurement says it: hardware may compute something else.
        Assumed = "assumed",
        /// It is not executed: a kernel that reaches it ends with a trap.
        Refused = "refused",
    }
}

impl Class {
    const ALL: [Class; 5] = [Class::Exact, Class::Measured, Class::Bounded, Class::Assumed, Class::Refused];

    /// The class of that name.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A class with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Fidelity {
    /// The class.
    pub class: Class,
    /// The hardware that was measured, the bound, what is assumed, or why it is refused; empty for what is exact.
    pub detail: Cow<'static, str>,
}

impl Fidelity {
    const EXACT: Fidelity = Fidelity::new(Class::Exact, "");

    const fn new(class: Class, detail: &'static str) -> Fidelity {
        Fidelity { class, detail: Cow::Borrowed(detail) }
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::Exact => f.write_str("exact"),
            Class::Measured => write!(f, "exact as measured on {}", self.detail),
            Class::Bounded => write!(f, "within a bound: {}", self.detail),
            Class::Assumed => write!(f, "assumed: {}", self.detail),
            Class::Refused if self.detail.is_empty() => f.write_str("refused"),
            Class::Refused => write!(f, "refused: {}", self.detail),
        }
    }
}

/// Something assumed that a launch has executed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Assumption {
    /// The form of the instruction: `cvt.rs.f16x2.f32`.
    pub form: String,
    /// What is assumed.
    pub detail: Cow<'static, str>,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.form, self.detail)
    }
}

impl Module {
    /// The instructions, in the order of the text, with their fidelity on a device of that architecture.
    pub fn fidelity<'a>(&'a self, arch: Arch) -> Vec<(&'a Instruction, Fidelity)> {
        let core = TensorCore::for_arch(arch);
        let refused: HashMap<(&str, u32), &str> = self
            .unsupported()
            .iter()
            .map(|refused| ((&*refused.function, refused.statement), &*refused.message))
            .collect();
        let functions = self.loaded.ir.functions().filter(|function| function.body.is_some());
        let statements = functions.flat_map(|function| {
            (0..).zip(function.statements()).map(move |(at, statement)| ((&*function.name, at), statement))
        });
        let of = |(place, statement): (_, &'a Statement)| {
            let StatementKind::Instruction(instruction) = &statement.kind else { return None };
            let fidelity = match refused.get(&place) {
                Some(&message) => Fidelity {
                    class: Class::Refused,
                    detail: Cow::Owned(without_opcode(message, instruction.op.name())),
                },
                None => numerics::of(&instruction.op, core, arch.sm),
            };
            Some((instruction, fidelity))
        };
        statements.filter_map(of).collect()
    }
}

/// What the message about a refused instruction says beside its opcode.
fn without_opcode(message: &str, opcode: &str) -> String {
    let detail = message.replace(" is not executed by the virtual GPU", "");
    let rest = detail.strip_prefix(&format!("`{opcode}`"));
    rest.map_or(detail.clone(), |rest| rest.trim_start_matches(": ").to_owned())
}

/// Whether some device assumes something about an instruction.
pub(crate) fn may_be_assumed(op: &Op) -> bool {
    // No hardware has such a number, so nothing was measured on it.
    TensorCore::ALL.iter().any(|&core| numerics::of(op, core, 0).class == Class::Assumed)
}

/// What a launch has assumed, each once: `executed` tells whether the instruction at a place of the code was.
pub(crate) fn assumptions(launch: &Launch, executed: impl Fn(u32) -> bool) -> Vec<Assumption> {
    let assumed = |&pc: &u32| {
        let op = launch.module.op(pc)?;
        let fidelity = numerics::of(op, launch.options.tensor_core, launch.options.tensor_sm);
        let is_assumed = fidelity.class == Class::Assumed;
        is_assumed.then(|| Assumption { form: form(op), detail: fidelity.detail })
    };
    let mut assumptions: Vec<Assumption> =
        launch.code.assumed.iter().filter(|&&pc| executed(pc)).filter_map(assumed).collect();
    assumptions.sort_unstable();
    assumptions.dedup();
    assumptions
}

/// Forms of an instruction that are alike. One line of `forms.txt`: pattern, tests and verdicts, with tabs between them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forms {
    /// The forms: where `{…}` stands, one of its alternatives.
    pub pattern: &'static str,
    /// Their fidelity on targets. Others do not have them.
    pub verdicts: Vec<(Fidelity, Targets)>,
    /// The tests that execute them.
    pub tests: Vec<&'static str>,
}

impl Forms {
    fn read(line: &'static str) -> Option<Forms> {
        let mut fields = line.split('\t');
        let (pattern, tests) = (fields.next()?, fields.next()?);
        let verdict = |field: &'static str| {
            let mut parts = field.splitn(3, '|');
            let (class, targets, detail) = (parts.next()?, parts.next()?, parts.next()?);
            Some((Fidelity::new(Class::named(class)?, detail), Targets::read(targets)))
        };
        let tests = tests.split(' ').filter(|test| !test.is_empty()).collect();
        Some(Forms { pattern, verdicts: fields.map(verdict).collect::<Option<_>>()?, tests })
    }

    /// Each of them.
    pub fn each(&self) -> Vec<String> {
        let mut forms = vec![String::new()];
        let mut rest = self.pattern;
        while let Some((before, (alternatives, after))) =
            rest.split_once('{').and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
        {
            let with = |form: &String| -> Vec<String> {
                alternatives.split(',').map(|one| format!("{form}{before}{one}")).collect()
            };
            forms = forms.iter().flat_map(with).collect();
            rest = after;
        }
        forms.iter_mut().for_each(|form| form.push_str(rest));
        forms
    }

    /// Their fidelity on a target. Of some it depends on their operands, which the details name; a target that does
    /// not have them has none.
    pub fn on(&self, arch: Arch) -> impl Iterator<Item = &Fidelity> {
        self.verdicts.iter().filter(move |(_, targets)| targets.contains(arch)).map(|(fidelity, _)| fidelity)
    }
}

/// Every form of every instruction, in the order of their names.
pub fn forms() -> impl Iterator<Item = Forms> {
    read(include_str!("forms.txt"))
}

/// The forms of a text as `forms.txt`: lines that are not as they should be are left out.
pub fn read(text: &'static str) -> impl Iterator<Item = Forms> {
    text.lines().filter_map(Forms::read)
}
