//! Division of a prompt into chunks that are computed at once.
//!
//! Each chunk size has its own plan, so there are few sizes: whole chunks, and powers of two for the rest. A chunk
//! larger than the rest is padded: the cache needs room for the padding tokens, whose keys and values are overwritten
//! before anything sees them. If it has no room, the largest power of two without padding comes first. A rest that is
//! too small for a chunk is computed token by token.

use super::options::Chosen;

/// The smallest chunk: smaller ones cost as much on tensor cores.
const SMALLEST: u32 = 16;

/// What is computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// One token.
    Token,
    /// So many, in a chunk of that size.
    Chunk {
        /// Tokens that are wanted.
        tokens: u32,
        /// Tokens that are computed.
        size: u32,
    },
}

impl Piece {
    /// Tokens that are wanted.
    pub(super) fn tokens(self) -> u32 {
        match self {
            Piece::Token => 1,
            Piece::Chunk { tokens, .. } => tokens,
        }
    }
}

/// The next piece of so many tokens that are left, at least one, behind `before` in the cache.
pub(super) fn next(chosen: &Chosen, before: u32, left: u32) -> Piece {
    let tokens = left.min(chosen.chunk);
    if tokens < chosen.least.max(2) {
        return Piece::Token;
    }
    let padded = tokens.next_power_of_two().max(SMALLEST).min(chosen.chunk);
    let whole = 1 << tokens.ilog2();
    let fits = |size: u32| before.checked_add(size).is_some_and(|end| end <= chosen.context);
    if fits(padded) {
        Piece::Chunk { tokens, size: padded }
    } else if whole >= SMALLEST && fits(whole) {
        Piece::Chunk { tokens: whole, size: whole }
    } else {
        Piece::Token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(chosen: &Chosen, mut before: u32, mut left: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while left > 0 {
            let piece = next(chosen, before, left);
            assert!((1..=left).contains(&piece.tokens()));
            if let Piece::Chunk { tokens, size } = piece {
                assert!(tokens <= size && size <= chosen.chunk && before + size <= chosen.context);
            }
            before += piece.tokens();
            left -= piece.tokens();
            pieces.push(piece);
        }
        pieces
    }

    #[test]
    fn prompts_are_whole_chunks_and_a_rest() {
        let chosen = Chosen { context: 1000, chunk: 256, least: 2, ahead: false };
        let chunk = |tokens, size| Piece::Chunk { tokens, size };
        assert_eq!(pieces(&chosen, 0, 1), [Piece::Token]);
        assert_eq!(pieces(&chosen, 0, 2), [chunk(2, 16)]);
        assert_eq!(pieces(&chosen, 0, 17), [chunk(17, 32)]);
        assert_eq!(pieces(&chosen, 3, 256), [chunk(256, 256)]);
        assert_eq!(pieces(&chosen, 3, 600), [chunk(256, 256), chunk(256, 256), chunk(88, 128)]);
        assert_eq!(pieces(&chosen, 3, 513), [chunk(256, 256), chunk(256, 256), Piece::Token]);
        // A chunk that no power of two fits, and one that is smaller than the smallest.
        let odd = Chosen { chunk: 100, ..chosen };
        assert_eq!(pieces(&odd, 0, 190), [chunk(100, 100), chunk(90, 100)]);
        assert_eq!(pieces(&Chosen { chunk: 5, ..chosen }, 0, 12), [chunk(5, 5), chunk(5, 5), chunk(2, 5)]);
        assert_eq!(pieces(&Chosen { chunk: 1, ..chosen }, 0, 3), [Piece::Token; 3]);
    }

    #[test]
    fn little_goes_token_by_token() {
        let chosen = Chosen { context: 64, chunk: 16, least: 10, ahead: false };
        assert_eq!(pieces(&chosen, 0, 9), [Piece::Token; 9]);
        let chunk = |tokens, size| Piece::Chunk { tokens, size };
        assert_eq!(pieces(&chosen, 0, 27), [chunk(16, 16), chunk(11, 16)]);
        // Padding needs room too.
        assert_eq!(pieces(&chosen, 48, 12), [chunk(12, 16)]);
        assert_eq!(pieces(&chosen, 49, 12), [Piece::Token; 12]);
        assert_eq!(pieces(&chosen, 48, 16), [chunk(16, 16)]);
    }

    #[test]
    fn a_context_that_is_nearly_full_still_takes_chunks() {
        let chosen = Chosen { context: 300, chunk: 256, least: 10, ahead: false };
        let chunk = |tokens, size| Piece::Chunk { tokens, size };
        let mut expected = vec![chunk(256, 256), chunk(32, 32)];
        expected.extend([Piece::Token; 11]);
        assert_eq!(pieces(&chosen, 0, 299), expected);
        // Also where a chunk is larger than the context.
        let large = Chosen { chunk: 512, ..chosen };
        assert_eq!(pieces(&large, 0, 48), [chunk(48, 64)]);
        assert_eq!(pieces(&Chosen { context: 48, ..large }, 0, 48), [chunk(32, 32), chunk(16, 16)]);
    }
}
