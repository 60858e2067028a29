//! Rotations, norms of heads, and the way into the cache.

use super::small::{Fused, Graph, HEAD_DIM, HEADS};
use warpwright_graph::{
    AttentionMode, AttentionParams, Element, Fusion, KvCache, RopeParams, RopeStep, StepOp, Tensor,
    TensorType,
};
use warpwright_kernels::{CacheDtype, TokenSequences};

/// Queries and keys on their way to attention.
struct Heads {
    g: Graph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Tensor,
    cache: KvCache,
}

impl Heads {
    fn new() -> Self {
        let mut g = Graph::new();
        let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name));
        let positions = g.0.input("positions", TensorType::new(Element::U32, [1]));
        let cache = TensorType::new(Element::Cache(CacheDtype::F16), [1, HEADS, 16, HEAD_DIM]);
        let cache = g.0.kv_cache("cache", cache);
        Heads { g, q, k, v, positions, cache }
    }

    fn norm(&mut self, name: &str, x: Tensor, epsilon: f32) -> Tensor {
        let w = self.g.0.weight(&format!("{name}.w"), TensorType::f32([HEAD_DIM]));
        self.g.0.head_norm(name, x, w, HEAD_DIM, epsilon).unwrap()
    }

    fn rope(&mut self, name: &str, x: Tensor, base: f32) -> Tensor {
        let params = RopeParams { base, ..RopeParams::new(HEAD_DIM) };
        self.g.0.rope(name, x, self.positions, None, params).unwrap()
    }

    fn append(&mut self, cache: KvCache, k: Tensor) -> KvCache {
        let (kv, name) = ([k, self.v], format!("append{}", cache.k.index()));
        self.g.0.kv_append(&name, cache, kv, self.positions, TokenSequences::Each, None).unwrap()
    }

    fn attend(&mut self, name: &str, q: Tensor, cache: KvCache) -> Tensor {
        let mode = AttentionMode::Decode;
        let params =
            AttentionParams { heads: HEADS, kv_heads: HEADS, head_dim: HEAD_DIM, scale: 0.125, mode };
        let y = self.g.0.attention(name, q, cache, &[self.positions], params).unwrap();
        self.g.output(y);
        y
    }
}

fn rope_of(fused: &Fused) -> &RopeStep {
    let ropes = fused.program.steps().iter().filter_map(|step| match &step.op {
        StepOp::Rope(rope) if rope.append.is_some() => Some(rope),
        _ => None,
    });
    ropes.reduce(|_, later| later).expect("a way into the cache")
}

#[test]
fn rotations_and_the_cache() {
    let mut h = Heads::new();
    let (q, k) = (h.rope("q_rope", h.q, 1e4), h.rope("k_rope", h.k, 1e4));
    let after = h.append(h.cache, k);
    h.attend("y", q, after);
    let fused = h.g.all();
    assert_eq!(fused.names(), ["rope", "attention"]);
    let (rotate, append) = (rope_of(&fused).rotate.unwrap(), rope_of(&fused).append.unwrap());
    assert_eq!((rotate.x, rotate.out, append.k, append.v), (h.q, q, h.k, h.v));
    assert_eq!((append.k_cache, append.v_cache), ((h.cache.k, after.k), (h.cache.v, after.v)));
}

/// Queries that turn otherwise than keys, keys that are needed elsewhere, other positions, queries that attend
/// to the cache as it was.
#[test]
fn rotations_that_do_not_meet() {
    for case in 0..5 {
        let mut h = Heads::new();
        let q = h.rope("q_rope", h.q, if case == 0 { 1e5 } else { 1e4 });
        let k = h.rope("k_rope", h.k, 1e4);
        let positions = h.positions;
        if case == 2 {
            h.positions = h.g.0.input("others", TensorType::new(Element::U32, [1]));
        }
        let seen = if case == 3 {
            h.attend("y", q, h.cache);
            h.append(h.cache, k);
            None
        } else {
            Some(h.append(h.cache, k))
        };
        h.positions = positions;
        if let Some(seen) = seen {
            h.attend("y", q, seen);
        }
        match case {
            1 => {
                let other = h.g.0.silu("other", k).unwrap();
                h.g.output(other);
            }
            4 => h.g.output(k),
            _ => {}
        }
        assert_eq!(h.g.all().formed, [], "case {case}");
    }
}

/// Norms of heads join both at once, one where only it can, and none whose result is needed elsewhere. One
/// epsilon serves both.
#[test]
fn norms_of_heads() {
    for (case, joined) in [(0, [true, true]), (1, [true, false]), (2, [true, false]), (3, [false, true])] {
        let mut h = Heads::new();
        let mut q = h.norm("q_norm", h.q, 1e-6);
        let mut k = match case {
            1 => h.k,
            2 => h.norm("k_norm", h.k, 1e-5),
            _ => h.norm("k_norm", h.k, 1e-6),
        };
        if case == 3 {
            h.g.output(q);
        }
        (q, k) = (h.rope("q_rope", q, 1e4), h.rope("k_rope", k, 1e4));
        let after = h.append(h.cache, k);
        h.attend("y", q, after);
        let fused = h.g.all();
        let rope = rope_of(&fused);
        let norms = [rope.rotate.unwrap().norm.is_some(), rope.append.unwrap().k_norm.is_some()];
        assert_eq!(norms, joined, "case {case}");
        assert_eq!(rope.epsilon, Some(1e-6), "case {case}");
        // A kernel that norms both or none.
        let both = h.g.fused(&Fusion::ALL, |op, _| match op {
            StepOp::Rope(RopeStep { rotate: Some(rotate), append: Some(append), .. }) => {
                rotate.norm.is_some() == append.k_norm.is_some()
            }
            _ => false,
        });
        assert_eq!(rope_of(&both).epsilon.is_some(), joined == [true, true], "case {case}");
    }
}

/// Two tokens one after the other through one cache: each version is read before the next is made.
#[test]
fn versions_of_a_cache() {
    let mut h = Heads::new();
    let mut cache = h.cache;
    for i in 0..2 {
        let q = h.rope(&format!("q_rope{i}"), h.q, 1e4);
        let k = h.rope(&format!("k_rope{i}"), h.k, 1e4);
        cache = h.append(cache, k);
        h.attend(&format!("y{i}"), q, cache);
    }
    assert_eq!(h.g.all().names(), ["rope", "attention", "rope", "attention"]);
}
