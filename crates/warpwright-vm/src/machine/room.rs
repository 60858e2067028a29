//! Host memory held by resident blocks: shared and local memory, and registers.
//!
//! It is allocated when a block begins or a function is called. A kernel can request a lot: [`MAX_LOCAL`] bytes per
//! thread, in as many blocks as can be resident. The launch keeps count, and ends with a trap before the host runs
//! out of memory. A block's memory stays allocated when it is reused.

use super::{Base, LANES, Machine, Step};
use crate::decode::Code;
use crate::launch::{Shape, TrapKind};

/// Most bytes of local memory of a thread, with the registers that its calls save, as on hardware.
pub(crate) const MAX_LOCAL: u64 = 512 << 10;

/// Most bytes that the resident blocks of a launch hold.
pub(crate) const MAX_HELD: u64 = 4 << 30;

/// Bytes of a thread for each word of its warp.
const WORD_OF_WARP: u64 = 4 * LANES as u64;

/// What a block takes from its beginning on.
pub(crate) fn of_block(shape: &Shape, code: &Code, kernel: u32) -> u64 {
    let function = &code.functions[kernel as usize];
    let warps = u64::from(shape.threads().div_ceil(LANES as u32));
    let Base { w32, w64, pred } = function.rows;
    let words = function.local_words() as u64 + u64::from(w32) + 2 * u64::from(w64);
    4 * shape.shared_words as u64 + warps * (words * WORD_OF_WARP + 4 * u64::from(pred))
}

impl Machine<'_> {
    /// Makes room for that many bytes of local memory, and for the registers of a frame. Whether there is
    /// any.
    pub(crate) fn reserve(&mut self, local: u64, base: Base, rows: Base) -> bool {
        let words = local.div_ceil(4) as usize;
        let more = words.saturating_sub(self.warp.local.len()) as u64 * WORD_OF_WARP;
        let bytes = more + self.registers.missing(base, rows);
        if bytes != 0 && !self.launch.hold(bytes) {
            return false;
        }
        if more != 0 {
            self.warp.local.resize(words, [0; LANES]);
        }
        true
    }

    /// Ends the launch, since its blocks hold too much.
    #[cold]
    pub(crate) fn out_of_memory(&mut self) -> Step {
        self.trap(TrapKind::OutOfMemory, too_much())
    }
}

/// What is wrong, in words.
pub(crate) fn too_much() -> String {
    format!(
        "the shared and local memory of the blocks that are resident takes more than {MAX_HELD} bytes: launch \
         fewer or smaller blocks, or call less deeply"
    )
}
