//! Decoding of operands into rows.

use super::Decoder;
use super::slots::File;
use crate::memory::Address;
use warpwright_ptx::ir::*;

/// The bits of an immediate as a value of a type.
pub(crate) fn immediate(imm: Imm, ty: Type) -> u64 {
    let float = ty.is_float() && ty.kind() == TypeKind::Float;
    let bits = match (imm, ty) {
        (Imm::F64(bits), Type::F32 | Type::TF32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Imm::F32(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Imm::Int(value), Type::F32) if float => u64::from((value as f32).to_bits()),
        (Imm::Int(value), Type::F64) if float => (value as f64).to_bits(),
        (Imm::UInt(value), Type::F32) if float => u64::from((value as f32).to_bits()),
        (Imm::UInt(value), Type::F64) if float => (value as f64).to_bits(),
        (Imm::Int(value), _) => value as u64,
        (Imm::UInt(value), _) => value,
        (Imm::F32(bits), _) => u64::from(bits),
        (Imm::F64(bits), _) if ty.bits() == 32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Imm::F64(bits), _) => bits,
    };
    match ty.bits() {
        bits_of @ ..64 => bits & ((1 << bits_of) - 1),
        _ => bits,
    }
}

/// Rows of a file for the time of one statement, and how many of them the present one has.
#[derive(Default)]
pub(super) struct Temporaries {
    rows: Vec<u32>,
    used: usize,
}

impl Temporaries {
    /// The next statement begins.
    pub(super) fn reset(&mut self) {
        self.used = 0;
    }

    /// A row: one of those that there are, or a new one behind the `count` of the file.
    fn take(&mut self, count: &mut u32) -> u32 {
        if self.used == self.rows.len() {
            self.rows.push(*count);
            *count += 1;
        }
        self.used += 1;
        self.rows[self.used - 1]
    }
}

impl Decoder<'_, '_> {
    /// The file and the row of a register.
    pub(crate) fn register(&self, reg: Reg) -> (File, u32) {
        self.slots.rows[reg.0 as usize]
    }

    /// The row of a register, in the file of its width.
    pub(crate) fn row(&self, reg: Reg) -> u32 {
        self.register(reg).1
    }

    /// The row of a destination.
    pub(crate) fn dst(&self, dst: Dst) -> u32 {
        self.row(dst.0)
    }

    /// The file and the row of a register, or of its sum with the constant that `src` adds to it.
    fn plus_constant(&mut self, reg: Reg, src: &Src) -> (File, u32) {
        let (file, a) = self.register(reg);
        let &Src::Sum(_, offset) = src else { return (file, a) };
        let row = if file == File::Narrow { self.temporary32() } else { self.temporary64() };
        let bits = self.function.register_type(reg).bits();
        crate::op::arith::sum::plus_constant(self, row, a, offset, bits);
        (file, row)
    }

    /// A row with a constant.
    pub(crate) fn constant32(&mut self, value: u32) -> u32 {
        let rows = &mut self.frame.rows.w32;
        *self.constants32.entry(value).or_insert_with(|| {
            *rows += 1;
            self.frame.constants32.push((*rows - 1, value));
            *rows - 1
        })
    }

    /// A row of 64 bits with a constant.
    pub(crate) fn constant64(&mut self, value: u64) -> u32 {
        let rows = &mut self.frame.rows.w64;
        *self.constants64.entry(value).or_insert_with(|| {
            *rows += 1;
            self.frame.constants64.push((*rows - 1, value));
            *rows - 1
        })
    }

    /// A row with the low word of a special register that stays the same while a warp runs.
    pub(crate) fn special(&mut self, special: Special) -> u32 {
        let rows = &mut self.frame.rows.w32;
        *self.specials.entry(special).or_insert_with(|| {
            *rows += 1;
            self.frame.specials.push((*rows - 1, special));
            *rows - 1
        })
    }

    /// A row with the address of a shared variable, which has the rank of the block in it.
    fn shared32(&mut self, address: u32) -> u32 {
        let rows = &mut self.frame.rows.w32;
        *self.shared32.entry(address).or_insert_with(|| {
            *rows += 1;
            self.frame.shared32.push((*rows - 1, address));
            *rows - 1
        })
    }

    /// The same in 64 bits.
    pub(crate) fn shared64(&mut self, address: u64) -> u32 {
        let rows = &mut self.frame.rows.w64;
        *self.shared64.entry(address).or_insert_with(|| {
            *rows += 1;
            self.frame.shared64.push((*rows - 1, address));
            *rows - 1
        })
    }

    /// The first of two rows with a source of 128 bits. What has 64 is extended by zeros, as ptxas does with
    /// negative numbers too.
    pub(crate) fn src128(&mut self, src: &Src, ty: Type) -> u32 {
        match src {
            Src::Reg(reg) if self.register(*reg).0 == File::Double => self.row(*reg),
            Src::Imm(imm) => self.constant128(immediate(*imm, ty)),
            other => {
                let a = self.src64(other, ty);
                let pair = self.constant128(0);
                crate::op::convert::copy64(self, pair, a);
                pair
            }
        }
    }

    fn constant128(&mut self, low: u64) -> u32 {
        let first = self.frame.rows.w64;
        self.frame.rows.w64 += 2;
        self.frame.constants64.extend([(first, low), (first + 1, 0)]);
        first
    }

    /// A predicate operand with a constant.
    pub(crate) fn constant_predicate(&mut self, value: bool) -> u32 {
        let row = *self.false_row.get_or_insert_with(|| {
            self.frame.rows.pred += 1;
            self.frame.constant_predicates.push((self.frame.rows.pred - 1, false));
            self.frame.rows.pred - 1
        });
        row << 1 | u32::from(value)
    }

    /// The predicate row of the carry flag (a row: shift it to make an operand). Calls do not keep the
    /// flag, so that each function has its own.
    pub(crate) fn carry(&mut self) -> u32 {
        *self.carry_row.get_or_insert_with(|| {
            self.frame.rows.pred += 1;
            self.frame.rows.pred - 1
        })
    }

    /// A row of up to 32 bits for the time of one statement.
    pub(crate) fn temporary32(&mut self) -> u32 {
        self.temporaries32.take(&mut self.frame.rows.w32)
    }

    /// A row of 64 bits for the time of one statement.
    pub(crate) fn temporary64(&mut self) -> u32 {
        self.temporaries64.take(&mut self.frame.rows.w64)
    }

    /// A predicate row for the time of one statement (a row: shift it to make an operand).
    pub(crate) fn temporary_predicate(&mut self) -> u32 {
        self.temporaries_predicate.take(&mut self.frame.rows.pred)
    }

    /// The row of a source of up to 32 bits, as a value of `ty`.
    pub(crate) fn src32(&mut self, src: &Src, ty: Type) -> u32 {
        match src {
            Src::Reg(reg) | Src::Sum(reg, _) => match self.plus_constant(*reg, src) {
                (File::Wide | File::Double, row) => {
                    let low = self.temporary32();
                    crate::op::convert::low_half(self, low, row);
                    low
                }
                (_, row) => row,
            },
            Src::Imm(imm) => self.constant32(immediate(*imm, ty) as u32),
            Src::Special(special) => crate::op::special::read32(self, *special),
            Src::Symbol(symbol) => match self.symbol_address(&symbol.symbol, symbol.offset) {
                SymbolValue::Constant(address) => self.constant32(address as u32),
                SymbolValue::Shared(address) => self.shared32(address as u32),
                SymbolValue::Frame(offset) => {
                    let wide = self.temporary64();
                    crate::op::special::frame_address(self, wide, offset, 0);
                    let low = self.temporary32();
                    crate::op::convert::low_half(self, low, wide);
                    low
                }
            },
            Src::Element(element) => {
                let wide = self.element(element);
                let low = self.temporary32();
                crate::op::convert::low_half(self, low, wide);
                low
            }
            Src::Not(_) | Src::Sink => self.constant32(0),
        }
    }

    /// The row of a source of 64 bits, as a value of `ty`.
    pub(crate) fn src64(&mut self, src: &Src, ty: Type) -> u32 {
        match src {
            Src::Reg(reg) | Src::Sum(reg, _) => match self.plus_constant(*reg, src) {
                (File::Narrow, row) => {
                    let wide = self.temporary64();
                    crate::op::convert::widen(self, wide, row);
                    wide
                }
                (_, row) => row,
            },
            Src::Imm(imm) => self.constant64(immediate(*imm, ty)),
            Src::Special(special) => crate::op::special::read64(self, *special),
            Src::Symbol(symbol) => match self.symbol_address(&symbol.symbol, symbol.offset) {
                SymbolValue::Constant(address) => self.constant64(address),
                SymbolValue::Shared(address) => self.shared64(address),
                SymbolValue::Frame(offset) => {
                    let wide = self.temporary64();
                    crate::op::special::frame_address(self, wide, offset, 0);
                    wide
                }
            },
            Src::Element(element) => self.element(element),
            Src::Not(_) | Src::Sink => self.constant64(0),
        }
    }

    /// A predicate source, as an operand.
    pub(crate) fn predicate(&mut self, src: &Src) -> u32 {
        match src {
            Src::Reg(reg) => self.row(*reg) << 1,
            Src::Not(reg) => self.row(*reg) << 1 | 1,
            Src::Imm(imm) => self.constant_predicate(imm.bits().is_some_and(|bits| bits != 0)),
            Src::Sum(..) | Src::Special(_) | Src::Symbol(_) | Src::Element(_) | Src::Sink => {
                self.constant_predicate(false)
            }
        }
    }

    /// What the address of a symbol is, in its own space.
    pub(crate) fn symbol_address(&self, symbol: &Symbol, offset: i64) -> SymbolValue {
        let variable = self.symbols.index.variable(self.function, symbol);
        let is_shared = variable.is_some_and(|variable| variable.space.base() == Space::Shared);
        let of_variable = |address: u64| {
            let address = address.wrapping_add(offset as u64);
            if is_shared { SymbolValue::Shared(address) } else { SymbolValue::Constant(address) }
        };
        match symbol {
            Symbol::Global(name) => of_variable(self.symbols.address(name).map_or(0, |(address, _)| address)),
            Symbol::Local(id) => {
                if let Some(address) = self.symbols.local_address(self.function_number, *id) {
                    return of_variable(address);
                }
                let at = self.variables[id.0 as usize];
                if self.is_kernel_param(*id) {
                    SymbolValue::Constant(at.wrapping_add(offset as u64))
                } else {
                    SymbolValue::Frame(at.wrapping_add(offset as u64))
                }
            }
        }
    }

    /// Whether the variable is a parameter of the kernel.
    pub(crate) fn is_kernel_param(&self, id: VarId) -> bool {
        self.function.kind == FunctionKind::Entry && self.function.params.contains(&Param::Variable(id))
    }

    /// A row with the address of an element of an array, in the array's own space.
    fn element(&mut self, element: &Element) -> u32 {
        let ty = self.function.register_type(element.index);
        let index = self.src32(&Src::Reg(element.index), ty);
        let row = self.temporary64();
        let array = self.symbol_address(&element.array, 0);
        let space = self.symbols.index.variable(self.function, &element.array).map(|array| array.space);
        let wide = space.map(Space::base) == Some(Space::Global);
        crate::op::special::element_address(self, row, (index, ty), (array, wide), element);
        row
    }

    /// An address operand.
    pub(crate) fn address(&mut self, address: &Address_) -> Address {
        match &address.base {
            AddressBase::Reg(reg) => {
                let (file, row) = self.register(*reg);
                Address { row, wide: file != File::Narrow, frame: false, offset: address.offset }
            }
            AddressBase::Element(element) => {
                Address { row: self.element(element), wide: true, frame: false, offset: address.offset }
            }
            AddressBase::Absolute => {
                let row = self.constant64(address.offset as u64);
                Address { row, wide: true, frame: false, offset: 0 }
            }
            AddressBase::Symbol(symbol) => match self.symbol_address(symbol, address.offset) {
                SymbolValue::Constant(address) => {
                    Address { row: self.constant64(address), wide: true, frame: false, offset: 0 }
                }
                SymbolValue::Shared(address) => {
                    Address { row: self.shared64(address), wide: true, frame: false, offset: 0 }
                }
                SymbolValue::Frame(offset) => {
                    Address { row: self.constant64(0), wide: true, frame: true, offset: offset as i64 }
                }
            },
        }
    }
}

/// The address operand of the IR.
type Address_ = warpwright_ptx::ir::Address;

/// The address of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolValue {
    /// Known.
    Constant(u64),
    /// Of a shared variable, in a block of rank 0.
    Shared(u64),
    /// Counted from the frame.
    Frame(u64),
}
