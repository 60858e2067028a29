//! Cuts of a text that do not change its tokens.
//!
//! A merge joins two neighbours only into the text of a token. Two characters that are not adjacent in any token are
//! never joined, so a text may be cut between them and its parts merged one by one: parts of a few characters instead
//! of a whole book.

/// The pairs of characters that some token has beside each other; as a filter, which may take a pair that none
/// has for one, and cuts less.
#[derive(Debug)]
pub(super) struct Joints {
    bits: Vec<u64>,
}

/// Of the number of bits.
const LOG_BITS: u32 = 21;

impl Joints {
    /// Of texts that merging may arrive at.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Joints {
        let mut bits = vec![0; 1 << (LOG_BITS - 6)];
        for text in texts {
            for (left, right) in text.chars().zip(text.chars().skip(1)) {
                let bit = bit(left, right);
                bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        Joints { bits }
    }

    fn may_join(&self, left: char, right: char) -> bool {
        let bit = bit(left, right);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// The parts of a text that can be merged one by one; none is empty.
    pub(super) fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let mut chars = rest.char_indices();
            let (_, mut left) = chars.next()?;
            let cut = chars.find(|&(_, right)| !self.may_join(std::mem::replace(&mut left, right), right));
            let (part, after) = rest.split_at(cut.map_or(rest.len(), |(at, _)| at));
            rest = after;
            Some(part)
        })
    }
}

fn bit(left: char, right: char) -> usize {
    let pair = u64::from(u32::from(left)) << 32 | u64::from(u32::from(right));
    (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(27).wrapping_mul(0xd6e8_feb8_6659_fd93)
        >> (64 - LOG_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_no_token_has_both_sides() {
        let joints = Joints::of(["▁the", "he", "▁▁", "é中"].into_iter());
        let parts = |text| joints.parts(text).collect::<Vec<_>>();
        assert_eq!(parts("▁the▁▁theé中"), ["▁the", "▁▁the", "é中"]);
        assert_eq!(parts("éé"), ["é", "é"]);
        assert_eq!(parts(""), [""; 0]);
    }
}
