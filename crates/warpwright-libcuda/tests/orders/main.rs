//! Orders of streams: what a program has not said may come in any, what it has said in none but that.
//!
//! The order is the process's, so the programs are clients of their own, which this one plays too.

#[cfg(target_os = "linux")]
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod traces;

#[cfg(target_os = "linux")]
mod suite {
    use crate::common::client;
    use crate::{programs, threads, traces};

    pub(crate) const TESTS: &[(&str, fn())] = &[
        ("what_was_said_holds_in_every_order", what_was_said_holds_in_every_order),
        ("a_wait_that_was_forgotten_shows", a_wait_that_was_forgotten_shows),
        ("an_order_may_change_while_the_process_runs", an_order_may_change_while_the_process_runs),
        ("memory_that_another_stream_gives_back_is_gone", memory_that_another_stream_gives_back_is_gone),
        ("branches_of_a_graph_change_places", branches_of_a_graph_change_places),
        ("work_gets_done_however_one_waits", work_gets_done_however_one_waits),
        ("random_programs_are_done_in_legal_orders", random_programs_are_done_in_legal_orders),
        ("threads_over_devices_wait_as_they_say", threads_over_devices_wait_as_they_say),
        ("what_is_no_order_is_refused", what_is_no_order_is_refused),
    ];

    /// Plays a part. Its exit status is what it returns.
    pub(crate) fn play(part: &str) -> i32 {
        let said = if let Some(seeds) = part.strip_prefix("traces ") {
            traces::play(seeds)
        } else if let Some(seed_and_time) = part.strip_prefix("threads ") {
            threads::play(seed_and_time)
        } else {
            programs::play(part)
        };
        println!("{said}");
        0
    }

    const ORDERS: [&str; 4] = ["issue", "reverse", "random:1", "random:2"];

    /// What a client says under an order.
    fn says(part: &str, order: &str) -> String {
        let ended = client(part, &[("WARPWRIGHT_ORDER", order), ("WARPWRIGHT_DEVICES", "90,80")]);
        assert_eq!(ended.status(), Some(0), "{part}, {order}: {:?}", ended.errors());
        ended.text()
    }

    fn number(part: &str, order: &str) -> u32 {
        says(part, order).parse().unwrap()
    }

    fn what_was_said_holds_in_every_order() {
        for part in ["event", "default stream", "waits between", "copies that wait", "freed behind"] {
            for order in ORDERS {
                assert_eq!(number(part, order), programs::ROUNDS, "{part}, {order}");
            }
        }
    }

    /// A thread that does not get its turn for a while may let one of the rounds be done in the order of the calls.
    fn a_wait_that_was_forgotten_shows() {
        for part in ["no event", "no default stream", "looks too early", "used again too early"] {
            assert_eq!(number(part, "issue"), programs::ROUNDS, "{part}");
            assert!(number(part, "reverse") < programs::ROUNDS / 2, "{part}");
            assert!(number(part, "random:1") < programs::ROUNDS, "{part}");
        }
    }

    fn an_order_may_change_while_the_process_runs() {
        assert!(number("set reverse; no event", "issue") < programs::ROUNDS / 2);
        assert_eq!(number("set issue; no event", "reverse"), programs::ROUNDS);
    }

    fn memory_that_another_stream_gives_back_is_gone() {
        for part in ["freed too early by a kernel", "freed too early by a copy"] {
            assert_eq!(says(part, "issue"), "0", "{part}");
            assert_eq!(says(part, "reverse"), "700", "{part}");
        }
    }

    fn branches_of_a_graph_change_places() {
        assert_eq!(says("branches", "issue"), "2 2");
        assert_eq!(says("branches", "reverse"), "1 1");
    }

    fn work_gets_done_however_one_waits() {
        for part in
            ["asks for an event", "asks for a stream", "asks for the default stream", "looks at memory"]
        {
            for order in ORDERS {
                assert_eq!(says(part, order), "done", "{part}, {order}");
            }
        }
        for order in ORDERS {
            for kept in ["", "behind one that waits, "] {
                let part = format!("{kept}looks at memory while another stream is kept busy");
                assert_eq!(says(&part, order), "done", "{part}, {order}");
            }
            assert_eq!(says("waits for another device", order), "done", "{order}");
            let ended =
                client("never waits", &[("WARPWRIGHT_ORDER", order), ("WARPWRIGHT_EXIT_STATUS", "9")]);
            assert_eq!(ended.status(), Some(9), "what was asked for last has a mistake: {order}");
        }
    }

    fn random_programs_are_done_in_legal_orders() {
        for order in ["issue", "reverse", "random:1", "random:2", "random:3"] {
            let said = says("traces 0-60", order);
            let [illegal, different]: [u32; 2] =
                said.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
            assert_eq!(illegal, 0, "{order}");
            assert!(order == "issue" || different > 30, "{order}: {different} orders differ");
        }
    }

    fn threads_over_devices_wait_as_they_say() {
        for order in ORDERS {
            assert_eq!(number("threads 1 300", order), 0, "{order}");
        }
    }

    fn what_is_no_order_is_refused() {
        let ended = client("asks for a stream", &[("WARPWRIGHT_ORDER", "backwards")]);
        assert_ne!(ended.status(), Some(0));
        let told = "warpwright: WARPWRIGHT_ORDER=backwards: issue, reverse, or random: and a number";
        assert_eq!(ended.errors().first().map(String::as_str), Some(told));
    }
}

#[cfg(target_os = "linux")]
fn main() {
    common::main(suite::TESTS, suite::play);
}

#[cfg(not(target_os = "linux"))]
fn main() {}
