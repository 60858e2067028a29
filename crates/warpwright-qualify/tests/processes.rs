//! Processes that fail, crash, hang or talk nonsense end nothing but their own item.

use std::process::Command;
use std::time::Duration;
use warpwright_qualify::{Figure, Finding, ItemReport, Observer, Plan, Stage, StageReport, run};

/// Sees nothing.
struct Nobody;

impl Observer for Nobody {
    fn stage(&mut self, _: Stage) {}
    fn item(&mut self, _: &ItemReport, _: usize, _: usize) {}
}

/// One stage, whose process is a shell script; `$FROM` is the first item, `$LEFT` whether there is a limit of time.
fn stage(script: &str, patience: Duration, budget: Option<Duration>) -> StageReport {
    let mut plan = Plan::new();
    (plan.stages, plan.patience, plan.budget) = (vec![Stage::Cases], patience, budget);
    let command = |_, from: usize, time: Option<Duration>| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("FROM", from.to_string());
        command.env("LEFT", if time.is_some() { "some" } else { "all" });
        command
    };
    run(&plan, command, &mut Nobody).remove(0)
}

/// The items as names with what is wrong with them.
fn items(report: &StageReport) -> Vec<(&str, Option<&str>)> {
    report.items.iter().map(|item| (item.name.as_str(), item.wrong.as_deref())).collect()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn what_items_find_is_kept() {
    let script = r#"echo '{"items":2}'
        echo '{"begin":[0,"one"]}'
        echo '{"result":{"figure":{"name":"copy","unit":"B/s","median":2.5,"quartiles":[2.0,3.0],"repetitions":7,"bytes":64,"operations":null}}}'
        echo '{"end":null}'; echo '{"begin":[1,"two"]}'; echo '{"end":"off by one"}'"#;
    let report = stage(script, LONG, None);
    assert_eq!(items(&report), [("one", None), ("two", Some("off by one"))]);
    let figure = Figure {
        name: "copy".into(),
        unit: "B/s".into(),
        median: 2.5,
        quartiles: (2.0, 3.0),
        repetitions: 7,
        bytes: Some(64),
        operations: None,
    };
    assert_eq!(report.items[0].findings, [Finding::Figure(figure)]);
    assert_eq!((report.failure.as_deref(), report.left_out, report.is_right()), (None, 0, false));
}

#[test]
fn a_process_that_ends_costs_its_item_alone() {
    // Item 1 ends the process, in one way or another, and the next process begins behind it.
    for (how, wrong) in [
        ("exit 0", "the process ended in the middle of it; the last launch was gemv"),
        ("exit 3", "the process ended with exit status: 3; the last launch was gemv"),
        ("kill -9 $$", "the process ended with signal: 9 (SIGKILL); the last launch was gemv"),
        (
            "echo nonsense",
            "`nonsense` is no event: expected value at line 1 column 1; the last launch was gemv",
        ),
    ] {
        let script = format!(
            r#"echo '{{"items":3}}'; i=$FROM
            while [ $i -lt 3 ]; do
                echo "{{\"begin\":[$i,\"item $i\"]}}"
                [ $i = 1 ] && {{ echo '{{"launch":"gemv"}}'; {how}; }}
                echo '{{"end":null}}'; i=$((i + 1))
            done"#
        );
        let report = stage(&script, LONG, None);
        assert_eq!(items(&report), [("item 0", None), ("item 1", Some(wrong)), ("item 2", None)], "{how}");
        assert_eq!(report.failure, None, "{how}");
    }
}

#[test]
fn a_process_that_hangs_is_ended_and_its_last_launch_named() {
    let script = r#"echo '{"items":2}'
        if [ $FROM = 0 ]; then echo '{"begin":[0,"one"]}'; echo '{"launch":"spin"}'; exec sleep 600; fi
        echo '{"begin":[1,"two"]}'; echo '{"end":null}'"#;
    // Long enough for a shell to start on a machine that has other work.
    let report = stage(script, Duration::from_secs(8), None);
    let wrong = "no sign of life for 8 s; the last launch was spin";
    assert_eq!(items(&report), [("one", Some(wrong)), ("two", None)]);
}

#[test]
fn a_stage_that_cannot_begin_fails_as_a_whole() {
    for (script, why) in [
        ("exit 2", "the process ended with exit status: 2"),
        ("exit 0", "its process ended before it began an item"),
    ] {
        let report = stage(script, LONG, None);
        assert_eq!((items(&report), report.failure.as_deref()), (vec![], Some(why)));
        assert!(!report.is_right());
    }
}

#[test]
fn what_there_is_no_time_for_is_counted() {
    let script = r#"echo '{"items":5}'; echo '{"begin":[0,"one"]}'; echo '{"end":null}'
        [ $LEFT = some ] && echo '{"out_of_time":1}'"#;
    let report = stage(script, LONG, Some(LONG));
    assert_eq!((items(&report), report.left_out), (vec![("one", None)], 4));
    assert!(report.is_right());
    let report = stage(script, LONG, Some(Duration::ZERO));
    assert!(report.not_begun && report.items.is_empty() && report.is_right());
}
