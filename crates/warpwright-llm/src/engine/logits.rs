//! Logits after every token of a prompt.

use super::error::EngineError;
use super::load::Engine;
use super::pieces::{self, Piece};
use crate::model::Outcome;
use std::ops::ControlFlow;

/// How logits are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// Token by token, as in decoding.
    #[default]
    Token,
    /// In chunks of up to this many tokens, like prompts.
    Chunk(u32),
}

impl Engine {
    /// Adds tokens to the sequence, and passes the logits after each to `each`, with the index of the token in `ids`;
    /// there is one logit per token of the vocabulary. `each` may end the computation. At most the rows of one chunk
    /// are in memory at once. The sequence ends with the last token whose logits were passed, or, if `each` ended it
    /// within a chunk, with that chunk.
    ///
    /// # Errors
    ///
    /// Those of [`prefill`](Self::prefill); [`EngineError::Option`] for a chunk of no tokens;
    /// [`EngineError::NotFinite`] if a logit is NaN or infinite.
    pub fn logits(
        &mut self,
        ids: &[u32],
        by: By,
        mut each: impl FnMut(usize, &[f32]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EngineError> {
        if by == By::Chunk(0) {
            let (option, value, rule) = ("the chunk", "0".into(), "1 or more".into());
            return Err(EngineError::Option { option, value, rule });
        }
        // What was chosen last may not be in the cache yet: its logits are nobody's, and those of the ids follow.
        let before = self.position();
        self.append(ids)?;
        let done = self.rows(before, by, &mut each);
        if done.is_err() {
            self.failed();
            self.cut(before);
        }
        done
    }

    fn rows(
        &mut self,
        before: usize,
        by: By,
        each: &mut dyn FnMut(usize, &[f32]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EngineError> {
        let vocab = self.model.vocab() as usize;
        let end = self.position();
        let mut rows = Vec::new();
        while self.sequence.held < end {
            let held = self.sequence.held;
            let piece = match by {
                By::Token => Piece::Token,
                By::Chunk(chunk) => {
                    let chosen = super::options::Chosen { chunk, least: chunk.min(2), ..self.chosen };
                    pieces::next(&chosen, held as u32, (end - held) as u32)
                }
            };
            let outcome = if piece == Piece::Token { Outcome::Logits } else { Outcome::AllLogits };
            let count = piece.tokens() as usize;
            let mut step = self.piece(piece, outcome)?;
            step.run()?;
            let logits = step.executable().output_buffer("logits")?.typed::<f32>()?;
            rows.resize(count * vocab, 0.0);
            self.stream.memcpy_dtoh(&logits.slice(..count * vocab)?, &mut rows)?;
            self.sequence.held = held + count;
            self.sequence.ready = false;
            self.sequence.done();
            for (row, at) in rows.chunks(vocab).zip(held..) {
                if !row.iter().all(|logit| logit.is_finite()) {
                    return Err(self.not_finite(at + 1, held + count, outcome));
                }
                if at >= before && each(at - before, row).is_break() {
                    let held = self.sequence.held;
                    self.cut(held);
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
