//! Decoding graphs of all kinds: architectures, formats, heads, caches, ways to choose a token.

use crate::common::{Biases, Choice, Formats, ModelConfig, Random};
use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, PenaltyParams, RopeParams,
    SampleParams, TensorType,
};
use warpwright_kernels::{CacheDtype, RopePairs, Setting, TokenSequences, WeightFormat};

/// A small model of a random kind, and a step of one sequence of it.
pub(crate) fn random(seed: u64) -> (ModelConfig, ComputeGraph) {
    let mut random = Random::new(seed);
    let head_dim = random.of(&[32, 64, 96, 128]);
    let kv_heads = random.of(&[1, 2, 3]);
    let formats: Vec<WeightFormat> = WeightFormat::ALL.to_vec();
    let mut format = || random.of(&formats);
    let formats = Formats {
        embedding: format(),
        q: format(),
        k: format(),
        v: [format(), format()],
        o: format(),
        gate: format(),
        up: format(),
        down: [format(), format()],
        output: format(),
    };
    let cache = random.of(&[CacheDtype::F32, CacheDtype::F16, CacheDtype::Bf16, CacheDtype::Q8_0]);
    let model = ModelConfig {
        layers: 1 + random.below(3),
        hidden: 256 * (1 + random.below(3)),
        heads: kv_heads * random.of(&[1, 2, 4]),
        kv_heads,
        head_dim,
        ffn: 256 * (1 + random.below(5)),
        vocab: 32 + random.below(4000),
        formats,
        biases: random.of(&[Biases::None, Biases::Qkv, Biases::All]),
        head_norms: random.once_in(2),
        tied: random.once_in(2),
        rope: RopeParams {
            pairs: random.of(&[RopePairs::Interleaved, RopePairs::Neox]),
            factors: random.once_in(3),
            ..RopeParams::new(head_dim)
        },
        epsilon: 1e-5,
        cache,
        max_seq_len: random.of(&[64, 1024, 8192]),
    };
    // Tied tables have a format that products take too: all do. The width must fill the blocks of o.
    let model = ModelConfig { formats: fitting(model.formats, model.heads * head_dim), ..model };
    let graph = model.decode(1, choice(&mut random));
    (model, graph)
}

/// Formats whose blocks fill rows of so many columns of o.
fn fitting(formats: Formats, columns: u32) -> Formats {
    let fits = columns.is_multiple_of(formats.o.block());
    Formats { o: if fits { formats.o } else { WeightFormat::Q8_0 }, ..formats }
}

/// The most likely token, or a draw with settings in buffers or fixed.
pub(crate) fn choice(random: &mut Random) -> Choice {
    if random.once_in(3) {
        return Choice::ArgMax;
    }
    let mut params = SampleParams::new(Setting::Fixed(0.8));
    if random.once_in(2) {
        params.temperature = Setting::Buffer;
        params.top_p = Setting::Buffer;
        params.min_p = Setting::Buffer;
        params.top_k = Setting::Buffer;
    }
    Choice::Sample(params)
}

/// A layer of a model whose heads are shorter than those of the cache, and a token drawn after penalties, all of whose
/// settings are in buffers: what graphs have that decode with a file's odd heads and a repetition penalty.
pub(crate) fn odd_heads_and_penalties() -> Result<ComputeGraph, GraphError> {
    let (heads, kv_heads, own, room, hidden, vocab) = (6, 2, 40, 48, 256, 500);
    let mut graph = ComputeGraph::new();
    let g = &mut graph;
    let [numbers, floats] = [Element::U32, Element::F32].map(|element| TensorType::new(element, [1]));
    let [ids, positions, lengths] = ["ids", "positions", "lengths"].map(|name| g.state(name, numbers));
    let matrix = |n, k| TensorType::new(Element::Weights(WeightFormat::Q8_0), [n, k]);
    let table = g.weight("table", TensorType::new(Element::Weights(WeightFormat::Q8_0), [vocab, hidden]));
    let x = g.embedding("x", table, ids)?;
    let norm = g.weight("norm", TensorType::f32([hidden]));
    let normed = g.rms_norm("normed", x, norm, 1e-5)?;
    let mut wide = Vec::new();
    for (name, heads) in [("q", heads), ("k", kv_heads), ("v", kv_heads)] {
        let format = Element::Weights(WeightFormat::F16);
        let w = g.weight(&format!("w_{name}"), TensorType::new(format, [heads * own, hidden]));
        let y = g.mat_mul(name, normed, w, None)?;
        let y = g.resize_heads(&format!("{name}_wide"), y, own, room)?;
        let rope = RopeParams { rotary_dim: own, ..RopeParams::new(room) };
        wide.push(if name == "v" { y } else { g.rope(&format!("{name}_rope"), y, positions, None, rope)? });
    }
    let cache = TensorType::new(Element::Cache(CacheDtype::F16), [1, kv_heads, 512, room]);
    let cache = g.kv_cache("cache", cache);
    let cache = g.kv_append("append", cache, [wide[1], wide[2]], positions, TokenSequences::Each, None)?;
    let params = AttentionParams { heads, kv_heads, head_dim: room, scale: 0.2, mode: AttentionMode::Decode };
    let attended = g.attention("attention", wide[0], cache, &[lengths], params)?;
    let attended = g.resize_heads("attended", attended, room, own)?;
    let w = g.weight("o", TensorType::new(Element::Weights(WeightFormat::F16), [hidden, heads * own]));
    let o = g.mat_mul("attention_output", attended, w, None)?;
    let x = g.add("residual", x, o)?;
    let w = g.weight("output", matrix(vocab, hidden));
    let logits = g.mat_mul("logits", x, w, None)?;
    g.output(logits)?;
    let recent = g.state("recent", TensorType::new(Element::U32, [1, 64]));
    let settings = ["repeats", "frequencies", "presences"].map(|name| g.state(name, floats));
    let newest = Some([ids, positions]);
    let (lowered, _) =
        g.penalties("penalties", logits, recent, newest, &settings, PenaltyParams::in_buffers(true))?;
    let seeds = g.state("seeds", TensorType::new(Element::U64, [1]));
    let steps = g.state("steps", numbers);
    let token = g.sample("tokens", lowered, [seeds, steps], &[], SampleParams::new(Setting::Fixed(0.8)))?;
    g.advance("advance", &[lengths, steps, positions])?;
    g.output(token)?;
    g.assign("next_ids", ids, token)?;
    Ok(graph)
}
