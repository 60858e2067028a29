//! Conversions between types and between address spaces; `mov`.

mod mov;
mod packed;
mod scalar;
mod space;

pub use mov::Mov;
pub use packed::{CvtPack, CvtRs, CvtScaledOne, CvtScaledTwo};
pub use scalar::Cvt;
pub use space::{Cvta, Isspacep};

use crate::ir::{Needs, Special};

/// What reading a special register needs.
fn special_needs(needs: &mut Needs, special: Special) {
    let (version, sm) = special.register.introduced();
    needs.both(special.register.name(), version, sm);
}
