//! Reads the parts of `Cargo.toml` that the tasks need.

/// The names of a manifest's normal and build dependencies.
pub(crate) fn dependencies(manifest: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = matches!(table, "dependencies" | "build-dependencies")
                || table.starts_with("target.") && table.ends_with(".dependencies");
            names.extend(table.strip_prefix("dependencies."));
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            names.push(name.trim());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn names_are_found_in_every_form() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\nb.workspace = true\n\
                        [dev-dependencies]\nc = \"1\"\n[dependencies.d]\nversion = \"1\"\n";
        assert_eq!(dependencies(manifest), ["a", "b", "d"]);
    }
}
