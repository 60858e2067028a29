//! Modules, declarations and statements.

use std::fmt::Display;

use super::Writer;
use crate::ir::*;
use crate::op::Modifier;

/// Additions to the module's own text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Adds `.loc` directives that name the Rust line of an instruction, for instructions that have one, and the
    /// `.file` table.
    pub rust_locations: bool,
}

/// The module as PTX text.
pub fn print(module: &Module) -> String {
    print_with(module, &Options::default())
}

/// The module as PTX text, with options.
pub fn print_with(module: &Module, options: &Options) -> String {
    // Room for what a statement usually takes, so that the text seldom moves.
    let statements: usize = module.functions().map(|function| function.statements().len()).sum();
    let mut printer =
        Printer { out: Writer::with_capacity(1024 + 48 * statements), files: RustFiles::default(), options };
    if options.rust_locations {
        printer.files = RustFiles::collect(module);
    }
    printer.module(module);
    printer.out.out
}

/// The Rust source files that instructions name, numbered after the module's own `.file`s.
#[derive(Default)]
struct RustFiles {
    first: u32,
    names: Vec<&'static str>,
}

impl RustFiles {
    fn collect(module: &Module) -> Self {
        let own = module.items.iter().filter_map(|item| match &item.kind {
            ItemKind::File(file) => Some(file.index),
            _ => None,
        });
        let mut files = RustFiles { first: own.max().unwrap_or(0).saturating_add(1), names: Vec::new() };
        for statement in module.functions().flat_map(|function| function.statements()) {
            if let Origin::Rust(location) = statement.origin
                && !files.names.contains(&location.file())
            {
                files.names.push(location.file());
            }
        }
        files
    }

    fn index(&self, file: &str) -> Option<u32> {
        self.names.iter().position(|name| *name == file).map(|i| self.first + i as u32)
    }
}

struct Printer<'a> {
    out: Writer<'a>,
    files: RustFiles,
    options: &'a Options,
}

impl<'a> Printer<'a> {
    fn text(&mut self, text: &str) {
        self.out.text(text);
    }

    fn number(&mut self, value: impl Into<u64>) {
        self.out.unsigned(value.into());
    }

    /// `before value after`, where there is a value.
    fn option(&mut self, before: &str, value: Option<impl Display>, after: &str) {
        if let Some(value) = value {
            self.text(&format!("{before}{value}{after}"));
        }
    }

    /// Items with commas between them.
    fn list<T>(&mut self, items: &'a [T], mut item: impl FnMut(&mut Self, &'a T)) {
        for (i, value) in items.iter().enumerate() {
            self.text(if i > 0 { ", " } else { "" });
            item(self, value);
        }
    }

    fn module(&mut self, module: &'a Module) {
        for comment in &module.preamble {
            self.comment(comment, "");
        }
        self.text(&format!(".version {}\n.target {}", module.version, module.target.arch));
        for option in &module.target.options {
            self.text(&format!(", {}", option.name()));
        }
        match module.address_size {
            Some(AddressSize::Bits32) => self.text("\n.address_size 32\n"),
            Some(AddressSize::Bits64) => self.text("\n.address_size 64\n"),
            None => self.text("\n"),
        }
        for i in 0..self.files.names.len() {
            let name = self.files.names[i].replace('\\', "/");
            self.text(&format!(".file {} \"{name}\"\n", self.files.first + i as u32));
        }
        let mut before: Option<&ItemKind> = None;
        for item in &module.items {
            let alike = before.is_some_and(|kind| {
                std::mem::discriminant(kind) == std::mem::discriminant(&item.kind)
                    || matches!(kind, ItemKind::Comment(_))
            });
            let joined = matches!(&item.kind, ItemKind::Comment(comment) if comment.trailing);
            let function =
                matches!(item.kind, ItemKind::Function(_)) && !matches!(before, Some(ItemKind::Comment(_)));
            if !joined && (!alike || function) {
                self.text("\n");
            }
            self.item(&item.kind);
            before = Some(&item.kind);
        }
    }

    fn item(&mut self, item: &'a ItemKind) {
        match item {
            ItemKind::Variable(variable) => {
                self.variable(variable);
                self.text(";\n");
            }
            ItemKind::Function(function) => self.function(function),
            ItemKind::Alias { name, target } => self.text(&format!(".alias {name}, {target};\n")),
            ItemKind::File(file) => {
                self.text(&format!(".file {} \"{}\"", file.index, file.path));
                self.option(", ", file.stamp.map(|(time, size)| format!("{time}, {size}")), "");
                self.text("\n");
            }
            ItemKind::Loc(loc) => self.loc(loc),
            ItemKind::Section(section) => self.section(section),
            ItemKind::Pragma(strings) => {
                self.pragma(strings);
                self.text("\n");
            }
            ItemKind::Comment(comment) => self.comment(comment, ""),
        }
    }

    /// A comment on a line of its own, or at the end of the line before.
    fn comment(&mut self, comment: &Comment, indent: &str) {
        if comment.trailing && self.out.out.ends_with('\n') {
            self.out.out.pop();
            self.text("  ");
        } else {
            self.text(indent);
        }
        let text = &comment.text;
        self.text(&if comment.block { format!("/*{text}*/\n") } else { format!("//{text}\n") });
    }

    fn pragma(&mut self, strings: &'a [String]) {
        self.text(".pragma ");
        self.list(strings, |printer, string| printer.text(&format!("\"{string}\"")));
        self.text(";");
    }

    fn loc(&mut self, Loc { file, line, column, inlined }: &Loc) {
        self.text(&format!(".loc {file} {line} {column}"));
        if let Some(Inlined { function, offset, file, line, column }) = inlined {
            self.text(&format!(", function_name {function}"));
            self.out.offset(*offset);
            self.text(&format!(", inlined_at {file} {line} {column}"));
        }
        self.text("\n");
    }

    fn section(&mut self, section: &'a Section) {
        self.text(&format!(".section {}\n{{\n", section.name));
        for line in &section.lines {
            match line {
                SectionLine::Label(name) => self.text(&format!("{name}:\n")),
                SectionLine::Data { ty, values } => {
                    self.text(&format!("    .{} ", ty.name()));
                    self.list(values, |printer, value| match value {
                        SectionValue::Int(imm) => printer.out.imm(*imm),
                        SectionValue::Label(name, offset) => {
                            printer.text(name);
                            printer.out.offset(*offset);
                        }
                        SectionValue::Difference(a, b) => printer.text(&format!("{a}-{b}")),
                    });
                    self.text("\n");
                }
                SectionLine::Comment(comment) => self.comment(comment, "    "),
            }
        }
        self.text("}\n");
    }

    fn linkage(&mut self, linkage: Linkage) {
        self.text(match linkage {
            Linkage::Local => "",
            Linkage::Extern => ".extern ",
            Linkage::Visible => ".visible ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        });
    }

    fn attributes(&mut self, attributes: &'a [Attribute]) {
        if attributes.is_empty() {
            return;
        }
        self.text(" .attribute(");
        self.list(attributes, |printer, attribute| match attribute {
            Attribute::Managed => printer.text(".managed"),
            Attribute::Unified(high, low) => printer.text(&format!(".unified({high}, {low})")),
        });
        self.text(")");
    }

    /// A declaration, without what ends it.
    fn variable(&mut self, variable: &'a Variable) {
        self.linkage(variable.linkage);
        self.text(&variable.space.to_string());
        self.option("[", variable.bank, "]");
        self.attributes(&variable.attributes);
        if variable.pointee.is_none() {
            self.option(" .align ", variable.align, "");
        }
        self.option(" ", variable.vector, "");
        self.text(&format!(" {}", variable.ty));
        if let Some(pointee) = variable.pointee {
            self.text(" .ptr");
            self.option(" ", pointee.space, "");
            self.option(" .align ", pointee.align, "");
        }
        self.text(&format!(" {}", variable.name));
        self.option("<", variable.range, ">");
        for dim in &variable.dims {
            self.text(&dim.map_or("[]".to_string(), |dim| format!("[{dim}]")));
        }
        if let Some(init) = &variable.init {
            self.text(" = ");
            self.init(init);
        }
    }

    fn init(&mut self, init: &'a Init) {
        match init {
            Init::Value(imm) => self.out.imm(*imm),
            Init::Symbol(symbol) => {
                self.option("0x", symbol.mask.map(|mask| format!("{mask:X}")), "(");
                let name = &symbol.name;
                self.text(&if symbol.generic { format!("generic({name})") } else { name.to_string() });
                self.out.offset(symbol.offset);
                self.text(if symbol.mask.is_some() { ")" } else { "" });
            }
            Init::Properties(list) => {
                self.text("{");
                self.list(list, |printer, (property, value)| {
                    printer.text(&format!("{} = ", property.text()));
                    match value {
                        OpaqueValue::Word(word) => printer.text(word.text()),
                        OpaqueValue::Number(imm) => printer.out.imm(*imm),
                    }
                });
                self.text("}");
            }
            Init::List(list) => {
                self.text("{");
                self.list(list, Self::init);
                self.text("}");
            }
        }
    }

    fn function(&mut self, function: &'a Function) {
        self.out.function = Some(function);
        self.linkage(function.linkage);
        self.text(match function.kind {
            FunctionKind::Entry => ".entry",
            FunctionKind::Func => ".func",
        });
        self.attributes(&function.attributes);
        self.text(" ");
        if !function.returns.is_empty() {
            self.text("(");
            self.list(&function.returns, |printer, param| printer.param(function, *param));
            self.text(") ");
        }
        self.text(&format!("{}(", function.name));
        for (i, param) in function.params.iter().enumerate() {
            self.text(if i > 0 { ",\n    " } else { "\n    " });
            self.param(function, *param);
        }
        self.text(if function.params.is_empty() { ")" } else { "\n)" });
        for directive in &function.directives {
            self.text("\n");
            self.directive(directive);
        }
        match &function.body {
            None => self.text(";\n"),
            Some(body) => {
                self.text("\n{\n");
                self.body(function, body);
                self.text("}\n");
            }
        }
        self.out.function = None;
    }

    fn param(&mut self, function: &'a Function, param: Param) {
        match param {
            Param::Variable(id) => self.variable(function.variable(id)),
            Param::Register(reg) => {
                let RegisterRange { ty, vector, name, .. } = function.register_range(reg);
                self.register_param(*ty, *vector, name);
            }
        }
    }

    fn register_param(&mut self, ty: Type, vector: Option<VectorWidth>, name: &Name) {
        self.text(".reg ");
        self.option("", vector, " ");
        self.text(&format!("{ty} {name}"));
    }

    fn directive(&mut self, directive: &'a FunctionDirective) {
        use FunctionDirective::*;
        let (name, numbers): (_, &[u32]) = match directive {
            MaxNtid(dims) => (".maxntid", dims),
            ReqNtid(dims) => (".reqntid", dims),
            ReqNCtaPerCluster(dims) => (".reqnctapercluster", dims),
            MinNCtaPerSm(n) => (".minnctapersm", std::slice::from_ref(n)),
            MaxNCtaPerSm(n) => (".maxnctapersm", std::slice::from_ref(n)),
            MaxNReg(n) => (".maxnreg", std::slice::from_ref(n)),
            MaxClusterRank(n) => (".maxclusterrank", std::slice::from_ref(n)),
            AbiPreserve(n) => (".abi_preserve", std::slice::from_ref(n)),
            AbiPreserveControl(n) => (".abi_preserve_control", std::slice::from_ref(n)),
            ExplicitCluster => (".explicitcluster", &[]),
            BlocksAreClusters => (".blocksareclusters", &[]),
            NoReturn => (".noreturn", &[]),
            Language(name) => return self.text(&format!(".language {name}")),
            Pragma(strings) => return self.pragma(strings),
        };
        self.text(name);
        self.text(if numbers.is_empty() { "" } else { " " });
        self.list(numbers, |printer, number| printer.number(*number));
    }

    fn body(&mut self, function: &'a Function, body: &'a [Statement]) {
        let mut depth = 1usize;
        let mut rust_line = None;
        for statement in body {
            if self.options.rust_locations
                && let Origin::Rust(location) = statement.origin
                && matches!(statement.kind, StatementKind::Instruction(_))
                && rust_line != Some((location.file(), location.line()))
                && let Some(file) = self.files.index(location.file())
            {
                rust_line = Some((location.file(), location.line()));
                self.indent(depth);
                self.loc(&Loc { file, line: location.line(), column: location.column(), inlined: None });
            }
            match &statement.kind {
                StatementKind::Open => {
                    self.indent(depth);
                    self.text("{\n");
                    depth += 1;
                }
                StatementKind::Close => {
                    depth = depth.saturating_sub(1).max(1);
                    self.indent(depth);
                    self.text("}\n");
                }
                StatementKind::Label(label) => {
                    self.out.label(*label);
                    self.text(":\n");
                }
                StatementKind::Comment(comment) => {
                    let indent = "    ".repeat(depth);
                    self.comment(comment, &indent);
                }
                StatementKind::Loc(loc) => {
                    self.indent(depth);
                    self.loc(loc);
                }
                kind => {
                    self.indent(depth);
                    self.statement(function, kind);
                    self.text("\n");
                }
            }
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text("    ");
        }
    }

    fn statement(&mut self, function: &'a Function, kind: &'a StatementKind) {
        match kind {
            StatementKind::Instruction(instruction) => {
                self.out.start = self.out.out.len();
                if let Some(guard) = instruction.guard {
                    self.text(if guard.negated { "@!" } else { "@" });
                    self.out.reg(guard.reg);
                    self.text(" ");
                }
                instruction.op.print(&mut self.out);
                self.text(";");
            }
            StatementKind::Registers { first, count } => {
                let ranges = &function.registers[*first as usize..(*first + *count) as usize];
                if let Some(first) = ranges.first() {
                    self.text(".reg ");
                    self.option("", first.vector, " ");
                    self.text(&format!("{} ", first.ty));
                }
                self.list(ranges, |printer, range| {
                    printer.text(&range.name);
                    printer.option("<", range.numbered.then_some(range.count), ">");
                });
                self.text(";");
            }
            StatementKind::Variable(id) => {
                self.variable(function.variable(*id));
                self.text(";");
            }
            StatementKind::Pragma(strings) => self.pragma(strings),
            StatementKind::BranchTargets { label, targets } => {
                self.out.label(*label);
                self.text(": .branchtargets ");
                self.list(targets, |printer, target| printer.out.label(*target));
                self.text(";");
            }
            StatementKind::CallTargets { label, targets } => {
                self.out.label(*label);
                self.text(": .calltargets ");
                self.list(targets, |printer, target| printer.text(target));
                self.text(";");
            }
            StatementKind::CallPrototype { label, prototype } => {
                self.out.label(*label);
                self.text(": .callprototype ");
                self.prototype(prototype);
                self.text(";");
            }
            StatementKind::Open
            | StatementKind::Close
            | StatementKind::Label(_)
            | StatementKind::Comment(_)
            | StatementKind::Loc(_) => {}
        }
    }

    fn prototype(&mut self, prototype: &'a Prototype) {
        if !prototype.returns.is_empty() {
            self.prototype_params(&prototype.returns);
            self.text(" ");
        }
        self.text("_ ");
        self.prototype_params(&prototype.params);
        self.text(if prototype.noreturn { " .noreturn" } else { "" });
        self.option(" .abi_preserve ", prototype.abi_preserve, "");
        self.option(" .abi_preserve_control ", prototype.abi_preserve_control, "");
    }

    fn prototype_params(&mut self, params: &'a [PrototypeParam]) {
        self.text("(");
        self.list(params, |printer, param| match param {
            PrototypeParam::Variable(variable) => printer.variable(variable),
            PrototypeParam::Register(ty, vector, name) => printer.register_param(*ty, *vector, name),
        });
        self.text(")");
    }
}
