//! Reading textures.

use super::{Geometry, coordinates, geometry_among, opaque, opaque_symbol, uniform, word};
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;
use crate::op::operand::{Arg, Operand};
use crate::op::{Access, InstrReader, Presence, Visitor, VisitorMut, instruction, modifiers};
use crate::print::Writer;

modifiers! {
    /// The selection of the level of a mipmapped texture.
    pub enum MipLevel {
        /// The first one.
        Base = "base",
        /// By its number.
        Level = "level",
        /// By the derivatives of the coordinates.
        Grad = "grad",
    }

    /// Component of a texture's elements.
    pub enum TexComponent {
        /// The first.
        R = "r",
        /// The second.
        G = "g",
        /// The third.
        B = "b",
        /// The fourth.
        A = "a",
    }
}

instruction! {
    /// Reads a texture at coordinates. `from` is the texture, optionally a sampler, and the coordinates.
    pub struct Tex("tex") {
        mip: Option<MipLevel>,
        geometry: Geometry,
        vector: VectorWidth,
        d_type: Type,
        c_type: Type,
    }(
        d: TexResult,
        from: TensorAddress,
        lod: Option<Src> = (mip == Some(MipLevel::Level)),
        dpdx: Option<Srcs> = (mip == Some(MipLevel::Grad)),
        dpdy: Option<Srcs> = (mip == Some(MipLevel::Grad)),
        offset: Option<Srcs> = Presence::IfVector,
        compare: Option<Src>,
    ) -> found,
        needs: |op, needs| result_needs(needs, &op.d),
        check: |op, check| {
            check.type_among(op.d_type, &[Type::U32, Type::S32, Type::F16, Type::F32, Type::F16X2]);
            check.type_among(op.c_type, &[Type::S32, Type::F32]);
            check.combination(
                !op.geometry.is_cube() || op.c_type == Type::F32,
                "a cube needs coordinates of `.f32`",
            );
            check.combination(
                !op.geometry.is_multisample() || op.c_type == Type::S32,
                "a texture of several samples needs coordinates of `.s32`",
            );
            check.combination(
                !(op.geometry.is_multisample() && matches!(op.mip, Some(MipLevel::Level | MipLevel::Grad))),
                "a texture of several samples has no levels",
            );
            result(check, &op.d, op.vector, op.d_type);
            source(check, &op.from, op.geometry, op.c_type);
            check.src("lod", &op.lod, op.c_type);
            for (name, gradient) in [("dpdx", &op.dpdx), ("dpdy", &op.dpdy)] {
                if let Some(gradient) = gradient {
                    vector(check, name, gradient, op.geometry, Type::F32);
                }
            }
            offsets(check, op.geometry, op.offset.as_ref());
            comparison(check, op.geometry, op.c_type, op.compare.as_ref());
        };

    /// Reads one component of the four elements that a bilinear filter would use.
    pub struct Tld4("tld4") {
        component: TexComponent,
        geometry: Geometry,
        vector: VectorWidth,
        d_type: Type,
        c_type: Type,
    }(
        d: TexResult,
        from: TensorAddress,
        offset: Option<Srcs> = Presence::IfVector,
        compare: Option<Src>,
    ) -> found,
        needs: |op, needs| result_needs(needs, &op.d),
        check: |op, check| {
            use Geometry::*;
            check.type_among(op.d_type, &[Type::U32, Type::S32, Type::F32]);
            check.type_among(op.c_type, &[Type::F32]);
            geometry_among(check, op.geometry, &[D2, A2D, Cube, ACube]);
            result(check, &op.d, op.vector, op.d_type);
            source(check, &op.from, op.geometry, op.c_type);
            offsets(check, op.geometry, op.offset.as_ref());
            comparison(check, op.geometry, op.c_type, op.compare.as_ref());
        };
}

/// The destination of a texture's elements: a vector and, with `|`, a predicate for whether they were resident.
#[derive(Clone, Debug, PartialEq)]
pub struct TexResult {
    /// The elements.
    pub values: Dsts,
    /// Whether the texture's memory was resident.
    pub resident: Option<Reg>,
}

impl Arg for TexResult {
    fn read(reader: &mut InstrReader<'_>, name: &'static str) -> Option<Self> {
        let (operand, span) = reader.operand(name)?;
        let (vector, resident) = match &operand {
            Operand::Pair(pair) => match &**pair {
                (vector, Operand::Reg(reg)) => (vector, Some(*reg)),
                _ => return reader.expected("a vector, or `{…}|p`", name, &operand, span),
            },
            vector => (vector, None),
        };
        let values = match vector {
            Operand::Vector(list) => list
                .iter()
                .map(|element| match element {
                    Operand::Reg(reg) => Some(Some(*reg)),
                    Operand::Sink => Some(None),
                    _ => None,
                })
                .collect::<Option<Box<[_]>>>(),
            _ => None,
        };
        match values {
            Some(values) => Some(TexResult { values: Dsts::Many(values), resident }),
            None => reader.expected("a vector of registers", name, &operand, span),
        }
    }

    fn print(&self, out: &mut Writer<'_>) {
        self.values.print(out);
        if let Some(resident) = self.resident {
            out.text("|");
            out.reg(resident);
        }
    }

    fn visit(&self, visitor: &mut dyn Visitor) {
        self.values.visit(visitor);
        if let Some(resident) = self.resident {
            visitor.reg(Access::Write, resident);
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut) {
        self.values.visit_mut(visitor);
        if let Some(resident) = &mut self.resident {
            visitor.reg(Access::Write, resident);
        }
    }
}

/// The elements read: four, or two of packed halves.
fn result(check: &mut Check<'_>, result: &TexResult, vector: VectorWidth, d_type: Type) {
    let wanted = if d_type == Type::F16X2 { VectorWidth::V2 } else { VectorWidth::V4 };
    if vector != wanted {
        check.report(Code::ModifierCombination, format!("a result of `{d_type}` is a `{wanted}`"));
    }
    let registers: Vec<_> = result.values.as_slice().flatten().collect();
    if result.values.len() != wanted.elements() || registers.is_empty() {
        let message = format!("the result must be a vector of {} registers", wanted.elements());
        check.report(Code::VectorShape, message);
    }
    uniform(check, "d", &registers);
    for reg in registers {
        word(check, "d", &Src::Reg(reg), d_type);
    }
    check.pred_dst("d", result.resident);
}

/// What is read: a texture, a sampler perhaps, and coordinates.
fn source(check: &mut Check<'_>, from: &TensorAddress, geometry: Geometry, ty: Type) {
    opaque(check, "from", &from.base, &[Type::TexRef]);
    match from.coordinates.as_slice() {
        [c] => coordinates(check, c, geometry, ty),
        [Srcs::One(sampler), c] => {
            match sampler {
                Src::Symbol(address) => {
                    let symbol = &address.symbol;
                    opaque_symbol(check, "sampler", symbol, &[Type::SamplerRef, Type::TexRef]);
                }
                sampler => check.src("sampler", sampler, Type::U64),
            }
            coordinates(check, c, geometry, ty);
        }
        _ => check.report(
            Code::OperandForm,
            "the brackets hold the texture, a sampler perhaps, and the coordinates",
        ),
    }
}

/// Offsets: integers, as many as the geometry has directions.
fn offsets(check: &mut Check<'_>, geometry: Geometry, offset: Option<&Srcs>) {
    let Some(offset) = offset else { return };
    check.combination(!geometry.is_cube(), "a cube takes no offsets");
    vector(check, "offset", offset, geometry, Type::S32);
}

fn vector(check: &mut Check<'_>, name: &str, values: &Srcs, geometry: Geometry, ty: Type) {
    let count = values.as_slice().len();
    let padded = geometry.is_multisample() && count == 4;
    if !matches!(values, Srcs::Many(_)) || !(count == geometry.components() || padded) {
        let message = format!("`{name}` must be a vector of {} for `{geometry}`", geometry.components());
        check.report(Code::VectorShape, message);
    }
    for value in values.as_slice() {
        check.src(name, value, ty);
    }
}

/// The reference value of a depth texture.
fn comparison(check: &mut Check<'_>, geometry: Geometry, c_type: Type, compare: Option<&Src>) {
    if let Some(compare) = compare {
        check.combination(
            c_type == Type::F32 && geometry != Geometry::D3 && !geometry.is_multisample(),
            "a depth comparison needs coordinates of `.f32`, and is not offered for `.3d`, `.2dms` and `.a2dms`",
        );
        word(check, "compare", compare, Type::F32);
    }
}

fn result_needs(needs: &mut Needs, result: &TexResult) {
    needs.version_if(result.resident.is_some(), "the predicate of a texture read", 7, 1);
}
