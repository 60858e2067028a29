//! What the compiler knows of an instruction: an operation on the rows of an [`Inst`](crate::machine::Inst).
//!
//! A handler says beside its lane operation which of these it is; one that says nothing is left to the interpreter.

use crate::num::convert;
use crate::num::exact::Direction;
use crate::num::half::PLAIN;
use warpwright_ptx::ir::Scope;
use warpwright_ptx::op::atomic::AtomicOp;
use warpwright_ptx::op::warp::ShuffleMode;

/// The values that the lanes of a row hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    U16,
    S16,
    U32,
    S32,
    F32,
    U64,
    S64,
    F64,
}

impl Lane {
    /// Whether its rows have 64 bits a lane.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Lane::U64 | Lane::S64 | Lane::F64)
    }

    /// Whether its rows have zeros above 16 bits.
    pub(crate) const fn is_half(self) -> bool {
        matches!(self, Lane::U16 | Lane::S16)
    }
}

/// `d = f(a, b)`, where `c` is added to some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    /// `a · b + c`.
    MulAdd,
    And,
    Or,
    Xor,
    Min,
    Max,
    /// By the words of `b`; nothing is left of the value, or its sign, where it is shifted by all bits or more.
    ShiftLeft,
    ShiftRight,
}

/// `d = f(a, b)` of `f32`, every NaN the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// `a · b + c`, rounded once.
    MulAdd,
}

/// What is done with numbers of `f64`. Where an operand is a NaN, so is the result: [`num::float`](crate::num::float) says
/// which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Double {
    Add,
    Sub,
    Mul,
    /// `a · b + c`, rounded once.
    MulAdd,
    Div,
    Root,
    Reciprocal,
    /// The number with the other sign, or without one.
    Negate,
    Absolute,
}

impl Double {
    /// How many operands it reads.
    pub(super) const fn operands(self) -> usize {
        match self {
            Double::MulAdd => 3,
            Double::Add | Double::Sub | Double::Mul | Double::Div => 2,
            Double::Root | Double::Reciprocal | Double::Negate | Double::Absolute => 1,
        }
    }
}

/// How results of arithmetic are made from exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modifiers {
    /// To the nearest number, towards zero, up or down.
    pub(super) direction: Direction,
    /// Subnormal numbers count as zeros, and results become them.
    pub(super) ftz: bool,
    /// The result is limited to 0 and 1.
    pub(super) sat: bool,
}

/// A relation between numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    /// Less or greater.
    Unequal,
    Less,
    LessOrEqual,
    /// Both are numbers.
    Ordered,
}

/// How predicates are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
    /// The complement of `a`.
    Not,
}

/// What an instruction does with the rows `d`, `a`, `b` and `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Binary(Binary, Lane),
    Arithmetic(Arithmetic, Modifiers),
    Double(Double, Direction),
    /// The product of twice the width; `true`: plus `c`.
    Wide(Lane, bool),
    /// The high half of the product of words.
    MulHigh(Lane),
    Not(Lane),
    Copy(Lane),
    /// `a`, `b` or `c`, by a table of their bits in the instruction's constant.
    Lop3,
    /// `a` where the predicate `c` holds, else `b`.
    Select(Lane),
    /// The lowest bits of words, of which there are 8, 16 or 32, with their sign or zeros above, in 32 bits or 64.
    Extend {
        bits: u32,
        signed: bool,
        wide: bool,
    },
    /// The low words of a row of 64 bits.
    LowHalf,
    /// `a` is the low half of the word, `b` the high one.
    PackHalves,
    /// The same of a pair of words.
    PackWords,
    /// The low half of `a` goes to `d`, the high one to `b`, where they are rows: of words, or of pairs of them.
    SplitHalves,
    SplitPair,
    /// The bits of `a`, as many as the low byte of `c` says, from that on which the low byte of `b` says.
    Field(Lane),
    /// The words `b` and `a` are shifted as one of 64 bits, by `c`: modulo 32, or by 32 at most.
    Funnel {
        left: bool,
        wrap: bool,
    },
    /// Bytes of `a` and `b`, as the nibbles of `c` say, or their signs.
    Permute,
    /// To the nearest `f32`.
    ToFloat(Lane),
    /// Words, or numbers of `f32`, to `f64`, and back to the nearest `f32`.
    ToDouble(Lane),
    FromDouble,
    /// To 32 bits, rounded in a direction; the nearest of them, or zero for a NaN.
    ToInteger(Lane, Direction),
    /// The number whose upper half this is.
    FromBf16,
    /// To and from half precision.
    FromF16,
    ToF16,
    /// Arithmetic on halves, to the nearest number; `true`: on two in a word.
    Half(Arithmetic, bool),
    /// To the nearest `bf16`.
    ToBf16,
    /// Of two numbers, the first of which becomes the high half: to `bf16` or to half precision.
    PackFloats {
        bf16: bool,
    },
    /// Computed in double precision, as [`approx`](crate::num::approx) does; `true`: without subnormal numbers.
    Exponential(bool),
    RootReciprocal(bool),
    /// The nearest quotient, root and reciprocal.
    Div,
    Root,
    Reciprocal,
    /// The number with the other sign, or without one.
    Negate,
    Absolute,
    /// The number, limited to 0 and 1.
    Saturate,
    /// The lesser or larger number; `nan`: NaN if one is, not if both are.
    Extremum {
        max: bool,
        nan: bool,
    },
    /// The sum of `c` and the products of bytes, which have signs where these are set.
    Dp4a([bool; 2]),
    /// A comparison into the predicates `d` and `x`: see [`compare`](crate::op::compare).
    Compare(Relation, Lane),
    Predicates(Logic),
    /// Lanes read `a` of others, as `b` and `c` say, into `d`. The lower half of the constant is the row of the lanes that
    /// take part, the upper half that of a predicate: whether there is such a lane.
    Shuffle(ShuffleMode),
    CopyPredicate,
    /// To the instruction `x`.
    Branch,
    ReconvergencePoint,
    /// The access `x` of the code's table.
    Load,
    Store,
    /// Four matrices of 8 × 8 halves go from memory, by the access `b` of the table, to rows of the transfer `x`.
    LoadMatrices {
        transposed: bool,
    },
    /// The product `x` of the table, of fragments of `bf16` or of halves, with sums in `f32`.
    MultiplyFragments {
        bf16: bool,
    },
    /// Memory is combined with `a`, and what it held goes to `d`; `b` is the access. Where it orders nothing and nobody
    /// asks what memory held: the scope.
    Atomic(AtomicOp, Lane, Option<Scope>),
    /// Nothing.
    Nothing,
}

/// An operation without a modifier that changes it.
pub(crate) const fn unless(modified: bool, operation: Operation) -> Option<Operation> {
    if modified { None } else { Some(operation) }
}

/// Arithmetic on `f32` to the nearest number.
pub(crate) const fn nearest(of: Arithmetic, ftz: bool, sat: bool) -> Option<Operation> {
    directed(of, Direction::Nearest, ftz, sat)
}

/// Arithmetic on `f32` in a direction.
pub(crate) const fn directed(
    of: Arithmetic,
    direction: Direction,
    ftz: bool,
    sat: bool,
) -> Option<Operation> {
    match direction {
        Direction::Zero | Direction::Up | Direction::Down if ftz => None,
        Direction::Nearest | Direction::Zero | Direction::Up | Direction::Down => {
            Some(Operation::Arithmetic(of, Modifiers { direction, ftz, sat }))
        }
        _ => None,
    }
}

/// Arithmetic on `f64` in a direction.
pub(crate) const fn double(of: Double, direction: Direction) -> Option<Operation> {
    match direction {
        Direction::Nearest | Direction::Zero | Direction::Up | Direction::Down => {
            Some(Operation::Double(of, direction))
        }
        _ => None,
    }
}

/// Arithmetic on `f64` to the nearest number.
pub(crate) const fn nearest_double(of: Double) -> Option<Operation> {
    Some(Operation::Double(of, Direction::Nearest))
}

/// Arithmetic on halves, one or two in a row.
pub(crate) const fn half(of: Arithmetic, ftz: bool, limit: u8, packed: bool) -> Option<Operation> {
    unless(ftz || limit != PLAIN, Operation::Half(of, packed))
}

/// A field of words.
pub(crate) const fn field(lane: Option<Lane>) -> Option<Operation> {
    match lane {
        Some(lane @ (Lane::U32 | Lane::S32)) => Some(Operation::Field(lane)),
        _ => None,
    }
}

/// A conversion of `f32` to words.
pub(crate) const fn to_integer(lane: Lane, to: u8, ftz: bool) -> Option<Operation> {
    let direction = match to {
        convert::NEAREST => Direction::Nearest,
        convert::ZERO => Direction::Zero,
        convert::DOWN => Direction::Down,
        convert::UP => Direction::Up,
        _ => return None,
    };
    if ftz { None } else { Some(Operation::ToInteger(lane, direction)) }
}

/// A binary operation on integers of up to 64 bits.
pub(crate) const fn binary(of: Binary, lane: Option<Lane>) -> Option<Operation> {
    match lane {
        Some(lane) => Some(Operation::Binary(of, lane)),
        None => None,
    }
}

/// A product of twice the width.
pub(crate) const fn wide(lane: Option<Lane>, adds: bool) -> Option<Operation> {
    match lane {
        Some(lane @ (Lane::U32 | Lane::S32 | Lane::U16 | Lane::S16)) => Some(Operation::Wide(lane, adds)),
        _ => None,
    }
}

/// The high half of a product.
pub(crate) const fn mul_high(lane: Option<Lane>) -> Option<Operation> {
    match lane {
        Some(lane @ (Lane::U32 | Lane::S32)) => Some(Operation::MulHigh(lane)),
        _ => None,
    }
}

/// A complement.
pub(crate) const fn not(lane: Option<Lane>) -> Option<Operation> {
    match lane {
        Some(lane) => Some(Operation::Not(lane)),
        None => None,
    }
}

/// A comparison of integers.
pub(crate) const fn compare(relation: Relation, lane: Option<Lane>) -> Option<Operation> {
    match lane {
        Some(lane) => Some(Operation::Compare(relation, lane)),
        None => None,
    }
}
