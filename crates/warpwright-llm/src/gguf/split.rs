//! Models in several files, and their names: `name-00001-of-00003.gguf`.
//!
//! Every part has its number (`split.no`, from 0), the number of parts (`split.count`) and the number of tensors in all
//! of them (`split.tensors.count`). The first part has the model's metadata; keys that other parts repeat must have the
//! same values.

use super::error::Problem;
use super::metadata::Metadata;
use super::parse::ALIGNMENT_KEY;
use super::{GgufError, Part};
use std::path::{Path, PathBuf};

/// The `split.*` keys of a file that is one of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitInfo {
    /// From 0.
    pub(super) number: u16,
    pub(super) count: u16,
    /// In all parts.
    pub(super) tensors: Option<u64>,
}

pub(super) const NUMBER_KEY: &str = "split.no";
pub(super) const COUNT_KEY: &str = "split.count";
pub(super) const TENSORS_KEY: &str = "split.tensors.count";

impl SplitInfo {
    /// `None` for a file that is a whole model.
    pub(super) fn of(metadata: &Metadata) -> Result<Option<Self>, GgufError> {
        let count: u16 = metadata.optional(COUNT_KEY)?.unwrap_or(0);
        if count < 2 {
            return Ok(None);
        }
        let number: u16 = metadata.required(NUMBER_KEY)?;
        if number >= count {
            let reason = Problem::DoesNotFit {
                key: NUMBER_KEY.to_string(),
                index: None,
                expected: "`split.count`",
                found: number.to_string(),
            };
            return Err(metadata.error(reason));
        }
        Ok(Some(SplitInfo { number, count, tensors: metadata.optional(TENSORS_KEY)? }))
    }

    /// How the name of part `number` ends.
    pub(super) fn suffix(self, number: u16) -> String {
        format!("-{:05}-of-{:05}.gguf", u32::from(number) + 1, self.count)
    }

    /// The paths of all parts, in their order, from the path of this one.
    pub(super) fn paths(self, path: &Path) -> Result<impl Iterator<Item = PathBuf>, Problem> {
        let expected = self.suffix(self.number);
        let stem = path.file_name().and_then(|name| name.to_str()?.strip_suffix(&expected));
        let Some(stem) = stem.map(str::to_string) else {
            return Err(Problem::PartName { number: self.number, count: self.count, expected });
        };
        let folder = path.to_path_buf();
        Ok((0..self.count).map(move |number| folder.with_file_name(stem.clone() + &self.suffix(number))))
    }
}

/// Whether `part` is what follows `first` as part `number`.
pub(super) fn check(first: &Part, info: SplitInfo, part: &Part, number: u16) -> Result<(), GgufError> {
    let mismatch = |reason: String| {
        part.metadata.error(Problem::PartMismatch { first: first.name().to_string(), reason })
    };
    match SplitInfo::of(&part.metadata)? {
        None => return Err(mismatch("it is a whole file, not a part".to_string())),
        Some(found) if (found.number, found.count) != (number, info.count) => {
            return Err(mismatch(format!(
                "it is part {} of {}, where part {} of {} should be",
                u32::from(found.number) + 1,
                found.count,
                u32::from(number) + 1,
                info.count
            )));
        }
        Some(SplitInfo { tensors: Some(tensors), .. }) if info.tensors.is_some_and(|all| all != tensors) => {
            let all = info.tensors.unwrap_or_default();
            return Err(mismatch(format!("`{TENSORS_KEY}` is {tensors} here and {all} there")));
        }
        Some(_) => {}
    }
    let own = [NUMBER_KEY, COUNT_KEY, TENSORS_KEY, ALIGNMENT_KEY];
    for (key, value) in part.metadata.iter().filter(|(key, _)| !own.contains(key)) {
        if first.metadata.get(key).is_none_or(|there| !there.is_same(value)) {
            return Err(mismatch(format!("{} is not the same there", super::error::shown(key))));
        }
    }
    Ok(())
}
