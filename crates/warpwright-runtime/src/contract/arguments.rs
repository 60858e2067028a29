//! A kernel's arguments, by name.

use super::error::{Kind, Violation};
use super::{Contract, ContractError};
use std::fmt;
use warpwright_dsl::Role;
use warpwright_ptx::ir::Type;

/// A range of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Type of the elements.
    pub(crate) dtype: Type,
    /// Address of the first byte.
    pub(crate) address: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// The device, by its number in this process.
    pub(crate) device: u64,
}

/// A number of up to eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// Its type.
    pub(crate) ty: Type,
    /// Its bytes, little-endian, then zeros.
    pub(crate) bytes: [u8; 8],
}

impl Number {
    /// A number from its bytes, as many as the type has. At most eight count.
    pub(crate) fn new(ty: Type, value: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        Number { ty, bytes }
    }

    /// The integer; `None` for a float. Bytes beyond the type's do not count.
    pub(crate) fn whole(self) -> Option<i128> {
        let wide = u64::from_le_bytes(self.bytes);
        Some(match self.ty {
            Type::U8 | Type::B8 => (wide as u8).into(),
            Type::U16 | Type::B16 => (wide as u16).into(),
            Type::U32 | Type::B32 => (wide as u32).into(),
            Type::U64 | Type::B64 => wide.into(),
            Type::S8 => (wide as i8).into(),
            Type::S16 => (wide as i16).into(),
            Type::S32 => (wide as i32).into(),
            Type::S64 => (wide as i64).into(),
            _ => return None,
        })
    }

    /// A count as a number of that type, if it is an integer type that holds it.
    fn from_count(ty: Type, count: u64) -> Option<Self> {
        let number = Number { ty, bytes: count.to_le_bytes() };
        (number.whole() == Some(count.into())).then_some(number)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.bytes;
        match (self.whole(), self.ty) {
            (Some(whole), _) => whole.fmt(f),
            (None, Type::F32) => f32::from_le_bytes([a, b, c, d]).fmt(f),
            (None, Type::F64) => f64::from_le_bytes(self.bytes).fmt(f),
            (None, Type::F16) => half::f16::from_le_bytes([a, b]).fmt(f),
            (None, Type::BF16) => half::bf16::from_le_bytes([a, b]).fmt(f),
            (None, _) => write!(f, "{:#x}", u64::from_le_bytes(self.bytes)),
        }
    }
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// An address.
    Address(u64),
    /// A number.
    Number(Number),
    /// A structure.
    Bytes(Box<[u8]>),
}

impl Param {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Param::Address(_) => size_of::<u64>(),
            Param::Number(number) => number.ty.bytes() as usize,
            Param::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The value of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Nothing,
    Buffer(Span),
    Number(Number),
}

/// The arguments that a kernel has been given so far.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// Indexed by argument.
    pub(super) given: Vec<Argument>,
    /// Indexed by the contract's list of numbers that are not arguments.
    pub(super) dims: Vec<Option<u64>>,
}

impl Contract {
    /// No arguments yet.
    pub(crate) fn arguments(&self) -> Arguments {
        Arguments { given: vec![Argument::Nothing; self.args.len()], dims: vec![None; self.dims.len()] }
    }

    /// Sets an argument.
    pub(crate) fn give(&self, to: &mut Arguments, name: &str, given: Argument) -> Result<(), ContractError> {
        let Some(at) = self.args.iter().position(|arg| arg.name == name) else {
            return Err(self.unknown(name));
        };
        let Some(slot @ Argument::Nothing) = to.given.get_mut(at) else {
            return Err(self.refuse(Violation::Twice { argument: self.args[at].name }));
        };
        *slot = given;
        Ok(())
    }

    /// Sets a number that lengths and the grid depend on, and the scalar argument of that name if there is one.
    pub(crate) fn give_dim(&self, to: &mut Arguments, name: &str, count: u64) -> Result<(), ContractError> {
        let dim = self.dims.iter().position(|dim| *dim == name);
        // A number may have the name of the buffer whose length it is.
        if let (None, Some(arg)) = (dim, self.args.iter().find(|arg| arg.name == name)) {
            if arg.role != Role::Scalar {
                let (given, needed) = (Kind::Number(Type::U64), Kind::Buffer(arg.dtype));
                return Err(self.refuse(Violation::Kind { argument: arg.name, given, needed }));
            }
            let number = Number::from_count(arg.dtype, count).ok_or_else(|| {
                let (argument, needed) = (arg.name, arg.dtype);
                self.refuse(Violation::Count { argument, given: count.to_string(), needed })
            })?;
            return self.give(to, name, Argument::Number(number));
        }
        let Some(at) = dim else { return Err(self.unknown(name)) };
        if to.dims[at].replace(count).is_some() {
            return Err(self.refuse(Violation::Twice { argument: self.dims[at] }));
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> ContractError {
        let known = self.args.iter().map(|arg| arg.name).chain(self.dims.iter().copied()).collect();
        self.refuse(Violation::Unknown { argument: name.to_owned(), known })
    }

    pub(super) fn refuse(&self, violation: Violation) -> ContractError {
        ContractError::new(&self.kernel, violation)
    }
}
