//! Whether a device computes what it should.
//!
//! [`MODULES`] has the correctness cases of the kernels: each runs kernels on the device of the process
//! ([`warpwright_testing`] says which one that is) and holds their results to float64.
#![deny(unsafe_code)]

mod cases;
#[doc(hidden)]
pub mod common;

pub use cases::MODULES;

/// A correctness case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, unique in its module.
    pub name: &'static str,
    /// Runs it; panics with what is wrong.
    pub run: fn(),
}

/// Lists functions as correctness cases of their module, which are tests of this crate too.
macro_rules! case_list {
    ($($name:ident,)*) => {
        /// The cases of this module.
        pub(crate) const CASES: &[$crate::Case] =
            &[$($crate::Case { name: stringify!($name), run: $name }),*];

        #[cfg(test)]
        mod tests {
            $(#[test]
            fn $name() {
                super::$name();
            })*
        }
    };
}

use case_list;
