//! Literals and constant expressions.

use super::Parser;
use super::lexer::Kind;
use crate::diag::Code;
use crate::ir::{Imm, Span};

/// A constant under evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer (suffix `U`, or too large for a signed one).
    Unsigned(u64),
    /// A floating-point number written in decimal, or computed.
    Float(f64),
    /// The bits of a single-precision literal.
    Single(u32),
}

impl Value {
    fn bits(self) -> Option<u64> {
        match self {
            Value::Signed(v) => Some(v as u64),
            Value::Unsigned(v) => Some(v),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Value::Signed(v) => v as f64,
            Value::Unsigned(v) => v as f64,
            Value::Float(v) => v,
            Value::Single(bits) => f32::from_bits(bits).into(),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Value::Float(_) | Value::Single(_))
    }

    fn truth(self) -> bool {
        self.bits().map_or_else(|| self.float() != 0.0, |bits| bits != 0)
    }
}

impl From<Value> for Imm {
    fn from(value: Value) -> Imm {
        match value {
            Value::Signed(v) => Imm::Int(v),
            Value::Unsigned(v) => i64::try_from(v).map_or(Imm::UInt(v), Imm::Int),
            Value::Float(v) => Imm::F64(v.to_bits()),
            Value::Single(bits) => Imm::F32(bits),
        }
    }
}

/// Binary operators: binding strength, higher first.
fn strength(kind: Kind) -> Option<u8> {
    Some(match kind {
        Kind::Star | Kind::Slash | Kind::Percent => 10,
        Kind::Plus | Kind::Minus => 9,
        Kind::ShiftLeft | Kind::ShiftRight => 8,
        Kind::Less | Kind::Greater | Kind::LessEqual | Kind::GreaterEqual => 7,
        Kind::EqualEqual | Kind::NotEqual => 6,
        Kind::Amp => 5,
        Kind::Caret => 4,
        Kind::Pipe => 3,
        Kind::AndAnd => 2,
        Kind::OrOr => 1,
        _ => return None,
    })
}

impl<'s> Parser<'s> {
    /// A constant expression, as an immediate.
    pub(super) fn constant(&mut self) -> Option<Imm> {
        // Most are a literal alone.
        if self.kind() == Kind::Number
            && matches!(
                self.kind_after(1),
                Kind::Comma | Kind::Semicolon | Kind::RightBrace | Kind::RightBracket | Kind::RightParen
            )
        {
            return self.literal().map(Imm::from);
        }
        self.expression().map(Imm::from)
    }

    /// A constant expression with an unsigned 32-bit value.
    pub(super) fn unsigned(&mut self, context: &str) -> Option<u32> {
        let span = self.span();
        let value = self.unsigned_wide(context)?;
        match u32::try_from(value) {
            Ok(value) => Some(value),
            Err(_) => {
                self.error(Code::Literal, span, format!("{value} is too large: the limit is {}", u32::MAX))
            }
        }
    }

    /// A literal with an unsigned 64-bit value. Where directives want a number, `ptxas` reads no
    /// expression.
    pub(super) fn unsigned_wide(&mut self, context: &str) -> Option<u64> {
        let span = self.span();
        if !matches!(self.kind(), Kind::Number | Kind::Ident) {
            return self.unexpected("a number", context);
        }
        match self.primary()? {
            Value::Signed(value) if value >= 0 => Some(value as u64),
            Value::Unsigned(value) => Some(value),
            _ => self.error(Code::Literal, span, format!("expected an unsigned integer {context}")),
        }
    }

    /// An integer constant expression: an offset.
    pub(super) fn offset(&mut self) -> Option<i64> {
        let span = self.span();
        match self.expression()?.bits() {
            Some(bits) => Some(bits as i64),
            None => self.error(Code::ConstantExpression, span, "an offset is an integer"),
        }
    }

    fn expression(&mut self) -> Option<Value> {
        self.nest()?;
        let value = self.conditional();
        self.unnest();
        value
    }

    fn conditional(&mut self) -> Option<Value> {
        let condition = self.binary(1)?;
        if !self.eat(Kind::Question) {
            return Some(condition);
        }
        let yes = self.expression()?;
        self.expect(Kind::Colon, "in a conditional expression")?;
        let no = self.expression()?;
        Some(if condition.truth() { yes } else { no })
    }

    fn binary(&mut self, least: u8) -> Option<Value> {
        let mut left = self.unary()?;
        while let Some(level) = strength(self.kind()).filter(|&level| level >= least) {
            let operator = self.advance();
            // Recursion is bounded by the number of levels.
            let right = self.binary(level + 1)?;
            left = self.apply(operator.kind, left, right, operator.span())?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Value> {
        let mut operators = 0u32;
        let start = self.at;
        while matches!(self.kind(), Kind::Minus | Kind::Plus | Kind::Bang | Kind::Tilde) {
            self.advance();
            operators += 1;
        }
        let first_operand = self.at;
        let mut value = self.primary()?;
        for i in (0..operators as usize).rev() {
            let operator = self.tokens[start + i];
            debug_assert!(start + i < first_operand);
            value = match (operator.kind, value) {
                (Kind::Plus, value) => value,
                (Kind::Minus, Value::Signed(v)) => Value::Signed(v.wrapping_neg()),
                (Kind::Minus, Value::Unsigned(v)) if v == 1 << 63 => Value::Signed(i64::MIN),
                (Kind::Minus, Value::Unsigned(v)) => Value::Unsigned(v.wrapping_neg()),
                (Kind::Minus, Value::Float(v)) => Value::Float(-v),
                (Kind::Bang, value) if !value.is_float() => Value::Signed(i64::from(!value.truth())),
                (Kind::Tilde, Value::Signed(v)) => Value::Signed(!v),
                (Kind::Tilde, Value::Unsigned(v)) => Value::Unsigned(!v),
                (Kind::Minus, Value::Single(_)) => {
                    let message = "a `0f…` literal cannot be negated: set its sign bit";
                    return self.error(Code::Syntax, operator.span(), message);
                }
                _ => {
                    let message = "the operator wants an integer";
                    return self.error(Code::ConstantExpression, operator.span(), message);
                }
            };
        }
        Some(value)
    }

    fn primary(&mut self) -> Option<Value> {
        match self.kind() {
            Kind::Number => self.literal(),
            // `.5`
            Kind::Dot if self.dot_word().as_bytes()[0].is_ascii_digit() => self.literal(),
            Kind::LeftParen => {
                // A cast: `(.s64)` or `(.u64)`.
                if self.kind_after(1) == Kind::Dot && self.kind_after(2) == Kind::RightParen {
                    self.advance();
                    let span = self.span();
                    let word = self.dot_word();
                    self.advance();
                    self.advance();
                    self.nest()?;
                    let value = self.unary();
                    self.unnest();
                    return match (word, value?) {
                        ("s64", Value::Unsigned(v)) => Some(Value::Signed(v as i64)),
                        ("u64", Value::Signed(v)) => Some(Value::Unsigned(v as u64)),
                        ("s64", Value::Float(v)) => Some(Value::Signed(v as i64)),
                        ("u64", Value::Float(v)) => Some(Value::Unsigned(v as u64)),
                        ("f64", v) => Some(Value::Float(v.float())),
                        ("s64" | "u64", v) if !v.is_float() => Some(v),
                        _ => {
                            let message = "a cast is to `.s64`, `.u64` or `.f64`";
                            self.error(Code::ConstantExpression, span, message)
                        }
                    };
                }
                self.advance();
                let value = self.expression()?;
                self.expect(Kind::RightParen, "to close the expression")?;
                Some(value)
            }
            Kind::Ident if self.word() == "WARP_SZ" => {
                self.advance();
                Some(Value::Signed(32))
            }
            _ => self.unexpected("a number", "here"),
        }
    }

    fn apply(&mut self, operator: Kind, a: Value, b: Value, span: Span) -> Option<Value> {
        let fail = |parser: &mut Self, message: &str| parser.error(Code::ConstantExpression, span, message);
        if a.is_float() || b.is_float() {
            let (x, y) = (a.float(), b.float());
            let truth = |value: bool| Some(Value::Signed(i64::from(value)));
            return match operator {
                Kind::Plus => Some(Value::Float(x + y)),
                Kind::Minus => Some(Value::Float(x - y)),
                Kind::Star => Some(Value::Float(x * y)),
                Kind::Slash => Some(Value::Float(x / y)),
                Kind::Less => truth(x < y),
                Kind::Greater => truth(x > y),
                Kind::LessEqual => truth(x <= y),
                Kind::GreaterEqual => truth(x >= y),
                Kind::EqualEqual => truth(x == y),
                Kind::NotEqual => truth(x != y),
                Kind::AndAnd => truth(a.truth() && b.truth()),
                Kind::OrOr => truth(a.truth() || b.truth()),
                _ => fail(self, "the operator wants integers"),
            };
        }
        let (Some(x), Some(y)) = (a.bits(), b.bits()) else {
            return fail(self, "the operator wants integers");
        };
        let (sx, sy) = (x as i64, y as i64);
        let signed = matches!((a, b), (Value::Signed(_), Value::Signed(_)));
        // Sums and products have the same bits signed and unsigned.
        let same = |bits: u64| Some(if signed { Value::Signed(bits as i64) } else { Value::Unsigned(bits) });
        let truth = |value: bool| Some(Value::Signed(i64::from(value)));
        match operator {
            Kind::Plus => same(x.wrapping_add(y)),
            Kind::Minus => same(x.wrapping_sub(y)),
            Kind::Star => same(x.wrapping_mul(y)),
            Kind::Slash | Kind::Percent if y == 0 => fail(self, "division by zero"),
            Kind::Slash if signed => Some(Value::Signed(sx.wrapping_div(sy))),
            Kind::Slash => Some(Value::Unsigned(x / y)),
            Kind::Percent if signed => Some(Value::Signed(sx.wrapping_rem(sy))),
            Kind::Percent => Some(Value::Unsigned(x % y)),
            Kind::ShiftLeft | Kind::ShiftRight if y > 63 => fail(self, "a shift by 64 or more"),
            Kind::ShiftLeft if matches!(a, Value::Signed(_)) => {
                Some(Value::Signed(sx.wrapping_shl(y as u32)))
            }
            Kind::ShiftLeft => Some(Value::Unsigned(x << y)),
            Kind::ShiftRight if matches!(a, Value::Signed(_)) => Some(Value::Signed(sx >> y)),
            Kind::ShiftRight => Some(Value::Unsigned(x >> y)),
            Kind::Amp => same(x & y),
            Kind::Pipe => same(x | y),
            Kind::Caret => same(x ^ y),
            Kind::AndAnd => truth(x != 0 && y != 0),
            Kind::OrOr => truth(x != 0 || y != 0),
            Kind::EqualEqual => truth(x == y),
            Kind::NotEqual => truth(x != y),
            Kind::Less => truth(if signed { sx < sy } else { x < y }),
            Kind::Greater => truth(if signed { sx > sy } else { x > y }),
            Kind::LessEqual => truth(if signed { sx <= sy } else { x <= y }),
            Kind::GreaterEqual => truth(if signed { sx >= sy } else { x >= y }),
            _ => fail(self, "not an operator of constant expressions"),
        }
    }

    fn literal(&mut self) -> Option<Value> {
        let token = self.advance();
        let text = self.str(token);
        match number(text) {
            Some(value) => Some(value),
            None => self.error(
                Code::Literal,
                token.span(),
                format!("`{}` is not a number, or does not fit in 64 bits", super::shorten(text)),
            ),
        }
    }
}

/// The value of a numeric literal.
fn number(text: &str) -> Option<Value> {
    let bytes = text.as_bytes();
    if bytes[0] == b'0' && bytes.len() > 1 {
        let digits = &text[2..];
        match bytes[1] {
            b'f' | b'F' => {
                let bits = (digits.len() == 8).then(|| hex(digits))??;
                return u32::try_from(bits).ok().map(Value::Single);
            }
            b'd' | b'D' => {
                let bits = (digits.len() == 16).then(|| hex(digits))??;
                return Some(Value::Float(f64::from_bits(bits)));
            }
            b'x' | b'X' => {
                let (digits, unsigned) = suffix(digits);
                return integer(u64_radix(digits, 16)?, unsigned);
            }
            b'b' | b'B' => {
                let (digits, unsigned) = suffix(digits);
                return integer(u64_radix(digits, 2)?, unsigned);
            }
            _ => {}
        }
    }
    if text.contains(['.', 'e', 'E']) {
        let fine = bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
        return if fine { text.parse().ok().map(Value::Float) } else { None };
    }
    let (digits, unsigned) = suffix(text);
    let radix = if digits.len() > 1 && digits.starts_with('0') { 8 } else { 10 };
    integer(u64_radix(digits, radix)?, unsigned)
}

fn suffix(digits: &str) -> (&str, bool) {
    match digits.strip_suffix(['u', 'U']) {
        Some(rest) => (rest, true),
        None => (digits, false),
    }
}

fn integer(bits: u64, unsigned: bool) -> Option<Value> {
    match i64::try_from(bits) {
        Ok(value) if !unsigned => Some(Value::Signed(value)),
        _ => Some(Value::Unsigned(bits)),
    }
}

fn hex(digits: &str) -> Option<u64> {
    u64_radix(digits, 16)
}

fn u64_radix(digits: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` takes a sign, which is no part of a literal.
    if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, radix).ok() }
}
