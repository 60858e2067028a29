//! How a launch of many tokens ends.

use crate::programs::{CONTROL, PROGRESS, RING, counting};
use crate::rig::Run;
use warpwright_kernels::{Assignment, Finish, Publish};

/// Tokens that the ring has got, by the words of `Publish`.
fn published(buffers: &[Vec<u32>]) -> &[u32] {
    &buffers[RING][..buffers[CONTROL][Publish::COUNT as usize] as usize]
}

fn finish(buffers: &[Vec<u32>]) -> Option<Finish> {
    Finish::from_word(buffers[PROGRESS][Publish::FINISHED as usize])
}

#[test]
fn at_a_token_that_ends_a_text() {
    let program = counting(4, 50);
    for assignment in Assignment::ALL {
        for blocks in [1, 2, 7] {
            let outcome = Run::new(blocks, assignment, 40).agrees(&program);
            assert_eq!(published(&outcome.buffers), [1, 2, 3, 4]);
            assert_eq!(finish(&outcome.buffers), Some(Finish::EndOfText));
        }
    }
}

#[test]
fn at_the_limit() {
    let program = counting(100, 3);
    for assignment in Assignment::ALL {
        let outcome = Run::new(4, assignment, 40).seed(7).agrees(&program);
        assert_eq!(published(&outcome.buffers), [1, 2, 3]);
        assert_eq!(finish(&outcome.buffers), Some(Finish::Limit));
    }
}

#[test]
fn at_the_number_of_tokens() {
    let outcome = Run::new(4, Assignment::Static, 2).agrees(&counting(100, 50));
    assert_eq!(published(&outcome.buffers), [1, 2]);
    assert_eq!(finish(&outcome.buffers), None);
}

/// The host stops a launch while it runs: what it leaves is what so many tokens leave, launch by launch.
#[test]
fn when_the_host_says_so() {
    let program = counting(1000, 1000);
    for (assignment, after) in Assignment::ALL.into_iter().flat_map(|a| [0, 1, 5].map(|after| (a, after))) {
        let begun = Run::new(3, assignment, 60).begun(&program, |_| (), |_| ());
        begun.await_word(CONTROL, Publish::COUNT as usize, after);
        assert!(begun.memory[CONTROL].poke(Publish::STOP as usize, 1));
        let outcome = begun.end();
        assert!(outcome.report.is_clean(), "{}", outcome.report);
        let tokens = published(&outcome.buffers).len() as u32;
        assert!(tokens > 0 && tokens >= after);
        let launched = program.launched(tokens);
        assert_eq!(outcome.buffers[..CONTROL], launched[..CONTROL], "after {after}");
        if tokens < 60 {
            assert_eq!(finish(&outcome.buffers), Some(Finish::Stopped));
        }
    }
}
