//! Tensor memory and the fifth generation of tensor cores.

use super::modifiers;

modifiers! {
    /// How many blocks of a pair take part.
    pub enum CtaGroup {
        /// One.
        One = "cta_group::1",
        /// Both.
        Two = "cta_group::2",
    }
}
