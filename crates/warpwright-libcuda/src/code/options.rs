//! Options of the compiler and the linker: names in one array, values in another. Some values are addresses for
//! results.

use crate::report::log;
use crate::types::{CUjit_option, In, Out, Result, Status};
use std::ffi::{c_char, c_int, c_uint};
use std::time::Duration;

/// Options without effect: those of link-time optimisation (which takes no PTX), and hints about resources.
const WITHOUT_EFFECT: &[c_int] = &[15, 16, 20, 21, 22, 23, 24, 29, 30, 31, 32, 33];

/// A buffer of the client for messages, with the address for its used size.
///
/// It is rewritten with each message, so that it is a terminated text at all times.
#[derive(Debug, Default)]
struct Messages {
    buffer: Option<Out<c_char>>,
    room: usize,
    used: Option<Out<usize>>,
    text: String,
}

impl Messages {
    fn add(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.show();
    }

    fn show(&self) {
        let mut shown = 0;
        if let Some(buffer) = self.buffer
            && self.room > 0
            && buffer.set_text(&self.text, self.room).is_ok()
        {
            shown = self.text.len().min(self.room - 1);
        }
        if let Some(used) = self.used {
            used.set_if(shown);
        }
    }
}

/// A client's options for the compiler, and its addresses for results.
#[derive(Debug, Default)]
pub(crate) struct Options {
    info: Messages,
    errors: Messages,
    wall_time: Option<Out<f32>>,
    spent: Duration,
    pub(crate) verbose: bool,
    pub(crate) max_registers: Option<u32>,
    pub(crate) target: Option<u32>,
}

// SAFETY: the pointers lead to places that the client keeps for the linker that has them, and says are good from
// whatever thread uses it. The linker's lock lets one thread write at a time.
unsafe impl Send for Options {}

impl Options {
    /// Reads the arrays. An unknown option has no effect.
    pub(crate) fn read(count: c_uint, names: In<CUjit_option>, values: Out<usize>) -> Result<Options> {
        let mut options = Options::default();
        let names = names.get_all(count as usize)?;
        let given = values.given().get_all(names.len())?;
        for (index, (&name, &value)) in names.iter().zip(&given).enumerate() {
            // SAFETY: there are as many values as names.
            let place = unsafe { values.at(index) };
            // Numbers narrower than a pointer are in its lower bytes.
            let number = value as u32;
            match name {
                CUjit_option::INFO_LOG_BUFFER => options.info.buffer = pointer(value),
                CUjit_option::ERROR_LOG_BUFFER => options.errors.buffer = pointer(value),
                CUjit_option::INFO_LOG_BUFFER_SIZE_BYTES => {
                    options.info.room = number as usize;
                    options.info.used = Some(place);
                }
                CUjit_option::ERROR_LOG_BUFFER_SIZE_BYTES => {
                    options.errors.room = number as usize;
                    options.errors.used = Some(place);
                }
                // SAFETY: the interface says that this option's time, which is narrower, is written over its value.
                CUjit_option::WALL_TIME => options.wall_time = Some(unsafe { place.cast() }),
                CUjit_option::LOG_VERBOSE => options.verbose = number != 0,
                CUjit_option::MAX_REGISTERS => options.max_registers = Some(number).filter(|max| *max > 0),
                CUjit_option::TARGET => options.target = Some(number),
                CUjit_option::TARGET_FROM_CUCONTEXT => options.target = None,
                CUjit_option::OPTIMIZATION_LEVEL if number > 4 => return Err(Status::INVALID_VALUE),
                // What they change is how fast machine code is, or what a debugger sees.
                CUjit_option::OPTIMIZATION_LEVEL
                | CUjit_option::THREADS_PER_BLOCK
                | CUjit_option::FALLBACK_STRATEGY
                | CUjit_option::GENERATE_DEBUG_INFO
                | CUjit_option::GENERATE_LINE_INFO
                | CUjit_option::CACHE_MODE => {}
                CUjit_option(other) if WITHOUT_EFFECT.contains(&other) => {}
                CUjit_option(other) => {
                    log::note(&format_args!("option {other} of the compiler is not supported, and ignored"));
                }
            }
        }
        // Each says what code is made for.
        if names.contains(&CUjit_option::THREADS_PER_BLOCK) && names.contains(&CUjit_option::TARGET) {
            return Err(Status::INVALID_VALUE);
        }
        options.info.show();
        options.errors.show();
        Ok(options)
    }

    /// Options of a linker.
    pub(crate) fn of_linker(count: c_uint, names: In<CUjit_option>, values: Out<usize>) -> Result<Options> {
        without(count, names, &[CUjit_option::FALLBACK_STRATEGY])?;
        Options::read(count, names, values)
    }

    /// Checks the options of one input of a linker: only compiler options are allowed, none of the linker as a whole.
    pub(crate) fn check_input(count: c_uint, names: In<CUjit_option>, values: Out<usize>) -> Result<()> {
        const OF_THE_LINKER: [CUjit_option; 6] = [
            CUjit_option::FALLBACK_STRATEGY,
            CUjit_option::WALL_TIME,
            CUjit_option::INFO_LOG_BUFFER,
            CUjit_option::ERROR_LOG_BUFFER,
            CUjit_option::TARGET_FROM_CUCONTEXT,
            CUjit_option::TARGET,
        ];
        without(count, names, &OF_THE_LINKER)?;
        Options::read(count, names, values).map(drop)
    }

    /// Options for code that was checked before, without addresses for results.
    pub(crate) fn with_registers(max: Option<u32>) -> Options {
        Options { max_registers: max, ..Options::default() }
    }

    /// Writes a message to the client.
    pub(crate) fn info(&mut self, text: &str) {
        self.info.add(text);
    }

    /// Writes an error to the client.
    pub(crate) fn error(&mut self, text: &str) {
        // A client without a buffer would see only a status code.
        if self.errors.buffer.is_none() {
            log::misuse(&text);
        }
        self.errors.add(text);
    }

    /// All messages: warnings and errors.
    pub(crate) fn messages(&self) -> (String, String) {
        (self.info.text.clone(), self.errors.text.clone())
    }

    /// Adds to the time that is reported to the client.
    pub(crate) fn spent(&mut self, time: Duration) {
        self.spent += time;
        if let Some(wall_time) = self.wall_time {
            wall_time.set_if(self.spent.as_secs_f32() * 1e3);
        }
    }
}

/// Refuses some options.
fn without(count: c_uint, names: In<CUjit_option>, refused: &[CUjit_option]) -> Result<()> {
    match names.get_all(count as usize)?.iter().find(|name| refused.contains(name)) {
        None => Ok(()),
        Some(CUjit_option(option)) => {
            log::misuse(&format_args!("option {option} of the compiler cannot be given to the linker here"));
            Err(Status::INVALID_VALUE)
        }
    }
}

/// The client's buffer, which it passes as a number.
fn pointer(value: usize) -> Option<Out<c_char>> {
    // SAFETY: the interface says that the option's value is the address of a buffer, of the size that another one says.
    (value != 0).then(|| unsafe { Out::new(std::ptr::with_exposed_provenance_mut::<c_char>(value)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Client {
        names: Vec<CUjit_option>,
        values: Vec<usize>,
    }

    impl Client {
        fn new(options: &[(CUjit_option, usize)]) -> Self {
            Client {
                names: options.iter().map(|(name, _)| *name).collect(),
                values: options.iter().map(|(_, value)| *value).collect(),
            }
        }

        fn read(&mut self) -> Result<Options> {
            // SAFETY: both have that many, and are kept as long as the options are used.
            let (names, values) =
                unsafe { (In::new(self.names.as_ptr()), Out::new(self.values.as_mut_ptr())) };
            Options::read(self.names.len() as c_uint, names, values)
        }
    }

    #[test]
    fn messages_are_cut_to_their_buffer_and_counted() {
        let mut buffer = [0x55u8; 12];
        let address = buffer.as_mut_ptr().expose_provenance();
        let mut client = Client::new(&[
            (CUjit_option::ERROR_LOG_BUFFER_SIZE_BYTES, 8),
            (CUjit_option::ERROR_LOG_BUFFER, address),
        ]);
        let mut options = client.read().unwrap();
        // What follows reads what the options have written through their pointers.
        let state = |client: &Client, length| {
            // SAFETY: the buffer, which has more.
            let buffer = unsafe { In::new(std::ptr::with_exposed_provenance::<u8>(address)) };
            (client.values[0], buffer.get_all(length).unwrap())
        };
        assert_eq!(state(&client, 1), (0, vec![0]), "nothing yet, and its end");
        options.error("one");
        assert_eq!(state(&client, 4), (3, b"one\0".to_vec()));
        options.error("second");
        assert_eq!(state(&client, 12), (7, b"one\nsec\0UUUU".to_vec()));
    }

    #[test]
    fn values_are_read_and_told() {
        let mut client = Client::new(&[
            (CUjit_option::WALL_TIME, 0),
            (CUjit_option::LOG_VERBOSE, 1),
            (CUjit_option::MAX_REGISTERS, 0xdead_0000_0040),
            (CUjit_option::TARGET, 80),
            (CUjit_option(77), 1),
            (CUjit_option::INFO_LOG_BUFFER, 0),
            (CUjit_option::INFO_LOG_BUFFER_SIZE_BYTES, 100),
        ]);
        let mut options = client.read().unwrap();
        assert_eq!((options.verbose, options.max_registers, options.target), (true, Some(0x40), Some(80)));
        options.info("goes nowhere");
        options.spent(Duration::from_micros(1500));
        options.spent(Duration::from_micros(500));
        assert_eq!(client.values[6], 0, "a buffer that is not there holds nothing");
        assert_eq!(f32::from_bits(client.values[0] as u32), 2.0);
    }

    #[test]
    fn arrays_must_be_there() {
        let mut client = Client::new(&[(CUjit_option::OPTIMIZATION_LEVEL, 5)]);
        assert_eq!(client.read().map(|_| ()), Err(Status::INVALID_VALUE));
        let (no_names, no_values) = (In::null(), Out::null());
        assert_eq!(Options::read(1, no_names, no_values).map(|_| ()), Err(Status::INVALID_VALUE));
        assert!(Options::read(0, no_names, no_values).is_ok());
    }
}
