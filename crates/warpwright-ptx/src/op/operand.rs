//! Operands as the text has them, and their conversion to the typed operands of the IR.

use super::framework::{Access, Visitor, VisitorMut};
use super::read::InstrReader;
use crate::ir::{
    Address, AddressBase, Dst, DstOrSink, DstPair, Dsts, Imm, InOut, LabelId, PartDst, PartSrc, Reg, RegSrc,
    Selector, Span, Special, Src, Srcs, Symbol, SymbolAddress, TensorAddress, Unified,
};
use crate::print::Writer;

/// An operand, with its names resolved, before it is known what the instruction wants there.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// `!` and a register.
    Not(Reg),
    /// A register that is negated or has a selector: an operand of a video instruction.
    Part {
        /// The register.
        reg: Reg,
        /// Whether it is negated.
        negated: bool,
        /// Which of its bytes or halves.
        selector: Option<Selector>,
    },
    /// A number.
    Imm(Imm),
    /// A special register.
    Special(Special),
    /// A symbol and an offset.
    Symbol(Symbol, i64),
    /// A name that is not declared, by its place in the text: a label, perhaps.
    Unknown(Span),
    /// `_`.
    Sink,
    /// `{a, b, …}`.
    Vector(Vec<Operand>),
    /// `a|b`.
    Pair(Box<(Operand, Operand)>),
    /// `[base + offset]`.
    Address(Address),
    /// `.unified`, after an address.
    Unified,
    /// `[base, …]`.
    Tensor(TensorAddress),
    /// `(a, b, …)`: the arguments of a call.
    List(Vec<Operand>),
}

impl Operand {
    /// What it is, for messages.
    pub fn description(&self) -> &'static str {
        match self {
            Operand::Reg(_) => "a register",
            Operand::Not(_) => "a negated predicate",
            Operand::Part { negated: true, .. } => "a negated register",
            Operand::Part { .. } => "a part of a register",
            Operand::Imm(imm) if imm.is_float() => "a floating-point number",
            Operand::Imm(_) => "a number",
            Operand::Special(_) => "a special register",
            Operand::Symbol(..) => "a symbol",
            Operand::Unknown(_) => "a label",
            Operand::Sink => "`_`",
            Operand::Vector(_) => "a vector",
            Operand::Pair(_) => "a pair",
            Operand::Address(_) => "an address",
            Operand::Unified => "`.unified`",
            Operand::Tensor(_) => "an address with coordinates",
            Operand::List(_) => "a list",
        }
    }

    fn into_src(self) -> Result<Src, Self> {
        Ok(match self {
            Operand::Reg(reg) => Src::Reg(reg),
            Operand::Not(reg) => Src::Not(reg),
            Operand::Imm(imm) => Src::Imm(imm),
            Operand::Special(special) => Src::Special(special),
            Operand::Symbol(symbol, offset) => SymbolAddress { symbol, offset }.into(),
            other => return Err(other),
        })
    }

    fn as_dst(&self) -> Option<Option<Reg>> {
        match self {
            Operand::Reg(reg) => Some(Some(*reg)),
            Operand::Sink => Some(None),
            _ => None,
        }
    }

    /// A vector of sources, or one. An element of the vector may be `_`.
    pub fn into_srcs(self) -> Result<Srcs, Self> {
        let element = |operand: &Operand| match operand {
            Operand::Sink => Some(Src::Sink),
            other => other.clone().into_src().ok(),
        };
        match self {
            Operand::Vector(list) => match list.iter().map(element).collect() {
                Some(srcs) => Ok(Srcs::Many(srcs)),
                None => Err(Operand::Vector(list)),
            },
            other => other.into_src().map(Srcs::One),
        }
    }
}

/// A typed operand: how it is read from the text, printed, and walked.
pub trait Arg: Sized {
    /// Takes it from the reader; `name` is what messages call it. `None` after a diagnostic.
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self>;

    /// Prints it, with what separates it from the operand before.
    fn print(&self, out: &mut Writer<'_>);

    /// Shows registers, symbols and labels to the visitor.
    fn visit(&self, visitor: &mut dyn Visitor);

    /// Lets the visitor change them.
    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut);
}

impl<A: Arg> Arg for Option<A> {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        if reader.remaining() == 0 { Some(None) } else { A::read(reader, name).map(Some) }
    }

    fn print(&self, out: &mut Writer<'_>) {
        if let Some(arg) = self {
            arg.print(out);
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        if let Some(arg) = self {
            arg.visit(visitor);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        if let Some(arg) = self {
            arg.visit_mut(visitor);
        }
    }
}

impl Arg for Dst {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Reg(reg), _) => Some(Dst(reg)),
            (other, span) => reader.expected("a register", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.reg(self.0);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.reg(Access::Write, self.0);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.reg(Access::Write, &mut self.0);
    }
}

impl Arg for DstOrSink {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        match operand.as_dst() {
            Some(dst) => Some(DstOrSink(dst)),
            None => reader.expected("a register or `_`", name, &operand, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.reg_or_sink(self.0);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        if let Some(reg) = self.0 {
            visitor.reg(Access::Write, reg);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        if let Some(reg) = &mut self.0 {
            visitor.reg(Access::Write, reg);
        }
    }
}

impl Arg for DstPair {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        let pair = match &operand {
            Operand::Reg(reg) => Some(DstPair { first: Some(*reg), second: None }),
            Operand::Pair(pair) => match (pair.0.as_dst(), pair.1.as_dst()) {
                (Some(first), Some(second)) => Some(DstPair { first, second: Some(second) }),
                _ => None,
            },
            _ => None,
        };
        pair.or_else(|| reader.expected("a register, or two as `d|p`", name, &operand, span))
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.reg_or_sink(self.first);
        if let Some(second) = self.second {
            out.text("|");
            out.reg_or_sink(second);
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        for reg in [self.first, self.second.flatten()].into_iter().flatten() {
            visitor.reg(Access::Write, reg);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        for reg in [self.first.as_mut(), self.second.as_mut().and_then(Option::as_mut)].into_iter().flatten()
        {
            visitor.reg(Access::Write, reg);
        }
    }
}

impl Arg for RegSrc {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Reg(reg), _) => Some(RegSrc(reg)),
            (other, span) => reader.expected("a register", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.reg(self.0);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.reg(Access::Read, self.0);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.reg(Access::Read, &mut self.0);
    }
}

impl Arg for PartDst {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Reg(reg), _) => Some(reg.into()),
            (Operand::Part { reg, negated: false, selector }, _) => Some(PartDst { reg, selector }),
            (other, span) => reader.expected("a register or a part of one", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.reg(self.reg);
        if let Some(selector) = self.selector {
            out.text(&selector.to_string());
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.reg(Access::Write, self.reg);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.reg(Access::Write, &mut self.reg);
    }
}

impl Arg for PartSrc {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        if let Operand::Part { reg, negated, selector } = operand {
            return Some(PartSrc { negated, value: Src::Reg(reg), selector });
        }
        match operand.into_src() {
            Ok(value) => Some(value.into()),
            Err(other) => reader.expected("a register, a part of one, or a constant", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        if self.negated {
            out.text("-");
        }
        out.src(&self.value);
        if let Some(selector) = self.selector {
            out.text(&selector.to_string());
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_src(&self.value, visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visit_src_mut(&mut self.value, visitor);
    }
}

fn visit_src(src: &Src, visitor: &mut dyn Visitor) {
    match src {
        Src::Reg(reg) | Src::Not(reg) => visitor.reg(Access::Read, *reg),
        Src::Symbol(address) => visitor.symbol(&address.symbol),
        Src::Special(special) => visitor.special(*special),
        Src::Imm(_) | Src::Sink => {}
    }
}

fn visit_src_mut(src: &mut Src, visitor: &mut dyn VisitorMut) {
    match src {
        Src::Reg(reg) | Src::Not(reg) => visitor.reg(Access::Read, reg),
        Src::Symbol(address) => visitor.symbol(&mut address.symbol),
        Src::Imm(_) | Src::Special(_) | Src::Sink => {}
    }
}

impl Arg for Src {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        match operand.into_src() {
            Ok(src) => Some(src),
            Err(other) => reader.expected("a register or a constant", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.src(self);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_src(self, visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visit_src_mut(self, visitor);
    }
}

impl Arg for Dsts {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        let dsts = match &operand {
            Operand::Reg(reg) => Some(Dsts::One(*reg)),
            Operand::Sink => Some(Dsts::Sink),
            Operand::Vector(list) => {
                list.iter().map(Operand::as_dst).collect::<Option<Box<[_]>>>().map(Dsts::Many)
            }
            _ => None,
        };
        dsts.or_else(|| reader.expected("a register or a vector of registers", name, &operand, span))
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        match self {
            Dsts::One(reg) => out.reg(*reg),
            Dsts::Sink => out.reg_or_sink(None),
            Dsts::Many(regs) => out.braces(regs, |out, reg| out.reg_or_sink(*reg)),
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        for reg in self.as_slice().flatten() {
            visitor.reg(Access::Write, reg);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        match self {
            Dsts::One(reg) => visitor.reg(Access::Write, reg),
            Dsts::Sink => {}
            Dsts::Many(regs) => regs.iter_mut().flatten().for_each(|reg| visitor.reg(Access::Write, reg)),
        }
    }
}

fn print_srcs(srcs: &Srcs, out: &mut Writer<'_>) {
    match srcs {
        Srcs::One(src) => out.src(src),
        Srcs::Many(srcs) => out.braces(srcs, |out, src| out.src(src)),
    }
}

impl Arg for Srcs {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        match operand.into_srcs() {
            Ok(srcs) => Some(srcs),
            Err(other) => reader.expected("a value or a vector of values", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        print_srcs(self, out);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        for src in self.as_slice() {
            visit_src(src, visitor);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        match self {
            Srcs::One(src) => visit_src_mut(src, visitor),
            Srcs::Many(srcs) => srcs.iter_mut().for_each(|src| visit_src_mut(src, visitor)),
        }
    }
}

impl Arg for InOut {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        let regs = match &operand {
            Operand::Vector(list) => list
                .iter()
                .map(|operand| match operand {
                    Operand::Reg(reg) => Some(*reg),
                    _ => None,
                })
                .collect::<Option<Box<[_]>>>(),
            _ => None,
        };
        match regs {
            Some(regs) => Some(InOut(regs)),
            None => reader.expected("a vector of registers", name, &operand, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.braces(&self.0, |out, reg| out.reg(*reg));
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        self.0.iter().for_each(|reg| visitor.reg(Access::ReadWrite, *reg));
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        self.0.iter_mut().for_each(|reg| visitor.reg(Access::ReadWrite, reg));
    }
}

fn visit_address(address: &Address, visitor: &mut dyn Visitor) {
    match &address.base {
        AddressBase::Reg(reg) => visitor.reg(Access::Read, *reg),
        AddressBase::Symbol(symbol) => visitor.symbol(symbol),
        AddressBase::Absolute => {}
    }
}

impl Arg for Address {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Address(address), _) => Some(address),
            (other, span) => reader.expected("an address in brackets", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.address(self);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_address(self, visitor);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.address(self);
    }
}

impl Arg for TensorAddress {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Tensor(address), _) => Some(address),
            (other, span) => {
                reader.expected("an address with coordinates, `[base, {…}]`", name, &other, span)
            }
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.text("[");
        out.address_inner(&self.base);
        for srcs in &self.coordinates {
            out.text(", ");
            print_srcs(srcs, out);
        }
        out.text("]");
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_address(&self.base, visitor);
        self.coordinates.iter().for_each(|srcs| srcs.visit(visitor));
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.address(&mut self.base);
        self.coordinates.iter_mut().for_each(|srcs| srcs.visit_mut(visitor));
    }
}

impl Arg for LabelId {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        match reader.operand(name)? {
            (Operand::Unknown(_), span) => Some(reader.label(span)),
            (other, span) => reader.expected("a label", name, &other, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.separator();
        out.label(*self);
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.label(*self);
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        visitor.label(self);
    }
}

impl Arg for Unified {
    fn read(reader: &mut InstrReader<'_>, _name: &'static str) -> Option<Self> {
        let there = reader.peek() == Some(&Operand::Unified);
        if there {
            reader.next_operand();
        }
        Some(Unified(there))
    }

    fn print(&self, out: &mut Writer<'_>) {
        if self.0 {
            out.text(".unified");
        }
    }

    fn visit(&self, _visitor: &mut dyn Visitor) {}

    fn visit_mut(&mut self, _visitor: &mut dyn VisitorMut) {}
}
