//! Whether a device computes what it should, and how fast.
//!
//! A [`Stage`] is a list of items, each of which succeeds or fails by itself. [`run`] runs stages in processes of their
//! own, which call [`work`] and say in [`Event`]s what they do; so what fails, crashes or hangs ends nothing but its own
//! item.
//!
//! [`MODULES`] has the correctness cases of the kernels: each runs kernels on the device of the process
//! ([`warpwright_testing`] says which one that is) and holds their results to float64.
#![deny(unsafe_code)]

mod cases;
mod child;
#[doc(hidden)]
pub mod common;
mod event;
mod measure;
#[doc(hidden)]
pub mod models;
mod parent;
mod report;
mod stages;

pub use cases::MODULES;
pub use child::{Work, work};
pub use event::{Compared, Difference, Event, Figure, Finding, Loaded, Tuned};
pub use parent::{ItemReport, Observer, Plan, StageReport, run};
pub use report::{Described, Report};
pub use stages::Stage;

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
