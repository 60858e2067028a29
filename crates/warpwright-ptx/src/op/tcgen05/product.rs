//! Matrix products into tensor memory.

use super::{CtaGroup, descriptor, tcgen05_needs, tensor_memory};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::operand::either;
use crate::op::{Presence, Rule, instruction, modifiers};

modifiers! {
    /// Types of the factors.
    pub enum ProductKind {
        /// `f16` and `bf16`.
        F16 = "kind::f16",
        /// `tf32`.
        Tf32 = "kind::tf32",
        /// 8, 6 and 4 bits, mixed.
        F8F6F4 = "kind::f8f6f4",
        /// 8-bit integers.
        I8 = "kind::i8",
        /// 8, 6 and 4 bits, mixed, with scales of blocks.
        MxF8F6F4 = "kind::mxf8f6f4",
        /// 4 bits with scales of blocks.
        MxF4 = "kind::mxf4",
        /// 4 bits with scales of blocks, of either format.
        MxF4NvF4 = "kind::mxf4nvf4",
    }

    /// The number of elements that share a scale.
    pub enum ScaleVector {
        /// One scale per row and step.
        X1 = "scale_vec::1X",
        /// Two.
        X2 = "scale_vec::2X",
        /// Four.
        X4 = "scale_vec::4X",
        /// 16 elements.
        Block16 = "block16",
        /// 32 elements.
        Block32 = "block32",
    }

    /// The use of the collector buffer for `a`.
    pub enum CollectorA {
        /// The buffer is filled.
        Fill = "collector::a::fill",
        /// The buffer is used.
        Use = "collector::a::use",
        /// The buffer is used for the last time.
        LastUse = "collector::a::lastuse",
        /// The buffer does not keep it.
        Discard = "collector::a::discard",
    }

    /// The use of one of the collector buffers for `b`.
    pub enum CollectorB {
        /// Buffer 0 is filled.
        Fill0 = "collector::b0::fill",
        /// Buffer 0 is used.
        Use0 = "collector::b0::use",
        /// Buffer 0 is used for the last time.
        LastUse0 = "collector::b0::lastuse",
        /// Buffer 0 does not keep it.
        Discard0 = "collector::b0::discard",
        /// Buffer 1 is filled.
        Fill1 = "collector::b1::fill",
        /// Buffer 1 is used.
        Use1 = "collector::b1::use",
        /// Buffer 1 is used for the last time.
        LastUse1 = "collector::b1::lastuse",
        /// Buffer 1 does not keep it.
        Discard1 = "collector::b1::discard",
        /// Buffer 2 is filled.
        Fill2 = "collector::b2::fill",
        /// Buffer 2 is used.
        Use2 = "collector::b2::use",
        /// Buffer 2 is used for the last time.
        LastUse2 = "collector::b2::lastuse",
        /// Buffer 2 does not keep it.
        Discard2 = "collector::b2::discard",
        /// Buffer 3 is filled.
        Fill3 = "collector::b3::fill",
        /// Buffer 3 is used.
        Use3 = "collector::b3::use",
        /// Buffer 3 is used for the last time.
        LastUse3 = "collector::b3::lastuse",
        /// Buffer 3 does not keep it.
        Discard3 = "collector::b3::discard",
    }
}

impl ProductKind {
    const fn has_scales(self) -> bool {
        matches!(self, ProductKind::MxF8F6F4 | ProductKind::MxF4 | ProductKind::MxF4NvF4)
    }
}

instruction! {
    /// Starts `d = a·b + d`, or `d = a·b` if `enable_input_d` is false. `idesc` describes types and shape; `scale_a`,
    /// `scale_b` and the `metadata` of a sparse `a` are in tensor memory.
    pub struct Tcgen05Mma("tcgen05.mma") {
        sparse: bool = "sp",
        cta_group: CtaGroup,
        kind: ProductKind,
        block_scale: bool = "block_scale",
        scale_vector: Option<ScaleVector>,
        ashift: bool = "ashift",
        collector: Option<CollectorA>,
    }(
        d: Address,
        a: Factor,
        b: Src,
        metadata: Option<Address> = sparse,
        idesc: Src,
        scale_a: Option<Address> = block_scale,
        scale_b: Option<Address> = block_scale,
        disable_lanes: Option<Srcs> = Presence::IfVector,
        enable_input_d: Src,
        scale_input_d: Option<Src>,
    ) -> nothing,
        needs: |op, needs| {
            tcgen05_needs(needs, "`tcgen05.mma`");
            kind_needs(needs, op.kind);
            match op.scale_vector {
                Some(ScaleVector::Block16 | ScaleVector::Block32) => {
                    needs.version("`.block16` or `.block32`", 8, 8)
                }
                Some(_) => needs.add("`.scale_vec`", SPECIFIC),
                None => {}
            }
            if op.sparse && matches!(op.kind, ProductKind::MxF4 | ProductKind::MxF4NvF4) {
                needs.add("a sparse product of 4 bits", SPECIFIC);
            }
            if op.scale_input_d.is_some() {
                needs.add("`scale_input_d`", Requirement::family(&[100]));
            }
        };

    /// The same with `b` stationary. `zero_columns` describes columns of `b` that count as zero.
    pub struct Tcgen05MmaWs("tcgen05.mma.ws") {
        sparse: bool = "sp",
        cta_group: CtaGroup,
        kind: ProductKind,
        collector: Option<CollectorB>,
    }(
        d: Address,
        a: Factor,
        b: Src,
        metadata: Option<Address> = sparse,
        idesc: Src,
        enable_input_d: Src,
        zero_columns: Option<Src>,
    ) -> nothing,
        needs: |op, needs| {
            tcgen05_needs(needs, "`tcgen05.mma.ws`");
            kind_needs(needs, op.kind);
        },
        check: |op, check| {
            check.combination(op.cta_group == CtaGroup::One, "`tcgen05.mma.ws` takes `.cta_group::1` only");
            check.combination(!op.kind.has_scales(), "`tcgen05.mma.ws` takes no kind with scales");
            factors(check, &op.d, &op.a, &op.b, op.metadata.as_ref(), &op.idesc);
            check.src("enable_input_d", &op.enable_input_d, Type::Pred);
            if let Some(columns) = &op.zero_columns {
                descriptor(check, "zero_columns", columns);
            }
        };
}

/// The location of the factor `a`.
#[derive(Clone, Debug, PartialEq)]
pub enum Factor {
    /// In tensor memory.
    Memory(Address),
    /// In shared memory, by a descriptor.
    Descriptor(Src),
}

either!(Factor: Operand::Address => Memory(Address), else Descriptor(Src));

/// A matrix in tensor memory, whose address a product takes from an untyped register only.
fn matrix(check: &mut Check<'_>, name: &str, address: &Address) {
    tensor_memory(check, name, address);
    if let AddressBase::Reg(reg) = address.base
        && check.reg_type(reg).is_integer()
    {
        check.report(Code::OperandType, format!("the address `{name}` must be in a `.b32` register"));
    }
}

/// The operands that both forms have.
fn factors(check: &mut Check<'_>, d: &Address, a: &Factor, b: &Src, metadata: Option<&Address>, idesc: &Src) {
    matrix(check, "d", d);
    match a {
        Factor::Memory(address) => matrix(check, "a", address),
        Factor::Descriptor(src) => descriptor(check, "a", src),
    }
    descriptor(check, "b", b);
    if let Some(metadata) = metadata {
        matrix(check, "metadata", metadata);
    }
    check.src("idesc", idesc, Type::U32);
}

fn kind_needs(needs: &mut Needs, kind: ProductKind) {
    match kind {
        ProductKind::I8 => needs.add("`.kind::i8`", Requirement::specific(&[100, 101, 110])),
        ProductKind::MxF4NvF4 => needs.version("`.kind::mxf4nvf4`", 8, 7),
        _ => {}
    }
}

/// The architecture-specific targets with tensor memory, without the families.
const SPECIFIC: Requirement = Requirement::specific(&[100, 101, 103, 110]);

impl Rule for Tcgen05Mma {
    fn check(&self, check: &mut Check<'_>) {
        use ProductKind::*;
        use ScaleVector::*;
        check.combination(
            self.block_scale == self.kind.has_scales(),
            "`.block_scale` stands with the kinds `.mxf8f6f4`, `.mxf4` and `.mxf4nvf4`, and only there",
        );
        let fits = match (self.kind, self.scale_vector) {
            (MxF8F6F4, scale) => matches!(scale, None | Some(X1 | Block32)),
            (MxF4, scale) => matches!(scale, None | Some(X2 | Block32)),
            (MxF4NvF4, scale) => matches!(scale, Some(X2 | X4 | Block16 | Block32)),
            (_, scale) => scale.is_none(),
        };
        check.combination(fits, "the number of scales does not fit the kind");
        check.combination(
            !self.ashift
                || (matches!(self.a, Factor::Memory(_))
                    && !self.kind.has_scales()
                    && matches!(self.collector, None | Some(CollectorA::LastUse | CollectorA::Discard))),
            "`.ashift` needs `a` in tensor memory, a kind without scales, and no collector but `lastuse` or `discard`",
        );
        factors(check, &self.d, &self.a, &self.b, self.metadata.as_ref(), &self.idesc);
        for (name, scale) in [("scale_a", &self.scale_a), ("scale_b", &self.scale_b)] {
            if let Some(scale) = scale {
                matrix(check, name, scale);
            }
        }
        if let Some(lanes) = &self.disable_lanes {
            check.combination(!self.block_scale, "lanes cannot be disabled with `.block_scale`");
            let count = match self.cta_group {
                CtaGroup::One => 4,
                CtaGroup::Two => 8,
            };
            if lanes.as_slice().len() != count {
                check.report(Code::VectorShape, format!("the lanes' mask must be a vector of {count}"));
            }
            for mask in lanes.as_slice() {
                if matches!(mask, Src::Imm(_)) {
                    check.report(Code::OperandForm, "the lanes' mask must be in registers");
                }
                check.src("disable_lanes", mask, Type::B32);
            }
        }
        check.src("enable_input_d", &self.enable_input_d, Type::Pred);
        if let Some(scale) = &self.scale_input_d {
            check.combination(
                matches!(self.kind, F16 | Tf32),
                "`scale_input_d` goes with the kinds `.f16` and `.tf32`",
            );
            if !matches!(scale, Src::Imm(imm) if !imm.is_float()) {
                check.report(Code::OperandForm, "`scale_input_d` must be an integer constant");
            }
            check.imm_range("scale_input_d", scale, 0..=15);
        }
    }
}
