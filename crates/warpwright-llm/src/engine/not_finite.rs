//! Detection of NaN and infinities: finds the first tensor that has one.
//!
//! The sampling kernels report such a number among the logits by an id that no token has; if the host has the logits,
//! it checks them. Only then is the sequence computed again, step by step, and the output of each step is checked until
//! one has NaN or an infinity. If a weight of this step has one itself, the weight is reported.

use super::error::EngineError;
use super::load::Engine;
use super::pieces::{self, Piece};
use crate::model::Outcome;
use half::{bf16, f16};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use warpwright_graph::{
    CacheShape, EachStep, Element, ExecuteError, Role, StepRun, Store, StoreError, TensorType, planes,
};
use warpwright_runtime::AnyBuffer;

/// A NaN or an infinity in a model's numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NotFinite {
    /// The tensor, by its name in the file or in the graph of the model.
    pub tensor: String,
    /// Whether the tensor is a weight of the file; otherwise it was computed.
    pub weight: bool,
    /// The row of a weight, or the token position of a computed tensor.
    pub row: u64,
    /// The index in the row.
    pub column: u64,
    /// The number.
    pub value: f32,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotFinite { tensor, weight, row, column, value } = self;
        match weight {
            true => write!(
                f,
                "the weight `{tensor}` has {value} in row {row}, column {column}: the file is damaged, or was made so; \
                 take another one"
            ),
            false => write!(
                f,
                "the first is {value} in `{tensor}`, at token {row}, place {column}: numbers of this model become too large \
                 there, of finite weights"
            ),
        }
    }
}

/// The tokens that a step computes: where they begin, how many count, and how many there are with padding.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    tokens: u64,
    size: u64,
}

/// What was found: a number, and the weights of the step that has written it.
type Found = (NotFinite, Vec<String>);

impl Engine {
    /// The error where logits that `outcome` asks for are not finite: those of the last of the first `len` tokens, or of an
    /// earlier one among those that are computed with it. `after` is how many tokens they come after. What the cache holds
    /// is not relied on afterwards.
    pub(super) fn not_finite(&mut self, after: usize, len: usize, outcome: Outcome) -> EngineError {
        let found = self.first_not_finite(len, outcome);
        self.sequence.forget();
        match found {
            Ok(first) => EngineError::NotFinite { after, first: first.map(Box::new) },
            Err(error) => error,
        }
    }

    fn first_not_finite(&mut self, len: usize, outcome: Outcome) -> Result<Option<NotFinite>, EngineError> {
        self.sequence.forget();
        while self.sequence.held < len {
            let held = self.sequence.held;
            // As they were computed: prompts in chunks, what was chosen token by token.
            let given = self.sequence.next_chosen(held).min(len) - held;
            let piece = match given {
                0 => Piece::Token,
                given => pieces::next(&self.chosen, held as u32, given as u32),
            };
            let end = held + piece.tokens() as usize;
            let outcome = match (end == len, outcome, piece) {
                (false, ..) => Outcome::Cached,
                (true, Outcome::AllLogits, Piece::Token) => Outcome::Logits,
                (true, outcome, _) => outcome,
            };
            let size = if let Piece::Chunk { size, .. } = piece { size } else { 1 };
            let span = Span { first: held as u64, tokens: piece.tokens().into(), size: size.into() };
            let found: Mutex<Option<Found>> = Mutex::new(None);
            let mut step = self.piece(piece, outcome)?;
            step.issue(&EachStep(|step: &mut StepRun<'_>| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.is_none() {
                    step.run_library()?;
                    *found = written(step, span)?;
                }
                Ok(())
            }))?;
            let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some((first, weights)) = found {
                let store = self.runner.store_mut();
                let weight = weights.iter().find_map(|name| weight(store, name).transpose()).transpose()?;
                return Ok(Some(weight.unwrap_or(first)));
            }
            self.sequence.held = end;
        }
        Ok(None)
    }
}

/// The first number that is not finite of what a step has written.
fn written(step: &StepRun<'_>, span: Span) -> Result<Option<Found>, ExecuteError> {
    let program = step.program();
    for tensor in step.op().writes() {
        let ty = program.ty(tensor);
        for (part, plane) in step.parts(tensor)?.iter().zip(planes(ty)) {
            let values = floats(step, part)?;
            let of = |at: usize| place(ty, at as u64, plane.len, span);
            let first = values.iter().enumerate().find(|&(at, value)| !value.is_finite() && of(at).is_some());
            let Some((at, &value)) = first else { continue };
            let (row, column) = of(at).unwrap_or_default();
            let weights = step.op().reads().filter(|&read| program.info(read).role == Role::Weight);
            let weights = weights.map(|weight| program.info(weight).name.clone()).collect();
            let tensor = program.info(program.root(tensor)).name.clone();
            return Ok(Some((NotFinite { tensor, weight: false, row, column, value }, weights)));
        }
    }
    Ok(None)
}

/// The position of the token that an element belongs to, and its place there; nothing where it is padding, or of
/// another step's tokens.
fn place(ty: TensorType, at: u64, len: u64, span: Span) -> Option<(u64, u64)> {
    let Span { first, tokens, size } = span;
    let rows = ty.shape.rows().max(1);
    let of_row = (len / rows).max(1);
    let (row, column) = (at / of_row, at % of_row);
    if let Some(cache) = CacheShape::of(ty) {
        let [_, head, position] = cache.place(row).map(u64::from);
        return (first..first + tokens).contains(&position).then_some((position, head * of_row + column));
    }
    // Where there is no row for each, it is that of the last.
    let token = if rows == size { row } else { tokens - 1 };
    (token < tokens).then_some((first + token, column))
}

/// The numbers of a part that has floats; nothing of others.
fn floats(step: &StepRun<'_>, part: &AnyBuffer) -> Result<Vec<f32>, ExecuteError> {
    let stream = step.stream();
    if let Ok(floats) = part.typed::<f32>() {
        return Ok(stream.clone_dtoh(&floats)?);
    }
    if let Ok(halves) = part.typed::<f16>() {
        return Ok(stream.clone_dtoh(&halves)?.iter().map(|x| x.to_f32()).collect());
    }
    if let Ok(halves) = part.typed::<bf16>() {
        return Ok(stream.clone_dtoh(&halves)?.iter().map(|x| x.to_f32()).collect());
    }
    Ok(Vec::new())
}

/// The first number of a weight that is not finite.
fn weight(store: &Store, name: &str) -> Result<Option<NotFinite>, StoreError> {
    let Some((_, ty)) = store.weights().find(|(weight, _)| *weight == name) else { return Ok(None) };
    let Some(bytes) = store.read_weight(name)? else { return Ok(None) };
    let first = |row: u64, values: &mut dyn Iterator<Item = f32>| {
        let found = (0..).zip(values).find(|(_, value)| !value.is_finite());
        found.map(|(column, value)| (row, column, value))
    };
    let found = match ty.element {
        Element::Weights(format) => {
            let (rows, k) = (ty.shape.rows(), ty.shape.columns());
            // The scale of a whole tensor is behind the rows, and finite where it was loaded.
            let rows = bytes.chunks_exact(format.row_bytes(k) as usize).take(rows as usize);
            (0..).zip(rows).find_map(|(row, bytes)| {
                first(row, &mut format.dequantize(1, k, bytes).into_iter().map(|x| x as f32))
            })
        }
        _ => first(0, &mut bytes.as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x))),
    };
    Ok(found.map(|(row, column, value)| NotFinite { tensor: name.into(), weight: true, row, column, value }))
}
