//! Operands: registers, immediates, symbols, addresses.

use super::modifier::Component;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A virtual register of a function: an index into the ranges that the function declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// A label of a function: an index into [`Function::labels`](super::Function::labels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A variable of a function (parameter or local): an index into
/// [`Function::variables`](super::Function::variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// The name of a module-scope symbol. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(text.into())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A symbol with storage or code: a local variable, or a module-scope variable or function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A parameter or local variable of the function.
    Local(VarId),
    /// A variable or function of the module, by name.
    Global(Name),
}

/// An immediate value. Floating-point values are stored as bits, so NaNs keep their payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Imm {
    /// An integer that fits in a signed 64-bit value.
    Int(i64),
    /// An unsigned integer of 2⁶³ or more.
    UInt(u64),
    /// Bits of an `f32` (`0f…`).
    F32(u32),
    /// Bits of an `f64` (`0d…`, and decimal floating-point literals).
    F64(u64),
}

impl Imm {
    /// The 64 bits of an integer immediate (two's complement); `None` for a floating-point one.
    pub fn bits(self) -> Option<u64> {
        match self {
            Imm::Int(v) => Some(v as u64),
            Imm::UInt(v) => Some(v),
            Imm::F32(_) | Imm::F64(_) => None,
        }
    }

    /// The value of a floating-point immediate; `None` for an integer one.
    pub fn float(self) -> Option<f64> {
        match self {
            Imm::F32(bits) => Some(f32::from_bits(bits).into()),
            Imm::F64(bits) => Some(f64::from_bits(bits)),
            Imm::Int(_) | Imm::UInt(_) => None,
        }
    }

    /// Whether it is written as a floating-point number.
    pub fn is_float(self) -> bool {
        matches!(self, Imm::F32(_) | Imm::F64(_))
    }
}

/// A source operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Src {
    /// A register.
    Reg(Reg),
    /// A negated predicate register, `!%p1`.
    Not(Reg),
    /// An integer register and a constant that is added to it, `%r1+4`. The constant is not zero.
    Sum(Reg, i64),
    /// An immediate.
    Imm(Imm),
    /// A special register, or one component of it.
    Special(Special),
    /// The address of a symbol. Boxed, since it is rare and the largest variant.
    Symbol(Box<SymbolAddress>),
    /// The address of an element of an array, by a subscript in a register.
    Element(Box<Element>),
    /// `_` in a vector: an element that a 256-bit store skips.
    Sink,
}

/// The address of a symbol, with a constant offset in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolAddress {
    /// The symbol.
    pub symbol: Symbol,
    /// The offset added to its address.
    pub offset: i64,
}

/// An element of an array by a subscript in a register, `array[%r1+4]`. Subscripts count scalars, whatever the array's
/// dimensions are. They are computed in 32 bits, as `ptxas` does it: the sum and its product with the scalar's bytes wrap,
/// and so does the address that they are added to, but that in global memory has 64 bits, to which no sign extends them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// The array.
    pub array: Symbol,
    /// The register: the low half of one of 64 bits, a narrower one extended as its type has it.
    pub index: Reg,
    /// Scalars that are added to the register.
    pub offset: i64,
    /// Bytes of a scalar of the array.
    pub scalar: u32,
}

impl From<SymbolAddress> for Src {
    fn from(address: SymbolAddress) -> Self {
        Src::Symbol(Box::new(address))
    }
}

impl From<Symbol> for Src {
    fn from(symbol: Symbol) -> Self {
        SymbolAddress { symbol, offset: 0 }.into()
    }
}

impl From<Reg> for Src {
    fn from(reg: Reg) -> Self {
        Src::Reg(reg)
    }
}

impl From<Imm> for Src {
    fn from(imm: Imm) -> Self {
        Src::Imm(imm)
    }
}

impl Src {
    /// The register, if it is one (negated or not).
    pub fn reg(&self) -> Option<Reg> {
        match *self {
            Src::Reg(reg) | Src::Not(reg) => Some(reg),
            _ => None,
        }
    }

    /// The immediate, if it is one.
    pub fn imm(&self) -> Option<Imm> {
        match *self {
            Src::Imm(imm) => Some(imm),
            _ => None,
        }
    }
}

/// A destination register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dst(pub Reg);

/// A destination register, or `_` if the result is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DstOrSink(pub Option<Reg>);

/// One or two destinations, `d` or `d|p`; either may be `_` in the two-part form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DstPair {
    /// The first destination.
    pub first: Option<Reg>,
    /// The second destination: the outer option is `None` without `|`, the inner one for `_`.
    pub second: Option<Option<Reg>>,
}

/// A source that must be a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegSrc(pub Reg);

/// Registers written together: one, or a `{ }` vector in which `_` discards an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dsts {
    /// One register.
    One(Reg),
    /// `_`: the result is discarded.
    Sink,
    /// A vector of registers.
    Many(Box<[Option<Reg>]>),
}

impl Dsts {
    /// The registers, `None` for `_`.
    pub fn as_slice(&self) -> DstsIter<'_> {
        match self {
            Dsts::One(reg) => DstsIter { one: Some(*reg), many: [].iter() },
            Dsts::Sink => DstsIter { one: None, many: [None].iter() },
            Dsts::Many(regs) => DstsIter { one: None, many: regs.iter() },
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Dsts::One(_) | Dsts::Sink => 1,
            Dsts::Many(regs) => regs.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Iterator over the elements of [`Dsts`].
pub struct DstsIter<'a> {
    one: Option<Reg>,
    many: std::slice::Iter<'a, Option<Reg>>,
}

impl Iterator for DstsIter<'_> {
    type Item = Option<Reg>;
    fn next(&mut self) -> Option<Option<Reg>> {
        self.one.take().map(Some).or_else(|| self.many.next().copied())
    }
}

/// Values read together: one, or a `{ }` vector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Srcs {
    /// One value.
    One(Src),
    /// A vector of values.
    Many(Box<[Src]>),
}

impl Srcs {
    /// The values.
    pub fn as_slice(&self) -> &[Src] {
        match self {
            Srcs::One(src) => std::slice::from_ref(src),
            Srcs::Many(srcs) => srcs,
        }
    }
}

/// Registers that are read and written: accumulators of asynchronous products.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InOut(pub Box<[Reg]>);

/// The base of an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AddressBase {
    /// A register that holds an address.
    Reg(Reg),
    /// A symbol.
    Symbol(Symbol),
    /// An element of an array, which stands without brackets around it.
    Element(Box<Element>),
    /// No base: the offset is the address.
    Absolute,
}

impl AddressBase {
    /// The symbol that it names.
    pub fn symbol(&self) -> Option<&Symbol> {
        match self {
            AddressBase::Symbol(symbol) => Some(symbol),
            AddressBase::Element(element) => Some(&element.array),
            AddressBase::Reg(_) | AddressBase::Absolute => None,
        }
    }
}

/// `[base + offset]`, the offset in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The base that the offset is added to.
    pub base: AddressBase,
    /// Constant offset in bytes.
    pub offset: i64,
}

impl Address {
    /// `[reg + offset]`.
    pub fn reg(reg: Reg, offset: i64) -> Self {
        Address { base: AddressBase::Reg(reg), offset }
    }

    /// `[symbol + offset]`.
    pub fn symbol(symbol: Symbol, offset: i64) -> Self {
        Address { base: AddressBase::Symbol(symbol), offset }
    }
}

/// Whether `.unified` follows an address, for variables with that attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unified(pub bool);

/// `[base, {c0, c1, …}]`: a tensor map (or texture) and coordinates, with further operands in the brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorAddress {
    /// The address of the tensor map or texture.
    pub base: Address,
    /// The further operands in the brackets: vectors of coordinates and offsets.
    pub coordinates: Vec<Srcs>,
}

/// A special register, or one component of one that is a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Special {
    /// The register.
    pub register: super::modifier::SpecialRegister,
    /// The component, for `%tid` and the other vectors.
    pub component: Option<Component>,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Whether the guard holds if the predicate is false.
    pub reg: Reg,
    /// Executed where the predicate is false.
    pub negated: bool,
}
