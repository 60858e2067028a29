//! Random programs, as trees that can be cut down and as PTX.
//!
//! A program works on a pool of registers, all of which have values from the start, so that it stays
//! well-formed whatever is taken out of it. Each thread has a record of global memory with the first
//! values of its registers and of its slices of global, shared and local memory; at the end the thread
//! writes them back there.

use crate::evaluate::SLICE;
use crate::forms;
use crate::random::Random;
use std::fmt::Write;

/// Registers of the pool: 16, 32 and 64 bits, and predicates.
pub(crate) const POOL: [usize; 4] = [6, 10, 6, 4];

/// Bytes of a thread's record, and where its parts are.
pub(crate) const RECORD: usize = IMAGE_LOCAL + SLICE;
pub(crate) const WORDS: usize = 16;
pub(crate) const DOUBLES: usize = 56;
pub(crate) const PREDICATES: usize = 104;
pub(crate) const IMAGE_GLOBAL: usize = 112;
pub(crate) const IMAGE_SHARED: usize = IMAGE_GLOBAL + SLICE;
pub(crate) const IMAGE_LOCAL: usize = IMAGE_SHARED + SLICE;

/// The most threads of a block.
pub(crate) const MAX_THREADS: usize = 96;

/// A part of a program.
#[derive(Clone)]
pub(crate) enum Node {
    /// Instructions that belong together.
    Lines(Vec<String>),
    /// `if (guard) then else otherwise`.
    If(String, Vec<Node>, Vec<Node>),
    /// A loop of up to `max` rounds; how many depends on a register.
    Loop { count: String, max: usize, body: Vec<Node> },
    /// Out of the innermost loop, where the guard holds.
    Break(String),
    /// `brx.idx` on a register; the number of arms is a power of two.
    Switch(String, Vec<Vec<Node>>),
    /// The end of the thread, or a return, where the guard holds.
    Leave(String),
    /// A call: of the first function, or through a register of either, as the guard says.
    Call { indirect: Option<String>, operands: Vec<String> },
}

/// A kernel and the functions that it calls.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) functions: [Vec<Node>; 2],
    pub(crate) kernel: Vec<Node>,
}

/// A value that arithmetic may find hard, of `bits` bits.
pub(crate) fn interesting(random: &mut Random, bits: u32) -> u64 {
    const F32: &[u32] = &[
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7fff_ffff,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x7f7f_ffff,
        0x3f00_0000,
        0x4b00_0001,
        0x4f00_0000,
        0x5f80_0000,
        0x3380_0000,
    ];
    const HALVES: &[u16] = &[
        0, 0x8000, 0x3c00, 0x3f80, 0x7c00, 0xfc00, 0x7f80, 0x7e00, 0x7fff, 1, 0x8001, 0x03ff, 0x0400, 0x7bff,
        0x007f, 0x0080, 0x3555, 0xc2f7,
    ];
    let raw = random.next();
    let small = (raw % 64) as i64 - 16;
    let value = match random.below(9) {
        0 => small as u64,
        1 => 1u64.rotate_left(raw as u32 % 64).wrapping_add_signed(small % 2),
        2 => (small as f64 / 8.0).to_bits(),
        3 => u64::from(*random.pick(F32)) | raw << 32,
        4 => f64::from(f32::from_bits(*random.pick(F32))).to_bits(),
        5 => (0..4).fold(0, |value, _| value << 16 | u64::from(*random.pick(HALVES))),
        // Near one, in either precision: sums then cancel.
        6 if bits == 64 => 0x3fe0_0000_0000_0000 | raw >> 11,
        6 => 0x3f00_0000 | raw & 0x80ff_ffff,
        7 => ((raw % 200_000) as f32).to_bits().into(),
        _ => raw,
    };
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

/// The first contents of a record.
pub(crate) fn record(random: &mut Random) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    for (range, bits) in
        [(0..WORDS, 16), (WORDS..DOUBLES, 32), (DOUBLES..PREDICATES, 64), (PREDICATES..RECORD, 32)]
    {
        for chunk in record[range].chunks_mut(bits as usize / 8) {
            chunk.copy_from_slice(&interesting(random, bits).to_le_bytes()[..chunk.len()]);
        }
    }
    record
}

/// Which register or word a byte of the record is in, and what it was, should be and is.
pub(crate) fn difference(byte: usize, input: &[u8], expected: &[u8], found: &[u8]) -> String {
    let (name, size, first) = match byte {
        0..WORDS => ("%h", 2, 0),
        WORDS..DOUBLES => ("%w", 4, WORDS),
        DOUBLES..PREDICATES => ("%d", 8, DOUBLES),
        PREDICATES..IMAGE_GLOBAL => ("%p, as a mask", 4, PREDICATES),
        IMAGE_GLOBAL..IMAGE_SHARED => ("word of global memory ", 4, IMAGE_GLOBAL),
        IMAGE_SHARED..IMAGE_LOCAL => ("word of shared memory ", 4, IMAGE_SHARED),
        _ => ("word of local memory ", 4, IMAGE_LOCAL),
    };
    let number = (byte - first) / size;
    let start = first + number * size;
    let [input, expected, found] =
        [input, expected, found].map(|bytes| crate::operate::from_bytes(&bytes[start..start + size]));
    format!("{name}{number} is {found:#x}, and should be {expected:#x}; it was {input:#x}")
}

/// A random program.
pub(crate) fn program(random: &mut Random) -> Tree {
    let mut maker = Maker { random, in_function: true, calls: 0, in_loop: false };
    let first = maker.block(0, 8);
    maker.calls = 1;
    let second = maker.block(0, 8);
    maker.in_function = false;
    let size = 12 + maker.random.below(30);
    Tree { functions: [first, second], kernel: maker.block(0, size) }
}

struct Maker<'a> {
    random: &'a mut Random,
    in_function: bool,
    /// Functions that may be called.
    calls: usize,
    in_loop: bool,
}

impl Maker<'_> {
    fn block(&mut self, depth: usize, size: usize) -> Vec<Node> {
        (0..size).map(|_| self.node(depth)).collect()
    }

    fn node(&mut self, depth: usize) -> Node {
        let inner = |maker: &mut Self| {
            let size = 1 + maker.random.below(5);
            maker.block(depth + 1, size)
        };
        match self.random.below(40) {
            0..=2 if depth < 3 => {
                let guard = self.guard();
                let then = inner(self);
                let otherwise = if self.random.once_in(2) { inner(self) } else { Vec::new() };
                Node::If(guard, then, otherwise)
            }
            3 if depth < 3 => {
                let (count, max) = (self.operand('w'), 2 + 2 * self.random.below(2));
                let outer = std::mem::replace(&mut self.in_loop, true);
                let body = inner(self);
                self.in_loop = outer;
                Node::Loop { count, max, body }
            }
            4 if depth < 3 => {
                let arms = 2 << self.random.below(2);
                let index = self.operand('w');
                Node::Switch(index, (0..arms).map(|_| inner(self)).collect())
            }
            5 if self.in_loop => Node::Break(self.guard()),
            6 if self.random.once_in(4) => Node::Leave(self.guard()),
            7 if self.calls > 0 => {
                let indirect = (!self.in_function && self.random.once_in(2)).then(|| self.operand('p'));
                let operands = "wdwwwwd".chars().map(|class| self.operand(class)).collect();
                Node::Call { indirect, operands }
            }
            8..=13 => Node::Lines(self.access()),
            14 => Node::Lines(self.carry_chain()),
            15 => Node::Lines(self.quotient()),
            16 => Node::Lines(self.integer_conversion()),
            17 => Node::Lines(self.nth_set()),
            18 if !self.in_function => Node::Lines(vec![self.refresh()]),
            19 => Node::Lines(self.atomic()),
            20..=25 => self.form(forms::INTEGERS),
            26..=29 => self.form(forms::BITS),
            30..=32 => self.form(forms::COMPARISONS),
            33..=34 => self.form(forms::CONVERSIONS),
            _ => self.form(forms::FLOATS),
        }
    }

    /// A predicate, or its negation.
    fn guard(&mut self) -> String {
        format!("{}{}", self.random.pick(&["", "!"]), self.operand('p'))
    }

    /// `@guard `, now and then.
    fn maybe_guarded(&mut self) -> String {
        if self.random.once_in(5) { format!("@{} ", self.guard()) } else { String::new() }
    }

    fn operand(&mut self, class: char) -> String {
        let register = |random: &mut Random, class: usize| {
            format!("%{}{}", ['h', 'w', 'd', 'p'][class], random.below(POOL[class]))
        };
        let immediate = self.random.once_in(4);
        match class {
            'h' => register(self.random, 0),
            'w' => register(self.random, 1),
            'd' => register(self.random, 2),
            'p' => register(self.random, 3),
            'q' => self.guard(),
            'H' | 'W' | 'D' if !immediate => self.operand(class.to_ascii_lowercase()),
            'f' if !immediate => self.operand('w'),
            'e' if !immediate => self.operand('d'),
            'n' if !immediate => self.operand('w'),
            'H' => (interesting(self.random, 16) as i16).to_string(),
            'W' => (interesting(self.random, 32) as i32).to_string(),
            'D' => (interesting(self.random, 64) as i64).to_string(),
            'f' => format!("0f{:08X}", interesting(self.random, 32)),
            'e' => format!("0d{:016X}", interesting(self.random, 64)),
            'n' => {
                let bound = *self.random.pick(&[8, 33, 70, 256]);
                self.random.below(bound).to_string()
            }
            'i' => self.random.below(256).to_string(),
            other => other.to_string(),
        }
    }

    /// One instruction of a table.
    fn form(&mut self, table: &[&str]) -> Node {
        let row = *self.random.pick(table);
        let chosen = self.alternatives(row);
        let (opcode, operands) = chosen.split_once(' ').unwrap_or((&chosen, ""));
        let mut used = Vec::new();
        let mut filled = Vec::new();
        for (i, operand) in operands.split(' ').enumerate() {
            let mut text = String::new();
            for class in operand.chars() {
                let mut word = self.operand(class);
                // The parts of a destination are different registers.
                while i == 0 && used.contains(&word) && class.is_alphabetic() {
                    word = self.operand(class);
                }
                used.push(word.clone());
                text += &word;
            }
            filled.push(text);
        }
        let guard = self.maybe_guarded();
        Node::Lines(vec![format!("{guard}{opcode} {};", filled.join(", "))])
    }

    /// The row with one alternative of each group. A group holds a `/`; other braces are operands.
    fn alternatives(&mut self, row: &str) -> String {
        let mut out = String::new();
        let mut rest = row;
        while let Some(start) = rest.find('{') {
            let end = start + rest[start..].find('}').unwrap_or(0);
            out += &rest[..start];
            let inside = &rest[start + 1..end];
            let choices: Vec<&str> = inside.split('/').collect();
            if inside.contains(',') {
                out += &rest[start..=end];
            } else {
                let choice: &&str = self.random.pick(&choices);
                out += choice;
            }
            rest = &rest[end + 1..];
        }
        out + rest
    }

    /// The address of `size` bytes in the thread's slice of some space: the instructions that compute
    /// it, the space's suffix, and what stands in the brackets.
    fn address(&mut self, size: usize) -> (Vec<String>, &'static str, String) {
        let spaces: &[usize] = if self.in_function { &[4, 5] } else { &[0, 1, 2, 3, 4, 5] };
        // Base registers of 64 bits, for the spaces in order.
        let (suffix, base, displacement) = match *self.random.pick(spaces) {
            0 => (".global", "%a0", IMAGE_GLOBAL),
            1 => ("", "%a0", IMAGE_GLOBAL),
            2 => (".shared", "%s3", 0),
            3 => ("", "%a1", 0),
            4 => (".local", "%a2", 0),
            _ => ("", "%a3", 0),
        };
        if self.random.once_in(3) {
            let offset = displacement + size * self.random.below(SLICE / size);
            return (Vec::new(), suffix, format!("{base}+{offset}"));
        }
        let index = self.operand('w');
        let mask = (SLICE - 1) & !(size - 1);
        let mut lines = vec![format!("and.b32 %s4, {index}, {mask};")];
        if base == "%s3" {
            lines.push("add.u32 %s4, %s4, %s3;".to_string());
            return (lines, suffix, "%s4".to_string());
        }
        lines.push(format!("mad.wide.u32 %a4, %s4, 1, {base};"));
        if self.random.once_in(2) {
            lines.push("add.s64 %a4, %a4, 4096;".to_string());
            return (lines, suffix, format!("%a4+{}", displacement as i64 - 4096));
        }
        (lines, suffix, format!("%a4+{displacement}"))
    }

    /// A load or a store.
    fn access(&mut self) -> Vec<String> {
        let types =
            ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"];
        let ty = *self.random.pick(&types);
        let bytes = ty[1..].parse::<usize>().unwrap_or(8) / 8;
        let mut count = 1 << self.random.below(3);
        while count * bytes > 16 {
            count /= 2;
        }
        let (mut lines, space, address) = self.address(count * bytes);
        let class = match bytes {
            1 | 2 => *self.random.pick(&['h', 'w', 'd']),
            4 => *self.random.pick(&['w', 'w', 'd']),
            _ => 'd',
        };
        let is_load = self.random.once_in(2);
        let mut registers: Vec<String> = Vec::new();
        while registers.len() < count {
            let register = self.operand(class);
            if !(is_load && registers.contains(&register)) {
                registers.push(register);
            }
        }
        if is_load && count > 1 && self.random.once_in(6) {
            registers[0] = "_".to_string();
        }
        let (vector, list) = match count {
            1 => (String::new(), registers.remove(0)),
            _ => (format!(".v{count}"), format!("{{{}}}", registers.join(", "))),
        };
        let guard = self.maybe_guarded();
        let order = if self.random.once_in(8) && space != ".local" { ".volatile" } else { "" };
        lines.push(match is_load {
            true => format!("{guard}ld{order}{space}{vector}.{ty} {list}, [{address}];"),
            false => format!("{guard}st{order}{space}{vector}.{ty} [{address}], {list};"),
        });
        lines
    }

    /// An atomic operation on the thread's own memory.
    fn atomic(&mut self) -> Vec<String> {
        if self.in_function {
            return self.access();
        }
        let rows = [
            "add.u32 w",
            "add.s32 w",
            "add.u64 d",
            "min.s32 w",
            "max.u32 w",
            "min.u64 d",
            "max.s64 d",
            "and.b32 w",
            "or.b64 d",
            "xor.b32 w",
            "exch.b32 w",
            "exch.b64 d",
            "inc.u32 w",
            "dec.u32 w",
            "cas.b32 w",
            "cas.b64 d",
        ];
        let row = *self.random.pick(&rows);
        let (op, class) = (&row[..row.len() - 2], row.chars().next_back().unwrap_or('w'));
        let size = if class == 'w' { 4 } else { 8 };
        let (mut lines, space, address) = loop {
            let found = self.address(size);
            // Atomic operations reach no local memory.
            if found.1 != ".local"
                && !found.2.starts_with("%a3")
                && !found.0.iter().any(|l| l.contains("%a3"))
            {
                break found;
            }
        };
        let [d, b, c] = [(); 3].map(|()| self.operand(class));
        let guard = self.maybe_guarded();
        let exchange = op.starts_with("exch") || op.starts_with("cas");
        lines.push(match () {
            () if op.starts_with("cas") => format!("{guard}atom{space}.{op} {d}, [{address}], {b}, {c};"),
            () if !exchange && self.random.once_in(3) => format!("{guard}red{space}.{op} [{address}], {b};"),
            () => format!("{guard}atom{space}.{op} {d}, [{address}], {b};"),
        });
        lines
    }

    /// Sums, differences or products that pass a carry on.
    fn carry_chain(&mut self) -> Vec<String> {
        let (class, types) = *self.random.pick(&[('w', ["u32", "s32"]), ('d', ["u64", "s64"])]);
        let ty = *self.random.pick(&types);
        let (first, next) = *self.random.pick(&[
            ("add.cc", "addc"),
            ("sub.cc", "subc"),
            ("mad.lo.cc", "madc.hi"),
            ("mad.hi.cc", "madc.lo"),
        ]);
        let length = 1 + self.random.below(3);
        (0..=length)
            .map(|i| {
                let opcode = match i {
                    0 => first.to_string(),
                    i if i == length => next.to_string(),
                    _ => format!("{next}.cc"),
                };
                let count = if opcode.starts_with("mad") { 4 } else { 3 };
                let operands: Vec<String> = (0..count).map(|_| self.operand(class)).collect();
                format!("{opcode}.{ty} {};", operands.join(", "))
            })
            .collect()
    }

    /// A quotient or remainder; the divisor is neither 0 nor -1, for which there is no result.
    fn quotient(&mut self) -> Vec<String> {
        let (class, scratch, bits) =
            *self.random.pick(&[('h', "%t0", 16), ('w', "%s4", 32), ('d', "%a4", 64)]);
        let [d, a, b] = [(); 3].map(|()| self.operand(class));
        let (op, sign) = (*self.random.pick(&["div", "rem"]), *self.random.pick(&["u", "s"]));
        vec![
            format!("or.b{bits} {scratch}, {b}, 1;"),
            format!("and.b{bits} {scratch}, {scratch}, -5;"),
            format!("{op}.{sign}{bits} {d}, {a}, {scratch};"),
        ]
    }

    /// From one integer type to another, in registers that may be wider.
    fn integer_conversion(&mut self) -> Vec<String> {
        let types = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
        let [d, a] = [(); 2].map(|()| *self.random.pick(&types));
        let bits = |ty: &str| ty[1..].parse::<u32>().unwrap_or(0);
        let mut register = |ty: &str| {
            let classes = match bits(ty) {
                8 | 16 => &['h', 'w', 'd'][..],
                32 => &['w', 'd'],
                _ => &['d'],
            };
            let class = *self.random.pick(classes);
            self.operand(class)
        };
        let (to, from) = (register(d), register(a));
        let narrows = match (&d[..1], &a[..1]) {
            ("u", "s") => true,
            ("s", "u") => bits(d) <= bits(a),
            _ => bits(d) < bits(a),
        };
        let sat = if narrows && self.random.once_in(2) { ".sat" } else { "" };
        let guard = self.maybe_guarded();
        vec![format!("{guard}cvt{sat}.{d}.{a} {to}, {from};")]
    }

    /// `fns`, from a position that there is.
    fn nth_set(&mut self) -> Vec<String> {
        let [d, mask, base, offset] = [(); 4].map(|()| self.operand('w'));
        vec![
            format!("and.b32 %s4, {base}, 31;"),
            format!("cvt.s32.s8 %s5, {offset};"),
            format!("fns.b32 {d}, {mask}, %s4, %s5;"),
        ]
    }

    /// One of the first values again, so that numbers do not all degenerate.
    fn refresh(&mut self) -> String {
        let (class, ty, first, size, count) = *self.random.pick(&[
            ('h', "b16", 0, 2, POOL[0]),
            ('w', "b32", WORDS, 4, POOL[1]),
            ('d', "b64", DOUBLES, 8, POOL[2]),
        ]);
        let offset = first + size * self.random.below(count);
        format!("ld.global.{ty} {}, [%a0+{offset}];", self.operand(class))
    }
}

/// PTX of a module with the kernels `p0`, `p1`, ….
pub(crate) fn module(trees: &[Tree]) -> String {
    let mut out = format!(
        ".version 9.3\n.target sm_90\n.address_size 64\n\n.shared .align 16 .b8 slices[{}];\n",
        MAX_THREADS * SLICE
    );
    for (i, tree) in trees.iter().enumerate() {
        for (which, body) in tree.functions.iter().enumerate() {
            crate::lower::function(&mut out, &format!("f{i}_{which}"), &format!("f{i}_"), body);
        }
        crate::lower::kernel(&mut out, &format!("p{i}"), &format!("f{i}_"), &tree.kernel);
    }
    let _ = writeln!(out);
    out
}
