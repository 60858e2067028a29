//! Findings of launches as data: what is written reads back, and says what was found.

use warpwright_report::{BufferArgument, Event, Launch, LaunchInfo, Line, Place, Severity};
use warpwright_vm as vm;
use warpwright_vm::render::Renderer;

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
fn source_line(place: &Place) -> Option<(u32, &str)> {
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
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["version"], warpwright_report::VERSION);
}

#[test]
fn lines_of_events_read_back() {
    let Launch { findings, trap, .. } = launch();
    let call = warpwright_report::Call { number: 7, function: "cuLaunchKernel".into() };
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
