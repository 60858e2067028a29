//! The loop from token to token.

use super::{Finish, GenerateOptions, Generation, Listener, StopMatcher, Timings};
use crate::engine::{Engine, EngineError, Progress};
use crate::tokenizer::{TextStream, Tokenizer};
use std::ops::ControlFlow;
use std::time::Instant;

/// Where tokens come from.
pub(super) trait Source {
    /// Adds a prompt.
    fn prompt(
        &mut self,
        ids: &[u32],
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EngineError>;

    /// Tokens that end the text: nothing needs to be computed after one.
    fn set_ends(&mut self, ids: &[u32]);

    /// Chooses a token and adds it; so many are wanted at most, this one included.
    fn next(&mut self, wanted: usize) -> Result<u32, EngineError>;

    /// No more are wanted for now.
    fn pause(&mut self);

    /// Waits until everything is done that was begun.
    fn wait(&mut self) -> Result<(), EngineError>;
}

impl Source for Engine {
    fn prompt(
        &mut self,
        ids: &[u32],
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EngineError> {
        self.prefill_with(ids, progress)
    }

    fn set_ends(&mut self, ids: &[u32]) {
        Engine::set_ends(self, ids);
    }

    fn next(&mut self, wanted: usize) -> Result<u32, EngineError> {
        self.decode_of(wanted)
    }

    fn pause(&mut self) {
        Engine::pause(self);
    }

    fn wait(&mut self) -> Result<(), EngineError> {
        Engine::wait(self)
    }
}

pub(super) fn run(
    source: &mut impl Source,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    listener: &mut impl Listener,
) -> Result<Generation, EngineError> {
    let max = options.max_tokens.unwrap_or(usize::MAX);
    let mut generation = Generation {
        tokens: Vec::new(),
        text: String::new(),
        finish: Finish::Length,
        timings: Timings { prompt_tokens: prompt.len(), ..Timings::default() },
    };
    let ends: Vec<u32> = if options.ignore_end { Vec::new() } else { tokenizer.ends().collect() };
    source.set_ends(&ends);
    let start = Instant::now();
    let mut done = 0;
    let told = source.prompt(prompt, &mut |progress| {
        done = progress.done;
        listener.prompt(progress)
    })?;
    if told.is_break() {
        generation.timings.prompt_tokens = done.min(prompt.len());
        generation.finish = Finish::Interrupted;
    }
    if told.is_break() || max == 0 {
        source.wait()?;
        generation.timings.prefill = start.elapsed();
        return Ok(generation);
    }
    let mut stream = TextStream::new(tokenizer, options.special);
    let mut stops = StopMatcher::new(options.stop.iter().map(String::as_str));
    let mut first = None;
    while generation.tokens.len() < max {
        let id = match source.next(max - generation.tokens.len()) {
            Ok(id) => id,
            Err(EngineError::Full { .. }) => {
                generation.finish = Finish::ContextFull;
                break;
            }
            Err(error) => return Err(error),
        };
        first.get_or_insert_with(Instant::now);
        generation.tokens.push(id);
        if tokenizer.is_end(id) && !options.ignore_end {
            generation.finish = Finish::EndOfText;
            break;
        }
        let matched = stops.push(stream.push(id));
        generation.text.push_str(&matched.text);
        if let Some(stop) = matched.stop {
            generation.finish = Finish::Stop(stop.to_string());
        }
        let told = listener.text(&matched.text);
        if let Finish::Stop(_) = generation.finish {
            break;
        }
        if told.is_break() {
            generation.finish = Finish::Interrupted;
            break;
        }
    }
    source.pause();
    let end = Instant::now();
    let first = first.unwrap_or(end);
    generation.timings.prefill = first - start;
    generation.timings.decoded = generation.tokens.len().saturating_sub(1);
    generation.timings.decode = end - first;
    if !matches!(generation.finish, Finish::Stop(_)) {
        let mut rest = stops.push(stream.finish()).text;
        rest.push_str(&stops.finish());
        if !rest.is_empty() {
            generation.text.push_str(&rest);
            // It is over whatever the listener says.
            let _ = listener.text(&rest);
        }
    }
    Ok(generation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Context, ContextLimit};
    use crate::gguf::Gguf;
    use crate::gguf::write::GgufWriter;

    /// Tokens by their ids: pieces of UTF-8 as bytes, words, and an end.
    const CRAB: [u32; 4] = [3, 4, 5, 6];
    const HELLO: u32 = 7;
    const USER: u32 = 8;
    const COLON: u32 = 9;
    const END: u32 = 2;

    /// A SentencePiece vocabulary: its tokens are bytes and words.
    fn tokenizer() -> Tokenizer {
        let tokens = ["<unk>", "<s>", "</s>", "<0xF0>", "<0x9F>", "<0xA6>", "<0x80>", "Hello", "\nUser", ":"];
        let kinds = [2i32, 3, 3, 6, 6, 6, 6, 1, 1, 1];
        let mut file = GgufWriter::new();
        file.set("tokenizer.ggml.model", "llama");
        file.set("tokenizer.ggml.tokens", tokens.to_vec());
        file.set("tokenizer.ggml.scores", vec![0f32; tokens.len()]);
        file.set("tokenizer.ggml.token_type", kinds.to_vec());
        let gguf = Gguf::from_bytes(file.to_bytes().expect("a file")).expect("a file");
        Tokenizer::from_gguf(&gguf).expect("a vocabulary")
    }

    /// Gives these tokens, and has room for so many.
    struct Script {
        tokens: Vec<u32>,
        next: usize,
        room: usize,
        chunks: usize,
        /// What it was told.
        ends: Vec<u32>,
        wanted: Vec<usize>,
        paused: bool,
    }

    impl Script {
        fn new(tokens: &[u32]) -> Script {
            let (ends, wanted) = (Vec::new(), Vec::new());
            Script {
                tokens: tokens.to_vec(),
                next: 0,
                room: usize::MAX,
                chunks: 1,
                ends,
                wanted,
                paused: false,
            }
        }
    }

    impl Source for Script {
        fn prompt(
            &mut self,
            ids: &[u32],
            progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
        ) -> Result<ControlFlow<()>, EngineError> {
            for chunk in 1..=self.chunks {
                let (done, total) = (ids.len() * chunk / self.chunks, ids.len());
                if progress(Progress { done, total }).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }

        fn set_ends(&mut self, ids: &[u32]) {
            self.ends = ids.to_vec();
        }

        fn next(&mut self, wanted: usize) -> Result<u32, EngineError> {
            self.wanted.push(wanted);
            if self.next >= self.room {
                let context = Context { tokens: 1, limit: ContextLimit::Asked, max: 1 };
                return Err(EngineError::Full { prompt: 1, generated: self.next, context });
            }
            self.next += 1;
            self.tokens.get(self.next - 1).copied().ok_or(EngineError::Empty)
        }

        fn pause(&mut self) {
            self.paused = true;
        }

        fn wait(&mut self) -> Result<(), EngineError> {
            Ok(())
        }
    }

    fn stops(stops: &[&str]) -> GenerateOptions {
        let stop = stops.iter().map(|stop| stop.to_string()).collect();
        GenerateOptions { stop, ..GenerateOptions::default() }
    }

    /// What is generated, and the pieces that a listener got; it ends it after so many.
    fn pieces(script: &mut Script, options: &GenerateOptions, patience: usize) -> (Generation, Vec<String>) {
        let mut pieces = Vec::new();
        let mut listener = |text: &str| {
            pieces.push(text.to_string());
            if pieces.len() >= patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let generation = run(script, &tokenizer(), &[1], options, &mut listener).expect("no error");
        assert_eq!(pieces.concat(), generation.text, "what was told is the text");
        (generation, pieces)
    }

    #[test]
    fn characters_come_whole_and_the_end_is_no_text() {
        let script = [&CRAB[..], &[HELLO, END, HELLO]].concat();
        let (made, told) = pieces(&mut Script::new(&script), &GenerateOptions::default(), usize::MAX);
        assert_eq!(told, ["", "", "", "🦀", "Hello"]);
        assert_eq!((made.finish, &made.tokens[..]), (Finish::EndOfText, &script[..6]));
        assert_eq!((made.timings.prompt_tokens, made.timings.decoded), (1, 5));
    }

    #[test]
    fn a_character_that_is_cut_off_is_shown_as_one_that_is_damaged() {
        let options = GenerateOptions { max_tokens: Some(3), ..GenerateOptions::default() };
        let (made, told) = pieces(&mut Script::new(&[HELLO, CRAB[0], CRAB[1]]), &options, usize::MAX);
        assert_eq!(
            (made.finish, &told[..]),
            (Finish::Length, &["Hello", "", "", "\u{fffd}"].map(String::from)[..])
        );
    }

    #[test]
    fn stop_strings_end_it_and_what_may_be_one_is_held_back() {
        let script = [HELLO, USER, COLON, HELLO];
        let (made, told) = pieces(&mut Script::new(&script), &stops(&["\nUser:"]), usize::MAX);
        assert_eq!(told, ["Hello", "", ""]);
        assert_eq!((made.finish, made.tokens.len()), (Finish::Stop("\nUser:".into()), 3));
        // What was held back is given when it ends otherwise.
        let (made, told) = pieces(&mut Script::new(&[HELLO, USER, END]), &stops(&["\nUser:"]), usize::MAX);
        assert_eq!((made.finish, told.concat().as_str()), (Finish::EndOfText, "Hello\nUser"));
    }

    #[test]
    fn it_says_how_many_tokens_it_wants_and_where_they_end() {
        let options = GenerateOptions { max_tokens: Some(3), ..GenerateOptions::default() };
        let mut script = Script::new(&[HELLO; 9]);
        let (made, _) = pieces(&mut script, &options, usize::MAX);
        assert_eq!((made.tokens.len(), script.wanted), (3, vec![3, 2, 1]));
        assert_eq!((script.ends, script.paused), (vec![END], true));
        let mut script = Script::new(&[HELLO; 9]);
        let (_, _) = pieces(&mut script, &GenerateOptions { ignore_end: true, ..options }, usize::MAX);
        assert_eq!((script.ends, script.paused), (vec![], true));
    }

    #[test]
    fn a_listener_ends_it() {
        let (made, told) = pieces(&mut Script::new(&[HELLO; 9]), &GenerateOptions::default(), 2);
        assert_eq!((made.finish, made.tokens.len(), told.len()), (Finish::Interrupted, 2, 2));
        // Also in the prompt.
        struct Impatient;
        impl Listener for Impatient {
            fn prompt(&mut self, progress: Progress) -> ControlFlow<()> {
                if progress.done >= 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            fn text(&mut self, _: &str) -> ControlFlow<()> {
                unreachable!("there is no token")
            }
        }
        let mut script = Script { chunks: 4, ..Script::new(&[HELLO]) };
        let options = GenerateOptions::default();
        let made = run(&mut script, &tokenizer(), &[1; 8], &options, &mut Impatient).expect("no error");
        assert_eq!((made.finish, made.timings.prompt_tokens), (Finish::Interrupted, 2));
    }

    #[test]
    fn a_full_context_is_the_end() {
        let mut script = Script { room: 2, ..Script::new(&[HELLO; 9]) };
        let (made, _) = pieces(&mut script, &GenerateOptions::default(), usize::MAX);
        assert_eq!((made.finish, made.text.as_str()), (Finish::ContextFull, "HelloHello"));
    }

    #[test]
    fn ends_can_be_ignored_and_control_tokens_shown() {
        let options = GenerateOptions {
            max_tokens: Some(3),
            ignore_end: true,
            special: true,
            ..GenerateOptions::default()
        };
        let (made, _) = pieces(&mut Script::new(&[HELLO, END, HELLO]), &options, usize::MAX);
        assert_eq!((made.finish, made.text.as_str()), (Finish::Length, "Hello</s>Hello"));
        let none = GenerateOptions { max_tokens: Some(0), ..GenerateOptions::default() };
        let (made, _) = pieces(&mut Script::new(&[]), &none, usize::MAX);
        assert_eq!((made.finish, made.tokens.len()), (Finish::Length, 0));
    }
}
