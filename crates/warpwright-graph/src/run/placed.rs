//! A plan with the memory of a device: the location of each tensor, and the host's reads and writes.
//!
//! All ways to run a plan use it: launches issued one by one, a recorded graph, a persistent kernel. It does not depend
//! on how the plan is run.

use super::error::ExecuteError;
use super::store::Store;
use crate::graph::{Role, Tensor, TensorType};
use crate::launch::{ArgSource, WeightLayout, planes};
use crate::plan::{Location, Plan};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_ptx::ir::Type;
use warpwright_runtime::{self as runtime, AnyBuffer, Buffer, RuntimeError, Stream};

/// A plan in memory.
pub(crate) struct Placed {
    pub(crate) plan: Arc<Plan>,
    pub(crate) stream: Stream,
    /// What each tensor of the program consists of; nothing of tensors that no step has, and of matrices of weights.
    parts: Vec<Vec<AnyBuffer>>,
    matrices: HashMap<(Tensor, WeightLayout), AnyBuffer>,
    arena: Option<AnyBuffer>,
    /// Scratch that is zero between launches.
    zeroed: Option<AnyBuffer>,
    /// The device's number of failures when that was cleared last.
    failures: AtomicU64,
    inputs: Vec<Input>,
    outputs: Vec<(Tensor, String)>,
    /// The store's number of moves, now and when this was placed.
    moves: (Arc<AtomicU64>, u64),
}

struct Input {
    tensor: Tensor,
    name: String,
    written: bool,
}

/// An argument of the plan with its buffer.
pub(super) enum BoundArg {
    Buffer(AnyBuffer),
    U32(u32),
    F32(f32),
}

impl Placed {
    /// Finds memory for a plan: lays out weights, makes states, allocates everything else.
    pub(super) fn new(plan: Arc<Plan>, store: &mut Store) -> Result<Self, ExecuteError> {
        let (given, needed) = (plan.options().arch(), store.device().properties().arch);
        if given != needed {
            return Err(ExecuteError::Arch { given, needed });
        }
        let stream = store.stream().clone();
        let mut matrices = HashMap::new();
        let mut parts = vec![Vec::new(); plan.program().tensors().len()];
        for weight in plan.weights() {
            let info = plan.program().info(weight.tensor);
            for &layout in &weight.layouts {
                let buffer = store.laid_out(&info.name, info.ty, layout)?;
                matrices.insert((weight.tensor, layout), buffer);
            }
            if weight.layouts.is_empty() {
                parts[weight.tensor.index()] = vec![store.vector(&info.name, info.ty)?];
            }
        }
        for state in plan.tensors(Role::State) {
            let info = plan.program().info(state);
            parts[state.index()] = store.state(&info.name, info.ty)?;
        }
        let memory = plan.memory();
        let arena = allocate(&stream, memory.arena_bytes, "the plan's memory")?;
        let zeroed = allocate(&stream, memory.zeroed_bytes, "the plan's scratch")?;
        let failures = AtomicU64::new(stream.device().failures());
        let named = |role| {
            let name = |tensor: Tensor| plan.program().info(tensor).name.clone();
            plan.tensors(role).map(|tensor| (tensor, name(tensor))).collect::<Vec<_>>()
        };
        let input = |(tensor, name)| Input { tensor, name, written: false };
        let (inputs, outputs) = (named(Role::Input).into_iter().map(input).collect(), named(Role::Output));
        let moves = (store.moves.clone(), store.moves.load(Relaxed));
        let mut placed =
            Placed { plan, stream, parts, matrices, arena, zeroed, failures, inputs, outputs, moves };
        placed.clear_scratch()?;
        placed.place()?;
        Ok(placed)
    }

    /// Sets the scratch to zero that kernels leave zero, unless they fail.
    pub(super) fn clear_scratch(&self) -> Result<(), RuntimeError> {
        match &self.zeroed {
            Some(zeroed) => self.stream.memset_any(zeroed, 0),
            None => Ok(()),
        }
    }

    /// Clears scratch where something has failed on the device since the last time: what comes now does not depend
    /// on what the failure has left, whoever was told of it.
    fn recover(&self) -> Result<(), RuntimeError> {
        let failures = self.stream.device().failures();
        if self.failures.swap(failures, Relaxed) != failures {
            self.clear_scratch()?;
        }
        Ok(())
    }

    /// Finds the parts of tensors in the arena, and of versions of states.
    fn place(&mut self) -> Result<(), ExecuteError> {
        let plan = self.plan.clone();
        for tensor in plan.program().handles() {
            self.parts[tensor.index()] = match plan.location(tensor) {
                Some(Location::Arena(offset)) => {
                    let parts = planes(plan.program().ty(tensor)).into_iter();
                    let part = |plane: crate::launch::Plane| {
                        range(self.arena.as_ref(), offset + plane.offset, plane.bytes(), plane.dtype)
                    };
                    parts.map(part).collect::<Result<_, _>>()?
                }
                Some(Location::State(state)) if state != tensor => self.parts[state.index()].clone(),
                _ => continue,
            };
        }
        Ok(())
    }

    /// What an argument is, whose elements have that type.
    pub(super) fn bound_arg(&self, source: ArgSource, dtype: Type) -> Result<BoundArg, ExecuteError> {
        Ok(BoundArg::Buffer(match source {
            ArgSource::U32(value) => return Ok(BoundArg::U32(value)),
            ArgSource::F32(value) => return Ok(BoundArg::F32(value)),
            // Weights that are floats are taken as such.
            ArgSource::Weights { tensor, layout } => self.matrix(tensor, layout)?.cast(dtype)?,
            ArgSource::Tensor { tensor, plane, at, len } => {
                let part = self.parts(tensor)?.get(plane).ok_or_else(|| self.no_buffer(tensor))?;
                let size = u64::from(dtype.bytes());
                range(Some(part), at * size, len * size, dtype)?
            }
            ArgSource::Scratch(id) => {
                let bytes = self.plan.scratch().get(id.index()).map_or(0, |scratch| scratch.bytes());
                let (memory, offset) = match self.plan.scratch_location(id) {
                    Some(Location::Arena(offset)) => (self.arena.as_ref(), offset),
                    Some(Location::Zeroed(offset)) => (self.zeroed.as_ref(), offset),
                    _ => (None, 0),
                };
                range(memory, offset, bytes, dtype)?
            }
        }))
    }

    /// What a tensor consists of, in the order of [`planes`].
    pub(crate) fn parts(&self, tensor: Tensor) -> Result<&[AnyBuffer], ExecuteError> {
        match self.parts.get(tensor.index()) {
            Some(parts) if !parts.is_empty() => Ok(parts),
            _ => Err(self.no_buffer(tensor)),
        }
    }

    /// A matrix of weights in a layout.
    pub(crate) fn matrix(&self, tensor: Tensor, layout: WeightLayout) -> Result<&AnyBuffer, ExecuteError> {
        let missing = || ExecuteError::Layout { name: self.name(tensor), layout };
        self.matrices.get(&(tensor, layout)).ok_or_else(missing)
    }

    /// An error, with the step that it is about.
    pub(crate) fn at_step(&self, step: usize, error: ExecuteError) -> ExecuteError {
        if matches!(error, ExecuteError::Step { .. }) {
            return error;
        }
        let op = self.plan.program().steps()[step].op.name();
        ExecuteError::Step { op, nodes: self.node_names(step), error: Box::new(error) }
    }

    /// The nodes whose work a step does.
    pub(crate) fn node_names(&self, step: usize) -> Vec<String> {
        let program = self.plan.program();
        program.steps()[step].nodes.iter().map(|&node| program.node(node).0.to_owned()).collect()
    }

    pub(crate) fn name(&self, tensor: Tensor) -> String {
        self.plan.program().tensors().get(tensor.index()).map(|info| info.name.clone()).unwrap_or_default()
    }

    pub(super) fn no_buffer(&self, tensor: Tensor) -> ExecuteError {
        ExecuteError::NoBuffer { name: self.name(tensor) }
    }

    #[cfg(test)]
    pub(super) fn zeroed(&self) -> Option<&AnyBuffer> {
        self.zeroed.as_ref()
    }
}

/// What the host writes and reads.
impl Placed {
    /// Names and types of what the host writes.
    pub(super) fn inputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.inputs.iter().map(|input| (input.name.as_str(), self.ty(input.tensor)))
    }

    /// Names and types of what the host reads.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.outputs.iter().map(|(tensor, name)| (name.as_str(), self.ty(*tensor)))
    }

    fn ty(&self, tensor: Tensor) -> TensorType {
        self.plan.program().ty(tensor)
    }

    /// Writes an input: all of it.
    pub(super) fn write_input<T: runtime::Element>(
        &mut self,
        name: &str,
        values: &[T],
    ) -> Result<(), ExecuteError> {
        let (at, buffer) = self.input::<T>(name)?;
        self.must_have(name, self.inputs[at].tensor, values.len(), buffer.len())?;
        self.stream.memcpy_htod(values, &buffer)?;
        self.inputs[at].written = true;
        Ok(())
    }

    /// Writes an input from memory of the device.
    pub(super) fn copy_input<T: runtime::Element>(
        &mut self,
        name: &str,
        source: &Buffer<T>,
    ) -> Result<(), ExecuteError> {
        let (at, buffer) = self.input::<T>(name)?;
        self.must_have(name, self.inputs[at].tensor, source.len(), buffer.len())?;
        self.stream.memcpy_dtod(source, &buffer)?;
        self.inputs[at].written = true;
        Ok(())
    }

    /// Reads an output, after everything that the stream was asked for.
    pub(super) fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        let buffer = self.typed(name, self.output_buffer(name)?)?;
        Ok(self.stream.clone_dtoh(&buffer)?)
    }

    /// The same, into a slice of the output's length.
    pub(super) fn read_output_to<T: runtime::Element>(
        &self,
        name: &str,
        values: &mut [T],
    ) -> Result<(), ExecuteError> {
        let buffer: Buffer<T> = self.typed(name, self.output_buffer(name)?)?;
        self.must_have(name, self.output(name)?, values.len(), buffer.len())?;
        Ok(self.stream.memcpy_dtoh(&buffer, values)?)
    }

    /// The memory of an output.
    pub(super) fn output_buffer(&self, name: &str) -> Result<&AnyBuffer, ExecuteError> {
        let tensor = self.output(name)?;
        match self.parts(tensor)? {
            [part] => Ok(part),
            _ => Err(ExecuteError::NoBuffer { name: name.into() }),
        }
    }

    /// The output of that name.
    pub(super) fn output(&self, name: &str) -> Result<Tensor, ExecuteError> {
        let found = self.outputs.iter().find(|(_, known)| known == name);
        let known = || self.outputs.iter().map(|(_, name)| name.clone()).collect();
        let unknown = || ExecuteError::Unknown { role: Role::Output, name: name.into(), known: known() };
        Ok(found.ok_or_else(unknown)?.0)
    }

    fn input<T: runtime::Element>(&self, name: &str) -> Result<(usize, Buffer<T>), ExecuteError> {
        let known = || self.inputs.iter().map(|input| input.name.clone()).collect();
        let unknown = || ExecuteError::Unknown { role: Role::Input, name: name.into(), known: known() };
        let at = self.inputs.iter().position(|input| input.name == name).ok_or_else(unknown)?;
        match self.parts(self.inputs[at].tensor)? {
            [part] => Ok((at, self.typed(name, part)?)),
            _ => Err(ExecuteError::NoBuffer { name: name.into() }),
        }
    }

    fn typed<T: runtime::Element>(&self, name: &str, part: &AnyBuffer) -> Result<Buffer<T>, ExecuteError> {
        let (given, needed) = (T::TYPE, part.element());
        if given != needed {
            return Err(ExecuteError::Element { name: name.into(), given, needed });
        }
        Ok(part.typed()?)
    }

    fn must_have(&self, name: &str, tensor: Tensor, given: usize, needed: usize) -> Result<(), ExecuteError> {
        if given == needed {
            return Ok(());
        }
        Err(ExecuteError::Length { name: name.into(), ty: self.ty(tensor), given, needed })
    }

    /// Whether states have other memory than when this was placed.
    pub(super) fn has_moved(&self) -> bool {
        self.moves.0.load(Relaxed) != self.moves.1
    }

    /// That all inputs were written, and states are where they were.
    pub(super) fn must_be_ready(&self) -> Result<(), ExecuteError> {
        if self.has_moved() {
            return Err(ExecuteError::Moved);
        }
        self.recover()?;
        match self.inputs.iter().find(|input| !input.written) {
            Some(input) => {
                let ty = self.ty(input.tensor);
                Err(ExecuteError::InputNotWritten { name: input.name.clone(), ty })
            }
            None => Ok(()),
        }
    }
}

/// Memory of a size; none for no bytes.
fn allocate(stream: &Stream, bytes: u64, what: &'static str) -> Result<Option<AnyBuffer>, ExecuteError> {
    if bytes == 0 {
        return Ok(None);
    }
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    let buffer = stream.alloc::<u8>(len);
    let buffer = buffer.map_err(|error| ExecuteError::Memory { what, bytes, error: Box::new(error) })?;
    Ok(Some(buffer.into_any()))
}

/// Bytes of memory as elements of a type.
fn range(memory: Option<&AnyBuffer>, offset: u64, bytes: u64, ty: Type) -> Result<AnyBuffer, RuntimeError> {
    let (start, end) = (offset as usize, offset.saturating_add(bytes) as usize);
    let memory = memory.ok_or(RuntimeError::Range { start, end, len: 0 })?;
    memory.cast(Type::U8)?.slice(start..end)?.cast(ty)
}
