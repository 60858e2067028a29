//! Textures and surfaces: reading them with coordinates, writing surfaces, and their properties.

mod query;
mod sample;
mod surface;

pub use query::*;
pub use sample::*;
pub use surface::*;

use super::modifiers;
use crate::diag::Code;
use crate::ir::*;
use crate::op::Check;

modifiers! {
    /// Geometry of a texture or surface.
    pub enum Geometry {
        /// A line.
        D1 = "1d",
        /// A rectangle.
        D2 = "2d",
        /// A box.
        D3 = "3d",
        /// An array of lines.
        A1D = "a1d",
        /// An array of rectangles.
        A2D = "a2d",
        /// The faces of a cube.
        Cube = "cube",
        /// An array of cubes.
        ACube = "acube",
        /// A rectangle with several samples per element.
        D2Ms = "2dms",
        /// An array of rectangles with several samples per element.
        A2DMs = "a2dms",
    }
}

impl Geometry {
    /// The number of coordinates, with the index into an array and what pads to a vector.
    const fn coordinates(self) -> usize {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1D => 2,
            _ => 4,
        }
    }

    /// The number of components of a gradient or an offset.
    const fn components(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1D => 1,
            Geometry::D2 | Geometry::A2D | Geometry::D2Ms | Geometry::A2DMs => 2,
            _ => 4,
        }
    }

    const fn is_array(self) -> bool {
        matches!(self, Geometry::A1D | Geometry::A2D | Geometry::ACube | Geometry::A2DMs)
    }

    const fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::ACube)
    }

    const fn is_multisample(self) -> bool {
        matches!(self, Geometry::D2Ms | Geometry::A2DMs)
    }
}

/// The geometry must be among those `offered`.
fn geometry_among(check: &mut Check<'_>, geometry: Geometry, offered: &[Geometry]) {
    if !offered.contains(&geometry) {
        let names: Vec<_> = offered.iter().map(|geometry| format!("`{geometry}`")).collect();
        let message = format!("the geometry `{geometry}` is not offered; it takes {}", names.join(", "));
        check.report(Code::ModifierCombination, message);
    }
}

/// A texture, sampler or surface: a variable of one of `types`, or a 64-bit register that holds the
/// address of one.
fn opaque(check: &mut Check<'_>, name: &str, address: &Address, types: &[Type]) {
    check.that(address.offset == 0, Code::OperandForm, format_args!("`{name}` takes no offset"));
    match &address.base {
        AddressBase::Reg(reg) => check.reg(name, *reg, Type::U64),
        AddressBase::Symbol(symbol) => opaque_symbol(check, name, symbol, types),
        AddressBase::Element(_) => {
            check.report(Code::OperandForm, format!("`{name}` cannot be an element of an array"))
        }
        AddressBase::Absolute => check.report(Code::OperandForm, format!("`{name}` cannot be a number")),
    }
}

fn opaque_symbol(check: &mut Check<'_>, name: &str, symbol: &Symbol, types: &[Type]) {
    let ty = check.variable(symbol).map(|variable| variable.ty);
    if !ty.is_some_and(|ty| types.contains(&ty)) {
        let names: Vec<_> = types.iter().map(|ty| format!("`{ty}`")).collect();
        check.report(
            Code::OperandType,
            format!("`{name}` must be a variable of type {}, or a register", names.join(" or ")),
        );
    }
}

/// The coordinates: a vector of the geometry's size, or of four; one value for a line.
fn coordinates(check: &mut Check<'_>, coordinates: &Srcs, geometry: Geometry, ty: Type) {
    let values = coordinates.as_slice();
    let vector = matches!(coordinates, Srcs::Many(_));
    if !matches!(values.len(), 1 | 2 | 4)
        || values.len() < geometry.coordinates()
        || !(vector || values.len() == 1)
    {
        let message = format!("`{geometry}` needs a vector of {} coordinates", geometry.coordinates());
        check.report(Code::VectorShape, message);
    }
    let rest = &values[usize::from(geometry.is_array()).min(values.len())..];
    uniform(check, "coordinates", &rest.iter().filter_map(Src::reg).collect::<Vec<_>>());
    for (i, value) in values.iter().enumerate() {
        if i == 0 && geometry.is_array() {
            check.word_src("coordinates", value);
        } else {
            word(check, "coordinates", value, ty);
        }
    }
}

/// A value of type `ty`; an `f32` may also come from an integer register, whose bits it is.
fn word(check: &mut Check<'_>, name: &str, value: &Src, ty: Type) {
    let integer = value.reg().is_some_and(|reg| check.reg_type(reg).is_integer());
    check.src(name, value, if integer && ty == Type::F32 { Type::B32 } else { ty });
}

/// The registers of one vector have one size, and are not integers and floats side by side.
pub(super) fn uniform(check: &mut Check<'_>, name: &str, registers: &[Reg]) {
    let types: Vec<_> = registers.iter().map(|reg| check.reg_type(*reg)).collect();
    let sizes = types.windows(2).all(|pair| pair[0].bits() == pair[1].bits());
    let kinds = !(types.iter().any(|ty| ty.is_integer()) && types.iter().any(|ty| ty.is_float()));
    if !sizes || !kinds {
        check.report(Code::OperandType, format!("the registers of the vector `{name}` must have one type"));
    }
}
