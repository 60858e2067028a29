//! Numbers of a row that a configuration has, or device memory.

use warpwright_dsl::{K, Reg, SizeValue};

/// A number that all rows share, or that each row has in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, warpwright_dsl::KeyPart)]
pub enum Setting<T> {
    /// The number.
    Fixed(T),
    /// In a buffer.
    Buffer,
}

impl Setting<f32> {
    /// Its part of the entry point's name.
    pub(super) fn tag(self) -> String {
        match self {
            Setting::Fixed(number) => format!("{:08x}", number.to_bits()),
            Setting::Buffer => "each".into(),
        }
    }

    /// The number of a row: a size of that name where it is fixed, else in the buffer.
    #[track_caller]
    pub(super) fn of<'k>(self, k: K<'k>, name: &str, row: Reg<'k, u32>) -> Reg<'k, f32> {
        match self {
            Setting::Fixed(number) => k.factor(name, number),
            Setting::Buffer => k.ptr::<f32>(name).ld(row),
        }
    }

    /// The size that it is where it is fixed.
    pub(super) fn size(self, name: &'static str) -> Option<(&'static str, SizeValue)> {
        match self {
            Setting::Fixed(number) => Some((name, SizeValue::F32(number))),
            Setting::Buffer => None,
        }
    }
}
