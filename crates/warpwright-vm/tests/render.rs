//! What people are shown of a finding or a trap, whole.

use std::fs;
use warpwright_vm::render::Renderer;
use warpwright_vm::{
    Arg, Between, Checks, Device, DeviceConfig, FindingKind, LaunchConfig, Options, Report, Schedule,
};

fn run(text: &str, kernel: &str, threads: u32, args: &[Arg], device: &Device) -> Report {
    let module = device.load_ptx(text).unwrap();
    let options = Options { checks: Checks::ALL, schedule: Schedule::Seeded(0), ..Options::default() };
    device.launch(&module, kernel, &LaunchConfig::new(1, threads), args, &options).unwrap().wait()
}

/// A kernel of C++ that was inlined into twice: `deep.cuh` by `mid.cuh`, and that by `user.cu`.
const INLINED: &str = "\
.version 8.0
.target sm_80
.address_size 64
.file 1 \"user.cu\"
.file 2 \"mid.cuh\"
.file 3 \"deep.cuh\"
.visible .entry _Z4fillPfi(.param .u64 _Z4fillPfi_param_0, .param .align 8 .b8 rest[16])
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [_Z4fillPfi_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    .loc 1 20 5
    .loc 2 7 9, function_name $names, inlined_at 1 20 5
    .loc 3 3 1, function_name $names+4, inlined_at 2 7 9
    st.global.u32 [%rd3], %r1;
    .loc 1 0 0
    st.global.u32 [%rd3], %r1;
    ret;
}
.section .debug_str
{
$names:
    .b8 0
    .b8 0
    .b8 0
    .b8 0
    .b8 0
}
";

/// Twelve bytes of a buffer, of which the kernel writes sixteen: and a structure that points into it as well.
fn report(device: &Device) -> Report {
    let buffer = device.alloc::<u8>(12).unwrap();
    let inner = (buffer.address() + 4).to_le_bytes();
    let rest = [0; 8].into_iter().chain(inner).collect();
    run(INLINED, "_Z4fillPfi", 4, &[Arg::buffer(&buffer), Arg::Bytes(rest)], device)
}

#[test]
fn lines_are_followed_to_where_functions_were_inlined() {
    let report = report(&Device::new(DeviceConfig::default()).unwrap());
    let chain: Vec<_> = report.findings[0].accesses[0].source.iter().flat_map(|line| line.chain()).collect();
    let chain: Vec<_> = chain.iter().map(|line| (&*line.file, line.line, line.column)).collect();
    assert_eq!(chain, [("deep.cuh", 3, 1), ("mid.cuh", 7, 9), ("user.cu", 20, 5)]);
    assert_eq!(report.findings[1].accesses[0].source, None, "line 0 is none");
}

#[test]
fn a_finding_names_its_lines_its_arguments_and_its_kernel() {
    let report = report(&Device::new(DeviceConfig::default()).unwrap());
    assert_eq!(
        report.to_string(),
        "\
kernel `fill(float*, int)`: 2 findings
error[memcheck]: a write of global memory is out of bounds
  --> PTX:18:5
   |
18 |     st.global.u32 [%rd3], %r1;
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (3,0,0) of block (0,0,0) writes 4 bytes at 0x70000000000c
   |
   = note: line 18 is deep.cuh:3
   = note: that is inlined at mid.cuh:7
   = note: that is inlined at user.cu:20
   = note: the address is just past parameter 0 and `rest+8` (from byte 4 on), of 12 bytes

error[memcheck]: a write of global memory is out of bounds
  --> PTX:20:5
   |
20 |     st.global.u32 [%rd3], %r1;
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (3,0,0) of block (0,0,0) writes 4 bytes at 0x70000000000c
   |
   = note: the address is just past parameter 0 and `rest+8` (from byte 4 on), of 12 bytes"
    );
}

#[test]
fn sources_that_can_be_read_are_shown() {
    let folder = std::env::temp_dir().join(format!("warpwright-render-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("deep.cuh"), "// deep\n\n    *to = value;\n").unwrap();
    fs::write(folder.join("user.cu"), "\n".repeat(19) + "    fill_one(x, i);\n").unwrap();
    let report = report(&Device::new(DeviceConfig::default()).unwrap());
    let text = report.text.as_deref().unwrap();
    let renderer = Renderer::of_ptx("fill.ptx", text).beside(&folder).launched_by("call 7, cuLaunchKernel");
    let shown = renderer.finding(&report.findings[0]);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        shown,
        "\
error[memcheck]: a write of global memory is out of bounds
  --> fill.ptx:18:5
   |
18 |     st.global.u32 [%rd3], %r1;
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (3,0,0) of block (0,0,0) writes 4 bytes at 0x70000000000c
   |
  ::: deep.cuh:3:5
   |
 3 |     *to = value;
   |     ------------
   |
  ::: user.cu:20:5
   |
20 |     fill_one(x, i);
   |     --------------- inlined here
   |
   = note: that is inlined at mid.cuh:7
   = note: the address is just past parameter 0 and `rest+8` (from byte 4 on), of 12 bytes
   = note: in kernel `fill(float*, int)`, launched by call 7, cuLaunchKernel
"
    );
}

#[test]
fn a_number_is_no_argument_that_points() {
    let device = Device::new(DeviceConfig::default()).unwrap();
    let (one, other) = (device.alloc::<u8>(12).unwrap(), device.alloc::<u8>(12).unwrap());
    let rest = [7u64, other.address() + 12].into_iter().flat_map(u64::to_le_bytes).collect();
    let report = run(INLINED, "_Z4fillPfi", 4, &[Arg::buffer(&one), Arg::Bytes(rest)], &device);
    let allocation = report.findings[0].accesses[0].memory.as_ref().unwrap().allocation.as_ref().unwrap();
    let names: Vec<_> =
        allocation.arguments.iter().map(|argument| (&*argument.name, argument.offset)).collect();
    assert_eq!((allocation.base, names), (one.address(), vec![("_Z4fillPfi_param_0", 0)]));
}

#[test]
fn a_line_that_is_inlined_into_itself_ends() {
    let again = "    .loc 1 20 5, function_name $names, inlined_at 1 20 5\n".repeat(1000);
    let text = INLINED.replace("    .loc 1 0 0\n", &again);
    let device = Device::new(DeviceConfig::default()).unwrap();
    let buffer = device.alloc::<u8>(12).unwrap();
    let report = run(&text, "_Z4fillPfi", 4, &[Arg::buffer(&buffer), Arg::Bytes(vec![0; 16])], &device);
    let lines = report.findings[1].accesses[0].source.as_ref().map(|line| line.chain().count());
    assert!(lines.is_some_and(|lines| (2..=64).contains(&lines)), "{lines:?}");
}

#[test]
fn a_trap_shows_where_threads_wait() {
    let text = "\
.version 8.0
.target sm_80
.address_size 64
.file 1 \"wait.cu\"
.visible .entry k()
{
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    .loc 1 4 1
    @%p1 bar.sync 1, 64;
    .loc 1 6 1
    bar.sync 0, 64;
    ret;
}
";
    let device = Device::new(DeviceConfig::default()).unwrap();
    assert_eq!(
        run(text, "k", 64, &[], &device).to_string(),
        "\
kernel `k`: a trap
error[trap]: all threads of the block that have not exited wait at barriers; barrier 0 waits for 64 threads, and 32 \
         have come; barrier 1 waits for 64 threads, and 32 have come
  --> PTX:12:5
   |
12 |     @%p1 bar.sync 1, 64;
   |     ^^^^^^^^^^^^^^^^^^^^ thread (0,0,0) of block (0,0,0); 32 threads were here
13 |     .loc 1 6 1
14 |     bar.sync 0, 64;
   |     --------------- 32 threads were here
   |
   = note: line 12 is wait.cu:4
   = note: line 14 is wait.cu:6
   = note: kernel `k` did not run to its end"
    );
}

/// A copy that one thread starts, and nobody waits for; all meet, and a thread of another warp reads.
const NOT_WAITED_FOR: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry copies(.param .u64 data)
{
    .shared .align 16 .b8 tile[16];
    .reg .pred %p1;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 cp.async.cg.shared.global [tile], [%rd1], 16;
    bar.sync 0;
    setp.eq.u32 %p1, %r1, 32;
    @%p1 ld.shared.u32 %r2, [tile];
    @%p1 st.global.u32 [%rd1+16], %r2;
    ret;
}
";

#[test]
fn the_advice_for_a_copy_that_others_meet_is_to_wait_for_it() {
    let device = Device::new(DeviceConfig::default()).unwrap();
    let buffer = device.alloc_zeros::<u32>(8).unwrap();
    let report = run(NOT_WAITED_FOR, "copies", 64, &[Arg::buffer(&buffer)], &device);
    let [finding] = &report.findings[..] else { panic!("{report}") };
    let FindingKind::Race { hazard, between: Between::Warps, space, same_value } = finding.kind else {
        panic!("{report}")
    };
    // They have met: a barrier is not what is missing.
    let of_a_copy = FindingKind::Race { hazard, between: Between::Copy, space, same_value };
    assert_eq!(finding.advice(), of_a_copy.advice());
    assert_ne!(finding.advice(), finding.kind.advice());
}
