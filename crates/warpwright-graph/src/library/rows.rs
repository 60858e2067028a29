//! Kernels on rows with one or two operands, chosen by shape alone.

use super::lowering::{LaunchArg, Lowering, Result, form};
use crate::graph::{Element, SampleParams, Tensor, TensorType};
use crate::program::{NormStep, PenaltyStep, Pointwise};
use warpwright_kernels::{
    Advance, AdvanceArgs, Argmax, ArgmaxArgs, Cast, CastArgs, Dtype, Elementwise, ElementwiseArgs,
    ElementwiseOp, Embedding, EmbeddingArgs, Penalties, PenaltiesArgs, QuantizeInt8, QuantizeInt8Args,
    ResizeRows, ResizeRowsArgs, RmsNorm, RmsNormArgs, Sample, SampleArgs, Setting, Softmax, SoftmaxArgs,
    WeightFormat,
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
    look_up(lowering, (format, table, LaunchArg::rows(table)), ids, out)
}

/// Rows of a matrix of `f32`: a table too.
pub(super) fn select_rows(lowering: &mut Lowering<'_>, x: Tensor, rows: Tensor, out: Tensor) -> Result<()> {
    look_up(lowering, (WeightFormat::F32, x, x.into()), rows, out)
}

fn look_up(
    lowering: &mut Lowering<'_>,
    (format, table, given): (WeightFormat, Tensor, LaunchArg),
    ids: Tensor,
    out: Tensor,
) -> Result<()> {
    let (rows, d) = (lowering.rows(table)?, lowering.ty(table).shape.columns());
    let tokens = lowering.ty(ids).shape.elements();
    let moved = format.row_bytes(d).saturating_mul(tokens);
    let args = EmbeddingArgs { table: given.moves(moved), ids: ids.into(), y: out.into(), tokens };
    lowering.launch_with(Embedding::new(format, rows, d), args)
}

/// The kernel for the norm of rows of a type.
pub(super) fn rms_norm(x: TensorType, step: &NormStep) -> Result<RmsNorm> {
    let dtype = dtype(x)?;
    let (output, int8) = (step.out.map(|_| dtype), step.quants.is_some());
    Ok(RmsNorm { input: dtype, output, int8, ..RmsNorm::new(step.d, step.norm.epsilon) })
}

pub(super) fn norm(lowering: &mut Lowering<'_>, step: &NormStep) -> Result<()> {
    let x = lowering.ty(step.x);
    let kernel = rms_norm(x, step)?;
    let rows = x.shape.elements() / u64::from(step.d.max(1));
    let part = |plane| step.quants.map(|quants| LaunchArg::part(quants, plane, 0));
    let args = RmsNormArgs {
        x: step.x.into(),
        residual: None,
        w: step.norm.weight.into(),
        y: step.out.map(LaunchArg::from),
        quants: part(0),
        scales: part(1),
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
    let (x, y) = (lowering.ty(a), lowering.ty(out));
    let plain = |op| Elementwise::new(op, x.shape.columns());
    let mut kernel = match (op, b) {
        (Pointwise::Add, Some(_)) => plain(ElementwiseOp::Add),
        (Pointwise::Mul, Some(_)) => plain(ElementwiseOp::Mul),
        (Pointwise::Glu(activation), Some(_)) => Elementwise { activation, ..plain(ElementwiseOp::Glu) },
        (Pointwise::Activate(activation), None) => {
            Elementwise { activation, ..plain(ElementwiseOp::Activate) }
        }
        (op, _) => return form(format!("{} of {} operands", op.name(), 1 + b.iter().len())),
    };
    (kernel.a, kernel.b, kernel.output) = (dtype(x)?, dtype(x)?, dtype(y)?);
    if let Some(b) = b {
        kernel.b = dtype(lowering.ty(b))?;
    }
    let args = ElementwiseArgs {
        a: Some(a.into()),
        b: b.map(LaunchArg::from),
        ab: None,
        y: out.into(),
        rows: LaunchArg::u32(lowering.rows(a)?),
        factor: None,
    };
    lowering.launch_with(kernel, args)
}

pub(super) fn softmax(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let (from, to) = (lowering.ty(x), lowering.ty(out));
    let kernel = Softmax { input: dtype(from)?, output: dtype(to)?, ..Softmax::new(from.shape.columns()) };
    lowering.launch_with(kernel, SoftmaxArgs { x: x.into(), y: out.into(), rows: from.shape.rows() })
}

/// A conversion; a copy where there is nothing to convert.
pub(super) fn cast(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let (from, to) = (lowering.ty(x), lowering.ty(out));
    if from == to {
        lowering.copy(x, out);
        return Ok(());
    }
    let kernel = Cast::new(from.shape.columns(), dtype(from)?.into(), dtype(to)?.into());
    let rows = LaunchArg::u32(lowering.rows(x)?);
    let args = CastArgs { x: x.into(), x_scales: None, y: out.into(), y_scales: None, rows };
    lowering.launch_with(kernel, args)
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
    lowering.launch_with(kernel, ResizeRowsArgs { x: x.into(), y: out.into(), rows: LaunchArg::u32(rows) })
}

/// The kernel that makes `int8` of rows of a type.
pub(super) fn quantizer(x: TensorType) -> Result<QuantizeInt8> {
    Ok(QuantizeInt8 { input: dtype(x)?, ..QuantizeInt8::new(x.shape.columns()) })
}

pub(super) fn quantize(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let kernel = quantizer(lowering.ty(x))?;
    let args = QuantizeInt8Args {
        x: x.into(),
        quants: out.into(),
        scales: LaunchArg::part(out, 1, 0),
        rows: LaunchArg::u32(lowering.rows(x)?),
    };
    lowering.launch_with(kernel, args)
}

pub(super) fn argmax(lowering: &mut Lowering<'_>, x: Tensor, out: Tensor) -> Result<()> {
    let ty = lowering.ty(x);
    let rows = ty.shape.rows();
    let kernel = Argmax { input: dtype(ty)?, ..Argmax::new(ty.shape.columns()) };
    let mut merged = |dtype| (kernel.blocks > 1).then(|| LaunchArg::from(lowering.zeroed(dtype, rows)));
    let (best, arrived) = (merged(Type::U64), merged(Type::U32));
    lowering.launch_with(kernel, ArgmaxArgs { x: x.into(), best, arrived, indices: out.into(), rows })
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
    let rows = ty.shape.rows();
    let moved = rows.saturating_mul((window * input.bytes()).into());
    let recent = LaunchArg::from(step.next.unwrap_or(step.recent));
    let mut settings = step.settings.iter();
    let args = PenaltiesArgs {
        logits: LaunchArg::from(step.out).moves(moved),
        recent: (!kernel.remembers).then_some(recent),
        ring: kernel.remembers.then_some(recent),
        tokens: step.newest.map(|[tokens, _]| tokens.into()),
        positions: step.newest.map(|[_, positions]| positions.into()),
        repeats: buffer(params.repeat, &mut settings),
        frequencies: buffer(params.frequency, &mut settings),
        presences: buffer(params.presence, &mut settings),
        rows,
    };
    lowering.launch_with(kernel, args)
}

/// The next of the buffers, where the setting is in one.
fn buffer<T: PartialEq>(
    setting: Setting<T>,
    buffers: &mut std::slice::Iter<'_, Tensor>,
) -> Option<LaunchArg> {
    if setting == Setting::Buffer { buffers.next().map(|&buffer| buffer.into()) } else { None }
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
    let mut settings = settings.iter();
    let args = SampleArgs {
        logits: logits.into(),
        temperatures: buffer(temperature, &mut settings),
        top_ks: buffer(top_k, &mut settings),
        top_ps: buffer(top_p, &mut settings),
        min_ps: buffer(min_p, &mut settings),
        seeds: seeds.into(),
        steps: steps.into(),
        tokens: out.into(),
        rows: ty.shape.rows(),
    };
    lowering.launch_with(kernel, args)
}

/// States that count up.
pub(super) fn advance(lowering: &mut Lowering<'_>, counters: &[(Tensor, Tensor)]) -> Result<()> {
    let Some(&(first, _)) = counters.first() else { return form("there is nothing to count up") };
    let elements = lowering.ty(first).shape.elements();
    let Ok(rows) = u32::try_from(elements) else { return form(format!("{elements} counters in a state")) };
    let kernel = Advance::new(counters.len() as u32);
    let counters = counters.iter().map(|&(_, after)| after.into()).collect();
    lowering.launch_with(kernel, AdvanceArgs { counters, rows: LaunchArg::u32(rows) })
}
