//! The catalogue: defaults build, verify and read back; wrong fields are named.

use warpwright_kernels::{BuildError, catalogue, find};
use warpwright_ptx::ir::Arch;
use warpwright_ptx::{parse, print, verify};

#[test]
fn every_kernel_reads_back_for_every_type() {
    for entry in catalogue() {
        for dtype in ["dtype=f32", "dtype=f16", "dtype=bf16"] {
            for sm in [75, 80, 86, 89, 90, 100, 120] {
                let kernel = entry.configure([dtype]).expect("a type that it has");
                if sm < kernel.launch().min_sm {
                    continue;
                }
                let built = kernel.build(Arch::sm(sm)).expect("a correct kernel");
                verify(&built.module).expect("a valid module");
                assert_eq!(parse(&print(&built.module)).expect("its own text"), built.module);
            }
        }
    }
}

#[test]
fn entry_names_are_unique_to_the_configuration() {
    let mut names = Vec::new();
    for entry in catalogue() {
        for fields in [&[][..], &["dtype=bf16"]] {
            names.push(entry.configure(fields.iter().copied()).expect("fields that it has").entry());
        }
    }
    let epsilons = ["epsilon=1e-5", "epsilon=1e-6"];
    names.extend(
        epsilons.map(|e| find("rms_norm").expect("known").configure([e, "d=64"]).expect("ok").entry()),
    );
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn wrong_fields_are_named() {
    let norm = find("rms_norm").expect("a kernel");
    let error = |fields: &[&str]| norm.configure(fields.iter().copied()).map(|_| ()).expect_err("wrong");
    assert_eq!(
        error(&["threads=100"]),
        BuildError::Domain {
            field: "threads",
            value: "100".into(),
            domain: "a multiple of 32 from 32 to 1024"
        }
    );
    assert_eq!(error(&["d"]), BuildError::Syntax("d".into()));
    assert_eq!(error(&["d=1", "d=2"]), BuildError::Twice("d".into()));
    assert!(matches!(error(&["width=1"]), BuildError::UnknownField { kernel: "rms_norm", .. }));
    assert!(matches!(error(&["epsilon=NaN"]), BuildError::Domain { field: "epsilon", .. }));
    assert_eq!(find("nothing").map(|_| ()).expect_err("none"), BuildError::UnknownKernel("nothing".into()));
}
