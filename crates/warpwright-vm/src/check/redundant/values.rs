//! Values that depend on nothing but the index of the thread.

use super::Threads;
use crate::launch::Shape;
use crate::machine::LanesOf;
use crate::num::integer::holds;
use crate::op::warp::source;
use std::collections::HashMap;
use std::rc::Rc;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::warp::Shfl;

/// The deepest expression that is evaluated.
const DEPTH: u32 = 64;

/// The value of a register in each thread of a block, where it is known.
type Value = Rc<[Option<u64>]>;

/// The values of a kernel's registers, evaluated as they are asked for.
pub(super) struct Values<'k> {
    kernel: &'k Function,
    shape: &'k Shape,
    /// For each register, the instructions that write it; none if one of them has a guard.
    written: Vec<Vec<&'k Op>>,
    known: HashMap<Reg, Value>,
}

impl<'k> Values<'k> {
    pub(super) fn new(kernel: &'k Function, shape: &'k Shape) -> Self {
        let mut written = vec![Vec::new(); kernel.register_count() as usize];
        let mut guarded = Vec::new();
        for instruction in kernel.instructions() {
            for reg in super::written(instruction) {
                written[reg.0 as usize].push(&instruction.op);
                guarded.extend(instruction.guard.map(|_| reg));
            }
        }
        guarded.into_iter().for_each(|reg| written[reg.0 as usize].clear());
        Values { kernel, shape, written, known: HashMap::new() }
    }

    /// All threads of the block.
    pub(super) fn all(&self) -> Threads {
        self.threads(|_| true)
    }

    /// The threads in which a guard may hold; none if that is all of them.
    pub(super) fn holds(&mut self, guard: Guard) -> Option<Threads> {
        let value = self.register(guard.reg, 0);
        let never = Some(u64::from(guard.negated));
        value.contains(&never).then(|| self.threads(|thread| value[thread] != never))
    }

    /// The threads whose operands a shuffle gives to some threads.
    pub(super) fn give(&mut self, shuffle: &Shfl, to: &Threads) -> Threads {
        let (b, c) = (self.source(&shuffle.b, 0), self.source(&shuffle.c, 0));
        let mut from: Threads = vec![0; to.len()].into();
        for (warp, &lanes) in to.iter().enumerate() {
            for lane in LanesOf(lanes) {
                let thread = 32 * warp + lane;
                from[warp] |= match (b[thread], c[thread]) {
                    (Some(b), Some(c)) => 1 << source(shuffle.mode, lane as u32, b as u32, c as u32).0,
                    _ => u32::MAX,
                };
            }
        }
        let all = self.all();
        from.iter_mut().zip(&all).for_each(|(from, all)| *from &= all);
        from
    }

    fn threads(&self, is: impl Fn(usize) -> bool) -> Threads {
        let threads = self.shape.threads() as usize;
        let lanes = |warp: usize| {
            let of_warp = (32 * warp..threads.min(32 * warp + 32)).filter(|&thread| is(thread));
            of_warp.fold(0, |lanes, thread| lanes | 1 << (thread % 32))
        };
        (0..threads.div_ceil(32)).map(lanes).collect()
    }

    fn register(&mut self, reg: Reg, depth: u32) -> Value {
        if let Some(value) = self.known.get(&reg) {
            return value.clone();
        }
        let unknown: Value = vec![None; self.shape.threads() as usize].into();
        let ops = self.written[reg.0 as usize].clone();
        if depth >= DEPTH || ops.is_empty() {
            return unknown;
        }
        // A register that is computed from itself is unknown.
        self.known.insert(reg, unknown.clone());
        // Written in several places, it is known where these agree.
        let value = ops.into_iter().map(|op| self.result(op, reg, depth + 1)).reduce(|all, next| {
            let agree = |(a, b): (&Option<u64>, &Option<u64>)| a.filter(|_| a == b);
            Some(all?.iter().zip(next?.iter()).map(agree).collect())
        });
        let value = value.flatten().unwrap_or(unknown);
        let bits = self.kernel.register_type(reg).bits();
        let value: Value = value.iter().map(|value| value.map(|value| low(value, bits))).collect();
        self.known.insert(reg, value.clone());
        value
    }

    fn source(&mut self, src: &Src, depth: u32) -> Value {
        let threads = self.shape.threads();
        match *src {
            Src::Reg(reg) => self.register(reg, depth),
            Src::Not(reg) => {
                self.register(reg, depth).iter().map(|value| value.map(|value| value ^ 1)).collect()
            }
            Src::Sum(reg, more) => {
                let value = self.register(reg, depth);
                value.iter().map(|value| value.map(|value| value.wrapping_add(more as u64))).collect()
            }
            Src::Imm(imm) => (0..threads).map(|_| imm.bits()).collect(),
            Src::Special(special) => (0..threads).map(|thread| self.special(special, thread)).collect(),
            _ => (0..threads).map(|_| None).collect(),
        }
    }

    fn special(&self, special: Special, thread: u32) -> Option<u64> {
        let component = special.component.map(|component| component as usize);
        let value = match (special.register, component) {
            (SpecialRegister::Tid, Some(at)) => self.shape.thread_index(thread)[at],
            (SpecialRegister::Ntid, Some(at)) => self.shape.block.get(at).copied().unwrap_or(0),
            (SpecialRegister::LaneId, None) => thread % 32,
            _ => return None,
        };
        Some(value.into())
    }

    /// A function of sources in each thread, some of which may be unknown.
    fn map<const N: usize>(
        &mut self,
        sources: [&Src; N],
        depth: u32,
        f: impl Fn([Option<u64>; N]) -> Option<u64>,
    ) -> Option<Value> {
        let sources = sources.map(|src| self.source(src, depth));
        let threads = 0..self.shape.threads() as usize;
        Some(threads.map(|thread| f(std::array::from_fn(|at| sources[at][thread]))).collect())
    }

    /// What an instruction writes to a register; `None` if it is not one of those that are evaluated.
    fn result(&mut self, op: &Op, reg: Reg, depth: u32) -> Option<Value> {
        match op {
            Op::Mov(op) => match (&op.d, &op.a) {
                (Dsts::One(_), Srcs::One(src)) => self.map([src], depth, |[a]| a),
                _ => None,
            },
            Op::Cvt(op) if op.d_type.is_integer() && op.a_type.is_integer() && !op.sat => {
                // The register may be wider than the result.
                let (from, to) = (op.a_type, op.d_type);
                self.map([&op.a], depth, |[a]| Some(extend(extend(a?, from), to)))
            }
            Op::And(op) => self.map([&op.a, &op.b], depth, |values| match values {
                [Some(0), _] | [_, Some(0)] => Some(0),
                [a, b] => Some(a? & b?),
            }),
            Op::Or(op) => {
                let ones = low(u64::MAX, op.ty.bits());
                self.map([&op.a, &op.b], depth, |[a, b]| match (a, b) {
                    (Some(all), _) | (_, Some(all)) if all == ones => Some(ones),
                    _ => Some(a? | b?),
                })
            }
            Op::Xor(op) => self.map([&op.a, &op.b], depth, |[a, b]| Some(a? ^ b?)),
            Op::Not(op) => {
                let bits = op.ty.bits();
                self.map([&op.a], depth, |[a]| Some(low(!a?, bits)))
            }
            Op::Lop3(op) if op.bool_op.is_none() => {
                self.map([&op.a, &op.b, &op.c, &op.table], depth, |[a, b, c, table]| {
                    let (a, b, c, table) = (a?, b?, c?, table?);
                    let bit = |at: u32| table >> ((a >> at & 1) << 2 | (b >> at & 1) << 1 | c >> at & 1) & 1;
                    Some((0..32).fold(0, |value, at| value | bit(at) << at))
                })
            }
            Op::Shl(op) => {
                let bits = u64::from(op.ty.bits());
                self.map([&op.a, &op.b], depth, |[a, by]| Some(if by? < bits { a? << by? } else { 0 }))
            }
            Op::Shr(op) => {
                let ty = op.ty;
                self.map([&op.a, &op.b], depth, |[a, by]| {
                    let (a, by) = (extend(a?, ty), low(by?, 32).min(63));
                    Some(if ty.is_signed() { (a as i64 >> by) as u64 } else { a >> by })
                })
            }
            Op::Bfe(op) if !op.ty.is_signed() => {
                self.map([&op.a, &op.b, &op.c], depth, |[a, from, length]| {
                    let (from, length) = (low(from?, 8), low(length?, 8));
                    Some(low(a?.checked_shr(from as u32).unwrap_or(0), length as u32))
                })
            }
            Op::Add(op) if is_plain(op.ty, op.sat, op.cc) => {
                self.map([&op.a, &op.b], depth, |[a, b]| Some(a?.wrapping_add(b?)))
            }
            Op::Sub(op) if is_plain(op.ty, op.sat, op.cc) => {
                self.map([&op.a, &op.b], depth, |[a, b]| Some(a?.wrapping_sub(b?)))
            }
            Op::Mul(op) if is_plain(op.ty, op.sat, false) && op.half != Some(MulHalf::Hi) => {
                let ty = op.ty;
                self.map([&op.a, &op.b], depth, |[a, b]| Some(extend(a?, ty).wrapping_mul(extend(b?, ty))))
            }
            Op::Mad(op) if is_plain(op.ty, op.sat, op.cc) && op.half != Some(MulHalf::Hi) => {
                let ty = op.ty;
                self.map([&op.a, &op.b, &op.c], depth, |[a, b, c]| {
                    Some(extend(a?, ty).wrapping_mul(extend(b?, ty)).wrapping_add(c?))
                })
            }
            Op::Setp(op) if (op.ty.is_integer() || op.ty.is_bits()) && op.bool_op.is_none() => {
                let (ty, cmp, opposite) = (op.ty, op.cmp, op.d.first != Some(reg));
                self.map([&op.a, &op.b], depth, |[a, b]| {
                    let (a, b) = (extend(a?, ty), extend(b?, ty));
                    let order = if ty.is_signed() { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) };
                    Some(u64::from(holds(cmp, order)? != opposite))
                })
            }
            Op::Selp(op) => self.map([&op.a, &op.b, &op.c], depth, |[a, b, c]| match c {
                Some(0) => b,
                Some(_) => a,
                None => a.filter(|_| a == b),
            }),
            _ => None,
        }
    }
}

/// Whether a sum or product is one of integers, and nothing more.
fn is_plain(ty: Type, sat: bool, cc: bool) -> bool {
    ty.is_integer() && !sat && !cc
}

/// The lowest bits of a value.
fn low(value: u64, bits: u32) -> u64 {
    if bits < 64 { value & ((1 << bits) - 1) } else { value }
}

/// A value of a type, as one of 64 bits.
fn extend(value: u64, ty: Type) -> u64 {
    let bits = ty.bits();
    match ty.is_signed() && bits < 64 {
        true => ((value << (64 - bits)) as i64 >> (64 - bits)) as u64,
        false => low(value, bits),
    }
}
