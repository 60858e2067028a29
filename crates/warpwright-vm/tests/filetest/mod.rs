//! How a file of `tests/filetests/vm` says what to run and what to expect.

pub(crate) mod header;
pub(crate) mod run;
pub(crate) mod value;
