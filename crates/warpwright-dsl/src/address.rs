//! Address computation: from affine offsets to registers plus constants.
//!
//! The address of an access is `base + Σ coefficient · term + constant`. The constant goes into the instruction. Each
//! term is added in the block that defines it, so loop-invariant terms stay outside the loop. All accesses of a block
//! and of the blocks inside it share sums. If a term contains the loop's counter, the pointer advances with the loop.
//!
//! ```text
//!     x[row · 4096 + i + 256], i counts from tid by 512:
//!         before the loop     p = x + row · 16384 + tid · 4
//!         in the loop         ld [p + 1024] … p += 2048
//! ```
//!
//! The walk takes each block's list of nodes out of the block. Nodes that are appended to the block meanwhile are
//! those that the current node needs before it.

use super::emit;
use super::form::{FormId, NO_FACTOR, Sum, Term};
use super::state::{BODY, Base, BlockId, Bump, Def, ENTRY, Loc, Node, State, Value};
use warpwright_ptx::ir::{self, Address, AddressBase, MulHalf, Src, Symbol, Type, VarId};

/// The offset of an asynchronous copy in global memory has 12 bits.
const NEAR: i64 = 1 << 11;

/// An address without the form's constant, with the register that holds it (less `extra`).
struct Entry {
    base: Base,
    narrow: bool,
    form: FormId,
    reg: ir::Reg,
    extra: i64,
}

/// How a term relates to the block that computes a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermKind {
    /// Known in a block around it.
    Outside,
    /// Counted by the loop whose body it is.
    Counted,
    /// Known in it only.
    Own,
}

/// Resolves the addresses of a kernel.
pub(super) struct Resolver<'a> {
    state: &'a mut State,
    /// By block.
    known: Vec<Vec<Entry>>,
    /// The body has a loop before what is being resolved.
    behind_loop: bool,
    /// What is being resolved is computed behind that loop.
    late: bool,
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
        Resolver { state, known, behind_loop: false, late: false, loc, addresses, dynamic_offsets }
    }

    /// Resolves everything. Stand-ins become [`Def::Resolved`].
    pub(super) fn run(&mut self) {
        self.walk(ENTRY);
        self.walk(BODY);
    }

    fn walk(&mut self, block: BlockId) {
        let nodes = std::mem::take(&mut self.state.blocks[block.0 as usize].nodes);
        // How many nodes go before which.
        let mut before = Vec::new();
        let mut count = 0;
        for (i, &node) in nodes.iter().enumerate() {
            match node {
                Node::Inst(inst) => self.instruction(inst, block),
                Node::Loop(id) => {
                    self.walk(self.state.loops[id as usize].body);
                    self.behind_loop |= block == BODY;
                }
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
                Node::Labelled(id) => self.walk(self.state.labelled[id as usize].body),
                Node::Break(_) => {}
            }
            let appended = self.state.blocks[block.0 as usize].nodes.len();
            if appended > count {
                before.push((i, appended));
                count = appended;
            }
        }
        let list = &mut self.state.blocks[block.0 as usize].nodes;
        let appended = std::mem::replace(list, nodes);
        if before.is_empty() {
            return;
        }
        let nodes = std::mem::replace(list, Vec::with_capacity(list.len() + count));
        let (mut node, mut new) = (0, 0);
        for (i, end) in before {
            list.extend_from_slice(&nodes[node..i]);
            list.extend_from_slice(&appended[new..end]);
            (node, new) = (i, end);
        }
        list.extend_from_slice(&nodes[node..]);
    }

    fn instruction(&mut self, inst: u32, block: BlockId) {
        let instruction = self.state.insts[inst as usize];
        if instruction.pure {
            return;
        }
        let check = self.state.checks.get(inst as usize).copied().flatten();
        self.loc = instruction.loc;
        for i in 0..self.state.operands_of(inst).len() {
            let (_, reg) = self.state.operands_of(inst)[i];
            if let Some(&Value { def: Def::Address(pointer), .. }) = self.state.values.get(reg.0 as usize) {
                let global = matches!(self.state.pointers[pointer as usize].base, Base::Reg(_));
                let address = self.resolve(pointer);
                if let AddressBase::Reg(base) = address.base {
                    self.state.resolve_operand(inst, i, base);
                }
                if let Some(check) = check.filter(|_| global) {
                    self.state.emit_check(check, instruction, &address, block, self.loc);
                }
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
        self.late = false;
        let (reg, extra) = self.materialise(pointer.base, pointer.form, pointer.narrow);
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
    fn block_of_sum(&self, base: Base, form: FormId) -> BlockId {
        let start = self.block_of_base(base);
        let terms = self.state.forms.terms(form).iter();
        terms.fold(start, |block, term| self.deeper(block, self.block_of_term(term)))
    }

    /// A sum that the block computed before.
    fn find(&self, block: BlockId, base: Base, form: FormId, narrow: bool) -> Option<(ir::Reg, i64)> {
        let terms = self.state.forms.terms(form);
        self.known[block.0 as usize]
            .iter()
            .find(|entry| {
                entry.base == base && entry.narrow == narrow && self.state.forms.terms(entry.form) == terms
            })
            .map(|entry| (entry.reg, entry.extra))
    }

    /// A register that holds `base + form - extra`, less the form's constant, in the outermost block that can compute
    /// it. An address that is accessed only after the body's loops is computed there, so it takes no registers inside
    /// them.
    fn materialise(&mut self, base: Base, form: FormId, narrow: bool) -> (ir::Reg, i64) {
        let mut block = self.block_of_sum(base, form);
        let outermost = self.find(block, base, form, narrow);
        // A sum of one term takes about as many registers as the term.
        let saves = self.late || !narrow && self.state.forms.terms(form).len() > 1;
        if outermost.is_none() && block == ENTRY && self.behind_loop && saves {
            (block, self.late) = (BODY, true);
        }
        if let Some(known) = outermost.or_else(|| self.find(block, base, form, narrow)) {
            return known;
        }
        let (reg, extra) = self.compute(base, form, narrow, block);
        self.known[block.0 as usize].push(Entry { base, narrow, form, reg, extra });
        (reg, extra)
    }

    fn kind(&self, term: Term, block: BlockId, counter: Option<ir::Reg>) -> TermKind {
        if self.block_of_term(&term) != block {
            return TermKind::Outside;
        }
        let factor = match counter {
            Some(i) if term.a == i => term.b,
            Some(i) if term.b == i => term.a,
            _ => return TermKind::Own,
        };
        if self.block_of(factor) == block { TermKind::Own } else { TermKind::Counted }
    }

    fn compute(&mut self, base: Base, form: FormId, narrow: bool, block: BlockId) -> (ir::Reg, i64) {
        let Some(&(mut last)) = self.state.forms.terms(form).last() else {
            return (self.base_register(base, narrow, block), 0);
        };
        let counting = self.state.block(block).body_of.and_then(|id| {
            let induction = self.state.loops[id as usize].induction?;
            (self.block_of_base(base) != block).then_some((id, induction))
        });
        let counter = counting.map(|(_, (i, _))| i);
        let (mut own, mut counted) = (false, false);
        for &term in self.state.forms.terms(form) {
            match self.kind(term, block, counter) {
                TermKind::Outside => {}
                TermKind::Counted => counted = true,
                TermKind::Own => (own, last) = (true, term),
            }
        }
        if let Some((id, (i, step))) = counting
            && counted
            && !own
        {
            return self.count_along(base, form, narrow, id, i, step);
        }
        // One term at a time, so that what comes before it is shared.
        let others = self.state.forms.without(form, last);
        let (sum, extra) = if base == Base::Zero && self.state.forms.terms(others).is_empty() {
            (None, 0)
        } else {
            let (reg, extra) = self.materialise(base, others, narrow);
            (Some(reg), extra)
        };
        (self.add_term(sum, last, narrow, block), extra)
    }

    /// A pointer that loop `id` counts along: `i` by `step`.
    fn count_along(
        &mut self,
        base: Base,
        form: FormId,
        narrow: bool,
        id: u32,
        i: ir::Reg,
        step: ir::Reg,
    ) -> (ir::Reg, i64) {
        let looped = &self.state.loops[id as usize];
        let (body, init) = (looped.body, looped.carried[0].init);
        let start = self.with_counter(form, body, i, init, true);
        let stride = self.with_counter(form, body, i, step, false);
        let (mut from, extra) = self.materialise(base, start, narrow);
        let mut extra = extra + self.state.forms.constant(start);
        let ty = if narrow { Type::U32 } else { Type::U64 };
        // Some instructions have room for short offsets only: a longer one is counted along, and accesses nearby
        // are told from there.
        let offset = extra + self.state.forms.constant(form);
        if !narrow && !(-NEAR..NEAR).contains(&offset) {
            let block = self.block_of(from);
            from = self.add_constant(from, offset, ty, block);
            extra -= offset;
        }
        let constant = self.state.forms.constant(stride);
        let stride = if self.state.forms.terms(stride).is_empty() {
            Src::Imm(ir::Imm::Int(constant))
        } else {
            let (reg, extra) = self.materialise(Base::Zero, stride, narrow);
            let constant = constant + extra;
            let block = self.state.value(reg).block;
            Src::Reg(if constant == 0 { reg } else { self.add_constant(reg, constant, ty, block) })
        };
        let pointer = self.state.define_in(body, ty, Def::Variable);
        self.state.loops[id as usize].bumps.push(Bump { pointer, init: from, step: stride, wide: !narrow });
        (pointer, extra)
    }

    /// The terms of `form` with `value` in the place of the counter `i` of a loop; with those that the
    /// loop does not count, or without.
    fn with_counter(
        &mut self,
        form: FormId,
        body: BlockId,
        i: ir::Reg,
        value: ir::Reg,
        others: bool,
    ) -> FormId {
        let value_form = self.state.form_of(value);
        let mut sum = self.state.forms.open();
        for at in 0..self.state.forms.terms(form).len() {
            let term = self.state.forms.terms(form)[at];
            if self.kind(term, body, Some(i)) == TermKind::Counted {
                let factor = if term.a == i { term.b } else { term.a };
                self.substitute(&mut sum, factor, term.coefficient, value, value_form);
            } else if others {
                self.state.forms.add_term(&sum, term);
            }
        }
        self.state.forms.close(sum)
    }

    /// Adds `coefficient · value · factor`, where the value has that form.
    fn substitute(&mut self, sum: &mut Sum, factor: ir::Reg, coefficient: i64, value: ir::Reg, form: FormId) {
        let forms = &mut self.state.forms;
        if factor != NO_FACTOR && forms.terms(form).iter().any(|term| term.b != NO_FACTOR) {
            forms.add_term(sum, Term::new(value, factor, coefficient));
            return;
        }
        for at in 0..forms.terms(form).len() {
            let term = forms.terms(form)[at];
            let other = if factor == NO_FACTOR { term.b } else { factor };
            forms.add_term(sum, Term::new(term.a, other, term.coefficient.wrapping_mul(coefficient)));
        }
        let constant = forms.constant(form).wrapping_mul(coefficient);
        if factor == NO_FACTOR {
            sum.constant = sum.constant.wrapping_add(constant);
        } else {
            forms.add_term(sum, Term::new(factor, NO_FACTOR, constant));
        }
    }

    fn base_register(&mut self, base: Base, narrow: bool, block: BlockId) -> ir::Reg {
        let ty = if narrow { Type::U32 } else { Type::U64 };
        let src = match self.symbol(base) {
            Ok((symbol, offset)) => warpwright_ptx::ir::SymbolAddress { symbol, offset }.into(),
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
        let form = self.state.forms.term(Term { coefficient: 1, ..term });
        if let Some((reg, _)) = self.find(block, Base::Zero, form, false) {
            return reg;
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
        self.known[block.0 as usize].push(Entry { base: Base::Zero, narrow: false, form, reg, extra: 0 });
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
