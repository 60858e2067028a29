//! Kernels that are built with checked pointers: each kind of access traps where it would leave its argument, and nowhere
//! else. Arguments are shorter than their buffers, so that nothing but the check stands at their ends.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_runtime::{Device, VmConfig};

/// Elements of the buffers, and of the arguments.
const ROOM: usize = 64;
const LEN: u64 = 21;

/// An access at element `at` of `x` or `y`, if `on` is not 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Access {
    Load,
    Pair,
    Four,
    Store,
    StorePair,
    Add,
    Swap,
    CompareAndSwap,
    Copy,
    Narrow,
}

impl Access {
    const ALL: [Access; 10] = [
        Access::Load,
        Access::Pair,
        Access::Four,
        Access::Store,
        Access::StorePair,
        Access::Add,
        Access::Swap,
        Access::CompareAndSwap,
        Access::Copy,
        Access::Narrow,
    ];

    /// Elements that it touches.
    fn elements(self) -> u64 {
        match self {
            Access::Pair | Access::StorePair => 2,
            Access::Four | Access::Copy => 4,
            _ => 1,
        }
    }
}

/// How the access is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Always.
    Plain,
    /// In a branch.
    Branch,
    /// Under a predicate.
    Guarded,
    /// In a loop, up to it.
    Loop,
    /// By a pointer that was moved beyond the argument, and back.
    Back,
}

const WAYS: [Way; 5] = [Way::Plain, Way::Branch, Way::Guarded, Way::Loop, Way::Back];

struct Touches(Access, Way);

impl AnyKernel for Touches {
    fn entry(&self) -> String {
        "touches".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        vec![
            ArgDesc::input::<u32>("x", Extent::dim("n")),
            ArgDesc::scalar::<i64>("at"),
            ArgDesc::scalar::<u32>("on"),
            ArgDesc::in_out::<u32>("y", Extent::dim("n")),
            ArgDesc::output::<u32>("sum", 1),
        ]
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(1).min_sm(80)
    }

    fn body(&self, k: K<'_>) {
        self.touch(k);
    }
}

impl Touches {
    fn touch<'k>(&self, k: K<'k>) {
        let &Touches(access, way) = self;
        let (x, y, sum) = (k.ptr::<u32>("x"), k.ptr_mut::<u32>("y"), k.ptr_mut::<u32>("sum"));
        let (at, on) = (k.scalar::<i64>("at"), k.scalar::<u32>("on").ne(0));
        let guard = (way == Way::Guarded).then_some(on);
        let touch = |at: Reg<'k, i64>| {
            let (x, y, at) = match way {
                Way::Back => (x.at(1000), y.at(1000), at - 1000),
                _ => (x, y, at),
            };
            let seen = match (access, guard) {
                (Access::Load, None) => x.ld(at),
                (Access::Load, Some(on)) => x.ld_if(on, at, 0),
                (Access::Pair, None) => x.ld_vec::<2>(at)[1],
                (Access::Pair, Some(on)) => x.ld_vec_if::<2>(on, at, 0)[1],
                (Access::Four, None) => x.ld_vec::<4>(at)[3],
                (Access::Four, Some(on)) => x.ld_vec_if::<4>(on, at, 0)[3],
                (Access::Narrow, None) => x.cast::<u16>().at(1).ld(at * 2).to(),
                (Access::Narrow, Some(on)) => x.cast::<u16>().at(1).ld_if(on, at * 2, k.value::<u16>(0)).to(),
                (Access::Store, None) => {
                    y.st(at, 5);
                    k.u32(0)
                }
                (Access::Store, Some(on)) => {
                    y.st_if(on, at, 5);
                    k.u32(0)
                }
                (Access::StorePair, None) => {
                    y.st_vec(at, [k.u32(5), k.u32(6)]);
                    k.u32(0)
                }
                (Access::StorePair, Some(on)) => {
                    y.st_vec_if(on, at, [k.u32(5), k.u32(6)]);
                    k.u32(0)
                }
                (Access::Add, _) => {
                    y.reduce_add(at, 3);
                    k.u32(0)
                }
                (Access::Swap, _) => y.atomic_exch(at, 9),
                (Access::CompareAndSwap, _) => y.atomic_cas(at, 0, 4),
                (Access::Copy, _) => {
                    let shared = k.shared::<u32>(4);
                    k.cp_async(shared, x.at(at), 16);
                    k.cp_async_commit();
                    k.cp_async_wait(0);
                    shared.ld(3)
                }
            };
            sum.st(0, seen);
        };
        match way {
            Way::Plain | Way::Back | Way::Guarded => touch(at),
            Way::Branch => k.when(on, || touch(at)),
            Way::Loop => {
                // Some begin before the argument.
                k.each(k.upto(k.u32(8)), |i| touch(at - (i.to::<i64>() * 4)));
            }
        }
    }
}

#[test]
fn accesses_trap_where_they_leave_their_arguments() {
    let mut config = VmConfig::default();
    config.device.arch = Arch::sm(80);
    for access in Access::ALL {
        for way in WAYS {
            let has_guard = matches!(
                access,
                Access::Load
                    | Access::Pair
                    | Access::Four
                    | Access::Narrow
                    | Access::Store
                    | Access::StorePair
            );
            if way == Way::Guarded && !has_guard {
                continue;
            }
            let size = access.elements() as i64;
            let (aligned, len) = (|at: i64| at - at.rem_euclid(size), LEN as i64);
            let ends =
                [0, 1, 4, len - size, len - 1, len, len + 1, 40, 63, -1, -size, -20, 1 << 40, i64::MIN / 8];
            for at in ends.map(aligned) {
                for on in [0u32, 1] {
                    // A device whose launch has trapped is lost.
                    let device = Device::vm(config.clone()).unwrap();
                    let stream = device.default_stream();
                    let (x, y) =
                        (stream.clone_htod(&[7u32; ROOM]).unwrap(), stream.alloc_zeros::<u32>(ROOM).unwrap());
                    let sum = stream.alloc_zeros::<u32>(1).unwrap();
                    // The argument begins inside the buffer too.
                    let [x, y] = [&x, &y].map(|buffer| buffer.slice(16..).unwrap());
                    let kernel = device.checked(&Touches(access, way)).unwrap();
                    let bound = kernel.bind().buffer("x", &x).buffer("y", &y).buffer("sum", &sum);
                    bound.dim("n", LEN).scalar("at", at).scalar("on", on).launch(&stream).unwrap();
                    let inside = |at: i64| at >= 0 && at + size <= len;
                    let right = match way {
                        Way::Branch | Way::Guarded if on == 0 => true,
                        Way::Loop => (0..8).all(|i| inside(at - 4 * i)),
                        _ => inside(at),
                    };
                    let ended = stream.synchronize();
                    assert_eq!(ended.is_ok(), right, "{access:?} {way:?} at {at}, {on}: {ended:?}");
                }
            }
        }
    }
}
