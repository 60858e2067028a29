//! Programs that a decoder runs in the tests.

use crate::rig::{Program, Step, Value, floats, is_complete};
use warpwright_kernels::{Advance, Elementwise, ElementwiseOp, Publish, QuantGemv, RmsNorm, WeightFormat};

/// Length of the vectors.
const D: u32 = 256;

fn elementwise(op: ElementwiseOp, a: usize, b: usize, y: usize) -> Step {
    let kernel = Elementwise { threads: 32, ..Elementwise::new(op, D) };
    let args = [a, b, y].map(Value::Buffer).into_iter().chain([Value::Number(1)]).collect();
    Step::new(kernel, args, [D.div_ceil(4 * 32), 1, 1])
}

fn norm(x: usize, w: usize, y: usize, threads: u32) -> Step {
    let kernel = RmsNorm { threads, ..RmsNorm::new(D, 1e-5) };
    Step::new(kernel, [x, w, y].map(Value::Buffer).into(), [1, 1, 1])
}

fn product(x: usize, w: usize, y: usize, warps: u32) -> Step {
    let kernel = QuantGemv { warps: Some(warps), ..QuantGemv::new(WeightFormat::F32, D, D) };
    let tiles = kernel_grid(&kernel);
    Step::new(kernel, [x, w, y].map(Value::Buffer).into(), [tiles, 1, 1])
}

fn kernel_grid(kernel: &impl warpwright_dsl::any::AnyKernel) -> u32 {
    kernel.launch().grid[0].evaluate(|_| Some(1)).expect("a grid of one column") as u32
}

/// Layers of a norm, a product, and a sum with what was there before, over and over: what one token leaves is where the
/// next begins. Within a phase several stages; some phases are empty.
pub(crate) fn layers() -> Program {
    // 0 and 1: the vector, before and after a layer; 2: normalised; 3: the product; 4 and 5: weights.
    let mut buffers: Vec<_> = (0..4).map(|i| floats(D as usize, i)).collect();
    buffers.push(floats(D as usize, 4));
    buffers.push(floats((D * D) as usize, 5));
    let mut phases = Vec::new();
    for (layer, warps) in [1, 2, 4, 8].into_iter().enumerate() {
        let (from, to) = (layer % 2, 1 - layer % 2);
        phases.push(vec![vec![norm(from, 4, 2, 32 << layer)]]);
        phases.push(Vec::new());
        phases.push(vec![
            vec![product(2, 5, 3, warps)],
            vec![elementwise(ElementwiseOp::Add, from, 3, to)],
            vec![elementwise(ElementwiseOp::Glu, to, 4, 2)],
        ]);
        phases.push(vec![
            vec![elementwise(ElementwiseOp::Mul, 2, 4, 3)],
            Vec::new(),
            vec![norm(3, 4, from, 64)],
        ]);
        phases.push(vec![vec![elementwise(ElementwiseOp::Add, from, to, 3), norm(to, 4, 2, 64)]]);
        phases.push(vec![vec![elementwise(ElementwiseOp::Add, 2, 3, to)]]);
    }
    let program = Program { buffers, phases, mapped: Vec::new(), progress: None };
    assert!(program.phases.iter().flatten().flatten().all(is_complete));
    program
}

/// Buffers of [`counting`], behind those of the layers.
pub(crate) const RING: usize = 8;
pub(crate) const CONTROL: usize = 9;
pub(crate) const PROGRESS: usize = 10;

/// Layers, and behind them a token, which is a number that goes up by one from token to token, and is published. The
/// launch is finished by a token of `end`, by the limit, or by the host.
pub(crate) fn counting(end: u32, limit: u32) -> Program {
    let mut program = layers();
    let (token, ends) = (program.buffers.len(), program.buffers.len() + 1);
    program.buffers.extend([vec![0], vec![end], vec![0; 64], vec![0; 2], vec![0, 0, limit]]);
    assert_eq!(program.buffers.len(), PROGRESS + 1);
    let next = Step::new(Advance::new(1), vec![Value::Buffer(token), Value::Number(1)], [1, 1, 1]);
    let args = [token, ends, RING, CONTROL, PROGRESS].map(Value::Buffer).into();
    let publish = Step::new(Publish::new(64, 1), args, [1, 1, 1]);
    program.phases.push(vec![vec![next], vec![publish]]);
    program.mapped = vec![RING, CONTROL];
    program.progress = Some(PROGRESS);
    assert!(program.phases.iter().flatten().flatten().all(is_complete));
    program
}

/// A vector to which another is added in place, and then once more, and a phase later it is copied.
pub(crate) fn in_place() -> Program {
    let sums =
        vec![vec![elementwise(ElementwiseOp::Add, 0, 1, 0)], vec![elementwise(ElementwiseOp::Add, 0, 1, 0)]];
    let buffers = (0..3).map(|i| floats(D as usize, i)).collect();
    let phases = vec![sums, vec![vec![elementwise(ElementwiseOp::Mul, 0, 1, 2)]]];
    Program { buffers, phases, mapped: Vec::new(), progress: None }
}
