//! Branches, calls, returns, traps, and reconvergence points.

use crate::check::set_local_written;
use crate::decode::{BranchTarget, Callable, Decoder, LoadError, ParamSlot, Rows, SymbolValue, function_at};
use crate::launch::TrapKind;
use crate::machine::{Base, Frame, Inst, LANES, LanesOf, MAX_LOCAL, Machine, Row32, Row64, Step, lanewise};
use crate::native;
use crate::op::special::WarpPlace;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::control::{Call, CallReturn, Callee, GridDependency};
use warpwright_ptx::op::family::Control as Op;

/// Bytes of the stack that a call takes: where hardware keeps the return address. So recursion ends, whatever
/// the function keeps.
const LINK: u32 = 16;

pub(crate) fn decode(
    op: Op<'_>,
    d: &mut Decoder<'_, '_>,
    reconvergence: BranchTarget,
) -> Result<bool, LoadError> {
    match op {
        Op::Bra(bra) => {
            let target = BranchTarget::Block(d.block_of_label(bra.target));
            d.emit_branch(branch, target, reconvergence);
            d.is_native(native::Operation::Branch);
        }
        Op::BrxIdx(brx) => {
            let targets = table(d, brx.table);
            let index = d.row(brx.index.0);
            d.emit_table(branch_indexed, index, targets, reconvergence);
        }
        Op::Ret(_) if d.function.kind == FunctionKind::Func => {
            d.emit_branch(branch, BranchTarget::Exit, reconvergence)
        }
        Op::Ret(_) | Op::Exit(_) => d.emit_handler(exit, Rows::default()),
        Op::Trap(_) => d.emit_handler(
            |m, _| {
                // As cooperative groups do where the grid has no barrier.
                let lacks_barrier = !m.launch.options.cooperative
                    && m.launch.code.functions.iter().any(|function| function.grid_barrier);
                let why = if lacks_barrier {
                    ": it asks for the barrier of the grid, which only a cooperative launch has"
                } else {
                    ""
                };
                m.trap(TrapKind::Instruction, format!("the kernel executed `trap`{why}"))
            },
            Rows::default(),
        ),
        Op::Brkpt(_) | Op::Pmevent(_) | Op::PmeventMask(_) => d.emit_nothing(),
        Op::Griddepcontrol(op) => match op.action {
            GridDependency::Wait => d.emit_handler(grid_wait, Rows::default()),
            GridDependency::LaunchDependents => d.emit_handler(
                |m, _| {
                    m.released_dependents();
                    Step::Next
                },
                Rows::default(),
            ),
        },
        Op::SetmaxnregInc(_) | Op::SetmaxnregDec(_) => d.emit_nothing(),
        Op::Call(call) => decode_call(call, d)?,
    }
    Ok(true)
}

/// Waits until the launch in front of this one is over, if it may overlap with that one.
fn grid_wait(m: &mut Machine<'_>, _: &Inst) -> Step {
    if m.launch.is_held() {
        m.not_yet();
        m.give_way();
        m.worker.held = true;
        return Step::Goto(m.pc);
    }
    m.passed_grid_wait();
    Step::Next
}

/// The labels of a `.branchtargets` table.
fn table(d: &Decoder<'_, '_>, label: LabelId) -> Vec<warpwright_ptx::verify::BlockId> {
    let found = d.function.statements().iter().find_map(|statement| match &statement.kind {
        StatementKind::BranchTargets { label: name, targets } if *name == label => Some(targets),
        _ => None,
    });
    found.map_or(Vec::new(), |targets| targets.iter().map(|&label| d.block_of_label(label)).collect())
}

/// A reconvergence point: lanes may wait for others here.
pub(crate) fn reconvergence_point(d: &mut Decoder<'_, '_>) {
    let run = |m: &mut Machine<'_>, _: &Inst| {
        let pc = m.pc;
        if m.warp.pass_reconvergence(pc) { Step::Next } else { Step::Reload }
    };
    d.emit_native(run, native::Operation::ReconvergencePoint, Rows::default());
}

/// The end of a function.
pub(crate) fn end(d: &mut Decoder<'_, '_>) {
    if d.function.kind == FunctionKind::Entry {
        d.emit_handler(exit, Rows::default());
    } else {
        reconvergence_point(d);
        let returns = |m: &mut Machine<'_>, _: &Inst| {
            return_values(m);
            m.warp.ret();
            Step::Reload
        };
        d.emit_handler(returns, Rows::default());
    }
}

fn branch(m: &mut Machine<'_>, i: &Inst) -> Step {
    if m.mask == m.active {
        return Step::Goto(i.x);
    }
    m.worker.divergent[m.pc as usize] += 1;
    let rest = m.active & !m.mask;
    m.warp.diverge(&[(i.x, m.mask), (m.pc + 1, rest)], i.c);
    Step::Reload
}

fn branch_indexed(m: &mut Machine<'_>, i: &Inst) -> Step {
    let targets = &m.launch.code.tables[i.b as usize];
    let index = *m.registers.row32(i.a);
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for lane in LanesOf(m.mask) {
        let Some(&target) = targets.get(index[lane] as usize) else {
            let message =
                format!("`brx.idx` with index {} into a table of {} targets", index[lane], targets.len());
            return m.trap(TrapKind::BadBranch, message);
        };
        match parts.iter_mut().find(|part| part.0 == target) {
            Some(part) => part.1 |= 1 << lane,
            None => parts.push((target, 1 << lane)),
        }
    }
    let rest = m.active & !m.mask;
    if rest != 0 {
        parts.push((m.pc + 1, rest));
    }
    if let [(target, _)] = parts[..] {
        return Step::Goto(target);
    }
    m.worker.divergent[m.pc as usize] += 1;
    m.warp.diverge(&parts, i.c);
    Step::Reload
}

fn exit(m: &mut Machine<'_>, _: &Inst) -> Step {
    let next = m.pc + 1;
    m.warp.exit(m.mask, next);
    m.block.running -= u32::from(m.warp.live == 0);
    m.settle_barriers();
    Step::Reload
}

/// Where an argument comes from, or where a result goes.
fn place(d: &mut Decoder<'_, '_>, src: &Src) -> ParamSlot {
    match src {
        Src::Symbol(symbol) => match d.symbol_address(&symbol.symbol, symbol.offset) {
            SymbolValue::Frame(offset) => {
                ParamSlot::Memory { offset: offset as u32, bytes: d.variable_bytes(offset) }
            }
            SymbolValue::Constant(address) => ParamSlot::Wide(d.constant64(address)),
            SymbolValue::Shared(address) => ParamSlot::Wide(d.shared64(address)),
        },
        Src::Reg(reg) => ParamSlot::register(d.register(*reg)),
        other => ParamSlot::Wide(d.src64(other, Type::B64)),
    }
}

fn decode_call(call: &Call, d: &mut Decoder<'_, '_>) -> Result<(), LoadError> {
    let arguments: Box<[ParamSlot]> = call.arguments.iter().map(|src| place(d, src)).collect();
    let returns: Box<[Option<ParamSlot>]> = call
        .returns
        .iter()
        .map(|to| match to {
            CallReturn::Variable(symbol) => {
                Some(place(d, &SymbolAddress { symbol: symbol.clone(), offset: 0 }.into()))
            }
            CallReturn::Reg(reg) => Some(place(d, &Src::Reg(*reg))),
            CallReturn::Sink => None,
        })
        .collect();
    match &call.callee {
        Callee::Function(Symbol::Global(name)) => match d.symbols.function(name) {
            Some(Callable::Defined(number)) => {
                d.emit_boxed(move |m, _| enter(m, &[(number, m.mask)], &arguments));
            }
            Some(Callable::Builtin(builtin)) => {
                super::builtin::decode(d, builtin, arguments, &returns);
                return Ok(());
            }
            _ => {
                let why = if name.starts_with("__cudaCDP") || name.starts_with("cudaLaunchDevice") {
                    "is of CUDA's device runtime: the virtual GPU does not launch kernels from kernels"
                } else {
                    "is called and defined nowhere: link the module that defines it"
                };
                return Err(LoadError::new(d.origin(), format!("`{name}` {why}")));
            }
        },
        Callee::Function(Symbol::Local(_)) => d.unsupported("call", "the callee is no function"),
        Callee::Reg(reg) => {
            let row = d.row(*reg);
            let signatures: Vec<Option<Signature>> =
                d.symbols.defined.iter().map(|function| signature(function)).collect();
            let given: Signature = call.arguments.iter().map(|src| size_in_memory(d, src)).collect();
            d.emit_boxed(move |m, _| {
                let mut calls: Vec<(u32, u32)> = Vec::new();
                for lane in LanesOf(m.mask) {
                    let address = m.registers.row64(row)[lane];
                    let found = function_at(address, signatures.len());
                    let callee =
                        found.and_then(|number| Some((number, signatures[number as usize].as_ref()?)));
                    let Some((number, wanted)) = callee else {
                        return m.trap(
                            TrapKind::BadCall,
                            format!("a call of {address:#x}, which is no function"),
                        );
                    };
                    if let Some(problem) = mismatch(wanted, &given) {
                        let name = &m.launch.code.functions[number as usize].name;
                        return m.trap(TrapKind::BadCall, format!("a call of `{name}` {problem}"));
                    }
                    match calls.iter_mut().find(|call| call.0 == number) {
                        Some(call) => call.1 |= 1 << lane,
                        None => calls.push((number, 1 << lane)),
                    }
                }
                enter(m, &calls, &arguments)
            });
        }
    }
    // What comes back goes into the caller's frame: the callee's frame is above it.
    reconvergence_point(d);
    take_returns(d, returns, call);
    Ok(())
}

/// The sizes of parameters or arguments that are in memory, in bytes, as far as they have one.
type Signature = Vec<Option<u64>>;

/// What a function takes. A kernel is launched, not called.
fn signature(function: &Function) -> Option<Signature> {
    let sizes = function.params.iter().flat_map(|param| match *param {
        Param::Variable(id) => vec![function.variable(id).bytes().filter(|&bytes| bytes != 0)],
        Param::Register(first) => function.elements(first).map(|_| None).collect(),
    });
    (function.kind == FunctionKind::Func).then(|| sizes.collect())
}

fn size_in_memory(d: &Decoder<'_, '_>, argument: &Src) -> Option<u64> {
    let Src::Symbol(address) = argument else { return None };
    match address.symbol {
        Symbol::Local(id) if address.offset == 0 => d.function.variable(id).bytes(),
        _ => None,
    }
}

/// How the arguments of a call do not fit.
fn mismatch(wanted: &Signature, given: &Signature) -> Option<String> {
    if wanted.len() != given.len() {
        return Some(format!("with {} arguments: it takes {}", given.len(), wanted.len()));
    }
    let pairs = wanted.iter().zip(given).enumerate();
    let sizes = pairs.filter_map(|(index, (wanted, given))| Some((index, (*wanted)?, (*given)?)));
    let (index, wanted, given) = sizes.into_iter().find(|(_, wanted, given)| wanted != given)?;
    Some(format!("whose argument {index} has {given} bytes: the parameter has {wanted}"))
}

/// Bytes of the stack that the registers of all callers take, as they do on hardware.
fn saved(base: Base) -> u64 {
    4 * u64::from(base.w32) + 8 * u64::from(base.w64) + u64::from(base.pred / 8)
}

/// Enters functions with the lanes of each, after the arguments have been put where they expect them.
fn enter(m: &mut Machine<'_>, calls: &[(u32, u32)], arguments: &[ParamSlot]) -> Step {
    let launch = m.launch;
    let caller = *m.warp.frame();
    let caller_code = &launch.code.functions[caller.function as usize];
    let local = (caller.local + caller_code.local_bytes + caller.allocated).next_multiple_of(16) + LINK;
    let old = m.registers.base;
    let base = Base {
        w32: old.w32 + caller_code.rows.w32,
        w64: old.w64 + caller_code.rows.w64,
        pred: old.pred + caller_code.rows.pred,
    };
    let pc = m.pc;
    let checks = m.launch.options.checks.init;
    let undefined = if m.follows() { m.undefined_arguments(arguments) } else { Vec::new() };
    let mut frames = Vec::with_capacity(calls.len());
    for &(number, mask) in calls {
        let callee = &launch.code.functions[number as usize];
        let bytes = u64::from(local) + u64::from(callee.local_bytes);
        if bytes + saved(base) > MAX_LOCAL {
            let message = format!(
                "the stack of a thread is full, in a call of `{}`: {bytes} bytes of variables and {} of registers, \
                 of {MAX_LOCAL}",
                callee.name,
                saved(base)
            );
            return m.trap(TrapKind::StackOverflow, message);
        }
        if !m.reserve(bytes, base, callee.rows) {
            return m.out_of_memory();
        }
        let values: Vec<_> = arguments.iter().map(|argument| read_argument(m, *argument)).collect();
        m.registers.base = base;
        let place = WarpPlace { launch, block: &m.block, warp: m.warp_index };
        callee.enter(&mut m.registers, place, mask);
        callee.clear_unassigned_lanes(&mut m.registers, mask);
        set_local_written(&mut m.warp, local, callee.local_bytes, mask, false);
        for (slot, value) in callee.params.iter().zip(&values) {
            pass(m, *slot, local, value, caller.local, mask);
            if let ParamSlot::Memory { offset, bytes } = *slot
                && checks
            {
                set_local_written(&mut m.warp, local + offset, bytes, mask, true);
            }
        }
        m.registers.base = old;
        let frame = Frame {
            parent: m.warp.paths[m.warp.current].frame,
            call_pc: pc,
            base,
            local,
            function: number,
            lanes: mask,
            allocated: 0,
        };
        frames.push((callee.entry, mask, frame));
    }
    match frames[..] {
        [(entry, mask, frame)] => m.warp.call(mask, entry, pc, frame, pc + 1),
        _ => m.warp.call_each(&frames, pc, pc + 1),
    }
    calls.iter().for_each(|&(number, mask)| m.pass_undefined(number, mask, &undefined));
    Step::Reload
}

/// The words of a value in a register: of up to 128 bits, with zeros above.
type Words = [Row32; 4];

/// An argument's value: its words, or where it is in the caller's memory.
pub(super) enum Passed {
    Words(Box<Words>),
    Memory(u32),
}

impl Passed {
    /// A word of it; `None` behind the end of memory. `from` is the caller's frame.
    pub(super) fn word(&self, m: &Machine<'_>, from: u32, word: u32) -> Option<Row32> {
        match self {
            Passed::Words(words) => words.get(word as usize).copied(),
            Passed::Memory(offset) => m.warp.local.get(((from + offset) / 4 + word) as usize).copied(),
        }
    }
}

pub(super) fn words64(row: &Row64) -> [Row32; 2] {
    [lanewise(row, |value| value as u32), lanewise(row, |value| (value >> 32) as u32)]
}

pub(super) fn row64([low, high]: [Row32; 2]) -> Row64 {
    std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32)
}

/// The words of a register.
fn register_words(m: &Machine<'_>, slot: ParamSlot) -> Words {
    const ZERO: Row32 = [0; LANES];
    match slot {
        ParamSlot::Narrow(row) => [*m.registers.row32(row), ZERO, ZERO, ZERO],
        ParamSlot::Wide(row) => {
            let [low, high] = words64(m.registers.row64(row));
            [low, high, ZERO, ZERO]
        }
        ParamSlot::Double(row) => {
            let [a, b] = words64(m.registers.row64(row));
            let [c, d] = words64(m.registers.row64(row + 1));
            [a, b, c, d]
        }
        ParamSlot::Predicate(row) => {
            let lanes = m.registers.predicate(row << 1);
            [std::array::from_fn(|lane| lanes >> lane & 1), ZERO, ZERO, ZERO]
        }
        ParamSlot::Memory { .. } => [ZERO; 4],
    }
}

/// Sets a register from the words of a value.
pub(super) fn set_register(m: &mut Machine<'_>, slot: ParamSlot, words: &Words, mask: u32) {
    let [a, b, c, d] = *words;
    match slot {
        ParamSlot::Narrow(row) => m.registers.set32(row, &a, mask),
        ParamSlot::Wide(row) => m.registers.set64(row, &row64([a, b]), mask),
        ParamSlot::Double(row) => {
            m.registers.set64(row, &row64([a, b]), mask);
            m.registers.set64(row + 1, &row64([c, d]), mask);
        }
        ParamSlot::Predicate(row) => {
            let lanes = (0..LANES).fold(0, |lanes, lane| lanes | u32::from(a[lane] != 0) << lane);
            m.registers.set_predicate(row, lanes, mask);
        }
        ParamSlot::Memory { .. } => {}
    }
}

pub(super) fn read_argument(m: &Machine<'_>, argument: ParamSlot) -> Passed {
    match argument {
        ParamSlot::Memory { offset, .. } => Passed::Memory(offset),
        register => Passed::Words(Box::new(register_words(m, register))),
    }
}

/// Puts an argument where the callee, the owner of the current frame, expects it.
fn pass(m: &mut Machine<'_>, slot: ParamSlot, local: u32, value: &Passed, from: u32, mask: u32) {
    let ParamSlot::Memory { offset, bytes } = slot else {
        let words = std::array::from_fn(|word| value.word(m, from, word as u32).unwrap_or([0; LANES]));
        return set_register(m, slot, &words, mask);
    };
    for word in 0..bytes.div_ceil(4) {
        // What is passed to a variable number of parameters may be shorter than the room for them.
        let Some(values) = value.word(m, from, word) else { break };
        let row = &mut m.warp.local[((local + offset) / 4 + word) as usize];
        LanesOf(mask).for_each(|lane| row[lane] = values[lane]);
    }
}

/// Saves the function's results where the caller finds them: in the warp, per lane, each in four words or more.
fn return_values(m: &mut Machine<'_>) {
    let launch = m.launch;
    let frame = *m.warp.frame();
    let function = &launch.code.functions[frame.function as usize];
    let (mut words, mut starts) = (Vec::new(), Vec::new());
    for slot in &function.returns {
        starts.push(words.len());
        match *slot {
            ParamSlot::Memory { offset, bytes } => {
                let start = words.len();
                let first = ((frame.local + offset) / 4) as usize;
                words.extend_from_slice(&m.warp.local[first..first + bytes.div_ceil(4) as usize]);
                words.resize(words.len().max(start + 4), [0; LANES]);
            }
            register => words.extend(register_words(m, register)),
        }
    }
    if m.warp.returned.len() < words.len() {
        m.warp.returned.resize(words.len(), [0; LANES]);
    }
    for (into, from) in m.warp.returned.iter_mut().zip(&words) {
        LanesOf(m.mask).for_each(|lane| into[lane] = from[lane]);
    }
    if m.follows() {
        m.return_undefined(&starts, words.len());
    }
}

/// Takes the results into the caller's variables and registers. Sizes are those of the caller's variables, which the
/// verifier has checked against the signature.
fn take_returns(d: &mut Decoder<'_, '_>, returns: Box<[Option<ParamSlot>]>, call: &Call) {
    if returns.iter().all(Option::is_none) {
        return;
    }
    let register = |to: &CallReturn| match to {
        CallReturn::Reg(reg) => Some(*reg),
        _ => None,
    };
    let registers: Box<[Option<Reg>]> = call.returns.iter().map(register).collect();
    d.emit_boxed(move |m, _| {
        let mut at = 0;
        for (to, &reg) in returns.iter().zip(&registers) {
            let returned = |m: &Machine<'_>, word: u32| {
                m.warp.returned.get((at + word) as usize).copied().unwrap_or([0; LANES])
            };
            let mut words = 4;
            match *to {
                Some(ParamSlot::Memory { offset, bytes }) => {
                    let local = m.warp.frame().local;
                    words = bytes.div_ceil(4);
                    for word in 0..words {
                        let values = returned(m, word);
                        let row = &mut m.warp.local[((local + offset) / 4 + word) as usize];
                        LanesOf(m.mask).for_each(|lane| row[lane] = values[lane]);
                    }
                    if m.launch.options.checks.init {
                        set_local_written(&mut m.warp, local + offset, 4 * words, m.mask, true);
                    }
                }
                Some(register) => {
                    let words = std::array::from_fn(|word| returned(m, word as u32));
                    set_register(m, register, &words, m.mask);
                }
                None => {}
            }
            if let Some(to) = *to
                && m.follows()
            {
                m.take_undefined(to, reg, at, words);
            }
            at += words.max(4);
        }
        Step::Next
    });
}
