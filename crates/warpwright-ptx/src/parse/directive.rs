//! Module-scope items, variables, attributes, `.loc` and `.file`.

use super::Parser;
use super::lexer::Kind;
use crate::diag::Code;
use crate::ir::*;
use crate::op::{Modifier, Word};

impl<'s> Parser<'s> {
    /// Something at module scope.
    pub(super) fn item(&mut self, items: &mut Vec<Item>) -> Option<()> {
        let start = self.span();
        if self.kind() == Kind::At && self.kind_after(1) == Kind::At {
            let message = "`@@DWARF` debug data of old PTX is not read: use `.section`";
            return self.error(Code::Directive, start, message);
        }
        if self.kind() != Kind::Dot {
            return self.unexpected("a directive", "at module scope");
        }
        let linkage = self.linkage()?;
        if self.kind() != Kind::Dot {
            return self.unexpected("`.func`, `.entry` or a state space", "after the linkage");
        }
        let kind = match self.dot_word() {
            "entry" | "func" => ItemKind::Function(Box::new(self.function(linkage, start)?)),
            _ if linkage != Linkage::Local => return self.globals_item(linkage, items),
            "alias" => {
                self.advance();
                let span = self.span();
                let name = self.ident("after `.alias`")?;
                self.expect(Kind::Comma, "in `.alias`")?;
                let target_span = self.span();
                let target = self.ident("as the function that the alias stands for")?;
                self.expect(Kind::Semicolon, "to end `.alias`")?;
                for (function, span) in [(name, span), (target, target_span)] {
                    if !self.globals.get(function).is_some_and(|global| global.function) {
                        let message = format!("`{function}` is not a declared function");
                        return self.error(Code::Undeclared, span, message);
                    }
                }
                self.declare_global(name, span, true, true)?;
                ItemKind::Alias { name: name.into(), target: target.into() }
            }
            "file" => {
                self.advance();
                let index = self.unsigned("after `.file`")?;
                let path = self.string("as the path of a `.file`")?;
                let mut stamp = None;
                if self.eat(Kind::Comma) {
                    let time = self.unsigned_wide("as a time stamp")?;
                    self.expect(Kind::Comma, "between time stamp and size")?;
                    stamp = Some((time, self.unsigned_wide("as a size")?));
                }
                ItemKind::File(SourceFile { index, path, stamp })
            }
            "loc" => {
                self.advance();
                ItemKind::Loc(self.loc()?)
            }
            "section" => {
                self.advance();
                ItemKind::Section(self.section()?)
            }
            "pragma" => {
                self.advance();
                ItemKind::Pragma(self.pragma()?)
            }
            "version" | "target" | "address_size" => {
                let message = format!("`{}` stands at the beginning of a module, once", self.word());
                return self.error(Code::Header, start, message);
            }
            _ => return self.globals_item(linkage, items),
        };
        items.push(Item { origin: start.to(self.last_span()).into(), kind });
        Some(())
    }

    fn linkage(&mut self) -> Option<Linkage> {
        let mut linkage = Linkage::Local;
        loop {
            let found = match self.kind() {
                Kind::Dot => match self.dot_word() {
                    "extern" => Linkage::Extern,
                    "visible" => Linkage::Visible,
                    "weak" => Linkage::Weak,
                    "common" => Linkage::Common,
                    _ => return Some(linkage),
                },
                _ => return Some(linkage),
            };
            if linkage != Linkage::Local {
                let span = self.span();
                return self.error(Code::Linkage, span, "a declaration has one linkage");
            }
            linkage = found;
            self.advance();
        }
    }

    /// Module-scope variables, up to their `;`.
    fn globals_item(&mut self, linkage: Linkage, items: &mut Vec<Item>) -> Option<()> {
        self.variables(linkage, |parser, variable, name, span| {
            let defined = linkage != Linkage::Extern && linkage != Linkage::Common;
            parser.declare_global(name, span, false, defined)?;
            if let Some(global) = parser.globals.get_mut(name) {
                global.scalar = variable.scalar_of_array();
            }
            items.push(Item { origin: variable.origin, kind: ItemKind::Variable(variable) });
            Some(())
        })
    }

    /// A declaration of variables, up to its `;`: `.space .type a, b;` declares both alike.
    pub(super) fn variables(
        &mut self,
        linkage: Linkage,
        mut declare: impl FnMut(&mut Self, Variable, &'s str, Span) -> Option<()>,
    ) -> Option<()> {
        let (mut variable, mut name, mut span) = self.variable_declaration(linkage, false)?;
        loop {
            let like = Variable { dims: Vec::new(), init: None, ..variable.clone() };
            declare(self, variable, name, span)?;
            if !self.eat(Kind::Comma) {
                break;
            }
            variable = like;
            (name, span) = self.declarator(&mut variable)?;
        }
        self.expect(Kind::Semicolon, "to end the declaration")?;
        Some(())
    }

    /// `.space … .type name…`, without what ends it. Returns the name and its span too.
    pub(super) fn variable_declaration(
        &mut self,
        linkage: Linkage,
        parameter: bool,
    ) -> Option<(Variable, &'s str, Span)> {
        let start = self.span();
        let space = match self.kind() {
            Kind::Dot => Space::from_word(Word::new(self.dot_word())),
            _ => None,
        };
        let Some(space) = space.filter(|space| *space != Space::SharedCluster) else {
            let message =
                format!("`{}` begins no directive or declaration here", super::shorten(self.word()));
            return self.error(Code::Directive, start, message);
        };
        if parameter && space.base() != Space::Param {
            return self.error(Code::Parameter, start, "a parameter is in `.param` space or in a `.reg`");
        }
        self.advance();
        let mut variable = Variable::new(space, Type::B8, "");
        variable.linkage = linkage;
        if self.kind() == Kind::LeftBracket {
            self.advance();
            variable.bank = Some(self.unsigned("as a bank of constant memory")?);
            self.expect(Kind::RightBracket, "to close the bank")?;
        }
        variable.attributes = self.attributes()?;
        let mut ty = None;
        while self.kind() == Kind::Dot {
            let span = self.span();
            let word = self.dot_word();
            if word == "attribute" {
                variable.attributes.extend(self.attributes()?);
                continue;
            }
            self.advance();
            match word {
                "align" => {
                    let align = self.alignment()?;
                    match &mut variable.pointee {
                        Some(pointee) => pointee.align = Some(align),
                        None => variable.align = Some(align),
                    }
                }
                "ptr" => variable.pointee = Some(Pointee { space: None, align: None }),
                _ => {
                    let word = Word::new(word);
                    if let Some(found) = Type::from_word(word)
                        && ty.is_none()
                    {
                        ty = Some(found);
                    } else if let Some(width) = VectorWidth::from_word(word)
                        && variable.vector.is_none()
                    {
                        variable.vector = Some(width);
                    } else if let Some(space) = Space::from_word(word)
                        && let Some(pointee) = &mut variable.pointee
                        && pointee.space.is_none()
                    {
                        pointee.space = Some(space);
                    } else {
                        let message =
                            format!("`.{}` does not belong in a declaration", super::shorten(word.text()));
                        return self.error(Code::Directive, span, message);
                    }
                }
            }
        }
        let Some(ty) = ty else { return self.unexpected("a type", "in a declaration") };
        variable.ty = ty;
        if space == Space::Tex && self.version < Version::new(1, 5) {
            // What a texture reference was.
            (variable.space, variable.ty) = (Space::Global, Type::TexRef);
        }
        variable.origin = start.to(self.span()).into();
        let (name, span) = self.declarator(&mut variable)?;
        Some((variable, name, span))
    }

    /// `name`, `name<n>`, dimensions and an initial value.
    pub(super) fn declarator(&mut self, variable: &mut Variable) -> Option<(&'s str, Span)> {
        let span = self.span();
        let name = self.ident("as the name of a variable")?;
        variable.name = name.into();
        if self.eat(Kind::Less) {
            variable.range = Some(self.unsigned("as a number of variables")?);
            self.expect(Kind::Greater, "to close the number of variables")?;
        }
        while self.eat(Kind::LeftBracket) {
            let dim = if self.kind() == Kind::RightBracket {
                None
            } else {
                let here = self.span();
                match self.unsigned_wide("as a dimension")? {
                    dim if i64::try_from(dim).is_ok() => Some(dim),
                    _ => return self.error(Code::Literal, here, "the dimension is too large"),
                }
            };
            if variable.dims.len() == super::MAX_NESTING {
                return self.error(Code::Nesting, span, "an array has too many dimensions");
            }
            variable.dims.push(dim);
            self.expect(Kind::RightBracket, "to close the dimension")?;
        }
        if self.eat(Kind::Equal) {
            variable.init = Some(self.init()?);
        }
        Some((name, span))
    }

    fn alignment(&mut self) -> Option<u32> {
        let span = self.span();
        let align = self.unsigned("as an alignment")?;
        if align.is_power_of_two() {
            Some(align)
        } else {
            self.error(Code::Alignment, span, format!("an alignment is a power of two, and {align} is none"))
        }
    }

    /// `.attribute(…)`, if it stands here.
    pub(super) fn attributes(&mut self) -> Option<Vec<Attribute>> {
        let mut list = Vec::new();
        while self.eat_dot("attribute") {
            self.expect(Kind::LeftParen, "after `.attribute`")?;
            list.extend(self.separated(|parser| {
                let span = parser.span();
                if parser.eat_dot("managed") {
                    return Some(Attribute::Managed);
                } else if !parser.eat_dot("unified") {
                    let message = "an attribute is `.managed` or `.unified(…, …)`";
                    return parser.error(Code::Directive, span, message);
                }
                parser.expect(Kind::LeftParen, "after `.unified`")?;
                let high = parser.unsigned_wide("as half of a handle")?;
                parser.expect(Kind::Comma, "between the halves of a handle")?;
                let low = parser.unsigned_wide("as half of a handle")?;
                parser.expect(Kind::RightParen, "to close `.unified`")?;
                Some(Attribute::Unified(high, low))
            })?);
            self.expect(Kind::RightParen, "to close `.attribute`")?;
        }
        Some(list)
    }

    /// An initial value.
    fn init(&mut self) -> Option<Init> {
        if self.kind() == Kind::LeftBrace {
            self.nest()?;
            self.advance();
            if self.kind() == Kind::Ident && self.kind_after(1) == Kind::Equal {
                let list = self.opaque_properties()?;
                self.unnest();
                return Some(Init::Properties(list));
            }
            let mut list = Vec::new();
            while self.kind() != Kind::RightBrace {
                list.push(self.init()?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::RightBrace, "to close the initial value")?;
            self.unnest();
            return Some(Init::List(list));
        }
        // `0xFF(symbol)`: one byte of an address.
        if self.kind() == Kind::Number && self.kind_after(1) == Kind::LeftParen {
            let mask = self.unsigned_wide("as a mask")?;
            self.advance();
            let mut symbol = self.init_symbol()?;
            symbol.mask = Some(mask);
            self.expect(Kind::RightParen, "to close the masked address")?;
            return Some(Init::Symbol(symbol));
        }
        if self.kind() == Kind::Ident && self.word() != "WARP_SZ" {
            return self.init_symbol().map(Init::Symbol);
        }
        self.constant().map(Init::Value)
    }

    /// `field = value, …}`: what stands in the braces of a texture, sampler or surface.
    fn opaque_properties(&mut self) -> Option<Vec<(OpaqueProperty, OpaqueValue)>> {
        let list = self.separated(|parser| {
            let span = parser.span();
            let name = parser.ident("as a property")?;
            let Some(property) = OpaqueProperty::from_word(Word::new(name)) else {
                let name = super::shorten(name);
                let message = format!("`{name}` is no property of a texture, sampler or surface");
                return parser.error(Code::Initialiser, span, message);
            };
            parser.expect(Kind::Equal, "after a property")?;
            if parser.kind() != Kind::Ident {
                return Some((property, OpaqueValue::Number(parser.constant()?)));
            }
            let (name, span) = (parser.word(), parser.span());
            parser.advance();
            match OpaqueWord::from_word(Word::new(name)) {
                Some(word) => Some((property, OpaqueValue::Word(word))),
                None => {
                    let message = format!("`{}` is no value of a property", super::shorten(name));
                    parser.error(Code::Initialiser, span, message)
                }
            }
        })?;
        self.expect(Kind::RightBrace, "to close the initial value")?;
        Some(list)
    }

    fn init_symbol(&mut self) -> Option<InitSymbol> {
        let generic =
            self.kind() == Kind::Ident && self.word() == "generic" && self.kind_after(1) == Kind::LeftParen;
        if generic {
            self.advance();
            self.advance();
        }
        let span = self.span();
        let word = self.ident("as an initial value")?;
        let Some(global) = self.globals.get(word) else {
            return self.error(Code::Undeclared, span, format!("`{word}` is not declared here"));
        };
        let name = global.name.clone();
        if generic {
            self.expect(Kind::RightParen, "to close `generic`")?;
        }
        let offset = self.symbol_offset()?;
        Some(InitSymbol { name, generic, offset, mask: None })
    }

    /// What stands after `.loc`.
    pub(super) fn loc(&mut self) -> Option<Loc> {
        let file = self.unsigned("as the file of a `.loc`")?;
        let line = self.unsigned("as the line of a `.loc`")?;
        let column = self.unsigned("as the column of a `.loc`")?;
        let mut loc = Loc { file, line, column, inlined: None };
        if self.kind() == Kind::Comma {
            self.advance();
            let span = self.span();
            if self.ident("in `.loc`")? != "function_name" {
                return self.error(Code::Directive, span, "expected `function_name` in `.loc`");
            }
            let function = self.ident("as the label of the function's name")?.to_string();
            let offset = self.symbol_offset()?;
            self.expect(Kind::Comma, "in `.loc`")?;
            let span = self.span();
            if self.ident("in `.loc`")? != "inlined_at" {
                return self.error(Code::Directive, span, "expected `inlined_at` in `.loc`");
            }
            loc.inlined = Some(Inlined {
                function,
                offset,
                file: self.unsigned("as a file")?,
                line: self.unsigned("as a line")?,
                column: self.unsigned("as a column")?,
            });
        }
        Some(loc)
    }
}
