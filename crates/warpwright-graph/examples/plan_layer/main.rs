//! Prints how a transformer layer is planned: as a table, as JSON, or for Graphviz.
//!
//! ```console
//! $ cargo run -p warpwright-graph --example plan_layer -- --model qwen3-8b --act int8
//! $ cargo run -p warpwright-graph --example plan_layer -- --dot | dot -Tsvg > layer.svg
//! ```

mod args;
mod model;

use args::{Args, Form, USAGE};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use warpwright_graph::render::PlanReport;
use warpwright_graph::{Fusions, KernelLibrary, Plan};

fn text(args: &Args) -> Result<String, Box<dyn Error>> {
    let graph = model::graph(args.model, &args.call)?;
    let plan = Plan::new(&graph, &args.options, &KernelLibrary)?;
    let mut unfused = args.options.clone();
    unfused.fusions = Fusions::none();
    let mut report = PlanReport::new(&graph, &plan);
    // What only has a kernel when it is fused has no plan without it.
    if let Ok(unfused) = Plan::new(&graph, &unfused, &KernelLibrary) {
        report = report.with_unfused(&unfused);
    }
    Ok(match args.form {
        Form::Table => report.to_table(),
        Form::Json => report.to_json()? + "\n",
        Form::Dot => report.to_dot(),
    })
}

fn main() -> ExitCode {
    let text = match args::parse(std::env::args().skip(1)) {
        Ok(None) => Ok(USAGE.to_owned()),
        Ok(Some(args)) => text(&args),
        Err(error) => Err(error.to_string().into()),
    };
    match text {
        // Nobody reads what a closed pipe does not take.
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
