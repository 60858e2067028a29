//! What each op takes and gives, and what is said of everything else.

use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, OpError, PenaltyParams, RopeParams,
    SampleParams, Tensor, TensorOp, TensorType, infer,
};
use warpwright_kernels::{Activation, CacheDtype, Dtype, RopeScaling, Setting, TokenSequences, WeightFormat};

fn f32s<const N: usize>(dims: [u32; N]) -> TensorType {
    TensorType::f32(dims)
}

fn f16s<const N: usize>(dims: [u32; N]) -> TensorType {
    TensorType::new(Element::Float(Dtype::F16), dims)
}

fn u32s<const N: usize>(dims: [u32; N]) -> TensorType {
    TensorType::new(Element::U32, dims)
}

fn u64s<const N: usize>(dims: [u32; N]) -> TensorType {
    TensorType::new(Element::U64, dims)
}

fn weights(format: WeightFormat, n: u32, k: u32) -> TensorType {
    TensorType::new(Element::Weights(format), [n, k])
}

fn q4k(n: u32, k: u32) -> TensorType {
    weights(WeightFormat::Q4K, n, k)
}

fn cache<const N: usize>(dims: [u32; N]) -> TensorType {
    TensorType::new(Element::Cache(CacheDtype::F16), dims)
}

fn arity(needed: &'static str, given: usize) -> OpError {
    OpError::Arity { needed, given }
}

fn is(input: &'static str, given: TensorType, rule: &str) -> OpError {
    OpError::Type { input, given, rule: rule.into() }
}

fn beside(
    (input, given): (&'static str, TensorType),
    (other, beside): (&'static str, TensorType),
    rule: &str,
) -> OpError {
    OpError::Shapes { input, given, other, beside, rule: rule.into() }
}

fn parameter(parameter: &'static str, value: &str, rule: &str) -> OpError {
    OpError::Parameter { parameter, value: value.into(), rule: rule.into() }
}

/// The op gives that of those, and any tensor fewer or more is refused.
#[track_caller]
fn gives(op: TensorOp, inputs: &[TensorType], results: &[TensorType]) {
    assert_eq!(infer(&op, inputs), Ok(results.to_vec()), "{op}");
    if op == TensorOp::Advance {
        return;
    }
    let needed = ["0", "1", "2", "3", "4", "5", "6", "7"][inputs.len()];
    let more = [inputs, &inputs[..1]].concat();
    for wrong in [&inputs[1..], &more, &[]] {
        assert_eq!(infer(&op, wrong), Err(arity(needed, wrong.len())), "{op}");
    }
}

/// The op refuses those; a graph says so with the node's name, and stays as it was.
#[track_caller]
fn refuses(op: TensorOp, inputs: &[TensorType], error: OpError) {
    assert_eq!(infer(&op, inputs), Err(error.clone()), "{op}");
    let mut graph = ComputeGraph::new();
    let tensors: Vec<Tensor> =
        (0..).zip(inputs).map(|(i, &ty)| graph.input(&i32::to_string(&i), ty)).collect();
    let named = GraphError::Op { node: "this".into(), op: op.name(), error: Box::new(error) };
    let before = graph.tensors().to_vec();
    assert_eq!(graph.node("this", op, &tensors), Err(named));
    assert_eq!((graph.nodes(), graph.tensors()), (&[][..], &before[..]));
}

#[test]
fn rows_are_looked_up() {
    let op = TensorOp::Embedding;
    for format in WeightFormat::ALL {
        gives(op, &[weights(format, 100, 512), u32s([3])], &[f32s([3, 512])]);
    }
    refuses(op, &[f32s([100, 512]), u32s([3])], is("table", f32s([100, 512]), "weights of 2 dimensions"));
    refuses(
        op,
        &[q4k(100, 300), u32s([3])],
        is("table", q4k(100, 300), "in rows of a multiple of 256, its block"),
    );
    refuses(op, &[q4k(0, 256), u32s([3])], is("table", q4k(0, 256), "not empty"));
    refuses(op, &[q4k(100, 256), u64s([3])], is("ids", u64s([3]), "u32 of 1 dimension"));
    refuses(op, &[q4k(100, 256), u32s([3, 1])], is("ids", u32s([3, 1]), "u32 of 1 dimension"));
    refuses(op, &[q4k(100, 256), u32s([0])], is("ids", u32s([0]), "not empty"));

    let op = TensorOp::SelectRows;
    gives(op, &[f32s([9, 20]), u32s([3])], &[f32s([3, 20])]);
    refuses(op, &[f16s([9, 20]), u32s([3])], is("x", f16s([9, 20]), "f32 of 2 dimensions"));
    refuses(op, &[f32s([9]), u32s([3])], is("x", f32s([9]), "f32 of 2 dimensions"));
    refuses(op, &[f32s([9, 20]), f32s([3])], is("rows", f32s([3]), "u32 of 1 dimension"));
}

#[test]
fn products_have_rows_of_one_length() {
    let (plain, biased) = (TensorOp::MatMul { bias: false }, TensorOp::MatMul { bias: true });
    for format in WeightFormat::ALL {
        gives(plain, &[f32s([3, 256]), weights(format, 70, 256)], &[f32s([3, 70])]);
        gives(biased, &[f32s([3, 256]), weights(format, 70, 256), f32s([70])], &[f32s([3, 70])]);
    }
    gives(plain, &[f32s([1, 7]), weights(WeightFormat::F16, 5, 7)], &[f32s([1, 5])]);
    let (x, w) = (f32s([3, 256]), q4k(70, 512));
    refuses(plain, &[x, w], beside(("x", x), ("weights", w), "both must have rows of one length"));
    refuses(plain, &[x, f32s([70, 256])], is("weights", f32s([70, 256]), "weights of 2 dimensions"));
    refuses(plain, &[f16s([3, 256]), q4k(70, 256)], is("x", f16s([3, 256]), "f32 of 2 dimensions"));
    refuses(plain, &[f32s([256]), q4k(70, 256)], is("x", f32s([256]), "f32 of 2 dimensions"));
    refuses(plain, &[f32s([0, 256]), q4k(70, 256)], is("x", f32s([0, 256]), "not empty"));
    let (x, w) = (f32s([3, 48]), weights(WeightFormat::Q8_0, 70, 48));
    refuses(plain, &[x, w], is("weights", w, "in rows of a multiple of 32, its block"));
    let (x, w) = (f32s([3, 256]), q4k(70, 256));
    refuses(biased, &[x, w, f32s([71])], is("bias", f32s([71]), "f32 [70]"));
    refuses(biased, &[x, w, f16s([70])], is("bias", f16s([70]), "f32 of 1 dimension"));
    let (x, w) = (f32s([1 << 21, 256]), q4k(1 << 20, 256));
    refuses(plain, &[x, w], is("result", f32s([1 << 21, 1 << 20]), "of no more than 2^40 elements"));
}

#[test]
fn norms_have_weights_for_each_element() {
    let op = TensorOp::RmsNorm { epsilon: 1e-5 };
    gives(op, &[f32s([3, 20]), f32s([20])], &[f32s([3, 20])]);
    gives(op, &[f16s([3, 20]), f32s([20])], &[f16s([3, 20])]);
    refuses(op, &[u32s([3, 20]), f32s([20])], is("x", u32s([3, 20]), "floats of 2 dimensions"));
    refuses(op, &[f32s([3, 20]), f32s([21])], is("weights", f32s([21]), "f32 [20]"));
    refuses(op, &[f32s([3, 20]), f16s([20])], is("weights", f16s([20]), "f32 of 1 dimension"));
    refuses(op, &[f32s([3, 20]), f32s([1, 20])], is("weights", f32s([1, 20]), "f32 of 1 dimension"));
    for (epsilon, value) in [(-1e-5, "-0.00001"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let rule = parameter("epsilon", value, "from 0 to 1e30");
        refuses(TensorOp::RmsNorm { epsilon }, &[f32s([3, 20]), f32s([20])], rule.clone());
        refuses(TensorOp::HeadNorm { head_dim: 20, epsilon }, &[f32s([3, 20]), f32s([20])], rule);
    }

    let op = TensorOp::HeadNorm { head_dim: 10, epsilon: 0.0 };
    gives(op, &[f32s([3, 20]), f32s([10])], &[f32s([3, 20])]);
    refuses(op, &[f32s([3, 20]), f32s([20])], is("weights", f32s([20]), "f32 [10]"));
    refuses(op, &[f16s([3, 20]), f32s([10])], is("x", f16s([3, 20]), "f32 of 2 dimensions"));
    for head_dim in [0, 7, 40] {
        let rule = "a divisor of 20, the length of the rows of `x`";
        let error = parameter("head_dim", &head_dim.to_string(), rule);
        refuses(TensorOp::HeadNorm { head_dim, epsilon: 0.0 }, &[f32s([3, 20]), f32s([10])], error);
    }
}

#[test]
fn elements_are_of_one_shape() {
    for (op, [a, b]) in [
        (TensorOp::Add, ["a", "b"]),
        (TensorOp::Mul, ["a", "b"]),
        (TensorOp::Glu(Activation::Silu), ["gate", "up"]),
    ] {
        gives(op, &[f32s([3, 20]), f32s([3, 20])], &[f32s([3, 20])]);
        gives(op, &[f16s([3, 20]), f16s([3, 20])], &[f16s([3, 20])]);
        let rule = "they must be of one type and shape";
        for other in [f32s([3, 21]), f32s([1, 20]), f16s([3, 20]), f32s([60])] {
            refuses(op, &[f32s([3, 20]), other], beside((a, f32s([3, 20])), (b, other), rule));
        }
        refuses(op, &[u32s([3, 20]), u32s([3, 20])], is(a, u32s([3, 20]), "floats of 2 dimensions"));
        refuses(op, &[f32s([3, 0]), f32s([3, 0])], is(a, f32s([3, 0]), "not empty"));
    }
    for op in [TensorOp::Activate(Activation::Gelu), TensorOp::SoftMax] {
        gives(op, &[f16s([3, 20])], &[f16s([3, 20])]);
        refuses(op, &[u32s([3, 20])], is("x", u32s([3, 20]), "floats of 2 dimensions"));
    }
    for to in Dtype::ALL {
        let result = TensorType::new(Element::Float(to), [3, 20]);
        gives(TensorOp::Cast { to }, &[f16s([3, 20])], &[result]);
        refuses(TensorOp::Cast { to }, &[u32s([3, 20])], is("x", u32s([3, 20]), "floats of 2 dimensions"));
    }
}

#[test]
fn heads_have_other_lengths() {
    let x = f32s([3, 60]);
    let op = |from, to| TensorOp::ResizeHeads { from, to };
    gives(op(20, 32), &[x], &[f32s([3, 96])]);
    gives(op(20, 1), &[x], &[f32s([3, 3])]);
    let rule = "a divisor of 60, the length of the rows of `x`";
    refuses(op(7, 8), &[x], parameter("from", "7", rule));
    let rule = "1 or more, and such that 3 heads have less than 2^32 elements";
    refuses(op(20, 0), &[x], parameter("to", "0", rule));
    refuses(op(20, u32::MAX / 2), &[x], parameter("to", "2147483647", rule));
    refuses(op(20, 32), &[u32s([3, 60])], is("x", u32s([3, 60]), "f32 of 2 dimensions"));
}

#[test]
fn heads_turn_by_their_tokens_positions() {
    let params = RopeParams::new(16);
    let (x, positions) = (f32s([3, 64]), u32s([3]));
    gives(TensorOp::Rope(params), &[x, positions], &[x]);
    gives(TensorOp::Rope(RopeParams { factors: true, ..params }), &[x, positions, f32s([8])], &[x]);
    gives(
        TensorOp::Rope(RopeParams { factors: true, rotary_dim: 4, ..params }),
        &[x, positions, f32s([2])],
        &[x],
    );
    let rows = "one element for each row";
    refuses(TensorOp::Rope(params), &[x, u32s([4])], beside(("positions", u32s([4])), ("x", x), rows));
    refuses(TensorOp::Rope(params), &[x, f32s([3])], is("positions", f32s([3]), "u32 of 1 dimension"));
    refuses(
        TensorOp::Rope(params),
        &[f16s([3, 64]), positions],
        is("x", f16s([3, 64]), "f32 of 2 dimensions"),
    );
    refuses(
        TensorOp::Rope(RopeParams { factors: true, ..params }),
        &[x, positions, f32s([16])],
        is("factors", f32s([16]), "f32 [8]"),
    );
    let wrong = |params: RopeParams, name, value: &str, rule| {
        refuses(TensorOp::Rope(params), &[x, positions], parameter(name, value, rule));
    };
    let divisor = "a divisor of 64, the length of the rows of `x`";
    wrong(RopeParams { head_dim: 24, ..params }, "head_dim", "24", divisor);
    for rotary_dim in [0, 7, 18] {
        let even = "even, from 2 to head_dim, which is 16";
        wrong(RopeParams { rotary_dim, ..params }, "rotary_dim", &rotary_dim.to_string(), even);
    }
    for (base, value) in [(1.0, "1"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        wrong(RopeParams { base, ..params }, "base", value, "more than 1 and up to 1e30");
    }
    let scaled = |scaling| RopeParams { scaling, ..params };
    let yarn = |factor, original_context, [beta_fast, beta_slow]: [f32; 2], attention_factor| {
        scaled(RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor })
    };
    let betas = [32.0, 1.0];
    gives(TensorOp::Rope(yarn(4.0, 8192, betas, None)), &[x, positions], &[x]);
    wrong(scaled(RopeScaling::Linear { factor: 0.0 }), "factor", "0", "from 1 to 1e6");
    wrong(yarn(0.5, 8192, betas, None), "factor", "0.5", "from 1 to 1e6");
    wrong(yarn(4.0, 0, betas, None), "original_context", "0", "1 or more");
    wrong(yarn(4.0, 8192, [32.0, 0.0], None), "beta_slow", "0", "more than 0 and up to 1e6");
    wrong(yarn(4.0, 8192, [1.0, 2.0], None), "beta_fast", "1", "from beta_slow to 1e6");
    wrong(yarn(4.0, 8192, betas, Some(0.0)), "attention_factor", "0", "more than 0 and up to 1e6");
}

#[test]
fn caches_take_rows_of_their_heads() {
    let op = |sequences| TensorOp::KvAppend { sequences };
    let (room, kv, three) = (cache([3, 2, 50, 32]), f32s([3, 64]), u32s([3]));
    gives(op(TokenSequences::Each), &[room, room, kv, kv, three], &[room, room]);
    let one = cache([1, 2, 50, 32]);
    gives(op(TokenSequences::One), &[one, one, kv, kv, three], &[one, one]);
    let two = cache([2, 2, 50, 32]);
    gives(op(TokenSequences::Listed), &[two, two, kv, kv, three, three], &[two, two]);

    let each = op(TokenSequences::Each);
    let rule = "a cache for 3 sequences is needed";
    refuses(each, &[two, two, kv, kv, three], beside(("k_cache", two), ("k", kv), rule));
    let rule = "a cache for 1 sequences is needed";
    refuses(
        op(TokenSequences::One),
        &[room, room, kv, kv, three],
        beside(("k_cache", room), ("k", kv), rule),
    );
    let pair = "they must be of one type and shape";
    refuses(each, &[room, two, kv, kv, three], beside(("k_cache", room), ("v_cache", two), pair));
    let (float, flat) = (f16s([3, 2, 50, 32]), cache([3, 2, 1600]));
    refuses(each, &[float, float, kv, kv, three], is("k_cache", float, "a cache of 4 dimensions"));
    refuses(each, &[room, flat, kv, kv, three], is("v_cache", flat, "a cache of 4 dimensions"));
    let bytes = TensorType::new(Element::Cache(CacheDtype::Q8_0), [3, 2, 50, 48]);
    let rule = "in rows of a multiple of 32, its block";
    refuses(each, &[bytes, bytes, f32s([3, 96]), f32s([3, 96]), three], is("k_cache", bytes, rule));
    let rows = "rows must be of kv_heads · head_dim of the cache";
    let wide = f32s([3, 65]);
    refuses(each, &[room, room, wide, kv, three], beside(("k", wide), ("k_cache", room), rows));
    refuses(each, &[room, room, kv, wide, three], beside(("v", wide), ("k_cache", room), rows));
    refuses(each, &[room, room, f16s([3, 64]), kv, three], is("k", f16s([3, 64]), "f32 of 2 dimensions"));
    let more = f32s([4, 64]);
    refuses(
        each,
        &[room, room, kv, more, three],
        beside(("k", kv), ("v", more), "they must be of one shape"),
    );
    let rule = "one element for each row";
    refuses(each, &[room, room, kv, kv, u32s([2])], beside(("positions", u32s([2])), ("k", kv), rule));
    refuses(
        op(TokenSequences::Listed),
        &[two, two, kv, kv, three, u32s([2])],
        beside(("sequences", u32s([2])), ("k", kv), rule),
    );
}

#[test]
fn attention_has_heads_of_the_cache() {
    let decode =
        AttentionParams { heads: 8, kv_heads: 2, head_dim: 32, scale: 0.2, mode: AttentionMode::Decode };
    let prefill = AttentionParams { mode: AttentionMode::Prefill, ..decode };
    let (q, room, three) = (f32s([3, 256]), cache([3, 2, 50, 32]), u32s([3]));
    gives(TensorOp::Attention(decode), &[q, room, room, three], &[q]);
    let many = f32s([11, 256]);
    gives(TensorOp::Attention(prefill), &[many, room, room, u32s([4]), three], &[many]);

    let wrong = |params, inputs: &[TensorType], error| refuses(TensorOp::Attention(params), inputs, error);
    let other = cache([3, 4, 50, 32]);
    let rule = "batch × 2 × max_seq_len × 32, by kv_heads and head_dim";
    wrong(decode, &[q, other, other, three], is("k_cache", other, rule));
    let pair = "they must be of one type and shape";
    wrong(decode, &[q, room, other, three], beside(("k_cache", room), ("v_cache", other), pair));
    for heads in [0, 3] {
        let rule = "a multiple of kv_heads, which is 2";
        wrong(
            AttentionParams { heads, ..decode },
            &[q, room, room, three],
            parameter("heads", &heads.to_string(), rule),
        );
    }
    let narrow = f32s([3, 128]);
    let rule = "f32 [tokens × 256], by heads and head_dim";
    wrong(decode, &[narrow, room, room, three], is("q", narrow, rule));
    wrong(decode, &[f16s([3, 256]), room, room, three], is("q", f16s([3, 256]), "f32 of 2 dimensions"));
    for (scale, value) in [(0.0, "0"), (-1.0, "-1"), (f32::NAN, "NaN"), (1e4, "10000")] {
        let error = parameter("scale", value, "more than 0 and up to 1000");
        wrong(AttentionParams { scale, ..decode }, &[q, room, room, three], error);
    }
    let rule = "one element for each row";
    wrong(decode, &[q, room, room, u32s([2])], beside(("lengths", u32s([2])), ("q", q), rule));
    let rule = "one query for each sequence of the cache";
    wrong(decode, &[many, room, room, u32s([11])], beside(("q", many), ("k_cache", room), rule));
    wrong(prefill, &[many, room, room, three, three], is("q_starts", three, "u32 [4]"));
    wrong(prefill, &[many, room, room, u32s([4]), u32s([4])], is("kv_lens", u32s([4]), "u32 [3]"));
}

#[test]
fn tokens_are_chosen_for_each_row() {
    gives(TensorOp::ArgMax, &[f16s([3, 20])], &[u32s([3])]);
    refuses(TensorOp::ArgMax, &[u32s([3, 20])], is("x", u32s([3, 20]), "floats of 2 dimensions"));

    let fixed = SampleParams { top_k: Setting::Fixed(3), ..SampleParams::new(Setting::Fixed(0.5)) };
    let (logits, seeds, three) = (f32s([3, 20]), u64s([3]), u32s([3]));
    gives(TensorOp::Sample(fixed), &[logits, seeds, three], &[three]);
    let warm = SampleParams { temperature: Setting::Buffer, ..fixed };
    gives(TensorOp::Sample(warm), &[logits, seeds, three, f32s([3])], &[three]);
    let top = SampleParams { top_k: Setting::Buffer, ..fixed };
    gives(TensorOp::Sample(top), &[logits, seeds, three, three], &[three]);
    let both = SampleParams { top_k: Setting::Buffer, ..warm };
    gives(TensorOp::Sample(both), &[logits, seeds, three, f32s([3]), three], &[three]);
    let nucleus = SampleParams { top_p: Setting::Buffer, ..fixed };
    gives(TensorOp::Sample(nucleus), &[logits, seeds, three, f32s([3])], &[three]);
    let all = SampleParams { top_p: Setting::Buffer, min_p: Setting::Buffer, ..both };
    let every = [logits, seeds, three, f32s([3]), three, f32s([3]), f32s([3])];
    assert_eq!(infer(&TensorOp::Sample(all), &every), Ok(vec![three]));
    assert_eq!(infer(&TensorOp::Sample(all), &every[..6]), Err(arity("7", 6)));

    let wrong = |params, inputs: &[TensorType], error| refuses(TensorOp::Sample(params), inputs, error);
    wrong(fixed, &[logits, three, three], is("seeds", three, "u64 of 1 dimension"));
    wrong(fixed, &[logits, seeds, seeds], is("steps", seeds, "u32 of 1 dimension"));
    wrong(fixed, &[u32s([3, 20]), seeds, three], is("logits", u32s([3, 20]), "floats of 2 dimensions"));
    wrong(nucleus, &[logits, seeds, three, three], is("top_ps", three, "f32 of 1 dimension"));
    let least = SampleParams { min_p: Setting::Buffer, ..fixed };
    wrong(least, &[logits, seeds, three, three], is("min_ps", three, "f32 of 1 dimension"));
    wrong(both, &[logits, seeds, three, three, f32s([3])], is("temperatures", three, "f32 of 1 dimension"));
    let rows = "one element for each row";
    let two = u64s([2]);
    wrong(fixed, &[logits, two, three], beside(("seeds", two), ("logits", logits), rows));
    wrong(top, &[logits, seeds, three, u32s([4])], beside(("top_ks", u32s([4])), ("logits", logits), rows));
}

#[test]
fn tokens_that_came_lately_are_looked_for_in_each_row() {
    let (recent, logits, three) = (u32s([3, 64]), f32s([3, 20]), u32s([3]));
    let fixed = |number| Setting::Fixed(number);
    let none =
        PenaltyParams { repeat: fixed(1.0), frequency: fixed(0.0), presence: fixed(0.0), remembers: false };
    gives(TensorOp::Penalties(none), &[recent, logits], &[logits]);
    let remembers = PenaltyParams { remembers: true, ..none };
    gives(TensorOp::Penalties(remembers), &[recent, logits, three, three], &[recent, logits]);
    let presence = PenaltyParams { presence: Setting::Buffer, ..remembers };
    let every = [recent, f16s([3, 20]), three, three, f32s([3])];
    gives(TensorOp::Penalties(presence), &every, &[recent, f16s([3, 20])]);
    let all = PenaltyParams::in_buffers(true);
    let every = [recent, logits, three, three, f32s([3]), f32s([3]), f32s([3])];
    gives(TensorOp::Penalties(all), &every, &[recent, logits]);

    let wrong = |params, inputs: &[TensorType], error| refuses(TensorOp::Penalties(params), inputs, error);
    wrong(all, &every[..6], arity("7", 6));
    wrong(none, &every[..1], arity("2", 1));
    wrong(none, &[three, logits], is("recent", three, "u32 of 2 dimensions"));
    wrong(none, &[recent, recent], is("logits", recent, "floats of 2 dimensions"));
    let many = f32s([4, 20]);
    let rule = "they must have as many rows";
    wrong(none, &[recent, many], beside(("recent", recent), ("logits", many), rule));
    let rows = "one element for each row";
    let (two, f16) = (u32s([2]), f16s([3]));
    wrong(remembers, &[recent, logits, two, three], beside(("tokens", two), ("logits", logits), rows));
    wrong(remembers, &[recent, logits, three, two], beside(("positions", two), ("logits", logits), rows));
    wrong(presence, &[recent, logits, three, three, f16], is("presences", f16, "f32 of 1 dimension"));
    for (repeat, value) in [(0.0, "0"), (-1.0, "-1"), (f32::NAN, "NaN"), (2e3, "2000")] {
        let error = parameter("repeat", value, "from 0.001 to 1000");
        wrong(PenaltyParams { repeat: fixed(repeat), ..none }, &[recent, logits], error);
    }
    let large = PenaltyParams { frequency: fixed(f32::INFINITY), ..none };
    wrong(large, &[recent, logits], parameter("frequency", "inf", "from -1e6 to 1e6"));
}

#[test]
fn states_change_as_they_are() {
    gives(TensorOp::Assign, &[f32s([3, 20]), f32s([3, 20])], &[f32s([3, 20])]);
    gives(TensorOp::Assign, &[u64s([3]), u64s([3])], &[u64s([3])]);
    let rule = "they must be of one type";
    let (state, value) = (u32s([3]), u32s([4]));
    refuses(TensorOp::Assign, &[state, value], beside(("state", state), ("value", value), rule));
    refuses(TensorOp::Assign, &[u32s([0]), u32s([0])], is("result", u32s([0]), "not empty"));

    for count in 1..=4 {
        gives(TensorOp::Advance, &vec![u32s([3]); count], &vec![u32s([3]); count]);
    }
    refuses(TensorOp::Advance, &[], arity("1 to 4", 0));
    refuses(TensorOp::Advance, &[u32s([3]); 5], arity("1 to 4", 5));
    refuses(TensorOp::Advance, &[u64s([3])], is("counter", u64s([3]), "u32 of 1 dimension"));
    let rule = "they must be of one shape";
    refuses(
        TensorOp::Advance,
        &[u32s([3]), u32s([4])],
        beside(("counter", u32s([4])), ("counter", u32s([3])), rule),
    );
}

#[test]
fn errors_are_sentences() {
    let mut graph = ComputeGraph::new();
    let x = graph.input("x", f32s([3, 256]));
    let w = graph.weight("w", q4k(70, 512));
    let error = graph.mat_mul("blk.0.attn_q", x, w, None).expect_err("rows of two lengths");
    assert_eq!(
        error.to_string(),
        "node `blk.0.attn_q` (mat_mul): `x` is f32 [3 × 256] and `weights` is weights q4_k [70 × 512]: \
         both must have rows of one length"
    );
    let error = graph.head_norm("norm", x, w, 100, 0.0).expect_err("100 does not divide 256");
    assert_eq!(
        error.to_string(),
        "node `norm` (head_norm): `head_dim` is 100: it must be a divisor of 256, the length of the rows of `x`"
    );
    let error = graph.embedding("embedding", x, w).expect_err("a table of floats");
    assert_eq!(
        error.to_string(),
        "node `embedding` (embedding): `table` is f32 [3 × 256], but must be weights of 2 dimensions"
    );
    let error = graph.node("add", TensorOp::Add, &[x]).expect_err("one of two");
    assert_eq!(error.to_string(), "node `add` (add): it takes 2 inputs and was given 1");
}
