//! Reads one instruction: its modifiers and operands, already split, become a struct.

use super::operand::{Arg, Operand};
use super::word::{Keyword, Modifier, Word};
use crate::diag::{Code, Diagnostic};
use crate::ir::{LabelId, Span};

/// Gives numbers to label names in the current scope.
pub trait LabelResolver {
    /// The label with the name at `name`; it may be defined later.
    fn label(&mut self, name: Span) -> LabelId;
}

/// The condition under which an optional operand is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Exactly if the condition holds: a modifier requires the operand.
    When(bool),
    /// If the condition holds and more than that number of operands remain; those follow it.
    Before(bool, usize),
    /// If the next operand is a vector; the one after it is not.
    IfVector,
    /// If the next operand is a register; the one after it is not.
    IfRegister,
}

impl From<bool> for Presence {
    fn from(holds: bool) -> Self {
        Presence::When(holds)
    }
}

/// Modifiers that may be repeated without effect. The assembler refuses to repeat others.
const REPEATABLE: [&str; 9] = ["sync", "cc", "sat", "satfinite", "relu", "NaN", "approx", "uni", "shiftamt"];

/// The parts of one instruction's text, which the instruction's `read` takes one by one.
pub struct InstrReader<'a> {
    name: &'static str,
    text: &'a str,
    span: Span,
    words: &'a [(Word<'a>, Span)],
    taken: u64,
    operands: std::vec::Drain<'a, (Operand, Span)>,
    given: usize,
    read: usize,
    labels: &'a mut dyn LabelResolver,
    /// The target has no subnormal numbers in `f32`: what may have `.ftz` has it.
    flushes: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> InstrReader<'a> {
    /// The most modifiers that an instruction can have.
    pub(crate) const MAX_WORDS: usize = 64;

    /// A reader of the instruction at `span`. `words` are its modifiers (at most
    /// [`Self::MAX_WORDS`]), those of the opcode included.
    pub(crate) fn new(
        text: &'a str,
        span: Span,
        words: &'a [(Word<'a>, Span)],
        operands: &'a mut Vec<(Operand, Span)>,
        labels: &'a mut dyn LabelResolver,
        flushes: bool,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        debug_assert!(words.len() <= Self::MAX_WORDS);
        let given = operands.len();
        let operands = operands.drain(..);
        let (name, taken, read) = ("", 0, 0);
        InstrReader { name, text, span, words, taken, operands, given, read, labels, flushes, diagnostics }
    }

    /// Takes the words of an opcode after its first; whether all are there.
    pub(crate) fn take_opcode(&mut self, opcode: &'static str, further: &[Keyword]) -> bool {
        let before = self.taken;
        self.name = opcode;
        let complete = further.iter().all(|&word| self.flag(word));
        if !complete {
            self.taken = before;
        }
        complete
    }

    fn take<T>(&mut self, mut wanted: impl FnMut(Word<'a>) -> Option<T>) -> Option<T> {
        for (i, (word, _)) in self.words.iter().enumerate() {
            if self.taken & (1 << i) == 0
                && let Some(found) = wanted(*word)
            {
                self.taken |= 1 << i;
                return Some(found);
            }
        }
        None
    }

    /// The position of the instruction.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Takes the flag if it is present. Returns whether it was.
    pub fn flag(&mut self, keyword: Keyword) -> bool {
        let found = self.take(|word| word.is(keyword).then_some(())).is_some();
        found || self.flushes && keyword.text() == "ftz" && self.is_single()
    }

    /// Whether the instruction computes on `f32`: that is its type, the last of several, or one of a conversion's.
    fn is_single(&self) -> bool {
        let single = |(word, _): &(Word<'_>, Span)| word.text() == "f32";
        self.words.last().is_some_and(single) || self.name == "cvt" && self.words.iter().any(single)
    }

    /// Takes the flag if it is right after the opcode's first word. Returns whether it was.
    pub fn leading_flag(&mut self, keyword: Keyword) -> bool {
        let found = self.taken & 1 == 0 && self.words.first().is_some_and(|(word, _)| word.is(keyword));
        self.taken |= u64::from(found);
        found
    }

    /// Whether the word is among the modifiers that were not taken yet. Does not take it.
    pub fn has(&self, keyword: Keyword) -> bool {
        (self.words.iter().enumerate()).any(|(i, (word, _))| self.taken & (1 << i) == 0 && word.is(keyword))
    }

    /// The first modifier of that kind, if there is one.
    pub fn modifier_opt<M: Modifier>(&mut self) -> Option<M> {
        self.take(M::from_word)
    }

    /// The first modifier of that kind. A missing one is reported.
    pub fn modifier<M: Modifier>(&mut self) -> Option<M> {
        let found = self.modifier_opt();
        if found.is_none() {
            self.error(
                Code::MissingModifier,
                self.span,
                format!("`{}` needs one of the modifiers {}", self.name, list_words(M::EXPECTED)),
            );
        }
        found
    }

    /// Reports the modifiers that no field took.
    pub fn end_modifiers(&mut self) -> Option<()> {
        let mut fine = Some(());
        for (i, &(word, span)) in self.words.iter().enumerate() {
            if self.taken & (1 << i) == 0 {
                self.taken |= 1 << i;
                let again = self.words[..i].iter().any(|(w, _)| w.text() == word.text());
                if again && REPEATABLE.contains(&word.text()) {
                    continue;
                }
                let message = if again {
                    format!("`.{}` stands more often than `{}` can take it", word.text(), self.name)
                } else {
                    format!("`{}` has no modifier `.{}`", self.name, word.text())
                };
                self.error(Code::UnknownModifier, span, message);
                fine = None;
            }
        }
        fine
    }

    /// Number of operands not yet taken.
    pub fn remaining(&self) -> usize {
        self.operands.len()
    }

    /// The next operand, without taking it.
    pub fn peek(&self) -> Option<&Operand> {
        self.operands.as_slice().first().map(|(operand, _)| operand)
    }

    /// The next operand.
    pub fn next_operand(&mut self) -> Option<(Operand, Span)> {
        let next = self.operands.next();
        self.read += usize::from(next.is_some());
        next
    }

    /// The next operand as an `A`. `name` is its name in messages.
    pub fn arg<A: Arg>(&mut self, name: &'static str) -> Option<A> {
        A::read(self, name)
    }

    /// An operand that only some forms have.
    pub fn arg_when<A: Arg>(&mut self, name: &'static str, presence: Presence) -> Option<Option<A>> {
        let present = match presence {
            Presence::When(holds) => holds,
            Presence::Before(holds, after) => holds && self.remaining() > after,
            Presence::IfVector => matches!(self.peek(), Some(Operand::Vector(_))),
            Presence::IfRegister => matches!(self.peek(), Some(Operand::Reg(_))),
        };
        if present { A::read(self, name).map(Some) } else { Some(None) }
    }

    /// The next operand; a missing one is reported.
    pub fn operand(&mut self, name: &'static str) -> Option<(Operand, Span)> {
        let next = self.next_operand();
        if next.is_none() {
            let (given, opcode) = (self.given, self.name);
            self.error(
                Code::OperandCount,
                self.span,
                format!("`{opcode}` lacks its operand `{name}`: {given} given"),
            );
        }
        next
    }

    /// Reports operands that no field took.
    pub fn end_args(&mut self) -> Option<()> {
        let Some((_, span)) = self.next_operand() else { return Some(()) };
        let (wanted, given) = (self.read - 1, self.given);
        self.operands.by_ref().for_each(drop);
        self.error(
            Code::OperandCount,
            span,
            format!("`{}` takes {wanted} operands in this form: {given} given", self.name),
        );
        None
    }

    /// Reports an operand of the wrong form.
    pub fn expected<T>(&mut self, what: &str, name: &str, found: &Operand, span: Span) -> Option<T> {
        if let Operand::Unknown(unknown) = found {
            let unknown = &self.text[unknown.range()];
            let message = format!("`{unknown}` is not declared here");
            self.error(Code::Undeclared, span, message);
        } else {
            let message =
                format!("operand `{name}` of `{}` must be {what}, not {}", self.name, found.description());
            self.error(Code::OperandForm, span, message);
        }
        None
    }

    /// The label with the name at `name`.
    pub fn label(&mut self, name: Span) -> LabelId {
        self.labels.label(name)
    }

    /// Reports an error at `span`.
    pub fn error(&mut self, code: Code, span: Span, message: String) {
        self.diagnostics.push(Diagnostic::new(code, span, message));
    }
}

/// "`.a`, `.b` or `.c`", shortened where there are many.
fn list_words(words: &[&str]) -> String {
    const SHOWN: usize = 12;
    let mut text = String::new();
    for (i, word) in words.iter().take(SHOWN).enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        text.push_str("`.");
        text.push_str(word);
        text.push('`');
    }
    if words.len() > SHOWN {
        text.push_str(", …");
    }
    text
}
