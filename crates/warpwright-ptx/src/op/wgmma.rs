//! Matrix products of a warpgroup on shared memory.
//!
//! The accumulators are in flight from the instruction that names them until a wait: they are both read and written
//! ([`InOut`]).

use super::{Convergence, InstrReader, Modifier, Word, instruction, modifiers};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::ModifierField;
use crate::print::Writer;

/// Shape of the product: 64 rows, `n` columns, `k` products per element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WgmmaShape {
    n: u16,
    k: u16,
}

impl WgmmaShape {
    /// The depths that some type has.
    const DEPTHS: [u16; 5] = [8, 16, 32, 64, 256];

    /// 64 × `n` × `k`, if the instruction set has it.
    pub fn new(n: u16, k: u16) -> Option<Self> {
        let fine = n.is_multiple_of(8) && (8..=256).contains(&n) && Self::DEPTHS.contains(&k);
        fine.then_some(WgmmaShape { n, k })
    }

    /// The number of columns.
    pub const fn n(self) -> u16 {
        self.n
    }

    /// The depth.
    pub const fn k(self) -> u16 {
        self.k
    }

    fn from_text(text: &str) -> Option<Self> {
        let (n, k) = text.strip_prefix("m64n")?.split_once('k')?;
        let shape = WgmmaShape::new(n.parse().ok()?, k.parse().ok()?)?;
        (shape.to_string() == text).then_some(shape)
    }
}

impl std::fmt::Display for WgmmaShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "m64n{}k{}", self.n, self.k)
    }
}

/// A shape as the reader takes it, without the word that it was written as.
#[derive(Clone, Copy)]
struct ShapeWord(WgmmaShape);

impl Modifier for ShapeWord {
    const EXPECTED: &'static [&'static str] = &["m64n8k16", "m64n16k16", "m64n256k16"];

    fn from_word(word: Word<'_>) -> Option<Self> {
        WgmmaShape::from_text(word.text()).map(ShapeWord)
    }

    fn text(self) -> &'static str {
        "m64nNkK"
    }
}

impl ModifierField for WgmmaShape {
    fn read(reader: &mut InstrReader<'_>) -> Option<Self> {
        reader.modifier::<ShapeWord>().map(|word| word.0)
    }

    fn print(&self, out: &mut Writer<'_>) {
        out.modifier(&self.to_string());
    }
}

modifiers! {
    /// Product of single bits.
    pub enum BitProduct {
        /// Conjunction.
        And = "and",
    }
}

/// The parts that the dense and the sparse product share.
struct Product<'a> {
    shape: WgmmaShape,
    d_type: Type,
    a_type: Type,
    b_type: Type,
    satfinite: bool,
    sparse: bool,
    d: &'a InOut,
    a: &'a Srcs,
    b: &'a Src,
    scale_d: &'a Src,
    scales: [Option<&'a Src>; 2],
    transpositions: [Option<&'a Src>; 2],
}

macro_rules! product {
    ($op:ident, sparse: $sparse:literal) => {
        Product {
            shape: $op.shape,
            d_type: $op.d_type,
            a_type: $op.a_type,
            b_type: $op.b_type,
            satfinite: $op.satfinite,
            sparse: $sparse,
            d: &$op.d,
            a: &$op.a,
            b: &$op.b,
            scale_d: &$op.scale_d,
            scales: [$op.scale_a.as_ref(), $op.scale_b.as_ref()],
            transpositions: [$op.trans_a.as_ref(), $op.trans_b.as_ref()],
        }
    };
}

instruction! {
    /// Orders the warpgroup's accesses to registers and shared memory before its next products.
    pub struct WgmmaFence("wgmma.fence.sync.aligned") {}() -> nothing,
        needs: |_, needs| wgmma_needs(needs, "`wgmma.fence`"),
        convergence: |_| Convergence::Warpgroup,
        check: |_, _| {};

    /// Closes the group of the products started so far.
    pub struct WgmmaCommitGroup("wgmma.commit_group.sync.aligned") {}() -> nothing,
        needs: |_, needs| wgmma_needs(needs, "`wgmma.commit_group`"),
        convergence: |_| Convergence::Warpgroup,
        check: |_, _| {};

    /// Waits until at most `n` groups of products are in flight.
    pub struct WgmmaWaitGroup("wgmma.wait_group.sync.aligned") {}(n: Src) -> nothing,
        needs: |_, needs| wgmma_needs(needs, "`wgmma.wait_group`"),
        convergence: |_| Convergence::Warpgroup,
        check: |op, check| {
            super::async_copy::group_count(check, &op.n);
            check.imm_range("n", &op.n, 0..=i64::from(i32::MAX));
        };

    /// Starts `d = a·b + d`, or `d = a·b` if `scale_d` is false. `a` is four registers, or the descriptor of a matrix
    /// in shared memory, like `b`.
    pub struct WgmmaMmaAsync("wgmma.mma_async.sync.aligned") {
        shape: WgmmaShape,
        d_type: Type,
        a_type: Type,
        b_type: Type,
        satfinite: bool = "satfinite",
        bit_product: Option<BitProduct>,
        popc: bool = "popc",
    }(
        d: InOut,
        a: Srcs,
        b: Src,
        scale_d: Src,
        scale_a: Option<Src> = takes_scales(a_type),
        scale_b: Option<Src> = takes_scales(a_type),
        trans_a: Option<Src> = (takes_transposition(a_type) && matches!(a, Srcs::One(_))),
        trans_b: Option<Src> = takes_transposition(a_type),
    ) -> unknown,
        needs: |op, needs| {
            wgmma_needs(needs, "`wgmma.mma_async`");
            mixed_integers_need(needs, op.a_type, op.b_type);
        },
        convergence: |_| Convergence::Warpgroup,
        check: |op, check| {
            product!(op, sparse: false).check(check);
            let bits = op.a_type == Type::B1;
            check.combination(
                op.bit_product.is_some() == bits && op.popc == bits,
                "`.and.popc` stands with products of `.b1`, and only there",
            );
        };

    /// The same with a sparse `a`: `metadata` says which two of each four elements are zero and not stored.
    pub struct WgmmaMmaAsyncSp("wgmma.mma_async.sp.sync.aligned") {
        shape: WgmmaShape,
        d_type: Type,
        a_type: Type,
        b_type: Type,
        satfinite: bool = "satfinite",
    }(
        d: InOut,
        a: Srcs,
        b: Src,
        metadata: Src,
        selector: Src,
        scale_d: Src,
        scale_a: Option<Src> = takes_scales(a_type),
        scale_b: Option<Src> = takes_scales(a_type),
        trans_a: Option<Src> = (takes_transposition(a_type) && matches!(a, Srcs::One(_))),
        trans_b: Option<Src> = takes_transposition(a_type),
    ) -> unknown,
        needs: |op, needs| {
            wgmma_needs(needs, "`wgmma.mma_async`");
            mixed_integers_need(needs, op.a_type, op.b_type);
            needs.version("`wgmma.mma_async.sp`", 8, 2);
        },
        convergence: |_| Convergence::Warpgroup,
        check: |op, check| {
            product!(op, sparse: true).check(check);
            if matches!(op.metadata, Src::Imm(_)) {
                check.report(Code::OperandForm, "the metadata must be in a register");
            }
            check.src("metadata", &op.metadata, Type::B32);
            let selectors: &[i64] = match op.a_type {
                Type::F16 | Type::BF16 | Type::TF32 => &[0, 1],
                _ => &[0],
            };
            constant_among(check, "selector", &op.selector, selectors);
        };
}

/// The operands can be negated: floating-point types.
fn takes_scales(a_type: Type) -> bool {
    a_type.is_float()
}

/// The matrices in shared memory can be transposed: types of 16 bits.
fn takes_transposition(a_type: Type) -> bool {
    matches!(a_type, Type::F16 | Type::BF16)
}

impl Product<'_> {
    fn is_integer(&self) -> bool {
        matches!(self.a_type, Type::S8 | Type::U8)
    }

    fn check(&self, check: &mut Check<'_>) {
        self.check_types(check);
        self.check_registers(check);
        if let Some(reg) = self.scale_d.reg() {
            check.reg("scale_d", reg, Type::Pred);
        } else {
            constant_among(check, "scale_d", self.scale_d, &[0, 1]);
        }
        for (name, scale) in ["scale_a", "scale_b"].into_iter().zip(self.scales) {
            if let Some(scale) = scale {
                constant_among(check, name, scale, &[-1, 1]);
            }
        }
        for (name, transposition) in ["trans_a", "trans_b"].into_iter().zip(self.transpositions) {
            if let Some(transposition) = transposition {
                constant_among(check, name, transposition, &[0, 1]);
            }
        }
    }

    fn check_types(&self, check: &mut Check<'_>) {
        use Type::*;
        let (b_types, d_types, depth): (&[Type], &[Type], u16) = match self.a_type {
            F16 => (&[F16], &[F16, F32], 16),
            BF16 => (&[BF16], &[F32], 16),
            TF32 => (&[TF32], &[F32], 8),
            E4M3 | E5M2 => (&[E4M3, E5M2], &[F16, F32], 32),
            S8 | U8 => (&[S8, U8], &[S32], 32),
            B1 if !self.sparse => (&[B1], &[S32], 256),
            _ => {
                check.type_among(self.a_type, &[F16, BF16, TF32, E4M3, E5M2, S8, U8, B1]);
                return;
            }
        };
        check.type_among(self.b_type, b_types);
        check.type_among(self.d_type, d_types);
        let depth = if self.sparse { 2 * depth } else { depth };
        if self.shape.k != depth {
            let message = format!("`{}` products are {depth} deep, not {}", self.a_type, self.shape.k);
            check.report(Code::ModifierCombination, message);
        }
        let integer = self.is_integer() || self.a_type == B1;
        check.combination(
            !integer || self.shape.n.is_multiple_of(16) || matches!(self.shape.n, 8 | 24),
            "integer products have 8, 24 or a multiple of 16 columns",
        );
        check.combination(
            !self.satfinite || self.is_integer(),
            "`.satfinite` goes with products of `.s8` and `.u8`",
        );
    }

    fn check_registers(&self, check: &mut Check<'_>) {
        // Of 64 × n elements, 128 threads hold n / 2 each; two of 16 bits share a register.
        let (ty, count) = match self.d_type {
            Type::F16 => (Type::F16X2, self.shape.n / 4),
            ty => (ty, self.shape.n / 2),
        };
        if self.d.0.len() != usize::from(count) {
            let message = format!("the accumulators must be {count} registers, not {}", self.d.0.len());
            check.report(Code::VectorShape, message);
        }
        for &reg in &self.d.0 {
            check.reg("d", reg, ty);
        }
        match self.a {
            Srcs::One(descriptor) => check.src("a", descriptor, Type::U64),
            Srcs::Many(regs) => {
                if regs.len() != 4 {
                    let message = format!("the fragment `a` must be 4 registers, not {}", regs.len());
                    check.report(Code::VectorShape, message);
                }
                let integer = self.is_integer() || self.a_type == Type::B1;
                for src in regs {
                    check.src("a", src, if integer { Type::B32 } else { Type::F16X2 });
                }
            }
        }
        check.src("b", self.b, Type::U64);
    }
}

/// The operand must be one of a few constants.
fn constant_among(check: &mut Check<'_>, name: &str, src: &Src, allowed: &[i64]) {
    if !matches!(src, Src::Imm(Imm::Int(value)) if allowed.contains(value)) {
        let values = allowed.iter().map(i64::to_string).collect::<Vec<_>>().join(" or ");
        let message = format!("operand `{name}` must be the constant {values}");
        check.report(Code::ImmediateRange, message);
    }
}

fn wgmma_needs(needs: &mut Needs, feature: Feature) {
    needs.targets(feature, (8, 0), Requirement::specific(&[90]));
}

/// What factors of `.s8` and `.u8` in one product need.
fn mixed_integers_need(needs: &mut Needs, a: Type, b: Type) {
    if matches!((a, b), (Type::S8, Type::U8) | (Type::U8, Type::S8)) {
        needs.version("`wgmma.mma_async` of `.s8` and `.u8`", 8, 4);
    }
}
