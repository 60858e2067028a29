//! Launches that overlap with earlier ones: where the body waits for those.

use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Space, StatementKind};
use warpwright_ptx::op::Op;
use warpwright_ptx::op::control::GridDependency;

/// What accesses memory or orders launches, in the order of the text.
fn accesses(target: Arch, called: bool) -> Vec<&'static str> {
    let body = |k: K<'_>| {
        let (x, weights) = (k.ptr_mut::<f32>("x"), k.ptr::<f32>("weights"));
        let all = || {
            k.release_launches();
            let weight = weights.ld(k.tid());
            k.wait_for_launches();
            x.st(k.tid(), x.ld(k.tid()) * weight);
        };
        if called {
            let (zero, one) = (k.u32(0), k.u32(1));
            k.teams(1).run([zero; 3], [one; 3], all);
        } else {
            all();
        }
    };
    let built = build("k", &LaunchRule::new(64), target, body).unwrap();
    let function = built.module.entries().next().unwrap();
    let names = function.statements().iter().filter_map(|statement| match &statement.kind {
        StatementKind::Instruction(instruction) => match &instruction.op {
            Op::Ld(ld) if ld.space == Some(Space::Global) => Some("load"),
            Op::St(_) => Some("store"),
            Op::Griddepcontrol(op) => Some(match op.action {
                GridDependency::Wait => "wait",
                GridDependency::LaunchDependents => "release",
            }),
            _ => None,
        },
        _ => None,
    });
    names.collect()
}

#[test]
fn loads_stay_on_their_side_of_a_wait_for_launches() {
    let plain = ["load", "load", "store"];
    assert_eq!(accesses(Arch::sm(90), false), ["release", "load", "wait", "load", "store"]);
    assert_eq!(accesses(Arch::sm(80), false), plain);
    assert_eq!(accesses(Arch::sm(90), true), plain);
}
