//! Machine code as `nvdisasm` prints it: instructions and loops.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// `nvdisasm` and a folder for its files.
pub(super) struct Disassembler {
    program: PathBuf,
    scratch: PathBuf,
    next: AtomicU64,
}

impl Disassembler {
    pub(super) fn new(program: &Path) -> Result<Self, String> {
        let scratch =
            crate::run::target_dir().join("tools/scratch").join(format!("sass-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)
            .map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
        Ok(Disassembler { program: program.to_path_buf(), scratch, next: AtomicU64::new(0) })
    }

    /// The code of a cubin with one function.
    pub(super) fn code(&self, cubin: &[u8]) -> Result<Code, String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.scratch.join(format!("{number}.cubin"));
        std::fs::write(&path, cubin).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let output = Command::new(&self.program).arg("-c").arg(&path).output();
        let _ = std::fs::remove_file(&path);
        let output = output.map_err(|error| format!("{} cannot be run: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
        }
        Ok(Code::read(&String::from_utf8_lossy(&output.stdout)))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// The instructions of a function, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// Opcodes with their modifiers, such as `LDG.E.128`.
    opcodes: Vec<String>,
    loops: Vec<Range<usize>>,
}

impl Code {
    /// Reads `nvdisasm -c`. A line is `/*0130*/ @!P0 BRA \`(.L_x_1) ;`, or a label; what follows the last
    /// instruction that does something (padding, a branch to itself) is left out.
    fn read(text: &str) -> Self {
        let mut code = Code::default();
        let mut labels = HashMap::new();
        let mut branches = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.to_string(), code.opcodes.len());
                continue;
            }
            let Some(instruction) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else {
                continue;
            };
            let mut words = instruction.1.split_whitespace().filter(|word| !word.starts_with('@'));
            let Some(opcode) = words.next() else { continue };
            let opcode = opcode.trim_end_matches(';');
            if opcode.split('.').next() == Some("BRA")
                && let Some((_, target)) = instruction.1.split_once("`(")
            {
                let target = target.split(')').next().unwrap_or_default();
                branches.push((code.opcodes.len(), target.to_string()));
            }
            code.opcodes.push(opcode.to_string());
        }
        for (from, target) in branches {
            match labels.get(&target) {
                // The end of the code is filled with a branch to itself.
                Some(&to) if to < from => code.loops.push(to..from + 1),
                Some(&to) if to == from => code.opcodes.truncate(from),
                _ => {}
            }
        }
        code.loops.retain(|body| body.end <= code.opcodes.len());
        code.loops.sort_by_key(|body| (body.start, std::cmp::Reverse(body.end)));
        code
    }

    /// Number of instructions.
    pub(super) fn len(&self) -> usize {
        self.opcodes.len()
    }

    /// The loops, in the order in which they begin.
    pub(super) fn loops(&self) -> &[Range<usize>] {
        &self.loops
    }

    /// Number of instructions, of the whole or of a range, whose opcode is one of these, with any modifiers,
    /// or begins with it up to a dot.
    pub(super) fn count(&self, range: Range<usize>, opcodes: &[&str]) -> usize {
        let is = |opcode: &str, wanted: &str| {
            opcode.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.opcodes[range].iter().filter(|opcode| opcodes.iter().any(|wanted| is(opcode, wanted))).count()
    }

    /// The loop with the most instructions of these that has no such loop inside of it.
    pub(super) fn main_loop(&self, opcodes: &[&str]) -> Option<Range<usize>> {
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
        let code = Code::read(TEXT);
        assert_eq!(code.len(), 8);
        assert_eq!(code.loops(), [1..7, 2..5]);
        assert_eq!(code.main_loop(&["HMMA"]), Some(2..5));
        assert_eq!(code.main_loop(&["LDG"]), Some(1..7));
        assert_eq!(code.main_loop(&["MUFU"]), None);
        assert_eq!(code.count(0..8, &["HMMA", "BRA"]), 4);
        assert_eq!(code.count(0..8, &["LDG"]), 1);
        assert_eq!(code.count(0..8, &["LDG.E.128"]), 1);
    }
}
