//! Transformer models of any size as graphs: Llama, and what Qwen2 and Qwen3 add to it.
//!
//! A step of decoding and the computation of prompts are two graphs with the same weights and states. Names are
//! those of GGUF files for weights; the others are
//!
//! | name | what | in |
//! | --- | --- | --- |
//! | `ids` | state `batch`: the tokens that come next | both |
//! | `positions` | state `batch`: their positions, which is how many tokens the cache has | both |
//! | `lengths` | state `batch`: one more, what they see | both |
//! | `seeds`, `steps` | states `batch`, where tokens are drawn | both |
//! | `blk.0.cache.k`, `blk.0.cache.v` … | states | both |
//! | `prompt`, `prompt_positions`, and with several sequences `prompt_sequences` | inputs `tokens` | prefill |
//! | `q_starts`, `kv_lens`, `last` | inputs `batch + 1`, `batch`, `batch`: see [`Prompt`] | prefill |
//! | `logits`, `tokens` | outputs `batch × vocab`, `batch` | both |

use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, KvCache, RopeParams, SampleParams,
    Tensor, TensorType,
};
use warpwright_kernels::{CacheDtype, Setting, TokenSequences, WeightFormat};

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    pub layers: u32,
    pub hidden: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub ffn: u32,
    pub vocab: u32,
    pub formats: Formats,
    pub biases: Biases,
    /// Whether heads of q and k go through a norm, as in Qwen3.
    pub head_norms: bool,
    /// Whether logits are products with the table of embeddings.
    pub tied: bool,
    pub rope: RopeParams,
    pub epsilon: f32,
    pub cache: CacheDtype,
    pub max_seq_len: u32,
}

/// How the matrices of a model are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formats {
    pub embedding: WeightFormat,
    pub q: WeightFormat,
    pub k: WeightFormat,
    /// In most layers, and in those that get more bits.
    pub v: [WeightFormat; 2],
    pub o: WeightFormat,
    pub gate: WeightFormat,
    pub up: WeightFormat,
    /// In most layers, and in those that get more bits.
    pub down: [WeightFormat; 2],
    pub output: WeightFormat,
}

impl Formats {
    /// One for all.
    pub fn all(format: WeightFormat) -> Self {
        Formats {
            embedding: format,
            q: format,
            k: format,
            v: [format; 2],
            o: format,
            gate: format,
            up: format,
            down: [format; 2],
            output: format,
        }
    }

    /// The mix that files call Q4_K_M.
    pub fn q4_k_m() -> Self {
        let mixed = [WeightFormat::Q4K, WeightFormat::Q6K];
        let output = WeightFormat::Q6K;
        Formats { v: mixed, down: mixed, output, ..Formats::all(WeightFormat::Q4K) }
    }
}

/// Which products have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    None,
    /// Those of q, k and v, as in Qwen2.
    Qkv,
    /// All but that of the logits.
    All,
}

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    ArgMax,
    Sample(SampleParams),
}

impl Choice {
    /// A draw with such a temperature.
    pub fn at_temperature(temperature: f32) -> Self {
        Choice::Sample(SampleParams::new(Setting::Fixed(temperature)))
    }
}

/// The tokens that a model computes at once, of one or several sequences: prompts, or chunks of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// Of each sequence, at least one token.
    pub tokens: Vec<Vec<u32>>,
    /// How many tokens of each sequence are in the cache already.
    pub before: Vec<u32>,
}

impl Prompt {
    /// The beginnings of sequences.
    pub fn new(tokens: &[Vec<u32>]) -> Self {
        Prompt { tokens: tokens.to_vec(), before: vec![0; tokens.len()] }
    }

    /// Tokens of all sequences.
    pub fn count(&self) -> u32 {
        self.tokens.iter().map(|tokens| tokens.len() as u32).sum()
    }

    /// In as many chunks as it takes for at most so many tokens of each sequence, and no more than leave each a
    /// token.
    pub fn chunks(&self, tokens: usize) -> Vec<Prompt> {
        let lens = || self.tokens.iter().map(Vec::len);
        let count = lens().map(|len| len.div_ceil(tokens)).max().unwrap_or(0);
        let count = count.min(lens().min().unwrap_or(0));
        let chunk = |chunk: usize| {
            // The chunks of shorter sequences are shorter, so that each has its part of every one.
            let part = |own: &Vec<u32>| own.len() * chunk / count..own.len() * (chunk + 1) / count;
            Prompt {
                tokens: self.tokens.iter().map(|own| own[part(own)].to_vec()).collect(),
                before: (self.tokens.iter().zip(&self.before))
                    .map(|(own, before)| before + part(own).start as u32)
                    .collect(),
            }
        };
        (0..count).map(chunk).collect()
    }

    /// The inputs of [`ModelConfig::prefill`], by name.
    pub fn inputs(&self) -> Vec<(&'static str, Vec<u32>)> {
        let sequences = || self.tokens.iter().zip(&self.before);
        let positions = sequences().flat_map(|(own, &before)| before..before + own.len() as u32);
        let of = (0..).zip(&self.tokens).flat_map(|(sequence, own)| vec![sequence; own.len()]);
        let mut starts = vec![0];
        for own in &self.tokens {
            starts.push(starts.last().copied().unwrap_or(0) + own.len() as u32);
        }
        let mut inputs = vec![("prompt", self.tokens.concat()), ("prompt_positions", positions.collect())];
        if self.tokens.len() > 1 {
            inputs.push(("prompt_sequences", of.collect()));
        }
        inputs.push(("last", starts[1..].iter().map(|end| end - 1).collect()));
        inputs.push(("q_starts", starts));
        inputs.push(("kv_lens", sequences().map(|(own, before)| before + own.len() as u32).collect()));
        inputs
    }
}

/// What a layer needs to know of the tokens.
struct Tokens {
    positions: Tensor,
    sequences: TokenSequences,
    listed: Option<Tensor>,
    /// What attention takes.
    lengths: Vec<Tensor>,
    mode: AttentionMode,
}

impl ModelConfig {
    /// A model of two layers, small enough to be run many times: 8 heads over 2 of the cache, all weights Q8_0.
    pub fn small() -> Self {
        ModelConfig {
            layers: 2,
            hidden: 256,
            heads: 8,
            kv_heads: 2,
            head_dim: 32,
            ffn: 256,
            vocab: 96,
            formats: Formats::all(WeightFormat::Q8_0),
            biases: Biases::None,
            head_norms: false,
            tied: false,
            rope: RopeParams::new(32),
            epsilon: 1e-5,
            cache: CacheDtype::F16,
            max_seq_len: 64,
        }
    }

    /// One step of `batch` sequences.
    ///
    /// # Panics
    ///
    /// Where the model cannot be.
    pub fn decode(&self, batch: u32, choice: Choice) -> ComputeGraph {
        self.try_decode(batch, choice).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// The computation of so many tokens of `batch` sequences: see [`Prompt`].
    ///
    /// # Panics
    ///
    /// Where the model cannot be.
    pub fn prefill(&self, batch: u32, tokens: u32, choice: Choice) -> ComputeGraph {
        self.try_prefill(batch, tokens, choice).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// A layer by itself in a step of `batch` sequences: from an input `x` to an output `y`, with `positions` and
    /// `lengths` as inputs.
    ///
    /// # Panics
    ///
    /// Where the model cannot be.
    pub fn layer(&self, batch: u32) -> ComputeGraph {
        self.try_layer(batch).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    fn try_decode(&self, batch: u32, choice: Choice) -> Result<ComputeGraph, GraphError> {
        let mut graph = ComputeGraph::new();
        let numbers = TensorType::new(Element::U32, [batch]);
        let [ids, positions, lengths] = ["ids", "positions", "lengths"].map(|n| graph.state(n, numbers));
        let tokens = Tokens {
            positions,
            sequences: TokenSequences::Each,
            listed: None,
            lengths: vec![lengths],
            mode: AttentionMode::Decode,
        };
        let table = self.table(&mut graph);
        let x = graph.embedding("embedding", table, ids)?;
        let x = self.layers(&mut graph, x, batch, &tokens)?;
        let (tokens, steps) = self.choose(&mut graph, x, table, batch, choice)?;
        let counters: Vec<Tensor> = [positions, lengths].into_iter().chain(steps).collect();
        graph.advance("advance", &counters)?;
        graph.assign("next_ids", ids, tokens)?;
        Ok(graph)
    }

    fn try_prefill(&self, batch: u32, tokens: u32, choice: Choice) -> Result<ComputeGraph, GraphError> {
        let mut graph = ComputeGraph::new();
        let numbers = |len| TensorType::new(Element::U32, [len]);
        let [ids, positions, lengths] =
            ["ids", "positions", "lengths"].map(|n| graph.state(n, numbers(batch)));
        let [prompt, prompt_positions] =
            ["prompt", "prompt_positions"].map(|name| graph.input(name, numbers(tokens)));
        let listed = (batch > 1).then(|| graph.input("prompt_sequences", numbers(tokens)));
        let q_starts = graph.input("q_starts", numbers(batch + 1));
        let [kv_lens, last] = ["kv_lens", "last"].map(|name| graph.input(name, numbers(batch)));
        let tokens = Tokens {
            positions: prompt_positions,
            sequences: if batch > 1 { TokenSequences::Listed } else { TokenSequences::One },
            listed,
            lengths: vec![q_starts, kv_lens],
            mode: AttentionMode::Prefill,
        };
        let table = self.table(&mut graph);
        let x = graph.embedding("embedding", table, prompt)?;
        let x = self.layers(&mut graph, x, batch, &tokens)?;
        let x = graph.select_rows("last_rows", x, last)?;
        let (tokens, steps) = self.choose(&mut graph, x, table, batch, choice)?;
        graph.assign("next_positions", positions, kv_lens)?;
        let lengths = graph.assign("next_lengths", lengths, kv_lens)?;
        let counters: Vec<Tensor> = [lengths].into_iter().chain(steps).collect();
        graph.advance("advance", &counters)?;
        graph.assign("next_ids", ids, tokens)?;
        Ok(graph)
    }

    fn try_layer(&self, batch: u32) -> Result<ComputeGraph, GraphError> {
        let mut graph = ComputeGraph::new();
        let numbers = TensorType::new(Element::U32, [batch]);
        let x = graph.input("x", TensorType::f32([batch, self.hidden]));
        let [positions, lengths] = ["positions", "lengths"].map(|name| graph.input(name, numbers));
        let tokens = Tokens {
            positions,
            sequences: TokenSequences::Each,
            listed: None,
            lengths: vec![lengths],
            mode: AttentionMode::Decode,
        };
        let factors = self.factors(&mut graph);
        let y = self.one_layer(&mut graph, 0, x, batch, &tokens, factors)?;
        graph.output(y)?;
        Ok(graph)
    }

    fn table(&self, graph: &mut ComputeGraph) -> Tensor {
        let format = self.formats.embedding;
        graph.weight("token_embd.weight", matrix(format, self.vocab, self.hidden))
    }

    fn factors(&self, graph: &mut ComputeGraph) -> Option<Tensor> {
        let len = self.rope.rotary_dim / 2;
        self.rope.factors.then(|| graph.weight("rope_freqs.weight", TensorType::f32([len])))
    }

    fn layers(
        &self,
        graph: &mut ComputeGraph,
        x: Tensor,
        batch: u32,
        tokens: &Tokens,
    ) -> Result<Tensor, GraphError> {
        let factors = self.factors(graph);
        (0..self.layers).try_fold(x, |x, layer| self.one_layer(graph, layer, x, batch, tokens, factors))
    }

    /// Whether files of mixed formats give a layer more bits.
    fn more_bits(&self, layer: u32) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }

    fn one_layer(
        &self,
        graph: &mut ComputeGraph,
        layer: u32,
        x: Tensor,
        batch: u32,
        tokens: &Tokens,
        factors: Option<Tensor>,
    ) -> Result<Tensor, GraphError> {
        let &ModelConfig { hidden, heads, kv_heads, head_dim, ffn, formats, epsilon, .. } = self;
        let name = |part: &str| format!("blk.{layer}.{part}");
        let more = usize::from(self.more_bits(layer));
        let weight =
            |graph: &mut ComputeGraph, part: &str, ty| graph.weight(&name(&format!("{part}.weight")), ty);
        let product = |graph: &mut ComputeGraph, part: &str, x, format, [n, k]: [u32; 2], bias: bool| {
            let w = weight(graph, part, matrix(format, n, k));
            let bias = bias.then(|| graph.weight(&name(&format!("{part}.bias")), TensorType::f32([n])));
            graph.mat_mul(&name(part), x, w, bias)
        };
        let qkv_bias = self.biases != Biases::None;
        let all_biases = self.biases == Biases::All;
        let [q_len, kv_len] = [heads * head_dim, kv_heads * head_dim];

        let w = weight(graph, "attn_norm", TensorType::f32([hidden]));
        let normed = graph.rms_norm(&name("attn_norm"), x, w, epsilon)?;
        let mut q = product(graph, "attn_q", normed, formats.q, [q_len, hidden], qkv_bias)?;
        let mut k = product(graph, "attn_k", normed, formats.k, [kv_len, hidden], qkv_bias)?;
        let v = product(graph, "attn_v", normed, formats.v[more], [kv_len, hidden], qkv_bias)?;
        if self.head_norms {
            for (x, part) in [(&mut q, "attn_q_norm"), (&mut k, "attn_k_norm")] {
                let w = weight(graph, part, TensorType::f32([head_dim]));
                *x = graph.head_norm(&name(part), *x, w, head_dim, epsilon)?;
            }
        }
        let q = graph.rope(&name("rope_q"), q, tokens.positions, factors, self.rope)?;
        let k = graph.rope(&name("rope_k"), k, tokens.positions, factors, self.rope)?;
        let room = TensorType::new(Element::Cache(self.cache), [batch, kv_heads, self.max_seq_len, head_dim]);
        let cache: KvCache = graph.kv_cache(&name("cache"), room);
        let Tokens { positions, sequences, listed, .. } = *tokens;
        let cache = graph.kv_append(&name("append"), cache, [k, v], positions, sequences, listed)?;
        let scale = 1.0 / (head_dim as f32).sqrt();
        let params = AttentionParams { heads, kv_heads, head_dim, scale, mode: tokens.mode };
        let attended = graph.attention(&name("attention"), q, cache, &tokens.lengths, params)?;
        let o = product(graph, "attn_output", attended, formats.o, [hidden, q_len], all_biases)?;
        let x = graph.add(&name("attn_residual"), x, o)?;

        let w = weight(graph, "ffn_norm", TensorType::f32([hidden]));
        let normed = graph.rms_norm(&name("ffn_norm"), x, w, epsilon)?;
        let gate = product(graph, "ffn_gate", normed, formats.gate, [ffn, hidden], all_biases)?;
        let up = product(graph, "ffn_up", normed, formats.up, [ffn, hidden], all_biases)?;
        let inner = graph.swiglu(&name("swiglu"), gate, up)?;
        let down = product(graph, "ffn_down", inner, formats.down[more], [hidden, ffn], all_biases)?;
        graph.add(&name("ffn_residual"), x, down)
    }

    /// From the last rows to the tokens chosen, and the state that counts draws.
    fn choose(
        &self,
        graph: &mut ComputeGraph,
        x: Tensor,
        table: Tensor,
        batch: u32,
        choice: Choice,
    ) -> Result<(Tensor, Option<Tensor>), GraphError> {
        let w = graph.weight("output_norm.weight", TensorType::f32([self.hidden]));
        let x = graph.rms_norm("output_norm", x, w, self.epsilon)?;
        let output = match self.tied {
            true => table,
            false => graph.weight("output.weight", matrix(self.formats.output, self.vocab, self.hidden)),
        };
        let logits = graph.mat_mul("logits", x, output, None)?;
        graph.output(logits)?;
        let (tokens, steps) = match choice {
            Choice::ArgMax => (graph.argmax("tokens", logits)?, None),
            Choice::Sample(params) => {
                let (float, number) = (TensorType::f32([batch]), TensorType::new(Element::U32, [batch]));
                let settings: Vec<Tensor> = [
                    (params.temperature == Setting::Buffer, "temperatures", float),
                    (params.top_k == Setting::Buffer, "top_ks", number),
                    (params.top_p == Setting::Buffer, "top_ps", float),
                    (params.min_p == Setting::Buffer, "min_ps", float),
                ]
                .into_iter()
                .filter(|(given, ..)| *given)
                .map(|(_, name, ty)| graph.input(name, ty))
                .collect();
                let seeds = graph.state("seeds", TensorType::new(Element::U64, [batch]));
                let steps = graph.state("steps", TensorType::new(Element::U32, [batch]));
                (graph.sample("tokens", logits, [seeds, steps], &settings, params)?, Some(steps))
            }
        };
        graph.output(tokens)?;
        Ok((tokens, steps))
    }
}

fn matrix(format: WeightFormat, n: u32, k: u32) -> TensorType {
    TensorType::new(Element::Weights(format), [n, k])
}
