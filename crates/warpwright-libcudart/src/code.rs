//! What programs register before `main`: images of code, with their kernels and variables by the addresses that stand
//! for them in host code. An image is loaded when something of it is first needed, and unloaded when it is
//! unregistered.

use crate::abi::{Handle, Out};
use crate::driver::driver;
use crate::error::{Error, Result};
use crate::{lock, log, state};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock};

/// A handle of the driver that is kept: threads share it.
type Kept = usize;

fn kept(handle: Handle) -> Kept {
    handle.expose_provenance()
}

fn handle(kept: Kept) -> Handle {
    std::ptr::with_exposed_provenance_mut(kept)
}

/// A registered image.
pub(crate) struct Image {
    /// What the compiler has emitted: a wrapper around a container of code, which the driver takes.
    address: Kept,
    library: OnceLock<Result<Kept>>,
    managed: Mutex<Vec<Managed>>,
}

/// A managed variable: the host's pointer to it is set when the image is loaded.
struct Managed {
    slot: Out<Handle>,
    name: CString,
}

// SAFETY: the slot is a static variable of the program, written once.
unsafe impl Send for Managed {}

/// A registered kernel or variable.
struct Symbol {
    image: Arc<Image>,
    name: CString,
    /// The handle of a kernel, once it was looked up.
    kernel: OnceLock<Result<Kept>>,
}

/// What is registered, by its address in host code. Kernels and variables have different addresses.
static SYMBOLS: Mutex<Option<HashMap<Kept, Arc<Symbol>>>> = Mutex::new(None);

impl Image {
    /// The driver's library, loaded now if it was not before.
    fn library(&self) -> Result<Handle> {
        let load = || {
            state::context()?;
            // SAFETY: what was registered is a wrapper, until it is unregistered.
            let parts = unsafe { parts(handle(self.address)) };
            let library = during_capture(|| match parts {
                None => library(handle(self.address)),
                Some(parts) => linked(&parts),
            });
            library.map(kept)
        };
        self.library.get_or_init(load).map(handle)
    }

    /// Loads the image, and sets the host's pointers to its managed variables.
    fn load(self: &Arc<Self>) -> Result<()> {
        let library = self.library()?;
        let mut managed = lock(&self.managed);
        for variable in managed.iter() {
            let (mut address, name): (Handle, _) = (null_mut(), variable.name.as_ptr());
            driver!(cuLibraryGetManaged(&raw mut address, null_mut::<usize>(), library, name)).inspect_err(
                |_| {
                    log::note(&format_args!(
                        "the driver has no managed variable `{}`: host code that uses it fails",
                        variable.name.to_string_lossy()
                    ));
                },
            )?;
            variable.slot.set(address)?;
            // Host code that names the variable means its memory.
            define(self.clone(), address, &variable.name);
        }
        managed.clear();
        Ok(())
    }
}

/// Calls what captures forbid to the thread. That a program's first launch is a captured one is no mistake of its own.
fn during_capture<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    const RELAXED: c_int = 2;
    let mut mode = RELAXED;
    driver!(cuThreadExchangeStreamCaptureMode(&raw mut mode))?;
    let result = call();
    driver!(cuThreadExchangeStreamCaptureMode(&raw mut mode))?;
    result
}

/// Loads code.
fn library(code: Handle) -> Result<Handle> {
    let (mut library, none): (Handle, Handle) = (null_mut(), null_mut());
    driver!(cuLibraryLoadData(&raw mut library, code, none, none, 0u32, none, none, 0u32))?;
    Ok(library)
}

/// The wrapper around a fat binary, in the data of a program.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: Handle,
    /// In a program of several objects, which call one another's device functions: their containers, and null.
    parts: *const Handle,
}

/// The version of a wrapper whose parts are to be linked: `nvcc -rdc=true`.
const OF_PARTS: u32 = 2;

/// The beginning of a container.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    magic: u32,
    version: u16,
    header_bytes: u16,
    body_bytes: u64,
}

/// The containers of a wrapper whose parts are to be linked, with their sizes in bytes.
///
/// # Safety
///
/// It must be the address of a wrapper.
unsafe fn parts(wrapper: Handle) -> Option<Vec<(Handle, usize)>> {
    // SAFETY: the caller's promise.
    let Wrapper { version, parts, .. } = unsafe { wrapper.cast::<Wrapper>().read_unaligned() };
    if version != OF_PARTS || parts.is_null() {
        return None;
    }
    let mut found = Vec::new();
    loop {
        // SAFETY: the list of such a wrapper ends with null, and its other entries lead to containers.
        let part = unsafe { parts.add(found.len()).read_unaligned() };
        if part.is_null() {
            return Some(found);
        }
        // SAFETY: as above.
        let Header { header_bytes, body_bytes, .. } = unsafe { part.cast::<Header>().read_unaligned() };
        found.push((part, usize::from(header_bytes) + usize::try_from(body_bytes).unwrap_or(0)));
    }
}

/// Links containers, and loads the result.
fn linked(parts: &[(Handle, usize)]) -> Result<Handle> {
    /// `CU_JIT_INPUT_FATBINARY`.
    const FAT_BINARY: u32 = 2;
    let (mut link, none): (Handle, Handle) = (null_mut(), null_mut());
    driver!(cuLinkCreate_v2(0u32, none, none, &raw mut link))?;
    let (mut code, mut bytes): (Handle, usize) = (null_mut(), 0);
    let name = c"a part of the program".as_ptr();
    let add = |(part, size): &(Handle, usize)| {
        driver!(cuLinkAddData_v2(link, FAT_BINARY, *part, *size, name, 0u32, none, none))
    };
    let result = parts
        .iter()
        .try_for_each(add)
        .and_then(|()| driver!(cuLinkComplete(link, &raw mut code, &raw mut bytes)))
        .and_then(|()| library(code));
    // The driver has copied the code.
    driver!(cuLinkDestroy(link))?;
    result
}

/// Registers an image. The result stands for it until [`unregister`].
pub(crate) fn register(address: Handle) -> *const Image {
    Arc::into_raw(Arc::new(Image {
        address: kept(address),
        library: OnceLock::new(),
        managed: Mutex::new(Vec::new()),
    }))
}

/// An image by what [`register`] has returned.
///
/// # Safety
///
/// It must not be unregistered, and unless null it must be of [`register`].
pub(crate) unsafe fn image(registered: *const Image) -> Option<Arc<Image>> {
    if registered.is_null() {
        return None;
    }
    // SAFETY: one count is the registration's, which stays; the other is that of the result.
    unsafe {
        Arc::increment_strong_count(registered);
        Some(Arc::from_raw(registered))
    }
}

/// Unregisters an image, with its kernels and variables.
///
/// # Safety
///
/// As for [`image`], and nothing may use it afterwards.
pub(crate) unsafe fn unregister(registered: *const Image) {
    if registered.is_null() {
        return;
    }
    // SAFETY: the registration's count ends here.
    let image = unsafe { Arc::from_raw(registered) };
    if let Some(symbols) = lock(&SYMBOLS).as_mut() {
        symbols.retain(|_, symbol| !Arc::ptr_eq(&symbol.image, &image));
    }
    if let Some(Ok(library)) = image.library.get() {
        // At the end of the process the driver may have gone before.
        let _ = driver!(cuLibraryUnload(handle(*library)));
    }
}

/// Registers a kernel or a variable of an image. Where several images have one, such as an instance of a template, the
/// first counts.
pub(crate) fn define(image: Arc<Image>, host: Handle, name: &CStr) {
    let symbol = Symbol { image, name: name.to_owned(), kernel: OnceLock::new() };
    lock(&SYMBOLS).get_or_insert_default().entry(kept(host)).or_insert_with(|| Arc::new(symbol));
}

/// Registers a managed variable: its host variable is a pointer.
pub(crate) fn define_managed(image: &Image, slot: Out<Handle>, name: &CStr) {
    lock(&image.managed).push(Managed { slot, name: name.to_owned() });
}

/// Loads an image for its managed variables.
pub(crate) fn initialize(image: &Arc<Image>) -> Result<()> {
    image.load()
}

fn symbol(host: Handle) -> Option<Arc<Symbol>> {
    lock(&SYMBOLS).as_ref()?.get(&kept(host)).cloned()
}

/// The driver's kernel for a function of host code. A handle of a kernel stands for itself.
pub(crate) fn kernel(host: Handle) -> Result<Handle> {
    let Some(symbol) = symbol(host) else {
        let known = !host.is_null() && {
            let mut name: *const std::ffi::c_char = std::ptr::null();
            driver!(cuKernelGetName(&raw mut name, host)).is_ok()
        };
        return if known { Ok(host) } else { Err(Error::INVALID_DEVICE_FUNCTION) };
    };
    let find = || {
        symbol.image.load()?;
        let mut kernel: Handle = null_mut();
        driver!(cuLibraryGetKernel(&raw mut kernel, symbol.image.library()?, symbol.name.as_ptr())).map_err(
            |error| match error {
                Error::NOT_FOUND => Error::INVALID_DEVICE_FUNCTION,
                error => error,
            },
        )?;
        Ok(kept(kernel))
    };
    symbol.kernel.get_or_init(find).map(handle)
}

/// The host function of a driver's kernel, or of a function that has it; a kernel of another origin stands for itself.
pub(crate) fn host(kernel: Handle, function: Handle) -> Result<Handle> {
    let is_it = |known: &Handle| {
        let mut of_it: Handle = null_mut();
        *known == kernel
            || driver!(cuKernelGetFunction(&raw mut of_it, *known)).is_ok()
                && !of_it.is_null()
                && of_it == function
    };
    let known: Vec<(Kept, Handle)> = lock(&SYMBOLS)
        .iter()
        .flatten()
        .filter_map(|(host, symbol)| Some((*host, handle(*symbol.kernel.get()?.as_ref().ok()?))))
        .collect();
    let found = known.iter().find(|(_, known)| is_it(known)).map(|(host, _)| handle(*host));
    Ok(found.unwrap_or(if kernel.is_null() { function } else { kernel }))
}

/// The driver's function for a function of host code, in the current context.
pub(crate) fn function(host: Handle) -> Result<Handle> {
    let mut function: Handle = null_mut();
    driver!(cuKernelGetFunction(&raw mut function, kernel(host)?))?;
    Ok(function)
}

/// Address and size of a variable of host code, on the current device.
pub(crate) fn variable(host: Handle) -> Result<(Handle, usize)> {
    let symbol = symbol(host).ok_or(Error::INVALID_SYMBOL)?;
    symbol.image.load()?;
    let (mut address, mut bytes): (Handle, usize) = (null_mut(), 0);
    let library = symbol.image.library()?;
    let name = symbol.name.as_ptr();
    driver!(cuLibraryGetGlobal(&raw mut address, &raw mut bytes, library, name))
        .or_else(|_| driver!(cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, name)))
        .map_err(|error| match error {
            Error::NOT_FOUND => Error::INVALID_SYMBOL,
            error => error,
        })?;
    Ok((address, bytes))
}
