//! The reference, held to what other programs make of the same bytes, to numbers worked out by hand, and to itself.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/reference/mod.rs"]
mod reference;
mod sampling;

use common::{Biases, Choice, Formats, ModelConfig, Prompt, Random, random_bytes, random_weights};
use reference::{Exact, Memory, ReferenceError, Value, dequantize, execute, execute_with};
use std::collections::HashMap;
use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, KvCache, Role, RopeParams, Tensor,
    TensorType,
};
use warpwright_kernels::{Activation, CacheDtype, Dtype, RopePairs, TokenSequences, WeightFormat};
use warpwright_qualify::common::gguf::fixture;

#[test]
fn weights_are_those_of_the_gguf_package() {
    for format in WeightFormat::ALL.into_iter().filter(|format| !format.is_float()) {
        let (blocks, expected) = fixture(format);
        let found: Vec<u32> = dequantize(format, &blocks).iter().map(|&w| (w as f32).to_bits()).collect();
        assert_eq!(found.len(), expected.len());
        // Zeros of either sign are the same.
        let wrong = found.iter().zip(&expected).position(|(a, b)| a != b && (a | b) << 1 != 0);
        assert_eq!(wrong, None, "{format}: the first weight that differs");
    }
}

#[test]
fn floats_are_themselves() {
    let numbers = [0.0, -1.5, 0.15625, 448.0];
    let bytes = |each: &dyn Fn(f32) -> Vec<u8>| numbers.iter().flat_map(|&x| each(x)).collect::<Vec<u8>>();
    let exact: Vec<f64> = numbers.iter().map(|&x| x.into()).collect();
    let half = |x: f32| half::f16::from_f32(x).to_le_bytes().to_vec();
    assert_eq!(dequantize(WeightFormat::F32, &bytes(&|x| x.to_le_bytes().to_vec())), exact);
    assert_eq!(dequantize(WeightFormat::F16, &bytes(&half)), exact);
    assert_eq!(dequantize(WeightFormat::Bf16, &bytes(&|x| x.to_le_bytes()[2..].to_vec())), exact);
}

/// The outputs of a graph without weights.
#[track_caller]
fn run(graph: &ComputeGraph, inputs: &[(&str, Value)]) -> HashMap<String, Value> {
    let inputs = inputs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    execute(graph, &mut Memory::new(), &inputs).expect("a graph that runs")
}

#[track_caller]
fn assert_close(found: &Value, expected: &[f64]) {
    let found = found.floats();
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = found == expected || (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
        assert!(close || found.is_nan() && expected.is_nan(), "{found}, not {expected}, at {i}");
    }
}

fn floats(numbers: &[f64]) -> Value {
    Value::Floats(numbers.to_vec())
}

#[test]
fn ops_are_what_they_say() {
    let mut graph = ComputeGraph::new();
    let a = graph.input("a", TensorType::f32([2, 4]));
    let b = graph.input("b", TensorType::f32([2, 4]));
    let w = graph.input("w", TensorType::f32([4]));
    let pair = graph.input("pair", TensorType::f32([2]));
    let rows = graph.input("rows", TensorType::new(Element::U32, [3]));
    let mut all = Vec::new();
    let mut add = |tensor: Result<Tensor, GraphError>| all.push(tensor.expect("a node"));
    add(graph.add("add", a, b));
    add(graph.mul("mul", a, b));
    add(graph.swiglu("swiglu", a, b));
    for activation in Activation::ALL {
        add(graph.activate(activation.name(), activation, b));
        add(graph.glu(&format!("{activation}_glu"), activation, b, a));
    }
    add(graph.rms_norm("norm", a, w, 0.25));
    add(graph.head_norm("head_norm", a, pair, 2, 0.0));
    add(graph.softmax("softmax", a));
    add(graph.select_rows("select", b, rows));
    add(graph.cast("cast", b, Dtype::F16));
    add(graph.resize_heads("longer", a, 2, 3));
    add(graph.resize_heads("shorter", a, 4, 1));
    add(graph.argmax("argmax", b));
    for tensor in all {
        graph.output(tensor).expect("an output");
    }
    let a = [1.0, -1.0, 2.0, 0.5, 0.0, 0.0, f64::NEG_INFINITY, 3.0];
    let b = [0.1, 4.0, -2.0, 4.0, 1e6, f64::NAN, 1e-9, -7.0];
    let inputs = [
        ("a", floats(&a)),
        ("b", floats(&b)),
        ("w", floats(&[1.0, 2.0, 3.0, -4.0])),
        ("pair", floats(&[0.5, 2.0])),
        ("rows", Value::u32s(&[1, 9, 0])),
    ];
    let found = run(&graph, &inputs);
    let pairs = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(&b).map(|(&a, &b)| of(a, b)).collect::<Vec<_>>();
    let silu = |x: f64| x / (1.0 + (-x).exp());
    assert_close(&found["add"], &pairs(&|a, b| a + b));
    assert_close(&found["mul"], &pairs(&|a, b| a * b));
    assert_close(&found["silu"], &b.map(silu));
    for activation in Activation::ALL {
        let activated = b.map(|x| activation.value(x));
        assert_close(&found[activation.name()], &activated);
        let gated: Vec<f64> = activated.iter().zip(&a).map(|(b, a)| b * a).collect();
        assert_close(&found[&format!("{activation}_glu")], &gated);
    }
    assert_eq!(found["swiglu"].floats()[3], silu(0.5) * 4.0);
    let root = (6.25f64 / 4.0 + 0.25).sqrt();
    assert_close(&floats(&found["norm"].floats()[..4]), &[1.0, -2.0, 6.0, -2.0].map(|x| x / root));
    // Heads of [1, -1] and [2, 0.5]; of zeros, zeros.
    let root = (4.25f64 / 2.0).sqrt();
    let heads = [0.5, -2.0, 1.0 / root, 1.0 / root, 0.0, 0.0];
    assert_close(&floats(&found["head_norm"].floats()[..6]), &heads);
    let exp = [1.0, -1.0, 2.0, 0.5].map(f64::exp);
    let sum: f64 = exp.iter().sum();
    let masked = 2.0 + 3f64.exp();
    let second = [1.0 / masked, 1.0 / masked, 0.0, 3f64.exp() / masked];
    assert_close(&found["softmax"], &[&exp.map(|x| x / sum)[..], &second].concat());
    assert_close(&found["select"], &[&b[4..], &[0.0; 4], &b[..4]].concat());
    let tenth = half::f16::from_f64(0.1).to_f64();
    assert_close(&found["cast"], &[tenth, 4.0, -2.0, 4.0, 65504.0, f64::NAN, 0.0, -7.0]);
    assert_eq!(found["argmax"], Value::u32s(&[1, u32::MAX]));
    let longer = [1.0, -1.0, 0.0, 2.0, 0.5, 0.0, 0.0, 0.0, 0.0, f64::NEG_INFINITY, 3.0, 0.0];
    assert_eq!(found["longer"], floats(&longer));
    assert_eq!(found["shorter"], floats(&[1.0, 0.0]));
}

#[test]
fn pairs_turn_by_their_frequencies() {
    for pairs in [RopePairs::Neox, RopePairs::Interleaved] {
        let mut graph = ComputeGraph::new();
        let x = graph.input("x", TensorType::f32([2, 12]));
        let positions = graph.input("positions", TensorType::new(Element::U32, [2]));
        let factors = graph.input("factors", TensorType::f32([2]));
        let params = RopeParams { rotary_dim: 4, pairs, base: 100.0, ..RopeParams::new(6) };
        let y = graph.rope("y", x, positions, Some(factors), params).expect("a node");
        graph.output(y).expect("an output");
        let x: Vec<f64> = (0..24).map(f64::from).collect();
        let inputs =
            [("x", floats(&x)), ("positions", Value::u32s(&[0, 3])), ("factors", floats(&[1.0, 2.0]))];
        // Position 0 turns nothing; at 3, pair 0 turns by 3 and pair 1 by 3 · 100^(-1/2) / 2.
        let mut expected = x.clone();
        for head in [12, 18] {
            for (pair, angle) in [3.0, 3.0 / 10.0 / 2.0].into_iter().enumerate() {
                let (i, j) = match pairs {
                    RopePairs::Neox => (head + pair, head + pair + 2),
                    RopePairs::Interleaved => (head + 2 * pair, head + 2 * pair + 1),
                };
                let turned = |by: f64| (x[i] * by.cos() - x[j] * by.sin(), x[i] * by.sin() + x[j] * by.cos());
                (expected[i], expected[j]) = turned(angle);
            }
        }
        assert_close(&run(&graph, &inputs)["y"], &expected);
    }
}

/// One head of 32 elements over room for 4 tokens of each of 2 sequences.
fn attention_graph(mode: AttentionMode, dtype: CacheDtype, queries: u32) -> ComputeGraph {
    let mut graph = ComputeGraph::new();
    let numbers = |len| TensorType::new(Element::U32, [len]);
    let rows = TensorType::f32([queries, 32]);
    let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, rows));
    let [positions, sequences] = ["positions", "sequences"].map(|name| graph.input(name, numbers(queries)));
    let cache: KvCache = graph.kv_cache("cache", TensorType::new(Element::Cache(dtype), [2, 1, 4, 32]));
    let listed = TokenSequences::Listed;
    let cache = graph.kv_append("append", cache, [k, v], positions, listed, Some(sequences)).expect("a node");
    let lengths = match mode {
        AttentionMode::Decode => vec![graph.input("lengths", numbers(2))],
        AttentionMode::Prefill => {
            vec![graph.input("q_starts", numbers(3)), graph.input("kv_lens", numbers(2))]
        }
    };
    let params = AttentionParams { heads: 1, kv_heads: 1, head_dim: 32, scale: 0.5, mode };
    let out = graph.attention("out", q, cache, &lengths, params).expect("a node");
    graph.output(out).expect("an output");
    graph
}

#[test]
fn queries_see_what_they_may() {
    // All scores are equal, so that what a query gives is the mean of the values that it sees.
    let rows = |values: &[f64]| floats(&values.iter().flat_map(|&v| vec![v; 32]).collect::<Vec<_>>());
    let given = |starts: &[u32], kv_lens: &[u32]| {
        [
            ("q", rows(&[0.0; 6])),
            ("k", rows(&[1.0; 6])),
            ("v", rows(&[1.0, 2.0, 3.0, 40.0, 50.0, 60.0])),
            ("positions", Value::u32s(&[0, 1, 2, 0, 1, 4])),
            ("sequences", Value::u32s(&[0, 0, 0, 1, 1, 1])),
            ("q_starts", Value::u32s(starts)),
            ("kv_lens", Value::u32s(kv_lens)),
        ]
    };
    let prefill = attention_graph(AttentionMode::Prefill, CacheDtype::F32, 6);
    // The token at position 4 has no room; a length of 9 counts as 4, of which two are zeros.
    let found = run(&prefill, &given(&[0, 3, 5], &[3, 2]));
    assert_close(&found["out"], rows(&[1.0, 1.5, 2.0, 40.0, 45.0, f64::NAN]).floats());
    let found = run(&prefill, &given(&[0, 2, 6], &[3, 9]));
    assert_close(&found["out"], rows(&[1.5, 2.0, 40.0, 45.0, 30.0, 22.5]).floats());
    // More queries than tokens: the first see nothing.
    let found = run(&prefill, &given(&[0, 4, 6], &[2, 1]));
    assert_close(&found["out"], rows(&[0.0, 0.0, 1.0, 1.5, 0.0, 40.0]).floats());

    let decode = attention_graph(AttentionMode::Decode, CacheDtype::F32, 2);
    for (lengths, expected) in [([1, 0], [1.0, 0.0]), ([2, 9], [0.5, 0.5])] {
        let inputs = [
            ("q", rows(&[0.0; 2])),
            ("k", rows(&[0.0; 2])),
            ("v", rows(&[1.0, 2.0])),
            ("positions", Value::u32s(&[0, 3])),
            ("sequences", Value::u32s(&[0, 1])),
            ("lengths", Value::u32s(&lengths)),
        ];
        assert_close(&run(&decode, &inputs)["out"], rows(&expected).floats());
    }
}

#[test]
fn caches_hold_what_their_type_holds() {
    let mut random = Random::new(3);
    for dtype in CacheDtype::ALL {
        let graph = attention_graph(AttentionMode::Decode, dtype, 2);
        let row: Vec<f64> = (0..64).map(|_| random.signed() * 3.0).collect();
        let inputs: HashMap<String, Value> = [
            ("q", floats(&[0.0; 64])),
            ("k", floats(&row)),
            ("v", floats(&row)),
            ("positions", Value::u32s(&[2, 2])),
            ("sequences", Value::u32s(&[1, 0])),
            ("lengths", Value::u32s(&[0, 0])),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect();
        let mut memory = Memory::new();
        execute(&graph, &mut memory, &inputs).expect("a graph that runs");
        let held: Vec<f64> = match dtype {
            CacheDtype::F32 => row.clone(),
            CacheDtype::F16 => row.iter().map(|&x| half::f16::from_f64(x).to_f64()).collect(),
            CacheDtype::Bf16 => row.iter().map(|&x| half::bf16::from_f64(x).to_f64()).collect(),
            CacheDtype::Q8_0 => (row.chunks(32))
                .flat_map(|block| {
                    let most = block.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                    let scale = half::f16::from_f64(most / 127.0).to_f64();
                    block.iter().map(move |x| (x / scale).round() * scale)
                })
                .collect(),
        };
        let mut expected = vec![0.0; 2 * 4 * 32];
        expected[2 * 32..3 * 32].copy_from_slice(&held[32..]);
        expected[6 * 32..7 * 32].copy_from_slice(&held[..32]);
        for name in ["cache.k", "cache.v"] {
            assert_close(memory.state(name).expect("a state"), &expected);
        }
    }
}

/// A model, what it has computed, and the tokens that it has chosen.
struct Run {
    model: ModelConfig,
    batch: u32,
    memory: Memory,
    logits: Vec<f64>,
    tokens: Vec<u64>,
}

impl Run {
    fn new(model: &ModelConfig, batch: u32) -> Self {
        let (logits, tokens) = (Vec::new(), Vec::new());
        Run { model: model.clone(), batch, memory: Memory::new(), logits, tokens }
    }

    fn execute(&mut self, graph: &ComputeGraph, inputs: Vec<(&str, Vec<u32>)>) {
        let inputs = inputs.iter().map(|(name, numbers)| (name.to_string(), Value::u32s(numbers))).collect();
        let bytes = |name: &str| Some(random_bytes(name, graph.ty(graph.named(name)?).ok()?, 5));
        self.memory.load(graph, bytes).expect("all weights");
        let outputs = execute(graph, &mut self.memory, &inputs).expect("a graph that runs");
        self.logits = outputs["logits"].floats().to_vec();
        self.tokens = outputs["tokens"].integers().to_vec();
    }

    fn prefill(&mut self, prompt: &Prompt) {
        let graph = self.model.prefill(self.batch, prompt.count(), Choice::ArgMax);
        self.execute(&graph, prompt.inputs());
    }

    fn decode(&mut self) {
        self.execute(&self.model.decode(self.batch, Choice::ArgMax), vec![]);
    }

    fn set(&mut self, name: &str, numbers: &[u32]) {
        let ty = TensorType::new(Element::U32, [self.batch]);
        self.memory.set_state(name, ty, Value::u32s(numbers)).expect("a state of the type");
    }
}

#[test]
fn prompts_are_the_same_at_once_in_chunks_and_token_by_token() {
    let mut random = Random::new(6);
    for (i, cache) in CacheDtype::ALL.into_iter().enumerate() {
        let model = ModelConfig {
            cache,
            head_norms: i % 2 == 0,
            tied: i % 2 == 1,
            biases: [Biases::None, Biases::Qkv, Biases::All][i % 3],
            formats: if i == 0 { Formats::q4_k_m() } else { Formats::all(WeightFormat::F16) },
            rope: RopeParams { factors: i == 3, ..RopeParams::new(32) },
            ..ModelConfig::small()
        };
        for batch in [1, 2] {
            // Sequences of the same length, so that a step decodes a token of each.
            let tokens: Vec<Vec<u32>> =
                (0..batch).map(|_| (0..7).map(|_| random.below(model.vocab)).collect()).collect();
            let prompt = Prompt::new(&tokens);
            let mut whole = Run::new(&model, batch);
            whole.prefill(&prompt);
            let mut chunked = Run::new(&model, batch);
            prompt.chunks(3).iter().for_each(|chunk| chunked.prefill(chunk));
            let mut stepped = Run::new(&model, batch);
            stepped.set("lengths", &vec![1; batch as usize]);
            for at in 0..7 {
                stepped.set("ids", &tokens.iter().map(|tokens| tokens[at]).collect::<Vec<_>>());
                stepped.decode();
            }
            for step in 0..4 {
                let spread = whole.logits.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!((0.5..30.0).contains(&spread), "logits of a sane model: {spread}");
                for other in [&chunked, &stepped] {
                    assert_close(&floats(&other.logits), &whole.logits);
                    assert_eq!(other.tokens, whole.tokens, "{model:?}, step {step}");
                    for state in ["ids", "positions", "lengths", "blk.1.cache.k"] {
                        assert_eq!(
                            other.memory.state(state).map(Value::len),
                            whole.memory.state(state).map(Value::len)
                        );
                    }
                    assert_eq!(other.memory.state("positions"), whole.memory.state("positions"));
                }
                let next = whole.tokens.clone();
                assert_eq!(whole.memory.state("ids"), Some(&Value::Integers(next)));
                for run in [&mut whole, &mut chunked, &mut stepped] {
                    run.decode();
                }
            }
            assert_eq!(whole.memory.state("positions"), Some(&Value::u32s(&vec![11; batch as usize])));
            assert_eq!(whole.memory.state("lengths"), Some(&Value::u32s(&vec![12; batch as usize])));
        }
    }
}

#[test]
fn what_is_missing_or_of_another_type_is_said() {
    let model = ModelConfig::small();
    let graph = model.decode(1, Choice::ArgMax);
    let weights = random_weights(&graph, 1);
    let mut memory = Memory::new();
    let missing = |role, name: &str| Err(ReferenceError::Missing { role, name: name.into() });
    assert_eq!(
        memory.load(&graph, |name| weights.get(name).filter(|_| name != "output.weight")),
        missing(Role::Weight, "output.weight")
    );
    let none = HashMap::new();
    assert_eq!(execute(&graph, &mut memory, &none).map(drop), missing(Role::Weight, "output.weight"));
    assert_eq!(memory.state("positions"), None);
    let ty = TensorType::new(Element::Weights(WeightFormat::Q8_0), [96, 256]);
    let (name, needed) = ("output.weight".to_string(), 96 * 8 * 34);
    assert_eq!(
        memory.load(&graph, |_| Some(vec![0u8; 100])),
        Err(ReferenceError::Bytes { name: name.clone(), ty, given: 100, needed })
    );
    memory.load(&graph, |name| weights.get(name)).expect("all weights");
    execute(&graph, &mut memory, &none).expect("a graph that runs");

    // The same names with other types.
    let other =
        ModelConfig { formats: Formats { output: WeightFormat::F16, ..model.formats }, ..model.clone() };
    let known = ty;
    let ty = TensorType::new(Element::Weights(WeightFormat::F16), [96, 256]);
    assert_eq!(
        execute(&other.decode(1, Choice::ArgMax), &mut memory, &none).map(drop),
        Err(ReferenceError::Type { role: Role::Weight, name, ty, known })
    );
    let numbers = |len| TensorType::new(Element::U32, [len]);
    let (ty, known) = (numbers(2), numbers(1));
    assert_eq!(
        execute(&model.decode(2, Choice::ArgMax), &mut memory, &none).map(drop),
        Err(ReferenceError::Type { role: Role::State, name: "ids".into(), ty, known })
    );

    // Values that their types have not.
    let value = |tensor: &str, ty, given: &str| {
        Err(ReferenceError::Value { tensor: tensor.into(), ty, given: given.into() })
    };
    assert_eq!(memory.set_state("ids", known, Value::u32s(&[1, 2])), value("ids", known, "2 integers"));
    assert_eq!(memory.set_state("ids", known, floats(&[1.0])), value("ids", known, "1 floats"));
    let large = "integers, some of which have more than 32 bits";
    assert_eq!(memory.set_state("ids", known, Value::Integers(vec![1 << 32])), value("ids", known, large));
    let mut shown = 0;
    let cut = execute_with(&graph, &mut memory, &none, |executed| {
        shown += 1;
        if executed.node.name == "output_norm" {
            executed.outputs[0] = floats(&[0.0]);
        }
    });
    assert_eq!(cut.map(drop), value("output_norm", TensorType::f32([1, 256]), "1 floats"));
    assert_eq!(shown, graph.nodes().len() - 4);
}

#[test]
fn numbers_out_of_bounds_are_errors() {
    let graph = attention_graph(AttentionMode::Prefill, CacheDtype::F32, 2);
    let run = |sequences: [u32; 2], starts: [u32; 3]| {
        let inputs = [
            ("q", floats(&[0.0; 64])),
            ("k", floats(&[0.0; 64])),
            ("v", floats(&[0.0; 64])),
            ("positions", Value::u32s(&[0, 0])),
            ("sequences", Value::u32s(&sequences)),
            ("q_starts", Value::u32s(&starts)),
            ("kv_lens", Value::u32s(&[1, 1])),
        ];
        let inputs = inputs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        execute(&graph, &mut Memory::new(), &inputs).map(drop)
    };
    assert_eq!(run([0, 1], [0, 1, 2]), Ok(()));
    let bounds = |node: &str, op, input, value, rule: &str| {
        Err(ReferenceError::Bounds { node: node.into(), op, input, value, rule: rule.into() })
    };
    let sequences = "less than 2, the sequences of the cache";
    assert_eq!(run([0, 2], [0, 1, 2]), bounds("append", "kv_append", "sequences", 2, sequences));
    let starts = "from the number before it to 2, the queries";
    assert_eq!(run([0, 1], [0, 1, 3]), bounds("out", "attention", "q_starts", 3, starts));
    assert_eq!(run([0, 1], [0, 2, 1]), bounds("out", "attention", "q_starts", 1, starts));
}
