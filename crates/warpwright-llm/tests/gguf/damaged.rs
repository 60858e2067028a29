//! Each thing that can be wrong with a file, and the message that says it.

use super::raw::{Folder, Raw};
use warpwright_llm::gguf::{Gguf, Problem};

/// Damaged files: what is wrong, the file, and the message after the file's name.
fn cases() -> Vec<(&'static str, Raw, &'static str)> {
    vec![
        (
            "nothing",
            Raw::default(),
            "the letters `GGUF` at byte 0 takes 4 bytes, but only 0 are left: the file is cut off, or damaged",
        ),
        (
            "another format",
            Raw::default().bytes(b"\x80\x02}q\0\0\0\0"),
            r"is not a GGUF file: it begins with `\x80\x02}q`, not with `GGUF`",
        ),
        (
            "an old version",
            Raw::default().bytes(b"GGUF").u32(1).u32(0).u32(0),
            "the version at byte 4 is 1; versions 2 and 3 are read, version 1 must be converted by the program \
             that made it",
        ),
        (
            "a version to come",
            Raw::default().bytes(b"GGUF").u32(4).u64(0).u64(0),
            "the version at byte 4 is 4; versions 2 and 3 are read",
        ),
        (
            "version 0",
            Raw::default().bytes(b"GGUF").u32(0).u64(0).u64(0),
            "the version at byte 4 is 0; versions 2 and 3 are read",
        ),
        (
            "the other byte order",
            Raw::default().bytes(b"GGUF").bytes(&3u32.to_be_bytes()).u64(0).u64(0),
            "is in big-endian byte order (version 3), which is not read: convert it to little-endian",
        ),
        (
            "no room for what is promised",
            Raw::default().bytes(b"GGUF").u32(3).u32(7),
            "the number of tensors at byte 8 takes 8 bytes, but only 4 are left: the file is cut off, or damaged",
        ),
        (
            "too many tensors",
            Raw::header(u64::MAX, 0),
            "the number of tensors at byte 8 is 18446744073709551615, but the rest of the file has room for 0 \
             at most",
        ),
        (
            "too many metadata",
            Raw::header(0, 1 << 60).bytes(&[0; 100]),
            "the number of metadata at byte 16 is 1152921504606846976, but the rest of the file has room for 7 \
             at most",
        ),
        (
            "a key that is too long for the file",
            Raw::header(0, 1).u64(u64::MAX).bytes(&[b'k'; 20]),
            "key 0 of the metadata at byte 32 takes 18446744073709551615 bytes, but only 20 are left: the file \
             is cut off, or damaged",
        ),
        (
            "a key that is empty",
            Raw::header(0, 1).text("").u32(4).u32(1),
            "key 0 of the metadata at byte 24 has 0 bytes; a name has 1 to 65535",
        ),
        (
            "a key that is too long",
            Raw::header(0, 1).text(&"k".repeat(65536)).u32(4).u32(1),
            "key 0 of the metadata at byte 24 has 65536 bytes; a name has 1 to 65535",
        ),
        (
            "a key that is not text",
            Raw::header(0, 1).u64(3).bytes(b"ab\xff").u32(4).u32(1),
            "key 0 of the metadata is not UTF-8: byte 34 of the file begins no character",
        ),
        (
            "a key that is there twice",
            Raw::header(0, 3).text("a").u32(0).u8(1).text("b").u32(0).u8(1).text("a").u32(0).u8(2),
            "key `a` stands at byte 24 and again at byte 52",
        ),
        (
            "an unknown type",
            Raw::header(0, 1).text("a\nb").u32(13).u8(1),
            r"the type of `a\nb` at byte 35 is 13, which is no type: types are 0 to 12",
        ),
        (
            "a truth value that is none",
            Raw::header(0, 1).text("a").u32(7).u8(2),
            "the value of `a` at byte 37 is 2; a truth value is 0 or 1",
        ),
        (
            "a truth value of an array that is none",
            Raw::header(0, 1).text("a").u32(9).u32(7).u64(2).u8(1).u8(255),
            "`a`[1] at byte 50 is 255; a truth value is 0 or 1",
        ),
        (
            "a string that is not text",
            Raw::header(0, 1).text("a").u32(8).u64(2).bytes(b"\xc3("),
            "the value of `a` is not UTF-8: byte 45 of the file begins no character",
        ),
        (
            "an array that is too long",
            Raw::header(0, 1).text("a").u32(9).u32(10).u64(1 << 62).u64(0).u64(0),
            "the number of items of `a` at byte 41 is 4611686018427387904, but the rest of the file has room \
             for 2 at most",
        ),
        (
            "an array of strings that is too long",
            Raw::header(0, 1).text("a").u32(9).u32(8).u64(2).u64(4).u32(0).u32(0),
            "`a`[1] at byte 61 takes 8 bytes, but only 4 are left: the file is cut off, or damaged",
        ),
        (
            "an array of arrays of arrays",
            (0..4).fold(Raw::header(0, 1).text("a").u32(9), |raw, _| raw.u32(9).u64(1)).u32(0).u64(0),
            "`a`[0] at byte 85 is an array 5 deep; 4 deep is the most that is read",
        ),
        (
            "an alignment that is no power of two",
            Raw::header(0, 1).text("general.alignment").u32(4).u32(48),
            "`general.alignment` is 48; it must be a u32 that is a power of two",
        ),
        (
            "an alignment of nothing",
            Raw::header(0, 1).text("general.alignment").u32(4).u32(0),
            "`general.alignment` is 0; it must be a u32 that is a power of two",
        ),
        (
            "an alignment of another type",
            Raw::header(0, 1).text("general.alignment").u32(5).u32(32),
            "`general.alignment` is an i32; it must be a u32 that is a power of two",
        ),
        (
            "a tensor without a name",
            Raw::header(1, 0).tensor("", &[4], 0, 0).pad(32).bytes(&[0; 32]),
            "the name of tensor 0 at byte 24 has 0 bytes; a name has 1 to 65535",
        ),
        (
            "a tensor that is there twice",
            Raw::header(2, 0).tensor("t", &[4], 0, 0).tensor("t", &[4], 0, 32).pad(32).bytes(&[0; 64]),
            "tensor `t` stands at byte 24 and again at byte 57",
        ),
        (
            "too many dimensions",
            Raw::header(1, 0).tensor("t", &[1; 5], 0, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` has 5 dimensions at byte 33; 4 is the most",
        ),
        (
            "dimensions whose product is too large",
            Raw::header(1, 0).tensor("t", &[1 << 40, 1 << 40], 0, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` of [1099511627776, 1099511627776] at byte 33 would take more than 2^63 bytes",
        ),
        (
            "dimensions whose product is too large, but for a zero",
            Raw::header(1, 0).tensor("t", &[1 << 40, 1 << 40, 0], 0, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` of [1099511627776, 1099511627776, 0] at byte 33 would take more than 2^63 bytes",
        ),
        (
            "a size that is too large",
            Raw::header(1, 0).tensor("t", &[1 << 61], 0, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` of [2305843009213693952] at byte 33 would take more than 2^63 bytes",
        ),
        (
            "an unknown format",
            Raw::header(1, 0).tensor("t", &[4], 43, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` has format 43 at byte 45, which is not known",
        ),
        (
            "a format of the past",
            Raw::header(1, 0).tensor("t", &[32], 31, 0).pad(32).bytes(&[0; 32]),
            "tensor `t` has format 31 at byte 45, which is q4_0 interleaved in the file and was removed: \
             quantise to q4_0",
        ),
        (
            "a row that is no whole number of blocks",
            Raw::header(1, 0).tensor("t", &[48, 2], 2, 0).pad(32).bytes(&[0; 64]),
            "tensor `t` of [48, 2] at byte 33 has rows of 48 elements, but a block of q4_0 has 32",
        ),
        (
            "an offset that is not aligned",
            Raw::header(1, 0).tensor("t", &[4], 0, 16).pad(32).bytes(&[0; 64]),
            "tensor `t` has offset 16 at byte 49, which is no multiple of the alignment 32",
        ),
        (
            "data that is not there",
            Raw::header(1, 0).tensor("t", &[8], 0, 32).pad(32).bytes(&[0; 63]),
            "tensor `t` has 32 bytes of data at byte 96, but the file has 127 bytes (its offset stands at byte \
             49): the file is not complete",
        ),
        (
            "data at the end of the world",
            Raw::header(1, 0).tensor("t", &[8], 0, u64::MAX - 31).pad(32),
            "tensor `t` of [8] at byte 33 would take more than 2^63 bytes",
        ),
        (
            "data that overlaps",
            Raw::header(2, 0).tensor("a", &[8], 0, 32).tensor("b", &[9], 0, 0).pad(32).bytes(&[0; 64]),
            "tensor `a` begins at byte 128, before tensor `b` ends at byte 132 (its offset stands at byte 49)",
        ),
        (
            "a part of a model",
            Raw::header(0, 2)
                .text("split.no")
                .u32(2)
                .bytes(&[1, 0])
                .text("split.count")
                .u32(2)
                .bytes(&[3, 0]),
            "is part 2 of 3 of a split model: open it by its path, so that the others are found",
        ),
        (
            "a part that is not one of them",
            Raw::header(0, 2)
                .text("split.no")
                .u32(2)
                .bytes(&[3, 0])
                .text("split.count")
                .u32(2)
                .bytes(&[3, 0]),
            "`split.no` is 3, which does not fit into `split.count`",
        ),
    ]
}

#[test]
fn a_message_says_what_is_wrong_and_where() {
    for (what, raw, message) in cases() {
        let error = Gguf::from_bytes(raw.0).expect_err(what);
        assert_eq!(error.to_string(), format!("<memory>: {message}"), "{what}");
        assert_eq!(error.file(), "<memory>");
    }
}

#[test]
fn the_same_files_without_damage_are_read() {
    // What the cases above change, as it should be.
    let good = [
        Raw::header(0, 0),
        Raw::default().bytes(b"GGUF").u32(2).u64(0).u64(0),
        Raw::header(0, 1).text(&"k".repeat(65535)).u32(4).u32(1),
        Raw::header(0, 1).text("a").u32(9).u32(8).u64(2).u64(0).u64(0),
        (0..3).fold(Raw::header(0, 1).text("a").u32(9), |raw, _| raw.u32(9).u64(1)).u32(0).u64(0),
        Raw::header(0, 1).text("general.alignment").u32(4).u32(64),
        Raw::header(1, 0).tensor("t", &[1, 1, 1, 1], 0, 0).pad(32).bytes(&[0; 4]),
        Raw::header(1, 0).tensor("t", &[8], 0, 32).pad(32).bytes(&[0; 64]),
        Raw::header(2, 0).tensor("a", &[8], 0, 32).tensor("b", &[8], 0, 0).pad(32).bytes(&[0; 64]),
        Raw::header(0, 2).text("split.no").u32(2).bytes(&[0, 0]).text("split.count").u32(2).bytes(&[1, 0]),
    ];
    for (i, raw) in good.into_iter().enumerate() {
        Gguf::from_bytes(raw.0).map(drop).unwrap_or_else(|error| panic!("file {i}: {error}"));
    }
}

#[test]
fn a_file_that_is_none_says_so() {
    let folder = Folder::new("no_file");
    let open = |path| Gguf::open(path).expect_err("it cannot be opened");
    let path = folder.path();
    assert_eq!(open(path).to_string(), format!("{}: is a directory, not a file", path.display()));
    let missing = path.join("missing.gguf");
    let error = open(&missing);
    assert_eq!(error.file(), missing.display().to_string());
    let kind = match error.problem() {
        Problem::Io { action: "open", error } => error.kind(),
        problem => panic!("{problem}"),
    };
    assert_eq!(kind, std::io::ErrorKind::NotFound);
    let empty = path.join("empty.gguf");
    std::fs::write(&empty, []).expect("the file is written");
    assert!(matches!(open(&empty).problem(), Problem::Truncated { offset: 0, needs: 4, left: 0, .. }));
}

/// Nothing is waited for.
#[cfg(unix)]
#[test]
fn a_device_is_no_file() {
    let error = Gguf::open("/dev/zero").expect_err("it has no end");
    assert_eq!(error.to_string(), "/dev/zero: is a pipe or a device, not a file");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("no_permission");
    let path = folder.path().join("secret.gguf");
    std::fs::write(&path, Raw::header(0, 0).0).expect("the file is written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0)).expect("permissions can be set");
    match Gguf::open(&path) {
        Err(error) => assert!(matches!(error.problem(), Problem::Io { action: "open", .. })),
        // Nothing is forbidden to the administrator.
        Ok(_) => assert!(std::fs::File::open(&path).is_ok()),
    }
}
