//! Random programs of several streams against a model that does everything at once.

use crate::*;

/// Numbers that look random: a generator by Marsaglia (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A buffer, what it should hold (`None` where nothing was written), and the last event of each stream that used it.
struct Known {
    buffer: Buffer<u32>,
    values: Vec<Option<u32>>,
    uses: Vec<Option<Event>>,
}

struct Program<'a> {
    gpu: &'a Gpu,
    streams: Vec<Stream>,
    known: Vec<Known>,
    random: Random,
}

impl Program<'_> {
    /// The stream waits for what others do with these buffers.
    fn begin(&self, stream: usize, buffers: &[usize]) {
        for &buffer in buffers {
            for (user, event) in self.known[buffer].uses.iter().enumerate() {
                if let Some(event) = event.as_ref().filter(|_| user != stream) {
                    self.streams[stream].wait_event(event).unwrap();
                }
            }
        }
    }

    /// The stream has used these buffers.
    fn end(&mut self, stream: usize, buffers: &[usize]) {
        let event = self.streams[stream].record_event().unwrap();
        for &buffer in buffers {
            self.known[buffer].uses[stream] = Some(event.clone());
        }
    }

    fn allocate(&mut self, stream: usize) {
        let len = [1, 2, 5][self.random.below(3)];
        let (buffer, value) = match self.random.below(3) {
            0 => (self.streams[stream].alloc(len).unwrap(), None),
            1 => (self.streams[stream].alloc_zeros(len).unwrap(), Some(0)),
            _ => (self.streams[stream].clone_htod(&vec![7; len]).unwrap(), Some(7)),
        };
        let uses = vec![None; self.streams.len()];
        self.known.push(Known { buffer, values: vec![value; len], uses });
        self.end(stream, &[self.known.len() - 1]);
    }

    /// An element of a buffer, as a buffer.
    fn element(&self, buffer: usize, index: usize) -> Buffer<u32> {
        self.known[buffer].buffer.slice(index..=index).unwrap()
    }

    fn step(&mut self) {
        let stream = self.random.below(self.streams.len());
        if self.known.is_empty() || self.random.below(4) == 0 {
            return self.allocate(stream);
        }
        let (a, b) = (self.random.below(self.known.len()), self.random.below(self.known.len()));
        let (i, j) =
            (self.random.below(self.known[a].values.len()), self.random.below(self.known[b].values.len()));
        match self.random.below(6) {
            0 => drop(self.known.swap_remove(a)),
            1 => {
                self.begin(stream, &[a]);
                let value = self.random.below(1000) as u32;
                self.streams[stream].memcpy_htod(&[value], &self.element(a, i)).unwrap();
                self.known[a].values[i] = Some(value);
                self.end(stream, &[a]);
            }
            2 | 3 if (a, i) != (b, j) => {
                self.begin(stream, &[a, b]);
                self.streams[stream].memcpy_dtod(&self.element(a, i), &self.element(b, j)).unwrap();
                self.known[b].values[j] = self.known[a].values[i];
                self.end(stream, &[a, b]);
            }
            // Adding to what was never written is what the checks look for.
            4 if self.known[a].values[i].is_some() => {
                self.begin(stream, &[a]);
                let element = self.element(a, i);
                self.gpu.launch(&self.streams[stream], "add", &element, &element, 3);
                self.known[a].values[i] = self.known[a].values[i].map(|value| value + 3);
                self.end(stream, &[a]);
            }
            5 if self.random.below(4) == 0 => {
                self.begin(stream, &[a]);
                self.check(stream, a);
            }
            _ => {}
        }
    }

    fn check(&self, stream: usize, buffer: usize) {
        let found = self.streams[stream].clone_dtoh(&self.known[buffer].buffer).unwrap();
        for (found, expected) in found.iter().zip(&self.known[buffer].values) {
            assert!(expected.is_none_or(|expected| *found == expected), "{found}, {expected:?}");
        }
    }
}

#[test]
fn programs_of_several_streams_do_what_they_say() {
    let mut reused = 0;
    for seed in 1..=12 {
        let gpu = Gpu::checked();
        let streams = (0..3).map(|_| gpu.device.new_stream().unwrap()).collect();
        let random = Random(0x9e37_79b9_7f4a_7c15u64.rotate_left(seed));
        let mut program = Program { gpu: &gpu, streams, known: Vec::new(), random };
        for _ in 0..300 {
            program.step();
        }
        for buffer in 0..program.known.len() {
            program.begin(0, &[buffer]);
            program.check(0, buffer);
        }
        gpu.device.synchronize().unwrap();
        assert_eq!(gpu.device.take_findings().len(), 0, "seed {seed}");
        drop(program);
        reused += gpu.device.pool_statistics().reused;
        assert_eq!(gpu.device.pool_statistics().live, 0);
    }
    assert!(reused > 50, "memory is used again, whatever the device is through with: {reused} times");
}
