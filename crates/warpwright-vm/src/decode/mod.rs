//! Decoding: from the IR of a verified module to code that runs.
//!
//! A register becomes a row ([`slots`]), an operand always a row ([`operand`]), a symbol an address ([`symbols`]), a
//! label the position of an instruction. Each family of instructions has a function in [`op`](crate::op) that emits
//! the code for it, usually one [`Inst`], sometimes a few. The decoder puts a *reconvergence point* at the immediate
//! post-dominator of each branch that may divide a warp.

mod assigned;
mod cas_loop;
mod code;
mod in_flight;
mod loops;
mod operand;
mod slots;
mod symbols;

pub use code::Unsupported;
pub(crate) use code::{Code, FunctionCode, Meta, NO_STATEMENT, ParamSlot};
pub(crate) use loops::Deciding;
pub(crate) use operand::{SymbolValue, immediate};
pub(crate) use slots::File;
pub(crate) use symbols::{Builtin, Callable, Symbols, function_at};
pub use symbols::{ManagedVariable, is_provided, managed_variables};

use crate::launch::TrapKind;
use crate::machine::{Inst, MAX_LOCAL, NONE, Step, UNGUARDED};
use crate::native::Operation;
use crate::simd::{Handler, Lanes, Level};
use operand::Temporaries;
use slots::Slots;
use std::collections::{HashMap, HashSet};
use std::fmt;
use symbols::Layout;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::control::{Call, Way};
use warpwright_ptx::verify::{BlockId, Cfg, ModuleInfo};

/// The reason why a module cannot be loaded.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// The location in the module.
    pub origin: Origin,
    message: String,
}

impl LoadError {
    pub(crate) fn new(origin: Origin, message: impl Into<String>) -> Self {
        LoadError { origin, message: message.into() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// The rows and constants of an instruction that is emitted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) d: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    pub(crate) x: u32,
    pub(crate) imm: u64,
}

/// A branch whose target is not known yet.
struct Fixup {
    inst: u32,
    target: BranchTarget,
    reconvergence: BranchTarget,
}

/// Where a branch leads, or where its lanes reconverge.
#[derive(Clone, Copy)]
pub(crate) enum BranchTarget {
    Block(BlockId),
    /// The end of the function.
    Exit,
    /// Nowhere.
    Nowhere,
}

/// Decodes the functions of a module, one at a time.
pub(crate) struct Decoder<'m, 'c> {
    pub(crate) symbols: &'c Symbols<'m>,
    pub(crate) function: &'m Function,
    pub(crate) function_number: u32,
    pub(crate) cfg: &'c Cfg,
    pub(crate) code: &'c mut Code,
    pub(crate) level: Level,
    slots: Slots,
    frame: FunctionCode,
    /// Offsets of variables in the frame, or among the parameters of the kernel.
    variables: Vec<u64>,
    constants32: HashMap<u32, u32>,
    constants64: HashMap<u64, u32>,
    specials: HashMap<Special, u32>,
    shared32: HashMap<u32, u32>,
    shared64: HashMap<u64, u32>,
    false_row: Option<u32>,
    carry_row: Option<u32>,
    temporaries32: Temporaries,
    temporaries64: Temporaries,
    temporaries_predicate: Temporaries,
    guard: u32,
    statement: u32,
    origin: Origin,
    /// What the next instruction counts as.
    opcode: Option<u16>,
    /// The places of opcodes in [`Code::opcodes`].
    opcodes: HashMap<&'static str, u16>,
    fixups: Vec<Fixup>,
    table_fixups: Vec<(usize, Vec<BlockId>)>,
    reconvergence_points: Vec<BlockId>,
    labels: HashMap<LabelId, BlockId>,
    /// For registers that may be read before they are written, the predicate row that tells for which lanes
    /// they have been written.
    assigned: HashMap<Reg, u32>,
    /// See [`cas_loop`].
    proposing_loads: HashSet<u32>,
}

/// A function before its body is decoded: what its callers must know.
struct Prepared {
    slots: Slots,
    frame: FunctionCode,
    variables: Vec<u64>,
}

/// Decodes a module whose symbols have their places.
pub(crate) fn decode(symbols: &Symbols<'_>, info: &ModuleInfo) -> Result<Code, LoadError> {
    let mut code = Code::default();
    let cfgs: Vec<&Cfg> = symbols
        .index
        .module
        .functions()
        .zip(&info.functions)
        .filter(|(function, _)| function.body.is_some())
        .map(|(_, info)| &info.cfg)
        .collect();
    let variadic = variadic_bytes(symbols.index.module);
    let prepare = |(function, cfg): (&&Function, &&Cfg)| prepare(function, cfg, variadic);
    let prepared: Vec<Prepared> = symbols.defined.iter().zip(&cfgs).map(prepare).collect::<Result<_, _>>()?;
    code.functions = prepared
        .iter()
        .map(|p| FunctionCode {
            params: p.frame.params.clone(),
            returns: p.frame.returns.clone(),
            ..Default::default()
        })
        .collect();
    for (number, (prepared, cfg)) in prepared.into_iter().zip(cfgs).enumerate() {
        let opcodes = (0..).zip(&code.opcodes).map(|(at, &name)| (name, at)).collect();
        let mut decoder = Decoder {
            symbols,
            function: symbols.defined[number],
            function_number: number as u32,
            cfg,
            code: &mut code,
            level: Level::detect(),
            frame: prepared.frame,
            slots: prepared.slots,
            variables: prepared.variables,
            constants32: HashMap::new(),
            specials: HashMap::new(),
            constants64: HashMap::new(),
            shared32: HashMap::new(),
            shared64: HashMap::new(),
            false_row: None,
            carry_row: None,
            temporaries32: Temporaries::default(),
            temporaries64: Temporaries::default(),
            temporaries_predicate: Temporaries::default(),
            guard: UNGUARDED,
            statement: NO_STATEMENT,
            origin: Origin::Unknown,
            opcode: None,
            opcodes,
            fixups: Vec::new(),
            table_fixups: Vec::new(),
            reconvergence_points: Vec::new(),
            labels: labels(symbols.defined[number], cfg),
            assigned: HashMap::new(),
            proposing_loads: cas_loop::proposing_loads(symbols.defined[number]),
        };
        decoder.body()?;
        let (frame, slots) = (decoder.frame, decoder.slots);
        code.functions[number] = FunctionCode { slots, ..frame };
    }
    Ok(code)
}

/// The blocks that labels begin.
fn labels(function: &Function, cfg: &Cfg) -> HashMap<LabelId, BlockId> {
    let statements = function.statements().iter().enumerate();
    statements
        .filter_map(|(at, statement)| match statement.kind {
            StatementKind::Label(label) => Some((label, cfg.block_of(at))),
            _ => None,
        })
        .collect()
}

/// The largest last argument of any call of a module: room for what is passed to parameters without a
/// size, as functions of a variable number of arguments have.
fn variadic_bytes(module: &Module) -> u64 {
    let last = |function: &Function, call: &Call| {
        let Some(Src::Symbol(address)) = call.arguments.last() else { return None };
        match address.symbol {
            Symbol::Local(id) => function.variable(id).bytes(),
            Symbol::Global(_) => None,
        }
    };
    let calls = |function: &Function| {
        let each = function.instructions().filter_map(|instruction| match &instruction.op {
            Op::Call(call) => last(function, call),
            _ => None,
        });
        each.max().unwrap_or(0)
    };
    module.functions().map(calls).max().unwrap_or(0)
}

/// Rows, and the layout of a function's memory. A parameter without a size gets `variadic` bytes.
fn prepare(function: &Function, cfg: &Cfg, variadic: u64) -> Result<Prepared, LoadError> {
    let bytes_of = |id: VarId| {
        let variable = function.variable(id);
        let variadic = if function.params.contains(&Param::Variable(id)) { variadic } else { 0 };
        variable.bytes().filter(|&bytes| bytes != 0).unwrap_or(variadic)
    };
    let params: Vec<Reg> = function.passed_registers(&function.params).collect();
    let returns: Vec<Reg> = function.passed_registers(&function.returns).collect();
    let slots = slots::allocate(function, cfg, &params, &returns);
    let mut variables = vec![0; function.variables.len()];
    let kernel = function.kind == FunctionKind::Entry;
    let mut parameters = 0;
    let mut layout = Layout::with_gaps();
    let mut local_variables = Vec::new();
    for (id, variable) in function.variables.iter().enumerate() {
        let bytes = bytes_of(VarId(id as u32));
        let is_param = function.params.contains(&Param::Variable(VarId(id as u32)));
        if kernel && is_param {
            parameters = u64::next_multiple_of(parameters, u64::from(variable.alignment()));
            variables[id] = parameters;
            parameters += bytes;
        } else if matches!(variable.space.base(), Space::Local | Space::Param) {
            variables[id] = layout.place(bytes, variable.alignment());
            local_variables.push(VarId(id as u32));
        }
    }
    if layout.end > MAX_LOCAL {
        let message = format!(
            "the variables of `{}` take {} bytes of local memory: a thread has {MAX_LOCAL}",
            function.name, layout.end
        );
        return Err(LoadError::new(function.origin, message));
    }
    let in_memory =
        |id: VarId| ParamSlot::Memory { offset: variables[id.0 as usize] as u32, bytes: bytes_of(id) as u32 };
    let in_register = |reg: Reg| ParamSlot::register(slots.rows[reg.0 as usize]);
    let passed = |params: &[Param]| -> Vec<ParamSlot> {
        let slots = params.iter().map(|param| match *param {
            Param::Variable(id) => vec![in_memory(id)],
            Param::Register(first) => function.elements(first).map(in_register).collect(),
        });
        slots.flatten().collect()
    };
    let params = if kernel { Vec::new() } else { passed(&function.params) };
    let returns = passed(&function.returns);
    let mut frame = FunctionCode {
        name: function.name.to_string(),
        rows: slots.count,
        registers: slots.count.w32 + 2 * slots.count.w64,
        local_bytes: layout.end as u32,
        local_regions: layout.regions,
        local_variables,
        statements: function.statements().len() as u32,
        params,
        returns,
        ..FunctionCode::default()
    };
    for reg in &slots.unassigned {
        match slots.rows[reg.0 as usize] {
            (File::Narrow, row) => frame.unassigned32.push(row),
            (File::Wide, row) => frame.unassigned64.push(row),
            (File::Double, row) => frame.unassigned64.extend([row, row + 1]),
            (File::Predicate, row) => frame.unassigned_predicates.push(row),
        }
    }
    Ok(Prepared { slots, frame, variables })
}

impl Decoder<'_, '_> {
    /// Whether the present instruction is a load whose value a compare-and-swap checks.
    pub(crate) fn is_proposing_load(&self) -> bool {
        self.proposing_loads.contains(&self.statement)
    }

    /// Which bytes of its data the present load uses, by the last `.pragma "used_bytes_mask …"` in front of it.
    pub(crate) fn used_bytes_mask(&self) -> u32 {
        let before = &self.function.statements()[..self.statement as usize];
        let pragmas = before.iter().rev().map_while(|statement| match &statement.kind {
            StatementKind::Pragma(strings) => Some(&strings[..]),
            StatementKind::Loc(_) => Some(&[]),
            _ => None,
        });
        let mask = |text: &String| {
            let mask = text.trim().strip_prefix("used_bytes_mask")?.trim();
            match mask.strip_prefix("0x").or(mask.strip_prefix("0X")) {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => mask.parse().ok(),
            }
        };
        pragmas.flat_map(|strings| strings.iter().rev().filter_map(mask)).next().unwrap_or(u32::MAX)
    }

    /// Whether what the present instruction writes to a register may be read.
    pub(crate) fn is_used_later(&self, reg: Reg) -> bool {
        *self.slots.live(reg).end() > self.statement
    }

    fn body(&mut self) -> Result<(), LoadError> {
        let function = self.function;
        let parents = self.cfg.post_dominators();
        self.reconvergence_points = self.reconvergence_points(&parents);
        self.track_assignments();
        self.frame.entry = self.code.insts.len() as u32;
        let early_uses = in_flight::early_uses(function, self.cfg);
        let mut starts = Vec::with_capacity(self.cfg.blocks().len());
        for (number, block) in self.cfg.blocks().iter().enumerate() {
            let id = BlockId(number as u32);
            starts.push(self.code.insts.len() as u32);
            self.statement = NO_STATEMENT;
            self.guard = UNGUARDED;
            self.opcode = None;
            if self.reconvergence_points.binary_search(&id).is_ok() {
                crate::op::control::reconvergence_point(self);
            }
            let reconvergence = match parents.parent(id) {
                Some(parent) if parent != self.cfg.exit() => BranchTarget::Block(parent),
                _ if function.kind == FunctionKind::Func => BranchTarget::Exit,
                _ => BranchTarget::Nowhere,
            };
            for at in block.statements() {
                let statement = &function.statements()[at];
                let StatementKind::Instruction(instruction) = &statement.kind else { continue };
                self.statement = at as u32;
                self.origin = statement.origin;
                self.temporaries32.reset();
                self.temporaries64.reset();
                self.temporaries_predicate.reset();
                self.opcode = Some(self.opcode(instruction.op.name()));
                self.guard = match instruction.guard {
                    None => UNGUARDED,
                    Some(guard) => self.row(guard.reg) << 1 | u32::from(guard.negated),
                };
                let touched = self.tracked(instruction);
                touched.reads.iter().for_each(|&reg| self.emit_assignment_check(reg));
                if let Some(&early) = early_uses.get(&self.statement) {
                    self.emit_early_use(early);
                }
                if crate::fidelity::may_be_assumed(&instruction.op) {
                    self.code.assumed.push(self.code.insts.len() as u32);
                }
                crate::op::decode(&instruction.op, self, reconvergence)?;
                touched.writes.iter().for_each(|&reg| self.emit_assignment(reg));
            }
        }
        self.statement = NO_STATEMENT;
        self.guard = UNGUARDED;
        self.frame.exit = self.code.insts.len() as u32;
        crate::op::control::end(self);
        if function.kind == FunctionKind::Entry {
            self.frame.loops = loops::loops(function, self.cfg, &self.slots, &starts, self.frame.exit);
        }
        self.resolve(&starts);
        Ok(())
    }

    /// The blocks at which the paths of a branch that may divide a warp reconverge.
    fn reconvergence_points(&self, parents: &warpwright_ptx::verify::cfg::DominatorTree) -> Vec<BlockId> {
        let divides = |block: &warpwright_ptx::verify::cfg::Block| {
            block.terminator.is_some_and(|at| match &self.function.statements()[at as usize].kind {
                StatementKind::Instruction(instruction) => match instruction.op.way() {
                    Way::Table(_) => true,
                    Way::To(_) | Way::Call(_) | Way::Away | Way::Next => instruction.guard.is_some(),
                },
                _ => false,
            })
        };
        let mut points: Vec<BlockId> = (0..self.cfg.blocks().len() as u32)
            .map(BlockId)
            .filter(|&id| divides(self.cfg.block(id)))
            .filter_map(|id| parents.parent(id))
            .filter(|&id| id != self.cfg.exit())
            .collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    fn resolve(&mut self, starts: &[u32]) {
        let exit = self.frame.exit;
        let place = |target| match target {
            BranchTarget::Block(id) => starts.get(id.index()).copied().unwrap_or(exit),
            BranchTarget::Exit => exit,
            BranchTarget::Nowhere => NONE,
        };
        for fixup in self.fixups.drain(..) {
            let inst = &mut self.code.insts[fixup.inst as usize];
            inst.x = place(fixup.target);
            inst.c = place(fixup.reconvergence);
        }
        for (table, targets) in self.table_fixups.drain(..) {
            self.code.tables[table] = targets.into_iter().map(|id| place(BranchTarget::Block(id))).collect();
        }
    }

    /// The place of an opcode among those that are counted.
    fn opcode(&mut self, name: &'static str) -> u16 {
        let opcodes = &mut self.code.opcodes;
        *self.opcodes.entry(name).or_insert_with(|| {
            opcodes.push(name);
            opcodes.len() as u16 - 1
        })
    }

    /// Emits an instruction.
    pub(crate) fn emit(&mut self, lanes: Lanes, rows: Rows) {
        self.emit_handler(lanes.at(self.level), rows);
        if let Some(operation) = lanes.native {
            self.is_native(operation);
        }
    }

    /// Emits an instruction that the compiler of native code knows.
    pub(crate) fn emit_native(&mut self, run: Handler, operation: Operation, rows: Rows) {
        self.emit_handler(run, rows);
        self.is_native(operation);
    }

    /// What the last instruction is for the compiler of native code.
    pub(crate) fn is_native(&mut self, operation: Operation) {
        self.code.operations.push((self.code.insts.len() as u32 - 1, operation));
    }

    /// Emits an instruction with a handler that is the same at every level.
    pub(crate) fn emit_handler(&mut self, run: Handler, rows: Rows) {
        let Rows { d, a, b, c, x, imm } = rows;
        self.code.insts.push(Inst { run, guard: self.guard, d, a, b, c, x, imm });
        self.code.meta.push(Meta {
            function: self.function_number,
            statement: self.statement,
            origin: self.origin,
            opcode: self.opcode.take(),
        });
    }

    /// Emits an instruction that carries what it needs.
    pub(crate) fn emit_boxed(
        &mut self,
        run: impl for<'a> Fn(&mut crate::machine::Machine<'a>, &Inst) -> Step + Send + Sync + 'static,
    ) {
        self.emit_carrying(Rows::default(), run);
    }

    /// As [`Self::emit_boxed`], for what goes on to the next instruction unless it fails or waits.
    pub(crate) fn emit_fallible(
        &mut self,
        run: impl for<'a> Fn(&mut crate::machine::Machine<'a>) -> Result<(), Step> + Send + Sync + 'static,
    ) {
        self.emit_boxed(move |m, _| run(m).err().unwrap_or(Step::Next));
    }

    /// Emits what has no effect.
    pub(crate) fn emit_nothing(&mut self) {
        self.emit_native(|_, _| Step::Next, Operation::Nothing, Rows::default());
    }

    /// Emits a branch: its `x` will be the target's place, its `c` that of the reconvergence point.
    pub(crate) fn emit_branch(&mut self, run: Handler, target: BranchTarget, reconvergence: BranchTarget) {
        let inst = self.code.insts.len() as u32;
        self.fixups.push(Fixup { inst, target, reconvergence });
        self.emit_handler(run, Rows::default());
    }

    /// Emits a branch by a table of targets: `a` is the row with the index, `b` the table's number.
    pub(crate) fn emit_table(
        &mut self,
        run: Handler,
        index: u32,
        targets: Vec<BlockId>,
        reconvergence: BranchTarget,
    ) {
        let table = self.code.tables.len();
        self.code.tables.push(Vec::new());
        self.table_fixups.push((table, targets));
        self.emit_branch(run, BranchTarget::Nowhere, reconvergence);
        if let Some(inst) = self.code.insts.last_mut() {
            inst.a = index;
            inst.b = table as u32;
        }
    }

    /// Emits a trap in place of an instruction that is not executed, with what could be used instead.
    pub(crate) fn unsupported(&mut self, name: &str, instead: &str) {
        let mut message = format!("`{name}` is not executed by the virtual GPU");
        if !instead.is_empty() {
            message += ": ";
            message += instead;
        }
        self.code.unsupported.push(Unsupported {
            function: self.function.name.to_string(),
            statement: self.statement,
            origin: self.origin,
            message: message.clone(),
        });
        self.emit_boxed(move |m, _| m.trap(TrapKind::Unsupported, message.clone()));
    }

    /// The block that a label begins.
    pub(crate) fn block_of_label(&self, label: LabelId) -> BlockId {
        self.labels.get(&label).copied().unwrap_or(BlockId(u32::MAX))
    }

    /// Where the statement came from.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The function asks where the shared memory is that CUDA reserves.
    pub(crate) fn asks_for_reserved_shared(&mut self) {
        self.frame.reserved_shared = true;
    }

    /// The function asks where a cooperative grid has its barrier.
    pub(crate) fn asks_for_grid_barrier(&mut self) {
        self.frame.grid_barrier = true;
    }

    /// The bytes of the variable at an offset of the frame.
    pub(crate) fn variable_bytes(&self, offset: u64) -> u32 {
        let region = self.frame.local_regions.iter().find(|region| region.0 == offset);
        region.map_or(0, |region| region.1 as u32)
    }
}
