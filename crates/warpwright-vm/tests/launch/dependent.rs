//! Programmatic dependent launches: what may overlap, and the findings of launches that break the rules. A chain runs in
//! several orders, and the findings are the same in each.

use crate::*;

const WAIT: &str = "griddepcontrol.wait;";
const RELEASE: &str = "griddepcontrol.launch_dependents;";

/// A kernel whose thread has a word of the activations at `%rd3`, one of the weights at `%rd4`, and the neighbour's word
/// of the activations, of the other warp, at `%rd5`; `%p1` is set in the first warp.
fn text(body: &str) -> String {
    format!(
        ".version 7.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.lt.u32 %p1, %r1, 32;
    setp.eq.u32 %p2, %r2, 0;
    mad.lo.u32 %r3, %r2, 64, %r1;
    mul.wide.u32 %rd5, %r3, 4;
    add.u64 %rd3, %rd1, %rd5;
    add.u64 %rd4, %rd2, %rd5;
    xor.b32 %r4, %r3, 32;
    mul.wide.u32 %rd5, %r4, 4;
    add.u64 %rd5, %rd1, %rd5;
    mov.u32 %r5, 7;
{body}
    ret;
}}
"
    )
}

/// The orders: the launches that begin early, one after the other, before the first one of the chain has begun.
const ORDERS: [&[usize]; 6] = [&[], &[1], &[2], &[1, 2], &[2, 1], &[3, 2, 1]];

/// Runs a chain of kernels in which each may overlap with the one before it. Returns the reports, and the activations.
fn run(texts: &[String], early: &[usize]) -> (Vec<Report>, Vec<u32>) {
    run_on((&device(), &Options::checked()), texts, early)
}

fn run_on(
    (device, options): (&Device, &Options),
    texts: &[String],
    early: &[usize],
) -> (Vec<Report>, Vec<u32>) {
    let activations = device.alloc_named::<u32>("activations", 128).unwrap();
    let weights = device.alloc_named::<u32>("weights", 128).unwrap();
    weights.write(&(100..228).collect::<Vec<_>>()).unwrap();
    activations.zero();
    let edges: Vec<Edge> = texts.iter().map(|_| Edge::new()).collect();
    let start = |at: usize| {
        let edges =
            Edges { before: at.checked_sub(1).map(|at| edges[at].clone()), after: Some(edges[at].clone()) };
        let args = [Arg::buffer(&activations), Arg::buffer(&weights)];
        let (module, config) = (device.load_ptx(&texts[at]).unwrap(), LaunchConfig::new(2, 64));
        device.launch_between(&module, "k", &config, &args, options, &edges).unwrap()
    };
    let mut begun: Vec<Option<Running>> = texts.iter().map(|_| None).collect();
    for &at in early.iter().filter(|at| **at < texts.len()) {
        let running = start(at);
        running.run();
        begun[at] = Some(running);
    }
    let reports =
        begun.into_iter().enumerate().map(|(at, running)| running.unwrap_or_else(|| start(at)).wait());
    (reports.collect(), activations.read())
}

/// A side of a finding: the launch, and the mark of its line.
type Side = (usize, &'static str);

/// The findings of a chain: for each, the earlier and the later access, and whether it is one of `.nc`.
fn findings(texts: &[String], reports: &[Report]) -> Vec<(Side, Side, bool)> {
    let mut all = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        assert!(report.trap.is_none(), "{report}");
        for finding in &report.findings {
            let [earlier, later] = &finding.accesses[..] else { panic!("{finding}") };
            let nc = match finding.kind {
                FindingKind::NonCoherent => true,
                FindingKind::Race { between: Between::Launches, .. } => false,
                _ => panic!("{finding}"),
            };
            let mark = |launch: usize, site: &AccessSite| {
                let warpwright_ptx::ir::Origin::Text(span) = site.origin else { panic!("not of the text") };
                let line = texts[launch][span.start as usize..].lines().next().unwrap();
                let mark = line.split("// ").nth(1).unwrap_or("nothing");
                *["write", "read", "update", "copy"].iter().find(|known| **known == mark).unwrap()
            };
            // The text of the earlier kernel says which one it is.
            let from = match &earlier.text {
                Some(text) => texts.iter().take(at).rposition(|other| other.as_str() == &**text).unwrap(),
                None => texts.iter().take(at).rposition(|other| *other == texts[at]).unwrap(),
            };
            all.push(((from, mark(from, earlier)), (at, mark(at, later)), nc));
        }
    }
    all.sort_unstable();
    all
}

/// What native code reads counts for the launches beside it, too: a loop whose first turn is the interpreter's, and the words
/// of its second turn, which the next launch writes.
#[test]
fn native_code_is_compared_with_launches_that_overlap() {
    let reader = text(&format!(
        "{RELEASE}\n@!%p1 bra done;\n@!%p2 bra done;\nmov.u32 %r6, 0;\nagain:\nld.global.u32 %r7, [%rd3]; // read\n\
         st.global.u32 [%rd4], %r7;\nadd.u64 %rd3, %rd3, 128;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 2;\n\
         @%p3 bra again;\ndone:"
    ));
    let writer = text("@%p1 bra done;\n@!%p2 bra done;\nst.global.u32 [%rd3], %r5; // write\ndone:");
    let texts = [reader, writer];
    let options = Options { checks: Checks::all(), ..Options::default() };
    for native in [Native::Off, Native::Always] {
        for early in [&[][..], &[1]] {
            let mut config = DeviceConfig::default();
            config.native = native;
            let device = Device::new(config).unwrap();
            let (reports, _) = run_on((&device, &options), &texts, early);
            assert_eq!(
                findings(&texts, &reports),
                [((0, "read"), (1, "write"), false)],
                "{native:?} {early:?}"
            );
        }
    }
}

/// Stores its thread's number, plus one, after the wait.
fn producer(release: &str) -> String {
    text(&format!(
        "{release}\n{WAIT}\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd3], %r1; // write\n// {release}"
    ))
}

struct Case {
    name: &'static str,
    chain: Vec<String>,
    findings: Vec<(Side, Side, bool)>,
}

fn case(name: &'static str, chain: Vec<String>, findings: &[(Side, Side, bool)]) -> Case {
    Case { name, chain, findings: findings.to_vec() }
}

/// What reads the activations behind `before`.
fn reader(before: &str, load: &str) -> String {
    text(&format!("{RELEASE}\n{before}\n{load} %r6, [%rd3]; // read"))
}

const LOAD: &str = "ld.global.u32";
const BARRIER: &str = "bar.sync 0;";

fn planted() -> Vec<Case> {
    let read = |later: usize| ((0, "write"), (later, "read"), false);
    let late = text(&format!("{RELEASE}\n{LOAD} %r6, [%rd3]; // read\n{WAIT}"));
    let in_one_warp = reader(&format!("@%p1 {WAIT}"), LOAD);
    let in_half_a_warp =
        reader(&format!("setp.lt.u32 %p1, %r1, 16;\n@%p1 {WAIT}\n@%p1 bra $done;\n$done:"), LOAD);
    vec![
        case("a late wait", vec![producer(RELEASE), late.clone()], &[read(1)]),
        case("a late wait behind a launch that releases nothing early", vec![producer(""), late], &[read(1)]),
        case("no wait", vec![producer(RELEASE), reader("", LOAD)], &[read(1)]),
        case("a wait in one warp only", vec![producer(RELEASE), in_one_warp], &[read(1)]),
        case("a wait in half a warp", vec![producer(RELEASE), in_half_a_warp], &[read(1)]),
        case(
            "a wait of the other blocks",
            vec![producer(RELEASE), reader(&format!("@%p2 {WAIT}"), LOAD)],
            &[read(1)],
        ),
        case(
            "an early store of what is read",
            vec![
                reader(WAIT, LOAD),
                text(&format!("{RELEASE}\nst.global.u32 [%rd3], %r5; // write\n{WAIT}")),
            ],
            &[((0, "read"), (1, "write"), false)],
        ),
        case(
            "an early store of the same value",
            vec![
                text("st.global.u32 [%rd3], %r5; // write"),
                text(&format!("{RELEASE}\nst.global.u32 [%rd3], %r5; // write\n{WAIT}")),
            ],
            &[((0, "write"), (1, "write"), false)],
        ),
        case(
            "early atomics",
            vec![
                text("red.global.add.u32 [%rd3], %r5; // update"),
                text(&format!("{RELEASE}\nred.global.add.u32 [%rd3], %r5; // update\n{WAIT}")),
            ],
            &[((0, "update"), (1, "update"), false)],
        ),
        case(
            "an early asynchronous copy",
            vec![
                producer(RELEASE),
                text(&format!(
                    ".shared .align 4 .b8 tile[256];\nmov.u32 %r6, tile;\nmad.lo.u32 %r6, %r1, 4, %r6;\n\
                     cp.async.ca.shared.global [%r6], [%rd3], 4; // copy\n{WAIT}\ncp.async.wait_all;"
                )),
            ],
            &[((0, "write"), (1, "copy"), false)],
        ),
        case(
            "`.nc` on an activation",
            vec![producer(RELEASE), reader(WAIT, "ld.global.nc.u32")],
            &[((0, "write"), (1, "read"), true)],
        ),
        case(
            "`.nc` on an activation before the wait",
            vec![producer(RELEASE), text(&format!("ld.global.nc.u32 %r6, [%rd3]; // read\n{WAIT}"))],
            &[read(1)],
        ),
        case(
            "a middle kernel without a wait",
            vec![producer(RELEASE), text(RELEASE), reader(WAIT, LOAD)],
            &[read(2)],
        ),
        case(
            "a middle kernel with a wait in one block",
            vec![producer(RELEASE), text(&format!("{RELEASE}\n@%p2 {WAIT}")), reader(WAIT, LOAD)],
            &[read(2)],
        ),
        case(
            "two middle kernels without a wait",
            vec![producer(RELEASE), text(RELEASE), text(RELEASE), reader(WAIT, LOAD)],
            &[read(3)],
        ),
        case(
            "a late wait behind a kernel that waits after it has released its dependents",
            vec![
                producer(RELEASE),
                text(&format!("{RELEASE}\n{WAIT}")),
                text(&format!("{LOAD} %r6, [%rd3]; // read\n{WAIT}")),
            ],
            &[read(2)],
        ),
    ]
}

fn correct() -> Vec<Case> {
    let weights = format!("{LOAD} %r6, [%rd4];\nld.global.nc.u32 %r7, [%rd4];\nprefetch.global.L2 [%rd3];");
    vec![
        case(
            "weights and prefetches before the wait",
            vec![producer(RELEASE), reader(&format!("{weights}\n{WAIT}"), LOAD)],
            &[],
        ),
        case("a chain of three", vec![producer(RELEASE), producer(RELEASE), reader(WAIT, LOAD)], &[]),
        case(
            "a wait in one warp, and a barrier",
            vec![producer(RELEASE), reader(&format!("@%p1 {WAIT}\n{BARRIER}"), LOAD)],
            &[],
        ),
        case(
            "a wait in each warp by itself",
            vec![producer(RELEASE), reader(&format!("@%p1 {WAIT}\n@!%p1 {WAIT}"), LOAD)],
            &[],
        ),
        case(
            "a wait of one lane, and the warps meet",
            vec![
                producer(RELEASE),
                reader(
                    &format!(
                        "and.b32 %r6, %r1, 31;\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 {WAIT}\nbar.warp.sync -1;"
                    ),
                    LOAD,
                ),
            ],
            &[],
        ),
        case(
            "a middle kernel that waits in every block",
            vec![producer(RELEASE), text(&format!("{RELEASE}\n@%p1 {WAIT}")), reader(WAIT, LOAD)],
            &[],
        ),
        case(
            "what the launch before the last one wrote, behind a wait before the release",
            vec![
                producer(RELEASE),
                text(&format!("{WAIT}\n{RELEASE}")),
                text(&format!("{LOAD} %r6, [%rd3]; // read\n{WAIT}")),
            ],
            &[],
        ),
        case(
            "what the launch before the last one wrote, and the last one releases nothing early",
            vec![producer(RELEASE), text(WAIT), text(&format!("{LOAD} %r6, [%rd3]; // read\n{WAIT}"))],
            &[],
        ),
        case(
            "stores and atomics behind the wait",
            vec![
                producer(RELEASE),
                text(&format!("{RELEASE}\n{WAIT}\nred.global.add.u32 [%rd3], %r5; // update")),
                producer(RELEASE),
            ],
            &[],
        ),
    ]
}

#[test]
fn broken_rules_are_found_in_every_order() {
    for Case { name, chain, findings: expected } in planted() {
        for early in ORDERS {
            let (reports, _) = run(&chain, early);
            assert_eq!(findings(&chain, &reports), expected, "{name}, early {early:?}");
        }
    }
}

#[test]
fn correct_relatives_are_silent_in_every_order() {
    for Case { name, chain, findings: expected } in correct() {
        for early in ORDERS {
            let (reports, _) = run(&chain, early);
            assert_eq!(findings(&chain, &reports), expected, "{name}, early {early:?}");
        }
    }
}

/// Copies the activations of the neighbour into the weights' place of the thread: the results tell the order.
fn copies(before: &str, behind: &str) -> String {
    text(&format!(
        "{before}\n{LOAD} %r6, [%rd5];\n{behind}\nadd.u32 %r6, %r6, 1000;\nst.global.u32 [%rd3], %r6;"
    ))
}

#[test]
fn a_launch_that_begins_early_sees_old_memory_without_a_wait() {
    let first = text("st.global.u32 [%rd3], %r5;");
    let results = |second: String, early: &[usize]| {
        let mut results = run(&[first.clone(), second], early).1;
        results.dedup();
        results
    };
    for early in [&[][..], &[1]] {
        assert_eq!(results(copies(&format!("{WAIT}\n{BARRIER}"), BARRIER), early), [1007]);
    }
    assert_eq!(results(copies("", &format!("{WAIT}\n{BARRIER}")), &[]), [1007]);
    assert_eq!(results(copies("", &format!("{WAIT}\n{BARRIER}")), &[1]), [1000]);
    // A launch without a wait is over before the earlier one has begun.
    assert_eq!(results(text("st.global.u32 [%rd3], %r2;"), &[1]), [7]);
}

#[test]
fn a_launch_whose_predecessor_never_ends_is_a_deadlock() {
    let device = device();
    let buffer = device.alloc::<u32>(64).unwrap();
    let module = load(&device, &text(WAIT));
    let edges = Edges { before: Some(Edge::new()), after: None };
    let args = [Arg::buffer(&buffer), Arg::buffer(&buffer)];
    let launch = || {
        let (config, options) = (LaunchConfig::new(40, 64), Options::checked());
        device.launch_between(&module, "k", &config, &args, &options, &edges).unwrap()
    };
    let trap = launch().wait().trap.unwrap();
    assert_eq!(trap.kind, TrapKind::Deadlock);
    // Once it is clear that nothing comes, it goes on.
    let running = launch();
    assert!(matches!(running.run(), Progress::Standing { .. }));
    edges.before.as_ref().unwrap().open();
    assert_eq!(running.run(), Progress::Complete);
    assert!(running.wait().is_clean());
}
