//! A fold's carried values are copied as if all at once: the emitted loop is run, in one thread.

use std::collections::HashMap;
use warpwright_dsl::{LaunchRule, build};
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;

/// Runs the straight moves and branches of a loop without memory but its stores.
fn stores(module: &Module, params: &[u64]) -> Vec<u64> {
    let function = module.entries().next().expect("a kernel");
    let body = function.statements();
    let mut regs: HashMap<Reg, u64> = HashMap::new();
    let mut stored = Vec::new();
    let mut at = 0;
    for _ in 0..1000 {
        let StatementKind::Instruction(instruction) = &body[at].kind else {
            at += 1;
            continue;
        };
        at += 1;
        let value = |regs: &HashMap<Reg, u64>, src: &Src| match src {
            Src::Reg(reg) => regs[reg],
            Src::Imm(imm) => imm.bits().expect("an integer"),
            other => panic!("a source that this test does not know: {other:?}"),
        };
        if let Some(guard) = instruction.guard
            && (regs[&guard.reg] != 0) == guard.negated
        {
            continue;
        }
        match &instruction.op {
            Op::Ld(ld) => {
                let (Dsts::One(d), AddressBase::Symbol(Symbol::Local(id))) = (&ld.d, &ld.address.base) else {
                    panic!("only parameters are loaded here")
                };
                regs.insert(*d, params[id.0 as usize]);
            }
            Op::Cvta(cvta) => drop(regs.insert(cvta.d.0, value(&regs, &cvta.a))),
            Op::Mov(mov) => {
                let (Dsts::One(d), Srcs::One(a)) = (&mov.d, &mov.a) else { panic!("no vectors here") };
                regs.insert(*d, value(&regs, a));
            }
            Op::Add(add) => {
                let sum = value(&regs, &add.a).wrapping_add(value(&regs, &add.b));
                regs.insert(add.d.0, sum);
            }
            Op::Setp(setp) => {
                assert_eq!(setp.cmp, Cmp::Lt, "the loop counts up");
                let less = value(&regs, &setp.a) < value(&regs, &setp.b);
                regs.insert(setp.d.first.expect("a predicate"), less.into());
            }
            Op::Bra(bra) => {
                let label = |s: &Statement| s.kind == StatementKind::Label(bra.target);
                at = body.iter().position(label).expect("the label is defined");
            }
            Op::St(st) => stored.push(value(&regs, &st.a.as_slice()[0])),
            Op::Ret(_) => return stored,
            other => panic!("an instruction that this test does not know: {}", other.name()),
        }
    }
    panic!("the loop does not end");
}

#[test]
fn carried_values_swap_and_rotate() {
    let built = build("rotate", &LaunchRule::new(32), Arch::sm(80), |k| {
        let (a, b, c) = (k.scalar::<u32>("a"), k.scalar::<u32>("b"), k.scalar::<u32>("c"));
        let (n, y) = (k.scalar::<u32>("n"), k.ptr_mut::<u32>("y"));
        let (a, b, c) = k.fold(k.range(k.u32(0)..n), (a, b, c), |_, (a, b, c)| (b, c, a));
        let (d, e) = k.fold(k.range(k.u32(0)..n), (a, b), |_, (d, e)| (e, d));
        y.st(0, d);
        y.st(1, e);
        y.st(2, c);
    })
    .expect("the kernel is built");
    for trips in 0..6u64 {
        let mut wanted = [10, 20, 30];
        wanted.rotate_left(trips as usize % 3);
        if trips % 2 == 1 {
            wanted.swap(0, 1);
        }
        assert_eq!(stores(&built.module, &[10, 20, 30, trips, 4096]), wanted, "{trips} trips");
    }
}
