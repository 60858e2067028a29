//! Lengths and counts in terms of what is known at the launch.

use std::fmt;

/// A length or count in terms of what is known at the launch: `⌈times · a · b / per⌉`, where `a` and `b`, if
/// they are there, are scalar arguments or numbers that the caller chooses (such as `rows`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    times: u64,
    dims: [Option<&'static str>; 2],
    per: u64,
}

impl Extent {
    /// A number that the configuration fixes.
    pub const fn new(count: u64) -> Self {
        Extent { times: count, dims: [None; 2], per: 1 }
    }

    /// A number known at the launch.
    pub const fn dim(name: &'static str) -> Self {
        Extent { times: 1, dims: [Some(name), None], per: 1 }
    }

    /// The product of two numbers known at the launch.
    pub const fn dims(a: &'static str, b: &'static str) -> Self {
        Extent { times: 1, dims: [Some(a), Some(b)], per: 1 }
    }

    /// That many times as much.
    pub const fn times(mut self, factor: u64) -> Self {
        self.times = self.times.saturating_mul(factor);
        self
    }

    /// Divided, and rounded up.
    pub const fn per(mut self, divisor: u64) -> Self {
        self.per = self.per.saturating_mul(divisor);
        self
    }

    /// The names that must be known.
    pub fn depends_on(self) -> impl Iterator<Item = &'static str> {
        self.dims.into_iter().flatten()
    }

    /// The number; `None` where a name is not known, the number is too large, or it is divided by zero.
    pub fn evaluate(self, known: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let product =
            self.depends_on().try_fold(self.times, |product, name| product.checked_mul(known(name)?));
        (self.per > 0).then_some(product?.div_ceil(self.per.max(1)))
    }
}

impl From<u32> for Extent {
    fn from(count: u32) -> Self {
        Extent::new(count.into())
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = self.depends_on().collect::<Vec<_>>().join("*");
        if names.is_empty() {
            names = self.times.to_string();
        } else if self.times != 1 {
            names = format!("{}*{names}", self.times);
        }
        f.write_str(&names)?;
        if self.per != 1 {
            write!(f, "/{}", self.per)?;
        }
        Ok(())
    }
}
