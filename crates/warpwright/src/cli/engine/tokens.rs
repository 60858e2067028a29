//! Texts as the tokens that a model goes on from.

use crate::cli::Failure;
use warpwright_llm::tokenizer::{Encode, Tokenizer};

/// The tokens of a prompt: with BOS before it if the model wants that and `bos`, and never with EOS behind it, since it
/// goes on. An empty prompt is BOS alone.
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
