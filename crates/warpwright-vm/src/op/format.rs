//! C's `printf` formats, as far as kernels support them.

/// A conversion: `%[flags][width][.precision][size]kind`.
#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of an integer.
    bytes: u64,
    kind: u8,
}

/// Longest field, so that a kernel cannot ask for any amount of memory.
const MAX_WIDTH: usize = 4096;

/// Formats arguments. `take` returns the bits of the next argument of a size in bytes, `text` the string at an
/// address. Returns the number of arguments.
pub(super) fn format(
    pattern: &[u8],
    out: &mut Vec<u8>,
    take: &mut dyn FnMut(u64) -> u64,
    text: &dyn Fn(u64) -> Vec<u8>,
) -> u64 {
    let mut rest = pattern;
    let mut count = 0;
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&rest[..percent]);
        let after = &rest[percent + 1..];
        let Some((spec, length)) = parse(after, take, &mut count) else {
            // What is no conversion is printed as it stands.
            out.push(b'%');
            rest = after;
            continue;
        };
        rest = &after[length..];
        if spec.kind == b'%' {
            out.push(b'%');
            continue;
        }
        count += 1;
        convert(spec, out, take, text);
    }
    out.extend_from_slice(rest);
    count
}

fn parse(text: &[u8], take: &mut dyn FnMut(u64) -> u64, count: &mut u64) -> Option<(Spec, usize)> {
    let mut spec = Spec { bytes: 4, ..Spec::default() };
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    let mut number = |at: &mut usize| -> i64 {
        if text.get(*at) == Some(&b'*') {
            *at += 1;
            *count += 1;
            return i64::from(take(4) as i32);
        }
        let mut value = 0i64;
        while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
            value = (value * 10 + i64::from(digit - b'0')).min(1 << 20);
            *at += 1;
        }
        value
    };
    let width = number(&mut at);
    spec.left |= width < 0;
    spec.width = (width.unsigned_abs() as usize).min(MAX_WIDTH);
    if text.get(at) == Some(&b'.') {
        at += 1;
        spec.precision = usize::try_from(number(&mut at)).ok().map(|value| value.min(MAX_WIDTH));
    }
    loop {
        match text.get(at)? {
            b'l' | b'j' | b'z' | b't' | b'L' => spec.bytes = 8,
            b'h' => spec.bytes = if spec.bytes == 4 { 2 } else { 1 },
            _ => break,
        }
        at += 1;
    }
    spec.kind = *text.get(at)?;
    b"diuoxXcspfFeEgGaA%".contains(&spec.kind).then_some((spec, at + 1))
}

fn convert(spec: Spec, out: &mut Vec<u8>, take: &mut dyn FnMut(u64) -> u64, text: &dyn Fn(u64) -> Vec<u8>) {
    match spec.kind {
        b'c' => pad(spec, out, "", &[take(4) as u8], false),
        b's' => {
            let mut value = text(take(8));
            value.truncate(spec.precision.unwrap_or(usize::MAX));
            pad(spec, out, "", &value, false);
        }
        b'p' => pad(spec, out, "0x", format!("{:x}", take(8)).as_bytes(), false),
        b'd' | b'i' => {
            let bits = take(spec.bytes.max(4));
            let shift = 64 - 8 * spec.bytes as u32;
            let value = ((bits << shift) as i64) >> shift;
            integer(spec, out, sign(spec, value < 0), &value.unsigned_abs().to_string());
        }
        b'u' | b'o' | b'x' | b'X' => {
            let bits = take(spec.bytes.max(4));
            let value = bits & (u64::MAX >> (64 - 8 * spec.bytes));
            let (prefix, digits) = match spec.kind {
                b'u' => ("", value.to_string()),
                b'o' => (if spec.alternate { "0" } else { "" }, format!("{value:o}")),
                b'x' => (if spec.alternate && value != 0 { "0x" } else { "" }, format!("{value:x}")),
                _ => (if spec.alternate && value != 0 { "0X" } else { "" }, format!("{value:X}")),
            };
            integer(spec, out, prefix, &digits);
        }
        _ => float(spec, out, f64::from_bits(take(8))),
    }
}

fn sign(spec: Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(spec: Spec, out: &mut Vec<u8>, prefix: &str, digits: &str) {
    let least = spec.precision.unwrap_or(1);
    let digits = if spec.precision == Some(0) && digits == "0" { "" } else { digits };
    let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
    pad(spec, out, prefix, digits.as_bytes(), spec.precision.is_none());
}

fn float(spec: Spec, out: &mut Vec<u8>, value: f64) {
    let upper = spec.kind.is_ascii_uppercase();
    let precision = spec.precision.unwrap_or(6);
    let magnitude = value.abs();
    let digits = if !value.is_finite() {
        let word = if value.is_nan() { "nan" } else { "inf" };
        word.to_owned()
    } else {
        match spec.kind.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponential(magnitude, precision),
            b'g' => general(magnitude, precision.max(1), spec.alternate),
            _ => hexadecimal(magnitude, spec.precision),
        }
    };
    let digits = if upper { digits.to_uppercase() } else { digits };
    pad(spec, out, sign(spec, value.is_sign_negative()), digits.as_bytes(), value.is_finite());
}

/// `d.ddde±dd`.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The shorter of both forms, with that many significant digits and no zeros at the end.
fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = exponential(value, precision - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let (mut mantissa, tail) = if exponent < -4 || exponent >= precision as i32 {
        let (mantissa, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        (mantissa.to_owned(), format!("e{tail}"))
    } else {
        let places = (precision as i32 - 1 - exponent).max(0) as usize;
        (format!("{value:.places$}"), String::new())
    };
    if !keep_zeros && mantissa.contains('.') {
        mantissa.truncate(mantissa.trim_end_matches('0').trim_end_matches('.').len());
    }
    mantissa + &tail
}

/// `0xh.hhhp±d`.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = (bits >> 52) as i64;
    let (mut lead, exponent) = match exponent {
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        biased => (1u64, biased - 1023),
    };
    let mut digits = format!("{fraction:013x}");
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(places) if places < 13 => {
            let drop = 4 * (13 - places) as u32;
            let whole = lead << 52 | fraction;
            let half = 1u64 << (drop - 1);
            let rest = whole & ((1 << drop) - 1);
            let mut kept = whole >> drop;
            kept += u64::from(rest > half || rest == half && kept & 1 == 1);
            lead = kept >> (4 * places);
            let low = kept & ((1u64 << (4 * places)) - 1);
            digits = if places == 0 { String::new() } else { format!("{low:0places$x}") };
        }
        Some(places) => digits += &"0".repeat(places - 13),
    }
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead:x}{point}{digits}p{exponent:+}")
}

/// Fills up to the width: zeros between prefix and digits where the flag says so and `zeros` allows.
fn pad(spec: Spec, out: &mut Vec<u8>, prefix: &str, digits: &[u8], zeros: bool) {
    let fill = spec.width.saturating_sub(prefix.len() + digits.len());
    let zero = spec.zero && zeros && !spec.left;
    if !spec.left && !zero {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
    out.extend_from_slice(prefix.as_bytes());
    if zero {
        out.extend(std::iter::repeat_n(b'0', fill));
    }
    out.extend_from_slice(digits);
    if spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
}

#[cfg(test)]
mod tests {
    use super::format;

    /// The output of a format for arguments that all take 8 bytes in the list, whatever their size.
    fn print(pattern: &str, arguments: &[u64]) -> String {
        let mut list = arguments.iter().copied();
        let mut out = Vec::new();
        let texts = |address| if address == 7 { b"warp".to_vec() } else { Vec::new() };
        format(pattern.as_bytes(), &mut out, &mut |_| list.next().unwrap_or(0), &texts);
        String::from_utf8(out).unwrap()
    }

    /// Expected texts are those of C's `printf`.
    #[test]
    fn formats_as_c_does() {
        let f = f64::to_bits;
        let minus = |v: i32| u64::from(v as u32);
        let table: &[(&str, &[u64], &str)] = &[
            ("plain 100%%", &[], "plain 100%"),
            ("%d|%5d|%-5d|%05d", &[minus(-7), 42, 42, minus(-42)], "-7|   42|42   |-0042"),
            ("%+d % d %.3d", &[5, 5, 5], "+5  5 005"),
            ("%u %o %x %X %#x", &[minus(-1), 8, 255, 255, 255], "4294967295 10 ff FF 0xff"),
            ("%lld %llu", &[(-1i64) as u64, u64::MAX], "-1 18446744073709551615"),
            ("%hhd %hd", &[0x1ff, 0x1_8000], "-1 -32768"),
            ("%c%s%.2s%6s", &[u64::from(b'!'), 7, 7, 7], "!warpwa  warp"),
            ("%p", &[0x7000_0000_0000], "0x700000000000"),
            (
                "%f %.2f %8.3f %-8.1f|",
                &[f(1.5), f(2.675), f(-1.0), f(0.25)],
                "1.500000 2.67   -1.000 0.2     |",
            ),
            ("%e %.0e %E", &[f(12345.678), f(9.6), f(1e-10)], "1.234568e+04 1e+01 1.000000E-10"),
            ("%g %g %g %g", &[f(100000.0), f(1e6), f(0.0001), f(1e-5)], "100000 1e+06 0.0001 1e-05"),
            ("%g %.3g %#g", &[f(0.1), f(1234.5), f(1.0)], "0.1 1.23e+03 1.00000"),
            ("%a %a %.2a", &[f(1.0), f(0.15625), f(1.999)], "0x1p+0 0x1.4p-3 0x2.00p+0"),
            ("%f %5.1f %F", &[f(f64::INFINITY), f(f64::NAN), f(f64::NEG_INFINITY)], "inf   nan -INF"),
            ("%*d|%-*d|%.*f", &[4, 1, 4, 2, 1, f(2.25)], "   1|2   |2.2"),
            ("%q %", &[], "%q %"),
        ];
        for (pattern, arguments, expected) in table {
            assert_eq!(print(pattern, arguments), *expected, "{pattern}");
        }
    }
}
