//! Text of a file on a terminal, and quantities for people.

/// Text without characters that move the cursor or change the writing direction; at most `max` characters.
pub(super) fn text(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == max {
            shown.push('…');
            break;
        }
        match character.is_control() || directs(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Characters that are not seen themselves, and change how others are.
fn directs(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

/// Bytes: `4.21 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes, 1024, &["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// A number: `7.62 B`.
pub(super) fn count(count: u64) -> String {
    scaled(count, 1000, &["", "K", "M", "B", "T", "Q", "Qi"])
}

/// Three digits, and the unit.
fn scaled(number: u64, step: u64, units: &[&str]) -> String {
    let (mut unit, mut below) = (0, 1u64);
    while number / below >= step && unit + 1 < units.len() {
        below = below.saturating_mul(step);
        unit += 1;
    }
    if unit == 0 {
        return format!("{number} {}", units[0]).trim_end().to_string();
    }
    let scaled = number as f64 / below as f64;
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_is_shown() {
        assert_eq!(text("a\x1b[2J\n\u{202e}b▁é🦀\u{7f}", 100), r"a\u{1b}[2J\n\u{202e}b▁é🦀\u{7f}");
        assert_eq!(text("abc", 3), "abc");
        assert_eq!(text("abcd", 3), "abc…");
    }

    #[test]
    fn quantities_have_three_digits() {
        let shown = [0, 999, 1000, 1023, 1024, 10 << 10, 1 << 20, 123 << 20, u64::MAX].map(bytes);
        assert_eq!(
            shown,
            [
                "0 bytes",
                "999 bytes",
                "1000 bytes",
                "1023 bytes",
                "1.00 KiB",
                "10.0 KiB",
                "1.00 MiB",
                "123 MiB",
                "16.0 EiB"
            ]
        );
        assert_eq!(
            [7, 1000, 5_930_000, 7_615_616_512, 99_960].map(count),
            ["7", "1.00 K", "5.93 M", "7.62 B", "100 K"]
        );
    }
}
