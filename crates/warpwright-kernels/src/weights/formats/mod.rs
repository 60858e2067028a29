//! The formats, each in a file of its own that says all there is to say of it.

/// What those files use.
mod prelude {
    pub(super) use crate::data::floats::Dtype;
    pub(super) use crate::weights::format::{Field, Format, Quants, Record, Values};
    pub(super) use crate::weights::scales::{Records, Scales, half, of_d, of_d_and_m};
    pub(super) use warpwright_dsl::*;

    /// Quantised weights as most formats have them: 32 to a scale, with no minima, which `f16` can hold.
    pub(super) const PLAIN: Quants = Quants {
        codes: &[],
        values: Values::From(0),
        part: 32,
        records: &[],
        scales: of_d,
        part_of: |_, _| [1.0, 0.0],
        half: Dtype::F16,
        tensor_scale: false,
    };
}

macro_rules! formats {
    ($($module:ident $format:ident $doc:literal;)*) => {
        $(
            mod $module;
            const _: () = $module::FORMAT.check();
        )*

        /// How a weight matrix is stored: a row of `k` weights is `k / block` consecutive blocks in the file.
        ///
        /// The formats are ggml's; `docs/weights.md` has them in a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, warpwright_dsl::Choice)]
        pub enum WeightFormat {
            $(#[doc = $doc] $format,)*
        }

        impl WeightFormat {
            /// What it says of itself.
            pub(crate) const fn format(self) -> &'static super::format::Format {
                match self {
                    $(WeightFormat::$format => &$module::FORMAT,)*
                }
            }
        }
    };
}

formats! {
    float32 F32 "Single precision.";
    float16 F16 "Half precision.";
    bfloat16 Bf16 "The upper half of single precision.";
    q8_0 Q8_0 "Signed bytes, a scale for each 32.";
    q4_0 Q4_0 "Four bits, a scale for each 32.";
    q4_1 Q4_1 "Four bits, a scale and a minimum for each 32.";
    q5_0 Q5_0 "Five bits, a scale for each 32.";
    q5_1 Q5_1 "Five bits, a scale and a minimum for each 32.";
    q2_k Q2K "Two bits, scales and minima of four bits for each 16, in superblocks of 256.";
    q3_k Q3K "Three bits, scales of six bits for each 16, in superblocks of 256.";
    q4_k Q4K "Four bits, scales and minima of six bits for each 32, in superblocks of 256.";
    q5_k Q5K "Five bits, scales and minima of six bits for each 32, in superblocks of 256.";
    q6_k Q6K "Six bits, scales of eight bits for each 16, in superblocks of 256.";
    iq4_nl Iq4Nl "Four bits into a table of 16 values, a scale for each 32.";
    iq4_xs Iq4Xs "Four bits into a table of 16 values, scales of six bits for each 32, in superblocks of 256.";
    mxfp4 Mxfp4 "Floats of four bits, a power of two for each 32.";
    nvfp4 Nvfp4 "Floats of four bits, a float of eight bits for each 16, and a scale of the matrix.";
}
