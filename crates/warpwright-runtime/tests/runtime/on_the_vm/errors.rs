//! What fails on the device: who is told, when, and what happens to the rest.

use crate::*;

/// The failure that a call returned.
fn failure(result: Result<()>) -> Failure {
    match result {
        Err(RuntimeError::Failed(failure)) => *failure,
        other => panic!("a failure is expected: {other:?}"),
    }
}

#[test]
fn a_trap_is_told_once_with_its_kernel_and_number() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[1u32]).unwrap();
    gpu.launch(&stream, "add", &x, &x, 1);
    gpu.launch(&stream, "fail", &x, &x, 1);
    let failed = failure(stream.synchronize());
    assert_eq!((&*failed.kernel, failed.launch), ("fail", Some(1)));
    assert_eq!(gpu.device.last_report().unwrap().kernel, "fail");
    stream.synchronize().unwrap();
    gpu.device.synchronize().unwrap();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2], "what came before it was done");
}

#[test]
fn what_is_behind_a_failure_is_not_done() {
    let gpu = Gpu::plain();
    let (stream, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = stream.clone_htod(&[1u32]).unwrap();
    let y = other.clone_htod(&[1u32]).unwrap();
    let hold = gpu.hold(&stream, &x, 1);
    gpu.launch(&stream, "fail", &x, &x, 0);
    gpu.launch(&stream, "add", &x, &x, 10);
    stream.memset_zeros(&x).unwrap();
    other.wait_event(&stream.record_event().unwrap()).unwrap();
    gpu.launch(&other, "add", &y, &y, 10);
    other.memcpy_htod(&[100], &y).unwrap();
    hold.release();
    until(|| other.is_idle());
    // As long as nobody was told, nothing is done.
    gpu.launch(&other, "add", &y, &y, 20);
    until(|| other.is_idle());
    assert_eq!(failure(other.synchronize()).kernel, "fail");
    assert_eq!(gpu.device.statistics().launches, 2, "what is skipped is no launch");
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [2]);
    assert_eq!(other.clone_dtoh(&y).unwrap(), [1]);
    // And from then on all is as usual.
    gpu.launch(&stream, "add", &x, &x, 40);
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [42]);
}

#[test]
fn nothing_that_was_issued_before_somebody_was_told_is_done() {
    let gpu = Gpu::plain();
    let (stream, other) = (gpu.device.new_stream().unwrap(), gpu.device.new_stream().unwrap());
    let x = stream.clone_htod(&[0u32]).unwrap();
    let y = other.clone_htod(&[0u32]).unwrap();
    for _ in 0..5 {
        let hold = gpu.hold(&stream, &x, 0);
        gpu.launch(&stream, "fail", &x, &x, 0);
        let failed = stream.record_event().unwrap();
        other.wait_event(&failed).unwrap();
        // So many that the device is not through with them when the event is known to be complete.
        for _ in 0..5000 {
            other.memset_any(y.as_any(), 1).unwrap();
        }
        hold.release();
        failure(failed.synchronize());
        assert_eq!(other.clone_dtoh(&y).unwrap(), [0]);
    }
    assert_eq!(gpu.device.statistics().memsets, 0);
}

#[test]
fn every_call_that_waits_tells() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[5u32]).unwrap();
    let mut launches = 0;
    let mut fail = || {
        gpu.launch(&stream, "fail", &x, &x, 0);
        launches += 1;
        Some(launches - 1)
    };
    let number = fail();
    assert_eq!(failure(stream.clone_dtoh(&x).map(drop)).launch, number);
    let number = fail();
    let mut data = [9];
    assert_eq!(failure(stream.memcpy_dtoh(&x, &mut data)).launch, number);
    assert_eq!(data, [9]);
    let number = fail();
    assert_eq!(failure(gpu.device.synchronize()).launch, number);
    let number = fail();
    let event = stream.record_event().unwrap();
    assert_eq!(failure(event.synchronize()).launch, number);
    assert!(event.is_complete());
    event.synchronize().unwrap();
    let later = stream.record_event().unwrap();
    later.synchronize().unwrap();
    assert!(matches!(later.elapsed(&event), Err(RuntimeError::Incomplete)), "it was never reached");
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [5]);
}

#[test]
fn the_first_failure_is_the_one() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[5u32]).unwrap();
    let hold = gpu.hold(&stream, &x, 0);
    for _ in 0..3 {
        gpu.launch(&stream, "fail", &x, &x, 0);
    }
    hold.release();
    assert_eq!(failure(stream.synchronize()).launch, Some(1));
    stream.synchronize().unwrap();
}

#[test]
fn a_copy_that_was_skipped_gives_nothing() {
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let x = stream.clone_htod(&[5u32]).unwrap();
    for _ in 0..20 {
        let hold = gpu.hold(&stream, &x, 0);
        gpu.launch(&stream, "fail", &x, &x, 0);
        let (reading, from) = (stream.clone(), x.clone());
        let reader = std::thread::spawn(move || reading.clone_dtoh(&from));
        let issued = stream.record_event().unwrap();
        hold.release();
        let told = issued.synchronize();
        match (reader.join().unwrap(), told) {
            // The reader was told; or it was too late to be, or came when all was well again.
            (Err(RuntimeError::Failed(_)), Ok(())) => {}
            (Err(RuntimeError::Skipped { .. }), Err(RuntimeError::Failed(_))) => {}
            (Ok(data), Err(RuntimeError::Failed(_))) => assert_eq!(data, [5]),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_the_checks_find_is_a_failure() {
    let gpu = Gpu::checked();
    let stream = gpu.device.default_stream();
    let (x, y) = (stream.alloc::<u32>(1).unwrap(), stream.alloc_zeros::<u32>(1).unwrap());
    gpu.launch(&stream, "move", &x, &y, 0);
    let failed = failure(stream.synchronize());
    assert_eq!((&*failed.kernel, failed.launch), ("move", Some(0)));
    let found = gpu.device.take_findings();
    let at = found[0].accesses[0].memory.as_ref().unwrap().address;
    assert_eq!(
        failed.to_string(),
        format!(
            "\
kernel `move` failed (launch 0 of the device): 1 finding
error[initcheck]: a read of global memory that was never written
  --> PTX:30:5
   |
30 |     ld.global.u32 %r2, [%rd3];
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (0,0,0) of block (0,0,0) reads 4 bytes at {at:#x}
   |
   = note: the address is at byte 0 of `p`, of 4 bytes"
        )
    );
    // Without the check it is none.
    let gpu = Gpu::plain();
    let stream = gpu.device.default_stream();
    let (x, y) = (stream.alloc::<u32>(1).unwrap(), stream.alloc_zeros::<u32>(1).unwrap());
    gpu.launch(&stream, "move", &x, &y, 0);
    stream.synchronize().unwrap();
}
