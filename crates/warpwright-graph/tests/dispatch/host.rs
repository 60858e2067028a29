//! Products on the host, through copies: every fused form that the library has, in every format.

use crate::reference::{Exact, dequantize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use warpwright_graph::{
    Element, ExecuteError, Family, Fusion, KernelDispatch, Matrix, PlanOptions, Products, Program, StepOp,
    StepRun, Tensor, WeightLayout, library,
};

/// Runs products on the host.
#[derive(Default)]
pub(crate) struct HostProducts {
    steps: AtomicU64,
}

impl HostProducts {
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }
}

fn read(step: &StepRun<'_>, tensor: Tensor) -> Result<Vec<f64>, ExecuteError> {
    let values = step.stream().clone_dtoh(&step.buffer::<f32>(tensor)?)?;
    Ok(values.into_iter().map(f64::from).collect())
}

fn write(step: &StepRun<'_>, tensor: Tensor, values: &[f64]) -> Result<(), ExecuteError> {
    let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    Ok(step.stream().memcpy_htod(&values, &step.buffer::<f32>(tensor)?)?)
}

/// The rows that go into the products.
fn activations(step: &StepRun<'_>, products: &Products) -> Result<Vec<f64>, ExecuteError> {
    let mut x = read(step, products.x)?;
    if let Some(norm) = products.norm {
        let weight = read(step, norm.weight)?;
        for row in x.chunks_mut(weight.len()) {
            let square = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
            let scale = 1.0 / (square + f64::from(norm.epsilon)).sqrt();
            row.iter_mut().zip(&weight).for_each(|(v, w)| *v *= scale * w);
        }
    }
    Ok(x)
}

/// Rows times a matrix, and a bias.
fn product(step: &StepRun<'_>, x: &[f64], matrix: &Matrix) -> Result<Vec<f64>, ExecuteError> {
    let ty = step.program().ty(matrix.weight);
    let Element::Weights(format) = ty.element else { return Err(ExecuteError::dispatch("no weights")) };
    let bytes = step.stream().clone_dtoh(&step.weights(matrix.weight, WeightLayout::Rows)?)?;
    let weights = dequantize(format, &bytes);
    let bias = matrix.bias.map(|bias| read(step, bias)).transpose()?;
    let k = ty.shape.columns() as usize;
    let rows =
        x.chunks(k).flat_map(|x| weights.chunks(k).map(move |w| x.iter().zip(w).map(|(x, w)| x * w).sum()));
    let mut y: Vec<f64> = rows.collect();
    if let Some(bias) = bias {
        y.chunks_mut(bias.len()).for_each(|row| row.iter_mut().zip(&bias).for_each(|(y, b)| *y += b));
    }
    Ok(y)
}

impl KernelDispatch for HostProducts {
    /// It takes whatever the library takes.
    fn accepts(&self, fusion: Fusion, step: &StepOp, program: &Program, options: &PlanOptions) -> bool {
        library::accepts(fusion, step, program, options)
    }

    fn overrides(&self, family: Family) -> bool {
        family == Family::MatMul
    }

    fn mat_mul(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        let StepOp::Products(products) = step.op() else { return step.run_library() };
        let x = activations(step, products)?;
        let mut results = Vec::new();
        for matrix in &products.matrices {
            results.push(product(step, &x, matrix)?);
        }
        if let Some(activation) = products.gate {
            let [gate, up] = &mut results[..] else { return Err(ExecuteError::dispatch("gate and up")) };
            gate.iter_mut().zip(up).for_each(|(gate, up)| *gate = activation.value(*gate) * *up);
        }
        for (matrix, mut y) in products.matrices.iter().zip(results) {
            let Some(out) = matrix.out else { continue };
            if let Some(residual) = matrix.residual {
                y.iter_mut().zip(read(step, residual)?).for_each(|(y, r)| *y += r);
            }
            write(step, out, &y)?;
        }
        self.steps.fetch_add(1, Relaxed);
        Ok(())
    }
}
