//! What `docs/run.md` shows is what the program prints.
//!
//! The page's `console` blocks are commands of `warpwright` with their output, standard output first. They run
//! one after the other in a folder with the kernels of `tests/kernels` and the page's arrays. `BLESS=1` puts
//! what the program prints into the page.

mod common;

use common::Folder;
use common::npy::{f32s, file};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the program prints for a command in that folder.
fn output(command: &str, folder: &Path) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("warpwright"), "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("the output is UTF-8");
    let lines = text.lines().map(|line| {
        // The one thing that is never the same.
        let seconds = line.trim_start().starts_with("\"seconds\":");
        if seconds { "  \"seconds\": 0.0002,\n".to_string() } else { format!("{line}\n") }
    });
    lines.collect()
}

#[test]
fn the_page_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new("book");
    for entry in fs::read_dir(root.join("tests/kernels")).expect("the folder is there") {
        let path = entry.expect("readable").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a file"))).expect("it is copied");
    }
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    for (name, values) in [("x.npy", &x[..]), ("y.npy", &[1.0; 100])] {
        let bytes = file("<f4", false, "(100,)", &f32s(values));
        fs::write(folder.path().join(name), bytes).expect("it is written");
    }

    let path = root.join("../../docs/run.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (mut actual, mut blocks) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        actual.push_str(line);
        actual.push('\n');
        if line != "```console" {
            continue;
        }
        blocks += 1;
        for line in lines.by_ref().take_while(|line| *line != "```") {
            if let Some(command) = line.strip_prefix("$ ") {
                actual.push_str(&format!("{line}\n{}", output(command, folder.path())));
            }
        }
        actual.push_str("```\n");
    }
    assert!(blocks > 0);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &actual).expect("the page is written");
    } else {
        let differs = page.lines().zip(actual.lines()).enumerate().find(|(_, (shown, printed))| shown != printed);
        assert_eq!(differs, None, "docs/run.md: BLESS=1 puts right what is shown");
        assert_eq!(page.lines().count(), actual.lines().count());
    }
}
