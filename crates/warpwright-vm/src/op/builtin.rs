//! What the device runtime provides: `vprintf`, `__assertfail`, `malloc`, `free`.

use crate::decode::{Builtin, Decoder};

/// Where an argument is, or where a result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// A variable of the frame.
    Memory(u32),
    /// A row of up to 32 bits.
    Narrow(u32),
    /// A row of 64 bits.
    Wide(u32),
}

/// Emits a call of the runtime.
pub(crate) fn decode(d: &mut Decoder<'_, '_>, builtin: Builtin, _arguments: &[Value], _returns: &[Value]) {
    d.unsupported(&format!("{builtin:?}"), "");
}
