//! The compiled functions of a module, and when they are compiled.

use super::Native;
#[cfg(target_arch = "x86_64")]
use super::page::Page;
use crate::decode::Code;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Instructions of a warp that a function executes before it is compiled.
const WARM: u32 = 1 << 16;

/// A version of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// For paths of all lanes.
    pub(crate) full: bool,
    pub(crate) accesses: Accesses,
}

/// Which accesses to memory are in native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accesses {
    /// None: something looks at each of them, or counts it.
    None,
    /// All that nothing looks at.
    Plain,
    /// Those that the race check only notes.
    Noted,
}

impl Variant {
    fn index(self) -> usize {
        3 * usize::from(self.full) + self.accesses as usize
    }
}

/// The functions of a module, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Functions(OnceLock<Box<[Function]>>);

#[derive(Debug, Default)]
struct Function {
    /// Instructions of warps that were interpreted.
    heat: AtomicU32,
    /// By variant; `None` where there is no native code.
    code: [OnceLock<Option<Compiled>>; 6],
}

impl Functions {
    /// The native code of a function, if there is some.
    pub(crate) fn get(&self, code: &Code, number: u32, variant: Variant, mode: Native) -> Option<&Compiled> {
        let functions = self.0.get_or_init(|| code.functions.iter().map(|_| Function::default()).collect());
        let function = functions.get(number as usize)?;
        let slot = &function.code[variant.index()];
        match mode {
            Native::Off => None,
            Native::Auto if function.heat.load(Relaxed) < WARM => None,
            _ => slot.get_or_init(|| compile(code, number, variant)).as_ref(),
        }
    }

    /// Instructions of a function were interpreted.
    pub(crate) fn warm(&self, number: u32, instructions: u32) {
        if let Some(function) = self.0.get().and_then(|functions| functions.get(number as usize)) {
            let heat = function.heat.load(Relaxed);
            if heat < WARM {
                function.heat.store(heat.saturating_add(instructions), Relaxed);
            }
        }
    }
}

/// Where native code can be entered for an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The byte of the code, or [`Entry::NONE`].
    pub(super) at: u32,
    /// Fuel for the rest of the segment.
    pub(crate) need: u32,
    /// It is an access that native code does.
    pub(super) access: Option<Access>,
}

/// An access, by its place in the code's table, and whether it writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) op: u32,
    pub(super) write: bool,
}

impl Entry {
    pub(super) const NONE: Entry = Entry { at: u32::MAX, need: 0, access: None };
}

/// A function in native code.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Its first instruction.
    pub(super) first: u32,
    pub(super) variant: Variant,
    /// By instruction.
    pub(super) entries: Box<[Entry]>,
    #[cfg(target_arch = "x86_64")]
    pub(super) page: Page,
}

impl Compiled {
    /// Where it can be entered for an instruction.
    #[inline(always)]
    pub(crate) fn entry(&self, pc: u32) -> Option<Entry> {
        let entry = *self.entries.get(pc.wrapping_sub(self.first) as usize)?;
        (entry.at != Entry::NONE.at).then_some(entry)
    }

    /// The access that an instruction is, if native code does it.
    #[inline(always)]
    pub(super) fn access(&self, pc: u32) -> Option<Access> {
        self.entries.get(pc.wrapping_sub(self.first) as usize)?.access
    }
}

#[cfg(target_arch = "x86_64")]
fn compile(code: &Code, number: u32, variant: Variant) -> Option<Compiled> {
    super::x86::compile(code, number, variant)
}

#[cfg(not(target_arch = "x86_64"))]
fn compile(_: &Code, _: u32, _: Variant) -> Option<Compiled> {
    None
}
