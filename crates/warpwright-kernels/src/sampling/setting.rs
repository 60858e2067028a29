//! Numbers of a row that a configuration has, or device memory.

use warpwright_ptx::dsl::{K, Reg};

/// A number that all rows share, or that each row has in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// The number of a row.
    #[track_caller]
    pub(super) fn of<'k>(self, k: K<'k>, name: &str, row: Reg<'k, u32>) -> Reg<'k, f32> {
        match self {
            Setting::Fixed(number) => k.f32(number),
            Setting::Buffer => k.ptr::<f32>(name).ld(row),
        }
    }
}
