//! Memory that comes and goes: of modules, and of `malloc`.

use crate::*;

#[test]
fn variables_go_with_the_last_of_their_module() {
    let mut config = DeviceConfig::default();
    config.memory = 3 << 20;
    let device = Device::new(config).unwrap();
    let text = ".version 7.8
.target sm_80
.address_size 64
.global .align 4 .u32 large[524288];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, large;
    st.global.u32 [%rd2+4096], 7;
    ld.global.u32 %r1, [%rd2+4096];
    st.global.u32 [%rd1], %r1;
    ret;
}
";
    let out = device.alloc_zeros::<u32>(1).unwrap();
    for _ in 0..20 {
        let module = load(&device, text);
        let twin = module.clone();
        drop(module);
        assert!(matches!(device.load_ptx(text), Err(DeviceError::Load(_))), "two do not fit");
        let args = [Arg::buffer(&out)];
        let running =
            device.launch(&twin, "k", &LaunchConfig::new(1, 1), &args, &Options::checked()).unwrap();
        // The launch has its memory, whatever becomes of the module.
        drop(twin);
        let report = running.wait();
        assert!(report.is_clean(), "{report}");
        assert_eq!(out.read(), [7]);
        out.zero();
    }
}

#[test]
fn a_fault_beside_what_malloc_gave_says_so() {
    let text = ".version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b64 pointer) malloc(.param .b64 size);
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    {
    .param .b64 size;
    .param .b64 pointer;
    st.param.b64 [size], 40;
    call.uni (pointer), malloc, (size);
    ld.param.b64 %rd2, [pointer];
    }
    st.u64 [%rd1], %rd2;
    st.u32 [%rd2+40], 1;
    ret;
}
";
    let device = device();
    let out = device.alloc_zeros::<u64>(1).unwrap();
    let report = launch(&device, text, &LaunchConfig::new(1, 1), &out, &Options::checked()).wait();
    let [finding] = &report.findings[..] else { panic!("one finding is expected: {report}") };
    assert_eq!(finding.kind, FindingKind::Access(FaultKind::OutOfBounds));
    let allocation = finding.accesses[0].memory.as_ref().and_then(|memory| memory.allocation.as_ref());
    let found = allocation.map(|found| (found.base, found.bytes, found.offset, found.freed));
    assert_eq!(found, Some((out.read()[0], 40, 40, false)));
}

#[test]
fn the_heap_has_the_size_that_was_set_before_its_first_use() {
    // Keeps what `malloc` gave for each size.
    let text = ".version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b64 pointer) malloc(.param .b64 size);
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.u64 %rd2, [%rd1];
    {
    .param .b64 size;
    .param .b64 pointer;
    st.param.b64 [size], %rd2;
    call.uni (pointer), malloc, (size);
    ld.param.b64 %rd2, [pointer];
    }
    st.u64 [%rd1], %rd2;
    ret;
}
";
    let mut config = DeviceConfig::default();
    (config.memory, config.heap) = (64 << 20, 1 << 20);
    let device = Device::new(config).unwrap();
    // Loaded before, as by a program that has its modules loaded when it begins.
    let module = load(&device, text);
    let given = |bytes: u64| {
        let out = device.clone_htod(&[bytes]).unwrap();
        let arguments = [Arg::buffer(&out)];
        let running = device.launch(&module, "k", &LaunchConfig::new(1, 1), &arguments, &Options::checked());
        let report = running.unwrap().wait();
        assert!(report.is_clean(), "{report}");
        out.read()[0] != 0
    };
    assert!(matches!(device.set_heap(65 << 20), Err(DeviceError::OutOfMemory { .. })));
    device.set_heap(4 << 20).unwrap();
    assert!(given(3 << 20));
    assert!(!given(2 << 20), "four are not enough for both");
    assert!(matches!(device.set_heap(8 << 20), Err(DeviceError::HeapInUse)));
    assert!(device.free_memory() > 59 << 20, "the first heap is gone");
}

#[test]
fn a_device_allocates_for_ever() {
    // 4096 pages of addresses, and far more allocations that come and go.
    let mut config = DeviceConfig::default();
    (config.addresses, config.workers) = ((1, 1 << 11), 1);
    let device = Device::new(config).unwrap();
    let kept = device.clone_htod(&[7u32; 8]).unwrap();
    for round in 0..20_000u32 {
        let buffer = device.alloc_named::<u32>("short", 2).unwrap();
        assert_ne!(buffer.address(), kept.address());
        if round % 5_000 == 0 {
            let text = kernel("    st.global.u32 [%rd1], 5;\n    st.global.u32 [%rd1+4], 6;\n    ret;");
            let options = Options::checked();
            assert!(launch(&device, &text, &LaunchConfig::new(1, 1), &buffer, &options).wait().is_clean());
            assert_eq!(buffer.read(), [5, 6]);
        }
    }
    assert_eq!(kept.read(), [7; 8]);
    assert_eq!(device.free_memory(), DeviceConfig::default().memory - 32);
}

#[test]
fn variables_get_their_first_values_back() {
    let device = device();
    // One of the module and one of the function.
    let text = ".version 7.8
.target sm_80
.address_size 64
.global .u32 module = 5;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    .global .u32 own = 70;
    ld.param.u64 %rd1, [out];
    atom.global.add.u32 %r1, [module], 1;
    atom.global.add.u32 %r2, [own], 1;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
";
    let out = device.alloc_zeros::<u32>(1).unwrap();
    let count = |module: &Module| {
        let args = [Arg::buffer(&out)];
        let running =
            device.launch(module, "k", &LaunchConfig::new(1, 1), &args, &Options::checked()).unwrap();
        assert!(running.wait().is_clean());
        out.read()[0]
    };
    let module = load(&device, text);
    let first = module.save_variables();
    assert_eq!([count(&module), count(&module)], [75, 77]);
    let again = device.load_again(&module).unwrap();
    assert_eq!([count(&again), count(&module)], [75, 79]);
    first.restore();
    assert_eq!([count(&module), count(&again)], [75, 77]);

    for (variables, has_state) in
        [("", false), (".const .u32 c = 1;", false), (".shared .u32 s;", false), (".global .u32 g;", true)]
    {
        let of_module =
            format!(".version 7.8\n.target sm_80\n.address_size 64\n{variables}\n.entry k() {{ ret; }}");
        let of_kernel =
            format!(".version 7.8\n.target sm_80\n.address_size 64\n.entry k() {{ {variables} ret; }}");
        for text in [of_module, of_kernel] {
            // Constants are of modules alone.
            if let Ok(module) = device.load_ptx(&text) {
                assert_eq!(module.has_state(), has_state, "{text}");
            }
        }
    }
}
