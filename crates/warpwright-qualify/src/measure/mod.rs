//! Times of launches, by events of the device.
//!
//! Work is captured as a graph and replayed, so that the host's time does not count, or issued launch by launch, so that
//! it does. A sample is long enough for the clock; a figure is the median of several samples.

mod launches;
mod memory;
pub(crate) mod probes;

pub(crate) use launches::in_turn;
use memory::planes;
pub(crate) use memory::{numbers, weights};

use crate::event::Figure;
use std::time::Duration;
use warpwright_runtime::{Device, Stream};

/// Why a measurement could not be made.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the names of virtual GPUs say, behind a driver too.
pub(crate) const VIRTUAL: &str = "virtual GPU";

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// For virtual GPUs: every line once, at sizes that take them a moment.
    Tiny,
    /// The cases that matter most.
    Quick,
    /// Everything.
    Full,
}

impl Size {
    /// What suits a device. The virtual GPU behind a driver says what it is in its name.
    pub(crate) fn of(device: &Device, quick: bool) -> Self {
        let is_virtual = device.is_virtual() || device.properties().name.contains(VIRTUAL);
        match (is_virtual, quick) {
            (true, _) => Size::Tiny,
            (false, true) => Size::Quick,
            (false, false) => Size::Full,
        }
    }

    /// One of three, by the size.
    pub(crate) fn pick<T>(self, tiny: T, quick: T, full: T) -> T {
        match self {
            Size::Tiny => tiny,
            Size::Quick => quick,
            Size::Full => full,
        }
    }
}

/// Measures on a device.
pub(crate) struct Bench<'a> {
    pub(crate) device: &'a Device,
    pub(crate) stream: Stream,
    pub(crate) size: Size,
}

/// The shortest sample that the clock of a device measures to a thousandth.
const SAMPLE: Duration = Duration::from_millis(2);

/// The most replays in a sample.
const REPLAYS: usize = 10_000;

impl<'a> Bench<'a> {
    pub(crate) fn new(device: &'a Device, size: Size) -> Self {
        Bench { device, stream: device.default_stream(), size }
    }

    /// Number of samples of a figure.
    fn samples(&self) -> usize {
        self.size.pick(2, 7, 15)
    }

    /// Seconds of one of `works` equal pieces of work that `issue` puts on the stream, where a graph replays them all.
    pub(crate) fn replayed(
        &self,
        works: usize,
        issue: impl FnOnce(&Stream) -> Result<(), Failure>,
    ) -> Result<Samples, Failure> {
        self.stream.begin_capture()?;
        let issued = issue(&self.stream);
        let graph = self.stream.end_capture()?;
        issued?;
        let exec = graph.instantiate()?;
        self.repeated(works, || Ok(exec.launch(&self.stream)?))
    }

    /// Seconds of one of the `works` pieces of work that each call of `round` puts on the stream.
    pub(crate) fn repeated(
        &self,
        works: usize,
        mut round: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Samples, Failure> {
        let mut timed = |rounds: usize| {
            let before = self.stream.record_event()?;
            (0..rounds).try_for_each(|_| round())?;
            let after = self.stream.record_event()?;
            self.stream.synchronize()?;
            Ok::<_, Failure>(after.elapsed(&before)?)
        };
        // The first round loads code and fills caches; the second says how many make a sample.
        timed(1)?;
        let once = timed(1)?.max(Duration::from_nanos(1));
        let rounds = match self.size {
            Size::Tiny => 1,
            Size::Quick | Size::Full => {
                (SAMPLE.as_nanos().div_ceil(once.as_nanos()) as usize).clamp(1, REPLAYS)
            }
        };
        let per_work = (rounds * works.max(1)) as f64;
        let samples = (0..self.samples()).map(|_| Ok(timed(rounds)?.as_secs_f64() / per_work));
        Ok(Samples(samples.collect::<Result<_, Failure>>()?))
    }

    /// Sets of buffers of this many bytes that, used in turn, find nothing in the L2 cache.
    pub(crate) fn sets(&self, bytes: u64) -> usize {
        let properties = self.device.properties();
        let l2 = properties.l2_cache.unwrap_or(64 << 20);
        let wanted = (3 * l2).div_ceil(bytes.max(1)).clamp(2, 64);
        let fitting = (properties.memory / 4 / bytes.max(1)).max(1);
        self.size.pick(2, wanted.min(fitting), wanted.min(fitting)) as usize
    }
}

/// Seconds, of several measurements of the same work.
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    /// The figure. `bytes` and `operations` are the least that the work has to move and to compute.
    pub(crate) fn figure(
        self,
        name: impl Into<String>,
        bytes: Option<u64>,
        operations: Option<u64>,
    ) -> Figure {
        let mut sorted = self.0;
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            // Between the two samples that are nearest to that place.
            let place = share * (sorted.len().max(1) - 1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            match (sorted.get(below), sorted.get(above)) {
                (Some(a), Some(b)) => a + (b - a) * place.fract(),
                _ => 0.0,
            }
        };
        Figure {
            name: name.into(),
            unit: "s".into(),
            median: at(0.5),
            quartiles: (at(0.25), at(0.75)),
            repetitions: sorted.len(),
            bytes,
            operations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn a_figure_is_the_median_and_the_middle_half() {
        for (samples, median, quartiles) in [
            (vec![3.0], 3.0, (3.0, 3.0)),
            (vec![4.0, 2.0], 3.0, (2.5, 3.5)),
            (vec![5.0, 1.0, 3.0, 2.0, 100.0], 3.0, (2.0, 5.0)),
            (vec![], 0.0, (0.0, 0.0)),
        ] {
            let figure = Samples(samples.clone()).figure("x", Some(1), None);
            assert_eq!((figure.median, figure.quartiles), (median, quartiles), "{samples:?}");
            assert_eq!(figure.repetitions, samples.len());
        }
    }
}
