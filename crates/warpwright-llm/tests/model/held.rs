//! What is compared, and the bounds.

use crate::device::OnDevice;
use crate::exact;
use crate::spec::Spec;
use std::fmt;
use warpwright_graph::Arithmetic;
use warpwright_kernels::CacheDtype;
use warpwright_llm::model::{ModelConfig, Outcome};
use warpwright_qualify::models::Random;
use warpwright_vm::Options;

/// How logits are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) cache: CacheDtype,
    pub(crate) arithmetic: Arithmetic,
    /// Tokens of a chunk; none where tokens are computed one by one.
    pub(crate) chunk: Option<usize>,
}

impl Path {
    pub(crate) fn decode(cache: CacheDtype) -> Self {
        Path { cache, arithmetic: Arithmetic::Exact, chunk: None }
    }

    pub(crate) fn prefill(cache: CacheDtype, chunk: usize) -> Self {
        Path { chunk: Some(chunk), ..Path::decode(cache) }
    }

    pub(crate) fn int8(self) -> Self {
        Path { arithmetic: Arithmetic::Int8, ..self }
    }

    /// Every one, with chunks of a few tokens and of many, for which there are other kernels.
    pub(crate) fn all() -> Vec<Path> {
        let each = |cache| {
            let paths = [Path::decode(cache), Path::prefill(cache, 100), Path::prefill(cache, 7)];
            paths.into_iter().flat_map(|path| [path, path.int8()])
        };
        CacheDtype::ALL.into_iter().flat_map(each).collect()
    }

    /// The error of a row of logits, relative to its length, that is promised. What a cache rounds is what it can hold;
    /// what is exact otherwise costs the tensor cores more than a token by itself.
    pub(crate) fn bound(self, layers: u32) -> f64 {
        let of_cache = match (self.cache, self.chunk) {
            (CacheDtype::F32, None) => 1e-4,
            (CacheDtype::F16, None) => 1e-3,
            (CacheDtype::F32 | CacheDtype::F16, Some(_)) => 3e-3,
            (CacheDtype::Bf16, _) => 1e-2,
            (CacheDtype::Q8_0, _) => 2e-2,
        };
        match self.arithmetic {
            Arithmetic::Exact => of_cache,
            // Roundings of every layer's activations: many layers add like the root of their number. Where the cache
            // rounds as coarsely, that adds in squares.
            Arithmetic::Int8 => {
                let of_activations = 3e-2 * (f64::from(layers) / 4.0).sqrt().max(1.0);
                if self.cache == CacheDtype::Q8_0 { of_activations.hypot(of_cache) } else { of_activations }
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Path { cache, arithmetic, chunk } = self;
        match chunk {
            None => write!(f, "{cache} cache, {}, token by token", arithmetic.name()),
            Some(chunk) => write!(f, "{cache} cache, {}, chunks of {chunk}", arithmetic.name()),
        }
    }
}

/// Tokens that were the most likely ones, and those of them that must be the same.
#[derive(Default)]
pub(crate) struct Tokens {
    all: usize,
    decided: usize,
}

impl Tokens {
    /// That what is promised decides which token it is, nearly always.
    #[track_caller]
    pub(crate) fn assert_decided(&self) {
        let Tokens { all, decided } = *self;
        println!("{decided} of {all} tokens are decided");
        assert!(decided * 100 >= all * 94, "{decided} of {all} tokens are decided");
    }

    /// Holds rows of logits to the exact ones.
    #[track_caller]
    pub(crate) fn hold(&mut self, spec: &Spec, path: Path, found: &[Vec<f32>], exact: &[Vec<f64>]) {
        assert_eq!(found.len(), exact.len());
        let bound = path.bound(spec.layers);
        let mut worst = (0.0, 0);
        for (position, (found, exact)) in found.iter().zip(exact).enumerate() {
            let found: Vec<f64> = found.iter().map(|&logit| logit.into()).collect();
            let error = relative_error(&found, exact);
            // NaN is the worst of all.
            if error > worst.0 || error.is_nan() {
                worst = (error, position);
            }
            // Errors of single logits are a few times what they are on average, seldom more.
            let length = exact.iter().map(|x| x * x).sum::<f64>().sqrt();
            let noise = 5.0 * bound * length / (exact.len() as f64).sqrt();
            let (token, margin) = likeliest(exact);
            let decided = margin > 2.0 * noise;
            assert!(!decided || likeliest(&found).0 == token, "{path}, position {position}: {spec:#?}");
            // Eight bits of activations decide less.
            if path.arithmetic == Arithmetic::Exact {
                self.all += 1;
                self.decided += usize::from(decided);
            }
        }
        let (error, position) = worst;
        println!("{error:.1e} of {bound:.0e}, {path}");
        assert!(error <= bound, "{path}: {error:e} at position {position}: {spec:#?}");
    }
}

/// The length of the difference, as a part of the length of what it should be.
fn relative_error(found: &[f64], exact: &[f64]) -> f64 {
    assert_eq!(found.len(), exact.len());
    let off: f64 = found.iter().zip(exact).map(|(found, exact)| (found - exact).powi(2)).sum();
    (off / exact.iter().map(|x| x * x).sum::<f64>()).sqrt()
}

/// The largest logit's token, and by how much it is larger than the next.
fn likeliest(logits: &[f64]) -> (usize, f64) {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    (order[0], logits[order[0]] - logits[order[1]])
}

/// Random tokens.
pub(crate) fn tokens(spec: &Spec, len: u32) -> Vec<u32> {
    let mut random = Random::named(spec.seed, "tokens");
    (0..len).map(|_| random.below(spec.vocab)).collect()
}

/// Holds what a model computes in these ways to the exact logits.
#[track_caller]
pub(crate) fn hold(spec: &Spec, len: u32, paths: &[Path], tokens_held: &mut Tokens) {
    let gguf = spec.gguf();
    let model = ModelConfig::from_gguf(&gguf).unwrap_or_else(|error| panic!("{error}: {spec:#?}"));
    let ids = tokens(spec, len);
    let exact = exact::logits(&gguf, &model, &ids);
    for &path in paths {
        let mut device = OnDevice::new(&gguf, &model, path, len, Options::default());
        let found = match path.chunk {
            None => device.decode(&ids),
            Some(chunk) => ids.chunks(chunk).flat_map(|c| device.prefill(c, Outcome::AllLogits)).collect(),
        };
        tokens_held.hold(spec, path, &found, &exact);
    }
}
