//! Special registers.

use crate::decode::{Decoder, File, Rows, SymbolValue};
use crate::device::{RESERVED_SHARED, RESERVED_SHARED_USED};
use crate::launch::Launch;
use crate::machine::{Block, Inst, LANES, Machine, Row32, Step, lanewise};
use crate::memory::RANK_BITS;
use std::time::{SystemTime, UNIX_EPOCH};
use warpwright_ptx::ir::{Component, Element, Special, SpecialRegister, Type, TypeKind};

/// For how long a warp of some number in its block finds the same in a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constancy {
    /// It is a clock.
    None,
    /// As long as its block runs.
    Block,
    /// In all blocks of the launch that have the same rank in their cluster.
    Launch,
}

impl Constancy {
    pub(crate) fn of(register: SpecialRegister) -> Constancy {
        use SpecialRegister::*;
        match register {
            Clock | Clock64 | ClockHi | GlobalTimer | GlobalTimerLo | GlobalTimerHi => Constancy::None,
            CtaId | SmId | ClusterId => Constancy::Block,
            _ => Constancy::Launch,
        }
    }
}

/// A row with the value of a special register, which has up to 32 bits or is cut to them.
pub(crate) fn read32(d: &mut Decoder<'_, '_>, special: Special) -> u32 {
    if Constancy::of(special.register) != Constancy::None {
        note(d, special.register);
        return d.special(special);
    }
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

/// What its function asks for with a special register.
fn note(d: &mut Decoder<'_, '_>, register: SpecialRegister) {
    use SpecialRegister::*;
    match register {
        ReservedSmemOffsetBegin
        | ReservedSmemOffsetEnd
        | ReservedSmemOffsetCap
        | ReservedSmemOffset0
        | ReservedSmemOffset1 => d.asks_for_reserved_shared(),
        EnvReg1 | EnvReg2 => d.asks_for_grid_barrier(),
        _ => {}
    }
}

/// Reads a special register into a row.
pub(crate) fn emit(d: &mut Decoder<'_, '_>, special: Special, file: File, row: u32) {
    note(d, special.register);
    d.emit_boxed(move |m, _| {
        let values = match clock(m, special.register) {
            Some(now) => {
                // It changes by itself.
                m.worker.timed = true;
                [now; LANES]
            }
            None => WarpPlace { launch: m.launch, block: &m.block, warp: m.warp_index }.values(special),
        };
        match file {
            File::Narrow => m.registers.set32(row, &lanewise(&values, |value| value as u32), m.mask),
            File::Predicate => {
                let bits = (0..LANES).fold(0, |all, lane| all | u32::from(values[lane] != 0) << lane);
                m.registers.set_predicate(row, bits, m.mask);
            }
            File::Wide | File::Double => m.registers.set64(row, &values, m.mask),
        }
        Step::Next
    });
}

/// Where a warp is.
#[derive(Clone, Copy)]
pub(crate) struct WarpPlace<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) block: &'a Block,
    pub(crate) warp: usize,
}

impl WarpPlace<'_> {
    /// What the lanes find in a special register, in 32 bits.
    pub(crate) fn words(self, special: Special) -> Row32 {
        match special.register {
            SpecialRegister::Tid => self.threads(axis(special)),
            // These are looked at for each block.
            _ if Constancy::of(special.register) == Constancy::Block => [self.value(special) as u32; LANES],
            _ => lanewise(&self.values(special), |value| value as u32),
        }
    }

    fn threads(self, axis: usize) -> Row32 {
        self.launch.shape.thread_indices((self.warp * LANES) as u32, axis)
    }

    /// What the lanes find in a special register, unless that is a clock.
    fn values(self, special: Special) -> [u64; LANES] {
        use SpecialRegister::*;
        let lanes = |value: fn(usize) -> u64| std::array::from_fn(value);
        match special.register {
            Tid => lanewise(&self.threads(axis(special)), u64::from),
            LaneId => lanes(|lane| lane as u64),
            LaneMaskEq => lanes(|lane| 1 << lane),
            LaneMaskLt => lanes(|lane| (1 << lane) - 1),
            LaneMaskLe => lanes(|lane| (2 << lane) - 1),
            LaneMaskGt => lanes(|lane| u64::from(!((2u64 << lane) - 1) as u32)),
            LaneMaskGe => lanes(|lane| u64::from(!((1u64 << lane) - 1) as u32)),
            _ => [self.value(special); LANES],
        }
    }

    /// What all lanes find there.
    fn value(self, special: Special) -> u64 {
        use SpecialRegister::*;
        let WarpPlace { launch, block, warp } = self;
        let (shape, options) = (&launch.shape, &launch.options);
        let pick = |values: [u32; 3]| u64::from(values.get(axis(special)).copied().unwrap_or(0));
        match special.register {
            Ntid => pick(shape.block),
            CtaId => pick(block.index),
            NCtaId => pick(shape.grid),
            WarpId => warp as u64,
            NWarpId => 64,
            // As far as a kernel may ask.
            SmId => block.number % u64::from(options.multiprocessors.max(1)),
            NSmId => options.multiprocessors.into(),
            GridId => launch.number,
            TotalSmemSize | AggrSmemSize => shape.static_shared + u64::from(shape.dynamic_shared),
            // Cooperative groups use 288 bytes from `%reserved_smem_offset_1` on.
            ReservedSmemOffsetBegin | ReservedSmemOffset0 | ReservedSmemOffset1 => shape.reserved_shared,
            ReservedSmemOffsetEnd => shape.reserved_shared + RESERVED_SHARED_USED,
            ReservedSmemOffsetCap => RESERVED_SHARED,
            DynamicSmemSize => shape.dynamic_shared.into(),
            // As cooperative groups look for the grid's barrier.
            EnvReg1 => options.workspace >> 32,
            EnvReg2 => options.workspace & 0xffff_ffff,
            ClusterNCtaId => pick(shape.cluster),
            ClusterNCtaRank => shape.cluster_blocks().into(),
            ClusterCtaId => pick(std::array::from_fn(|at| block.index[at] % shape.cluster[at])),
            ClusterCtaRank => block.rank.into(),
            ClusterId => pick(std::array::from_fn(|at| block.index[at] / shape.cluster[at])),
            NClusterId => pick(shape.clusters_of_axes()),
            IsExplicitCluster => shape.explicit_cluster.into(),
            _ => 0,
        }
    }
}

fn axis(special: Special) -> usize {
    match special.component {
        None | Some(Component::X) => 0,
        Some(Component::Y) => 1,
        Some(Component::Z) => 2,
        Some(Component::W) => 3,
    }
}

/// What a special register is that changes by itself.
fn clock(m: &Machine<'_>, register: SpecialRegister) -> Option<u64> {
    use SpecialRegister::*;
    Some(match register {
        Clock | Clock64 => m.now(),
        ClockHi => m.now() >> 32,
        GlobalTimer | GlobalTimerLo => nanoseconds(m),
        GlobalTimerHi => nanoseconds(m) >> 32,
        _ => return None,
    })
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
