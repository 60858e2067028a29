//! Programs that open NVIDIA's libraries by a path get the stand-ins, and these NVIDIA's where they need it.
//!
//! This is a program of its own and not a list of `#[test]`s, since it is also its own client: started with an auditor
//! and called with `--play`, it opens what the example `nvidia` has been made under NVIDIA's names.

#[cfg(target_os = "linux")]
mod suite {
    use libloading::Library;
    use std::ffi::{c_char, c_int, c_uint};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    const KERNEL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func f();\n\
                          .visible .entry k() { call f, (); ret; }\n";
    const FUNCTION: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func f() { ret; }\n";

    /// The folder of what cargo has built.
    fn built() -> PathBuf {
        std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_path_buf()
    }

    /// Plays a part, with the library at a path.
    pub(crate) fn play(part: &str, path: &str) {
        // SAFETY: what the libraries do when they are loaded is to be there, and the functions have these types.
        unsafe {
            let library = Library::new(path).unwrap();
            // NVIDIA's is opened later, wherever the program is then.
            std::env::set_current_dir("/").unwrap();
            match part {
                "compile" => compile(&library),
                "link" => link(&library),
                other => panic!("no part is called {other}"),
            }
        }
    }

    unsafe fn compile(library: &Library) {
        type Compile = unsafe extern "C" fn(usize, c_int, *const *const c_char) -> c_int;
        type Size = unsafe extern "C" fn(usize, *mut usize) -> c_int;
        type Code = unsafe extern "C" fn(usize, *mut u8) -> c_int;
        let options = [c"-arch=sm_90a".as_ptr(), c"-I/sm_90a".as_ptr()];
        // SAFETY: the functions have these types.
        unsafe {
            assert_eq!(library.get::<Compile>("nvrtcCompileProgram").unwrap()(5, 2, options.as_ptr()), 0);
            let mut size = 0;
            assert_eq!(library.get::<Size>("nvrtcGetCUBINSize").unwrap()(5, &raw mut size), 0);
            let mut code = vec![0; size];
            assert_eq!(library.get::<Code>("nvrtcGetCUBIN").unwrap()(5, code.as_mut_ptr()), 0);
            println!("{}", String::from_utf8(code).unwrap());
            // What the library does not have is an error.
            assert_ne!(library.get::<Size>("nvrtcGetLTOIRSize").unwrap()(5, &raw mut size), 0);
        }
    }

    unsafe fn link(library: &Library) {
        type Create = unsafe extern "C" fn(*mut usize, c_uint, *const *const c_char) -> c_int;
        type Add = unsafe extern "C" fn(usize, c_uint, *const u8, usize, *const c_char) -> c_int;
        type One = unsafe extern "C" fn(usize) -> c_int;
        type Size = unsafe extern "C" fn(usize, *mut usize) -> c_int;
        type Code = unsafe extern "C" fn(usize, *mut u8) -> c_int;
        type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> c_int;
        // SAFETY: the functions have these types.
        unsafe {
            let (mut major, mut minor) = (0, 0);
            let version = library.get::<Version>("nvJitLinkVersion").unwrap();
            assert_eq!((version(&raw mut major, &raw mut minor), major, minor), (0, 13, 5));
            let create = library.get::<Create>("nvJitLinkCreate").unwrap();
            let add = library.get::<Add>("__nvJitLinkAddData_12_4").unwrap();
            let complete = library.get::<One>("__nvJitLinkComplete_13_0").unwrap();
            let mut handle = 0;
            let no_target = [c"-O3".as_ptr()];
            assert_eq!(create(&raw mut handle, 1, no_target.as_ptr()), 2, "there is no target");
            let unknown = [c"-arch=sm_80".as_ptr(), c"--faster".as_ptr()];
            assert_eq!(create(&raw mut handle, 2, unknown.as_ptr()), 1, "there is no such option");

            let options = [c"-arch=sm_80".as_ptr(), c"-O3".as_ptr()];
            let code = |inputs: &[(c_uint, &[u8])]| {
                let mut handle = 0;
                assert_eq!(create(&raw mut handle, 2, options.as_ptr()), 0);
                let mut results: Vec<c_int> = inputs
                    .iter()
                    .map(|(kind, data)| add(handle, *kind, data.as_ptr(), data.len(), c"input".as_ptr()))
                    .collect();
                results.push(complete(handle));
                let mut size = 0;
                let found = library.get::<Size>("nvJitLinkGetLinkedPtxSize").unwrap()(handle, &raw mut size);
                let mut text = vec![0; if found == 0 { size } else { 0 }];
                if found == 0 {
                    let get = library.get::<Code>("nvJitLinkGetLinkedPtx").unwrap();
                    assert_eq!(get(handle, text.as_mut_ptr()), 0);
                }
                let destroy =
                    library.get::<unsafe extern "C" fn(*mut usize) -> c_int>("nvJitLinkDestroy").unwrap();
                assert_eq!((destroy(&raw mut handle), handle), (0, 0));
                (results, String::from_utf8(text).unwrap())
            };
            let (results, text) = code(&[(2, KERNEL.as_bytes()), (10, FUNCTION.as_bytes())]);
            assert_eq!(results, [0, 0, 0]);
            println!("{}", defined(&text));
            let lto = [b"\xed\x43\x4e\x7f", FUNCTION.as_bytes()].concat();
            let (results, text) = code(&[(3, &lto), (2, KERNEL.as_bytes())]);
            assert_eq!(results, [0, 0, 0]);
            println!("{}", defined(&text));
            let (results, _) = code(&[(2, KERNEL.as_bytes())]);
            assert_eq!(results, [0, 9], "nobody defines the function");
            let (results, _) = code(&[(2, b".version 8.0\n.target sm_80\nrubbish"), (1, b"\x7fELF\x02")]);
            assert_eq!(results, [4, 13, 9]);
        }
    }

    /// The functions that a text defines.
    fn defined(text: &str) -> String {
        let module = warpwright_ptx::parse(text.trim_end_matches('\0')).unwrap();
        let names = module.functions().filter(|function| function.body.is_some());
        names.map(|function| function.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// A folder of a test, which is gone at the end.
    struct Folder(PathBuf);

    impl Folder {
        /// With the stand-ins under NVIDIA's names, and the driver.
        fn new(part: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("warpwright-standins-{}-{part}", std::process::id()));
            fs::create_dir_all(path.join("nvidia")).unwrap();
            fs::create_dir_all(path.join("instead")).unwrap();
            let folder = Folder(path);
            let deps = built().join("deps");
            for (library, name) in [
                ("libwarpwright_nvrtc.so", "instead/libnvrtc.so.13"),
                ("libwarpwright_nvjitlink.so", "instead/libnvJitLink.so.13"),
                ("libwarpwright_cuda.so", "libcuda.so.1"),
            ] {
                assert!(deps.join(library).is_file(), "{library} was not built");
                symlink(deps.join(library), folder.0.join(name)).unwrap();
            }
            let nvidia = built().join("examples/libnvidia.so");
            for name in ["libnvrtc.so.13", "libnvJitLink.so.13"] {
                // Each is a file of its own, as NVIDIA's are.
                fs::copy(&nvidia, folder.0.join("nvidia").join(name)).unwrap();
            }
            folder
        }

        fn play(&self, part: &str, library: &Path) -> Output {
            Command::new(std::env::current_exe().unwrap())
                .args(["--play", part, library.to_str().unwrap()])
                .env("LD_AUDIT", built().join("deps/libwarpwright_nvrtc.so"))
                .env("WARPWRIGHT_FOLDER", self.0.join("instead"))
                .env("LD_LIBRARY_PATH", &self.0)
                .current_dir(&self.0)
                .env_remove("WARPWRIGHT_LOG")
                .output()
                .unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(output: Output) -> String {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn a_compiler_is_asked_for_ptx() {
        let folder = Folder::new("compile");
        let played = folder.play("compile", &folder.0.join("nvidia/libnvrtc.so.13"));
        assert_eq!(text(played), "-arch=compute_90a -I/sm_90a\n");
        // A path may count from the folder where the program is.
        fs::remove_file(folder.0.join("instead/real-libnvrtc.so.13")).unwrap();
        let relative = folder.play("compile", Path::new("nvidia/libnvrtc.so.13"));
        assert_eq!(text(relative), "-arch=compute_90a -I/sm_90a\n");
        // A path that leads nowhere stays so.
        let nowhere = folder.play("compile", &folder.0.join("libnvrtc.so.13"));
        assert!(!nowhere.status.success());
    }

    pub(crate) fn a_linker_keeps_ptx_and_has_lto_ir_compiled() {
        let folder = Folder::new("link");
        let played = folder.play("link", &folder.0.join("nvidia/libnvJitLink.so.13"));
        assert_eq!(text(played), "k f\nk f\n");
    }
}

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, play, part, path] = &arguments[..]
        && play == "--play"
    {
        return suite::play(part, path);
    }
    let tests: [(&str, fn()); 2] = [
        ("a_compiler_is_asked_for_ptx", suite::a_compiler_is_asked_for_ptx),
        ("a_linker_keeps_ptx_and_has_lto_ir_compiled", suite::a_linker_keeps_ptx_and_has_lto_ir_compiled),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("test result: ok. 0 failed");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
