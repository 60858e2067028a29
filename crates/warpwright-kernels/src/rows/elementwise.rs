//! Operations on the elements of one buffer or two.

use crate::data::floats::{Dtype, FloatBuffers};
use crate::entry::{DTYPES, Domain, Entry, Field, THREADS, boxed, check_threads};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `y = op(a, b)`, element by element, over `rows × columns`, row-major; 16 bytes to a thread where the types and
/// `columns` allow. `y` may be the buffer `a` or `b`, where they are apart and the types are the same. Where the
/// operation has one operand there is no `b`.
///
/// Computed in `f32` and rounded once more to the type of `y`; what is beyond the largest half becomes the
/// largest half. Of sums, products and multiples `|err| ≤ 2⁻²⁴` of the result; of SiLU
/// `|err| ≤ (1.25 |a| + 9) · 2⁻²⁴` of it and 2⁻¹²⁶ · `(1 + |a|)`, from the rounding of the exponent
/// ([`silu_approx`](Reg::silu_approx)); of SwiGLU, which is one product more, `|err| ≤ (1.25 |a| + 10) · 2⁻²⁴` of it
/// and 2⁻¹²⁶ · `(1 + |a|) · |b|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct Elementwise {
    /// What is computed.
    pub op: ElementwiseOp,
    /// Elements of a row.
    pub columns: u32,
    /// Where `a` and `b` are.
    pub operands: Operands,
    /// Element type of `a`.
    pub a: Dtype,
    /// Element type of `b`: that of `a` where both are in one buffer, and of no matter where there is no `b`.
    pub b: Dtype,
    /// Element type of `y`.
    pub output: Dtype,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
}

/// An operation on elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum ElementwiseOp {
    /// `a + b`.
    Add,
    /// `a · b`.
    Mul,
    /// `a · factor`, with a scalar argument; there is no `b`.
    Scale,
    /// `a / (1 + e⁻ᵃ)` (Hendrycks and Gimpel 2016); there is no `b`.
    Silu,
    /// `a / (1 + e⁻ᵃ) · b` (Shazeer 2020): `a` is the gate.
    SwiGlu,
}

/// Where two operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum Operands {
    /// In buffers `a` and `b`.
    Separate,
    /// In one buffer `ab` of `rows × 2 columns`: each row has its `a` and behind it its `b`.
    Halves,
}

impl Elementwise {
    /// The operation on buffers of `f32`.
    pub fn new(op: ElementwiseOp, columns: u32) -> Self {
        let dtype = Dtype::F32;
        Elementwise {
            op,
            columns,
            operands: Operands::Separate,
            a: dtype,
            b: dtype,
            output: dtype,
            threads: 256,
        }
    }

    /// Elements that a thread computes.
    fn vector(&self) -> u32 {
        let bytes = self.a.bytes().max(self.b.bytes()).max(self.output.bytes());
        (1 << self.columns.max(1).trailing_zeros()).min(16 / bytes)
    }
}

impl AnyKernel for Elementwise {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Elementwise { op, columns, a, b, output, threads, .. } = self;
        let halves = if self.operands == Operands::Halves { "_halves" } else { "" };
        format!("elementwise_{}{halves}_n{columns}_{a}_{b}_y{output}_t{threads}", op.name())
    }

    fn args(&self) -> Vec<ArgDesc> {
        let all = Extent::dim("rows").times(self.columns.into());
        let input = |name, dtype: Dtype, len| ArgDesc::buffer(name, dtype.ty(), Role::In, len);
        let mut args = match (self.op, self.operands) {
            (op, _) if op.is_unary() => vec![input("a", self.a, all)],
            (_, Operands::Separate) => vec![input("a", self.a, all), input("b", self.b, all)],
            (_, Operands::Halves) => vec![input("ab", self.a, all.times(2))],
        };
        let b_is_read = !self.op.is_unary();
        let shares: &[&str] = match (self.a == self.output, b_is_read && self.b == self.output) {
            _ if self.operands == Operands::Halves => &[],
            (true, true) => &["a", "b"],
            (true, false) => &["a"],
            (false, true) => &["b"],
            (false, false) => &[],
        };
        args.push(ArgDesc::buffer("y", self.output.ty(), Role::Out, all).may_share(shares));
        args.push(ArgDesc::scalar::<u32>("rows"));
        if self.op == ElementwiseOp::Scale {
            args.push(ArgDesc::scalar::<f32>("factor"));
        }
        args
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.columns / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        vec![("columns", SizeValue::U32(self.columns))]
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=1 << 24).contains(&self.columns) {
            return Err(BuildError::field("columns", self.columns, "from 1 to 16777216"));
        }
        if self.operands == Operands::Halves {
            if self.op.is_unary() {
                return Err(BuildError::field("operands", "halves", "separate, for there is only one"));
            }
            if self.b != self.a {
                let rule = format!("the type of a, {}, which is in the same buffer", self.a);
                return Err(BuildError::field("b", self.b, rule));
            }
        }
        check_threads(self.threads)
    }

    fn body<'k>(&self, k: K<'k>) {
        let (columns, vector) = (k.size("columns", self.columns).reg(), self.vector());
        let chunks = columns / vector;
        let chunk = k.global_tid();
        let at = chunk * vector;
        let (a, b) = match (self.op, self.operands) {
            (op, _) if op.is_unary() => (k.floats("a", self.a).at(at), None),
            (_, Operands::Separate) => (k.floats("a", self.a).at(at), Some(k.floats("b", self.b).at(at))),
            (_, Operands::Halves) => {
                let a = k.floats("ab", self.a).at(at).at(chunk / chunks * columns);
                (a, Some(a.at(columns)))
            }
        };
        let y = k.floats_mut("y", self.output).at(at);
        let rows = k.scalar::<u32>("rows");
        let factor = (self.op == ElementwiseOp::Scale).then(|| k.scalar::<f32>("factor"));

        k.when(chunk.lt(rows * chunks), || {
            let a = a.ld_vec(0, vector);
            // Of one operand, what it is multiplied by.
            let b = match (b, factor) {
                (Some(b), _) => b.ld_vec(0, vector),
                (None, factor) => vec![factor.unwrap_or(k.f32(1.0)); vector as usize],
            };
            let result: Vec<_> = (a.into_iter().zip(b))
                .map(|(a, b)| match self.op {
                    ElementwiseOp::Add => a + b,
                    ElementwiseOp::Mul | ElementwiseOp::Scale => a * b,
                    ElementwiseOp::Silu => a.silu_approx(),
                    ElementwiseOp::SwiGlu => a.silu_approx() * b,
                })
                .collect();
            y.st_vec(0, &result);
        });
    }
}

impl ElementwiseOp {
    /// All of them.
    pub const ALL: [ElementwiseOp; 5] = [
        ElementwiseOp::Add,
        ElementwiseOp::Mul,
        ElementwiseOp::Scale,
        ElementwiseOp::Silu,
        ElementwiseOp::SwiGlu,
    ];
    const NAMES: &'static [&'static str] = &["add", "mul", "scale", "silu", "swiglu"];

    /// Whether there is no `b`.
    pub fn is_unary(self) -> bool {
        matches!(self, ElementwiseOp::Scale | ElementwiseOp::Silu)
    }

    fn name(self) -> &'static str {
        match self {
            ElementwiseOp::Add => "add",
            ElementwiseOp::Mul => "mul",
            ElementwiseOp::Scale => "scale",
            ElementwiseOp::Silu => "silu",
            ElementwiseOp::SwiGlu => "swiglu",
        }
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "elementwise",
    doc: "y = a + b, a * b, a * factor, SiLU: a / (1 + exp(-a)), or SwiGLU: a / (1 + exp(-a)) * b",
    fields: &[
        Field {
            name: "op",
            domain: Domain::OneOf(ElementwiseOp::NAMES),
            default: Some("swiglu"),
            doc: "what is computed",
        },
        Field {
            name: "columns",
            domain: Domain::int(1, 1 << 20),
            default: Some("14336"),
            doc: "elements of a row",
        },
        Field {
            name: "operands",
            domain: Domain::OneOf(&["separate", "halves"]),
            default: Some("separate"),
            doc: "a and b in two buffers, or one behind the other in each row of one",
        },
        Field { name: "a", domain: DTYPES, default: Some("f32"), doc: "element type of a" },
        Field { name: "b", domain: DTYPES, default: Some("f32"), doc: "element type of b" },
        Field { name: "output", domain: DTYPES, default: Some("f32"), doc: "element type of y" },
        THREADS,
    ],
    examples: &[
        "op=swiglu columns=8960 operands=halves a=f16 b=f16 output=f16",
        "op=swiglu columns=28672 a=bf16 b=bf16 output=bf16",
        "op=add columns=2048",
        "op=add columns=4096 a=f32 b=f16",
        "op=mul columns=33 a=f16 b=bf16 output=f16",
        "op=scale columns=1536 a=bf16",
        "op=silu columns=8960",
        "op=silu columns=33 a=f16 output=f16",
    ],
    make: |config| {
        let op = ElementwiseOp::ALL.into_iter().find(|op| op.name() == config.text("op"));
        boxed(Elementwise {
            operands: if config.text("operands") == "halves" { Operands::Halves } else { Operands::Separate },
            a: config.dtype("a"),
            b: config.dtype("b"),
            output: config.dtype("output"),
            threads: config.u32("threads"),
            ..Elementwise::new(op.unwrap_or(ElementwiseOp::SwiGlu), config.u32("columns"))
        })
    },
};
