//! Many threads at once.

use crate::*;

#[test]
fn threads_work_side_by_side() {
    let context = Ctx::new(0);
    let handle = context.0;
    let kernels = Kernels::load();
    let shared = alloc(4);
    ok!(cuMemsetD32_v2(shared, 0, 1));
    let (kernels, turn) = (&kernels, std::sync::Mutex::new(()));
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let turn = &turn;
            scope.spawn(move || {
                ok!(cuCtxSetCurrent(handle));
                let stream = stream(thread % 2);
                for round in 0..30u32 {
                    let bytes = 16 + 4 * (round as usize * 37 % 500);
                    let at = match round % 2 {
                        0 => alloc(bytes),
                        _ => out(|at| call!(cuMemAllocAsync(at, bytes, stream))).unwrap(),
                    };
                    ok!(cuMemsetD32Async(at, round, bytes / 4, stream));
                    kernels.add(at, thread, stream);
                    let mut data = vec![0u8; bytes];
                    ok!(cuMemcpyDtoHAsync_v2(pointer_mut(&mut data), at, bytes, stream));
                    let word = |index: usize| u32::from_le_bytes(data[4 * index..][..4].try_into().unwrap());
                    assert_eq!((word(0), word(1), word(bytes / 4 - 1)), (round + thread, round, round));
                    match round % 3 {
                        0 => ok!(cuMemFreeAsync(at, stream)),
                        _ => free(at),
                    }
                    // The default stream is all threads' own.
                    kernels.add(shared, 1, CUstream::NULL);
                    let guard = turn.lock().unwrap();
                    let words = pinned(64);
                    kernels.add(address(words), 3, CUstream::PER_THREAD);
                    ok!(cuStreamSynchronize(CUstream::PER_THREAD));
                    assert_eq!(words[0].load(std::sync::atomic::Ordering::SeqCst), 3);
                    free_pinned(words);
                    drop(guard);
                }
                ok!(cuStreamDestroy_v2(stream));
            });
        }
    });
    assert_eq!(download(shared, 4), 240u32.to_le_bytes());
    free(shared);
}
