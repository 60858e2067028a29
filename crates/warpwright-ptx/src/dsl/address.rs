//! Addresses: from affine offsets to registers with constants beside them.
//!
//! The address of an access is `base + Σ coefficient · term + constant`. The constant goes into the
//! instruction. Each term is added in the block that defines it, so that what a loop does not change
//! stays outside of it; sums are shared by all accesses of a block and of those inside. A term in a
//! loop's counter makes the pointer count along with the loop.
//!
//! ```text
//!     x[row · 4096 + i + 256], i counts from tid by 512:
//!         before the loop     p = x + row · 16384 + tid · 4
//!         in the loop         ld [p + 1024] … p += 2048
//! ```
//!
//! Invariant: the walk rebuilds every block's list of nodes from the front, so that what is appended
//! to a block around the current one comes before the node that is being walked.

use super::emit;
use super::form::{FormId, NO_FACTOR, Sum, Term};
use super::state::{BODY, Base, BlockId, Bump, Def, ENTRY, Loc, Node, State, Value};
use crate::ir::{self, Address, AddressBase, MulHalf, Src, Symbol, Type, VarId};

/// An address without its constant, with the register that holds it (less `extra`).
struct Entry {
    base: Base,
    narrow: bool,
    terms: Box<[Term]>,
    reg: ir::Reg,
    extra: i64,
}

/// Resolves the addresses of a kernel.
pub(super) struct Resolver<'a> {
    state: &'a mut State,
    /// By block.
    known: Vec<Vec<Entry>>,
    /// The line of the access that is being resolved.
    loc: Loc,
    /// For each stand-in, its address.
    pub(super) addresses: Vec<Address>,
    /// Where the arrays went that became dynamic: their offsets.
    dynamic_offsets: &'a [Option<i64>],
}

impl<'a> Resolver<'a> {
    pub(super) fn new(state: &'a mut State, dynamic_offsets: &'a [Option<i64>], loc: Loc) -> Self {
        let known = state.blocks.iter().map(|_| Vec::new()).collect();
        let addresses = Vec::with_capacity(state.pointers.len());
        Resolver { state, known, loc, addresses, dynamic_offsets }
    }

    /// Resolves everything. Stand-ins become [`Def::Resolved`].
    pub(super) fn run(&mut self) {
        self.walk(ENTRY);
        self.walk(BODY);
    }

    fn walk(&mut self, block: BlockId) {
        let nodes = &mut self.state.blocks[block.0 as usize].nodes;
        let room = Vec::with_capacity(nodes.len() + 8);
        let nodes = std::mem::replace(nodes, room);
        for node in nodes {
            match node {
                Node::Inst(inst) => self.instruction(inst),
                Node::Loop(id) => self.walk(self.state.loops[id as usize].body),
                Node::If(id) => {
                    let (then, otherwise) =
                        (self.state.ifs[id as usize].then, self.state.ifs[id as usize].otherwise);
                    self.walk(then);
                    if let Some(otherwise) = otherwise {
                        self.walk(otherwise);
                    }
                }
                Node::Switch(id) => {
                    for case in self.state.switches[id as usize].cases.clone() {
                        self.walk(case);
                    }
                }
            }
            self.state.blocks[block.0 as usize].nodes.push(node);
        }
    }

    fn instruction(&mut self, inst: u32) {
        let instruction = &self.state.insts[inst as usize];
        if instruction.pure {
            return;
        }
        self.loc = instruction.loc;
        for i in 0..self.state.operands_of(inst).len() {
            let (_, reg) = self.state.operands_of(inst)[i];
            if let Some(&Value { def: Def::Address(pointer), .. }) = self.state.values.get(reg.0 as usize) {
                let address = self.resolve(pointer);
                self.state.values[reg.0 as usize].def = Def::Resolved(self.addresses.len() as u32);
                self.addresses.push(address);
            }
        }
    }

    fn resolve(&mut self, pointer: u32) -> Address {
        let pointer = self.state.pointers[pointer as usize];
        let constant = self.state.forms.constant(pointer.form);
        if self.state.forms.terms(pointer.form).is_empty() {
            return match self.symbol(pointer.base) {
                Ok((symbol, offset)) => Address::symbol(symbol, offset + constant),
                Err(Some(reg)) => Address::reg(reg, constant),
                Err(None) => Address { base: AddressBase::Absolute, offset: constant },
            };
        }
        let terms = self.state.forms.terms(pointer.form);
        let block = self.block_of_sum(pointer.base, terms);
        let (reg, extra) = match self.find(block, pointer.base, terms, pointer.narrow) {
            Some(known) => known,
            None => {
                let terms = terms.to_vec();
                self.materialise(pointer.base, &terms, pointer.narrow)
            }
        };
        Address::reg(reg, constant + extra)
    }

    /// The symbol of a base, or its register.
    fn symbol(&self, base: Base) -> Result<(Symbol, i64), Option<ir::Reg>> {
        match base {
            Base::Reg(reg) => Err(Some(reg)),
            Base::Zero => Err(None),
            Base::Variable(id) => Ok(match self.dynamic_offsets[id as usize] {
                Some(offset) => (Symbol::Global(super::kernel::dynamic_name()), offset),
                None => (Symbol::Local(VarId(self.state.array_variable(id))), 0),
            }),
            Base::Dynamic => Ok((Symbol::Global(super::kernel::dynamic_name()), 0)),
            Base::Constant(id) => Ok((Symbol::Global(self.state.constants[id as usize].name.clone()), 0)),
        }
    }

    fn block_of(&self, reg: ir::Reg) -> BlockId {
        if reg == NO_FACTOR { ENTRY } else { self.state.value(reg).block }
    }

    fn deeper(&self, a: BlockId, b: BlockId) -> BlockId {
        if self.state.block(b).depth > self.state.block(a).depth { b } else { a }
    }

    fn block_of_term(&self, term: &Term) -> BlockId {
        self.deeper(self.block_of(term.a), self.block_of(term.b))
    }

    fn block_of_base(&self, base: Base) -> BlockId {
        match base {
            Base::Reg(reg) => self.block_of(reg),
            _ => ENTRY,
        }
    }

    /// The outermost block that has all of a sum.
    fn block_of_sum(&self, base: Base, terms: &[Term]) -> BlockId {
        let start = self.block_of_base(base);
        terms.iter().fold(start, |block, term| self.deeper(block, self.block_of_term(term)))
    }

    /// A sum that the block computed before.
    fn find(&self, block: BlockId, base: Base, terms: &[Term], narrow: bool) -> Option<(ir::Reg, i64)> {
        self.known[block.0 as usize]
            .iter()
            .find(|entry| entry.base == base && entry.narrow == narrow && *entry.terms == *terms)
            .map(|entry| (entry.reg, entry.extra))
    }

    /// A register that holds `base + terms - extra`, in the outermost block that can compute it.
    fn materialise(&mut self, base: Base, terms: &[Term], narrow: bool) -> (ir::Reg, i64) {
        let base_block = self.block_of_base(base);
        let block = self.block_of_sum(base, terms);
        if let Some(known) = self.find(block, base, terms, narrow) {
            return known;
        }
        let (reg, extra) = self.compute(base, base_block, terms, narrow, block);
        self.known[block.0 as usize].push(Entry { base, narrow, terms: terms.into(), reg, extra });
        (reg, extra)
    }

    fn compute(
        &mut self,
        base: Base,
        base_block: BlockId,
        terms: &[Term],
        narrow: bool,
        block: BlockId,
    ) -> (ir::Reg, i64) {
        if terms.is_empty() {
            return (self.base_register(base, narrow, block), 0);
        }
        let counter = self.state.block(block).body_of.and_then(|id| {
            let induction = self.state.loops[id as usize].induction?;
            (base_block != block).then_some((id, induction))
        });
        let mut rest = Vec::with_capacity(terms.len());
        let mut counted = Vec::new();
        let mut own = Vec::new();
        for &term in terms {
            if self.block_of_term(&term) != block {
                rest.push(term);
                continue;
            }
            match counter {
                Some((_, (i, _))) if term.a == i && term.b != i && self.block_of(term.b) != block => {
                    counted.push(term);
                }
                Some((_, (i, _))) if term.b == i && term.a != i && self.block_of(term.a) != block => {
                    counted.push(Term { a: term.b, b: term.a, ..term });
                }
                _ => own.push(term),
            }
        }
        if own.is_empty()
            && let Some((id, (_, step))) = counter
            && !counted.is_empty()
        {
            return self.count_along(base, &rest, &counted, narrow, (id, step));
        }
        if own.is_empty() && counted.is_empty() {
            // Only the base is this deep.
            own = std::mem::take(&mut rest);
        }
        // One term at a time, so that what comes before it is shared.
        let Some(last) = own.pop() else { return (super::state::POISON, 0) };
        let others: Vec<Term> = terms.iter().filter(|term| **term != last).copied().collect();
        let (sum, extra) = if others.is_empty() && base == Base::Zero {
            (None, 0)
        } else {
            let (reg, extra) = self.materialise(base, &others, narrow);
            (Some(reg), extra)
        };
        (self.add_term(sum, last, narrow, block), extra)
    }

    /// A pointer that a loop counts along: `base + rest + counted`.
    fn count_along(
        &mut self,
        base: Base,
        rest: &[Term],
        counted: &[Term],
        narrow: bool,
        (id, step): (u32, ir::Reg),
    ) -> (ir::Reg, i64) {
        let init = self.state.loops[id as usize].carried[0].init;
        let (init_form, step_form) = (self.state.form_of(init), self.state.form_of(step));
        let mut start = Sum { terms: rest.to_vec(), constant: 0 };
        let mut stride = Sum::default();
        for term in counted {
            self.substitute(&mut start, term, init, init_form);
            self.substitute(&mut stride, term, step, step_form);
        }
        let body = self.state.loops[id as usize].body;
        let (from, extra) = self.materialise(base, &start.terms, narrow);
        let ty = if narrow { Type::U32 } else { Type::U64 };
        let stride = if stride.terms.is_empty() {
            Src::Imm(ir::Imm::Int(stride.constant))
        } else {
            let (reg, extra) = self.materialise(Base::Zero, &stride.terms, narrow);
            let constant = stride.constant + extra;
            let block = self.state.value(reg).block;
            Src::Reg(if constant == 0 { reg } else { self.add_constant(reg, constant, ty, block) })
        };
        let pointer = self.state.define_in(body, ty, Def::Variable);
        self.state.loops[id as usize].bumps.push(Bump { pointer, init: from, step: stride, wide: !narrow });
        (pointer, extra + start.constant)
    }

    /// Adds `term` to `sum`, with `value` (whose form is given) in the place of its first factor.
    fn substitute(&mut self, sum: &mut Sum, term: &Term, value: ir::Reg, form: FormId) {
        let simple = term.b == NO_FACTOR || self.state.forms.terms(form).iter().all(|t| t.b == NO_FACTOR);
        if !simple {
            let (a, b) = (value.min(term.b), value.max(term.b));
            sum.add_term(Term { a, b, coefficient: term.coefficient });
            return;
        }
        let constant = self.state.forms.constant(form).wrapping_mul(term.coefficient);
        for t in self.state.forms.terms(form) {
            let coefficient = t.coefficient.wrapping_mul(term.coefficient);
            let (a, b) = if term.b == NO_FACTOR { (t.a, t.b) } else { (t.a.min(term.b), t.a.max(term.b)) };
            sum.add_term(Term { a, b, coefficient });
        }
        if term.b == NO_FACTOR {
            sum.constant += constant;
        } else {
            sum.add_term(Term { a: term.b, b: NO_FACTOR, coefficient: constant });
        }
    }

    fn base_register(&mut self, base: Base, narrow: bool, block: BlockId) -> ir::Reg {
        let ty = if narrow { Type::U32 } else { Type::U64 };
        let src = match self.symbol(base) {
            Ok((symbol, offset)) => crate::ir::SymbolAddress { symbol, offset }.into(),
            Err(Some(reg)) => return reg,
            Err(None) => Src::Imm(ir::Imm::Int(0)),
        };
        self.state.pure_in(block, ty, self.loc, |d| emit::mov(ty, d, src))
    }

    fn add_constant(&mut self, reg: ir::Reg, constant: i64, ty: Type, block: BlockId) -> ir::Reg {
        let ty_signed = if ty == Type::U64 { Type::S64 } else { Type::S32 };
        self.state.pure_in(block, ty, self.loc, |d| {
            emit::add(ty_signed, d, Src::Reg(reg), Src::Imm(ir::Imm::Int(constant)))
        })
    }

    /// `sum + term`, or the term alone.
    fn add_term(&mut self, sum: Option<ir::Reg>, term: Term, narrow: bool, block: BlockId) -> ir::Reg {
        if narrow { self.add_narrow(sum, term, block) } else { self.add_wide(sum, term, block) }
    }

    fn add_narrow(&mut self, sum: Option<ir::Reg>, term: Term, block: BlockId) -> ir::Reg {
        let loc = self.loc;
        let mut low = |reg: ir::Reg| match self.state.value(reg).ty.bits() {
            64 => self
                .state
                .pure_in(block, Type::U32, loc, |d| emit::cvt(None, Type::U32, Type::U64, d, Src::Reg(reg))),
            _ => reg,
        };
        let a = low(term.a);
        let factor = if term.b == NO_FACTOR { None } else { Some(low(term.b)) };
        let a = match factor {
            Some(b) => self.state.pure_in(block, Type::U32, loc, |d| {
                emit::mul(Some(MulHalf::Lo), Type::S32, d, Src::Reg(a), Src::Reg(b))
            }),
            None => a,
        };
        let coefficient = Src::Imm(ir::Imm::Int(term.coefficient));
        self.state.pure_in(block, Type::U32, loc, |d| match (sum, term.coefficient) {
            (Some(sum), 1) => emit::add(Type::S32, d, Src::Reg(sum), Src::Reg(a)),
            (Some(sum), _) => emit::mad(MulHalf::Lo, Type::S32, d, Src::Reg(a), coefficient, Src::Reg(sum)),
            (None, _) => emit::mul(Some(MulHalf::Lo), Type::S32, d, Src::Reg(a), coefficient),
        })
    }

    /// A register in 64 bits, by its own signedness.
    fn widen(&mut self, reg: ir::Reg, block: BlockId) -> ir::Reg {
        let ty = self.state.value(reg).ty;
        if ty.bits() == 64 {
            return reg;
        }
        let wide = if ty.is_signed() { Type::S64 } else { Type::U64 };
        self.state.pure_in(block, wide, self.loc, |d| emit::cvt(None, wide, ty, d, Src::Reg(reg)))
    }

    fn add_wide(&mut self, sum: Option<ir::Reg>, term: Term, block: BlockId) -> ir::Reg {
        let loc = self.loc;
        let ty = self.state.value(term.a).ty;
        let coefficient = term.coefficient;
        if term.b != NO_FACTOR {
            let product = self.product(term, block);
            return self.scale_add(sum, product, coefficient, block);
        }
        let fits = if ty.is_signed() {
            i32::try_from(coefficient).is_ok()
        } else {
            u32::try_from(coefficient).is_ok()
        };
        if ty.bits() == 32 && fits {
            let imm = Src::Imm(ir::Imm::Int(coefficient));
            return self.state.pure_in(block, Type::U64, loc, |d| match sum {
                Some(sum) => emit::mad(MulHalf::Wide, ty, d, Src::Reg(term.a), imm, Src::Reg(sum)),
                None => emit::mul(Some(MulHalf::Wide), ty, d, Src::Reg(term.a), imm),
            });
        }
        let wide = self.widen(term.a, block);
        self.scale_add(sum, wide, coefficient, block)
    }

    /// `a · b` in 64 bits, shared by all that need it.
    fn product(&mut self, term: Term, block: BlockId) -> ir::Reg {
        let unit = Term { coefficient: 1, ..term };
        let found = self.known[block.0 as usize]
            .iter()
            .find(|entry| entry.base == Base::Zero && !entry.narrow && *entry.terms == [unit]);
        if let Some(entry) = found {
            return entry.reg;
        }
        let (a_type, b_type) = (self.state.value(term.a).ty, self.state.value(term.b).ty);
        let reg = if a_type == b_type && a_type.bits() == 32 {
            self.state.pure_in(block, Type::U64, self.loc, |d| {
                emit::mul(Some(MulHalf::Wide), a_type, d, Src::Reg(term.a), Src::Reg(term.b))
            })
        } else {
            let (a, b) = (self.widen(term.a, block), self.widen(term.b, block));
            self.state.pure_in(block, Type::U64, self.loc, |d| {
                emit::mul(Some(MulHalf::Lo), Type::S64, d, Src::Reg(a), Src::Reg(b))
            })
        };
        let entry = Entry { base: Base::Zero, narrow: false, terms: [unit].into(), reg, extra: 0 };
        self.known[block.0 as usize].push(entry);
        reg
    }

    /// `sum + coefficient · wide`.
    fn scale_add(
        &mut self,
        sum: Option<ir::Reg>,
        wide: ir::Reg,
        coefficient: i64,
        block: BlockId,
    ) -> ir::Reg {
        let scale = Src::Imm(ir::Imm::Int(coefficient));
        if sum.is_none() && coefficient == 1 {
            return wide;
        }
        self.state.pure_in(block, Type::U64, self.loc, |d| match (sum, coefficient) {
            (Some(sum), 1) => emit::add(Type::S64, d, Src::Reg(sum), Src::Reg(wide)),
            (Some(sum), -1) => emit::sub(Type::S64, d, Src::Reg(sum), Src::Reg(wide)),
            (Some(sum), _) => emit::mad(MulHalf::Lo, Type::S64, d, Src::Reg(wide), scale, Src::Reg(sum)),
            (None, _) => emit::mul(Some(MulHalf::Lo), Type::S64, d, Src::Reg(wide), scale),
        })
    }
}
