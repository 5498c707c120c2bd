//! Datagrams of other robot systems. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_gateways::apollo::frame::Frame;
use amber_gateways::apollo::limits::MAX_OPEN_TOTAL;
use amber_gateways::apollo::reassembly::Reassembly;
use amber_gateways::galileo::codec::{Frame as GalileoFrame, SessionId};
use amber_gateways::galileo::doorkeeper::Door;
use amber_gateways::galileo::limits::MAX_TEXT_OUT;
use amber_gateways::galileo::proxy::{self, Proxy};
use amber_gateways::galileo::server::{Config, Server};
use amber_gateways::json_relay::codec::Message;
use amber_gateways::json_relay::image;
use amber_gateways::json_relay::limits::MAX_IMAGE;
use amber_gateways::rflysim::codec::{self as rflysim_codec};
use amber_gateways::rflysim::ports::Port;
use amber_gateways::shared::clock::Now;
use amber_gateways::shared::machine::{Datagram, Output, Outputs, Socket};
use amber_navigation::kinematics::SkidSteer;
use amber_proto::Device;
use amber_robot::robot::{RobotSetup, UserOrder};
use amber_values::WheelSpeeds;

use crate::Input;

/// A packet of RflySim: what is understood is written again in the same length, and means the
/// same.
pub(super) fn rflysim(data: &[u8]) {
    let mut input = Input(data);
    let port = Port::ALL[usize::from(input.byte()) % Port::ALL.len()];
    if let Ok(packet) = rflysim_codec::decode(port, input.0) {
        assert_eq!(packet.port(), port);
        let again = packet.encode();
        assert_eq!(again.len(), input.0.len());
        // A NaN is not equal to itself.
        if packet.is_finite() {
            assert_eq!(rflysim_codec::decode(port, &again), Ok(packet));
        }
    }
}

/// Frames of the Apollo bridge from two sources: each is written again with the same content, and
/// the memory for incomplete messages stays within its limit.
pub(super) fn apollo(data: &[u8]) {
    let mut input = Input(data);
    let mut reassembly = Reassembly::new(None);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        let choice = input.byte();
        let source = IpAddr::from([127, 0, 0, choice & 1]);
        now += Duration::from_millis(u64::from(choice >> 1) * 4);
        let length = usize::from(input.number()).min(input.0.len());
        let (datagram, rest) = input.0.split_at(length);
        input = Input(rest);
        if let Ok((layout, frame)) = Frame::decode(datagram) {
            let again = frame.encode(layout);
            let found = Frame::decode(&again).expect("a frame that was written");
            assert_eq!((found.0, found.1.payload), (layout, frame.payload));
            assert_eq!(found.1.encode(layout), again);
            reassembly.handle_frame(now, 0.0, source, &frame);
            assert!(reassembly.used() <= MAX_OPEN_TOTAL);
        }
    }
}

/// Messages of the JSON relay, separated by line feeds: each is written again as the same message,
/// and the memory for incomplete images stays within its limit. The same bytes may be a JPEG file.
pub(super) fn json_relay(data: &[u8]) {
    if let Some((width, height)) = image::size_of_jpeg(data) {
        assert!(width > 0 && height > 0);
    }
    let mut reassembly = image::Reassembly::default();
    let source = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut now = Duration::ZERO;
    for datagram in data.split(|byte| *byte == b'\n') {
        now += Duration::from_millis(100);
        let Ok(message) = Message::decode(datagram) else {
            continue;
        };
        assert_eq!(Message::decode(&message.encode()), Ok(message.clone()));
        if let Message::ImageFragment {
            sequence,
            total,
            image,
            timestamp,
        } = message
        {
            let image = reassembly.handle_fragment(now, source, sequence, total, image, timestamp);
            assert!(reassembly.used() <= MAX_IMAGE);
            if let Some(image) = image {
                let _ = image.decode();
                assert_eq!(image.messages().len(), image.texts.len());
            }
        }
    }
}

/// A server of Galileo, four clients and the time: sessions stay within their number, datagrams
/// within their size, and all wheels stop at the end.
pub(super) fn galileo(data: &[u8]) {
    let mut input = Input(data);
    let robot = RobotSetup::with(SkidSteer::default());
    let mut last = 0_u32;
    let ids = move || {
        last += 1;
        last.to_le_bytes()
    };
    let mut server = Server::new(Config::new(robot), Box::new(ids));
    let mut out = Outputs::default();
    let mut now = Now::default();
    let mut moving = BTreeMap::new();
    while !input.is_empty() {
        let choice = input.byte();
        let bytes = input.0.get(..usize::from(choice >> 2)).unwrap_or(input.0);
        input.0 = &input.0[bytes.len()..];
        match choice % 4 {
            0 => {
                now.elapsed += Duration::from_millis(bytes.len() as u64 * 40);
                server.handle_timeout(now, &mut out);
            }
            kind => {
                let number = kind.min(2);
                // Mostly frames of a session that may exist.
                let framed = match GalileoFrame::decode(bytes) {
                    Ok(GalileoFrame::Session { op, .. }) => {
                        let id = SessionId(u32::from(number).to_le_bytes());
                        GalileoFrame::Session { id, op }.encode()
                    }
                    _ => bytes.to_vec(),
                };
                let from = SocketAddr::from(([127, 0, 0, 1], 5_000 + u16::from(number)));
                let datagram = Datagram {
                    socket: Socket(0),
                    from,
                    bytes: if kind == 3 { bytes } else { &framed },
                };
                server.handle_datagram(now, datagram, &mut out);
            }
        }
        take(&mut out, &mut moving);
        assert!(server.sessions(now).len() <= 2);
    }
    server.stop(now, &mut out);
    take(&mut out, &mut moving);
    assert!(moving.values().all(|speeds| *speeds == WheelSpeeds::STOP));
    assert_eq!(server.sessions(now), []);

    fn take(out: &mut Outputs, moving: &mut BTreeMap<Device, WheelSpeeds>) {
        while let Some(output) = out.take() {
            match output {
                Output::Send(_, _, bytes) => assert!(bytes.len() <= MAX_TEXT_OUT),
                Output::Order(_, UserOrder::Drive(device, speeds)) => {
                    assert!(speeds.fastest_mm_s() <= 1_200);
                    moving.insert(device, speeds);
                }
                _ => {}
            }
        }
    }
}

/// A proxy of Galileo with two clients and a robot: addresses get nothing but a reply before they are
/// proven, sessions stay within their number, and all sockets are closed at the end.
pub(super) fn galileo_proxy(data: &[u8]) {
    let mut input = Input(data);
    let robot = SocketAddr::from(([10, 0, 0, 1], 3547));
    let mut proxy = Proxy::new(proxy::Config {
        listen: SocketAddr::from(([0, 0, 0, 0], 10_427)),
        door: Door {
            token: None,
            max_sessions: 2,
            max_sessions_per_ip: 1,
        },
        robots: vec![proxy::ProxiedRobot {
            id: "7c9ebd3a".to_owned(),
            host: robot.ip(),
            ports: vec![robot.port()],
        }],
    });
    let (mut out, mut now) = (Outputs::default(), Now::default());
    let mut open = BTreeSet::new();
    while !input.is_empty() {
        let choice = input.byte();
        let bytes = input.0.get(..usize::from(choice >> 2)).unwrap_or(input.0);
        input.0 = &input.0[bytes.len()..];
        let client = SocketAddr::from(([127, 0, 0, choice & 1], 5_000));
        let (socket, from) = match choice % 4 {
            0 => {
                now.elapsed += Duration::from_millis(bytes.len() as u64 * 40);
                proxy.handle_timeout(now, &mut out);
                take(&mut out, &mut open);
                continue;
            }
            1 | 2 => (proxy::LISTENER, client),
            // Mostly the socket of a session.
            _ => (open.first().copied().unwrap_or(Socket(0)), robot),
        };
        let datagram = Datagram {
            socket,
            from,
            bytes,
        };
        proxy.handle_datagram(now, datagram, &mut out);
        let sent = take(&mut out, &mut open);
        // At most one answer, no longer than the question or a reply.
        assert!(sent.len() <= 1, "{sent:?}");
        assert!(sent.iter().all(|it| *it <= bytes.len().max(64)));
        assert!(proxy.sessions(now).count() <= 2 && open.len() <= 2);
    }
    now.elapsed += Duration::from_secs(10);
    proxy.handle_timeout(now, &mut out);
    take(&mut out, &mut open);
    assert_eq!((open.len(), proxy.next_timeout()), (0, None));

    /// Notes the sockets; returns the lengths of what is sent.
    fn take(out: &mut Outputs, open: &mut BTreeSet<Socket>) -> Vec<usize> {
        let mut sent = Vec::new();
        while let Some(output) = out.take() {
            match output {
                Output::Send(_, _, bytes) => sent.push(bytes.len()),
                Output::Bind(socket, ..) => assert!(open.insert(socket)),
                Output::Unbind(socket) => assert!(open.remove(&socket)),
                _ => {}
            }
        }
        sent
    }
}
