//! A camera that sends pictures for hours: the real session of a driver, and the real logic of clients,
//! which join the pieces. PURE.
//!
//! Two clients always look; others come, look for a while and go, some without a word. Each packet
//! may be lost. Every picture that arrives must be the one that was sent.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use amber_client::simulation::{Machine, Signalled};
use amber_client::transport::Role;
use amber_driver::session::Session;
use amber_proto::camera::{DriverMsg, Format, Picture};
use amber_proto::{self as proto, ClientId, Device, DeviceMessage, DriverHdr, MsgType, Packet};
use bytes::Bytes;
use prost::Message;

use crate::random::Random;

const CAMERA: Device = Device::new(proto::DeviceType(17), 0);

/// The way between client and driver, in each direction.
const DELAY: Duration = Duration::from_millis(5);
/// The clients that always look.
const RESIDENTS: i32 = 2;
/// The pictures that a client may miss because it has only just subscribed, or because its SUBSCRIBE
/// was lost, which it repeats after a few periods.
const FIRST: u64 = 40;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The length in simulated time.
    pub duration: Duration,
    /// The time between two pictures.
    pub period: Duration,
    /// The longest picture; others have at least half of it.
    pub picture_bytes: usize,
    /// One packet in so many is lost; 0: none.
    pub lost_of: u64,
    /// The time between two visits of clients. Each stays for so long.
    pub visit: Duration,
}

impl Default for Plan {
    /// A small robot at the edge of its Wi-Fi.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(24 * 3600),
            period: Duration::from_millis(100),
            picture_bytes: 60_000,
            lost_of: 100,
            visit: Duration::from_secs(10),
        }
    }
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pictures of the camera.
    pub pictures: u64,
    /// The pictures that the residents should have got, ...
    pub expected: u64,
    /// ... and those that they got.
    pub joined: u64,
    /// The pictures that visitors got.
    pub shown_to_visitors: u64,
    /// Clients that came and went.
    pub visitors: u64,
    /// Packets, and those that were lost on the way.
    pub packets: u64,
    /// See [`Counts::packets`].
    pub lost_packets: u64,
}

/// Runs a plan. `hourly` is told the counts after each simulated hour, and at the end.
///
/// # Errors
/// A picture that was never sent so, a picture twice or out of order, a resident that misses more than one in
/// two hundred, or a driver that still knows clients that are gone.
pub fn run(
    start: Instant,
    plan: &Plan,
    rng: &mut Random,
    mut hourly: impl FnMut(&Counts),
) -> Result<Counts, String> {
    let mut stream = Stream::new(start, *plan, rng);
    let end = start + plan.duration;
    let hour = Duration::from_secs(3600);
    let mut next_hour = start + hour;
    while let Some(now) = stream.next_due().filter(|due| *due <= end) {
        while next_hour <= now {
            hourly(&stream.counts);
            next_hour += hour;
        }
        stream.step(now, rng)?;
    }
    let counts = stream.end()?;
    hourly(&counts);
    Ok(counts)
}

/// A client that looks.
struct Viewer {
    machine: Machine,
    /// The pictures that were made before it came.
    before: u64,
    seen: u64,
    last: Option<u32>,
}

struct Stream {
    plan: Plan,
    now: Instant,
    session: Session<DriverMsg>,
    viewers: BTreeMap<ClientId, Viewer>,
    /// Packets on their way: when they arrive, and from or to which client.
    to_driver: VecDeque<(Instant, ClientId, Packet)>,
    to_clients: VecDeque<(Instant, ClientId, Packet)>,
    noise: Vec<u8>,
    next_picture: Instant,
    next_visit: Instant,
    next_id: i32,
    counts: Counts,
}

impl Stream {
    fn new(start: Instant, plan: Plan, rng: &mut Random) -> Self {
        let mut stream = Self {
            plan,
            now: start,
            session: Session::default().with_last_number(rng.u32(..)),
            viewers: BTreeMap::new(),
            to_driver: VecDeque::new(),
            to_clients: VecDeque::new(),
            noise: (0..plan.picture_bytes).map(|_| rng.u8(..)).collect(),
            next_picture: start + plan.period,
            next_visit: start + plan.visit,
            next_id: 1,
            counts: Counts::default(),
        };
        for _ in 0..RESIDENTS {
            stream.admit(rng);
        }
        stream
    }

    fn next_due(&self) -> Option<Instant> {
        let arrivals = [self.to_driver.front(), self.to_clients.front()];
        let arrivals = arrivals.into_iter().flatten().map(|(due, ..)| *due);
        let viewers = self.viewers.values();
        [self.next_picture, self.next_visit]
            .into_iter()
            .chain(arrivals)
            .chain(viewers.filter_map(|it| it.machine.next_timeout()))
            .chain(self.session.next_piece_timeout())
            .min()
    }

    fn step(&mut self, now: Instant, rng: &mut Random) -> Result<(), String> {
        self.now = self.now.max(now);
        while self.to_driver.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((_, client, packet)) = self.to_driver.pop_front() else {
                break;
            };
            self.receive_at_robot(client, packet);
        }
        while self.to_clients.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((_, client, packet)) = self.to_clients.pop_front() else {
                break;
            };
            if let Some(viewer) = self.viewers.get_mut(&client) {
                viewer.machine.receive(self.now, packet);
            }
        }
        for viewer in self.viewers.values_mut() {
            if viewer.machine.next_timeout().is_some_and(|due| due <= now) {
                viewer.machine.timeout(self.now);
            }
        }
        if self.next_visit <= now {
            self.next_visit += self.plan.visit;
            self.visit(rng);
        }
        if self.next_picture <= now {
            self.next_picture += self.plan.period;
            self.take_picture()?;
        }
        self.session.send_pieces(self.now);
        self.carry(rng);
        self.look()
    }

    /// A new client comes, and subscribes.
    fn admit(&mut self, rng: &mut Random) {
        let mut machine = Machine::new(Role::Client, rng.u32(..));
        machine.announce(self.now, Duration::from_secs(1));
        let term = |kind| Bytes::from(plain(kind).encode_to_vec());
        let terms = (term(MsgType::Subscribe), term(MsgType::Unsubscribe));
        machine.subscribe(self.now, CAMERA, terms, self.plan.period);
        let viewer = Viewer {
            machine,
            before: self.counts.pictures,
            seen: 0,
            last: None,
        };
        self.viewers.insert(ClientId(self.next_id), viewer);
        self.next_id += 1;
    }

    /// The visitor goes, half of the times without a word, and the next one comes.
    fn visit(&mut self, rng: &mut Random) {
        let visitors = self.viewers.keys().copied();
        let gone: Vec<_> = visitors.filter(|id| id.0 > RESIDENTS).collect();
        for id in gone {
            let Some(viewer) = self.viewers.remove(&id) else {
                continue;
            };
            self.counts.visitors += 1;
            self.counts.shown_to_visitors += viewer.seen;
            if rng.bool() {
                for packet in viewer.machine.close() {
                    self.to_driver.push_back((self.now + DELAY, id, packet));
                }
            }
            // The mediator tells the driver, sooner or later.
            let died = plain(MsgType::ClientDied).encode_to_vec();
            self.session.handle_packet(self.now, from(id, died.into()));
        }
        self.admit(rng);
    }

    fn take_picture(&mut self) -> Result<(), String> {
        self.counts.pictures += 1;
        let number = self.counts.pictures as u32;
        let mut message = DriverMsg::data();
        message.picture = Some(Picture {
            data: Some(content(&self.noise, number).into()),
            format: Some(Format::Jpeg.into()),
            width: Some(640),
            height: Some(480),
            sequence: Some(number),
            ..Picture::default()
        });
        let published = self.session.publish(None, message);
        published.map_err(|error| format!("picture {number}: {error:?}"))
    }

    /// A packet of a client: for the mediator or for the driver.
    fn receive_at_robot(&mut self, client: ClientId, packet: Packet) {
        let device = packet.header.device_type;
        if device == Some(Device::MEDIATOR.device_type.0) {
            let asked = proto::DriverMsg::decode(&packet.message[..]).unwrap_or_default();
            if asked.r#type == i32::from(MsgType::Ping) {
                let mut pong = plain(MsgType::Pong);
                pong.ack_num = asked.syn_num;
                let pong = by(Device::MEDIATOR, pong.encode_to_vec().into());
                self.to_clients.push_back((self.now + DELAY, client, pong));
            }
            return;
        }
        let packet = from(client, packet.message);
        self.session.handle_packet(self.now, packet);
        while self.session.poll_work(self.now).is_some() {}
    }

    /// Hands what everybody has sent to the network.
    fn carry(&mut self, rng: &mut Random) {
        let due = self.now + DELAY;
        let mut is_lost = |counts: &mut Counts| {
            counts.packets += 1;
            let lost = self.plan.lost_of > 0 && rng.u64(0..self.plan.lost_of) == 0;
            counts.lost_packets += u64::from(lost);
            lost
        };
        for (id, viewer) in &mut self.viewers {
            for packet in viewer.machine.take_sent() {
                if !is_lost(&mut self.counts) {
                    self.to_driver.push_back((due, *id, packet));
                }
            }
        }
        while let Some(packet) = self.session.poll_output() {
            for id in &packet.header.client_ids {
                let id = ClientId(*id);
                if !is_lost(&mut self.counts) {
                    let packet = by(CAMERA, packet.message.clone());
                    self.to_clients.push_back((due, id, packet));
                }
            }
        }
    }

    /// Checks what the clients got.
    fn look(&mut self) -> Result<(), String> {
        for (id, viewer) in &mut self.viewers {
            while viewer.machine.poll_outcome().is_some() {}
            while let Some((_, signal)) = viewer.machine.poll_signal() {
                let Signalled::Message(bytes) = signal else {
                    continue;
                };
                let message = DriverMsg::decode(bytes);
                let message = message.map_err(|error| format!("{id:?}: {error}"))?;
                let Some(picture) = message.picture else {
                    continue;
                };
                let number = picture.sequence();
                if picture.data() != content(&self.noise, number) {
                    return Err(format!(
                        "{id:?} gets another picture {number} than was sent"
                    ));
                }
                if viewer.last.is_some_and(|last| last >= number) {
                    let last = viewer.last;
                    return Err(format!("{id:?} gets picture {number} after {last:?}"));
                }
                viewer.last = Some(number);
                viewer.seen += 1;
                if id.0 <= RESIDENTS {
                    self.counts.joined += 1;
                }
            }
        }
        let residents = self.viewers.range(..=ClientId(RESIDENTS));
        self.counts.expected = residents.fold(0, |sum, (_, it)| {
            sum + (self.counts.pictures - it.before).saturating_sub(FIRST)
        });
        Ok(())
    }

    fn end(self) -> Result<Counts, String> {
        let counts = self.counts;
        if counts.joined * 200 < counts.expected * 199 {
            let Counts {
                joined, expected, ..
            } = counts;
            return Err(format!("only {joined} of {expected} pictures arrived"));
        }
        let (known, present) = (self.session.subscriptions(), self.viewers.len());
        if known > present {
            return Err(format!("the driver knows {known} subscribers of {present}"));
        }
        Ok(counts)
    }
}

/// A message without content.
fn plain(kind: MsgType) -> proto::DriverMsg {
    proto::DriverMsg {
        r#type: kind.into(),
        ..proto::DriverMsg::default()
    }
}

/// A packet to a driver.
fn from(client: ClientId, message: Bytes) -> Packet {
    let header = DriverHdr {
        client_ids: vec![client.0],
        ..DriverHdr::default()
    };
    Packet { header, message }
}

/// A packet to a client.
fn by(device: Device, message: Bytes) -> Packet {
    let header = DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        ..DriverHdr::default()
    };
    Packet { header, message }
}

/// The bytes of a picture: each picture has others, and another length.
fn content(noise: &[u8], number: u32) -> Vec<u8> {
    let number = number as usize;
    let from = number.wrapping_mul(7_919) % (noise.len() / 2).max(1);
    noise[from..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_for(seconds: u64, lost_of: u64) -> Counts {
        let plan = Plan {
            duration: Duration::from_secs(seconds),
            lost_of,
            ..Plan::default()
        };
        let mut rng = Random::seeded(7);
        run(Instant::now(), &plan, &mut rng, |_| {}).unwrap()
    }

    #[test]
    fn without_losses_every_picture_arrives() {
        let counts = run_for(60, 0);
        assert_eq!(counts.pictures, 600);
        assert_eq!(counts.visitors, 5);
        assert_eq!(counts.lost_packets, 0);
        // All but those before the SUBSCRIBE arrived, and one that is under way.
        assert!(counts.joined >= 2 * 598, "{counts:?}");
        assert!(counts.shown_to_visitors >= 5 * 98, "{counts:?}");
    }

    #[test]
    fn lost_pieces_are_called_for() {
        let counts = run_for(120, 100);
        let part = counts.lost_packets as f64 / counts.packets as f64;
        assert!((0.008..0.012).contains(&part), "{counts:?}");
        assert!(counts.joined >= counts.expected, "{counts:?}");
    }
}
