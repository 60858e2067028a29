//! What the arguments of the command line come to: bytes for parameters, contents of buffers and of
//! module-scope variables, and files to be written afterwards.

use super::argument::{Argument, Buffer, Elements};
use super::signature::Signature;
use crate::cli::npy::{self, Array, Dtype, Kind};
use crate::cli::{Failure, source};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use warpwright_ptx::ir::{AddressSize, Function, Module, Space, Type, Variable};

/// What a parameter gets.
pub(super) enum Value {
    /// The bytes of a value.
    Bytes(Vec<u8>),
    /// A pointer to a buffer.
    Buffer(Contents),
}

impl Value {
    /// Whether it is written to a file after the run.
    pub(super) fn is_output(&self) -> bool {
        matches!(self, Value::Buffer(Contents { output: Some(_), .. }))
    }
}

/// A buffer, before there is a device.
pub(super) struct Contents {
    /// Name of the parameter that points to it.
    pub(super) parameter: String,
    /// The argument that asked for it.
    pub(super) argument: String,
    pub(super) bytes: u64,
    pub(super) fill: Fill,
    pub(super) output: Option<Output>,
}

/// What a buffer holds at first.
pub(super) enum Fill {
    Data(Vec<u8>),
    Zeros,
    /// Nobody has written it.
    Nothing,
}

/// A file to be written after the run.
pub(super) struct Output {
    pub(super) path: PathBuf,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<u64>,
}

/// A module-scope variable that is written before the launch or read after it.
pub(super) struct Global {
    pub(super) name: String,
    pub(super) initial: Option<Vec<u8>>,
    pub(super) output: Option<Output>,
}

impl Output {
    fn new(path: &Path, dtype: Dtype, shape: &[u64]) -> Self {
        Output { path: path.to_path_buf(), dtype, shape: shape.to_vec() }
    }

    /// Writes the file.
    pub(super) fn write(&self, data: &[u8]) -> Result<(), Failure> {
        source::write_whole(&self.path, &npy::write(self.dtype, &self.shape, data))
    }
}

/// The values of a kernel's parameters, their files read.
pub(super) fn arguments(module: &Module, kernel: &Function, texts: &[String]) -> Result<Vec<Value>, Failure> {
    let signature = Signature::new(module, kernel);
    let mut given: Vec<_> = texts.iter().map(|text| (text.as_str(), Argument::parse(text))).collect();
    // Whether these fit depends on their length.
    for (_, argument) in &mut given {
        if let Ok(Argument::RawFile(path)) = argument {
            *argument = fs::read(&*path)
                .map(Argument::Raw)
                .map_err(|error| format!("cannot read {}: {error}", path.display()));
        }
    }
    signature.check(&given)?;
    let mut values = Vec::with_capacity(given.len());
    for ((text, argument), parameter) in given.into_iter().zip(&signature.parameters) {
        values.push(match argument? {
            Argument::Scalar { bytes, .. } | Argument::Raw(bytes) => Value::Bytes(bytes),
            Argument::Null => Value::Bytes(vec![0; signature.address as usize]),
            Argument::RawFile(path) => Value::Bytes(read_file(&path)?),
            Argument::Buffer(buffer) => {
                let (bytes, fill, output) = contents(&buffer)?;
                let (parameter, argument) = (parameter.name.clone(), text.to_string());
                Value::Buffer(Contents { parameter, argument, bytes, fill, output })
            }
        });
    }
    Ok(values)
}

fn contents(buffer: &Buffer) -> Result<(u64, Fill, Option<Output>), Failure> {
    Ok(match buffer {
        Buffer::In(path) => {
            let array = read_array(path)?;
            (array.data.len() as u64, Fill::Data(array.data), None)
        }
        Buffer::InOut(path) => {
            let Array { dtype, shape, data } = read_array(path)?;
            (data.len() as u64, Fill::Data(data), Some(Output::new(path, dtype, &shape)))
        }
        Buffer::Out(Elements { dtype, shape, bytes, .. }, path) => {
            (*bytes, Fill::Nothing, Some(Output::new(path, *dtype, shape)))
        }
        Buffer::Zeros(elements) => (elements.bytes, Fill::Zeros, None),
        Buffer::Poison(elements) => (elements.bytes, Fill::Nothing, None),
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Message(format!("cannot read {}: {error}", path.display())))
}

fn read_array(path: &Path) -> Result<Array, Failure> {
    npy::read(read_file(path)?)
        .map_err(|error| Failure::Message(format!("cannot use {}: {error}", path.display())))
}

/// The variables that `--global` names.
pub(super) fn globals(module: &Module, texts: &[String]) -> Result<Vec<Global>, Failure> {
    let mut globals: Vec<Global> = Vec::new();
    for text in texts {
        let global = global(module, text).map_err(|problem| match problem {
            Failure::Message(problem) => Failure::Message(format!("--global {text}: {problem}")),
            other => other,
        })?;
        if globals.iter().any(|other| other.name == global.name) {
            return Err(Failure::Message(format!("--global {text}: `{}` is given twice", global.name)));
        }
        globals.push(global);
    }
    Ok(globals)
}

fn global(module: &Module, text: &str) -> Result<Global, Failure> {
    let (name, value) = text.split_once('=').ok_or_else(|| "what stands here is NAME=ARG".to_string())?;
    let reachable = |variable: &&Variable| matches!(variable.space, Space::Global | Space::Const);
    let variable = module.globals().find(|variable| *variable.name == *name).ok_or_else(|| {
        let names: Vec<_> = module.globals().filter(reachable).map(|variable| &*variable.name).collect();
        match names.len() {
            0 => "the module has no global or constant variables".to_string(),
            _ => format!("there is no variable `{name}`; there are {}", names.join(", ")),
        }
    })?;
    if !reachable(&variable) {
        return Err(format!(
            "`{name}` is in {}: only global and constant variables keep a value between launches",
            variable.space
        )
        .into());
    }
    let bytes = variable.bytes().ok_or_else(|| format!("`{name}` has no size of its own"))?;
    let (initial, output) = match short_output(variable, value) {
        Some(output) => (None, Some(output)),
        None => global_value(Argument::parse(value)?, module, bytes)?,
    };
    let given = match (&initial, &output) {
        (Some(data), _) => data.len() as u64,
        (None, Some(output)) => npy::element_count(&output.shape).unwrap_or(0) * output.dtype.size as u64,
        (None, None) => bytes,
    };
    if given != bytes {
        return Err(format!("the variable has {bytes} bytes, and {given} are given").into());
    }
    Ok(Global { name: name.to_string(), initial, output })
}

fn global_value(
    argument: Argument,
    module: &Module,
    size: u64,
) -> Result<(Option<Vec<u8>>, Option<Output>), Failure> {
    Ok(match argument {
        Argument::Scalar { bytes, .. } | Argument::Raw(bytes) => (Some(bytes), None),
        Argument::RawFile(path) => (Some(read_file(&path)?), None),
        Argument::Null => {
            let narrow = module.address_size == Some(AddressSize::Bits32);
            (Some(vec![0; if narrow { 4 } else { 8 }]), None)
        }
        Argument::Buffer(Buffer::Poison(_)) => {
            return Err("a variable always has a value: what the module says, or zeros".to_string().into());
        }
        // What is there before an `out:` is the variable's own initial value.
        Argument::Buffer(buffer) => match contents(&buffer)? {
            (_, Fill::Data(data), output) => (Some(data), output),
            (bytes, Fill::Zeros, _) if bytes != size => {
                return Err(format!("the variable has {size} bytes, and {bytes} are given").into());
            }
            (_, Fill::Zeros, output) => (Some(vec![0; size as usize]), output),
            (_, Fill::Nothing, output) => (None, output),
        },
    })
}

/// `out:FILE`: elements and shape are the variable's own.
fn short_output(variable: &Variable, text: &str) -> Option<Output> {
    let file = text.strip_prefix("out:").filter(|file| !file.is_empty())?;
    // A colon may also stand in the name of a file.
    if file.split_once(':').is_some_and(|(ty, _)| Type::ALL.iter().any(|known| known.name() == ty)) {
        return None;
    }
    let mut shape = variable.dims.iter().copied().collect::<Option<Vec<u64>>>()?;
    shape.extend(variable.vector.map(|vector| vector.elements() as u64));
    let dtype = Dtype::of(variable.ty).unwrap_or_else(|| {
        // Packed and opaque values: as bytes.
        shape.push(variable.ty.bytes().into());
        Dtype { kind: Kind::Unsigned, size: 1 }
    });
    Some(Output::new(Path::new(file), dtype, &shape))
}

/// Checks before the run that what it gives can be written, each to a file of its own.
pub(super) fn check_outputs(values: &[Value], globals: &[Global]) -> Result<(), Failure> {
    let buffers = values.iter().filter_map(|value| match value {
        Value::Buffer(contents) => contents.output.as_ref(),
        Value::Bytes(_) => None,
    });
    let mut seen = BTreeSet::new();
    for output in buffers.chain(globals.iter().filter_map(|global| global.output.as_ref())) {
        let path = &output.path;
        if !seen.insert(path) {
            let what = format!("two arguments write {}", path.display());
            return Err(Failure::Message(what));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            let what = format!("cannot write {}: it is a folder, or in none that is there", path.display());
            return Err(Failure::Message(what));
        }
    }
    Ok(())
}
