//! Where the workspace is, running programs, and using all cores.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf());
    here.parent().map_or(here.clone(), Path::to_path_buf)
}

/// Where build products go.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// `cargo` in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds the libraries, programs and examples of the workspace, and gives the folder where they are.
///
/// Builds all packages at once, as for the tests: a single package would enable fewer features of its dependencies, and
/// most would be built twice. The same would happen if the derives were named explicitly: alone they are built in
/// another profile than for their users.
pub(crate) fn build_workspace() -> Result<PathBuf, String> {
    let packages = ["--workspace", "--exclude", "warpwright-macros"];
    run(cargo().args(["build", "--quiet"]).args(packages).args(["--lib", "--bins", "--examples"]))?;
    Ok(target_dir().join("debug"))
}

/// Runs a program with its output shown. The error names the program and its status.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words = words.join(" ");
    println!("$ {words}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{words}` failed: {status}")),
        Err(error) => Err(format!("`{words}` cannot be run: {error}")),
    }
}

/// Applies `f` to every item on all cores; the results are in the order of the items.
pub(crate) fn parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from).min(items.len().max(1));
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { break };
                    let result = f(item);
                    results.lock().expect("no worker panics while it holds the lock").push((i, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no worker panics while it holds the lock");
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Every `.ptx` file under `folder`, sorted.
pub(crate) fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = files_under(folder)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    match files.is_empty() {
        true => Err(format!("there is no PTX under {}", folder.display())),
        false => Ok(files),
    }
}

/// Every file under `folder`, sorted; build products and hidden folders other than `.ci` and `.cargo`
/// are left out.
pub(crate) fn files_under(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| format!("cannot read {}: {error}", folder.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && ![".ci", ".cargo", ".gitignore"].contains(&name.as_str());
            if hidden || name == "target" {
                continue;
            }
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Every file of the project: what git knows of, or everything where git is no help.
pub(crate) fn project_files() -> Result<Vec<PathBuf>, String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = match git.output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap_or_default(),
        _ => String::new(),
    };
    let mut files: Vec<_> =
        listed.split('\0').filter(|name| !name.is_empty()).map(|name| root().join(name)).collect();
    files.retain(|path| path.is_file());
    files.sort();
    if files.is_empty() { files_under(&root()) } else { Ok(files) }
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The path as seen from the workspace's root.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
