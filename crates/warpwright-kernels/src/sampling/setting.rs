//! Per-row numbers, either in the configuration or in device memory.

use warpwright_dsl::{Domain, FieldValue, Global, K, KeyPart, Ptr, Reg};

/// A number that all rows share, or one for each row in device memory.
///
/// Its text is the number, or `buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, KeyPart)]
pub enum Setting<T> {
    /// The number, which is not NaN.
    Fixed(T),
    /// In a buffer.
    Buffer,
}

const BUFFER: &str = "buffer";

/// The domain of a setting whose fixed numbers have that one.
pub(super) const fn or_buffer(of: &'static Domain) -> Domain {
    Domain::Or { word: BUFFER, of }
}

impl<T: FieldValue> FieldValue for Setting<T> {
    const DOMAIN: Domain = or_buffer(&T::DOMAIN);

    fn parse(text: &str) -> Option<Self> {
        match text {
            BUFFER => Some(Setting::Buffer),
            text => T::parse(text).map(Setting::Fixed),
        }
    }

    fn text(&self) -> String {
        match self {
            Setting::Fixed(number) => number.text(),
            Setting::Buffer => BUFFER.into(),
        }
    }
}

macro_rules! setting {
    ($ty:ident, |$k:ident, $number:ident| $fixed:expr) => {
        impl Setting<$ty> {
            /// The number of a row.
            #[track_caller]
            pub(super) fn of<'k>(
                self,
                $k: K<'k>,
                row: Reg<'k, u32>,
                buffer: Option<Ptr<'k, Global, $ty>>,
            ) -> Reg<'k, $ty> {
                match self {
                    Setting::Fixed($number) => $fixed,
                    Setting::Buffer => {
                        $k.given(buffer).map_or_else(|| $k.$ty($ty::default()), |each| each.ld(row))
                    }
                }
            }
        }
    };
}
setting!(f32, |k, number| k.factor(number));
setting!(u32, |k, number| k.dim(number).reg());
