//! Text output of registers, numbers and operands.

use crate::ir::{Address, AddressBase, Element, Function, Imm, LabelId, Reg, Special, Src, Symbol};
use crate::op::Modifier;

/// Column, counted from the indentation, where operands begin.
const OPERAND_COLUMN: usize = 24;

/// Collects text; it knows the function, for the names of registers, labels and variables.
pub struct Writer<'a> {
    pub(super) out: String,
    pub(super) function: Option<&'a Function>,
    /// Where the current instruction's text begins.
    pub(super) start: usize,
    first_operand: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Writer { out: String::with_capacity(bytes), function: None, start: 0, first_operand: true }
    }

    /// Appends text as it is.
    pub fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Begins an instruction's text with its opcode.
    pub fn opcode(&mut self, opcode: &str) {
        self.first_operand = true;
        self.out.push_str(opcode);
    }

    /// Appends a modifier, with its dot.
    pub fn modifier(&mut self, word: &str) {
        self.out.push('.');
        self.out.push_str(word);
    }

    /// Appends the separator between the opcode and the first operand, or between two operands.
    pub fn separator(&mut self) {
        if self.first_operand {
            self.first_operand = false;
            let width = self.out.len() - self.start;
            let spaces = OPERAND_COLUMN.saturating_sub(width).max(1);
            const BLANKS: &str = "                        ";
            self.out.push_str(&BLANKS[..spaces]);
        } else {
            self.out.push_str(", ");
        }
    }

    /// `{a, b, …}`.
    pub fn braces<T>(&mut self, items: &[T], item: impl FnMut(&mut Self, &T)) {
        self.enclosed(['{', '}'], items, item);
    }

    /// `(a, b, …)`.
    pub fn list<T>(&mut self, items: &[T], item: impl FnMut(&mut Self, &T)) {
        self.enclosed(['(', ')'], items, item);
    }

    fn enclosed<T>(&mut self, [open, close]: [char; 2], items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.out.push(open);
        for (i, value) in items.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            item(self, value);
        }
        self.out.push(close);
    }

    /// A register's name.
    pub fn reg(&mut self, reg: Reg) {
        let Some(function) = self.function else {
            self.out.push_str("%?");
            return;
        };
        let range = function.register_range(reg);
        if range.vector.is_some() {
            self.out.push_str(&function.register_name(reg));
            return;
        }
        self.out.push_str(&range.name);
        if range.numbered {
            self.unsigned(u64::from(reg.0 - range.first.0));
        }
    }

    /// The names of registers that a call passes: of a vector register, whose elements follow each other, one name.
    /// `reg` is the register of an item, if it is one; other items are written by `item`.
    pub fn passed<T>(&mut self, items: &[T], reg: impl Fn(&T) -> Option<Reg>, item: impl Fn(&mut Self, &T)) {
        let function = self.function;
        let range = |value: &T| {
            let (reg, function) = (reg(value)?, function?);
            let range = function.register_range(reg);
            range.vector.map(|_| (range, reg.0 - range.first.0))
        };
        let named = |value: &&T| range(value).is_none_or(|(range, at)| at % range.width() == 0);
        let items: Vec<&T> = items.iter().filter(named).collect();
        self.list(&items, |out, value| match range(value) {
            Some((range, at)) => {
                out.out.push_str(&range.name);
                if range.numbered {
                    out.unsigned((at / range.width()).into());
                }
            }
            None => item(out, value),
        });
    }

    /// A register's name, or `_`.
    pub fn reg_or_sink(&mut self, reg: Option<Reg>) {
        match reg {
            Some(reg) => self.reg(reg),
            None => self.out.push('_'),
        }
    }

    /// A label's name.
    pub fn label(&mut self, label: LabelId) {
        match self.function.and_then(|function| function.labels.get(label.0 as usize)) {
            Some(label) => self.out.push_str(&label.name),
            None => self.out.push('?'),
        }
    }

    /// A symbol's name.
    pub fn symbol(&mut self, symbol: &Symbol) {
        match symbol {
            Symbol::Global(name) => self.out.push_str(name),
            Symbol::Local(id) => match self.function.and_then(|f| f.variables.get(id.0 as usize)) {
                Some(variable) => self.out.push_str(&variable.name),
                None => self.out.push('?'),
            },
        }
    }

    /// A source operand.
    pub fn src(&mut self, src: &Src) {
        match src {
            Src::Reg(reg) => self.reg(*reg),
            Src::Not(reg) => {
                self.out.push('!');
                self.reg(*reg);
            }
            Src::Sum(reg, offset) => {
                self.reg(*reg);
                self.offset(*offset);
            }
            Src::Imm(imm) => self.imm(*imm),
            Src::Special(special) => self.special(*special),
            Src::Sink => self.text("_"),
            Src::Symbol(address) => {
                self.symbol(&address.symbol);
                self.offset(address.offset);
            }
            Src::Element(element) => self.element(element),
        }
    }

    /// `array[index+offset]`.
    fn element(&mut self, element: &Element) {
        self.symbol(&element.array);
        self.out.push('[');
        self.reg(element.index);
        self.offset(element.offset);
        self.out.push(']');
    }

    /// A special register, with its component.
    pub fn special(&mut self, special: Special) {
        self.out.push_str(special.register.name());
        if let Some(component) = special.component {
            self.modifier(component.text());
        }
    }

    /// A number.
    pub fn imm(&mut self, imm: Imm) {
        match imm {
            Imm::Int(value) => self.signed(value),
            Imm::UInt(value) => self.unsigned(value),
            Imm::F32(bits) => {
                self.out.push_str("0f");
                self.hex(bits.into(), 8);
            }
            Imm::F64(bits) => {
                self.out.push_str("0d");
                self.hex(bits, 16);
            }
        }
    }

    fn hex(&mut self, value: u64, digits: u32) {
        for i in (0..digits).rev() {
            let digit = (value >> (4 * i)) as usize & 15;
            self.out.push(char::from(b"0123456789ABCDEF"[digit]));
        }
    }

    /// A signed number.
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.out.push('-');
        }
        self.unsigned(value.unsigned_abs());
    }

    /// An unsigned number.
    pub fn unsigned(&mut self, mut value: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        // All are ASCII digits.
        self.out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    }

    /// `+4`, `+-4`, or nothing for zero.
    pub fn offset(&mut self, offset: i64) {
        if offset != 0 {
            self.out.push('+');
            self.signed(offset);
        }
    }

    /// `[base+offset]`.
    pub fn address(&mut self, address: &Address) {
        if let AddressBase::Element(element) = &address.base {
            return self.element(element);
        }
        self.out.push('[');
        self.address_inner(address);
        self.out.push(']');
    }

    /// `base+offset`.
    pub fn address_inner(&mut self, address: &Address) {
        match &address.base {
            AddressBase::Reg(reg) => {
                self.reg(*reg);
                self.offset(address.offset);
            }
            AddressBase::Symbol(symbol) => {
                self.symbol(symbol);
                self.offset(address.offset);
            }
            AddressBase::Element(element) => self.element(element),
            AddressBase::Absolute => self.signed(address.offset),
        }
    }
}
