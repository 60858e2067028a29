//! What is asked of devices.

/// A name that no other device has: `CUuuid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUuuid {
    /// Its bytes, in the order in which they are written.
    pub bytes: [u8; 16],
}
