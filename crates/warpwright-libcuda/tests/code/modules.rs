//! Modules: what is loaded, what is refused and with which words, variables, and what is left after unloading.

use crate::*;
use std::ffi::c_void;

/// Loads with a log of errors and of information: status, and both.
fn load_with_logs(ptx: &str, more: &[(CUjit_option, usize)]) -> (Status, String, String) {
    const ROOM: usize = 4096;
    let (mut errors, mut info) = (vec![0u8; ROOM], vec![0u8; ROOM]);
    let address = |buffer: &mut Vec<u8>| buffer.as_mut_ptr().expose_provenance();
    let mut names = vec![
        CUjit_option::ERROR_LOG_BUFFER,
        CUjit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::INFO_LOG_BUFFER,
        CUjit_option::INFO_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = vec![address(&mut errors), ROOM, address(&mut info), ROOM];
    names.extend(more.iter().map(|(name, _)| *name));
    values.extend(more.iter().map(|(_, value)| *value));
    let (ptx, mut module) = (text(ptx), CUmodule::NULL);
    let status = call!(cuModuleLoadDataEx(
        output(&mut module),
        input(ptx.as_ptr().cast::<u8>()),
        names.len() as u32,
        input(names.as_ptr()),
        output(values.as_mut_ptr()),
    ));
    let read = |buffer: &[u8], used: usize| {
        assert_eq!(buffer.iter().position(|byte| *byte == 0), Some(used), "it ends where it says");
        String::from_utf8(buffer[..used].to_vec()).unwrap()
    };
    assert_eq!(module.is_null(), status != OK);
    (status, read(&errors, values[1]), read(&info, values[3]))
}

#[test]
fn what_cannot_be_loaded_is_refused_by_its_kind() {
    let _context = Ctx::new();
    let body = ".address_size 64\n.visible .entry k() { ret; }\n";
    for (code, status) in [
        (format!(".version 8.2\n.target sm_90\n{body}"), OK),
        (format!(".version 8.0\n.target sm_90a\n{body}"), OK),
        // CUDA 12.2 accepts PTX up to 8.2.
        (format!(".version 8.3\n.target sm_80\n{body}"), Status::UNSUPPORTED_PTX_VERSION),
        ("// a comment\n.version 99.9 rubbish".to_owned(), Status::UNSUPPORTED_PTX_VERSION),
        (format!(".version 7.0\n.target sm_52\n{body}"), OK),
        (".version 8.0\n.target sm_80\n.visible .entry k() { rubbish; }\n".to_owned(), Status::INVALID_PTX),
        // As driver 590.48 was seen to answer: what does not begin as PTX is no PTX.
        (format!(".target sm_80\n{body}"), Status::INVALID_IMAGE),
        ("rubbish".to_owned(), Status::INVALID_IMAGE),
        (format!("// Comments may come first.\n/* .target sm_90 */ .version 8.0\n.target sm_80\n{body}"), OK),
        ("\x7fELF\x02\x01\x01".to_owned(), Status::NO_BINARY_FOR_GPU),
        (" \n ".to_owned(), Status::INVALID_IMAGE),
    ] {
        assert_eq!(load(&code).err().unwrap_or(OK), status, "{code}");
    }
    let fatbin = [0x50u8, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    let mut module = CUmodule::NULL;
    fails!(NO_BINARY_FOR_GPU, cuModuleLoadFatBinary(output(&mut module), input(fatbin.as_ptr())));
    fails!(INVALID_VALUE, cuModuleLoadData(output(&mut module), null()));
    fails!(INVALID_VALUE, cuModuleLoadData(nowhere(), input(fatbin.as_ptr())));
    assert!(module.is_null());
}

#[test]
fn targets_that_the_device_does_not_run_are_refused() {
    let _context = Ctx::new();
    // A driver of CUDA 12.2 knows nothing later than `sm_90`, and runs `sm_80` code on it, but not `sm_89a`'s kind.
    let ptx = |target: &str| {
        format!(".version 8.2\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n")
    };
    for target in ["sm_50", "sm_75", "sm_89", "sm_90", "sm_90a"] {
        assert_eq!(load(&ptx(target)).err(), None, "{target}");
    }
    let (status, errors, _) = load_with_logs(&ptx("sm_100"), &[]);
    assert_eq!(status, Status::INVALID_PTX, "{errors}");
}

#[test]
fn errors_have_the_compilers_shape_and_their_line() {
    let _context = Ctx::new();
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n    .reg .b32 %r<2>;\n    \
               mov.u32 %r1, %r7;\n    ret;\n}\n";
    let (status, errors, info) = load_with_logs(ptx, &[]);
    assert_eq!((status, info.as_str()), (Status::INVALID_PTX, ""));
    let lines: Vec<&str> = errors.lines().collect();
    let place: Vec<&str> = lines[0].splitn(3, [',', ';']).collect();
    assert_eq!(place[..2], ["ptxas application ptx input", " line 7"]);
    assert_eq!(place[2].split(':').next(), Some(" error   "));
    assert_eq!(lines.last(), Some(&"ptxas fatal   : Ptx assembly aborted due to errors"));
    let (status, errors, _) = load_with_logs("\n.version 8.5\n.target sm_80\n", &[]);
    assert_eq!(status, Status::UNSUPPORTED_PTX_VERSION);
    assert_eq!(
        errors.lines().next(),
        Some(
            "ptxas application ptx input, line 2; fatal   : Unsupported .version 8.5; current version is '8.2': the \
             driver is that of CUDA 12.2; `warpwright exec --driver VERSION` (WARPWRIGHT_DRIVER_VERSION) makes it \
             another one"
        )
    );
}

#[test]
fn a_verbose_compiler_says_what_functions_take() {
    let _context = Ctx::new();
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 all[20];\n.const .align 4 .b8 \
               rest[12];\n.visible .entry k()\n{\n    .shared .align 4 .b8 room[64];\n    .local .align 4 .b8 own[8];\n    \
               .reg .b32 %r<3>;\n    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, room;\n    st.shared.u32 [%r2], %r1;\n    \
               ret;\n}\n";
    let (status, errors, info) = load_with_logs(ptx, &[(CUjit_option::LOG_VERBOSE, 1)]);
    assert_eq!((status, errors.as_str()), (OK, ""));
    let expected = "ptxas info    : 20 bytes gmem, 12 bytes cmem[3]\n\
                    ptxas info    : Compiling entry function 'k' for 'sm_90'\n\
                    ptxas info    : Function properties for k\n    \
                    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                    ptxas info    : Used 2 registers, 64 bytes smem";
    let told: Vec<&str> = info.lines().filter(|line| line.split(';').count() == 1).collect();
    assert_eq!(told.join("\n"), expected);
}

#[test]
fn files_are_loaded() {
    let _context = Ctx::new();
    let file = std::env::temp_dir().join(format!("warpwright-module-{}.ptx", std::process::id()));
    std::fs::write(&file, PTX).unwrap();
    let name = text(file.to_str().unwrap());
    let module = out(|module| call!(cuModuleLoad(module, chars(&name)))).unwrap();
    function(module, "add").unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        out(|module: Out<CUmodule>| call!(cuModuleLoad(module, chars(&name)))),
        Err(Status::FILE_NOT_FOUND)
    );
}

#[test]
fn functions_and_variables_are_found_by_name() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    assert_eq!(function(module, "subtract"), Err(Status::NOT_FOUND));
    assert_eq!(function(module, "add"), function(module, "add"));
    let count = out(|count| call!(cuModuleGetFunctionCount(count, module))).unwrap();
    assert_eq!(count, 10);
    let mut all = [CUfunction::NULL; 12];
    ok!(cuModuleEnumerateFunctions(output(all.as_mut_ptr()), 12, module));
    assert_eq!(all[0], function(module, "add").unwrap());
    assert_eq!(all[9], function(module, "hang").unwrap());
    assert_eq!(all[10..], [CUfunction::NULL; 2]);

    let global = |name: &str, bytes: Out<usize>| {
        let name = text(name);
        out(|address| call!(cuModuleGetGlobal_v2(address, bytes, module, chars(&name))))
    };
    let (mut of_counter, mut of_table) = (0, 0);
    let counter = global("counter", output(&mut of_counter)).unwrap();
    let table = global("table", output(&mut of_table)).unwrap();
    assert_eq!((of_counter, of_table), (4, 24));
    assert_eq!(global("nothing", nowhere()), Err(Status::NOT_FOUND));
    let name = text("counter");
    fails!(INVALID_VALUE, cuModuleGetGlobal_v2(nowhere(), nowhere(), module, chars(&name)));
    // It has the value that the text says, and can be copied and launched with.
    assert_eq!(read(counter, 1), [5]);
    assert_eq!(launch(function(module, "add").unwrap(), CUstream::NULL, &[counter, 37]), OK);
    assert_eq!(read(counter, 1), [42]);
    write(counter, &[7]);
    write(table, &[1, 2, 3, 4, 5, 6]);
    assert_eq!((read(counter, 1), read(table, 6)), (vec![7], vec![1, 2, 3, 4, 5, 6]));
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(table, PTX.as_ptr().cast::<c_void>(), 25));
    // A kernel that gets the address of a constant changes it, as on GPUs; the warning is no error.
    assert_eq!(launch(function(module, "add").unwrap(), CUstream::NULL, &[table, 37]), OK);
    assert_eq!(read(table, 2), [38, 2]);
}

#[test]
fn what_was_unloaded_is_gone() {
    let _context = Ctx::new();
    let module = load(PTX).unwrap();
    let (add, word) = (function(module, "add").unwrap(), words(1));
    assert_eq!(launch(add, CUstream::NULL, &[word, 3]), OK);
    ok!(cuModuleUnload(module));
    // What was launched before is done.
    assert_eq!(read(word, 1), [3]);
    fails!(INVALID_HANDLE, cuModuleUnload(module));
    assert_eq!(function(module, "add"), Err(Status::INVALID_HANDLE));
    assert_eq!(launch(add, CUstream::NULL, &[word, 3]), Status::INVALID_HANDLE);
    let mut value = 0;
    fails!(INVALID_HANDLE, cuFuncGetAttribute(output(&mut value), CUfunction_attribute::NUM_REGS, add));
    for wrong in [0, 0x1000, add.0, usize::MAX] {
        fails!(INVALID_HANDLE, cuModuleUnload(CUmodule(wrong)));
    }
}

#[test]
fn a_module_belongs_to_its_context() {
    let first = Ctx::new();
    let module = load(PTX).unwrap();
    let add = function(module, "add").unwrap();
    let word = words(1);
    {
        let _second = Ctx::new();
        assert_eq!(function(module, "add"), Err(Status::INVALID_HANDLE));
        assert_eq!(launch(add, CUstream::NULL, &[word, 3]), Status::INVALID_HANDLE);
        fails!(INVALID_HANDLE, cuModuleUnload(module));
    }
    assert_eq!(launch(add, CUstream::NULL, &[word, 3]), OK);
    assert_eq!(read(word, 1), [3]);
    drop(first);
    let _third = Ctx::new();
    assert_eq!(function(module, "add"), Err(Status::INVALID_HANDLE));
}

#[test]
fn modules_need_a_context() {
    init();
    std::thread::spawn(|| {
        assert_eq!(load(PTX), Err(Status::INVALID_CONTEXT));
        fails!(INVALID_CONTEXT, cuModuleUnload(CUmodule::NULL));
    })
    .join()
    .unwrap();
}
