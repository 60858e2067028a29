//! Operands of video instructions, and their selectors, which choose bytes or halves of a register.

use super::{Reg, Src};
use std::fmt;

/// The destination of a video instruction: a register, or parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartDst {
    /// The register.
    pub reg: Reg,
    /// The parts that are written, if not the whole register.
    pub selector: Option<Selector>,
}

/// A source of a video instruction: a value, or parts of a register, perhaps negated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartSrc {
    /// Whether a register is negated.
    pub negated: bool,
    /// The value.
    pub value: Src,
    /// The parts of a register that are read, if not the whole register.
    pub selector: Option<Selector>,
}

impl From<Reg> for PartDst {
    fn from(reg: Reg) -> Self {
        PartDst { reg, selector: None }
    }
}

impl From<Src> for PartSrc {
    fn from(value: Src) -> Self {
        PartSrc { negated: false, value, selector: None }
    }
}

/// The unit of a [`Selector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectorUnit {
    /// Bytes, `b`: up to four, each one of the eight of two registers.
    Byte,
    /// Half words, `h`: up to two, each one of the four of two registers.
    Half,
}

impl SelectorUnit {
    /// The number of units in a register.
    pub const fn per_register(self) -> usize {
        match self {
            SelectorUnit::Byte => 4,
            SelectorUnit::Half => 2,
        }
    }
}

/// Parts of one or two registers: `.b0`, `.h10`, `.b7531`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Selector {
    unit: SelectorUnit,
    count: u8,
    positions: [u8; 4],
}

impl Selector {
    /// The selector with these positions, in the order of the text (the most significant first). `None` if there are
    /// none or too many, or one exceeds two registers.
    pub fn new(unit: SelectorUnit, positions: &[u8]) -> Option<Self> {
        let max = unit.per_register();
        let fits = (1..=max).contains(&positions.len())
            && positions.iter().all(|&position| usize::from(position) < 2 * max);
        fits.then(|| {
            let mut array = [0; 4];
            array[..positions.len()].copy_from_slice(positions);
            Selector { unit, count: positions.len() as u8, positions: array }
        })
    }

    /// Parses a selector from `word` (without its dot).
    pub fn from_text(word: &str) -> Option<Self> {
        let unit = match word.as_bytes().first()? {
            b'b' => SelectorUnit::Byte,
            b'h' => SelectorUnit::Half,
            _ => return None,
        };
        let digits = &word.as_bytes()[1..];
        let mut positions = [0; 4];
        for (position, digit) in positions.iter_mut().zip(digits) {
            *position = digit.checked_sub(b'0')?;
        }
        (digits.len() <= positions.len()).then(|| Selector::new(unit, &positions[..digits.len()]))?
    }

    /// The unit.
    pub fn unit(self) -> SelectorUnit {
        self.unit
    }

    /// The positions, the most significant first.
    pub fn positions(&self) -> &[u8] {
        &self.positions[..usize::from(self.count)]
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.unit {
            SelectorUnit::Byte => ".b",
            SelectorUnit::Half => ".h",
        })?;
        self.positions().iter().try_for_each(|position| write!(f, "{position}"))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_selector_are_one_to_one() {
        for word in ["b0", "b7", "h3", "h10", "h01", "b3210", "b7531", "b310"] {
            let selector = Selector::from_text(word).expect(word);
            assert_eq!(selector.to_string(), format!(".{word}"));
        }
    }

    #[test]
    fn positions_lie_in_two_registers() {
        for word in ["", "b", "h", "b8", "h4", "h210", "b43210", "w0", "b-1", "bx", "x", "f32"] {
            assert_eq!(Selector::from_text(word), None, "{word}");
        }
    }

    #[test]
    fn most_significant_position_comes_first() {
        let selector = Selector::from_text("b7531").expect("four bytes");
        assert_eq!((selector.unit(), selector.positions()), (SelectorUnit::Byte, &[7, 5, 3, 1][..]));
    }
}
