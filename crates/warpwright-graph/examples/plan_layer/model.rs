//! Graphs of transformer layers, in the shapes of some models and in the mix of formats that files of type
//! Q4_K_M have.

use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, RopeParams, Tensor, TensorType,
};
use warpwright_kernels::{CacheDtype, RopePairs, TokenSequences, WeightFormat};

/// A model's shapes.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    /// Length of a token's row.
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_dim: u32,
    /// Rows of the gate and up matrices.
    pub(crate) ffn: u32,
    pub(crate) vocab: u32,
    pub(crate) layers: u32,
    pub(crate) epsilon: f32,
    pub(crate) rope_base: f32,
    pub(crate) pairs: RopePairs,
    /// Whether there is a factor for each frequency.
    pub(crate) rope_factors: bool,
    /// Whether q, k and v have biases.
    pub(crate) biases: bool,
    /// Whether the heads of q and k are normed.
    pub(crate) head_norms: bool,
    /// Whether the table of embeddings is the matrix of the logits too.
    pub(crate) tied: bool,
}

const LLAMA: Model = Model {
    name: "llama-3-8b",
    hidden: 4096,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    ffn: 14336,
    vocab: 128256,
    layers: 32,
    epsilon: 1e-5,
    rope_base: 5e5,
    pairs: RopePairs::Interleaved,
    rope_factors: false,
    biases: false,
    head_norms: false,
    tied: false,
};

const QWEN: Model = Model {
    name: "qwen2.5-1.5b",
    hidden: 1536,
    heads: 12,
    kv_heads: 2,
    ffn: 8960,
    vocab: 151936,
    layers: 28,
    epsilon: 1e-6,
    rope_base: 1e6,
    pairs: RopePairs::Neox,
    biases: true,
    tied: true,
    ..LLAMA
};

/// The models that are known by name.
pub(crate) const MODELS: [Model; 5] = [
    Model {
        name: "llama-3.2-1b",
        hidden: 2048,
        head_dim: 64,
        ffn: 8192,
        layers: 16,
        rope_factors: true,
        tied: true,
        ..LLAMA
    },
    LLAMA,
    QWEN,
    Model { name: "qwen3-0.6b", hidden: 1024, heads: 16, kv_heads: 8, ffn: 3072, ..QWEN3 },
    QWEN3,
];

const QWEN3: Model = Model {
    name: "qwen3-8b",
    hidden: 4096,
    heads: 32,
    kv_heads: 8,
    ffn: 12288,
    layers: 36,
    biases: false,
    head_norms: true,
    tied: false,
    ..QWEN
};

/// What a graph is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Sequences.
    pub(crate) batch: u32,
    /// New tokens of each sequence: one while decoding.
    pub(crate) tokens: u32,
    /// Positions that the cache has room for.
    pub(crate) max_seq_len: u32,
    pub(crate) cache: CacheDtype,
    pub(crate) layers: u32,
    /// Whether what stands before and after the layers belongs to it: the embedding, the logits, the token that
    /// follows, and counting up.
    pub(crate) whole: bool,
}

impl Call {
    /// A step of decoding, through one layer.
    pub(crate) fn decode(batch: u32) -> Self {
        Call { batch, tokens: 1, max_seq_len: 2048, cache: CacheDtype::F16, layers: 1, whole: false }
    }
}

/// What layers read beside the rows of the layer before.
struct Tokens {
    positions: Tensor,
    lengths: Vec<Tensor>,
    sequences: TokenSequences,
    listed: Option<Tensor>,
    rope: RopeParams,
    factors: Option<Tensor>,
    mode: AttentionMode,
}

/// The graph of a call.
pub(crate) fn graph(model: &Model, call: &Call) -> Result<ComputeGraph, GraphError> {
    let mut graph = ComputeGraph::new();
    let g = &mut graph;
    let u32s = |len: u32| TensorType::new(Element::U32, [len]);
    let rows = call.batch.saturating_mul(call.tokens);
    let decode = call.tokens == 1;
    let positions = g.state("positions", u32s(rows));
    let lengths = match decode {
        true => vec![g.state("lengths", u32s(call.batch))],
        false => {
            let starts = g.input("q_starts", u32s(call.batch.saturating_add(1)));
            vec![starts, g.input("kv_lens", u32s(call.batch))]
        }
    };
    let sequences = match (call.batch, decode) {
        (_, true) => TokenSequences::Each,
        (1, false) => TokenSequences::One,
        (_, false) => TokenSequences::Listed,
    };
    let listed = (sequences == TokenSequences::Listed).then(|| g.input("sequences", u32s(rows)));
    let rope = RopeParams { pairs: model.pairs, base: model.rope_base, ..RopeParams::new(model.head_dim) };
    let factors = model.rope_factors.then(|| g.weight("rope_factors", TensorType::f32([model.head_dim / 2])));
    let mode = if decode { AttentionMode::Decode } else { AttentionMode::Prefill };
    let tokens = Tokens { positions, lengths, sequences, listed, rope, factors, mode };

    let table = TensorType::new(Element::Weights(WeightFormat::Q6K), [model.vocab, model.hidden]);
    let embeddings = call.whole.then(|| g.weight("token_embd", table));
    let mut x = match embeddings {
        Some(table) => {
            let ids = g.state("ids", u32s(rows));
            g.embedding("embedding", table, ids)?
        }
        None => g.input("x", TensorType::f32([rows, model.hidden])),
    };
    for number in 0..call.layers {
        x = layer(g, model, call, &tokens, number, x)?;
    }
    let Some(table) = embeddings else {
        g.output(x)?;
        return Ok(graph);
    };
    if !decode {
        let last = g.input("last_rows", u32s(call.batch));
        x = g.select_rows("last", x, last)?;
    }
    let norm = g.weight("output_norm", TensorType::f32([model.hidden]));
    let x = g.rms_norm("final", x, norm, model.epsilon)?;
    let head = match model.tied {
        true => table,
        false => {
            let ty = TensorType::new(Element::Weights(WeightFormat::Q6K), [model.vocab, model.hidden]);
            g.weight("output", ty)
        }
    };
    let logits = g.mat_mul("logits", x, head, None)?;
    let next = g.argmax("next", logits)?;
    g.output(next)?;
    if decode {
        let counters: Vec<Tensor> = [tokens.positions].into_iter().chain(tokens.lengths).collect();
        g.advance("advance", &counters)?;
    }
    Ok(graph)
}

/// One layer, from rows to rows.
fn layer(
    g: &mut ComputeGraph,
    model: &Model,
    call: &Call,
    tokens: &Tokens,
    number: u32,
    x: Tensor,
) -> Result<Tensor, GraphError> {
    let &Model { hidden, heads, kv_heads, head_dim, ffn, epsilon, .. } = model;
    let named = |name: &str| format!("{name}.{number}");
    let matrix = |g: &mut ComputeGraph, name: &str, format, [n, k]: [u32; 2]| {
        g.weight(&named(name), TensorType::new(Element::Weights(format), [n, k]))
    };
    let vector = |g: &mut ComputeGraph, name: &str, n| g.weight(&named(name), TensorType::f32([n]));
    // The mix of Q4_K_M: half of the layers have v and down in six bits.
    let wide = if number.is_multiple_of(2) { WeightFormat::Q6K } else { WeightFormat::Q4K };
    let [q_dim, kv_dim] = [heads, kv_heads].map(|heads| heads * head_dim);

    let norm = vector(g, "attn_norm.weight", hidden);
    let h = g.rms_norm(&named("attn_norm"), x, norm, epsilon)?;
    let mut projections = Vec::new();
    for (name, format, n) in
        [("q", WeightFormat::Q4K, q_dim), ("k", WeightFormat::Q4K, kv_dim), ("v", wide, kv_dim)]
    {
        let w = matrix(g, &format!("attn_{name}.weight"), format, [n, hidden]);
        let bias = model.biases.then(|| vector(g, &format!("attn_{name}.bias"), n));
        projections.push(g.mat_mul(&named(name), h, w, bias)?);
    }
    let mut turned = Vec::new();
    for (name, x) in ["q", "k"].into_iter().zip(&projections) {
        let mut x = *x;
        if model.head_norms {
            let w = vector(g, &format!("attn_{name}_norm.weight"), head_dim);
            x = g.head_norm(&named(&format!("{name}_norm")), x, w, head_dim, epsilon)?;
        }
        let rope = named(&format!("{name}_rope"));
        turned.push(g.rope(&rope, x, tokens.positions, tokens.factors, tokens.rope)?);
    }
    let cache = [call.batch, kv_heads, call.max_seq_len, head_dim];
    let cache = g.kv_cache(&named("cache"), TensorType::new(Element::Cache(call.cache), cache));
    let (kv, append) = ([turned[1], projections[2]], named("append"));
    let cache = g.kv_append(&append, cache, kv, tokens.positions, tokens.sequences, tokens.listed)?;
    let scale = 1.0 / (head_dim as f32).sqrt();
    let params = AttentionParams { heads, kv_heads, head_dim, scale, mode: tokens.mode };
    let attended = g.attention(&named("attention"), turned[0], cache, &tokens.lengths, params)?;
    let w = matrix(g, "attn_output.weight", WeightFormat::Q4K, [hidden, q_dim]);
    let o = g.mat_mul(&named("o"), attended, w, None)?;
    let x = g.add(&named("attn_residual"), x, o)?;

    let norm = vector(g, "ffn_norm.weight", hidden);
    let h = g.rms_norm(&named("ffn_norm"), x, norm, epsilon)?;
    let gate = matrix(g, "ffn_gate.weight", WeightFormat::Q4K, [ffn, hidden]);
    let gate = g.mat_mul(&named("gate"), h, gate, None)?;
    let up = matrix(g, "ffn_up.weight", WeightFormat::Q4K, [ffn, hidden]);
    let up = g.mat_mul(&named("up"), h, up, None)?;
    let h = g.swiglu(&named("swiglu"), gate, up)?;
    let w = matrix(g, "ffn_down.weight", wide, [hidden, ffn]);
    let down = g.mat_mul(&named("down"), h, w, None)?;
    g.add(&named("ffn_residual"), x, down)
}
