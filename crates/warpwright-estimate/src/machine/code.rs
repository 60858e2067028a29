//! Machine code as `nvdisasm` prints it: instructions, with what the compiler tells the scheduler of each; loops.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What the scheduler is told with an instruction, in its upper bits. The layout is that of Volta and later, as Jia,
/// Maggioni, Staiger and Scarpazza found it (arXiv 1804.06826, section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Cycles until the next instruction of the warp may be issued.
    pub stall: u8,
    /// The scoreboard that is held until the result is written.
    pub write: Option<u8>,
    /// The scoreboard that is held until the operands are read.
    pub read: Option<u8>,
    /// The scoreboards that must be free before it is issued, a bit each.
    pub wait: u8,
}

impl Control {
    /// Reads it from the upper 64 of the 128 bits of an instruction.
    fn read(upper: u64) -> Self {
        let field = |from: u32, bits: u32| ((upper >> from) & ((1 << bits) - 1)) as u8;
        let scoreboard = |number: u8| (number < 6).then_some(number);
        Control {
            stall: field(41, 4),
            write: scoreboard(field(46, 3)),
            read: scoreboard(field(49, 3)),
            wait: field(52, 6),
        }
    }
}

/// A machine instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode with its modifiers, such as `LDG.E.128`.
    pub opcode: String,
    /// The operands, as they are printed.
    pub operands: String,
    /// Whether a predicate decides if it does anything.
    pub guarded: bool,
    /// Registers that it reads of each of the two banks of the register file, as far as they are not kept from the
    /// instruction before.
    pub reads: [u8; 2],
    /// The line of the PTX that it was made of, from 1.
    pub line: Option<u32>,
    /// What the scheduler is told.
    pub control: Control,
}

impl Instruction {
    /// The opcode without modifiers.
    pub fn base(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Whether a modifier is among those of the opcode.
    pub fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|other| other == modifier)
    }
}

/// The instructions of a function, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub struct Code {
    instructions: Vec<Instruction>,
    loops: Vec<Range<usize>>,
    /// Where control may come from elsewhere: basic blocks begin there.
    targets: Vec<usize>,
}

impl Code {
    /// Reads `nvdisasm -c`, with `-gp -hex` for lines and scheduling: the function of that name, or the only one. A line is
    /// `/*0130*/ @!P0 BRA \`(.L_x_1) ;`, or a label; what follows the last instruction that does something (padding, a
    /// branch to itself) is left out.
    pub fn read(text: &str, function: Option<&str>) -> Self {
        let mut code = Code::default();
        let mut labels = HashMap::new();
        let (mut branches, mut targets) = (Vec::new(), HashSet::new());
        let (mut inside, mut line) = (function.is_none(), None);
        for text in text.lines().map(str::trim) {
            if let Some((".section", section)) = text.split_once(char::is_whitespace) {
                let name = section.trim().split(',').next().unwrap_or_default();
                inside = function.is_none_or(|function| name.strip_prefix(".text.") == Some(function));
            }
            if !inside {
                continue;
            }
            if let Some(label) = text.strip_suffix(':') {
                labels.insert(label.to_string(), code.instructions.len());
                continue;
            }
            if let Some(place) = text.strip_prefix("//## File") {
                line = place
                    .split("line ")
                    .nth(1)
                    .and_then(|number| number.split([',', ' ']).next()?.parse().ok());
                continue;
            }
            let Some((place, rest)) = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else {
                continue;
            };
            if let Some(number) = place.trim().strip_prefix("0x") {
                // The upper half of the encoding stands on a line of its own.
                if let (Ok(upper), Some(last)) =
                    (u64::from_str_radix(number, 16), code.instructions.last_mut())
                {
                    last.control = Control::read(upper);
                }
                continue;
            }
            let instruction = rest.split(';').next().unwrap_or_default().trim();
            let (guarded, instruction) = match instruction.strip_prefix('@') {
                Some(guarded) => (true, guarded.split_once(' ').map_or("", |(_, rest)| rest.trim())),
                None => (false, instruction),
            };
            let (opcode, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
            if opcode.is_empty() {
                continue;
            }
            if opcode.split('.').next() == Some("BRA")
                && let Some((_, target)) = operands.split_once("`(")
            {
                let target = target.split(')').next().unwrap_or_default();
                branches.push((code.instructions.len(), target.to_string()));
            }
            if let Some((_, target)) = operands.split_once("`(") {
                targets.insert(target.split(')').next().unwrap_or_default().to_string());
            }
            code.instructions.push(Instruction {
                opcode: opcode.to_string(),
                operands: operands.trim().to_string(),
                guarded,
                reads: [0; 2],
                line,
                control: Control::default(),
            });
        }
        for (from, target) in branches {
            match labels.get(&target) {
                // The end of the code is filled with a branch to itself.
                Some(&to) if to < from => code.loops.push(to..from + 1),
                Some(&to) if to == from => code.instructions.truncate(from),
                _ => {}
            }
        }
        for at in 0..code.instructions.len() {
            let kept =
                at.checked_sub(1).map(|before| sources(&code.instructions[before])).unwrap_or_default();
            code.instructions[at].reads = reads(&sources(&code.instructions[at]), &kept);
        }
        let end = code.instructions.len();
        code.loops.retain(|body| body.end <= end);
        code.loops.sort_by_key(|body| (body.start, std::cmp::Reverse(body.end)));
        let places = labels.into_iter().filter(|(label, at)| *at < end && targets.contains(label));
        code.targets = places.map(|(_, at)| at).collect();
        code
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// The loops, in the order in which they begin, outer ones first.
    pub fn loops(&self) -> &[Range<usize>] {
        &self.loops
    }

    /// The basic blocks, in their order: straight runs that begin where branches lead and behind branches.
    pub fn blocks(&self) -> Vec<Range<usize>> {
        let ends = |at: usize| {
            let base = self.instructions[at].base();
            ["BRA", "BRX", "JMP", "JMX", "EXIT", "RET", "BRXU", "JMXU"].contains(&base)
        };
        let mut starts = self.targets.clone();
        starts.extend((0..self.len()).filter(|&at| ends(at)).map(|at| at + 1));
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&at| at < self.len());
        let next = starts.iter().skip(1).copied().chain([self.len()]);
        starts.iter().copied().zip(next).map(|(start, end)| start..end).collect()
    }

    /// Number of instructions, of the whole or of a range, whose opcode is one of these, with any modifiers,
    /// or begins with it up to a dot.
    pub fn count(&self, range: Range<usize>, opcodes: &[&str]) -> usize {
        let is = |opcode: &str, wanted: &str| {
            opcode.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let among = |instruction: &&Instruction| opcodes.iter().any(|wanted| is(&instruction.opcode, wanted));
        self.instructions[range].iter().filter(among).count()
    }

    /// The loop with the most instructions of these that has no such loop inside of it.
    pub fn main_loop(&self, opcodes: &[&str]) -> Option<Range<usize>> {
        let has = |body: &Range<usize>| self.count(body.clone(), opcodes);
        let inside = |a: &Range<usize>, b: &Range<usize>| a != b && a.start >= b.start && a.end <= b.end;
        self.loops
            .iter()
            .filter(|body| has(body) > 0)
            .filter(|body| !self.loops.iter().any(|other| inside(other, body) && has(other) > 0))
            .max_by_key(|body| has(body))
            .cloned()
    }
}

/// A register that an instruction reads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Source {
    /// Which operand it is of.
    place: usize,
    register: u16,
    /// Whether it reads the next register too.
    pair: bool,
    /// Whether it is kept for the next instruction.
    kept: bool,
}

/// The registers that an instruction reads, except those of memory and of the tensor cores, which have time to.
fn sources(instruction: &Instruction) -> Vec<Source> {
    const SLOW: [&str; 12] =
        ["LDG", "STG", "LDS", "STS", "LDSM", "HMMA", "IMMA", "LDGSTS", "LD", "ST", "MUFU", "SHFL"];
    if SLOW.contains(&instruction.base()) {
        return Vec::new();
    }
    let register = |word: &str| -> Option<u16> {
        let digits = word.trim_start_matches(['-', '|', '~', '!']).strip_prefix('R')?;
        digits.split(|other: char| !other.is_ascii_digit()).next()?.parse().ok()
    };
    let wide = instruction.base().starts_with('D');
    let operands = instruction.operands.split(", ").enumerate();
    // The first one is the result, if it is a register.
    let source = |(place, word): (usize, &str)| {
        let register = register(word.trim()).filter(|_| place > 0)?;
        let pair = wide || word.contains(".64") || (place == 3 && instruction.has("WIDE"));
        Some(Source { place, register, pair, kept: word.contains(".reuse") })
    };
    operands.filter_map(source).collect()
}

/// Reads of each bank: even registers are in one, odd ones in the other. Equal ones are read once.
fn reads(sources: &[Source], before: &[Source]) -> [u8; 2] {
    let mut reads = [0; 2];
    for (index, source) in sources.iter().enumerate() {
        let kept =
            |other: &Source| other.kept && (other.place, other.register) == (source.place, source.register);
        let again = sources[..index].iter().any(|other| other.register == source.register);
        if again || before.iter().any(kept) {
            continue;
        }
        let bank = usize::from(source.register % 2);
        reads[bank] += 1;
        reads[1 - bank] += u8::from(source.pair);
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        .text.kernel:
                /*0000*/                   MOV R1, c[0x0][0x28] ;
        .L_x_0:
                /*0010*/                   LDG.E.128 R4, [R2.64] ;
        .L_x_1:
                /*0020*/               @P1 HMMA.16816.F32 R8, R4, R6, R8 ;
                /*0030*/                   HMMA.16816.F32 R12, R4, R6, R12 ;
                /*0040*/              @!P0 BRA `(.L_x_1) ;
                /*0050*/                   LDGSTS.E [R4], [R2.64] ;
                /*0060*/               @P2 BRA `(.L_x_0) ;
                /*0070*/                   EXIT ;
        .L_x_2:
                /*0080*/                   BRA `(.L_x_2);
                /*0090*/                   NOP;
        .L_x_3:";

    #[test]
    fn loops_and_instructions_are_found() {
        let code = Code::read(TEXT, None);
        assert_eq!(code.len(), 8);
        assert_eq!(code.loops(), [1..7, 2..5]);
        assert_eq!(code.blocks(), [0..1, 1..2, 2..5, 5..7, 7..8]);
        assert_eq!(code.main_loop(&["HMMA"]), Some(2..5));
        assert_eq!(code.main_loop(&["LDG"]), Some(1..7));
        assert_eq!(code.main_loop(&["MUFU"]), None);
        assert_eq!(code.count(0..8, &["HMMA", "BRA"]), 4);
        assert_eq!(code.count(0..8, &["LDG"]), 1);
        assert_eq!(code.count(0..8, &["LDG.E.128"]), 1);
        assert!(code.instructions()[2].guarded);
        assert_eq!(code.instructions()[2].operands, "R8, R4, R6, R8");
    }

    #[test]
    fn lines_and_scheduling_are_read_of_one_function() {
        let text = "
            .section	.text.other,\"ax\",@progbits
                    /*0000*/    EXIT ;    /* 0x000000000000794d */
                                          /* 0x000fea0003800000 */
            .section	.text.kernel,\"ax\",@progbits
            .sectioninfo	@\"SHI_REGISTERS=36\"
            .text.kernel:
            //## File \".nv_debug_ptx_txt\", line 35
                    /*0060*/    ISETP.GE.AND P0, PT, R10, UR4, PT ;  /* 0x000000040a007c0c */
                                                                     /* 0x001fda000bf06270 */
            //## File \".nv_debug_ptx_txt\", line 50
                    /*00f0*/    LDG.E.CONSTANT R2, desc[UR8][R2.64] ; /* 0x0000000802027981 */
                                                                     /* 0x000ea8000c1e9900 */";
        let code = Code::read(text, Some("kernel"));
        let [compare, load] = code.instructions() else { panic!("two instructions") };
        assert_eq!((compare.line, load.line), (Some(35), Some(50)));
        assert_eq!(compare.control, Control { stall: 13, write: None, read: None, wait: 1 });
        assert_eq!(load.control, Control { stall: 4, write: Some(2), read: None, wait: 0 });
        assert_eq!((load.base(), load.has("CONSTANT"), load.has("64")), ("LDG", true, false));
    }

    /// The registers that each of these instructions reads of the two banks.
    fn reads_of(instructions: &[&str]) -> Vec<[u8; 2]> {
        let text: String =
            instructions.iter().map(|instruction| format!("/*0000*/ {instruction} ;\n")).collect();
        Code::read(&text, None).instructions().iter().map(|instruction| instruction.reads).collect()
    }

    #[test]
    fn even_registers_are_in_one_bank_and_odd_ones_in_the_other() {
        for (instruction, expected) in [
            ("FFMA R0, R2, R4, R6", [3, 0]),
            ("FFMA R0, R2, R4, R7", [2, 1]),
            ("FFMA R0, R1, R3, R5", [0, 3]),
            ("@!P0 FADD R1, -R2, |R3|", [1, 1]),
            ("LOP3.LUT R0, R9, ~R2, RZ, 0xc0, !PT", [1, 1]),
            // Equal ones are read once, whatever is done to them.
            ("FMUL R0, R2, R2", [1, 0]),
            ("FFMA R0, R3, -R3, R3", [0, 1]),
            // The result, constants, zero, predicates and uniform registers are not read of the banks.
            ("MOV R1, c[0x0][0x28]", [0, 0]),
            ("IADD3 R4, R4, 0x1, RZ", [1, 0]),
            ("ISETP.GE.AND P0, PT, R10, UR4, PT", [1, 0]),
            // Pairs are in both banks.
            ("DADD R0, R2, R4", [2, 2]),
            ("DFMA R0, R2, R4, R2", [2, 2]),
            ("FADD2 R0, R2.64, R4.64", [2, 2]),
            // Of a wide product only the sum is a pair.
            ("IMAD.WIDE R0, R2, R4, R6", [3, 1]),
            ("IMAD.WIDE.U32 R0, R2, 0x4, R7", [2, 1]),
            ("IMAD R0, R2, R4, R6", [3, 0]),
            // Memory and tensor cores take their time.
            ("STG.E [R2.64], R4", [0, 0]),
            ("HMMA.16816.F32 R8, R4, R6, R8", [0, 0]),
            ("EXIT", [0, 0]),
        ] {
            assert_eq!(reads_of(&[instruction]), [expected], "{instruction}");
        }
    }

    #[test]
    fn a_register_is_kept_for_the_next_instruction_at_the_same_place() {
        for (what, instructions, expected) in [
            ("kept", ["FFMA R0, R2.reuse, R4, R6", "FFMA R1, R2, R5, R7", "NOP"], [[3, 0], [0, 2], [0, 0]]),
            ("not kept", ["FFMA R0, R2, R4, R6", "FFMA R1, R2, R5, R7", "NOP"], [[3, 0], [1, 2], [0, 0]]),
            (
                "at another place",
                ["FFMA R0, R2.reuse, R4, R6", "FFMA R1, R5, R2, R7", "NOP"],
                [[3, 0], [1, 2], [0, 0]],
            ),
            (
                "another register",
                ["FFMA R0, R2.reuse, R4, R6", "FFMA R1, R8, R5, R7", "NOP"],
                [[3, 0], [1, 2], [0, 0]],
            ),
            (
                "for one instruction only",
                ["FFMA R0, R2.reuse, R4, R6", "FADD R1, R2, R5", "FADD R3, R2, R5"],
                [[3, 0], [0, 1], [1, 1]],
            ),
            (
                "and on and on",
                ["FADD R0, R2.reuse, R4", "FADD R1, R2.reuse, R5", "FADD R3, R2, R5"],
                [[2, 0], [0, 1], [0, 1]],
            ),
        ] {
            assert_eq!(reads_of(&instructions), expected, "{what}");
        }
    }
}
