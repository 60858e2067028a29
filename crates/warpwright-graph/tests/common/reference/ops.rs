//! What each op makes of what it takes. Kinds and lengths were checked.

use super::attention::{Queries, attention};
use super::error::ReferenceError;
use super::rope::rope;
use super::sampling::{Settings, argmax, draw, penalise, probabilities};
use super::value::{Value, hold_row};
use warpwright_graph::{AttentionMode, CacheShape, Node, PenaltyParams, SampleParams, TensorOp, TensorType};
use warpwright_kernels::{Sample, Setting, TokenSequences};
use warpwright_qualify::common::activation::Exact;

/// What a node makes of what it takes.
pub(super) fn compute(
    node: &Node,
    types: &[TensorType],
    inputs: &[&Value],
) -> Result<Vec<Value>, ReferenceError> {
    let floats = |i: usize| inputs[i].floats();
    let integers = |i: usize| inputs[i].integers();
    let columns = |i: usize| types[i].shape.columns() as usize;
    let pairs =
        |of: &dyn Fn(f64, f64) -> f64| floats(0).iter().zip(floats(1)).map(|(&a, &b)| of(a, b)).collect();
    let made = match node.op {
        TensorOp::Embedding | TensorOp::SelectRows => rows_of(floats(0), columns(0), integers(1)),
        TensorOp::MatMul { bias } => mat_mul(floats(0), floats(1), columns(0), bias.then(|| floats(2))),
        TensorOp::RmsNorm { epsilon } | TensorOp::HeadNorm { epsilon, .. } => {
            norm(floats(0), floats(1), epsilon.into())
        }
        TensorOp::Add => pairs(&|a, b| a + b),
        TensorOp::Mul => pairs(&|a, b| a * b),
        TensorOp::Activate(activation) => floats(0).iter().map(|&x| activation.value(x)).collect(),
        TensorOp::Glu(activation) => pairs(&|gate, up| activation.value(gate) * up),
        TensorOp::Rope(params) => rope(&params, floats(0), integers(1), params.factors.then(|| floats(2))),
        TensorOp::KvAppend { sequences } => return kv_append(node, types, inputs, sequences),
        TensorOp::Attention(params) => {
            let max_seq_len = CacheShape::of(types[1]).map_or(0, |cache| cache.max_seq_len as usize);
            let queries = match params.mode {
                AttentionMode::Decode => Queries::decode(integers(3), max_seq_len),
                AttentionMode::Prefill => {
                    let count = types[0].shape.dims()[0];
                    let queries = Queries::prefill(count as usize, integers(3), integers(4), max_seq_len);
                    let rule = format!("from the number before it to {count}, the queries");
                    queries.map_err(|value| out_of_bounds(node, "q_starts", value, rule))?
                }
            };
            attention(&params, floats(0), [floats(1), floats(2)], max_seq_len, &queries)
        }
        TensorOp::SoftMax => floats(0).chunks(columns(0)).flat_map(softmax).collect(),
        // The result's type rounds it.
        TensorOp::Cast { .. } => floats(0).to_vec(),
        TensorOp::ResizeHeads { from, to } => {
            let resized = |head: &[f64]| {
                let mut head = head.to_vec();
                head.resize(to as usize, 0.0);
                head
            };
            floats(0).chunks(from as usize).flat_map(resized).collect()
        }
        TensorOp::ArgMax => {
            return Ok(vec![Value::Integers(floats(0).chunks(columns(0)).map(argmax).collect())]);
        }
        TensorOp::Penalties(params) => return Ok(penalties(params, columns(1), columns(0), inputs)),
        TensorOp::Sample(params) => return Ok(vec![sample(params, columns(0), inputs)]),
        TensorOp::Advance => {
            let next =
                |input: &&Value| input.integers().iter().map(|n| (n + 1) & u64::from(u32::MAX)).collect();
            return Ok(inputs.iter().map(|input| Value::Integers(next(input))).collect());
        }
        TensorOp::Assign => return Ok(vec![inputs[1].clone()]),
        _ => unreachable!("the reference knows every op"),
    };
    Ok(vec![Value::Floats(made)])
}

fn out_of_bounds(node: &Node, input: &'static str, value: u64, rule: String) -> ReferenceError {
    ReferenceError::Bounds { node: node.name.clone(), op: node.op.name(), input, value, rule }
}

/// Rows by number; zeros for those that there are not.
fn rows_of(table: &[f64], columns: usize, numbers: &[u64]) -> Vec<f64> {
    let row = |&number: &u64| match usize::try_from(number).ok().and_then(|n| table.chunks(columns).nth(n)) {
        Some(row) => row.to_vec(),
        None => vec![0.0; columns],
    };
    numbers.iter().flat_map(row).collect()
}

fn mat_mul(x: &[f64], weights: &[f64], k: usize, bias: Option<&[f64]>) -> Vec<f64> {
    let mut y = Vec::new();
    for x in x.chunks(k) {
        for (i, row) in weights.chunks(k).enumerate() {
            let dot: f64 = x.iter().zip(row).map(|(x, w)| x * w).sum();
            y.push(dot + bias.map_or(0.0, |bias| bias[i]));
        }
    }
    y
}

/// `x / √(mean(x²) + ε) · w` for each `w.len()` elements; zeros stay zeros.
fn norm(x: &[f64], weights: &[f64], epsilon: f64) -> Vec<f64> {
    let row = |row: &[f64]| {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64 + epsilon;
        let scale = if mean == 0.0 { 0.0 } else { 1.0 / mean.sqrt() };
        row.iter().zip(weights).map(|(x, w)| x * scale * w).collect::<Vec<_>>()
    };
    x.chunks(weights.len()).flat_map(row).collect()
}

/// `-inf` is a mask: a row of nothing else becomes zeros. `+inf` counts as the largest finite `f32`.
fn softmax(row: &[f64]) -> Vec<f64> {
    if row.iter().any(|x| x.is_nan()) {
        return vec![f64::NAN; row.len()];
    }
    let finite = |x: &f64| x.min(f64::from(f32::MAX));
    let most = row.iter().map(finite).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return vec![0.0; row.len()];
    }
    let exponentials: Vec<f64> = row.iter().map(|x| (finite(x) - most).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|x| x / sum).collect()
}

/// Rows of keys and values go to their sequences and positions, as the cache holds them. Positions that it has no room
/// for reach nothing.
fn kv_append(
    node: &Node,
    types: &[TensorType],
    inputs: &[&Value],
    sequences: TokenSequences,
) -> Result<Vec<Value>, ReferenceError> {
    let Some(shape) = CacheShape::of(types[0]) else {
        return Ok(vec![inputs[0].clone(), inputs[1].clone()]);
    };
    let (batch, kv_heads, head_dim) = (shape.batch, shape.kv_heads as usize, shape.head_dim as usize);
    let positions = inputs[4].integers();
    let append = |cache: &Value, rows: &Value| {
        let mut cache = cache.floats().to_vec();
        for (token, (row, &position)) in rows.floats().chunks(kv_heads * head_dim).zip(positions).enumerate()
        {
            let sequence = match sequences {
                TokenSequences::One => 0,
                TokenSequences::Each => token as u64,
                TokenSequences::Listed => inputs[5].integers()[token],
            };
            if position >= shape.max_seq_len.into() {
                continue;
            }
            if sequence >= batch.into() {
                let rule = format!("less than {batch}, the sequences of the cache");
                return Err(out_of_bounds(node, "sequences", sequence, rule));
            }
            for (head, values) in row.chunks(head_dim).enumerate() {
                let at = shape.row(sequence as u32, head as u32, position as u32) as usize * head_dim;
                cache[at..at + head_dim].copy_from_slice(&hold_row(shape.dtype, values));
            }
        }
        Ok(Value::Floats(cache))
    };
    Ok(vec![append(inputs[0], inputs[2])?, append(inputs[1], inputs[3])?])
}

/// The number of a row that a setting has.
fn number(setting: Setting<f32>, each: Option<&&Value>, row: usize) -> f64 {
    match setting {
        Setting::Fixed(number) => number.into(),
        Setting::Buffer => each.map_or(f64::NAN, |each| each.floats()[row]),
    }
}

/// Logits after penalties, and before them the tokens that came lately with the newest.
fn penalties(params: PenaltyParams, n: usize, window: usize, inputs: &[&Value]) -> Vec<Value> {
    let [recent, logits, others @ ..] = inputs else { return Vec::new() };
    let (newest, settings) = others.split_at(if params.remembers { 2 } else { 0 });
    let mut recent = recent.integers().to_vec();
    if let [tokens, positions] = newest {
        let newest = tokens.integers().iter().zip(positions.integers());
        for (row, (&token, &position)) in recent.chunks_mut(window).zip(newest) {
            row[position as usize % window] = token;
        }
    }
    let mut settings = settings.iter();
    let mut buffer = |setting| if setting == Setting::Buffer { settings.next() } else { None };
    let [repeats, frequencies, presences] =
        [params.repeat, params.frequency, params.presence].map(&mut buffer);
    let mut lowered = logits.floats().to_vec();
    for (row, (logits, recent)) in lowered.chunks_mut(n).zip(recent.chunks(window)).enumerate() {
        let repeat = number(params.repeat, repeats, row);
        let frequency = number(params.frequency, frequencies, row);
        penalise(logits, recent, repeat, frequency, number(params.presence, presences, row));
    }
    let lowered = Value::Floats(lowered);
    if params.remembers { vec![Value::Integers(recent), lowered] } else { vec![lowered] }
}

/// A draw from each row, as the library's kernel has it.
fn sample(params: SampleParams, n: usize, inputs: &[&Value]) -> Value {
    let threads = Sample::new(n as u32).threads;
    let [logits, seeds, steps, settings @ ..] = inputs else { return Value::Integers(Vec::new()) };
    let mut settings = settings.iter();
    let mut buffer = |given: bool| if given { settings.next() } else { None };
    let temperatures = buffer(params.temperature == Setting::Buffer);
    let top_ks = buffer(params.top_k == Setting::Buffer);
    let top_ps = buffer(params.top_p == Setting::Buffer);
    let min_ps = buffer(params.min_p == Setting::Buffer);
    let token = |(row, logits): (usize, &[f64])| {
        let top_k = match params.top_k {
            Setting::Fixed(top_k) => top_k,
            Setting::Buffer => top_ks.map_or(0, |each| each.integers()[row] as u32),
        };
        let settings = Settings {
            temperature: number(params.temperature, temperatures, row),
            top_k,
            top_p: number(params.top_p, top_ps, row),
            min_p: number(params.min_p, min_ps, row),
        };
        let shares = probabilities(logits, &settings);
        let drawn = draw(&shares, threads, seeds.integers()[row], steps.integers()[row] as u32);
        u64::from(drawn.token)
    };
    Value::Integers(logits.floats().chunks(n).enumerate().map(token).collect())
}
