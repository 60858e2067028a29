//! Memory that holds code. It is written, then executed, and never both at once.

use memmap2::{Mmap, MmapMut};

/// Code that can be executed.
#[derive(Debug)]
pub(super) struct Page(Mmap);

impl Page {
    /// `None` where the process may not have such memory.
    pub(super) fn new(code: &[u8]) -> Option<Page> {
        let mut page = MmapMut::map_anon(code.len().max(1)).ok()?;
        page[..code.len()].copy_from_slice(code);
        page.make_exec().ok().map(Page)
    }

    /// Its first byte.
    pub(super) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }
}
