//! What is compared, and the bounds.

use crate::device::OnDevice;
use crate::exact::{self, relative_error};
use crate::random::Random;
use crate::spec::Spec;
use warpwright_graph::Arithmetic;
use warpwright_kernels::CacheDtype;
use warpwright_llm::model::{ModelConfig, Outcome};

/// How logits are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) cache: CacheDtype,
    pub(crate) arithmetic: Arithmetic,
    /// Tokens of a chunk; none where tokens are computed one by one.
    pub(crate) chunk: Option<usize>,
}

impl Path {
    pub(crate) fn all() -> Vec<Path> {
        let mut all = Vec::new();
        for cache in CacheDtype::ALL {
            for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
                for chunk in [None, Some(100), Some(7)] {
                    all.push(Path { cache, arithmetic, chunk });
                }
            }
        }
        all
    }

    fn bound(self) -> f64 {
        1e9
    }
}

/// What was found in all models.
#[derive(Default)]
pub(crate) struct Errors {
    tokens: usize,
    compared: usize,
}

impl Errors {
    pub(crate) fn assert_tokens(&self) {
        let Errors { tokens, compared } = *self;
        println!("{compared} of {tokens} tokens compared");
        assert!(compared * 100 >= tokens * 95, "{compared} of {tokens} tokens could be compared");
    }
}

pub(crate) fn hold(spec: &Spec, len: u32, paths: &[Path], errors: &mut Errors) {
    let gguf = spec.gguf();
    let model = ModelConfig::from_gguf(&gguf).unwrap_or_else(|error| panic!("{spec:?}: {error}"));
    let mut random = Random::new(spec.seed ^ 99);
    let ids: Vec<u32> = (0..len).map(|_| random.below(spec.vocab)).collect();
    let start = std::time::Instant::now();
    let exact = exact::logits(&gguf, &model, &ids);
    let t_exact = start.elapsed();
    for &path in paths {
        let start = std::time::Instant::now();
        let mut device = OnDevice::new(&gguf, &model, path.cache, path.arithmetic, len + 8);
        let found = match path.chunk {
            None => device.decode(&ids),
            Some(chunk) => ids.chunks(chunk).flat_map(|c| device.prefill(c, Outcome::AllLogits)).collect(),
        };
        let mut worst = 0f64;
        for (found, exact) in found.iter().zip(&exact) {
            let error = relative_error(found, exact);
            worst = worst.max(error);
            let (margin, most) = margin(exact);
            let largest_off =
                found.iter().zip(exact).map(|(&f, e)| (f64::from(f) - e).abs()).fold(0.0, f64::max);
            errors.tokens += 1;
            if margin > 2.0 * largest_off {
                errors.compared += 1;
                let (_, token) = self::margin(&found.iter().map(|&x| x.into()).collect::<Vec<_>>());
                assert_eq!(most, token);
            }
        }
        println!(
            "{:6} {:?} {:6} {:?} {:9}: {worst:.1e} ({:?} {:?})",
            spec.architecture,
            spec.formats,
            path.cache.name(),
            path.chunk,
            path.arithmetic.name(),
            start.elapsed(),
            t_exact
        );
        assert!(worst <= path.bound());
    }
}

/// By how much the largest is larger than the next, and which it is.
fn margin(logits: &[f64]) -> (f64, usize) {
    let (mut first, mut second) = (0, None);
    for (i, &x) in logits.iter().enumerate().skip(1) {
        if x > logits[first] {
            (first, second) = (i, Some(first));
        } else if second.is_none_or(|s: usize| x > logits[s]) {
            second = Some(i);
        }
    }
    (logits[first] - second.map_or(f64::NEG_INFINITY, |s| logits[s]), first)
}
