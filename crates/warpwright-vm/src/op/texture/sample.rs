//! Reading textures.

use super::footprint::{
    Footprint, MAX_TAPS, Place, Position, Source, detail, face, face_coordinates, face_gradient, footprint,
    gathered,
};
use super::{Coordinates, texel};
use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::decode::Decoder;
use crate::machine::{LANES, LanesOf, Machine, Row32, Step};
use crate::memory::{AccessSpec, Address, Element, Image, Object, Order, RegionKind, Sampler, SpaceKind};
use crate::num::half::f32_to_f16;
use crate::op::memory::element;
use warpwright_ptx::ir::{Srcs, TensorAddress, Type};
use warpwright_ptx::op::texture::{Geometry, Tex, TexComponent, TexResult, Tld4};

/// A decoded read.
struct Sample {
    handle: Address,
    geometry: Geometry,
    /// Indices of texels, not floating-point coordinates.
    by_index: bool,
    coordinates: Coordinates,
    detail: Option<Detail>,
    /// Rows with what is added to the indices of texels.
    offset: [Option<u32>; 3],
    /// The component that is gathered.
    gathers: Option<usize>,
    values: Box<[Element]>,
    d_type: Type,
    resident: Option<u32>,
}

/// The row or rows that the level of detail comes from.
enum Detail {
    Integer(u32),
    Float(u32),
    Gradients([Coordinates; 2]),
}

/// The order of what textures and surfaces read.
pub(super) const READ: Order = Order { texture: true, ..Order::WEAK };

pub(super) fn decode_tex(op: &Tex, d: &mut Decoder<'_, '_>) {
    if op.compare.is_some() {
        return d.unsupported("tex with a depth comparison", "CUDA's textures have none");
    }
    let geometry = op.geometry;
    let detail = match (&op.lod, &op.dpdx, &op.dpdy) {
        (Some(lod), ..) if op.c_type == Type::F32 => Some(Detail::Float(d.src32(lod, Type::F32))),
        (Some(lod), ..) => Some(Detail::Integer(d.src32(lod, Type::S32))),
        (_, Some(dx), Some(dy)) => {
            Some(Detail::Gradients([gradient(d, dx, geometry), gradient(d, dy, geometry)]))
        }
        _ => None,
    };
    let parts = (&op.from, geometry, op.c_type, op.d_type);
    emit(d, parts, &op.d, detail, op.offset.as_ref(), None);
}

/// Rows with a gradient, which has no layer.
fn gradient(d: &mut Decoder<'_, '_>, from: &Srcs, geometry: Geometry) -> Coordinates {
    let flat = match geometry {
        Geometry::A1D => Geometry::D1,
        Geometry::A2D => Geometry::D2,
        Geometry::ACube => Geometry::Cube,
        geometry => geometry,
    };
    Coordinates::decode(d, from, flat, Type::F32)
}

pub(super) fn decode_tld4(op: &Tld4, d: &mut Decoder<'_, '_>) {
    if op.compare.is_some() {
        return d.unsupported("tld4 with a depth comparison", "CUDA's textures have none");
    }
    let component = match op.component {
        TexComponent::R => 0,
        TexComponent::G => 1,
        TexComponent::B => 2,
        TexComponent::A => 3,
    };
    let parts = (&op.from, op.geometry, op.c_type, op.d_type);
    emit(d, parts, &op.d, None, op.offset.as_ref(), Some(component));
}

fn emit(
    d: &mut Decoder<'_, '_>,
    (from, geometry, c_type, d_type): (&TensorAddress, Geometry, Type, Type),
    to: &TexResult,
    detail: Option<Detail>,
    offset: Option<&Srcs>,
    gathers: Option<usize>,
) {
    if matches!(geometry, Geometry::D2Ms | Geometry::A2DMs) {
        return d.unsupported("a texture of several samples per element", "CUDA has none");
    }
    let [coordinates] = from.coordinates.as_slice() else {
        return d.unsupported("a texture with a sampler of its own", "use the unified mode of texturing");
    };
    d.code.non_coherent = true;
    let mut offsets = [None; 3];
    for (row, value) in offsets.iter_mut().zip(offset.map_or(&[][..], Srcs::as_slice)) {
        *row = Some(d.src32(value, Type::S32));
    }
    let values = to.values.as_slice().map(|reg| reg.map_or(Element::Sink, |reg| element(d, reg))).collect();
    let sample = Sample {
        handle: d.address(&from.base),
        geometry,
        by_index: c_type == Type::S32,
        coordinates: Coordinates::decode(d, coordinates, geometry, c_type),
        detail,
        offset: offsets,
        gathers,
        values,
        d_type,
        resident: to.resident.map(|reg| d.row(reg)),
    };
    d.emit_boxed(move |m, _| m.sample(&sample));
}

impl Sample {
    fn place(&self, m: &Machine<'_>, lane: usize) -> Place {
        let bits = self.coordinates.of(m, lane);
        let mut layer = self.coordinates.layer(m, lane);
        let position = if self.by_index {
            Position::Index(bits.map(|bits| bits as i32))
        } else {
            let point = bits.map(f32::from_bits);
            match self.geometry {
                Geometry::Cube | Geometry::ACube => {
                    let face = face(point);
                    let [s, t] = face_coordinates(face, point);
                    layer = layer.saturating_mul(6).saturating_add(face);
                    Position::Point([s, t, 0.0])
                }
                _ => Position::Point(point),
            }
        };
        let offset = self.offset.map(|row| row.map_or(0, |row| m.registers.row32(row)[lane] as i32));
        Place { position, offset, layer }
    }

    /// A step of the coordinates; for cubes, of those on the face.
    fn along_face(&self, m: &Machine<'_>, lane: usize, step: [f32; 3]) -> [f32; 3] {
        if !matches!(self.geometry, Geometry::Cube | Geometry::ACube) {
            return step;
        }
        let direction = self.coordinates.of(m, lane).map(f32::from_bits);
        let [s, t] = face_gradient(face(direction), direction, step);
        [s, t, 0.0]
    }

    fn footprint(&self, m: &Machine<'_>, image: &Image, sampler: &Sampler, lane: usize) -> Footprint {
        let mut place = self.place(m, lane);
        if self.geometry == Geometry::ACube {
            // A cube beyond the last one is the last one.
            let last = image.levels[0].slices.saturating_sub(6);
            place.layer = (place.layer / 6 * 6).min(last) + place.layer % 6;
        }
        if self.gathers.is_some() {
            return gathered(image, sampler, place);
        }
        let detail = self.detail.as_ref().map(|from| match from {
            Detail::Integer(row) => m.registers.row32(*row)[lane] as i32 as f32,
            Detail::Float(row) => f32::from_bits(m.registers.row32(*row)[lane]),
            Detail::Gradients(both) => {
                let steps = both.map(|one| one.of(m, lane).map(f32::from_bits));
                detail(image, sampler, steps.map(|step| self.along_face(m, lane, step)))
            }
        });
        footprint(image, sampler, place, detail)
    }
}

impl Machine<'_> {
    fn sample(&mut self, op: &Sample) -> Step {
        let handles = self.addresses(&op.handle);
        let mut todo = self.mask;
        while let Some((object, lanes)) =
            self.next_object(|object| matches!(object, Object::Texture(..)), &handles, false, &mut todo)
        {
            let Object::Texture(image, sampler) = &*object else { continue };
            let image_geometry = image.geometry;
            if image_geometry != op.geometry {
                return self.other_geometry("texture", image, op.geometry);
            }
            let mut footprints = vec![Footprint::default(); LANES];
            for lane in LanesOf(lanes) {
                footprints[lane] = op.footprint(self, image, sampler, lane);
            }
            let (read, words) = self.read_taps(op, (image, sampler), &footprints, lanes);
            self.keep_texels(op, sampler.reads_floats(image.format.channel), &words, read);
        }
        Step::Next
    }

    /// What lanes read, and the lanes for which all of it was there.
    fn read_taps(
        &mut self,
        op: &Sample,
        (image, sampler): (&Image, &Sampler),
        footprints: &[Footprint],
        lanes: u32,
    ) -> (u32, Vec<[u32; 4]>) {
        let bytes = image.format.bytes();
        let spec = AccessSpec { space: SpaceKind::Texture, bytes, align: bytes, write: false };
        let touch = Touch { kind: AccessKind::Read, element: image.format.channel.bytes(), order: READ };
        let mut sums = vec![[0f64; 4]; LANES];
        let mut words = vec![[0u32; 4]; LANES];
        let mut fine = lanes;
        let mut take = |lane: usize, index: usize, texel: [u32; 4]| {
            let footprint = &footprints[lane];
            match op.gathers {
                Some(component) => words[lane][index] = texel[component],
                None if footprint.is_single() => words[lane] = texel,
                None => {
                    let weight = footprint.taps()[index].weight;
                    for (sum, word) in sums[lane].iter_mut().zip(texel) {
                        *sum += weight * f64::from(f32::from_bits(word));
                    }
                }
            }
        };
        for index in 0..MAX_TAPS {
            let (mut addresses, mut todo) = ([0; LANES], 0);
            for lane in LanesOf(lanes) {
                match footprints[lane].taps().get(index).map(|tap| tap.source) {
                    Some(Source::Texel(offset)) => {
                        addresses[lane] = image.base.wrapping_add(offset);
                        todo |= 1 << lane;
                    }
                    Some(Source::Border) => take(lane, index, sampler.border),
                    Some(Source::Zero) => take(lane, index, [0; 4]),
                    None => {}
                }
            }
            let mut missing = todo;
            while let Some(group) = self.next_group(spec, &addresses, &mut todo) {
                self.touches(touch, &group, &[]);
                missing &= !group.mask;
                let RegionKind::Global(allocation) = group.region.kind else { continue };
                for lane in LanesOf(group.mask) {
                    let mut data = [0; 16];
                    let data = &mut data[..bytes as usize];
                    allocation.read(group.offsets[lane], data);
                    take(lane, index, texel::decode(image.format, sampler, data));
                }
            }
            fine &= !missing;
        }
        if op.gathers.is_none() {
            for lane in LanesOf(lanes).filter(|&lane| !footprints[lane].is_single()) {
                words[lane] = sums[lane].map(|sum| (sum as f32).to_bits());
            }
        }
        (fine, words)
    }

    /// Writes what was read into the registers of the result.
    fn keep_texels(&mut self, op: &Sample, floats: bool, words: &[[u32; 4]], lanes: u32) {
        let half =
            |bits: u32| if floats { u32::from(f32_to_f16(f32::from_bits(bits))) } else { bits & 0xffff };
        for (index, &element) in op.values.iter().enumerate() {
            let value = |lane: usize| match op.d_type {
                Type::F16X2 => half(words[lane][2 * index]) | half(words[lane][2 * index + 1]) << 16,
                Type::F16 => half(words[lane][index]),
                _ => words[lane][index],
            };
            let row: Row32 = std::array::from_fn(value);
            match element {
                Element::Sink => {}
                Element::Narrow(to) => self.registers.set32(to, &row, lanes),
                Element::Wide(to) | Element::Double(to) => {
                    self.registers.set64(to, &row.map(u64::from), lanes)
                }
            }
        }
        if let Some(resident) = op.resident {
            self.registers.set_predicate(resident, lanes, lanes);
        }
    }
}
