//! `.section`: debug data.

use super::Parser;
use super::lexer::Kind;
use crate::diag::Code;
use crate::ir::*;
use crate::op::{Modifier, Word};

impl Parser<'_> {
    /// What stands after `.section`.
    pub(super) fn section(&mut self) -> Option<Section> {
        if !matches!(self.kind(), Kind::Dot | Kind::Ident) {
            return self.unexpected("a name", "after `.section`");
        }
        let name = self.word().to_string();
        self.advance();
        self.expect(Kind::LeftBrace, "to begin the section")?;
        let mut lines = Vec::new();
        loop {
            self.take_comments(|comment| lines.push(SectionLine::Comment(comment)));
            match self.kind() {
                Kind::RightBrace => {
                    self.advance();
                    return Some(Section { name, lines });
                }
                Kind::Ident => {
                    let (word, span) = (self.word(), self.span());
                    if !self.section_labels.insert(word) {
                        let message = format!("the label `{}` is defined twice", super::shorten(word));
                        return self.error(Code::Label, span, message);
                    }
                    lines.push(SectionLine::Label(word.to_string()));
                    self.advance();
                    self.expect(Kind::Colon, "after a label")?;
                }
                Kind::Dot => {
                    let span = self.span();
                    let ty = Type::from_word(Word::new(self.dot_word()))
                        .filter(|ty| matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64));
                    self.advance();
                    let Some(ty) = ty else {
                        return self.error(
                            Code::Directive,
                            span,
                            "data of a section is `.b8`, `.b16`, `.b32` or `.b64`",
                        );
                    };
                    let mut values = vec![self.section_value()?];
                    while self.eat(Kind::Comma) {
                        values.push(self.section_value()?);
                    }
                    lines.push(SectionLine::Data { ty, values });
                }
                _ => return self.unexpected("a label, data or `}`", "in a section"),
            }
        }
    }

    fn section_value(&mut self) -> Option<SectionValue> {
        let is_name = self.kind() == Kind::Ident
            || (self.kind() == Kind::Dot && !self.dot_word().as_bytes()[0].is_ascii_digit());
        if !is_name {
            let span = self.span();
            let negative = self.eat(Kind::Minus);
            let value = self.unsigned_wide("in a section")?;
            return match (negative, i64::try_from(value)) {
                (false, Ok(value)) => Some(SectionValue::Int(Imm::Int(value))),
                (false, Err(_)) => Some(SectionValue::Int(Imm::UInt(value))),
                (true, Ok(value)) => Some(SectionValue::Int(Imm::Int(-value))),
                (true, Err(_)) => self.error(Code::Literal, span, "the number does not fit in 64 bits"),
            };
        }
        let name = self.word().to_string();
        self.advance();
        match self.kind() {
            Kind::Minus => {
                self.advance();
                if !matches!(self.kind(), Kind::Ident | Kind::Dot) {
                    return self.unexpected("a label", "after `-`");
                }
                let other = self.word().to_string();
                self.advance();
                Some(SectionValue::Difference(name, other))
            }
            Kind::Plus => {
                self.advance();
                let offset = self.unsigned("as an offset")?;
                Some(SectionValue::Label(name, offset.into()))
            }
            _ => Some(SectionValue::Label(name, 0)),
        }
    }
}
