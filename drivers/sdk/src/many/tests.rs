//! Tests of several devices in one process; the test is the mediator.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use amber_proto::SynNum;
use tokio::sync::Notify;

use super::*;
use crate::devices::dummy::{self, DriverMsg, DummyDriver, DummyLink, StatusAnswer};
use crate::devices::ninedof;
use crate::devices::tests::{Gauge, Lamp};
use crate::testing::{Mediator, from, from_to, run as run_test};
use crate::{Outcome, Reply};

const LAMP: Device = Device::new(DeviceType::DUMMY, 0);
const GAUGE: Device = Device::new(DeviceType::NINEDOF, 2);
const SLOW: Device = Device::new(DeviceType::DUMMY, 7);
const REMOTE: Device = Device::new(DeviceType::DUMMY, 9);

/// A Dummy whose handlers wait, for a notification or another device.
#[derive(Default)]
struct Slow {
    link: Option<DummyLink>,
    cannot_start: bool,
    go: Rc<Notify>,
    notes: Rc<RefCell<Vec<&'static str>>>,
}

impl DummyDriver for Slow {
    async fn start(&mut self, link: DummyLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        match self.cannot_start {
            true => Err("it is missing".into()),
            false => Ok(()),
        }
    }

    async fn status(&mut self, reply: Reply<StatusAnswer>) {
        let link = self.link.as_ref().unwrap();
        let status = link.devices().dummy(9).status().await.unwrap();
        reply.send(StatusAnswer {
            enable: false,
            message: status.message,
        });
    }

    async fn enable(&mut self, _: bool, outcome: Outcome) {
        self.go.notified().await;
        outcome.done();
    }

    async fn message(&mut self, message: String, outcome: Outcome) {
        let link = self.link.as_ref().unwrap();
        match message.is_empty() {
            true => link.recovered(),
            false => link.trouble(&message),
        }
        outcome.done();
    }

    async fn shutdown(&mut self) {
        self.notes.borrow_mut().push("shutdown");
    }
}

/// Serves during the scenario, and then until the end of stdin.
fn check(devices: Devices, scenario: impl AsyncFnOnce(&mut Mediator)) {
    run_test(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let serving = serve_many_as(Peer::Amber, pending(), devices, reader, writer);
        let (served, ()) = tokio::join!(serving, async {
            scenario(&mut mediator).await;
            mediator.close().await;
            assert_eq!(mediator.read().await, None);
        });
        served.unwrap();
    });
}

fn get_status(syn: u32) -> DriverMsg {
    let mut message = DriverMsg {
        get_status: Some(true),
        ..DriverMsg::data()
    };
    message.set_syn(Some(SynNum(syn)));
    message
}

fn text(text: &str) -> DriverMsg {
    DriverMsg {
        message: Some(text.into()),
        ..DriverMsg::data()
    }
}

/// The number and the text of the next message, whose header must be this.
async fn hear(mediator: &mut Mediator, header: DriverHdr) -> (Option<u32>, String) {
    let packet = mediator.read().await.expect("the driver still runs");
    assert_eq!(packet.header, header);
    let message = DriverMsg::decode(packet.message).unwrap();
    (message.ack_num, message.message.unwrap_or_default())
}

#[test]
fn frames_go_to_the_device_that_they_name() {
    let packet = |header, kind| Packet {
        header,
        message: mediator::DriverMsg::of_kind(kind).encode_to_vec().into(),
    };
    let data = |header| packet(header, MsgType::Data);
    let of_remote = DriverHdr {
        client_ids: Vec::new(),
        ..from_to(5, REMOTE)
    };
    let nobody = DriverHdr::default();
    let both = &[LAMP, GAUGE][..];
    for (devices, packet, expected) in [
        (both, data(from_to(5, LAMP)), Addressee::One(0)),
        (both, data(from_to(5, GAUGE)), Addressee::One(1)),
        (both, data(from_to(5, REMOTE)), Addressee::Nobody),
        (both, data(of_remote), Addressee::Client),
        (both, data(from(5)), Addressee::Nobody),
        (&[LAMP], data(from(5)), Addressee::One(0)),
        (both, packet(nobody, MsgType::Ping), Addressee::One(0)),
        (both, packet(from(5), MsgType::ClientDied), Addressee::All),
        (&[], packet(from(5), MsgType::Ping), Addressee::Nobody),
        (
            both,
            packet(from_to(5, GAUGE), MsgType::ClientDied),
            Addressee::One(1),
        ),
    ] {
        assert_eq!(addressee(devices, &packet), expected, "{packet:?}");
    }
}

#[test]
fn devices_of_two_types_answer_and_publish_on_their_own() {
    let (lamp, gauge) = (Lamp::default(), Gauge::default());
    let (lamp_notes, gauge_notes) = (lamp.notes.clone(), gauge.notes.clone());
    let devices = Devices::new()
        .add(LAMP, dummy::driver(lamp))
        .add(GAUGE, ninedof::driver(gauge));
    check(devices, async |mediator| {
        mediator.write(from_to(5, LAMP), &text("hello")).await;
        mediator.write(from_to(5, LAMP), &get_status(1)).await;
        let heard = hear(mediator, from_to(5, LAMP)).await;
        assert_eq!(heard, (Some(1), "hello".into()));

        // A PING of the mediator itself gets one PONG.
        let ping = DriverMsg::of_kind(MsgType::Ping);
        mediator.write(DriverHdr::default(), &ping).await;
        let pong = mediator.read().await.unwrap();
        assert_eq!(pong.message[..], b"\x10\x03"[..]);
        mediator.expect_silence(Duration::from_secs(1)).await;

        let subscribe = DriverMsg::of_kind(MsgType::Subscribe);
        mediator.write(from_to(5, LAMP), &subscribe).await;
        let readings = ninedof::DriverMsg {
            subscribe_action: Some(ninedof::SubscribeAction {
                freq: Some(1000),
                ..ninedof::SubscribeAction::default()
            }),
            ..ninedof::DriverMsg::data()
        };
        mediator.write(from_to(5, GAUGE), &readings).await;
        let mut headers = Vec::new();
        for _ in 0..6 {
            headers.push(mediator.read().await.unwrap().header);
        }
        let of = |device| {
            let header = from_to(5, device);
            headers.iter().filter(|it| **it == header).count()
        };
        assert_eq!((of(LAMP), of(GAUGE)), (3, 3));

        // The client leaves one device only.
        let died = DriverMsg::of_kind(MsgType::ClientDied);
        mediator.write(from_to(5, LAMP), &died).await;
        mediator.write(from_to(5, LAMP), &ping).await;
        // What was published before it is still in transit.
        while mediator.read().await.unwrap().message[..] != b"\x10\x03"[..] {}
        for _ in 0..3 {
            let packet = mediator.read().await.unwrap();
            assert_eq!(packet.header, from_to(5, GAUGE));
        }
        mediator.write(from_to(5, GAUGE), &died).await;
        mediator.expect_silence(Duration::from_secs(5)).await;
    });
    assert_eq!(*lamp_notes.borrow(), ["5 is gone", "shutdown"]);
    assert_eq!(*gauge_notes.borrow(), ["start 5", "gone 5"]);
}

#[test]
fn a_handler_that_waits_delays_no_other_device() {
    let slow = Slow::default();
    let go = slow.go.clone();
    let devices = Devices::new()
        .add(SLOW, dummy::driver(slow))
        .add(LAMP, dummy::driver(Lamp::default()));
    check(devices, async |mediator| {
        let enable = DriverMsg {
            enable: Some(true),
            ..DriverMsg::data()
        };
        mediator.write(from_to(5, SLOW), &enable).await;
        mediator.write(from_to(5, LAMP), &get_status(1)).await;
        assert_eq!(hear(mediator, from_to(5, LAMP)).await.0, Some(1));
        go.notify_one();
    });
}

#[test]
fn trouble_is_that_of_the_device() {
    let devices = Devices::new()
        .add(SLOW, dummy::driver(Slow::default()))
        .add(LAMP, dummy::driver(Lamp::default()));
    check(devices, async |mediator| {
        for trouble in ["no power", ""] {
            mediator.write(from_to(5, SLOW), &text(trouble)).await;
            let packet = mediator.read().await.unwrap();
            let header = DriverHdr {
                client_ids: Vec::new(),
                ..from_to(5, SLOW)
            };
            assert_eq!(packet.header, header);
            let message = mediator::DriverMsg::decode(packet.message).unwrap();
            let found = message.health.unwrap().trouble().unwrap();
            assert_eq!(found.unwrap_or_default(), trouble);
        }
    });
}

/// A driver of a device that the mediator does not know.
struct Described;

impl Driver for Described {
    type Message = DriverMsg;

    fn description(&self) -> Option<&'static [u8]> {
        Some(b"files")
    }

    async fn request(&mut self, _: crate::Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }
}

#[test]
fn a_description_names_its_device() {
    let devices = Devices::new()
        .add(SLOW, dummy::driver(Slow::default()))
        .add(LAMP, Described);
    check(devices, async |mediator| {
        let packet = mediator.read().await.unwrap();
        let header = DriverHdr {
            client_ids: Vec::new(),
            ..from_to(5, LAMP)
        };
        assert_eq!(packet.header, header);
        let message = mediator::DriverMsg::decode(packet.message).unwrap();
        assert_eq!(message.description.unwrap().files[..], b"files"[..]);
    });
}

#[test]
fn all_devices_share_the_client_for_calls() {
    let devices = Devices::new()
        .add(SLOW, dummy::driver(Slow::default()))
        .add(LAMP, dummy::driver(Slow::default()));
    check(devices, async |mediator| {
        let mut numbers = Vec::new();
        for (device, syn) in [(SLOW, 1), (LAMP, 2)] {
            mediator.write(from_to(5, device), &get_status(syn)).await;
            let mut packet = mediator.read().await.unwrap();
            while packet.header.device_type == Some(0) {
                // The client looks for the mediator itself.
                packet = mediator.read().await.unwrap();
            }
            let header = DriverHdr {
                client_ids: Vec::new(),
                ..from_to(5, REMOTE)
            };
            assert_eq!(packet.header, header);
            let request = DriverMsg::decode(packet.message).unwrap();
            numbers.push(request.syn().unwrap());
        }
        assert_ne!(numbers[0], numbers[1], "one client numbers all calls");
        // The answers come in the other order.
        for (index, device, syn) in [(1, LAMP, 2), (0, SLOW, 1)] {
            let mut answer = text(&format!("answer {index}"));
            answer.enable = Some(false);
            answer.set_ack(Some(numbers[index]));
            let header = DriverHdr {
                client_ids: Vec::new(),
                ..from_to(5, REMOTE)
            };
            mediator.write(header, &answer).await;
            let heard = hear(mediator, from_to(5, device)).await;
            assert_eq!(heard, (Some(syn), format!("answer {index}")));
        }
    });
}

#[test]
fn a_device_that_cannot_start_ends_all() {
    let well = Slow::default();
    let notes = well.notes.clone();
    let broken = Slow {
        cannot_start: true,
        ..Slow::default()
    };
    let devices = Devices::new()
        .add(SLOW, dummy::driver(well))
        .add(LAMP, dummy::driver(broken));
    run_test(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let served = serve_many_as(Peer::Amber, pending(), devices, reader, writer).await;
        assert!(matches!(served, Err(ServeError::Start(_))), "{served:?}");
        assert_eq!(mediator.read().await, None);
    });
    assert_eq!(*notes.borrow(), ["shutdown"]);
}

#[test]
fn a_signal_or_an_invalid_frame_shuts_all_devices_down() {
    for signal in [true, false] {
        let (one, two) = (Slow::default(), Slow::default());
        let notes = [one.notes.clone(), two.notes.clone()];
        let devices = Devices::new()
            .add(SLOW, dummy::driver(one))
            .add(LAMP, dummy::driver(two));
        run_test(async {
            let (mut mediator, reader, writer) = Mediator::new();
            let stop = async {
                match signal {
                    true => {}
                    false => pending().await,
                }
            };
            let (served, ()) = tokio::join!(
                serve_many_as(Peer::Amber, stop, devices, reader, writer),
                async {
                    if !signal {
                        // A header that is no message.
                        mediator.write_raw(b"\0\x01\xff\0\0").await;
                    }
                    assert_eq!(mediator.read().await, None);
                }
            );
            assert_eq!(served.is_ok(), signal, "{served:?}");
        });
        for notes in notes {
            assert_eq!(*notes.borrow(), ["shutdown"]);
        }
    }
}
