//! Whether datagrams of several lengths pass between this machine and a mediator. IO, except for
//! [`judge`].
//!
//! A long datagram travels in fragments. Some VPNs and address translators lose all but the first
//! one, and then short requests work while lists, logs and scans time out.

use std::time::Duration;

use amber_client::blocking::{Client, Proxy};
use amber_client::{Announcement, MediatorAddress};
use amber_proto::mediator::{DriverMsg, ExplainCounters, Request, request};
use amber_proto::{Device, DeviceMessage, MsgType};
use bytes::Bytes;
use prost::Message;

use super::Check;

/// The lengths of messages: one that is never fragmented, one that just is not in an Ethernet, and
/// one of many fragments.
const LENGTHS: [usize; 3] = [100, 1400, 7000];
/// A few datagrams may get lost anywhere.
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_millis(700);
/// Mediators ignore this field.
const PADDING: u32 = 9000;

const NAME: &str = "network";

/// What has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    mediator: String,
    /// The reason why nothing could be sent.
    unreachable: Option<String>,
    passes: Vec<Pass>,
}

/// One length in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    direction: Direction,
    length: usize,
    arrives: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    To,
    From,
}

impl Network {
    /// Sends all lengths in both directions.
    pub(super) fn measure(mediator: &MediatorAddress) -> Self {
        let mut network = Self {
            mediator: mediator.to_string(),
            unreachable: None,
            passes: Vec::new(),
        };
        let client = match Client::connect(mediator) {
            Ok(client) => client,
            Err(error) => {
                network.unreachable = Some(error.to_string());
                return network;
            }
        };
        if client.announcement() == Announcement::Silent {
            network.unreachable = Some("it does not answer".to_owned());
            return network;
        }
        let proxy = client.device(Device::MEDIATOR).with_deadline(PATIENCE);
        for length in LENGTHS {
            for direction in [Direction::To, Direction::From] {
                let message = match direction {
                    Direction::To => padded_ping(length),
                    Direction::From => wanting(length),
                };
                network.passes.push(Pass {
                    direction,
                    length,
                    arrives: passes(&proxy, &message),
                });
            }
        }
        client.close();
        network
    }
}

fn passes(proxy: &Proxy, message: &Bytes) -> bool {
    (0..TRIES).any(|_| proxy.request_raw(message.clone()).is_ok())
}

/// A PING of this length. Its PONG is short.
fn padded_ping(length: usize) -> Bytes {
    let mut message = DriverMsg::default();
    message.set_kind(MsgType::Ping);
    let mut bytes = message.encode_to_vec();
    prost::encoding::bytes::encode(PADDING, &vec![0; length], &mut bytes);
    bytes.into()
}

/// A short request, with an answer of about this length: the explanations of counters, as many as
/// fit.
fn wanting(length: usize) -> Bytes {
    let what = request::What::ExplainCounters(ExplainCounters {});
    let message = DriverMsg {
        request: Some(Request { what: Some(what) }),
        max_answer_bytes: Some(length as u32),
        ..DriverMsg::data()
    };
    message.encode_to_vec().into()
}

/// The check of the network. PURE.
pub(super) fn judge(network: &Network) -> Check {
    let mediator = &network.mediator;
    if let Some(why) = &network.unreachable {
        return Check::problem(NAME, format!("no mediator is reached at {mediator}: {why}"))
            .hint("check the address, that a mediator is running there, and its firewall (UDP)");
    }
    let lost: Vec<_> = network.passes.iter().filter(|pass| !pass.arrives).collect();
    let Some(shortest) = lost.iter().map(|pass| pass.length).min() else {
        let lengths = LENGTHS.map(|length| length.to_string()).join(", ");
        return Check::ok(NAME, format!("{lengths} bytes pass to {mediator} and back"));
    };
    let ways = lost.iter().map(|pass| match pass.direction {
        Direction::To => format!("{} bytes to {mediator}", pass.length),
        Direction::From => format!("{} bytes from {mediator}", pass.length),
    });
    let ways = ways.collect::<Vec<_>>().join(", ");
    if shortest == LENGTHS[0] {
        return Check::problem(NAME, format!("lost: {ways}"))
            .hint("the network loses most datagrams: check cables, Wi-Fi and load");
    }
    Check::problem(NAME, format!("your network loses fragments: lost were {ways}"))
        .hint("lists, logs and scans time out; see \"Your network loses fragments\" in docs/troubleshooting.md")
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn network(longest: (usize, usize)) -> Network {
        let passes = LENGTHS.into_iter().flat_map(|length| {
            [(Direction::To, longest.0), (Direction::From, longest.1)].map(|(direction, most)| {
                Pass {
                    direction,
                    length,
                    arrives: length <= most,
                }
            })
        });
        Network {
            mediator: "robot:26233".into(),
            unreachable: None,
            passes: passes.collect(),
        }
    }

    #[test]
    fn lost_fragments_are_named_with_their_direction() {
        let check = judge(&network((7000, 7000)));
        assert_eq!(check.level, Level::Ok);
        assert_eq!(
            check.found,
            "100, 1400, 7000 bytes pass to robot:26233 and back"
        );
        let check = judge(&network((7000, 1400)));
        assert_eq!(check.level, Level::Problem);
        let words = "your network loses fragments: lost were 7000 bytes from robot:26233";
        assert_eq!(check.found, words);
        let check = judge(&network((100, 7000)));
        let words = "your network loses fragments: lost were 1400 bytes to robot:26233, \
                     7000 bytes to robot:26233";
        assert_eq!(check.found, words);
        assert!(
            judge(&network((0, 0)))
                .found
                .starts_with("lost: 100 bytes to")
        );
        let silent = Network {
            unreachable: Some("it does not answer".into()),
            ..network((0, 0))
        };
        assert!(judge(&silent).found.ends_with("it does not answer"));
    }

    #[test]
    fn messages_have_their_length() {
        for length in LENGTHS {
            let message = padded_ping(length);
            assert!((length..length + 20).contains(&message.len()));
            assert!(wanting(length).len() < 100);
        }
    }
}
