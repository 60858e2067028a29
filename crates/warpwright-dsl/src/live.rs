//! Liveness: the instructions that a kernel's effects need. Unused pure instructions are dropped, such as the
//! arithmetic of an index that became a pointer.

use super::state::{Def, State};
use warpwright_ptx::ir::Reg;

/// Which values and instructions are needed.
pub(super) struct Liveness<'a> {
    state: &'a State,
    values: Vec<bool>,
    insts: Vec<bool>,
    work: Vec<Reg>,
    /// Writers of variables that are dropped with them.
    writers: Vec<(Reg, u32)>,
}

impl<'a> Liveness<'a> {
    /// Which values and which instructions are needed, by their numbers.
    pub(super) fn run(state: &'a State) -> (Vec<bool>, Vec<bool>) {
        let mut this = Liveness {
            state,
            values: vec![false; state.values.len()],
            insts: vec![false; state.insts.len()],
            work: Vec::with_capacity(64),
            writers: Vec::new(),
        };
        for (id, inst) in state.insts.iter().enumerate() {
            if !inst.pure {
                this.instruction(id as u32);
            } else if matches!(state.value(inst.result).def, Def::Variable) {
                this.writers.push((inst.result, id as u32));
            }
        }
        for looped in &state.loops {
            looped.again.into_iter().for_each(|again| this.need(again));
            looped.guard.into_iter().for_each(|guard| this.need(guard));
            for bump in &looped.bumps {
                this.need(bump.init);
                this.need(bump.pointer);
                bump.step.reg().into_iter().for_each(|reg| this.need(reg));
            }
        }
        state.ifs.iter().for_each(|branch| this.need(branch.condition));
        state.breaks.iter().filter_map(|leave| leave.condition).for_each(|condition| this.need(condition));
        for switch in &state.switches {
            this.need(switch.index);
            this.need(switch.inside);
        }
        while let Some(reg) = this.work.pop() {
            match state.value(reg).def {
                Def::Inst(inst) => this.instruction(inst),
                Def::Carried(id, i) => {
                    let carried = state.loops[id as usize].carried[i as usize];
                    this.need(carried.init);
                    this.need(carried.next);
                }
                Def::Result(value) => this.need(value),
                Def::Met(id, i) => {
                    let ways = state.breaks.iter().filter(|way| way.of == id);
                    ways.for_each(|way| this.need(way.values[i as usize]));
                }
                Def::Variable => {
                    for i in 0..this.writers.len() {
                        if this.writers[i].0 == reg {
                            this.instruction(this.writers[i].1);
                        }
                    }
                }
                Def::Const(_) | Def::Address(_) | Def::Resolved(_) => {}
            }
        }
        (this.values, this.insts)
    }

    fn need(&mut self, reg: Reg) {
        if let Some(live) = self.values.get_mut(reg.0 as usize)
            && !std::mem::replace(live, true)
        {
            self.work.push(reg);
        }
    }

    fn instruction(&mut self, id: u32) {
        if std::mem::replace(&mut self.insts[id as usize], true) {
            return;
        }
        let state = self.state;
        if let Some((guard, _)) = state.insts[id as usize].guard {
            self.need(guard);
        }
        for &(_, reg) in state.operands_of(id) {
            self.need(reg);
        }
    }
}
