//! A driver between two pipes, and the test as the mediator at their ends.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;

use amber_proto::dummy::DriverMsg;
use amber_proto::{ClientId, DeviceMessage, DeviceType, DriverHdr, MsgType, SynNum, mediator};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::{Origin, Request, SendError};

/// A driver that notes down what happens, and what it is asked with a message
/// says how it behaves.
#[derive(Default)]
struct Probe {
    notes: Notes,
    link: Option<Link<DriverMsg>>,
    period: Option<Duration>,
    publishing_takes: Duration,
    published: u64,
    go: Rc<Notify>,
}

type Notes = Rc<RefCell<Vec<String>>>;

impl Probe {
    fn note(&self, text: impl Into<String>) {
        self.notes.borrow_mut().push(text.into());
    }
}

impl Driver for Probe {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let text = request.message.message.unwrap_or_default();
        self.note(text.clone());
        let link = self.link.clone().unwrap();
        match text.as_str() {
            "wait" => self.go.notified().await,
            "publish" => link.publish(data("published")).unwrap(),
            "publish to it" => {
                link.publish_to(&request.origin, data("published")).unwrap();
                return None;
            }
            "answer later" => {
                let go = self.go.clone();
                spawn_local(async move {
                    go.notified().await;
                    link.answer(&request.origin, data("later")).unwrap();
                });
                return None;
            }
            "break" => link.trouble("it is\nbroken"),
            "break one" => link.trouble_for(Device::new(DeviceType::DUMMY, 0), "loose"),
            "mend" => link.recovered(),
            "mend one" => link.recovered_for(Device::new(DeviceType::DUMMY, 0)),
            "call" => {
                let status = link.devices().dummy(1).status().await;
                return Some(data(&match status {
                    Ok(status) => status.message,
                    Err(error) => error.to_string(),
                }));
            }
            "answer too much" => return Some(data(&"x".repeat(32_768))),
            "publish too much" => {
                let error = link.publish(data(&"x".repeat(32_768))).unwrap_err();
                assert!(matches!(error, SendError::TooLong(_)));
                return Some(data(&error.to_string()));
            }
            _ => {}
        }
        Some(data(&text))
    }

    fn period(&self) -> Option<Duration> {
        self.period
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        sleep(self.publishing_takes).await;
        self.published += 1;
        Some(data(&self.published.to_string()))
    }

    async fn subscribed(&mut self, client: ClientId) {
        self.note(format!("{client} subscribed"));
    }

    async fn client_died(&mut self, client: ClientId) {
        self.note(format!("{client} died"));
    }

    async fn shutdown(&mut self) {
        self.note("shutdown");
        sleep(Duration::from_millis(1)).await;
        let everybody = Origin {
            clients: vec![ClientId(99)],
            ..Origin::default()
        };
        let link = self.link.as_ref().unwrap();
        link.publish_to(&everybody, data("bye")).unwrap();
    }
}

/// The mediator's ends of the pipes.
struct Mediator {
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    buffer: BytesMut,
    notes: Notes,
    go: Rc<Notify>,
    stop: Rc<Notify>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Mediator {
    fn start(probe: Probe) -> Self {
        Self::with_pipes(probe, 64 * 1024)
    }

    fn with_pipes(probe: Probe, bytes: usize) -> Self {
        Self::of_peer(Peer::Amber, probe, bytes)
    }

    fn of_peer(peer: Peer, probe: Probe, bytes: usize) -> Self {
        let (to_driver, reader) = duplex(bytes);
        let (writer, from_driver) = duplex(bytes);
        let (notes, go) = (probe.notes.clone(), probe.go.clone());
        let stop = Rc::new(Notify::new());
        let stopped = stop.clone();
        let served = spawn_local(async move {
            serve_peer(peer, stopped.notified(), probe, reader, writer).await
        });
        Self {
            to_driver,
            from_driver,
            buffer: BytesMut::new(),
            notes,
            go,
            stop,
            served,
        }
    }

    async fn write(&mut self, client: i32, message: DriverMsg) {
        let packet = packet(client, &message);
        self.to_driver
            .write_all(&packet.encode().unwrap())
            .await
            .unwrap();
    }

    async fn ask(&mut self, syn: u32, text: &str) {
        let mut message = data(text);
        message.set_syn(Some(SynNum(syn)));
        self.write(5, message).await;
    }

    async fn tell(&mut self, client: i32, kind: MsgType) {
        self.write(client, DriverMsg::of_kind(kind)).await;
    }

    async fn ping(&mut self, syn: u32) {
        let mut message = DriverMsg::of_kind(MsgType::Ping);
        message.set_syn(Some(SynNum(syn)));
        self.write(5, message).await;
    }

    /// The next frame; `None` at the end.
    async fn read(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.buffer).unwrap() {
                return Some(packet);
            }
            if self.from_driver.read_buf(&mut self.buffer).await.unwrap() == 0 {
                assert!(self.buffer.is_empty());
                return None;
            }
        }
    }

    /// The next message and whom it is for.
    async fn hear(&mut self) -> (Vec<i32>, DriverMsg) {
        let packet = self.read().await.expect("the driver still runs");
        let message = DriverMsg::decode(packet.message).unwrap();
        (packet.header.client_ids, message)
    }

    async fn expect(&mut self, client: i32, ack: u32, text: &str) {
        let mut message = data(text);
        message.set_ack(Some(SynNum(ack)));
        assert_eq!(self.hear().await, (vec![client], message));
    }

    /// The first request to another device; the driver announces itself before.
    async fn read_first_call(&mut self) -> Packet {
        let ping = self.read().await.unwrap();
        let mediator = (ping.header.device_type, ping.header.device_id);
        assert_eq!(mediator, (Some(0), Some(0)));
        let ping = DriverMsg::decode(ping.message).unwrap();
        assert_eq!(ping.kind(), Some(MsgType::Ping));
        self.read().await.unwrap()
    }

    async fn expect_pong(&mut self, syn: u32) {
        let mut message = DriverMsg::of_kind(MsgType::Pong);
        message.set_ack(Some(SynNum(syn)));
        assert_eq!(self.hear().await, (vec![5], message));
    }

    /// What the driver says about all its devices, or the one with this id.
    async fn expect_health(&mut self, id: Option<i32>, trouble: Option<&str>) {
        let packet = self.read().await.expect("the driver still runs");
        let header = DriverHdr {
            device_type: id.map(|_| DeviceType::DUMMY.0),
            device_id: id,
            client_ids: Vec::new(),
        };
        assert_eq!(packet.header, header);
        let message = mediator::DriverMsg::decode(packet.message).unwrap();
        assert_eq!(message.kind(), Some(MsgType::Data));
        assert_eq!((message.syn(), message.ack()), (None, None));
        let trouble = Ok(trouble.map(str::to_owned));
        assert_eq!(message.health.unwrap().trouble(), trouble);
    }

    /// Closes stdin and waits for the end.
    async fn end(mut self) -> Result<(), ServeError> {
        self.to_driver.shutdown().await.unwrap();
        self.expect(99, 0, "bye").await;
        assert_eq!(self.read().await, None);
        let result = (&mut self.served).await.unwrap();
        assert_eq!(self.notes.borrow().last().unwrap(), "shutdown");
        result
    }
}

fn data(text: &str) -> DriverMsg {
    DriverMsg {
        message: Some(text.into()),
        ..DriverMsg::data()
    }
}

fn published(text: &str) -> DriverMsg {
    DriverMsg {
        ack_num: Some(0),
        ..data(text)
    }
}

fn packet(client: i32, message: &DriverMsg) -> Packet {
    Packet {
        header: DriverHdr {
            client_ids: vec![client],
            ..DriverHdr::default()
        },
        message: message.encode_to_vec().into(),
    }
}

/// Runs on one thread with a clock that jumps to whatever comes next.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

#[test]
fn requests_are_answered_in_order_and_the_end_of_stdin_is_the_end() {
    run(async {
        // The pipe holds far more requests than may wait in the driver.
        let mut mediator = Mediator::with_pipes(Probe::default(), 1 << 20);
        for syn in 1..=5_000 {
            mediator.ask(syn, "").await;
        }
        for syn in 1..=5_000 {
            mediator.expect(5, syn, "").await;
        }
        mediator.tell(5, MsgType::ClientDied).await;
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(notes.borrow()[5_000..], ["5 died", "shutdown"]);
    });
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "hello").await;
        mediator.ask(2, "bye").await;
        mediator.to_driver.shutdown().await.unwrap();
        mediator.expect(5, 1, "hello").await;
        mediator.expect(5, 2, "bye").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn frames_that_come_byte_by_byte_are_read() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 1);
        mediator.to_driver.write_all(&[]).await.unwrap();
        mediator.ask(1, "hello").await;
        mediator.expect(5, 1, "hello").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn trouble_and_its_end_are_told_to_the_mediator_once() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        for (syn, text) in [(1, "mend"), (2, "break")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(None, Some("it is broken")).await;
        for (syn, text) in [(3, "break"), (4, "break one")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(Some(0), Some("loose")).await;
        mediator.ask(5, "mend one").await;
        mediator.expect(5, 5, "mend one").await;
        mediator.expect_health(Some(0), None).await;
        mediator.ask(6, "mend").await;
        mediator.expect(5, 6, "mend").await;
        mediator.expect_health(None, None).await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn trouble_never_waits_and_its_last_state_arrives_when_nobody_reads() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 16);
        mediator.ask(1, "wait").await;
        while mediator.notes.borrow().is_empty() {
            tokio::task::yield_now().await;
        }
        // Fills the pipe, which holds less than an answer.
        mediator.go.notify_one();
        for (syn, text) in [(2, "break"), (3, "mend"), (4, "break"), (5, "break one")] {
            mediator.ask(syn, text).await;
        }
        let asked = mediator.notes.clone();
        while asked.borrow().len() < 5 {
            tokio::task::yield_now().await;
        }
        let mut last = HashMap::new();
        mediator.to_driver.shutdown().await.unwrap();
        while let Some(packet) = mediator.read().await {
            let message = mediator::DriverMsg::decode(packet.message).unwrap();
            if let Some(health) = message.health {
                last.insert(packet.header.device_id, health.text);
            }
        }
        let expected = [(None, "it is broken"), (Some(0), "loose")];
        let expected = expected.map(|(id, text)| (id, Some(text.to_owned())));
        assert_eq!(last, HashMap::from(expected));
    });
}

#[test]
fn a_mediator_that_may_be_an_old_one_hears_nothing_of_trouble() {
    run(async {
        let mut mediator = Mediator::of_peer(Peer::Unknown, Probe::default(), 4096);
        for (syn, text) in [(1, "break"), (2, "break one"), (3, "mend")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.end().await.unwrap();
    });
}

#[test]
fn pings_are_answered_while_a_handler_waits() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ask(2, "next").await;
        mediator.ping(3).await;
        mediator.expect_pong(3).await;
        assert_eq!(*mediator.notes.borrow(), ["wait"]);
        mediator.go.notify_one();
        mediator.expect(5, 1, "wait").await;
        mediator.expect(5, 2, "next").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn subscribers_hear_ten_a_second_and_nobody_hears_nothing() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(100)),
            ..Probe::default()
        });
        // Long before anybody listens.
        sleep(Duration::from_secs(10)).await;
        mediator.tell(5, MsgType::Subscribe).await;
        mediator.tell(6, MsgType::Subscribe).await;
        let start = Instant::now();
        for n in 1..=600u32 {
            let (clients, message) = mediator.hear().await;
            assert_eq!(clients, [5, 6]);
            assert_eq!(message.ack_num, Some(0));
            assert_eq!(message.message, Some(n.to_string()));
            let late = start.elapsed() - Duration::from_millis(100) * (n - 1);
            assert!(late <= Duration::from_millis(2), "{n} is late by {late:?}");
        }
        mediator.tell(5, MsgType::ClientDied).await;
        mediator.tell(6, MsgType::Unsubscribe).await;
        sleep(Duration::from_secs(10)).await;
        mediator.ping(1).await;
        mediator.expect_pong(1).await;
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(
            *notes.borrow(),
            ["5 subscribed", "6 subscribed", "5 died", "shutdown"]
        );
    });
}

#[test]
fn a_busy_driver_does_not_make_up_for_what_it_missed() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(100)),
            ..Probe::default()
        });
        mediator.tell(5, MsgType::Subscribe).await;
        mediator.expect(5, 0, "1").await;
        mediator.ask(1, "wait").await;
        sleep(Duration::from_secs(1)).await;
        mediator.go.notify_one();
        let start = Instant::now();
        mediator.expect(5, 1, "wait").await;
        mediator.expect(5, 0, "2").await;
        mediator.expect(5, 0, "3").await;
        mediator.expect(5, 0, "4").await;
        assert!(start.elapsed() > Duration::from_millis(100));
        mediator.end().await.unwrap();
    });
}

#[test]
fn publishing_all_the_time_leaves_time_for_requests() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(1)),
            publishing_takes: Duration::from_millis(5),
            ..Probe::default()
        });
        mediator.tell(6, MsgType::Subscribe).await;
        mediator.ask(1, "hello").await;
        let mut heard = 0;
        while mediator.hear().await.1.ack_num != Some(1) {
            heard += 1;
            assert!(heard < 10);
        }
        mediator.to_driver.shutdown().await.unwrap();
        let start = Instant::now();
        while mediator.hear().await.1 != published("bye") {}
        assert!(start.elapsed() < Duration::from_millis(100));
    });
}

#[test]
fn a_link_publishes_and_answers_later() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.tell(7, MsgType::Subscribe).await;
        mediator.ask(1, "publish").await;
        let heard = [mediator.hear().await, mediator.hear().await];
        let find = |ack| heard.iter().find(|(_, m)| m.ack_num == Some(ack)).unwrap();
        assert_eq!(find(0).0, [7]);
        assert_eq!(find(0).1.message.as_deref(), Some("published"));
        assert_eq!(find(1).0, [5]);

        mediator.ask(2, "publish to it").await;
        mediator.expect(5, 0, "published").await;

        mediator.ask(2, "answer later").await;
        mediator.ask(3, "hello").await;
        mediator.expect(5, 3, "hello").await;
        mediator.go.notify_one();
        mediator.expect(5, 2, "later").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_handler_calls_another_device_and_pings_are_answered_meanwhile() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "call").await;
        let call = mediator.read_first_call().await;
        let other = DriverHdr {
            device_type: Some(5),
            device_id: Some(1),
            client_ids: vec![],
        };
        assert_eq!(call.header, other);
        let question = DriverMsg::decode(call.message).unwrap();
        assert_eq!(question.kind(), Some(MsgType::Data));
        assert_eq!(question.get_status, Some(true));

        mediator.ping(2).await;
        mediator.expect_pong(2).await;

        let mut answer = data("I am another");
        answer.enable = Some(true);
        answer.set_ack(question.syn());
        let packet = Packet {
            header: other,
            message: answer.encode_to_vec().into(),
        };
        mediator
            .to_driver
            .write_all(&packet.encode().unwrap())
            .await
            .unwrap();
        mediator.expect(5, 1, "I am another").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_call_to_a_device_that_has_died_fails() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "call").await;
        let call = mediator.read_first_call().await;
        let packet = Packet {
            header: call.header,
            message: DriverMsg::of_kind(MsgType::DriverDied)
                .encode_to_vec()
                .into(),
        };
        let start = Instant::now();
        mediator
            .to_driver
            .write_all(&packet.encode().unwrap())
            .await
            .unwrap();
        let (_, answer) = mediator.hear().await;
        let error = answer.message.unwrap();
        assert!(error.contains("dummy:1"), "{error}");
        assert!(
            start.elapsed() < Duration::from_millis(100),
            "it was waited for: {error}"
        );
        mediator.end().await.unwrap();
    });
}

#[test]
fn what_is_too_long_is_an_error_and_the_stream_goes_on() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "answer too much").await;
        mediator.ask(2, "publish too much").await;
        mediator
            .expect(5, 2, "a message of 32775 bytes is longer than 32767")
            .await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_link_knows_whether_somebody_listens() {
    run(async {
        let probe = Probe::default();
        let (link, _commands) = {
            let (subscriptions, watched) = watch::channel(0);
            let (outgoing, _) = mpsc::channel(1);
            let (_, incoming) = mpsc::channel(1);
            let transport = ChannelTransport::new(outgoing, incoming, Role::Driver);
            let (link, commands) = Link::<DriverMsg>::new(Client::over(transport), watched);
            let mut waiting = link.clone();
            let waited = spawn_local(async move { waiting.listened_to().await });
            subscriptions.send(2).unwrap();
            assert!(waited.await.unwrap());
            assert_eq!(link.subscriptions(), 2);
            subscriptions.send(0).unwrap();
            (link, commands)
        };
        let mut link = link;
        assert!(!link.listened_to().await);
        drop(probe);
    });
}

#[test]
fn a_handler_that_hangs_does_not_outlive_stdin() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ask(2, "never").await;
        let start = Instant::now();
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(*notes.borrow(), ["wait", "shutdown"]);
        assert!(start.elapsed() >= LAST_REQUESTS);
    });
}

#[test]
fn being_stopped_cancels_the_handler() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "wait").await;
        mediator.ping(2).await;
        mediator.expect_pong(2).await;
        mediator.stop.notify_one();
        (&mut mediator.served).await.unwrap().unwrap();
        assert_eq!(*mediator.notes.borrow(), ["wait", "shutdown"]);
    });
}

#[test]
fn what_is_no_frame_ends_it_with_an_error_but_in_order() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator
            .to_driver
            .write_all(b"Hello, driver!\n")
            .await
            .unwrap();
        match mediator.end().await {
            Err(ServeError::Read(error)) => assert_eq!(error.kind(), io::ErrorKind::InvalidData),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_mediator_that_has_gone_is_no_error() {
    run(async {
        let Mediator {
            mut to_driver,
            from_driver,
            served,
            notes,
            ..
        } = Mediator::start(Probe::default());
        drop(from_driver);
        let request = packet(
            5,
            &DriverMsg {
                syn_num: Some(1),
                ..data("hello")
            },
        );
        to_driver
            .write_all(&request.encode().unwrap())
            .await
            .unwrap();
        served.await.unwrap().unwrap();
        assert_eq!(*notes.borrow(), ["hello", "shutdown"]);
    });
}

#[test]
fn a_mediator_that_does_not_read_holds_the_driver_up_within_bounds() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 4096);
        let text = "x".repeat(10_000);
        let mut asked = 0;
        // Until the pipe is full and stays so.
        while timeout(Duration::from_secs(1), mediator.ask(asked, &text))
            .await
            .is_ok()
        {
            asked += 1;
        }
        let bound = (MAX_OUTPUT + READ) / 10_000 + 10 + MAX_REQUESTS;
        assert!((25..bound as u32).contains(&asked), "{asked}");
        for syn in 0..asked {
            mediator.expect(5, syn, &text).await;
        }
    });
}

#[test]
fn a_driver_that_cannot_start_says_why() {
    struct Broken;

    impl Driver for Broken {
        type Message = DriverMsg;

        async fn start(&mut self, _: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
            Err("no such port".into())
        }

        async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
            None
        }
    }

    run(async {
        match serve_on(Broken, tokio::io::empty(), tokio::io::sink()).await {
            Err(ServeError::Start(error)) => assert_eq!(error.to_string(), "no such port"),
            other => panic!("{other:?}"),
        }
    });
}
