//! Messages of browsers and programs for rosbridge. PURE.

use std::time::Duration;

use amber_gateways::rosbridge::published::Message;
use amber_gateways::rosbridge::session::{MAX_QUEUE, MAX_REPLIES, MAX_TOPICS, Session};
use amber_gateways::rosbridge::topics::Output;
use amber_gateways::shared::clock::Now;
use amber_gateways::shared::web::request::{Decision, decide};
use amber_web::{Origins, Own};

use crate::Input;

/// Messages of a client, separated by line feeds, while the robot measures: what waits for the client
/// is bounded, and is JSON or CBOR.
pub(super) fn session(data: &[u8]) {
    let mut input = Input(data);
    let mut session = Session::default();
    let mut ms = 0;
    let reads = input.byte();
    for line in input.0.split(|byte| *byte == b'\n') {
        ms += 20;
        let _ = session.receive(line, Now::from_millis(ms));
        let now = Duration::from_millis(ms);
        for output in Output::ALL {
            let message = Message::new(output, serde_json::json!({}), now);
            session.offer(output, &message.into(), now);
        }
        if reads & 1 != 0 {
            take(&mut session, now);
        }
    }
    // Longer than any throttle rate.
    const LONG: Duration = Duration::from_secs(5_000_000);
    let mut now = LONG;
    for _ in 0..MAX_REPLIES + MAX_TOPICS * MAX_QUEUE {
        take(&mut session, now);
        now += LONG;
    }
    assert_eq!(session.next(now), None);
}

fn take(session: &mut Session, now: Duration) {
    if let Some(message) = session.next(now) {
        let is_json = serde_json::from_slice::<serde_json::Value>(&message).is_ok();
        assert!(is_json || message.starts_with(b"\xa3\x62op\x67publish"));
    }
}

/// The HTTP request that begins a connection: a longer one is decided alike.
pub(super) fn request(data: &[u8]) {
    let origins = Origins {
        listed: vec!["https://robots.example".to_owned()],
        of_this_machine: true,
        own: Own::ByAddress,
    };
    if let Decision::Accept { length, key } = decide(data, &origins) {
        assert!(length <= data.len() && !key.is_empty());
        let same = decide(&data[..length], &origins);
        assert_eq!(same, Decision::Accept { length, key });
    }
}
