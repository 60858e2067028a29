//! What a finding says: everything that a person needs to find the places.

use crate::*;

fn seeded() -> Options {
    Options { schedule: Schedule::Seeded(7), ..Options::checked() }
}

/// Block 1 reads what block 0 writes, one word in each lane of the last warp, three times.
fn race_between_blocks() -> String {
    kernel(
        "    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r6, 0;
    setp.ne.u32 %p2, %r2, 1;
    @%p2 bra $end;
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd2, %rd1, %rd2;
    setp.ne.u32 %p1, %r1, 0;
$trip:
    .loc 1 12 5
    @!%p1 st.global.u32 [%rd2+8], %r3; // write
    .loc 1 14 9
    @%p1 ld.global.u32 %r4, [%rd2+8]; // read
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 3;
    @%p3 bra $trip;
$end:
    ret;",
    )
}

/// What `.loc` says of a line.
fn loc(line: u32, column: u32) -> SourceLine {
    SourceLine { file: "kernel.cu".into(), line, column, inlined_at: None }
}

#[test]
fn a_race_names_both_accesses_in_full() {
    let text = race_between_blocks();
    let device = device();
    let buffer = device.alloc_named::<u32>("totals", 64).unwrap();
    buffer.zero();
    let config = LaunchConfig { block_dim: (32, 2, 1), ..LaunchConfig::new(2, 1) };
    let report = launch(&device, &text, &config, &buffer, &seeded()).wait();
    let [finding] = &report.findings[..] else { panic!("one finding is expected: {report}") };
    assert_eq!(
        (finding.tool, finding.severity, finding.kernel.as_str()),
        (Tool::Racecheck, Severity::Error, "k")
    );
    let FindingKind::Race { between: Between::Blocks, space: SpaceKind::Global, same_value: false, hazard } =
        finding.kind
    else {
        panic!("{:?}", finding.kind)
    };
    assert_eq!(finding.accesses.len(), 2);
    // An access that is repeated, with nothing ordered in between, is not looked at again.
    assert!((1..=6).contains(&finding.count), "{} times", finding.count);
    let write_first = finding.accesses[0].action == Action::Write;
    assert_eq!(hazard, if write_first { Hazard::ReadAfterWrite } else { Hazard::WriteAfterRead });
    for access in &finding.accesses {
        let (name, source, block) = match access.action {
            Action::Write => ("write", loc(12, 5), 0),
            Action::Read => ("read", loc(14, 9), 1),
            other => panic!("{other}"),
        };
        assert_eq!(line(&text, access.origin), marked(&text, name));
        assert_eq!(access.source, Some(source));
        assert_eq!((access.function.as_str(), access.block), ("k", [block, 0, 0]));
        assert_eq!(access.thread[1..], [1, 0]);
        let site = access.memory.as_ref().unwrap();
        assert_eq!((site.space, site.bytes), (SpaceKind::Global, 4));
        let allocation = site.allocation.as_ref().unwrap();
        assert_eq!(
            (allocation.name.as_str(), allocation.base, allocation.bytes),
            ("totals", buffer.address(), 256)
        );
        assert_eq!(site.address, allocation.base + allocation.offset as u64);
        // Both access the very word that their threads are at.
        assert_eq!(allocation.offset, i64::from(4 * access.thread[0] + 8));
    }
    assert_eq!(finding.accesses[0].thread, finding.accesses[1].thread);
}

#[test]
fn findings_of_one_kind_at_one_place_are_counted() {
    // Two warps, three trips; in each the upper half of the lanes is out of bounds.
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd2, %rd1, %rd2;
    mov.u32 %r6, 0;
$trip:
    .loc 1 21 3
    st.global.u32 [%rd2], 1; // store
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 3;
    @%p3 bra $trip;
    st.global.u32 [%rd1+-4], 1; // below
    ret;",
    );
    let device = device();
    let buffer = device.alloc_named::<u32>("short", 16).unwrap();
    let options = Options { checks: Checks::MEMORY, ..seeded() };
    let report = launch(&device, &text, &LaunchConfig::new(1, 64), &buffer, &options).wait();
    assert!(report.trap.is_none(), "an access that is not allowed is left out, and the kernel goes on");
    let [above, below] = &report.findings[..] else { panic!("two findings are expected: {report}") };
    assert_eq!((above.kind.name(), above.tool, above.count), ("out-of-bounds", Tool::Memcheck, 6));
    let [access] = &above.accesses[..] else { panic!("{above}") };
    assert_eq!((line(&text, access.origin), access.action), (marked(&text, "store"), Action::Write));
    assert_eq!(access.source, Some(loc(21, 3)));
    // The first of the threads stands for all.
    assert_eq!((access.block, access.thread), ([0; 3], [16, 0, 0]));
    let allocation = access.memory.as_ref().unwrap().allocation.as_ref().unwrap();
    assert_eq!((allocation.name.as_str(), allocation.offset, allocation.freed), ("short", 64, false));
    let [access] = &below.accesses[..] else { panic!("{below}") };
    assert_eq!((line(&text, access.origin), below.count), (marked(&text, "below"), 2));
    let allocation = access.memory.as_ref().unwrap().allocation.as_ref().unwrap();
    assert_eq!(
        (allocation.name.as_str(), allocation.offset),
        ("short", -4),
        "the nearest allocation is named"
    );
}

/// LLVM counts the lines of inline assembly on from the line of the program, as in Triton's loads.
#[test]
fn lines_of_inline_assembly_are_no_lines_of_the_program() {
    let text = kernel(
        "    .loc 1 21 3
    // begin inline asm
    .loc 1 21 3
    mov.u32 %r1, 0;
    .loc 1 22 3
    mov.u32 %r2, 0;
    .loc 1 23 3
    ld.global.v2.u32 {%r1, %r2}, [%rd1+64];
    // end inline asm
    st.global.u32 [%rd1+68], %r1;
    // begin inline asm
    {
    .loc 1 23 3
    st.global.u32 [%rd1+72], %r2;
    }
    // end inline asm
    .loc 1 25 3
    st.global.u32 [%rd1+76], %r2;
    ret;",
    );
    let device = device();
    let buffer = device.alloc_named::<u32>("short", 16).unwrap();
    let options = Options { checks: Checks::MEMORY, ..seeded() };
    let report = launch(&device, &text, &LaunchConfig::new(1, 1), &buffer, &options).wait();
    let sources: Vec<_> = report.findings.iter().map(|finding| finding.accesses[0].source.clone()).collect();
    let expected = [21, 21, 21, 25].map(|line| Some(loc(line, 3)));
    assert_eq!(sources, expected);
}

#[test]
fn a_freed_allocation_is_known_by_its_name() {
    let text = kernel("    ld.global.u32 %r1, [%rd1+4];\n    ret;");
    let device = device();
    let buffer = device.alloc_named::<u32>("gone", 4).unwrap();
    let module = load(&device, &text);
    let address = buffer.address();
    drop(buffer);
    let options = Options::default();
    let running = device.launch(&module, "k", &LaunchConfig::new(1, 1), &[Arg::Pointer(address)], &options);
    let report = running.unwrap().wait();
    let [finding] = &report.findings[..] else { panic!("{report}") };
    assert_eq!(finding.kind, FindingKind::Access(FaultKind::Freed));
    let allocation = finding.accesses[0].memory.as_ref().unwrap().allocation.as_ref().unwrap();
    assert_eq!((allocation.name.as_str(), allocation.offset, allocation.freed), ("gone", 4, true));
}

#[test]
fn each_check_can_be_off() {
    // A race, an uninitialised read, and a divergent barrier.
    let text = kernel(
        "    mov.u32 %r1, %tid.x;
    ld.global.u32 %r2, [%rd1];
    st.global.u32 [%rd1+4], %r1;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra $low;
    bar.sync 0;
    ret;
$low:
    bar.sync 0;
    ret;",
    );
    let device = device();
    for bits in 0..8 {
        let (race, init, sync) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let checks = Checks { race, init, sync, ..Checks::MEMORY };
        let buffer = device.alloc::<u32>(4).unwrap();
        let options = Options { checks, ..seeded() };
        let report = launch(&device, &text, &LaunchConfig::new(1, 32), &buffer, &options).wait();
        for (tool, on) in
            [(Tool::Racecheck, checks.race), (Tool::Initcheck, checks.init), (Tool::Synccheck, checks.sync)]
        {
            let found = report.findings.iter().any(|finding| finding.tool == tool);
            assert_eq!(found, on, "{tool} with {checks:?}: {report}");
        }
    }
}
