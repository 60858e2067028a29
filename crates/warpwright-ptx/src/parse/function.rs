//! Functions: signature, directives, body.

use super::lexer::Kind;
use super::scope::{Local, RegisterNames, Scopes};
use super::{GlobalName, Parser};
use crate::diag::Code;
use crate::ir::*;
use crate::op::{LabelResolver, Modifier, Word};

/// The most registers that a function may declare.
const MAX_REGISTERS: u32 = 1 << 28;

impl<'s> Parser<'s> {
    /// A function, from `.entry` or `.func` on.
    pub(super) fn function(&mut self, linkage: Linkage, start: Span) -> Option<Function> {
        let kind = if self.is_dot("entry") { FunctionKind::Entry } else { FunctionKind::Func };
        self.advance();
        let mut function = Function::new(kind, "");
        function.linkage = linkage;
        let mut scopes = Scopes::new(self.text);
        function.attributes = self.attributes()?;
        if self.kind() == Kind::LeftParen {
            function.returns = self.params(&mut function, &mut scopes)?;
        }
        let name_span = self.span();
        let name = self.ident("as the name of the function")?;
        function.name = name.into();
        if self.kind() == Kind::LeftParen {
            function.params = self.params(&mut function, &mut scopes)?;
        }
        function.directives = self.function_directives()?;
        function.origin = start.to(self.last_span()).into();
        let defined = self.kind() == Kind::LeftBrace;
        self.declare_global(name, name_span, true, defined)?;
        if !defined {
            function.body = None;
            // That of a device function may end where something else begins.
            let ended = kind == FunctionKind::Func && (self.kind() == Kind::End || self.begins_item());
            if !ended {
                self.expect(Kind::Semicolon, "to end the prototype, or `{` to begin the body")?;
            }
            return Some(function);
        }
        self.advance();
        self.body(&mut function, &mut scopes);
        let label_errors = scopes.finish(&mut function);
        self.diagnostics.extend(label_errors);
        Some(function)
    }

    /// Declares a module-scope name. A second definition is an error.
    pub(super) fn declare_global(
        &mut self,
        name: &'s str,
        span: Span,
        function: bool,
        defined: bool,
    ) -> Option<()> {
        let new = GlobalName { name: name.into(), function, defined: false, scalar: None };
        let global = self.globals.entry(name).or_insert(new);
        if (global.defined && defined) || global.function != function {
            return self.error(Code::Redeclared, span, format!("`{name}` is declared twice"));
        }
        global.defined |= defined;
        Some(())
    }

    /// `(…)`: parameters or return values.
    fn params(&mut self, function: &mut Function, scopes: &mut Scopes<'s>) -> Option<Vec<Param>> {
        self.enclosed(Kind::RightParen, "to close the list of parameters", |parser| {
            let start = parser.span();
            if !parser.eat_dot("reg") {
                let (variable, name, span) = parser.variable_declaration(Linkage::Local, true)?;
                let id = VarId(function.variables.len() as u32);
                let local = Local::Variable(id, variable.scalar_of_array());
                function.variables.push(variable);
                parser.declare_local(scopes, name, local, span)?;
                return Some(Param::Variable(id));
            }
            let (ty, vector) = parser.register_type()?;
            let span = parser.span();
            let name = parser.ident("as the name of a parameter")?;
            let first = Reg(function.register_count());
            let origin = start.to(span).into();
            let name_of = name.into();
            let range = RegisterRange { origin, ty, vector, name: name_of, first, count: 1, numbered: false };
            function.registers.push(range);
            parser.declare_local(scopes, name, Local::Register(first, vector), span)?;
            Some(Param::Register(first))
        })
    }

    fn declare_local(
        &mut self,
        scopes: &mut Scopes<'s>,
        name: &'s str,
        local: Local,
        span: Span,
    ) -> Option<()> {
        if scopes.declare(name, local) {
            Some(())
        } else {
            self.error(Code::Redeclared, span, format!("`{name}` is declared twice in this scope"))
        }
    }

    fn dims(&mut self) -> Option<Vec<u32>> {
        let mut dims = vec![self.unsigned("as a dimension")?];
        while dims.len() < 3 && self.eat(Kind::Comma) {
            dims.push(self.unsigned("as a dimension")?);
        }
        Some(dims)
    }

    fn function_directives(&mut self) -> Option<Vec<FunctionDirective>> {
        let mut list = Vec::new();
        while self.kind() == Kind::Dot && !self.begins_item() {
            let span = self.span();
            let word = self.dot_word();
            self.advance();
            use FunctionDirective::*;
            list.push(match word {
                "maxntid" => MaxNtid(self.dims()?),
                "reqntid" => ReqNtid(self.dims()?),
                "reqnctapercluster" => ReqNCtaPerCluster(self.dims()?),
                "minnctapersm" => MinNCtaPerSm(self.unsigned("as a number of blocks")?),
                "maxnctapersm" => MaxNCtaPerSm(self.unsigned("as a number of blocks")?),
                "maxnreg" => MaxNReg(self.unsigned("as a number of registers")?),
                "maxclusterrank" => MaxClusterRank(self.unsigned("as a number of blocks")?),
                "abi_preserve" => AbiPreserve(self.unsigned("as a number of registers")?),
                "abi_preserve_control" => AbiPreserveControl(self.unsigned("as a number of registers")?),
                "explicitcluster" => ExplicitCluster,
                "blocksareclusters" => BlocksAreClusters,
                "noreturn" => NoReturn,
                "language" => Language(self.ident("after `.language`")?.to_string()),
                "pragma" => Pragma(self.pragma()?),
                _ => {
                    let message = format!("`.{word}` is no directive of a function");
                    return self.error(Code::Directive, span, message);
                }
            });
        }
        Some(list)
    }

    /// The strings of a `.pragma`, and its `;`.
    pub(super) fn pragma(&mut self) -> Option<Vec<String>> {
        let strings = self.separated(|parser| parser.string("after `.pragma`"))?;
        self.expect(Kind::Semicolon, "to end `.pragma`")?;
        Some(strings)
    }

    /// Text of a string literal, its escapes as written.
    pub(super) fn string(&mut self, context: &str) -> Option<String> {
        if self.kind() != Kind::String {
            return self.unexpected("a string", context);
        }
        let word = self.word();
        self.advance();
        // A string that does not end has been reported, and lacks its last quote.
        Some(word.get(1..word.len() - 1).unwrap_or_default().to_string())
    }

    /// The statements, up to the closing brace.
    fn body(&mut self, function: &mut Function, scopes: &mut Scopes<'s>) {
        let mut body = Vec::new();
        let mut depth = 0usize;
        loop {
            self.take_comments(|comment| body.push(StatementKind::Comment(comment).into()));
            match self.kind() {
                Kind::End => {
                    let message = format!("the body of `{}` does not end", function.name);
                    self.error::<()>(Code::Syntax, function_span(function), message);
                    break;
                }
                Kind::LeftBrace => {
                    let span = self.span();
                    if depth == super::MAX_NESTING {
                        self.too_deep::<()>(span);
                        self.recover(self.at);
                        continue;
                    }
                    depth += 1;
                    self.advance();
                    scopes.open();
                    body.push(Statement { origin: span.into(), kind: StatementKind::Open });
                }
                Kind::RightBrace => {
                    let span = self.span();
                    self.advance();
                    if depth == 0 {
                        break;
                    }
                    depth -= 1;
                    scopes.close();
                    body.push(Statement { origin: span.into(), kind: StatementKind::Close });
                }
                _ => {
                    let (start, nesting, before) = (self.at, self.nesting, self.diagnostics.len());
                    if self.statement(function, scopes, &mut body).is_none() {
                        debug_assert!(self.diagnostics.len() > before);
                        self.nesting = nesting;
                        self.recover(start);
                    }
                }
            }
        }
        function.body = Some(body);
    }

    fn statement(
        &mut self,
        function: &mut Function,
        scopes: &mut Scopes<'s>,
        body: &mut Vec<Statement>,
    ) -> Option<()> {
        let start = self.span();
        match self.kind() {
            Kind::Ident if self.kind_after(1) == Kind::Colon => {
                let name = self.word();
                self.advance();
                self.advance();
                let label = scopes.define_label(name, start);
                let kind = self.label_statement(label, scopes)?;
                body.push(Statement { origin: start.to(self.last_span()).into(), kind });
                Some(())
            }
            Kind::Ident | Kind::At => {
                let (instruction, span) = self.instruction(scopes)?;
                body.push(Statement { origin: span.into(), kind: StatementKind::Instruction(instruction) });
                Some(())
            }
            Kind::Dot => self.directive_statement(function, scopes, body),
            _ => self.unexpected("an instruction, a label or a declaration", "here"),
        }
    }

    /// What stands after `label:`.
    fn label_statement(&mut self, label: LabelId, scopes: &mut Scopes<'s>) -> Option<StatementKind> {
        if self.eat_dot("branchtargets") {
            let targets = self.separated(|parser| {
                let span = parser.span();
                parser.ident("as a branch target")?;
                Some(scopes.label(span))
            })?;
            self.expect(Kind::Semicolon, "to end `.branchtargets`")?;
            return Some(StatementKind::BranchTargets { label, targets });
        }
        if self.eat_dot("calltargets") {
            let targets = self.separated(|parser| {
                let span = parser.span();
                let name = parser.ident("as a call target")?;
                match parser.globals.get(name) {
                    Some(global) if global.function => Some(global.name.clone()),
                    _ => parser.error(Code::Undeclared, span, format!("`{name}` is not a declared function")),
                }
            })?;
            self.expect(Kind::Semicolon, "to end `.calltargets`")?;
            return Some(StatementKind::CallTargets { label, targets });
        }
        if self.eat_dot("callprototype") {
            let prototype = self.prototype()?;
            return Some(StatementKind::CallPrototype { label, prototype });
        }
        Some(StatementKind::Label(label))
    }

    fn prototype(&mut self) -> Option<Prototype> {
        let returns = if self.kind() == Kind::LeftParen { self.prototype_params()? } else { Vec::new() };
        self.ident("(`_`) as the name of the prototype")?;
        let params = if self.kind() == Kind::LeftParen { self.prototype_params()? } else { Vec::new() };
        let mut prototype =
            Prototype { returns, params, noreturn: false, abi_preserve: None, abi_preserve_control: None };
        loop {
            if self.eat_dot("noreturn") {
                prototype.noreturn = true;
            } else if self.eat_dot("abi_preserve") {
                prototype.abi_preserve = Some(self.unsigned("after `.abi_preserve`")?);
            } else if self.eat_dot("abi_preserve_control") {
                prototype.abi_preserve_control = Some(self.unsigned("after `.abi_preserve_control`")?);
            } else {
                break;
            }
        }
        self.expect(Kind::Semicolon, "to end `.callprototype`")?;
        Some(prototype)
    }

    fn prototype_params(&mut self) -> Option<Vec<PrototypeParam>> {
        self.enclosed(Kind::RightParen, "to close the list of parameters", |parser| {
            if !parser.eat_dot("reg") {
                let (variable, _, _) = parser.variable_declaration(Linkage::Local, true)?;
                return Some(PrototypeParam::Variable(Box::new(variable)));
            }
            let (ty, vector) = parser.register_type()?;
            let name = parser.ident("as the name of a parameter (`_`)")?;
            Some(PrototypeParam::Register(ty, vector, name.into()))
        })
    }

    fn directive_statement(
        &mut self,
        function: &mut Function,
        scopes: &mut Scopes<'s>,
        body: &mut Vec<Statement>,
    ) -> Option<()> {
        let start = self.span();
        let kind = match self.dot_word() {
            "reg" => {
                self.advance();
                self.registers(function, scopes, start)?
            }
            "loc" => {
                self.advance();
                StatementKind::Loc(self.loc()?)
            }
            "pragma" => {
                self.advance();
                StatementKind::Pragma(self.pragma()?)
            }
            "param" | "local" | "shared" | "global" | "const" | "tex" | "param::entry" | "param::func"
            | "shared::cta" | "extern" => {
                let linkage = if self.eat_dot("extern") { Linkage::Extern } else { Linkage::Local };
                self.variables(linkage, |parser, variable, name, span| {
                    let id = VarId(function.variables.len() as u32);
                    let local = Local::Variable(id, variable.scalar_of_array());
                    parser.declare_local(scopes, name, local, span)?;
                    body.push(Statement { origin: variable.origin, kind: StatementKind::Variable(id) });
                    function.variables.push(variable);
                    Some(())
                })?;
                return Some(());
            }
            word => {
                let message = format!("`.{}` is no directive of a function's body", super::shorten(word));
                self.advance();
                return self.error(Code::Directive, start, message);
            }
        };
        body.push(Statement { origin: start.to(self.last_span()).into(), kind });
        Some(())
    }

    /// `.reg` from its type on.
    fn registers(
        &mut self,
        function: &mut Function,
        scopes: &mut Scopes<'s>,
        start: Span,
    ) -> Option<StatementKind> {
        let (ty, vector) = self.register_type()?;
        let first_range = function.registers.len() as u32;
        self.separated(|parser| {
            let span = parser.span();
            let name = parser.ident("as the name of a register")?;
            let mut count = 1;
            let numbered = parser.eat(Kind::Less);
            if numbered {
                count = parser.unsigned("as a number of registers")?;
                parser.expect(Kind::Greater, "to close the number of registers")?;
            }
            let first = Reg(function.register_count());
            let width = vector.map_or(1, |vector| vector.elements() as u32);
            if count > (MAX_REGISTERS - first.0) / width {
                let message = format!("a function declares more than {MAX_REGISTERS} registers");
                return parser.error(Code::TooLarge, span, message);
            }
            let origin = start.to(parser.last_span()).into();
            let range = RegisterRange { origin, ty, vector, name: name.into(), first, count, numbered };
            function.registers.push(range);
            if !numbered {
                parser.declare_local(scopes, name, Local::Register(first, vector), span)
            } else if scopes.declare_range(name, RegisterNames { first, count, vector }) {
                Some(())
            } else {
                let message = format!("`{name}<…>` is declared twice in this scope");
                parser.error(Code::Redeclared, span, message)
            }
        })?;
        self.expect(Kind::Semicolon, "to end the declaration")?;
        Some(StatementKind::Registers {
            first: first_range,
            count: function.registers.len() as u32 - first_range,
        })
    }

    fn register_type(&mut self) -> Option<(Type, Option<VectorWidth>)> {
        let mut vector = None;
        loop {
            if self.kind() != Kind::Dot {
                return self.unexpected("a type", "in a register declaration");
            }
            let span = self.span();
            let word = Word::new(self.dot_word());
            self.advance();
            if let Some(ty) = Type::from_word(word) {
                return Some((ty, vector));
            }
            match VectorWidth::from_word(word) {
                Some(width) if vector.is_none() => vector = Some(width),
                _ => {
                    let message = format!("`.{}` is no type", super::shorten(word.text()));
                    return self.error(Code::Directive, span, message);
                }
            }
        }
    }
}

fn function_span(function: &Function) -> Span {
    match function.origin {
        Origin::Text(span) => span,
        _ => Span::default(),
    }
}
