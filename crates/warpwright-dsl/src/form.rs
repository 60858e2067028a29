//! Affine forms: integers as `Σ coefficient · register (· register) + constant`.
//!
//! Index arithmetic is assumed not to wrap, so sums and products may be split and recombined where that is cheapest.
//! A form has few terms; an expression that would have more is opaque, a term of its own.

use warpwright_ptx::ir::Reg;

/// The second factor of a term that has one.
pub(super) const NO_FACTOR: Reg = Reg(u32::MAX);

/// Most terms that a form may have.
const MAX_TERMS: usize = 8;

/// `coefficient · a · b`, or `coefficient · a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) a: Reg,
    pub(super) b: Reg,
    pub(super) coefficient: i64,
}

impl Term {
    /// `coefficient · a · b`; either factor may be [`NO_FACTOR`].
    pub(super) fn new(a: Reg, b: Reg, coefficient: i64) -> Self {
        Term { a: a.min(b), b: a.max(b), coefficient }
    }

    fn key(&self) -> (Reg, Reg) {
        (self.a, self.b)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FormId(u32);

impl FormId {
    /// The value is its own only term.
    pub(super) const OPAQUE: FormId = FormId(u32::MAX);
    /// The constant zero.
    pub(super) const ZERO: FormId = FormId(0);
}

#[derive(Clone, Copy, Debug)]
struct Form {
    first: u32,
    count: u32,
    constant: i64,
}

/// The forms of a kernel, and their terms in one run each, sorted.
#[derive(Debug)]
pub(super) struct Forms {
    forms: Vec<Form>,
    terms: Vec<Term>,
}

/// A form that is being made: its terms are the last of the arena.
pub(super) struct Sum {
    first: usize,
    pub(super) constant: i64,
}

impl Forms {
    pub(super) fn new() -> Self {
        let mut forms = Vec::with_capacity(128);
        forms.push(Form { first: 0, count: 0, constant: 0 });
        Forms { forms, terms: Vec::with_capacity(256) }
    }

    pub(super) fn terms(&self, id: FormId) -> &[Term] {
        let form = self.forms[id.0 as usize];
        &self.terms[form.first as usize..(form.first + form.count) as usize]
    }

    pub(super) fn constant(&self, id: FormId) -> i64 {
        self.forms[id.0 as usize].constant
    }

    fn finish(&mut self, first: usize, constant: i64) -> FormId {
        let id = FormId(self.forms.len() as u32);
        let count = (self.terms.len() - first) as u32;
        self.forms.push(Form { first: first as u32, count, constant });
        id
    }

    pub(super) fn literal(&mut self, constant: i64) -> FormId {
        if constant == 0 {
            return FormId::ZERO;
        }
        self.finish(self.terms.len(), constant)
    }

    pub(super) fn register(&mut self, reg: Reg) -> FormId {
        self.term(Term { a: reg, b: NO_FACTOR, coefficient: 1 })
    }

    /// `x + scale · y`; `None` if it has too many terms or its numbers are too large.
    pub(super) fn add(&mut self, x: FormId, y: FormId, scale: i64) -> Option<FormId> {
        let constant = self.constant(x).checked_add(self.constant(y).checked_mul(scale)?)?;
        let first = self.terms.len();
        let range = |id: FormId| {
            let form = self.forms[id.0 as usize];
            (form.first as usize, (form.first + form.count) as usize)
        };
        let ((mut i, i_end), (mut j, j_end)) = (range(x), range(y));
        while i < i_end || j < j_end {
            let left = (i < i_end).then(|| self.terms[i]);
            let right = (j < j_end).then(|| self.terms[j]);
            let term = match (left, right) {
                (Some(l), Some(r)) if l.key() == r.key() => {
                    (i, j) = (i + 1, j + 1);
                    let more = r.coefficient.checked_mul(scale);
                    Term { coefficient: more.and_then(|m| l.coefficient.checked_add(m))?, ..l }
                }
                (Some(l), r) if r.is_none_or(|r| l.key() < r.key()) => {
                    i += 1;
                    l
                }
                (_, Some(r)) => {
                    j += 1;
                    Term { coefficient: r.coefficient.checked_mul(scale)?, ..r }
                }
                _ => break,
            };
            if term.coefficient != 0 {
                self.terms.push(term);
            }
        }
        if self.terms.len() - first > MAX_TERMS {
            self.terms.truncate(first);
            return None;
        }
        Some(self.finish(first, constant))
    }

    /// `x · y`, where it is a sum of terms with at most two factors.
    pub(super) fn multiply(&mut self, x: FormId, y: FormId) -> Option<FormId> {
        if self.terms(y).is_empty() {
            return self.add(FormId::ZERO, x, self.constant(y));
        }
        if self.terms(x).is_empty() {
            return self.add(FormId::ZERO, y, self.constant(x));
        }
        let single = |terms: &[Term]| terms.iter().all(|term| term.b == NO_FACTOR);
        if !single(self.terms(x)) || !single(self.terms(y)) {
            return None;
        }
        if self.terms(x).len() * self.terms(y).len() > 4 {
            return None;
        }
        let constant = self.constant(x).checked_mul(self.constant(y))?;
        let mut sum = self.open();
        sum.constant = constant;
        for i in 0..self.terms(x).len() {
            let p = self.terms(x)[i];
            for j in 0..self.terms(y).len() {
                let q = self.terms(y)[j];
                let coefficient = p.coefficient.checked_mul(q.coefficient)?;
                self.add_term(&sum, Term::new(p.a, q.a, coefficient));
            }
            let coefficient = p.coefficient.checked_mul(self.constant(y))?;
            self.add_term(&sum, Term { coefficient, ..p });
        }
        for j in 0..self.terms(y).len() {
            let q = self.terms(y)[j];
            let coefficient = q.coefficient.checked_mul(self.constant(x))?;
            self.add_term(&sum, Term { coefficient, ..q });
        }
        Some(self.close(sum))
    }

    /// Begins a form. No other may be made until it is closed.
    pub(super) fn open(&self) -> Sum {
        Sum { first: self.terms.len(), constant: 0 }
    }

    pub(super) fn close(&mut self, sum: Sum) -> FormId {
        self.finish(sum.first, sum.constant)
    }

    /// Adds a term, merging it with one of the same registers. Addresses wrap, and so do coefficients.
    pub(super) fn add_term(&mut self, sum: &Sum, term: Term) {
        if term.coefficient == 0 {
            return;
        }
        match self.terms[sum.first..].binary_search_by_key(&term.key(), Term::key) {
            Ok(i) => {
                let known = &mut self.terms[sum.first + i].coefficient;
                *known = known.wrapping_add(term.coefficient);
                if *known == 0 {
                    self.terms.remove(sum.first + i);
                }
            }
            Err(i) => self.terms.insert(sum.first + i, term),
        }
    }

    /// The form of a term.
    pub(super) fn term(&mut self, term: Term) -> FormId {
        let first = self.terms.len();
        self.terms.push(term);
        self.finish(first, 0)
    }

    /// The terms of a form but one, without its constant.
    pub(super) fn without(&mut self, id: FormId, term: Term) -> FormId {
        let first = self.terms.len();
        for i in 0..self.terms(id).len() {
            let other = self.terms(id)[i];
            if other != term {
                self.terms.push(other);
            }
        }
        self.finish(first, 0)
    }
}
