//! Several threads with random programs over streams of two devices, joined by events, and whether each program has come
//! to what it says.
//!
//! What comes before what is in counters of the client's: a function counts, and looks whether the counter stands where
//! all that comes before it has brought it.
#![allow(unsafe_code, reason = "the functions are C's")]

use crate::common::{get, ok};
use crate::programs::{event, stream};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

const THREADS: u64 = 3;
const STEPS: u32 = 120;

/// Longer than any of the programs takes.
const LONGEST: Duration = Duration::from_secs(30);

static WRONG: AtomicU32 = AtomicU32::new(0);
static OVER: AtomicU64 = AtomicU64::new(0);

/// What a function finds: a chain's counter, and where it is to stand.
struct Link {
    chain: *const AtomicU32,
    at: u32,
}

unsafe extern "C-unwind" fn count(link: *mut c_void) {
    // SAFETY: what a thread has given for one call, with a counter that outlives its streams.
    let (link, chain) = unsafe {
        let link = Box::from_raw(link.cast::<Link>());
        let chain = &*link.chain;
        (link, chain)
    };
    let found = chain.fetch_add(1, SeqCst);
    WRONG.fetch_add(u32::from(found != link.at), SeqCst);
}

/// Work that follows one another over any streams.
struct Chain {
    counter: AtomicU32,
    links: u32,
    on: usize,
}

struct Lane {
    stream: CUstream,
    context: CUcontext,
    /// Recorded again and again.
    event: CUevent,
}

/// Plays programs of a seed for so many milliseconds: how many functions were called too early or late.
pub(crate) fn play(seed_and_time: &str) -> String {
    let (seed, time) = seed_and_time.split_once(' ').unwrap();
    let (seed, time): (u64, u64) = (seed.parse().unwrap(), time.parse().unwrap());
    // SAFETY: it takes no pointers.
    ok(unsafe { cuInit(0) });
    let contexts = [0, 1].map(|device| {
        // SAFETY: a place for a handle.
        let context: CUcontext = get(|context| unsafe { cuDevicePrimaryCtxRetain(context, device) }).unwrap();
        context.0
    });
    let until = Instant::now() + Duration::from_millis(time);
    for thread in 0..THREADS {
        std::thread::spawn(move || {
            let mut round = 0;
            while Instant::now() < until {
                program(contexts.map(CUcontext), (seed * 64 + round) * THREADS + thread);
                round += 1;
            }
            OVER.fetch_add(1, SeqCst);
        });
    }
    while OVER.load(SeqCst) < THREADS {
        if Instant::now() > until + LONGEST {
            return "hangs".into();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    WRONG.load(SeqCst).to_string()
}

fn program(contexts: [CUcontext; 2], seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as usize % bound
    };
    let enter = |context| {
        // SAFETY: a context that stays.
        ok(unsafe { cuCtxSetCurrent(context) });
    };
    let lanes: Vec<Lane> = (0..6)
        .map(|place| {
            let context = contexts[place % 2];
            enter(context);
            // Each device has the default stream, the thread's own, and others of both kinds.
            let stream = match place / 2 {
                0 => [CUstream::NULL, CUstream::PER_THREAD][below(2)],
                _ => stream(below(2) as u32),
            };
            Lane { stream, context, event: event() }
        })
        .collect();
    let mut chains: Vec<Chain> =
        (0..3).map(|on| Chain { counter: AtomicU32::new(0), links: 0, on }).collect();
    for _ in 0..STEPS {
        let chain = &mut chains[below(3)];
        let (from, to) = (&lanes[chain.on], below(lanes.len()));
        if to != chain.on {
            enter(from.context);
            // SAFETY: handles.
            ok(unsafe { cuEventRecord(from.event, from.stream) });
            enter(lanes[to].context);
            // SAFETY: handles.
            ok(unsafe { cuStreamWaitEvent(lanes[to].stream, from.event, 0) });
            chain.on = to;
        }
        let lane = &lanes[to];
        enter(lane.context);
        let link = Box::new(Link { chain: &raw const chain.counter, at: chain.links });
        // SAFETY: a function, and what it takes.
        ok(unsafe { cuLaunchHostFunc(lane.stream, Some(count), Box::into_raw(link).cast::<c_void>()) });
        chain.links += 1;
        let links = chain.links;
        let has_waited = match below(40) {
            // SAFETY: a handle.
            0 => unsafe { cuStreamSynchronize(lane.stream) == Status::SUCCESS },
            // SAFETY: handles.
            1 => unsafe {
                ok(cuEventRecord(lane.event, lane.stream));
                cuEventSynchronize(lane.event) == Status::SUCCESS
            },
            // SAFETY: it takes no pointers.
            2 => unsafe { cuCtxSynchronize() == Status::SUCCESS },
            3 => loop {
                // SAFETY: a handle.
                match unsafe { cuStreamQuery(lane.stream) } {
                    Status::NOT_READY => std::thread::yield_now(),
                    status => break status == Status::SUCCESS,
                }
            },
            _ => false,
        };
        let is_too_early = has_waited && chain.counter.load(SeqCst) < links;
        WRONG.fetch_add(u32::from(is_too_early), SeqCst);
    }
    // Streams go with work that is not done, and it is waited for behind them.
    let mut last = Vec::new();
    for lane in &lanes {
        enter(lane.context);
        // SAFETY: handles, of which those of default streams are not given back.
        unsafe {
            ok(cuEventRecord(lane.event, lane.stream));
            if ![CUstream::NULL, CUstream::PER_THREAD].contains(&lane.stream) {
                ok(cuStreamDestroy_v2(lane.stream));
            }
        }
        last.push(lane.event);
    }
    for event in last {
        // SAFETY: a handle.
        unsafe {
            ok(cuEventSynchronize(event));
            ok(cuEventDestroy_v2(event));
        }
    }
    let left = chains.iter().filter(|chain| chain.counter.load(SeqCst) != chain.links).count();
    WRONG.fetch_add(left as u32, SeqCst);
}
