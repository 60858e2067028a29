//! A copy of bytes.

use warpwright_dsl::*;

/// `y = x` for a number of bytes of any content: 16 to a thread, and the remainder one to a thread. The buffers must
/// not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Config)]
#[config(
    doc = "y = x, byte by byte, whatever they hold",
    examples("bytes=4 threads=32", "bytes=607744", "bytes=33 threads=64")
)]
pub struct CopyBytes {
    /// How many.
    #[field(range = 1..=1 << 36, default = 513024)]
    pub bytes: u64,
    /// Threads of a block: a multiple of 32.
    #[field(domain = Domain::THREADS, default = 256)]
    pub threads: u32,
}

/// The arguments of [`CopyBytes`].
#[derive(Args)]
#[args(of = CopyBytes)]
#[allow(missing_docs, reason = "they are described with the kernel")]
pub struct CopyBytesArgs<M: Mode> {
    #[arg(len = Extent::new(of.bytes))]
    pub x: M::In<u8>,
    #[arg(len = Extent::new(of.bytes))]
    pub y: M::Out<u8>,
}

/// Bytes of a thread.
const CHUNK: u32 = 16;

impl CopyBytes {
    /// So many bytes, by blocks of 256 threads.
    pub fn new(bytes: u64) -> Self {
        CopyBytes { bytes, threads: 256 }
    }
}

impl Kernel for CopyBytes {
    type Args<M: Mode> = CopyBytesArgs<M>;

    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn launch(&self) -> LaunchRule {
        let blocks = Extent::new(self.bytes).per(u64::from(CHUNK) * u64::from(self.threads.max(1)));
        LaunchRule::new(self.threads).grid(blocks)
    }

    fn body<'k>(&self, k: K<'k>, CopyBytesArgs { x, y }: CopyBytesArgs<Body<'k>>) {
        let bytes = k.wide_dim(self.bytes);
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
