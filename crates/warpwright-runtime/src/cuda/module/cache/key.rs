//! The key of an image: a hash of everything that it depends on.

use sha2::{Digest, Sha256};
use std::fmt;
use warpwright_ptx::ir::Arch;

/// Counted up when what a key means changes.
const MEANING: u32 = 1;

/// What an image depends on beside its PTX.
#[derive(Clone, Debug)]
pub(in super::super) struct Platform<'a> {
    /// The driver's version of the API.
    pub(in super::super) driver: u32,
    /// Which build of the driver it is, where the system tells; else empty.
    pub(in super::super) build: &'a str,
    /// The device's name.
    pub(in super::super) device: &'a str,
    /// Its architecture.
    pub(in super::super) arch: Arch,
    /// Options of the compiler, in any form that tells them apart.
    pub(in super::super) options: &'a str,
}

/// The hash of all that an image depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Key([u8; 32]);

impl Key {
    pub(in super::super) fn new(ptx: &str, platform: &Platform<'_>) -> Self {
        let Platform { driver, build, device, arch, options } = platform;
        let mut hash = Sha256::new();
        hash.update(MEANING.to_le_bytes());
        hash.update(driver.to_le_bytes());
        // Each with its length before it, so that no text can end in another one's place.
        for text in [ptx, build, device, &arch.to_string(), options] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        Key(hash.finalize().into())
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
