//! The compiled functions of a module, and when they are compiled.

#[cfg(target_arch = "x86_64")]
use super::debug::Known;
#[cfg(target_arch = "x86_64")]
use super::page::Page;
use super::{Native, background};
use crate::decode::Code;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Instructions of warps that a function executes before it is compiled.
const WARM: u32 = 1 << 16;

/// A version of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// For paths of all lanes.
    pub(crate) full: bool,
    pub(crate) accesses: Accesses,
    /// Memory traffic is counted.
    pub(crate) counted: bool,
}

/// Which accesses to memory are in native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accesses {
    /// None: something looks at each of them.
    None,
    /// All that nothing looks at.
    Plain,
    /// Those that the race check only notes.
    Noted,
}

impl Variant {
    fn index(self) -> usize {
        6 * usize::from(self.counted) + 3 * usize::from(self.full) + self.accesses as usize
    }
}

/// The functions of a module, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    functions: OnceLock<Box<[Function]>>,
    /// Their statements as text, where somebody wants to see native code beside it.
    pub(super) text: Vec<Vec<String>>,
}

#[derive(Debug, Default)]
struct Function {
    /// Instructions of warps that were interpreted.
    heat: AtomicU32,
    /// By variant.
    versions: [Version; 12],
}

#[derive(Debug, Default)]
struct Version {
    /// `None` where there is no native code.
    code: OnceLock<Option<Compiled>>,
    /// It is compiled in the background, or was.
    begun: AtomicBool,
    /// The compiler panicked there.
    failed: AtomicBool,
}

/// What makes native code.
type Compile = fn(&Code, u32, Variant) -> Option<Compiled>;

impl Functions {
    fn version(&self, code: &Code, number: u32, variant: Variant) -> Option<(&Function, &Version)> {
        let functions =
            self.functions.get_or_init(|| code.functions.iter().map(|_| Function::default()).collect());
        let function = functions.get(number as usize)?;
        Some((function, &function.versions[variant.index()]))
    }

    /// The native code of a function, if there is some. A function that is warm is interpreted until it is compiled: since
    /// results and counts are the same, nothing depends on when that is, whatever the schedule.
    #[inline]
    pub(crate) fn get(
        &self,
        code: &Arc<Code>,
        number: u32,
        variant: Variant,
        mode: Native,
    ) -> Option<&Compiled> {
        let (function, version) = self.version(code, number, variant)?;
        match mode {
            Native::Off => None,
            Native::Auto if function.heat.load(Relaxed) < WARM => None,
            Native::Auto => match version.code.get() {
                Some(compiled) => compiled.as_ref(),
                None => {
                    debug_assert!(!version.failed.load(Relaxed), "the compiler panicked, see above");
                    if !version.begun.swap(true, Relaxed) {
                        compile_in_background(code.clone(), number, variant, compile);
                    }
                    None
                }
            },
            Native::Always => version.code.get_or_init(|| compile(code, number, variant)).as_ref(),
        }
    }

    /// Instructions of a function were interpreted.
    pub(crate) fn warm(&self, number: u32, instructions: u32) {
        if let Some(function) = self.functions.get().and_then(|functions| functions.get(number as usize)) {
            let heat = function.heat.load(Relaxed);
            if heat < WARM {
                function.heat.store(heat.saturating_add(instructions), Relaxed);
            }
        }
    }
}

/// Compiles a function while it is interpreted. The code, which its module may be done with, is kept for that long. If
/// the compiler panics, the function is interpreted for ever; in builds with assertions, its next launch panics, too.
fn compile_in_background(code: Arc<Code>, number: u32, variant: Variant, compile: Compile) {
    background::run(Box::new(move || {
        let Some((_, version)) = code.native.version(&code, number, variant) else { return };
        let compiles = || version.code.get_or_init(|| compile(&code, number, variant)).is_some();
        let failed = catch_unwind(AssertUnwindSafe(compiles)).is_err();
        version.failed.store(failed, Relaxed);
    }));
}

/// The instructions of a function.
pub(super) fn instructions(code: &Code, number: u32) -> Range<u32> {
    let end = code.functions.get(number as usize + 1).map_or(code.insts.len() as u32, |next| next.entry);
    code.functions[number as usize].entry..end
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
    /// What must be taken back before the page is freed.
    #[cfg(target_arch = "x86_64")]
    pub(super) _known: Known,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::FunctionCode;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    const VARIANT: Variant = Variant { full: true, accesses: Accesses::None, counted: false };

    /// A module of functions that have no instructions.
    fn module(functions: usize) -> Arc<Code> {
        let mut code = Code::default();
        code.functions.resize_with(functions, FunctionCode::default);
        Arc::new(code)
    }

    fn version(code: &Arc<Code>, number: u32) -> &Version {
        code.native.version(code, number, VARIANT).expect("there is the function").1
    }

    #[track_caller]
    fn wait_until(what: impl Fn() -> bool) {
        let begin = Instant::now();
        while !what() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not happen");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    #[test]
    fn a_function_is_compiled_once_it_is_warm() {
        let code = module(2);
        let get = |number| code.native.get(&code, number, VARIANT, Native::Auto).is_some();
        assert!(!get(0) && !get(1));
        code.native.warm(0, WARM - 1);
        assert!(!get(0) && !version(&code, 0).begun.load(Relaxed), "it is not warm yet");
        code.native.warm(0, 1);
        assert!(!get(0), "nobody waits for it");
        wait_until(|| version(&code, 0).code.get().is_some());
        assert!(!version(&code, 1).begun.load(Relaxed), "another function is not compiled");
    }

    #[test]
    fn a_module_may_be_freed_while_its_code_is_compiled() {
        static COMPILES: Barrier = Barrier::new(2);
        let code = module(1);
        let left = Arc::downgrade(&code);
        compile_in_background(code.clone(), 0, VARIANT, |code, _, _| {
            COMPILES.wait();
            COMPILES.wait();
            assert_eq!(code.functions.len(), 1);
            None
        });
        COMPILES.wait();
        drop(code);
        assert_eq!(left.strong_count(), 1, "the compiler has it");
        COMPILES.wait();
        wait_until(|| left.strong_count() == 0);
    }

    #[test]
    fn a_panic_of_the_compiler_leaves_the_function_to_the_interpreter() {
        let code = module(2);
        compile_in_background(code.clone(), 0, VARIANT, |_, _, _| panic!("for a test"));
        compile_in_background(code.clone(), 1, VARIANT, |_, _, _| None);
        wait_until(|| version(&code, 1).code.get().is_some());
        code.native.warm(0, WARM);
        version(&code, 0).begun.store(true, Relaxed);
        let get = || code.native.get(&code, 0, VARIANT, Native::Auto).is_some();
        let native = catch_unwind(AssertUnwindSafe(get));
        assert_eq!(native.ok(), if cfg!(debug_assertions) { None } else { Some(false) });
    }
}
