//! What programs executed whose results on hardware may be others.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use warpwright_vm::fidelity::Assumption;

/// Something assumed, with the instructions about which it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumed {
    /// What is assumed.
    pub what: String,
    /// The forms of the instructions that were executed: `cvt.rs.f16x2.f32`.
    pub forms: Vec<String>,
}

impl Assumed {
    /// What is assumed, each once.
    pub fn of<'a>(assumptions: impl IntoIterator<Item = &'a Assumption>) -> Vec<Assumed> {
        let mut forms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for assumption in assumptions {
            forms.entry(&*assumption.detail).or_default().insert(&assumption.form);
        }
        let assumed = |(what, forms): (&str, BTreeSet<&str>)| Assumed {
            what: what.to_owned(),
            forms: forms.into_iter().map(str::to_owned).collect(),
        };
        forms.into_iter().map(assumed).collect()
    }

    /// The line for people.
    pub fn note(&self) -> String {
        let first = self.forms.first().map_or("", String::as_str);
        let more = match self.forms.len() {
            0 | 1 => String::new(),
            2 => " and another form".to_owned(),
            count => format!(" and {} other forms", count - 1),
        };
        format!("note: assumed: `{first}`{more}: {}; see `warpwright fidelity`", self.what)
    }
}
