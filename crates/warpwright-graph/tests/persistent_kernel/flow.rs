//! Launches that end early, are read late, or follow one another.

use crate::common::run::device;
use crate::common::{Choice, ModelConfig};
use crate::pair::{Fails, Pair, all, options};
use std::time::{Duration, Instant};
use warpwright_graph::{
    ExecuteError, KernelDispatch, KernelLibrary, Persistent, PersistentError, PersistentOptions, Plan,
    PlanOptions, Store, TensorType, persistent::ScheduleError,
};
use warpwright_kernels::Finish;
use warpwright_runtime::{Device, RuntimeError};

fn pair(device: &Device) -> Pair {
    let model = ModelConfig { max_seq_len: 256, ..ModelConfig::small() };
    Pair::new(device, &model, Choice::ArgMax, &options(2))
}

#[test]
fn a_text_ends_with_its_last_token() {
    let device = device(true);
    let mut pair = pair(&device);
    let expected = pair.execute(10);
    // The first token that has not been there before it, from the third on.
    let at = (2..10).find(|&i| !expected[..i].contains(&expected[i])).expect("tokens that differ");
    let ends = [90, expected[at], 91];
    let mut launch = pair.launch(10, &ends);
    assert_eq!(all(&mut launch), expected[..=at]);
    let finished = launch.finish().expect("an end");
    assert_eq!((finished.tokens as usize, finished.reason), (at + 1, Finish::EndOfText));
    // It goes on behind that, with other ends.
    let mut launch = pair.launch((9 - at).max(1) as u32, &[]);
    assert_eq!(all(&mut launch)[..9 - at], expected[at + 1..]);
}

#[test]
fn a_launch_ends_when_the_host_says_so() {
    let device = device(false);
    let mut pair = pair(&device);
    let expected = pair.execute(128);
    for taken in [0, 1, 2, 5, 30] {
        pair.begin(3, 0);
        let mut launch = pair.launch(128, &[]);
        let mut made: Vec<u32> =
            (0..taken).map(|_| launch.next_token().expect("made").expect("a token")).collect();
        launch.stop().expect("told");
        let counted = made.len();
        let finished = launch.finish().expect("an end");
        made.extend(all(&mut launch));
        // Tokens that were on their way are not lost.
        assert_eq!(made, expected[..finished.tokens as usize], "stopped after {counted}");
        let reason = if finished.tokens == 128 { Finish::Limit } else { Finish::Stopped };
        assert_eq!(finished.reason, reason);
        assert_eq!(pair.stores[1].read_state::<u32>("positions").expect("positions"), [finished.tokens]);
        // What was said to this launch is not said to the next one.
        let rest = 4.min(128 - finished.tokens);
        if rest > 0 {
            let mut next = pair.launch(rest, &[]);
            assert_eq!(all(&mut next), expected[finished.tokens as usize..][..rest as usize]);
        }
    }
}

#[test]
fn a_slow_host_loses_nothing() {
    let device = device(false);
    let mut pair = pair(&device);
    let expected = pair.execute(96);
    // Nobody reads before all have been made, and the next launch is under way.
    let mut launches: Vec<_> = [40, 24, 32].into_iter().map(|tokens| pair.launch(tokens, &[])).collect();
    let made: Vec<u32> = launches.iter_mut().flat_map(all).collect();
    assert_eq!(made, expected);
    pair.assert_same("three launches");
}

#[test]
fn a_launch_that_nobody_reads_ends() {
    let device = device(false);
    let mut pair = pair(&device);
    drop(pair.launch(128, &[]));
    pair.stores[1].stream().synchronize().expect("an end");
    let [made] = pair.stores[1].read_state::<u32>("positions").expect("positions")[..] else { panic!() };
    let expected = pair.execute(made as usize + 3);
    let mut launch = pair.launch(3, &[]);
    assert_eq!(all(&mut launch), expected[made as usize..]);
    // The end of a launch that is over is not that of the next one.
    let mut next = pair.launch(20, &[]);
    drop(launch);
    assert_eq!(all(&mut next).len(), 20);
}

#[test]
fn tokens_are_there_before_the_launch_is_over() {
    let device = device(false);
    let mut pair = pair(&device);
    let expected = pair.execute(128);
    let mut launch = pair.launch(128, &[]);
    let first = launch.next_token().expect("made");
    assert_eq!(first, Some(expected[0]));
    assert!(!launch.is_over());
    let start = Instant::now();
    let mut made = vec![expected[0]];
    while !launch.is_over() {
        made.extend(launch.poll().expect("made"));
        assert!(start.elapsed() < Duration::from_secs(120), "it never ends");
    }
    assert_eq!(made, expected);
    assert_eq!(launch.next_token().expect("nothing"), None);
    // The tokens may be taken when all else is gone.
    pair.begin(3, 0);
    let mut launch = pair.launch(7, &[]);
    drop(pair);
    assert_eq!(all(&mut launch), expected[..7]);
}

#[test]
fn what_cannot_be_launched_is_refused() {
    let device = device(false);
    let mut pair = pair(&device);
    for tokens in [0, 129] {
        let refused = pair.persistent.launch(tokens, &[]);
        assert!(
            matches!(refused, Err(ExecuteError::PersistentLimit { what: "tokens", given, max: 128, .. }) if given == tokens as usize)
        );
    }
    let refused = pair.persistent.launch(1, &[1; 33]);
    assert!(matches!(refused, Err(ExecuteError::PersistentLimit { given: 33, max: 32, .. })));
    let stream = pair.stores[1].stream().clone();
    stream.begin_capture().expect("captures");
    let refused = pair.persistent.launch(1, &[]);
    assert!(
        matches!(refused, Err(ExecuteError::Runtime(error)) if matches!(*error, RuntimeError::Capturing { .. }))
    );
    assert!(stream.end_capture().expect("captured").is_empty());
    let positions = TensorType::new(warpwright_graph::Element::U32, [2]);
    pair.stores[1].resize_state("positions", positions).expect("resized");
    assert!(pair.persistent.has_moved());
    assert!(matches!(pair.persistent.launch(1, &[]), Err(ExecuteError::Moved)));
}

/// A dispatcher that does products itself.
struct OwnProducts;

impl KernelDispatch for OwnProducts {
    fn overrides(&self, family: warpwright_graph::Family) -> bool {
        family == warpwright_graph::Family::MatMul
    }
}

#[test]
fn what_cannot_stay_says_why() {
    let device = device(false);
    let model = ModelConfig::small();
    let bind = |graph, dispatch: &dyn KernelDispatch, options: &PersistentOptions| -> PersistentError {
        let plan = Plan::new(&graph, &PlanOptions::for_device(&device), dispatch).expect("a plan");
        let mut store = Store::new(&device.default_stream());
        let refused: Result<Persistent, _> = plan.bind_persistent(&mut store, options);
        // Nothing was laid out for it.
        assert_eq!(store.statistics().states, 0);
        refused.expect_err("a plan that cannot stay")
    };
    let one = || model.decode(1, Choice::ArgMax);
    let error = bind(model.decode(2, Choice::ArgMax), &KernelLibrary, &options(2));
    assert!(
        error.is_unsupported()
            && matches!(error, PersistentError::Schedule(_) | PersistentError::Token { .. })
    );
    let error = bind(one(), &OwnProducts, &options(2));
    assert!(matches!(error, PersistentError::Schedule(ScheduleError::Overridden { .. })), "{error}");
    let error = bind(one(), &KernelLibrary, &options(0));
    assert!(matches!(error, PersistentError::Blocks { asked: 0, .. }), "{error}");
    let error = bind(one(), &KernelLibrary, &options(60_000));
    assert!(error.is_unsupported() && matches!(error, PersistentError::Blocks { asked: 60_000, .. }));
    let mut other = options(2);
    other.token = "logits".into();
    let error = bind(one(), &KernelLibrary, &other);
    assert!(matches!(&error, PersistentError::Token { name, .. } if name == "logits"), "{error}");
    other.token = "nothing".into();
    let error = bind(one(), &KernelLibrary, &other);
    assert!(matches!(error, PersistentError::Execute(ExecuteError::Unknown { .. })));
    other = options(2);
    other.tokens = 0;
    assert!(matches!(bind(one(), &KernelLibrary, &other), PersistentError::Option(_)));
}

/// Devices that go on after a failure.
mod on_the_vm {
    use super::*;

    #[test]
    fn a_good_launch_follows_one_that_failed() {
        let device = device(true);
        let mut pair = pair(&device);
        let expected = pair.execute(6);
        let mut launch = pair.launch(3, &[]);
        assert_eq!(all(&mut launch), expected[..3]);
        // What fails before it takes the launch with it; whoever reads it is told.
        let fails = device.kernel(&Fails).expect("a kernel");
        fails.bind().launch(pair.stores[1].stream()).expect("issued");
        let mut launch = pair.launch(3, &[]);
        let Err(ExecuteError::Runtime(error)) = launch.next_token() else { panic!("it has not failed") };
        assert!(matches!(&*error, RuntimeError::Failed(failure) if failure.kernel == "fails"), "{error}");
        let Err(ExecuteError::Runtime(error)) = launch.finish() else { panic!("it has not failed") };
        assert!(matches!(*error, RuntimeError::Skipped { .. }), "{error}");
        device.take_findings();
        let mut launch = pair.launch(3, &[]);
        assert_eq!(all(&mut launch), expected[3..]);
        pair.assert_same("after a failure");
        // Where nobody is there to be told, the next launch says so, and the one after it runs.
        fails.bind().launch(pair.stores[1].stream()).expect("issued");
        drop(pair.launch(3, &[]));
        let Err(ExecuteError::Runtime(error)) = pair.persistent.launch(3, &[]) else {
            panic!("nobody was told")
        };
        assert!(matches!(*error, RuntimeError::Failed(_)), "{error}");
        let more = pair.execute(3);
        let mut launch = pair.launch(3, &[]);
        assert_eq!(all(&mut launch), more);
    }
}
