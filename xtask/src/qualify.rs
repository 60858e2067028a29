//! `warpwright qualify` on virtual GPUs: on the day there is a GPU, no line of it runs for the first time.

use crate::run::{build_workspace, run, target_dir};
use crate::summary::{SuiteResult, Summary};
use std::path::Path;
use std::process::Command;

/// Runs it on the virtual GPU, and behind the driver.
pub(crate) fn check(summary: &mut Summary) {
    let program = match build_workspace() {
        Ok(folder) => folder.join("warpwright"),
        Err(why) => return summary.add_failure("qualify", &why),
    };
    for (name, driver) in [("qualify, on the virtual GPU", false), ("qualify, through CUDA on it", true)] {
        if driver && !cfg!(target_os = "linux") {
            summary.add_not_run(name, "the CUDA driver API over the virtual GPU is for Linux");
            continue;
        }
        match run(&mut command(&program, driver)) {
            Ok(()) => summary.add(SuiteResult { name: name.into(), ..SuiteResult::default() }),
            Err(why) => summary.add_failure(name, &why),
        }
    }
}

fn command(program: &Path, driver: bool) -> Command {
    let mut command = Command::new(program);
    if driver {
        command.args(["exec", "--"]).arg(program);
    }
    let (device, folder) = if driver { ("cuda:0", "qualify-cuda") } else { ("vm", "qualify-vm") };
    command.args(["qualify", "--quick", "--device", device, "-o"]).arg(target_dir().join(folder));
    command
}
