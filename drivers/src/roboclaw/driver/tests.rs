//! The whole driver between a mediator and controllers of memory, on a clock
//! that only goes on when nobody has anything to do.

use std::sync::{Arc, Mutex};

use amber_driver::proto::{DriverHdr, FrameCodec, Packet};
use amber_driver::serve_on;
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio_util::codec::Decoder;

use super::*;
use crate::connection::Connection;
use crate::roboclaw::Options;
use crate::roboclaw::fake::{FakePair, Mood};
use crate::roboclaw::protocol::Check;

/// Controllers and the plug of their port.
#[derive(Clone)]
struct Port {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    pair: FakePair,
    plugged: bool,
    /// How long a reply takes.
    delay: Duration,
    /// What is at the other end of the open port.
    task: Option<JoinHandle<()>>,
}

impl Port {
    fn new() -> Self {
        let shared = Shared {
            pair: FakePair::new(Check::Crc16),
            plugged: true,
            delay: Duration::ZERO,
            task: None,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Shared) -> T) -> T {
        act(&mut self.shared.lock().unwrap())
    }

    fn speeds(&self) -> [[i32; 2]; 2] {
        self.with(|shared| shared.pair.speeds)
    }

    fn plug(&self, plugged: bool) {
        self.with(|shared| {
            shared.plugged = plugged;
            if let Some(task) = shared.task.take().filter(|_| !plugged) {
                task.abort();
            }
        });
    }

    fn connect(&self) -> std::io::Result<Box<dyn Connection>> {
        let (ours, theirs) = duplex(1024);
        let port = self.clone();
        self.with(|shared| {
            if !shared.plugged {
                return Err(std::io::ErrorKind::NotFound.into());
            }
            shared.task = Some(tokio::spawn(port.answer(theirs)));
            Ok(Box::new(ours) as Box<dyn Connection>)
        })
    }

    async fn answer(self, mut stream: DuplexStream) {
        let mut packet = [0; 64];
        while let Ok(length @ 1..) = stream.read(&mut packet).await {
            let (reply, delay) =
                self.with(|shared| (shared.pair.reply(&packet[..length]), shared.delay));
            sleep(delay).await;
            if stream.write_all(&reply).await.is_err() {
                return;
            }
        }
    }
}

/// What the driver takes for a mediator.
struct Mediator {
    port: Port,
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
}

/// Runs a driver while the scenario lasts, and to its end.
async fn check(scenario: impl AsyncFnOnce(&mut Mediator)) -> Port {
    let port = Port::new();
    let (setup, _) = Options::default().setup().unwrap();
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(4096);
    let theirs = port.clone();
    let driver = Roboclaw::new(setup, move || theirs.connect());
    let mut mediator = Mediator {
        port: port.clone(),
        to_driver,
        from_driver,
        input: BytesMut::new(),
    };
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        sleep(Duration::from_secs(1)).await;
        scenario(&mut mediator).await;
    });
    served.unwrap();
    port
}

impl Mediator {
    async fn tell(&mut self, message: &[u8]) {
        let packet = Packet {
            header: header(),
            message: message.to_vec().into(),
        };
        let frame = packet.encode().unwrap();
        self.to_driver.write_all(&frame).await.unwrap();
    }

    /// What the driver says within a second.
    async fn hear(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                assert_eq!(packet.header, header());
                return Some(packet.message.to_vec());
            }
            let read = self.from_driver.read_buf(&mut self.input);
            timeout(Duration::from_secs(1), read).await.ok()?.unwrap();
        }
    }

    async fn until(&self, what: &str, condition: impl Fn(&Port) -> bool) {
        let waiting = async {
            while !condition(&self.port) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(Duration::from_secs(10), waiting).await;
        assert!(waited.is_ok(), "{what}");
    }
}

fn header() -> DriverHdr {
    DriverHdr {
        client_ids: vec![7],
        ..DriverHdr::default()
    }
}

/// motorsCommand with 300 mm/s for all.
const AHEAD: &[u8] = b"\x10\x01\xA2\x01\x0C\x08\xAC\x02\x10\xAC\x02\x18\xAC\x02\x20\xAC\x02";
/// motorsCommand with -300 mm/s on the left and 300 on the right.
const TURN: &[u8] = b"\x10\x01\xA2\x01\x1C\x08\xD4\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x10\xAC\x02\
    \x18\xD4\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x20\xAC\x02";
/// currentSpeedRequest number 100.
const ASK: &[u8] = b"\x10\x01\x18\x64\xA8\x01\x01";
/// The answer 299, 299, -299, -299.
const ANSWER: &[u8] = b"\x10\x01\x20\x64\xB2\x01\x1C\x08\xAB\x02\x10\xAB\x02\
    \x18\xD5\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x20\xD5\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01";
const CLIENT_DIED: &[u8] = b"\x10\x04";

#[tokio::test(start_paused = true)]
async fn clients_of_the_original_are_understood_and_answered() {
    check(async |mediator| {
        mediator.tell(TURN).await;
        mediator
            .until("it turns", |port| port.speeds() == [[1484, -1484]; 2])
            .await;
        (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
        mediator.tell(ASK).await;
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
        // Of both in one message only the question counts.
        let both = [ASK, &AHEAD[2..]].concat();
        mediator.tell(&both).await;
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
        // Without a number there is no answer.
        mediator.tell(b"\x10\x01\xA8\x01\x01").await;
        assert_eq!(mediator.hear().await, None);
        mediator.tell(CLIENT_DIED).await;
        mediator
            .until("it stops", |port| port.speeds() == [[0; 2]; 2])
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_stdin_stops_the_wheels() {
    let port = check(async |mediator| {
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives", |port| port.speeds() == [[1484; 2]; 2])
            .await;
        mediator.port.with(|shared| shared.pair.heard.clear());
    })
    .await;
    port.with(|shared| {
        let commands = shared.pair.heard.iter().map(|(_, command, _)| *command);
        let commands: Vec<_> = commands.filter(|command| *command < 90).collect();
        assert_eq!(commands, [37, 37, 34, 34]);
    });
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_wheels_wait_for_a_new_command() {
    check(async |mediator| {
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives", |port| port.speeds() == [[1484; 2]; 2])
            .await;
        mediator.port.plug(false);
        for _ in 0..10 {
            mediator.tell(AHEAD).await;
            mediator.tell(ASK).await;
            assert_eq!(mediator.hear().await, None, "nobody knows the speeds");
        }
        // As after a loss of power, or not: the wheels may still turn.
        mediator.port.with(|shared| shared.pair.heard.clear());
        mediator.port.plug(true);
        mediator
            .until("it is back", |port| port.speeds() == [[0; 2]; 2])
            .await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(mediator.port.speeds(), [[0; 2]; 2]);
        let settings = mediator.port.with(|shared| shared.pair.take(28));
        assert_eq!(settings.len(), 2, "the settings are sent again");
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives again", |port| port.speeds() == [[1484; 2]; 2])
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_too_late_is_not_taken_for_the_next_one() {
    check(async |mediator| {
        (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
        // Past the time that the driver waits, within the time that it lets pass.
        (mediator.port).with(|shared| shared.delay = Duration::from_millis(105));
        mediator.tell(ASK).await;
        sleep(Duration::from_millis(120)).await;
        (mediator.port).with(|shared| shared.delay = Duration::ZERO);
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn wrong_and_cut_off_replies_give_no_answers_and_no_end() {
    check(async |mediator| {
        for mood in [Mood::Garbled, Mood::Half, Mood::Silent] {
            (mediator.port).with(|shared| shared.pair.mood = [mood; 2]);
            for _ in 0..3 {
                mediator.tell(ASK).await;
                assert_eq!(mediator.hear().await, None, "{mood:?}");
            }
            (mediator.port).with(|shared| shared.pair.mood = [Mood::Well; 2]);
            sleep(Duration::from_secs(6)).await;
            (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
            mediator.tell(ASK).await;
            assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER), "{mood:?}");
            // PINGs are answered whatever the controllers do.
            mediator.tell(b"\x10\x02\x18\x07").await;
            assert_eq!(
                mediator.hear().await.as_deref(),
                Some(&b"\x10\x03\x20\x07"[..])
            );
        }
    })
    .await;
}
