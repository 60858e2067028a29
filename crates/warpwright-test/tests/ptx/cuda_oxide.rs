//! The source of `cuda_oxide.ptx`: kernels for cuda-oxide, which reverse blocks of 64 numbers through shared memory.

use cuda_device::{DisjointSlice, SharedArray, kernel, thread};

static TILE: SharedArray<u32, 64> = SharedArray::UNINIT;

#[kernel]
pub fn reverse(x: &[u32], mut y: DisjointSlice<u32>) {
    let (block, i) = (thread::blockIdx_x() as usize, thread::threadIdx_x() as usize);
    TILE[i] = x[64 * block + i];
    thread::sync_threads();
    y.get_mut(thread::index_1d()).map(|y| *y = TILE[63 - i]);
}

#[kernel]
pub fn reverse_unsynchronised(x: &[u32], mut y: DisjointSlice<u32>) {
    let (block, i) = (thread::blockIdx_x() as usize, thread::threadIdx_x() as usize);
    TILE[i] = x[64 * block + i];
    y.get_mut(thread::index_1d()).map(|y| *y = TILE[63 - i]);
}
