//! Arguments of kernels: the list that a kernel declares, and what its body asks for.

use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Module, Origin, Param, Space, Type};
use warpwright_ptx::op::Op;
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

/// Its input `w` is constant, if it is declared so.
struct Weighing {
    w: ArgDesc,
    y: ArgDesc,
}

impl Weighing {
    fn new(constant: bool) -> Self {
        let w = ArgDesc::input::<f32>("w", 1);
        Weighing { w: if constant { w.constant() } else { w }, y: ArgDesc::output::<f32>("y", 1) }
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

#[test]
fn a_called_body_trusts_the_caller_that_an_input_is_constant() {
    let called = |constant, frozen| {
        let built = build("calling", &LaunchRule::new(32), Arch::sm(80), |k| {
            let mut call = Call::new(k.teams(1));
            for name in ["x", "w"] {
                call = call.parameter(name, k.ptr::<f32>(name), frozen);
            }
            let y = k.ptr_mut::<f32>("y");
            call.parameter("y", y, false).run(&Weighing::new(constant), [k.u32(0); 3]);
            y.st(1, k.ptr::<f32>("z").ld(0));
        });
        non_coherent(&built.expect("a kernel").module)
    };
    assert_eq!(called(true, true), [false, true, false]);
    assert_eq!(called(true, false), [false, false, false]);
    assert_eq!(called(false, true), [false, false, false]);
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
