//! What a stream captures, graphs, and graphs that were made ready to run.

use crate::code::Launch;
use crate::engine::{Op, Stream};
use crate::types::Result;
use std::sync::Arc;

/// Launches a kernel on a stream.
pub(crate) fn launch(stream: &Arc<Stream>, launch: Launch) -> Result<()> {
    stream.submit(Op::Launch(Arc::new(launch)))
}
