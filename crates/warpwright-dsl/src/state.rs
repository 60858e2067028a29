//! The kernel under construction: values, instructions and blocks in arenas.
//!
//! Registers are numbered in the order of creation, for all types; [`lower`](super::lower) names them. Instructions
//! belong to blocks, and blocks form a tree that follows the nesting of closures, so a value is available in the
//! block that defines it and in the blocks inside.

use super::form::{FormId, Forms};
use super::team::{Calls, Frame};
use super::tile::{AddressTerm, Order};
use std::panic::Location;
use warpwright_ptx::diag::{Code, Diagnostic};
use warpwright_ptx::ir::{Arch, Imm, Origin, Reg, Special, Src, Type, Variable};
use warpwright_ptx::op::{Access, Op};

pub(super) type Loc = &'static Location<'static>;

/// The result of a mistake: everything computed from it is poison too, and reports nothing.
pub(super) const POISON: Reg = Reg(u32::MAX);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId(pub(super) u32);

/// Parameters, special registers and addresses that need nothing else: before the body.
pub(super) const ENTRY: BlockId = BlockId(0);
pub(super) const BODY: BlockId = BlockId(1);

#[derive(Clone, Copy, Debug)]
pub(super) enum Def {
    /// Written by one instruction, which may write others too.
    Inst(u32),
    /// An immediate.
    Const(Imm),
    /// Carried by a loop: which, and which of its carried values.
    Carried(u32, u32),
    /// What a value of a loop is after it, in its register.
    Result(Reg),
    /// A result of a labelled block's exits: the block, and the index of the value.
    Met(u32, u32),
    /// Written by several instructions.
    Variable,
    /// Not a value: a placeholder for the address of a pointer, in a memory access.
    Address(u32),
    /// The same once the address is known: which.
    Resolved(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) ty: Type,
    pub(super) block: BlockId,
    pub(super) def: Def,
    /// The value as an affine expression of others, for integers.
    pub(super) form: FormId,
}

/// What is known of an instruction beside its [`Op`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    pub(super) guard: Option<(Reg, bool)>,
    pub(super) loc: Loc,
    /// Dropped where nothing needs its result.
    pub(super) pure: bool,
    /// What a pure instruction writes, or the first of it.
    pub(super) result: Reg,
    /// Its registers, as a range of [`State::operands`]; the guard is not one of them.
    operands: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Inst(u32),
    Loop(u32),
    If(u32),
    Switch(u32),
    Labelled(u32),
    Break(u32),
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) depth: u32,
    /// Whether its closure is being run: only then are its values available.
    pub(super) open: bool,
    /// The loop whose body it is.
    pub(super) body_of: Option<u32>,
    pub(super) nodes: Vec<Node>,
}

/// A value that goes around a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) value: Reg,
    pub(super) init: Reg,
    pub(super) next: Reg,
}

/// An address that a loop counts up.
#[derive(Clone, Debug)]
pub(super) struct Bump {
    pub(super) pointer: Reg,
    pub(super) init: Reg,
    pub(super) step: Src,
    pub(super) wide: bool,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub(super) name: &'static str,
    pub(super) loc: Loc,
    /// Whether to enter at all; `None` where it is known.
    pub(super) guard: Option<Reg>,
    pub(super) body: BlockId,
    /// Whether to go around again: a value of the body. `None` where it always does.
    pub(super) again: Option<Reg>,
    pub(super) carried: Vec<Carried>,
    /// The carried value that counts, and what is added to it each time.
    pub(super) induction: Option<(Reg, Reg)>,
    pub(super) bumps: Vec<Bump>,
    pub(super) no_unroll: bool,
}

#[derive(Debug)]
pub(super) struct If {
    pub(super) loc: Loc,
    pub(super) condition: Reg,
    pub(super) then: BlockId,
    pub(super) otherwise: Option<BlockId>,
}

#[derive(Debug)]
pub(super) struct Switch {
    pub(super) loc: Loc,
    pub(super) index: Reg,
    /// `index` is a case.
    pub(super) inside: Reg,
    pub(super) cases: Vec<BlockId>,
}

/// A block that breaks lead out of.
#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) name: &'static str,
    pub(super) body: BlockId,
    /// The break at its end, which needs no jump.
    pub(super) last: Option<u32>,
    /// The results of several exits: registers that each exit writes.
    pub(super) met: Vec<Reg>,
}

/// Leaves a labelled block that it is in.
#[derive(Debug)]
pub(super) struct Break {
    pub(super) loc: Loc,
    /// In which threads; in all of them where it is `None`.
    pub(super) condition: Option<Reg>,
    /// Which block.
    pub(super) of: u32,
    pub(super) values: Vec<Reg>,
}

/// What the offsets of an address are added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// A 64-bit register.
    Reg(Reg),
    /// A variable of the function.
    Variable(u32),
    /// The dynamic shared memory, at an offset that is known when the kernel is complete.
    Dynamic,
    /// A constant of the module.
    Constant(u32),
    /// Zero: the offset itself, in 64 bits.
    Zero,
}

/// `base + form`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    pub(super) base: Base,
    pub(super) form: FormId,
    /// Addresses are 32 bits wide: shared memory.
    pub(super) narrow: bool,
    /// Written through: an argument that the kernel may change.
    pub(super) mutable: bool,
    /// Others may write it while the kernel runs, whatever the body says.
    pub(super) shifting: bool,
}

pub(super) struct State {
    pub(super) target: Arch,
    /// Block dimensions, where the launch rule fixes them.
    pub(super) threads: Option<[u32; 3]>,
    pub(super) values: Vec<Value>,
    pub(super) forms: Forms,
    pub(super) insts: Vec<Inst>,
    /// By instruction.
    pub(super) ops: Vec<Op>,
    /// The registers of the instructions, so that the passes need not look into each again. Once
    /// addresses are resolved, their registers stand in the place of the stand-ins.
    operands: Vec<(Access, Reg)>,
    pub(super) blocks: Vec<Block>,
    pub(super) current: BlockId,
    pub(super) loops: Vec<Loop>,
    pub(super) ifs: Vec<If>,
    pub(super) switches: Vec<Switch>,
    pub(super) labelled: Vec<Labelled>,
    pub(super) breaks: Vec<Break>,
    pub(super) pointers: Vec<Pointer>,
    /// Parameters, and whether the body has asked for them.
    pub(super) params: Vec<(Variable, bool)>,
    /// The declared arguments of the kernel whose body is running, if there are declarations.
    pub(super) declared: Option<Vec<super::ArgDesc>>,
    pub(super) specials: Vec<(Special, Reg)>,
    /// Shared and local arrays.
    pub(super) arrays: Vec<Variable>,
    pub(super) constants: Vec<Variable>,
    /// The first line that asked for the dynamic shared memory.
    pub(super) dynamic: Option<Loc>,
    /// Scratch of the block-wide collectives, for all of them: an array for each register of a state.
    pub(super) scratch: Vec<u32>,
    /// Registers of the tiles, one run each.
    pub(super) fragments: Vec<Reg>,
    /// Common parts of tiles' addresses: computed once, where all of their inputs are known.
    pub(super) shared_parts: Vec<(AddressTerm, Reg)>,
    /// Which tiles were filled and read since threads have waited for one another.
    pub(super) order: Order,
    /// The call whose body is being run.
    pub(super) frame: Option<Box<Frame>>,
    /// What is left of the calls.
    pub(super) calls: Calls,
    /// Of a kernel with checked pointers, how far each of its buffers goes.
    pub(super) bounds: Option<super::checked::Bounds>,
    /// What of each instruction is to be checked, by its number.
    pub(super) checks: Vec<Option<super::checked::Check>>,
    /// The line that requested the current item, if it is not the line that creates it.
    pub(super) line: Option<Loc>,
    pub(super) mistakes: Vec<Diagnostic>,
}

impl State {
    pub(super) fn new(target: Arch, threads: Option<[u32; 3]>) -> Self {
        let block = |depth| Block { depth, open: true, body_of: None, nodes: Vec::with_capacity(64) };
        State {
            target,
            threads,
            values: Vec::with_capacity(512),
            forms: Forms::new(),
            insts: Vec::with_capacity(256),
            ops: Vec::with_capacity(256),
            operands: Vec::with_capacity(768),
            blocks: vec![block(0), block(1)],
            current: BODY,
            loops: Vec::new(),
            ifs: Vec::new(),
            switches: Vec::new(),
            labelled: Vec::new(),
            breaks: Vec::new(),
            pointers: Vec::with_capacity(64),
            params: Vec::new(),
            declared: None,
            specials: Vec::new(),
            arrays: Vec::new(),
            constants: Vec::new(),
            dynamic: None,
            scratch: Vec::new(),
            fragments: Vec::new(),
            shared_parts: Vec::new(),
            order: Order::default(),
            frame: None,
            calls: Calls::default(),
            bounds: None,
            checks: Vec::new(),
            line: None,
            mistakes: Vec::new(),
        }
    }

    /// Records a mistake and yields poison.
    pub(super) fn mistake(&mut self, code: Code, loc: Loc, message: impl Into<String>) -> Reg {
        let loc = self.line.unwrap_or(loc);
        let mistake = Diagnostic::new(code, Origin::Rust(loc), message);
        // An operation of several instructions makes the same mistake in each.
        let repeats = |last: &Diagnostic| {
            let there = matches!(last.origin, Origin::Rust(line) if line == loc);
            there && (last.code, &last.message) == (mistake.code, &mistake.message)
        };
        if !self.mistakes.last().is_some_and(repeats) {
            self.mistakes.push(mistake);
        }
        POISON
    }

    #[inline]
    pub(super) fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    #[inline]
    pub(super) fn value(&self, reg: Reg) -> &Value {
        &self.values[reg.0 as usize]
    }

    /// The type of a value; `None` for poison.
    pub(super) fn type_of(&self, reg: Reg) -> Option<Type> {
        self.values.get(reg.0 as usize).map(|value| value.ty)
    }

    /// A new value of the current block, an opaque term where it is an integer.
    pub(super) fn define(&mut self, ty: Type, def: Def) -> Reg {
        self.define_in(self.current, ty, def)
    }

    #[inline]
    pub(super) fn define_in(&mut self, block: BlockId, ty: Type, def: Def) -> Reg {
        let reg = Reg(self.values.len() as u32);
        self.values.push(Value { ty, block, def, form: FormId::OPAQUE });
        reg
    }

    pub(super) fn constant(&mut self, ty: Type, imm: Imm) -> Reg {
        let reg = self.define(ty, Def::Const(imm));
        self.values[reg.0 as usize].block = ENTRY;
        reg
    }

    #[inline]
    pub(super) fn constant_of(&self, reg: Reg) -> Option<Imm> {
        match self.values.get(reg.0 as usize)?.def {
            Def::Const(imm) => Some(imm),
            _ => None,
        }
    }

    /// The value of an integer constant.
    pub(super) fn int_of(&self, reg: Reg) -> Option<i64> {
        match self.constant_of(reg)? {
            Imm::Int(v) => Some(v),
            _ => None,
        }
    }

    /// Appends an instruction that is in no block yet; `pure` is its result, if that is its only effect.
    #[inline]
    pub(super) fn push_inst(
        &mut self,
        op: impl Into<Op>,
        guard: Option<(Reg, bool)>,
        pure: Reg,
        loc: Loc,
    ) -> u32 {
        self.ops.push(op.into());
        self.describe(guard, pure, loc)
    }

    /// Adds what is known of the newest instruction.
    fn describe(&mut self, guard: Option<(Reg, bool)>, pure: Reg, loc: Loc) -> u32 {
        let id = self.insts.len() as u32;
        let loc = self.line.unwrap_or(loc);
        let first = self.operands.len() as u32;
        let operands = &mut self.operands;
        self.ops[id as usize].visit(&mut |access: Access, reg: Reg| operands.push((access, reg)));
        let operands = (first, self.operands.len() as u32);
        self.insts.push(Inst { guard, loc, pure: pure != POISON, result: pure, operands });
        id
    }

    /// The registers of an instruction, in order, without its guard.
    #[inline]
    pub(super) fn operands_of(&self, inst: u32) -> &[(Access, Reg)] {
        let (first, end) = self.insts[inst as usize].operands;
        &self.operands[first as usize..end as usize]
    }

    /// The stand-in that is operand `i` of an instruction has become this register.
    pub(super) fn resolve_operand(&mut self, inst: u32, i: usize, reg: Reg) {
        let first = self.insts[inst as usize].operands.0 as usize;
        self.operands[first + i].1 = reg;
    }

    /// Appends a pure instruction that defines a value.
    pub(super) fn pure(&mut self, ty: Type, loc: Loc, op: impl FnOnce(Reg) -> Op) -> Reg {
        let inst = self.insts.len() as u32;
        let reg = self.define(ty, Def::Inst(inst));
        self.push_inst(op(reg), None, reg, loc);
        let block = self.place_of(inst);
        self.values[reg.0 as usize].block = block;
        self.blocks[block.0 as usize].nodes.push(Node::Inst(inst));
        reg
    }

    pub(super) fn pure_in(&mut self, block: BlockId, ty: Type, loc: Loc, op: impl FnOnce(Reg) -> Op) -> Reg {
        let inst = self.insts.len() as u32;
        let reg = self.define_in(block, ty, Def::Inst(inst));
        self.push_inst(op(reg), None, reg, loc);
        self.blocks[block.0 as usize].nodes.push(Node::Inst(inst));
        reg
    }

    /// Appends a pure instruction that defines several values.
    pub(super) fn pure_many<const N: usize>(
        &mut self,
        ty: Type,
        loc: Loc,
        op: impl FnOnce([Reg; N]) -> Op,
    ) -> [Reg; N] {
        let inst = self.insts.len() as u32;
        let regs = [(); N].map(|()| self.define(ty, Def::Inst(inst)));
        self.push_inst(op(regs), None, regs[0], loc);
        self.push_node(Node::Inst(inst));
        regs
    }

    /// Whether the kernel has all registers of an instruction, or they are of mistakes.
    pub(super) fn has_all(&self, op: &Op) -> bool {
        let mut all = true;
        op.visit(&mut |_, reg: Reg| all &= reg == POISON || (reg.0 as usize) < self.values.len());
        all
    }

    /// Appends an instruction with effects.
    pub(super) fn effect(&mut self, op: impl Into<Op>, guard: Option<(Reg, bool)>, loc: Loc) {
        let inst = self.push_inst(op, guard, POISON, loc);
        self.check_writes(inst, loc);
        self.order.see(&self.ops[inst as usize]);
        self.push_node(Node::Inst(inst));
    }

    /// That memory is not written through a pointer that the kernel only reads.
    fn check_writes(&mut self, inst: u32, loc: Loc) {
        let written = match &self.ops[inst as usize] {
            Op::St(op) => &op.address,
            Op::Atom(op) => &op.address,
            Op::AtomCas(op) => &op.address,
            Op::Red(op) => &op.address,
            Op::CpAsyncBulk(op) => &op.to,
            Op::CpReduceAsyncBulk(op) => &op.to,
            _ => return,
        };
        let warpwright_ptx::ir::AddressBase::Reg(base) = written.base else { return };
        let Some(Def::Address(pointer)) = self.values.get(base.0 as usize).map(|value| value.def) else {
            return;
        };
        if self.pointers.get(pointer as usize).is_some_and(|pointer| !pointer.mutable) {
            self.mistake(Code::Parameter, loc, "a store through a pointer that the kernel only reads: declare the argument as `M::Out` or `M::InOut`");
        }
    }

    /// A new value that an instruction with effects (or several instructions) will write.
    pub(super) fn written(&mut self, ty: Type) -> Reg {
        self.define(ty, Def::Variable)
    }

    /// A value written in different places: dropped with its writers where nothing reads it.
    pub(super) fn write(&mut self, variable: Reg, value: Reg, loc: Loc) {
        let ty = super::emit::register_type(self.value(variable).ty);
        let src = self.operand(value, loc);
        let inst = self.push_inst(super::emit::mov(ty, variable, src), None, variable, loc);
        self.push_node(Node::Inst(inst));
    }

    /// Checks that a value may be used here: its block must be one whose closure is running.
    #[inline]
    pub(super) fn usable(&mut self, reg: Reg, loc: Loc) -> bool {
        let open = self.values.get(reg.0 as usize).is_some_and(|value| self.block(value.block).open);
        if !open && reg != POISON {
            self.outside(loc);
        }
        open
    }

    #[cold]
    fn outside(&mut self, loc: Loc) {
        self.mistake(
            Code::Unassigned,
            loc,
            "a value made inside a device closure is used outside of it, where it may never have been made",
        );
    }

    /// The operand that reads a value: an immediate where the value is one.
    pub(super) fn operand(&mut self, reg: Reg, loc: Loc) -> Src {
        match self.constant_of(reg) {
            Some(imm) if has_immediates(self.value(reg).ty) => Src::Imm(imm),
            Some(_) => Src::Reg(self.register(reg, loc)),
            None => Src::Reg(reg),
        }
    }

    /// A register that holds a value, constants included.
    pub(super) fn register(&mut self, reg: Reg, loc: Loc) -> Reg {
        match self.constant_of(reg) {
            Some(imm) => {
                let ty = self.value(reg).ty;
                let imm = match (ty, imm) {
                    (Type::Pred, Imm::Int(v)) => Imm::Int(-v),
                    (_, imm) => imm,
                };
                self.pure(ty, loc, |d| super::emit::mov(super::emit::register_type(ty), d, Src::Imm(imm)))
            }
            None => reg,
        }
    }

    /// Opens a block inside the current one and makes it current.
    pub(super) fn open(&mut self, body_of: Option<u32>) -> (BlockId, BlockId) {
        let id = BlockId(self.blocks.len() as u32);
        let outer = self.current;
        let depth = self.block(outer).depth + 1;
        self.blocks.push(Block { depth, open: true, body_of, nodes: Vec::with_capacity(16) });
        self.current = id;
        (id, outer)
    }

    /// Closes the current block: its values are no longer available.
    pub(super) fn close(&mut self, outer: BlockId) {
        self.blocks[self.current.0 as usize].open = false;
        self.current = outer;
    }

    /// The function's variable that an array is: they come after the parameters.
    pub(super) fn array_variable(&self, array: u32) -> u32 {
        self.params.len() as u32 + array
    }

    pub(super) fn push_node(&mut self, node: Node) {
        self.blocks[self.current.0 as usize].nodes.push(node);
    }

    pub(super) fn address_of(&mut self, pointer: u32) -> warpwright_ptx::ir::Address {
        let stand_in = self.define(Type::B64, Def::Address(pointer));
        warpwright_ptx::ir::Address::reg(stand_in, 0)
    }
}

/// Whether instructions take immediates of the type: there are none for half precision.
fn has_immediates(ty: Type) -> bool {
    !matches!(ty, Type::F16 | Type::BF16 | Type::F16X2 | Type::BF16X2 | Type::Pred)
}
