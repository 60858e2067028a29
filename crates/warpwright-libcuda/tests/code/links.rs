//! The linker.

use crate::*;

/// An image, as long as the linker is there.
fn complete(link: CUlinkState) -> Result<(*const u8, usize)> {
    let (mut image, mut bytes) = (std::ptr::null(), 0);
    call!(cuLinkComplete(link, output(&mut image), output(&mut bytes))).into_result()?;
    Ok((image, bytes))
}

fn create(options: &[(CUjit_option, usize)]) -> Result<CUlinkState> {
    let names: Vec<CUjit_option> = options.iter().map(|(name, _)| *name).collect();
    let mut values: Vec<usize> = options.iter().map(|(_, value)| *value).collect();
    out(|link| {
        call!(cuLinkCreate_v2(names.len() as u32, input(names.as_ptr()), output(values.as_mut_ptr()), link,))
    })
}

fn add(link: CUlinkState, kind: CUjitInputType, data: &[u8]) -> Status {
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
        (CUjitInputType::OBJECT, b"", Status::NOT_SUPPORTED),
        (CUjitInputType::LIBRARY, b"!<arch>", Status::NOT_SUPPORTED),
        (CUjitInputType(17), PTX.as_bytes(), Status::INVALID_VALUE),
        (CUjitInputType::PTX, b"", Status::INVALID_IMAGE),
        (CUjitInputType::PTX, b".version 8.0\n.target sm_80\nrubbish", Status::INVALID_PTX),
        (CUjitInputType::PTX, b".version 8.7\n.target sm_80\n", Status::UNSUPPORTED_PTX_VERSION),
        (CUjitInputType::PTX, PTX.as_bytes(), OK),
        // A module is of one text.
        (CUjitInputType::PTX, PTX.as_bytes(), Status::NOT_SUPPORTED),
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
