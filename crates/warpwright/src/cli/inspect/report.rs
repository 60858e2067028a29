//! What `inspect` shows, as data.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use warpwright_kernels::CacheDtype;
use warpwright_llm::gguf::{Gguf, Metadata, Part, TensorFormat, TensorInfo, Value};
use warpwright_llm::model::{ModelConfig, ModelError, ModelSpec};
use warpwright_llm::tokenizer::{Tokenizer, TokenizerError};

/// Items of an array that are shown.
const FIRST: usize = 8;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) file: &'a str,
    /// Of all parts.
    pub(super) bytes: u64,
    pub(super) parts: Vec<PartReport<'a>>,
    pub(super) name: Option<&'a str>,
    pub(super) architecture: Option<&'a str>,
    /// What the file says that its weights are, mostly.
    pub(super) file_type: Option<String>,
    /// Elements of all tensors.
    pub(super) parameters: u64,
    pub(super) tensors: usize,
    /// Bits of a parameter in the mean.
    pub(super) bits_per_weight: Option<f64>,
    pub(super) formats: Vec<FormatReport>,
    pub(super) tokenizer: Option<TokenizerReport<'a>>,
    /// Whether this program can run it.
    pub(super) runs: bool,
    /// Why it cannot.
    pub(super) problems: Vec<String>,
    /// The blocks of the model that are not computed yet, where its architecture is known.
    pub(super) missing: Vec<String>,
    /// What a sequence as long as the model's context takes, where the architecture is known.
    pub(super) sequence: Option<SequenceReport>,
    pub(super) metadata: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tensor_list: Option<Vec<TensorReport<'a>>>,
}

#[derive(Serialize)]
pub(super) struct PartReport<'a> {
    pub(super) file: &'a str,
    /// Of the format.
    pub(super) gguf_version: u32,
    pub(super) alignment: u32,
    pub(super) bytes: u64,
    pub(super) tensors: usize,
}

/// The memory of a sequence: caches, recurrences and the like.
#[derive(Serialize)]
pub(super) struct SequenceReport {
    pub(super) tokens: u32,
    /// What caches hold.
    pub(super) cache: &'static str,
    pub(super) bytes: u64,
}

/// All tensors in one format.
#[derive(Serialize)]
pub(super) struct FormatReport {
    pub(super) format: &'static str,
    pub(super) tensors: usize,
    pub(super) parameters: u64,
    pub(super) bytes: u64,
    pub(super) bits_per_weight: f64,
}

#[derive(Serialize)]
pub(super) struct TokenizerReport<'a> {
    pub(super) model: &'a str,
    pub(super) pre: Option<&'a str>,
    pub(super) tokens: usize,
    pub(super) special: Vec<SpecialToken>,
    pub(super) chat_template: bool,
}

#[derive(Serialize)]
pub(super) struct SpecialToken {
    /// `bos`, `eos`, `padding` …
    pub(super) role: String,
    pub(super) id: u32,
    /// If there is such a token; what is not UTF-8 in it is U+FFFD.
    pub(super) text: Option<String>,
}

/// A key of the metadata.
#[derive(Serialize)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    #[serde(rename = "type")]
    pub(super) ty: &'static str,
    #[serde(flatten)]
    pub(super) content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Value { value: Scalar<'a> },
    Array { items: &'static str, count: usize, first: Vec<Item> },
}

/// A value; floats that are not finite are their names.
pub(super) struct Scalar<'a>(pub(super) &'a Value);

impl Serialize for Scalar<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            // Its shortest digits, not those of the double that it is equal to.
            Value::F32(value) if value.is_finite() => serializer.serialize_f32(*value),
            Value::F64(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::F32(value) => serializer.serialize_str(&value.to_string()),
            Value::F64(value) => serializer.serialize_str(&value.to_string()),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::String(value) => serializer.serialize_str(value),
            Value::Array(array) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("items", array.ty().name())?;
                map.serialize_entry("count", &array.len())?;
                map.end()
            }
            Value::U64(value) => serializer.serialize_u64(*value),
            other => serializer.serialize_i64(other.integer().and_then(|it| it.try_into().ok()).unwrap_or(0)),
        }
    }
}

/// An item of an array.
pub(super) struct Item(pub(super) Value);

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Scalar(&self.0).serialize(serializer)
    }
}

#[derive(Serialize)]
pub(super) struct TensorReport<'a> {
    pub(super) name: &'a str,
    /// The length of a row first.
    pub(super) dims: &'a [u64],
    pub(super) format: &'static str,
    pub(super) bytes: u64,
    /// From 0.
    pub(super) part: usize,
    /// From the beginning of the part.
    pub(super) offset: u64,
}

impl<'a> Report<'a> {
    /// Of the file of that name; with `tensors`, the list of them.
    pub(super) fn new(gguf: &'a Gguf, file: &'a str, tensors: bool) -> Self {
        let metadata = gguf.metadata();
        let parameters = sum(gguf.tensors(), TensorInfo::elements);
        let problems = problems(gguf);
        let spec = ModelSpec::from_gguf(gguf).ok();
        Report {
            file,
            bytes: gguf.parts().iter().map(|part| part.bytes()).fold(0, u64::saturating_add),
            parts: gguf.parts().iter().map(part).collect(),
            name: text(metadata, "general.name"),
            architecture: text(metadata, "general.architecture"),
            file_type: integer(metadata, "general.file_type").map(file_type),
            parameters,
            tensors: gguf.tensors().len(),
            bits_per_weight: bits(sum(gguf.tensors(), TensorInfo::bytes), parameters),
            formats: formats(gguf.tensors()),
            tokenizer: tokenizer(metadata),
            runs: problems.is_empty(),
            problems,
            missing: spec.iter().flat_map(ModelSpec::missing).map(|block| block.to_string()).collect(),
            sequence: spec.as_ref().map(sequence),
            metadata: metadata.iter().map(|(key, value)| entry(key, value)).collect(),
            tensor_list: tensors.then(|| gguf.tensors().iter().map(tensor).collect()),
        }
    }
}

/// Text under a key; what is of another type is seen in the list of the metadata.
fn text<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    metadata.optional(key).ok().flatten()
}

fn integer(metadata: &Metadata, key: &str) -> Option<u32> {
    metadata.optional(key).ok().flatten()
}

fn sum(tensors: &[TensorInfo], of: impl Fn(&TensorInfo) -> u64) -> u64 {
    tensors.iter().map(of).fold(0, u64::saturating_add)
}

fn bits(bytes: u64, parameters: u64) -> Option<f64> {
    (parameters > 0).then(|| bytes as f64 * 8.0 / parameters as f64)
}

fn part(part: &Part) -> PartReport<'_> {
    PartReport {
        file: part.name(),
        gguf_version: part.version(),
        alignment: part.alignment(),
        bytes: part.bytes(),
        tensors: part.tensors(),
    }
}

fn tensor(tensor: &TensorInfo) -> TensorReport<'_> {
    TensorReport {
        name: &tensor.name,
        dims: &tensor.dims,
        format: tensor.ty.name(),
        bytes: tensor.bytes(),
        part: tensor.part(),
        offset: tensor.offset(),
    }
}

/// The formats, that with the most bytes first.
fn formats(tensors: &[TensorInfo]) -> Vec<FormatReport> {
    let mut by_format: BTreeMap<TensorFormat, FormatReport> = BTreeMap::new();
    for tensor in tensors {
        let report = by_format.entry(tensor.ty).or_insert(FormatReport {
            format: tensor.ty.name(),
            tensors: 0,
            parameters: 0,
            bytes: 0,
            bits_per_weight: tensor.ty.bits(),
        });
        report.tensors += 1;
        report.parameters = report.parameters.saturating_add(tensor.elements());
        report.bytes = report.bytes.saturating_add(tensor.bytes());
    }
    let mut formats: Vec<_> = by_format.into_values().collect();
    formats.sort_by_key(|format| std::cmp::Reverse(format.bytes));
    formats
}

fn entry<'a>(key: &'a str, value: &'a Value) -> Entry<'a> {
    let content = match value {
        Value::Array(array) => Content::Array {
            items: array.ty().name(),
            count: array.len(),
            first: array.iter().take(FIRST).map(Item).collect(),
        },
        value => Content::Value { value: Scalar(value) },
    };
    Entry { key, ty: value.ty().name(), content }
}

fn tokenizer(metadata: &Metadata) -> Option<TokenizerReport<'_>> {
    const PREFIX: &str = "tokenizer.ggml.";
    let model = text(metadata, "tokenizer.ggml.model")?;
    let tokens = match metadata.get("tokenizer.ggml.tokens") {
        Some(Value::Array(tokens)) => Some(tokens),
        _ => None,
    };
    let text_of = |id: u32| {
        let bytes = tokens?.byte_strings()?.nth(id.try_into().ok()?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let special = metadata.iter().filter_map(|(key, value)| {
        let role = key.strip_prefix(PREFIX)?.strip_suffix("_token_id")?.to_string();
        let id = value.integer()?.try_into().ok()?;
        Some(SpecialToken { role, id, text: text_of(id) })
    });
    Some(TokenizerReport {
        model,
        pre: text(metadata, "tokenizer.ggml.pre"),
        tokens: tokens.map_or(0, |tokens| tokens.len()),
        special: special.collect(),
        chat_template: metadata.get("tokenizer.chat_template").is_some(),
    })
}

/// What keeps this program from running the model.
fn problems(gguf: &Gguf) -> Vec<String> {
    let model = ModelConfig::from_gguf(gguf).err().map(|error| match error {
        // The file is named already.
        ModelError::Metadata(error) => error.problem().to_string(),
        error => error.to_string(),
    });
    let tokenizer = Tokenizer::from_gguf(gguf).err().map(|error| match error {
        TokenizerError::Gguf(error) => error.problem().to_string(),
        error => error.to_string(),
    });
    model.into_iter().chain(tokenizer).collect()
}

/// What the longest sequence takes.
fn sequence(spec: &ModelSpec) -> SequenceReport {
    let (tokens, cache) = (spec.context_length, CacheDtype::F16);
    SequenceReport { tokens, cache: cache.name(), bytes: spec.state_bytes(cache, tokens) }
}

/// The name of a mixture of formats, by the number that llama.cpp gives to it.
fn file_type(number: u32) -> String {
    // From 0 on; a dash where there is none.
    const NAMES: &str = "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M \
        Q6_K IQ2_XXS IQ2_XS Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 \
        - - - TQ1_0 TQ2_0 MXFP4_MOE NVFP4 Q1_0 Q2_0";
    let name = NAMES.split(' ').nth(number as usize).filter(|&name| name != "-");
    name.map_or_else(|| format!("number {number}"), str::to_string)
}
