//! The project's own tasks: `cargo xtask TASK`.
//!
//! Needs nothing but the standard library and the crates under test. Exit status: 0 if what ran passed,
//! 1 if something failed, 2 if the command line makes no sense.
#![forbid(unsafe_code)]

mod bench;
mod clients;
mod corpus;
mod cuda;
mod filetests;
mod manifest;
mod models;
mod mutants;
mod ptxas;
mod random;
mod run;
mod summary;
mod test;
mod tidy;
mod tools;
mod validate;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask TASK

  test      everything: the workspace's tests, then what needs NVIDIA's ptxas, or Python's gguf and numpy
              --no-ptxas        leave out what needs ptxas
              --no-python       leave out what needs Python
              --require-ptxas   a ptxas that cannot be had is a failure, and so is Python
              --full            more mutants and targets, the tests that take long, and through CUDA those of numbers too
              --device vm|cuda  the device tests on virtual GPUs alone; or on CUDA devices, and nothing else
              --driver virtual|real
                                which driver CUDA devices are asked of (virtual)
  validate  every kernel of the catalogue through ptxas, for every target: no spills, and docs/kernels.md
              --full            its examples for every target too, and not for three
              --write           write docs/kernels.md instead of comparing it
              --only KERNEL     print what it says of one kernel instead
  mutants   the verifier against ptxas, on mutants of valid PTX
              --count N         how many (2000)
              --seed N          which (1)
              --strict          fail for each disagreement that tests/mutants/understood.md does not list
  clients   programs of others that use the CUDA driver API, on virtual GPUs
              --no-python       leave out those that need what comes from PyPI
  models    the program's logits of models with random weights against those of Python
  tidy      the invariants of the source that a script can check
  bench     the benchmarks, those of the peers included
              --no-peers        leave those out
  tools     install the pinned ptxas and nvdisasm into target/tools, and say where they are";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        None => Err(Failure::Usage("a task is missing".to_string())),
        Some((task, rest)) => task_of(task, Arguments { rest: rest.to_vec() }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => {
            eprintln!("{message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn task_of(task: &str, mut arguments: Arguments) -> Result<(), Failure> {
    match task {
        "test" => {
            let options = test::Options {
                no_ptxas: arguments.flag("--no-ptxas"),
                no_python: arguments.flag("--no-python"),
                require_ptxas: arguments.flag("--require-ptxas"),
                full: arguments.flag("--full"),
                devices: match arguments.text("--device")?.as_deref() {
                    None => test::Devices::Both,
                    Some("vm") => test::Devices::Vm,
                    Some("cuda") => test::Devices::Cuda,
                    Some(_) => {
                        return Err(Failure::Usage("--device is followed by `vm` or `cuda`".to_string()));
                    }
                },
                driver: match arguments.text("--driver")? {
                    None => cuda::Driver::Virtual,
                    Some(name) => cuda::Driver::named(&name).ok_or_else(|| {
                        Failure::Usage("--driver is followed by `virtual` or `real`".to_string())
                    })?,
                },
            };
            arguments.end()?;
            if options.no_ptxas && options.require_ptxas {
                return Err(Failure::Usage("--no-ptxas and --require-ptxas exclude each other".to_string()));
            }
            test::run(&options)
        }
        "validate" => {
            let written = arguments.flag("--write");
            let extent =
                if arguments.flag("--full") { validate::Extent::Full } else { validate::Extent::Usual };
            let only = arguments.text("--only")?;
            arguments.end()?;
            if let Some(kernel) = only {
                return validate::show(&kernel, extent);
            }
            let page = if written { validate::Page::Written } else { validate::Page::Compared };
            validate::run(page, extent)
        }
        "mutants" => {
            let options = mutants::Options {
                count: arguments.number("--count")?.unwrap_or(mutants::DEFAULT_COUNT),
                seed: arguments.number("--seed")?.unwrap_or(1),
                strict: arguments.flag("--strict"),
            };
            arguments.end()?;
            mutants::run(&options)
        }
        "clients" => {
            let python = !arguments.flag("--no-python");
            arguments.end()?;
            clients::run_all(python)
        }
        "models" => {
            arguments.end()?;
            models::run()
        }
        "tidy" => {
            arguments.end()?;
            tidy::run()
        }
        "bench" => {
            let peers = !arguments.flag("--no-peers");
            arguments.end()?;
            bench::run(peers)
        }
        "tools" => {
            arguments.end()?;
            let tools = tools::set_up().map_err(Failure::Failed)?;
            println!("{}\n{}", tools.ptxas.display(), tools.nvdisasm.display());
            Ok(())
        }
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => Err(Failure::Usage(format!("there is no task `{unknown}`"))),
    }
}

/// Why a task did not succeed.
enum Failure {
    /// What it checked does not hold.
    Failed(String),
    /// The command line makes no sense.
    Usage(String),
}

/// What stands after the task.
struct Arguments {
    rest: Vec<String>,
}

impl Arguments {
    fn flag(&mut self, name: &str) -> bool {
        let before = self.rest.len();
        self.rest.retain(|argument| argument != name);
        self.rest.len() < before
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let number = self.text(name)?.map(|value| value.parse().ok());
        match number {
            Some(None) => Err(Failure::Usage(format!("{name} is followed by a number"))),
            number => Ok(number.flatten()),
        }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let Some(at) = self.rest.iter().position(|argument| argument == name) else { return Ok(None) };
        if at + 1 == self.rest.len() {
            return Err(Failure::Usage(format!("{name} is followed by a value")));
        }
        let value = self.rest.remove(at + 1);
        self.rest.remove(at);
        Ok(Some(value))
    }

    fn end(&self) -> Result<(), Failure> {
        match self.rest.first() {
            None => Ok(()),
            Some(unknown) => Err(Failure::Usage(format!("`{unknown}` is not understood here"))),
        }
    }
}
