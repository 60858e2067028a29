//! Random programs of streams and events, and whether the order in which they were done is one that they allow.
//!
//! Functions of the client's write down when they are called. What must come before what is worked out here from what
//! was asked for, by the rules of the interface alone.
#![allow(unsafe_code, reason = "the functions are C's")]

use crate::common::{context, ok};
use crate::programs::{event, stream};
use std::ffi::c_void;
use std::sync::Mutex;
use warpwright_cuda::api::*;
use warpwright_cuda::types::*;

/// Steps of a program, few enough for sets of them to be bits.
const STEPS: usize = 100;

/// The functions that were called, by step.
static CALLED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C-unwind" fn write_down(argument: *mut c_void) {
    CALLED.lock().unwrap().push(argument.addr());
}

fn called() -> Vec<usize> {
    CALLED.lock().unwrap().clone()
}

/// Plays the programs of seeds `first-last`: how many were done in an order that they do not allow, and how many in
/// another one than that of the calls.
pub(crate) fn play(seeds: &str) -> String {
    let (first, last) = seeds.split_once('-').unwrap();
    // SAFETY: it takes no pointers.
    ok(unsafe { cuInit(0) });
    context(0);
    let (mut illegal, mut different) = (0, 0);
    for seed in first.parse().unwrap()..last.parse::<u64>().unwrap() {
        let (is_legal, is_different) = Program::new(seed).run();
        illegal += u32::from(!is_legal);
        different += u32::from(is_different);
    }
    format!("{illegal} {different}")
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Default,
    Blocking,
    NonBlocking,
}

struct Program {
    random: u64,
    streams: Vec<(CUstream, Kind)>,
    events: Vec<CUevent>,
    /// The steps before the last record of an event, with it.
    recorded: Vec<u128>,
    /// The last step of each stream, with all before it.
    last: Vec<u128>,
    /// What comes before each step that calls a function.
    before: Vec<(usize, u128)>,
    /// The steps that call functions.
    functions: u128,
    is_legal: bool,
}

impl Program {
    fn new(seed: u64) -> Self {
        CALLED.lock().unwrap().clear();
        let kinds = [Kind::Default, Kind::Blocking, Kind::Blocking, Kind::NonBlocking, Kind::NonBlocking];
        let streams = kinds.map(|kind| match kind {
            Kind::Default => (CUstream::NULL, kind),
            Kind::Blocking => (stream(0), kind),
            Kind::NonBlocking => (stream(1), kind),
        });
        Program {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            streams: streams.to_vec(),
            events: (0..3).map(|_| event()).collect(),
            recorded: vec![0; 3],
            last: vec![0; 5],
            before: Vec::new(),
            functions: 0,
            is_legal: true,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % bound
    }

    /// All that comes before a step of a stream that is asked for now.
    fn behind(&self, on: usize) -> u128 {
        let joins = |other: usize| match (self.streams[on].1, self.streams[other].1) {
            (Kind::Default, Kind::Blocking) | (Kind::Blocking, Kind::Default) => true,
            _ => other == on,
        };
        (0..self.streams.len()).filter(|other| joins(*other)).fold(0, |all, other| all | self.last[other])
    }

    /// The calling thread has waited for these steps.
    fn waited_for(&mut self, steps: u128) {
        let done = called().iter().fold(0, |all, step| all | 1u128 << step);
        self.is_legal &= steps & self.functions & !done == 0;
    }

    fn step(&mut self, step: usize) {
        let on = self.below(self.streams.len());
        let (stream, _) = self.streams[on];
        let which = self.below(self.events.len());
        let (event, this) = (self.events[which], 1u128 << step);
        match self.below(20) {
            0..=9 => {
                let argument = std::ptr::without_provenance_mut(step);
                // SAFETY: a function that takes any argument.
                ok(unsafe { cuLaunchHostFunc(stream, Some(write_down), argument) });
                let behind = self.behind(on);
                self.before.push((step, behind));
                self.functions |= this;
                self.last[on] = behind | this;
            }
            10..=13 => {
                // SAFETY: handles.
                ok(unsafe { cuEventRecord(event, stream) });
                self.last[on] = self.behind(on) | this;
                self.recorded[which] = self.last[on];
            }
            14..=17 => {
                // SAFETY: handles.
                ok(unsafe { cuStreamWaitEvent(stream, event, 0) });
                // It is no work of the stream: what comes behind waits, and nothing else does.
                self.last[on] |= self.recorded[which];
            }
            18 => {
                // SAFETY: a handle.
                ok(unsafe { cuStreamSynchronize(stream) });
                let steps = if stream == CUstream::NULL { self.behind(on) } else { self.last[on] };
                self.waited_for(steps);
            }
            _ => {
                // SAFETY: a handle.
                ok(unsafe { cuEventSynchronize(event) });
                self.waited_for(self.recorded[which]);
            }
        }
    }

    /// Whether it was done in an order that it allows, and whether that is not the order of the calls.
    fn run(mut self) -> (bool, bool) {
        (0..STEPS).for_each(|step| self.step(step));
        // SAFETY: it takes no pointers.
        ok(unsafe { cuCtxSynchronize() });
        let order = called();
        let mut done = 0u128;
        for step in &order {
            let before = self.before.iter().find(|(other, _)| other == step).map_or(0, |(_, before)| *before);
            self.is_legal &= before & self.functions & !done == 0;
            done |= 1 << step;
        }
        self.is_legal &= done == self.functions && order.len() == self.before.len();
        for (stream, kind) in &self.streams {
            if *kind != Kind::Default {
                // SAFETY: a handle.
                ok(unsafe { cuStreamDestroy_v2(*stream) });
            }
        }
        for event in &self.events {
            // SAFETY: a handle.
            ok(unsafe { cuEventDestroy_v2(*event) });
        }
        (self.is_legal, !order.is_sorted())
    }
}
