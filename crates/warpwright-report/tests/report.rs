//! Findings of launches as data: what is written reads back, and says what was found.

use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use warpwright_report::{
    BufferArgument, Call, Case, Event, Launch, LaunchInfo, Line, Severity, Site, junit, sarif,
};
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;
use warpwright_vm::{ProxyFence, TensorWait};

/// A race between warps, an access out of bounds and a trap, in lines of a file.
const PTX: &str = r#".version 8.0
.target sm_80
.address_size 64
.file 1 "kernel.cu"
.visible .entry faulty(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 tile[256];
    ld.param.u64 %rd0, [out];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    .loc 1 4 5
    st.shared.u32 [%r2], %r0;
    xor.b32 %r3, %r2, 128;
    .loc 1 5 14
    ld.shared.u32 %r3, [%r3];
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd2, %rd0, %rd1;
    .loc 1 6 5
    st.global.u32 [%rd2], %r3;
    setp.eq.u32 %p0, %r0, 63;
    .loc 1 7 5
    @%p0 trap;
    ret;
}
"#;

const SOURCE: &str = "__global__ void faulty(int *out) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = i;
    int other = tile[i ^ 32];
    out[i] = other;
    if (i == 63) __trap();
}
";

fn launched() -> (vm::Report, Vec<BufferArgument>) {
    let device = vm::Device::new(vm::DeviceConfig::default()).expect("a device");
    let module = warpwright_ptx::parse(PTX).expect("PTX");
    let info = warpwright_ptx::verify(&module).expect("valid PTX");
    let module = device.load(&module, &info).expect("it loads").with_text(PTX);
    let out = device.alloc_named::<u8>("out", 32).expect("memory");
    let options = vm::Options {
        checks: "all".parse().expect("checks"),
        counters: true,
        schedule: vm::Schedule::Seeded(0),
        ..vm::Options::default()
    };
    let args = [vm::Arg::buffer(&out)];
    let running = device.launch(&module, "faulty", &vm::LaunchConfig::new(1, 64), &args, &options);
    let arguments =
        vec![BufferArgument { parameter: "out".into(), argument: "an array".into(), address: out.address() }];
    (running.expect("a launch").wait(), arguments)
}

fn launch() -> Launch {
    let (report, arguments) = launched();
    let renderer = Renderer::of_ptx("kernel.ptx", PTX).with_source("kernel.cu", SOURCE);
    let info = LaunchInfo {
        file: "kernel.ptx",
        device: "sm_80".into(),
        grid: [1, 1, 1],
        block: [64, 1, 1],
        seconds: 0.25,
        arguments: &arguments,
        top: Some(3),
    };
    Launch::new(&report, &info, &renderer)
}

/// The line of source of a place.
fn source_line(place: &Site) -> Option<(u32, &str)> {
    place.source.as_ref().map(|source| (source.line, source.text.as_deref().unwrap_or_default()))
}

#[test]
fn a_document_says_what_was_found_and_reads_back() {
    let launch = launch();
    let found: Vec<_> = launch.findings.iter().map(|found| (found.kind.as_str(), found.severity)).collect();
    assert_eq!(found, [("race", Severity::Error), ("out-of-bounds", Severity::Error)]);
    let [race, outside] = &launch.findings[..] else { unreachable!() };
    let places: Vec<_> = race.accesses.iter().map(|access| source_line(&access.place)).collect();
    assert_eq!(places, [Some((4, "tile[i] = i;")), Some((5, "int other = tile[i ^ 32];"))]);
    let allocation = outside.allocation.as_ref().expect("an allocation");
    assert_eq!(
        (&allocation.arguments[..], allocation.bytes, allocation.offset),
        (&["out".into()][..], 32, 32)
    );
    let trap = launch.trap.as_ref().expect("a trap");
    assert_eq!((trap.kind.as_str(), trap.thread), ("instruction", Some([63, 0, 0])));
    assert_eq!(source_line(&trap.place), Some((7, "if (i == 63) __trap();")));
    let traffic = &launch.counters.arguments[0];
    // The second warp writes nothing that is there.
    assert_eq!((traffic.parameter.as_str(), traffic.traffic.stores.requests), ("out", 1));
    assert_eq!(launch.lines.as_deref().map(<[Line]>::len), Some(3));

    let json = launch.json();
    assert_eq!(serde_json::from_str::<Launch>(&json).expect("the document"), launch);
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["version"], warpwright_report::VERSION);
}

#[test]
fn lines_of_events_read_back() {
    let Launch { findings, trap, .. } = launch();
    let call = Call { number: 7, function: "cuLaunchKernel".into() };
    let mut events: Vec<_> =
        findings.into_iter().map(|finding| Event::Finding { finding, call: call.clone() }).collect();
    events.extend(trap.map(|trap| Event::Trap { trap, call: call.clone() }));
    let (kernel, kinds) = ("faulty".to_owned(), vec!["race".to_owned()]);
    events.push(Event::Repeated { kernel, call: call.clone(), kinds });
    events.push(Event::Condition { handle: 3, message: "no value".into(), call: call.clone() });
    let (function, name) = ("cudaMalloc".to_owned(), "cudaErrorInvalidValue".to_owned());
    events.push(Event::Api { function, error: 1, name, message: None, call: None });
    events.push(Event::Leak { what: "stream".into(), bytes: 0, call });
    events.push(Event::End { launches: 1, calls: 9, errors: 3, warnings: 0, leaks: Some(1) });
    for event in events {
        assert_eq!(Event::read(&event.line()).expect("a line"), event);
    }
    let later = r#"{"version": 1, "event": "weather", "rain": true}"#;
    assert_eq!(Event::read(later).expect("a line"), Event::Unknown);
    Event::read(r#"{"version": 1, "event": "leak"}"#).expect_err("nothing says what leaks");
}

/// Findings that an earlier version wrote, without their text.
#[test]
fn fields_that_came_later_may_be_missing() {
    let mut launch = launch();
    let mut document = serde_json::to_value(&launch).expect("JSON");
    document["findings"][0].as_object_mut().expect("an object").remove("rendered");
    launch.findings[0].rendered = String::new();
    assert_eq!(serde_json::from_value::<Launch>(document).expect("a document"), launch);
}

/// The log, after the rules of the standard that concern what is written.
fn log_of(cases: &[Case], root: &str) -> Value {
    let log: Value = serde_json::from_str(&sarif(cases, Path::new(root))).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let ids: HashSet<_> = rules.iter().map(|rule| rule["id"].as_str().expect("a name")).collect();
    assert_eq!(ids.len(), rules.len(), "names of rules are unique");
    let bases = run["originalUriBaseIds"].as_object().expect("an object");
    for (_, base) in bases {
        let uri = base["uri"].as_str().expect("a URI");
        assert!(uri.starts_with("file:///") && uri.ends_with('/'), "{uri}");
    }
    for result in run["results"].as_array().expect("results") {
        let index = result["ruleIndex"].as_u64().expect("a number") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let locations = result["locations"].as_array().expect("locations");
        assert_eq!(locations.len(), 1, "GitHub refuses results without one");
        let related = result["relatedLocations"].as_array().cloned().unwrap_or_default();
        let links = result["message"]["text"].as_str().expect("a text").matches("](").count();
        assert_eq!(links, related.len(), "GitHub shows those that are linked");
        for (index, location) in related.iter().enumerate() {
            assert_eq!(location["id"], index as u64 + 1);
        }
        for location in locations.iter().chain(&related) {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"{}|\\^`".contains(&byte);
            assert!(uri.bytes().all(is_plain), "{uri}");
            match place["artifactLocation"]["uriBaseId"].as_str() {
                Some(base) => assert!(bases.contains_key(base) && !uri.starts_with('/'), "{uri}"),
                None => assert!(uri.starts_with("file:///"), "{uri}"),
            }
            assert!(place["region"]["startLine"].as_u64() >= Some(1));
            assert!(place["region"]["startColumn"].as_u64().is_none_or(|column| column > 0));
        }
    }
    log
}

/// Its results: rule, file, line.
fn results(log: &Value) -> Vec<(&str, &str, u64)> {
    let result = |result| {
        let result: &Value = result;
        let place = &result["locations"][0]["physicalLocation"];
        (
            result["ruleId"].as_str().expect("a rule"),
            place["artifactLocation"]["uri"].as_str().expect("a URI"),
            place["region"]["startLine"].as_u64().expect("a line"),
        )
    };
    log["runs"][0]["results"].as_array().expect("results").iter().map(result).collect()
}

#[test]
fn sarif_has_each_problem_at_its_line() {
    let launch = launch();
    let log = log_of(&[Case::from(&launch)], "/work/project");
    let wanted = [
        ("racecheck/race", "kernel.cu", 4),
        ("memcheck/out-of-bounds", "kernel.cu", 6),
        ("trap/instruction", "kernel.cu", 7),
    ];
    assert_eq!(results(&log), wanted);
    let race = &log["runs"][0]["results"][0];
    assert_eq!(race["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 5);
    assert_eq!(race["locations"][0]["physicalLocation"]["region"]["snippet"]["text"], "tile[i] = i;");
    assert_eq!(race["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "faulty");
    assert_eq!(log_of(&[], "/")["runs"][0]["results"], serde_json::json!([]));
}

/// What is shown of a file, by the name that a module has for it.
#[test]
fn sarif_names_files_from_the_root_on() {
    for (file, wanted) in [
        ("kernel.cu", "kernel.cu"),
        ("src/./a b.cu", "src/a%20b.cu"),
        ("/work/project/src/naïve.cu", "src/na%C3%AFve.cu"),
        ("/work/project/../project/src/k.cu", "src/k.cu"),
        ("/usr/include/k.h", "file:///usr/include/k.h"),
        ("../other/k.cu", "file:///work/other/k.cu"),
        ("a:b.cu", "a%3Ab.cu"),
    ] {
        let mut launch = launch();
        launch.trap = None;
        launch.findings.remove(0);
        launch.findings[0].accesses[0].place.source.as_mut().expect("a line").file = file.into();
        let log = log_of(&[Case::from(&launch)], "/work/project/.");
        assert_eq!(results(&log)[0].1, wanted);
    }
}

/// Without a line of source, the PTX; and of a header, the line of the project that it was inlined at.
#[test]
fn sarif_prefers_lines_of_the_project() {
    let mut launch = launch();
    launch.trap = None;
    for access in launch.findings.iter_mut().flat_map(|finding| &mut finding.accesses) {
        let call = access.place.source.take().expect("a line");
        access.place.source = Some(warpwright_report::Source {
            file: "/usr/include/header.h".into(),
            line: 100,
            column: 0,
            text: None,
            inlined_at: Some(Box::new(call)),
        });
    }
    launch.findings[1].accesses[0].place.source = None;
    let log = log_of(&[Case::from(&launch)], "/work/project");
    assert_eq!(
        results(&log),
        [("racecheck/race", "kernel.cu", 4), ("memcheck/out-of-bounds", "kernel.ptx", 23)]
    );
    let race = &log["runs"][0]["results"][0];
    let frames = race["stacks"][0]["frames"].as_array().expect("frames");
    let lines: Vec<_> = frames
        .iter()
        .map(|frame| frame["location"]["physicalLocation"]["region"]["startLine"].as_u64())
        .collect();
    assert_eq!(lines, [Some(100), Some(4)]);
    assert_eq!(
        race["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "file:///usr/include/header.h"
    );

    // A program whose PTX is in no file.
    let Launch { findings, .. } = launch;
    let call = Call { number: 7, function: "cuLaunchKernel".into() };
    let mut events: Vec<_> =
        findings.into_iter().map(|finding| Event::Finding { finding, call: call.clone() }).collect();
    events.push(Event::Leak { what: "stream".into(), bytes: 0, call });
    let cases = Case::of_events("build/program", &events);
    let wanted = [
        ("api/leak", "build/program", 1),
        ("racecheck/race", "kernel.cu", 4),
        ("memcheck/out-of-bounds", "build/program", 1),
    ];
    assert_eq!(results(&log_of(&cases, "/work/project")), wanted);
}

#[test]
fn equal_findings_have_equal_fingerprints_and_are_one_result() {
    let prints = |launches: &[&Launch], root: &str| -> Vec<(String, u64)> {
        let cases: Vec<_> = launches.iter().map(|launch| Case::from(*launch)).collect();
        let log = log_of(&cases, root);
        let results = log["runs"][0]["results"].as_array().expect("results");
        let print = |result: &Value| {
            let print = result["partialFingerprints"]["warpwright/v1"].as_str().expect("a text").to_owned();
            (print, result["occurrenceCount"].as_u64().expect("a number"))
        };
        results.iter().map(print).collect()
    };
    let one = launch();
    let first = prints(&[&one], "/work/project");
    assert_eq!(first.iter().map(|(print, _)| print).collect::<HashSet<_>>().len(), 3);
    // Another run: other addresses, another thread, the function further down in another checkout.
    let mut other = launch();
    for access in other.findings.iter_mut().flat_map(|finding| &mut finding.accesses) {
        access.address = access.address.map(|address| address + 4096);
        access.thread = [9, 0, 0];
        let source = access.place.source.as_mut().expect("a line");
        (source.file, source.line) = ("/srv/project/kernel.cu".into(), source.line + 20);
        access.place.ptx_line = Some(99);
    }
    let place = &mut other.trap.as_mut().expect("a trap").place;
    place.source.as_mut().expect("a line").line += 20;
    assert_eq!(prints(&[&other], "/srv/project"), first);
    let doubled: Vec<_> = first.iter().map(|(print, count)| (print.clone(), 2 * count)).collect();
    assert_eq!(prints(&[&one, &one], "/work/project"), doubled);
    // Another line is another finding.
    let source = other.findings[1].accesses[0].place.source.as_mut().expect("a line");
    source.text = Some("out[i + 1] = other;".into());
    let changed = prints(&[&other], "/srv/project");
    let differ: Vec<_> = first.iter().zip(&changed).map(|(a, b)| a != b).collect();
    assert_eq!(differ, [false, true, false]);
}

/// Name, attributes and text.
type Element = (String, Vec<(String, String)>, String);

/// The elements of a document in order, with attributes and text, read by the rules of XML that it may use.
fn elements(xml: &str) -> Vec<Element> {
    let decoded = |text: &str| {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            out += &rest[..at];
            let (entity, after) = rest[at + 1..].split_once(';').expect("an entity ends");
            out.push(match entity {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                number => {
                    let number = number.strip_prefix('#').expect("a number").parse().expect("a number");
                    char::from_u32(number).expect("a character")
                }
            });
            rest = after;
        }
        out + rest
    };
    let is_allowed = |c: char| matches!(c, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(xml.chars().all(is_allowed), "a character that XML does not have");
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for part in body.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "elements are nested");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut pieces = attributes.split('"');
        let mut read = Vec::new();
        while let (Some(key), Some(value)) = (pieces.next(), pieces.next()) {
            read.push((key.trim().trim_end_matches('=').to_owned(), decoded(value)));
        }
        open.push(name);
        all.push((name.to_owned(), read, decoded(text)));
    }
    assert_eq!(open, Vec::<&str>::new(), "every element is closed");
    all
}

#[test]
fn junit_has_a_test_for_each_launch() {
    let mut faulty = launch();
    faulty.findings[0].message = "a <b> & \"c\"\u{1b}[0m\nd\u{ffff}".into();
    let mut warned = launch();
    warned.findings.truncate(1);
    warned.findings[0].severity = Severity::Warning;
    warned.trap = None;
    warned.output = "x\0y\n".into();
    let mut clean = launch();
    (clean.findings, clean.trap) = (Vec::new(), None);
    let cases = [Case::from(&faulty), Case::from(&warned), Case::from(&clean).named("test_clean[64]")];
    let all = elements(&junit(&cases));
    let names: Vec<_> = all.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(
        names,
        ["testsuites", "testsuite", "testcase", "failure", "testcase", "system-out", "testcase"]
    );
    let of = |at: usize, key: &str| {
        let (_, attributes, _) = &all[at];
        attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    };
    for suite in [0, 1] {
        assert_eq!([of(suite, "tests"), of(suite, "failures")], [Some("3"), Some("1")]);
    }
    let tests = [of(2, "name"), of(4, "name"), of(6, "name")];
    assert_eq!(tests, [Some("faulty"), Some("faulty"), Some("test_clean[64]")]);
    assert_eq!(of(3, "type"), Some("racecheck/race"));
    let message = of(3, "message").expect("a message");
    assert_eq!(message.lines().take(2).collect::<Vec<_>>(), ["a <b> & \"c\"\\u{1b}[0m", "d\\u{ffff}"]);
    let trap = faulty.trap.as_ref().expect("a trap");
    let rendered = [&faulty.findings[0].rendered, &faulty.findings[1].rendered, &trap.rendered];
    assert_eq!(all[3].2, rendered.map(|text| text.trim_end()).join("\n\n"));
    assert_eq!(all[5].2, format!("x\\u{{0}}y\n{}", warned.findings[0].rendered.trim_end()));
}

/// A finding of each kind has words of its own: those of the virtual GPU are all known.
#[test]
fn rules_are_known() {
    let launch = launch();
    let log = log_of(&[Case::from(&launch)], "/");
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    let ids: HashSet<_> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
    use vm::{Between, Cause, FaultKind, FindingKind, Hazard, SpaceKind, TrapKind, Use};
    let access = [
        FaultKind::OutOfBounds,
        FaultKind::Misaligned,
        FaultKind::Freed,
        FaultKind::Null,
        FaultKind::WrongSpace,
        FaultKind::Exited,
        FaultKind::ReadOnly,
        FaultKind::Unmapped,
        FaultKind::NoAccess,
        FaultKind::BadHandle,
        FaultKind::Constant,
        FaultKind::OtherLanes,
        FaultKind::Multimem,
        FaultKind::NotMultimem,
    ];
    let space = SpaceKind::Shared;
    let (hazard, between) = (Hazard::WriteAfterWrite, Between::Warps);
    let (present, named, exited, expected) = (1, 3, 2, 3);
    let found = [
        FindingKind::Race { hazard, between, space, same_value: false },
        FindingKind::TensorMemoryLeak { columns: 32 },
        FindingKind::NonCoherent,
        FindingKind::ProxyFence { space, missing: ProxyFence::AsyncShared },
        FindingKind::ProxyFence { space, missing: ProxyFence::MapRelease },
        FindingKind::ProxyFence { space, missing: ProxyFence::MapAcquire },
        FindingKind::RegisterInFlight { unfenced: false },
        FindingKind::RegisterInFlight { unfenced: true },
        FindingKind::TensorMemoryInFlight { wait: TensorWait::Commit },
        FindingKind::TensorMemoryInFlight { wait: TensorWait::Stores },
        FindingKind::UnstartedBlock,
        FindingKind::UninitializedMemory { space },
        FindingKind::UndefinedValue { used: Use::Guard, cause: Cause::Memory },
        FindingKind::UnwrittenOutput { argument: String::new(), elements: 2, missing: 1, first: 0 },
        FindingKind::DivergentBarrier { present, expected },
        FindingKind::ExitedLanes { present, exited, strict: true },
        FindingKind::MissingLanes { present, named },
        FindingKind::UnnamedLane { named },
        FindingKind::BarrierCount { barrier: 0, expected: Some(64), said: None },
    ];
    for kind in access.into_iter().map(FindingKind::Access).chain(found) {
        let id = format!("{}/{}", kind.tool(), kind.name());
        assert!(ids.contains(id.as_str()), "{id}");
    }
    for kind in [
        TrapKind::Instruction,
        TrapKind::Unsupported,
        TrapKind::BadBranch,
        TrapKind::BadCall,
        TrapKind::StackOverflow,
        TrapKind::OutOfMemory,
        TrapKind::BadAtomic,
        TrapKind::BadBarrier,
        TrapKind::BadOperand,
        TrapKind::SurfaceBounds,
        TrapKind::Assertion,
        TrapKind::BadFree,
        TrapKind::Deadlock,
        TrapKind::Budget,
        TrapKind::Internal,
    ] {
        let id = format!("trap/{}", kind.name());
        assert!(ids.contains(id.as_str()), "{id}");
    }
}
