//! Models and what is asked of them, at random.

use crate::common::{Biases, Choice, Formats, ModelConfig, Prompt, Random, random_bytes, random_matrix};
use std::collections::BTreeMap;
use warpwright_graph::{ComputeGraph, Element, Role, RopeParams, SampleParams, TensorType};
use warpwright_kernels::{CacheDtype, RopePairs, RopeScaling, Setting, WeightFormat};

/// A model and what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) model: ModelConfig,
    pub(crate) choice: Choice,
    /// A prompt of each sequence; without one sequences begin with the first token of each.
    pub(crate) prompts: Vec<Vec<u32>>,
    /// Tokens of a sequence in a chunk; none where sequences begin with one token.
    pub(crate) chunk: Option<usize>,
    /// Tokens that the cache of each sequence holds before all this: random ones.
    pub(crate) before: u32,
    /// Steps after the prompt.
    pub(crate) steps: usize,
    pub(crate) seed: u64,
}

/// Something that a model computes at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Prefill(Prompt),
    Decode,
}

impl Case {
    pub(crate) fn random(random: &mut Random) -> Self {
        // Formats in blocks of 256 want rows of 256, those in blocks of 32 such; floats go by themselves.
        let rows = random.of(&[256, 256, 256, 32, 32, 1]);
        let floats = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];
        let thirties = [WeightFormat::Q8_0, WeightFormat::Q4_0];
        let blocks = [WeightFormat::Q4K, WeightFormat::Q5K, WeightFormat::Q6K];
        let format = |random: &mut Random| match rows {
            256 if random.once_in(2) => random.of(&blocks),
            32 | 256 if random.once_in(2) => random.of(&thirties),
            _ => random.of(&floats),
        };
        let (heads, kv_heads, head_dim) = match rows {
            256 => random.of(&[(8, 2, 32), (4, 4, 64), (4, 1, 64), (8, 1, 32), (2, 1, 128), (4, 2, 64)]),
            _ => random.of(&[(4, 2, 32), (2, 1, 64), (6, 3, 32), (3, 1, 32), (2, 2, 32)]),
        };
        let formats = match random.below(4) {
            0 if rows == 256 => Formats::q4_k_m(),
            1 => Formats::all(format(random)),
            _ => Formats {
                embedding: format(random),
                q: format(random),
                k: format(random),
                v: [format(random), format(random)],
                o: format(random),
                gate: format(random),
                up: format(random),
                down: [format(random), format(random)],
                output: format(random),
            },
        };
        // Gate and up are of one format in every file.
        let formats = Formats { up: formats.gate, embedding: formats.output, ..formats };
        let model = ModelConfig {
            layers: 1 + random.below(3),
            hidden: match rows {
                256 => 256,
                32 => random.of(&[64, 96, 128]),
                _ => random.of(&[50, 75, 100]),
            },
            heads,
            kv_heads,
            head_dim,
            ffn: match rows {
                256 => 256,
                32 => random.of(&[64, 160]),
                _ => random.of(&[70, 99]),
            },
            vocab: 48 + random.below(60),
            formats,
            biases: random.of(&[Biases::None, Biases::Qkv, Biases::All]),
            head_norms: random.once_in(3),
            tied: random.once_in(3),
            rope: random_rope(head_dim, random),
            epsilon: random.of(&[1e-5, 1e-6, 0.5]),
            cache: random.of(&CacheDtype::ALL),
            max_seq_len: 24 + random.below(30),
        };
        // Sometimes as many as the tensor cores are for, sometimes so long that several blocks share a sequence.
        let many = random.once_in(6);
        let batch = if many { 9 + random.below(4) } else { 1 + random.below(4) };
        let long = !many && model.cache != CacheDtype::Q8_0 && random.once_in(4);
        let before = if long { 257 + random.below(250) } else { 0 };
        let max_seq_len = if long { before + 310 } else { model.max_seq_len };
        let choice = match random.once_in(4) {
            false => Choice::ArgMax,
            true => {
                let top_k = Setting::Fixed(random.of(&[0, 5]));
                let [top_p, min_p] = [[1.0, 0.9], [0.0, 1e-6]].map(|list| Setting::Fixed(random.of(&list)));
                Choice::Sample(SampleParams { top_k, top_p, min_p, ..SampleParams::new(Setting::Fixed(4.0)) })
            }
        };
        let chunk = if many { None } else { random.of(&[None, Some(100), Some(3), Some(5)]) };
        let prompts = (0..batch).map(|_| random_tokens(1 + random.below(8), model.vocab, random)).collect();
        let (steps, seed) = (4 + random.below(4) as usize, random.bits());
        Case { model: ModelConfig { max_seq_len, ..model }, choice, prompts, chunk, before, steps, seed }
    }

    /// A model in which every fusion can be formed, and all formats of a mix are used. More sequences than eight, for
    /// which there are other kernels, begin with one token each.
    pub(crate) fn with_everything(batch: u32) -> Self {
        let mut random = Random::new(77);
        let formats = Formats { embedding: WeightFormat::Q6K, ..Formats::q4_k_m() };
        let model = ModelConfig {
            formats,
            biases: Biases::Qkv,
            head_norms: true,
            rope: RopeParams { factors: true, ..RopeParams::new(32) },
            ..ModelConfig::small()
        };
        let prompts = (0..batch).map(|i| random_tokens(6 + i % 2, model.vocab, &mut random)).collect();
        let (choice, chunk) = (Choice::ArgMax, (batch <= 8).then_some(100));
        Case { model, choice, prompts, chunk, before: 0, steps: 3, seed: 8 }
    }

    pub(crate) fn batch(&self) -> u32 {
        self.prompts.len() as u32
    }

    /// What is computed, one after the other.
    pub(crate) fn list(&self) -> Vec<Step> {
        let before = vec![self.before; self.prompts.len()];
        let prompt = Prompt { tokens: self.prompts.clone(), before };
        let chunks = self.chunk.map_or(vec![], |chunk| prompt.chunks(chunk));
        let prefill = chunks.into_iter().map(Step::Prefill);
        prefill.chain(vec![Step::Decode; self.steps]).collect()
    }

    pub(crate) fn graph(&self, step: &Step) -> ComputeGraph {
        match step {
            Step::Prefill(prompt) => self.model.prefill(self.batch(), prompt.count(), self.choice),
            Step::Decode => self.model.decode(self.batch(), self.choice),
        }
    }

    /// States before the first step, by name; the others are zeros.
    pub(crate) fn states(&self) -> Vec<(&'static str, Vec<u32>)> {
        let first: Vec<u32> = self.prompts.iter().map(|prompt| prompt[0]).collect();
        match self.chunk {
            Some(_) => vec![],
            None => {
                let all = |number| vec![number; self.prompts.len()];
                vec![("ids", first), ("positions", all(self.before)), ("lengths", all(self.before + 1))]
            }
        }
    }

    /// What caches hold before the first step, where they hold something: numbers that floats of every type have.
    pub(crate) fn caches(&self, graph: &ComputeGraph) -> Vec<(String, TensorType, Vec<f64>)> {
        let caches = graph.tensors().iter().filter(|info| matches!(info.ty.element, Element::Cache(_)));
        let held = caches.filter(|info| self.before > 0 && info.state.is_none());
        let values = |name: &str, ty: TensorType| {
            let mut random = Random::named(self.seed, name);
            (0..ty.shape.elements()).map(|_| f64::from(random.below(33)) / 8.0 - 2.0).collect()
        };
        held.map(|info| (info.name.clone(), info.ty, values(&info.name, info.ty))).collect()
    }

    /// The seeds of draws.
    pub(crate) fn seeds(&self) -> Option<Vec<u64>> {
        let seeds =
            || (0..self.prompts.len() as u64).map(|row| self.seed.wrapping_mul(2 * row + 1)).collect();
        matches!(self.choice, Choice::Sample(_)).then(seeds)
    }

    /// The weights of a graph, by name, as a file has them.
    ///
    /// Embeddings are large, and the rows of logits are those of the embeddings in another order: as in a model that
    /// has learnt something, a token says much of the next one, and few choices are close.
    pub(crate) fn weights(&self, graph: &ComputeGraph) -> BTreeMap<String, (TensorType, Vec<u8>)> {
        let table = |format| {
            let elements = (self.model.vocab * self.model.hidden) as usize;
            random_matrix(format, elements, 1.0, &mut Random::named(self.seed, "token_embd"))
        };
        let weights = graph.tensors().iter().filter(|info| info.role == Role::Weight);
        let bytes = |name: &str, ty| match name {
            "token_embd.weight" => table(self.model.formats.embedding),
            "output.weight" => {
                let (format, vocab) = (self.model.formats.output, self.model.vocab as usize);
                let rows = table(format);
                let row = rows.len() / vocab;
                (0..vocab)
                    .flat_map(|token| rows[(token + vocab - 7) % vocab * row..][..row].to_vec())
                    .collect()
            }
            _ => random_bytes(name, ty, self.seed),
        };
        weights.map(|info| (info.name.clone(), (info.ty, bytes(&info.name, info.ty)))).collect()
    }
}

fn random_tokens(count: u32, vocab: u32, random: &mut Random) -> Vec<u32> {
    (0..count).map(|_| random.below(vocab)).collect()
}

fn random_rope(head_dim: u32, random: &mut Random) -> RopeParams {
    RopeParams {
        rotary_dim: random.of(&[head_dim, head_dim, head_dim / 2]),
        pairs: random.of(&[RopePairs::Neox, RopePairs::Interleaved]),
        base: random.of(&[1e4, 5e5]),
        scaling: random.of(&[
            RopeScaling::None,
            RopeScaling::None,
            RopeScaling::Linear { factor: 2.0 },
            RopeScaling::yarn(4.0, 64),
        ]),
        factors: random.once_in(3),
        ..RopeParams::new(head_dim)
    }
}
