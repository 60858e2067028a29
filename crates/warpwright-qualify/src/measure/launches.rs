//! Launches to be measured, with buffers as their contracts ask.

use super::{Bench, Failure, Samples, numbers, planes};
use warpwright_dsl::{ArgDesc, Role};
use warpwright_kernels::tune::Launch;
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, PreparedLaunch, RuntimeError, Stream};
use warpwright_testing::announce_launch;

impl Bench<'_> {
    /// Times a launch, with buffers in turn that do not fit in the L2 cache together. Yields the least bytes that it moves
    /// too.
    pub(crate) fn launches(&self, launch: &Launch, works: usize) -> Result<(Samples, u64), Failure> {
        let bytes = bytes(launch)?;
        let sets = self.sets(bytes);
        let prepared = self.prepare(launch, sets, true)?;
        let works = works.max(sets);
        Ok((self.replayed(works, |stream| Ok(in_turn(stream, &prepared, works)?))?, bytes))
    }

    /// A launch with buffers of its own, as often as there are to be sets of buffers. If they may `overlap`, each begins
    /// before the one in front of it is complete, on devices that can do that. Whoever follows the process is told that
    /// the kernel comes next: nobody sees the replays of a graph.
    pub(crate) fn prepare(
        &self,
        launch: &Launch,
        sets: usize,
        overlap: bool,
    ) -> Result<Vec<PreparedLaunch>, Failure> {
        announce_launch(&launch.kernel.entry());
        let kernel = self.device.kernel(&*launch.kernel)?;
        let args = launch.kernel.args();
        let prepared = (0..sets as u64).map(|set| {
            let mut binder = kernel.bind().dependent(overlap);
            for (place, arg) in (0..).zip(&args) {
                binder = match arg.role {
                    Role::Scalar => binder.scalar(arg.name, u32::try_from(number(launch, arg.name)?)?),
                    _ => binder.buffer(arg.name, self.contents(launch, arg, 64 * set + place)?),
                };
            }
            for name in kernel.dims() {
                binder = binder.dim(name, number(launch, name)?);
            }
            Ok(binder.prepare()?)
        });
        prepared.collect()
    }

    /// The buffer of an argument: weights, random numbers, or zeros for counters and what is written first.
    fn contents(&self, launch: &Launch, arg: &ArgDesc, seed: u64) -> Result<AnyBuffer, Failure> {
        let len = len(launch, arg)?;
        let matrix = arg.name.strip_prefix('w').map(|number| number.parse().unwrap_or(0));
        if let Some(&(format, n, k)) = matrix.and_then(|number: usize| launch.weights.get(number)) {
            let planes = planes(&self.stream, format, n, k, seed)?;
            return Ok(if arg.dtype == Type::U8 { planes } else { planes.cast(arg.dtype)? });
        }
        if arg.role == Role::In && arg.dtype != Type::U32 {
            return numbers(&self.stream, arg.dtype, len, seed);
        }
        let bytes = usize::try_from(len * u64::from(arg.dtype.bytes()))?;
        Ok(self.stream.alloc_zeros::<u8>(bytes)?.as_any().cast(arg.dtype)?)
    }
}

/// Issues launches in turn, `works` of them.
pub(crate) fn in_turn(
    stream: &Stream,
    launches: &[PreparedLaunch],
    works: usize,
) -> Result<(), RuntimeError> {
    launches.iter().cycle().take(works).try_for_each(|launch| stream.launch(launch))
}

/// Bytes of the inputs and outputs: the least that a launch moves.
fn bytes(launch: &Launch) -> Result<u64, Failure> {
    let args = launch.kernel.args();
    let moved = args.iter().filter(|arg| matches!(arg.role, Role::In | Role::Out));
    moved.map(|arg| Ok(len(launch, arg)? * u64::from(arg.dtype.bytes()))).sum()
}

/// Elements of an argument.
fn len(launch: &Launch, arg: &ArgDesc) -> Result<u64, Failure> {
    let len = arg.len.evaluate(|name| number(launch, name).ok());
    len.ok_or_else(|| format!("the length of `{}` depends on a number that is not given", arg.name).into())
}

fn number(launch: &Launch, name: &str) -> Result<u64, Failure> {
    let known = launch.numbers.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number).ok_or_else(|| format!("no number is given for `{name}`").into())
}
