//! The catalogue: every kernel by name, with its fields, for tools that know kernels as text.

use crate::{Matmul, MatmulTiled, RmsNorm, Softmax, Transpose, VectorAdd};
use std::fmt;
use warpwright_ptx::dsl::{Bf16, F16, Kernel};

/// A kernel of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its configuration.
    pub fields: &'static [Field],
    make: fn(&Config) -> Result<Box<dyn Kernel>, BuildError>,
}

/// A field of a kernel's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type: `u32`, `f32` or `dtype`.
    pub ty: &'static str,
    /// The value where none is given.
    pub default: &'static str,
    /// The values that it may have.
    pub domain: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// A configuration that a kernel does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No kernel has that name.
    UnknownKernel(String),
    /// An assignment that is not `field=value`.
    Syntax(String),
    /// The kernel has no such field.
    UnknownField {
        /// The kernel.
        kernel: &'static str,
        /// The name that was given.
        field: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// A field was given twice.
    Twice(String),
    /// A value that the field may not have.
    Domain {
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: String,
        /// The values that it may have.
        domain: &'static str,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::UnknownKernel(name) => {
                let known: Vec<_> = catalogue().iter().map(|entry| entry.name).collect();
                write!(f, "no kernel is named `{name}`; there are {}", known.join(", "))
            }
            BuildError::Syntax(text) => write!(f, "`{text}` is not of the form `field=value`"),
            BuildError::UnknownField { kernel, field, known } => {
                write!(f, "`{kernel}` has no field `{field}`; it has {}", known.join(", "))
            }
            BuildError::Twice(field) => write!(f, "the field `{field}` is given twice"),
            BuildError::Domain { field, value, domain } => {
                write!(f, "`{field}` cannot be `{value}`: it must be {domain}")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Values of the fields, defaults filled in.
struct Config {
    fields: &'static [Field],
    values: Vec<String>,
}

impl Config {
    fn text(&self, name: &'static str) -> (&Field, &str) {
        let i = self.fields.iter().position(|field| field.name == name).unwrap_or(0);
        (&self.fields[i], &self.values[i])
    }

    fn wrong(&self, name: &'static str) -> BuildError {
        let (field, value) = self.text(name);
        BuildError::Domain { field: field.name, value: value.into(), domain: field.domain }
    }

    fn u32(&self, name: &'static str, allowed: impl Fn(u32) -> bool) -> Result<u32, BuildError> {
        let value = self.text(name).1.parse().ok().filter(|&value| allowed(value));
        value.ok_or_else(|| self.wrong(name))
    }

    fn f32(&self, name: &'static str, allowed: impl Fn(f32) -> bool) -> Result<f32, BuildError> {
        let value = self.text(name).1.parse().ok().filter(|&value| allowed(value));
        value.ok_or_else(|| self.wrong(name))
    }
}

/// Picks the type for the field `dtype`.
macro_rules! by_dtype {
    ($config:expr, $make:ident) => {
        match $config.text("dtype").1 {
            "f32" => $make!(f32),
            "f16" => $make!(F16),
            "bf16" => $make!(Bf16),
            _ => return Err($config.wrong("dtype")),
        }
    };
}

const DTYPE: Field = Field {
    name: "dtype",
    ty: "dtype",
    default: "f32",
    domain: "f32, f16 or bf16",
    doc: "element type of the buffers",
};

const THREADS: Field = Field {
    name: "threads",
    ty: "u32",
    default: "256",
    domain: "a multiple of 32 from 32 to 1024",
    doc: "threads of a block",
};

const ROW: Field =
    Field { name: "d", ty: "u32", default: "4096", domain: "from 1 to 1048576", doc: "length of a row" };

const N: Field =
    Field { name: "n", ty: "u32", default: "4096", domain: "from 1 to 1048576", doc: "columns of b and c" };

const INNER: Field = Field {
    name: "k",
    ty: "u32",
    default: "4096",
    domain: "from 1 to 1048576",
    doc: "columns of a, rows of b",
};

fn product(config: &Config) -> Result<(u32, u32), BuildError> {
    let side = |name| config.u32(name, |side| (1..=1 << 20).contains(&side));
    Ok((side("n")?, side("k")?))
}

fn threads(config: &Config) -> Result<u32, BuildError> {
    config.u32("threads", |n| n % 32 == 0 && (32..=1024).contains(&n))
}

fn row(config: &Config) -> Result<u32, BuildError> {
    config.u32("d", |d| (1..=1 << 20).contains(&d))
}

const ENTRIES: &[Entry] = &[
    Entry {
        name: "vector_add",
        doc: "z = x + y, one element per thread",
        fields: &[DTYPE, THREADS],
        make: |config| {
            let threads = threads(config)?;
            macro_rules! make {
                ($ty:ty) => {
                    Box::new(VectorAdd::<$ty>::new(threads))
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
    Entry {
        name: "rms_norm",
        doc: "y = x * rsqrt(mean(x^2) + epsilon) * w over rows, one block per row",
        fields: &[
            DTYPE,
            ROW,
            Field {
                name: "epsilon",
                ty: "f32",
                default: "1e-5",
                domain: "a positive number up to 1",
                doc: "added to the mean square",
            },
            THREADS,
        ],
        make: |config| {
            let (d, threads) = (row(config)?, threads(config)?);
            let epsilon = config.f32("epsilon", |e| e > 0.0 && e <= 1.0)?;
            macro_rules! make {
                ($ty:ty) => {
                    Box::new(RmsNorm::<$ty> { threads, ..RmsNorm::new(d, epsilon) })
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
    Entry {
        name: "transpose",
        doc: "y = transpose(x), by tiles of 32 x 32 in shared memory",
        fields: &[
            DTYPE,
            Field { name: "rows", ty: "u32", default: "1024", domain: "from 1 to 65536", doc: "rows of x" },
            Field {
                name: "columns",
                ty: "u32",
                default: "1024",
                domain: "from 1 to 65535",
                doc: "columns of x",
            },
        ],
        make: |config| {
            let rows = config.u32("rows", |n| (1..=1 << 16).contains(&n))?;
            let columns = config.u32("columns", |n| (1..1 << 16).contains(&n))?;
            macro_rules! make {
                ($ty:ty) => {
                    Box::new(Transpose::<$ty>::new(rows, columns))
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
    Entry {
        name: "softmax",
        doc: "y = exp(x) / sum(exp(x)) over rows, one block per row",
        fields: &[DTYPE, ROW, THREADS],
        make: |config| {
            let (d, threads) = (row(config)?, threads(config)?);
            macro_rules! make {
                ($ty:ty) => {
                    Box::new(Softmax::<$ty> { threads, ..Softmax::new(d) })
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
    Entry {
        name: "matmul_tiled",
        doc: "c = a * b, by tiles in shared memory, added in f32",
        fields: &[DTYPE, N, INNER],
        make: |config| {
            let (n, k) = product(config)?;
            macro_rules! make {
                ($ty:ty) => {
                    Box::new(MatmulTiled::<$ty>::new(n, k))
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
    Entry {
        name: "matmul",
        doc: "c = a * b on the tensor cores, added in f32",
        fields: &[
            Field {
                name: "dtype",
                ty: "dtype",
                default: "f16",
                domain: "f16, or from sm_80 on bf16 or f32",
                doc: "element type of a and b; f32 is rounded to tf32",
            },
            Field {
                name: "out",
                ty: "dtype",
                default: "f32",
                domain: "f32, f16 or bf16",
                doc: "element type of c",
            },
            N,
            INNER,
            Field {
                name: "stages",
                ty: "u32",
                default: "2",
                domain: "from 1 to 3",
                doc: "tiles of a and b in shared memory at a time",
            },
            Field {
                name: "warps_down",
                ty: "u32",
                default: "2",
                domain: "1 or 2",
                doc: "warps of a block along the rows of c, 64 each",
            },
            Field {
                name: "warps_across",
                ty: "u32",
                default: "4",
                domain: "from 1 to 4",
                doc: "warps of a block along the columns of c, 32 each",
            },
        ],
        make: |config| {
            let (n, k) = product(config)?;
            let stages = config.u32("stages", |stages| (1..=3).contains(&stages))?;
            let down = config.u32("warps_down", |warps| (1..=2).contains(&warps))?;
            let across = config.u32("warps_across", |warps| (1..=4).contains(&warps))?;
            let warps = [down, across];
            macro_rules! make {
                ($ty:ty) => {
                    match config.text("out").1 {
                        "f32" => Box::new(Matmul::<$ty, f32> { stages, warps, ..Matmul::new(n, k) })
                            as Box<dyn Kernel>,
                        "f16" => Box::new(Matmul::<$ty, F16> { stages, warps, ..Matmul::new(n, k) }),
                        "bf16" => Box::new(Matmul::<$ty, Bf16> { stages, warps, ..Matmul::new(n, k) }),
                        _ => return Err(config.wrong("out")),
                    }
                };
            }
            Ok(by_dtype!(config, make))
        },
    },
];

/// Every kernel.
pub fn catalogue() -> &'static [Entry] {
    ENTRIES
}

/// The kernel of that name.
pub fn find(name: &str) -> Result<&'static Entry, BuildError> {
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    entry.ok_or_else(|| BuildError::UnknownKernel(name.into()))
}

impl Entry {
    /// The kernel with the fields that are given as `field=value`, the others at their defaults.
    pub fn configure<'a>(
        &self,
        assignments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Box<dyn Kernel>, BuildError> {
        let mut given = vec![None; self.fields.len()];
        for assignment in assignments {
            let (name, value) =
                assignment.split_once('=').ok_or_else(|| BuildError::Syntax(assignment.into()))?;
            let field = self.fields.iter().position(|field| field.name == name).ok_or_else(|| {
                BuildError::UnknownField {
                    kernel: self.name,
                    field: name.into(),
                    known: self.fields.iter().map(|field| field.name).collect(),
                }
            })?;
            if given[field].replace(value.to_string()).is_some() {
                return Err(BuildError::Twice(name.into()));
            }
        }
        let values = (given.into_iter().zip(self.fields))
            .map(|(value, field)| value.unwrap_or_else(|| field.default.into()))
            .collect();
        (self.make)(&Config { fields: self.fields, values })
    }
}
