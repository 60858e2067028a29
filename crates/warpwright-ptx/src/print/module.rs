//! Modules, declarations and statements.

use super::Writer;
use crate::ir::*;
use crate::op::Modifier;

/// What the printer adds to the module's own text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// For instructions that a Rust line asked for, `.loc` directives that name the line, and the
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

    fn module(&mut self, module: &'a Module) {
        for comment in &module.preamble {
            self.comment(comment, "");
        }
        self.text(".version ");
        self.text(&module.version.to_string());
        self.text("\n.target ");
        self.text(&module.target.arch.to_string());
        for option in &module.target.options {
            self.text(", ");
            self.text(option.name());
        }
        match module.address_size {
            Some(AddressSize::Bits32) => self.text("\n.address_size 32\n"),
            Some(AddressSize::Bits64) => self.text("\n.address_size 64\n"),
            None => self.text("\n"),
        }
        for i in 0..self.files.names.len() {
            self.text(".file ");
            self.number(self.files.first + i as u32);
            self.text(" \"");
            let name = self.files.names[i].replace('\\', "/");
            self.text(&name);
            self.text("\"\n");
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
            ItemKind::Alias { name, target } => {
                self.text(".alias ");
                self.text(name);
                self.text(", ");
                self.text(target);
                self.text(";\n");
            }
            ItemKind::File(file) => {
                self.text(".file ");
                self.number(file.index);
                self.text(" \"");
                self.text(&file.path);
                self.text("\"");
                if let Some((time, size)) = file.stamp {
                    self.text(", ");
                    self.number(time);
                    self.text(", ");
                    self.number(size);
                }
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
        if comment.block {
            self.text("/*");
            self.text(&comment.text);
            self.text("*/\n");
        } else {
            self.text("//");
            self.text(&comment.text);
            self.text("\n");
        }
    }

    fn pragma(&mut self, strings: &[String]) {
        self.text(".pragma ");
        for (i, string) in strings.iter().enumerate() {
            self.text(if i > 0 { ", \"" } else { "\"" });
            self.text(string);
            self.text("\"");
        }
        self.text(";");
    }

    fn loc(&mut self, loc: &Loc) {
        self.text(".loc ");
        self.number(loc.file);
        self.text(" ");
        self.number(loc.line);
        self.text(" ");
        self.number(loc.column);
        if let Some(inlined) = &loc.inlined {
            self.text(", function_name ");
            self.text(&inlined.function);
            self.out.offset(inlined.offset);
            self.text(", inlined_at ");
            self.number(inlined.file);
            self.text(" ");
            self.number(inlined.line);
            self.text(" ");
            self.number(inlined.column);
        }
        self.text("\n");
    }

    fn section(&mut self, section: &Section) {
        self.text(".section ");
        self.text(&section.name);
        self.text("\n{\n");
        for line in &section.lines {
            match line {
                SectionLine::Label(name) => {
                    self.text(name);
                    self.text(":\n");
                }
                SectionLine::Data { ty, values } => {
                    self.text("    .");
                    self.text(ty.name());
                    self.text(" ");
                    for (i, value) in values.iter().enumerate() {
                        if i > 0 {
                            self.text(", ");
                        }
                        match value {
                            SectionValue::Int(imm) => self.out.imm(*imm),
                            SectionValue::Label(name, offset) => {
                                self.text(name);
                                self.out.offset(*offset);
                            }
                            SectionValue::Difference(a, b) => {
                                self.text(a);
                                self.text("-");
                                self.text(b);
                            }
                        }
                    }
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

    fn attributes(&mut self, attributes: &[Attribute]) {
        if attributes.is_empty() {
            return;
        }
        self.text(" .attribute(");
        for (i, attribute) in attributes.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            match attribute {
                Attribute::Managed => self.text(".managed"),
                Attribute::Unified(high, low) => {
                    self.text(".unified(");
                    self.number(*high);
                    self.text(", ");
                    self.number(*low);
                    self.text(")");
                }
            }
        }
        self.text(")");
    }

    /// A declaration, without what ends it.
    fn variable(&mut self, variable: &Variable) {
        self.linkage(variable.linkage);
        self.text(".");
        self.text(variable.space.text());
        if let Some(bank) = variable.bank {
            self.text("[");
            self.number(bank);
            self.text("]");
        }
        self.attributes(&variable.attributes);
        if variable.pointee.is_none()
            && let Some(align) = variable.align
        {
            self.text(" .align ");
            self.number(align);
        }
        if let Some(vector) = variable.vector {
            self.text(" .");
            self.text(vector.text());
        }
        self.text(" .");
        self.text(variable.ty.name());
        if let Some(pointee) = &variable.pointee {
            self.text(" .ptr");
            if let Some(space) = pointee.space {
                self.text(" .");
                self.text(space.text());
            }
            if let Some(align) = pointee.align {
                self.text(" .align ");
                self.number(align);
            }
        }
        self.text(" ");
        self.text(&variable.name);
        if let Some(range) = variable.range {
            self.text("<");
            self.number(range);
            self.text(">");
        }
        for dim in &variable.dims {
            self.text("[");
            if let Some(dim) = dim {
                self.number(*dim);
            }
            self.text("]");
        }
        if let Some(init) = &variable.init {
            self.text(" = ");
            self.init(init);
        }
    }

    fn init(&mut self, init: &Init) {
        match init {
            Init::Value(imm) => self.out.imm(*imm),
            Init::Symbol(symbol) => {
                if let Some(mask) = symbol.mask {
                    self.text("0x");
                    self.text(&format!("{mask:X}"));
                    self.text("(");
                }
                if symbol.generic {
                    self.text("generic(");
                    self.text(&symbol.name);
                    self.text(")");
                } else {
                    self.text(&symbol.name);
                }
                self.out.offset(symbol.offset);
                if symbol.mask.is_some() {
                    self.text(")");
                }
            }
            Init::Properties(list) => {
                self.text("{");
                for (i, (property, value)) in list.iter().enumerate() {
                    self.text(if i > 0 { ", " } else { "" });
                    self.text(property.text());
                    self.text(" = ");
                    match value {
                        OpaqueValue::Word(word) => self.text(word.text()),
                        OpaqueValue::Number(imm) => self.out.imm(*imm),
                    }
                }
                self.text("}");
            }
            Init::List(list) => {
                self.text("{");
                for (i, init) in list.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.init(init);
                }
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
            for (i, param) in function.returns.iter().enumerate() {
                if i > 0 {
                    self.text(", ");
                }
                self.param(function, *param);
            }
            self.text(") ");
        }
        self.text(&function.name);
        self.text("(");
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
                self.text(".reg .");
                self.text(function.register_type(reg).name());
                self.text(" ");
                self.out.reg(reg);
            }
        }
    }

    fn directive(&mut self, directive: &FunctionDirective) {
        let (name, numbers): (_, &[u32]) = match directive {
            FunctionDirective::MaxNtid(dims) => (".maxntid", dims),
            FunctionDirective::ReqNtid(dims) => (".reqntid", dims),
            FunctionDirective::ReqNCtaPerCluster(dims) => (".reqnctapercluster", dims),
            FunctionDirective::MinNCtaPerSm(n) => (".minnctapersm", std::slice::from_ref(n)),
            FunctionDirective::MaxNCtaPerSm(n) => (".maxnctapersm", std::slice::from_ref(n)),
            FunctionDirective::MaxNReg(n) => (".maxnreg", std::slice::from_ref(n)),
            FunctionDirective::MaxClusterRank(n) => (".maxclusterrank", std::slice::from_ref(n)),
            FunctionDirective::AbiPreserve(n) => (".abi_preserve", std::slice::from_ref(n)),
            FunctionDirective::AbiPreserveControl(n) => (".abi_preserve_control", std::slice::from_ref(n)),
            FunctionDirective::ExplicitCluster => (".explicitcluster", &[]),
            FunctionDirective::BlocksAreClusters => (".blocksareclusters", &[]),
            FunctionDirective::NoReturn => (".noreturn", &[]),
            FunctionDirective::Language(name) => {
                self.text(".language ");
                self.text(name);
                return;
            }
            FunctionDirective::Pragma(strings) => return self.pragma(strings),
        };
        self.text(name);
        for (i, number) in numbers.iter().enumerate() {
            self.text(if i > 0 { ", " } else { " " });
            self.number(*number);
        }
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
                for (i, range) in ranges.iter().enumerate() {
                    if i == 0 {
                        self.text(".reg .");
                        if let Some(vector) = range.vector {
                            self.text(vector.text());
                            self.text(" .");
                        }
                        self.text(range.ty.name());
                        self.text(" ");
                    } else {
                        self.text(", ");
                    }
                    self.text(&range.name);
                    if range.numbered {
                        self.text("<");
                        self.number(range.count);
                        self.text(">");
                    }
                }
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
                for (i, target) in targets.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.out.label(*target);
                }
                self.text(";");
            }
            StatementKind::CallTargets { label, targets } => {
                self.out.label(*label);
                self.text(": .calltargets ");
                for (i, target) in targets.iter().enumerate() {
                    if i > 0 {
                        self.text(", ");
                    }
                    self.text(target);
                }
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

    fn prototype(&mut self, prototype: &Prototype) {
        if !prototype.returns.is_empty() {
            self.prototype_params(&prototype.returns);
            self.text(" ");
        }
        self.text("_ ");
        self.prototype_params(&prototype.params);
        if prototype.noreturn {
            self.text(" .noreturn");
        }
        if let Some(n) = prototype.abi_preserve {
            self.text(" .abi_preserve ");
            self.number(n);
        }
        if let Some(n) = prototype.abi_preserve_control {
            self.text(" .abi_preserve_control ");
            self.number(n);
        }
    }

    fn prototype_params(&mut self, params: &[PrototypeParam]) {
        self.text("(");
        for (i, param) in params.iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            match param {
                PrototypeParam::Variable(variable) => self.variable(variable),
                PrototypeParam::Register(ty, name) => {
                    self.text(".reg .");
                    self.text(ty.name());
                    self.text(" ");
                    self.text(name);
                }
            }
        }
        self.text(")");
    }
}
