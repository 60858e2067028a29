//! The runs that a file asks for and the findings that it marks.

use super::value::{Element, Type, elements, number};

/// A file's runs and marks.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) runs: Vec<Run>,
    pub(crate) marks: Vec<Mark>,
}

/// A launch and what is expected of it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Line of the comment, from 1.
    pub(crate) line: usize,
    pub(crate) label: Option<String>,
    /// The kernel below the comment.
    pub(crate) entry: String,
    /// Lines of that kernel.
    pub(crate) body: std::ops::Range<usize>,
    pub(crate) options: RunOptions,
    pub(crate) args: Vec<Argument>,
    /// What it prints.
    pub(crate) prints: Option<String>,
}

/// The launch's shape and the device's options.
#[derive(Debug, Clone)]
pub(crate) struct RunOptions {
    pub(crate) grid: (u32, u32, u32),
    pub(crate) block: (u32, u32, u32),
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    pub(crate) cluster: Option<(u32, u32, u32)>,
    /// Names of the checks; none means all.
    pub(crate) checks: Option<Vec<String>>,
    pub(crate) strict: bool,
    pub(crate) budget: Option<u64>,
    pub(crate) sm: Option<u32>,
    pub(crate) tensor_core: Option<String>,
}

/// An argument, in the order of the kernel's parameters.
#[derive(Debug, Clone)]
pub(crate) enum Argument {
    /// A number, or the bytes of a structure.
    Bytes(Vec<u8>),
    Buffer {
        ty: Type,
        before: Vec<Element>,
        /// Contents after the run, where they are to be compared.
        after: Option<Vec<Element>>,
        /// The host frees it before the launch.
        freed: bool,
    },
    /// The multimem address of the buffer that is the argument with that number, or of nothing.
    Multimem(Option<usize>),
}

/// What a line is expected to be found guilty of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    /// The run that it is about.
    pub(crate) label: Option<String>,
    pub(crate) kind: String,
    /// Marks with the same number are of one finding.
    pub(crate) group: u32,
    pub(crate) role: String,
}

impl File {
    pub(crate) fn parse(text: &str) -> Result<File, String> {
        let mut file = File::default();
        let lines: Vec<&str> = text.lines().collect();
        let mut i = 0;
        while i < lines.len() {
            let line = i + 1;
            marks(line, lines[i], &mut file.marks).map_err(|why| format!("line {line}: {why}"))?;
            let Some(mut run) = lines[i].strip_prefix("// run").map(str::to_string) else {
                i += 1;
                continue;
            };
            while let Some(more) = lines.get(i + 1).and_then(|next| next.strip_prefix("//    ")) {
                run.push(' ');
                run.push_str(more.trim());
                i += 1;
            }
            let parsed = parse_run(&run).and_then(|parsed| Ok((parsed, entry_below(&lines, i)?)));
            let ((label, options, args, prints), (entry, body)) =
                parsed.map_err(|why| format!("line {line}: {why}"))?;
            file.runs.push(Run { line, label, entry, body, options, args, prints });
            i += 1;
        }
        if file.runs.is_empty() {
            return Err("has no `// run: …`".to_string());
        }
        for mark in &file.marks {
            if !file.runs.iter().any(|run| run.expects(mark)) {
                return Err(format!("line {}: no run is there for this mark", mark.line));
            }
        }
        Ok(file)
    }
}

impl Run {
    /// Whether a mark is about this run: it has the run's label, and stands in the run's kernel or
    /// outside of kernels.
    pub(crate) fn expects(&self, mark: &Mark) -> bool {
        mark.label == self.label && self.body.contains(&mark.line)
    }
}

/// Name and lines of the first kernel after line `i`, from 0; the lines go on to the next kernel, so
/// that device functions below a kernel belong to it.
fn entry_below(lines: &[&str], i: usize) -> Result<(String, std::ops::Range<usize>), String> {
    let is_entry = |line: &&str| !line.starts_with("//") && line.contains(".entry ");
    let at = lines.iter().skip(i).position(&is_entry).map(|at| at + i);
    let at = at.ok_or("no `.entry` stands below this run")?;
    let name = lines[at].split(".entry ").nth(1).unwrap_or_default();
    let name = name.split(['(', ' ', '\t']).next().unwrap_or_default();
    let end = lines.iter().skip(at + 1).position(is_entry).map_or(lines.len(), |n| at + 1 + n);
    Ok((name.to_string(), at + 1..end + 1))
}

/// The marks of a line: `//~ [LABEL:] KIND[#GROUP] [ROLE]`, and `//~^` for the line above.
fn marks(line: usize, text: &str, out: &mut Vec<Mark>) -> Result<(), String> {
    for part in text.split("//~").skip(1) {
        let above = part.len() - part.trim_start_matches('^').len();
        let mut words = part[above..].split_whitespace().peekable();
        let label =
            words.next_if(|word| word.ends_with(':')).map(|word| word.trim_end_matches(':').to_string());
        let kind = words.next().ok_or("a mark names the kind of finding")?;
        let (kind, group) = kind.split_once('#').unwrap_or((kind, "0"));
        let group = group.parse().map_err(|_| format!("`#{group}` is no number of a finding"))?;
        let role = words.collect::<Vec<_>>().join(" ");
        out.push(Mark { line: line - above, label, kind: kind.to_string(), group, role });
    }
    Ok(())
}

type Parsed = (Option<String>, RunOptions, Vec<Argument>, Option<String>);

/// What follows `// run`.
fn parse_run(text: &str) -> Result<Parsed, String> {
    let (label, rest) = text.split_once(':').ok_or("a run is written `// run: …` or `// run LABEL: …`")?;
    let label = Some(label.trim().to_string()).filter(|label| !label.is_empty());
    let mut options = RunOptions {
        grid: (1, 1, 1),
        block: (1, 1, 1),
        shared: 0,
        cooperative: false,
        cluster: None,
        checks: None,
        strict: false,
        budget: None,
        sm: None,
        tensor_core: None,
    };
    let mut args: Vec<Argument> = Vec::new();
    let mut prints = None;
    let words = words(rest);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut next = |what: &str| words.next().ok_or(format!("`{word}` wants {what}"));
        match word {
            "->" => {
                let (ty, after) = array(next("an array")?)?.ok_or("`->` wants an array, `TYPE[…]`")?;
                let before = vec![Element::Unwritten; after.len()];
                args.push(Argument::Buffer { ty, before, after: Some(after), freed: false });
            }
            "=>" => {
                let list = next("an array")?;
                let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                match (args.last_mut(), list) {
                    (Some(Argument::Buffer { ty, before, after, .. }), Some(list)) => {
                        let expected = elements(*ty, list)?;
                        if expected.len() != before.len() {
                            let (was, is) = (before.len(), expected.len());
                            return Err(format!("the buffer has {was} elements, and {is} are expected"));
                        }
                        *after = Some(expected);
                    }
                    _ => return Err("`=> […]` stands after the buffer whose contents it says".to_string()),
                }
            }
            "prints" => prints = Some(unquoted(next("a text")?)?),
            "cooperative" => options.cooperative = true,
            "null" => args.push(Argument::Bytes(vec![0; 8])),
            _ => match word.split_once('=') {
                Some((key, value)) => options.set(key, value)?,
                None => args.push(argument(word)?),
            },
        }
    }
    Ok((label, options, args, prints))
}

impl RunOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = || format!("`{value}` is no value of `{key}`");
        let int = || value.parse().map_err(|_| bad());
        match key {
            "grid" => self.grid = extent(value).ok_or_else(bad)?,
            "block" => self.block = extent(value).ok_or_else(bad)?,
            "shared" => self.shared = int()?,
            "cluster" => self.cluster = Some(extent(value).ok_or_else(bad)?),
            "check" => {
                self.checks = Some(value.split(',').filter(|c| *c != "none").map(str::to_string).collect())
            }
            "race" => self.strict = if value == "strict" { true } else { return Err(bad()) },
            "budget" => self.budget = Some(value.parse().map_err(|_| bad())?),
            "sm" => self.sm = Some(int()?),
            "tensor-core" => self.tensor_core = Some(value.to_string()),
            _ => return Err(format!("there is no option `{key}`")),
        }
        Ok(())
    }
}

fn extent(text: &str) -> Option<(u32, u32, u32)> {
    let mut axes = text.split(',').map(|axis| axis.parse().ok());
    let (x, y, z) = (axes.next()??, axes.next().unwrap_or(Some(1))?, axes.next().unwrap_or(Some(1))?);
    axes.next().is_none().then_some((x, y, z))
}

/// The text as words; spaces between brackets and quotes do not separate.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut brackets, mut quoted) = (0, false);
    for c in text.chars() {
        match c {
            '[' => brackets += 1,
            ']' => brackets -= 1,
            '"' => quoted = !quoted,
            _ => {}
        }
        match words.last_mut() {
            Some(word) if brackets > 0 || quoted || !c.is_whitespace() => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `TYPE[…]`.
fn array(word: &str) -> Result<Option<(Type, Vec<Element>)>, String> {
    let Some((ty, list)) = word.strip_suffix(']').and_then(|word| word.split_once('[')) else {
        return Ok(None);
    };
    let ty = Type::parse(ty).ok_or(format!("`{ty}` is no type"))?;
    Ok(Some((ty, elements(ty, list)?)))
}

fn argument(word: &str) -> Result<Argument, String> {
    let (freed, word) = word.strip_prefix("freed:").map_or((false, word), |word| (true, word));
    if let Some((ty, before)) = array(word)? {
        return Ok(Argument::Buffer { ty, before, after: None, freed });
    }
    let bad = || {
        format!("`{word}` is no argument: it is `TYPE:VALUE`, `TYPE[…]`, `null`, `multimem:N` or `raw:HEX`")
    };
    let (ty, value) = word.split_once(':').filter(|_| !freed).ok_or_else(bad)?;
    if ty == "multimem" {
        let of = if value == "none" { Ok(None) } else { value.parse().map(Some) };
        return of.map(Argument::Multimem).map_err(|_| bad());
    }
    if ty == "raw" {
        let byte = |i| u8::from_str_radix(value.get(i..i + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..value.len()).step_by(2).map(byte).collect();
        return bytes.map(Argument::Bytes).ok_or_else(bad);
    }
    let ty = Type::parse(ty).ok_or_else(bad)?;
    let bits = number(ty, value)?.bits(ty);
    Ok(Argument::Bytes(bits.to_le_bytes()[..ty.bytes()].to_vec()))
}

fn unquoted(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    text.map(|text| text.replace("\\n", "\n")).ok_or("`prints` wants a text in quotes".to_string())
}

#[test]
fn runs_and_marks() {
    let text = "\
// test: vm
// run over: grid=2 block=4,2 shared=16 cooperative check=racecheck s32:-1 u32[1, 2 x 2] => [3, 4, 5]
//     -> f32[1.5] raw:0aff null prints \"a b\\n\"
.visible .entry k(.param .u32 n)
{
    ld.global.u32 %r1, [%rd1]; //~ over: race#3 read //~ over: out-of-bounds
    //~^ over: budget
}
";
    let file = File::parse(text).unwrap();
    let run = &file.runs[0];
    assert_eq!((run.entry.as_str(), run.label.as_deref(), run.line), ("k", Some("over"), 2));
    assert_eq!((run.options.grid, run.options.block), ((2, 1, 1), (4, 2, 1)));
    assert_eq!((run.options.shared, run.options.cooperative), (16, true));
    assert_eq!(run.options.checks.as_deref(), Some(&["racecheck".to_string()][..]));
    assert_eq!(run.args.len(), 5);
    assert!(matches!(&run.args[0], Argument::Bytes(bytes) if bytes == &[0xff; 4]));
    assert!(matches!(&run.args[1], Argument::Buffer { before, after: Some(after), .. }
        if before.len() == 3 && after[2] == Element::Bits(5)));
    assert!(matches!(&run.args[2], Argument::Buffer { before, .. } if before[..] == [Element::Unwritten]));
    assert!(matches!(&run.args[3], Argument::Bytes(bytes) if bytes == &[0x0a, 0xff]));
    assert_eq!(run.prints.as_deref(), Some("a b\n"));
    let mark = |kind: &str, group, role: &str| Mark {
        line: 6,
        label: Some("over".to_string()),
        kind: kind.to_string(),
        group,
        role: role.to_string(),
    };
    assert_eq!(file.marks, [mark("race", 3, "read"), mark("out-of-bounds", 0, ""), mark("budget", 0, "")]);
}

#[test]
fn mistakes_are_named() {
    for (run, why) in [
        ("// run: grid=0x", "is no value of `grid`"),
        ("// run: u32:-1", "is no u32"),
        ("// run: u32[1] => [1, 2]", "has 1 elements, and 2 are expected"),
        ("// run: => [1]", "stands after the buffer"),
        ("// run: q32[1]", "is no type"),
        ("// run: fast=1", "there is no option"),
        ("// run: 7", "is no argument"),
    ] {
        let error = File::parse(&format!("{run}\n.entry k()\n")).unwrap_err();
        assert!(error.starts_with("line 1: ") && error.contains(why), "{run}: {error}");
    }
    assert!(File::parse(".entry k()\n").is_err());
    assert!(File::parse("// run: \n.entry k()\nret; //~ other: race\n").is_err(), "a mark without a run");
}
