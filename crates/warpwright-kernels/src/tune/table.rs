//! Measured choices, as text.

use super::{
    AttentionShape, DeviceModel, FlashShape, GemmShape, GemvShape, Launch, RopeShape, ScheduleShape, Shape,
};
use crate::entry::{ConfigureError, values};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use warpwright_dsl::{Config, Configure, Field};

/// Choices by device and shape: measurements, or overrides of an estimate.
///
/// The rows below a device's name apply to that device. A row has the fields of a [`Shape`], without those at their
/// defaults, and the fields of its choice.
///
/// ```
/// use warpwright_kernels::tune::Table;
///
/// let table = Table::parse(
///     "# A comment.
///     [NVIDIA H200]
///     gemv n=4096 k=14336 -> warps=8 rows=4
///     gemm n=4096 k=14336 terms=2 tokens=512 -> rows=128 columns=128
///     attention heads=32 kv_heads=8 head_dim=128 length=131072 -> splits=64
///     flash heads=32 kv_heads=8 head_dim=128 tokens=512 -> rows=64 keys=32
///     rope heads=48 tokens=4096 -> rounds=4
///     schedule -> large=4194304 round=2048",
/// )?;
/// assert_eq!(table.devices().collect::<Vec<_>>(), ["NVIDIA H200"]);
/// # Ok::<(), warpwright_kernels::tune::TableError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// By device, the shape and its choice in the texts of their fields.
    rows: BTreeMap<(String, Row), Texts>,
}

/// The values of fields.
type Texts = Vec<String>;

/// The name of a shape, and the values of its fields.
type Row = (&'static str, Texts);

/// Why a text is not a valid table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: TableProblem,
}

/// What is wrong with a line of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TableProblem {
    /// The line is before the first `[device]`.
    NoDevice,
    /// The line begins with `[` and does not end with `]`.
    Unclosed,
    /// The line has no `->` between a shape and a choice.
    NoArrow,
    /// There is no shape of this name.
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// A field or its value is wrong, or the kernel does not accept the choice.
    Field(ConfigureError),
    /// The shape already has a row.
    Twice,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.problem {
            TableProblem::NoDevice => write!(f, "no `[name of a device]` stands above the row"),
            TableProblem::Unclosed => write!(f, "the name of a device ends with `]`"),
            TableProblem::NoArrow => write!(f, "a row is `shape field=value … -> field=value …`"),
            TableProblem::Unknown { name, known } => {
                write!(f, "nothing is chosen for `{name}`; there are {}", known.join(", "))
            }
            TableProblem::Field(error) => error.fmt(f),
            TableProblem::Twice => write!(f, "the device has a row for this shape already"),
        }
    }
}

impl std::error::Error for TableError {}

/// A kind of row.
struct Kind {
    name: &'static str,
    /// The fields of the shape, and those of the choice.
    shape: &'static [Field],
    choice: &'static [Field],
    /// The row of a shape and a choice, in the texts of all fields.
    row: fn(&str, &str) -> Result<[Texts; 2], ConfigureError>,
    /// The choices of a shape, the estimated one first, with their launches.
    space: fn(&Texts, &DeviceModel) -> Vec<(Texts, Launch)>,
}

/// A shape of a [`Table`] and the choices that it may have.
pub struct Space {
    /// The shape, as in a row before the arrow.
    pub shape: String,
    /// The choices, the estimated one first.
    pub candidates: Vec<Candidate>,
}

/// A choice that may be the best one.
pub struct Candidate {
    /// The choice, as in a row behind the arrow.
    pub choice: String,
    /// The launch to measure it by.
    pub launch: Launch,
}

impl Kind {
    const fn of<S: Shape>() -> Self {
        Kind {
            name: S::NAME,
            shape: S::FIELDS,
            choice: <S::Choice as Config>::FIELDS,
            row: |shape, choice| {
                let shape: S = parse(S::NAME, shape)?;
                let choice = parse(S::NAME, choice)?;
                shape.check(&choice)?;
                Ok([shape.texts(), choice.texts()])
            },
            space: |shape, device| {
                let shape = S::from_texts(&shape.iter().map(String::as_str).collect::<Vec<_>>());
                let Ok(shape) = shape else { return Vec::new() };
                let runs = |launch: &Launch| launch.kernel.launch().min_sm <= device.arch.sm;
                let mut all: Vec<(Texts, Launch)> = Vec::new();
                for choice in std::iter::once(shape.estimate(device)).chain(shape.space()) {
                    let Some(launch) = shape.launch(&choice).filter(runs) else { continue };
                    let texts = choice.texts();
                    if shape.check(&choice).is_ok() && all.iter().all(|(known, _)| *known != texts) {
                        all.push((texts, launch));
                    }
                }
                all
            },
        }
    }

    /// The fields of a shape, without those at their defaults.
    fn shape_text(&self, shape: &Texts) -> String {
        let fields = self.shape.iter().zip(shape).filter(|(field, value)| field.default != Some(value));
        let fields = fields.map(|(field, value)| format!(" {}={value}", field.name));
        std::iter::once(self.name.to_owned()).chain(fields).collect()
    }

    /// The fields of a choice.
    fn choice_text(&self, choice: &Texts) -> String {
        let fields = self.choice.iter().zip(choice).map(|(field, value)| format!("{}={value}", field.name));
        fields.collect::<Vec<_>>().join(" ")
    }
}

fn parse<T: Configure>(name: &'static str, text: &str) -> Result<T, ConfigureError> {
    Ok(T::from_texts(&values(name, T::FIELDS, text.split_whitespace())?)?)
}

const KINDS: &[Kind] = &[
    Kind::of::<GemvShape>(),
    Kind::of::<GemmShape>(),
    Kind::of::<AttentionShape>(),
    Kind::of::<FlashShape>(),
    Kind::of::<RopeShape>(),
    Kind::of::<ScheduleShape>(),
];

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The first line that is invalid, or whose choice the kernel does not accept.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let (mut table, mut device) = (Table::default(), None);
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                device = Some(name.trim().to_owned());
            } else if line.starts_with('[') {
                return Err(TableError { line: i + 1, problem: TableProblem::Unclosed });
            } else if !line.is_empty() {
                let added = device.as_ref().ok_or(TableProblem::NoDevice);
                let added = added.and_then(|device| table.add(device, line));
                added.map_err(|problem| TableError { line: i + 1, problem })?;
            }
        }
        Ok(table)
    }

    /// Adds a row.
    fn add(&mut self, device: &str, line: &str) -> Result<(), TableProblem> {
        let (shape, choice) = line.split_once("->").ok_or(TableProblem::NoArrow)?;
        let (name, shape) = shape.trim().split_once(' ').unwrap_or((shape.trim(), ""));
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| TableProblem::Unknown {
            name: name.into(),
            known: KINDS.iter().map(|kind| kind.name).collect(),
        })?;
        let [shape, choice] = (kind.row)(shape, choice).map_err(TableProblem::Field)?;
        match self.rows.insert((device.into(), (kind.name, shape)), choice) {
            None => Ok(()),
            Some(_) => Err(TableProblem::Twice),
        }
    }

    /// Sets the choice for a shape on a device.
    pub fn set<S: Shape>(&mut self, device: &str, shape: &S, choice: &S::Choice) {
        self.rows.insert((device.into(), (S::NAME, shape.texts())), choice.texts());
    }

    /// The choice for a shape on a device, if the table has a row for it.
    pub fn get<S: Shape>(&self, device: &DeviceModel, shape: &S) -> Option<S::Choice> {
        if self.rows.is_empty() {
            return None;
        }
        let texts = self.rows.get(&(device.name.clone(), (S::NAME, shape.texts())))?;
        S::Choice::from_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>()).ok()
    }

    /// The shapes of all rows, with the choices that they may have on a device. Shapes that a single launch does not tell
    /// the best choice of are left out.
    pub fn spaces(&self, device: &DeviceModel) -> Vec<Space> {
        let shapes: BTreeSet<&Row> = self.rows.keys().map(|(_, row)| row).collect();
        let spaces = shapes.into_iter().filter_map(|(name, shape)| {
            let kind = KINDS.iter().find(|kind| kind.name == *name)?;
            let candidates = (kind.space)(shape, device).into_iter();
            let candidates = candidates
                .map(|(texts, launch)| Candidate { choice: kind.choice_text(&texts), launch })
                .collect();
            Some(Space { shape: kind.shape_text(shape), candidates })
        });
        spaces.filter(|space| !space.candidates.is_empty()).collect()
    }

    /// Takes over all rows of another table, in place of rows for the same shapes.
    pub fn merge(&mut self, other: Table) {
        self.rows.extend(other.rows);
    }

    /// The names of the devices that have rows, each once.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.rows
            .keys()
            .map(|(device, _)| device.as_str())
            .filter(move |&device| last.replace(device) != Some(device))
    }
}

/// The text that [`parse`](Table::parse) reads.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = None;
        for ((device, (name, shape)), choice) in &self.rows {
            if last != Some(device) {
                writeln!(f, "[{device}]")?;
                last = Some(device);
            }
            let Some(kind) = KINDS.iter().find(|kind| kind.name == *name) else { continue };
            writeln!(f, "{} -> {}", kind.shape_text(shape), kind.choice_text(choice))?;
        }
        Ok(())
    }
}
