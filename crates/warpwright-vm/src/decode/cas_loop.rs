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
use warpwright_ptx::op::Op;

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
    // Addresses that are another, of the same or another space.
    let mut same: HashMap<Reg, Reg> = HashMap::new();
    for (at, op) in instructions() {
        match op {
            Op::Mov(mov) => {
                if let (Dsts::One(to), Srcs::One(Src::Reg(from))) = (&mov.d, &mov.a) {
                    copies.entry(*to).or_default().push(*from);
                }
            }
            Op::Cvta(cvta) => {
                if let Src::Reg(from) = cvta.a {
                    same.insert(cvta.d.0, from);
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
                place_of(address, &same) == place_of(place, &same) && size == bytes
            };
            found.extend(loads.get(&reg).into_iter().flatten().filter(from_here).map(|&(at, ..)| at));
            let from = copies.get(&reg).into_iter().flatten().copied();
            open.extend(from.filter(|&from| known.insert(from)));
        }
    }
    found
}

/// Where an address is, before it was converted from one space to another. Inline assembly may have the one, and the
/// compiler's own code the other.
fn place_of<'f>(address: &'f Address, same: &HashMap<Reg, Reg>) -> (Result<Reg, &'f AddressBase>, i64) {
    let base = match &address.base {
        AddressBase::Reg(reg) => Ok(same.get(reg).copied().unwrap_or(*reg)),
        other => Err(other),
    };
    (base, address.offset)
}
