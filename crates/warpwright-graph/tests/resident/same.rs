//! Tokens, caches and counters are what executions step by step leave, bit by bit.

use crate::common::run::device;
use crate::common::{Choice, ModelConfig};
use crate::pair::{Pair, all};
use warpwright_graph::PersistentOptions;
use warpwright_kernels::Finish;

fn options(blocks: u32) -> PersistentOptions {
    let mut options = PersistentOptions::default();
    options.blocks = Some(blocks);
    options
}

#[test]
fn a_launch_is_as_many_executions() {
    let device = device(true);
    let mut pair = Pair::new(&device, &ModelConfig::small(), Choice::ArgMax, &options(4));
    let launches = device.statistics().launches;
    let mut launch = pair.launch(8, &[]);
    let tokens = all(&mut launch);
    let finished = launch.finish().expect("an end");
    assert_eq!((finished.tokens, finished.reason), (8, Finish::Limit));
    assert_eq!(device.statistics().launches, launches + 1);
    assert_eq!(tokens, pair.execute(8));
    pair.assert_same("8 tokens");
}
