//! `inspect` and `plan`: what they say of model files, right and wrong ones.

mod common;

use common::{Folder, json, run, status, stdout};
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use warpwright::kernels::WeightFormat;
use warpwright::llm::gguf::write::GgufWriter;
use warpwright::llm::gguf::{Gguf, TensorFormat};

/// The architectures that messages name.
const KNOWN: &str = "llama, qwen2, qwen3, qwen2moe, qwen3moe, qwen35, qwen35moe, gemma2, gemma3, gemma4, phi3, gpt-oss, \
                     granite, granitemoe, granitehybrid, glm4, olmo2, exaone4, lfm2, deepseek2, smollm3, command-r, \
                     starcoder2";

/// A model of one layer: 32 wide, 2 heads of 16, one of keys and values, a vocabulary of 4.
fn model() -> GgufWriter {
    let mut file = GgufWriter::new();
    file.set("general.architecture", "llama")
        .set("general.name", "one\x1b[31m layer")
        .set("general.file_type", 15u32)
        .set("llama.block_count", 1u32)
        .set("llama.context_length", 64u32)
        .set("llama.embedding_length", 32u32)
        .set("llama.feed_forward_length", 32u32)
        .set("llama.attention.head_count", 2u32)
        .set("llama.attention.head_count_kv", 1u32)
        .set("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("llama.rope.freq_base", f32::INFINITY)
        .set("llama.rope.freq_base", 10000.0f32)
        .set("tokenizer.ggml.model", "llama")
        .set("tokenizer.ggml.tokens", vec!["<unk>", "<s>", "</s>", "▁a"])
        .set("tokenizer.ggml.scores", vec![0.0f32, 0.0, 0.0, -1.0])
        .set("tokenizer.ggml.token_type", vec![2i32, 3, 3, 1])
        .set("tokenizer.ggml.bos_token_id", 1u32)
        .set("tokenizer.ggml.eos_token_id", 2u32)
        .set("test.long", (0..100u16).collect::<Vec<_>>())
        .set("test.nan", f64::NAN);
    let mut tensor = |name: &str, dims: &[u64], format: TensorFormat| {
        let blocks = dims.iter().product::<u64>() / u64::from(format.block());
        file.tensor(name, dims, format, vec![0; (blocks * u64::from(format.block_bytes())) as usize]);
    };
    let (f32, q8) = (TensorFormat::F32, TensorFormat::Q8_0);
    tensor("token_embd.weight", &[32, 4], TensorFormat::Q4_0);
    tensor("output_norm.weight", &[32], f32);
    tensor("blk.0.attn_norm.weight", &[32], f32);
    tensor("blk.0.attn_q.weight", &[32, 32], q8);
    tensor("blk.0.attn_k.weight", &[32, 16], q8);
    tensor("blk.0.attn_v.weight", &[32, 16], q8);
    tensor("blk.0.attn_output.weight", &[32, 32], q8);
    tensor("blk.0.ffn_norm.weight", &[32], f32);
    tensor("blk.0.ffn_gate.weight", &[32, 32], q8);
    tensor("blk.0.ffn_up.weight", &[32, 32], q8);
    tensor("blk.0.ffn_down.weight", &[32, 32], q8);
    file
}

fn written(file: &GgufWriter, folder: &Folder, name: &str) -> String {
    let path = folder.path().join(name);
    file.write(&path).expect("the file is written");
    path.to_str().expect("the path is UTF-8").to_string()
}

/// The entry of the metadata with that key.
fn entry<'a>(document: &'a Json, key: &str) -> &'a Json {
    let entries = document["metadata"].as_array().expect("a list");
    entries.iter().find(|entry| entry["key"] == key).expect("the file has the key")
}

#[test]
fn inspect_tells_what_is_in_a_file() {
    let folder = Folder::new("inspect");
    let path = written(&model(), &folder, "model.gguf");
    let output = run(&["inspect", "--json", &path]);
    assert_eq!(status(&output), 0);
    let document = json(&output);
    let bytes = fs::metadata(&path).expect("the file is there").len();
    assert_eq!(
        (&document["version"], &document["file"], &document["bytes"]),
        (&json!(1), &json!(path), &json!(bytes))
    );
    assert_eq!(
        document["parts"],
        json!([{ "file": path, "gguf_version": 3, "alignment": 32, "bytes": bytes, "tensors": 11 }])
    );
    assert_eq!(
        (&document["name"], &document["architecture"], &document["file_type"]),
        (&json!("one\u{1b}[31m layer"), &json!("llama"), &json!("Q4_K_M"))
    );
    assert_eq!((&document["tensors"], &document["parameters"]), (&json!(11), &json!(6144 + 128 + 96)));
    assert_eq!(
        document["formats"],
        json!([
            { "format": "q8_0", "tensors": 7, "parameters": 6144, "bytes": 6528, "bits_per_weight": 8.5 },
            { "format": "f32", "tensors": 3, "parameters": 96, "bytes": 384, "bits_per_weight": 32.0 },
            { "format": "q4_0", "tensors": 1, "parameters": 128, "bytes": 72, "bits_per_weight": 4.5 },
        ])
    );
    assert_eq!(
        document["tokenizer"],
        json!({
            "model": "llama", "pre": null, "tokens": 4, "chat_template": false,
            "special": [{ "role": "bos", "id": 1, "text": "<s>" }, { "role": "eos", "id": 2, "text": "</s>" }],
        })
    );
    assert_eq!((&document["runs"], &document["problems"]), (&json!(true), &json!([])));
    assert_eq!(document.get("tensor_list"), None);
}

#[test]
fn inspect_shortens_arrays_and_keeps_values() {
    let folder = Folder::new("inspect_values");
    let path = written(&model(), &folder, "model.gguf");
    let document = json(&run(&["inspect", "--json", &path]));
    assert_eq!(document["metadata"].as_array().map(Vec::len), Some(19));
    assert_eq!(
        *entry(&document, "test.long"),
        json!({ "key": "test.long", "type": "array", "items": "u16", "count": 100, "first": [0, 1, 2, 3, 4, 5, 6, 7] })
    );
    let epsilon = entry(&document, "llama.attention.layer_norm_rms_epsilon");
    assert_eq!((&epsilon["type"], &epsilon["value"]), (&json!("f32"), &json!(1e-5)));
    assert_eq!(entry(&document, "test.nan")["value"], "NaN");
}

#[test]
fn inspect_lists_tensors() {
    let folder = Folder::new("inspect_tensors");
    let path = written(&model(), &folder, "model.gguf");
    let document = json(&run(&["inspect", "--json", "--tensors", &path]));
    let gguf = Gguf::open(&path).expect("it can be read");
    let expected = gguf.tensors().iter().map(|tensor| {
        json!({
            "name": tensor.name, "dims": tensor.dims, "format": tensor.ty.name(), "bytes": tensor.bytes(),
            "part": 0, "offset": tensor.offset(),
        })
    });
    assert_eq!(document["tensor_list"], Json::from_iter(expected));
    assert_eq!(document["tensor_list"][3]["dims"], json!([32, 32]));
}

#[test]
fn text_of_a_file_does_nothing_to_a_terminal() {
    let folder = Folder::new("inspect_escapes");
    let mut file = model();
    file.set("evil\n\x1b]0;key", "a\r\x07\u{202e}b").set("evil.list", vec!["\x1b[2J"]);
    file.set("tokenizer.ggml.tokens", vec!["<unk>", "\x1b[1m", "</s>", "▁a"]);
    file.tensor("evil\x1btensor\n", &[4], TensorFormat::F32, [0; 16]);
    let output = run(&["inspect", "--tensors", &written(&file, &folder, "model.gguf")]);
    assert_eq!(status(&output), 0);
    let acts = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
    assert_eq!(stdout(&output).chars().find(acts), None);
    // Keys and tensors have a line each, whatever is in them.
    let lines =
        |name: &str| stdout(&output).lines().filter(|line| line.trim_start().starts_with(name)).count();
    assert_eq!((lines(r"evil\n\u{1b}]0;key "), lines(r"evil\u{1b}tensor\n "), lines("blk.0.")), (1, 1, 9));
}

#[test]
fn inspect_says_why_a_model_does_not_run() {
    let folder = Folder::new("inspect_problems");
    let problems = |file: &GgufWriter| {
        let output = run(&["inspect", "--json", &written(file, &folder, "model.gguf")]);
        assert_eq!(status(&output), 0, "that it does not run is an answer");
        let document = json(&output);
        assert_eq!(document["runs"], document["problems"].as_array().expect("a list").is_empty());
        document["problems"].clone()
    };
    let mut file = model();
    file.set("general.architecture", "mamba");
    assert_eq!(problems(&file), json!([format!("architecture `mamba` is not known; these are: {KNOWN}")]));

    let mut file = model();
    file.set("tokenizer.ggml.model", "bert");
    let expected = "tokenizer `bert` is not supported; `tokenizer.ggml.model` may be gpt2, gemma4 or llama";
    assert_eq!(problems(&file), json!([expected]));

    let mut file = model();
    file.remove("llama.block_count");
    assert_eq!(problems(&file), json!(["its metadata has no `llama.block_count`"]));

    let mut file = model();
    file.tensor("output.weight", &[32, 4], TensorFormat::Q8_1, [0; 4 * 36]);
    let known: Vec<&str> = WeightFormat::ALL.iter().map(|format| format.name()).collect();
    let known = known.join(", ");
    let expected = format!("tensor `output.weight` is stored as q8_1; it must be one of {known}");
    assert_eq!(problems(&file), json!([expected]));
}

#[test]
fn inspect_names_what_a_known_architecture_is_missing() {
    let folder = Folder::new("inspect_missing");
    let mut file = model();
    file.set("llama.expert_count", 4u32).set("llama.expert_used_count", 2u32);
    let path = written(&file, &folder, "model.gguf");
    let document = json(&run(&["inspect", "--json", &path]));
    let said =
        "architecture `llama` is known, but this model needs what is not computed yet: a mixture of experts";
    assert_eq!(document["problems"], json!([said]));
    assert_eq!((&document["runs"], &document["missing"]), (&json!(false), &json!(["a mixture of experts"])));
    let output = run(&["inspect", &path]);
    let told: Vec<&str> = stdout(&output).lines().filter(|line| line.starts_with("runs here")).collect();
    assert_eq!(told, [format!("{:<16} no: {said}", "runs here")]);
    // How much a sequence takes is known although the model does not run: one head of keys and of values, 32 halves wide.
    assert_eq!(document["sequence"], json!({"tokens": 64, "cache": "f16", "bytes": 64 * 2 * 32 * 2}));
    // What runs misses nothing, and of what is not known nothing is said.
    for architecture in ["llama", "mamba"] {
        let mut file = model();
        file.set("general.architecture", architecture);
        let document = json(&run(&["inspect", "--json", &written(&file, &folder, "model.gguf")]));
        assert_eq!(document["missing"], json!([]), "{architecture}");
    }
}

#[test]
fn inspect_without_a_file_shows_the_model_that_is_built_in() {
    let document = json(&run(&["inspect", "--json"]));
    assert_eq!((&document["architecture"], &document["runs"]), (&json!("llama"), &json!(true)));
    assert_eq!(document["parts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn inspect_shows_all_parts() {
    let folder = Folder::new("inspect_split");
    let paths = model().write_split(folder.path().join("model"), 4).expect("the parts are written");
    let names: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
    for path in &names {
        let document = json(&run(&["inspect", "--json", "--tensors", path]));
        let parts: Vec<_> =
            (0..3).map(|i| (&document["parts"][i]["file"], &document["parts"][i]["tensors"])).collect();
        let tensors = [4, 4, 3].map(Json::from);
        let expected: Vec<_> = names.iter().map(|name| Json::from(*name)).collect();
        assert_eq!(parts, expected.iter().zip(&tensors).collect::<Vec<_>>());
        assert_eq!((&document["runs"], &document["tensor_list"][10]["part"]), (&json!(true), &json!(2)));
    }
    fs::remove_file(&paths[1]).expect("the part is removed");
    refused(&["inspect", names[0]], &paths[1], "cannot open the file, which is part 2 of 3 of the model: ");
}

/// Holds a command to exit with 2 and one line that names the file and begins like that.
fn refused(arguments: &[&str], file: &Path, begins: &str) {
    let output = run(arguments);
    let said = std::str::from_utf8(&output.stderr).expect("messages are UTF-8");
    assert_eq!((status(&output), stdout(&output)), (2, ""), "{said}");
    let expected = format!("error: {}: {begins}", file.display());
    assert_eq!((said.get(..expected.len()), said.lines().count()), (Some(expected.as_str()), 1), "{said}");
}

#[test]
fn what_is_no_model_is_refused_in_one_line() {
    let folder = Folder::new("inspect_garbage");
    let whole = model().to_bytes().expect("the file can be written");
    let mut both_ways = whole.clone();
    both_ways[4..8].reverse();
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty", &[], "the letters `GGUF` at byte 0 takes 4 bytes"),
        ("text", b"# A\nmodel\n", r"is not a GGUF file: it begins with `# A\n`"),
        ("zeros", &[0; 4096], r"is not a GGUF file: it begins with `\x00\x00\x00\x00`"),
        ("big_endian", &both_ways, "is in big-endian byte order (version 3)"),
        (
            "cut_off",
            &whole[..whole.len() - 64],
            "tensor `blk.0.ffn_down.weight` has 1088 bytes of data at byte ",
        ),
        (
            "header",
            &whole[..100],
            "the number of tensors at byte 8 is 11, but the rest of the file has room for 3",
        ),
    ];
    for (name, bytes, begins) in cases {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("the file is written");
        let text = path.to_str().expect("the path is UTF-8");
        refused(&["inspect", text], &path, begins);
        refused(&["inspect", "--json", text], &path, begins);
        refused(&["plan", "-m", text], &path, begins);
    }
    refused(
        &["inspect", folder.path().to_str().expect("UTF-8")],
        folder.path(),
        "is a directory, not a file",
    );
    let missing = folder.path().join("missing.gguf");
    refused(&["inspect", missing.to_str().expect("UTF-8")], &missing, "cannot open the file: ");
}

/// Launches of a plan, and the kinds of its steps.
fn plan(arguments: &[&str], path: &str) -> Json {
    let mut all = vec!["plan", "--json", "-m", path];
    all.extend(arguments);
    let output = run(&all);
    assert_eq!(status(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

#[test]
fn plan_shows_the_launches_of_a_step() {
    let folder = Folder::new("plan");
    let path = written(&model(), &folder, "model.gguf");
    let decode = plan(&[], &path);
    assert_eq!(decode["version"], 1);
    let launches = |report: &Json| report["totals"]["launches"].as_u64().expect("a number");
    let unfused = decode["unfused"]["launches"].as_u64().expect("a number");
    assert!(launches(&decode) < unfused, "{} launches, {unfused} with nothing fused", launches(&decode));
    assert_eq!((&decode["target"]["arithmetic"], ty(&decode, "prompt")), (&json!("exact"), None));
    assert_eq!(ty(&decode, "blk.0.cache.k").as_deref(), Some("cache f16 [1 × 1 × 64 × 32]"));
    assert_eq!(ty(&decode, "logits").as_deref(), Some("f32 [1 × 4]"));
}

#[test]
fn plan_is_of_what_is_asked_for() {
    let folder = Folder::new("plan_options");
    let path = written(&model(), &folder, "model.gguf");
    let other = plan(&["--act", "int8", "--target", "sm_75", "--multiprocessors", "40"], &path);
    let target = &other["target"];
    assert_eq!(
        (&target["arithmetic"], &target["arch"], &target["multiprocessors"]),
        (&json!("int8"), &json!("sm_75"), &json!(40))
    );
    let two = plan(&["--batch", "2", "--tokens", "8", "--kv", "q8_0", "-c", "16"], &path);
    assert_eq!(ty(&two, "prompt").as_deref(), Some("u32 [16]"));
    assert_eq!(ty(&two, "blk.0.cache.k").as_deref(), Some("cache q8_0 [2 × 1 × 16 × 32]"));
    assert_eq!(ty(&two, "logits").as_deref(), Some("f32 [2 × 4]"));
}

/// The type of a tensor of a plan.
fn ty(report: &Json, tensor: &str) -> Option<String> {
    let tensors = report["tensors"].as_array().expect("a list");
    let found = tensors.iter().find(|one| one["name"] == tensor)?;
    Some(found["type"].as_str().expect("text").to_string())
}

#[test]
fn plan_refuses_what_does_not_fit() {
    let folder = Folder::new("plan_context");
    let path = written(&model(), &folder, "model.gguf");
    let said = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(status(&output), 2);
        String::from_utf8(output.stderr).expect("messages are UTF-8")
    };
    assert_eq!(
        said(&["plan", "-m", &path, "-c", "65"]),
        "error: `-c` is 65: so many tokens do not fit into the context of 64 tokens (the model was trained for no more)\n"
    );
    assert_eq!(
        said(&["plan", "-m", &path, "-c", "8", "--tokens", "9"]),
        "error: 9 tokens do not fit into a context of 8\n"
    );
    let mut file = model();
    file.set("general.architecture", "mamba");
    let path = written(&file, &folder, "other.gguf");
    assert_eq!(
        said(&["plan", "-m", &path]),
        format!("error: {path}: architecture `mamba` is not known; these are: {KNOWN}\n")
    );
}
