//! Operands as written in the text, and their conversion to the typed operands of the IR.

use super::framework::{Access, Visitor, VisitorMut};
use super::read::InstrReader;
use crate::ir::{
    Address, AddressBase, Dst, DstOrSink, DstPair, Dsts, Element, Imm, InOut, LabelId, PartDst, PartSrc, Reg,
    RegSrc, Selector, Span, Special, Src, Srcs, Symbol, SymbolAddress, TensorAddress, Unified,
};
use crate::print::Writer;

/// An operand with resolved names, before it is matched with the instruction's requirements.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// `!` and a register.
    Not(Reg),
    /// A register and a constant that is added to it.
    Sum(Reg, i64),
    /// A register that is negated or has a selector: an operand of a video instruction.
    Part {
        /// The register.
        reg: Reg,
        /// Whether it is negated.
        negated: bool,
        /// The selected bytes or halves.
        selector: Option<Selector>,
    },
    /// A number.
    Imm(Imm),
    /// A special register.
    Special(Special),
    /// A symbol and an offset.
    Symbol(Symbol, i64),
    /// An element of an array, by a subscript in a register.
    Element(Box<Element>),
    /// An undeclared name, by its position in the text: possibly a label.
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
    /// Its description in messages.
    pub fn description(&self) -> &'static str {
        match self {
            Operand::Reg(_) => "a register",
            Operand::Not(_) => "a negated predicate",
            Operand::Sum(..) => "a sum",
            Operand::Part { negated: true, .. } => "a negated register",
            Operand::Part { .. } => "a part of a register",
            Operand::Imm(imm) if imm.is_float() => "a floating-point number",
            Operand::Imm(_) => "a number",
            Operand::Special(_) => "a special register",
            Operand::Symbol(..) => "a symbol",
            Operand::Element(_) => "an element of an array",
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
            Operand::Sum(reg, offset) => Src::Sum(reg, offset),
            Operand::Imm(imm) => Src::Imm(imm),
            Operand::Special(special) => Src::Special(special),
            Operand::Symbol(symbol, offset) => SymbolAddress { symbol, offset }.into(),
            Operand::Element(element) => Src::Element(element),
            other => return Err(other),
        })
    }

    fn into_reg(self) -> Result<Reg, Self> {
        match self {
            Operand::Reg(reg) => Ok(reg),
            other => Err(other),
        }
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
    /// Takes it from the reader; `name` is its name in messages. `None` after a diagnostic.
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self>;

    /// Prints it, preceded by the separator from the previous operand.
    fn print(&self, out: &mut Writer<'_>);

    /// Passes registers, symbols and labels to the visitor.
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

/// An operand of one of two kinds, distinguished by the text: the first kind if the text has the first `Operand`.
macro_rules! either {
    ($name:ident: Operand::$operand:ident => $first:ident($first_ty:ty), else $second:ident($second_ty:ty)) => {
        impl $crate::op::Arg for $name {
            fn read(reader: &mut $crate::op::InstrReader<'_>, name: &'static str) -> Option<Self> {
                match reader.peek() {
                    Some($crate::op::Operand::$operand(_)) => {
                        reader.arg::<$first_ty>(name).map($name::$first)
                    }
                    _ => reader.arg::<$second_ty>(name).map($name::$second),
                }
            }

            fn print(&self, out: &mut $crate::print::Writer<'_>) {
                match self {
                    $name::$first(arg) => arg.print(out),
                    $name::$second(arg) => arg.print(out),
                }
            }

            fn visit(&self, visitor: &mut dyn $crate::op::Visitor) {
                match self {
                    $name::$first(arg) => arg.visit(visitor),
                    $name::$second(arg) => arg.visit(visitor),
                }
            }

            fn visit_mut(&mut self, visitor: &mut dyn $crate::op::VisitorMut) {
                match self {
                    $name::$first(arg) => arg.visit_mut(visitor),
                    $name::$second(arg) => arg.visit_mut(visitor),
                }
            }
        }
    };
}
pub(crate) use either;

/// Operands that contain registers, symbols or labels, and the access to their registers.
trait Parts {
    fn show(&self, access: Access, visitor: &mut dyn Visitor);
    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut);
}

impl Parts for Reg {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        visitor.reg(access, *self);
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        visitor.reg(access, self);
    }
}

impl<P: Parts> Parts for Option<P> {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        self.iter().for_each(|part| part.show(access, visitor));
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        self.iter_mut().for_each(|part| part.show_mut(access, visitor));
    }
}

impl<P: Parts> Parts for [P] {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        self.iter().for_each(|part| part.show(access, visitor));
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        self.iter_mut().for_each(|part| part.show_mut(access, visitor));
    }
}

impl Parts for Element {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        visitor.symbol(&self.array);
        visitor.reg(access, self.index);
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        visitor.symbol(&mut self.array);
        visitor.reg(access, &mut self.index);
    }
}

impl Parts for Src {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        match self {
            Src::Reg(reg) | Src::Not(reg) | Src::Sum(reg, _) => visitor.reg(access, *reg),
            Src::Symbol(address) => visitor.symbol(&address.symbol),
            Src::Element(element) => element.show(access, visitor),
            Src::Special(special) => visitor.special(*special),
            Src::Imm(_) | Src::Sink => {}
        }
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        match self {
            Src::Reg(reg) | Src::Not(reg) | Src::Sum(reg, _) => visitor.reg(access, reg),
            Src::Symbol(address) => visitor.symbol(&mut address.symbol),
            Src::Element(element) => element.show_mut(access, visitor),
            Src::Imm(_) | Src::Special(_) | Src::Sink => {}
        }
    }
}

impl Parts for Dsts {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        self.as_slice().flatten().for_each(|reg| visitor.reg(access, reg));
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        match self {
            Dsts::One(reg) => visitor.reg(access, reg),
            Dsts::Sink => {}
            Dsts::Many(regs) => regs.show_mut(access, visitor),
        }
    }
}

impl Parts for Srcs {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        self.as_slice().show(access, visitor);
    }

    fn show_mut(&mut self, access: Access, visitor: &mut dyn VisitorMut) {
        match self {
            Srcs::One(src) => src.show_mut(access, visitor),
            Srcs::Many(srcs) => srcs.show_mut(access, visitor),
        }
    }
}

impl Parts for Address {
    fn show(&self, access: Access, visitor: &mut dyn Visitor) {
        match &self.base {
            AddressBase::Reg(reg) => visitor.reg(access, *reg),
            AddressBase::Symbol(symbol) => visitor.symbol(symbol),
            AddressBase::Element(element) => element.show(access, visitor),
            AddressBase::Absolute => {}
        }
    }

    fn show_mut(&mut self, _: Access, visitor: &mut dyn VisitorMut) {
        visitor.address(self);
    }
}

/// Declares simple operands: their name in messages, the conversion from the text, the printing, and their parts.
macro_rules! args {
    ($($ty:ty, $what:literal: |$operand:ident| $read:expr,
        |$arg:ident, $out:ident| $print:expr, $access:ident $($part:expr),*;)*) => {
        $(impl Arg for $ty {
            fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
                let ($operand, span) = reader.operand(name)?;
                let read: Result<Self, Operand> = $read;
                read.map_or_else(|other| reader.expected($what, name, &other, span), Some)
            }

            fn print(&self, $out: &mut Writer<'_>) {
                let $arg = self;
                $out.separator();
                $print;
            }

            fn visit(&self, visitor: &mut dyn Visitor) {
                let $arg = self;
                $($part.show(Access::$access, visitor);)*
            }

            fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
                let $arg = self;
                $($part.show_mut(Access::$access, visitor);)*
            }
        })*
    };
}

args! {
    Dst, "a register": |operand| operand.into_reg().map(Dst),
        |arg, out| out.reg(arg.0), Write arg.0;

    DstOrSink, "a register or `_`": |operand| operand.as_dst().map(DstOrSink).ok_or(operand),
        |arg, out| out.reg_or_sink(arg.0), Write arg.0;

    DstPair, "a register, or two as `d|p`":
        |operand| match &operand {
            Operand::Reg(reg) => Some(DstPair { first: Some(*reg), second: None }),
            Operand::Pair(pair) => match (pair.0.as_dst(), pair.1.as_dst()) {
                (Some(first), Some(second)) => Some(DstPair { first, second: Some(second) }),
                _ => None,
            },
            _ => None,
        }
        .ok_or(operand),
        |arg, out| {
            out.reg_or_sink(arg.first);
            if let Some(second) = arg.second {
                out.text("|");
                out.reg_or_sink(second);
            }
        },
        Write arg.first, arg.second;

    RegSrc, "a register": |operand| operand.into_reg().map(RegSrc),
        |arg, out| out.reg(arg.0), Read arg.0;

    PartDst, "a register or a part of one":
        |operand| match operand {
            Operand::Reg(reg) => Ok(reg.into()),
            Operand::Part { reg, negated: false, selector } => Ok(PartDst { reg, selector }),
            other => Err(other),
        },
        |arg, out| {
            out.reg(arg.reg);
            print_selector(arg.selector, out);
        },
        Write arg.reg;

    PartSrc, "a register, a part of one, or a constant":
        |operand| match operand {
            Operand::Part { reg, negated, selector } => Ok(PartSrc { negated, value: Src::Reg(reg), selector }),
            other => other.into_src().map(PartSrc::from),
        },
        |arg, out| {
            out.text(if arg.negated { "-" } else { "" });
            out.src(&arg.value);
            print_selector(arg.selector, out);
        },
        Read arg.value;

    Src, "a register or a constant": |operand| operand.into_src(),
        |arg, out| out.src(arg), Read arg;

    Dsts, "a register or a vector of registers":
        |operand| match &operand {
            Operand::Reg(reg) => Some(Dsts::One(*reg)),
            Operand::Sink => Some(Dsts::Sink),
            Operand::Vector(list) => list.iter().map(Operand::as_dst).collect::<Option<_>>().map(Dsts::Many),
            _ => None,
        }
        .ok_or(operand),
        |arg, out| match arg {
            Dsts::One(reg) => out.reg(*reg),
            Dsts::Sink => out.reg_or_sink(None),
            Dsts::Many(regs) => out.braces(regs, |out, reg| out.reg_or_sink(*reg)),
        },
        Write arg;

    Srcs, "a value or a vector of values": |operand| operand.into_srcs(),
        |arg, out| print_srcs(arg, out), Read arg;

    InOut, "a vector of registers":
        |operand| match &operand {
            Operand::Vector(list) => {
                list.iter().map(|operand| operand.as_dst().flatten()).collect::<Option<_>>().map(InOut)
            }
            _ => None,
        }
        .ok_or(operand),
        |arg, out| out.braces(&arg.0, |out, reg| out.reg(*reg)), ReadWrite arg.0;

    Address, "an address in brackets":
        |operand| match operand {
            Operand::Address(address) => Ok(address),
            other => Err(other),
        },
        |arg, out| out.address(arg), Read arg;

    TensorAddress, "an address with coordinates, `[base, {…}]`":
        |operand| match operand {
            Operand::Tensor(address) => Ok(address),
            other => Err(other),
        },
        |arg, out| {
            out.text("[");
            out.address_inner(&arg.base);
            for srcs in &arg.coordinates {
                out.text(", ");
                print_srcs(srcs, out);
            }
            out.text("]");
        },
        Read arg.base, arg.coordinates;
}

fn print_selector(selector: Option<Selector>, out: &mut Writer<'_>) {
    if let Some(selector) = selector {
        out.text(&selector.to_string());
    }
}

fn print_srcs(srcs: &Srcs, out: &mut Writer<'_>) {
    match srcs {
        Srcs::One(src) => out.src(src),
        Srcs::Many(srcs) => out.braces(srcs, |out, src| out.src(src)),
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
