//! The classes that instructions are counted by.

use warpwright_ptx::ir::Type;

/// Class of an instruction, by its text: what arithmetic is done in, or what kind of thing it does.
pub(super) fn class(instruction: &str) -> &'static str {
    let mut words = instruction.split_whitespace();
    let opcode = match words.next() {
        Some(guard) if guard.starts_with('@') => words.next().unwrap_or_default(),
        Some(opcode) => opcode,
        None => "",
    };
    let mut words = opcode.trim_end_matches(';').split('.');
    let name = words.next().unwrap_or_default();
    match name {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" | "rcp"
        | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" | "testp" | "sad"
        | "addc" | "subc" | "madc" | "mul24" | "mad24" | "dp2a" | "dp4a" | "clmad" => {
            words.rev().find_map(arithmetic).unwrap_or("integer")
        }
        "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "bmsk"
        | "szext" | "prmt" | "clz" | "popc" | "bfind" | "brev" | "fns" => "logic",
        "set" | "setp" | "selp" | "slct" => "compare",
        "cvt" | "cvta" | "mov" | "isspacep" | "mapa" | "getctarank" => "convert and move",
        "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "discard" | "applypriority" | "createpolicy"
        | "alloca" | "stacksave" | "stackrestore" | "ldmatrix" | "stmatrix" => "memory",
        "atom" | "red" | "multimem" => "atomic",
        "cp" => "asynchronous copy",
        "mma" | "wmma" | "wgmma" | "tcgen05" | "movmatrix" => "tensor core",
        "bar" | "barrier" | "membar" | "fence" | "mbarrier" | "griddepcontrol" | "setmaxnreg" => {
            "synchronisation"
        }
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => "warp",
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "pmevent" => "control",
        "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" | "istypep" => "texture",
        _ => "other",
    }
}

/// What arithmetic of a type counts as.
fn arithmetic(word: &str) -> Option<&'static str> {
    let ty = Type::ALL.iter().find(|ty| ty.name() == word)?;
    Some(match ty {
        Type::F64 => "f64",
        Type::F32 | Type::F32X2 | Type::TF32 => "f32",
        Type::F16 | Type::F16X2 | Type::BF16 | Type::BF16X2 => "f16",
        _ => "integer",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (text, wanted) in [
            ("fma.rn.f32 %f0, %f1, %f2, %f3;", "f32"),
            ("@!%p0 add.s32 %r0, %r1, 1;", "integer"),
            ("mul.bf16x2 %r0, %r1, %r2;", "f16"),
            ("fma.rn.f64 %fd0, %fd1, %fd2, %fd3;", "f64"),
            ("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0];", "memory"),
            ("@%p0 bra DONE;", "control"),
            ("ret;", "control"),
            ("cp.async.wait_all;", "asynchronous copy"),
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a}, {b}, {c}, {d};", "tensor core"),
            ("bar.sync 0;", "synchronisation"),
            ("shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;", "warp"),
            ("cvt.rn.f32.s32 %f0, %r0;", "convert and move"),
            ("", "other"),
        ] {
            assert_eq!(class(text), wanted, "{text}");
        }
    }
}
