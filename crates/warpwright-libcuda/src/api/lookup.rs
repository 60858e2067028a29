//! Functions by name, and private tables.

use super::{Entry, all, entries};
use crate::report::log;
use crate::state;
use crate::types::{CUuuid, In, Out, Result, Status, text};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// The result of a search: `CUdriverProcAddressQueryResult`.
const FOUND: c_int = 0;
const SYMBOL_NOT_FOUND: c_int = 1;
const VERSION_NOT_SUFFICIENT: c_int = 2;

/// Its flags.
const LEGACY_STREAM: u64 = 1;
const PER_THREAD_DEFAULT_STREAM: u64 = 2;

/// Names that mean another function since that version.
const RENAMED: &[(&str, &str)] = &[("cuGraphInstantiate", "cuGraphInstantiateWithFlags")];

/// The functions of the interface, in the order of the table: the version of CUDA that introduced each, and its name.
fn functions() -> impl Iterator<Item = (u32, &'static str)> {
    let lines = include_str!("functions.txt").lines().map(|line| line.trim_end_matches(" unsupported"));
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(since, name)| Some((since.parse().ok()?, name)))
}

/// A variant of a function.
struct Variant {
    since: u32,
    is_per_thread: bool,
    entry: &'static Entry,
}

/// The variants by their base names, the oldest first.
fn variants() -> &'static HashMap<&'static str, Vec<Variant>> {
    static VARIANTS: OnceLock<HashMap<&str, Vec<Variant>>> = OnceLock::new();
    VARIANTS.get_or_init(|| {
        let entries: HashMap<&str, &'static Entry> = all().map(|entry| (entry.name, entry)).collect();
        let mut variants: HashMap<&str, Vec<Variant>> = HashMap::new();
        for (since, name) in functions() {
            let Some(entry) = entries.get(name) else { continue };
            let (base, is_per_thread) = base(name);
            let mut add =
                |base| variants.entry(base).or_default().push(Variant { since, is_per_thread, entry });
            add(base);
            RENAMED.iter().filter(|(_, now)| *now == base).for_each(|(before, _)| add(before));
        }
        variants
    })
}

/// A name without the suffixes for its version and its kind of default stream.
fn base(name: &str) -> (&str, bool) {
    let plain = name.strip_suffix("_ptds").or_else(|| name.strip_suffix("_ptsz"));
    let (name, is_per_thread) = (plain.unwrap_or(name), plain.is_some());
    let base = name.rsplit_once("_v").filter(|(_, v)| v.bytes().all(|b| b.is_ascii_digit()));
    (base.map_or(name, |(base, _)| base), is_per_thread)
}

/// The function that a name means to a client of a version of CUDA; otherwise the result of the search.
fn find(name: &str, version: u32, per_thread: bool) -> std::result::Result<&'static Entry, c_int> {
    let variants = variants().get(name).ok_or(SYMBOL_NOT_FOUND)?;
    let driver = state::config().map_or(u32::MAX, |config| config.driver_version);
    let mut known = variants.iter().filter(|variant| variant.since <= driver).peekable();
    known.peek().ok_or(SYMBOL_NOT_FOUND)?;
    let fits = known.filter(|variant| variant.since <= version && (per_thread || !variant.is_per_thread));
    let best = fits.max_by_key(|variant| (variant.is_per_thread, variant.since));
    best.map(|variant| variant.entry).ok_or(VERSION_NOT_SUFFICIENT)
}

/// A client's search.
fn search(
    name: In<c_char>,
    function: Out<*mut c_void>,
    version: c_int,
    flags: u64,
) -> Result<std::result::Result<(), c_int>> {
    function.set(std::ptr::null_mut())?;
    let name = text(name)?;
    let known = [0, LEGACY_STREAM, PER_THREAD_DEFAULT_STREAM].contains(&flags);
    let driver = state::config()?.driver_version;
    let version = u32::try_from(version).ok().filter(|version| known && *version <= driver);
    let version = version.ok_or(Status::INVALID_VALUE)?;
    let found = find(&name, version, flags == PER_THREAD_DEFAULT_STREAM);
    log::about(&format_args!(
        "asks for {name} of CUDA {}.{}: {}",
        version / 1000,
        version % 1000 / 10,
        found.as_ref().map_or("not there", |entry| entry.name)
    ));
    Ok(match found {
        Ok(entry) => {
            function.set(entry.address.cast_mut().cast())?;
            Ok(())
        }
        Err(status) => Err(status),
    })
}

entries! {
    /// Returns the function that a base name such as `cuMemAlloc` means to a client of a version of CUDA.
    fn cuGetProcAddress(name: In<c_char>, function: Out<*mut c_void>, version: c_int, flags: u64) {
        search(name, function, version, flags)?.map_err(|_| Status::NOT_FOUND)
    }

    /// The same. A missing function is not an error: the pointer is null, and `status` says why.
    fn cuGetProcAddress_v2(
        name: In<c_char>, function: Out<*mut c_void>, version: c_int, flags: u64, status: Out<c_int>
    ) {
        let found = search(name, function, version, flags)?;
        status.set_if(found.err().unwrap_or(FOUND));
        Ok(())
    }

    /// Would return tables of private functions, which NVIDIA's own libraries use to reach into their driver. There are
    /// none.
    fn cuGetExportTable(table: Out<*const c_void>, id: In<CUuuid>) {
        table.set(std::ptr::null())?;
        let id = id.get()?.bytes.map(|byte| format!("{byte:02x}")).concat();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        match runtime(&maps) {
            Some(path) => log::note(&format_args!(
                "NVIDIA's CUDA runtime asks for the private table {id}, which only NVIDIA's driver has: the program has \
                 loaded {path}, by an RPATH or a path of its own, in place of the runtime that `warpwright exec` provides: \
                 take that file or the RPATH (`patchelf --remove-rpath`) away"
            )),
            // What is known to fail for it needs one line and not one for each table.
            None if maps.contains("/cupy_backends/") => log::note(
                &"CuPy's wheel has NVIDIA's CUDA runtime inside, which works with NVIDIA's driver alone: build CuPy with \
                  the shared runtime, as docs/cuda.md says",
            ),
            None => log::note(&format_args!(
                "NVIDIA's CUDA runtime asks for the private table {id}, which only NVIDIA's driver has: it is linked into \
                 the program or one of its libraries, and what calls it there will fail, while calls of the driver work: \
                 if the program needs it, link it with `nvcc -cudart shared`"
            )),
        }
        Err(Status::INVALID_VALUE)
    }
}

/// NVIDIA's CUDA runtime, if a process has loaded it as a library, by the list of what is mapped. The one of this
/// project has a name of its own behind its links.
fn runtime(maps: &str) -> Option<&str> {
    let files = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    files
        .into_iter()
        .find(|file| file.rsplit('/').next().is_some_and(|name| name.starts_with("libcudart.so")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidias_runtime_is_found_among_what_is_mapped() {
        let line = |file: &str| format!("7f0000000000-7f0000001000 r-xp 00000000 08:01 42    {file}\n");
        let ours = line("/opt/lib/libwarpwright_cudart.so") + "7f00-7f01 rw-p 00000000 00:00 0\n";
        assert_eq!(runtime(&ours), None);
        let theirs = "/opt/with space/libcudart.so.13.0.48";
        assert_eq!(runtime(&(ours + &line(theirs))), Some(theirs));
    }

    fn name(name: &str, version: u32, per_thread: bool) -> std::result::Result<&'static str, c_int> {
        find(name, version, per_thread).map(|entry| entry.name)
    }

    #[test]
    fn a_version_has_its_signature() {
        assert_eq!(name("cuCtxCreate", 2000, false), Ok("cuCtxCreate"));
        assert_eq!(name("cuCtxCreate", 3020, false), Ok("cuCtxCreate_v2"));
        assert_eq!(name("cuCtxCreate", 11030, false), Ok("cuCtxCreate_v2"));
        assert_eq!(name("cuCtxCreate", 11040, false), Ok("cuCtxCreate_v3"));
        assert_eq!(name("cuCtxCreate", 12080, false), Ok("cuCtxCreate_v4"));
        assert_eq!(name("cuMemAlloc", 3010, false), Ok("cuMemAlloc"));
        assert_eq!(name("cuMemAlloc", 12000, true), Ok("cuMemAlloc_v2"), "it takes no stream");
        assert_eq!(name("cuMemcpyHtoD", 12000, false), Ok("cuMemcpyHtoD_v2"));
        assert_eq!(name("cuMemcpyHtoD", 12000, true), Ok("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(
            name("cuMemcpyHtoD", 6050, true),
            Ok("cuMemcpyHtoD_v2"),
            "before there were threads' streams"
        );
        assert_eq!(name("cuGraphInstantiate", 11030, false), Ok("cuGraphInstantiate_v2"));
        assert_eq!(name("cuGraphInstantiate", 11040, false), Ok("cuGraphInstantiateWithFlags"));
        assert_eq!(name("cuGraphInstantiateWithFlags", 12000, true), Ok("cuGraphInstantiateWithFlags"));
        assert_eq!(name("cuStreamBeginCapture", 10000, true), Ok("cuStreamBeginCapture_ptsz"));
        assert_eq!(name("cuStreamBeginCapture", 12000, true), Ok("cuStreamBeginCapture_v2_ptsz"));
    }

    #[test]
    fn what_is_not_there_says_why() {
        assert_eq!(name("cuGraphCreate", 9000, false), Err(VERSION_NOT_SUFFICIENT));
        assert_eq!(name("cuMemAlloc_v2", 12000, false), Err(SYMBOL_NOT_FOUND), "a base name is wanted");
        assert_eq!(name("cuNothing", 12000, false), Err(SYMBOL_NOT_FOUND));
        assert_eq!(name("", 12000, false), Err(SYMBOL_NOT_FOUND));
        assert_eq!(
            name("cuDeviceGetHostAtomicCapabilities", 12080, false),
            Err(VERSION_NOT_SUFFICIENT),
            "of CUDA 13"
        );
    }

    #[test]
    fn every_function_is_found_by_its_name() {
        let mut names: Vec<&str> = functions().map(|(_, name)| name).collect();
        let mut exported: Vec<&str> = all().map(|entry| entry.name).collect();
        exported.retain(|name| !name.starts_with("warpwright"));
        names.sort_unstable();
        exported.sort_unstable();
        assert_eq!(names, exported);
        for (since, exact) in functions().filter(|(since, _)| *since <= 12080) {
            let (base, is_per_thread) = base(exact);
            assert_eq!(name(base, since, is_per_thread), Ok(exact));
        }
    }
}
