//! `cargo xtask bench`: the benchmarks of the workspace, and those against other crates.

use crate::run;

/// Runs the workspace's benchmarks, and with `peers` those of `benches/peers`.
pub(crate) fn run(peers: bool) -> Result<(), String> {
    // Only the targets named `bench`: the test harness of the others does not measure.
    run::run(run::cargo().args(["bench", "--workspace", "--bench", "*"]))?;
    if peers {
        let manifest = run::root().join("benches/peers/Cargo.toml");
        run::run(run::cargo().args(["run", "--release", "--manifest-path"]).arg(manifest))?;
    }
    Ok(())
}
