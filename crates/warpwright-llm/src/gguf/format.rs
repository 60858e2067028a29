//! The tensor formats of GGUF files, and which of them the kernels support.
//!
//! A row is a whole number of blocks; a block stores a fixed number of weights in a fixed number of bytes.

use std::fmt;
use warpwright_kernels::weights::WeightFormat;

macro_rules! formats {
    ($($variant:ident = $number:literal, $name:literal, $block:literal, $bytes:literal: $doc:literal;)*) => {
        /// How the elements of a tensor are stored, by ggml's numbers and names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum TensorFormat {
            $(#[doc = $doc] $variant,)*
        }

        impl TensorFormat {
            /// Every format, in the order of their numbers.
            pub const ALL: &[TensorFormat] = &[$(TensorFormat::$variant,)*];

            /// The number by which a file names it.
            pub const fn number(self) -> u32 {
                match self { $(TensorFormat::$variant => $number,)* }
            }

            /// Its name, as ggml has it but in lower case: `f32`, `q4_k`.
            pub const fn name(self) -> &'static str {
                match self { $(TensorFormat::$variant => $name,)* }
            }

            /// Elements of a block: the length of a row is a multiple of it.
            pub const fn block(self) -> u32 {
                match self { $(TensorFormat::$variant => $block,)* }
            }

            /// Bytes of a block.
            pub const fn block_bytes(self) -> u32 {
                match self { $(TensorFormat::$variant => $bytes,)* }
            }
        }
    };
}

formats! {
    F32 = 0, "f32", 1, 4: "Single precision.";
    F16 = 1, "f16", 1, 2: "Half precision.";
    Q4_0 = 2, "q4_0", 32, 18: "Four bits, a scale for each 32.";
    Q4_1 = 3, "q4_1", 32, 20: "Four bits, a scale and a minimum for each 32.";
    Q5_0 = 6, "q5_0", 32, 22: "Five bits, a scale for each 32.";
    Q5_1 = 7, "q5_1", 32, 24: "Five bits, a scale and a minimum for each 32.";
    Q8_0 = 8, "q8_0", 32, 34: "Signed bytes, a scale for each 32.";
    Q8_1 = 9, "q8_1", 32, 36: "Signed bytes, a scale and a sum for each 32: a format of activations.";
    Q2K = 10, "q2_k", 256, 84: "Two bits, scales and minima in superblocks of 256.";
    Q3K = 11, "q3_k", 256, 110: "Three bits, scales in superblocks of 256.";
    Q4K = 12, "q4_k", 256, 144: "Four bits, scales and minima in superblocks of 256.";
    Q5K = 13, "q5_k", 256, 176: "Five bits, scales and minima in superblocks of 256.";
    Q6K = 14, "q6_k", 256, 210: "Six bits, scales in superblocks of 256.";
    Q8K = 15, "q8_k", 256, 292: "Signed bytes in superblocks of 256: a format of activations.";
    Iq2Xxs = 16, "iq2_xxs", 256, 66: "About 2.06 bits, from a codebook.";
    Iq2Xs = 17, "iq2_xs", 256, 74: "About 2.31 bits, from a codebook.";
    Iq3Xxs = 18, "iq3_xxs", 256, 98: "About 3.06 bits, from a codebook.";
    Iq1S = 19, "iq1_s", 256, 50: "About 1.56 bits, from a codebook.";
    Iq4Nl = 20, "iq4_nl", 32, 18: "Four bits into a table of 16 values, a scale for each 32.";
    Iq3S = 21, "iq3_s", 256, 110: "About 3.44 bits, from a codebook.";
    Iq2S = 22, "iq2_s", 256, 82: "About 2.56 bits, from a codebook.";
    Iq4Xs = 23, "iq4_xs", 256, 136: "Four bits into a table of 16 values, scales in superblocks of 256.";
    I8 = 24, "i8", 1, 1: "Integers of 8 bits.";
    I16 = 25, "i16", 1, 2: "Integers of 16 bits.";
    I32 = 26, "i32", 1, 4: "Integers of 32 bits.";
    I64 = 27, "i64", 1, 8: "Integers of 64 bits.";
    F64 = 28, "f64", 1, 8: "Double precision.";
    Iq1M = 29, "iq1_m", 256, 56: "About 1.75 bits, from a codebook.";
    Bf16 = 30, "bf16", 1, 2: "The upper half of single precision.";
    Tq1_0 = 34, "tq1_0", 256, 54: "Ternary, about 1.69 bits.";
    Tq2_0 = 35, "tq2_0", 256, 66: "Ternary, about 2.06 bits.";
    Mxfp4 = 39, "mxfp4", 32, 17: "Floats of four bits, a power of two for each 32.";
    Nvfp4 = 40, "nvfp4", 64, 36: "Floats of four bits, an eight-bit float for each 16.";
    Q1_0 = 41, "q1_0", 128, 18: "One bit, a scale for each 128.";
    Q2_0 = 42, "q2_0", 64, 18: "Two bits, a scale for each 64.";
}

impl TensorFormat {
    /// The format that a file names by that number.
    pub const fn from_number(number: u32) -> Option<Self> {
        let mut at = 0;
        while at < Self::ALL.len() {
            if Self::ALL[at].number() == number {
                return Some(Self::ALL[at]);
            }
            at += 1;
        }
        None
    }

    /// The format that files have of what kernels read.
    const fn of(format: WeightFormat) -> Self {
        match Self::from_number(format.ggml_type()) {
            Some(format) => format,
            None => panic!("a format that the kernels read has no row in the table of tensor formats"),
        }
    }

    /// What became of a number that files once had and that no program reads any more.
    pub(super) fn removed(number: u32) -> Option<&'static str> {
        match number {
            4 | 5 => Some("which is q4_2 or q4_3 and was removed before there was GGUF"),
            31..=33 => Some("which is q4_0 interleaved in the file and was removed: quantise to q4_0"),
            36..=38 => Some("which is iq4_nl interleaved in the file and was removed: quantise to iq4_nl"),
            _ => None,
        }
    }

    /// The kernels' name for the format, if they support it.
    pub fn weight_format(self) -> Option<WeightFormat> {
        WeightFormat::from_ggml_type(self.number())
    }

    /// Bits per element.
    pub fn bits(self) -> f64 {
        f64::from(self.block_bytes()) * 8.0 / f64::from(self.block())
    }
}

/// Each format has one, or this does not compile: if you add a format that ggml does not have, add its row.
const _: () = {
    let mut at = 0;
    while at < WeightFormat::ALL.len() {
        TensorFormat::of(WeightFormat::ALL[at]);
        at += 1;
    }
};

impl From<WeightFormat> for TensorFormat {
    fn from(format: WeightFormat) -> Self {
        Self::of(format)
    }
}

impl fmt::Display for TensorFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernels_know_is_what_the_file_means() {
        for format in WeightFormat::ALL {
            let of_file = TensorFormat::from(format);
            assert_eq!(of_file.weight_format(), Some(format));
            assert_eq!(
                (of_file.name(), of_file.block(), of_file.block_bytes(), of_file.number()),
                (format.name(), format.block(), format.block_bytes(), format.ggml_type())
            );
        }
        let known = TensorFormat::ALL.iter().filter(|format| format.weight_format().is_some());
        assert_eq!(known.count(), WeightFormat::ALL.len());
    }

    #[test]
    fn numbers_are_in_order_and_are_not_those_that_were_removed() {
        assert!(TensorFormat::ALL.is_sorted_by(|a, b| a.number() < b.number()));
        for number in 0..100 {
            let format = TensorFormat::from_number(number);
            assert!(format.is_none() || TensorFormat::removed(number).is_none());
            assert!(format.is_none_or(|format| format.number() == number));
        }
    }
}
