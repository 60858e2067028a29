//! `warpwright exec` around programs that use no CUDA: what they are given, and what becomes of them. The library is
//! any file here; `cargo xtask clients` runs programs that use it.
#![cfg(target_os = "linux")]

mod common;

use common::{Folder, status, stdout};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A folder with a library and a folder for temporary files.
struct Sandbox {
    folder: Folder,
    library: String,
}

impl Sandbox {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let library = folder.write("some.so", "a library");
        fs::create_dir(folder.path().join("temporary")).expect("the folder is made");
        Sandbox { folder, library }
    }

    /// `warpwright exec` with these arguments, and an environment that says nothing of ours.
    fn exec(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let ours = std::env::vars_os().map(|(name, _)| name);
        ours.filter(|name| name.as_encoded_bytes().starts_with(b"WARPWRIGHT_")).for_each(|name| {
            command.env_remove(name);
        });
        command.env("TMPDIR", self.folder.path().join("temporary")).env_remove("LD_LIBRARY_PATH");
        command.current_dir(self.folder.path()).arg("exec").args(arguments).stdin(Stdio::null());
        command
    }

    /// The same with the library, around a script.
    fn script(&self, options: &[&str], script: &str) -> Command {
        let mut arguments = vec!["--library", &self.library];
        arguments.extend(options);
        arguments.extend(["--", "sh", "-c", script]);
        self.exec(&arguments)
    }

    /// Whether nothing was left behind.
    fn is_clean(&self) -> bool {
        fs::read_dir(self.folder.path().join("temporary")).expect("readable").next().is_none()
    }
}

fn output(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

#[test]
fn options_become_the_environment_that_the_library_reads() {
    let sandbox = Sandbox::new("exec_environment");
    let show = "env | grep ^WARPWRIGHT_ | grep -v ^WARPWRIGHT_FAILED= | sort";
    let unasked = output(sandbox.script(&[], show));
    assert_eq!((stdout(&unasked), status(&unasked)), ("", 0), "what nobody asks for is not said");
    let options = [
        &["--check", "racecheck,initcheck", "--sm", "75,sm_90", "--memory", "8G", "--workers", "2"][..],
        &["--order", "random:7", "--findings", "found.json", "--fail", "--leaks", "--log", "calls"],
        &["--driver", "12.8", "--on-error", "continue", "--race", "strict", "--max-instructions", "9000"],
        &["--native", "auto"],
    ];
    let file = sandbox.folder.path().join("found.json");
    let expected = [
        "WARPWRIGHT_CHECK=racecheck,initcheck",
        "WARPWRIGHT_DEVICES=75,90",
        "WARPWRIGHT_DRIVER_VERSION=12080",
        "WARPWRIGHT_EXIT_STATUS=1",
        &format!("WARPWRIGHT_FINDINGS={}", file.display()),
        "WARPWRIGHT_LEAKS=1",
        "WARPWRIGHT_LOG=calls",
        "WARPWRIGHT_MAX_INSTRUCTIONS=9000",
        "WARPWRIGHT_MEMORY=8589934592",
        "WARPWRIGHT_NATIVE=auto",
        "WARPWRIGHT_ON_ERROR=continue",
        "WARPWRIGHT_ORDER=random:7",
        "WARPWRIGHT_RACE=strict",
        "WARPWRIGHT_WORKERS=2",
    ]
    .map(|line| format!("{line}\n"))
    .concat();
    fs::write(&file, "of an earlier run").expect("the file is written");
    assert_eq!(stdout(&output(sandbox.script(&options.concat(), show))), expected);
    assert_eq!(fs::read(&file).expect("the file is there"), b"");
    let mut inherited = sandbox.script(&["--fail=9"], show);
    inherited.env("WARPWRIGHT_CHECK", "all");
    assert_eq!(stdout(&output(inherited)), "WARPWRIGHT_CHECK=all\nWARPWRIGHT_EXIT_STATUS=9\n");
}

#[test]
fn the_program_alone_sees_the_libraries_under_the_names_of_driver_and_runtime() {
    let sandbox = Sandbox::new("exec_folder");
    let script = "dir=${LD_LIBRARY_PATH%%:*}; echo \"${LD_LIBRARY_PATH#*:}\"; stat -c %a \"$dir\"; \
                  cd \"$dir\" && for link in *; do echo \"$link\" \"$(readlink \"$link\")\"; done";
    let mut command = sandbox.script(&[], script);
    command.env("LD_LIBRARY_PATH", "some:folders");
    let driver = Path::new(&sandbox.library).canonicalize().expect("it is there");
    let runtime = sandbox.folder.write("libwarpwright_cudart.so", "a library");
    let runtime = Path::new(&runtime).canonicalize().expect("it is there");
    let program = Path::new(env!("CARGO_BIN_EXE_warpwright")).canonicalize().expect("it is there");
    let links = [
        ("libcuda.so", &driver),
        ("libcuda.so.1", &driver),
        ("libcudart.so", &runtime),
        ("libcudart.so.12", &runtime),
        ("libcudart.so.13", &runtime),
        ("ptxas", &program),
    ];
    let links = links.map(|(name, path)| format!("{name} {}\n", path.display()));
    let expected = format!("some:folders\n700\ninstead \n{}", links.concat());
    assert_eq!(stdout(&output(command)), expected);
    assert!(sandbox.is_clean());
    // An entry without a name would be the current folder.
    let alone = output(sandbox.script(&[], "echo \"${LD_LIBRARY_PATH##*/temporary/}\""));
    assert_eq!(stdout(&alone).matches(':').count(), 0);
}

#[test]
fn the_exit_status_is_the_programs() {
    let sandbox = Sandbox::new("exec_status");
    assert_eq!(status(&output(sandbox.script(&[], "exit 7"))), 7);
    assert_eq!(status(&output(sandbox.script(&[], "kill -KILL $$"))), 128 + 9);
    let none = output(sandbox.exec(&["--library", &sandbox.library, "--", "./not-there"]));
    assert_eq!((status(&none), stdout(&none)), (2, ""));
    // The library has made this file, in whichever process.
    let failed = |options: &[&str], end: &str| {
        let script = format!("sh -c ': > ${{WARPWRIGHT_FAILED:-none}}'; {end}");
        status(&output(sandbox.script(options, &script)))
    };
    assert_eq!(failed(&["--fail=7"], "true"), 7);
    assert_eq!(failed(&["--fail=7"], "exit 3"), 3);
    assert_eq!(failed(&[], "true"), 0);
    assert_eq!(status(&output(sandbox.script(&["--fail=7"], "true"))), 0);
    assert!(sandbox.is_clean());
}

/// Sends a signal to a process.
fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

#[test]
fn signals_go_on_to_the_program() {
    for (signal, expected) in [("-TERM", "TERM\n"), ("-USR1", "USR1\n"), ("-INT", "INT\n")] {
        let sandbox = Sandbox::new(&format!("exec_signal{signal}"));
        let script = "for name in TERM USR1 INT; do trap \"echo $name; exit 3\" $name; done; \
                      echo ready; while :; do sleep 0.02; done";
        // In a session of its own: what comes from the terminal of these tests would not be passed on.
        let exec = sandbox.script(&[], script);
        // A shell sets no trap for what was ignored when it began, as it is where these tests run in the background.
        let mut command = Command::new("env");
        command.args(["--default-signal=TERM,USR1,INT", "setsid", "--wait"]);
        command.arg(exec.get_program()).args(exec.get_args());
        for (name, value) in exec.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(sandbox.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("readable");
        assert_eq!(line, "ready\n");
        // `setsid` waits for a child only where it leads a group.
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()));
        let pid = children.ok().and_then(|list| list.split(' ').next()?.parse().ok());
        let is_setsid = fs::read_link(format!("/proc/{}/exe", child.id()))
            .is_ok_and(|path| path.file_name().is_some_and(|name| name == "setsid"));
        send(signal, if is_setsid { pid.expect("it has started it") } else { child.id() });
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("readable");
        assert_eq!((rest.as_str(), child.wait().expect("it ends").code()), (expected, Some(3)));
        assert!(sandbox.is_clean());
    }
}

#[test]
fn what_was_ignored_stays_so() {
    let sandbox = Sandbox::new("exec_nohup");
    let exec = sandbox.script(&[], "kill -HUP $$; echo on");
    let line = "trap '' HUP; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(exec.get_program()).args(exec.get_args());
    command.env("TMPDIR", sandbox.folder.path().join("temporary"));
    let output = output(command);
    assert_eq!((stdout(&output), status(&output)), ("on\n", 0));
}

#[test]
fn without_the_library_nothing_starts() {
    let sandbox = Sandbox::new("exec_library");
    let named = output(sandbox.exec(&["--library", "missing.so", "--", "echo", "started"]));
    assert_eq!((status(&named), stdout(&named)), (2, ""));
    let mut variable = sandbox.exec(&["--", "echo", "started"]);
    variable.env("WARPWRIGHT_LIBCUDA", sandbox.folder.path());
    assert_eq!(status(&output(variable)), 2, "the folder has no library of that name");

    // A copy of the program in a folder of its own, where cargo has built nothing.
    let bin = sandbox.folder.path().join("installed/bin");
    fs::create_dir_all(&bin).expect("the folder is made");
    let program = bin.join("warpwright");
    fs::hard_link(env!("CARGO_BIN_EXE_warpwright"), &program).expect("it is on the same disk");
    let run = || {
        let mut command = Command::new(&program);
        command.args(["exec", "echo", "started"]).env_remove("WARPWRIGHT_LIBCUDA");
        output(command)
    };
    let alone = run();
    assert_eq!((status(&alone), stdout(&alone)), (2, ""));
    let lib = sandbox.folder.path().join("installed/lib");
    fs::create_dir(&lib).expect("the folder is made");
    fs::write(lib.join("libwarpwright_cuda.so"), "a library").expect("it is written");
    let with_library = run();
    assert_eq!((status(&with_library), stdout(&with_library)), (0, "started\n"));
}

/// The loader ends a program with 127 whose libraries it does not find.
#[test]
fn a_program_that_was_not_loaded_is_told_what_is_missing() {
    let sandbox = Sandbox::new("exec_missing");
    for (options, script, is_told) in
        [(&[][..], "exit 127", true), (&[], "exit 1", false), (&["--log", "off"], "exit 127", false)]
    {
        let ended = output(sandbox.script(options, script));
        assert_eq!(!ended.stderr.is_empty(), is_told, "{options:?} {script}: {ended:?}");
    }
}

/// What a process reports that has found a leak, whose line another one was killed at.
#[test]
fn reports_have_what_all_processes_have_found() {
    let sandbox = Sandbox::new("exec_reports");
    let read = |name: &str| fs::read_to_string(sandbox.folder.path().join(name)).expect("it is there");
    let leak = |what: &str| {
        format!(
            r#"{{"version":1,"event":"leak","what":"{what}","bytes":0,"call":{{"number":1,"function":"f"}}}}"#
        )
    };
    let earlier = sandbox.folder.write("set.json", &format!("{}\n", leak("module")));
    let (stream, event) = (leak("stream"), leak("event"));
    let script = format!(
        "echo '{stream}' >> $WARPWRIGHT_FINDINGS; sh -c \"echo '{{\\\"event\\\": ' >> $WARPWRIGHT_FINDINGS\"; \
         echo '{event}' >> $WARPWRIGHT_FINDINGS; exit 3"
    );
    let shown = ["warpwright: leak: stream, made by call 1, f", "warpwright: leak: event, made by call 1, f"];
    for (options, set, is_shown) in [
        (&[][..], None, true),
        (&["--findings", "found.json"], None, false),
        // Lines of a program before this one stay there, and are not this one's.
        (&[], Some(&earlier), false),
    ] {
        let options = [&["--sarif", "found.sarif", "--junit", "found.xml"], options].concat();
        let mut command = sandbox.script(&options, &script);
        command.envs(set.map(|path| ("WARPWRIGHT_FINDINGS", path)));
        let ended = output(command);
        assert_eq!(status(&ended), 3, "{ended:?}");
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        let lines: Vec<_> = errors.lines().filter(|line| line.contains("leak:")).collect();
        assert_eq!(lines, if is_shown { &shown[..] } else { &[] }, "{errors}");
        let log: serde_json::Value = serde_json::from_str(&read("found.sarif")).expect("JSON");
        let results = log["runs"][0]["results"].as_array().expect("a list");
        let messages: Vec<_> =
            results.iter().filter_map(|result| result["message"]["text"].as_str()).collect();
        assert_eq!(messages, ["stream was never given back", "event was never given back"]);
        assert_eq!(read("found.xml").matches("<failure").count(), 1);
    }
    // A program that is not there.
    let mut none =
        sandbox.exec(&["--library", &sandbox.library, "--sarif", "found.sarif", "--", "no/such/program"]);
    assert_eq!((status(&none.output().expect("it starts")), read("found.sarif").as_str()), (2, ""));
    // A program that has not used the library.
    let unused = output(sandbox.script(&["--junit", "none.xml", "--findings", "none.json"], "true"));
    assert_eq!((status(&unused), unused.stderr.as_slice()), (0, &b""[..]));
    assert_eq!(read("none.xml").matches("<testcase").count(), 1);
    assert!(sandbox.is_clean());
}

/// The scripts of the GitHub action: what its steps learn of a command, and of the wheel.
#[test]
fn the_action_runs_a_command_and_tells_its_files() {
    let sandbox = Sandbox::new("exec_action");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let temporary = sandbox.folder.path().join("temporary");
    let step = |script: &str, variables: &[(&str, &str)]| {
        let told = sandbox.folder.write("told", "");
        let mut command = Command::new(root.join("tools/action").join(script));
        command
            .current_dir(sandbox.folder.path())
            .env("GITHUB_ACTION_PATH", &root)
            .env("GITHUB_OUTPUT", &told);
        command.env("RUNNER_TEMP", &temporary).env("RUNNER_OS", "Linux").env("RUNNER_ARCH", "X64");
        command.envs(variables.iter().copied());
        let ended = output(command);
        assert_eq!(status(&ended), 0, "{ended:?}");
        let told = fs::read_to_string(told).expect("it is there");
        let told: HashMap<_, _> = told
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        (told, ended)
    };
    let write = r#"echo '{}' > "$SARIF"; echo "a command with 'quotes' and \"others\""; (exit 3) | true; echo unreached"#;
    let (told, ended) = step("run", &[("COMMAND", write), ("UPLOAD", "true")]);
    assert_eq!(told["status"], "3");
    assert_eq!(stdout(&ended), "a command with 'quotes' and \"others\"\n");
    assert_eq!(fs::read_to_string(&told["sarif"]).expect("it is there"), "{}\n");
    assert!(Path::new(&told["sarif"]).starts_with(&told["folder"]) && !told.contains_key("junit"));
    for (upload, warnings) in [("true", 1), ("false", 0)] {
        let command = r#"echo x > "$JUNIT""#;
        let (told, ended) = step("run", &[("COMMAND", command), ("UPLOAD", upload)]);
        assert_eq!((told["status"].as_str(), told.contains_key("sarif")), ("0", false));
        assert!(Path::new(&told["junit"]).is_file());
        assert_eq!(stdout(&ended).matches("::warning").count(), warnings);
    }
    let [(first, _), (second, _)] = [step("key", &[]), step("key", &[])];
    assert_eq!(first, second);
    assert!(first["key"].starts_with("warpwright-Linux-X64-"));
}

#[test]
fn options_that_make_no_sense_start_nothing() {
    let sandbox = Sandbox::new("exec_usage");
    for options in [
        &["--check", "none,all"][..],
        &["--check", "rececheck"],
        &["--sm", "81"],
        &["--memory", "0"],
        &["--memory", "8X"],
        &["--fail=0"],
        &["--fail=256"],
        &["--workers", "0"],
        &["--log", "some"],
        &["--findings", "no/such/folder/found.json"],
        &["--sarif", "no/such/folder/found.sarif"],
        &["--root", "."],
    ] {
        let output = output(sandbox.script(options, "echo started"));
        assert_eq!((status(&output), stdout(&output)), (2, ""), "{options:?}");
    }
    assert_eq!(status(&output(sandbox.exec(&["--library", &sandbox.library]))), 2, "a program is missing");
    assert!(sandbox.is_clean());
}
