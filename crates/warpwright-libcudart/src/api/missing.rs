//! The functions that are not offered: each says so, by name.

use crate::error::Error;
use crate::log;

/// Exports functions that are not supported, whatever they are given.
macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Not supported.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> ::std::ffi::c_int {
            super::call(super::c_name!($name), || {
                log::note(&format_args!("{} is not supported", stringify!($name)));
                Err(Error::NOT_SUPPORTED)
            })
        }
    )*};
}

include!(concat!(env!("OUT_DIR"), "/unsupported.rs"));
