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
            self.expect(Kind::Semicolon, "to end the prototype, or `{` to begin the body")?;
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
        match self.globals.get_mut(name) {
            Some(before) if (before.defined && defined) || before.function != function => {
                self.error(Code::Redeclared, span, format!("`{name}` is declared twice"))
            }
            Some(before) => {
                before.defined |= defined;
                Some(())
            }
            None => {
                self.globals.insert(name, GlobalName { name: name.into(), function, defined });
                Some(())
            }
        }
    }

    /// `(…)`: parameters or return values.
    fn params(&mut self, function: &mut Function, scopes: &mut Scopes<'s>) -> Option<Vec<Param>> {
        self.advance();
        let mut params = Vec::new();
        if self.eat(Kind::RightParen) {
            return Some(params);
        }
        loop {
            let start = self.span();
            if self.eat_dot("reg") {
                let (ty, vector) = self.register_type()?;
                let span = self.span();
                let name = self.ident("as the name of a parameter")?;
                let first = Reg(function.register_count());
                function.registers.push(RegisterRange {
                    origin: start.to(span).into(),
                    ty,
                    vector,
                    name: name.into(),
                    first,
                    count: 1,
                    numbered: false,
                });
                self.declare_local(scopes, name, Local::Register(first, vector), span)?;
                params.push(Param::Register(first));
            } else {
                let (variable, name, span) = self.variable_declaration(Linkage::Local, true)?;
                let id = VarId(function.variables.len() as u32);
                function.variables.push(variable);
                self.declare_local(scopes, name, Local::Variable(id), span)?;
                params.push(Param::Variable(id));
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightParen, "to close the list of parameters")?;
        Some(params)
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
        while self.kind() == Kind::Dot {
            let span = self.span();
            let word = self.dot_word();
            self.advance();
            list.push(match word {
                "maxntid" => FunctionDirective::MaxNtid(self.dims()?),
                "reqntid" => FunctionDirective::ReqNtid(self.dims()?),
                "reqnctapercluster" => FunctionDirective::ReqNCtaPerCluster(self.dims()?),
                "minnctapersm" => FunctionDirective::MinNCtaPerSm(self.unsigned("as a number of blocks")?),
                "maxnctapersm" => FunctionDirective::MaxNCtaPerSm(self.unsigned("as a number of blocks")?),
                "maxnreg" => FunctionDirective::MaxNReg(self.unsigned("as a number of registers")?),
                "maxclusterrank" => {
                    FunctionDirective::MaxClusterRank(self.unsigned("as a number of blocks")?)
                }
                "abi_preserve" => FunctionDirective::AbiPreserve(self.unsigned("as a number of registers")?),
                "abi_preserve_control" => {
                    FunctionDirective::AbiPreserveControl(self.unsigned("as a number of registers")?)
                }
                "explicitcluster" => FunctionDirective::ExplicitCluster,
                "blocksareclusters" => FunctionDirective::BlocksAreClusters,
                "noreturn" => FunctionDirective::NoReturn,
                "language" => FunctionDirective::Language(self.ident("after `.language`")?.to_string()),
                "pragma" => FunctionDirective::Pragma(self.pragma()?),
                _ => {
                    return self.error(
                        Code::Directive,
                        span,
                        format!("`.{word}` is no directive of a function"),
                    );
                }
            });
        }
        Some(list)
    }

    /// The strings of a `.pragma`, and its `;`.
    pub(super) fn pragma(&mut self) -> Option<Vec<String>> {
        let mut strings = Vec::new();
        loop {
            strings.push(self.string("after `.pragma`")?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
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
                    let span = function_span(function);
                    self.error::<()>(
                        Code::Syntax,
                        span,
                        format!("the body of `{}` does not end", function.name),
                    );
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
            let mut targets = Vec::new();
            loop {
                let span = self.span();
                self.ident("as a branch target")?;
                targets.push(scopes.label(span));
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::Semicolon, "to end `.branchtargets`")?;
            return Some(StatementKind::BranchTargets { label, targets });
        }
        if self.eat_dot("calltargets") {
            let mut targets = Vec::new();
            loop {
                let span = self.span();
                let name = self.ident("as a call target")?;
                match self.globals.get(name) {
                    Some(global) if global.function => targets.push(global.name.clone()),
                    _ => {
                        return self.error(
                            Code::Undeclared,
                            span,
                            format!("`{name}` is not a declared function"),
                        );
                    }
                }
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
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
        self.advance();
        let mut params = Vec::new();
        if self.eat(Kind::RightParen) {
            return Some(params);
        }
        loop {
            if self.eat_dot("reg") {
                let (ty, _) = self.register_type()?;
                let name = self.ident("as the name of a parameter (`_`)")?;
                params.push(PrototypeParam::Register(ty, name.into()));
            } else {
                let (variable, _, _) = self.variable_declaration(Linkage::Local, true)?;
                params.push(PrototypeParam::Variable(Box::new(variable)));
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightParen, "to close the list of parameters")?;
        Some(params)
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
                let (mut variable, mut name, mut span) = self.variable_declaration(linkage, false)?;
                loop {
                    let id = VarId(function.variables.len() as u32);
                    self.declare_local(scopes, name, Local::Variable(id), span)?;
                    // `.space .type a, b;` declares both alike.
                    let like = Variable { dims: Vec::new(), init: None, ..variable.clone() };
                    body.push(Statement { origin: variable.origin, kind: StatementKind::Variable(id) });
                    function.variables.push(variable);
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                    variable = like;
                    (name, span) = self.declarator(&mut variable)?;
                }
                self.expect(Kind::Semicolon, "to end the declaration")?;
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
        loop {
            let span = self.span();
            let name = self.ident("as the name of a register")?;
            let mut count = 1;
            let numbered = self.eat(Kind::Less);
            if numbered {
                count = self.unsigned("as a number of registers")?;
                self.expect(Kind::Greater, "to close the number of registers")?;
            }
            let first = Reg(function.register_count());
            let width = vector.map_or(1, |vector| vector.elements() as u32);
            if count > (MAX_REGISTERS - first.0) / width {
                let message = format!("a function declares more than {MAX_REGISTERS} registers");
                return self.error(Code::TooLarge, span, message);
            }
            function.registers.push(RegisterRange {
                origin: start.to(self.last_span()).into(),
                ty,
                vector,
                name: name.into(),
                first,
                count,
                numbered,
            });
            if !numbered {
                self.declare_local(scopes, name, Local::Register(first, vector), span)?;
            } else if !scopes.declare_range(name, RegisterNames { first, count, vector }) {
                return self.error(
                    Code::Redeclared,
                    span,
                    format!("`{name}<…>` is declared twice in this scope"),
                );
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
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
                    return self.error(
                        Code::Directive,
                        span,
                        format!("`.{}` is no type", super::shorten(word.text())),
                    );
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
