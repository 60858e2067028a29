//! Addresses of a module's symbols: variables, functions, and the frames of functions.

use super::LoadError;
use crate::memory::{Allocation, AllocationKind, FUNCTION_WINDOW, GlobalMap, SHARED_WINDOW};
use std::collections::HashMap;
use std::sync::Arc;
use warpwright_ptx::ir::*;

/// Room between variables of shared and local memory that belongs to none, so that a step too far is seen.
const GAP: u64 = 16;

/// Most shared memory that the variables take which a kernel could reach. Those of functions count that it
/// does not call, so that it is more than a block can have.
const MAX_SHARED: u64 = 64 << 20;

/// Bytes between the addresses of functions.
const FUNCTION_STEP: u64 = 16;

/// What the device runtime provides to kernels, without a definition in the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
}

impl Builtin {
    fn named(name: &str) -> Option<Builtin> {
        Some(match name {
            "vprintf" => Builtin::Vprintf,
            "__assertfail" => Builtin::AssertFail,
            "malloc" => Builtin::Malloc,
            "free" => Builtin::Free,
            _ => return None,
        })
    }
}

/// The place that the host has given a managed variable of a module: memory of the host that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedVariable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it is mapped.
    pub address: u64,
    /// Whether it has its value, as where a module is loaded on another device before: otherwise it gets its initial
    /// one.
    pub is_initialized: bool,
}

/// The managed variables that a module has or declares (`.attribute(.managed)`), with their sizes in bytes.
pub fn managed_variables(module: &Module) -> Vec<(&str, u64)> {
    let index = ModuleIndex::new(module);
    let mut all: Vec<(&str, u64)> = Vec::new();
    let managed = module.globals().map(|variable| definition(&index, variable));
    for variable in managed.filter(|variable| variable.is_managed()) {
        let bytes = size_of(variable);
        if bytes > 0 && all.iter().all(|(name, _)| *name != &*variable.name) {
            all.push((&variable.name, bytes));
        }
    }
    all
}

/// What defines a variable: itself, unless it is only declared.
fn definition<'m>(index: &ModuleIndex<'m>, variable: &'m Variable) -> &'m Variable {
    match index.get(&variable.name) {
        Some(GlobalSymbol::Variable(definition)) => definition,
        _ => variable,
    }
}

/// The size of a variable, which may be that of its initial value.
fn size_of(variable: &Variable) -> u64 {
    variable.bytes().or_else(|| initial_bytes(variable)).unwrap_or(0)
}

/// Whether the device has a function of that name, which a module declares and need not define.
pub fn is_provided(name: &str) -> bool {
    Builtin::named(name).is_some()
}

/// What a function's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callable {
    /// A definition, by its index in the code.
    Defined(u32),
    Builtin(Builtin),
    /// Declared, defined nowhere.
    Missing,
}

/// A variable of shared or of a frame's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Lays variables out one behind the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) end: u64,
    pub(crate) regions: Vec<(u64, u64)>,
    gap: u64,
}

impl Layout {
    pub(crate) fn with_gaps() -> Self {
        Layout { gap: GAP, ..Layout::default() }
    }

    pub(crate) fn place(&mut self, bytes: u64, align: u32) -> u64 {
        // Saturating: whatever a module declares, its end says how much that is.
        let offset = self.end.checked_next_multiple_of(align.max(4).into()).unwrap_or(u64::MAX);
        self.regions.push((offset, bytes));
        self.end = offset.saturating_add(bytes).saturating_add(3 + self.gap) & !3;
        offset
    }
}

/// Shared variables, one behind the other, with their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLayout<'m> {
    layout: Layout,
    names: Vec<&'m str>,
}

impl<'m> SharedLayout<'m> {
    fn place(&mut self, variable: &'m Variable) -> Placed {
        let bytes = variable.bytes().unwrap_or(0);
        self.names.push(&variable.name);
        Placed { offset: self.layout.place(bytes, variable.alignment()), bytes }
    }

    /// Offsets and sizes of the variables.
    pub(crate) fn regions(&self) -> &[(u64, u64)] {
        &self.layout.regions
    }

    /// Their names, in the same order.
    pub(crate) fn names(&self) -> &[&'m str] {
        &self.names
    }
}

/// The symbols of a module, placed.
pub(crate) struct Symbols<'m> {
    pub(crate) index: ModuleIndex<'m>,
    /// Functions with a body, in order.
    pub(crate) defined: Vec<&'m Function>,
    functions: HashMap<&'m str, Callable>,
    /// Global and constant variables: their address.
    pub(crate) global: HashMap<&'m str, (u64, u64)>,
    /// Shared variables of module scope: offset in shared memory.
    shared: HashMap<&'m str, Placed>,
    /// Shared variables of functions.
    local_shared: HashMap<(u32, u32), Placed>,
    /// The static shared memory that kernels have in common: of the module, and of functions.
    common_shared: SharedLayout<'m>,
    /// That of each kernel, behind what they have in common.
    kernel_shared: HashMap<u32, SharedLayout<'m>>,
    /// `.extern .shared` arrays: they begin where the dynamic shared memory does.
    dynamic: Vec<&'m str>,
    /// What the place where they begin is a multiple of.
    dynamic_align: u64,
}

impl<'m> Symbols<'m> {
    /// Places the symbols of a module; its global variables are allocated and initialised in `memory`, but for managed
    /// ones that have a place.
    pub(crate) fn place(
        module: &'m Module,
        memory: &mut GlobalMap,
        managed: &[ManagedVariable<'_>],
    ) -> Result<Self, LoadError> {
        let index = ModuleIndex::new(module);
        let defined: Vec<&Function> = module.functions().filter(|function| function.body.is_some()).collect();
        let mut symbols = Symbols {
            functions: HashMap::new(),
            defined,
            index,
            global: HashMap::new(),
            shared: HashMap::new(),
            local_shared: HashMap::new(),
            common_shared: SharedLayout { layout: Layout::with_gaps(), names: Vec::new() },
            kernel_shared: HashMap::new(),
            dynamic: Vec::new(),
            dynamic_align: 128,
        };
        symbols.name_functions(module);
        let mut initialised = Vec::new();
        for variable in module.globals() {
            symbols.place_global(variable, memory, managed, &mut initialised)?;
        }
        // What all kernels may use comes first.
        for entries in [false, true] {
            for number in 0..symbols.defined.len() {
                if (symbols.defined[number].kind == FunctionKind::Entry) == entries {
                    symbols.place_locals(number as u32, memory, &mut initialised)?;
                }
            }
        }
        let shared = symbols.shared_end();
        if shared > MAX_SHARED {
            let message = format!(
                "the shared variables of a kernel take {shared} bytes: a block has room for {MAX_SHARED}"
            );
            return Err(LoadError::new(Origin::Unknown, message));
        }
        for (allocation, variable) in initialised {
            symbols.initialise(&allocation, variable)?;
        }
        Ok(symbols)
    }

    /// Whether the module may ask for memory.
    pub(crate) fn uses_heap(&self) -> bool {
        self.functions.values().any(|function| *function == Callable::Builtin(Builtin::Malloc))
    }

    fn name_functions(&mut self, module: &'m Module) {
        for function in module.functions().filter(|function| function.body.is_none()) {
            let builtin = Builtin::named(&function.name).map(Callable::Builtin);
            self.functions.insert(&function.name, builtin.unwrap_or(Callable::Missing));
        }
        for (number, function) in self.defined.iter().enumerate() {
            self.functions.insert(&function.name, Callable::Defined(number as u32));
        }
        for item in &module.items {
            if let ItemKind::Alias { name, target } = &item.kind
                && let Some(&function) = self.functions.get(&**target)
            {
                self.functions.insert(name, function);
            }
        }
    }

    fn place_global(
        &mut self,
        variable: &'m Variable,
        memory: &mut GlobalMap,
        managed: &[ManagedVariable<'_>],
        initialised: &mut Vec<(Arc<Allocation>, &'m Variable)>,
    ) -> Result<(), LoadError> {
        let name: &'m str = &variable.name;
        match variable.space.base() {
            Space::Shared => match variable.bytes() {
                Some(_) if variable.linkage != Linkage::Extern => {
                    let place = self.common_shared.place(variable);
                    self.shared.entry(name).or_insert(place);
                }
                _ => {
                    self.dynamic_align = self.dynamic_align.max(variable.alignment().into());
                    self.dynamic.push(name);
                }
            },
            Space::Global | Space::Const | Space::Tex => {
                // A declaration beside its definition, or one that nothing defines: it gets memory too.
                if self.global.contains_key(name) {
                    return Ok(());
                }
                let definition = definition(&self.index, variable);
                let bytes = size_of(definition);
                let placed = managed.iter().find(|placed| placed.name == name && definition.is_managed());
                let allocation = match placed {
                    Some(placed) => mapped(variable, placed.address, bytes, memory)?,
                    None => allocate(variable, bytes, memory)?,
                };
                self.global.insert(name, (allocation.base, bytes));
                if placed.is_none_or(|placed| !placed.is_initialized) {
                    initialised.push((allocation, definition));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Shared, global and constant variables that functions declare.
    fn place_locals(
        &mut self,
        number: u32,
        memory: &mut GlobalMap,
        initialised: &mut Vec<(Arc<Allocation>, &'m Variable)>,
    ) -> Result<(), LoadError> {
        let function = self.defined[number as usize];
        let mut own = (function.kind == FunctionKind::Entry).then(|| self.common_shared.clone());
        for (id, variable) in function.variables.iter().enumerate() {
            let bytes = variable.bytes().unwrap_or(0);
            let place = match variable.space.base() {
                Space::Shared => own.as_mut().unwrap_or(&mut self.common_shared).place(variable),
                Space::Global | Space::Const | Space::Tex => {
                    let allocation = allocate(variable, bytes, memory)?;
                    let offset = allocation.base;
                    initialised.push((allocation, variable));
                    Placed { offset, bytes }
                }
                _ => continue,
            };
            self.local_shared.insert((number, id as u32), place);
        }
        if let Some(own) = own {
            self.kernel_shared.insert(number, own);
        }
        Ok(())
    }

    /// The static shared memory of a kernel.
    pub(crate) fn shared_of(&self, kernel: u32) -> &SharedLayout<'m> {
        self.kernel_shared.get(&kernel).unwrap_or(&self.common_shared)
    }

    /// What to call dynamic shared memory.
    pub(crate) fn dynamic_name(&self) -> &'m str {
        self.dynamic.first().copied().unwrap_or("dynamic shared memory")
    }

    /// Where dynamic shared memory begins: for all kernels at one place, since functions that they call
    /// may use it.
    pub(crate) fn dynamic_shared(&self) -> u64 {
        self.shared_end().next_multiple_of(self.dynamic_align)
    }

    /// Where the static shared memory of the kernel ends that has the most.
    fn shared_end(&self) -> u64 {
        let ends = self.kernel_shared.values().map(|shared| shared.layout.end);
        ends.max().unwrap_or(self.common_shared.layout.end)
    }

    /// What a function's name stands for.
    pub(crate) fn function(&self, name: &str) -> Option<Callable> {
        self.functions.get(name).copied()
    }

    /// The address of a variable or function of module scope, in its own space; whether it is in shared
    /// memory.
    pub(crate) fn address(&self, name: &str) -> Option<(u64, Space)> {
        if let Some(&(address, _)) = self.global.get(name) {
            return Some((address, Space::Global));
        }
        if let Some(place) = self.shared.get(name) {
            return Some((place.offset, Space::Shared));
        }
        if self.dynamic.contains(&name) {
            return Some((self.dynamic_shared(), Space::Shared));
        }
        match self.function(name)? {
            Callable::Defined(number) => {
                Some((FUNCTION_WINDOW + FUNCTION_STEP * (u64::from(number) + 1), Space::Global))
            }
            _ => None,
        }
    }

    /// The address of a shared, global or constant variable that a function declares.
    pub(crate) fn local_address(&self, function: u32, id: VarId) -> Option<u64> {
        self.local_shared.get(&(function, id.0)).map(|place| place.offset)
    }

    fn initialise(&self, allocation: &Allocation, variable: &Variable) -> Result<(), LoadError> {
        let Some(init) = &variable.init else { return Ok(()) };
        let vector = variable.vector.map_or(1, VectorWidth::elements) as u64;
        let element = u64::from(variable.ty.bytes());
        // Sizes of what each level of braces holds, outermost first.
        let mut sizes = vec![element * vector; variable.dims.len() + 1];
        for level in (0..variable.dims.len()).rev() {
            let count = match variable.dims[level] {
                Some(count) => count,
                None => allocation.bytes / sizes[level + 1].max(1),
            };
            sizes[level] = sizes[level + 1].saturating_mul(count);
        }
        if vector > 1 {
            sizes.push(element);
        }
        self.initial(init, variable, &sizes, allocation, 0)?;
        Ok(())
    }

    /// Writes an initial value from the byte `at` on, with the sizes of what each further level of braces
    /// holds. Where the next value goes.
    fn initial(
        &self,
        init: &Init,
        variable: &Variable,
        sizes: &[u64],
        allocation: &Allocation,
        at: u64,
    ) -> Result<u64, LoadError> {
        let width = u64::from(variable.ty.bytes());
        // What is behind the end is left out.
        let write = |value: u64| {
            let end = at.saturating_add(width);
            if end <= allocation.bytes {
                allocation.write(at, &value.to_le_bytes()[..width.min(8) as usize]);
            }
            end
        };
        let next = match init {
            Init::Value(imm) => write(super::operand::immediate(*imm, variable.ty)),
            Init::Symbol(symbol) => {
                let (address, space) = self.address(&symbol.name).ok_or_else(|| {
                    LoadError::new(variable.origin, format!("`{}` is defined nowhere", symbol.name))
                })?;
                let window = if symbol.generic && space == Space::Shared { SHARED_WINDOW } else { 0 };
                let address = (window + address).wrapping_add(symbol.offset as u64);
                let address = match symbol.mask {
                    Some(mask) if mask != 0 => (address & mask) >> mask.trailing_zeros(),
                    _ => address,
                };
                write(address)
            }
            Init::List(list) => {
                let inner = sizes.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(sizes);
                let mut next = at;
                for value in list {
                    next = self.initial(value, variable, inner, allocation, next)?;
                }
                next.max(at.saturating_add(sizes.first().copied().unwrap_or(0)))
            }
            Init::Properties(_) => at,
        };
        Ok(next)
    }
}

/// Memory for a global or constant variable.
fn allocate(variable: &Variable, bytes: u64, memory: &mut GlobalMap) -> Result<Arc<Allocation>, LoadError> {
    let kind = match variable.space.base() {
        Space::Const => AllocationKind::Constant,
        _ => AllocationKind::Variable,
    };
    memory.allocate(bytes, kind, &*variable.name).ok_or_else(|| {
        let (name, free) = (&variable.name, memory.unused());
        let message = format!("there is no room for `{name}`: it takes {bytes} bytes, and {free} are free");
        LoadError::new(variable.origin, message)
    })
}

/// The memory that the host has mapped for a variable.
fn mapped(
    variable: &Variable,
    address: u64,
    bytes: u64,
    memory: &GlobalMap,
) -> Result<Arc<Allocation>, LoadError> {
    let found = memory.lookup(address).and_then(|found| memory.get(found.id));
    let is_its = |found: &&Arc<Allocation>| !found.freed && found.base == address && found.bytes == bytes;
    found.filter(is_its).cloned().ok_or_else(|| {
        let message =
            format!("`{}` is to be at {address:#x}, where {bytes} bytes are not mapped", variable.name);
        LoadError::new(variable.origin, message)
    })
}

/// The size of an array whose outermost dimension its initial value tells.
fn initial_bytes(variable: &Variable) -> Option<u64> {
    let Some(Init::List(list)) = &variable.init else { return None };
    let element = u64::from(variable.ty.bytes()) * variable.vector.map_or(1, |v| v.elements() as u64);
    let inner = variable.dims.iter().skip(1).try_fold(element, |size, dim| size.checked_mul((*dim)?))?;
    inner.checked_mul(list.len() as u64)
}

/// The function whose address that is.
pub(crate) fn function_at(address: u64, count: usize) -> Option<u32> {
    let offset = address.checked_sub(FUNCTION_WINDOW)?;
    let number = (offset / FUNCTION_STEP).checked_sub(1)?;
    (offset % FUNCTION_STEP == 0 && (number as usize) < count).then_some(number as u32)
}
