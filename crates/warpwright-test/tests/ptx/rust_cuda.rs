//! The source of `rust_cuda.ptx`: kernels for the Rust CUDA project. Slices are two parameters each.

use cuda_std::{kernel, thread};

#[kernel]
pub fn axpy(a: f32, x: &[f32], y: *mut f32) {
    let i = thread::index_1d() as usize;
    if i < x.len() {
        y.add(i).write(a * x[i] + y.add(i).read());
    }
}

#[kernel]
pub fn axpy_unguarded(a: f32, x: &[f32], y: *mut f32) {
    let i = thread::index_1d() as usize;
    y.add(i).write(a * x.as_ptr().add(i).read() + y.add(i).read());
}
