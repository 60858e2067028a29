//! Random graphs: every op on tensors of one shape, with what fusions look for more often than by chance.

use warpwright_graph::{
    AttentionMode, AttentionParams, ComputeGraph, Element, GraphError, KvCache, Role, RopeParams, Tensor,
    TensorType,
};
use warpwright_kernels::{Activation, CacheDtype, TokenSequences, WeightFormat};

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const WIDTH: u32 = 256;
const HEAD_DIM: u32 = 64;
const HEADS: u32 = WIDTH / HEAD_DIM;
const TOKENS: u32 = 2;

struct Builder {
    rng: Rng,
    graph: ComputeGraph,
    /// What any op may take: the later ones are taken more often.
    rows: Vec<Tensor>,
    states: Vec<Tensor>,
    caches: Vec<KvCache>,
    positions: [Tensor; 2],
    lengths: Tensor,
    weights: Vec<Tensor>,
    vectors: Vec<Tensor>,
    norms: Vec<Tensor>,
    head_norms: Vec<Tensor>,
}

/// A graph of about so many nodes. Not each of them can run: where a node reads an old version of a state, and
/// something of a newer one, there is no order.
pub(crate) fn graph(seed: u64, nodes: usize) -> ComputeGraph {
    let mut rng = Rng(seed);
    let mut graph = ComputeGraph::new();
    let g = &mut graph;
    let row = TensorType::f32([TOKENS, WIDTH]);
    let formats = [WeightFormat::Q4K, WeightFormat::Q6K, WeightFormat::F16];
    let matrix = |i: usize| TensorType::new(Element::Weights(formats[i % 3]), [WIDTH, WIDTH]);
    let weights = (0..6).map(|i| g.weight(&format!("w{i}"), matrix(i))).collect();
    let vectors = (0..2).map(|i| g.weight(&format!("bias{i}"), TensorType::f32([WIDTH]))).collect();
    let norms = (0..2).map(|i| g.weight(&format!("norm{i}"), TensorType::f32([WIDTH]))).collect();
    let head_norms = (0..2).map(|i| g.weight(&format!("heads{i}"), TensorType::f32([HEAD_DIM]))).collect();
    let mut rows: Vec<Tensor> = (0..2).map(|i| g.input(&format!("x{i}"), row)).collect();
    let states: Vec<Tensor> = (0..2).map(|i| g.state(&format!("s{i}"), row)).collect();
    rows.extend(&states);
    let cache = TensorType::new(Element::Cache(CacheDtype::F16), [TOKENS, HEADS, 16, HEAD_DIM]);
    let caches = (0..2).map(|i| g.kv_cache(&format!("c{i}"), cache)).collect();
    let u32s = TensorType::new(Element::U32, [TOKENS]);
    let positions = [g.state("positions", u32s), g.input("others", u32s)];
    let lengths = g.input("lengths", u32s);
    let rng_ = Rng(rng.next());
    let mut b = Builder {
        rng: rng_,
        graph,
        rows,
        states,
        caches,
        positions,
        lengths,
        weights,
        vectors,
        norms,
        head_norms,
    };
    while b.graph.nodes().len() < nodes {
        b.some().expect("each op is given what it takes");
    }
    // What the host reads.
    let made: Vec<Tensor> = b.graph.nodes().iter().flat_map(|node| node.outputs.clone()).collect();
    for tensor in made {
        let computed = b.graph.info(tensor).unwrap().role == Role::Intermediate;
        if b.rng.one_in(6) && computed {
            b.graph.output(tensor).unwrap();
        }
    }
    b.graph
}

impl Builder {
    fn name(&self, what: &str) -> String {
        format!("{what}{}", self.graph.nodes().len())
    }

    fn row(&mut self) -> Tensor {
        let recent = self.rows.len().min(4);
        match self.rng.one_in(3) {
            true => self.rng.pick(&self.rows),
            false => self.rows[self.rows.len() - 1 - self.rng.below(recent)],
        }
    }

    fn product(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        let (w, name) = (self.rng.pick(&self.weights), self.name("product"));
        let bias = self.rng.one_in(3).then(|| self.rng.pick(&self.vectors));
        self.graph.mat_mul(&name, x, w, bias)
    }

    fn rope(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        let base = if self.rng.one_in(6) { 1e5 } else { 1e4 };
        let positions = self.positions[usize::from(self.rng.one_in(6))];
        let params = RopeParams { base, ..RopeParams::new(HEAD_DIM) };
        let name = self.name("rope");
        self.graph.rope(&name, x, positions, None, params)
    }

    /// A node, or some that belong together.
    fn some(&mut self) -> Result<(), GraphError> {
        let x = self.row();
        let made = match self.rng.below(12) {
            0 | 1 => self.product(x)?,
            2 => {
                let (w, epsilon) = (self.rng.pick(&self.norms), self.rng.pick(&[1e-5, 1e-6]));
                let name = self.name("norm");
                self.graph.rms_norm(&name, x, w, epsilon)?
            }
            3 => {
                let w = self.rng.pick(&self.head_norms);
                let name = self.name("head_norm");
                let x = self.graph.head_norm(&name, x, w, HEAD_DIM, 1e-6)?;
                if self.rng.one_in(3) { x } else { self.rope(x)? }
            }
            4 => {
                let y = self.row();
                let name = self.name("sum");
                self.graph.add(&name, x, y)?
            }
            5 => {
                let product = self.product(x)?;
                let (y, name) = (self.row(), self.name("residual"));
                self.graph.add(&name, y, product)?
            }
            6 => {
                let (gate, up) = (self.product(x)?, self.product(x)?);
                let (name, activation) = (self.name("glu"), self.rng.pick(&Activation::ALL));
                match self.rng.below(3) {
                    0 => self.graph.glu(&name, activation, gate, up)?,
                    1 => {
                        let part = format!("{name}.activation");
                        let activated = self.graph.activate(&part, activation, gate)?;
                        self.graph.mul(&name, up, activated)?
                    }
                    _ => {
                        let part = format!("{name}.activation");
                        let activated = self.graph.activate(&part, activation, gate)?;
                        self.graph.mul(&name, activated, x)?
                    }
                }
            }
            7 => {
                for _ in 0..2 + self.rng.below(3) {
                    let product = self.product(x)?;
                    self.rows.push(product);
                }
                return Ok(());
            }
            8 => self.rope(x)?,
            9 | 10 => return self.attention(x),
            _ => {
                let which = self.rng.below(self.states.len());
                let (state, name) = (self.states[which], self.name("assign"));
                let next = self.graph.assign(&name, state, x)?;
                if self.rng.one_in(2) {
                    let rest = self.rows.iter().filter(|&&row| row != state).copied();
                    self.rows = rest.collect();
                }
                self.states[which] = next;
                next
            }
        };
        self.rows.push(made);
        Ok(())
    }

    fn attention(&mut self, x: Tensor) -> Result<(), GraphError> {
        let norm = self.rng.one_in(2).then(|| self.rng.pick(&self.head_norms));
        let mut turned = Vec::new();
        for _ in 0..2 {
            let mut x = self.product(x)?;
            if let Some(w) = norm {
                let name = self.name("head_norm");
                x = self.graph.head_norm(&name, x, w, HEAD_DIM, 1e-6)?;
            }
            let x = self.rope(x)?;
            turned.push(x);
            if self.rng.one_in(6) {
                self.rows.push(x);
            }
        }
        let v = self.product(x)?;
        let which = self.rng.below(self.caches.len());
        let (cache, name) = (self.caches[which], self.name("append"));
        let positions = self.positions[usize::from(self.rng.one_in(6))];
        let append =
            self.graph.kv_append(&name, cache, [turned[1], v], positions, TokenSequences::Each, None);
        self.caches[which] = append?;
        let params = AttentionParams {
            heads: HEADS,
            kv_heads: HEADS,
            head_dim: HEAD_DIM,
            scale: 0.125,
            mode: AttentionMode::Decode,
        };
        let seen = if self.rng.one_in(4) { cache } else { self.caches[which] };
        let name = self.name("attention");
        let attended = self.graph.attention(&name, turned[0], seen, &[self.lengths], params)?;
        self.rows.push(attended);
        if self.rng.one_in(4) {
            let name = self.name("advance");
            let positions = self.positions[0];
            self.positions[0] = self.graph.advance(&name, &[positions])?[0];
        }
        Ok(())
    }
}
