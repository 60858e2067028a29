//! What the library's kernels are estimated to take on cards: the tables of docs/performance.md between its marks.
//!
//! Kernels, choices and plans are those for the card. The virtual GPU executes some blocks of each launch, with zeros in
//! the buffers; `ptxas` assembles it; `warpwright-estimate` does the rest.

use crate::counted::{Launched, count};
use crate::run::{parallel, read, root};
use crate::tools::{self, Tools};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use warpwright_dsl::any::AnyKernel;
use warpwright_estimate::machine::{Disassembler, Ptxas, Resources, first_error};
use warpwright_estimate::{Estimate, Workload, estimate};
use warpwright_graph::{ArgSource, Arithmetic, Element, KernelLibrary, Plan, PlanOptions, Role, TensorInfo};
use warpwright_kernels::tune::{AttentionShape, Candidate, DeviceModel, GemvShape, Space, Table, Tuning};
use warpwright_kernels::{
    Activations, FlashAttention, IncrementalAttention, Matrix, QuantGemv, WeightFormat,
};
use warpwright_ptx::diag::LineIndex;
use warpwright_ptx::ir::Origin;
use warpwright_qualify::models::{Choice, ModelConfig};

/// The cards of the tables.
const CARDS: [&str; 6] = ["A100", "H100", "H200", "B200", "RTX 4090", "RTX 5090"];

/// Blocks that are executed of a launch.
const SAMPLE: u64 = 64;

/// Tokens in the cache of a model that makes one more.
const CONTEXT: u64 = 512;

/// Between these lines of the page are the tables.
const BEGIN: &str = "<!-- `cargo xtask estimate --write` makes what follows -->";
const END: &str = "<!-- until here -->";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the tables into docs/performance.md instead of printing them
    #[arg(long)]
    write: bool,
    /// Instead of the tables, compare the choices for the launches of these models' tokens on these cards: the one that
    /// is made without measurements, and the best by estimates
    #[arg(long, value_name = "CARD", value_delimiter = ',', conflicts_with = "write")]
    choices: Vec<String>,
    /// Only choices for shapes that begin with this
    #[arg(long, value_name = "SHAPE", requires = "choices")]
    shape: Option<String>,
}

/// What estimates are made with.
struct Estimator {
    ptxas: Ptxas,
    disassembler: Disassembler,
}

impl Estimator {
    /// The time of a launch on a card, with numbers for its sizes, scalars and buffers of numbers, and what of the buffers
    /// the L2 cache has already.
    fn estimate(
        &self,
        kernel: &dyn AnyKernel,
        (numbers, cached): (&[(&str, u64)], &[&str]),
        card: &DeviceModel,
    ) -> Result<Estimate, String> {
        let entry = kernel.entry();
        let failed = |why: String| format!("{entry} on {}: {why}", card.name);
        let built = kernel.build(card.arch).map_err(|mistakes| failed(mistakes.to_string()))?;
        let text = warpwright_ptx::print(&built.module);
        // Read back, so that instructions have lines of the text.
        let module = warpwright_ptx::parse(&text).map_err(|errors| failed(errors.to_string()))?;
        let assembled = self.ptxas.assemble_kernel(&text, &card.arch.to_string(), &entry);
        let assembled = assembled.map_err(|log| failed(first_error(&log)))?;
        let code = self.disassembler.code(&assembled.cubin, Some(&entry)).map_err(failed)?;
        let options = warpwright_vm::Options {
            counters: true,
            fetches: true,
            sample: Some(SAMPLE),
            ..warpwright_vm::Options::default()
        };
        let launched = Launched { kernel, module: &module, arch: card.arch, numbers };
        let counted = count(&launched, &options).map_err(failed)?;
        let index = LineIndex::new(&text);
        let line = |origin| match origin {
            Origin::Text(span) => Some(index.position(span.start).line),
            _ => None,
        };
        let work = Workload {
            code: &code,
            resources: Resources::read(&assembled.log),
            blocks: counted.blocks(),
            threads: counted.threads(),
            dynamic_shared: counted.dynamic_shared,
            counters: &counted.report.counters,
            line: &line,
            cached: &|address| {
                let is = |name: &&str| counted.buffers.get(*name).is_some_and(|buffer| buffer.0 == address);
                cached.iter().any(is)
            },
        };
        estimate(&work, card).map_err(|error| failed(error.to_string()))
    }
}

/// A card by its name.
fn card(name: &str) -> Result<DeviceModel, String> {
    DeviceModel::named(name).ok_or_else(|| format!("no card `{name}`"))
}

/// What a table has to say of a launch.
type Row<T> = Result<T, String>;

/// A token of a model on a card.
struct Token {
    model: &'static str,
    arithmetic: Arithmetic,
    card: DeviceModel,
    /// Seconds until the weights are read.
    floor: f64,
    /// Launches, and the seconds of their kernels.
    launches: usize,
    kernels: f64,
    /// By kernel: how often, its estimate.
    parts: Vec<(String, usize, Estimate)>,
}

impl Token {
    /// With the gaps between launches.
    fn whole(&self) -> f64 {
        self.kernels + self.launches as f64 * f64::from(self.card.launch) * 1e-9
    }
}

/// The models of the tables.
fn models() -> [(&'static str, ModelConfig); 3] {
    [
        ("Llama-3.2-1B", ModelConfig::llama_3_2_1b()),
        ("Qwen3-4B", ModelConfig::qwen_3_4b()),
        ("Llama-3-8B", ModelConfig::llama_3_8b()),
    ]
}

/// The plan of a token.
fn plan(config: &ModelConfig, arithmetic: Arithmetic, card: &DeviceModel) -> Result<Plan, String> {
    let config = ModelConfig { max_seq_len: 2048, ..config.clone() };
    let graph = config.decode(1, Choice::ArgMax);
    let mut options = PlanOptions::of(Tuning::new(card.clone()));
    options.arithmetic = arithmetic;
    Plan::new(&graph, &options, &KernelLibrary).map_err(|error| error.to_string())
}

fn token(
    estimator: &Estimator,
    model: &'static str,
    config: &ModelConfig,
    arithmetic: Arithmetic,
    name: &str,
) -> Row<Token> {
    let card = card(name)?;
    let plan = plan(config, arithmetic, &card)?;
    let mut known: BTreeMap<String, (usize, Estimate)> = BTreeMap::new();
    let (mut launches, mut kernels) = (0, 0.0);
    for (_, launch) in plan.launches() {
        let mut numbers: Vec<(&str, u64)> = launch.dims.clone();
        // What a token makes, the next launch finds in the cache; weights, tables and earlier tokens come from memory.
        let mut cached = Vec::new();
        for (name, source) in &launch.args {
            match source {
                ArgSource::Scratch(_) => cached.push(*name),
                ArgSource::Tensor { tensor, .. } if is_made(plan.program().info(*tensor)) => {
                    cached.push(*name)
                }
                ArgSource::U32(value) => numbers.push((name, (*value).into())),
                ArgSource::F32(value) => numbers.push((name, *value as u64)),
                _ => {}
            }
        }
        numbers.extend(["positions", "position", "lengths", "length"].map(|name| (name, CONTEXT)));
        let kernel = launch.kernel.kernel();
        let key = format!("{} {numbers:?}", launch.kernel.entry());
        let known = match known.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert((0, estimator.estimate(&**kernel, (&numbers, &cached), &card)?))
            }
        };
        known.0 += 1;
        launches += 1;
        kernels += known.1.kernel;
    }
    let speed = card.speed.as_ref().ok_or("no speeds")?;
    let weights = weights(&plan);
    let short = |key: &str| key.split(" [").next().unwrap_or_default().to_string();
    let parts = known.into_iter().map(|(key, (times, estimate))| (short(&key), times, estimate)).collect();
    let floor = weights as f64 / speed.copy;
    Ok(Token { model, arithmetic, floor, card, launches, kernels, parts })
}

/// Whether a token makes the tensor for itself.
fn is_made(info: &TensorInfo) -> bool {
    matches!(info.role, Role::Intermediate | Role::Output) && info.state.is_none()
}

/// Bytes of weights that a token reads: what products take of them.
fn weights(plan: &Plan) -> u64 {
    let mut all = 0;
    for (_, launch) in plan.launches() {
        for (name, source) in &launch.args {
            let of_product = name.starts_with('w') && name[1..].chars().all(|digit| digit.is_ascii_digit());
            if let (ArgSource::Weights { tensor, .. }, true) = (source, of_product) {
                let info = plan.program().info(*tensor);
                if let (Element::Weights(format), &[n, k]) = (info.ty.element, info.ty.shape.dims()) {
                    all += format.matrix_bytes(n.into(), k);
                }
            }
        }
    }
    all
}

/// The longest of what a launch takes by resource, in words.
fn longest(estimate: &Estimate) -> String {
    estimate.resources.first().map_or("–".into(), |(resource, seconds)| {
        format!("{}, {:.0} %", resource.name(), 100.0 * seconds / estimate.kernel)
    })
}

fn us(seconds: f64) -> String {
    match seconds * 1e6 {
        long if long >= 100.0 => format!("{long:.0}"),
        short => format!("{short:.1}"),
    }
}

/// Tokens of models on all cards, and a layer's kernels on one.
fn tokens(estimator: &Estimator, out: &mut String) -> Result<(), String> {
    let models = models();
    let each = |arithmetic| models.iter().flat_map(move |model| CARDS.map(|card| (model, arithmetic, card)));
    let wanted: Vec<_> = [Arithmetic::Exact, Arithmetic::Int8].into_iter().flat_map(each).collect();
    let rows = parallel(&wanted, |((model, config), arithmetic, card)| {
        token(estimator, model, config, *arithmetic, card)
    });
    let rows: Vec<Token> = rows.into_iter().collect::<Result<_, _>>()?;
    let _ = writeln!(
        out,
        "### A token, Q4_K_M, {CONTEXT} tokens in the cache\n\n\
         Microseconds. The floor is what reading the weights takes at the bandwidth of a copy. Between \"kernels\" (all \
         gaps hidden by overlapping launches) and \"with gaps\" (none) lies what a graph takes. What a token makes for \
         itself is in the L2 cache. Shares above 100 % are no mistake: weights are only read, which is faster than a \
         copy.\n\n\
         | model | activations | card | floor | kernels | of the floor | launches | with gaps | of the floor |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for row in &rows {
        let share = |seconds: f64| format!("{:.0} %", 100.0 * row.floor / seconds);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.model,
            row.arithmetic.name(),
            row.card.name,
            us(row.floor),
            us(row.kernels),
            share(row.kernels),
            row.launches,
            us(row.whole()),
            share(row.whole()),
        );
    }
    let shown = rows.iter().filter(|row| row.model == "Llama-3-8B" && row.card.name == "H200");
    for row in shown {
        let _ = writeln!(
            out,
            "\n### The kernels of a token of {} on an {}, {} activations\n\n\
             | kernel | times | microseconds | MB of memory | of a copy | longest by itself |\n\
             | --- | ---: | ---: | ---: | ---: | --- |",
            row.model,
            row.card.name,
            row.arithmetic.name(),
        );
        let mut parts: Vec<_> = row.parts.iter().collect();
        parts.sort_by(|a, b| (b.1 as f64 * b.2.kernel).total_cmp(&(a.1 as f64 * a.2.kernel)));
        for (kernel, times, estimate) in parts {
            let _ = writeln!(
                out,
                "| `{kernel}` | {times} | {} | {:.2} | {} | {} |",
                us(estimate.kernel),
                estimate.dram_bytes / 1e6,
                of_copy(estimate, &row.card),
                longest(estimate),
            );
        }
    }
    Ok(())
}

/// The share of the bandwidth of a copy.
fn of_copy(estimate: &Estimate, card: &DeviceModel) -> String {
    let copy = card.speed.as_ref().map_or(f64::INFINITY, |speed| speed.copy);
    format!("{:.0} %", 100.0 * estimate.dram_bytes / copy / estimate.kernel)
}

/// Products of every format on some cards.
fn formats(estimator: &Estimator, out: &mut String) -> Result<(), String> {
    const SHOWN: [&str; 3] = ["H200", "B200", "RTX 4090"];
    let rows = WeightFormat::ALL
        .iter()
        .flat_map(|&format| [(format, Activations::Exact), (format, Activations::Int8)]);
    let product = |&(format, activations): &(WeightFormat, Activations)| QuantGemv {
        k: 14_336,
        matrices: vec![Matrix::new(format, 4096)],
        activations,
        ..QuantGemv::default()
    };
    // Floats have no products with bytes.
    let rows: Vec<_> = rows.filter(|row| product(row).check().is_ok()).collect();
    let estimated = parallel(&rows, |row| {
        let cells = SHOWN.map(|name| -> Row<String> {
            let card = card(name)?;
            let kernel = product(row);
            let choice = Tuning::new(card.clone()).choose(&GemvShape::of(&kernel, Some(1)));
            let kernel = choice.apply(kernel);
            let estimate = estimator.estimate(&kernel, (&[("batch", 1)], &[]), &card)?;
            Ok(format!("{} | {} | {}", us(estimate.kernel), of_copy(&estimate, &card), longest(&estimate)))
        });
        let cells: Vec<String> = cells.into_iter().collect::<Result<_, _>>()?;
        Ok::<_, String>(cells.join(" | "))
    });
    let _ = writeln!(
        out,
        "\n### Products of 4096 × 14336 weights with a vector\n\n\
         Microseconds, the share of the bandwidth of a copy, and what takes longest by itself.\n\n\
         | format | activations | {} |\n| --- | --- | {} |",
        SHOWN.map(|card| format!("{card} | | ")).join(" | "),
        SHOWN.map(|_| "---: | ---: | ---").join(" | "),
    );
    for ((format, activations), cells) in rows.iter().zip(estimated) {
        let _ = writeln!(out, "| {format} | {activations} | {} |", cells?);
    }
    Ok(())
}

/// Attention: one query over contexts, and many.
fn attention(estimator: &Estimator, out: &mut String) -> Result<(), String> {
    const CONTEXTS: [u32; 6] = [128, 1024, 4096, 16_384, 65_536, 131_072];
    const SHOWN: [&str; 3] = ["A100", "H200", "RTX 4090"];
    let rows = parallel(&CONTEXTS, |&context| {
        let cells = SHOWN.map(|name| -> Row<String> {
            let card = card(name)?;
            let kernel = IncrementalAttention::new(32, 8, 128, context);
            let shape = AttentionShape::of(&kernel, context, Some(1));
            let kernel = Tuning::new(card.clone()).choose(&shape).apply(kernel);
            let numbers = [("batch", 1), ("length", context.into())];
            let estimate = estimator.estimate(&kernel, (&numbers, &[]), &card)?;
            Ok(format!("{} | {}", us(estimate.kernel), of_copy(&estimate, &card)))
        });
        cells.into_iter().collect::<Result<Vec<String>, String>>()
    });
    let _ = writeln!(
        out,
        "\n### One query, 32 heads over 8 of 128 elements in `f16`\n\n\
         Microseconds, and the share of the bandwidth of a copy.\n\n\
         | tokens | {} |\n| ---: | {} |",
        SHOWN.map(|card| format!("{card} | ")).join(" | "),
        SHOWN.map(|_| "---: | ---:").join(" | "),
    );
    for (context, cells) in CONTEXTS.iter().zip(rows) {
        let _ = writeln!(out, "| {context} | {} |", cells?.join(" | "));
    }
    const LENGTHS: [(u32, u32); 4] = [(64, 1024), (64, 8192), (128, 1024), (128, 8192)];
    const SHOWN_FLASH: [&str; 4] = ["A100", "H100", "H200", "RTX 4090"];
    let rows = parallel(&LENGTHS, |&(head_dim, length)| {
        let cells = SHOWN_FLASH.map(|name| -> Row<String> {
            let card = card(name)?;
            let kernel = FlashAttention {
                heads: 32,
                kv_heads: 8,
                head_dim,
                max_seq_len: length,
                ..FlashAttention::default()
            };
            let numbers = [("batch", 1), ("q_len", length.into()), ("kv_len", length.into())];
            let estimate = estimator.estimate(&kernel, (&numbers, &[]), &card)?;
            let operations = 2.0 * 32.0 * f64::from(head_dim) * f64::from(length).powi(2);
            Ok(format!("{} | {:.0}", us(estimate.kernel), operations / estimate.kernel / 1e12))
        });
        cells.into_iter().collect::<Result<Vec<String>, String>>()
    });
    let _ = writeln!(
        out,
        "\n### FlashAttention, causal, 32 heads over 8\n\n\
         Microseconds, and TFLOP/s of the products that the mask leaves.\n\n\
         | head | tokens | {} |\n| ---: | ---: | {} |",
        SHOWN_FLASH.map(|card| format!("{card} | ")).join(" | "),
        SHOWN_FLASH.map(|_| "---: | ---:").join(" | "),
    );
    for ((head_dim, length), cells) in LENGTHS.iter().zip(rows) {
        let _ = writeln!(out, "| {head_dim} | {length} | {} |", cells?.join(" | "));
    }
    Ok(())
}

/// Compares the choices that a card may have for the shapes of models.
fn choices(estimator: &Estimator, name: &str, wanted: Option<&str>) -> Result<(), String> {
    let card = card(name)?;
    let mut table = Table::default();
    for (_, config) in models() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::Int8] {
            table.merge(plan(&config, arithmetic, &card)?.choices().clone());
        }
    }
    println!("{}", card.name);
    // Launches stay in their thread, so each makes the list for itself.
    let spaces = || {
        let wanted = |space: &Space| wanted.is_none_or(|wanted| space.shape.starts_with(wanted));
        table.spaces(&card).into_iter().filter(wanted).collect::<Vec<_>>()
    };
    let numbers: Vec<usize> = (0..spaces().len()).collect();
    let rows = parallel(&numbers, |&i| {
        let Space { shape, candidates } = spaces().swap_remove(i);
        let estimate = |Candidate { choice, launch }: Candidate| {
            Ok((choice, estimator.estimate(&*launch.kernel, (&launch.numbers, &[]), &card)?))
        };
        let mut estimates = candidates.into_iter().map(estimate).collect::<Row<Vec<_>>>()?;
        let made = estimates[0].1.kernel;
        estimates[1..].sort_by(|a, b| a.1.kernel.total_cmp(&b.1.kernel));
        Ok::<_, String>((shape, made, estimates))
    });
    for row in rows {
        let (shape, made, estimates) = row?;
        println!("  {shape}");
        for (choice, estimate) in estimates.iter().take(7) {
            let part = 100.0 * estimate.kernel / made;
            println!("    {choice:<20} {:>8} us {part:>6.1} %  {}", us(estimate.kernel), longest(estimate));
        }
    }
    Ok(())
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let Tools { ptxas, nvdisasm } = tools::set_up()?;
    let estimator = Estimator {
        ptxas: Ptxas::new(&ptxas, &tools::scratch())?,
        disassembler: Disassembler::new(&nvdisasm, &tools::scratch())?,
    };
    if !options.choices.is_empty() {
        return options
            .choices
            .iter()
            .try_for_each(|card| choices(&estimator, card, options.shape.as_deref()));
    }
    let mut tables = String::new();
    tokens(&estimator, &mut tables)?;
    formats(&estimator, &mut tables)?;
    attention(&estimator, &mut tables)?;
    if !options.write {
        print!("{tables}");
        return Ok(());
    }
    let path = root().join("docs/performance.md");
    let page = read(&path)?;
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("{} lacks {BEGIN}", path.display()))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{} lacks {END}", path.display()))?;
    std::fs::write(&path, format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}
