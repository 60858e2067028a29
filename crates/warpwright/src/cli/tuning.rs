//! Options for choosing kernels for a device.

use super::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use warpwright_graph::tuning_file;
use warpwright_kernels::tune::Tuning;

#[derive(clap::Args)]
pub(crate) struct TuningArguments {
    /// A file of measured choices, in the format of `plan --choices`; other choices are estimated [default: the file of
    /// `warpwright tune`]
    #[arg(long, value_name = "FILE", help_heading = "Kernels")]
    tuning: Option<PathBuf>,
    /// Add numbers in an order that is the same for every batch, so that the results of a sequence do not depend on the
    /// sequences computed with it. The size of a prompt's chunks still counts. This is slower
    #[arg(long, help_heading = "Kernels")]
    batch_invariant: bool,
    /// Launch each kernel when the one before it is complete. From sm_90 on a kernel otherwise begins earlier, and waits
    /// where it needs results; they are the same
    #[arg(long, help_heading = "Kernels")]
    no_overlap: bool,
}

impl TuningArguments {
    /// Has kernels be chosen as the options say.
    pub(crate) fn apply(&self, tuning: &mut Tuning) -> Result<(), Failure> {
        tuning.batch_invariant = self.batch_invariant;
        tuning.overlap = !self.no_overlap;
        if let Some(path) = &self.tuning {
            let message =
                |error: &dyn std::fmt::Display| Failure::Message(format!("{}: {error}", path.display()));
            let table = super::qualify::table(path)?;
            // Rows for other devices only would change nothing, without a word.
            let (device, known) = (&tuning.device.name, table.devices().collect::<Vec<_>>());
            if !known.contains(&device.as_str()) {
                let others = if known.is_empty() {
                    "no rows".into()
                } else {
                    format!("rows for {}", known.join(", "))
                };
                return Err(message(&format!("the file has no rows for `{device}`; it has {others}")));
            }
            tuning.measured = Arc::new(table);
        } else if let Some(path) = tuning_file().filter(|path| path.exists()) {
            tuning.measured = Arc::new(super::qualify::table(&path)?);
        }
        Ok(())
    }
}
