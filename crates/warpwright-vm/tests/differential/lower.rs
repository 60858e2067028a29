//! Programs as PTX text.
//!
//! Beside the pool there are registers that programs do not name: `%a0` the thread's record, `%a1` and
//! `%s3` its slice of shared memory (generic and not), `%a3` and `%a2` that of local memory; from `%a4`
//! and `%s4` on they are for the moment.

use crate::evaluate::SLICE;
use crate::generate::{DOUBLES, IMAGE_LOCAL, IMAGE_SHARED, Node, POOL, PREDICATES, RECORD, WORDS};
use std::fmt::Write;

const SCRATCH: &str =
    "    .reg .b16 %t<2>;\n    .reg .b32 %s<8>;\n    .reg .b64 %a<8>;\n    .reg .pred %q<2>;\n";

/// What a call passes and gets: a word, two words, a structure; a structure of two words and a long one.
const PROTOTYPE: &str =
    ".callprototype (.param .align 16 .b8 _[16]) _ (.param .b32 _, .param .b64 _, .param .align 8 .b8 _[8]);";

/// Writes a body.
struct Writer<'a> {
    out: String,
    labels: usize,
    /// Loops so far: each has a counter and a limit.
    loops: usize,
    /// Where `Break` goes.
    exits: Vec<usize>,
    /// How the function ends early.
    leave: &'a str,
    /// What its functions' names begin with.
    prefix: &'a str,
    in_function: bool,
}

/// A kernel over records: it reads its registers and slices, runs, and writes them back.
pub(crate) fn kernel(out: &mut String, name: &str, prefix: &str, body: &[Node]) {
    let mut writer = Writer {
        out: String::new(),
        labels: 0,
        loops: 0,
        exits: Vec::new(),
        leave: "    exit;\n",
        prefix,
        in_function: false,
    };
    writer.block(body);
    let _ = write!(out, "\n.visible .entry {name}(.param .u64 data)\n{{\n");
    declarations(out, writer.loops);
    let _ = write!(
        out,
        "    .local .align 16 .b8 slice[{SLICE}];
    ld.param.u64 %a0, [data];
    cvta.to.global.u64 %a0, %a0;
    mov.u32 %s0, %tid.x;
    mov.u32 %s1, %ctaid.x;
    mov.u32 %s2, %ntid.x;
    mad.lo.u32 %s1, %s1, %s2, %s0;
    mad.wide.u32 %a0, %s1, {RECORD}, %a0;
    mov.u32 %s3, slices;
    mad.lo.u32 %s3, %s0, {SLICE}, %s3;
    cvt.u64.u32 %a1, %s3;
    cvta.shared.u64 %a1, %a1;
    mov.u64 %a2, slice;
    cvta.local.u64 %a3, %a2;
"
    );
    for (class, ty, first, size, count) in registers() {
        for i in 0..count {
            let _ = writeln!(out, "    ld.global.{ty} %{class}{i}, [%a0+{}];", first + size * i);
        }
    }
    let _ = writeln!(out, "    ld.global.b32 %s4, [%a0+{PREDICATES}];");
    for i in 0..POOL[3] {
        let _ = write!(out, "    and.b32 %s5, %s4, {};\n    setp.ne.u32 %p{i}, %s5, 0;\n", 1 << i);
    }
    images(out, |image, space, base, at| {
        format!(
            "    ld.global.v4.b32 {{%s4, %s5, %s6, %s7}}, [%a0+{}];\n    st.{space}.v4.b32 [{base}+{at}], {{%s4, %s5, %s6, %s7}};\n",
            image + at
        )
    });
    *out += &writer.out;
    for (class, ty, first, size, count) in registers() {
        for i in 0..count {
            let _ = writeln!(out, "    st.global.{ty} [%a0+{}], %{class}{i};", first + size * i);
        }
    }
    let _ = writeln!(out, "    mov.b32 %s4, 0;");
    for i in 0..POOL[3] {
        let _ = write!(out, "    selp.b32 %s5, {}, 0, %p{i};\n    or.b32 %s4, %s4, %s5;\n", 1 << i);
    }
    let _ = writeln!(out, "    st.global.b32 [%a0+{PREDICATES}], %s4;");
    images(out, |image, space, base, at| {
        format!(
            "    ld.{space}.v4.b32 {{%s4, %s5, %s6, %s7}}, [{base}+{at}];\n    st.global.v4.b32 [%a0+{}], {{%s4, %s5, %s6, %s7}};\n",
            image + at
        )
    });
    *out += "    ret;\n}\n";
}

/// A function whose registers begin with its parameters.
pub(crate) fn function(out: &mut String, name: &str, prefix: &str, body: &[Node]) {
    const RETURN: &str = "    st.param.b32 [result], %w0;
    st.param.b32 [result+4], %w1;
    st.param.b64 [result+8], %d0;
    ret;
";
    let mut writer = Writer {
        out: String::new(),
        labels: 0,
        loops: 0,
        exits: Vec::new(),
        leave: RETURN,
        prefix,
        in_function: true,
    };
    writer.block(body);
    let _ = write!(
        out,
        "\n.func (.param .align 16 .b8 result[16]) {name}(.param .b32 a, .param .b64 b, .param .align 8 .b8 c[8])\n{{\n"
    );
    declarations(out, writer.loops);
    let _ = write!(
        out,
        "    .local .align 16 .b8 slice[{SLICE}];
    mov.u64 %a2, slice;
    cvta.local.u64 %a3, %a2;
    ld.param.b32 %w0, [a];
    ld.param.b64 %d0, [b];
    ld.param.b32 %w1, [c];
    ld.param.b32 %w2, [c+4];
    mov.b64 %d1, {{%w1, %w0}};
    mov.b64 {{%w3, %w4}}, %d0;
"
    );
    for i in 5..POOL[1] {
        let _ = writeln!(out, "    xor.b32 %w{i}, %w{}, {};", i - 5, 0x1357 * i);
    }
    for i in 2..POOL[2] {
        let _ = writeln!(out, "    mad.wide.s32 %d{i}, %w{i}, %w{}, %d{};", i + 2, i - 2);
    }
    for i in 0..POOL[0] {
        let _ = writeln!(out, "    cvt.u16.u32 %h{i}, %w{i};");
    }
    for i in 0..POOL[3] {
        let _ = writeln!(out, "    setp.lt.s32 %p{i}, %w{i}, %w{};", i + 1);
    }
    for at in (0..SLICE).step_by(16) {
        let _ = writeln!(out, "    st.local.v2.b64 [slice+{at}], {{%d{}, %d{}}};", at / 16, at / 16 + 1);
    }
    *out += &writer.out;
    *out += RETURN;
    *out += "}\n";
}

fn declarations(out: &mut String, loops: usize) {
    for ((class, ty), count) in [('h', "b16"), ('w', "b32"), ('d', "b64"), ('p', "pred")].iter().zip(POOL) {
        let _ = writeln!(out, "    .reg .{ty} %{class}<{count}>;");
    }
    *out += SCRATCH;
    if loops > 0 {
        let _ = write!(out, "    .reg .b32 %c<{loops}>;\n    .reg .b32 %l<{loops}>;\n");
    }
}

/// The registers of the record: class, type, place of the first, bytes of each, number.
fn registers() -> [(char, &'static str, usize, usize, usize); 3] {
    [('h', "b16", 0, 2, POOL[0]), ('w', "b32", WORDS, 4, POOL[1]), ('d', "b64", DOUBLES, 8, POOL[2])]
}

/// Text for each 16 bytes of the slices that the record holds images of.
fn images(out: &mut String, text: impl Fn(usize, &str, &str, usize) -> String) {
    for (image, space, base) in [(IMAGE_SHARED, "shared", "%s3"), (IMAGE_LOCAL, "local", "%a2")] {
        for at in (0..SLICE).step_by(16) {
            *out += &text(image, space, base, at);
        }
    }
}

impl Writer<'_> {
    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    fn line(&mut self, text: &str) {
        self.out += "    ";
        self.out += text;
        self.out.push('\n');
    }

    fn place(&mut self, label: usize) {
        let _ = writeln!(self.out, "L{label}:");
    }

    fn block(&mut self, nodes: &[Node]) {
        nodes.iter().for_each(|node| self.node(node));
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Lines(lines) => lines.iter().for_each(|line| self.line(line)),
            Node::If(guard, then, otherwise) => {
                let (other, end) = (self.label(), self.label());
                self.line(&format!("@{} bra L{other};", negated(guard)));
                self.block(then);
                if !otherwise.is_empty() {
                    self.line(&format!("bra L{end};"));
                }
                self.place(other);
                if !otherwise.is_empty() {
                    self.block(otherwise);
                    self.place(end);
                }
            }
            Node::Loop { count, max, body } => {
                let (head, end) = (self.label(), self.label());
                let i = self.loops;
                self.loops += 1;
                self.line(&format!("and.b32 %l{i}, {count}, {};", max - 1));
                self.line(&format!("mov.b32 %c{i}, 0;"));
                self.place(head);
                self.line(&format!("setp.ge.u32 %q0, %c{i}, %l{i};"));
                self.line(&format!("@%q0 bra L{end};"));
                self.line(&format!("add.u32 %c{i}, %c{i}, 1;"));
                self.exits.push(end);
                self.block(body);
                self.exits.pop();
                self.line(&format!("bra L{head};"));
                self.place(end);
            }
            Node::Break(guard) => {
                // Taken out of its loop, it is nothing.
                if let Some(end) = self.exits.last().copied() {
                    self.line(&format!("@{guard} bra L{end};"));
                }
            }
            Node::Switch(index, arms) => {
                let end = self.label();
                let table = self.label();
                let labels: Vec<usize> = arms.iter().map(|_| self.label()).collect();
                let names: Vec<String> = labels.iter().map(|label| format!("L{label}")).collect();
                self.line(&format!("and.b32 %s4, {index}, {};", arms.len() - 1));
                self.line(&format!("T{table}: .branchtargets {};", names.join(", ")));
                self.line(&format!("brx.idx %s4, T{table};"));
                for (arm, label) in arms.iter().zip(labels) {
                    self.place(label);
                    self.block(arm);
                    self.line(&format!("bra L{end};"));
                }
                self.place(end);
            }
            Node::Leave(guard) => {
                let stay = self.label();
                self.line(&format!("@{} bra L{stay};", negated(guard)));
                self.out += self.leave;
                self.place(stay);
            }
            Node::Call { indirect, operands } => self.call(indirect.as_deref(), operands),
        }
    }

    fn call(&mut self, indirect: Option<&str>, operands: &[String]) {
        let [word, long, first, second, low, high, result] = operands else { return };
        let prefix = self.prefix;
        self.line("{");
        self.line(".param .b32 x;\n    .param .b64 y;\n    .param .align 8 .b8 z[8];\n    .param .align 16 .b8 r[16];");
        self.line(&format!("st.param.b32 [x], {word};"));
        self.line(&format!("st.param.b64 [y], {long};"));
        self.line(&format!("st.param.b32 [z], {first};"));
        self.line(&format!("st.param.b32 [z+4], {second};"));
        match indirect {
            Some(predicate) if !self.in_function => {
                let label = self.label();
                self.line(&format!("mov.u64 %a5, {prefix}0;"));
                self.line(&format!("mov.u64 %a6, {prefix}1;"));
                self.line(&format!("selp.b64 %a5, %a5, %a6, {predicate};"));
                self.line(&format!("P{label}: {PROTOTYPE}"));
                self.line(&format!("call (r), %a5, (x, y, z), P{label};"));
            }
            _ => self.line(&format!("call (r), {prefix}0, (x, y, z);")),
        }
        self.line(&format!("ld.param.b32 {low}, [r];"));
        self.line(&format!("ld.param.b32 {high}, [r+4];"));
        self.line(&format!("ld.param.b64 {result}, [r+8];"));
        self.line("}");
    }
}

fn negated(guard: &str) -> String {
    guard.strip_prefix('!').map_or_else(|| format!("!{guard}"), str::to_string)
}
