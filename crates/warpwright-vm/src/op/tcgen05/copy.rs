//! Copies from shared to tensor memory, shifts within it, and commits.

use super::memory::to_lanes;
use crate::check::Touch;
use crate::check::race::{AccessKind, Agent};
use crate::decode::Decoder;
use crate::launch::TrapKind;
use crate::machine::{LANES, LanesOf, Machine, Step, TENSOR_LANES};
use crate::memory::{Address, Order, RANK_BITS};
use crate::op::bulk_copy::in_blocks;
use crate::op::matrix::{CHUNK, Layout};
use crate::op::mbarrier::At;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::tcgen05::*;

/// A copy as it was decoded: rows of chunks of 16 bytes, of which each row goes to some lanes.
struct Copy {
    group: CtaGroup,
    to: Address,
    from: u32,
    rows: usize,
    chunks: usize,
    /// The lanes that the first row goes to.
    lanes: &'static [usize],
    /// How far from there a row goes.
    lane_of: fn(usize) -> usize,
    format: Option<PackedFormat>,
}

pub(super) fn copy(op: &Tcgen05Cp, d: &mut Decoder<'_, '_>) {
    let (rows, chunks) = match op.shape {
        TensorCopyShape::S128x256b => (128, 2),
        TensorCopyShape::S4x256b => (4, 2),
        TensorCopyShape::S128x128b => (128, 1),
        TensorCopyShape::S64x128b => (64, 1),
        TensorCopyShape::S32x128b => (32, 1),
    };
    let (lanes, lane_of): (&[usize], fn(usize) -> usize) = match op.multicast {
        None if rows == 4 => (&[0], |row| 32 * row),
        None => (&[0], |row| row),
        Some(WarpMulticast::X2By02And13) => (&[0, 64], |row| row),
        // The second half of the rows goes behind both copies of the first.
        Some(WarpMulticast::X2By01And23) => (&[0, 32], |row| row + row / 32 * 32),
        Some(WarpMulticast::X4) => (&[0, 32, 64, 96], |row| row),
    };
    let copy = Copy {
        group: op.cta_group,
        to: d.address(&op.to),
        from: d.src64(&op.from, Type::U64),
        rows,
        chunks,
        lanes,
        lane_of,
        format: op.from_format,
    };
    d.code.async_proxy = true;
    d.emit_fallible(move |m| m.copy_to_tensor_memory(&copy));
}

pub(super) fn shift(op: &Tcgen05Shift, d: &mut Decoder<'_, '_>) {
    let (group, address) = (op.cta_group, d.address(&op.address));
    d.emit_fallible(move |m| m.shift_tensor_memory(group, &address));
}

pub(super) fn commit(op: &Tcgen05Commit, d: &mut Decoder<'_, '_>) {
    let at = At::decode(d, &op.mbar, op.space);
    let ranks = op.cta_mask.as_ref().map(|mask| d.src32(mask, Type::U16));
    let group = op.cta_group;
    d.emit_fallible(move |m| {
        m.ranks_of(group)?;
        let (addresses, ranks) = (m.addresses(&at.address), ranks.map(|row| *m.registers.row32(row)));
        for lane in LanesOf(m.mask) {
            let ranks = ranks.map(|ranks| ranks[lane] & 0xffff);
            for (address, space) in in_blocks(addresses[lane], at.space, ranks) {
                m.arrive_for(([address; LANES], space), 1 << lane, Agent::Tensor)?;
            }
        }
        Ok(())
    });
}

/// Columns of what a shift moves.
const SHIFTED: u32 = 8;

impl Machine<'_> {
    fn copy_to_tensor_memory(&mut self, op: &Copy) -> Result<(), Step> {
        let ranks = self.ranks_of(op.group)?;
        let (addresses, descriptors) = (self.addresses(&op.to), *self.registers.row64(op.from));
        // Sixteen elements of six or four bits have padding behind them.
        let matter = match op.format {
            None => CHUNK,
            Some(PackedFormat::B6x16P32) => 12,
            Some(_) => 8,
        };
        self.worker.progress = true;
        for lane in LanesOf(self.mask) {
            for &rank in &ranks {
                let layout = self.layout_of("the source", descriptors[lane], rank, false)?;
                let (first, column) = to_lanes(addresses[lane] as u32);
                let columns = column..column + 4 * op.chunks as u32;
                if !self.has_columns(lane, rank, columns.clone(), true) {
                    continue;
                }
                let last = first + op.lanes[op.lanes.len() - 1] + (op.lane_of)(op.rows - 1);
                if last >= TENSOR_LANES {
                    let message =
                        format!("a copy to lanes {first} to {last} of tensor memory, which has 128");
                    return Err(self.trap(TrapKind::BadOperand, message));
                }
                let lane_of = |to: &usize, row| first + to + (op.lane_of)(row);
                let lanes = op.lanes.iter().flat_map(|to| (0..op.rows).map(move |row| lane_of(to, row)));
                self.uses_columns(lane, rank, columns, lanes, (false, true));
                self.tensor(rank).changes += 1;
                for (row, chunk) in (0..op.rows).flat_map(|row| (0..op.chunks).map(move |chunk| (row, chunk)))
                {
                    let Some((words, wrote)) = self.chunk(lane, layout.plain(row, chunk), matter) else {
                        continue;
                    };
                    let columns = column + 4 * chunk as u32..;
                    for ((word, wrote), column) in
                        unpacked(words, op.format).into_iter().zip(wrote).zip(columns)
                    {
                        for to in op.lanes {
                            self.tensor(rank).move_to(first + to + (op.lane_of)(row), column, word, wrote);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// 16 bytes of shared memory that are copied, and of each quarter of what matters of them, whether somebody wrote it:
    /// what nobody wrote is found where it is used.
    fn chunk(&mut self, lane: usize, address: u64, matter: u64) -> Option<([u32; 4], [bool; 4])> {
        let run = self.chunk_at(lane, address, matter)?;
        self.touches_run(
            Touch { kind: AccessKind::AsyncRead(Agent::Tensor), element: 1, order: Order::WEAK },
            &run,
        );
        let (from, checks) = (run.offsets[lane], self.launch.options.checks.init);
        let quarter = matter / 4;
        let is_written =
            |at: usize| !checks || self.cluster.checks.are_written(from + at as u64 * quarter, quarter);
        Some((*self.cluster.shared[from as usize / 4..].first_chunk()?, std::array::from_fn(is_written)))
    }

    /// Rows of 32 lanes become those of the next lane; the last one stays.
    fn shift_tensor_memory(&mut self, group: CtaGroup, address: &Address) -> Result<(), Step> {
        let ranks = self.ranks_of(group)?;
        let addresses = self.addresses(address);
        self.worker.progress = true;
        for lane in LanesOf(self.mask) {
            let (first, column) = to_lanes(addresses[lane] as u32);
            if first % 32 != 0 || first >= TENSOR_LANES {
                let message =
                    format!("a shift of lanes from {first} on: the first is a multiple of 32 below 128");
                return Err(self.trap(TrapKind::BadOperand, message));
            }
            for &rank in &ranks {
                if !self.has_columns(lane, rank, column..column + SHIFTED, true) {
                    continue;
                }
                self.uses_columns(lane, rank, column..column + SHIFTED, first..first + 32, (false, true));
                let tensor = self.tensor(rank);
                tensor.changes += 1;
                for column in column..column + SHIFTED {
                    for to in first..first + 31 {
                        let wrote = tensor.is_written(to + 1, column);
                        tensor.move_to(to, column, tensor.word(to + 1, column), wrote);
                    }
                }
            }
        }
        Ok(())
    }

    /// Where a matrix stands in the shared memory of a block. `is_long`: it has 48 bytes along k, of which the last may be
    /// elsewhere.
    pub(super) fn layout_of(
        &mut self,
        of: &str,
        descriptor: u64,
        rank: u32,
        is_long: bool,
    ) -> Result<Layout, Step> {
        Layout::of_tensor_memory(descriptor, u64::from(rank) << RANK_BITS, is_long).ok_or_else(|| {
            let absolute = if is_long {
                "52 is 1 where bits 16 to 30 are an address, which takes 128-byte swizzling and base offset 0, 53"
            } else {
                "52"
            };
            let message = format!(
                "{descriptor:#x} is no descriptor of {of} in shared memory: bits 46 to 48 are 1, {absolute} to 60 are \
                 0, and 61 to 63 name a way of swizzling: 0, 1, 2, 4 or 6"
            );
            self.trap(TrapKind::BadOperand, message)
        })
    }
}

/// Sixteen elements of fewer bits become bytes: of six bits in the lower ones, of four in the middle.
fn unpacked(words: [u32; 4], format: Option<PackedFormat>) -> [u32; 4] {
    let bits = words.iter().rev().fold(0, |all: u128, &word| all << 32 | u128::from(word));
    let byte = |at: usize| match format {
        Some(PackedFormat::B6x16P32) => (bits >> (6 * at)) as u32 & 0x3f,
        _ => ((bits >> (4 * at)) as u32 & 0xf) << 2,
    };
    match format {
        None => words,
        Some(_) => {
            std::array::from_fn(|word| (0..4).fold(0, |all, at| all | byte(4 * word + at) << (8 * at)))
        }
    }
}
