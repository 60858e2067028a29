//! Special registers.

use crate::decode::{Decoder, File, Rows, SymbolValue};
use crate::device::{RESERVED_SHARED, RESERVED_SHARED_USED};
use crate::machine::{Inst, LANES, Machine, Step, lanewise};
use crate::memory::RANK_BITS;
use std::time::{SystemTime, UNIX_EPOCH};
use warpwright_ptx::ir::{Component, Element, Special, SpecialRegister, Type, TypeKind};

/// A temporary row with the value of a special register, which has up to 32 bits or is cut to them.
pub(crate) fn read32(d: &mut Decoder<'_, '_>, special: Special) -> u32 {
    let row = d.temporary32();
    emit(d, special, File::Narrow, row);
    row
}

/// A temporary row of 64 bits with the value of a special register.
pub(crate) fn read64(d: &mut Decoder<'_, '_>, special: Special) -> u32 {
    let row = d.temporary64();
    emit(d, special, File::Wide, row);
    row
}

/// Reads a special register into a row.
pub(crate) fn emit(d: &mut Decoder<'_, '_>, special: Special, file: File, row: u32) {
    let axis = match special.component {
        None | Some(Component::X) => 0,
        Some(Component::Y) => 1,
        Some(Component::Z) => 2,
        Some(Component::W) => 3,
    };
    use SpecialRegister::*;
    match (special.register, file) {
        (Tid, File::Narrow) => d.emit_handler(
            |m, i| {
                let values = m.launch.shape.thread_indices(m.thread(0), i.x as usize);
                m.registers.set32(i.d, &values, m.mask);
                Step::Next
            },
            Rows { d: row, x: axis, ..Rows::default() },
        ),
        (register, _) => {
            if matches!(
                register,
                ReservedSmemOffsetBegin
                    | ReservedSmemOffsetEnd
                    | ReservedSmemOffsetCap
                    | ReservedSmemOffset0
                    | ReservedSmemOffset1
            ) {
                d.asks_for_reserved_shared();
            }
            if matches!(register, EnvReg1 | EnvReg2) {
                d.asks_for_grid_barrier();
            }
            let is_of_lane = matches!(
                register,
                Tid | LaneId | LaneMaskEq | LaneMaskLt | LaneMaskLe | LaneMaskGt | LaneMaskGe
            );
            d.emit_boxed(move |m, _| {
                // Time changes by itself.
                m.worker.timed |= matches!(
                    register,
                    Clock | Clock64 | ClockHi | GlobalTimer | GlobalTimerLo | GlobalTimerHi
                );
                let value = |lane| value(m, register, axis as usize, lane);
                let values = if is_of_lane { std::array::from_fn(value) } else { [value(0); LANES] };
                match file {
                    File::Narrow => {
                        let values = lanewise(&values, |value| value as u32);
                        m.registers.set32(row, &values, m.mask);
                    }
                    File::Predicate => {
                        let bits = (0..LANES).fold(0, |all, lane| all | u32::from(values[lane] != 0) << lane);
                        m.registers.set_predicate(row, bits, m.mask);
                    }
                    File::Wide | File::Double => m.registers.set64(row, &values, m.mask),
                }
                Step::Next
            });
        }
    }
}

/// Streaming multiprocessors, as far as a kernel may ask.
fn multiprocessor(m: &Machine<'_>) -> u64 {
    m.block.number % u64::from(m.launch.options.multiprocessors.max(1))
}

fn value(m: &Machine<'_>, register: SpecialRegister, axis: usize, lane: usize) -> u64 {
    use SpecialRegister::*;
    let shape = &m.launch.shape;
    let pick = |values: [u32; 3]| u64::from(values.get(axis).copied().unwrap_or(0));
    match register {
        Tid => u64::from(shape.thread_index(m.thread(lane))[axis]),
        Ntid => pick(shape.block),
        CtaId => pick(m.block.index),
        NCtaId => pick(shape.grid),
        LaneId => lane as u64,
        WarpId => m.warp_index as u64,
        NWarpId => 64,
        SmId => multiprocessor(m),
        NSmId => m.launch.options.multiprocessors.into(),
        GridId => m.launch.number,
        LaneMaskEq => 1 << lane,
        LaneMaskLt => (1 << lane) - 1,
        LaneMaskLe => (2 << lane) - 1,
        LaneMaskGt => u64::from(!((2u64 << lane) - 1) as u32),
        LaneMaskGe => u64::from(!((1u64 << lane) - 1) as u32),
        Clock | Clock64 => m.now(),
        ClockHi => m.now() >> 32,
        GlobalTimer | GlobalTimerLo => nanoseconds(m),
        GlobalTimerHi => nanoseconds(m) >> 32,
        TotalSmemSize | AggrSmemSize => shape.static_shared + u64::from(shape.dynamic_shared),
        // Cooperative groups use 288 bytes from `%reserved_smem_offset_1` on.
        ReservedSmemOffsetBegin | ReservedSmemOffset0 | ReservedSmemOffset1 => shape.reserved_shared,
        ReservedSmemOffsetEnd => shape.reserved_shared + RESERVED_SHARED_USED,
        ReservedSmemOffsetCap => RESERVED_SHARED,
        DynamicSmemSize => shape.dynamic_shared.into(),
        // As cooperative groups look for the grid's barrier.
        EnvReg1 => m.launch.options.workspace >> 32,
        EnvReg2 => m.launch.options.workspace & 0xffff_ffff,
        ClusterNCtaId => pick(shape.cluster),
        ClusterNCtaRank => shape.cluster_blocks().into(),
        ClusterCtaId => pick(std::array::from_fn(|at| m.block.index[at] % shape.cluster[at])),
        ClusterCtaRank => m.block.rank.into(),
        ClusterId => pick(std::array::from_fn(|at| m.block.index[at] / shape.cluster[at])),
        NClusterId => pick(shape.clusters_of_axes()),
        IsExplicitCluster => shape.explicit_cluster.into(),
        _ => 0,
    }
}

/// Time of day; where the order of things comes from a seed, so does the time.
fn nanoseconds(m: &Machine<'_>) -> u64 {
    if m.worker.random.is_some() {
        return m.now();
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// `row = local memory of the frame + offset + window`, in 64 bits.
pub(crate) fn frame_address(d: &mut Decoder<'_, '_>, row: u32, offset: u64, window: u64) {
    let run = |m: &mut Machine<'_>, i: &Inst| {
        let address = u64::from(m.warp.frame().local).wrapping_add(i.imm);
        m.registers.set64(i.d, &[address; LANES], m.mask);
        Step::Next
    };
    d.emit_handler(run, Rows { d: row, imm: offset.wrapping_add(window), ..Rows::default() });
}

/// `row = array + (index + offset) * scalar`. All but the address of the array has 32 bits; that, too, unless it is `wide`,
/// so that a negative offset leads below the array. The index is a value of the type in a row of 32 bits.
pub(crate) fn element_address(
    d: &mut Decoder<'_, '_>,
    row: u32,
    (index, ty): (u32, Type),
    (array, wide): (SymbolValue, bool),
    element: &Element,
) {
    let (offset, scalar) = (element.offset as u32, element.scalar);
    let unused = 32 - ty.bits().min(32);
    let signed = ty.kind() == TypeKind::Signed;
    d.emit_boxed(move |m, _| {
        let array = match array {
            SymbolValue::Constant(address) => address,
            SymbolValue::Shared(address) => address.wrapping_add(u64::from(m.block.rank) << RANK_BITS),
            SymbolValue::Frame(at) => u64::from(m.warp.frame().local).wrapping_add(at),
        };
        let addresses = lanewise(m.registers.row32(index), |value| {
            let top = value << unused;
            let index = if signed { (top as i32 >> unused) as u32 } else { top >> unused };
            let bytes = index.wrapping_add(offset).wrapping_mul(scalar);
            array.wrapping_add(if wide { bytes.into() } else { bytes as i32 as u64 })
        });
        m.registers.set64(row, &addresses, m.mask);
        Step::Next
    });
}
