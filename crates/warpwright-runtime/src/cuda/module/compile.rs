//! From PTX to an image, by the driver's compiler.
//!
//! The compiler is called through the linker, which returns the image, so that it can be cached. (A module that is
//! loaded from PTX directly has its image inside of the driver.)

use crate::cuda::CallError;
use crate::cuda::error::check;
use crate::cuda::sys::{self, CUjitInputType, CUlinkState, CUmodule, JitOption};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

/// Room for a log of the compiler, in bytes; it cuts off what is more.
const LOG: usize = 64 << 10;

/// The text that the compiler is given: what may not be in it is in comments and names of files alone, so that it is
/// replaced. Compilers before CUDA 13 refuse what is not ASCII, and a zero ends the text.
pub(super) fn sanitise(ptx: String) -> String {
    let is_taken = |byte: u8| byte.is_ascii() && byte != 0;
    if ptx.bytes().all(is_taken) {
        return ptx;
    }
    ptx.chars().map(|c| if u8::try_from(c).is_ok_and(is_taken) { c } else { '?' }).collect()
}

/// The driver did not do it.
pub(super) struct Refused {
    /// The call that failed.
    pub(super) error: CallError,
    /// What its compiler says.
    pub(super) log: String,
}

/// Places for what the driver's compiler says.
struct Logs {
    errors: Vec<u8>,
    infos: Vec<u8>,
}

/// Options of a call, and their values.
type LogOptions = ([JitOption; 4], [*mut c_void; 4]);

/// What images depend on of how the compiler is called. With `line_info` the `.loc` directives become tables of lines,
/// which take no time on the device.
pub(super) fn options(line_info: bool) -> &'static str {
    if line_info { "lineinfo" } else { "" }
}

impl Logs {
    fn new() -> Self {
        Logs { errors: vec![0; LOG], infos: vec![0; LOG] }
    }

    /// The options that name the places. They lead into this value.
    fn options(&mut self) -> LogOptions {
        let options = [
            JitOption::ERROR_LOG_BUFFER,
            JitOption::ERROR_LOG_BUFFER_SIZE_BYTES,
            JitOption::INFO_LOG_BUFFER,
            JitOption::INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        // A number stands in the place of a pointer.
        let size = |log: &[u8]| std::ptr::without_provenance_mut(log.len());
        let (errors, infos) = (size(&self.errors), size(&self.infos));
        (options, [self.errors.as_mut_ptr().cast(), errors, self.infos.as_mut_ptr().cast(), infos])
    }

    /// An error, with what was said.
    fn refused(&self, error: CallError) -> Refused {
        Refused { error, log: [said(&self.errors), said(&self.infos)].concat() }
    }
}

/// The image of a PTX text for the device whose context is current on this thread, and what the compiler says about its
/// registers.
pub(super) fn compile(ptx: &str, line_info: bool) -> Result<(Vec<u8>, String), Refused> {
    let mut logs = Logs::new();
    let image = link(ptx, line_info, &mut logs.options());
    image.map(|image| (image, said(&logs.infos))).map_err(|error| logs.refused(error))
}

/// The same, with options whose places outlive the call.
fn link(ptx: &str, line_info: bool, (logs, places): &mut LogOptions) -> Result<Vec<u8>, CallError> {
    let [log, log_size, info, info_size] = *logs;
    let [line_info_option, verbose] = [JitOption::GENERATE_LINE_INFO, JitOption::LOG_VERBOSE];
    let mut options = [log, log_size, info, info_size, line_info_option, verbose];
    let [log, log_size, info, info_size] = *places;
    let on = |is_on: bool| std::ptr::without_provenance_mut(is_on.into());
    let mut values = [log, log_size, info, info_size, on(line_info), on(true)];
    // The text ends at a zero, even if it was not sanitised.
    let text = CString::new(ptx.split('\0').next().unwrap_or_default()).unwrap_or_default();
    let count = options.len() as u32;
    let mut state = null_mut();
    // SAFETY: as many options as values, each of its option's kind. The driver writes to the logs, their sizes and the
    // options as long as the state lives, which is destroyed before they go.
    check("cuLinkCreate", unsafe {
        sys::cuLinkCreate_v2(count, options.as_mut_ptr(), values.as_mut_ptr(), &mut state)
    })?;
    let link = Link(state);
    let bytes = text.as_bytes_with_nul();
    // SAFETY: the text has that many bytes, of which the last is zero, and is read in this call alone, as is the name.
    check("cuLinkAddData", unsafe {
        sys::cuLinkAddData_v2(
            link.0,
            CUjitInputType::CU_JIT_INPUT_PTX,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len(),
            c"module".as_ptr(),
            0,
            null_mut(),
            null_mut(),
        )
    })?;
    let (mut image, mut size) = (null_mut(), 0);
    // SAFETY: writes where the image is, and its size.
    check("cuLinkComplete", unsafe { sys::cuLinkComplete(link.0, &mut image, &mut size) })?;
    if image.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the image has that many bytes, and is the state's as long as that lives.
    Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), size) }.to_vec())
}

/// Loads an image in the context that is current on this thread.
pub(super) fn load(image: &[u8]) -> Result<CUmodule, Refused> {
    let mut logs = Logs::new();
    let (mut options, mut values) = logs.options();
    let mut module = null_mut();
    // SAFETY: the driver reads the image, which says its own size, in this call alone. It came from the driver, and if
    // from the cache, by way of a checksum. The options and their values are as many, and outlive the call.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    check("cuModuleLoadDataEx", result).map(|()| module).map_err(|error| logs.refused(error))
}

/// A state of the linker.
struct Link(CUlinkState);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: the state is this value's own. Nothing can be done where it is not destroyed.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}

/// What is in a log: a text up to a zero, or to the end.
fn said(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_refuse_in_comments_is_replaced_and_lines_stay() {
        let clean = "// plain\nret;\n";
        assert_eq!(sanitise(clean.into()), clean);
        assert_eq!(
            sanitise(".file 1 \"src/jörg.rs\"\n// \0 ☃\nret;".into()),
            ".file 1 \"src/j?rg.rs\"\n// ? ?\nret;"
        );
    }

    #[test]
    fn a_log_ends_at_a_zero_or_with_its_room() {
        assert_eq!(said(b"two\nlines\0\0rest"), "two\nlines");
        assert_eq!(said(b"cut of"), "cut of");
        assert_eq!(said(b"\0"), "");
    }
}
