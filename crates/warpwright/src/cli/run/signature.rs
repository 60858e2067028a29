//! A kernel's parameters, and whether arguments fit them.

use super::argument::Argument;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use warpwright_ptx::ir::{
    Address, AddressBase, AddressSize, Dsts, Function, Module, Param, Pointee, Reg, Space, Src, Srcs, Symbol,
    Type, TypeKind, VarId, Variable,
};
use warpwright_ptx::op::convert::Mov;
use warpwright_ptx::op::memory::Ld;
use warpwright_ptx::op::{Access, Op, VisitorMut};

/// What the host must know of a kernel.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) entry: String,
    pub(super) parameters: Vec<Parameter>,
    /// Size of an address in bytes.
    pub(super) address: u64,
}

/// A parameter of a kernel.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// The type of a single value; `None` for bytes, which is how a struct is declared.
    pub(super) scalar: Option<Type>,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// Alignment in bytes.
    pub(super) align: u32,
    /// What `.ptr` says.
    pub(super) pointee: Option<Pointee>,
    /// Whether the kernel uses it as an address, or says so.
    pub(super) pointer: bool,
}

impl Signature {
    pub(super) fn new(module: &Module, kernel: &Function) -> Signature {
        let pointers = used_as_addresses(kernel);
        let mut parameters = Vec::new();
        for param in &kernel.params {
            // Kernels have no register parameters: the verifier sees to that.
            let Param::Variable(id) = *param else { continue };
            let variable = kernel.variable(id);
            let pointer = variable.pointee.is_some() || pointers.contains(&id);
            let one = |name: String| Parameter {
                name,
                scalar: scalar_type(variable),
                bytes: variable.bytes().unwrap_or(0),
                align: variable.alignment(),
                pointee: variable.pointee,
                pointer,
            };
            match variable.range {
                None => parameters.push(one(variable.name.to_string())),
                Some(count) => {
                    parameters.extend((0..count).map(|i| one(format!("{}{i}", variable.name))));
                }
            }
        }
        let address = match module.address_size {
            Some(AddressSize::Bits32) => 4,
            _ => 8,
        };
        Signature { entry: kernel.name.to_string(), parameters, address }
    }

    /// Checks that each argument fits its parameter. `given` has the text of each with what it was
    /// read as. The error shows the signature with what is wrong beside each parameter.
    pub(super) fn check(&self, given: &[(&str, Result<Argument, String>)]) -> Result<(), String> {
        let problems: Vec<Option<String>> = given
            .iter()
            .enumerate()
            .map(|(i, (text, argument))| match (argument, self.parameters.get(i)) {
                (Err(problem), parameter) => {
                    Some(parameter.and_then(|to| to.typed(text)).unwrap_or_else(|| problem.clone()))
                }
                (_, None) => Some("there is no parameter for it".to_string()),
                (Ok(argument), Some(parameter)) => self.misfit(parameter, argument),
            })
            .collect();
        let (wanted, count) = (self.parameters.len(), given.len());
        let wrong = problems.iter().flatten().count();
        if wanted == count && wrong == 0 {
            return Ok(());
        }
        let title = if wanted != count {
            let plural = if wanted == 1 { "" } else { "s" };
            let verb = if count == 1 { "is" } else { "are" };
            format!("kernel `{}` takes {wanted} argument{plural}, and {count} {verb} given", self.entry)
        } else if wrong == 1 {
            format!("an argument does not fit kernel `{}`", self.entry)
        } else {
            format!("{wrong} arguments do not fit kernel `{}`", self.entry)
        };
        Err(format!("{title}\n{}", self.table(given, &problems)))
    }

    /// The signature, a parameter a line, with what it is given.
    fn table(&self, given: &[(&str, Result<Argument, String>)], problems: &[Option<String>]) -> String {
        let mut left = Vec::new();
        for (i, parameter) in self.parameters.iter().enumerate() {
            let comma = if i + 1 < self.parameters.len() { "," } else { "" };
            left.push(format!("{}: {}{comma}", parameter.name, parameter.kind()));
        }
        left.resize(left.len().max(given.len()), String::new());
        let width = left.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let wide = given.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0);
        let mut out = format!("    .entry {}(", self.entry);
        for (i, declared) in left.iter().enumerate() {
            if i == self.parameters.len() {
                out.push_str("\n    )");
            }
            let line = match (given.get(i), problems.get(i)) {
                (Some((text, _)), Some(Some(problem))) => {
                    format!("{declared:width$}   {text:wide$}  <- {problem}")
                }
                (Some((text, _)), _) => format!("{declared:width$}   {text}"),
                (None, _) => {
                    let example = self.example(&self.parameters[i]);
                    format!("{declared:width$}   {:wide$}  <- missing: {example}", "")
                }
            };
            let _ = write!(out, "\n        {}", line.trim_end());
        }
        if given.len() <= self.parameters.len() {
            out.push_str("\n    )");
        }
        out
    }

    /// What is wrong with the argument for that parameter.
    fn misfit(&self, parameter: &Parameter, argument: &Argument) -> Option<String> {
        let bytes = parameter.bytes;
        if parameter.scalar.is_some_and(|ty| ty.kind() == TypeKind::Opaque) {
            return Some("textures, samplers and surfaces cannot be passed".to_string());
        }
        match argument {
            Argument::Scalar { ty, bytes: value } => match parameter.scalar {
                Some(declared) if ty.agrees_with(declared) => None,
                Some(_) => Some(format!("the parameter takes {}", self.example(parameter))),
                None if value.len() as u64 == bytes => None,
                None => Some(format!("the parameter is {bytes} bytes: {}", self.example(parameter))),
            },
            Argument::Null | Argument::Buffer(_) => {
                let whole = parameter.scalar.is_none_or(|ty| ty.is_integer() || ty.is_bits());
                if bytes == self.address && whole {
                    return self.elsewhere(parameter, argument);
                }
                Some(format!("a pointer does not fit: the parameter takes {}", self.example(parameter)))
            }
            Argument::Raw(value) if value.len() as u64 == bytes => None,
            Argument::Raw(value) => {
                Some(format!("{} bytes are given, the parameter is {bytes} bytes", value.len()))
            }
            // Its length is known once it is read.
            Argument::RawFile(_) => None,
        }
    }

    /// A pointer into a space that no buffer is in.
    fn elsewhere(&self, parameter: &Parameter, argument: &Argument) -> Option<String> {
        let space = parameter.pointee.and_then(|pointee| pointee.space)?;
        let outside = matches!(argument, Argument::Buffer(_)) && space != Space::Global;
        outside.then(|| format!("a buffer is global memory, and the parameter points into {space}"))
    }

    /// What could be passed.
    fn example(&self, parameter: &Parameter) -> String {
        let width = parameter.bytes * 8;
        match parameter.scalar {
            _ if parameter.pointer && parameter.bytes == self.address => {
                "a pointer, such as in:FILE.npy, out:f32:1024:FILE.npy or null".to_string()
            }
            Some(ty) if ty.kind() == TypeKind::Opaque => "a texture, which cannot be passed".to_string(),
            Some(ty) if ty.is_float() => format!("{}:VALUE, or its bits as b{width}:0x…", ty.name()),
            Some(ty) if ty.is_bits() => format!("any {width}-bit value, such as u{width}:1"),
            Some(_) => format!("u{width}:N or s{width}:N, or any bits as b{width}:0x…"),
            None => format!("raw:HEX or raw:@FILE with {} bytes", parameter.bytes),
        }
    }
}

impl Parameter {
    /// What to say of a number whose type was left out.
    fn typed(&self, text: &str) -> Option<String> {
        let ty = self.scalar.filter(|_| text.parse::<f64>().is_ok())?;
        Some(format!("the type is missing: {}:{text}", ty.name()))
    }

    /// Its type in words.
    fn kind(&self) -> String {
        let mut text = match self.scalar {
            Some(ty) => ty.name().to_string(),
            None => format!("{} bytes, align {}", self.bytes, self.align),
        };
        if self.pointer {
            text.push_str(" pointer");
        }
        if let Some(pointee) = self.pointee {
            if let Some(space) = pointee.space {
                let _ = write!(text, " to {space}");
            }
            if let Some(align) = pointee.align {
                let _ = write!(text, ", aligned to {align}");
            }
        }
        text
    }
}

/// The type of a variable that is a single value.
fn scalar_type(variable: &Variable) -> Option<Type> {
    (variable.dims.is_empty() && variable.vector.is_none()).then_some(variable.ty)
}

/// The parameters whose value the kernel takes for an address: of memory, or to convert it. Values
/// are followed through moves only, so that an index that is added to a pointer is no pointer.
fn used_as_addresses(kernel: &Function) -> HashSet<VarId> {
    let mut values = Values::default();
    for instruction in kernel.instructions() {
        let mut op = instruction.op.clone();
        let value = match &op {
            Op::Ld(Ld {
                space: Some(Space::Param),
                d: Dsts::One(d),
                address: Address { base: AddressBase::Symbol(Symbol::Local(id)), offset: 0 },
                ..
            }) => Some((*d, *id)),
            Op::Mov(Mov { d: Dsts::One(d), a: Srcs::One(Src::Reg(a)), .. }) => {
                values.held.get(a).map(|&id| (*d, id))
            }
            Op::Cvta(convert) => {
                let id = convert.a.reg().and_then(|reg| values.held.get(&reg));
                values.pointers.extend(id);
                None
            }
            _ => None,
        };
        op.visit_mut(&mut values);
        values.held.extend(value);
    }
    values.pointers
}

/// What registers hold of the parameters, in the order of the text.
#[derive(Default)]
struct Values {
    held: HashMap<Reg, VarId>,
    pointers: HashSet<VarId>,
}

impl VisitorMut for Values {
    fn reg(&mut self, access: Access, reg: &mut Reg) {
        if access != Access::Read {
            self.held.remove(reg);
        }
    }

    fn address(&mut self, address: &mut Address) {
        if let AddressBase::Reg(reg) = address.base {
            self.pointers.extend(self.held.get(&reg));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_ptx::parse;

    const KERNEL: &str = "\
.version 8.3
.target sm_80
.address_size 64
.entry f(
    .param .u64 x,
    .param .u64 .ptr .global .align 16 y,
    .param .u64 n,
    .param .f32 a,
    .param .align 8 .b8 s[24],
    .param .u16 h
)
{
    .reg .b64 %rd<8>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd0, [x];
    mov.b64 %rd1, %rd0;
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u64 %rd3, [n];
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f0, [%rd4];
    ret;
}
";

    fn signature() -> Signature {
        let module = parse(KERNEL).expect("it is PTX");
        let kernel = module.entries().next().expect("there is one");
        Signature::new(&module, kernel)
    }

    fn check(texts: &[&str]) -> Result<(), String> {
        let given: Vec<_> = texts.iter().map(|text| (*text, Argument::parse(text))).collect();
        signature().check(&given)
    }

    #[test]
    fn pointers_are_told_from_numbers() {
        let kinds: Vec<_> = signature().parameters.iter().map(Parameter::kind).collect();
        assert_eq!(
            kinds,
            [
                "u64 pointer",
                "u64 pointer to .global, aligned to 16",
                "u64",
                "f32",
                "24 bytes, align 8",
                "u16"
            ]
        );
    }

    #[test]
    fn arguments_that_fit() {
        let bytes = format!("raw:{}", "00".repeat(24));
        for texts in [
            ["in:x.npy", "zeros:f32:4", "u64:4", "f32:1", &bytes, "u16:1"],
            ["null", "null", "s64:-4", "b32:0x3f800000", "raw:@s.bin", "b16:7"],
            ["u64:0", "raw:0000000000000000", "b64:4", "raw:00000000", &bytes, "s16:-1"],
        ] {
            assert_eq!(check(&texts), Ok(()), "{texts:?}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit() {
        let bytes = format!("raw:{}", "00".repeat(24));
        let good = ["in:x.npy", "zeros:f32:4", "u64:4", "f32:1", &bytes, "u16:1"];
        for (at, text) in [
            (0, "u32:1"),
            (0, "f64:1"),
            (0, "raw:00"),
            (0, "in:"),
            (2, "u32:4"),
            (2, "f64:4"),
            (3, "u32:1"),
            (3, "null"),
            (3, "in:x.npy"),
            (3, "f16:1"),
            (4, "u64:1"),
            (4, "null"),
            (4, "raw:0000"),
            (5, "f16:1"),
            (5, "u8:1"),
        ] {
            let mut texts = good;
            texts[at] = text;
            assert!(check(&texts).is_err(), "{text} for parameter {at}");
        }
        assert_eq!(check(&good), Ok(()));
        assert!(check(&good[..5]).is_err());
        assert!(check(&[&good[..], &["u32:1"]].concat()).is_err());
        assert!(check(&[]).is_err());
    }

    #[test]
    fn a_misfit_is_shown_beside_its_parameter() {
        let message = check(&["in:x.npy", "null", "u32:4"]).expect_err("three are missing");
        let wanted = "\
kernel `f` takes 6 arguments, and 3 are given
    .entry f(
        x: u64 pointer,                             in:x.npy
        y: u64 pointer to .global, aligned to 16,   null
        n: u64,                                     u32:4     <- the parameter takes u64:N or s64:N, or any bits as b64:0x…
        a: f32,                                               <- missing: f32:VALUE, or its bits as b32:0x…
        s: 24 bytes, align 8,                                 <- missing: raw:HEX or raw:@FILE with 24 bytes
        h: u16                                                <- missing: u16:N or s16:N, or any bits as b16:0x…
    )";
        assert_eq!(message, wanted);
    }
}
