//! The clients against a device played here, over real sockets on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use amber_sdk::proto::{DeviceMessage, MsgType, Packet};
use amber_sdk::{Client, Error, WheelSpeeds};
use bytes::Bytes;
use prost::Message;

use crate::battery::{
    Battery, BatteryCharge, Cells, DriverMsg, Limits, Mode, Report, Test, Watch, blocking, test,
};

/// A mediator with a battery. Returns what the battery was sent, when the client leaves.
fn play() -> (SocketAddr, thread::JoinHandle<Vec<DriverMsg>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let address = socket.local_addr().unwrap();
    let device = thread::spawn(move || {
        let mut seen = Vec::new();
        loop {
            let mut buffer = [0; 2000];
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            let datagram = Bytes::copy_from_slice(&buffer[..length]);
            let packet = Packet::from_datagram(&datagram).unwrap();
            let mut asked = DriverMsg::decode(packet.message.clone()).unwrap();
            for answer in answers(&asked) {
                let packet = Packet {
                    header: packet.header.clone(),
                    message: answer.encode_to_vec().into(),
                };
                socket.send_to(&packet.encode().unwrap(), client).unwrap();
            }
            match asked.kind() {
                Some(MsgType::ClientDied) => return seen,
                Some(MsgType::Data) if packet.header.device_type == Some(177) => {
                    asked.set_syn(None);
                    seen.push(asked);
                }
                _ => {}
            }
        }
    });
    (address, device)
}

/// What the battery answers or publishes.
fn answers(asked: &DriverMsg) -> Vec<DriverMsg> {
    let mut answer = DriverMsg {
        ack_num: asked.syn_num,
        ..DriverMsg::data()
    };
    let cells = |volt| Cells {
        name: vec!["a".into(), "b".into()],
        volt,
    };
    if asked.kind() == Some(MsgType::Ping) {
        answer.set_kind(MsgType::Pong);
    } else if asked.kind() == Some(MsgType::Subscribe) {
        answer.ack_num = Some(0);
        let mut charge = answer.clone();
        charge.charge = Some(41);
        // The first one has no charge.
        return vec![answer, charge];
    } else if asked.get_charge.is_some() {
        (answer.charge, answer.voltage) = (Some(42), Some(12.5));
    } else if asked.mode == Some(Mode::Saving.into()) {
        answer.refused = Some("it is full".into());
    } else if asked.mode.is_some() {
        answer.mode = asked.mode;
    } else if asked.test.is_some() {
        answer.report = Some(Report {
            lines: vec!["fine".into()],
        });
    } else if asked.watch.as_ref().is_some_and(|watch| watch.on()) {
        answer.ack_num = Some(0);
        let (mut invalid, mut valid) = (answer.clone(), answer);
        invalid.cells = Some(cells(vec![1.5]));
        valid.cells = Some(cells(vec![1.5, 1.25]));
        return vec![invalid, valid];
    } else if asked.get_name.is_some() {
        answer.last_name = None;
    } else {
        return Vec::new();
    }
    vec![answer]
}

/// What `use_async` and `use_blocking` send.
fn expected() -> Vec<DriverMsg> {
    let watch = |on| DriverMsg {
        watch: Some(Watch {
            on: Some(on),
            cells: vec![1, 2],
            period: Some(250),
        }),
        ..DriverMsg::data()
    };
    vec![
        DriverMsg {
            get_charge: Some(true),
            ..DriverMsg::data()
        },
        DriverMsg {
            limits: Some(Limits {
                low: 10,
                high: 90,
                r#type: Some("a".into()),
            }),
            ..DriverMsg::data()
        },
        DriverMsg {
            mode: Some(Mode::Normal.into()),
            ..DriverMsg::data()
        },
        DriverMsg {
            mode: Some(Mode::Saving.into()),
            ..DriverMsg::data()
        },
        DriverMsg {
            test: Some(Test {
                kind: test::Kind::Load.into(),
                duration: Some(1500),
            }),
            ..DriverMsg::data()
        },
        watch(true),
        watch(false),
        DriverMsg {
            cells: Some(Cells {
                name: vec!["a".into()],
                volt: vec![1.5],
            }),
            ..DriverMsg::data()
        },
        DriverMsg {
            wheels: Some(WheelSpeeds::all(5).into()),
            names: vec!["x".into(), "y".into()],
            ..DriverMsg::data()
        },
        DriverMsg {
            get_name: Some(true),
            ..DriverMsg::data()
        },
    ]
}

const CHARGE: BatteryCharge = BatteryCharge {
    charge_percent: 42,
    voltage_v: Some(12.5),
};
const TEST: Option<Duration> = Some(Duration::from_millis(1500));
const PERIOD: Option<Duration> = Some(Duration::from_millis(250));

fn check_refusal(answer: amber_sdk::Result<Mode>) {
    match answer {
        Err(Error::Refused { message, .. }) => assert_eq!(message, "it is full"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_kind_of_method_works() {
    let (address, device) = play();
    let client = Client::connect(address).await.unwrap();
    let battery = Battery::of(&client, 3);
    assert_eq!(battery.address().to_string(), "177:3");
    assert!(battery.ping().await.is_ok());
    assert_eq!(battery.charge().await.unwrap(), CHARGE);
    battery.set_limits(10, 90, Some("a")).await.unwrap();
    assert_eq!(battery.set_mode(Mode::Normal).await.unwrap(), Mode::Normal);
    check_refusal(battery.set_mode(Mode::Saving).await);
    assert_eq!(battery.test(TEST).await.unwrap(), ["fine"]);
    let mut charges = battery.charges().await.unwrap();
    let charge = charges.next().await.unwrap().message;
    assert_eq!((charge.charge_percent, charge.voltage_v), (41, None));
    drop(charges);
    let mut cells = battery.cells(&[1, 2], PERIOD).await.unwrap();
    let update = cells.next().await.unwrap();
    assert_eq!(update.message, [("a".into(), 1.5), ("b".into(), 1.25)]);
    assert_eq!(update.undecodable, 1);
    drop(cells);
    battery.calibrate(&[("a".into(), 1.5)]).await.unwrap();
    let wheels = WheelSpeeds::all(5);
    battery.note(wheels, ["x", "y"]).await.unwrap();
    assert_eq!(battery.address_().await.unwrap(), None);
    client.close().await;
    check_sent(device.join().unwrap());
}

#[tokio::test]
async fn a_stream_with_another_period_ends_the_one_before_with_its_own_arguments() {
    let (address, device) = play();
    let client = Client::connect(address).await.unwrap();
    let battery = Battery::of(&client, 3);
    let usual = battery.cells(&[1], None).await.unwrap();
    let faster = battery.cells(&[1], PERIOD).await.unwrap();
    drop((usual, faster));
    // The end comes before the next answer.
    assert_eq!(battery.address_().await.unwrap(), None);
    client.close().await;
    let sent = device.join().unwrap();
    let watches = sent.into_iter().filter_map(|it| it.watch);
    let watches: Vec<_> = watches.map(|it| (it.on(), it.cells, it.period)).collect();
    let watch = |on, period_ms| (on, vec![1], period_ms);
    let expected = [
        watch(true, None),
        watch(false, None),
        watch(true, Some(250)),
        watch(false, Some(250)),
    ];
    assert_eq!(watches, expected);
}

#[test]
fn each_kind_of_method_works_without_async() {
    let (address, device) = play();
    let client = amber_sdk::blocking::Client::connect(address).unwrap();
    let battery = blocking::Battery::of(&client, 3).with_deadline(Duration::from_secs(5));
    assert_eq!(battery.address().to_string(), "177:3");
    assert!(battery.ping().is_ok());
    assert_eq!(battery.charge().unwrap(), CHARGE);
    battery.set_limits(10, 90, Some("a")).unwrap();
    assert_eq!(battery.set_mode(Mode::Normal).unwrap(), Mode::Normal);
    check_refusal(battery.set_mode(Mode::Saving));
    assert_eq!(battery.test(TEST).unwrap(), ["fine"]);
    let mut charges = battery.charges().unwrap();
    assert_eq!(charges.next().unwrap().message.charge_percent, 41);
    drop(charges);
    let mut cells = battery.cells(&[1, 2], PERIOD).unwrap();
    assert_eq!(cells.next().unwrap().message.len(), 2);
    drop(cells);
    battery.calibrate(&[("a".into(), 1.5)]).unwrap();
    battery.note(WheelSpeeds::all(5), ["x", "y"]).unwrap();
    assert_eq!(battery.address_().unwrap(), None);
    client.close();
    check_sent(device.join().unwrap());
}

/// A dropped subscription ends some time later, so its end counts for itself.
fn check_sent(mut sent: Vec<DriverMsg>) {
    let mut expected = expected();
    let is_end = |it: &DriverMsg| it.watch.as_ref().is_some_and(|watch| !watch.on());
    let ends: Vec<_> = sent.extract_if(.., |it| is_end(it)).collect();
    let end: Vec<_> = expected.extract_if(.., |it| is_end(it)).collect();
    assert_eq!(ends, end);
    assert_eq!(sent, expected);
}
