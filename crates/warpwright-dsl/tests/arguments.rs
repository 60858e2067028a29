//! Arguments of kernels: the list that a kernel declares, and what its body asks for.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Address, Arch, Dsts, LabelId, Module, Origin, Param, Reg, Space, Type, Unified};
use warpwright_ptx::op::memory::Ld;
use warpwright_ptx::op::{Op, control};
use warpwright_ptx::{parse, print};

type Body = for<'k> fn(K<'k>);

/// Its arguments are `x` and `n`; its body is given.
struct Asking(Body);

impl AnyKernel for Asking {
    fn entry(&self) -> String {
        "asking".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::output::<f32>("x", 1), ArgDesc::scalar::<u32>("n")]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        (self.0)(k);
    }
}

#[test]
fn arguments_must_be_those_of_the_body() {
    let first = line!();
    let wrong: [(&str, u32, Body); 6] = [
        ("a number of another type", 2, |k| k.ptr_mut::<f32>("x").st(0, k.scalar::<f32>("n"))),
        ("a buffer that is a number", 3, |k| k.ptr_mut::<u32>("n").st(0, k.scalar::<u64>("x").to::<u32>())),
        ("one that is not asked for", 15, |k| k.ptr_mut::<f32>("x").st(0, 1.0)),
        ("one too many", 6, |k| {
            k.ptr_mut::<f32>("x").st(0, k.scalar::<u32>("n").f32() + k.scalar::<f32>("m"))
        }),
        ("one twice", 9, |k| {
            k.ptr_mut::<f32>("x").st(0, (k.scalar::<u32>("n") + k.scalar::<u32>("n")).f32())
        }),
        ("elements of another type", 11, |k| k.ptr_mut::<u32>("x").st(0, k.scalar::<u32>("n"))),
    ];
    for (what, line, body) in wrong {
        // What the body does not say has the line that builds the kernel.
        match Asking(body).module(Arch::sm(80)) {
            Err(BuildError::Mistakes(mistakes)) => {
                let lines = mistakes.iter().map(|mistake| match mistake.origin {
                    Origin::Rust(at) => (at.file(), at.line()),
                    other => panic!("{what}: {other:?}"),
                });
                assert_eq!(lines.take(1).collect::<Vec<_>>(), [(file!(), first + line)], "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn parameters_have_the_order_of_the_argument_list() {
    let late = Asking(|k| {
        let n = k.scalar::<u32>("n");
        k.when(n.gt(3), || k.ptr_mut::<f32>("x").st(0, n.f32()));
    });
    let module = late.module(Arch::sm(80)).expect("a kernel");
    let names = |module: &Module| -> Vec<String> {
        let function = module.entries().next().expect("an entry");
        let name = |param: &Param| match param {
            Param::Variable(id) => function.variable(*id).name.to_string(),
            other => panic!("{other:?}"),
        };
        function.params.iter().map(name).collect()
    };
    assert_eq!(names(&module), ["x", "n"]);
    let read = parse(&print(&module)).expect("its text");
    assert_eq!(names(&read), ["x", "n"]);
}

/// Its output may share the buffers of these arguments.
struct Sharing(Role, &'static [&'static str]);

impl AnyKernel for Sharing {
    fn entry(&self) -> String {
        "sharing".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        vec![
            ArgDesc::input::<f32>("x", 1),
            ArgDesc::input::<i32>("other_type", 1),
            ArgDesc::in_out::<f32>("no_input", 1),
            ArgDesc::buffer("y", Type::F32, self.0, 1).may_share(self.1),
        ]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        let (x, y) = (k.ptr::<f32>("x"), k.ptr::<i32>("other_type").ld(0));
        let sum = x.ld(0) + k.ptr_mut::<f32>("no_input").ld(0) + y.f32();
        k.ptr_mut::<f32>("y").st(0, sum);
    }
}

#[test]
fn outputs_may_share_the_buffers_of_inputs_of_their_type() {
    let mistakes = |role, inputs| match Sharing(role, inputs).build(Arch::sm(80)) {
        Ok(_) => 0,
        Err(BuildError::Mistakes(mistakes)) => mistakes.len(),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(mistakes(Role::Out, &[]), 0);
    assert_eq!(mistakes(Role::Out, &["x"]), 0);
    assert_eq!(mistakes(Role::Out, &["x", "other_type"]), 1);
    assert_eq!(mistakes(Role::Out, &["no_input"]), 1);
    assert_eq!(mistakes(Role::Out, &["y"]), 1);
    assert_eq!(mistakes(Role::Out, &["nobody", "x"]), 1);
    assert_eq!(mistakes(Role::InOut, &["x"]), 1);
}

/// Its input `w` is constant, if it is declared so. It may ask for the read-only cache for `x`.
struct Weighing {
    w: ArgDesc,
    y: ArgDesc,
    asks: bool,
}

impl Weighing {
    fn new(constant: bool) -> Self {
        let w = ArgDesc::input::<f32>("w", 1);
        let w = if constant { w.constant() } else { w };
        Weighing { w, y: ArgDesc::output::<f32>("y", 1), asks: false }
    }
}

impl AnyKernel for Weighing {
    fn entry(&self) -> String {
        "weighing".into()
    }
    fn args(&self) -> Vec<ArgDesc> {
        vec![ArgDesc::input::<f32>("x", 1), self.w.clone(), self.y.clone()]
    }
    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32)
    }
    fn body(&self, k: K<'_>) {
        let (x, w, y) = (k.ptr::<f32>("x"), k.ptr::<f32>("w"), k.ptr_mut::<f32>("y"));
        let x = if self.asks { x.nc() } else { x };
        y.st(0, x.ld(0) * w.at(k.tid()).ld(1));
    }
}

/// For each load of global memory, whether it is non-coherent.
fn non_coherent(module: &Module) -> Vec<bool> {
    let function = module.entries().next().expect("an entry");
    let loads = function.instructions().filter_map(|instruction| match &instruction.op {
        Op::Ld(ld) if ld.space == Some(Space::Global) => Some(ld.nc),
        _ => None,
    });
    loads.collect()
}

#[test]
fn constant_inputs_are_read_through_the_read_only_cache() {
    let module = |constant| Weighing::new(constant).module(Arch::sm(80)).expect("a kernel");
    assert_eq!(non_coherent(&module(false)), [false, false]);
    assert_eq!(non_coherent(&module(true)), [false, true]);
}

/// A body whose operands are in memory knows nothing of who else writes them: only what is declared constant is read
/// through the read-only cache, whatever the body asks for.
#[test]
fn a_called_body_reads_constant_inputs_alone_through_the_read_only_cache() {
    let called = |constant| {
        let built = build("calling", &LaunchRule::new(32), Arch::sm(80), |k| {
            let call = Call::new(k.teams(1), k.ptr("records"), k.scalar("record"));
            call.run(&Weighing { asks: true, ..Weighing::new(constant) }, [k.u32(0); 3]);
        });
        let built = built.expect("a kernel");
        let asked: Vec<_> = built.calls[0].asked.clone();
        assert_eq!(asked, ["x", "w", "y"].map(Asked::Arg));
        non_coherent(&built.module)
    };
    // The words of the record, then the numbers.
    assert_eq!(called(true), [true, true, true, false, true]);
    assert_eq!(called(false), [true, true, true, false, false]);
    let launched = Weighing { asks: true, ..Weighing::new(false) }.module(Arch::sm(80)).expect("a kernel");
    assert_eq!(non_coherent(&launched), [true, false]);
}

/// Arguments that the caller has: the team's threads and its place, and the caller's pointers.
#[test]
fn a_body_is_a_function_of_its_arguments() {
    let built = build("calling", &LaunchRule::new(64), Arch::sm(80), |k| {
        let (y, team) = (k.ptr_mut::<u32>("y"), k.teams(1));
        let [zero, one] = [0, 1].map(|n| k.u32(n));
        team.run([team.number(), zero, zero], [one; 3], || {
            y.st(k.ctaid() * 32 + k.tid(), k.u32(k.threads()))
        });
        y.st(64, k.u32(k.threads()));
    });
    let built = built.expect("a kernel");
    assert!(built.calls.is_empty());
    let stored = built.module.entries().next().expect("an entry").instructions().filter_map(|instruction| {
        match &instruction.op {
            Op::St(st) => Some(st.clone()),
            _ => None,
        }
    });
    assert_eq!(stored.count(), 2);
}

#[test]
fn teams_divide_a_block() {
    let mistakes = |threads: u32, warps: u32| {
        let built = build("teams", &LaunchRule::new(threads), Arch::sm(80), |k| k.teams(warps).sync());
        built.map_or_else(|mistakes| mistakes.len(), |_| 0)
    };
    for (threads, warps) in [(32, 1), (256, 1), (256, 8), (256, 4), (96, 3), (480, 1)] {
        assert_eq!(mistakes(threads, warps), 0, "{threads} threads in teams of {warps} warps");
    }
    // None, a rest, more teams than barriers, lanes of a warp left over.
    for (threads, warps) in [(256, 0), (256, 3), (512, 1), (48, 1)] {
        assert_eq!(mistakes(threads, warps), 1, "{threads} threads in teams of {warps} warps");
    }
}

/// What a kernel with blocks of some threads is called by, in a block of 8 warps.
#[test]
fn teams_have_as_many_warps_as_the_kernel_or_suit_it() {
    let warps = |rule: LaunchRule, most| rule.team_warps(most);
    assert_eq!([32, 64, 256].map(|threads| warps(LaunchRule::new(threads), 8)), [Some(1), Some(2), Some(8)]);
    assert_eq!([96, 48, 512, 0].map(|threads| warps(LaunchRule::new(threads), 8)), [None; 4]);
    let any = |threads, most| warps(LaunchRule::new(threads).any_warps(), most);
    assert_eq!([32, 96, 224, 1024].map(|threads| any(threads, 8)), [Some(1), Some(2), Some(4), Some(8)]);
    assert_eq!([any(1024, 2), any(48, 8), any(256, 0)], [Some(2), None, None]);
    assert_eq!(warps(LaunchRule::new(64).block_3d([32, 2, 1]), 8), None);
}

#[test]
fn only_inputs_that_no_output_shares_are_constant() {
    let mistakes = |kernel: Weighing| match kernel.build(Arch::sm(80)) {
        Ok(_) => 0,
        Err(BuildError::Mistakes(mistakes)) => mistakes.len(),
        Err(other) => panic!("{other}"),
    };
    let kernel = || Weighing::new(true);
    assert_eq!(mistakes(kernel()), 0);
    assert_eq!(mistakes(Weighing { y: kernel().y.may_share(&["x"]), ..kernel() }), 0);
    assert_eq!(mistakes(Weighing { y: kernel().y.may_share(&["w"]), ..kernel() }), 1);
    assert_eq!(mistakes(Weighing { y: kernel().y.constant(), ..kernel() }), 1);
}

/// A load of the kernel's own.
fn load_of(k: K<'_>, address: Address) -> Ld {
    Ld {
        mmio: false,
        semantics: None,
        scope: None,
        space: Some(Space::Global),
        cache: None,
        nc: false,
        l1_eviction: None,
        l2_eviction: None,
        cache_hint: false,
        prefetch: None,
        vector: None,
        ty: Type::U32,
        readonly: false,
        unified: Unified::default(),
        d: Dsts::One(k.fresh::<u32>().ir()),
        address,
        policy: None,
    }
}

/// Instructions of the kernel's own have the registers that it has, and no labels: what cannot be is a mistake.
#[test]
fn instructions_of_the_kernels_own_are_held_to_the_kernel() {
    let mistakes = |body: fn(K<'_>)| {
        build("own", &LaunchRule::new(32), Arch::sm(80), body).map_or_else(|mistakes| mistakes.len(), |_| 0)
    };
    assert_eq!(mistakes(|k| k.op(load_of(k, k.ptr::<u32>("x").address()))), 0);
    assert_eq!(mistakes(|k| k.op(load_of(k, Address::reg(Reg(99_999), 0)))), 1);
    assert_eq!(mistakes(|k| k.op(control::Bra { uniform: false, target: LabelId(77) })), 1);
}

/// Calls that cannot be say so, and nothing more.
#[test]
fn calls_of_what_is_none_are_mistakes() {
    let mistakes = |body: fn(K<'_>)| {
        build("own", &LaunchRule::new(32), Arch::sm(80), body).map_or_else(|mistakes| mistakes.len(), |_| 0)
    };
    let weighing = || Weighing::new(true);
    let moved: fn(K<'_>) = |k| {
        let records = k.ptr::<u64>("records");
        Call::new(k.teams(1), records.at(1), k.u32(0)).run(&Weighing::new(true), [k.u32(0); 3]);
    };
    assert_eq!(mistakes(moved), 1);
    let outside: fn(K<'_>) = |k| {
        let (records, on) = (k.ptr::<u64>("records"), k.scalar::<u32>("on").ne(0));
        let call = std::cell::OnceCell::new();
        k.when(on, || _ = call.set(Call::new(k.teams(1), records, k.scalar::<u32>("record"))));
        if let Some(call) = call.get() {
            call.run(&Weighing::new(true), [k.u32(0); 3]);
        }
    };
    assert!(mistakes(outside) > 0);
    assert!(weighing().module(Arch::sm(80)).is_ok());
    let twice: fn(K<'_>) = |k| {
        let y = k.ptr_mut::<u32>("y");
        k.pieces(&[1, 1], |i, _| k.pieces(&[1, 1], |j, _| y.st(0, (i + j) as u32)));
    };
    // Each of the outer pieces divides it again, in one line: that is said once.
    assert_eq!(mistakes(twice), 1);
}

/// What a kernel with checked pointers may not do is a mistake of the line that does it.
#[test]
fn what_cannot_be_checked_is_refused() {
    struct Does(fn(K<'_>));

    impl AnyKernel for Does {
        fn entry(&self) -> String {
            "does".into()
        }
        fn args(&self) -> Vec<ArgDesc> {
            vec![ArgDesc::input::<u64>("x", 4), ArgDesc::output::<u32>("y", 4)]
        }
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32).min_sm(80)
        }
        fn body(&self, k: K<'_>) {
            (self.0)(k);
        }
    }

    let mistakes = |body: fn(K<'_>)| match build_checked(&Does(body), Arch::sm(80)) {
        Ok((built, args)) => {
            assert_eq!(args, Does(body).args());
            // The arguments, then the bytes of each buffer.
            let function = built.module.entries().next().expect("an entry");
            assert_eq!(function.params.len(), 4);
            Vec::new()
        }
        Err(BuildError::Mistakes(mistakes)) => {
            let line = |origin: &Origin| match origin {
                Origin::Rust(line) => line.line(),
                other => panic!("{other:?}"),
            };
            mistakes.iter().map(|mistake| line(&mistake.origin)).collect()
        }
        Err(other) => panic!("{other}"),
    };
    let first = line!() + 2;
    let refused: [fn(K<'_>); 3] = [
        |k| k.ptr_mut::<u32>("y").st(0, k.global_at::<u32>(k.ptr::<u64>("x").ld(0)).ld(0)),
        |k| k.ptr_mut::<u32>("y").st(0, k.global_table::<u32>(&[1, 2]).ld(k.ptr::<u64>("x").ld(0))),
        |k| k.op(load_of(k, k.ptr::<u64>("x").at(k.ptr_mut::<u32>("y").at(1).ld(0)).address())),
    ];
    for (body, line) in refused.into_iter().zip(first..) {
        assert_eq!(mistakes(body), [line]);
    }
    // The words of a record are addresses that are found in memory, and what they lead to is no argument.
    let calls: fn(K<'_>) = |k| {
        let call = Call::new(k.teams(1), k.ptr("x"), k.ptr_mut::<u32>("y").ld(0));
        call.run(&Does(|k| k.ptr_mut::<u32>("y").st(0, 1)), [k.u32(0); 3]);
    };
    assert_eq!(mistakes(calls).len(), 2);
    let allowed: fn(K<'_>) = |k| {
        let shared = k.shared::<u32>(32);
        shared.st(k.tid(), k.ptr::<u64>("x").ld(k.tid()).to::<u32>());
        k.sync();
        k.ptr_mut::<u32>("y").st_if(k.tid().lt(4), k.tid(), k.warp_sum(shared.ld(31 - k.tid())));
    };
    assert!(mistakes(allowed).is_empty());
}
