//! Kernels as text: the catalogue entry of a kernel, and the parser from assignments of text to its configuration.
//!
//! Each value is validated against the [`Domain`] of its field, and the resulting kernel by its own
//! [`check`](warpwright_dsl::Kernel::check).

use std::fmt;
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::{BuildError, Configure, Domain, Field, Kernel};

/// A kernel of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Its configuration.
    pub fields: &'static [Field],
    /// Configurations of real models and edge cases, as assignments separated by spaces.
    pub examples: &'static [&'static str],
    /// The kernel of the values of all fields, each in its domain.
    make: fn(&[&str]) -> Result<Made, BuildError>,
}

/// A kernel that was made of text.
type Made = Box<dyn AnyKernel + Send + Sync>;

fn made(kernel: impl AnyKernel + Send + Sync + 'static) -> Made {
    Box::new(kernel)
}

impl Entry {
    /// The entry of a kernel that is described by its configuration alone.
    pub const fn of<T: Configure + Kernel + Send + Sync>() -> Self {
        Entry {
            name: T::NAME,
            doc: T::DOC,
            fields: T::FIELDS,
            examples: T::EXAMPLES,
            make: |values| T::from_texts(values).map(made),
        }
    }

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

/// Why a name and its assignments do not give a kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConfigureError {
    /// There is no kernel of that name.
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
    /// A field is assigned twice.
    Twice(String),
    /// A field without a default is not assigned.
    Missing(&'static str),
    /// The kernel does not accept a value.
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
    /// Configurations that show what a kernel is like, as assignments separated by spaces: its defaults, its examples,
    /// and each format of weights that no example has, in each kind of activations.
    pub fn configurations(&self) -> Vec<String> {
        let mut all: Vec<String> =
            std::iter::once("").chain(self.examples.iter().copied()).map(Into::into).collect();
        let choices = |name: &str| match self
            .fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.domain)
        {
            Some(Domain::OneOf(choices) | Domain::List { of: &Domain::OneOf(choices), .. }) => choices,
            _ => &[],
        };
        let int8 = choices("activations").contains(&"int8").then_some(" activations=int8");
        for format in choices("format") {
            for kind in std::iter::once("").chain(int8) {
                let has = |example: &&str| {
                    let mut fields = example.split(' ');
                    fields.clone().any(|field| field == format!("format={format}"))
                        && fields.any(|field| field.starts_with("activations")) != kind.is_empty()
                };
                let one = format!("format={format}{kind}");
                if self.configure_text(&one).is_ok() && !self.examples.iter().any(has) {
                    all.push(one);
                }
            }
        }
        all
    }

    /// Makes the kernel from assignments `field=value`; other fields keep their defaults.
    pub fn configure<'a>(
        &self,
        assignments: impl IntoIterator<Item = &'a str>,
    ) -> Result<Box<dyn AnyKernel + Send + Sync>, ConfigureError> {
        let values = values(self.name, self.fields, assignments)?;
        let kernel = (self.make)(&values)?;
        kernel.check()?;
        Ok(kernel)
    }

    /// Makes the kernel from a configuration written as in [`examples`](Self::examples).
    pub fn configure_text(
        &self,
        assignments: &str,
    ) -> Result<Box<dyn AnyKernel + Send + Sync>, ConfigureError> {
        self.configure(assignments.split_whitespace())
    }
}
