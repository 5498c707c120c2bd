//! Each mistake of a driver is found by the right check with the right diagnosis, and a
//! correct driver passes.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::thread;
use std::time::Duration;

use amber_check::{Outcome, Plan, Report, run};

const DRIVER: &str = env!("CARGO_BIN_EXE_broken-driver");

fn report(mistake: &str, only: &[&str], timeout: Duration) -> Report {
    let command = vec![DRIVER.into(), mistake.into()];
    let plan = Plan {
        only: only.iter().map(|name| (*name).into()).collect(),
        timeout,
        ..Plan::new(command, "dummy:0".parse().unwrap())
    };
    run(&plan, |_| {}).unwrap()
}

/// The fixture without a mistake passes all checks.
#[test]
fn a_driver_without_mistakes_passes_everything() {
    let report = report("", &[], Duration::from_secs(20));
    for check in &report.checks {
        let expected = match check.name {
            // A Dummy needs no other device, and has no such streams and no long answers.
            "asks-others" | "streams" | "pieces" => Outcome::NotApplicable,
            _ => Outcome::Pass,
        };
        assert_eq!(
            check.outcome,
            expected,
            "{}",
            check.line() + &check.explanation()
        );
    }
    assert_eq!(report.checks.len(), amber_check::list().count());
}

/// An answer that comes after its check belongs to no other check.
#[test]
fn a_driver_that_starts_slowly_is_no_mistake() {
    let report = report("slow-start", &["start", "ping"], Duration::from_secs(1));
    for check in &report.checks {
        let explained = check.line() + &check.explanation();
        assert_eq!(check.outcome, Outcome::Pass, "{explained}");
    }
}

/// The mistake, the check that finds it, and words of its diagnosis.
#[track_caller]
fn fails(mistake: &str, check: &str, words: &[&str]) {
    finds(mistake, check, words, Outcome::Fail);
}

#[track_caller]
fn finds(mistake: &str, check: &str, words: &[&str], outcome: Outcome) {
    let report = report(mistake, &[check], Duration::from_secs(3));
    let checked = report.check(check).unwrap();
    let all = checked.line() + &checked.explanation();
    let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(checked.outcome, outcome, "{mistake}: {all}");
    for word in words {
        assert!(flat.contains(word), "{mistake}: no {word:?} in\n{all}");
    }
}

/// Runs tests in parallel: most of their time is waiting.
fn at_once(mistakes: &[&(dyn Fn() + Sync)]) {
    thread::scope(|scope| {
        for mistake in mistakes {
            scope.spawn(mistake);
        }
    });
}

#[test]
fn long_answers() {
    at_once(&[
        &|| {
            let found = report("long", &["pieces", "requests"], Duration::from_secs(10));
            for check in &found.checks {
                let explained = check.line() + &check.explanation();
                assert_eq!(check.outcome, Outcome::Pass, "{explained}");
            }
            let pieces = found.check("pieces").unwrap();
            assert_eq!(pieces.summary, "'status': 40012 bytes in 34 pieces");
        },
        &|| {
            fails(
                "long-to-all",
                "pieces",
                &["it sends pieces to a client whose last request has no `joins`"],
            )
        },
        &|| {
            fails(
                "long-to-weak",
                "pieces",
                &["it sends pieces to a client that joins at most 20006 bytes"],
            )
        },
        &|| {
            fails(
                "long-once",
                "pieces",
                &["a call for 2 of 34 pieces with 0 messages", "half a second"],
            )
        },
        &|| {
            fails(
                "long-again-for-all",
                "pieces",
                &["a client calls for pieces, and clients [62] get them"],
            )
        },
        &|| {
            fails(
                "long-with-ack",
                "pieces",
                &["piece 0 of 34 has a synNum or ackNum of its own"],
            )
        },
        &|| {
            fails(
                "long-from-one",
                "pieces",
                &["there is a piece 34 of 34", "indices begin with 0"],
            )
        },
        &|| {
            fails(
                "long-uneven",
                "pieces",
                &["piece 1 of 34 has 1179 bytes, and an earlier one 1180"],
            )
        },
        &|| {
            fails(
                "long-same-number",
                "pieces",
                &["the answers to 'status' do not count upwards"],
            )
        },
        &|| {
            fails(
                "long-in-large-pieces",
                "pieces",
                &["piece 0 of 2 has 32000 bytes, not 1 to 1180"],
            )
        },
    ]);
}

#[test]
fn text_on_stdout() {
    at_once(&[
        &|| {
            fails(
                "banner",
                "start",
                &["text on stdout: \"Dummy driver v1.0 starting\"", "stderr"],
            )
        },
        &|| {
            fails(
                "prints-later",
                "requests",
                &["text on stdout: \"enable = true\""],
            )
        },
    ]);
}

#[test]
fn wrong_lengths() {
    at_once(&[
        &|| {
            fails(
                "writes-little-endian",
                "ping",
                &[
                    "it writes lengths in little-endian order",
                    "struct.pack(\">H\"",
                ],
            )
        },
        &|| {
            fails(
                "header-length",
                "ping",
                &["the length of the header is 5, but the header has 3 bytes"],
            )
        },
        &|| {
            fails(
                "lengths-count-themselves",
                "ping",
                &["include their own two bytes"],
            )
        },
        &|| fails("four-byte-lengths", "ping", &["four bytes instead of two"]),
        &|| fails("varint-lengths", "ping", &["varints", "writeDelimitedTo"]),
    ]);
}

#[test]
fn lengths_that_are_read_wrongly() {
    at_once(&[
        &|| {
            fails(
                "reads-little-endian",
                "ping",
                &[
                    "it reads lengths in little-endian order",
                    "struct.unpack(\">H\"",
                ],
            )
        },
        &|| {
            fails(
                "little-endian",
                "ping",
                &["it reads lengths in little-endian order"],
            )
        },
        &|| {
            fails(
                "signed-length",
                "sizes",
                &["128 bytes (a byte read as signed?)", "127 bytes work"],
            )
        },
        &|| {
            fails(
                "byte-length",
                "sizes",
                &["256 bytes (a length of one byte?)", "255 bytes work"],
            )
        },
        &|| {
            fails(
                "small-buffer",
                "sizes",
                &["4096 bytes (a buffer of fixed size"],
            )
        },
    ]);
}

#[test]
fn output_that_is_not_flushed() {
    fails(
        "no-flush",
        "ping",
        &[
            "only after stdin was closed",
            "flush stdout after each frame",
        ],
    );
}

#[test]
fn a_read_is_not_a_frame() {
    at_once(&[
        &|| {
            fails(
                "one-read",
                "bytewise",
                &[
                    "a frame in pieces",
                    "read() may return only part of a frame",
                ],
            )
        },
        &|| fails("one-read", "many-at-once", &["of 50 frames were answered"]),
    ]);
}

#[test]
fn answers_to_the_wrong_clients() {
    at_once(&[
        &|| {
            fails(
                "no-client-ids",
                "ping",
                &[
                    "the header of the answer has no clientIDs",
                    "copy clientIDs from the header",
                ],
            )
        },
        &|| {
            fails(
                "device-instead",
                "ping",
                &["names the device, but no client"],
            )
        },
        &|| {
            fails(
                "mixes-clients",
                "clients",
                &["store the header with its request"],
            )
        },
        &|| {
            finds(
                "first-id",
                "several-ids",
                &["only the first of several"],
                Outcome::Note,
            )
        },
    ]);
}

#[test]
fn requests_without_a_device() {
    fails(
        "asks-without-id",
        "asks-others",
        &["type 4 has no deviceID", "even if they are 0"],
    );
}

#[test]
fn answers_without_their_number() {
    at_once(&[
        &|| {
            fails(
                "no-ack",
                "ping",
                &["no ackNum", "answer.ackNum = request.synNum"],
            )
        },
        &|| {
            fails(
                "syn-instead-of-ack",
                "ping",
                &["in synNum instead of ackNum"],
            )
        },
        &|| fails("wrong-type", "ping", &["the answer is a PING"]),
        &|| {
            fails(
                "no-extensions",
                "requests",
                &["has none of its fields", "enable and message"],
            )
        },
    ]);
}

/// The result of one check of a driver of another device.
#[track_caller]
fn of_device(device: &str, mistake: &str, check: &str, outcome: Outcome, words: &[&str]) {
    let command = vec![DRIVER.into(), mistake.into()];
    let plan = Plan {
        only: vec![check.into()],
        timeout: Duration::from_secs(3),
        ..Plan::new(command, device.parse().unwrap())
    };
    let report = run(&plan, |_| {}).unwrap();
    let checked = report.check(check).unwrap();
    let all = checked.line() + &checked.explanation();
    assert_eq!(checked.outcome, outcome, "{all}");
    for words in words {
        assert!(all.contains(words), "no {words:?} in\n{all}");
    }
}

#[test]
fn streams_that_start_by_a_request() {
    let check = |mistake, outcome, words: &[&str]| {
        of_device("ninedof:0", mistake, "streams", outcome, words);
    };
    at_once(&[
        &|| check("streams", Outcome::Pass, &["request: readings"]),
        &|| {
            check(
                "streams-forever",
                Outcome::Fail,
                &["it still publishes after the client stopped 'readings'"],
            )
        },
        &|| {
            check(
                "streams-nothing",
                Outcome::Fail,
                &[
                    "is not plausible: it contains no data of any stream",
                    "a message with sensorData",
                ],
            )
        },
        &|| check("never-reads", Outcome::Fail, &["no answer within 3 s"]),
    ]);
}

#[test]
fn implausible_answers() {
    at_once(&[
        &|| {
            of_device(
                "hokuyo:0",
                "unequal-lists",
                "requests",
                Outcome::Fail,
                &[
                    "3 angles but 2 distances",
                    "each row has one value of every list",
                ],
            )
        },
        &|| {
            fails(
                "no-text",
                "requests",
                &[
                    "the answer to 'status' has no message",
                    "enable and message",
                ],
            )
        },
    ]);
}

#[test]
fn too_many_answers() {
    at_once(&[
        &|| fails("twice", "ping", &["answered twice"]),
        &|| {
            fails(
                "answers-all",
                "requests",
                &["it answers 'enable': DATA ackNum"],
            )
        },
        &|| {
            finds(
                "answers-unnumbered",
                "no-number",
                &["no caller can match that answer"],
                Outcome::Note,
            )
        },
    ]);
}

#[test]
fn a_driver_that_ends_after_a_check_fails_that_check_and_not_the_next() {
    let report = report(
        "breaks-on-text",
        &["requests", "no-number"],
        Duration::from_secs(3),
    );
    let [requests, no_number] = &report.checks[..] else {
        panic!("{:?}", report.checks);
    };
    assert_eq!(no_number.outcome, Outcome::Pass, "{}", no_number.line());
    let all = requests.line() + &requests.explanation();
    assert_eq!(requests.outcome, Outcome::Fail, "{all}");
    assert!(all.contains("ended shortly after this check"), "{all}");
    assert!(all.contains("IndexError: text is too long"), "{all}");
    assert_eq!(report.failed, 1);
}

#[test]
fn a_driver_that_ends_on_unknown_messages_fails() {
    at_once(&[
        &|| {
            fails(
                "crashes-on-type",
                "unknown-type",
                &["exit code 101", "99 is no MsgType"],
            )
        },
        &|| {
            fails(
                "crashes-on-extension",
                "unknown-fields",
                &["exit code 101", "KeyError: 143"],
            )
        },
        &|| {
            fails(
                "crashes-on-junk",
                "no-drivermsg",
                &["exit code 101", "DecodeError"],
            )
        },
        // Prints a long backtrace, for longer than the timeout.
        &|| {
            fails(
                "crashes-slowly",
                "no-drivermsg",
                &["exit code 101", "DecodeError"],
            )
        },
        &|| {
            fails(
                "crashes-on-empty",
                "empty-message",
                &["exit code 101", "index out of range"],
            )
        },
    ]);
}

#[test]
fn a_missing_pong_is_a_note_and_silence_is_a_failure() {
    at_once(&[
        &|| {
            finds(
                "no-pong",
                "ping",
                &[
                    "'status' is answered",
                    "cannot notice when the driver hangs",
                ],
                Outcome::Note,
            )
        },
        &|| {
            fails(
                "never-reads",
                "ping",
                &["no answer within 3 s", "read stdin, flush stdout"],
            )
        },
        &|| {
            fails(
                "no-empty-header",
                "mediator-ping",
                &["no answer", "even if it is empty"],
            )
        },
    ]);
}

#[test]
fn bytes_that_are_line_ends() {
    fails(
        "text-mode",
        "binary",
        &["0d 0a instead of 0a", "sys.stdout.buffer"],
    );
}

#[test]
fn wrong_lists_of_subscribers() {
    at_once(&[
        &|| {
            fails(
                "never-publishes",
                "subscribe",
                &["a subscribed client gets no data"],
            )
        },
        &|| {
            fails(
                "one-subscriber",
                "subscribe",
                &["keep a set of subscribers"],
            )
        },
        &|| {
            fails(
                "no-unsubscribe",
                "subscribe",
                &["gets data after UNSUBSCRIBE"],
            )
        },
        &|| {
            fails(
                "subscribes-twice",
                "subscribe",
                &["gets everything twice: clientIDs [31, 31]", "keep a set"],
            )
        },
        &|| {
            fails(
                "unsubscribes-once",
                "subscribe",
                &["after UNSUBSCRIBE (it had subscribed twice)", "keep a set"],
            )
        },
        &|| fails("publishes-numbers", "subscribe", &["looks like an answer"]),
        &|| {
            fails(
                "forgets-nobody",
                "client-died",
                &["gets data after CLIENT_DIED"],
            )
        },
        &|| {
            finds(
                "forgets-first",
                "client-died",
                &["remove every id in clientIDs"],
                Outcome::Note,
            )
        },
    ]);
}

#[test]
fn drivers_that_do_not_end() {
    at_once(&[
        &|| {
            fails(
                "stays-at-end",
                "stdin-end",
                &["still runs 3 s after stdin has ended"],
            )
        },
        &|| {
            fails(
                "stays-at-end",
                "stdin-cut",
                &["still runs 3 s after stdin has ended within a frame"],
            )
        },
        &|| {
            fails(
                "spins-at-end",
                "stdin-end",
                &["keeps a CPU core busy", "leave the loop"],
            )
        },
        &|| {
            fails(
                "ignores-sigterm",
                "sigterm",
                &["still runs 3 s after SIGTERM"],
            )
        },
        &|| {
            finds(
                "fails-at-end",
                "stdin-end",
                &["exit code 1", "unpack requires"],
                Outcome::Note,
            )
        },
    ]);
}

#[test]
fn bytes_that_are_lost_when_stdout_is_full() {
    fails(
        "loses-bytes",
        "slow-reader",
        &["bytes that are not a frame", "if stdout is non-blocking"],
    );
}

#[test]
fn a_driver_that_does_not_start_is_one_failure() {
    let report = report("ends-at-start", &[], Duration::from_secs(3));
    let start = report.check("start").unwrap();
    assert!(
        start
            .summary
            .contains("right after its start (exit code 1)"),
        "{start:?}"
    );
    assert_eq!(
        (report.failed, report.not_applicable),
        (1, report.checks.len() - 1)
    );
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let plan = Plan::new(vec!["no-such-driver".into()], "110:0".parse().unwrap());
    assert!(run(&plan, |_| {}).is_err());
}
