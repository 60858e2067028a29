//! Models of any kind as GGUF files, with random weights.

use half::{bf16, f16};
use warpwright_kernels::WeightFormat;
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Gguf, TensorFormat, Value};
use warpwright_qualify::models::{Random, random_matrix};

/// A model.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) architecture: &'static str,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_dim: u32,
    pub(crate) ffn: u32,
    pub(crate) vocab: u32,
    pub(crate) formats: Formats,
    /// What norms and biases are stored as.
    pub(crate) vectors: WeightFormat,
    /// Products that have a bias.
    pub(crate) biases: &'static [&'static str],
    pub(crate) tied: bool,
    /// Whether there is a `rope_freqs.weight`.
    pub(crate) factors: bool,
    /// More parameters, without the architecture's name.
    pub(crate) parameters: Vec<(&'static str, Value)>,
    pub(crate) seed: u64,
}

/// How matrices are stored. Where a format's blocks do not fit into rows, it is a smaller one, as in real files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Formats {
    All(WeightFormat),
    /// As in files that are called Q4_K_M: some matrices have more bits.
    Q4KM,
    /// Each matrix has one of its own.
    Random,
}

const FLOATS: [WeightFormat; 3] = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];
pub(crate) const QKV: &[&str] = &["attn_q", "attn_k", "attn_v"];
pub(crate) const ALL_BIASES: &[&str] =
    &["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "output"];

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(crate) struct TensorSpec {
    pub(crate) name: String,
    /// The length of a row first.
    pub(crate) dims: Vec<u64>,
    pub(crate) format: WeightFormat,
    pub(crate) bytes: Vec<u8>,
}

impl Spec {
    /// Two layers, four heads over two of the cache, small enough to be run many times.
    pub(crate) fn small(architecture: &'static str) -> Self {
        Spec {
            architecture,
            layers: 2,
            hidden: 256,
            heads: 4,
            kv_heads: 2,
            head_dim: 64,
            ffn: 256,
            vocab: 160,
            formats: Formats::All(WeightFormat::Q8_0),
            vectors: WeightFormat::F32,
            biases: if architecture == "qwen2" { QKV } else { &[] },
            tied: false,
            factors: false,
            parameters: Vec::new(),
            seed: 1,
        }
    }

    /// A model of any kind.
    pub(crate) fn random(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        // Formats in blocks of 256 want rows of 256; odd sizes are for floats.
        let (hidden, ffn, formats) = match random.below(3) {
            0 => (256, 256, [Formats::Q4KM, Formats::Random, Formats::All(random.of(&WeightFormat::ALL))]),
            1 => (random.of(&[64, 96, 160]), random.of(&[96, 224]), [Formats::Random; 3]),
            _ => (random.of(&[50, 77]), random.of(&[99, 70]), [Formats::All(random.of(&FLOATS)); 3]),
        };
        let architecture = random.of(&["llama", "qwen2", "qwen3"]);
        let (heads, kv_heads) = random.of(&[(4, 4), (4, 2), (4, 1), (6, 3), (3, 1), (1, 1), (8, 2)]);
        let head_dim = random.of(&[32, 64, 64, 128, 16, 80, 40, 100, 48]);
        let scaling: Vec<(&str, Value)> = match random.below(5) {
            0 => vec![("rope.scaling.type", "linear".into()), ("rope.scaling.factor", 4f32.into())],
            1 => vec![
                ("rope.scaling.type", "yarn".into()),
                ("rope.scaling.factor", 8f32.into()),
                ("rope.scaling.original_context_length", 64u32.into()),
                ("rope.scaling.attn_factor", random.of(&[1f32, 0.75]).into()),
            ],
            2 => vec![("rope.scale_linear", 2f32.into())],
            _ => vec![],
        };
        let mut parameters = scaling;
        parameters.push(("rope.freq_base", random.of(&[1e4f32, 5e5]).into()));
        if random.once_in(4) {
            parameters.push(("rope.dimension_count", (head_dim / 2).into()));
        }
        Spec {
            layers: 1 + random.below(3),
            hidden,
            heads,
            kv_heads,
            head_dim,
            ffn,
            vocab: 60 + random.below(150),
            formats: random.of(&formats),
            vectors: random.of(&FLOATS),
            biases: random.of(&[&[], QKV, ALL_BIASES]),
            tied: random.once_in(3),
            factors: random.once_in(4),
            parameters,
            seed,
            ..Spec::small(architecture)
        }
    }

    pub(crate) fn gguf(&self) -> Gguf {
        let bytes =
            self.writer(self.tensors()).to_bytes().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        Gguf::from_bytes(bytes).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// A file of these tensors with the model's metadata.
    pub(crate) fn writer(&self, tensors: Vec<TensorSpec>) -> GgufWriter {
        let mut writer = GgufWriter::new();
        let key = |key: &str| format!("{}.{key}", self.architecture);
        writer.set("general.architecture", self.architecture);
        let sizes = [
            ("block_count", self.layers),
            ("context_length", 4096),
            ("embedding_length", self.hidden),
            ("feed_forward_length", self.ffn),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
        ];
        for (name, size) in sizes {
            writer.set(key(name), size);
        }
        if self.head_dim * self.heads != self.hidden {
            writer.set(key("attention.key_length"), self.head_dim);
            writer.set(key("attention.value_length"), self.head_dim);
        }
        writer.set(key("attention.layer_norm_rms_epsilon"), 1e-5f32);
        for (name, value) in &self.parameters {
            writer.set(key(name), value.clone());
        }
        for TensorSpec { name, dims, format, bytes } in tensors {
            writer.tensor(name, &dims, TensorFormat::from(format), bytes);
        }
        writer
    }

    /// The tensors, each a function of the seed and its name.
    pub(crate) fn tensors(&self) -> Vec<TensorSpec> {
        let &Spec { hidden, heads, kv_heads, head_dim, ffn, vocab, .. } = self;
        let [q, kv] = [heads, kv_heads].map(|heads| heads * head_dim);
        let mut all =
            vec![self.matrix("token_embd", vocab, hidden), self.vector("output_norm.weight", hidden)];
        if !self.tied {
            all.push(self.matrix("output", vocab, hidden));
        }
        if self.biases.contains(&"output") {
            all.push(self.vector("output.bias", vocab));
        }
        if self.factors {
            let rotary = self.parameters.iter().find(|(name, _)| *name == "rope.dimension_count");
            let rotary =
                rotary.and_then(|(_, value)| value.integer()).map_or(head_dim, |rotary| rotary as u32);
            all.push(self.vector("rope_freqs.weight", rotary / 2));
        }
        for layer in 0..self.layers {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let products = [
                ("attn_q", q, hidden),
                ("attn_k", kv, hidden),
                ("attn_v", kv, hidden),
                ("attn_output", hidden, q),
                ("ffn_gate", ffn, hidden),
                ("ffn_up", ffn, hidden),
                ("ffn_down", hidden, ffn),
            ];
            for (part, n, k) in products {
                all.push(self.matrix(&name(part), n, k));
                if self.biases.contains(&part) {
                    all.push(self.vector(&format!("{}.bias", name(part)), n));
                }
            }
            let norms = [("attn_norm", hidden), ("ffn_norm", hidden)].into_iter();
            let heads = [("attn_q_norm", head_dim), ("attn_k_norm", head_dim)].into_iter();
            for (part, len) in norms.chain(heads.filter(|_| self.architecture == "qwen3")) {
                all.push(self.vector(&format!("{}.weight", name(part)), len));
            }
        }
        all.into_iter().flat_map(with_scale).collect()
    }

    fn format(&self, name: &str, k: u32) -> WeightFormat {
        let wanted = match self.formats {
            Formats::All(format) => format,
            Formats::Q4KM if name == "output" || name.ends_with("attn_v") || name.ends_with("ffn_down") => {
                WeightFormat::Q6K
            }
            Formats::Q4KM => WeightFormat::Q4K,
            Formats::Random => Random::named(self.seed, &format!("{name}.format")).of(&WeightFormat::ALL),
        };
        let fits = |format: &WeightFormat| k.is_multiple_of(format.block());
        [wanted, WeightFormat::Q8_0].into_iter().find(fits).unwrap_or(WeightFormat::F16)
    }

    /// `n` rows of `k`: of a deviation with which products are about as large as what they are made of. Embeddings are
    /// large, and the rows of logits are those of embeddings in another order: as in a model that has learnt something,
    /// a token says much of the next one, and few choices are close.
    fn matrix(&self, name: &str, n: u32, k: u32) -> TensorSpec {
        let format = self.format(if name == "output" { "token_embd" } else { name }, k);
        let table = matches!(name, "token_embd" | "output");
        let (source, deviation) = match table {
            true => ("token_embd", 1.0),
            false => (name, 1.0 / f64::from(k).sqrt()),
        };
        let elements = n as usize * k as usize;
        let mut bytes = random_matrix(format, elements, deviation, &mut Random::named(self.seed, source));
        if name == "output" {
            let row = format.row_bytes(k) as usize;
            bytes[..n as usize * row].rotate_right(7 % n as usize * row);
        }
        TensorSpec { name: format!("{name}.weight"), dims: vec![k.into(), n.into()], format, bytes }
    }

    /// Norms are about 1, and a few of their weights are large; biases are up to a half, factors from 1 to 8.
    fn vector(&self, name: &str, len: u32) -> TensorSpec {
        let mut random = Random::named(self.seed, name);
        let number = |random: &mut Random| match name {
            _ if name.contains("norm") => {
                let large = !name.contains("output") && random.once_in(40);
                (1.0 + random.signed() / 2.0) * if large { 3.0 } else { 1.0 }
            }
            _ if name.contains("freqs") => 4.5 + 3.5 * random.signed(),
            _ => random.signed() / 2.0,
        };
        // Factors of frequencies are `f32` in every file.
        let format = if name.contains("freqs") { WeightFormat::F32 } else { self.vectors };
        let bytes = |x: f64| match format {
            WeightFormat::F16 => f16::from_f64(x).to_le_bytes().to_vec(),
            WeightFormat::Bf16 => bf16::from_f64(x).to_le_bytes().to_vec(),
            _ => (x as f32).to_le_bytes().to_vec(),
        };
        let bytes = (0..len).flat_map(|_| bytes(number(&mut random))).collect();
        TensorSpec { name: name.into(), dims: vec![len.into()], format, bytes }
    }
}

/// A tensor, and the one with its scale where it has one, which is behind its bytes.
fn with_scale(mut tensor: TensorSpec) -> Vec<TensorSpec> {
    if !tensor.format.has_tensor_scale() {
        return vec![tensor];
    }
    let bytes = tensor.bytes.split_off(tensor.bytes.len() - 4);
    let name = tensor.name.replace(".weight", ".scale");
    vec![tensor, TensorSpec { name, dims: vec![1], format: WeightFormat::F32, bytes }]
}
