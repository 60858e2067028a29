//! Tokens that are handed to the host, on the device of the test: what is written and why it ends; and a
//! kernel for many tokens, which a host thread reads and stops.

use std::time::{Duration, Instant};
use warpwright_dsl::any::AnyKernel;
use warpwright_dsl::*;
use warpwright_kernels::{Finish, Publish, PublishArgs};
use warpwright_ptx::ir::Arch;
use warpwright_runtime::{Buffer, Event, HostBuffer, Stream, VmConfig};
use warpwright_test::KernelTest;
use warpwright_testing::{RunHere, orders};
use warpwright_vm::{Options, Schedule};

/// What a step begins with.
#[derive(Clone)]
struct Step {
    token: u32,
    ends: Vec<u32>,
    stop: u32,
    published: u32,
    made: u32,
    limit: u32,
}

const OPEN: u32 = 0xdead_beef;

/// Runs a step and holds it to what is said of it; `finish` is why it ends.
fn holds(sm: u16, capacity: u32, step: &Step, finish: Option<Finish>) {
    let Step { token, ref ends, stop, published, made, limit } = *step;
    let publish = Publish::new(capacity, ends.len() as u32);
    let padded = if ends.is_empty() { vec![token] } else { ends.clone() };
    let ran = KernelTest::new(&publish)
        .arch(Arch::sm(sm))
        .input("tokens", &[token])
        .input("ends", &padded)
        .input("ring", &vec![OPEN; capacity as usize])
        .input("control", &[stop, published])
        .input("progress", &[made, 0, limit])
        .run_here()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut ring = vec![OPEN; capacity as usize];
    ring[(published % capacity) as usize] = token;
    assert_eq!(ran.output::<u32>("ring"), ring);
    assert_eq!(ran.output::<u32>("control"), [stop, published.wrapping_add(1)]);
    let word = finish.map_or(0, Finish::word);
    assert_eq!(ran.output::<u32>("progress"), [made + 1, word, limit], "{finish:?} of {ends:?}, {stop}");
    assert_eq!(Finish::from_word(word), finish);
}

fn tokens_take_their_places_and_end_for_a_reason() {
    let step = Step { token: 7, ends: vec![], stop: 0, published: 0, made: 0, limit: 10 };
    for sm in [75, 80, 90] {
        holds(sm, 8, &step, None);
        // No id ends a text where there is none.
        holds(sm, 1, &Step { token: 0, ..step.clone() }, None);
        // The place goes round the ring, and the count round its word.
        for published in [5, 8, 15, u32::MAX - 1, u32::MAX] {
            holds(sm, 8, &Step { published, ..step.clone() }, None);
        }
        // An id anywhere in a list that is longer than a warp.
        for (count, at) in [(1, 0), (2, 1), (31, 30), (32, 31), (33, 32), (100, 40), (100, 99)] {
            let mut ends: Vec<u32> = (1000..1000 + count).collect();
            holds(sm, 4, &Step { ends: ends.clone(), ..step.clone() }, None);
            ends[at] = step.token;
            holds(sm, 4, &Step { ends, ..step.clone() }, Some(Finish::EndOfText));
        }
        for stop in [1, u32::MAX, 1 << 31] {
            holds(sm, 4, &Step { stop, ..step.clone() }, Some(Finish::Stopped));
        }
        holds(sm, 4, &Step { made: 8, ..step.clone() }, None);
        for made in [9, 10, 1000] {
            holds(sm, 4, &Step { made, ..step.clone() }, Some(Finish::Limit));
        }
        // Of several reasons the one that says most of the text.
        let last = Step { made: 9, stop: 1, ends: vec![3, 7], ..step.clone() };
        holds(sm, 4, &last, Some(Finish::EndOfText));
        holds(sm, 4, &Step { ends: vec![3], ..last }, Some(Finish::Stopped));
    }
    assert_eq!(Finish::from_word(4), None);
}

fn what_publishing_cannot_be_is_said() {
    let refused = |publish: Publish| match AnyKernel::build(&publish, Arch::sm(80)) {
        Err(BuildError::Field { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    for capacity in [0, 3, 1000, 1 << 25, u32::MAX] {
        assert_eq!(refused(Publish::new(capacity, 1)), "capacity");
    }
    assert_eq!(refused(Publish::new(8, 1025)), "ends");
}

/// Makes tokens 1, 2, 3 and so on, and publishes each, until it is told that none follows.
struct Many(Publish);

// SAFETY: no index is beyond the lengths that `args` says.
#[allow(unsafe_code, reason = "a promise of a kernel")]
unsafe impl Bounded for Many {}

impl AnyKernel for Many {
    fn bounded(&self) -> Option<&dyn Bounded> {
        Some(self)
    }

    fn entry(&self) -> String {
        "many".into()
    }

    fn args(&self) -> Vec<ArgDesc> {
        let token =
            |arg: ArgDesc| if arg.name == "tokens" { ArgDesc::in_out::<u32>("tokens", 1) } else { arg };
        AnyKernel::args(&self.0).into_iter().map(token).collect()
    }

    fn launch(&self) -> LaunchRule {
        LaunchRule::new(64)
    }

    fn body(&self, k: K<'_>) {
        let team = k.teams(1);
        let (tokens, ends) = (k.ptr_mut("tokens"), k.ptr("ends"));
        let [ring, control, progress] = ["ring", "control", "progress"].map(|name| k.ptr_mut(name));
        let [zero, one] = [0, 1].map(|n| k.u32(n));
        let publish = || Kernel::body(&self.0, k, PublishArgs { tokens, ends, ring, control, progress });
        k.when(team.number().eq(0), || {
            let running = || progress.ld(Publish::FINISHED).eq(0);
            k.while_(running, || {
                k.when(k.lane().eq(0), || tokens.st(0, progress.ld(Publish::TOKENS) + 1));
                team.sync();
                team.run([zero; 3], [one; 3], publish);
                team.sync();
            });
        });
    }
}

/// A launch of [`Many`] and what the host has of it.
struct Running {
    stream: Stream,
    ring: HostBuffer<u32>,
    control: HostBuffer<u32>,
    progress: Buffer<u32>,
    over: Event,
}

fn start(capacity: u32, end: u32, limit: u32, options: &Options) -> Running {
    let mut config = VmConfig { options: *options, ..VmConfig::default() };
    config.device.arch = Arch::sm(80);
    let device = warpwright_testing::device(config);
    let stream = device.default_stream();
    let many = device.kernel(&Many(Publish::new(capacity, 1))).unwrap_or_else(|error| panic!("{error}"));
    let ring = device.alloc_mapped::<u32>(capacity as usize).expect("memory");
    let control = device.alloc_mapped::<u32>(2).expect("memory");
    let tokens = stream.alloc_zeros::<u32>(1).expect("memory");
    let ends = stream.clone_htod(&[end]).expect("memory");
    let progress = stream.clone_htod(&[0, 0, limit]).expect("memory");
    let bound = many.bind().buffer("tokens", &tokens).buffer("ends", &ends).buffer("ring", &ring);
    bound.buffer("control", &control).buffer("progress", &progress).launch(&stream).expect("launched");
    let over = stream.record_event().expect("an event");
    Running { stream, ring, control, progress, over }
}

impl Running {
    fn count(&self) -> u32 {
        self.control.get(Publish::COUNT as usize).expect("a word")
    }

    /// The tokens from number `from` on that have been counted, which must be what they should: `i + 1` as number `i`.
    fn read(&self, from: u32) -> u32 {
        let count = self.count();
        for i in from..count {
            let token = self.ring.get((i as usize) % self.ring.len());
            assert_eq!(token.expect("a word"), i + 1, "of {count}");
        }
        count
    }

    /// Waits for its end: what it says of its progress.
    fn end(&self) -> [u32; 3] {
        self.over.synchronize().unwrap_or_else(|error| panic!("{error}"));
        let progress = self.stream.clone_dtoh(&self.progress).expect("read");
        progress.try_into().expect("three words")
    }

    fn until(&self, holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never comes");
            std::thread::yield_now();
        }
    }
}

const NO_END: u32 = u32::MAX;

fn the_host_reads_tokens_while_they_are_made_and_stops_them() {
    for &seed in orders(&[0, 1, 2]) {
        let schedule = if seed == 0 { Schedule::Parallel } else { Schedule::Seeded(seed) };
        let options = Options { schedule, ..Options::checked() };
        // More than it will ever make, and a ring in which none is overwritten before the host stops it.
        let running = start(1 << 20, NO_END, u32::MAX, &options);
        let mut read = 0;
        for more in [1, 2, 40] {
            running.until(|| running.count() >= read + more);
            read = running.read(read);
        }
        assert!(!running.over.is_complete());
        let before = running.count();
        running.control.set(Publish::STOP as usize, 1).expect("told");
        let [made, finished, _] = running.end();
        assert_eq!(Finish::from_word(finished), Some(Finish::Stopped));
        assert_eq!(running.control.to_vec().expect("read"), [1, made]);
        assert!(made >= before);
        assert!(
            running.ring.to_vec().expect("read")[..made as usize]
                .iter()
                .zip(1..)
                .all(|(&token, i)| token == i)
        );
    }
}

fn many_tokens_end_at_an_end_of_text_or_at_the_limit() {
    for (end, limit, made, finish) in [
        (5, 100, 5, Finish::EndOfText),
        (NO_END, 37, 37, Finish::Limit),
        (1, 100, 1, Finish::EndOfText),
        (NO_END, 1, 1, Finish::Limit),
    ] {
        let running = start(16, end, limit, &Options::checked());
        assert_eq!(running.end(), [made, finish.word(), limit]);
        assert_eq!(running.control.to_vec().expect("read"), [0, made]);
        // Of more tokens than the ring has room for, it has the last ones.
        for i in made.saturating_sub(16)..made {
            assert_eq!(running.ring.get((i % 16) as usize).expect("a word"), i + 1);
        }
    }
}

crate::case_list! {
    tokens_take_their_places_and_end_for_a_reason,
    what_publishing_cannot_be_is_said,
    the_host_reads_tokens_while_they_are_made_and_stops_them,
    many_tokens_end_at_an_end_of_text_or_at_the_limit,
}
