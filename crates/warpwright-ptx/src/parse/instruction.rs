//! Instructions: guard, opcode, modifiers, operands.

use super::Parser;
use super::lexer::{Kind, Token};
use super::scope::{Local, Scopes};
use crate::diag::Code;
use crate::ir::*;
use crate::op::{InstrReader, Keyword, Modifier, Op, OpcodeRow, Operand, Word, word_hash};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Room for the parts of one instruction, used again for the next.
#[derive(Default)]
pub(super) struct Buffers<'s> {
    words: Vec<(Word<'s>, Span)>,
    operands: Vec<(Operand, Span)>,
}

/// The instructions whose opcodes begin with one word; those of more words first.
struct Opcodes {
    hash: u64,
    first_word: &'static str,
    instructions: Vec<OpcodeWords>,
}

/// An instruction with the further words of its opcode.
struct OpcodeWords {
    row: &'static OpcodeRow,
    further: Vec<Keyword>,
}

/// All opcodes, sorted by the hash of their first word.
static OPCODES: LazyLock<Vec<Opcodes>> = LazyLock::new(|| {
    let mut map: BTreeMap<u64, Opcodes> = BTreeMap::new();
    for row in Op::TABLE {
        let mut words = row.name.split('.');
        let first_word = words.next().unwrap_or(row.name);
        let hash = word_hash(first_word);
        let opcodes =
            map.entry(hash).or_insert_with(|| Opcodes { hash, first_word, instructions: Vec::new() });
        opcodes.instructions.push(OpcodeWords { row, further: words.map(Keyword::new).collect() });
    }
    let mut list: Vec<_> = map.into_values().collect();
    for opcodes in &mut list {
        opcodes.instructions.sort_by_key(|instruction| std::cmp::Reverse(instruction.further.len()));
    }
    list
});

fn opcodes(first_word: &str) -> Option<&'static Opcodes> {
    let found = OPCODES.binary_search_by_key(&word_hash(first_word), |opcodes| opcodes.hash).ok()?;
    Some(&OPCODES[found]).filter(|opcodes| opcodes.first_word == first_word)
}

impl<'s> Parser<'s> {
    /// An instruction, from its guard to its `;`.
    pub(super) fn instruction(&mut self, scopes: &mut Scopes<'s>) -> Option<(Instruction, Span)> {
        let start = self.span();
        let guard = if self.eat(Kind::At) { Some(self.guard(scopes)?) } else { None };
        let opcode_span = self.span();
        let opcode = self.ident("as an opcode")?;
        let Some(opcodes) = opcodes(opcode) else {
            let help = nearest(opcode, OPCODES.iter().map(|opcodes| opcodes.first_word));
            let message = format!("there is no instruction `{}`", super::shorten(opcode));
            self.error::<()>(Code::UnknownInstruction, opcode_span, message);
            if let (Some(help), Some(last)) = (help, self.diagnostics.last_mut()) {
                last.help = Some(format!("did you mean `{help}`?"));
            }
            return None;
        };
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.words.clear();
        buffers.operands.clear();
        let op = self.operation(opcode, &opcodes.instructions, start, &mut buffers, scopes);
        self.buffers = buffers;
        let span = start.to(self.last_span());
        Some((Instruction { guard, op: op? }, span))
    }

    fn operation(
        &mut self,
        opcode: &'s str,
        instructions: &[OpcodeWords],
        start: Span,
        buffers: &mut Buffers<'s>,
        scopes: &mut Scopes<'s>,
    ) -> Option<Op> {
        while self.kind() == Kind::Dot {
            let span = self.span();
            if buffers.words.len() == InstrReader::MAX_WORDS {
                return self.error(Code::TooLarge, span, "an instruction has more than 64 modifiers");
            }
            buffers.words.push((Word::new(self.dot_word()), span));
            self.advance();
        }
        if self.kind() != Kind::Semicolon {
            self.separated(|parser| {
                let first = parser.span();
                let operand = parser.whole_operand(opcode, scopes)?;
                let address = matches!(operand, Operand::Address(_));
                buffers.operands.push((operand, first.to(parser.last_span())));
                if address && parser.is_dot("unified") {
                    buffers.operands.push((Operand::Unified, parser.span()));
                    parser.advance();
                }
                Some(())
            })?;
        }
        let span = start.to(self.span());
        self.expect(Kind::Semicolon, "to end the instruction")?;
        let mut reader = InstrReader::new(
            self.text,
            span,
            &buffers.words,
            &mut buffers.operands,
            scopes,
            self.flushes,
            &mut self.diagnostics,
        );
        for instruction in instructions {
            if reader.take_opcode(instruction.row.name, &instruction.further) {
                return (instruction.row.read)(&mut reader);
            }
        }
        drop(reader);
        let names: Vec<_> =
            instructions.iter().map(|instruction| format!("`{}`", instruction.row.name)).collect();
        let message = format!("`{opcode}` needs more words: it is one of {}", names.join(", "));
        self.error(Code::UnknownInstruction, start, message)
    }

    fn guard(&mut self, scopes: &Scopes<'s>) -> Option<Guard> {
        let negated = self.eat(Kind::Bang);
        let span = self.span();
        let name = self.ident("as a guard")?;
        match scopes.resolve(name) {
            Some(Local::Register(reg, None)) => Some(Guard { reg, negated }),
            Some(other) => {
                let what = if matches!(other, Local::Variable(..)) { "variable" } else { "vector" };
                let message = format!("the guard `{name}` is a {what}, not a predicate register");
                self.error(Code::GuardType, span, message)
            }
            None => self.error(Code::Undeclared, span, format!("`{name}` is not declared here")),
        }
    }

    /// An operand that is no element of a vector or of a list: after a register, a constant may be added; an array may
    /// have a subscript.
    fn whole_operand(&mut self, opcode: &'s str, scopes: &mut Scopes<'s>) -> Option<Operand> {
        let name = self.token();
        let operand = self.operand(opcode, scopes)?;
        let after_name = self.tokens[self.at - 1].kind == Kind::Ident;
        match operand {
            Operand::Reg(reg) if after_name && self.kind() == Kind::Plus => {
                let offset = self.symbol_offset()?;
                Some(if offset == 0 { Operand::Reg(reg) } else { Operand::Sum(reg, offset) })
            }
            Operand::Symbol(symbol, 0) if after_name && self.kind() == Kind::LeftBracket => {
                self.advance();
                let accessed = matches!(opcode, "ld" | "ldu" | "st");
                // In a load or store, the element is what is accessed; elsewhere, its address is meant.
                Some(match self.subscript(name, symbol, scopes)? {
                    Operand::Symbol(symbol, offset) if accessed => {
                        Operand::Address(Address::symbol(symbol, offset))
                    }
                    Operand::Element(element) if accessed => {
                        Operand::Address(Address { base: AddressBase::Element(element), offset: 0 })
                    }
                    other => other,
                })
            }
            other => Some(other),
        }
    }

    /// The element of the array `name` that a subscript names, after its opening bracket. It counts scalars, whatever the
    /// dimensions of the array are, and those of a vector one by one.
    fn subscript(&mut self, name: Token, array: Symbol, scopes: &Scopes<'s>) -> Option<Operand> {
        const CLOSE: &str = "to close the subscript";
        let word = self.str(name);
        let scalar = match scopes.resolve(word) {
            Some(Local::Variable(_, scalar)) => scalar,
            _ => self.globals.get(word).and_then(|global| global.scalar),
        };
        let Some(scalar) = scalar else {
            let message = format!("`{word}` is no array: it has no subscript");
            return self.error(Code::OperandForm, name.span(), message);
        };
        if self.kind() == Kind::Ident && self.word() != "WARP_SZ" {
            let Some(Local::Register(index, None)) = scopes.resolve(self.word()) else {
                let message = "a subscript is a constant, or a register to which a constant may be added";
                return self.error(Code::OperandForm, self.span(), message);
            };
            self.advance();
            let offset = self.symbol_offset()?;
            self.expect(Kind::RightBracket, CLOSE)?;
            return Some(Operand::Element(Box::new(Element { array, index, offset, scalar })));
        }
        let subscript = self.offset()?;
        self.expect(Kind::RightBracket, CLOSE)?;
        Some(Operand::Symbol(array, subscript.wrapping_mul(scalar.into())))
    }

    fn operand(&mut self, opcode: &'s str, scopes: &mut Scopes<'s>) -> Option<Operand> {
        const CLOSE: &str = "to close the list of operands";
        match self.kind() {
            Kind::Ident if self.word() == "WARP_SZ" => self.constant().map(Operand::Imm),
            Kind::Ident => {
                let first = self.name_operand(scopes)?;
                if self.kind() != Kind::Pipe {
                    return Some(first);
                }
                self.advance();
                let second = self.name_operand(scopes)?;
                Some(Operand::Pair(Box::new((first, second))))
            }
            Kind::LeftBrace => {
                self.nest()?;
                if self.kind_after(1) == Kind::RightBrace {
                    self.advance();
                    return self.unexpected("an operand", "in a vector");
                }
                let list = self.enclosed(Kind::RightBrace, CLOSE, |parser| parser.operand(opcode, scopes))?;
                self.unnest();
                let vector = Operand::Vector(list);
                if !self.eat(Kind::Pipe) {
                    return Some(vector);
                }
                let second = self.name_operand(scopes)?;
                Some(Operand::Pair(Box::new((vector, second))))
            }
            Kind::LeftParen if opcode == "call" => {
                self.nest()?;
                let list = self.enclosed(Kind::RightParen, CLOSE, |parser| match parser.kind() {
                    Kind::LeftBrace => parser.unexpected("a name or a number", "in the list of a call"),
                    // Registers are passed as a whole.
                    Kind::Ident if parser.kind_after(1) == Kind::Dot => {
                        parser.advance();
                        parser.unexpected("`,` or `)`", "in the list of a call")
                    }
                    _ => parser.operand(opcode, scopes),
                })?;
                self.unnest();
                Some(Operand::List(list))
            }
            Kind::LeftBracket => self.address(opcode, scopes),
            Kind::Bang if self.kind_after(1) == Kind::Ident => {
                let start = self.at;
                self.advance();
                match self.name_operand(scopes)? {
                    Operand::Reg(reg) => Some(Operand::Not(reg)),
                    other => {
                        let span = self.tokens[start].span().to(self.last_span());
                        let message =
                            format!("`!` negates a predicate register, not {}", other.description());
                        self.error(Code::OperandForm, span, message)
                    }
                }
            }
            Kind::Minus if self.negates_register(scopes) => {
                self.advance();
                match self.name_operand(scopes)? {
                    Operand::Part { reg, selector, .. } => {
                        Some(Operand::Part { reg, negated: true, selector })
                    }
                    Operand::Reg(reg) => Some(Operand::Part { reg, negated: true, selector: None }),
                    other => Some(other),
                }
            }
            _ => self.constant().map(Operand::Imm),
        }
    }

    /// Whether the name after the current token is a register.
    fn negates_register(&self, scopes: &Scopes<'s>) -> bool {
        let next = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        next.kind == Kind::Ident && matches!(scopes.resolve(self.str(next)), Some(Local::Register(_, None)))
    }

    /// A name: register, special register, symbol (with an offset), label or `_`.
    fn name_operand(&mut self, scopes: &mut Scopes<'s>) -> Option<Operand> {
        let span = self.span();
        let name = self.ident("as an operand")?;
        if name == "_" {
            return Some(Operand::Sink);
        }
        match scopes.resolve(name) {
            Some(Local::Register(reg, None)) if self.kind() == Kind::Dot => {
                let selector = Selector::from_text(self.dot_word());
                if selector.is_none() {
                    let message = format!(
                        "a selector is `b` with up to four digits or `h` with up to two, not `{}`",
                        super::shorten(self.dot_word())
                    );
                    return self.error(Code::OperandForm, self.span(), message);
                }
                self.advance();
                return Some(Operand::Part { reg, negated: false, selector });
            }
            Some(Local::Register(reg, None)) => return Some(Operand::Reg(reg)),
            Some(Local::Register(first, Some(vector))) => return self.vector_register(first, vector),
            Some(Local::Variable(id, _)) => {
                let offset = self.symbol_offset()?;
                return Some(Operand::Symbol(Symbol::Local(id), offset));
            }
            None => {}
        }
        if name.starts_with('%')
            && let Some(register) = SpecialRegister::from_name(name)
        {
            let mut special = Special { register, component: None };
            if self.kind() == Kind::Dot {
                special.component = component(self.dot_word());
                let here = self.span();
                self.advance();
                if special.component.is_none() || !register.is_vector() {
                    let message = format!("`{name}` has no such component");
                    return self.error(Code::SpecialRegister, here, message);
                }
            }
            return Some(Operand::Special(special));
        }
        if let Some(global) = self.globals.get(name) {
            let symbol = Symbol::Global(global.name.clone());
            let offset = self.symbol_offset()?;
            return Some(Operand::Symbol(symbol, offset));
        }
        if name.starts_with('%') {
            return self.error(Code::Undeclared, span, format!("the register `{name}` is not declared"));
        }
        Some(Operand::Unknown(span))
    }

    /// A vector register after its name: a component, or all of them.
    fn vector_register(&mut self, first: Reg, vector: VectorWidth) -> Option<Operand> {
        let elements = vector.elements() as u32;
        if self.kind() != Kind::Dot {
            return Some(Operand::Vector((0..elements).map(|i| Operand::Reg(Reg(first.0 + i))).collect()));
        }
        let span = self.span();
        let component = component(self.dot_word()).filter(|component| (*component as u32) < elements);
        self.advance();
        match component {
            Some(component) => Some(Operand::Reg(Reg(first.0 + component as u32))),
            None => {
                let message = format!("a `.{}` register has no such component", vector.text());
                self.error(Code::OperandForm, span, message)
            }
        }
    }

    /// Reports an operand that the `rule` does not allow, or that nothing declares.
    #[cold]
    fn wrong<T>(&mut self, rule: &str, found: &Operand, span: Span) -> Option<T> {
        if let Operand::Unknown(name) = found {
            let name = &self.text[name.range()];
            return self.error(Code::Undeclared, span, format!("`{name}` is not declared here"));
        }
        self.error(Code::OperandForm, span, format!("{rule}, not {}", found.description()))
    }

    /// `+ constant` after a symbol or a register, or nothing.
    pub(super) fn symbol_offset(&mut self) -> Option<i64> {
        if self.eat(Kind::Plus) { self.offset() } else { Some(0) }
    }

    /// `[…]`.
    fn address(&mut self, opcode: &'s str, scopes: &mut Scopes<'s>) -> Option<Operand> {
        self.advance();
        let base = match self.kind() {
            Kind::Ident => {
                let span = self.span();
                match self.name_operand(scopes)? {
                    Operand::Reg(reg) => {
                        let offset = self.symbol_offset()?;
                        Address::reg(reg, offset)
                    }
                    Operand::Symbol(symbol, offset) => Address::symbol(symbol, offset),
                    Operand::Imm(imm) => {
                        Address { base: AddressBase::Absolute, offset: imm.bits().unwrap_or(0) as i64 }
                    }
                    other => {
                        return self.wrong("the base of an address is a register or a symbol", &other, span);
                    }
                }
            }
            _ => Address { base: AddressBase::Absolute, offset: self.offset()? },
        };
        let mut coordinates = Vec::new();
        while self.eat(Kind::Comma) {
            let span = self.span();
            self.nest()?;
            let operand = self.operand(opcode, scopes)?;
            self.unnest();
            match operand.into_srcs() {
                Ok(srcs) => coordinates.push(srcs),
                Err(other) => {
                    return self.wrong("a coordinate is a value or a vector of values", &other, span);
                }
            }
        }
        self.expect(Kind::RightBracket, "to close the address")?;
        Some(if coordinates.is_empty() {
            Operand::Address(base)
        } else {
            Operand::Tensor(TensorAddress { base, coordinates })
        })
    }
}

/// The component of that name, old names (colours) included.
fn component(word: &str) -> Option<Component> {
    match word {
        "r" => Some(Component::X),
        "g" => Some(Component::Y),
        "b" => Some(Component::Z),
        "a" => Some(Component::W),
        word => Component::from_word(Word::new(word)),
    }
}

/// The candidate that differs least from `word`, if it is near.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 32 {
        return None;
    }
    candidates
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}
