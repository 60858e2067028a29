//! Operations on the elements of one buffer or two.

use crate::activation::Activation;
use crate::data::floats::{Dtype, Floats};
use warpwright_dsl::*;

/// `y = op(a, b)`, element by element, over `rows × columns`, row-major; 16 bytes to a thread if the types and
/// `columns` allow it. `y` may be the buffer `a` or `b` if these are separate and the types are the same. Operations
/// with one operand have no `b`.
///
/// The result is computed in `f32` and rounded once to the type of `y`; values beyond the largest half become the
/// largest half. For sums, products and multiples `|err| ≤ 2⁻²⁴` of the result. For an activation, [`Activation`] gives
/// the error; a gated `b` multiplies it by `|b|` and adds 2⁻²⁴ of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = a + b, a * b, a * factor, activation(a), or activation(a) * b",
    examples(
        "op=glu columns=8960 operands=halves a=f16 b=f16 output=f16",
        "op=glu columns=28672 a=bf16 b=bf16 output=bf16",
        "op=add columns=2048",
        "op=add columns=4096 a=f32 b=f16",
        "op=mul columns=33 a=f16 b=bf16 output=f16",
        "op=scale columns=1536 a=bf16",
        "op=activate columns=8960",
        "op=activate columns=33 a=f16 output=f16"
    )
)]
pub struct Elementwise {
    /// The operation.
    #[field(default = "glu")]
    pub op: ElementwiseOp,
    /// The activation of `activate` and `glu`; of no matter for the others.
    #[field(default = "silu")]
    pub activation: Activation,
    /// Elements of a row.
    #[field(range = 1..=1 << 24, default = 14336)]
    pub columns: u32,
    /// Where `a` and `b` are: in two buffers, or one behind the other in each row of one.
    #[field(default = "separate")]
    pub operands: Operands,
    /// Element type of `a`.
    #[field(default = "f32")]
    pub a: Dtype,
    /// Element type of `b`: that of `a` where both are in one buffer, and of no matter where there is no `b`.
    #[field(default = "f32")]
    pub b: Dtype,
    /// Element type of `y`.
    #[field(default = "f32")]
    pub output: Dtype,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`Elementwise`].
#[derive(Args)]
#[args(of = Elementwise)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct ElementwiseArgs<M: Mode> {
    #[arg(len = rows.times(of.columns.into()), dtype = (!of.is_fused()).then_some(of.a.ty()))]
    pub a: Option<M::AnyIn>,
    #[arg(
        len = rows.times(of.columns.into()),
        dtype = (!of.is_fused() && !of.op.is_unary()).then_some(of.b.ty())
    )]
    pub b: Option<M::AnyIn>,
    #[arg(len = rows.times(of.columns.into()).times(2), dtype = of.is_fused().then_some(of.a.ty()))]
    pub ab: Option<M::AnyIn>,
    #[arg(len = rows.times(of.columns.into()), dtype = of.output.ty(), shares = of.shares())]
    pub y: M::AnyOut,
    pub rows: M::Scalar<u32>,
    #[arg(when = of.op == ElementwiseOp::Scale)]
    pub factor: Option<M::Scalar<f32>>,
}

/// An operation on elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
pub enum ElementwiseOp {
    /// `a + b`.
    Add,
    /// `a · b`.
    Mul,
    /// `a · factor`, with a scalar argument; there is no `b`.
    Scale,
    /// The activation of `a`; there is no `b`.
    Activate,
    /// `activation(a) · b`, a gated linear unit: `a` is the gate (Shazeer 2020).
    Glu,
}

/// Where the two operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Choice)]
pub enum Operands {
    /// In buffers `a` and `b`.
    Separate,
    /// In one buffer `ab` of `rows × 2 columns`: each row holds its `a`, then its `b`.
    Halves,
}

impl Elementwise {
    /// The operation on buffers of `f32`; SiLU if it has an activation.
    pub fn new(op: ElementwiseOp, columns: u32) -> Self {
        Elementwise { op, columns, ..Self::default() }
    }

    /// Whether both operands are in one buffer.
    fn is_fused(&self) -> bool {
        self.operands == Operands::Halves && !self.op.is_unary()
    }

    /// The inputs whose buffer `y` may be.
    fn shares(&self) -> &'static [&'static str] {
        let b = !self.op.is_unary() && self.b == self.output;
        match (self.a == self.output, b) {
            _ if self.operands == Operands::Halves => &[],
            (true, true) => &["a", "b"],
            (true, false) => &["a"],
            (false, true) => &["b"],
            (false, false) => &[],
        }
    }

    /// Elements that a thread computes.
    fn vector(&self) -> u32 {
        let bytes = self.a.bytes().max(self.b.bytes()).max(self.output.bytes());
        (1 << self.columns.max(1).trailing_zeros()).min(16 / bytes)
    }
}

impl Kernel for Elementwise {
    type Args<M: Mode> = ElementwiseArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.columns / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn check(&self) -> Result<(), BuildError> {
        if self.operands == Operands::Halves {
            if self.op.is_unary() {
                return Err(BuildError::field("operands", "halves", "separate, for there is only one"));
            }
            if self.b != self.a {
                let rule = format!("the type of a, {}, which is in the same buffer", self.a);
                return Err(BuildError::field("b", self.b, rule));
            }
        }
        Ok(())
    }

    fn body<'k>(&self, k: K<'k>, args: ElementwiseArgs<Body<'k>>) {
        let (columns, vector) = (k.dim(self.columns), self.vector());
        let chunks = (columns / vector).reg();
        let chunk = k.global_tid();
        let at = chunk * vector;
        let (a, b) = match args.ab {
            Some(ab) => {
                let a = Floats::from(ab).at(at).at(chunk / chunks * columns.reg());
                (a, Some(a.at(columns)))
            }
            None => {
                let Some(a) = k.given(args.a) else { return };
                (Floats::from(a).at(at), args.b.map(|b| Floats::from(b).at(at)))
            }
        };
        let y = Floats::from(args.y).at(at);

        k.when(chunk.lt(args.rows * chunks), || {
            let a = a.ld_vec(0, vector);
            // Of one operand, what it is multiplied by.
            let b = match (b, args.factor) {
                (Some(b), _) => b.ld_vec(0, vector),
                (None, factor) => vec![factor.unwrap_or(k.f32(1.0)); vector as usize],
            };
            let result: Vec<_> = (a.into_iter().zip(b))
                .map(|(a, b)| match self.op {
                    ElementwiseOp::Add => a + b,
                    ElementwiseOp::Mul | ElementwiseOp::Scale => a * b,
                    ElementwiseOp::Activate => self.activation.apply(a),
                    ElementwiseOp::Glu => self.activation.apply(a) * b,
                })
                .collect();
            y.st_vec(0, &result);
        });
    }
}

impl ElementwiseOp {
    /// Whether there is no `b`.
    pub fn is_unary(self) -> bool {
        matches!(self, ElementwiseOp::Scale | ElementwiseOp::Activate)
    }
}
