//! Copies of rows, from one element type to another.

use crate::CacheDtype;
use crate::data::eight_bits::BLOCK;
use crate::data::quantized::{Rows, describe};
use crate::entry::{Domain, Entry, Field, THREADS, boxed, check_threads};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;

/// `y = x`, element by element, over `rows × columns`, row-major, each with a pitch of its own: a copy where
/// the types are the same, else a conversion. 16 bytes to a thread where the types, the pitches and `columns`
/// allow; what is between the rows of `y` stays as it is.
///
/// To a smaller type, numbers are rounded to nearest; what is beyond the largest half, infinities included,
/// becomes ±65504, so that no finite number becomes infinite. NaN stays NaN. `q8_0` (rows of the KV cache) is in
/// two buffers, signed bytes and behind them in the argument list their scales, `f16`, one for each 32: from
/// there the result is exact and rounded once; to there it is within 0.57 of its scale, numbers up to
/// 127 · 65504.
#[derive(Clone, Copy, Debug, PartialEq, Eq, warpwright_dsl::KeyPart)]
pub struct Cast {
    /// Elements of a row.
    pub columns: u32,
    /// Element type of `x`.
    pub from: CacheDtype,
    /// Element type of `y`.
    pub to: CacheDtype,
    /// Elements from one row of `x` to the next.
    pub from_pitch: u32,
    /// Elements from one row of `y` to the next.
    pub to_pitch: u32,
    /// Threads of a block: a multiple of 32.
    pub threads: u32,
}

const X: [&str; 2] = ["x", "x_scales"];
const Y: [&str; 2] = ["y", "y_scales"];

impl Cast {
    /// Rows without gaps.
    pub fn new(columns: u32, from: CacheDtype, to: CacheDtype) -> Self {
        Cast { columns, from, to, from_pitch: columns, to_pitch: columns, threads: 256 }
    }

    /// Elements that a thread moves.
    fn vector(&self) -> u32 {
        let together = (self.columns | self.from_pitch | self.to_pitch).trailing_zeros().min(4);
        (1 << together).min(16 / self.from.bytes().max(self.to.bytes())).min(8)
    }
}

impl AnyKernel for Cast {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn key(&self) -> Option<Key> {
        Some(Key::derived(self))
    }

    fn entry(&self) -> String {
        let Cast { columns, from, to, from_pitch, to_pitch, threads } = self;
        format!("cast_{from}_{to}_n{columns}_p{from_pitch}_{to_pitch}_t{threads}")
    }

    fn args(&self) -> Vec<ArgDesc> {
        let rows = Extent::dim("rows");
        let mut args = describe(X, self.from, Role::In, rows.times(self.from_pitch.into()));
        args.extend(describe(Y, self.to, Role::Out, rows.times(self.to_pitch.into())));
        args.push(ArgDesc::scalar::<u32>("rows"));
        args
    }

    fn launch(&self) -> LaunchRule {
        let chunks = u64::from(self.columns / self.vector());
        LaunchRule::new(self.threads).grid(Extent::dim("rows").times(chunks).per(self.threads.max(1).into()))
    }

    fn sizes(&self) -> Vec<(&'static str, SizeValue)> {
        let Cast { columns, from_pitch, to_pitch, .. } = *self;
        [("columns", columns), ("from_pitch", from_pitch), ("to_pitch", to_pitch)]
            .map(|(name, size)| (name, SizeValue::U32(size)))
            .to_vec()
    }

    fn check(&self) -> Result<(), BuildError> {
        let Cast { columns, from, to, from_pitch, to_pitch, threads } = *self;
        if from == CacheDtype::Q8_0 && to == CacheDtype::Q8_0 {
            return Err(BuildError::field("to", to, "floats where the source is q8_0"));
        }
        let granule = if [from, to].contains(&CacheDtype::Q8_0) { BLOCK } else { 1 };
        if !(1..=1 << 24).contains(&columns) || !columns.is_multiple_of(granule) {
            let rule = format!("a multiple of {granule} from 1 to 16777216");
            return Err(BuildError::field("columns", columns, rule));
        }
        for (field, pitch) in [("from_pitch", from_pitch), ("to_pitch", to_pitch)] {
            if pitch < columns || !pitch.is_multiple_of(granule) {
                let rule = format!("a multiple of {granule} from the {columns} columns on");
                return Err(BuildError::field(field, pitch, rule));
            }
        }
        check_threads(threads)
    }

    fn body(&self, k: K<'_>) {
        let (x, y) = (Rows::read_only(k, X, self.from), Rows::parameter(k, Y, self.to));
        let rows = k.scalar::<u32>("rows");
        let [from_pitch, to_pitch] = [("from_pitch", self.from_pitch), ("to_pitch", self.to_pitch)]
            .map(|(name, pitch)| k.size(name, pitch));
        let chunks = k.size("columns", self.columns).reg() / self.vector();
        let chunk = k.global_tid();
        let (row, at) = (chunk / chunks, chunk % chunks * self.vector());
        // All lanes go on, for a scale is made by several.
        let inside = Some(row.lt(rows));
        let numbers = x.row_of(row.to(), from_pitch).load(k, inside, at, self.vector());
        y.row_of(row.to(), to_pitch).store(k, inside, at, &numbers);
    }
}

pub(crate) const ENTRY: Entry = Entry {
    name: "cast",
    doc: "y = x over rows with pitches, from one element type to another; q8_0 is that of the KV cache",
    fields: &[
        Field {
            name: "columns",
            domain: Domain::int(1, 1 << 20),
            default: Some("4096"),
            doc: "elements of a row; with q8_0 a multiple of 32",
        },
        Field {
            name: "from",
            domain: <CacheDtype as FieldValue>::DOMAIN,
            default: Some("f32"),
            doc: "element type of x",
        },
        Field {
            name: "to",
            domain: <CacheDtype as FieldValue>::DOMAIN,
            default: Some("f16"),
            doc: "element type of y",
        },
        Field {
            name: "from_gap",
            domain: Domain::int(0, 1 << 20),
            default: Some("0"),
            doc: "elements between rows of x",
        },
        Field {
            name: "to_gap",
            domain: Domain::int(0, 1 << 20),
            default: Some("0"),
            doc: "elements between rows of y",
        },
        THREADS,
    ],
    examples: &[
        "columns=2048 from=f32 to=bf16",
        "columns=1024 from=f16 to=f32 from_gap=2048",
        "columns=128 from=q8_0 to=f16",
        "columns=128 from=f32 to=q8_0 from_gap=5888",
        "columns=100 from=f16 to=f16 to_gap=28",
        "columns=33 from=bf16 to=f16",
    ],
    make: |config| {
        let columns = config.u32("columns");
        let dtype = |name| CacheDtype::from_name(config.text(name)).unwrap_or(CacheDtype::F32);
        boxed(Cast {
            from_pitch: columns + config.u32("from_gap"),
            to_pitch: columns + config.u32("to_gap"),
            threads: config.u32("threads"),
            ..Cast::new(columns, dtype("from"), dtype("to"))
        })
    },
};
