//! `mma`, dense and sparse, with and without block scales.

use super::fragment::{Fragment, Fragments, MmaShape};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::{Convergence, instruction, modifiers};

modifiers! {
    /// How floating-point factors of up to eight bits are stored and scaled.
    pub enum MmaKind {
        /// Eight bits for each element, no scales.
        F8F6F4 = "kind::f8f6f4",
        /// Eight bits for each element, one scale for 32.
        MxF8F6F4 = "kind::mxf8f6f4",
        /// Four bits for each element, one scale for 32.
        MxF4 = "kind::mxf4",
        /// Four bits for each element, one scale for 16 or 32.
        MxF4NvF4 = "kind::mxf4nvf4",
    }

    /// Number of scales for a row of `A` and for a column of `B`.
    pub enum ScaleVector {
        /// One.
        X1 = "scale_vec::1X",
        /// Two.
        X2 = "scale_vec::2X",
        /// Four.
        X4 = "scale_vec::4X",
    }

    /// The operation that replaces the product of single bits.
    pub enum BitOp {
        /// Exclusive or.
        Xor = "xor",
        /// Conjunction.
        And = "and",
    }
}

instruction! {
    /// `d = a · b + c` by the whole warp.
    pub struct Mma("mma.sync.aligned") {
        shape: MmaShape,
        a_layout: Layout,
        b_layout: Layout,
        kind: Option<MmaKind>,
        block_scale: bool = "block_scale",
        scale_vec: Option<ScaleVector>,
        satfinite: bool = "satfinite",
        d_type: Type,
        a_type: Type,
        b_type: Type,
        c_type: Type,
        scale_type: Option<Type>,
        rounding: Option<Rounding>,
        bit_op: Option<BitOp>,
        popc: bool = "popc",
    }(
        d: Dsts,
        a: Srcs,
        b: Srcs,
        c: Srcs,
        scale_a: Option<Srcs>,
        selector_a: Option<Srcs>,
        scale_b: Option<Srcs>,
        selector_b: Option<Srcs>,
    ) -> unknown,
        needs: |op, needs| {
            op.form().needs(needs);
            needs.both_if(op.bit_op == Some(BitOp::And), "`.and.popc`", (7, 1), 80);
        },
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            let form = op.form();
            let Some(factors) = form.check(check) else { return };
            check.combination(
                matches!(op.rounding, None | Some(Rounding::Rn | Rounding::Rz | Rounding::Rm | Rounding::Rp))
                    && (op.rounding.is_none() || factors == Factors::F64),
                "`.rn`, `.rz`, `.rm` or `.rp` is for `.f64`",
            );
            let bits = factors == Factors::Bit;
            check.combination(
                bits == op.bit_op.is_some() && bits == op.popc,
                "single bits take `.xor.popc` or `.and.popc`, and nothing else does",
            );
            form.check_operands(check, &op.d, &op.a, &op.b, &op.c);
            form.check_scales(
                check,
                [("scale_a", &op.scale_a, &op.selector_a, 2), ("scale_b", &op.scale_b, &op.selector_b, 4)],
            );
        };

    /// `d = a · b + c` by the whole warp, with half of `a` zero and omitted. `e` gives the positions of the elements
    /// of `a`, `f` the lanes that hold it.
    pub struct MmaSp("mma.sp.sync.aligned") {
        shape: MmaShape,
        a_layout: Layout,
        b_layout: Layout,
        satfinite: bool = "satfinite",
        d_type: Type,
        a_type: Type,
        b_type: Type,
        c_type: Type,
    }(d: Dsts, a: Srcs, b: Srcs, c: Srcs, e: RegSrc, f: Src) -> unknown,
        needs: |op, needs| op.form().needs(needs),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            let form = op.form();
            let Some(factors) = form.check(check) else { return };
            form.check_operands(check, &op.d, &op.a, &op.b, &op.c);
            form.check_metadata(check, factors, op.e, &op.f);
        };

    /// The same, with the positions in `e` in order: the form for newer targets.
    pub struct MmaSpOrdered("mma.sp::ordered_metadata.sync.aligned") {
        shape: MmaShape,
        a_layout: Layout,
        b_layout: Layout,
        kind: Option<MmaKind>,
        block_scale: bool = "block_scale",
        scale_vec: Option<ScaleVector>,
        satfinite: bool = "satfinite",
        d_type: Type,
        a_type: Type,
        b_type: Type,
        c_type: Type,
        scale_type: Option<Type>,
    }(
        d: Dsts,
        a: Srcs,
        b: Srcs,
        c: Srcs,
        e: RegSrc,
        f: Src,
        scale_a: Option<Srcs>,
        selector_a: Option<Srcs>,
        scale_b: Option<Srcs>,
        selector_b: Option<Srcs>,
    ) -> unknown,
        needs: |op, needs| op.form().needs(needs),
        convergence: |_| Convergence::Warp,
        check: |op, check| {
            let form = op.form();
            let Some(factors) = form.check(check) else { return };
            form.check_operands(check, &op.d, &op.a, &op.b, &op.c);
            form.check_metadata(check, factors, op.e, &op.f);
            form.check_scales(
                check,
                [("scale_a", &op.scale_a, &op.selector_a, 2), ("scale_b", &op.scale_b, &op.selector_b, 4)],
            );
        };
}

/// Types of the factors that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factors {
    F16,
    BF16,
    TF32,
    F64,
    Int8,
    Int4,
    Bit,
    /// `e4m3` and `e5m2`.
    Fp8,
    /// Formats of six or four bits are among them.
    Narrow,
}

impl Factors {
    fn of(a: Type, b: Type) -> Option<Factors> {
        use Type::*;
        Some(match (a, b) {
            (F16, F16) => Factors::F16,
            (BF16, BF16) => Factors::BF16,
            (TF32, TF32) => Factors::TF32,
            (F64, F64) => Factors::F64,
            (S8 | U8, S8 | U8) => Factors::Int8,
            (S4 | U4, S4 | U4) => Factors::Int4,
            (B1, B1) => Factors::Bit,
            (E4M3 | E5M2, E4M3 | E5M2) => Factors::Fp8,
            (E4M3 | E5M2 | E3M2 | E2M3 | E2M1, E4M3 | E5M2 | E3M2 | E2M3 | E2M1) => Factors::Narrow,
            _ => return None,
        })
    }

    fn is_small_float(self) -> bool {
        matches!(self, Factors::Fp8 | Factors::Narrow)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sparsity {
    Dense,
    Sparse,
    Ordered,
}

/// What the three instructions have in common.
struct Form {
    sparsity: Sparsity,
    shape: MmaShape,
    layouts: (Layout, Layout),
    kind: Option<MmaKind>,
    block_scale: bool,
    scale_vec: Option<ScaleVector>,
    scale_type: Option<Type>,
    satfinite: bool,
    d: Type,
    a: Type,
    b: Type,
    c: Type,
}

impl Form {
    /// First PTX version and first target of the shape with these factors, where it exists.
    fn introduced(&self, factors: Factors) -> Option<((u8, u8), u16)> {
        use Factors::*;
        use MmaShape::*;
        Some(match (self.sparsity, factors, self.shape) {
            (Sparsity::Dense, F16, M8N8K4) => ((6, 4), 70),
            (Sparsity::Dense, F16, M16N8K8) => ((6, 5), 75),
            (Sparsity::Dense, F16, M16N8K16) => ((7, 0), 80),
            (Sparsity::Dense, BF16, M16N8K8 | M16N8K16) => ((7, 0), 80),
            (Sparsity::Dense, TF32, M16N8K4 | M16N8K8) => ((7, 0), 80),
            (Sparsity::Dense, F64, M8N8K4) => ((7, 0), 80),
            (Sparsity::Dense, F64, M16N8K4 | M16N8K8 | M16N8K16) => ((7, 8), 90),
            (Sparsity::Dense, Int8, M8N8K16) => ((6, 5), 75),
            (Sparsity::Dense, Int8, M16N8K16 | M16N8K32) => ((7, 0), 80),
            (Sparsity::Dense, Int4, M8N8K32) => ((6, 5), 75),
            (Sparsity::Dense, Int4, M16N8K32 | M16N8K64) => ((7, 0), 80),
            (Sparsity::Dense, Bit, M8N8K128) => ((7, 0), 75),
            (Sparsity::Dense, Bit, M16N8K128 | M16N8K256) => ((7, 0), 80),
            (Sparsity::Dense, Fp8, M16N8K16) if !self.block_scale => ((8, 7), 89),
            (Sparsity::Dense, Fp8, M16N8K32) => ((8, 4), 89),
            (Sparsity::Dense, Narrow, M16N8K32) => ((8, 7), 120),
            (Sparsity::Dense, Narrow, M16N8K64) if self.packs_four_bits() => ((8, 7), 120),
            (Sparsity::Sparse | Sparsity::Ordered, F16 | BF16, M16N8K16 | M16N8K32) => ((7, 1), 80),
            (Sparsity::Sparse | Sparsity::Ordered, TF32, M16N8K8 | M16N8K16) => ((7, 1), 80),
            (Sparsity::Sparse | Sparsity::Ordered, Int8, M16N8K32 | M16N8K64) => ((7, 1), 80),
            (Sparsity::Sparse | Sparsity::Ordered, Int4, M16N8K64 | M16N8K128) => ((7, 1), 80),
            (Sparsity::Sparse | Sparsity::Ordered, Fp8, M16N8K64) => ((8, 4), 89),
            (Sparsity::Ordered, Narrow, M16N8K64) if !self.packs_four_bits() => ((8, 7), 120),
            (Sparsity::Ordered, Narrow, M16N8K128) if self.packs_four_bits() => ((8, 7), 120),
            _ => return None,
        })
    }

    fn packs_four_bits(&self) -> bool {
        matches!(self.kind, Some(MmaKind::MxF4 | MmaKind::MxF4NvF4))
    }

    /// Four products of groups of eight lanes in one instruction.
    fn is_quad(&self) -> bool {
        self.shape == MmaShape::M8N8K4 && self.a == Type::F16
    }

    fn accumulators_fit(&self, factors: Factors) -> bool {
        use Type::*;
        let types = (self.d, self.c);
        match factors {
            Factors::F16 => {
                types == (F16, F16) || types == (F32, F32) || (self.is_quad() && types == (F32, F16))
            }
            Factors::BF16 | Factors::TF32 => types == (F32, F32),
            Factors::F64 => types == (F64, F64),
            Factors::Int8 | Factors::Int4 | Factors::Bit => types == (S32, S32),
            Factors::Fp8 | Factors::Narrow => {
                let half = types == (F16, F16) && !self.block_scale && self.sparsity != Sparsity::Sparse;
                half || types == (F32, F32)
            }
        }
    }

    /// The fragments; meaningful where the shape exists with these types.
    fn fragments(&self) -> Fragments {
        let (m, n, k) = (self.shape.m(), self.shape.n(), self.shape.k());
        let matrices = if self.is_quad() { 4 } else { 1 };
        let stored = |ty: Type| match ty {
            Type::E2M1 if self.packs_four_bits() => 4,
            Type::E3M2 | Type::E2M3 | Type::E2M1 => 8,
            _ => ty.bits(),
        };
        let spread = |elements: u32, ty: Type| Fragment::spread(matrices * elements, ty, stored(ty));
        let left_out = if self.sparsity == Sparsity::Dense { 1 } else { 2 };
        Fragments {
            d: spread(m * n, self.d),
            a: spread(m * k / left_out, self.a),
            b: spread(k * n, self.b),
            c: spread(m * n, self.c),
        }
    }

    /// Whether the types, the kind and the shape go together; reports what does not.
    fn check(&self, check: &mut Check<'_>) -> Option<Factors> {
        let Some(factors) = Factors::of(self.a, self.b) else {
            check.report(
                Code::ModifierCombination,
                format!("factors of type `{}` and `{}` do not go together", self.a, self.b),
            );
            return None;
        };
        let kind_fits = match self.kind {
            None => factors != Factors::Narrow,
            Some(MmaKind::F8F6F4 | MmaKind::MxF8F6F4) => factors.is_small_float(),
            Some(MmaKind::MxF4 | MmaKind::MxF4NvF4) => (self.a, self.b) == (Type::E2M1, Type::E2M1),
        };
        if !kind_fits {
            let message = match self.kind {
                None => format!("`{}` and `{}` need a `.kind`, such as `.kind::f8f6f4`", self.a, self.b),
                Some(kind) => format!("`{kind}` does not take `{}` and `{}`", self.a, self.b),
            };
            check.report(Code::ModifierCombination, message);
            return None;
        }
        if self.introduced(factors).is_none() {
            check.report(
                Code::ModifierCombination,
                format!("there is no shape `{}` with factors `{}` and `{}`", self.shape, self.a, self.b),
            );
            return None;
        }
        if !self.accumulators_fit(factors) {
            check.report(
                Code::ModifierCombination,
                format!(
                    "factors `{}` and `{}` with shape `{}` do not add `{}` to give `{}`",
                    self.a, self.b, self.shape, self.c, self.d
                ),
            );
            return None;
        }
        check.combination(
            self.is_quad() || self.layouts == (Layout::Row, Layout::Col),
            "`a` is `.row` and `b` is `.col` in this shape",
        );
        check.combination(
            !self.satfinite || matches!(factors, Factors::Int8 | Factors::Int4),
            "`.satfinite` is for factors of eight or four bits that are integers",
        );
        self.check_scaling(check);
        Some(factors)
    }

    fn check_scaling(&self, check: &mut Check<'_>) {
        use MmaKind::*;
        let scaled = matches!(self.kind, Some(MxF8F6F4 | MxF4 | MxF4NvF4));
        if scaled != self.block_scale {
            check.combination(false, "`.block_scale` stands with `.kind::mx…` and only there");
            return;
        }
        if !scaled {
            check.combination(
                self.scale_vec.is_none() && self.scale_type.is_none(),
                "a number and a type of scales need `.block_scale`",
            );
            return;
        }
        use ScaleVector::*;
        let fits = match (self.kind, self.scale_type) {
            (Some(MxF8F6F4), Some(Type::UE8M0)) => matches!(self.scale_vec, None | Some(X1)),
            (Some(MxF4), Some(Type::UE8M0)) => matches!(self.scale_vec, None | Some(X2)),
            (Some(MxF4NvF4), Some(Type::UE8M0)) => matches!(self.scale_vec, Some(X2 | X4)),
            (Some(MxF4NvF4), Some(Type::UE4M3)) => self.scale_vec == Some(X4),
            _ => false,
        };
        check.combination(
            fits,
            "the scales are `.scale_vec::1X` of `.ue8m0` for `.kind::mxf8f6f4`, `.scale_vec::2X` of `.ue8m0` for `.kind::mxf4`, and `.scale_vec::2X` or `4X` of `.ue8m0` or `4X` of `.ue4m3` for `.kind::mxf4nvf4`",
        );
    }

    fn check_operands(&self, check: &mut Check<'_>, d: &Dsts, a: &Srcs, b: &Srcs, c: &Srcs) {
        let mut fragments = self.fragments();
        if self.sparsity != Sparsity::Dense && self.a == Type::BF16 {
            // Unlike the dense product, it takes words of any type.
            fragments.a.register = Type::B32;
            fragments.b.register = Type::B32;
        }
        fragments.d.check_dsts(check, "d", d);
        fragments.a.check_srcs(check, "a", a);
        fragments.b.check_srcs(check, "b", b);
        fragments.c.check_srcs(check, "c", c);
        if !self.block_scale {
            return;
        }
        for (name, factor) in [("a", a), ("b", b)] {
            let mut regs = factor.as_slice().iter().filter_map(Src::reg);
            check.that(
                regs.any(|reg| check.reg_type(reg).is_bits()),
                Code::OperandType,
                format_args!("operand `{name}`, a factor with scales, must be in `.b32` registers"),
            );
        }
    }

    /// `e` and `f` of a sparse product. The more metadata there is, the more lanes hold it, and the
    /// fewer groups of lanes there are to choose from.
    fn check_metadata(&self, check: &mut Check<'_>, factors: Factors, e: RegSrc, f: &Src) {
        check.reg("e", e.0, Type::B32);
        let groups = match (factors, self.shape.k()) {
            (Factors::F16 | Factors::BF16, 16) | (Factors::TF32, 8) => 4,
            (Factors::F16 | Factors::BF16, _)
            | (Factors::TF32, _)
            | (Factors::Int8, 32)
            | (Factors::Int4, 64) => 2,
            _ => 1,
        };
        check.constant("f", f, 0..=groups - 1);
    }

    fn check_scales(&self, check: &mut Check<'_>, scales: [(&str, &Option<Srcs>, &Option<Srcs>, i64); 2]) {
        for (name, data, selector, lanes) in scales {
            let (Some(data), Some(selector)) = (data, selector) else {
                if self.block_scale {
                    check.report(
                        Code::OperandCount,
                        "block scales are given as `scale_a, {byte, lane}, scale_b, {byte, lane}`",
                    );
                    return;
                }
                continue;
            };
            if !self.block_scale {
                check.report(Code::OperandCount, "only a product with `.block_scale` takes scales");
                return;
            }
            // CUTLASS writes the register as a vector of one.
            match data.as_slice() {
                [Src::Reg(reg)] => check.reg(name, *reg, Type::B32),
                [_] => check.report(Code::OperandForm, format!("`{name}` must be a register")),
                some => check
                    .report(Code::VectorShape, format!("`{name}` is one register; {} are given", some.len())),
            }
            let Srcs::Many(selector) = selector else {
                check.report(
                    Code::VectorShape,
                    format!("the selector of `{name}` is a vector `{{byte, lane}}`"),
                );
                continue;
            };
            let [byte, lane] = &selector[..] else {
                check.report(
                    Code::VectorShape,
                    format!("the selector of `{name}` is a vector of 2; {} are given", selector.len()),
                );
                continue;
            };
            check.src(name, byte, Type::B16);
            check.src(name, lane, Type::B16);
            check.imm_range("lane of a selector", lane, 0..=lanes - 1);
            self.check_byte(check, byte);
        }
    }

    /// A selector's first byte: the scales of one lane are aligned in its register.
    fn check_byte(&self, check: &mut Check<'_>, byte: &Src) {
        let scales = match (self.kind, self.scale_vec) {
            (_, Some(ScaleVector::X4)) => 4,
            (_, Some(ScaleVector::X2)) | (Some(MmaKind::MxF4), None) => 2,
            _ => 1,
        };
        check.imm_range("byte of a selector", byte, 0..=4 - scales);
        check.that(
            !matches!(*byte, Src::Imm(Imm::Int(byte)) if byte % scales != 0),
            Code::ImmediateRange,
            format_args!(
                "the byte of a selector must be a multiple of {scales}, the scales that one lane holds",
            ),
        );
    }

    fn needs(&self, needs: &mut Needs) {
        let Some(factors) = Factors::of(self.a, self.b) else { return };
        let Some((version, sm)) = self.introduced(factors) else { return };
        needs.both("`mma` of this shape and type", version, sm);
        needs.version_if(self.sparsity == Sparsity::Ordered, "`mma.sp::ordered_metadata`", 8, 5);
        let half = factors.is_small_float() && self.d == Type::F16;
        needs.version_if(half, "`mma` of small floats with `.f16` sums", 8, 7);
        let narrow_only = Requirement::family(&[120]);
        if self.kind.is_some() {
            needs.version("`.kind`", 8, 7);
            let everywhere = self.kind == Some(MmaKind::F8F6F4) && factors == Factors::Fp8;
            let sparse_packed = self.sparsity == Sparsity::Ordered && self.packs_four_bits();
            needs.add(
                "`.kind`",
                match (everywhere, sparse_packed) {
                    (true, _) => Requirement::family(&[100, 110, 120]),
                    (_, true) => Requirement::specific(&[120, 121]),
                    _ => narrow_only,
                },
            );
        }
        if self.sparsity == Sparsity::Ordered && half {
            needs.add("`mma.sp` of small floats with `.f16` sums", narrow_only);
        }
        if self.scale_vec == Some(ScaleVector::X4) && self.scale_type == Some(Type::UE8M0) {
            needs.version("`.scale_vec::4X` with `.ue8m0`", 9, 1);
        }
    }
}

macro_rules! forms {
    ($($name:ident: $sparsity:ident),*) => {$(
        impl $name {
            fn form(&self) -> Form {
                Form {
                    sparsity: Sparsity::$sparsity,
                    shape: self.shape,
                    layouts: (self.a_layout, self.b_layout),
                    kind: self.kind,
                    block_scale: self.block_scale,
                    scale_vec: self.scale_vec,
                    scale_type: self.scale_type,
                    satfinite: self.satfinite,
                    d: self.d_type,
                    a: self.a_type,
                    b: self.b_type,
                    c: self.c_type,
                }
            }

            /// The registers of each fragment; meaningful for an instruction that the verifier accepts.
            pub fn fragments(&self) -> Fragments {
                self.form().fragments()
            }
        }
    )*};
}
forms!(Mma: Dense, MmaSpOrdered: Ordered);

impl MmaSp {
    fn form(&self) -> Form {
        Form {
            sparsity: Sparsity::Sparse,
            shape: self.shape,
            layouts: (self.a_layout, self.b_layout),
            kind: None,
            block_scale: false,
            scale_vec: None,
            scale_type: None,
            satfinite: self.satfinite,
            d: self.d_type,
            a: self.a_type,
            b: self.b_type,
            c: self.c_type,
        }
    }

    /// The registers of each fragment; meaningful for an instruction that the verifier accepts.
    pub fn fragments(&self) -> Fragments {
        self.form().fragments()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(sparsity: Sparsity, shape: MmaShape, sum: Type, factor: Type, kind: Option<MmaKind>) -> Form {
        Form {
            sparsity,
            shape,
            layouts: (Layout::Row, Layout::Col),
            kind,
            block_scale: !matches!(kind, None | Some(MmaKind::F8F6F4)),
            scale_vec: None,
            scale_type: None,
            satfinite: false,
            d: sum,
            a: factor,
            b: factor,
            c: sum,
        }
    }

    #[test]
    fn fragments_take_the_registers_that_the_isa_says() {
        use MmaShape::*;
        use Sparsity::*;
        use Type::*;
        let rows = [
            (Dense, M8N8K4, F16, F16, None, (F16X2, 4), (F16X2, 2), (F16X2, 2)),
            (Dense, M8N8K4, F32, F16, None, (F32, 8), (F16X2, 2), (F16X2, 2)),
            (Dense, M8N8K4, F64, F64, None, (F64, 2), (F64, 1), (F64, 1)),
            (Dense, M16N8K16, F64, F64, None, (F64, 4), (F64, 8), (F64, 4)),
            (Dense, M16N8K8, F16, F16, None, (F16X2, 2), (F16X2, 2), (F16X2, 1)),
            (Dense, M16N8K16, F32, BF16, None, (F32, 4), (BF16X2, 4), (BF16X2, 2)),
            (Dense, M16N8K4, F32, TF32, None, (F32, 4), (TF32, 2), (TF32, 1)),
            (Dense, M8N8K16, S32, S8, None, (S32, 2), (B32, 1), (B32, 1)),
            (Dense, M16N8K64, S32, U4, None, (S32, 4), (B32, 4), (B32, 2)),
            (Dense, M16N8K256, S32, B1, None, (S32, 4), (B32, 4), (B32, 2)),
            (Dense, M16N8K32, F32, E2M1, Some(MmaKind::F8F6F4), (F32, 4), (B32, 4), (B32, 2)),
            (Dense, M16N8K64, F32, E2M1, Some(MmaKind::MxF4), (F32, 4), (B32, 4), (B32, 2)),
            (Sparse, M16N8K32, F32, F16, None, (F32, 4), (F16X2, 4), (F16X2, 4)),
            (Ordered, M16N8K128, F32, E2M1, Some(MmaKind::MxF4NvF4), (F32, 4), (B32, 4), (B32, 4)),
        ];
        for (sparsity, shape, sum, factor, kind, d, a, b) in rows {
            let found = form(sparsity, shape, sum, factor, kind).fragments();
            let fragment = |(register, count)| Fragment { register, count };
            let wanted = Fragments { d: fragment(d), a: fragment(a), b: fragment(b), c: fragment(d) };
            assert_eq!(found, wanted, "{sparsity:?} {shape} {factor}");
        }
    }
}
