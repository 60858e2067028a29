//! Loads that only provide the expected value for a compare-and-swap.
//!
//! ```text
//!   old = *p;
//!   do { seen = old; old = atomicCAS(p, seen, f(seen)); } while (old != seen);
//! ```
//!
//! is how CUDA's guide builds an atomic operation, and how NVIDIA's headers do so for types without an instruction on
//! a target. The load is weak, and by the letter of the memory model it races with the swaps of others; but the swap
//! fails if the loaded value was wrong.

use std::collections::{HashMap, HashSet};
use warpwright_ptx::ir::{Address, AddressBase, Dsts, Function, Reg, Src, Srcs};
use warpwright_ptx::op::{Access, Op};

/// The loads of a function whose value is compared by a swap of the same place, as numbers of statements.
pub(super) fn proposing_loads(function: &Function) -> HashSet<u32> {
    let instructions = || {
        function.statements().iter().enumerate().filter_map(|(at, statement)| match &statement.kind {
            warpwright_ptx::ir::StatementKind::Instruction(instruction) => Some((at as u32, &instruction.op)),
            _ => None,
        })
    };
    let swaps: Vec<(&Address, u32, Reg)> = instructions()
        .filter_map(|(_, op)| match op {
            Op::AtomCas(cas) => match cas.b {
                Src::Reg(compared) => Some((&cas.address, cas.ty.bytes(), compared)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    if swaps.is_empty() {
        return HashSet::new();
    }
    let mut copies: HashMap<Reg, Vec<Reg>> = HashMap::new();
    let mut loads: HashMap<Reg, Vec<(u32, &Address, u32)>> = HashMap::new();
    // What computes each register; nothing if there are several.
    let mut computed: HashMap<Reg, Option<&Op>> = HashMap::new();
    for (at, op) in instructions() {
        op.visit(&mut |access: Access, reg: Reg| {
            if access != Access::Read {
                computed.entry(reg).and_modify(|op| *op = None).or_insert(Some(op));
            }
        });
        match op {
            Op::Mov(mov) => {
                if let (Dsts::One(to), Srcs::One(Src::Reg(from))) = (&mov.d, &mov.a) {
                    copies.entry(*to).or_default().push(*from);
                }
            }
            Op::Ld(load) => {
                if let Dsts::One(to) = load.d {
                    loads.entry(to).or_default().push((at, &load.address, load.ty.bytes()));
                }
            }
            _ => {}
        }
    }
    let mut found = HashSet::new();
    for (place, bytes, compared) in swaps {
        let mut known = HashSet::from([compared]);
        let mut open = vec![compared];
        while let Some(reg) = open.pop() {
            let from_here = |&&(_, address, size): &&(u32, &Address, u32)| {
                size == bytes && place_of(address, &computed) == place_of(place, &computed)
            };
            found.extend(loads.get(&reg).into_iter().flatten().filter(from_here).map(|&(at, ..)| at));
            let from = copies.get(&reg).into_iter().flatten().copied();
            open.extend(from.filter(|&from| known.insert(from)));
        }
    }
    found
}

/// The registers that an address is the sum of, and the constant that is added: what it was before it was converted from
/// one space to another, since inline assembly may have the one address, and the compiler's own code the other.
fn place_of<'f>(
    address: &'f Address,
    computed: &HashMap<Reg, Option<&Op>>,
) -> (Vec<Reg>, Option<&'f AddressBase>, i64) {
    let mut offset = address.offset;
    let AddressBase::Reg(base) = address.base else { return (Vec::new(), Some(&address.base), offset) };
    let (mut terms, mut open, mut steps) = (Vec::new(), vec![base], 0);
    while let Some(reg) = open.pop() {
        let sources = match computed.get(&reg) {
            Some(Some(Op::Cvta(op))) => vec![&op.a],
            Some(Some(Op::Add(op))) if op.ty.is_integer() && !op.sat && !op.cc => vec![&op.a, &op.b],
            _ => Vec::new(),
        };
        steps += 1;
        let known = |src: &&Src| matches!(src, Src::Reg(_) | Src::Imm(_));
        if sources.is_empty() || !sources.iter().all(known) || steps > MAX_STEPS {
            terms.push(reg);
            continue;
        }
        for src in sources {
            match src {
                Src::Reg(reg) => open.push(*reg),
                Src::Imm(imm) => offset = offset.wrapping_add(imm.bits().unwrap_or(0) as i64),
                _ => {}
            }
        }
    }
    terms.sort();
    (terms, None, offset)
}

/// The most registers of an address that are looked at: one that a loop counts up is computed from itself.
const MAX_STEPS: u32 = 32;
