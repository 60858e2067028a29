//! `cargo xtask bench`: the benchmarks of the workspace, and those against other crates.

use crate::Failure;
use crate::run;

/// Runs the workspace's benchmarks, and with `peers` those of `benches/peers`.
pub(crate) fn run(peers: bool) -> Result<(), Failure> {
    // Only the targets named `bench`: the test harness of the others does not measure.
    run::run(run::cargo().args(["bench", "--workspace", "--bench", "*"])).map_err(Failure::Failed)?;
    if peers {
        let manifest = run::root().join("benches/peers/Cargo.toml");
        run::run(run::cargo().args(["run", "--release", "--manifest-path"]).arg(manifest))
            .map_err(Failure::Failed)?;
    }
    Ok(())
}
