//! Sets of targets, as short text.

use std::fmt;
use warpwright_ptx::ir::Arch;

/// Targets that code is made for: `sm_80+ sm_70..sm_75 sm_60`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Targets(Vec<Arch>);

impl Targets {
    /// Those of the text that this displays.
    pub fn read(text: &str) -> Targets {
        let all: Vec<Arch> = Arch::all().collect();
        let place = |name: &str| all.iter().position(|arch| arch.to_string() == name);
        let run = |word: &str| match (word.strip_suffix('+'), word.split_once("..")) {
            (Some(first), _) => Some(place(first)?..all.len()),
            (_, Some((first, last))) => Some(place(first)?..place(last)? + 1),
            _ => place(word).map(|at| at..at + 1),
        };
        text.split(' ').filter_map(run).flat_map(|run| all[run].iter().copied()).collect()
    }

    /// Whether it is one of them.
    pub fn contains(&self, arch: Arch) -> bool {
        self.0.contains(&arch)
    }

    /// Each of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Arch> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Arch> for Targets {
    fn from_iter<I: IntoIterator<Item = Arch>>(archs: I) -> Targets {
        let archs: Vec<Arch> = archs.into_iter().collect();
        Targets(Arch::all().filter(|arch| archs.contains(arch)).collect())
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<Arch> = Arch::all().collect();
        let mut separator = "";
        let mut rest = &all[..];
        while let Some(skipped) = rest.iter().position(|&arch| self.contains(arch)) {
            let run = rest[skipped..].iter().take_while(|&&arch| self.contains(arch)).count();
            let (first, last) = (rest[skipped], rest[skipped + run - 1]);
            rest = &rest[skipped + run..];
            write!(f, "{separator}{first}")?;
            match run {
                _ if rest.is_empty() => f.write_str("+")?,
                1 => {}
                _ => write!(f, "..{last}")?,
            }
            separator = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        for text in ["sm_50+", "sm_90a", "sm_50..sm_62 sm_90", "sm_90a sm_100a sm_121f+", ""] {
            assert_eq!(Targets::read(text).to_string(), text);
        }
        let some: Targets = ["sm_80", "sm_50"].map(|name| name.parse().unwrap()).into_iter().collect();
        assert_eq!(some.to_string(), "sm_50 sm_80");
        assert!(Targets::read("sm_70..sm_80").contains(Arch::sm(75)));
        assert!(!Targets::read("sm_90a").contains(Arch::sm(90)));
    }
}
