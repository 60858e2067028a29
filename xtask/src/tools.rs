//! NVIDIA's `ptxas` and `nvdisasm`, in the versions that the tests are made for.
//!
//! They are installed from PyPI into a virtual environment under `target/tools` and used unchanged; the packages of
//! Python scripts are installed likewise, each into an environment of its own.

use crate::run::target_dir;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "13.5.37";
const PACKAGES: [&str; 2] = ["nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-nvdisasm==13.5.37"];

/// The tools.
pub(crate) struct Tools {
    pub(crate) ptxas: PathBuf,
    pub(crate) nvdisasm: PathBuf,
}

/// The folder where the tools' files are made.
pub(crate) fn scratch() -> PathBuf {
    target_dir().join("tools/scratch")
}

/// Finds the tools, and installs them first if they are not there. The error says what is missing and
/// how to get it.
pub(crate) fn set_up() -> Result<Tools, String> {
    let folder = target_dir().join("tools");
    if let Some(tools) = installed(&folder) {
        return Ok(tools);
    }
    println!(
        "installing {} from PyPI into {}\nThey are NVIDIA's, under NVIDIA's licence (the EULA of the CUDA \
         Toolkit), not part of this project.",
        PACKAGES.join(" and "),
        folder.display()
    );
    let manual = format!(
        "or put the binaries `ptxas` and `nvdisasm` of version {VERSION} into {}",
        folder.join("bin").display()
    );
    let venv = folder.join("venv");
    python(Path::new("python3"), &["-m", "venv", "--clear"], &venv).map_err(|why| {
        format!(
            "no virtual environment can be made: {why}\ninstall Python 3 with its `venv` module \
             (Debian: apt-get install python3-venv), {manual}"
        )
    })?;
    let mut pip = Command::new(venv_program(&venv, "python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--retries", "2", "--timeout", "30"])
        .args(PACKAGES);
    output(&mut pip).map_err(|why| {
        format!("PyPI cannot be reached, or lacks the packages: {why}\nrun it again with a network, {manual}")
    })?;
    installed(&folder).ok_or_else(|| format!("the packages do not hold ptxas {VERSION}: {manual}"))
}

/// A Python with the packages of a list, in a virtual environment of that name. It is made anew where the list has
/// changed. The error says what is missing and how to get it.
pub(crate) fn python_with(name: &str, requirements: &Path) -> Result<PathBuf, String> {
    python_of(Path::new("python3"), name, requirements)
}

/// The same, made by an interpreter.
pub(crate) fn python_of(interpreter: &Path, name: &str, requirements: &Path) -> Result<PathBuf, String> {
    let list = std::fs::read_to_string(requirements)
        .map_err(|error| format!("cannot read {}: {error}", requirements.display()))?;
    let packages = list.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(", ");
    let list = format!("{list}# {}\n", interpreter.display());
    let venv = target_dir().join("tools").join(name);
    let (program, done) = (venv_program(&venv, "python"), venv.join("installed.txt"));
    if program.exists() && std::fs::read_to_string(&done).is_ok_and(|installed| installed == list) {
        return Ok(program);
    }
    println!("installing {packages} from PyPI into {}", venv.display());
    python(interpreter, &["-m", "venv", "--clear"], &venv).map_err(|why| {
        format!(
            "no virtual environment can be made: {why}\ninstall Python 3 with its `venv` module (Debian: apt-get \
             install python3-venv)"
        )
    })?;
    let mut pip = Command::new(&program);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "--timeout",
        "30",
    ]);
    output(pip.arg("-r").arg(requirements)).map_err(|why| {
        format!("PyPI cannot be reached, or lacks the packages: {why}\nrun it again with a network")
    })?;
    // Written last: what was cut off is made again.
    std::fs::write(&done, list).map_err(|error| format!("cannot write {}: {error}", done.display()))?;
    Ok(program)
}

/// The tools, if they are there in the right version.
fn installed(folder: &Path) -> Option<Tools> {
    let suffix = std::env::consts::EXE_SUFFIX;
    bin_folders(folder).into_iter().find_map(|bin| {
        let tools = Tools {
            ptxas: bin.join(format!("ptxas{suffix}")),
            nvdisasm: bin.join(format!("nvdisasm{suffix}")),
        };
        let right = [&tools.ptxas, &tools.nvdisasm].into_iter().all(|program| {
            let version = output(Command::new(program).arg("--version"));
            version.is_ok_and(|text| text.contains(&format!("V{VERSION}")))
        });
        right.then_some(tools)
    })
}

/// Where the binaries may be: `bin`, or where pip puts them.
fn bin_folders(folder: &Path) -> Vec<PathBuf> {
    let packages = |lib: PathBuf| lib.join("site-packages/nvidia/cu13/bin");
    let mut folders = vec![folder.join("bin"), packages(folder.join("venv/Lib"))];
    if let Ok(versions) = std::fs::read_dir(folder.join("venv/lib")) {
        folders.extend(versions.flatten().map(|version| packages(version.path())));
    }
    folders
}

fn venv_program(venv: &Path, name: &str) -> PathBuf {
    if cfg!(windows) { venv.join("Scripts").join(format!("{name}.exe")) } else { venv.join("bin").join(name) }
}

/// Runs a Python; where it is not there under this name, the one that is called `python`.
fn python(interpreter: &Path, arguments: &[&str], last: &Path) -> Result<(), String> {
    let run = |program: &Path| output(Command::new(program).args(arguments).arg(last)).map(drop);
    run(interpreter).or_else(|_| run(Path::new("python")))
}

/// Runs a program and returns what it wrote, or why it failed.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) => Err(format!("`{program}` cannot be run ({error})")),
        Ok(output) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
            match output.status.success() {
                true => Ok(text(&output.stdout)),
                false => {
                    let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
                    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
                    Err(format!("`{program}`: {last}"))
                }
            }
        }
    }
}
