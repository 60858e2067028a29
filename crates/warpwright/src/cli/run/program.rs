//! The module that is run, and the kernel in it.

use super::options::{Dims, Options};
use crate::cli::{Failure, check, source};
use warpwright_ptx::ir::{Function, FunctionDirective, Module};
use warpwright_ptx::verify::ModuleInfo;
use warpwright_ptx::{parse, verify};

/// A verified module with its text.
pub(super) struct Program {
    /// What messages call the file.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) module: Module,
    pub(super) info: ModuleInfo,
}

impl Program {
    /// Reads and verifies a file. Its errors are printed.
    pub(super) fn read(file: &str) -> Result<Program, Failure> {
        let text = source::read(file)?;
        let name = source::display_name(file).to_string();
        let refused = |diagnostics| {
            check::print_diagnostics(&diagnostics, file, &text)?;
            Err(Failure::Message(format!("{name} cannot be run: the errors above come first")))
        };
        let module = match parse(&text) {
            Ok(module) => module,
            Err(diagnostics) => return refused(diagnostics),
        };
        match verify(&module) {
            Ok(info) => Ok(Program { name, text, module, info }),
            Err(diagnostics) => refused(diagnostics),
        }
    }

    /// The kernel of that name, or the only one.
    pub(super) fn kernel(&self, name: Option<&str>) -> Result<&Function, Failure> {
        let kernels: Vec<&Function> =
            self.module.entries().filter(|function| function.body.is_some()).collect();
        let names = || kernels.iter().map(|kernel| format!("\n    {}", kernel.name)).collect::<String>();
        if kernels.is_empty() {
            return Err(Failure::Message(format!("{} has no kernel (`.entry`)", self.name)));
        }
        match (name, &kernels[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Failure::Message(format!(
                "{} has {} kernels: `--entry NAME` says which{}",
                self.name,
                kernels.len(),
                names()
            ))),
            (Some(name), _) => {
                kernels.iter().copied().find(|kernel| *kernel.name == *name).ok_or_else(|| {
                    Failure::Message(format!("{} has no kernel `{name}`; it has{}", self.name, names()))
                })
            }
        }
    }
}

/// The block's shape: as asked for, or as the kernel requires it.
pub(super) fn block_of(kernel: &Function, options: &Options) -> Result<[u32; 3], Failure> {
    if let Some(Dims(block)) = options.block {
        return Ok(block);
    }
    let shape = |dims: &[u32]| {
        let mut shape = [1; 3];
        shape.iter_mut().zip(dims).for_each(|(extent, dim)| *extent = *dim);
        shape
    };
    let mut limit = String::new();
    for directive in &kernel.directives {
        match directive {
            FunctionDirective::ReqNtid(dims) => return Ok(shape(dims)),
            FunctionDirective::MaxNtid(dims) => {
                let [x, y, z] = shape(dims);
                limit = format!(", of at most {x},{y},{z} by its `.maxntid`");
            }
            _ => {}
        }
    }
    Err(Failure::Message(format!(
        "`--block` is missing, and kernel `{}` has no `.reqntid` that says its block's shape{limit}",
        kernel.name
    )))
}
