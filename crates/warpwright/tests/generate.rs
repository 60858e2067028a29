//! The commands that run a model, as their users run them, on the model that is built in.

mod common;

use common::npy::to_f32s;
use common::{Folder, json, npy, run, run_with, status, stdout};
use serde_json::Value;
use std::process::Output;
use warpwright::llm::gguf::Gguf;
use warpwright::llm::gguf::write::GgufWriter;

const PROMPT: &str = "Once upon a time";

fn generate(arguments: &[&str]) -> Output {
    run(&[&["generate"], arguments].concat())
}

fn document(arguments: &[&str]) -> Value {
    let output = generate(&[arguments, &["--json"]].concat());
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

fn text(document: &Value) -> &str {
    document["text"].as_str().expect("a text")
}

/// Exits with 2 and one line on standard error, which is returned; nothing on standard output.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!((status(&output), stdout(&output)), (2, ""), "{arguments:?}");
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

#[test]
fn text_goes_to_standard_output_and_all_else_to_standard_error() {
    let wanted = document(&[PROMPT, "-n", "6", "--temp", "0"]);
    let output = generate(&[PROMPT, "-n", "6", "--temp", "0", "--stats"]);
    assert_eq!((status(&output), stdout(&output)), (0, format!("{PROMPT}{}\n", text(&wanted)).as_str()));
    let without = generate(&["-p", PROMPT, "-n", "6", "--temp", "0", "--no-display-prompt"]);
    assert_eq!(stdout(&without), format!("{}\n", text(&wanted)));
    let piped = run_with(&["generate", "-f", "-", "-n", "6", "--temp", "0"], PROMPT);
    assert_eq!(stdout(&piped), stdout(&output));
}

#[test]
fn the_document_says_what_was_done() {
    let made = document(&[PROMPT, "-n", "5", "--temp", "0", "-c", "64", "--kv", "f32"]);
    assert_eq!(
        (&made["version"], &made["model"], &made["finish"]),
        (&1.into(), &"tiny".into(), &"length".into())
    );
    assert_eq!(made["tokens"].as_array().expect("a list").len(), 5);
    assert_eq!((&made["engine"]["context"], &made["engine"]["cache"]), (&64.into(), &"f32".into()));
    assert_eq!(made["timings"]["prefill"]["tokens"], made["prompt_tokens"].as_array().expect("a list").len());
    assert_eq!(made["timings"]["decode"]["tokens"], 4);
    assert_eq!(made["findings"], Value::Array(Vec::new()));
}

#[test]
fn a_seed_gives_its_text_again() {
    let first = document(&[PROMPT, "-n", "8", "--temp", "1.5", "--top-k", "0", "--min-p", "0"]);
    let seed = first["sampling"]["seed"].to_string();
    let with = |seed: &str| {
        document(&[PROMPT, "-n", "8", "--temp", "1.5", "--top-k", "0", "--min-p", "0", "-s", seed])
    };
    assert_eq!(with(&seed)["tokens"], first["tokens"]);
    assert_ne!(with("1")["tokens"], with("2")["tokens"], "seeds make a difference");
}

#[test]
fn a_stop_string_ends_the_text_before_it() {
    let whole = document(&[PROMPT, "-n", "12", "--temp", "0"]);
    let whole = text(&whole);
    let words: Vec<&str> = whole.split(' ').collect();
    let stop = format!(" {} ", words[3]);
    let stopped = document(&[PROMPT, "-n", "12", "--temp", "0", "--stop", "never", "--stop", &stop]);
    assert_eq!((&stopped["finish"], stopped["stop"].as_str()), (&"stop".into(), Some(stop.as_str())));
    assert_eq!(text(&stopped), &whole[..whole.find(&stop).expect("it is there")]);
}

#[test]
fn a_context_that_does_not_suffice_is_refused_with_its_numbers() {
    // Asked for more than there is room for: the text is printed, and then why there is no more.
    let output = generate(&[PROMPT, "-n", "64", "-c", "16", "--temp", "0"]);
    assert_eq!(status(&output), 2);
    assert!(stdout(&output).starts_with(PROMPT));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(
        stderr.lines().last(),
        Some(
            "error: the context of 16 tokens (no more were asked for) is full after a prompt of 5 and 12 of 64 new tokens \
             (`-n`), of which the last needs no place: ask for fewer; a larger context helps, of up to 512 tokens (`-c`)"
        )
    );
    // As many as there is room for: nothing is wrong.
    let all = document(&[PROMPT, "-n", "-1", "-c", "16", "--temp", "0"]);
    assert_eq!(all["finish"], "context-full");
    // A prompt that there is no room for: nothing is shown of it.
    assert_eq!(
        refused(&["generate", "-c", "4", PROMPT]),
        "error: a prompt of 5 tokens does not fit into the context of 4 tokens (no more were asked for): shorten it; a \
         larger context helps, of up to 512 tokens\n"
    );
    // Room for the prompt alone: what follows it is chosen, and needs none.
    let all = document(&[PROMPT, "-n", "1", "-c", "5", "--temp", "0"]);
    assert_eq!((&all["finish"], all["prompt_tokens"].as_array().map(Vec::len)), (&"length".into(), Some(5)));
}

#[test]
fn what_cannot_be_done_is_said_in_a_line() {
    let folder = Folder::new("generate_refused");
    let damaged = folder.write("damaged.gguf", "GGUF, but not really");
    refused(&["generate"]);
    refused(&["generate", "-m", &damaged, PROMPT]);
    refused(&["generate", "-m", "there/is/no/such.gguf", PROMPT]);
    refused(&["generate", "--device", "cuda:0", PROMPT]);
    refused(&["generate", "-c", "100000", PROMPT]);
    refused(&["generate", "--temp", "nan", PROMPT]);
    refused(&["generate", "--temp", "-1", PROMPT]);
    refused(&["generate", "--no-bos", ""]);
    refused(&["logits", "--tokens", "1,99999", "-o", folder.path().join("x.npy").to_str().expect("UTF-8")]);
    refused(&["logits", "--tokens", &["0"; 513].join(","), "-o", "no.npy"]);
    refused(&["bench", "-p", "0", "-n", "0"]);
    refused(&["bench", "-p", "513"]);
    assert!(!folder.path().join("x.npy").exists(), "no file is left");
}

#[test]
fn the_checks_find_nothing() {
    let output = generate(&[
        PROMPT,
        "-n",
        "2",
        "--temp",
        "0.9",
        "-s",
        "3",
        "--repeat-penalty",
        "1.1",
        "--check",
        "all",
    ]);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Logits of these tokens.
fn logits(name: &str, tokens: &str, further: &[&str]) -> Vec<f32> {
    let folder = Folder::new(&format!("logits_{name}"));
    let path = folder.path().join("logits.npy");
    let path = path.to_str().expect("UTF-8");
    let output = run(&[&["logits", "--tokens", tokens, "-o", path], further].concat());
    assert_eq!((status(&output), stdout(&output)), (0, ""), "{}", String::from_utf8_lossy(&output.stderr));
    let (header, data) = npy::read(path);
    assert_eq!(header, npy::header("<f4", &format!("({}, 3072)", tokens.split(',').count())));
    to_f32s(&data)
}

#[test]
fn logits_are_the_same_token_by_token_and_in_chunks() {
    let tokens = "0,5,100,200,300,17,4,9,80,1000,2000,3000";
    let single = logits("single", tokens, &["--kv", "f32"]);
    let chunks = logits("chunks", tokens, &["--kv", "f32", "--chunk", "12"]);
    for (row, (a, b)) in single.chunks(3072).zip(chunks.chunks(3072)).enumerate() {
        let norm =
            |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let error = norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut a.iter().copied());
        assert!(error < 3e-3, "row {row}: {error}");
    }
    let greedy = document(&["--no-bos", "-p", PROMPT, "-n", "1", "--temp", "0", "--kv", "f32"]);
    let ids: Vec<String> =
        greedy["prompt_tokens"].as_array().expect("a list").iter().map(Value::to_string).collect();
    let last = logits("greedy", &ids.join(","), &["--kv", "f32"]);
    let row = &last[last.len() - 3072..];
    let best = (0..3072).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a row");
    assert_eq!(greedy["tokens"][0], best, "greedy takes the largest");
}

/// The model that is built in, with some of its metadata, and changes to the bytes of its tensors.
fn rewritten(
    folder: &Folder,
    name: &str,
    kept: impl Fn(&str) -> bool,
    change: impl Fn(&str, &mut [u8]),
) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny.gguf");
    let gguf = Gguf::open(path).expect("the model");
    let mut file = GgufWriter::new();
    for (key, value) in gguf.metadata().iter().filter(|(key, _)| kept(key)) {
        file.set(key, value.clone());
    }
    for tensor in gguf.tensors() {
        let mut data = gguf.data(tensor).to_vec();
        change(&tensor.name, &mut data);
        file.tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data);
    }
    let path = folder.path().join(name);
    std::fs::write(&path, file.to_bytes().expect("a file")).expect("a folder to write to");
    path.to_str().expect("UTF-8").to_string()
}

#[test]
fn what_knows_tokens_by_their_ids_needs_no_vocabulary() {
    let folder = Folder::new("no_vocabulary");
    let bare = rewritten(&folder, "bare.gguf", |key| !key.starts_with("tokenizer."), |_, _| {});
    assert_eq!(logits("bare", "3,1,2", &["-m", &bare]), logits("whole", "3,1,2", &[]));
    let output = run(&["bench", "-m", &bare, "-p", "2", "-n", "1", "-r", "1", "--no-warmup"]);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    // What needs one is refused, and the file is named once.
    let message = refused(&["generate", "-m", &bare, PROMPT]);
    assert_eq!(message.matches("bare.gguf").count(), 1, "{message}");
}

#[test]
fn numbers_that_are_none_end_it_and_their_tensor_is_named() {
    let folder = Folder::new("not_finite");
    let story =
        folder.write("story.txt", &"Once upon a time, there was a small rabbit called Dana. ".repeat(12));
    let npy = folder.path().join("logits.npy");
    let npy = npy.to_str().expect("UTF-8");
    let nan = f32::NAN.to_le_bytes();
    // A number of a norm, and the scale of a block of 256 weights, the first half of its 144 bytes.
    for (tensor, at, bytes, place) in [
        ("blk.2.ffn_norm.weight", 4 * 17, &nan[..], "row 0, column 17"),
        ("blk.3.ffn_up.weight", 144 * 5, &[0x00, 0x7e], "row 5, column 0"),
    ] {
        let model = rewritten(
            &folder,
            "damaged.gguf",
            |_| true,
            |name, data| {
                if name == tensor {
                    data[at..at + bytes.len()].copy_from_slice(bytes);
                }
            },
        );
        let why = format!(
            "the weight `{tensor}` has NaN in {place}: the file is damaged, or was made so; take another one"
        );
        let error = |after: u32| format!("error: the logits after {after} tokens are not finite: {why}");
        let template = folder.write("plain.jinja", "{{ bos_token }}{{ messages[-1].content }}");
        for (after, arguments, input) in [
            (5, &["generate", PROMPT][..], ""),
            (5, &["generate", PROMPT, "--temp", "0", "--json"], ""),
            (5, &["generate", PROMPT, "--executor", "persistent", "--blocks", "2"], ""),
            (5, &["chat", "--template", &template], "Once upon a time\n"),
            (1, &["logits", "--tokens", "1,2,3", "-o", npy], ""),
            (17, &["perplexity", &story, "-c", "32"], ""),
        ] {
            let output = run_with(&[arguments, &["-m", &model]].concat(), input);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!((status(&output), stdout(&output)), (2, ""), "{arguments:?}: {stderr}");
            assert_eq!(stderr.lines().last(), Some(error(after).as_str()), "{arguments:?}");
        }
        assert!(!std::path::Path::new(npy).exists(), "no file is left");
    }
}

#[test]
fn bench_measures_what_it_is_asked_for() {
    let output = run(&["bench", "-p", "16", "-n", "2", "-r", "2", "--json"]);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output);
    let tests: Vec<_> = document["tests"].as_array().expect("a list").iter().collect();
    assert_eq!([&tests[0]["test"], &tests[1]["test"]], ["pp16", "tg2"]);
    assert!(tests.iter().all(|test| test["samples"].as_array().expect("a list").len() == 2));
}

#[test]
fn perplexity_needs_two_windows() {
    let story = "Once upon a time, there was a small rabbit called Dana. ".repeat(12);
    let output = run_with(&["perplexity", "-", "-c", "32", "--windows", "2", "--json"], &story);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output);
    assert_eq!((&document["windows"], &document["scored"]), (&2.into(), &30.into()));
    assert!(document["perplexity"].as_f64().is_some_and(|perplexity| (1.0..1000.0).contains(&perplexity)));
    assert_eq!(status(&run_with(&["perplexity", "-", "-c", "32"], "short")), 2);
}

#[test]
fn a_conversation_goes_on_line_by_line() {
    let folder = Folder::new("chat");
    let template =
        folder.write("story.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}");
    let talk = |input: &str| run_with(&["chat", "--template", &template, "-n", "4", "--temp", "0"], input);
    let (one, two) = (talk("Once upon\n"), talk("Once upon\n/reset\n\nOnce upon\n/exit\nnever\n"));
    assert_eq!((status(&one), status(&two)), (0, 0), "{}", String::from_utf8_lossy(&two.stderr));
    assert!(!stdout(&one).is_empty());
    assert_eq!(stdout(&two), stdout(&one).repeat(2), "after a reset it is the same");
    // The model that is built in begins a story with each message, and tells it as it would without a conversation.
    let built_in = run_with(&["chat", "-n", "4", "--temp", "0"], "hello\nOnce upon a time\n");
    let told = generate(&[PROMPT, "-n", "4", "--temp", "0", "--no-display-prompt"]);
    assert_eq!((status(&built_in), stdout(&built_in).lines().nth(1)), (0, stdout(&told).lines().next()));
    let system = run_with(&["chat", "-n", "4", "--temp", "0", "--system", "Once"], "upon a time\n");
    assert_eq!((status(&system), stdout(&system)), (0, stdout(&told)));
    // The prompt, as the model is given it, with what a terminal would act on escaped.
    let output = run_with(
        &[
            "chat",
            "--template",
            &template,
            "-n",
            "4",
            "--temp",
            "0",
            "--show-prompt",
            "--system",
            "Be\tkind\x1b.",
        ],
        "Once upon\n",
    );
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let shown: Vec<&str> = stderr.lines().skip(1).collect();
    assert_eq!(shown, ["<|begin|>Be\tkind\\u{1b}.", "Once upon", ""]);
    // A file without a template has none.
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/models/tiny.gguf");
    assert_eq!(status(&run_with(&["chat", "-m", tiny], "hello\n")), 2);
    // Commands are no messages, and what looks like one is not answered.
    let commands = talk("/help\nOnce upon\n/clear\n/system\nOnce upon\n/quit\nnever\n");
    assert_eq!((status(&commands), stdout(&commands)), (0, stdout(&one).repeat(2).as_str()));
    assert_eq!((status(&talk("/rest\n")), stdout(&talk("/rest\n"))), (2, ""));
    let refusing = folder.write("refusing.jinja", "{{ raise_exception('no') }}");
    // Nobody sees the message where there is no terminal: the exit status says it.
    let output = run_with(&["chat", "--template", &refusing], "hello\n");
    assert_eq!((status(&output), stdout(&output)), (2, ""));
    // What comes after a refused message is answered.
    let choosy = folder.write(
        "choosy.jinja",
        "{% if messages[-1].content == 'no' %}{{ raise_exception('no') }}{% endif %}\
         {{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}",
    );
    let talk = |input: &str| run_with(&["chat", "--template", &choosy, "-n", "4", "--temp", "0"], input);
    let (one, two) = (talk("Once upon\n"), talk("no\nOnce upon\n"));
    assert_eq!((status(&one), status(&two), stdout(&two)), (0, 2, stdout(&one)));
}

#[test]
fn a_line_break_at_the_end_of_a_file_is_not_part_of_the_prompt() {
    let folder = Folder::new("line_break");
    let prompt = |text: &str| {
        let file = folder.write("prompt.txt", text);
        document(&["-f", &file, "-n", "1", "--temp", "0"])["prompt"].clone()
    };
    assert_eq!(prompt("Once upon a time\n"), "Once upon a time");
    assert_eq!(prompt("Once upon a time\r\n"), "Once upon a time");
    assert_eq!(prompt("Once\n\n"), "Once\n");
    assert_eq!(prompt(" Once upon a time "), " Once upon a time ");
}

/// Starts the program, with what it reads and writes in pipes.
#[cfg(unix)]
fn start(arguments: &[&str]) -> std::process::Child {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Ctrl-C is sent as shells send it.
#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_prompt_is_over_soon_and_its_text_is_what_there_is() {
    use std::io::Read;
    let prompt = "There was once a fox. ".repeat(40);
    let mut child = start(&["generate", &prompt, "-n", "1", "--check", "all", "--json"]);
    // How long it will take is said when all is loaded.
    let mut said = [0];
    child.stderr.as_mut().expect("piped").read_exact(&mut said).expect("it is loaded");
    std::thread::sleep(std::time::Duration::from_millis(200));
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 130);
    let made = json(&output);
    assert_eq!((&made["finish"], &made["tokens"]), (&"interrupted".into(), &Value::Array(Vec::new())));
    let (done, all) = (&made["timings"]["prefill"]["tokens"], made["prompt_tokens"].as_array().map(Vec::len));
    assert!(done.as_u64().expect("a number") < all.expect("a list") as u64);
}

#[cfg(unix)]
#[test]
fn interrupted_logits_leave_no_file() {
    let folder = Folder::new("interrupted_logits");
    let path = folder.path().join("logits.npy");
    let tokens = ["5"; 512].join(",");
    let path = path.to_str().expect("UTF-8");
    let child = start(&["logits", "--tokens", &tokens, "-o", path, "--check", "all"]);
    // It is written beside its place.
    let files = || std::fs::read_dir(folder.path()).expect("a folder").count();
    while files() == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((status(&output), files()), (130, 0));
}

#[cfg(unix)]
#[test]
fn an_interrupted_conversation_ends_where_nobody_watches() {
    use std::io::{Read, Write};
    let folder = Folder::new("interrupted_chat");
    let template =
        folder.write("plain.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}");
    let mut child = start(&["chat", "--template", &template, "--check", "all"]);
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"Once upon a time\nOnce upon\n").expect("it reads");
    let mut seen = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut seen).expect("it answers");
    interrupt(&child);
    assert_eq!(status(&child.wait_with_output().expect("it ends")), 130);
}

#[cfg(unix)]
#[test]
fn an_interruption_ends_it_with_what_there_is() {
    use std::io::Read;
    let mut child = start(&["generate", PROMPT, "-n", "-1", "--ignore-eos"]);
    let mut out = child.stdout.take().expect("piped");
    // Once the prompt and a piece of text have come, it generates.
    let mut seen = vec![0; PROMPT.len() + 1];
    out.read_exact(&mut seen).expect("it begins");
    interrupt(&child);
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(rest.last(), Some(&b'\n'), "the line is ended");
}

/// The text does not depend on what decodes it.
#[test]
fn a_persistent_launch_tells_the_same_story() {
    for further in [&["--temp", "0"][..], &["-s", "7", "--repeat-penalty", "1.1"]] {
        let arguments = [&[PROMPT, "-n", "24"], further].concat();
        let graph = document(&arguments);
        let persistent = document(&[&arguments[..], &["--executor", "persistent", "--blocks", "2"]].concat());
        assert_eq!(persistent["tokens"], graph["tokens"]);
        assert_eq!(persistent["text"], graph["text"]);
        let engine = &persistent["engine"];
        assert_eq!((&engine["executor"], &engine["fallback"]), (&"persistent".into(), &Value::Null));
        assert_eq!(graph["persistent"], Value::Null);
        // One launch for all tokens but the one that the prompt chooses.
        let done = &persistent["persistent"];
        assert_eq!((&done["launches"], &done["tokens"], &done["blocks"]), (&1.into(), &23.into(), &2.into()));
    }
    let short = document(&[PROMPT, "-n", "13", "--executor", "persistent", "--tokens-per-launch", "5"]);
    assert_eq!((&short["persistent"]["launches"], &short["persistent"]["tokens"]), (&3.into(), &12.into()));
}

#[test]
fn the_checks_find_nothing_in_a_persistent_launch() {
    let arguments =
        [PROMPT, "-n", "3", "-s", "3", "--executor", "persistent", "--blocks", "4", "--check", "all"];
    let output = generate(&arguments);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Where blocks cannot all be resident, graphs are used, which is said in a line, or it is an error.
#[test]
fn what_cannot_be_persistent_is_said() {
    let arguments = ["-n", "4", "--temp", "0", "--executor", "persistent", "--blocks", "1000000"];
    let output = generate(&[&[PROMPT, "--json"], &arguments[..]].concat());
    let stderr = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!((status(&output), stderr.lines().filter(|line| line.starts_with("note: ")).count()), (0, 1));
    let document = json(&output);
    assert_eq!(document["engine"]["executor"], "graph");
    assert!(document["engine"]["fallback"].is_string() && document["persistent"].is_null());
    refused(&[&["generate", PROMPT, "--no-fallback"], &arguments[..]].concat());
    // What goes with it alone, and what it does not go with.
    refused(&["generate", PROMPT, "--blocks", "2"]);
    refused(&["generate", PROMPT, "--executor", "persistent", "--blocks", "0"]);
    refused(&["generate", PROMPT, "--executor", "persistent", "--tokens-per-launch", "0"]);
    refused(&["logits", "--tokens", "1", "-o", "no.npy", "--executor", "persistent"]);
    refused(&["perplexity", "no.txt", "--executor", "persistent"]);
}
