//! What fails while the device runs: it is told by every call that waits, and names the launch.

use crate::{Gpu, failure};
use warpwright_runtime::*;
use warpwright_testing::Apart;

fn process(test: &str) -> Option<Apart> {
    Apart::new(test).map(|apart| apart.driver("80,90"))
}

#[test]
fn errors_stay_with_their_device() {
    if let Some(apart) = process("errors::errors_stay_with_their_device") {
        return apart.run().passed();
    }
    let (gpu, other) = (Gpu::new(0), Gpu::new(1));
    let x = gpu.stream.clone_htod(&[1u32]).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    gpu.stream.synchronize().unwrap();
    gpu.launch("fail", &x, &x, 0).unwrap();
    let failed = failure(gpu.stream.synchronize());
    assert_eq!((&*failed.kernel, failed.launch, &failed.last), ("fail", Some(1), &None));
    assert!(failed.lost);
    // Whoever waits is told, again and again, and nothing comes of what is issued.
    let again = failure(gpu.device.synchronize());
    assert_eq!((again.launch, again.message), (failed.launch, failed.message));
    assert!(failure(gpu.stream.clone_dtoh(&x).map(drop)).lost);
    let launches = gpu.device.statistics().launches;
    // It may be refused at once, or be told of by who waits.
    if gpu.launch("add", &x, &x, 1).is_ok() {
        assert!(failure(gpu.stream.synchronize()).lost);
    }
    assert_eq!(gpu.device.statistics().launches, launches);
    // Its memory is given back without a word, and the other device goes on.
    drop((x, gpu));
    let y = other.stream.clone_htod(&[1u32]).unwrap();
    other.launch("add", &y, &y, 1).unwrap();
    assert_eq!(other.stream.clone_dtoh(&y).unwrap(), [2]);
}

/// Three launches, of which the second fails; what is said of it when somebody waits.
fn second_of_three(gpu: &Gpu) -> Failure {
    let x = gpu.stream.clone_htod(&[1u32]).unwrap();
    let flags = gpu.device.alloc_mapped::<u32>(2).unwrap();
    flags.set(0, 1).unwrap();
    let told: Vec<_> = [("spin", flags.buffer()), ("fail", &x), ("add", &x)]
        .into_iter()
        .map(|(kernel, q)| gpu.launch(kernel, &x, q, 1))
        .collect();
    let waited = gpu.stream.synchronize();
    let mut all = told.into_iter().chain([waited]).filter_map(Result::err);
    match all.next() {
        Some(RuntimeError::Failed(failure)) => *failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_of_the_launches_since_the_last_wait_has_failed() {
    if let Some(apart) = process("errors::one_of_the_launches_since_the_last_wait_has_failed") {
        return apart.run().passed();
    }
    let failed = second_of_three(&Gpu::new(1));
    // The last is the one that was known when the error came up.
    let first = failed.launch.expect("a launch");
    let last = failed.last.as_ref().map_or(first, |(_, number)| *number);
    assert!(failed.lost && first <= 1 && (1..3).contains(&last), "{failed}");
}

#[test]
fn launches_that_wait_for_themselves_name_the_one() {
    if let Some(apart) = process("errors::launches_that_wait_for_themselves_name_the_one") {
        return apart.run().passed();
    }
    let mut config = CudaConfig::new(1);
    assert!(!config.sync_launches);
    config.sync_launches = true;
    let failed = second_of_three(&Gpu::with(config));
    assert_eq!((&*failed.kernel, failed.launch, failed.last), ("fail", Some(1), None));
}

#[test]
fn the_environment_makes_launches_wait_for_themselves() {
    if let Some(apart) = process("errors::the_environment_makes_launches_wait_for_themselves") {
        return apart.env("WARPWRIGHT_SYNC_LAUNCHES", "1").run().passed();
    }
    let failed = second_of_three(&Gpu::new(1));
    assert_eq!((&*failed.kernel, failed.launch, failed.last), ("fail", Some(1), None));
}

#[test]
fn what_never_ran_is_an_error_of_its_own() {
    if let Some(apart) = process("errors::what_never_ran_is_an_error_of_its_own") {
        return apart.run().passed();
    }
    // PTX that the verifier accepts, for a device that is newer than this one.
    let gpu = Gpu::new(0);
    let newer = gpu.device.load_ptx(".version 7.8\n.target sm_90\n.address_size 64\n.entry k() { ret; }");
    assert!(newer.is_err());
    let x = gpu.stream.clone_htod(&[1u32]).unwrap();
    gpu.launch("add", &x, &x, 1).unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&x).unwrap(), [2], "nothing is lost by a module that is refused");
}
