//! What stand-ins for NVIDIA's libraries share.
//!
//! A stand-in is a library that a program opens instead of NVIDIA's, and that may ask NVIDIA's for what it does not do
//! itself. `warpwright exec` makes a folder in which the stand-ins have NVIDIA's names ([`FOLDER`]). An auditor of the
//! loader opens a file of that folder where a path leads to NVIDIA's, and leaves a link to the latter there.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

pub use libloading::Library;

/// The variable with the folder in which the stand-ins have the names of the libraries that they stand for.
pub const FOLDER: &str = "WARPWRIGHT_FOLDER";

/// In a path, it says that NVIDIA's own library is wanted.
pub const REAL: &str = "/./";

/// The link in the folder that leads to NVIDIA's library of that name, once a program has asked for it.
pub fn link_to_real(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("real-{name}"))
}

/// Opens NVIDIA's library, by the first of these names under which the program has asked for it.
pub fn open_real(names: &[&str]) -> Option<Library> {
    let folder = PathBuf::from(std::env::var_os(FOLDER)?);
    let mut found =
        names.iter().filter_map(|name| Some((name, link_to_real(&folder, name).read_link().ok()?)));
    let Some((name, path)) = found.next() else {
        note(&format_args!("NVIDIA's {} was not found", names.first().unwrap_or(&"library")));
        return None;
    };
    let mut real: OsString = path.parent()?.into();
    real.push(REAL);
    real.push(name);
    // SAFETY: what the program would have opened itself.
    let library = unsafe { Library::new(&real) };
    library.map_err(|error| note(&format_args!("{}: {error}", path.display()))).ok()
}

/// Writes a note to the user, unless the user wants none.
pub fn note(message: &dyn Display) {
    if std::env::var_os("WARPWRIGHT_LOG").is_none_or(|level| level != "off") {
        eprintln!("warpwright: {message}");
    }
}

/// Exports functions that a library has under another name, or under the same one: `$library` gives the library, and
/// without it, or without the function, the result is `$failure`. Arguments and results are numbers and pointers, whose
/// registers are passed on as they are.
#[macro_export]
macro_rules! passed_on {
    ($library:path, $failure:ident, $($name:ident => $to:literal $args:tt;)*) => {
        $($crate::passed_on! { @ $library, $failure, $name => $to $args })*
    };
    (@ $library:path, $failure:ident, $name:ident => $to:literal($($arg:ident),*)) => {
        #[doc = concat!("Calls `", $to, "`.")]
        ///
        /// # Safety
        ///
        /// As that function says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: usize),*) -> usize {
            type Function = unsafe extern "C" fn($($crate::passed_on!(@ $arg)),*) -> usize;
            let Some(library) = $library() else { return $failure };
            // SAFETY: the function has as many arguments, in registers of that size.
            match unsafe { library.get::<Function>($to) } {
                // SAFETY: the arguments are the program's.
                Ok(function) => unsafe { function($($arg),*) },
                Err(_) => {
                    $crate::note(&concat!("the library that was found has no function ", $to));
                    $failure
                }
            }
        }
    };
    (@ $arg:ident) => { usize };
}
