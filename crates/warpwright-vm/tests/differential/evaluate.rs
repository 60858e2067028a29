//! The scalar evaluator: one thread at a time, straight from the IR, one statement after the other.
//!
//! Here are operands, control flow and memory; what instructions compute is in `operate`. Nothing is
//! shared with the VM, and speed is no aim. The evaluator knows only what the generator makes, and
//! panics at anything else.

use crate::integer::{low, wrap};
use crate::operate;
use std::collections::HashMap;
use warpwright_ptx::ir::*;
use warpwright_ptx::op::Op;
use warpwright_ptx::op::atomic::AtomicOp;

/// Bytes of memory that each thread has in each space.
pub(crate) const SLICE: usize = 64;

/// Where the evaluator pretends that memory begins. No program's result depends on an address.
const GLOBAL: u64 = 0x7f00_0000_0000;
const SHARED: u64 = 0x100;
const LOCAL: u64 = 0x40;
const SHARED_WINDOW: u64 = 0x5000_0000_0000;
const LOCAL_WINDOW: u64 = 0x6000_0000_0000;
const FUNCTIONS: u64 = 0x1234_0000;

/// Instructions after which a thread is taken to run away.
const BUDGET: u32 = 100_000;

/// A thread's position in the grid.
#[derive(Clone, Copy)]
pub(crate) struct ThreadPosition {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) threads_of_block: u32,
}

/// A function with its labels found.
pub(crate) struct Code<'a> {
    pub(crate) function: &'a Function,
    labels: HashMap<LabelId, usize>,
}

/// A module, ready for evaluation.
pub(crate) struct Program<'a> {
    functions: Vec<Code<'a>>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(module: &'a Module) -> Self {
        let code = |function: &'a Function| Code {
            function,
            labels: (function.statements().iter().enumerate())
                .filter_map(|(at, statement)| match &statement.kind {
                    StatementKind::Label(label)
                    | StatementKind::BranchTargets { label, .. }
                    | StatementKind::CallPrototype { label, .. } => Some((*label, at)),
                    _ => None,
                })
                .collect(),
        };
        Program { functions: module.functions().filter(|f| f.body.is_some()).map(code).collect() }
    }

    fn index(&self, name: &str) -> usize {
        let found = self.functions.iter().position(|code| &*code.function.name == name);
        found.expect("the function is in the module")
    }

    /// Runs `entry` for one thread on its record of global memory.
    pub(crate) fn run(&self, entry: &str, place: ThreadPosition, record: &mut [u8]) {
        let linear = u64::from(place.block * place.threads_of_block + place.thread);
        let mut thread = Thread {
            program: self,
            place,
            global: GLOBAL + linear * record.len() as u64,
            record,
            shared: vec![0; SLICE],
            local: Vec::new(),
            budget: BUDGET,
        };
        thread.call(self.index(entry), vec![GLOBAL.to_le_bytes().to_vec()]);
    }
}

struct Thread<'a> {
    program: &'a Program<'a>,
    place: ThreadPosition,
    /// Address of the record.
    global: u64,
    record: &'a mut [u8],
    shared: Vec<u8>,
    local: Vec<u8>,
    budget: u32,
}

/// A function that is being run.
pub(crate) struct Frame<'a> {
    code: &'a Code<'a>,
    registers: Vec<u128>,
    /// The carry flag.
    pub(crate) carry: bool,
    /// Contents of the `.param` variables.
    parameters: Vec<Vec<u8>>,
    /// Where the function's local variables begin.
    locals: Vec<u64>,
    place: ThreadPosition,
}

/// Where control goes.
enum Next {
    Statement(usize),
    Return,
    Exit,
}

impl Thread<'_> {
    /// Runs a function; its return values, or `None` where the thread ended.
    fn call(&mut self, function: usize, arguments: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        let program = self.program;
        let code = &program.functions[function];
        let f = code.function;
        let mut frame = Frame {
            code,
            registers: vec![0; f.register_count() as usize],
            carry: false,
            parameters: f.variables.iter().map(|v| vec![0; v.bytes().unwrap_or(0) as usize]).collect(),
            locals: Vec::new(),
            place: self.place,
        };
        let stack = self.local.len();
        for variable in &f.variables {
            frame.locals.push(LOCAL + self.local.len() as u64);
            if variable.space == Space::Local {
                let end = self.local.len() + variable.bytes().unwrap_or(0) as usize;
                self.local.resize(end.next_multiple_of(16), 0);
            }
        }
        for (param, argument) in f.params.iter().zip(arguments) {
            let Param::Variable(id) = param else { panic!("parameters are variables") };
            frame.parameters[id.0 as usize] = argument;
        }
        let mut at = 0;
        while let Some(statement) = f.statements().get(at) {
            let StatementKind::Instruction(instruction) = &statement.kind else {
                at += 1;
                continue;
            };
            self.budget = self.budget.checked_sub(1).expect("generated programs end");
            let runs =
                instruction.guard.is_none_or(|g| (frame.registers[g.reg.0 as usize] == 1) != g.negated);
            at = match if runs { self.step(&mut frame, &instruction.op, at) } else { Next::Statement(at + 1) }
            {
                Next::Statement(next) => next,
                Next::Return => break,
                Next::Exit => return None,
            };
        }
        self.local.truncate(stack);
        let returned = |param: &Param| match param {
            Param::Variable(id) => frame.parameters[id.0 as usize].clone(),
            Param::Register(_) => panic!("return values are variables"),
        };
        Some(f.returns.iter().map(returned).collect())
    }

    fn step(&mut self, frame: &mut Frame<'_>, op: &Op, at: usize) -> Next {
        match op {
            Op::Bra(bra) => return Next::Statement(frame.code.labels[&bra.target]),
            Op::BrxIdx(brx) => {
                let table = &frame.code.function.statements()[frame.code.labels[&brx.table]];
                let StatementKind::BranchTargets { targets, .. } = &table.kind else {
                    panic!("`brx.idx` names a table")
                };
                let target = targets[frame.registers[brx.index.0.0 as usize] as usize];
                return Next::Statement(frame.code.labels[&target]);
            }
            Op::Ret(_) => return Next::Return,
            Op::Exit(_) => return Next::Exit,
            Op::Call(call) => {
                let (op_callee, parameters) = (&call.callee, &frame.parameters);
                let callee = match op_callee {
                    op::Callee::Function(Symbol::Global(name)) => self.program.index(name),
                    op::Callee::Function(Symbol::Local(_)) => panic!("functions are global"),
                    op::Callee::Reg(reg) => (frame.registers[reg.0 as usize] as u64 - FUNCTIONS) as usize,
                };
                let argument = |src: &Src| match src {
                    Src::Symbol(address) => match &address.symbol {
                        Symbol::Local(id) => parameters[id.0 as usize].clone(),
                        Symbol::Global(_) => panic!("arguments are local"),
                    },
                    _ => panic!("arguments are variables"),
                };
                let Some(returned) = self.call(callee, call.arguments.iter().map(argument).collect()) else {
                    return Next::Exit;
                };
                for (place, value) in call.returns.iter().zip(returned) {
                    let op::CallReturn::Variable(Symbol::Local(id)) = place else {
                        panic!("return values go to variables")
                    };
                    frame.parameters[id.0 as usize] = value;
                }
            }
            Op::Ld(ld) => {
                let size = ld.ty.bytes() as usize;
                for (i, reg) in ld.d.as_slice().enumerate() {
                    let memory = self.memory(frame, ld.space, &ld.address, size * (i + 1));
                    let value = operate::from_bytes(&memory[size * i..]);
                    if let Some(reg) = reg {
                        frame.set(Dst(reg), ld.ty, value as i128);
                    }
                }
            }
            Op::St(st) => {
                let size = st.ty.bytes() as usize;
                for (i, src) in st.a.as_slice().iter().enumerate() {
                    let value = frame.bits(src, st.ty);
                    let memory = self.memory(frame, st.space, &st.address, size * (i + 1));
                    memory[size * i..].copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
            Op::Atom(atom) => {
                let operand = frame.int(&atom.b.as_slice()[0], atom.ty);
                let old = self.atomic(frame, atom.space, &atom.address, atom.op, atom.ty, operand);
                if let Some(reg) = atom.d.as_slice().next().flatten() {
                    frame.set(Dst(reg), atom.ty, old);
                }
            }
            Op::Red(red) => {
                let operand = frame.int(&red.b.as_slice()[0], red.ty);
                self.atomic(frame, red.space, &red.address, red.op, red.ty, operand);
            }
            Op::AtomCas(cas) => {
                let (compared, new) = (frame.bits(&cas.b, cas.ty), frame.bits(&cas.c, cas.ty));
                let size = cas.ty.bytes() as usize;
                let memory = self.memory(frame, cas.space, &cas.address, size);
                let old = operate::from_bytes(memory);
                if old == compared {
                    memory.copy_from_slice(&new.to_le_bytes()[..size]);
                }
                if let Some(reg) = cas.d.0 {
                    frame.set(Dst(reg), cas.ty, old as i128);
                }
            }
            Op::Cvta(cvta) => {
                let window = match cvta.space.base() {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    _ => 0,
                };
                let a = frame.bits(&cvta.a, cvta.ty) as u64;
                let d = if cvta.to { a.wrapping_sub(window) } else { a.wrapping_add(window) };
                frame.set(cvta.d, cvta.ty, d.into());
            }
            Op::Mov(mov) if matches!(&mov.a, Srcs::One(Src::Symbol(_))) => {
                let (Dsts::One(d), Srcs::One(Src::Symbol(address))) = (&mov.d, &mov.a) else {
                    panic!("one address goes to one register")
                };
                let value = match &address.symbol {
                    Symbol::Local(id) => frame.locals[id.0 as usize],
                    Symbol::Global(name) if &**name == "slices" => SHARED,
                    Symbol::Global(name) => FUNCTIONS + self.program.index(name) as u64,
                };
                frame.set(Dst(*d), mov.ty, i128::from(value) + i128::from(address.offset));
            }
            other => operate::operate(frame, other),
        }
        Next::Statement(at + 1)
    }

    /// The `size` bytes at an address.
    fn memory<'m>(
        &'m mut self,
        frame: &'m mut Frame<'_>,
        space: Option<Space>,
        address: &Address,
        size: usize,
    ) -> &'m mut [u8] {
        let base = match &address.base {
            AddressBase::Reg(reg) => frame.registers[reg.0 as usize] as u64,
            AddressBase::Symbol(Symbol::Local(id)) if space.map(Space::base) == Some(Space::Param) => {
                let at = address.offset as usize;
                return &mut frame.parameters[id.0 as usize][at..at + size];
            }
            AddressBase::Symbol(Symbol::Local(id)) => frame.locals[id.0 as usize],
            _ => panic!("the generator names no other addresses"),
        };
        let at = base.wrapping_add_signed(address.offset);
        let (space, at) = match space.map(Space::base) {
            Some(space) => (space, at),
            None if at >= GLOBAL => (Space::Global, at),
            None if at >= LOCAL_WINDOW => (Space::Local, at - LOCAL_WINDOW),
            None => (Space::Shared, at - SHARED_WINDOW),
        };
        let own = SHARED + u64::from(self.place.thread) * SLICE as u64;
        let (memory, first) = match space {
            Space::Global => (&mut *self.record, self.global),
            Space::Shared => (&mut self.shared[..], own),
            Space::Local => (&mut self.local[..], LOCAL),
            other => panic!("no memory in {other}"),
        };
        let offset = at.checked_sub(first).expect("threads stay in their own memory") as usize;
        assert!(
            offset.is_multiple_of(size.next_power_of_two().min(16)) || size > 16 || size.count_ones() > 1
        );
        &mut memory[offset..offset + size]
    }

    /// Changes memory; what was there.
    fn atomic(
        &mut self,
        frame: &mut Frame<'_>,
        space: Option<Space>,
        address: &Address,
        op: AtomicOp,
        ty: Type,
        operand: i128,
    ) -> i128 {
        let size = ty.bytes() as usize;
        let memory = self.memory(frame, space, address, size);
        let old = wrap(operate::from_bytes(memory) as i128, ty);
        let new = match op {
            AtomicOp::Add => old + operand,
            AtomicOp::And => old & operand,
            AtomicOp::Or => old | operand,
            AtomicOp::Xor => old ^ operand,
            AtomicOp::Exch => operand,
            AtomicOp::Min => old.min(operand),
            AtomicOp::Max => old.max(operand),
            AtomicOp::Inc => {
                if old >= operand {
                    0
                } else {
                    old + 1
                }
            }
            AtomicOp::Dec => {
                if old == 0 || old > operand {
                    operand
                } else {
                    old - 1
                }
            }
        };
        memory.copy_from_slice(&low(new, ty.bits()).to_le_bytes()[..size]);
        old
    }
}

use warpwright_ptx::op::control as op;

impl Frame<'_> {
    /// The bits of an operand of type `ty`, without those beyond its width.
    pub(crate) fn bits(&self, src: &Src, ty: Type) -> u128 {
        let value = match src {
            Src::Reg(reg) => self.registers[reg.0 as usize],
            Src::Not(reg) => 1 ^ self.registers[reg.0 as usize],
            Src::Sum(reg, offset) => self.registers[reg.0 as usize].wrapping_add(*offset as i128 as u128),
            Src::Imm(Imm::Int(value)) => *value as i128 as u128,
            Src::Imm(Imm::UInt(value)) => (*value).into(),
            Src::Imm(Imm::F32(bits)) => (*bits).into(),
            Src::Imm(Imm::F64(bits)) => (*bits).into(),
            Src::Special(special) => self.special(*special).into(),
            Src::Symbol(_) | Src::Element(_) | Src::Sink => panic!("no value of {src:?}"),
        };
        low(value as i128, ty.bits())
    }

    /// The value of an integer operand, sign-extended where the type is signed.
    pub(crate) fn int(&self, src: &Src, ty: Type) -> i128 {
        wrap(self.bits(src, ty) as i128, ty)
    }

    /// Whether a predicate operand holds.
    pub(crate) fn holds(&self, src: &Src) -> bool {
        self.bits(src, Type::Pred) == 1
    }

    fn special(&self, special: Special) -> u32 {
        match special.register {
            SpecialRegister::Tid => self.place.thread,
            SpecialRegister::CtaId => self.place.block,
            SpecialRegister::Ntid => self.place.threads_of_block,
            other => panic!("`{}` is not generated", other.name()),
        }
    }

    /// Writes the low bits of a value of type `ty` to a register; one that is wider gets it extended as
    /// the type says.
    pub(crate) fn set(&mut self, d: Dst, ty: Type, value: i128) {
        let register = self.code.function.register_type(d.0);
        let extended = wrap(value, ty);
        self.registers[d.0.0 as usize] = low(extended, register.bits());
    }

    /// Writes a predicate.
    pub(crate) fn set_pred(&mut self, reg: Reg, value: bool) {
        self.registers[reg.0 as usize] = value.into();
    }
}
