//! Names on the timeline of a profiler: NVTX ranges.
//!
//! Nsight Systems and other tools show what a program says of itself through NVTX, between kernels and copies. A tool puts
//! the path of its library into `NVTX_INJECTION64_PATH`; the library asks for tables of function pointers and fills in those
//! that it wants to be called through. Without a tool a range costs a load and a comparison.
//!
//! ```
//! use warpwright_runtime::nvtx;
//!
//! let _step = nvtx::range("step");
//! {
//!     let _attention = nvtx::range("attention");
//!     // What happens here is inside of both.
//! }
//! ```

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

/// A range on the timeline of the thread that began it, until it is dropped. Ranges of a thread are nested.
#[must_use = "a range ends when it is dropped"]
#[derive(Debug)]
pub struct Range {
    begun: bool,
    /// It ends on its own thread.
    thread: PhantomData<*const ()>,
}

/// Begins a range of that name.
pub fn range(name: &str) -> Range {
    let begun = tool().is_some_and(|tool| tool.push(name));
    Range { begun, thread: PhantomData }
}

impl Drop for Range {
    fn drop(&mut self) {
        if let (true, Some(tool)) = (self.begun, tool()) {
            tool.pop();
        }
    }
}

/// The tables that tools ask for, and the callbacks of the first module that are called here.
const CALLBACKS: c_uint = 1;
const VERSION_INFO: c_uint = 3;
const RANGE_PUSH: usize = 9;
const RANGE_POP: usize = 11;

/// How many callbacks each module has, by its number; the first of each is none.
const SIZES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];
const LARGEST: usize = 16;

/// Where a tool puts the address of its function.
type Slot = AtomicPtr<c_void>;

static SLOTS: [[Slot; LARGEST]; SIZES.len()] =
    [const { [const { AtomicPtr::new(null_mut()) }; LARGEST] }; SIZES.len()];

/// The addresses of a module's slots, as tools want them.
struct Addresses([*const Slot; LARGEST]);

// SAFETY: they are addresses of a static.
unsafe impl Send for Addresses {}
// SAFETY: as above.
unsafe impl Sync for Addresses {}

/// What `getExportTable` gives for [`CALLBACKS`].
#[repr(C)]
struct Callbacks {
    size: usize,
    module: extern "C" fn(c_uint, *mut *const *const Slot, *mut c_uint) -> c_int,
}

/// What it gives for [`VERSION_INFO`].
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_version: extern "C" fn(u32),
}

/// The slots of a module. Returns whether there is such a module.
extern "C" fn module(number: c_uint, table: *mut *const *const Slot, size: *mut c_uint) -> c_int {
    static ADDRESSES: OnceLock<[Addresses; SIZES.len()]> = OnceLock::new();
    let addresses = ADDRESSES.get_or_init(|| {
        std::array::from_fn(|module| {
            // The first of each module is none.
            Addresses(std::array::from_fn(|at| if at == 0 { null() } else { &raw const SLOTS[module][at] }))
        })
    });
    let at = number as usize;
    let Some(count) = SIZES.get(at).filter(|count| **count > 0) else { return 0 };
    // SAFETY: the tool gives places for both, or none.
    unsafe {
        if let Some(table) = table.as_mut() {
            *table = addresses[at].0.as_ptr();
        }
        if let Some(size) = size.as_mut() {
            *size = *count as c_uint;
        }
    }
    1
}

extern "C" fn set_version(_version: u32) {}

extern "C" fn export_table(id: c_uint) -> *const c_void {
    static CALLBACK_TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), module };
    static VERSION_TABLE: VersionInfo =
        VersionInfo { size: size_of::<VersionInfo>(), version: 3, reserved: 0, set_version };
    match id {
        CALLBACKS => (&raw const CALLBACK_TABLE).cast(),
        VERSION_INFO => (&raw const VERSION_TABLE).cast(),
        _ => null(),
    }
}

/// A tool whose library is loaded.
struct Tool;

/// The tool, if there is one. It is looked for once.
fn tool() -> Option<&'static Tool> {
    static TOOL: OnceLock<Option<Tool>> = OnceLock::new();
    TOOL.get_or_init(|| {
        let path = std::env::var_os("NVTX_INJECTION64_PATH").filter(|path| !path.is_empty())?;
        // SAFETY: whoever set the variable wants this library to be loaded, and its initialisation to run.
        let library = unsafe { libloading::Library::new(path) }.ok()?;
        type Initialise = unsafe extern "C" fn(extern "C" fn(c_uint) -> *const c_void) -> c_int;
        // SAFETY: that is the type of the function by this name, in NVTX 2 and 3.
        let initialise = *unsafe { library.get::<Initialise>(b"InitializeInjectionNvtx2") }.ok()?;
        // SAFETY: the function is called once, with the tables of this process.
        if unsafe { initialise(export_table) } == 0 {
            return None;
        }
        // Its functions are called until the process ends.
        std::mem::forget(library);
        Some(Tool)
    })
    .as_ref()
}

impl Tool {
    /// A function that the tool has filled in.
    fn function(&self, at: usize) -> Option<*mut c_void> {
        Some(SLOTS[1][at].load(Acquire)).filter(|function| !function.is_null())
    }

    /// Whether a range has begun.
    fn push(&self, name: &str) -> bool {
        let Some(function) = self.function(RANGE_PUSH) else { return false };
        // A name ends at its first zero.
        let name = CString::new(name.split('\0').next().unwrap_or_default()).unwrap_or_default();
        type Push = unsafe extern "C" fn(*const c_char) -> c_int;
        // SAFETY: the tool has put a function of that type there; the text ends with a zero.
        unsafe { std::mem::transmute::<*mut c_void, Push>(function)(name.as_ptr()) };
        true
    }

    fn pop(&self) {
        if let Some(function) = self.function(RANGE_POP) {
            type Pop = unsafe extern "C" fn() -> c_int;
            // SAFETY: the tool has put a function of that type there.
            unsafe { std::mem::transmute::<*mut c_void, Pop>(function)() };
        }
    }
}
