//! The byte-level alphabet: a printable character for each byte, as GPT-2 chose them.
//!
//! Printable characters of Latin-1 stand for themselves; the other 68 bytes, in order, are U+0100 on.

/// The character of each byte.
pub(super) const CHARS: [char; 256] = chars();

const fn chars() -> [char; 256] {
    let mut chars = ['\0'; 256];
    let mut next = 0x100u16;
    let mut byte = 0;
    while byte < 256 {
        chars[byte] = if matches!(byte as u8, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff) {
            byte as u8 as char
        } else {
            next += 1;
            // U+0100 to U+0143.
            match char::from_u32(next as u32 - 1) {
                Some(c) => c,
                None => '\0',
            }
        };
        byte += 1;
    }
    chars
}

/// The byte of a character of the alphabet.
pub(super) fn byte(c: char) -> Option<u8> {
    match c as u32 {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(c as u32 as u8),
        0x100..=0x120 => Some((c as u32 - 0x100) as u8),
        0x121 => Some(0x7f),
        0x122..=0x142 => Some((c as u32 - 0x122 + 0x80) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_character() {
        for b in 0..=255 {
            assert_eq!(byte(CHARS[b as usize]), Some(b));
        }
        assert_eq!((CHARS[b' ' as usize], CHARS[b'\n' as usize], CHARS[0xad]), ('Ġ', 'Ċ', 'Ń'));
        let members = (0..0x11_0000).filter_map(char::from_u32).filter(|&c| byte(c).is_some());
        assert_eq!(members.count(), 256);
    }
}
