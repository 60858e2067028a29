//! A transformer as a graph.
//!
//! Decode steps and prompts are graphs with the same weights and states. Weights have the names of the file; the other
//! tensors are
//!
//! | name | what | in |
//! | --- | --- | --- |
//! | `ids` | state `batch`: the tokens that come next | all |
//! | `positions` | state `batch`: their positions, which is how many tokens the cache has | all |
//! | `lengths` | state `batch`: one more, what they see | all |
//! | `seeds`, `steps` | states `batch`, `u64` and `u32`: of draws | where tokens are drawn |
//! | `temperatures`, `top_ks`, `top_ps`, `min_ps` | states `batch` | where a draw takes them from buffers |
//! | `recent.64` … | state `batch × window`: the last tokens, that of a position at its place modulo the window | where tokens are chosen with penalties |
//! | `repeats`, `frequencies`, `presences` | states `batch` | where tokens are chosen with penalties |
//! | `blk.0.cache.k`, `blk.0.cache.v` … | states `batch × kv_heads × max_seq_len × head_dim` | all |
//! | `prompt`, `prompt_positions` | inputs `tokens` | prefill |
//! | `prompt_sequences` | input `tokens`: the sequence of each | prefill of several sequences |
//! | `q_starts` | input `batch + 1`: where the tokens of each sequence begin in `prompt`, and the last end | prefill |
//! | `kv_lens` | input `batch`: tokens of each sequence, those of the prompt included | prefill |
//! | `last` | input `batch`: the place of each sequence's last token in `prompt` | prefill up to tokens or logits |
//! | `logits` | output `batch × vocab`, with [`Outcome::AllLogits`] `tokens × vocab` | where they are wanted |
//! | `tokens` | output `batch`: those that were chosen, which `ids` become | where one is chosen |
//!
//! Every step advances `positions` and `lengths` by its tokens. If a graph chooses no token, `ids` do not change, and
//! the host writes them before the next decode step. A decode step with penalties adds its token to the recent ones;
//! the host adds those of prompts.

use super::config::ModelConfig;
use super::spec::{
    Around, AttentionSpec, GatedActivation, HeadNorms, LayerSpec, Mixer, Network, head_dim_of_cache,
};
use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, KvCache, PenaltyParams, RopeParams,
    SampleParams, StepKind, StepShape, Tensor, TensorType,
};
use warpwright_kernels::{CacheDtype, Setting, TokenSequences};

/// Options of a graph besides its [`StepShape`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphOptions {
    /// The element type of caches.
    pub cache: CacheDtype,
    /// The outputs.
    pub outcome: Outcome,
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Only the cache entries for later tokens: all chunks of a prompt except the last.
    Cached,
    /// The logits after each sequence's last token.
    Logits,
    /// The logits after every token.
    AllLogits,
    /// The logits after each sequence's last token, and a token chosen by them.
    Token {
        /// How it is chosen.
        choice: Choice,
        /// Of how many tokens that came last the logits are lowered first; none without penalties.
        window: Option<u32>,
    },
}

/// How a token is chosen from its logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// The most likely one.
    ArgMax,
    /// A draw.
    Sample(SampleParams),
}

impl ModelConfig {
    /// The graph of a step: one token of each sequence, or prompts. Names are in the table of this module.
    ///
    /// # Errors
    ///
    /// [`GraphError`] for an invalid shape: no sequences, no tokens, or no capacity.
    pub fn graph(&self, shape: &StepShape, options: &GraphOptions) -> Result<ComputeGraph, GraphError> {
        let mut graph = ComputeGraph::new();
        let tokens = Tokens::of(&mut graph, shape, options.outcome);
        let table = self.weight(&mut graph, "token_embd.weight")?;
        let factors = self.optional_weight(&mut graph, "rope_freqs.weight");
        let mut step = Step { model: self, graph, tokens, shape, cache: options.cache, factors };

        let mut x = Some(step.graph.embedding("embedding", table, step.tokens.ids)?);
        for (index, layer) in self.spec().layers.iter().enumerate() {
            let last = index + 1 == self.spec().layers.len();
            x = match x {
                Some(x) => {
                    step.layer(index, layer, x, if last { step.tokens.wanted } else { Wanted::All })?
                }
                None => None,
            };
        }
        let logits = match x {
            Some(x) => Some(step.logits(x, table)?),
            None => None,
        };
        step.finish(logits, options.outcome)?;
        Ok(step.graph)
    }

    fn weight(&self, graph: &mut ComputeGraph, name: &str) -> Result<Tensor, GraphError> {
        self.optional_weight(graph, name).ok_or_else(|| self.no_weight(name))
    }

    fn no_weight(&self, name: &str) -> GraphError {
        GraphError::Missing { weight: name.into() }
    }

    fn optional_weight(&self, graph: &mut ComputeGraph, name: &str) -> Option<Tensor> {
        self.weight_type(name).map(|ty| graph.weight(name, ty))
    }
}

/// Of which tokens the last layer's result is needed.
#[derive(Clone, Copy)]
enum Wanted {
    None,
    All,
    /// Of those whose rows a tensor lists.
    Rows(Tensor),
}

/// The tokens of a step, and what layers need to know of them.
struct Tokens {
    ids: Tensor,
    positions: Tensor,
    sequences: TokenSequences,
    listed: Option<Tensor>,
    /// What attention takes.
    lengths: Vec<Tensor>,
    mode: AttentionMode,
    wanted: Wanted,
    /// The states `ids`, `positions` and `lengths`.
    states: [Tensor; 3],
}

impl Tokens {
    fn of(graph: &mut ComputeGraph, shape: &StepShape, outcome: Outcome) -> Self {
        let batch = shape.batch;
        let numbers = |len| TensorType::new(Element::U32, [len]);
        let states = ["ids", "positions", "lengths"].map(|name| graph.state(name, numbers(batch)));
        let [ids, positions, lengths] = states;
        match shape.kind {
            StepKind::Decode => Tokens {
                ids,
                positions,
                sequences: TokenSequences::Each,
                listed: None,
                lengths: vec![lengths],
                mode: AttentionMode::Decode,
                wanted: if outcome == Outcome::Cached { Wanted::None } else { Wanted::All },
                states,
            },
            StepKind::Prefill { tokens } => {
                let [ids, positions] =
                    ["prompt", "prompt_positions"].map(|name| graph.input(name, numbers(tokens)));
                let listed = (batch > 1).then(|| graph.input("prompt_sequences", numbers(tokens)));
                let q_starts = graph.input("q_starts", numbers(batch.saturating_add(1)));
                let kv_lens = graph.input("kv_lens", numbers(batch));
                Tokens {
                    ids,
                    positions,
                    sequences: if batch > 1 { TokenSequences::Listed } else { TokenSequences::One },
                    listed,
                    lengths: vec![q_starts, kv_lens],
                    mode: AttentionMode::Prefill,
                    wanted: match outcome {
                        Outcome::Cached => Wanted::None,
                        Outcome::AllLogits => Wanted::All,
                        Outcome::Logits | Outcome::Token { .. } => {
                            Wanted::Rows(graph.input("last", numbers(batch)))
                        }
                    },
                    states,
                }
            }
        }
    }
}

/// The name of the state that has the last tokens, before a point and how many they are.
pub(crate) const RECENT: &str = "recent";

/// A graph in the making.
struct Step<'a> {
    model: &'a ModelConfig,
    graph: ComputeGraph,
    tokens: Tokens,
    shape: &'a StepShape,
    /// What caches hold.
    cache: CacheDtype,
    /// `rope_freqs.weight`.
    factors: Option<Tensor>,
}

impl Step<'_> {
    /// A layer. For the last one only the wanted tokens are computed.
    fn layer(
        &mut self,
        index: usize,
        layer: &LayerSpec,
        x: Tensor,
        wanted: Wanted,
    ) -> Result<Option<Tensor>, GraphError> {
        let name = |part: &str| format!("blk.{index}.{part}");

        // Other models are refused when they are loaded: see `missing.rs`.
        let (Mixer::Attention(attention), Network::Dense(network)) = (&layer.mixer, layer.network) else {
            return Err(self.model.no_weight(&name("attn_q.weight")));
        };
        let normed = self.norm_before(&name, layer.mixer_norms, x)?;
        let cache = self.remember(index, layer, attention, normed)?;
        if let Wanted::None = wanted {
            return Ok(None);
        }
        let attended = self.attend(index, attention, normed, cache)?;
        let (attended, x) = match wanted {
            Wanted::Rows(rows) => (
                self.graph.select_rows("last_attended", attended, rows)?,
                self.graph.select_rows("last_rows", x, rows)?,
            ),
            _ => (attended, x),
        };
        let o = self.product(&name("attn_output"), attended)?;
        let x = self.graph.add(&name("attn_residual"), x, o)?;

        let normed = self.norm_before(&name, layer.network_norms, x)?;
        let up = |step: &mut Self| step.product(&name("ffn_up"), normed);
        let inner = match network.activation {
            GatedActivation::Gated(activation) => {
                let gate = self.product(&name("ffn_gate"), normed)?;
                let up = up(self)?;
                self.graph.glu(&name("ffn_glu"), activation, gate, up)?
            }
            GatedActivation::Plain(activation) => {
                let up = up(self)?;
                self.graph.activate(&name("ffn_activation"), activation, up)?
            }
            GatedActivation::Clamped { .. } => return Err(self.model.no_weight(&name("ffn_gate.weight"))),
        };
        let down = self.product(&name("ffn_down"), inner)?;
        self.graph.add(&name("ffn_residual"), x, down).map(Some)
    }

    /// The tokens' keys and values go into the cache.
    fn remember(
        &mut self,
        index: usize,
        layer: &LayerSpec,
        attention: &AttentionSpec,
        x: Tensor,
    ) -> Result<KvCache, GraphError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let k = self.product(&name("attn_k"), x)?;
        let k = self.head_norm(&name("attn_k_norm"), k, attention)?;
        let k = self.widened(&name("attn_k_wide"), k, attention)?;
        let k = self.rope(&name("rope_k"), k, attention)?;
        let v = self.product(&name("attn_v"), x)?;
        let v = self.widened(&name("attn_v_wide"), v, attention)?;
        let states = layer.states(self.cache, self.model.spec().hidden);
        let tensors: Vec<_> = states
            .iter()
            .flat_map(|state| state.tensors(self.shape.batch, self.shape.max_seq_len))
            .map(|(part, ty)| self.graph.state(&name(part), ty))
            .collect();
        // Other models are refused when they are loaded: see `missing.rs`.
        let [of_keys, of_values] = tensors[..] else {
            return Err(self.model.no_weight(&name("attn_k.weight")));
        };
        let cache = KvCache { k: of_keys, v: of_values };
        let Tokens { positions, sequences, listed, .. } = self.tokens;
        self.graph.kv_append(&name("append"), cache, [k, v], positions, sequences, listed)
    }

    /// What the tokens' queries make of the cache.
    fn attend(
        &mut self,
        layer: usize,
        attention: &AttentionSpec,
        x: Tensor,
        cache: KvCache,
    ) -> Result<Tensor, GraphError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let head_dim = head_dim_of_cache(attention.head_dim, self.cache);
        let q = self.product(&name("attn_q"), x)?;
        let q = self.head_norm(&name("attn_q_norm"), q, attention)?;
        let q = self.widened(&name("attn_q_wide"), q, attention)?;
        let q = self.rope(&name("rope_q"), q, attention)?;
        let params = AttentionParams {
            heads: attention.heads,
            kv_heads: attention.kv_heads,
            head_dim,
            scale: attention.scale,
            mode: self.tokens.mode,
        };
        let attended = self.graph.attention(&name("attention"), q, cache, &self.tokens.lengths, params)?;
        match head_dim == attention.head_dim {
            true => Ok(attended),
            false => self.graph.resize_heads(&name("attended"), attended, head_dim, attention.head_dim),
        }
    }

    /// Heads of the length that the cache has: kernels of attention see zeros behind the model's own.
    fn widened(&mut self, name: &str, x: Tensor, attention: &AttentionSpec) -> Result<Tensor, GraphError> {
        let head_dim = head_dim_of_cache(attention.head_dim, self.cache);
        match attention.head_dim == head_dim {
            true => Ok(x),
            false => self.graph.resize_heads(name, x, attention.head_dim, head_dim),
        }
    }

    fn rope(&mut self, name: &str, x: Tensor, attention: &AttentionSpec) -> Result<Tensor, GraphError> {
        let Some(rotary) = attention.rotary else { return Ok(x) };
        let head_dim = head_dim_of_cache(attention.head_dim, self.cache);
        let params = RopeParams { head_dim, ..rotary.params };
        self.graph.rope(name, x, self.tokens.positions, self.factors, params)
    }

    /// `x · Wᵀ`, with the bias that the file may have.
    fn product(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        let w = self.model.weight(&mut self.graph, &format!("{name}.weight"))?;
        let bias = self.model.optional_weight(&mut self.graph, &format!("{name}.bias"));
        self.graph.mat_mul(name, x, w, bias)
    }

    fn norm(&mut self, name: &str, x: Tensor) -> Result<Tensor, GraphError> {
        let w = self.model.weight(&mut self.graph, &format!("{name}.weight"))?;
        self.graph.rms_norm(name, x, w, self.model.epsilon())
    }

    /// The norm before a block of a layer, whose parts `name` names.
    fn norm_before(
        &mut self,
        name: &impl Fn(&str) -> String,
        norms: Around,
        x: Tensor,
    ) -> Result<Tensor, GraphError> {
        norms.before.map_or(Ok(x), |norm| self.norm(&name(norm), x))
    }

    /// The norm of each head, where the model has one.
    fn head_norm(&mut self, name: &str, x: Tensor, attention: &AttentionSpec) -> Result<Tensor, GraphError> {
        if attention.head_norms == HeadNorms::None {
            return Ok(x);
        }
        let w = self.model.weight(&mut self.graph, &format!("{name}.weight"))?;
        self.graph.head_norm(name, x, w, attention.head_dim, self.model.epsilon())
    }

    /// The logits of the next token.
    fn logits(&mut self, x: Tensor, table: Tensor) -> Result<Tensor, GraphError> {
        let x = self.norm(self.model.spec().output_norm, x)?;
        // Without a matrix of its own, the output is tied to the table of embeddings.
        let w = self.model.optional_weight(&mut self.graph, "output.weight").unwrap_or(table);
        let bias = self.model.optional_weight(&mut self.graph, "output.bias");
        let logits = self.graph.mat_mul("logits", x, w, bias)?;
        self.graph.output(logits)?;
        Ok(logits)
    }

    /// Chooses tokens where that is wanted, and counts.
    fn finish(&mut self, logits: Option<Tensor>, outcome: Outcome) -> Result<(), GraphError> {
        let [ids, positions, lengths] = self.tokens.states;
        let mut counters = vec![lengths];
        let choice = match (logits, outcome) {
            (Some(logits), Outcome::Token { choice, window: None }) => Some((logits, choice)),
            (Some(logits), Outcome::Token { choice, window: Some(window) }) => {
                Some((self.penalised(logits, self.shape.batch, window)?, choice))
            }
            _ => None,
        };
        let chosen = match choice {
            Some((logits, Choice::ArgMax)) => Some(self.graph.argmax("tokens", logits)?),
            Some((logits, Choice::Sample(params))) => {
                let [seeds, steps] =
                    [("seeds", Element::U64), ("steps", Element::U32)].map(|(name, element)| {
                        self.graph.state(name, TensorType::new(element, [self.shape.batch]))
                    });
                counters.push(steps);
                let settings = self.settings(&params, self.shape.batch);
                Some(self.graph.sample("tokens", logits, [seeds, steps], &settings, params)?)
            }
            None => None,
        };
        match (self.tokens.mode, &self.tokens.lengths[..]) {
            (AttentionMode::Prefill, &[_, kv_lens]) => {
                self.graph.assign("next_positions", positions, kv_lens)?;
                counters[0] = self.graph.assign("next_lengths", lengths, kv_lens)?;
            }
            _ => counters.push(positions),
        }
        self.graph.advance("advance", &counters)?;
        if let Some(tokens) = chosen {
            self.graph.output(tokens)?;
            self.graph.assign("next_ids", ids, tokens)?;
        }
        Ok(())
    }

    /// Logits after penalties, which a step of decoding adds its token for.
    fn penalised(&mut self, logits: Tensor, batch: u32, window: u32) -> Result<Tensor, GraphError> {
        let numbers = TensorType::new(Element::U32, [batch, window]);
        let recent = self.graph.state(&format!("{RECENT}.{window}"), numbers);
        let settings = ["repeats", "frequencies", "presences"];
        let settings = settings.map(|name| self.graph.state(name, TensorType::f32([batch])));
        let [ids, positions, _] = self.tokens.states;
        let newest = (self.tokens.mode == AttentionMode::Decode).then_some([ids, positions]);
        let params = PenaltyParams::in_buffers(newest.is_some());
        let (lowered, _) = self.graph.penalties("penalties", logits, recent, newest, &settings, params)?;
        Ok(lowered)
    }

    /// The settings of draws that are in buffers.
    fn settings(&mut self, params: &SampleParams, batch: u32) -> Vec<Tensor> {
        let [float, number] = [Element::F32, Element::U32].map(|element| TensorType::new(element, [batch]));
        let settings = [
            (params.temperature == Setting::Buffer, "temperatures", float),
            (params.top_k == Setting::Buffer, "top_ks", number),
            (params.top_p == Setting::Buffer, "top_ps", float),
            (params.min_p == Setting::Buffer, "min_ps", float),
        ];
        let given = settings.into_iter().filter(|(given, ..)| *given);
        given.map(|(_, name, ty)| self.graph.state(name, ty)).collect()
    }
}
