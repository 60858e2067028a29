//! A kernel to be measured, with buffers as its contract asks.

use super::{Bench, Failure, numbers};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{ArgDesc, Role};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{AnyBuffer, PreparedLaunch, RuntimeError, Stream};

/// Makes the buffer of an argument; `None` for random numbers.
type Given<'a> = &'a dyn Fn(&Stream, &ArgDesc, u64) -> Result<Option<AnyBuffer>, Failure>;

/// A kernel, and the numbers that its lengths depend on.
pub(crate) struct Subject<'a> {
    pub(crate) kernel: &'a dyn AnyKernel,
    /// Arguments that are numbers, and dimensions.
    pub(crate) numbers: &'a [(&'a str, u64)],
    /// Contents of the buffers that random numbers do not suit, for a seed.
    pub(crate) given: Given<'a>,
}

impl Subject<'_> {
    /// What an argument has elements.
    fn len(&self, arg: &ArgDesc) -> Result<u64, Failure> {
        let known = |name: &str| self.numbers.iter().find(|(known, _)| *known == name).map(|(_, n)| *n);
        arg.len.evaluate(known).ok_or_else(|| format!("the length of `{}` depends on more", arg.name).into())
    }

    /// Bytes of the inputs and outputs: the least that a launch moves.
    pub(crate) fn bytes(&self) -> Result<u64, Failure> {
        let args = self.kernel.args();
        let moved = args.iter().filter(|arg| matches!(arg.role, Role::In | Role::Out));
        moved.map(|arg| Ok(self.len(arg)? * u64::from(arg.dtype.bytes()))).sum()
    }

    /// Launches with buffers of their own, for sets of buffers that are used in turn.
    pub(crate) fn prepare(&self, bench: &Bench<'_>, sets: usize) -> Result<Vec<PreparedLaunch>, Failure> {
        let kernel = bench.device.kernel(self.kernel)?;
        let stream = &bench.stream;
        let prepared = (0..sets as u64).map(|seed| {
            let mut binder = kernel.bind();
            for (i, arg) in (0..).zip(kernel.args()) {
                let len = self.len(arg)?;
                if arg.role == Role::Scalar {
                    binder = binder.scalar(arg.name, u32::try_from(self.number(arg.name)?)?);
                    continue;
                }
                let buffer = match ((self.given)(stream, arg, seed)?, arg.role, arg.dtype) {
                    (Some(given), ..) => given,
                    (None, Role::In, ty) if ty != Type::U32 => numbers(stream, ty, len, 64 * seed + i)?,
                    // Written first, or counters.
                    (None, _, ty) => stream
                        .alloc_zeros::<u8>(usize::try_from(len * u64::from(ty.bytes()))?)?
                        .as_any()
                        .cast(ty)?,
                };
                binder = binder.buffer(arg.name, &buffer);
            }
            for name in kernel.dims() {
                binder = binder.dim(name, self.number(name)?);
            }
            Ok(binder.prepare()?)
        });
        prepared.collect()
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let known = self.numbers.iter().find(|(known, _)| *known == name);
        known.map(|(_, number)| *number).ok_or_else(|| format!("no number is given for `{name}`").into())
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
