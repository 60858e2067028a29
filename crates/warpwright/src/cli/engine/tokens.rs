//! Encoding of prompts.

use crate::cli::Failure;
use warpwright_llm::tokenizer::{Encode, Tokenizer};

/// The tokens of a prompt: with BOS before it if the model wants that and `bos` is set, and without EOS, because the
/// text continues. An empty prompt is BOS alone.
pub(crate) fn encode(tokenizer: &Tokenizer, text: &str, bos: bool) -> Result<Vec<u32>, Failure> {
    let options = Encode { add_special: bos, parse_special: true };
    let mut ids =
        tokenizer.encode(text, options).map_err(|error| Failure::Message(format!("the prompt: {error}")))?;
    if bos && tokenizer.adds_eos() {
        ids.pop();
    }
    if ids.is_empty() {
        let bos = tokenizer.bos().filter(|_| bos).ok_or_else(|| {
            let why = "the prompt is empty, and no token marks its beginning: give it at least one word";
            Failure::Message(why.into())
        })?;
        ids.push(bos);
    }
    Ok(ids)
}
