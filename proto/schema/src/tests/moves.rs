//! Descriptions of what moves.

use super::*;

const WATCH: &str = r#"
  rpc Watch(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "watch" };
    option (amber.moves) = { stop: { set: { field: "watch.period_ms" value: "0" } } };
  }
"#;

#[test]
fn a_description_says_what_moves_and_how_it_stops() {
    let methods = format!(
        r#"{WATCH}
  rpc Go(amber.DriverMsg) returns (amber.Nothing) {{
    option (amber.tell) = {{ flag: "get_charge" request: "capacity" }};
    option (amber.moves) = {{ errand: true stop: {{}} }};
  }}
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {{
    option (amber.ask) = {{ request: "charge" answer: "charge" }};
    option (amber.moves) = {{}};
  }}
"#
    );
    let interfaces = read(&compiled(&battery(&methods)), &built_in()).unwrap();
    let [watch, go, charge] = &interfaces[0].methods[..] else {
        panic!("{interfaces:?}");
    };
    let zero = Setting {
        field: "battery.watch.period_ms".into(),
        value: "0".into(),
    };
    let stop = vec![zero];
    assert_eq!(
        watch.harmless,
        Harmless::With(stop.clone()),
        "to stop is harmless"
    );
    assert_eq!(watch.empty_to_stop(&stop).count(), 0);
    assert_eq!(interfaces[0].stop(), Some((watch, &stop[..])));
    let moves = go.moves.as_ref().unwrap();
    assert!(moves.errand);
    let empty: Vec<_> = go.empty_to_stop(&[]).map(|field| &*field.name).collect();
    assert_eq!(
        (moves.stop.as_deref(), empty),
        (Some(&[][..]), vec!["capacity"])
    );
    assert_eq!(charge.harmless, Harmless::Unknown);
    assert_eq!(charge.moves.as_ref().unwrap().stop, None);
    let text = text(&interfaces[0]);
    for line in [
        "watch  (request without an answer, moves the device; stops it with period_ms = 0)",
        "go  (request without an answer, moves the device; stops it without arguments)",
        "charge  (request with an answer, moves the device)",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn the_devices_of_amber_that_move_are_known() {
    let interfaces = built_in();
    let moving = interfaces.iter().filter(|interface| interface.moves());
    let stops = moving.map(|it| (&*it.name, it.stop().map(|(method, _)| &*method.command)));
    let expected = [
        ("roboclaw", Some("drive")),
        ("maestro", Some("stop")),
        ("drive-to-point", Some("set-targets")),
        ("collision-avoidance", Some("drive")),
        ("pid-follow-trajectory", Some("stop")),
        ("mapping", Some("explore")),
        ("board", Some("stop")),
        ("base", Some("drive")),
        ("bus-servos", Some("stop")),
        ("arm", Some("stop")),
        ("teleop", Some("stop")),
    ];
    assert_eq!(stops.collect::<Vec<_>>(), expected);
}

#[test]
fn what_moves_must_be_described_consistently() {
    let watch = |from: &str, to: &str| WATCH.replace(from, to);
    let tell = "option (amber.tell) = { request: \"watch\" };";
    for (methods, rule) in [
        (
            watch("period_ms\" value: \"0", "period_ms\" value: \"x"),
            "method Watch: stop in moves: 'x' is not a value of 'battery.watch.period_ms'",
        ),
        (
            watch("watch.period_ms\" value", "capacity\" value"),
            "method Watch: stop in moves: 'capacity' is not inside the request",
        ),
        (
            watch("set: { field: \"watch.period_ms\" value: \"0\" }", ""),
            "method Watch: stop in moves: a request without 'watch' is none",
        ),
        (
            watch(
                tell,
                "option (amber.tell) = { request: \"watch\" harmless: {} };",
            ),
            "method Watch: with `moves`, say `stop` instead of `harmless`",
        ),
        (
            watch(
                "{ stop: { set: { field: \"watch.period_ms\" value: \"0\" } } }",
                "{ errand: true }",
            ),
            "service Battery: method Watch: nothing stops its motion",
        ),
    ] {
        let error = read(&compiled(&battery(&methods)), &built_in()).unwrap_err();
        assert!(error.to_string().ends_with(rule), "{error}");
    }
}
