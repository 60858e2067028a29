//! The types of an op's results, and the rules for its inputs.

use super::error::OpError;
use super::op::{AttentionMode, AttentionParams, PenaltyParams, RopeParams, SampleParams, TensorOp};
use super::sequence::CacheShape;
use super::tensor::{Element, TensorType};
use warpwright_kernels::{RopeScaling, Setting, TokenSequences};

/// The types of an op's results, from those of its inputs.
///
/// ```
/// use warpwright_graph::{TensorOp, TensorType, infer};
/// use warpwright_kernels::Activation;
///
/// let (gate, up) = (TensorType::f32([2, 64]), TensorType::f32([2, 64]));
/// let op = TensorOp::Glu(Activation::Silu);
/// assert_eq!(infer(&op, &[gate, up]), Ok(vec![gate]));
/// assert!(infer(&op, &[gate, TensorType::f32([2, 32])]).is_err());
/// ```
///
/// # Errors
///
/// An [`OpError`] names the input, and the other one if two are incompatible, and states the rule.
pub fn infer(op: &TensorOp, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
    let results = results(op, inputs)?;
    match results.iter().find_map(|&result| Some((result, result.broken_rule()?))) {
        Some((result, rule)) => Err(element("result", result, rule)),
        None => Ok(results),
    }
}

fn results(op: &TensorOp, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
    match *op {
        TensorOp::Embedding => embedding(inputs),
        TensorOp::MatMul { bias } => mat_mul(inputs, bias),
        TensorOp::RmsNorm { epsilon } => rms_norm(inputs, epsilon),
        TensorOp::HeadNorm { head_dim, epsilon } => head_norm(inputs, head_dim, epsilon),
        TensorOp::Add | TensorOp::Mul => elementwise(inputs, ["a", "b"]),
        TensorOp::Glu(_) => elementwise(inputs, ["gate", "up"]),
        TensorOp::Activate(_) | TensorOp::SoftMax => {
            let [x] = exactly(inputs, "1")?;
            Ok(vec![matrix("x", x, FLOATS)?])
        }
        TensorOp::Rope(params) => rope(inputs, params),
        TensorOp::KvAppend { sequences } => kv_append(inputs, sequences),
        TensorOp::Attention(params) => attention(inputs, params),
        TensorOp::SelectRows => select_rows(inputs),
        TensorOp::Cast { to } => {
            let [x] = exactly(inputs, "1")?;
            let x = matrix("x", x, FLOATS)?;
            Ok(vec![TensorType { element: Element::Float(to), ..x }])
        }
        TensorOp::ResizeHeads { from, to } => resize_heads(inputs, from, to),
        TensorOp::ArgMax => {
            let [x] = exactly(inputs, "1")?;
            matrix("x", x, FLOATS)?;
            Ok(vec![rows_of(x)])
        }
        TensorOp::Penalties(params) => penalties(inputs, params),
        TensorOp::Sample(params) => sample(inputs, params),
        TensorOp::Advance => advance(inputs),
        TensorOp::Assign => {
            let [state, value] = exactly(inputs, "2")?;
            if state != value {
                return Err(shapes(("state", state), ("value", value), "they must be of one type"));
            }
            Ok(vec![state])
        }
    }
}

fn exactly<const N: usize>(inputs: &[TensorType], needed: &'static str) -> Result<[TensorType; N], OpError> {
    inputs.try_into().map_err(|_| OpError::Arity { needed, given: inputs.len() })
}

fn element(input: &'static str, given: TensorType, rule: impl Into<String>) -> OpError {
    OpError::Type { input, given, rule: rule.into() }
}

fn shapes(
    (input, given): (&'static str, TensorType),
    (other, beside): (&'static str, TensorType),
    rule: impl Into<String>,
) -> OpError {
    OpError::Shapes { input, given, other, beside, rule: rule.into() }
}

/// What elements an input may have, and how that is said.
type Kind = (fn(Element) -> bool, &'static str);

const FLOATS: Kind = (|element| matches!(element, Element::Float(_)), "floats");
const F32S: Kind = (|element| element == Element::F32, "f32");
const U32S: Kind = (|element| element == Element::U32, "u32");
const U64S: Kind = (|element| element == Element::U64, "u64");
const WEIGHTS: Kind = (|element| matches!(element, Element::Weights(_)), "weights");
const CACHES: Kind = (|element| matches!(element, Element::Cache(_)), "a cache");

/// An input with this number of dimensions.
fn ranked(
    input: &'static str,
    given: TensorType,
    (kind, name): Kind,
    rank: usize,
) -> Result<TensorType, OpError> {
    if !kind(given.element) || given.shape.dims().len() != rank {
        let plural = if rank == 1 { "" } else { "s" };
        return Err(element(input, given, format!("{name} of {rank} dimension{plural}")));
    }
    match given.broken_rule() {
        Some(rule) => Err(element(input, given, rule)),
        None => Ok(given),
    }
}

fn matrix(input: &'static str, given: TensorType, kind: Kind) -> Result<TensorType, OpError> {
    ranked(input, given, kind, 2)
}

/// A vector with as many elements as another input has rows.
fn for_rows(
    (input, given): (&'static str, TensorType),
    kind: Kind,
    (other, beside): (&'static str, TensorType),
) -> Result<(), OpError> {
    ranked(input, given, kind, 1)?;
    if given.shape.elements() != beside.shape.rows() {
        return Err(shapes((input, given), (other, beside), "one element for each row"));
    }
    Ok(())
}

/// A vector of that length.
fn vector(input: &'static str, given: TensorType, kind: Kind, len: u32) -> Result<(), OpError> {
    ranked(input, given, kind, 1)?;
    if given.shape.columns() != len {
        return Err(element(input, given, format!("{} [{len}]", kind.1)));
    }
    Ok(())
}

/// One number for each row.
fn rows_of(x: TensorType) -> TensorType {
    TensorType::new(Element::U32, [x.shape.dims()[0]])
}

fn embedding(inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
    let [table, ids] = exactly(inputs, "2")?;
    matrix("table", table, WEIGHTS)?;
    ranked("ids", ids, U32S, 1)?;
    Ok(vec![TensorType::f32([ids.shape.columns(), table.shape.columns()])])
}

fn mat_mul(inputs: &[TensorType], bias: bool) -> Result<Vec<TensorType>, OpError> {
    let (x, w) = match *inputs {
        [x, w] if !bias => (x, w),
        [x, w, _] if bias => (x, w),
        _ => return Err(OpError::Arity { needed: if bias { "3" } else { "2" }, given: inputs.len() }),
    };
    matrix("x", x, F32S)?;
    matrix("weights", w, WEIGHTS)?;
    if x.shape.columns() != w.shape.columns() {
        return Err(shapes(("x", x), ("weights", w), "both must have rows of one length"));
    }
    let n = w.shape.dims()[0];
    if bias {
        vector("bias", inputs[2], F32S, n)?;
    }
    Ok(vec![TensorType::f32([x.shape.dims()[0], n])])
}

/// A parameter that is a number, and whether it is what the rule says.
fn number(parameter: &'static str, value: f32, fits: bool, rule: &str) -> Result<(), OpError> {
    if fits {
        return Ok(());
    }
    Err(OpError::Parameter { parameter, value: value.to_string(), rule: rule.into() })
}

fn check_epsilon(epsilon: f32) -> Result<(), OpError> {
    number("epsilon", epsilon, (0.0..=1e30).contains(&epsilon), "from 0 to 1e30")
}

fn check_scaling(scaling: RopeScaling) -> Result<(), OpError> {
    let factor_fits = |factor: f32| number("factor", factor, (1.0..=1e6).contains(&factor), "from 1 to 1e6");
    let positive =
        |name, value: f32| number(name, value, value > 0.0 && value <= 1e6, "more than 0 and up to 1e6");
    match scaling {
        RopeScaling::None => Ok(()),
        RopeScaling::Linear { factor } => factor_fits(factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor } => {
            factor_fits(factor)?;
            if original_context == 0 {
                let (parameter, value) = ("original_context", original_context.to_string());
                return Err(OpError::Parameter { parameter, value, rule: "1 or more".into() });
            }
            positive("beta_slow", beta_slow)?;
            let fits = beta_fast >= beta_slow && beta_fast <= 1e6;
            number("beta_fast", beta_fast, fits, "from beta_slow to 1e6")?;
            attention_factor.map_or(Ok(()), |factor| positive("attention_factor", factor))
        }
    }
}

fn rms_norm(inputs: &[TensorType], epsilon: f32) -> Result<Vec<TensorType>, OpError> {
    let [x, w] = exactly(inputs, "2")?;
    matrix("x", x, FLOATS)?;
    vector("weights", w, F32S, x.shape.columns())?;
    check_epsilon(epsilon)?;
    Ok(vec![x])
}

/// Rows of this many heads.
fn heads_of(input: &'static str, x: TensorType, head_dim: u32) -> Result<u32, OpError> {
    matrix(input, x, F32S)?;
    let columns = x.shape.columns();
    if head_dim == 0 || !columns.is_multiple_of(head_dim) {
        let rule = format!("a divisor of {columns}, the length of the rows of `{input}`");
        return Err(OpError::Parameter { parameter: "head_dim", value: head_dim.to_string(), rule });
    }
    Ok(columns / head_dim)
}

fn head_norm(inputs: &[TensorType], head_dim: u32, epsilon: f32) -> Result<Vec<TensorType>, OpError> {
    let [x, w] = exactly(inputs, "2")?;
    heads_of("x", x, head_dim)?;
    vector("weights", w, F32S, head_dim)?;
    check_epsilon(epsilon)?;
    Ok(vec![x])
}

fn resize_heads(inputs: &[TensorType], from: u32, to: u32) -> Result<Vec<TensorType>, OpError> {
    let [x] = exactly(inputs, "1")?;
    matrix("x", x, F32S)?;
    let columns = x.shape.columns();
    if from == 0 || !columns.is_multiple_of(from) {
        let rule = format!("a divisor of {columns}, the length of the rows of `x`");
        return Err(OpError::Parameter { parameter: "from", value: from.to_string(), rule });
    }
    let heads = columns / from;
    match heads.checked_mul(to) {
        Some(columns) if to > 0 => Ok(vec![TensorType { shape: [x.shape.dims()[0], columns].into(), ..x }]),
        _ => {
            let rule = format!("1 or more, and such that {heads} heads have less than 2^32 elements");
            Err(OpError::Parameter { parameter: "to", value: to.to_string(), rule })
        }
    }
}

fn elementwise(
    inputs: &[TensorType],
    [a_name, b_name]: [&'static str; 2],
) -> Result<Vec<TensorType>, OpError> {
    let [a, b] = exactly(inputs, "2")?;
    matrix(a_name, a, FLOATS)?;
    if a != b {
        return Err(shapes((a_name, a), (b_name, b), "they must be of one type and shape"));
    }
    Ok(vec![a])
}

fn rope(inputs: &[TensorType], params: RopeParams) -> Result<Vec<TensorType>, OpError> {
    let RopeParams { head_dim, rotary_dim, base, factors, .. } = params;
    let (x, positions) = match *inputs {
        [x, positions] if !factors => (x, positions),
        [x, positions, _] if factors => (x, positions),
        _ => return Err(OpError::Arity { needed: if factors { "3" } else { "2" }, given: inputs.len() }),
    };
    heads_of("x", x, head_dim)?;
    for_rows(("positions", positions), U32S, ("x", x))?;
    if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) || rotary_dim > head_dim {
        let rule = format!("even, from 2 to head_dim, which is {head_dim}");
        return Err(OpError::Parameter { parameter: "rotary_dim", value: rotary_dim.to_string(), rule });
    }
    number("base", base, base > 1.0 && base <= 1e30, "more than 1 and up to 1e30")?;
    check_scaling(params.scaling)?;
    if factors {
        vector("factors", inputs[2], F32S, rotary_dim / 2)?;
    }
    Ok(vec![x])
}

/// A cache: what kernels know of its rows is theirs to say.
fn cache(input: &'static str, given: TensorType) -> Result<CacheShape, OpError> {
    ranked(input, given, CACHES, 4)?;
    CacheShape::of(given).ok_or_else(|| element(input, given, "a cache"))
}

fn caches_of(k: TensorType, v: TensorType) -> Result<CacheShape, OpError> {
    let shape = cache("k_cache", k)?;
    cache("v_cache", v)?;
    if k != v {
        return Err(shapes(("k_cache", k), ("v_cache", v), "they must be of one type and shape"));
    }
    Ok(shape)
}

fn kv_append(inputs: &[TensorType], sequences: TokenSequences) -> Result<Vec<TensorType>, OpError> {
    let listed = sequences == TokenSequences::Listed;
    let &[k_cache, v_cache, k, v, positions, ref listing @ ..] = inputs else {
        return Err(OpError::Arity { needed: if listed { "6" } else { "5" }, given: inputs.len() });
    };
    if listing.len() != usize::from(listed) {
        return Err(OpError::Arity { needed: if listed { "6" } else { "5" }, given: inputs.len() });
    }
    let CacheShape { batch, kv_heads, head_dim, .. } = caches_of(k_cache, v_cache)?;
    for (name, given) in [("k", k), ("v", v)] {
        matrix(name, given, F32S)?;
        if u64::from(given.shape.columns()) != u64::from(kv_heads) * u64::from(head_dim) {
            let rule = "rows must be of kv_heads · head_dim of the cache";
            return Err(shapes((name, given), ("k_cache", k_cache), rule));
        }
    }
    if k != v {
        return Err(shapes(("k", k), ("v", v), "they must be of one shape"));
    }
    for_rows(("positions", positions), U32S, ("k", k))?;
    if let [listing] = *listing {
        for_rows(("sequences", listing), U32S, ("k", k))?;
    }
    let sequences_of_cache = match sequences {
        TokenSequences::One => 1,
        TokenSequences::Each => k.shape.dims()[0],
        TokenSequences::Listed => batch,
    };
    if sequences_of_cache != batch {
        let rule = format!("a cache for {sequences_of_cache} sequences is needed");
        return Err(shapes(("k_cache", k_cache), ("k", k), rule));
    }
    Ok(vec![k_cache, v_cache])
}

fn attention(inputs: &[TensorType], params: AttentionParams) -> Result<Vec<TensorType>, OpError> {
    let AttentionParams { heads, kv_heads, head_dim, scale, mode } = params;
    let prefill = mode == AttentionMode::Prefill;
    let &[q, k_cache, v_cache, lengths, ref rest @ ..] = inputs else {
        return Err(OpError::Arity { needed: if prefill { "5" } else { "4" }, given: inputs.len() });
    };
    if rest.len() != usize::from(prefill) {
        return Err(OpError::Arity { needed: if prefill { "5" } else { "4" }, given: inputs.len() });
    }
    let cache = caches_of(k_cache, v_cache)?;
    let batch = cache.batch;
    if (cache.kv_heads, cache.head_dim) != (kv_heads, head_dim) {
        let rule = format!("batch × {kv_heads} × max_seq_len × {head_dim}, by kv_heads and head_dim");
        return Err(element("k_cache", k_cache, rule));
    }
    if heads == 0 || !heads.is_multiple_of(kv_heads) {
        let rule = format!("a multiple of kv_heads, which is {kv_heads}");
        return Err(OpError::Parameter { parameter: "heads", value: heads.to_string(), rule });
    }
    if heads_of("q", q, head_dim)? != heads {
        let rule =
            format!("f32 [tokens × {}], by heads and head_dim", u64::from(heads) * u64::from(head_dim));
        return Err(element("q", q, rule));
    }
    number("scale", scale, scale > 0.0 && scale <= 1e3, "more than 0 and up to 1000")?;
    match rest {
        [kv_lens] => {
            let one_more = batch.saturating_add(1);
            vector("q_starts", lengths, U32S, one_more)?;
            vector("kv_lens", *kv_lens, U32S, batch)?;
        }
        _ => {
            for_rows(("lengths", lengths), U32S, ("q", q))?;
            if q.shape.dims()[0] != batch {
                return Err(shapes(
                    ("q", q),
                    ("k_cache", k_cache),
                    "one query for each sequence of the cache",
                ));
            }
        }
    }
    Ok(vec![q])
}

fn select_rows(inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
    let [x, rows] = exactly(inputs, "2")?;
    matrix("x", x, F32S)?;
    ranked("rows", rows, U32S, 1)?;
    Ok(vec![TensorType::f32([rows.shape.columns(), x.shape.columns()])])
}

fn penalties(inputs: &[TensorType], params: PenaltyParams) -> Result<Vec<TensorType>, OpError> {
    let fixed = [
        ("repeat", params.repeat, 1e-3, 1e3, "from 0.001 to 1000"),
        ("frequency", params.frequency, -1e6, 1e6, "from -1e6 to 1e6"),
        ("presence", params.presence, -1e6, 1e6, "from -1e6 to 1e6"),
    ];
    for (name, setting, min, max, rule) in fixed {
        if let Setting::Fixed(value) = setting {
            number(name, value, (min..=max).contains(&value), rule)?;
        }
    }
    let newest = [("tokens", U32S), ("positions", U32S)];
    let newest = newest.into_iter().filter(|_| params.remembers);
    let settings = [
        (params.repeat, ("repeats", F32S)),
        (params.frequency, ("frequencies", F32S)),
        (params.presence, ("presences", F32S)),
    ];
    let settings = settings.into_iter().filter(|(setting, _)| *setting == Setting::Buffer);
    let vectors: Vec<(&str, Kind)> = newest.chain(settings.map(|(_, named)| named)).collect();
    if inputs.len() != 2 + vectors.len() {
        let needed = ["2", "3", "4", "5", "6", "7"][vectors.len()];
        return Err(OpError::Arity { needed, given: inputs.len() });
    }
    let recent = matrix("recent", inputs[0], U32S)?;
    let logits = matrix("logits", inputs[1], FLOATS)?;
    if recent.shape.rows() != logits.shape.rows() {
        return Err(shapes(("recent", recent), ("logits", logits), "they must have as many rows"));
    }
    for ((name, kind), &input) in vectors.into_iter().zip(&inputs[2..]) {
        for_rows((name, input), kind, ("logits", logits))?;
    }
    Ok(if params.remembers { vec![recent, logits] } else { vec![logits] })
}

fn sample(inputs: &[TensorType], params: SampleParams) -> Result<Vec<TensorType>, OpError> {
    let settings = [
        (params.temperature == Setting::Buffer, "temperatures", F32S),
        (params.top_k == Setting::Buffer, "top_ks", U32S),
        (params.top_p == Setting::Buffer, "top_ps", F32S),
        (params.min_p == Setting::Buffer, "min_ps", F32S),
    ];
    let given = settings.iter().filter(|(given, ..)| *given).count();
    if inputs.len() != 3 + given {
        let needed = ["3", "4", "5", "6", "7"][given];
        return Err(OpError::Arity { needed, given: inputs.len() });
    }
    let logits = matrix("logits", inputs[0], FLOATS)?;
    for_rows(("seeds", inputs[1]), U64S, ("logits", logits))?;
    for_rows(("steps", inputs[2]), U32S, ("logits", logits))?;
    let buffers = settings.into_iter().filter(|(given, ..)| *given);
    for ((_, name, kind), &input) in buffers.zip(&inputs[3..]) {
        for_rows((name, input), kind, ("logits", logits))?;
    }
    Ok(vec![rows_of(logits)])
}

/// States that a launch counts up at most.
const MAX_COUNTERS: usize = 4;

fn advance(inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
    let Some(&first) = inputs.first() else {
        return Err(OpError::Arity { needed: "1 to 4", given: 0 });
    };
    if inputs.len() > MAX_COUNTERS {
        return Err(OpError::Arity { needed: "1 to 4", given: inputs.len() });
    }
    for &input in inputs {
        ranked("counter", input, U32S, 1)?;
        if input != first {
            return Err(shapes(("counter", input), ("counter", first), "they must be of one shape"));
        }
    }
    Ok(inputs.to_vec())
}
