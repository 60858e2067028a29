//! Models in several files.

use super::raw::Folder;
use std::path::{Path, PathBuf};
use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Gguf, Problem, TensorFormat};

/// A model of five tensors.
fn model() -> GgufWriter {
    let mut file = GgufWriter::new();
    file.set("general.architecture", "llama").set("general.alignment", 64u32);
    for i in 0..5u8 {
        file.tensor(format!("t{i}"), &[4], TensorFormat::F32, vec![i; 16]);
    }
    file
}

/// It in three parts.
fn three(folder: &Folder) -> Vec<PathBuf> {
    model().write_split(folder.path().join("model"), 2).expect("the parts can be written")
}

fn refused(path: &Path) -> String {
    Gguf::open(path).expect_err("the parts do not make a model").to_string()
}

/// Rewrites one part as `change` has it.
fn rewrite(path: &Path, change: impl FnOnce(&mut GgufWriter) -> &mut GgufWriter) {
    let part = Gguf::from_bytes(without_split(path)).expect("a part can be read");
    let mut file = GgufWriter::new();
    for (key, value) in part.metadata().iter() {
        // Back under the name that it had.
        file.set(key.replace("splat.", "split."), value.clone());
    }
    for tensor in part.tensors() {
        file.tensor(&tensor.name, &tensor.dims, tensor.ty, part.data(tensor));
    }
    change(&mut file);
    file.write(path).expect("the part can be written");
}

/// A part's bytes with its keys renamed, so that it is a file by itself.
fn without_split(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("the part can be read");
    for at in 0..bytes.len() - 6 {
        if &bytes[at..at + 6] == b"split." {
            bytes[at..at + 6].copy_from_slice(b"splat.");
        }
    }
    bytes
}

#[test]
fn any_part_opens_all() {
    let folder = Folder::new("split_any");
    let paths = three(&folder);
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(
        names,
        ["model-00001-of-00003.gguf", "model-00002-of-00003.gguf", "model-00003-of-00003.gguf"]
    );
    for path in &paths {
        let gguf = Gguf::open(path).expect("all parts are there");
        assert_eq!(gguf.metadata().str("general.architecture").expect("the first part says it"), "llama");
        let parts: Vec<_> = gguf.parts().iter().map(|part| part.tensors()).collect();
        assert_eq!(parts, [2, 2, 1]);
        assert_eq!(gguf.name(), paths[0].display().to_string());
        for i in 0..5u8 {
            let tensor = gguf.tensor(&format!("t{i}")).expect("some part has it");
            assert_eq!((tensor.part(), gguf.data(tensor)), (usize::from(i / 2), [i; 16].as_slice()));
            assert_eq!(tensor.offset() % 64, 0);
        }
    }
}

#[test]
fn a_part_that_is_missing_is_named() {
    let folder = Folder::new("split_missing");
    let paths = three(&folder);
    std::fs::remove_file(&paths[1]).expect("the part can be removed");
    let error = Gguf::open(&paths[2]).expect_err("a part is missing");
    assert_eq!(error.file(), paths[1].display().to_string());
    assert!(matches!(error.problem(), Problem::PartIo { number: 1, count: 3, .. }));
}

#[test]
fn a_part_needs_its_name() {
    let folder = Folder::new("split_name");
    let paths = three(&folder);
    for name in ["renamed.gguf", "model-00002-of-00003.gguf.bak", "model-00001-of-00003.gguf"] {
        let renamed = folder.path().join(name);
        std::fs::copy(&paths[1], &renamed).expect("the part can be copied");
        let expected = "is part 2 of 3 of a split model, so its name should end in `-00002-of-00003.gguf`";
        assert_eq!(refused(&renamed), format!("{}: {expected}", renamed.display()));
    }
}

#[test]
fn parts_of_different_models_are_refused() {
    let folder = Folder::new("split_mixed");
    let mixed = |change: &dyn Fn(&Path), reason: &str| {
        let paths = three(&folder);
        change(&paths[1]);
        let expected =
            format!("{}: does not belong to `{}`: {reason}", paths[1].display(), paths[0].display());
        assert_eq!(refused(&paths[0]), expected);
    };
    let with = |key: &'static str, value: u16| {
        move |path: &Path| rewrite(path, |file| file.set(key, value).set("split.tensors.count", 5i32))
    };
    mixed(&with("split.no", 2), "it is part 3 of 3, where part 2 of 3 should be");
    mixed(&with("split.count", 4), "it is part 2 of 4, where part 2 of 3 should be");
    mixed(&with("split.count", 1), "it is a whole file, not a part");
    mixed(
        &|path| rewrite(path, |file| file.set("split.tensors.count", 7i32)),
        "`split.tensors.count` is 7 here and 5 there",
    );
    mixed(
        &|path| rewrite(path, |file| file.set("general.architecture", "qwen2")),
        "`general.architecture` is not the same there",
    );
    mixed(
        &|path| rewrite(path, |file| file.set("general.name", "other")),
        "`general.name` is not the same there",
    );
    let twice = |path: &Path| {
        rewrite(path, |file| file.tensor("t0", &[1], TensorFormat::F32, [0; 4]));
    };
    mixed(&twice, "tensor `t0` is in both");
}

#[test]
fn parts_may_repeat_what_the_first_says() {
    let folder = Folder::new("split_repeat");
    let paths = three(&folder);
    // What is not equal to itself is still the same.
    rewrite(&paths[0], |file| file.set("test.nan", f32::NAN));
    rewrite(&paths[2], |file| file.set("general.architecture", "llama").set("test.nan", f32::NAN));
    assert_eq!(Gguf::open(&paths[0]).expect("the parts agree").tensors().len(), 5);
}

#[test]
fn tensors_are_counted() {
    let folder = Folder::new("split_count");
    let paths = three(&folder);
    rewrite(&paths[1], |file| file.tensor("t9", &[1], TensorFormat::F32, [0; 4]));
    let expected = "the parts of the model have 6 tensors; `split.tensors.count` is 5";
    assert_eq!(refused(&paths[1]), format!("{}: {expected}", paths[0].display()));
}

#[test]
fn a_damaged_part_is_named() {
    let folder = Folder::new("split_damaged");
    let paths = three(&folder);
    let bytes = std::fs::read(&paths[2]).expect("the part can be read");
    std::fs::write(&paths[2], &bytes[..bytes.len() - 64]).expect("the part can be written");
    let error = Gguf::open(&paths[0]).expect_err("a part is cut off");
    assert_eq!(error.file(), paths[2].display().to_string());
    assert!(matches!(error.problem(), Problem::BeyondEnd { .. }));
}
