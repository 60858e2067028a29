//! Kernels on rows: one operand or two, and no choice but that of their shapes.

use super::lowering::{Given, Lowering, Result, form};
use crate::graph::{Element, SampleParams, Tensor, TensorType};
use crate::program::{NormStep, PenaltyStep, Pointwise};
use warpwright_kernels::{
    Argmax, Cast, Dtype, Elementwise, ElementwiseOp, Embedding, Penalties, QuantizeQ8_1, ResizeRows, RmsNorm,
    RmsNormArgs, Sample, Setting, Softmax, WeightFormat,
};
use warpwright_ptx::ir::Type;

/// The floats that a tensor is of.
fn dtype(ty: TensorType) -> Result<Dtype> {
    match ty.element {
        Element::Float(dtype) => Ok(dtype),
        _ => form(format!("{ty} has no floats")),
    }
}

/// Rows of a table by number.
pub(super) fn embedding(lowering: &mut Lowering<'_>, table: Tensor, ids: Tensor, out: Tensor) -> Result<()> {
    let ty = lowering.ty(table);
    let Element::Weights(format) = ty.element else { return form(format!("{ty} is no table of weights")) };
    look_up(lowering, (format, table, Given::rows(table)), ids, out)
}

/// Rows of a matrix of `f32`: a table too.
pub(super) fn select_rows(lowering: &mut Lowering<'_>, x: Tensor, rows: Tensor, out: Tensor) -> Result<()> {
    look_up(lowering, (WeightFormat::F32, x, x.into()), rows, out)
}

fn look_up(
    lowering: &mut Lowering<'_>,
    (format, table, given): (WeightFormat, Tensor, Given),
    ids: Tensor,
    out: Tensor,
) -> Result<()> {
    let (rows, d) = (lowering.rows(table)?, lowering.ty(table).shape.columns());
    let tokens = lowering.ty(ids).shape.elements();
    let moved = format.row_bytes(d).saturating_mul(tokens);
    let given = [("table", given.moves(moved)), ("ids", ids.into()), ("y", out.into())];
    lowering.launch(Embedding::new(format, rows, d), &[("tokens", tokens)], &given)
}

/// The kernel for the norm of rows of a type.
pub(super) fn rms_norm(x: TensorType, step: &NormStep) -> Result<RmsNorm> {
    let dtype = dtype(x)?;
    let (output, q8_1) = (step.out.map(|_| dtype), step.quants.is_some());
    Ok(RmsNorm { input: dtype, output, q8_1, ..RmsNorm::new(step.d, step.norm.epsilon) })
}

pub(super) fn norm(lowering: &mut Lowering<'_>, step: &NormStep) -> Result<()> {
    let x = lowering.ty(step.x);
    let kernel = rms_norm(x, step)?;
    let rows = x.shape.elements() / u64::from(step.d.max(1));
    let part = |plane| step.quants.map(|quants| Given::part(quants, plane, 0));
    let args = RmsNormArgs {
        x: step.x.into(),
        residual: None,
        w: step.norm.weight.into(),
        y: step.out.map(Given::from),
        quants: part(0),
        scales: part(1),
        sums: part(2),
        rows,
    };
    lowering.launch_with(kernel, args)
}

/// An operation on the elements of one tensor or two.
pub(super) fn elementwise(
    lowering: &mut Lowering<'_>,
    op: Pointwise,
    a: Tensor,
    b: Option<Tensor>,
    out: Tensor,
) -> Result<()> {
    let op = match (op, b) {
        (Pointwise::Add, Some(_)) => ElementwiseOp::Add,
        (Pointwise::Mul, Some(_)) => ElementwiseOp::Mul,
        (Pointwise::SwiGlu, Some(_)) => ElementwiseOp::SwiGlu,
        (Pointwise::Silu, None) => ElementwiseOp::Silu,
        (op, _) => return form(format!("{} of {} operands", op.name(), 1 + b.iter().len())),
    };
    let (x, y) = (lowering.ty(a), lowering.ty(out));
    let mut kernel = Elementwise::new(op, x.shape.columns());
    (kernel.a, kernel.b, kernel.output) = (dtype(x)?, dtype(x)?, dtype(y)?);
    let mut given = vec![("a", Given::from(a))];
    if let Some(b) = b {
        kernel.b = dtype(lowering.ty(b))?;
        given.push(("b", b.into()));
    }
    given.extend([("y", out.into()), ("rows", Given::u32(lowering.rows(a)?))]);
    lowering.launch(kernel, &[], &given)
}

pub(super) fn softmax(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let (from, to) = (lowering.ty(x), lowering.ty(out));
    let kernel = Softmax { input: dtype(from)?, output: dtype(to)?, ..Softmax::new(from.shape.columns()) };
    let given = [("x", x.into()), ("y", out.into())];
    lowering.launch(kernel, &[("rows", from.shape.rows())], &given)
}

/// A conversion; a copy where there is nothing to convert.
pub(super) fn cast(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let (from, to) = (lowering.ty(x), lowering.ty(out));
    if from == to {
        lowering.copy(x, out);
        return Ok(());
    }
    let kernel = Cast::new(from.shape.columns(), dtype(from)?.into(), dtype(to)?.into());
    let given = [("x", x.into()), ("y", out.into()), ("rows", Given::u32(lowering.rows(x)?))];
    lowering.launch(kernel, &[], &given)
}

/// Heads of another length: the rows of the kernel.
pub(super) fn resize(
    lowering: &mut Lowering<'_>,
    [from, to]: [u32; 2],
    x: Tensor,
    out: Tensor,
) -> Result<()> {
    let ty = lowering.ty(x);
    let kernel = ResizeRows { dtype: dtype(ty)?, ..ResizeRows::new(from, to) };
    let heads = ty.shape.elements() / u64::from(from.max(1));
    let Ok(rows) = u32::try_from(heads) else { return form(format!("{heads} heads to resize")) };
    lowering.launch(kernel, &[], &[("x", x.into()), ("y", out.into()), ("rows", Given::u32(rows))])
}

/// The kernel that makes `q8_1` of rows of a type.
pub(super) fn quantizer(x: TensorType) -> Result<QuantizeQ8_1> {
    Ok(QuantizeQ8_1 { input: dtype(x)?, ..QuantizeQ8_1::new(x.shape.columns()) })
}

pub(super) fn quantize(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let kernel = quantizer(lowering.ty(x))?;
    let given = [
        ("x", x.into()),
        ("quants", out.into()),
        ("scales", Given::part(out, 1, 0)),
        ("sums", Given::part(out, 2, 0)),
        ("rows", Given::u32(lowering.rows(x)?)),
    ];
    lowering.launch(kernel, &[], &given)
}

pub(super) fn argmax(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let ty = lowering.ty(x);
    let rows = ty.shape.rows();
    let kernel = Argmax { input: dtype(ty)?, ..Argmax::new(ty.shape.columns()) };
    let mut given = vec![("x", x.into())];
    if kernel.blocks > 1 {
        given.push(("best", lowering.zeroed(Type::U64, rows).into()));
        given.push(("arrived", lowering.zeroed(Type::U32, rows).into()));
    }
    given.push(("indices", out.into()));
    lowering.launch(kernel, &[("rows", rows)], &given)
}

/// The kernel works in place, on a copy.
pub(super) fn penalties(lowering: &mut Lowering<'_>, step: &PenaltyStep) -> Result<()> {
    let (ty, window) = (lowering.ty(step.logits), lowering.ty(step.recent).shape.columns());
    let (params, input) = (step.params, dtype(ty)?);
    let kernel = Penalties {
        input,
        repeat: params.repeat,
        frequency: params.frequency,
        presence: params.presence,
        remembers: step.newest.is_some(),
        ..Penalties::new(ty.shape.columns(), window)
    };
    lowering.copy(step.logits, step.out);
    let in_buffers = [
        ("repeats", params.repeat == Setting::Buffer),
        ("frequencies", params.frequency == Setting::Buffer),
        ("presences", params.presence == Setting::Buffer),
    ];
    let in_buffers = in_buffers.into_iter().filter(|&(_, is)| is).map(|(name, _)| name);
    let rows = ty.shape.rows();
    let moved = rows.saturating_mul((window * input.bytes()).into());
    let recent = step.next.unwrap_or(step.recent);
    let mut given = vec![("logits", Given::from(step.out).moves(moved)), ("recent", recent.into())];
    if let Some([tokens, positions]) = step.newest {
        given.extend([("tokens", tokens.into()), ("positions", positions.into())]);
    }
    given.extend(in_buffers.zip(&step.settings).map(|(name, &setting)| (name, setting.into())));
    lowering.launch(kernel, &[("rows", rows)], &given)
}

pub(super) fn sample(
    lowering: &mut Lowering<'_>,
    params: &SampleParams,
    [logits, seeds, steps]: [Tensor; 3],
    settings: &[Tensor],
    out: Tensor,
) -> Result<()> {
    let ty = lowering.ty(logits);
    let &SampleParams { temperature, top_k, top_p, min_p } = params;
    let input = dtype(ty)?;
    let kernel = Sample { input, temperature, top_k, top_p, min_p, ..Sample::new(ty.shape.columns()) };
    let in_buffers = [
        ("temperatures", temperature == Setting::Buffer),
        ("top_ks", top_k == Setting::Buffer),
        ("top_ps", top_p == Setting::Buffer),
        ("min_ps", min_p == Setting::Buffer),
    ];
    let in_buffers = in_buffers.into_iter().filter(|&(_, is)| is).map(|(name, _)| name);
    let mut given = vec![("logits", logits.into())];
    given.extend(in_buffers.zip(settings).map(|(name, &setting)| (name, setting.into())));
    given.extend([("seeds", seeds.into()), ("steps", steps.into()), ("tokens", out.into())]);
    lowering.launch(kernel, &[("rows", ty.shape.rows())], &given)
}

const COUNTERS: [&str; 4] = ["counters_0", "counters_1", "counters_2", "counters_3"];

/// States that count up.
pub(super) fn advance(lowering: &mut Lowering<'_>, counters: &[(Tensor, Tensor)]) -> Result<()> {
    let Some(&(first, _)) = counters.first() else { return form("there is nothing to count up") };
    let elements = lowering.ty(first).shape.elements();
    let Ok(rows) = u32::try_from(elements) else { return form(format!("{elements} counters in a state")) };
    let kernel = warpwright_kernels::Advance::new(counters.len() as u32);
    let mut given: Vec<(&str, Given)> =
        COUNTERS.into_iter().zip(counters).map(|(name, &(_, after))| (name, after.into())).collect();
    given.push(("rows", Given::u32(rows)));
    lowering.launch(kernel, &[], &given)
}
