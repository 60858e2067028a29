//! Reading, writing and reducing into surfaces.

use super::{Geometry, coordinates, geometry_among, opaque, uniform};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::memory::{LoadCache, StoreCache};
use crate::op::{instruction, modifiers};

modifiers! {
    /// The unit of a surface's first coordinate.
    pub enum SurfaceForm {
        /// Bytes; elements are not converted.
        B = "b",
        /// Elements, which are converted to the surface's format.
        P = "p",
    }

    /// The treatment of accesses outside a surface.
    pub enum SurfaceClamp {
        /// The thread traps.
        Trap = "trap",
        /// The nearest element is accessed.
        Clamp = "clamp",
        /// Reads give zero, writes are dropped.
        Zero = "zero",
    }

    /// Reduction into a surface.
    pub enum SurfaceReduction {
        /// Sum.
        Add = "add",
        /// Smaller value.
        Min = "min",
        /// Larger value.
        Max = "max",
        /// Bitwise conjunction.
        And = "and",
        /// Bitwise disjunction.
        Or = "or",
    }
}

instruction! {
    /// Reads a surface at coordinates.
    pub struct Suld("suld") {
        form: SurfaceForm,
        geometry: Geometry,
        cache: Option<LoadCache>,
        vector: Option<VectorWidth>,
        ty: Type,
        clamp: SurfaceClamp,
    }(d: Dsts, from: TensorAddress) -> found,
        check: |op, check| {
            use Geometry::*;
            check.combination(op.form == SurfaceForm::B, "a surface is read as bytes: `suld.b`");
            check.combination(
                op.cache != Some(LoadCache::Lu),
                "the cache operator is `.ca`, `.cg`, `.cs` or `.cv`",
            );
            geometry_among(check, op.geometry, &[D1, D2, D3, A1D, A2D]);
            check.type_among(op.ty, &[Type::B8, Type::B16, Type::B32, Type::B64]);
            elements(check, op.d.len(), matches!(op.d, Dsts::Many(_)), op.vector, op.ty);
            let registers: Vec<_> = op.d.as_slice().flatten().collect();
            check.that(!registers.is_empty(), Code::VectorShape, "the destination must have a register");
            uniform(check, "d", &registers);
            for reg in registers {
                check.reg_at_least("d", reg, op.ty);
            }
            place(check, "from", &op.from, op.geometry);
        };

    /// Writes a surface at coordinates.
    pub struct Sust("sust") {
        form: SurfaceForm,
        geometry: Geometry,
        cache: Option<StoreCache>,
        vector: Option<VectorWidth>,
        ty: Type,
        clamp: SurfaceClamp,
    }(to: TensorAddress, a: Srcs) -> nothing,
        check: |op, check| {
            use Geometry::*;
            geometry_among(check, op.geometry, &[D1, D2, D3, A1D, A2D]);
            let types: &[Type] = match op.form {
                SurfaceForm::B => &[Type::B8, Type::B16, Type::B32, Type::B64],
                SurfaceForm::P => &[Type::B32],
            };
            check.type_among(op.ty, types);
            place(check, "to", &op.to, op.geometry);
            let values = op.a.as_slice();
            elements(check, values.len(), matches!(op.a, Srcs::Many(_)), op.vector, op.ty);
            uniform(check, "a", &values.iter().filter_map(Src::reg).collect::<Vec<_>>());
            for value in values {
                wide_enough(check, "a", value, op.ty);
            }
        };

    /// Reduces a value into a surface at coordinates.
    pub struct Sured("sured") {
        form: SurfaceForm,
        reduction: SurfaceReduction,
        geometry: Geometry,
        ty: Type,
        clamp: SurfaceClamp,
    }(to: TensorAddress, a: Src) -> nothing,
        needs: |op, needs| {
            if op.ty.bits() == 64 && op.reduction != SurfaceReduction::Add {
                needs.version("a 64-bit minimum or maximum in a surface", 8, 1);
            }
        },
        check: |op, check| {
            use Geometry::*;
            use SurfaceReduction::*;
            use Type::*;
            geometry_among(check, op.geometry, &[D1, D2, D3]);
            let types: &[Type] = match (op.form, op.reduction) {
                (SurfaceForm::B, Add) => &[U32, S32, U64],
                (SurfaceForm::B, Min | Max) => &[U32, S32, U64, S64],
                (SurfaceForm::P, Min | Max) => &[B32, B64],
                (_, And | Or) | (SurfaceForm::P, Add) => &[B32],
            };
            check.type_among(op.ty, types);
            place(check, "to", &op.to, op.geometry);
            wide_enough(check, "a", &op.a, op.ty);
        };
}

/// A surface and coordinates in it.
fn place(check: &mut Check<'_>, name: &str, place: &TensorAddress, geometry: Geometry) {
    opaque(check, name, &place.base, &[Type::SurfRef]);
    match place.coordinates.as_slice() {
        [c] => coordinates(check, c, geometry, Type::S32),
        _ => check.report(Code::OperandForm, "the brackets hold the surface and its coordinates"),
    }
}

/// As many elements as the vector says, at most 128 bits of them.
fn elements(check: &mut Check<'_>, count: usize, is_vector: bool, vector: Option<VectorWidth>, ty: Type) {
    let wanted = vector.map_or(1, VectorWidth::elements);
    if count != wanted || (vector.is_some() && !is_vector) {
        check.report(Code::VectorShape, format!("the form has {wanted} elements, not {count}"));
    }
    check.combination(ty.bits() as usize * wanted <= 128, "the elements of one access have 128 bits at most");
}

/// A register of any type that is wide enough.
fn wide_enough(check: &mut Check<'_>, name: &str, src: &Src, ty: Type) {
    match src {
        Src::Reg(reg) => check.reg_at_least(name, *reg, ty),
        Src::Imm(imm) if imm.is_float() => {
            check.report(
                Code::OperandType,
                format!("operand `{name}` is a floating-point number, where `{ty}` is wanted"),
            );
        }
        src => check.src(name, src, ty),
    }
}
