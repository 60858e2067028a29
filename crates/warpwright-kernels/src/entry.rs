//! Kernels as text: what an entry of the catalogue says of a kernel, and how assignments of text become its
//! configuration.
//!
//! Values are judged against the [`Domain`] of their field, and the kernel they make by its own
//! [`check`](warpwright_dsl::Kernel::check).

use std::fmt;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{BuildError, Configure, FieldValue, Kernel};
pub(crate) use warpwright_dsl::{Domain, Field};

/// A kernel of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its configuration.
    pub fields: &'static [Field],
    /// Configurations of real models and at the edges, as assignments with spaces between them.
    pub examples: &'static [&'static str],
    /// The kernel of the values of all fields, each in its domain.
    pub(crate) make: fn(&[&str]) -> Result<Made, BuildError>,
}

/// A kernel that was made of text.
pub(crate) type Made = Box<dyn AnyKernel + Send + Sync>;

pub(crate) fn made(kernel: impl AnyKernel + Send + Sync + 'static) -> Made {
    Box::new(kernel)
}

impl Entry {
    /// The entry of a kernel whose configuration says all.
    pub(crate) const fn of<T: Configure + Kernel + Send + Sync>() -> Self {
        Entry {
            name: T::NAME,
            doc: T::DOC,
            fields: T::FIELDS,
            examples: T::EXAMPLES,
            make: |values| T::from_texts(values).map(made),
        }
    }
}

impl Entry {
    /// The entry of a kernel whose configuration has other forms in Rust: its fields are those of `F`.
    pub(crate) const fn via<F, T>() -> Self
    where
        F: Configure,
        T: TryFrom<F> + Kernel + Send + Sync,
        BuildError: From<T::Error>,
    {
        Entry {
            name: F::NAME,
            doc: F::DOC,
            fields: F::FIELDS,
            examples: F::EXAMPLES,
            make: |values| T::try_from(F::from_texts(values)?).map(made).map_err(BuildError::from),
        }
    }
}

/// Why there is no kernel for a name and its assignments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConfigureError {
    /// No kernel has that name.
    UnknownKernel {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
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
    /// A field that has no default was not given.
    Missing(&'static str),
    /// A value that the kernel does not take.
    Build(BuildError),
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigureError::UnknownKernel { name, known } => {
                write!(f, "no kernel is named `{name}`; there are {}", known.join(", "))
            }
            ConfigureError::Syntax(text) => write!(f, "`{text}` is not of the form `field=value`"),
            ConfigureError::UnknownField { kernel, field, known } => {
                write!(f, "`{kernel}` has no field `{field}`; it has {}", known.join(", "))
            }
            ConfigureError::Missing(field) => {
                write!(f, "the field `{field}` has no default: give it a value")
            }
            ConfigureError::Twice(field) => write!(f, "the field `{field}` is given twice"),
            ConfigureError::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigureError {}

impl From<BuildError> for ConfigureError {
    fn from(error: BuildError) -> Self {
        ConfigureError::Build(error)
    }
}

/// Picks the type parameter for the name of an element type.
macro_rules! by_dtype {
    ($dtype:expr, $make:ident) => {
        match $crate::Dtype::from_name($dtype) {
            Some($crate::Dtype::F32) => $make!(f32),
            Some($crate::Dtype::F16) => $make!(::warpwright_dsl::F16),
            Some($crate::Dtype::Bf16) => $make!(::warpwright_dsl::Bf16),
            None => Err(::warpwright_dsl::BuildError::field("dtype", $dtype, "f32, f16 or bf16")),
        }
    };
}
pub(crate) use by_dtype;

/// The entry of a kernel with one type parameter: its element type is a field before the others.
macro_rules! of_element {
    ($kernel:ident) => {
        $crate::Entry {
            name: <$kernel<f32> as ::warpwright_dsl::Config>::NAME,
            doc: <$kernel<f32> as ::warpwright_dsl::Config>::DOC,
            fields: &{
                const OWN: &[::warpwright_dsl::Field] = <$kernel<f32> as ::warpwright_dsl::Config>::FIELDS;
                let mut fields = [$crate::entry::DTYPE; OWN.len() + 1];
                fields.split_at_mut(1).1.copy_from_slice(OWN);
                fields
            },
            examples: <$kernel<f32> as ::warpwright_dsl::Configure>::EXAMPLES,
            make: |values| {
                macro_rules! make {
                    ($ty:ty) => {
                        <$kernel<$ty> as ::warpwright_dsl::Configure>::from_texts(&values[1..])
                            .map($crate::entry::made)
                    };
                }
                $crate::entry::by_dtype!(values[0], make)
            },
        }
    };
}
pub(crate) use of_element;

/// Element types of floats.
pub(crate) const DTYPES: Domain = <crate::Dtype as FieldValue>::DOMAIN;

/// The field of kernels with one element type.
pub(crate) const DTYPE: Field =
    Field { name: "dtype", domain: DTYPES, default: Some("f32"), doc: "element type of the buffers" };

/// The values of fields: those that are given as `field=value`, each in its domain, and the defaults of the others.
pub(crate) fn values<'a>(
    kernel: &'static str,
    fields: &'static [Field],
    assignments: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'a str>, ConfigureError> {
    let mut given = vec![None; fields.len()];
    for assignment in assignments {
        let (name, value) =
            assignment.split_once('=').ok_or_else(|| ConfigureError::Syntax(assignment.into()))?;
        let at = fields.iter().position(|field| field.name == name).ok_or_else(|| {
            ConfigureError::UnknownField {
                kernel,
                field: name.into(),
                known: fields.iter().map(|field| field.name).collect(),
            }
        })?;
        if given[at].replace(value).is_some() {
            return Err(ConfigureError::Twice(name.into()));
        }
        let Field { name, domain, .. } = fields[at];
        if !domain.contains(value) {
            return Err(BuildError::field(name, value, domain.to_string()).into());
        }
    }
    let mut values = Vec::with_capacity(given.len());
    for (value, field) in given.into_iter().zip(fields) {
        values.push(value.or(field.default).ok_or(ConfigureError::Missing(field.name))?);
    }
    Ok(values)
}

impl Entry {
    /// The kernel with the fields that are given as `field=value`, the others at their defaults.
    pub fn configure<'a>(
        &self,
        assignments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Box<dyn AnyKernel + Send + Sync>, ConfigureError> {
        let values = values(self.name, self.fields, assignments)?;
        let kernel = (self.make)(&values)?;
        kernel.check()?;
        Ok(kernel)
    }

    /// The kernel in a configuration written as in [`examples`](Self::examples).
    pub fn configure_text(
        &self,
        assignments: &str,
    ) -> Result<Box<dyn AnyKernel + Send + Sync>, ConfigureError> {
        self.configure(assignments.split_whitespace())
    }
}
