//! What the stand-in for `libnvJitLink` calls: NVIDIA's links PTX to machine code; this links it to PTX, in an image that
//! the driver loads.
//!
//! The interface is that of `nvJitLink.h` of CUDA 13.5, with other names, so that no program takes the driver for that
//! library.

use crate::code::{Link, Options, object};
use crate::report::{calls, log};
use crate::state::{Handles, Kind, Stale, config};
use crate::types::{CUjitInputType, In, Out, Status, text};
use std::ffi::{c_char, c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use warpwright_ptx::ir::Arch;

/// All linkers of this interface.
static LINKS: Handles<Link> = Handles::new(Kind::JitLink);

/// A handle of a linker: `nvJitLinkHandle`.
type Handle = usize;

/// The result of a call: `nvJitLinkResult`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitLinkResult(c_int);

impl JitLinkResult {
    /// The call did what it says.
    pub const SUCCESS: Self = JitLinkResult(0);
    const UNRECOGNIZED_OPTION: Self = JitLinkResult(1);
    const MISSING_ARCH: Self = JitLinkResult(2);
    const INVALID_INPUT: Self = JitLinkResult(3);
    const PTX_COMPILE: Self = JitLinkResult(4);
    const INTERNAL: Self = JitLinkResult(6);
    const FINALIZE: Self = JitLinkResult(9);
    const NULL_INPUT: Self = JitLinkResult(10);
    const INCORRECT_INPUT_TYPE: Self = JitLinkResult(12);
    const ARCH_MISMATCH: Self = JitLinkResult(13);
    const UNRECOGNIZED_ARCH: Self = JitLinkResult(16);
    const LTO_NOT_ENABLED: Self = JitLinkResult(18);
}

impl From<Status> for JitLinkResult {
    fn from(status: Status) -> Self {
        match status {
            Status::INVALID_PTX | Status::UNSUPPORTED_PTX_VERSION => JitLinkResult::PTX_COMPILE,
            Status::NO_BINARY_FOR_GPU => JitLinkResult::ARCH_MISMATCH,
            Status::NOT_SUPPORTED => JitLinkResult::INCORRECT_INPUT_TYPE,
            Status::INVALID_VALUE
            | Status::INVALID_IMAGE
            | Status::INVALID_HANDLE
            | Status::FILE_NOT_FOUND => JitLinkResult::INVALID_INPUT,
            _ => JitLinkResult::INTERNAL,
        }
    }
}

impl From<Stale> for JitLinkResult {
    fn from(_: Stale) -> Self {
        JitLinkResult::INVALID_INPUT
    }
}

type Result<T> = std::result::Result<T, JitLinkResult>;

/// Options that change how fast machine code is, or what else is kept of it; `=` stands behind those with a value.
const WITHOUT_EFFECT: &[&str] = &[
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-g",
    "-lineinfo",
    "-time",
    "-verbose",
    "-lto",
    "-no-cache",
    "-minimal",
    "-optimize-unused-variables",
    "-device-stack-protector",
    "-ftz=",
    "-prec-div=",
    "-prec-sqrt=",
    "-fma=",
    "-Xptxas=",
    "-Xnvvm=",
    "-split-compile=",
    "-split-compile-extended=",
    "-jump-table-density=",
    "-kernels-used=",
    "-variables-used=",
    "-device-stack-protector=",
    "-opt-level=",
];

/// The target that the options name, and the limit of registers.
fn read(options: &[String]) -> Result<(Arch, Option<u32>)> {
    let (mut target, mut registers) = (None, None);
    for option in options {
        let name = option.split_inclusive('=').next().unwrap_or_default();
        let number = option.get(name.len()..).and_then(|number| number.parse().ok());
        match option.strip_prefix("-arch=") {
            Some(arch) => {
                let number = arch.strip_prefix("sm_").or_else(|| arch.strip_prefix("compute_"));
                let arch = number.and_then(|number| format!("sm_{number}").parse::<Arch>().ok());
                let arch = arch.filter(|arch| arch.introduced().is_some());
                target = Some(arch.ok_or(JitLinkResult::UNRECOGNIZED_ARCH)?);
            }
            None if name == "-maxrregcount=" && number.is_some() => registers = number.filter(|max| *max > 0),
            None if option == "-ptx" || WITHOUT_EFFECT.contains(&name) => {}
            None => {
                log::misuse(&format_args!("there is no option `{option}`"));
                return Err(JitLinkResult::UNRECOGNIZED_OPTION);
            }
        }
    }
    Ok((target.ok_or(JitLinkResult::MISSING_ARCH)?, registers))
}

/// The kinds of inputs as the linker of the driver has them.
fn kind(kind: c_uint, data: &[u8]) -> Result<CUjitInputType> {
    Ok(match kind {
        1 => CUjitInputType::CUBIN,
        2 => CUjitInputType::PTX,
        4 => CUjitInputType::FATBINARY,
        5 => CUjitInputType::OBJECT,
        6 => CUjitInputType::LIBRARY,
        // Any: by its content. PTX and fat binaries are told apart when they are read.
        10 if data.starts_with(object::ARCHIVE) => CUjitInputType::LIBRARY,
        10 if object::is_elf(data) => CUjitInputType::OBJECT,
        10 => CUjitInputType::FATBINARY,
        _ => return Err(JitLinkResult::INCORRECT_INPUT_TYPE),
    })
}

/// Calls the body of an exported function: no panic crosses the interface.
fn call(function: &'static str, body: impl FnOnce() -> Result<()>) -> JitLinkResult {
    let outer = calls::enter(function);
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        log::panicked(function, panic.as_ref());
        Err(JitLinkResult::INTERNAL)
    });
    calls::leave(outer);
    result.err().unwrap_or(JitLinkResult::SUCCESS)
}

macro_rules! functions {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// Pointers must be as the interface says: null, or valid for what it reads and writes there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> JitLinkResult {
            call(stringify!($name), move || $body)
        }
    )*};
}

functions! {
    /// Creates a linker for the target that `-arch=sm_N` among the options names.
    fn warpwrightJitLinkCreate(handle: Out<Handle>, count: u32, options: In<In<c_char>>) {
        handle.required()?;
        let options = options.get_all(count as usize)?;
        let options: Vec<String> = options.into_iter().map(text).collect::<std::result::Result<_, _>>()?;
        let (target, registers) = read(&options)?;
        let link = Arc::new(Link::new(target, Options::with_registers(registers)));
        Ok(handle.set(LINKS.insert(link)?)?)
    }

    /// Destroys a linker, and what it has returned.
    fn warpwrightJitLinkDestroy(handle: Out<Handle>) {
        LINKS.remove(handle.given().get()?)?;
        Ok(handle.set(0)?)
    }

    /// Adds an input.
    fn warpwrightJitLinkAddData(handle: Handle, input: c_uint, data: In<u8>, size: usize, name: In<c_char>) {
        let link = LINKS.get(handle)?;
        if data.is_null() {
            return Err(JitLinkResult::NULL_INPUT);
        }
        let mut copy = vec![0; size];
        data.copy_to(&mut copy)?;
        let name = if name.is_null() { String::new() } else { text(name)? };
        Ok(link.add(kind(input, &copy)?, &copy, &name)?)
    }

    /// Adds the contents of a file.
    fn warpwrightJitLinkAddFile(handle: Handle, input: c_uint, file: In<c_char>) {
        let link = LINKS.get(handle)?;
        let data = super::read_file(file)?;
        Ok(link.add(kind(input, &data)?, &data, &text(file)?)?)
    }

    /// Links.
    fn warpwrightJitLinkComplete(handle: Handle) {
        let completed = LINKS.get(handle)?.complete();
        completed.map(drop).map_err(|status| match status {
            Status::INVALID_PTX | Status::INVALID_IMAGE => JitLinkResult::FINALIZE,
            status => status.into(),
        })
    }

    /// Returns the size of the image, in bytes.
    fn warpwrightJitLinkGetLinkedCubinSize(handle: Handle, size: Out<usize>) {
        Ok(size.set(LINKS.get(handle)?.complete()?.len())?)
    }

    /// Writes the image, which holds PTX.
    fn warpwrightJitLinkGetLinkedCubin(handle: Handle, image: Out<u8>) {
        let link = LINKS.get(handle)?;
        Ok(image.set_all(link.complete()?.iter().copied())?)
    }

    /// Returns the size of the PTX with its terminating zero, in bytes.
    fn warpwrightJitLinkGetLinkedPtxSize(handle: Handle, size: Out<usize>) {
        Ok(size.set(LINKS.get(handle)?.linked_text()?.len() + 1)?)
    }

    /// Writes the PTX and a terminating zero.
    fn warpwrightJitLinkGetLinkedPtx(handle: Handle, ptx: Out<u8>) {
        Ok(ptx.set_all(LINKS.get(handle)?.linked_text()?.into_iter().chain([0]))?)
    }

    /// There is no LTO-IR: the stand-in has it compiled to PTX before.
    fn warpwrightJitLinkGetLinkedLTOIRSize(_handle: Handle, _size: Out<usize>) {
        Err(JitLinkResult::LTO_NOT_ENABLED)
    }

    /// There is no LTO-IR: the stand-in has it compiled to PTX before.
    fn warpwrightJitLinkGetLinkedLTOIR(_handle: Handle, _code: Out<u8>) {
        Err(JitLinkResult::LTO_NOT_ENABLED)
    }

    /// Returns the size of the errors as a text with its terminating zero, in bytes.
    fn warpwrightJitLinkGetErrorLogSize(handle: Handle, size: Out<usize>) {
        Ok(size.set(LINKS.get(handle)?.messages().1.len() + 1)?)
    }

    /// Writes the errors.
    fn warpwrightJitLinkGetErrorLog(handle: Handle, log: Out<c_char>) {
        let (_, errors) = LINKS.get(handle)?.messages();
        Ok(log.set_text(&errors, errors.len() + 1)?)
    }

    /// Returns the size of the warnings as a text with its terminating zero, in bytes.
    fn warpwrightJitLinkGetInfoLogSize(handle: Handle, size: Out<usize>) {
        Ok(size.set(LINKS.get(handle)?.messages().0.len() + 1)?)
    }

    /// Writes the warnings.
    fn warpwrightJitLinkGetInfoLog(handle: Handle, log: Out<c_char>) {
        let (infos, _) = LINKS.get(handle)?.messages();
        Ok(log.set_text(&infos, infos.len() + 1)?)
    }

    /// Returns the version of the interface: that of CUDA whose driver this is.
    fn warpwrightJitLinkVersion(major: Out<c_uint>, minor: Out<c_uint>) {
        let version = config()?.driver_version;
        major.set(version / 1000)?;
        Ok(minor.set(version % 1000 / 10)?)
    }
}
