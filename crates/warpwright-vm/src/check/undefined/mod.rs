//! Follows undefined values through registers.
//!
//! Compilers load local memory before they know whether the value is needed, and move registers that only some paths
//! write. So neither is a mistake by itself, nor is a shuffle from a lane that does not take part: the register is
//! undefined, and a finding is made where such a value matters: in an address, in a guard, as what is stored to global
//! memory, in a collective other than a shuffle, in a call of the runtime. What is computed from it is undefined too, and
//! what is stored to local or shared memory leaves its bytes undefined. With synccheck alone it is not known what memory
//! holds, so that every store is a use.
//!
//! **Nothing is followed before there is an undefined register**, and nothing once there is none. While a warp has some,
//! the loop that executes instructions hands out its fuel one instruction at a time ([`Machine::held`]), and asks here
//! before each: so it pays nothing otherwise.
//!
//! Undefined is each bit. Instructions that move bits or combine them one by one are executed with different values of
//! the undefined ones, and what differs in the results is undefined: no rule per instruction is needed. What others
//! compute is undefined as a whole. A byte in memory is unwritten if all its bits are undefined.

mod call;
mod follow;
mod lanes;
mod memory;

use super::RawPlace;
use crate::machine::{LANES, LanesOf, Row32};
use std::collections::{BTreeMap, HashMap};
use warpwright_ptx::ir::Reg;

/// The carry flag, as a register.
const CARRY: Reg = Reg(u32::MAX);

/// Where an undefined value comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    pc: u32,
    thread: u32,
    what: What,
}

/// What was undefined at first.
#[derive(Clone, Copy, Debug, Default)]
enum What {
    /// Something that a call passed.
    #[default]
    Passed,
    /// Memory that was never written.
    Memory(RawPlace),
    /// A register that was never written.
    Register(Reg),
    /// What a lane gave that did not take part; these did.
    Lane { present: u32 },
}

/// What is undefined of a register.
#[derive(Clone, Debug)]
struct Shadow {
    /// The bits, by lane.
    bits: [u128; LANES],
    /// Where they come from.
    origins: [Origin; LANES],
}

impl Default for Shadow {
    fn default() -> Self {
        Shadow { bits: [0; LANES], origins: [Origin::default(); LANES] }
    }
}

impl Shadow {
    /// The lanes in which any of these bits is undefined.
    fn lanes(&self, bits: u128) -> u32 {
        (0..LANES).fold(0, |lanes, lane| lanes | u32::from(self.bits[lane] & bits != 0) << lane)
    }
}

/// What is undefined of a word that a call passes.
#[derive(Clone, Debug)]
pub(crate) struct UndefinedWord {
    bits: Row32,
    origins: [Origin; LANES],
}

impl Default for UndefinedWord {
    fn default() -> Self {
        UndefinedWord { bits: [0; LANES], origins: [Origin::default(); LANES] }
    }
}

/// What is undefined in a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undefined {
    /// By frame and register.
    registers: BTreeMap<(u32, Reg), Box<Shadow>>,
    /// Where what was stored to words of local memory comes from, by lane.
    stored: HashMap<(u32, usize), Origin>,
    /// Where the last undefined value comes from that a lane has given in a shuffle.
    given: [Origin; LANES],
    /// Of what functions have returned.
    returned: Vec<UndefinedWord>,
    /// Statements since the last sweep.
    followed: u32,
}

impl Undefined {
    /// A block begins.
    pub(crate) fn clear(&mut self) {
        self.registers.clear();
        self.stored.clear();
        self.returned.clear();
    }

    /// Whether no register is undefined.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    /// Lanes leave a frame.
    pub(crate) fn leave(&mut self, frame: u32, lanes: u32) {
        let range = (frame, Reg(0))..=(frame, CARRY);
        let keys: Vec<_> = self.registers.range(range).map(|(&key, _)| key).collect();
        keys.into_iter().for_each(|(frame, reg)| self.define(frame, reg, lanes));
    }

    /// Words of local memory become another variable.
    pub(crate) fn forget_stored(&mut self, words: std::ops::Range<usize>, lanes: u32) {
        if !self.stored.is_empty() {
            self.stored
                .retain(|&(word, lane), _| !words.contains(&(word as usize)) || lanes >> lane & 1 == 0);
        }
    }

    /// A register is written.
    fn define(&mut self, frame: u32, reg: Reg, lanes: u32) {
        self.set(frame, reg, lanes, |_| (0, Origin::default()));
    }

    /// A register is written: the bits of each lane that are undefined, and where they come from.
    fn set(&mut self, frame: u32, reg: Reg, lanes: u32, value: impl Fn(usize) -> (u128, Origin)) {
        let mut shadow = self.registers.remove(&(frame, reg)).unwrap_or_default();
        for lane in LanesOf(lanes) {
            (shadow.bits[lane], shadow.origins[lane]) = value(lane);
        }
        if shadow.lanes(u128::MAX) != 0 {
            self.registers.insert((frame, reg), shadow);
        }
    }
}

/// All bits of a type.
fn all(bits: u32) -> u128 {
    u128::MAX >> (128 - bits.clamp(1, 128))
}
