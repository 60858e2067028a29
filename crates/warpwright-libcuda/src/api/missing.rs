//! What the driver API has and this library lacks. Each is a function that says so: clients that look all names up
//! when they load the library find them. The build takes their names from `functions.txt`.

use super::Entry;
use crate::report::log;
use crate::types::Status;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            mod $name {
                pub(super) static ENTRY: super::Entry =
                    super::Entry::new(stringify!($name), super::$name as *const (), false);
            }

            // The parameters do not matter: whoever calls puts them where C has them, and takes them away.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> Status {
                $name::ENTRY.call(|| {
                    log::missing(stringify!($name));
                    Err(Status::NOT_SUPPORTED)
                })
            }
        )*

        /// The functions that are missing.
        pub(super) static ENTRIES: &[&Entry] = &[$(&$name::ENTRY),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/unsupported.rs"));
