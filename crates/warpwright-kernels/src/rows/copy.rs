//! Bytes as they are.

use crate::entry::{Domain, Entry, Field, THREADS, boxed, check_threads};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `y = x`, so many bytes, whatever they hold: 16 to a thread, and what is left over one to a thread. The buffers are
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct CopyBytes {
    /// How many.
    pub bytes: u64,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
}

/// Bytes of a thread.
const CHUNK: u32 = 16;

impl CopyBytes {
    /// So many bytes, by blocks of 256 threads.
    pub fn new(bytes: u64) -> Self {
        CopyBytes { bytes, threads: 256 }
    }
}

impl AnyKernel for CopyBytes {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        format!("copy_bytes_n{}_t{}", self.bytes, self.threads)
    }

    fn args(&self) -> Vec<ArgDesc> {
        let all = Extent::new(self.bytes);
        vec![ArgDesc::input::<u8>("x", all), ArgDesc::output::<u8>("y", all)]
    }

    fn launch(&self) -> LaunchRule {
        let blocks = Extent::new(self.bytes).per(u64::from(CHUNK) * u64::from(self.threads.max(1)));
        LaunchRule::new(self.threads).grid(blocks)
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        vec![("bytes", SizeValue::U64(self.bytes))]
    }

    fn check(&self) -> Result<(), BuildError> {
        if !(1..=1 << 36).contains(&self.bytes) {
            return Err(BuildError::field("bytes", self.bytes, "from 1 to 68719476736"));
        }
        check_threads(self.threads)
    }

    fn body(&self, k: K<'_>) {
        let (x, y) = (k.ptr::<u8>("x"), k.ptr_mut::<u8>("y"));
        let bytes = k.wide_size("bytes", self.bytes);
        let chunks = (bytes / u64::from(CHUNK)).to::<u32>();
        let chunk = k.global_tid();
        k.when(chunk.lt(chunks), || {
            let at = chunk.to::<u64>() * u64::from(CHUNK);
            let words: [_; 4] = x.at(at).cast::<u32>().ld_vec(0);
            y.at(at).cast::<u32>().st_vec(0, words);
        });
        // The first threads have what is left over.
        let left = bytes.to::<u32>() & (CHUNK - 1);
        k.when(chunk.lt(left), || {
            let at = chunks.to::<u64>() * u64::from(CHUNK) + chunk.to::<u64>();
            y.st(at, x.ld(at));
        });
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "copy_bytes",
    doc: "y = x, byte by byte, whatever they hold",
    fields: &[
        Field { name: "bytes", domain: Domain::int(1, u32::MAX), default: Some("513024"), doc: "how many" },
        THREADS,
    ],
    examples: &["bytes=4 threads=32", "bytes=607744", "bytes=33 threads=64"],
    make: |config| boxed(CopyBytes { bytes: config.u32("bytes").into(), threads: config.u32("threads") }),
};
