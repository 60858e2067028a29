//! What a person sees and types on a terminal: the program runs on one whose screen the test has.
#![cfg(target_os = "linux")]

mod common;

use common::{run, stdout};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What has been on the screen: what is, and every line that ever was.
struct Screen {
    now: vt100::Parser,
    lines: Vec<String>,
    closed: bool,
}

struct Terminal {
    keyboard: File,
    /// Keeps the terminal, so that its modes can be looked at when the program is gone.
    modes: Option<OwnedFd>,
    program: Child,
    screen: Arc<(Mutex<Screen>, Condvar)>,
}

impl Terminal {
    /// Starts the program on a terminal that is so wide.
    fn start(columns: u16, arguments: &[&str]) -> Terminal {
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).expect("a terminal");
        let end = || Stdio::from(pair.slave.try_clone().expect("a handle"));
        let program = Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(arguments)
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the program starts");
        let [rows, wide] = [size.ws_row, columns].map(|size| size.try_into().expect("not zero"));
        let now = vt100::Parser::new(rows, wide, 0);
        let screen = Arc::new((Mutex::new(Screen { now, lines: Vec::new(), closed: false }), Condvar::new()));
        let keyboard = File::from(pair.master);
        let (mut output, shown) = (keyboard.try_clone().expect("a handle"), screen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = output.read(&mut bytes).unwrap_or(0);
                let mut screen = shown.0.lock().expect("whole");
                // A byte at a time: what is drawn over at once was there all the same.
                for byte in &bytes[..read] {
                    screen.now.process(&[*byte]);
                    if matches!(byte, b'\r' | b'\n' | 0x1b) {
                        let rows = screen.now.screen().rows(0, columns);
                        let lines: Vec<String> = rows.map(|row| row.trim_end().to_string()).collect();
                        screen.lines.extend(lines);
                        screen.lines.sort();
                        screen.lines.dedup();
                    }
                }
                screen.closed = read == 0;
                shown.1.notify_all();
                if read == 0 {
                    break;
                }
            }
        });
        Terminal { keyboard, modes: Some(pair.slave), program, screen }
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it is read");
    }

    /// Waits for a screen with what is told of it.
    fn wait_for(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) {
        let screen = self.screen.0.lock().expect("whole");
        let until = |screen: &mut Screen| !is(screen.now.screen());
        let (screen, waited) = self.screen.1.wait_timeout_while(screen, PATIENCE, until).expect("whole");
        assert!(!waited.timed_out(), "no {what}:\n{}", screen.now.screen().contents());
    }

    /// Waits until the cursor stands behind an empty prompt, which is in a row of that number at least.
    fn prompted(&self, row: u16) -> u16 {
        let here = |screen: &vt100::Screen| {
            let (at, column) = screen.cursor_position();
            let line = screen.rows(0, 80).nth(at.into()).unwrap_or_default();
            (at >= row && column == 2 && line.trim_end() == ">").then_some(at)
        };
        self.wait_for("prompt", |screen| here(screen).is_some());
        let screen = self.screen.0.lock().expect("whole");
        screen.now.screen().cursor_position().0
    }

    /// Whether the terminal shows what is typed, and makes signals of Ctrl-C, as one does that nobody edits on.
    fn is_plain(&self) -> bool {
        let modes = tcgetattr(self.modes.as_ref().expect("open")).expect("modes").local_flags;
        modes.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.program.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
    }

    /// The exit status, what is on the screen at the end, and all lines that ever were.
    fn end(mut self) -> (Option<i32>, String, Vec<String>) {
        let begun = Instant::now();
        let status = loop {
            match self.program.try_wait().expect("it can be waited for") {
                Some(status) => break status.code(),
                None => assert!(begun.elapsed() < PATIENCE, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(self.is_plain(), "the terminal is left as it was");
        self.modes = None;
        let screen = self.screen.0.lock().expect("whole");
        let closed = self.screen.1.wait_timeout_while(screen, PATIENCE, |screen| !screen.closed);
        let screen = closed.expect("whole").0;
        assert!(!screen.now.screen().bracketed_paste(), "pasting is left as it was");
        let contents = screen.now.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        (status, lines.join("\n"), screen.lines.clone())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where a test has failed it may still run.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Whether a bar is all that stands in this line, from its beginning on, with numbers that count.
fn is_a_bar(line: &str) -> bool {
    let numbers = |text: &str, unit: &str| {
        let Some((done, total)) = text.strip_suffix(unit).and_then(|text| text.split_once('/')) else {
            return false;
        };
        let [done, total] = [done, total].map(|number| number.parse::<u64>().unwrap_or(0));
        done < total
    };
    let Some((what, rest)) = line.split_once(" [") else { return false };
    let Some((bar, rest)) = rest.split_once("] ") else { return false };
    let whole = bar.len() == 40 && bar.trim_start_matches('=').trim_start_matches('>').trim().is_empty();
    whole
        && match what {
            "prompt" => numbers(rest, " tokens"),
            "loading" => rest.contains('/') && !rest.ends_with("/0 B"),
            _ => false,
        }
}

const LONG: &str = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park \
    with her friends, and with the dog of her friends, and with the ball of the dog of her friends.";

#[test]
fn what_is_on_the_screen_at_the_end_is_what_was_said_whatever_its_width() {
    for (columns, prompt) in [(80, "Once upon a time"), (80, LONG), (100, LONG), (200, LONG), (60, LONG)] {
        let arguments = ["generate", prompt, "-n", "12", "--temp", "0"];
        let (status, screen, lines) = Terminal::start(columns, &arguments).end();
        let (announced, text) = screen.split_once('\n').expect("two lines");
        assert_eq!((status, text), (Some(0), stdout(&run(&arguments)).trim_end_matches('\n')), "{columns}");
        assert!(announced.starts_with("on the virtual GPU a token"), "{announced}");
        let bars: Vec<&String> = lines.iter().filter(|line| line.contains(['[', ']'])).collect();
        // What a narrow terminal has no room for is cut off.
        assert!(columns < 80 || bars.iter().all(|bar| is_a_bar(bar)), "{columns}: {bars:#?}");
        assert!(prompt != LONG || bars.iter().any(|bar| bar.starts_with("prompt")), "a bar was there");
    }
}

fn chat(further: &[&str]) -> (Terminal, u16) {
    let terminal = Terminal::start(80, &[&["chat"], further].concat());
    let row = terminal.prompted(0);
    (terminal, row)
}

#[test]
fn ctrl_c_where_nothing_is_typed_tells_how_to_leave_and_leaves_the_second_time() {
    let (mut terminal, row) = chat(&[]);
    terminal.type_in("\x03");
    let row = terminal.prompted(row + 1);
    // What is typed is discarded, and nobody leaves with that.
    terminal.type_in("Once");
    terminal.wait_for("echo", |screen| screen.contents().ends_with("> Once"));
    terminal.type_in("\x03");
    let row = terminal.prompted(row + 1);
    terminal.type_in("\x03");
    terminal.prompted(row + 2);
    terminal.type_in("\x03");
    let (status, screen, _) = terminal.end();
    let told = "Ctrl-C again, Ctrl-D or `/exit` leaves";
    let said: Vec<&str> = screen.lines().skip(2).collect();
    assert_eq!((status, said), (Some(0), vec![">", told, "> Once", ">", told, ">"]));
}

#[test]
fn a_conversation_is_left_by_its_commands_and_by_the_end_of_the_input() {
    for keys in ["\x04", "/exit\r", "/quit\r"] {
        let (mut terminal, _) = chat(&[]);
        assert!(!terminal.is_plain(), "lines are edited");
        terminal.type_in(keys);
        assert_eq!(terminal.end().0, Some(0), "{keys:?}");
    }
}

#[test]
fn a_signal_that_ends_it_leaves_the_terminal_as_it_was() {
    let (terminal, _) = chat(&[]);
    terminal.signal("-TERM");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn ctrl_c_stops_an_answer_and_the_conversation_goes_on() {
    let (mut terminal, row) = chat(&["--check", "all"]);
    terminal.type_in("Once upon a time\r");
    terminal.wait_for("answer", |screen| screen.contents().contains("\n, "));
    terminal.signal("-INT");
    terminal.prompted(row + 2);
    terminal.type_in("\x04");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn pasted_lines_are_one_message_and_what_was_typed_comes_back() {
    let folder = common::Folder::new("paste");
    let echo = "{{ bos_token }}{{ raise_exception(messages | length ~ ':' ~ messages[-1].content | replace('\n', '|')) }}";
    let template = folder.write("echo.jinja", echo);
    let (mut terminal, row) = chat(&["--template", &template]);
    terminal.type_in("\x1b[200~one\rtwo\x1b[201~\r");
    let row = terminal.prompted(row + 3);
    // The message before this one, with its end taken away and another one typed.
    terminal.type_in("\x1b[A\x7f\x7f2\r");
    terminal.prompted(row + 3);
    terminal.type_in("\x04");
    let (status, screen, _) = terminal.end();
    let refused = "error: the chat template refuses this conversation: ";
    let said: Vec<&str> = screen.lines().skip(2).collect();
    let (first, second) = (format!("{refused}1:one|two"), format!("{refused}1:one|t2"));
    assert_eq!((status, said), (Some(0), vec!["> one", "two", &first, "> one", "t2", &second, ">"]));
}
