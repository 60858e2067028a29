//! A client that takes findings itself, and changes the settings of launches between them.

use super::{PTX, allocate, init, launch, synchronize};
use crate::common::{client, context, input, kernel, ok};
use std::ffi::{CStr, c_int};
use warpwright_cuda::api::{warpwrightSet, warpwrightTake};
use warpwright_cuda::types::In;

/// What was found since the last call: the kinds of findings, and other events.
fn take() -> String {
    // SAFETY: the text is there until the next call.
    let text = unsafe { CStr::from_ptr(warpwrightTake()) }.to_str().unwrap();
    let kind = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.get("kind").unwrap_or(&line["event"]).as_str().unwrap().to_owned()
    };
    let kinds: Vec<_> = text.lines().map(kind).collect();
    format!("{kinds:?}")
}

fn set(check: Option<&CStr>, race: Option<&CStr>, order: Option<&CStr>) -> c_int {
    let pointer = |text: Option<&CStr>| text.map_or(In::null(), |text| input(text.as_ptr()));
    // SAFETY: texts.
    unsafe { warpwrightSet(pointer(check), pointer(race), pointer(order)) }
}

/// The client.
pub(crate) fn play() {
    ok(init());
    context(0);
    let (write, read, stop) = (kernel(PTX, "write"), kernel(PTX, "read"), kernel(PTX, "stop"));
    let x = allocate(16);
    println!("{}", take());
    // Twice, so that the second one is not what is known already; and nobody has waited.
    for _ in 0..2 {
        launch(write, 6, Some(x));
        launch(write, 6, Some(x));
        launch(stop, 1, None);
        println!("{} {}", take(), synchronize().0);
    }
    // What was written under other checks is written, and checks go as they come.
    launch(write, 4, Some(x));
    println!("{}", set(Some(c"initcheck"), None, None));
    launch(read, 1, Some(x));
    println!("{}", take());
    launch(read, 1, Some(allocate(16)));
    println!("{}", set(Some(c"memcheck"), Some(c"strict"), Some(c"random:1")));
    launch(read, 1, Some(allocate(16)));
    println!("{}", take());
    println!("{} {}", set(Some(c"all"), Some(c"lax"), None), set(None, None, Some(c"backwards")));
    launch(read, 1, Some(allocate(16)));
    println!("{}", take());
    // Nobody takes what comes last.
    launch(write, 6, Some(x));
}

/// What it is told.
pub(crate) fn test() {
    let ended = client("is told what it takes", &[("WARPWRIGHT_ON_ERROR", "continue")]);
    let expected = [
        "[]",
        r#"["out-of-bounds", "repeated", "instruction"] 0"#,
        r#"["out-of-bounds", "repeated", "instruction"] 0"#,
        "0",
        "[]",
        "0",
        r#"["uninitialized"]"#,
        "1 1",
        "[]",
    ];
    assert_eq!(ended.text().lines().collect::<Vec<_>>(), expected);
    // The last one, in five lines and a note; and no totals.
    let errors = ended.errors();
    assert_eq!(errors.iter().filter(|line| line.starts_with("warpwright: ")).count(), 1, "{errors:#?}");
}
