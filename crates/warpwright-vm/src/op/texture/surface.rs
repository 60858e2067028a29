//! Reading, writing and reducing into surfaces.

use super::sample::READ;
use super::{Coordinates, footprint, texel};
use crate::check::Touch;
use crate::check::race::AccessKind;
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Row64, Step};
use crate::memory::{AccessSpec, Address, Channel, Element, Image, Object, Order, RegionKind, SpaceKind};
use crate::op::atomic::{Action, Atomic};
use crate::op::memory::{element, source};
use warpwright_ptx::ir::{Scope, TensorAddress, Type};
use warpwright_ptx::op::atomic::AtomicOp;
use warpwright_ptx::op::texture::{Geometry, Suld, Sured, SurfaceClamp, SurfaceForm, SurfaceReduction, Sust};

/// Where an instruction accesses a surface.
struct Access {
    handle: Address,
    geometry: Geometry,
    coordinates: Coordinates,
    clamp: SurfaceClamp,
    /// The first coordinate counts texels, not bytes.
    by_texel: bool,
}

impl Access {
    fn decode(
        d: &mut Decoder<'_, '_>,
        at: &TensorAddress,
        geometry: Geometry,
        form: SurfaceForm,
        clamp: SurfaceClamp,
    ) -> Option<Self> {
        d.code.non_coherent = true;
        let coordinates = at.coordinates.first()?;
        Some(Access {
            handle: d.address(&at.base),
            geometry,
            coordinates: Coordinates::decode(d, coordinates, geometry, Type::S32),
            clamp,
            by_texel: form == SurfaceForm::P,
        })
    }
}

/// A decoded load or store.
struct Transfer {
    access: Access,
    elements: Box<[Element]>,
    /// Bytes of an element.
    bytes: u32,
    write: bool,
}

pub(super) fn decode_load(op: &Suld, d: &mut Decoder<'_, '_>) {
    let elements = op.d.as_slice().map(|reg| reg.map_or(Element::Sink, |reg| element(d, reg))).collect();
    let Some(access) = Access::decode(d, &op.from, op.geometry, op.form, op.clamp) else { return };
    let transfer = Transfer { access, elements, bytes: op.ty.bytes(), write: false };
    d.emit_boxed(move |m, _| m.transfer(&transfer));
}

pub(super) fn decode_store(op: &Sust, d: &mut Decoder<'_, '_>) {
    let elements = op.a.as_slice().iter().map(|src| source(d, src, op.ty)).collect();
    let Some(access) = Access::decode(d, &op.to, op.geometry, op.form, op.clamp) else { return };
    let transfer = Transfer { access, elements, bytes: op.ty.bytes(), write: true };
    d.emit_boxed(move |m, _| m.transfer(&transfer));
}

pub(super) fn decode_reduction(op: &Sured, d: &mut Decoder<'_, '_>) {
    let operand = source(d, &op.a, op.ty);
    let Some(access) = Access::decode(d, &op.to, op.geometry, op.form, op.clamp) else { return };
    let combine = match op.reduction {
        SurfaceReduction::Add => AtomicOp::Add,
        SurfaceReduction::Min => AtomicOp::Min,
        SurfaceReduction::Max => AtomicOp::Max,
        SurfaceReduction::And => AtomicOp::And,
        SurfaceReduction::Or => AtomicOp::Or,
    };
    let atomic = Atomic {
        action: Action::Combine(combine),
        ty: op.ty,
        address: access.handle,
        space: SpaceKind::Texture,
        noftz: false,
        order: Order { strong: Some(Scope::Gpu), ..Order::WEAK },
        reads: false,
        elements: Box::new([(operand, Element::Sink)]),
    };
    d.emit_boxed(move |m, _| m.reduce(&access, &atomic));
}

/// The places that lanes access.
struct Places {
    addresses: Row64,
    /// The lanes that access memory, and those that read zeros or write nothing.
    inside: u32,
    outside: u32,
}

impl Machine<'_> {
    /// Where lanes access an image with that many bytes each.
    fn surface_places(
        &mut self,
        access: &Access,
        image: &Image,
        bytes: u32,
        lanes: u32,
    ) -> Result<Places, Step> {
        let fits = match (access.geometry, image.geometry) {
            // Cubes are accessed by the numbers of their faces.
            (Geometry::A2D, Geometry::Cube | Geometry::ACube) => true,
            (wanted, is) => wanted == is,
        };
        if !fits {
            return Err(self.other_geometry("surface", image, access.geometry));
        }
        let level = image.levels[0];
        let texel = if access.by_texel { image.format.bytes() } else { 1 };
        // The greatest coordinates: in bytes, rows and slices.
        let row = i64::from(level.width) * i64::from(image.format.bytes());
        let greatest = [row - i64::from(bytes), i64::from(level.height) - 1, i64::from(level.slices) - 1];
        let layered = access.coordinates.layer.is_some();
        let used = footprint::dimensions(access.geometry);
        let mut places = Places { addresses: [0; LANES], inside: 0, outside: 0 };
        for lane in LanesOf(lanes) {
            let mut at = access.coordinates.of(self, lane).map(|bits| i64::from(bits as i32));
            at[0] *= i64::from(texel);
            if layered {
                at[2] = access.coordinates.layer(self, lane).into();
            }
            let is_used = |dimension: usize| dimension < used || dimension == 2 && layered;
            let is_inside = |dimension: usize| (0..=greatest[dimension]).contains(&at[dimension]);
            let inside =
                greatest[0] >= 0 && (0..3).all(|dimension| !is_used(dimension) || is_inside(dimension));
            match access.clamp {
                SurfaceClamp::Trap if !inside => return Err(self.outside_surface(image, bytes, at, lane)),
                SurfaceClamp::Zero if !inside => {
                    places.outside |= 1 << lane;
                    continue;
                }
                _ => {}
            }
            // To the nearest place that has room.
            let at: [i64; 3] = std::array::from_fn(|dimension| match is_used(dimension) {
                true => at[dimension].clamp(0, greatest[dimension].max(0)),
                false => 0,
            });
            let offset =
                level.offset + at[2] as u64 * level.slice + at[1] as u64 * level.pitch + at[0] as u64;
            places.addresses[lane] = image.base.wrapping_add(offset);
            places.inside |= 1 << lane;
        }
        Ok(places)
    }

    #[cold]
    fn outside_surface(&mut self, image: &Image, bytes: u32, [x, y, z]: [i64; 3], lane: usize) -> Step {
        let message = format!(
            "an access of {bytes} bytes at byte {x} of row {y} of slice {z} is outside of the surface of a {}",
            image.shown()
        );
        // The lane that is to blame.
        self.mask = 1 << lane;
        self.trap(TrapKind::SurfaceBounds, message)
    }

    fn transfer(&mut self, op: &Transfer) -> Step {
        let handles = self.addresses(&op.access.handle);
        let mut todo = self.mask;
        self.worker.progress |= op.write;
        while let Some((object, lanes)) =
            self.next_object(|object| matches!(object, Object::Surface(_)), &handles, op.write, &mut todo)
        {
            let Object::Surface(image) = &*object else { continue };
            let formatted = op.access.by_texel.then_some(image.format);
            let bytes = formatted.map_or(op.bytes * op.elements.len() as u32, |format| format.bytes());
            let places = match self.surface_places(&op.access, image, bytes, lanes) {
                Ok(places) => places,
                Err(step) => return step,
            };
            let spec = AccessSpec { space: SpaceKind::Texture, bytes, align: bytes, write: op.write };
            let (kind, order) =
                if op.write { (AccessKind::Write, Order::WEAK) } else { (AccessKind::Read, READ) };
            let element = formatted.map_or(op.bytes, |format| format.channel.bytes());
            let touch = Touch { kind, element, order };
            let stored = if op.write && formatted.is_none() { &op.elements[..] } else { &[] };
            let mut values = vec![[0u8; 16]; LANES];
            let mut read = places.outside;
            let mut todo = places.inside;
            while let Some(group) = self.next_group(spec, &places.addresses, &mut todo) {
                self.touches(touch, &group, stored);
                read |= group.mask;
                let RegionKind::Global(allocation) = group.region.kind else { continue };
                for lane in LanesOf(group.mask) {
                    let at = group.offsets[lane];
                    if op.write {
                        let value = self.stored(op, formatted.is_some(), image, lane);
                        allocation.write(at, &value[..bytes as usize]);
                    } else {
                        allocation.read(at, &mut values[lane][..bytes as usize]);
                    }
                }
            }
            if !op.write {
                self.keep_loaded(op, &values, read);
            }
        }
        Step::Next
    }

    /// The bytes that a lane stores.
    fn stored(&self, op: &Transfer, formatted: bool, image: &Image, lane: usize) -> [u8; 16] {
        let value = |element: &Element| match *element {
            Element::Sink => 0,
            Element::Narrow(row) => self.registers.row32(row)[lane].into(),
            Element::Wide(row) | Element::Double(row) => self.registers.row64(row)[lane],
        };
        if formatted {
            let mut words = [0; 4];
            for (word, element) in words.iter_mut().zip(&op.elements) {
                *word = value(element) as u32;
            }
            return texel::encode(image.format, words);
        }
        let mut bytes = [0; 16];
        let size = op.bytes as usize;
        for (to, element) in bytes.chunks_exact_mut(size).zip(&op.elements) {
            to.copy_from_slice(&value(element).to_le_bytes()[..size]);
        }
        bytes
    }

    fn keep_loaded(&mut self, op: &Transfer, values: &[[u8; 16]], lanes: u32) {
        let size = op.bytes as usize;
        for (index, &element) in op.elements.iter().enumerate() {
            let value = |lane: usize| {
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(&values[lane][index * size..][..size]);
                u64::from_le_bytes(bytes)
            };
            let row: Row64 = std::array::from_fn(value);
            match element {
                Element::Sink => {}
                Element::Narrow(to) => self.registers.set32(to, &row.map(|value| value as u32), lanes),
                Element::Wide(to) | Element::Double(to) => self.registers.set64(to, &row, lanes),
            }
        }
    }

    fn reduce(&mut self, access: &Access, atomic: &Atomic) -> Step {
        let handles = self.addresses(&access.handle);
        let mut todo = self.mask;
        while let Some((object, lanes)) =
            self.next_object(|object| matches!(object, Object::Surface(_)), &handles, true, &mut todo)
        {
            let Object::Surface(image) = &*object else { continue };
            let places = match self.surface_places(access, image, atomic.ty.bytes(), lanes) {
                Ok(places) => places,
                Err(step) => return step,
            };
            let mut atomic = atomic.clone();
            if access.by_texel {
                let bytes = image.format.bytes();
                atomic.ty = match (image.format.channel, bytes, atomic.ty.bytes()) {
                    (Channel::S32, 4, 4) => Type::S32,
                    (Channel::U32, 4, 4) => Type::U32,
                    (Channel::S32, 8, 8) => Type::S64,
                    (Channel::U32, 8, 8) => Type::U64,
                    _ => {
                        let message = format!(
                            "a formatted reduction of {} bytes into a surface of a {}: it needs 32-bit integers",
                            atomic.ty.bytes(),
                            image.shown()
                        );
                        return self.trap(TrapKind::BadOperand, message);
                    }
                };
            }
            if self.atomic_at::<1>(&atomic, &places.addresses, places.inside) == Step::Stop {
                return Step::Stop;
            }
        }
        Step::Next
    }
}
