//! `strftime_now`: for templates that tell a model the date.

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, Local, TimeZone};
use minijinja::{Error, ErrorKind};
use std::fmt::Display;

/// The time here and now, as the format says.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    strftime(&Local::now(), format)
}

/// A time in the directives of C's and Python's `strftime`.
fn strftime<Zone: TimeZone>(time: &DateTime<Zone>, format: &str) -> Result<String, Error>
where
    Zone::Offset: Display,
{
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        let detail = format!("strftime_now: {format:?} has a directive that is not known");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    Ok(time.format_with_items(items.iter()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    #[test]
    fn a_day_is_written_as_templates_ask() {
        let time = Utc.with_ymd_and_hms(2024, 7, 6, 5, 4, 3).single().expect("a time");
        for (format, text) in [
            ("%d %b %Y", "06 Jul 2024"),
            ("%B %d, %Y", "July 06, 2024"),
            ("%Y-%m-%d", "2024-07-06"),
            ("%A %H:%M:%S %p", "Saturday 05:04:03 AM"),
            ("%-d/%-m %y %j 100%%", "6/7 24 188 100%"),
        ] {
            assert_eq!(strftime(&time, format).expect("known"), text, "{format}");
        }
    }

    #[test]
    fn an_unknown_directive_is_an_error() {
        for format in ["%!", "%"] {
            assert!(strftime(&Utc::now(), format).is_err(), "{format}");
        }
    }
}
