//! The library as programs see it: its functions by name, and images as compilers emit them.

use libloading::Library;
use std::ffi::c_void;
use std::path::PathBuf;

/// The library that cargo has built beside this test.
pub(crate) fn file() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    test.with_file_name("libwarpwright_cudart.so")
}

/// The library under its own name, or under the name of a major version's.
pub(crate) fn load(name: Option<&str>) -> Library {
    let path = match name {
        None => file(),
        Some(name) => {
            let folder = std::env::temp_dir().join(format!("warpwright-cudart-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            let link = folder.join(name);
            std::os::unix::fs::symlink(file(), &link).expect("a link");
            link
        }
    };
    // SAFETY: what the library does when it is loaded is to be there.
    let library = unsafe { Library::new(&path) }.expect("the library loads");
    if name.is_some() {
        std::fs::remove_dir_all(path.parent().expect("a folder")).expect("the folder was made here");
    }
    library
}

/// The address of a function.
pub(crate) fn symbol(library: &Library, name: &str) -> Option<*mut c_void> {
    // SAFETY: the symbol is looked at, and the library stays: nothing unloads it.
    unsafe { library.get::<*mut c_void>(name.as_bytes()).ok().and_then(|symbol| symbol.try_as_raw_ptr()) }
}

/// Calls a function of the library, whose result is an error unless another type is named. The arguments must have the
/// types that the interface declares.
macro_rules! call {
    ($library:ident.$name:ident($($arg:expr),* $(,)?)) => {
        $crate::common::call!(std::ffi::c_int; $library.$name($($arg),*))
    };
    ($result:ty; $library:ident.$name:ident($($arg:expr),* $(,)?)) => {{
        let address = $crate::common::symbol(&$library, stringify!($name)).expect(stringify!($name));
        // SAFETY: the caller passes what the interface declares, and pointers to values that live long enough.
        unsafe {
            let function: unsafe extern "C" fn($($crate::common::any!($arg)),*) -> $result =
                std::mem::transmute(address);
            function($($arg),*)
        }
    }};
}

/// A type to be inferred, for each argument.
macro_rules! any {
    ($arg:expr) => {
        _
    };
}

pub(crate) use {any, call};

/// The kinds of entries of a fat binary.
pub(crate) const PTX: u16 = 1;
pub(crate) const MACHINE_CODE: u16 = 2;

/// A fat binary with one entry for `sm_80`, and the wrapper around it that host code registers.
pub(crate) struct Image {
    container: Vec<u64>,
    wrapper: [u64; 3],
}

impl Image {
    pub(crate) fn new(kind: u16, payload: &[u8]) -> Box<Image> {
        const HEADER: usize = 16;
        const ENTRY: usize = 64;
        let padded = payload.len().next_multiple_of(8);
        let mut bytes = vec![0; HEADER + ENTRY + padded];
        let mut set = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        set(0, &0xba55_ed50_u32.to_le_bytes());
        set(4, &1u16.to_le_bytes());
        set(6, &(HEADER as u16).to_le_bytes());
        set(8, &((ENTRY + padded) as u64).to_le_bytes());
        set(HEADER, &kind.to_le_bytes());
        set(HEADER + 4, &(ENTRY as u32).to_le_bytes());
        set(HEADER + 8, &(padded as u64).to_le_bytes());
        set(HEADER + 28, &80u32.to_le_bytes());
        set(HEADER + ENTRY, payload);
        let words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut image = Box::new(Image { container: words.collect(), wrapper: [0; 3] });
        image.wrapper[0] = 0x4662_43b1 | 1 << 32;
        image.wrapper[1] = image.container.as_ptr().expose_provenance() as u64;
        image
    }

    /// What is registered.
    pub(crate) fn wrapper(&self) -> *const u64 {
        self.wrapper.as_ptr()
    }
}
