//! Undefined values and calls: what is passed, what comes back, and what the runtime takes.

use super::{Shadow, UndefinedWord, What};
use crate::check::Use;
use crate::decode::ParamSlot;
use crate::machine::{LanesOf, Machine};
use crate::memory::{AccessSpec, RegionKind, SpaceKind};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::control::{Call, Callee};

/// The registers of parameters or return values, as [`ParamSlot`]s have them.
fn passed_registers(function: &Function, params: &[Param]) -> Vec<Option<Reg>> {
    let registers = params.iter().map(|param| match *param {
        Param::Variable(_) => vec![None],
        Param::Register(first) => function.elements(first).map(Some).collect(),
    });
    registers.flatten().collect()
}

impl<'a> Machine<'a> {
    /// A call is about to be made. What it passes to functions of the module travels with it.
    pub(super) fn follow_call(&mut self, frame: u32, call: &Call, reads: &[Reg]) {
        match &call.callee {
            Callee::Reg(reg) => self.use_registers(frame, &[*reg], Use::Operand),
            Callee::Function(Symbol::Global(name))
                if !self.launch.code.functions.iter().any(|function| function.name == **name) =>
            {
                self.use_registers(frame, reads, Use::Operand);
            }
            Callee::Function(_) => {}
        }
    }

    /// Whether undefined values are followed through calls.
    pub(crate) fn follows(&self) -> bool {
        self.launch.options.checks.init | self.launch.options.checks.sync
    }

    /// The runtime takes an argument, which may be undefined where it is in memory.
    pub(crate) fn runtime_takes(&self, argument: ParamSlot) {
        if let ParamSlot::Memory { offset, bytes } = argument
            && self.launch.options.checks.init
        {
            let at = u64::from(self.warp.frame().local + offset);
            LanesOf(self.mask).for_each(|lane| self.runtime_uses(lane, at, bytes));
        }
    }

    /// The runtime reads bytes at a generic address of a thread.
    pub(crate) fn runtime_reads(&self, lane: usize, address: u64, bytes: u32) {
        let spec = AccessSpec { space: SpaceKind::Generic, bytes, align: 1, write: false };
        if self.launch.options.checks.init
            && let Some(region) = self.region_of(spec, address)
            && matches!(region.kind, RegionKind::Local)
        {
            self.runtime_uses(lane, address.wrapping_sub(region.start).wrapping_add(region.origin), bytes);
        }
    }

    fn runtime_uses(&self, lane: usize, at: u64, bytes: u32) {
        let is_written = |at: u64| {
            self.warp.local_written.get((at >> 2) as usize).is_some_and(|row| row[lane] >> (at & 3) & 1 != 0)
        };
        if bytes != 0 && !(at..at + u64::from(bytes)).any(is_written) {
            let stored = self.warp.undefined.stored.get(&((at >> 2) as u32, lane)).copied();
            let here = || self.origin(lane, What::Memory(self.local_place(at, bytes)));
            self.report_undefined(stored.unwrap_or_else(here), lane, Use::Operand, None);
        }
    }

    /// What is undefined of the arguments of the present call: words for each, none if all is defined.
    pub(crate) fn undefined_arguments(&self, arguments: &[ParamSlot]) -> Vec<Vec<UndefinedWord>> {
        let Some(Op::Call(call)) = self.launch.module.op(self.pc) else { return Vec::new() };
        let pairs = arguments.iter().zip(&call.arguments);
        pairs
            .map(|(&slot, src)| {
                let reg = match src {
                    Src::Reg(reg) => Some(*reg),
                    _ => None,
                };
                self.undefined_words(slot, reg)
            })
            .collect()
    }

    /// Lanes have entered a function: its parameters are as undefined as the arguments.
    pub(crate) fn pass_undefined(&mut self, number: u32, lanes: u32, arguments: &[Vec<UndefinedWord>]) {
        if arguments.iter().all(Vec::is_empty) {
            return;
        }
        let launch = self.launch;
        let code = &launch.code.functions[number as usize];
        let Some(path) = self.warp.paths.iter().find(|path| path.mask == lanes) else { return };
        let Some(function) = launch.module.function_at(code.entry) else { return };
        let frame = path.frame;
        let registers = passed_registers(function, &function.params);
        for ((&slot, reg), words) in code.params.iter().zip(registers).zip(arguments) {
            self.set_undefined_words(slot, reg, (frame, lanes), words);
        }
    }

    /// The running path returns: what is undefined of the results waits with them. `starts` are their first words.
    pub(crate) fn return_undefined(&mut self, starts: &[usize], words: usize) {
        let launch = self.launch;
        let Some(function) = launch.module.function_at(self.pc) else { return };
        let frame = self.warp.paths[self.warp.current].frame;
        let code = &launch.code.functions[self.warp.frame().function as usize];
        let registers = passed_registers(function, &function.returns);
        let pairs = code.returns.iter().zip(registers);
        let results: Vec<_> = pairs.map(|(&slot, reg)| self.undefined_words(slot, reg)).collect();
        let mask = self.mask;
        let undefined = &mut self.warp.undefined;
        undefined.leave(frame, mask);
        if undefined.returned.is_empty() && results.iter().all(Vec::is_empty) {
            return;
        }
        let count = undefined.returned.len().max(words);
        undefined.returned.resize_with(count, UndefinedWord::default);
        for word in &mut undefined.returned[..words] {
            LanesOf(mask).for_each(|lane| word.bits[lane] = 0);
        }
        for (start, words) in starts.iter().zip(results) {
            for (into, word) in undefined.returned[*start..].iter_mut().zip(words) {
                LanesOf(mask).for_each(|lane| {
                    (into.bits[lane], into.origins[lane]) = (word.bits[lane], word.origins[lane]);
                });
            }
        }
    }

    /// The caller has taken a result, from this word on.
    pub(crate) fn take_undefined(&mut self, slot: ParamSlot, reg: Option<Reg>, start: u32, words: u32) {
        let returned = self.warp.undefined.returned.iter().skip(start as usize).take(words as usize);
        if returned.clone().any(|word| LanesOf(self.mask).any(|lane| word.bits[lane] != 0)) {
            let words: Vec<_> = returned.cloned().collect();
            let frame = self.warp.paths[self.warp.current].frame;
            self.set_undefined_words(slot, reg, (frame, self.mask), &words);
        }
    }

    /// What is undefined of a value of the running frame; nothing if all is defined.
    fn undefined_words(&self, slot: ParamSlot, reg: Option<Reg>) -> Vec<UndefinedWord> {
        let local = self.warp.frame().local;
        let frame = self.warp.paths[self.warp.current].frame;
        let ParamSlot::Memory { offset, bytes } = slot else {
            let shadow = reg.and_then(|reg| self.warp.undefined.registers.get(&(frame, reg)));
            let word = |shadow: &Shadow, word: u32| UndefinedWord {
                bits: shadow.bits.map(|bits| (bits >> (32 * word)) as u32),
                origins: shadow.origins,
            };
            return shadow.map_or(Vec::new(), |shadow| (0..4).map(|at| word(shadow, at)).collect());
        };
        if !self.launch.options.checks.init {
            return Vec::new();
        }
        let first = (local + offset) / 4;
        let missing = |word: u32, lane: usize| {
            let written = self.warp.local_written.get((first + word) as usize).map_or(0, |row| row[lane]);
            let wanted = 0xf_u8 >> (4 - (bytes - 4 * word).min(4));
            wanted & !written
        };
        let words = bytes.div_ceil(4);
        if (0..words).all(|word| LanesOf(self.mask).all(|lane| missing(word, lane) == 0)) {
            return Vec::new();
        }
        let word = |word: u32| {
            let mut out = UndefinedWord::default();
            for lane in LanesOf(self.mask) {
                let missing = missing(word, lane);
                out.bits[lane] =
                    (0..4).filter(|at| missing >> at & 1 != 0).fold(0, |all, at| all | 0xff << (8 * at));
                let stored = self.warp.undefined.stored.get(&(first + word, lane)).copied();
                out.origins[lane] = stored.unwrap_or(self.origin(lane, What::Passed));
            }
            out
        };
        (0..words).map(word).collect()
    }

    /// Makes a parameter or result of a frame as undefined as what was passed.
    fn set_undefined_words(
        &mut self,
        slot: ParamSlot,
        reg: Option<Reg>,
        (frame, lanes): (u32, u32),
        words: &[UndefinedWord],
    ) {
        if let ParamSlot::Memory { offset, bytes } = slot {
            let first = (self.warp.frames[frame as usize].local + offset) / 4;
            for (at, word) in (0..bytes.div_ceil(4)).zip(words) {
                for lane in LanesOf(lanes) {
                    let bits = word.bits[lane];
                    let missing = (0..4).filter(|byte| bits >> (8 * byte) & 0xff == 0xff);
                    let missing = missing.fold(0, |all, byte| all | 1u8 << byte);
                    if missing != 0
                        && let Some(row) = self.warp.local_written.get_mut((first + at) as usize)
                    {
                        row[lane] &= !missing;
                        if !matches!(word.origins[lane].what, What::Passed) {
                            self.warp.undefined.stored.insert((first + at, lane), word.origins[lane]);
                        }
                    }
                }
            }
        } else if let Some(reg) = reg {
            self.warp.undefined.set(frame, reg, lanes, |lane| {
                let bits =
                    words.iter().take(4).rev().fold(0, |all, word| all << 32 | u128::from(word.bits[lane]));
                let origin = words.iter().find(|word| word.bits[lane] != 0).map(|word| word.origins[lane]);
                (bits, origin.unwrap_or_default())
            });
            if !self.warp.undefined.is_empty() {
                self.hold_fuel();
            }
        }
    }
}
