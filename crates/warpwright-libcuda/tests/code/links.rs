//! The linker.

use crate::*;
use std::ffi::{c_char, c_int};

/// An image, as long as the linker is there.
pub(crate) fn complete(link: CUlinkState) -> Result<(*const u8, usize)> {
    let (mut image, mut bytes) = (std::ptr::null(), 0);
    call!(cuLinkComplete(link, output(&mut image), output(&mut bytes))).into_result()?;
    Ok((image, bytes))
}

pub(crate) fn create(options: &[(CUjit_option, usize)]) -> Result<CUlinkState> {
    let names: Vec<CUjit_option> = options.iter().map(|(name, _)| *name).collect();
    let mut values: Vec<usize> = options.iter().map(|(_, value)| *value).collect();
    out(|link| {
        call!(cuLinkCreate_v2(names.len() as u32, input(names.as_ptr()), output(values.as_mut_ptr()), link,))
    })
}

pub(crate) fn add(link: CUlinkState, kind: CUjitInputType, data: &[u8]) -> Status {
    let name = text("input");
    let data_at = input(data.as_ptr());
    call!(cuLinkAddData_v2(link, kind, data_at, data.len(), chars(&name), 0, null(), nowhere()))
}

#[test]
fn an_image_loads_as_a_cubin_would() {
    let _context = Ctx::new();
    let link = create(&[]).unwrap();
    assert_eq!(complete(link), Err(Status::INVALID_IMAGE));
    // With its end and without.
    assert_eq!(add(link, CUjitInputType::PTX, PTX.as_bytes()), OK);
    let (image, bytes) = complete(link).unwrap();
    assert_eq!(complete(link), Ok((image, bytes)), "asked again it is the same");
    let kept = input(image);
    let module = out(|module| call!(cuModuleLoadData(module, kept))).unwrap();
    // SAFETY: the linker said how long it is, and is there.
    let copy: Vec<u8> = unsafe { std::slice::from_raw_parts(image, bytes) }.to_vec();
    ok!(cuLinkDestroy(link));
    fails!(INVALID_HANDLE, cuLinkDestroy(link));
    assert_eq!(add(link, CUjitInputType::PTX, PTX.as_bytes()), Status::INVALID_HANDLE);

    let word = words(1);
    let from_file = out(|module| call!(cuModuleLoadData(module, input(copy.as_ptr())))).unwrap();
    for (module, value) in [(module, 4), (from_file, 5)] {
        assert_eq!(launch(function(module, "add").unwrap(), CUstream::NULL, &[word, value]), OK);
    }
    assert_eq!(read(word, 1), [9]);
    // It can be linked again.
    let link = create(&[]).unwrap();
    assert_eq!(add(link, CUjitInputType::CUBIN, &copy), OK);
    complete(link).unwrap();
    ok!(cuLinkDestroy(link));
    let mut damaged = copy;
    damaged[40] ^= 1;
    let load = out(|module: Out<CUmodule>| call!(cuModuleLoadData(module, input(damaged.as_ptr()))));
    assert_eq!(load, Err(Status::INVALID_IMAGE));
}

#[test]
fn inputs_are_refused_by_their_kind() {
    let _context = Ctx::new();
    let link = create(&[]).unwrap();
    for (kind, data, status) in [
        (CUjitInputType::CUBIN, &b"\x7fELF\x02"[..], Status::NO_BINARY_FOR_GPU),
        (CUjitInputType::PTX, b"\x7fELF\x02", Status::NO_BINARY_FOR_GPU),
        (CUjitInputType::OBJECT, b"", Status::INVALID_IMAGE),
        (CUjitInputType::LIBRARY, b"!<arch>", Status::INVALID_IMAGE),
        (CUjitInputType::NVVM, b"BC", Status::NOT_SUPPORTED),
        (CUjitInputType::FATBINARY, b"\x50\xed\x55\xba\x01\0", Status::INVALID_IMAGE),
        (CUjitInputType(17), PTX.as_bytes(), Status::INVALID_VALUE),
        (CUjitInputType::PTX, b"", Status::INVALID_IMAGE),
        (CUjitInputType::PTX, b".version 8.0\n.target sm_80\nrubbish", Status::INVALID_PTX),
        (CUjitInputType::PTX, b".version 99.7\n.target sm_80\n", Status::UNSUPPORTED_PTX_VERSION),
        (CUjitInputType::PTX, PTX.as_bytes(), OK),
    ] {
        assert_eq!(add(link, kind, data), status, "{kind:?} {data:?}");
    }
    complete(link).unwrap();
    assert_eq!(add(link, CUjitInputType::PTX, PTX.as_bytes()), Status::INVALID_VALUE, "it is complete");
    ok!(cuLinkDestroy(link));
}

#[test]
fn targets_are_kept() {
    let _context = Ctx::new();
    assert_eq!(create(&[(CUjit_option::TARGET, 81)]), Err(Status::INVALID_VALUE));
    let link = create(&[(CUjit_option::TARGET, 75)]).unwrap();
    assert_eq!(add(link, CUjitInputType::PTX, PTX.as_bytes()), Status::NO_BINARY_FOR_GPU, "it is for sm_80");
    ok!(cuLinkDestroy(link));
    let link = create(&[(CUjit_option::TARGET, 100)]).unwrap();
    assert_eq!(add(link, CUjitInputType::PTX, PTX.as_bytes()), OK);
    let (image, _) = complete(link).unwrap();
    let load = out(|module: Out<CUmodule>| call!(cuModuleLoadData(module, input(image))));
    assert_eq!(load, Err(Status::NO_BINARY_FOR_GPU), "this device is of sm_90");
    ok!(cuLinkDestroy(link));
}

/// The driver's option and that of nvJitLink limit the kernels that say nothing themselves, alone and with others.
#[test]
fn a_limit_of_registers_stays_with_the_image() {
    macro_rules! jitlink {
        ($call:expr) => {
            assert_eq!(call!($call), JitLinkResult::SUCCESS, "{}", stringify!($call))
        };
    }
    const CODE: &str = ".version 7.8\n.target sm_80\n.address_size 64\n";
    let kernel = |name: &str, directive: &str| {
        let wide = "mov.u64 %a, %clock64; mov.u64 %b, %clock64; st.u64 [%a], %b;";
        format!(".visible .entry {name}() {directive} {{ .reg .b64 %a, %b; {wide} ret; }}\n")
    };
    let own = [kernel("plain", ""), kernel("bounded", ".maxntid 64"), kernel("own", ".maxnreg 2")].concat();
    let texts = [format!("{CODE}{own}"), format!("{CODE}{}", kernel("other", ""))];
    let _context = Ctx::new();
    let registers = |image: *const u8, name: &str| -> c_int {
        let module = out(|module| call!(cuModuleLoadData(module, input(image)))).unwrap();
        let function = function(module, name).unwrap();
        out(|value| call!(cuFuncGetAttribute(value, CUfunction_attribute::NUM_REGS, function))).unwrap()
    };
    for (count, max, expected) in [(1, 3, [3, 4, 2, 0]), (2, 3, [3, 4, 2, 3]), (2, 0, [4, 4, 2, 4])] {
        let named = |name: &str, image| match name {
            "other" if count == 1 => 0,
            name => registers(image, name),
        };
        let of = |image| ["plain", "bounded", "own", "other"].map(|name| named(name, image));
        let link = create(&[(CUjit_option::MAX_REGISTERS, max)]).unwrap();
        for code in &texts[..count] {
            assert_eq!(add(link, CUjitInputType::PTX, code.as_bytes()), OK);
        }
        assert_eq!(of(complete(link).unwrap().0), expected);
        ok!(cuLinkDestroy(link));

        let options = [text("-arch=sm_80"), text(&format!("-maxrregcount={max}"))];
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut link = 0;
        jitlink!(warpwrightJitLinkCreate(output(&mut link), 2, input(options.as_ptr().cast())));
        for code in &texts[..count] {
            let data = input(code.as_ptr());
            jitlink!(warpwrightJitLinkAddData(link, 2, data, code.len(), null()));
        }
        jitlink!(warpwrightJitLinkComplete(link));
        let mut size = 0;
        jitlink!(warpwrightJitLinkGetLinkedCubinSize(link, output(&mut size)));
        let mut image = vec![0u8; size];
        jitlink!(warpwrightJitLinkGetLinkedCubin(link, output(image.as_mut_ptr())));
        assert_eq!(of(image.as_ptr()), expected);
        jitlink!(warpwrightJitLinkDestroy(output(&mut link)));
    }
}

#[test]
fn logs_are_written_as_long_as_the_linker_is_there() {
    let _context = Ctx::new();
    let mut buffer = vec![0x7fu8; 64];
    let names = [CUjit_option::ERROR_LOG_BUFFER, CUjit_option::ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [buffer.as_mut_ptr().expose_provenance(), 64];
    let (names_at, values_at) = (input(names.as_ptr()), output(values.as_mut_ptr()));
    let link = out(|link| call!(cuLinkCreate_v2(2, names_at, values_at, link))).unwrap();
    assert_eq!(
        add(link, CUjitInputType::PTX, b"\n\n.version 8.0 .target sm_80 rubbish"),
        Status::INVALID_PTX
    );
    let log = String::from_utf8(buffer[..63].to_vec()).unwrap();
    assert_eq!(log.split(';').next(), Some("ptxas application ptx input, line 3"));
    assert_eq!((values[1], buffer[63]), (63, 0));
    ok!(cuLinkDestroy(link));
}

/// By the documentation of `cuLinkCreate`, `cuLinkAddData` and `CUjit_option`.
#[test]
fn options_belong_somewhere() {
    let context = Ctx::new();
    type Jit = CUjit_option;
    for (options, status) in [
        (&[(Jit::TARGET, 90), (Jit::THREADS_PER_BLOCK, 64)][..], Status::INVALID_VALUE),
        (&[(Jit::FALLBACK_STRATEGY, 0)], Status::INVALID_VALUE),
        (&[(Jit::OPTIMIZATION_LEVEL, 5)], Status::INVALID_VALUE),
        (&[(Jit::OPTIMIZATION_LEVEL, 4), (Jit::THREADS_PER_BLOCK, 64), (CUjit_option(33), 1)], OK),
    ] {
        assert_eq!(create(options).err().unwrap_or(OK), status, "{options:?}");
    }
    let ptx = text(PTX);
    for (option, status) in [
        (Jit::MAX_REGISTERS, OK),
        (Jit::GENERATE_LINE_INFO, OK),
        (Jit::WALL_TIME, Status::INVALID_VALUE),
        (Jit::INFO_LOG_BUFFER, Status::INVALID_VALUE),
        (Jit::ERROR_LOG_BUFFER, Status::INVALID_VALUE),
        (Jit::TARGET_FROM_CUCONTEXT, Status::INVALID_VALUE),
        (Jit::TARGET, Status::INVALID_VALUE),
        (Jit::FALLBACK_STRATEGY, Status::INVALID_VALUE),
    ] {
        let link = create(&[]).unwrap();
        let (data, mut value) = (input(ptx.as_ptr().cast::<u8>()), 0usize);
        let (option_at, value) = (input(&option), output(&mut value));
        let kind = CUjitInputType::PTX;
        let added = call!(cuLinkAddData_v2(link, kind, data, PTX.len(), null(), 1, option_at, value));
        assert_eq!(added, status, "{option:?}");
        ok!(cuLinkDestroy(link));
    }
    drop(context);
}

/// The image of several texts, or the status of what refuses them.
fn link(texts: &[&str]) -> Result<CUmodule> {
    let link = create(&[])?;
    let added = texts.iter().map(|text| {
        let text = format!(".version 8.0 .target sm_80 .address_size 64\n{text}");
        add(link, CUjitInputType::PTX, text.as_bytes()).into_result()
    });
    let linked = added.collect::<Result<()>>().and_then(|()| complete(link)).and_then(|(image, _)| {
        let image = input(image);
        out(|module| call!(cuModuleLoadData(module, image)))
    });
    ok!(cuLinkDestroy(link));
    linked
}

/// A kernel that stores what a function returns.
pub(crate) const KERNEL: &str = ".extern .func (.param .b32 r) f();
    .visible .entry k(.param .u64 out) { .reg .b64 %p; .reg .b32 %x; .param .b32 r;
      ld.param.u64 %p, [out]; call (r), f, (); ld.param.b32 %x, [r]; st.global.u32 [%p], %x; ret; }";

/// A function that returns the word in a variable.
pub(crate) fn returns(linkage: &str, function: &str, variable: &str) -> String {
    format!(
        "{linkage} .func (.param .b32 r) {function}() {{ .reg .b32 %x; ld.global.u32 %x, [{variable}];
          st.param.b32 [r], %x; ret; }}"
    )
}

#[test]
fn each_text_finds_what_others_define() {
    let _context = Ctx::new();
    let local = |value: u32| format!(".global .u32 x = {value};\n{}", returns(".visible", "f", "x"));
    let weak = |value: u32| format!(".global .u32 x = {value};\n{}", returns(".weak", "f", "x"));
    let own = ".global .u32 x = 5; .func (.param .b32 r) g() { .reg .b32 %x; ld.global.u32 %x, [x];
        st.param.b32 [r], %x; ret; }";
    let calls_own = format!(
        "{own} .visible .func (.param .b32 r) f() {{ .reg .b32 %x, %y; .param .b32 s; call (s), g, ();
          ld.param.b32 %x, [s]; ld.global.u32 %y, [x]; mad.lo.u32 %x, %x, 10, %y; st.param.b32 [r], %x; ret; }}"
    );
    let visible = ".visible .global .u32 v = 9;".to_string();
    let external = format!(".extern .global .u32 v;\n{}", returns(".visible", "f", "v"));
    let common = |dims: &str| format!(".common .global .u32 v{dims};");
    let pointed =
        ".extern .global .u32 v; .global .u64 at = v; .visible .func (.param .b32 r) f() { .reg .b32 %x;
        .reg .b64 %a; ld.global.u64 %a, [at]; ld.global.u32 %x, [%a]; st.param.b32 [r], %x; ret; }";
    let alias =
        format!("{} .visible .func (.param .b32 r) f(); .alias f, h;", local(6).replace(" f()", " h()"));
    let cases: &[(&str, &[&str], std::result::Result<u32, Status>)] = &[
        ("a function", &[KERNEL, &local(3)], Ok(3)),
        ("in the other order", &[&local(3), KERNEL], Ok(3)),
        ("names of one's own", &[KERNEL, &calls_own, own], Ok(55)),
        ("and before", &[own, &calls_own, KERNEL], Ok(55)),
        (
            "a visible name that another has for its own",
            &[KERNEL, &calls_own, &visible.replace(" v ", " x ")],
            Ok(55),
        ),
        ("a variable", &[KERNEL, &external, &visible], Ok(9)),
        ("a variable before", &[&visible, &external, KERNEL], Ok(9)),
        ("an address", &[KERNEL, pointed, &visible], Ok(9)),
        ("a strong one replaces weak ones", &[&weak(1), KERNEL, &local(2), &weak(3)], Ok(2)),
        ("the first weak one counts", &[&weak(1), KERNEL, &weak(3)], Ok(1)),
        (
            "common variables are one",
            &[KERNEL, &common("[2]"), &external.replace("v;", "v[2];"), &common("[2]")],
            Ok(0),
        ),
        ("or the definition", &[KERNEL, &common(""), &external, &visible], Ok(9)),
        ("an alias", &[KERNEL, &alias], Ok(6)),
        ("twice", &[KERNEL, &local(3), &local(4)], Err(Status::INVALID_PTX)),
        ("kernels twice", &[KERNEL, &local(3), KERNEL], Err(Status::INVALID_PTX)),
        ("no function", &[KERNEL, &visible], Err(Status::INVALID_PTX)),
        ("no function, alone", &[KERNEL], Err(Status::INVALID_PTX)),
        ("no variable", &[KERNEL, &external], Err(Status::INVALID_PTX)),
        (
            "a declaration that nobody uses",
            &[KERNEL, &local(3), ".extern .func g(); .extern .global .u32 w;"],
            Ok(3),
        ),
        ("another signature", &[KERNEL, ".visible .func f() { ret; }"], Err(Status::INVALID_PTX)),
    ];
    for (what, texts, expected) in cases {
        let word = words(1);
        let ran = link(texts).map(|module| {
            assert_eq!(launch(function(module, "k").unwrap(), CUstream::NULL, &[word]), OK, "{what}");
            read(word, 1)[0]
        });
        assert_eq!(ran, *expected, "{what}");
    }
}

/// What libcudadevrt has: the texts that call it are alone, and the archive says nothing.
#[test]
fn the_barrier_of_a_grid_is_there() {
    let _context = Ctx::new();
    // Each block adds 1, and counts after the barrier how many have; twice, so that the barrier is used again.
    let kernel = ".version 8.0 .target sm_80 .address_size 64
        .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);
        .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);
        .visible .entry k(.param .u64 out) {
          .reg .b64 %p, %q, %h; .reg .b32 %x, %c, %e; .reg .pred %once;
          ld.param.u64 %p, [out];
          mov.u32 %c, 0;
        AGAIN:
          { .param .b32 s; .param .b64 r; st.param.b32 [s], 1; call (r), cudaCGGetIntrinsicHandle, (s);
            ld.param.b64 %h, [r]; }
          mov.u32 %x, %tid.x;
          setp.eq.u32 %once, %x, 0;
          @%once red.relaxed.gpu.global.add.u32 [%p], 1;
          { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %h; st.param.b32 [f], 0;
            call (r), cudaCGSynchronize, (h, f); ld.param.b32 %e, [r]; }
          mov.u32 %x, %ctaid.x;
          mad.wide.u32 %q, %x, 4, %p;
          ld.relaxed.gpu.global.u32 %x, [%p];
          mad.lo.u32 %x, %e, 1000, %x;
          @%once st.global.u32 [%q + 4], %x;
          add.u32 %c, %c, 1;
          { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %h; st.param.b32 [f], 0;
            call (r), cudaCGSynchronize, (h, f); ld.param.b32 %e, [r]; }
          setp.lt.u32 %once, %c, 2;
          @%once bra AGAIN;
          ret; }";
    let link = create(&[]).unwrap();
    assert_eq!(add(link, CUjitInputType::PTX, kernel.as_bytes()), OK);
    let name = text("/usr/local/cuda/lib64/libcudadevrt.a");
    let archive = b"!<arch>\n";
    let data = input(archive.as_ptr());
    ok!(cuLinkAddData_v2(
        link,
        CUjitInputType::LIBRARY,
        data,
        archive.len(),
        chars(&name),
        0,
        null(),
        nowhere()
    ));
    let (image, _) = complete(link).unwrap();
    let module = out(|module| call!(cuModuleLoadData(module, input(image)))).unwrap();
    let kernel = function(module, "k").unwrap();
    let counts = words(8);
    let parameters = Params::of(&[counts]);
    ok!(cuLaunchCooperativeKernel(kernel, 7, 1, 1, 64, 1, 1, 0, CUstream::NULL, parameters.get()));
    assert_eq!(read(counts, 8), [14; 8]);
    // Without a cooperative launch there is no barrier, and the function says so.
    let word = words(2);
    assert_eq!(launch(kernel, CUstream::NULL, &[word]), OK);
    assert_eq!(read(word, 2), [2, 1002]);
    ok!(cuLinkDestroy(link));
}

#[test]
fn a_managed_variable_is_shared_by_what_is_linked() {
    let _context = Ctx::new();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let uses = format!(
        "{head}.extern .global .attribute(.managed) .align 4 .u32 x;
        .visible .entry bump() {{
            .reg .b32 %r<2>; ld.global.u32 %r0, [x]; add.u32 %r0, %r0, 1; st.global.u32 [x], %r0; ret; }}"
    );
    let defines = format!("{head}.visible .global .attribute(.managed) .align 4 .u32 x = 41;");
    for order in [[&uses, &defines], [&defines, &uses]] {
        let link = create(&[]).unwrap();
        for input in order {
            assert_eq!(add(link, CUjitInputType::PTX, input.as_bytes()), OK);
        }
        let (image, _) = complete(link).unwrap();
        let code = input(image);
        let library =
            out(|library| call!(cuLibraryLoadData(library, code, null(), nowhere(), 0, null(), null(), 0)));
        let library = library.unwrap();
        ok!(cuLinkDestroy(link));
        let (kernel, x) = (text("bump"), text("x"));
        let kernel: CUkernel = out(|at| call!(cuLibraryGetKernel(at, library, chars(&kernel)))).unwrap();
        assert_eq!(launch(CUfunction(kernel.0), CUstream::NULL, &[]), OK);
        let address = out(|at| call!(cuLibraryGetManaged(at, nowhere(), library, chars(&x)))).unwrap();
        assert_eq!(read(address, 1), [42]);
        ok!(cuLibraryUnload(library));
    }
}
