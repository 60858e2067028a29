//! Copies and fills of bytes in a row.

use crate::*;
use std::sync::atomic::Ordering::SeqCst;

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|n| ((n * 7 + seed) % 251) as u8).collect()
}

#[test]
fn bytes_go_everywhere_and_come_back() {
    let _context = Ctx::new(0);
    // More than is copied aside, and not a multiple of anything.
    for count in [1, 3, 4097, (1 << 20) + 13] {
        let data = bytes(count, count);
        let (a, b) = (alloc(count + 2), alloc(count + 5));
        let mut back = vec![0; count];
        ok!(cuMemcpyHtoDAsync_v2(a + 1, pointer(&data), count, CUstream::PER_THREAD));
        ok!(cuMemcpyDtoDAsync_v2(b + 3, a + 1, count, CUstream::PER_THREAD));
        ok!(cuMemcpyDtoHAsync_v2(pointer_mut(&mut back), b + 3, count, CUstream::PER_THREAD));
        assert!(back == data, "asynchronously, {count} bytes");
        ok!(cuMemsetD8_v2(a, 0xee, count + 2));
        ok!(cuMemcpyDtoD_v2(a, b + 3, count));
        assert!(download(a, count) == data && download(a + count as u64, 2) == [0xee; 2]);
        // Addresses say what they are.
        ok!(cuMemcpy(address(&back), a, 1));
        ok!(cuMemcpy(b, address(&data), count));
        ok!(cuMemcpy(a, b, count));
        back.fill(0);
        ok!(cuMemcpyAsync(address(&back), a, count, CUstream::NULL));
        assert!(back == data, "by addresses, {count} bytes");
        let mut other = vec![0; count];
        ok!(cuMemcpy(pointer_mut(&mut other).expose_provenance() as u64, address(&data), count));
        assert!(other == data, "from the host to the host");
        [a, b].into_iter().for_each(free);
    }
}

#[test]
fn ranges_that_overlap_are_copied_whole() {
    let _context = Ctx::new(0);
    let data = bytes(100_000, 1);
    let at = alloc(data.len());
    for (to, from) in [(1u64, 0u64), (0, 1), (40_000, 39_000), (39_000, 40_000), (7, 7)] {
        upload(at, &data);
        ok!(cuMemcpyDtoD_v2(at + to, at + from, 50_000));
        assert!(download(at + to, 50_000) == data[from as usize..][..50_000], "{from} to {to}");
    }
    free(at);
}

#[test]
fn what_is_out_of_range_is_refused() {
    let _context = Ctx::new(0);
    let at = alloc(64);
    let pinned_words = pinned(4);
    let mut host = [0u8; 128];
    let stream = stream(1);
    for (what, found) in [
        ("past the end", call!(cuMemcpyHtoD_v2(at + 1, pointer(&host), 64))),
        ("past the end, the other way", call!(cuMemcpyDtoH_v2(pointer_mut(&mut host), at, 65))),
        ("far past", call!(cuMemcpyDtoD_v2(at, at, usize::MAX))),
        ("before", call!(cuMemcpyDtoD_v2(at - 1, at, 1))),
        ("from null", call!(cuMemcpyHtoD_v2(at, std::ptr::null(), 4))),
        ("to null", call!(cuMemcpyDtoH_v2(std::ptr::null_mut(), at, 4))),
        ("device null", call!(cuMemcpyHtoD_v2(0, pointer(&host), 4))),
        ("asynchronously", call!(cuMemcpyHtoDAsync_v2(at, pointer(&host), 65, stream))),
        ("part pinned", call!(cuMemcpyHtoD_v2(at, pointer(pinned_words), 64))),
        ("fill", call!(cuMemsetD8_v2(at + 60, 1, 5))),
        ("fill words", call!(cuMemsetD32_v2(at, 1, 17))),
        ("words at odd addresses", call!(cuMemsetD32_v2(at + 2, 1, 1))),
        ("half words at odd addresses", call!(cuMemsetD16_v2(at + 1, 1, 1))),
        ("far too many words", call!(cuMemsetD32_v2(at, 1, usize::MAX / 2))),
    ] {
        assert_eq!(found, INVALID, "{what}");
    }
    // Nothing is nothing, wherever it is.
    ok!(cuMemcpyHtoD_v2(at + 1000, std::ptr::null(), 0));
    ok!(cuMemsetD8_v2(at + 1000, 1, 0));
    let bad = CUstream(0x1234);
    assert_eq!(call!(cuMemcpyHtoDAsync_v2(at, pointer(&host), 4, bad)), Status::INVALID_HANDLE);
    ok!(cuStreamDestroy_v2(stream));
    assert_eq!(call!(cuMemsetD8Async(at, 0, 4, stream)), Status::INVALID_HANDLE);
    free(at);
    free_pinned(pinned_words);
}

#[test]
fn fills_are_of_their_width() {
    let _context = Ctx::new(0);
    let at = alloc(4096);
    ok!(cuMemsetD8_v2(at, 0x11, 4096));
    ok!(cuMemsetD16Async(at + 2, 0x2322, 3, CUstream::NULL));
    ok!(cuMemsetD32Async(at + 12, 0x4746_4544, 2, CUstream::NULL));
    ok!(cuMemsetD8Async(at + 21, 0x99, 1, CUstream::NULL));
    let expected = [
        0x11, 0x11, 0x22, 0x23, 0x22, 0x23, 0x22, 0x23, 0x11, 0x11, 0x11, 0x11, 0x44, 0x45, 0x46, 0x47, 0x44,
        0x45, 0x46, 0x47, 0x11, 0x99, 0x11, 0x11,
    ];
    assert_eq!(download(at, 24), expected);
    // Rows.
    ok!(cuMemsetD2D16_v2(at, 100, 0x5150, 2, 3));
    let found = download(at, 300);
    for row in 0..3 {
        assert_eq!(found[100 * row..][..5], [0x50, 0x51, 0x50, 0x51, if row == 0 { 0x22 } else { 0x11 }]);
    }
    for (what, found) in [
        ("rows that overlap", call!(cuMemsetD2D32_v2(at, 4, 0, 2, 2))),
        ("an odd pitch", call!(cuMemsetD2D32_v2(at, 10, 0, 2, 2))),
        ("too many rows", call!(cuMemsetD2D8_v2(at, 1024, 0, 1, 5))),
    ] {
        assert_eq!(found, INVALID, "{what}");
    }
    ok!(cuMemsetD2D8_v2(at, 1024, 7, 1024, 4));
    assert!(download(at, 4096) == [7; 4096]);
    free(at);
}

#[test]
fn the_clients_memory_is_its_own_again_when_a_call_returns() {
    // A kernel holds the stream up, so nothing can have been copied when the calls return.
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let flag = pinned(1);
    let (at, stream) = (alloc(1 << 10), stream(1));
    kernels.store_after(&flag[0], at + 1020, 1, stream);
    let mut data = bytes(1000, 5);
    ok!(cuMemcpyHtoDAsync_v2(at, pointer(&data), 1000, stream));
    data.fill(0);
    assert_eq!(call!(cuStreamQuery(stream)), Status::NOT_READY);
    set(&flag[0]);
    // This one has to wait.
    ok!(cuMemcpyDtoHAsync_v2(pointer_mut(&mut data), at, 1000, stream));
    assert_eq!(data, bytes(1000, 5));
    ok!(cuStreamDestroy_v2(stream));
    free(at);
    free_pinned(flag);
}

#[test]
fn pinned_memory_is_copied_when_its_turn_comes() {
    let _context = Ctx::new(0);
    let kernels = Kernels::load();
    let words = pinned(8);
    let (at, stream) = (alloc(64), stream(1));
    ok!(cuMemsetD8Async(at, 0, 64, stream));
    kernels.store_after(&words[0], at + 32, 9, stream);
    words[1].store(1, SeqCst);
    ok!(cuMemcpyHtoDAsync_v2(at, pointer(&words[1..2]), 4, stream));
    ok!(cuMemcpyDtoHAsync_v2(words[2..].as_ptr().cast_mut().cast(), at, 4, stream));
    ok!(cuMemcpyDtoHAsync_v2(words[3..].as_ptr().cast_mut().cast(), at + 32, 4, stream));
    // Both returned at once, and what is copied is what is there when the kernel is over.
    words[1].store(2, SeqCst);
    assert_eq!((words[2].load(SeqCst), words[3].load(SeqCst)), (0, 0));
    set(&words[0]);
    ok!(cuStreamSynchronize(stream));
    assert_eq!((words[2].load(SeqCst), words[3].load(SeqCst)), (2, 9));
    ok!(cuStreamDestroy_v2(stream));
    free(at);
    free_pinned(words);
}

#[test]
fn variables_of_modules_are_memory() {
    let _context = Ctx::new(0);
    let table = Kernels::load().table();
    let data = bytes(64, 3);
    upload(table, &data);
    assert_eq!(download(table + 1, 63), data[1..]);
    assert_eq!(call!(cuMemcpyHtoD_v2(table, pointer(&data), 65)), INVALID);
    assert_eq!(call!(cuMemFree_v2(table)), INVALID);
}
