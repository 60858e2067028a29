//! Modules that are loaded on a device: their kernels and variables.

use crate::check::UsedLoads;
use crate::decode::{Code, LoadError, ManagedVariable, Symbols, decode};
use crate::launch::Shape;
use crate::memory::{AllocationKind, GlobalMap};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpwright_ptx::ir::{self, FunctionDirective, FunctionKind, Origin, Param, Type};
use warpwright_ptx::verify::{FunctionInfo, ModuleInfo};

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelParam {
    /// Its name.
    pub name: String,
    /// Element type.
    pub ty: Type,
    /// Size in bytes.
    pub bytes: u32,
    /// Offset among the parameters, in bytes.
    pub offset: u32,
    /// Whether it is an array, such as a structure passed by value.
    pub is_array: bool,
    /// Whether it is declared as a pointer.
    pub is_pointer: bool,
    /// Declared alignment of the address that it points to, in bytes.
    pub pointee_align: Option<u32>,
}

/// A kernel of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<KernelParam>,
    /// Static shared memory, in bytes.
    pub static_shared: u64,
    /// The only block shape that it runs with (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// The blocks of a cluster along x, y and z, if it must be launched with clusters: `.reqnctapercluster`, or only
    /// `.explicitcluster`, which leaves their shape to the launch and counts as zeros.
    pub required_cluster: Option<[u32; 3]>,
    /// The maximum number of blocks of a cluster (`.maxclusterrank`).
    pub max_cluster: Option<u32>,
    /// Whether the grid of a launch counts clusters, and not blocks (`.blocksareclusters`).
    pub blocks_are_clusters: bool,
    /// The maximum number of threads of a block (`.maxntid`).
    pub max_threads: Option<u32>,
    /// The maximum number of 32-bit registers that are live at once, in the order of the text: what a compiler needs
    /// that neither moves nor spills anything, but at most those of `.maxnreg`. Functions that it calls are not counted.
    pub registers: u32,
    /// Its local variables and the arguments of its calls, in bytes of a thread's local memory.
    pub local_bytes: u64,
    /// Whether it contains `griddepcontrol.wait`, so that it may be a programmatic dependent launch.
    pub waits_for_grids: bool,
    /// Whether each thread does so before it lets dependent grids begin and before it ends.
    pub waits_first: bool,
    pub(crate) function: u32,
    /// Static shared variables, sorted: offset and size.
    pub(crate) shared_regions: Vec<(u64, u64)>,
    /// Their names, and at the end that of dynamic shared memory.
    pub(crate) shared_names: Arc<[String]>,
}

/// What a loaded module is.
pub(crate) struct Loaded {
    pub(crate) ir: ir::Module,
    /// The text that it was parsed from, once it has been given.
    pub(crate) text: OnceLock<Arc<str>>,
    pub(crate) code: Arc<Code>,
    pub(crate) kernels: HashMap<String, KernelInfo>,
    /// For each function of the code, its index among those of the module.
    pub(crate) functions: Vec<usize>,
    /// Global and constant variables: address and size.
    pub(crate) variables: HashMap<String, (u64, u64)>,
    /// Where dynamic shared memory begins.
    pub(crate) dynamic_shared: u64,
    /// Whether a function asks where the shared memory is that CUDA reserves.
    pub(crate) reserved_shared: bool,
    used_loads: Mutex<HashMap<KernelShape, Arc<UsedLoads>>>,
}

/// A kernel, by its index in the code, and the shape of its blocks.
type KernelShape = (u32, [u32; 3]);

/// Shapes of blocks for which what was found about loads is kept.
const KEPT_SHAPES: usize = 64;

impl Loaded {
    /// Loads a module; its variables get their memory from `memory`.
    pub(crate) fn new(
        module: &ir::Module,
        info: &ModuleInfo,
        memory: &mut GlobalMap,
        managed: &[ManagedVariable<'_>],
        heap: u64,
    ) -> Result<Self, LoadError> {
        let symbols = Symbols::place(module, memory, managed)?;
        if symbols.uses_heap() && memory.heap().is_none() {
            let room = memory.allocate(heap, AllocationKind::Heap, "heap");
            room.ok_or_else(|| {
                let message = format!(
                    "there is no room for the heap of `malloc`: it takes {heap} bytes, and {} are free",
                    memory.unused()
                );
                LoadError::new(Origin::Unknown, message)
            })?;
        }
        let mut code = decode(&symbols, info)?;
        crate::native::add_text(&mut code, module);
        let functions = module
            .functions()
            .enumerate()
            .filter(|(_, function)| function.body.is_some())
            .map(|(index, _)| index)
            .collect();
        let mut kernels = HashMap::new();
        let with_info: Vec<_> =
            module.functions().zip(&info.functions).filter(|(function, _)| function.body.is_some()).collect();
        for (number, (function, info)) in with_info.into_iter().enumerate() {
            if function.kind == FunctionKind::Entry {
                let kernel = kernel_info(function, info, number as u32, &symbols, &code);
                kernels.insert(kernel.name.clone(), kernel);
            }
        }
        Ok(Loaded {
            ir: module.clone(),
            text: OnceLock::new(),
            reserved_shared: code.functions.iter().any(|function| function.reserved_shared),
            code: Arc::new(code),
            kernels,
            functions,
            variables: symbols.global.iter().map(|(&name, &place)| (name.to_owned(), place)).collect(),
            dynamic_shared: symbols.dynamic_shared(),
            used_loads: Mutex::default(),
        })
    }

    /// The loads of a kernel whose values only some threads of a block use.
    pub(crate) fn used_loads(&self, kernel: u32, shape: &Shape) -> Arc<UsedLoads> {
        let mut known = self.used_loads.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_SHAPES && !known.contains_key(&(kernel, shape.block)) {
            known.clear();
        }
        let find = || {
            let function = self.ir.functions().nth(self.functions[kernel as usize]);
            Arc::new(function.map(|function| UsedLoads::new(&self.ir, function, shape)).unwrap_or_default())
        };
        known.entry((kernel, shape.block)).or_insert_with(find).clone()
    }
}

fn kernel_info(
    function: &ir::Function,
    verified: &FunctionInfo,
    number: u32,
    symbols: &Symbols<'_>,
    code: &Code,
) -> KernelInfo {
    let frame = &code.functions[number as usize];
    let mut offset = 0u32;
    let params = function
        .params
        .iter()
        .filter_map(|param| match param {
            Param::Variable(id) => Some(function.variable(*id)),
            Param::Register(_) => None,
        })
        .map(|variable| {
            let bytes = variable.bytes().unwrap_or(0) as u32;
            offset = offset.next_multiple_of(variable.alignment().max(1));
            let param = KernelParam {
                name: variable.name.to_string(),
                ty: variable.ty,
                bytes,
                offset,
                is_array: !variable.dims.is_empty(),
                is_pointer: variable.pointee.is_some(),
                pointee_align: variable.pointee.and_then(|pointee| pointee.align),
            };
            offset += bytes;
            param
        })
        .collect();
    let shared = symbols.shared_of(number);
    let names = shared.names().iter().copied().chain([symbols.dynamic_name()]);
    let mut info = KernelInfo {
        name: function.name.to_string(),
        params,
        static_shared: verified.static_shared,
        required_block: None,
        required_cluster: None,
        max_cluster: None,
        blocks_are_clusters: false,
        max_threads: None,
        registers: frame.registers,
        local_bytes: frame.local_regions.iter().map(|(_, bytes)| bytes).sum(),
        waits_for_grids: verified.waits_for_grids,
        waits_first: verified.waits_first,
        function: number,
        shared_regions: shared.regions().to_vec(),
        shared_names: names.map(str::to_owned).collect(),
    };
    for directive in &function.directives {
        let dims = |list: &[u32]| std::array::from_fn(|axis| list.get(axis).copied().unwrap_or(1));
        match directive {
            FunctionDirective::MaxNReg(max) => info.registers = info.registers.min(*max),
            FunctionDirective::ReqNtid(list) => info.required_block = Some(dims(list)),
            FunctionDirective::ReqNCtaPerCluster(list) => info.required_cluster = Some(dims(list)),
            FunctionDirective::ExplicitCluster => {
                info.required_cluster.get_or_insert([0; 3]);
            }
            FunctionDirective::MaxClusterRank(max) => info.max_cluster = Some(*max),
            FunctionDirective::BlocksAreClusters => info.blocks_are_clusters = true,
            FunctionDirective::MaxNtid(list) => {
                info.max_threads = Some(list.iter().fold(1, |product: u32, &n| product.saturating_mul(n)));
            }
            _ => {}
        }
    }
    info
}
