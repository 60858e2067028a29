//! Launches have the arguments that their kernels take, for every op, format, number of tokens and type of cache.

use crate::{exact, int8, plan, without};
use warpwright_graph::{
    Arithmetic, AttentionMode, AttentionParams, ComputeGraph, Element, Fusions, GraphError, KvCache,
    PenaltyParams, Plan, PlanOptions, RopeParams, SampleParams, Tensor, TensorType,
};
use warpwright_kernels::{CacheDtype, Dtype, RopePairs, RopeScaling, Setting, TokenSequences, WeightFormat};

/// On both sides of every limit: of columns of a vector product, and of tiles of a matrix product.
const TOKENS: [u32; 7] = [1, 2, 8, 9, 17, 64, 300];

fn numbers(len: u32) -> TensorType {
    TensorType::new(Element::U32, [len])
}

/// A graph, whose last tensor is an output.
fn graph(build: impl FnOnce(&mut ComputeGraph) -> Result<Tensor, GraphError>) -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let last = build(&mut graph).unwrap_or_else(|error| panic!("{error}"));
    graph.output(last).unwrap_or_else(|error| panic!("{error}"));
    graph
}

/// Plans with and without fusion, both ways of multiplying.
fn plans(graph: &ComputeGraph) -> Vec<Plan> {
    let all = |options: PlanOptions| [without(Fusions::none(), options.clone()), options];
    [exact(), int8()].into_iter().flat_map(all).map(|options| plan(graph, &options)).collect()
}

#[test]
fn of_products() {
    for format in WeightFormat::ALL {
        for tokens in TOKENS {
            for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
                let (n, k) = (72, 512);
                let graph = graph(|graph| {
                    let x = graph.input("x", TensorType::f32([tokens, k]));
                    let w = graph.weight("w", TensorType::new(Element::Weights(format), [n, k]));
                    let bias = bias.then(|| graph.weight("bias", TensorType::f32([n])));
                    let y = graph.mat_mul("y", x, w, bias)?;
                    if !residual {
                        return Ok(y);
                    }
                    let x = graph.input("stream", TensorType::f32([tokens, n]));
                    graph.add("sum", x, y)
                });
                for plan in plans(&graph) {
                    let launches = plan.launches().count() as u64;
                    let scaled = tokens > 8 && format != WeightFormat::F32;
                    let products = if scaled { 2 } else { u64::from(tokens.div_ceil(8)) };
                    let fused = plan.options().fusions == Fusions::all();
                    assert_eq!(launches, products + u64::from(residual && !fused), "{format}, {tokens}");
                }
            }
        }
    }
}

#[test]
fn of_products_of_the_same_activations() {
    let formats = [WeightFormat::Q4K, WeightFormat::Q6K, WeightFormat::F16, WeightFormat::Bf16];
    for tokens in TOKENS {
        for count in 2..=4 {
            let graph = graph(|graph| {
                let x = graph.input("x", TensorType::f32([tokens, 256]));
                let norm = graph.weight("norm", TensorType::f32([256]));
                let x = graph.rms_norm("normed", x, norm, 1e-5)?;
                let mut last = x;
                for (i, format) in formats.into_iter().take(count).enumerate() {
                    let ty = TensorType::new(Element::Weights(format), [40 + 8 * i as u32, 256]);
                    let w = graph.weight(&format!("w{i}"), ty);
                    last = graph.mat_mul(&format!("y{i}"), x, w, None)?;
                    graph.output(last)?;
                }
                Ok(last)
            });
            plans(&graph);
        }
    }
}

#[test]
fn of_gates() {
    for format in WeightFormat::ALL {
        for tokens in TOKENS {
            let graph = graph(|graph| {
                let x = graph.input("x", TensorType::f32([tokens, 256]));
                let norm = graph.weight("norm", TensorType::f32([256]));
                let h = graph.rms_norm("normed", x, norm, 1e-6)?;
                let mut product = |name: &str, x, [n, k]: [u32; 2]| {
                    let w =
                        graph.weight(&format!("{name}.w"), TensorType::new(Element::Weights(format), [n, k]));
                    graph.mat_mul(name, x, w, None)
                };
                let (gate, up) = (product("gate", h, [512, 256])?, product("up", h, [512, 256])?);
                let inner = graph.swiglu("inner", gate, up)?;
                let w = graph.weight("down.w", TensorType::new(Element::Weights(format), [256, 512]));
                let down = graph.mat_mul("down", inner, w, None)?;
                graph.add("sum", x, down)
            });
            plans(&graph);
        }
    }
}

/// Heads of q, those of the cache, elements of a head, and room of the cache.
const HEADS: [[u32; 4]; 4] = [[8, 2, 64, 512], [4, 4, 32, 96], [12, 2, 128, 8192], [6, 1, 256, 40]];

fn cache(
    graph: &mut ComputeGraph,
    dtype: CacheDtype,
    batch: u32,
    [_, kv_heads, d, room]: [u32; 4],
) -> KvCache {
    graph.kv_cache("cache", TensorType::new(Element::Cache(dtype), [batch, kv_heads, room, d]))
}

fn attention_params([heads, kv_heads, head_dim, _]: [u32; 4], mode: AttentionMode) -> AttentionParams {
    AttentionParams { heads, kv_heads, head_dim, scale: 0.125, mode }
}

#[test]
fn of_attention_to_one_query_each() {
    for heads in HEADS {
        for dtype in CacheDtype::ALL {
            for batch in TOKENS {
                let graph = graph(|graph| {
                    let q = graph.input("q", TensorType::f32([batch, heads[0] * heads[2]]));
                    let cache = cache(graph, dtype, batch, heads);
                    let lengths = graph.state("lengths", numbers(batch));
                    let params = attention_params(heads, AttentionMode::Decode);
                    graph.attention("attention", q, cache, &[lengths], params)
                });
                let plan = plan(&graph, &exact());
                assert_eq!(plan.launches().count(), 1);
                // Where sequences are few and long, several blocks share each.
                let split = plan.launches().any(|(_, launch)| launch.grid[0] > 1);
                assert!(split || heads[3] < 512 || batch > 8, "{heads:?}, {dtype}, {batch}");
                assert!(!split || heads[3] >= 512, "{heads:?}, {dtype}, {batch}");
                assert_eq!(plan.scratch().len(), if split { 3 } else { 0 });
            }
        }
    }
}

#[test]
fn of_attention_to_many_queries() {
    for heads in HEADS {
        for dtype in CacheDtype::ALL {
            for (tokens, batch) in TOKENS.into_iter().flat_map(|tokens| [(tokens, 1), (tokens, 3)]) {
                let graph = graph(|graph| {
                    let q = graph.input("q", TensorType::f32([tokens, heads[0] * heads[2]]));
                    let cache = cache(graph, dtype, batch, heads);
                    let q_starts = graph.input("q_starts", numbers(batch + 1));
                    let kv_lens = graph.input("kv_lens", numbers(batch));
                    let params = attention_params(heads, AttentionMode::Prefill);
                    graph.attention("attention", q, cache, &[q_starts, kv_lens], params)
                });
                let plan = plan(&graph, &exact());
                let converted = dtype == CacheDtype::Q8_0;
                assert_eq!(plan.launches().count(), if converted { 3 } else { 1 });
                let [_, kv_heads, d, room] = heads.map(u64::from);
                let half = 2 * u64::from(batch) * kv_heads * room * d;
                let scratch: u64 = plan.scratch().iter().map(|piece| piece.bytes()).sum();
                assert_eq!(scratch, if converted { 2 * half } else { 0 });
                assert!(plan.memory().arena_bytes >= scratch);
            }
        }
    }
}

#[test]
fn of_rotations_and_the_way_into_the_cache() {
    let ropes = [
        RopeParams::new(64),
        RopeParams { pairs: RopePairs::Interleaved, base: 5e5, ..RopeParams::new(64) },
        RopeParams { rotary_dim: 32, scaling: RopeScaling::Linear { factor: 4.0 }, ..RopeParams::new(64) },
    ];
    let heads = [8, 2, 64, 128];
    for (dtype, tokens) in CacheDtype::ALL.into_iter().flat_map(|dtype| TOKENS.map(|tokens| (dtype, tokens)))
    {
        for rope in ropes {
            for (sequences, batch) in
                [(TokenSequences::One, 1), (TokenSequences::Each, tokens), (TokenSequences::Listed, 5)]
            {
                for (norms, factors) in [(false, false), (true, false), (false, true), (true, true)] {
                    let graph = graph(|graph| {
                        let mut q = graph.input("q", TensorType::f32([tokens, 512]));
                        let mut k = graph.input("k", TensorType::f32([tokens, 128]));
                        let v = graph.input("v", TensorType::f32([tokens, 128]));
                        let positions = graph.input("positions", numbers(tokens));
                        let turned = rope.rotary_dim / 2;
                        let factors = factors.then(|| graph.weight("factors", TensorType::f32([turned])));
                        let listed = sequences == TokenSequences::Listed;
                        let listed = listed.then(|| graph.input("sequences", numbers(tokens)));
                        let cache = cache(graph, dtype, batch, heads);
                        if norms {
                            for (x, name) in [(&mut q, "q_norm"), (&mut k, "k_norm")] {
                                let w = graph.weight(&format!("{name}.w"), TensorType::f32([64]));
                                *x = graph.head_norm(name, *x, w, 64, 1e-6)?;
                            }
                        }
                        let q = graph.rope("rope_q", q, positions, factors, rope)?;
                        let k = graph.rope("rope_k", k, positions, factors, rope)?;
                        let cache = graph.kv_append("append", cache, [k, v], positions, sequences, listed)?;
                        let q_starts = graph.input("q_starts", numbers(batch + 1));
                        let kv_lens = graph.input("kv_lens", numbers(batch));
                        let params = attention_params(heads, AttentionMode::Prefill);
                        graph.attention("attention", q, cache, &[q_starts, kv_lens], params)
                    });
                    let attention = if dtype == CacheDtype::Q8_0 { 3 } else { 1 };
                    let [apart, fused] = [Fusions::none(), Fusions::all()]
                        .map(|fusions| plan(&graph, &without(fusions, exact())).launches().count());
                    let what = format!("{dtype}, {tokens}, {rope:?}, {sequences:?}, {norms}");
                    let expected = (attention + if norms { 5 } else { 3 }, attention + 1);
                    assert_eq!((apart, fused), expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn of_rows() {
    for tokens in TOKENS {
        for format in WeightFormat::ALL {
            let graph = graph(|graph| {
                let table = graph.weight("table", TensorType::new(Element::Weights(format), [1000, 512]));
                let ids = graph.input("ids", numbers(tokens));
                let x = graph.embedding("embedding", table, ids)?;
                let rows = graph.input("rows", numbers(3));
                graph.select_rows("selected", x, rows)
            });
            let plan = plan(&graph, &exact());
            // Rows that are read and written, and their numbers.
            let bytes: Vec<u64> = plan.launches().map(|(_, launch)| launch.bytes).collect();
            let row = |bytes: u64| bytes + 4 + 4 * 512;
            // Three rows are selected, of as many as there are.
            let selected = u64::from(tokens.min(3)) * 4 * 512 + 3 * row(0);
            assert_eq!(bytes, [u64::from(tokens) * row(format.row_bytes(512)), selected]);
        }
        for dtype in Dtype::ALL {
            for columns in [1, 33, 256, 4096] {
                let ty = TensorType::new(Element::Float(dtype), [tokens, columns]);
                let graph = graph(|graph| {
                    let (a, b) = (graph.input("a", ty), graph.input("b", ty));
                    let w = graph.weight("w", TensorType::f32([columns]));
                    let x = graph.rms_norm("norm", a, w, 0.0)?;
                    let x = graph.add("add", x, b)?;
                    let x = graph.mul("mul", x, x)?;
                    let x = graph.silu("silu", x)?;
                    let x = graph.swiglu("swiglu", x, b)?;
                    let x = graph.softmax("softmax", x)?;
                    let mut last = x;
                    for to in Dtype::ALL {
                        last = graph.cast(&format!("to_{to}"), last, to)?;
                    }
                    graph.argmax("argmax", last)
                });
                plans(&graph);
            }
        }
    }
}

#[test]
fn of_draws_and_counters() {
    for tokens in TOKENS {
        for settings in 0..16u32 {
            let setting = |bit: u32, fixed: f32| match settings >> bit & 1 {
                0 => Setting::Fixed(fixed),
                _ => Setting::Buffer,
            };
            let params = SampleParams {
                top_k: if settings & 2 == 0 { Setting::Fixed(40) } else { Setting::Buffer },
                top_p: setting(2, 0.9),
                min_p: setting(3, 0.05),
                ..SampleParams::new(setting(0, 0.7))
            };
            let graph = graph(|graph| {
                let logits = graph.input("logits", TensorType::f32([tokens, 50_257]));
                let seeds = graph.state("seeds", TensorType::new(Element::U64, [tokens]));
                let counters: Vec<Tensor> = (0..1 + settings % 4)
                    .map(|i| graph.state(&format!("counter{i}"), numbers(tokens)))
                    .collect();
                let f32s = TensorType::f32([tokens]);
                let buffers =
                    [("temperatures", f32s), ("top_ks", numbers(tokens)), ("top_ps", f32s), ("min_ps", f32s)];
                let buffers = (0..4).filter(|bit| settings >> bit & 1 == 1).map(|bit| buffers[bit as usize]);
                let buffers: Vec<Tensor> = buffers.map(|(name, ty)| graph.input(name, ty)).collect();
                let drawn = graph.sample("tokens", logits, [seeds, counters[0]], &buffers, params)?;
                graph.advance("advance", &counters)?;
                let ids = graph.state("ids", numbers(tokens));
                graph.assign("next", ids, drawn)?;
                Ok(drawn)
            });
            assert_eq!(plan(&graph, &exact()).launches().count(), 2);
        }
    }
}

#[test]
fn of_penalties() {
    for rows in TOKENS {
        for settings in 0..16u32 {
            let setting = |bit: u32, fixed: f32| match settings >> bit & 1 {
                0 => Setting::Fixed(fixed),
                _ => Setting::Buffer,
            };
            let (repeat, frequency, presence) = (setting(0, 1.1), setting(1, 0.2), setting(2, 0.1));
            let params = PenaltyParams { repeat, frequency, presence, remembers: settings & 8 != 0 };
            let graph = graph(|graph| {
                let logits = graph.input("logits", TensorType::f32([rows, 50_257]));
                let recent = graph.state("recent", TensorType::new(Element::U32, [rows, 64]));
                let newest = ["ids", "positions"].map(|name| graph.state(name, numbers(rows)));
                let newest = params.remembers.then_some(newest);
                let buffers = (0..settings.count_ones() - (settings >> 3))
                    .map(|i| graph.input(&format!("setting{i}"), TensorType::f32([rows])));
                let buffers: Vec<Tensor> = buffers.collect();
                Ok(graph.penalties("lowered", logits, recent, newest, &buffers, params)?.0)
            });
            let plan = plan(&graph, &exact());
            let [(_, launch)] = plan.launches().collect::<Vec<_>>()[..] else { panic!("one launch") };
            // Of each row's logits as many as the window has are read and written at most.
            let each = 8 * 64 + if params.remembers { 8 * 64 + 8 } else { 4 * 64 };
            let buffers = 4 * (settings & 7).count_ones();
            assert_eq!(launch.bytes, u64::from(rows * (each + buffers)));
        }
    }
}

#[test]
fn of_activations_that_are_quantised_or_scaled_once() {
    for tokens in TOKENS {
        let graph = graph(|graph| {
            let x = graph.input("x", TensorType::f32([tokens, 512]));
            let mut sum = x;
            for (i, format) in WeightFormat::ALL.into_iter().enumerate() {
                let w = graph.weight(&format!("w{i}"), TensorType::new(Element::Weights(format), [512, 512]));
                let y = graph.mat_mul(&format!("y{i}"), x, w, None)?;
                sum = graph.add(&format!("sum{i}"), sum, y)?;
            }
            Ok(sum)
        });
        for plan in plans(&graph) {
            let steps = crate::steps(&plan);
            let count = |name: &str| steps.iter().filter(|&&step| step == name).count();
            let int8 = plan.options().arithmetic == Arithmetic::Int8;
            let fused = plan.options().fusions == Fusions::all();
            assert_eq!(count("quantize"), usize::from(int8 && fused && tokens <= 8), "{tokens}");
            // For halves of each kind.
            assert_eq!(count("scale_rows"), if tokens > 8 { 2 } else { 0 }, "{tokens}");
        }
    }
}
