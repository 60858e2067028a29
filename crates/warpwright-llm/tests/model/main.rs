//! Models of every architecture, format and shape, from files with random weights, on the virtual GPU: held to the exact
//! forward pass of the same file in `f64`.
//!
//! What is compared is the error of the logits after each token, relative to their length, and the token that is the most
//! likely one. `WARPWRIGHT_FULL=1` runs more models.

#[path = "../../../warpwright-graph/tests/common/random.rs"]
mod random;
#[expect(dead_code, reason = "the weights of a file are asked for by format, not by the tensors of a graph")]
#[path = "../../../warpwright-graph/tests/common/weights.rs"]
mod weights;

mod device;
mod exact;
mod held;
mod spec;

use held::{Errors, Path, hold};
use random::Random;
use spec::{ALL_BIASES, Formats, QKV, Spec};
use warpwright_graph::Arithmetic;
use warpwright_kernels::{CacheDtype, WeightFormat};
use warpwright_llm::gguf::Value;

const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];

fn full() -> bool {
    std::env::var_os("WARPWRIGHT_FULL").is_some()
}

#[test]
fn every_architecture_in_every_format_is_exact() {
    let mut errors = Errors::default();
    let formats = WeightFormat::ALL.into_iter().map(Formats::All).chain([Formats::Q4KM, Formats::Random]);
    for (i, formats) in formats.enumerate() {
        for (j, architecture) in ARCHITECTURES.into_iter().enumerate() {
            if !full() && (i + j) % 3 != 0 {
                continue;
            }
            let spec = Spec { formats, seed: i as u64, ..Spec::small(architecture) };
            hold(&spec, 24, &Path::all(), &mut errors);
        }
    }
    errors.assert_tokens();
}
