//! The rules for a proxy, on a virtual clock.

use amber_robot::robot::UserOrder;

use super::*;
use crate::galileo::codec::encode_reply;
use crate::galileo::server::{self, Server};
use crate::galileo::token::Token;
use crate::testing::robot;

const CLIENT: &str = "8.8.8.8:5000";
const ROBOT: &str = "192.168.0.132:3547";
const NAME: &str = "7c9ebd3a.3547.robot1.bwbot.org";
const ID: SessionId = SessionId([1, 2, 3, 4]);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn connect(authority: &str, path: &str) -> Vec<u8> {
    Frame::Connect(format!("udp://{authority}/{path}").as_bytes()).encode()
}

fn frame(op: Op<'_>) -> Vec<u8> {
    Frame::Session { id: ID, op }.encode()
}

/// A proxy with its outputs, and the time.
struct World {
    proxy: Proxy,
    out: Outputs,
    now: Now,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            listen: address("0.0.0.0:10427"),
            door: Door::default(),
            robots: vec![ProxiedRobot {
                id: "7C9EBD3A0123456789abcdef".into(),
                host: address(ROBOT).ip(),
                ports: vec![3547],
            }],
        };
        change(&mut config);
        let mut world = Self {
            proxy: Proxy::new(config),
            out: Outputs::default(),
            now: Now::from_millis(1_000),
        };
        world.proxy.start(&mut world.out);
        let listener = Output::Bind(LISTENER, address("0.0.0.0:10427"), Cast::Unicast);
        assert_eq!(world.outputs(), [listener]);
        world
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.out.take()).collect()
    }

    fn receive(&mut self, socket: Socket, from: &str, bytes: &[u8]) -> Vec<Output> {
        let datagram = Datagram {
            socket,
            from: address(from),
            bytes,
        };
        self.proxy
            .handle_datagram(self.now, datagram, &mut self.out);
        self.outputs()
    }

    fn client_sends(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.receive(LISTENER, CLIENT, bytes)
    }

    fn robot_sends(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.receive(Socket(FIRST), ROBOT, bytes)
    }

    /// A session that the robot has accepted.
    fn accepted() -> Self {
        let mut world = Self::new();
        world.client_sends(&connect(NAME, "scan"));
        let reply = encode_reply(Some(ID));
        assert_eq!(world.robot_sends(&reply), [to_client(&reply)]);
        world
    }

    /// A session whose client has sent a frame.
    fn proven() -> Self {
        let mut world = Self::accepted();
        let ping = frame(Op::Ping);
        assert_eq!(world.client_sends(&ping), [to_robot(&ping)]);
        world
    }

    /// Lets time pass; returns what happens.
    fn wait(&mut self, ms: u64) -> Vec<Output> {
        self.now.elapsed += Duration::from_millis(ms);
        if (self.proxy.next_timeout()).is_some_and(|due| due <= self.now.elapsed) {
            self.proxy.handle_timeout(self.now, &mut self.out);
        }
        self.outputs()
    }

    fn count(&self, reason: &str) -> u64 {
        self.out.tally.count(reason)
    }
}

fn to_robot(bytes: &[u8]) -> Output {
    Output::Send(Socket(FIRST), address(ROBOT), bytes.to_vec().into())
}

fn to_client(bytes: &[u8]) -> Output {
    Output::Send(LISTENER, address(CLIENT), bytes.to_vec().into())
}

fn ended() -> Output {
    Output::Unbind(Socket(FIRST))
}

#[test]
fn the_first_two_labels_name_the_robot_and_the_text_stays_as_it_is() {
    for name in [
        // As the C# and the TypeScript listing write it.
        "7c9ebd3a.3547.robot1.bwbot.org:3547",
        "7c9ebd3a.3547.robot1.bwbot.org:10427",
        "7C9EBD3A.3547.robot2.example",
        "7c9ebd3a.3547",
    ] {
        let mut world = World::new();
        let connect = connect(name, "cmd_vel?token=28b1c5&galileo_proxy_token=a");
        let any = address("0.0.0.0:0");
        let bound = Output::Bind(Socket(FIRST), any, Cast::Unicast);
        assert_eq!(world.client_sends(&connect), [bound, to_robot(&connect)]);
        let [session] = &world.proxy.sessions(world.now).collect::<Vec<_>>()[..] else {
            panic!("{name}");
        };
        assert!(session.purpose.ends_with(": cmd_vel"), "{session:?}");
        assert!(!format!("{:?}", world.proxy).contains("28b1c5"));
    }
}

#[test]
fn other_names_are_refused_ten_times_per_second() {
    let mut world = World::new();
    let refusal = encode_reply(None);
    for name in [
        "192.168.0.132:10427",
        "7c9ebd3b.3547.robot1.bwbot.org",
        "7c9ebd3a.22.robot1.bwbot.org",
        "7c9ebd3a.99999.robot1.bwbot.org",
        "7c9ebd3a.robot1.bwbot.org",
        "7c9ebd3a0.3547.robot1.bwbot.org",
        "7c9ebd3a",
        "",
    ] {
        assert_eq!(
            world.client_sends(&connect(name, "scan")),
            [to_client(&refusal)],
            "{name}"
        );
    }
    assert_eq!(world.count("unknown robot"), 8);
    let answers = (0..50).map(|_| world.client_sends(&connect("x.1", "scan")).len());
    assert_eq!(answers.sum::<usize>(), 2);
    assert_eq!(world.proxy.next_timeout(), None);
}

#[test]
fn a_proxy_may_have_a_token_of_its_own() {
    let mut world = World::with(|config| config.door.token = Some(Token::new("sesame")));
    let with = |token: &str| connect(NAME, &format!("scan?token=x&galileo_proxy_token={token}"));
    assert_eq!(world.client_sends(&with("sesame")).len(), 2);
    for other in [with("x"), with(""), connect(NAME, "scan?token=sesame")] {
        assert_eq!(world.receive(LISTENER, "8.8.8.9:1", &other).len(), 1);
    }
    for _ in 0..10 {
        world.receive(LISTENER, "8.8.8.9:2", &with("guess"));
    }
    assert_eq!(world.count("wrong token of the proxy"), 5);
    assert_eq!(world.count("too many wrong tokens"), 8);
    // Also with the right token, for a minute. Others are not affected.
    assert_eq!(world.receive(LISTENER, "8.8.8.9:3", &with("sesame")), []);
    assert_eq!(
        world.receive(LISTENER, "8.8.8.7:1", &with("sesame")).len(),
        2
    );
    world.wait(60_000);
    assert_eq!(
        world.receive(LISTENER, "8.8.8.9:3", &with("sesame")).len(),
        2
    );
}

#[test]
fn an_address_gets_only_the_reply_until_it_has_sent_a_frame() {
    let mut world = World::accepted();
    let scan = frame(Op::Text(b"{}"));
    assert_eq!(world.robot_sends(&scan), []);
    assert_eq!(world.robot_sends(&frame(Op::Ping)), []);
    assert_eq!(world.count("client not proven"), 2);
    assert_eq!(world.wait(999), []);
    assert_eq!(world.wait(1), [ended()]);

    let mut world = World::proven();
    assert_eq!(world.robot_sends(&scan), [to_client(&scan)]);
    // A copy of the connect changes nothing.
    let copy = connect(NAME, "scan");
    assert_eq!(world.client_sends(&copy), [to_robot(&copy)]);
    assert_eq!(world.robot_sends(&scan), [to_client(&scan)]);
    // A new session has to be proven again.
    let reply = encode_reply(Some(SessionId([9; 4])));
    assert_eq!(world.robot_sends(&reply), [to_client(&reply)]);
    assert_eq!(world.robot_sends(&scan), []);
    assert_eq!(world.count("unknown session"), 1);
}

#[test]
fn sessions_end_when_the_client_or_the_robot_is_silent() {
    let mut world = World::proven();
    assert_eq!(world.wait(9_999), []);
    world.client_sends(&frame(Op::Pong));
    assert_eq!(world.wait(9_999), []);
    // The robot does not keep it alive: it would talk to nobody.
    world.robot_sends(&frame(Op::Ping));
    assert_eq!(world.wait(1), [ended()]);

    let mut world = World::new();
    world.client_sends(&connect(NAME, "scan"));
    assert_eq!(world.wait(1_999), []);
    assert_eq!(world.wait(1), [ended()]);
}

#[test]
fn both_ends_may_close_and_the_robot_may_refuse() {
    let close = frame(Op::Close);
    assert_eq!(
        World::proven().client_sends(&close),
        [to_robot(&close), ended()]
    );
    let closed = [to_client(&close), ended()];
    assert_eq!(World::proven().robot_sends(&close), closed);
    assert_eq!(World::accepted().robot_sends(&close), closed);

    let mut world = World::new();
    world.client_sends(&connect(NAME, "scan"));
    let refusal = encode_reply(None);
    assert_eq!(world.robot_sends(&refusal), [to_client(&refusal), ended()]);

    let mut world = World::proven();
    world.proxy.stop(&mut world.out);
    let closed = [to_client(&close), to_robot(&close), ended()];
    assert_eq!(world.outputs(), closed);
}

#[test]
fn only_frames_of_the_session_pass() {
    let mut world = World::proven();
    let other = SessionId([1, 2, 3, 5]);
    let text = |id| {
        let op = Op::Text(b"{}");
        Frame::Session { id, op }.encode()
    };
    let op = Op::Close;
    let close = Frame::Session { id: other, op }.encode();
    assert_eq!(world.client_sends(&text(other)), [to_client(&close)]);
    assert_eq!(world.robot_sends(&text(other)), []);
    for bad in [
        &b""[..],
        b"\x02\x01",
        b"\x05hello",
        b"\x02\x01\x02\x03\x04\x07",
    ] {
        assert_eq!(world.client_sends(bad), []);
        assert_eq!(world.robot_sends(bad), []);
    }
    // From neither the client nor its robot.
    assert!(!world.proxy.knows(LISTENER, address("8.8.8.8:5001")));
    assert!(
        !world
            .proxy
            .knows(Socket(FIRST), address("192.168.0.132:3548"))
    );
    assert!(world.proxy.knows(LISTENER, address(CLIENT)));
    assert!(world.proxy.knows(Socket(FIRST), address(ROBOT)));
    let stranger = world.receive(Socket(FIRST), "192.168.0.132:3548", &text(ID));
    assert_eq!(stranger, []);
    assert_eq!(world.count("not from the robot"), 1);
    // Guessing of ids is silenced.
    for _ in 0..200 {
        world.receive(LISTENER, "9.9.9.9:1", &text(other));
    }
    assert_eq!(world.count("too many unknown sessions"), 99);
}

#[test]
fn sessions_are_limited_in_number_and_rate() {
    let mut world = World::new();
    let join = connect(NAME, "scan");
    let mut opened = |client: String| world.receive(LISTENER, &client, &join).len() == 2;
    let of_one = (1..=18).filter(|port| opened(format!("9.9.9.9:{port}")));
    assert_eq!(of_one.count(), 16);
    let of_all = (1..=120).filter(|host| opened(format!("9.9.8.{host}:1")));
    assert_eq!(of_all.count(), 112);
    assert_eq!(world.count("too many sessions of one address"), 2);
    assert_eq!(world.count("too many sessions"), 8);
    // Each has a socket of its own; the sockets are used again.
    assert!(world.proxy.has(Socket(FIRST + 127)) && !world.proxy.has(Socket(FIRST + 128)));
    // A program that has vanished gives its places to a new one.
    world.now.elapsed += Duration::from_secs(1);
    let connected = world.receive(LISTENER, "9.9.9.9:99", &join);
    let [Output::Unbind(gone), Output::Bind(..), Output::Send(..)] = connected[..] else {
        panic!("{connected:?}");
    };
    assert_eq!(gone, Socket(FIRST));
    world.wait(2_000);
    assert_eq!(world.proxy.routes.len(), 0);
    assert_eq!(world.client_sends(&join).len(), 2);

    let mut world = World::proven();
    let small = frame(Op::Text(b"{}"));
    let passed = (0..300).filter(|_| !world.robot_sends(&small).is_empty());
    assert_eq!(passed.count(), 199);
    let mut world = World::proven();
    let large = frame(Op::Text(&[b' '; 1_018]));
    let passed = (0..199).filter(|_| !world.robot_sends(&large).is_empty());
    // 125 000 bytes.
    assert_eq!(passed.count(), 122);
}

#[test]
fn a_client_drives_a_robot_through_the_proxy() {
    let mut world = World::new();
    let mut config = server::Config::new(robot());
    // For the robot, the proxy is a client.
    config.listen = address(ROBOT);
    let mut server = Server::new(config, Box::new(|| ID.0));
    let from_proxy = address("192.168.0.1:40000");
    let mut robots = Outputs::default();
    let mut orders = Vec::new();
    let text = Op::Text(br#"{"linear":{"x":0.2}}"#);
    let mut answers = Vec::new();
    for bytes in [connect(NAME, "cmd_vel"), frame(text), frame(Op::Ping)] {
        for output in world.client_sends(&bytes) {
            let Output::Send(_, _, bytes) = output else {
                continue;
            };
            let datagram = Datagram {
                socket: server::SOCKET,
                from: from_proxy,
                bytes: &bytes,
            };
            server.handle_datagram(world.now, datagram, &mut robots);
            while let Some(output) = robots.take() {
                match output {
                    Output::Send(_, _, bytes) => answers.extend(world.robot_sends(&bytes)),
                    Output::Order(_, UserOrder::Drive(_, speeds)) => orders.push(speeds),
                    _ => {}
                }
            }
        }
    }
    assert_eq!(orders, [amber_values::WheelSpeeds::all(200)]);
    let accept = to_client(&encode_reply(Some(ID)));
    assert_eq!(answers, [accept, to_client(&frame(Op::Pong))]);
}
