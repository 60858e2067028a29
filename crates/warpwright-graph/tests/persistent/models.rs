//! Decoding graphs of all kinds: architectures, formats, heads, caches, ways to choose a token.

use crate::common::{Biases, Choice, Formats, ModelConfig, Random};
use warpwright_graph::{ComputeGraph, RopeParams, SampleParams};
use warpwright_kernels::{CacheDtype, RopePairs, Setting, WeightFormat};

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
