//! What a kernel declares: its configuration and its arguments, from which names, keys, domains and checks are derived.

use std::marker::PhantomData;
use warpwright_dsl::Kernel as _;
use warpwright_dsl::{
    Args, Body, BuildError, Choice, Config, Configure, Data, Domain, Extent, K, KeyPart, LaunchRule, Mode,
    Role,
};
use warpwright_ptx::ir::{Arch, Type};

const SM_80: Arch = Arch::sm(80);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
enum Order {
    Up,
    #[name("downwards")]
    Down,
}

/// Rows in `order`. More of that.
#[derive(Clone, Debug, PartialEq, Config)]
#[config(examples("d=3 order=downwards", "d=64 limit=8 orders=up+downwards"))]
struct Rows {
    /// Length of a row.
    #[field(range = 1..=64)]
    d: u32,
    /// What is added.
    #[field(range = -1.0..=1.0, default = 0.5)]
    bias: f32,
    /// Where it goes.
    #[field(default = "up")]
    order: Order,
    /// The most, a multiple of 8.
    #[field(none = "auto", range = 8..=64, multiple_of = 8, default = "auto")]
    limit: Option<u32>,
    /// Whether it is written twice.
    #[field(name = "double", default = false)]
    twice: bool,
    /// Several.
    #[field(max = 2, default = "up")]
    orders: Vec<Order>,
}

#[derive(Args)]
#[args(of = Rows)]
struct RowsArgs<M: Mode> {
    #[arg(len = rows.times(of.d.into()))]
    x: M::In<f32>,
    #[arg(len = rows.times(of.d.into()), shares(x))]
    y: M::Out<f32>,
    #[arg(len = 1, when = of.twice)]
    z: Option<M::InOut<u32>>,
    #[arg(len = n, dtype = if of.order == Order::Up { Type::F32 } else { Type::F16 })]
    any: M::AnyIn,
    #[arg(len = i as u32 + 1, count = of.orders.len(), names("w0", "w1"))]
    w: Vec<M::In<u32>>,
    n: M::Scalar<u32>,
    rows: M::Dim,
}

impl warpwright_dsl::Kernel for Rows {
    type Args<M: Mode> = RowsArgs<M>;

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(32).grid(Extent::dim("rows"))
    }

    fn check(&self) -> Result<(), BuildError> {
        match self.limit {
            Some(limit) if limit > self.d => Err(BuildError::field("limit", limit, "d at most")),
            _ => Ok(()),
        }
    }

    fn body<'k>(&self, k: K<'k>, args: RowsArgs<Body<'k>>) {
        let i = k.tid();
        let any = match self.order {
            Order::Up => args.any.typed::<f32>().ld(i),
            Order::Down => args.any.typed::<warpwright_dsl::F16>().ld(i).f32(),
        };
        let w = args.w.iter().fold(args.n, |sum, w| sum + w.ld(0));
        if let Some(z) = args.z {
            z.st(0, w);
        }
        k.when(i.lt(args.n), || args.y.st(i, args.x.ld(i) + any + w.f32()));
    }
}

fn rows() -> Rows {
    Rows { d: 4, bias: 0.5, order: Order::Up, limit: None, twice: false, orders: vec![Order::Up] }
}

#[test]
fn fields_are_described_by_the_struct() {
    let fields: Vec<_> = Rows::FIELDS.iter().map(|field| (field.name, field.default, field.doc)).collect();
    let expected = [
        ("d", None, "Length of a row"),
        ("bias", Some("0.5"), "What is added"),
        ("order", Some("up"), "Where it goes"),
        ("limit", Some("auto"), "The most, a multiple of 8"),
        ("double", Some("false"), "Whether it is written twice"),
        ("orders", Some("up"), "Several"),
    ];
    assert_eq!(fields, expected);
    assert_eq!((Rows::NAME, Rows::DOC), ("rows", "Rows in order"));
    let domains: Vec<_> = Rows::FIELDS.iter().map(|field| field.domain.to_string()).collect();
    let expected = [
        "from 1 to 64",
        "a number from -1.0 to 1.0",
        "up or downwards",
        "auto or a multiple of 8 from 8 to 64",
        "false or true",
        "up to 2 values with + between them, each up or downwards",
    ];
    assert_eq!(domains, expected);
    assert_eq!(Rows::EXAMPLES.len(), 2);
}

#[test]
fn texts_are_read_as_what_was_written() {
    let all = Rows { limit: Some(16), twice: true, orders: vec![Order::Down, Order::Up], ..rows() };
    for value in [rows(), all] {
        let texts = value.texts();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        assert_eq!(Rows::from_texts(&texts).ok(), Some(value));
    }
    assert!(Rows::from_texts(&["four", "0.5", "up", "auto", "false", "up"]).is_err());
}

/// A part of a stack.
#[derive(Clone, Debug, PartialEq, KeyPart, Config)]
struct Layer {
    /// Rows of each layer.
    #[field(range = 1..=64, default = 8)]
    n: u32,
    /// Where each goes.
    #[field(default = "up")]
    order: Order,
}

/// Layers.
#[derive(Clone, Debug, PartialEq, Config)]
struct Stack {
    #[field(range = 1..=4, default = 2)]
    d: u32,
    #[field(table, max = 3)]
    layers: Vec<Layer>,
    #[field(none = "auto", range = 1..=9, default = "auto")]
    last: Option<u32>,
}

/// A stack of 2 with these layers.
fn stack(layers: &[(u32, Order)]) -> Stack {
    let layers = layers.iter().map(|&(n, order)| Layer { n, order }).collect();
    Stack { d: 2, layers, last: None }
}

#[test]
fn the_columns_of_a_table_are_fields() {
    let fields: Vec<_> = Stack::FIELDS.iter().map(|field| (field.name, field.default, field.doc)).collect();
    let expected = [
        ("d", Some("2"), ""),
        ("n", Some("8"), "Rows of each layer"),
        ("order", Some("up"), "Where each goes"),
        ("last", Some("auto"), ""),
    ];
    assert_eq!(fields, expected);
    let listed = "up to 3 values with + between them, each from 1 to 64";
    assert_eq!(Stack::FIELDS[1].domain.to_string(), listed);
    assert_eq!(Layer::FIELDS[0].domain, Domain::int(1, 64));
    assert_eq!(Stack::default(), stack(&[(8, Order::Up)]));
}

#[test]
fn rows_of_a_table_are_read_column_by_column() {
    let (up, down) = (Order::Up, Order::Down);
    for (value, n, order) in [
        (stack(&[(8, up)]), "8", "up"),
        (stack(&[(8, up), (8, up)]), "8+8", "up"),
        (stack(&[(8, up), (16, down), (4, down)]), "8+16+4", "up+downwards"),
        (stack(&[(8, up), (8, down), (8, up)]), "8+8+8", "up+downwards+up"),
    ] {
        assert_eq!(value.texts(), ["2", n, order, "auto"]);
        assert_eq!(Stack::from_texts(&["2", n, order, "auto"]).ok(), Some(value));
    }
    let whole = Stack::from_texts(&["2", "8+16", "downwards+downwards", "auto"]);
    assert_eq!(
        whole.ok(),
        Some(stack(&[(8, down), (16, down)])),
        "a column may say what is like the one before"
    );
    let refused = |n, order| match Stack::from_texts(&["2", n, order, "auto"]) {
        Err(BuildError::Field { field, value, .. }) => (field, value),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("8", "up+downwards"), ("order", "up+downwards".into()));
    assert_eq!(refused("8+x", "up"), ("n", "x".into()));
    assert_eq!(refused("8", "aside"), ("order", "aside".into()));
    let stacks = [stack(&[(8, up)]), stack(&[(8, up), (8, up)]), stack(&[(8, down)]), stack(&[(9, up)])];
    for (i, a) in stacks.iter().enumerate() {
        for (j, b) in stacks.iter().enumerate() {
            assert_eq!((a.key() == b.key(), a.entry() == b.entry()), (i == j, i == j), "{a:?} and {b:?}");
        }
    }
}

/// One field at a time.
#[test]
fn every_field_is_in_the_key_and_the_name() {
    let changed = [
        Rows { d: 5, ..rows() },
        Rows { bias: -0.5, ..rows() },
        Rows { bias: -0.0, ..rows() },
        Rows { bias: 0.0, ..rows() },
        Rows { order: Order::Down, ..rows() },
        Rows { limit: Some(8), ..rows() },
        Rows { twice: true, ..rows() },
        Rows { orders: vec![Order::Up, Order::Up], ..rows() },
        Rows { orders: Vec::new(), ..rows() },
    ];
    let all: Vec<_> = std::iter::once(rows()).chain(changed).collect();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            assert_eq!(a.key() == b.key(), i == j, "{a:?} and {b:?}");
            assert_eq!(a.entry() == b.entry(), i == j, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn types_are_in_the_key() {
    #[derive(Config)]
    struct Of<T: Data> {
        element: PhantomData<T>,
    }
    #[derive(Config)]
    struct Another<T: Data> {
        element: PhantomData<T>,
    }
    let of_f32 = Of::<f32> { element: PhantomData };
    assert_eq!(of_f32.key(), Of::<f32> { element: PhantomData }.key());
    assert_ne!(of_f32.key(), Of::<u32> { element: PhantomData }.key());
    assert_ne!(of_f32.key(), Another::<f32> { element: PhantomData }.key());
    assert_eq!(of_f32.entry(), "of_f32");
    assert_eq!(Of::<warpwright_dsl::F16>::from_texts(&[]).map(|of| of.entry()).ok(), Some("of_f16".into()));
}

/// Numbers beyond 32 bits are in no domain of those.
#[test]
fn integers_have_the_range_of_their_type() {
    #[derive(Debug, PartialEq, Config)]
    struct Integers {
        #[field(range = 1..=1 << 36)]
        bytes: u64,
        any: u32,
    }
    let [bytes, any] = [0, 1].map(|i| Integers::FIELDS[i].domain);
    assert_eq!([bytes.ty(), any.ty()], ["u64", "u32"]);
    assert_eq!((any, any.to_string()), (Domain::int(0, u32::MAX), "a whole number".into()));
    for (value, is_in) in [(0u64, [false, true]), (1u64 << 32, [true, false]), (1u64 << 36, [true, false])] {
        assert_eq!([bytes, any].map(|domain| domain.contains(&value.to_string())), is_in, "{value}");
    }
    assert!(!bytes.contains(&((1u64 << 36) + 1).to_string()));
    let integers = Integers::from_texts(&["68719476736", "4294967295"]).expect("the largest ones");
    assert_eq!(integers, Integers { bytes: 1 << 36, any: u32::MAX });
    assert_eq!(integers.entry(), "integers_bytes68719476736_any4294967295");
    assert!(Integers::from_texts(&["1", "4294967296"]).is_err());
}

/// No value's bytes are the beginning of another's, so that neighbours cannot be taken for one another.
#[test]
fn parts_of_keys_do_not_run_together() {
    #[derive(KeyPart)]
    enum Part {
        Empty,
        Pair(u8, String),
        Named { list: Vec<u8> },
    }
    fn key(parts: &[Part]) -> Vec<u8> {
        let mut key = Vec::new();
        parts.feed(&mut key);
        key
    }
    let keys = [
        key(&[]),
        key(&[Part::Empty]),
        key(&[Part::Empty, Part::Empty]),
        key(&[Part::Pair(1, "ab".into())]),
        key(&[Part::Pair(1, "a".into()), Part::Pair(1, "b".into())]),
        key(&[Part::Named { list: vec![] }]),
        key(&[Part::Named { list: vec![0] }]),
        key(&[Part::Named { list: vec![0, 0] }]),
    ];
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(a == b, i == j, "{i} and {j}");
        }
    }
}

#[test]
fn values_outside_of_their_domains_are_refused_before_the_check() {
    let refused = |rows: Rows| match rows.build(SM_80) {
        Err(BuildError::Field { field, value, rule }) => (field, value, rule),
        other => panic!("{other:?}"),
    };
    let rule = "auto or a multiple of 8 from 8 to 64".to_string();
    assert_eq!(refused(Rows { limit: Some(12), ..rows() }), ("limit", "12".into(), rule));
    assert_eq!(refused(Rows { limit: Some(8), ..rows() }), ("limit", "8".into(), "d at most".into()));
    let rule = "a number from -1.0 to 1.0".to_string();
    assert_eq!(refused(Rows { bias: f32::NAN, ..rows() }), ("bias", "NaN".into(), rule));
}

/// A grid that depends on what is no number of the arguments cannot be known to whoever launches it.
#[test]
fn a_grid_depends_on_declared_numbers() {
    /// Its grid is a number of that name.
    #[derive(Config)]
    struct Grid {
        #[field(opaque)]
        of: &'static str,
    }

    #[derive(Args)]
    #[args(of = Grid)]
    struct GridArgs<M: Mode> {
        #[arg(len = rows)]
        y: M::Out<u32>,
        n: M::Scalar<u32>,
        rows: M::Dim,
    }

    impl warpwright_dsl::Kernel for Grid {
        type Args<M: Mode> = GridArgs<M>;

        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32).grid(Extent::dim(self.of).per(2))
        }

        fn body<'k>(&self, k: K<'k>, GridArgs { y, n, .. }: GridArgs<Body<'k>>) {
            y.st(k.ctaid(), n);
        }
    }

    for of in ["rows", "n"] {
        assert!(Grid { of }.build(SM_80).is_ok(), "{of}");
    }
    for of in ["row", "y", "Rows"] {
        let Err(BuildError::Field { field, value, .. }) = Grid { of }.build(SM_80) else { panic!("{of}") };
        assert_eq!((field, value), ("launch.grid", of.to_string()));
    }
}

#[test]
fn arguments_are_described_by_the_struct() {
    let described = |rows: Rows| -> Vec<_> {
        let args = rows.args().into_iter();
        args.map(|arg| (arg.name, arg.dtype, arg.role, arg.len.to_string(), arg.shares)).collect()
    };
    let none: &[&str] = &[];
    let first = [
        ("x", Type::F32, Role::In, "4*rows".to_string(), none),
        ("y", Type::F32, Role::Out, "4*rows".into(), &["x"]),
        ("any", Type::F32, Role::In, "n".into(), none),
        ("w0", Type::U32, Role::In, "1".into(), none),
        ("n", Type::U32, Role::Scalar, "1".into(), none),
    ];
    assert_eq!(described(rows()), first);
    let more = Rows { twice: true, order: Order::Down, orders: vec![Order::Up; 2], ..rows() };
    let second = [
        ("x", Type::F32, Role::In, "4*rows".to_string(), none),
        ("y", Type::F32, Role::Out, "4*rows".into(), &["x"]),
        ("z", Type::U32, Role::InOut, "1".into(), none),
        ("any", Type::F16, Role::In, "n".into(), none),
        ("w0", Type::U32, Role::In, "1".into(), none),
        ("w1", Type::U32, Role::In, "2".into(), none),
        ("n", Type::U32, Role::Scalar, "1".into(), none),
    ];
    assert_eq!(described(more.clone()), second);
    assert!(rows().build(SM_80).is_ok());
    assert!(more.build(SM_80).is_ok());
}

/// Numbered arguments of which each may be absent, and one name that is read or written.
#[test]
fn what_is_there_depends_on_the_configuration() {
    #[derive(Config)]
    struct Sums {
        #[field(max = 3)]
        biases: Vec<bool>,
        in_place: bool,
    }
    const BIASES: [&str; 3] = ["bias0", "bias1", "bias2"];
    #[derive(Args)]
    #[args(of = Sums)]
    struct SumsArgs<M: Mode> {
        #[arg(len = 32, when = !of.in_place)]
        x: Option<M::In<f32>>,
        #[arg(name = "x", len = 32, when = of.in_place)]
        x_in_place: Option<M::InOut<f32>>,
        #[arg(len = 32, count = of.biases.len(), names("bias0", "bias1", "bias2"), when = of.biases[i])]
        biases: Vec<Option<M::In<f32>>>,
        #[arg(
            len = 32,
            count = of.biases.len(),
            names("y0", "y1", "y2"),
            shares = if of.biases[i] { std::slice::from_ref(&BIASES[i]) } else { &[] }
        )]
        y: Vec<M::Out<f32>>,
    }
    impl warpwright_dsl::Kernel for Sums {
        type Args<M: Mode> = SumsArgs<M>;
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32)
        }
        fn body<'k>(&self, k: K<'k>, args: SumsArgs<Body<'k>>) {
            let Some(x) = k.given(args.x.or(args.x_in_place)) else { return };
            for (bias, y) in args.biases.into_iter().zip(args.y) {
                let bias = bias.map_or(k.f32(0.0), |bias| bias.ld(k.tid()));
                y.st(k.tid(), x.ld(k.tid()) + bias);
            }
        }
    }
    let described = |sums: &Sums| -> Vec<_> {
        sums.args().into_iter().map(|arg| (arg.name, arg.role, arg.shares)).collect()
    };
    let none: &[&str] = &[];
    let sums = Sums { biases: vec![false, true], in_place: false };
    let expected = [
        ("x", Role::In, none),
        ("bias1", Role::In, none),
        ("y0", Role::Out, none),
        ("y1", Role::Out, &["bias1"]),
    ];
    assert_eq!(described(&sums), expected);
    assert!(sums.build(SM_80).is_ok());
    let sums = Sums { biases: vec![true], in_place: true };
    let expected = [("x", Role::InOut, none), ("bias0", Role::In, none), ("y0", Role::Out, &["bias0"])];
    assert_eq!(described(&sums), expected);
    assert!(sums.build(SM_80).is_ok());
}

/// Lines of the mistakes of a body.
fn lines(built: Result<warpwright_dsl::Built, BuildError>) -> Vec<(u32, String)> {
    let Err(BuildError::Mistakes(mistakes)) = built else { panic!("{built:?}") };
    mistakes
        .iter()
        .map(|mistake| match mistake.origin {
            warpwright_ptx::ir::Origin::Rust(at) => (at.line(), mistake.message.clone()),
            _ => (0, mistake.message.clone()),
        })
        .collect()
}

/// What is declared otherwise, or not at all, is a mistake of the line that asks.
#[test]
fn mistakes_have_the_line_of_the_body() {
    #[derive(Config)]
    struct Wrong {
        #[field(range = 0..=5)]
        what: u32,
    }
    #[derive(Args)]
    #[args(of = Wrong)]
    struct WrongArgs<M: Mode> {
        #[arg(len = 1)]
        x: M::In<f32>,
        #[arg(len = 1, dtype = Type::F16)]
        any: M::AnyOut,
        #[arg(len = 1, when = false)]
        absent: Option<M::In<f32>>,
    }
    const FIRST: u32 = line!() + 9;
    impl warpwright_dsl::Kernel for Wrong {
        type Args<M: Mode> = WrongArgs<M>;
        fn launch(&self) -> LaunchRule {
            LaunchRule::new(32)
        }
        #[rustfmt::skip]
        fn body<'k>(&self, k: K<'k>, args: WrongArgs<Body<'k>>) {
            match self.what {
                0 => args.x.st(0, k.f32(1.0)),
                1 => args.any.typed::<f32>().st(0, 1.0),
                2 => args.x.st(0, k.given(args.absent).map_or(k.f32(0.0), |absent| absent.ld(0))),
                3 => k.ptr_mut::<f32>("x").st(0, 1.0),
                4 => k.op(warpwright_ptx::op::control::Trap {}),
                _ => drop(args.x.atomic_add(0, 1.0)),
            }
        }
    }
    let mistakes = |what| lines(Wrong { what }.build(SM_80));
    assert_eq!(mistakes(0)[0].0, FIRST);
    assert_eq!(mistakes(1)[0].0, FIRST + 1);
    assert_eq!(mistakes(2)[0].0, FIRST + 2);
    assert_eq!(mistakes(3)[0].0, FIRST + 3);
    assert!(Wrong { what: 4 }.build(SM_80).is_ok());
    assert_eq!(mistakes(5)[0].0, FIRST + 5);
    assert!(matches!(Wrong { what: 6 }.build(SM_80), Err(BuildError::Field { field: "what", .. })));
    assert_eq!(Domain::int(0, 5).to_string(), "from 0 to 5");
}
