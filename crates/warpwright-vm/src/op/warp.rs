//! Exchanges between the lanes of a warp.
//!
//! A `.sync` instruction waits for the lanes that its mask names, unless they have exited. They may arrive on
//! different paths, even at different instructions of the same kind: the warp keeps each lane's value
//! ([`Warp::brought`](crate::machine::Warp)) until all have arrived.

use super::control::{row64, words64};
use crate::decode::{Decoder, Rows};
use crate::machine::{FULL, LANES, LanesOf, Machine, NONE, Row32, Row64, Step, lanewise};
use crate::native::Operation;
use crate::num::extremum::Extremum;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::family::Warp as Op;
use warpwright_ptx::op::warp::{MatchMode, ReduxOp, ShuffleMode, VoteMode};

pub(crate) fn decode(op: Op<'_>, d: &mut Decoder<'_, '_>) -> bool {
    match op {
        Op::Shfl(op) => shuffle(d, op.mode, op.d, (&op.a, &op.b, &op.c), Some(&op.mask)),
        Op::ShflNoSync(op) => shuffle(d, op.mode, op.d, (&op.a, &op.b, &op.c), None),
        Op::Vote(op) => vote(d, op.mode, op.d, &op.a, Some(&op.mask)),
        Op::VoteNoSync(op) => vote(d, op.mode, op.d, &op.a, None),
        Op::ActiveMask(op) => {
            let d_row = d.dst(op.d);
            let run = |m: &mut Machine<'_>, i: &crate::machine::Inst| {
                m.registers.set32(i.d, &[m.mask; LANES], m.mask);
                Step::Next
            };
            d.emit_handler(run, Rows { d: d_row, ..Rows::default() });
        }
        Op::Match(op) => matching(d, op.mode, op.ty, op.d, &op.a, &op.mask),
        Op::Redux(op) => {
            let reduction = Reduction { op: op.op, ty: op.ty, abs: op.abs, nan: op.nan };
            redux(d, reduction, op.d, &op.a, &op.mask);
        }
        Op::Elect(op) => elect(d, op.d, &op.mask),
    }
    true
}

/// Instructions that may meet each other have the same key.
#[derive(Clone, Copy)]
enum Kind {
    Shuffle(ShuffleMode),
    Vote(VoteMode),
    Match(MatchMode, u32),
    Redux(ReduxOp),
    Elect,
}

impl Kind {
    fn key(self) -> u32 {
        let (family, mode) = match self {
            Kind::Shuffle(mode) => (1, mode as u32),
            Kind::Vote(mode) => (2, mode as u32),
            Kind::Match(mode, bits) => (3, mode as u32 | bits),
            Kind::Redux(op) => (4, op as u32),
            Kind::Elect => (5, 0),
        };
        family << 16 | mode
    }
}

/// The lanes that a collective has together.
pub(crate) struct Party {
    /// For each lane that executes, the lanes that it named.
    members: Row32,
    /// The lanes that are there.
    present: u32,
    /// What they brought.
    values: Row64,
}

impl Party {
    /// The lanes that are there of those that a lane named.
    fn of(&self, lane: usize) -> u32 {
        self.members[lane] & self.present
    }
}

/// The mask operand: none where the lanes that happen to be there are meant.
#[derive(Clone, Copy)]
struct MaskRow(Option<u32>);

impl MaskRow {
    fn decode(d: &mut Decoder<'_, '_>, mask: Option<&Src>) -> Self {
        MaskRow(mask.map(|mask| d.src32(mask, Type::B32)))
    }

    /// Whether every lane names all.
    fn is_all(self, m: &Machine<'_>) -> bool {
        self.0.is_none_or(|row| m.registers.row32(row).iter().fold(FULL, |all, lanes| all & lanes) == FULL)
    }

    /// Waits for the lanes that are named. `read` gives what the lanes bring.
    fn gather(
        self,
        m: &mut Machine<'_>,
        kind: Kind,
        read: impl FnOnce(&Machine<'_>) -> Row64,
    ) -> Result<Party, Step> {
        match self.0 {
            None => Ok(Party { members: [m.mask; LANES], present: m.mask, values: read(m) }),
            Some(row) => {
                let members = *m.registers.row32(row);
                let met = m.meet_lanes(&members, kind.key(), read)?;
                Ok(Party { members, present: met.0, values: met.1 })
            }
        }
    }
}

fn narrow(row: u32) -> impl FnOnce(&Machine<'_>) -> Row64 {
    move |m| lanewise(m.registers.row32(row), u64::from)
}

/// Which lane a lane reads from, and whether there is one.
#[inline(always)]
pub(crate) fn source(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let highest = lane & segment | clamp & !segment;
    let lowest = lane & segment;
    // Below lane 0 wraps to a large number, which no lane has.
    let (from, valid) = match mode {
        ShuffleMode::Up => {
            let from = lane.wrapping_sub(b);
            (from, from as i32 >= highest as i32)
        }
        ShuffleMode::Down => (lane + b, lane + b <= highest),
        ShuffleMode::Bfly => (lane ^ b, lane ^ b <= highest),
        ShuffleMode::Idx => {
            let from = lowest | b & !segment;
            (from, from <= highest)
        }
    };
    if valid { (from, true) } else { (lane, false) }
}

fn shuffle(
    d: &mut Decoder<'_, '_>,
    mode: ShuffleMode,
    to: DstPair,
    (a, b, c): (&Src, &Src, &Src),
    mask: Option<&Src>,
) {
    let mask = MaskRow::decode(d, mask);
    let data = a.clone();
    let [a, b, c] = [a, b, c].map(|src| d.src32(src, Type::B32));
    let to_value = to.first.map(|reg| d.row(reg));
    let to_valid = to.second.flatten().map(|reg| d.row(reg));
    let level = d.level;
    let imm = u64::from(mask.0.unwrap_or(NONE)) | u64::from(to_valid.unwrap_or(NONE)) << 32;
    let rows = Rows { d: to_value.unwrap_or(NONE), a, b, c, imm, ..Rows::default() };
    d.emit_carrying(rows, move |m, _| {
        if m.is_whole() && m.warp.undefined.is_empty() && mask.is_all(m) {
            let [values, b, c] = [a, b, c].map(|row| m.registers.row32(row));
            let (out, valid) = level.run(
                #[inline(always)]
                || exchange_all(mode, values, b, c),
            );
            if let Some(row) = to_value {
                m.registers.set32(row, &out, FULL);
            }
            if let Some(row) = to_valid {
                m.registers.set_predicate(row, valid, FULL);
            }
            return Step::Next;
        }
        // What is undefined of a value travels above it.
        let undefined = if m.warp.undefined.is_empty() { [0; LANES] } else { m.give(&data) };
        let read = |m: &Machine<'_>| row64([*m.registers.row32(a), undefined]);
        let party = match mask.gather(m, Kind::Shuffle(mode), read) {
            Ok(party) => party,
            Err(step) => return step,
        };
        let (b, c) = (m.registers.row32(b), m.registers.row32(c));
        let Shuffled { mut out, valid, from, absent } = level.run(
            #[inline(always)]
            || exchange(mode, &party, b, c),
        );
        let absent = absent & m.mask;
        if absent != 0 {
            for lane in LanesOf(absent) {
                out[lane] = party.values[lane] as u32;
            }
        }
        if let Some(row) = to_value {
            m.registers.set32(row, &out, m.mask);
        }
        if let Some(row) = to_valid {
            m.registers.set_predicate(row, valid, m.mask);
        }
        let reported = if m.launch.options.checks.sync { absent } else { 0 };
        if reported != 0 || !m.warp.undefined.is_empty() {
            let [_, undefined] = words64(&party.values);
            m.shuffled(to, &from, &undefined, (reported, party.present));
        }
        Step::Next
    });
    d.is_native(Operation::Shuffle(mode));
}

/// A shuffle of all lanes, and the lanes whose source is in range.
#[inline(always)]
fn exchange_all(mode: ShuffleMode, values: &Row32, b: &Row32, c: &Row32) -> (Row32, u32) {
    let (mut out, mut valid) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let (from, is_valid) = source(mode, lane as u32, b[lane], c[lane]);
        out[lane] = values[from as usize % LANES];
        valid[lane] = u32::from(is_valid) << lane;
    }
    (out, valid.iter().fold(0, |all, bit| all | bit))
}

/// What a shuffle gives.
struct Shuffled {
    out: Row32,
    /// The lanes whose source is in range.
    valid: u32,
    /// The lanes from which they read.
    from: [usize; LANES],
    /// The lanes whose source does not take part.
    absent: u32,
}

#[inline(always)]
fn exchange(mode: ShuffleMode, party: &Party, b: &Row32, c: &Row32) -> Shuffled {
    let (mut out, mut valid, mut absent) = ([0; LANES], [0; LANES], [0; LANES]);
    let mut sources = [0; LANES];
    for lane in 0..LANES {
        let (from, is_valid) = source(mode, lane as u32, b[lane], c[lane]);
        let from = from as usize & 31;
        sources[lane] = from;
        out[lane] = party.values[from] as u32;
        valid[lane] = u32::from(is_valid) << lane;
        absent[lane] = u32::from(party.of(lane) >> from & 1 == 0 && from != lane) << lane;
    }
    let any = |bits: [u32; LANES]| bits.iter().fold(0, |all, bit| all | bit);
    Shuffled { out, valid: any(valid), from: sources, absent: any(absent) }
}

fn vote(d: &mut Decoder<'_, '_>, mode: VoteMode, to: Dst, a: &Src, mask: Option<&Src>) {
    let mask = MaskRow::decode(d, mask);
    let a = d.predicate(a);
    let to = d.dst(to);
    d.emit_fallible(move |m| {
        let read = |m: &Machine<'_>| {
            let holds = m.registers.predicate(a);
            std::array::from_fn(|lane| u64::from(holds >> lane & 1))
        };
        let party = mask.gather(m, Kind::Vote(mode), read)?;
        let holds = (0..LANES).fold(0, |all, lane| all | (party.values[lane] as u32 & 1) << lane);
        if mode == VoteMode::Ballot {
            let ballots: Row32 = std::array::from_fn(|lane| holds & party.of(lane));
            m.registers.set32(to, &ballots, m.mask);
            return Ok(());
        }
        let mut result = 0;
        for lane in LanesOf(m.mask) {
            let (asked, yes) = (party.of(lane), holds & party.of(lane));
            let outcome = match mode {
                VoteMode::All => yes == asked,
                VoteMode::Any => yes != 0,
                _ => yes == asked || yes == 0,
            };
            result |= u32::from(outcome) << lane;
        }
        m.registers.set_predicate(to, result, m.mask);
        Ok(())
    });
}

fn matching(d: &mut Decoder<'_, '_>, mode: MatchMode, ty: Type, to: DstPair, a: &Src, mask: &Src) {
    let mask = MaskRow::decode(d, Some(mask));
    let wide = ty.bits() == 64;
    let a = if wide { d.src64(a, ty) } else { d.src32(a, ty) };
    let to_mask = to.first.map(|reg| d.row(reg));
    let to_all = to.second.flatten().map(|reg| d.row(reg));
    d.emit_fallible(move |m| {
        let read = |m: &Machine<'_>| {
            if wide { *m.registers.row64(a) } else { lanewise(m.registers.row32(a), u64::from) }
        };
        let party = mask.gather(m, Kind::Match(mode, ty.bits()), read)?;
        let mut out = [0; LANES];
        let mut all = 0;
        for lane in LanesOf(m.mask) {
            let asked = party.of(lane);
            let same = LanesOf(asked).filter(|&other| party.values[other] == party.values[lane]);
            let same = same.fold(0, |same, other| same | 1 << other);
            all |= u32::from(same == asked) << lane;
            out[lane] = match mode {
                MatchMode::Any => same,
                MatchMode::All if same == asked => asked,
                MatchMode::All => 0,
            };
        }
        if let Some(row) = to_mask {
            m.registers.set32(row, &out, m.mask);
        }
        if let Some(row) = to_all {
            m.registers.set_predicate(row, all, m.mask);
        }
        Ok(())
    });
}

#[derive(Clone, Copy)]
struct Reduction {
    op: ReduxOp,
    ty: Type,
    abs: bool,
    nan: bool,
}

impl Reduction {
    fn combine(self, a: u32, b: u32) -> u32 {
        match (self.op, self.ty) {
            (ReduxOp::Add, _) => a.wrapping_add(b),
            (ReduxOp::And, _) => a & b,
            (ReduxOp::Or, _) => a | b,
            (ReduxOp::Xor, _) => a ^ b,
            (op, Type::F32) => {
                let (a, b) = (f32::from_bits(a), f32::from_bits(b));
                let extremum = Extremum { max: op == ReduxOp::Max, nan: self.nan, ..Extremum::default() };
                extremum.f32(a, b).to_bits()
            }
            (ReduxOp::Min, Type::S32) => (a as i32).min(b as i32) as u32,
            (ReduxOp::Max, Type::S32) => (a as i32).max(b as i32) as u32,
            (ReduxOp::Min, _) => a.min(b),
            (ReduxOp::Max, _) => a.max(b),
        }
    }

    fn of(self, values: &Row64, lanes: u32) -> u32 {
        let value = |lane: usize| {
            let value = values[lane] as u32;
            if self.abs { value & 0x7fff_ffff } else { value }
        };
        let mut result = LanesOf(lanes).map(value).reduce(|a, b| self.combine(a, b)).unwrap_or(0);
        if self.ty == Type::F32 && lanes.count_ones() == 1 {
            // A NaN among numbers alone is the canonical one.
            result = self.combine(result, result);
        }
        result
    }
}

fn redux(d: &mut Decoder<'_, '_>, reduction: Reduction, to: Dst, a: &Src, mask: &Src) {
    let mask = MaskRow::decode(d, Some(mask));
    let a = d.src32(a, reduction.ty);
    let to = d.dst(to);
    d.emit_fallible(move |m| {
        let party = mask.gather(m, Kind::Redux(reduction.op), narrow(a))?;
        let mut out = [0; LANES];
        let mut last = (0, 0);
        for lane in LanesOf(m.mask) {
            let asked = party.of(lane);
            if last.0 != asked {
                last = (asked, reduction.of(&party.values, asked));
            }
            out[lane] = last.1;
        }
        m.registers.set32(to, &out, m.mask);
        Ok(())
    });
}

/// The lowest of the lanes is picked; which one it is, the ISA leaves open.
fn elect(d: &mut Decoder<'_, '_>, to: DstPair, mask: &Src) {
    let mask = MaskRow::decode(d, Some(mask));
    let to_leader = to.first.map(|reg| d.row(reg));
    let to_elected = to.second.flatten().map(|reg| d.row(reg));
    d.emit_fallible(move |m| {
        let party = mask.gather(m, Kind::Elect, |_| [0; LANES])?;
        let leaders: Row32 = std::array::from_fn(|lane| party.of(lane).trailing_zeros() & 31);
        if let Some(row) = to_leader {
            m.registers.set32(row, &leaders, m.mask);
        }
        if let Some(row) = to_elected {
            let elected =
                (0..LANES).fold(0, |all, lane| all | u32::from(leaders[lane] == lane as u32) << lane);
            m.registers.set_predicate(row, elected, m.mask);
        }
        Ok(())
    });
}
