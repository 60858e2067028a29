//! Random sequences of operations on several streams, held against a model that does them one after the other.
//!
//! Streams are joined by events so that the order of what touches the same bytes is given; everything else may come in
//! any order, and must come to the same.

use crate::rows::Random;
use crate::*;

const BLOCK: usize = 256;

/// Bytes of one block: a device's, pinned, or managed.
struct Block {
    at: u64,
    kind: usize,
    model: Vec<u8>,
    /// Reached when the last operation on it is done.
    last: CUevent,
}

fn sequence(seed: u64, length: usize) {
    let _context = Ctx::new((seed % 2) as i32);
    let kernels = Kernels::load();
    let mut random = Random::new(seed + 1);
    let streams: Vec<CUstream> =
        (0..3).map(stream_of).chain([CUstream::NULL, CUstream::PER_THREAD]).collect();
    let mut blocks: Vec<Block> = (0..6)
        .map(|index| {
            let kind = index % 3;
            let at = match kind {
                0 => alloc(BLOCK),
                1 => address(pinned(BLOCK / 4)),
                _ => out(|at| call!(cuMemAllocManaged(at, BLOCK, 1))).unwrap(),
            };
            ok!(cuMemsetD8_v2(at, index as u8, BLOCK));
            Block { at, kind, model: vec![index as u8; BLOCK], last: event() }
        })
        .collect();
    ok!(cuCtxSynchronize());
    for step in 0..length {
        let stream = streams[random.below(streams.len())];
        let (a, b) = (random.below(blocks.len()), random.below(blocks.len()));
        for block in [a, b] {
            ok!(cuStreamWaitEvent(stream, blocks[block].last, 0));
        }
        let (to, from) = (4 * random.below(BLOCK / 4), 4 * random.below(BLOCK / 4));
        let room = BLOCK - to.max(from);
        let bytes = 1 + random.below(room);
        let (target, source) = (blocks[a].at + to as u64, blocks[b].at + from as u64);
        match random.below(7) {
            0 => {
                ok!(cuMemcpyAsync(target, source, bytes, stream));
                let copied = blocks[b].model[from..from + bytes].to_vec();
                blocks[a].model[to..to + bytes].copy_from_slice(&copied);
            }
            1 => {
                let value = random.below(256) as u8;
                ok!(cuMemsetD8Async(target, value, bytes, stream));
                blocks[a].model[to..to + bytes].fill(value);
            }
            2 => {
                let value = random.below(1 << 20) as u32;
                kernels.add(target, value, stream);
                let word = &mut blocks[a].model[to..to + 4];
                let sum = u32::from_le_bytes((&*word).try_into().unwrap()).wrapping_add(value);
                word.copy_from_slice(&sum.to_le_bytes());
            }
            3 => {
                let data: Vec<u8> = (0..bytes).map(|_| random.below(256) as u8).collect();
                ok!(cuMemcpyHtoDAsync_v2(target, pointer(&data), bytes, stream));
                blocks[a].model[to..to + bytes].copy_from_slice(&data);
            }
            4 => {
                let mut data = vec![0; bytes];
                ok!(cuMemcpyDtoHAsync_v2(pointer_mut(&mut data), source, bytes, stream));
                assert_eq!(data, blocks[b].model[from..from + bytes], "seed {seed}, step {step}");
            }
            5 => {
                let value = random.below(1 << 20) as u32;
                // Of managed memory that is refused, and nothing is done.
                let is_managed = blocks[a].kind == 2;
                let expected = if is_managed { INVALID } else { OK };
                assert_eq!(call!(cuStreamWriteValue32_v2(stream, target, value, 0)), expected);
                if !is_managed {
                    blocks[a].model[to..to + 4].copy_from_slice(&value.to_le_bytes());
                }
            }
            _ => {
                // Through memory that lives in the stream.
                let between = out(|at| call!(cuMemAllocAsync(at, bytes, stream))).unwrap();
                ok!(cuMemcpyDtoDAsync_v2(between, source, bytes, stream));
                ok!(cuMemcpyDtoDAsync_v2(target, between, bytes, stream));
                ok!(cuMemFreeAsync(between, stream));
                let copied = blocks[b].model[from..from + bytes].to_vec();
                blocks[a].model[to..to + bytes].copy_from_slice(&copied);
            }
        }
        for block in [a, b] {
            ok!(cuEventRecord(blocks[block].last, stream));
        }
    }
    ok!(cuCtxSynchronize());
    for block in blocks {
        assert_eq!(download(block.at, BLOCK), block.model, "seed {seed}");
        ok!(cuEventDestroy_v2(block.last));
        match block.kind {
            1 => free_pinned_at(block.at),
            _ => free(block.at),
        }
    }
    streams[..3].iter().for_each(|stream| ok!(cuStreamDestroy_v2(*stream)));
}

fn stream_of(index: u32) -> CUstream {
    stream(index % 2)
}

#[test]
fn any_sequence_is_what_a_model_does_in_order() {
    for seed in 0..12 {
        sequence(seed, 200);
    }
}
