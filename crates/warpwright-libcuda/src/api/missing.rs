//! Functions of the driver API that this library lacks. Each is exported, so that clients which look up all names at
//! load time find it, and reports that it is not supported. The build takes their names from `functions.txt`.

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

        /// The missing functions.
        pub(super) static ENTRIES: &[&Entry] = &[$(&$name::ENTRY),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/unsupported.rs"));
