//! The windows of the generic address space.

/// Where addresses of functions begin.
pub(crate) const FUNCTION_WINDOW: u64 = 0x3000_0000_0000;

/// Where the generic addresses of kernel parameters begin.
pub(crate) const PARAM_WINDOW: u64 = 0x4000_0000_0000;

/// Where the generic addresses of local memory begin.
pub(crate) const LOCAL_WINDOW: u64 = 0x5000_0000_0000;

/// Where the generic addresses of shared memory begin.
pub(crate) const SHARED_WINDOW: u64 = 0x6000_0000_0000;

/// Where global memory begins.
pub(crate) const GLOBAL_WINDOW: u64 = 0x7000_0000_0000;

/// Where the rank of a block stands in addresses of its shared memory: those of a block of rank 1 begin at 1 << 24.
pub(crate) const RANK_BITS: u32 = 24;

/// The bits of the rank in an address of shared memory.
pub(crate) const RANK_MASK: u64 = 0xff << RANK_BITS;

/// Bytes of each of the smaller windows.
const WINDOW_BYTES: u64 = 1 << 32;

/// What a generic address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Param,
    Local,
    Shared,
    /// Everything else: global memory, constants, nothing.
    Global,
}

/// What a generic address points into.
#[inline(always)]
pub(crate) fn window(address: u64) -> Window {
    match address & !(WINDOW_BYTES - 1) {
        SHARED_WINDOW => Window::Shared,
        LOCAL_WINDOW => Window::Local,
        PARAM_WINDOW => Window::Param,
        _ => Window::Global,
    }
}

/// The window, of the smaller ones, that has addresses of that range.
pub(crate) fn overlapped_window(start: u64, end: u64) -> Option<u64> {
    let windows = [FUNCTION_WINDOW, PARAM_WINDOW, LOCAL_WINDOW, SHARED_WINDOW];
    windows.into_iter().find(|&window| start < window + WINDOW_BYTES && end > window)
}
