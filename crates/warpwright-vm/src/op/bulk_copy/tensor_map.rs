//! Changing tensor maps, and publishing what changed.

use crate::check::Touch;
use crate::check::race::{AccessKind, ProxyFence};
use crate::decode::Decoder;
use crate::device::{MapField, TENSOR_MAP_ALIGN, TENSOR_MAP_BYTES};
use crate::machine::{LANES, LanesOf, Machine, Row64};
use crate::memory::{AccessSpec, Group, Order, SpaceKind};
use crate::op::mbarrier::At;
use warpwright_ptx::ir::{Scope, Semantics, Type};
use warpwright_ptx::op::bulk_copy::{TensorMapField, TensormapCpFenceproxy, TensormapReplace};

const BYTES: u32 = TENSOR_MAP_BYTES as u32;

pub(super) fn replace(d: &mut Decoder<'_, '_>, op: &TensormapReplace) {
    let ordinal = op.ordinal.as_ref().and_then(|src| src.imm()?.bits()).unwrap_or(0) as u32;
    let field = match op.field {
        TensorMapField::GlobalAddress => Some(MapField::ADDRESS),
        TensorMapField::Rank => Some(MapField::RANK),
        TensorMapField::BoxDim => Some(MapField::tile(ordinal)),
        TensorMapField::GlobalDim => Some(MapField::dim(ordinal)),
        TensorMapField::GlobalStride => MapField::stride(ordinal),
        TensorMapField::ElementStride => Some(MapField::step(ordinal)),
        TensorMapField::ElemType => Some(MapField::ELEMENT),
        TensorMapField::InterleaveLayout => Some(MapField::INTERLEAVE),
        TensorMapField::SwizzleMode => Some(MapField::SWIZZLE),
        TensorMapField::SwizzleAtomicity => Some(MapField::SWIZZLE_UNIT),
        TensorMapField::FillMode => Some(MapField::FILL),
    };
    let at = At::decode(d, &op.address, op.space);
    let value = d.src64(&op.value, if op.ty == Type::B64 { Type::U64 } else { Type::U32 });
    d.emit_fallible(move |m| {
        if let Some(field) = field {
            m.replace_field(at, field, value);
        }
        Ok(())
    });
}

pub(super) fn publish(d: &mut Decoder<'_, '_>, op: &TensormapCpFenceproxy) {
    let (to, from) = (At::decode(d, &op.to, Some(op.space)), At::decode(d, &op.from, Some(op.source)));
    let scope = op.scope;
    d.emit_fallible(move |m| {
        m.publish_map(to, from, scope);
        Ok(())
    });
}

impl<'a> Machine<'a> {
    fn replace_field(&mut self, at: At, field: MapField, values: u32) {
        let addresses = self.addresses(&at.address);
        let values: Row64 = *self.registers.row64(values);
        for lane in LanesOf(self.mask) {
            let spec = AccessSpec { space: at.space, bytes: BYTES, align: TENSOR_MAP_ALIGN, write: true };
            let Some(map) = self.run_at(lane, addresses[lane], spec) else { continue };
            self.touches_run(Touch { kind: AccessKind::Write, element: 16, order: Order::WEAK }, &map);
            let mut words = self.words_of(&map, lane);
            field.replace(&mut words, values[lane]);
            self.write_map(&map, &words);
        }
    }

    /// The lanes copy one map together.
    fn publish_map(&mut self, to: At, from: At, scope: Scope) {
        let (targets, sources) = (self.addresses(&to.address), self.addresses(&from.address));
        let Some(lane) = LanesOf(self.mask).next() else { return };
        let spec = |space, write| AccessSpec { space, bytes: BYTES, align: TENSOR_MAP_ALIGN, write };
        let source = self.run_at(lane, sources[lane], spec(from.space, false));
        let target = self.run_at(lane, targets[lane], spec(to.space, true));
        if let (Some(source), Some(target)) = (source, target) {
            let touch = |kind| Touch { kind, element: 16, order: Order::WEAK };
            self.touches_run(touch(AccessKind::Read), &source);
            self.touches_run(touch(AccessKind::Write), &target);
            self.copy_run(touch(AccessKind::Read), &source, &target);
        }
        self.fenced_proxy(&[ProxyFence::MapRelease]);
        self.fenced(scope, Some(Semantics::Release));
    }

    fn write_map(&mut self, map: &Group<'a>, words: &[u32; TENSOR_MAP_BYTES / 4]) {
        if self.launch.options.checks.init {
            self.define_run(map);
        }
        for (at, word) in words.iter().enumerate() {
            self.write32(map, 4 * at as u64, &[*word; LANES]);
        }
    }
}

/// The bytes of a map that an instruction of a lane uses.
pub(super) fn map_at(m: &mut Machine<'_>, lane: usize, address: u64) -> Option<[u8; TENSOR_MAP_BYTES]> {
    let space = SpaceKind::Generic;
    let spec = AccessSpec { space, bytes: BYTES, align: TENSOR_MAP_ALIGN, write: false };
    let map = m.run_at(lane, address, spec)?;
    m.look_for_races(Touch { kind: AccessKind::MapRead, element: 16, order: Order::WEAK }, &map, &[]);
    let words: [u32; TENSOR_MAP_BYTES / 4] = m.words_of(&map, lane);
    let mut bytes = [0; TENSOR_MAP_BYTES];
    bytes.chunks_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    Some(bytes)
}
