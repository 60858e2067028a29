//! What compiled programs call before `main`, at their end, and around `<<<…>>>`.

use super::entries;
use crate::abi::{Dim3, Handle, In, Out, Stream};
use crate::code::{self, Image};
use crate::error::Error;
use crate::log;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// What [`__cudaRegisterFatBinary`] returns.
type Registered = *const Image;

/// A registered image; a program that has none is wrong, and the log says so.
fn image(registered: Registered, function: &str) -> Option<Arc<Image>> {
    // SAFETY: generated code passes what it was given, until it unregisters it.
    let image = unsafe { code::image(registered) };
    if image.is_none() {
        log::note(&format_args!("{function}: no image is registered"));
    }
    image
}

/// Registers a kernel or a variable by an address of the host.
fn define(registered: *const c_void, host: Handle, name: In<c_char>, function: &str) {
    if let (Some(image), Ok(name)) = (image(registered.cast(), function), name.text()) {
        code::define(image, host, &name);
    }
}

/// Registers an image of code: a wrapper around a fat binary, which stays until it is unregistered.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: Handle) -> *const c_void {
    code::register(wrapper).cast()
}

/// Ends the registration of an image's symbols.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_image: *const c_void) {}

/// Unregisters an image, which is unloaded.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(image: *const c_void) {
    // SAFETY: generated code unregisters each image once, at its end.
    unsafe { code::unregister(image.cast()) }
}

/// Registers a kernel by the address of its host function.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the interface's functions have as many as they have")]
pub unsafe extern "C" fn __cudaRegisterFunction(
    registered: *const c_void,
    host: Handle,
    _device: Handle,
    name: In<c_char>,
    _thread_limit: c_int,
    _thread: Handle,
    _block: Handle,
    _block_dim: Handle,
    _grid_dim: Handle,
    _warp_size: Handle,
) {
    define(registered, host, name, "__cudaRegisterFunction");
}

/// Registers a variable by the address of its host variable.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the interface's functions have as many as they have")]
pub unsafe extern "C" fn __cudaRegisterVar(
    registered: *const c_void,
    host: Handle,
    _device: Handle,
    name: In<c_char>,
    _is_external: c_int,
    _bytes: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
    define(registered, host, name, "__cudaRegisterVar");
}

/// Registers a managed variable by the address of the host's pointer to it.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the interface's functions have as many as they have")]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    registered: *const c_void,
    slot: Out<Handle>,
    _device: Handle,
    name: In<c_char>,
    _is_external: c_int,
    _bytes: usize,
    _is_constant: c_int,
    _is_global: c_int,
) {
    if let (Some(image), Ok(name)) = (image(registered.cast(), "__cudaRegisterManagedVar"), name.text()) {
        code::define_managed(&image, slot, &name);
    }
}

/// Loads an image before host code uses its managed variables; not 0 when that is done.
///
/// # Safety
///
/// As the compiler's own code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaInitModule(registered: *const c_void) -> c_char {
    super::call(c"__cudaInitModule", || match image(registered.cast(), "__cudaInitModule") {
        Some(image) => code::initialize(&image),
        None => Ok(()),
    });
    1
}

/// Registers a table of functions that host and device share. Devices here have none of their own, so nothing reads it.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterUnifiedTable(_image: *const c_void, _table: Handle) {}

/// Registers a host variable for devices that reach the host's memory by its own addresses, as none here does.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterHostVar(
    _image: *const c_void,
    name: In<c_char>,
    _host: Handle,
    _bytes: usize,
) {
    let name = name.text().unwrap_or_default();
    log::note(&format_args!("__cudaRegisterHostVar: `{}` is not supported", name.to_string_lossy()));
}

/// A configuration between `<<<…>>>` and its launch.
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Stream,
}

thread_local! {
    /// It has no destructor, since programs launch when the thread's values are gone: in what runs at their exit. The last
    /// launch leaves an empty list without memory.
    static CONFIGURATIONS: ManuallyDrop<RefCell<Vec<Configuration>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Keeps the configuration of the launch that follows; 0, which means that there may be a launch.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Stream,
) -> c_uint {
    CONFIGURATIONS.with(|all| all.borrow_mut().push(Configuration { grid, block, shared, stream }));
    0
}

entries! {
    /// Returns the configuration that was kept last.
    bare fn __cudaPopCallConfiguration(
        grid: Out<Dim3>,
        block: Out<Dim3>,
        shared: Out<usize>,
        stream: Out<Stream>,
    ) {
        let last = CONFIGURATIONS.with(|all| {
            let mut all = all.borrow_mut();
            let last = all.pop();
            all.shrink_to_fit();
            last
        });
        let last = last.ok_or(Error::MISSING_CONFIGURATION)?;
        grid.set(last.grid)?;
        block.set(last.block)?;
        shared.set(last.shared)?;
        stream.set(last.stream)
    }

    /// Returns what launches a host function. Generated code keeps it in a static variable and does not look at errors,
    /// so it is the function itself: each launch looks the kernel up, and returns what is wrong with it.
    bare fn __cudaGetKernel(kernel: Out<Handle>, host: Handle) { kernel.set(host) }

    /// Returns the kernel of a host function.
    fn cudaGetKernel(kernel: Out<Handle>, host: Handle) { kernel.set(code::kernel(host)?) }

    /// Returns the driver's function of a host function, in the current context.
    fn cudaGetFuncBySymbol(function: Out<Handle>, host: Handle) { function.set(code::function(host)?) }
}
