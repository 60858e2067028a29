//! What people see of native code: names for a profiler and a debugger, and texts. `WARPWRIGHT_NATIVE_DEBUG` asks for it.

mod dump;
#[cfg(target_os = "linux")]
mod gdb;
mod perf;

use super::functions::Variant;
use crate::decode::Code;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use warpwright_ptx::ir::{Module, Origin};
use warpwright_ptx::{parse, print};

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// The map of `perf`.
    perf: bool,
    /// Names of functions in `gdb`.
    gdb: bool,
    /// The folder that has a text of each function.
    dump: Option<PathBuf>,
}

/// What the environment asks for: `perf`, `gdb` and `dump=FOLDER`, with commas between them. Another word is said to be
/// none of them on stderr, once.
fn wanted() -> &'static Wanted {
    static WANTED: OnceLock<Wanted> = OnceLock::new();
    WANTED.get_or_init(|| {
        let value = std::env::var("WARPWRIGHT_NATIVE_DEBUG").unwrap_or_default();
        Wanted::read(&value).unwrap_or_else(|word| {
            eprintln!("WARPWRIGHT_NATIVE_DEBUG={value}: `{word}` is not `perf`, `gdb` or `dump=FOLDER`");
            Wanted::default()
        })
    })
}

impl Wanted {
    /// The word that is none, if there is one.
    fn read(value: &str) -> Result<Wanted, &str> {
        let mut wanted = Wanted::default();
        for word in value.split(',').filter(|word| !word.is_empty()) {
            match (word, word.strip_prefix("dump=")) {
                ("perf", _) => wanted.perf = true,
                ("gdb", _) if cfg!(target_os = "linux") => wanted.gdb = true,
                (_, Some(folder)) if !folder.is_empty() => wanted.dump = Some(folder.into()),
                _ => return Err(word),
            }
        }
        Ok(wanted)
    }
}

/// Gives functions the text of their statements, where native code will be shown beside it.
pub(crate) fn add_text(code: &mut Code, module: &Module) {
    if wanted().dump.is_none() {
        return;
    }
    // A module may come from no text. Its canonical one has the same statements.
    let text = print(module);
    let Ok(module) = parse(&text) else { return };
    let of = |origin| if let Origin::Text(span) = origin { &text[span.range()] } else { "" };
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let functions = module.functions().filter(|function| function.body.is_some());
    code.native.text = functions
        .map(|function| function.statements().iter().map(|statement| line(of(statement.origin))).collect())
        .collect();
}

/// A function that was compiled.
pub(super) struct Function<'a> {
    pub(super) code: &'a Code,
    pub(super) number: u32,
    pub(super) variant: Variant,
    /// Where its code is.
    pub(super) start: *const u8,
    pub(super) bytes: &'a [u8],
    /// Where instructions begin in it; behind the last one, the exits.
    pub(super) marks: Vec<(usize, u32)>,
}

/// What was made known and must be taken back before the code is freed.
#[derive(Debug, Default)]
pub(super) struct Known {
    #[cfg(target_os = "linux")]
    _gdb: Option<gdb::Object>,
}

/// A function was compiled: it is shown to those who are to see it. Nothing depends on that, so an error is no more than a
/// line on stderr.
pub(super) fn show(function: &Function<'_>) -> Known {
    let wanted = wanted();
    if wanted.perf {
        perf::note(function);
    }
    if let Some(folder) = &wanted.dump {
        dump::write(function, folder);
    }
    Known {
        #[cfg(target_os = "linux")]
        _gdb: wanted.gdb.then(|| gdb::Object::new(function)),
    }
}

impl Function<'_> {
    fn name(&self) -> &str {
        &self.code.functions[self.number as usize].name
    }

    /// The pieces of its code: what is before the instructions, each of them, and what is behind them.
    fn pieces(&self) -> impl Iterator<Item = (Range<usize>, Piece<'_>)> {
        let ends = self.marks.iter().skip(1).map(|mark| mark.0).chain([self.bytes.len()]);
        let first = self.marks.first().map_or(self.bytes.len(), |mark| mark.0);
        let instructions = self.marks.iter().zip(ends).map(|(&(from, pc), to)| {
            let is_instruction = (pc as usize) < self.code.insts.len();
            (from..to, if is_instruction { Piece::Instruction(self.code, pc) } else { Piece::Exits })
        });
        [(0..first, Piece::Entry)].into_iter().chain(instructions)
    }
}

/// A piece of a function's code.
enum Piece<'a> {
    Entry,
    Instruction(&'a Code, u32),
    Exits,
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Entry => f.write_str("entry"),
            Piece::Exits => f.write_str("exits"),
            Piece::Instruction(code, pc) => {
                let meta = code.meta.get(*pc as usize);
                let opcode = meta.and_then(|meta| meta.opcode);
                write!(f, "{pc}")?;
                opcode.map_or(Ok(()), |opcode| write!(f, " {}", code.opcodes[usize::from(opcode)]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_wanted() {
        let (perf, gdb) = (true, cfg!(target_os = "linux"));
        assert_eq!(Wanted::read(""), Ok(Wanted::default()));
        assert_eq!(Wanted::read("perf"), Ok(Wanted { perf, ..Wanted::default() }));
        let dump = Some("some/folder".into());
        assert_eq!(Wanted::read("dump=some/folder"), Ok(Wanted { dump: dump.clone(), ..Wanted::default() }));
        if gdb {
            assert_eq!(Wanted::read("dump=some/folder,gdb,perf"), Ok(Wanted { perf, gdb, dump }));
        }
        for (value, word) in [("1", "1"), ("perf,dump", "dump"), ("dump=", "dump="), ("perf, gdb", " gdb")] {
            assert_eq!(Wanted::read(value), Err(word), "{value}");
        }
    }
}
