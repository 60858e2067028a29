//! Arguments of kernels: the list that a kernel declares, and what its body asks for.

use warpwright_dsl::*;
use warpwright_ptx::ir::{Arch, Module, Origin, Param, Type};
use warpwright_ptx::{parse, print};

type Body = for<'k> fn(K<'k>);

/// Its arguments are `x` and `n`; its body is given.
struct Asking(Body);

impl Kernel for Asking {
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
    let wrong: [(&str, u32, Body); 5] = [
        ("a number of another type", 2, |k| k.ptr_mut::<f32>("x").st(0, k.scalar::<f32>("n"))),
        ("a buffer that is a number", 3, |k| k.ptr_mut::<u32>("n").st(0, k.scalar::<u64>("x").to::<u32>())),
        ("one that is not asked for", 10, |k| k.ptr_mut::<f32>("x").st(0, 1.0)),
        ("one too many", 5, |k| k.ptr_mut::<u32>("x").st(0, k.scalar::<u32>("n") + k.scalar::<u32>("m"))),
        ("one twice", 6, |k| k.ptr_mut::<u32>("x").st(0, k.scalar::<u32>("n") + k.scalar::<u32>("n"))),
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
        k.when(n.gt(3), || k.ptr_mut::<u32>("x").st(0, n));
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

impl Kernel for Sharing {
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
