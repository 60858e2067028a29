//! Textures and surfaces. A handle is looked up and says what image it is of; coordinates become addresses of texels,
//! and accesses to those are checked and counted like others.

mod footprint;
mod sample;
mod surface;
mod texel;

use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row32, Step};
use crate::memory::{Address, AddressMode, Filter, Image, Object};
use warpwright_ptx::ir::{Srcs, Type};
use warpwright_ptx::op::family::Texture as Op;
use warpwright_ptx::op::texture::{Geometry, TexQuery};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Tex(op) => sample::decode_tex(op, d),
        Op::Tld4(op) => sample::decode_tld4(op, d),
        Op::Suld(op) => surface::decode_load(op, d),
        Op::Sust(op) => surface::decode_store(op, d),
        Op::Sured(op) => surface::decode_reduction(op, d),
        Op::Txq(op) => {
            let (handle, to) = (d.address(&op.a), d.dst(op.d));
            let lod = op.lod.as_ref().map(|lod| d.src32(lod, Type::U32));
            query(d, op.query, Query { handle, to, lod, of_texture: true });
        }
        Op::Suq(op) => {
            let (handle, to) = (d.address(&op.a), d.dst(op.d));
            query(d, op.query, Query { handle, to, lod: None, of_texture: false });
        }
        Op::Istypep(op) => {
            let (handle, to, ty) = (d.src64(&op.a, Type::U64), d.dst(op.p), op.ty);
            d.emit_boxed(move |m, _| {
                let handles = *m.registers.row64(handle);
                let is = |lane: &usize| match m.launch.memory.object(handles[*lane]).as_deref() {
                    Some(Object::Texture(..)) => ty == Type::TexRef,
                    Some(Object::Surface(_)) => ty == Type::SurfRef,
                    None => false,
                };
                let lanes = LanesOf(m.mask).filter(is).fold(0, |all, lane| all | 1 << lane);
                m.registers.set_predicate(to, lanes, m.mask);
                Step::Next
            });
        }
    }
    true
}

/// Rows with the parts of a vector of coordinates.
#[derive(Clone, Copy, Debug, Default)]
struct Coordinates {
    /// The layer; for other geometries there is none.
    layer: Option<u32>,
    rows: [Option<u32>; 3],
}

impl Coordinates {
    fn decode(d: &mut Decoder<'_, '_>, from: &Srcs, geometry: Geometry, ty: Type) -> Self {
        let mut values = from.as_slice().iter();
        let is_layered = matches!(geometry, Geometry::A1D | Geometry::A2D | Geometry::ACube);
        let layer = if is_layered { values.next().map(|layer| d.src32(layer, Type::U32)) } else { None };
        let count = match geometry {
            Geometry::Cube | Geometry::ACube => 3,
            geometry => footprint::dimensions(geometry),
        };
        let mut rows = [None; 3];
        for (row, value) in rows.iter_mut().zip(values).take(count) {
            *row = Some(d.src32(value, ty));
        }
        Coordinates { layer, rows }
    }

    /// The coordinates of a lane, as bits.
    fn of(&self, m: &Machine<'_>, lane: usize) -> [u32; 3] {
        self.rows.map(|row| row.map_or(0, |row| m.registers.row32(row)[lane]))
    }

    /// The layer of a lane.
    fn layer(&self, m: &Machine<'_>, lane: usize) -> u32 {
        self.layer.map_or(0, |row| m.registers.row32(row)[lane])
    }
}

struct Query {
    handle: Address,
    to: u32,
    lod: Option<u32>,
    of_texture: bool,
}

fn query(d: &mut Decoder<'_, '_>, which: TexQuery, query: Query) {
    use TexQuery::*;
    let name = if query.of_texture { "txq" } else { "suq" };
    match which {
        ChannelDataType | ChannelOrder | MemoryLayout => {
            let instead = "its values are those of the source language; CUDA has none";
            d.unsupported(&format!("{name}{which}"), instead);
        }
        ForceUnnormalizedCoords => {
            d.unsupported(&format!("{name}{which}"), "samplers of their own are not supported");
        }
        _ => d.emit_boxed(move |m, _| m.query(which, &query)),
    }
}

impl Machine<'_> {
    fn query(&mut self, which: TexQuery, query: &Query) -> Step {
        let handles = self.addresses(&query.handle);
        let lods = query.lod.map(|row| *self.registers.row32(row));
        let wanted: fn(&Object) -> bool = match query.of_texture {
            true => |object| matches!(object, Object::Texture(..)),
            false => |object| matches!(object, Object::Surface(_)),
        };
        let mut todo = self.mask;
        while let Some((object, lanes)) = self.next_object(wanted, &handles, false, &mut todo) {
            let mut values: Row32 = [0; LANES];
            for lane in LanesOf(lanes) {
                values[lane] = property(&object, which, lods.map_or(0, |lods| lods[lane]));
            }
            self.registers.set32(query.to, &values, lanes);
        }
        Step::Next
    }

    /// The instruction is for another geometry than the image has.
    #[cold]
    fn other_geometry(&mut self, object: &str, image: &Image, geometry: Geometry) -> Step {
        let message = format!("an access of geometry `{geometry}` to a {object} of a {}", image.shown());
        self.trap(TrapKind::BadOperand, message)
    }
}

/// A property of a texture or surface, or of a level; 0 for a level that there is not.
fn property(object: &Object, which: TexQuery, lod: u32) -> u32 {
    let (image, sampler) = match object {
        Object::Texture(image, sampler) => (image, Some(sampler)),
        Object::Surface(image) => (image, None),
    };
    let has_rows = !matches!(image.geometry, Geometry::D1 | Geometry::A1D);
    let is_volume = image.geometry == Geometry::D3;
    let is_layered = matches!(image.geometry, Geometry::A1D | Geometry::A2D | Geometry::ACube);
    let extent =
        |index: usize| image.levels.get(lod as usize).map_or(0, |level| footprint::extents(level)[index]);
    let mode = |dimension: usize| match sampler.map(|sampler| sampler.address[dimension]) {
        Some(AddressMode::Wrap) => 0,
        Some(AddressMode::Mirror) => 1,
        Some(AddressMode::Clamp) => 3,
        Some(AddressMode::Border) => 4,
        None => 0,
    };
    match which {
        TexQuery::Width => extent(0),
        TexQuery::Height if has_rows => extent(1),
        TexQuery::Depth if is_volume => extent(2),
        TexQuery::ArraySize if image.geometry == Geometry::ACube => image.levels[0].slices / 6,
        TexQuery::ArraySize if is_layered => image.levels[0].slices,
        TexQuery::NumMipmapLevels if image.is_mipmapped => image.levels.len() as u32,
        TexQuery::NormalizedCoords => sampler.is_some_and(|sampler| sampler.normalized).into(),
        TexQuery::FilterMode => sampler.is_some_and(|sampler| sampler.filter == Filter::Linear).into(),
        TexQuery::AddrMode0 => mode(0),
        TexQuery::AddrMode1 => mode(1),
        TexQuery::AddrMode2 => mode(2),
        _ => 0,
    }
}
