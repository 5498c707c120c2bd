//! The drivers of the parts that people own, each with its simulated device, for hours: bytes and
//! transfers at full rate, and faults between. IO, on the clock of tokio.
//!
//! ```text
//!   client  <-- frames -->  the whole driver  <-- bytes, transfers -->  the device of `amber sim`
//!     |                                                                      |
//!   watch: each reading in time, or an outage that is reported          faults, garbage
//! ```
//!
//! The clock is paused: it goes on to the next event when nobody has anything to do. Each part has its
//! longest times to recover, which docs/hardware.md has, too.

pub mod device;
pub mod list;
pub mod watch;

use std::ops::Range;
use std::time::Duration;

use amber_drivers::simulation::serve;
use amber_proto::{DriverHdr, FrameCodec, Packet, mediator};
use amber_sim::robot::Fault;
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep_until};
use tokio_util::codec::Decoder;

use self::device::Place;
pub use self::list::{Kind, PARTS, Part};
use self::watch::{Cause, Counts, Watch};
use crate::random::Random;

/// What lies in the pipes of the driver, in bytes.
const PIPE: usize = 256 * 1024;
/// The client.
const CLIENT: i32 = 7;
/// How often the last reading is checked.
const CHECK: Duration = Duration::from_secs(1);

/// How long, and how often something fails.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The length in simulated time.
    pub duration: Duration,
    /// The seconds without a fault after the driver has recovered.
    pub calm_s: Range<u64>,
    /// The milliseconds that a fault lasts.
    pub fault_ms: Range<u64>,
}

impl Plan {
    /// Hours of work, with a fault in every minute.
    #[must_use]
    pub fn long(duration: Duration) -> Self {
        Self {
            duration,
            calm_s: 5..90,
            fault_ms: 100..15_000,
        }
    }
}

/// Runs a part. `hourly` is told the counts after each simulated hour, and at the end.
///
/// # Errors
/// A reading is missing without a cause, an outage was not reported, or it lasts longer than the part allows.
pub fn run(
    part: &Part,
    plan: &Plan,
    seed: u64,
    hourly: impl FnMut(&Counts),
) -> Result<Counts, String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| format!("cannot run: {error}"))?;
    runtime.block_on(play(part, plan, seed, hourly))
}

async fn play(
    part: &Part,
    plan: &Plan,
    seed: u64,
    hourly: impl FnMut(&Counts),
) -> Result<Counts, String> {
    let (place, opened) = Place::new(part.robot, part.device, part.kind.greeting(), seed)?;
    let (to_driver, reader) = duplex(PIPE);
    let (writer, from_driver) = duplex(PIPE);
    let driver = Box::pin(serve(
        part.driver,
        place.clone(),
        place.clone(),
        reader,
        writer,
    ));
    let client = Client {
        kind: part.kind,
        begin: Instant::now(),
        to_driver,
        from_driver,
        input: BytesMut::new(),
        watch: Watch::new(part.period(), part.limits()),
        told: 0,
        answered: 0,
    };
    let random = Random::seeded(seed);
    tokio::select! {
        served = driver => Err(format!("the driver has ended: {served:?}")),
        () = place.clone().run(opened) => Err("the device has ended".to_owned()),
        done = client.run(plan, &place, random, hourly) => done,
    }
}

/// A client with its mediator.
struct Client {
    kind: Kind,
    begin: Instant,
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
    watch: Watch,
    /// Commands, and their outcomes.
    told: u32,
    answered: u32,
}

impl Client {
    async fn run(
        mut self,
        plan: &Plan,
        place: &Place,
        mut random: Random,
        mut hourly: impl FnMut(&Counts),
    ) -> Result<Counts, String> {
        const HOUR: Duration = Duration::from_secs(3600);
        if let Some(bytes) = self.kind.subscription() {
            self.send(bytes).await?;
        }
        let mut next_tell = Duration::ZERO;
        let mut next_check = CHECK;
        let mut next_hour = HOUR;
        let mut next_fault = self.after(plan, &mut random);
        loop {
            let tells = self.kind.telling();
            let due = [next_check, next_hour, next_fault, plan.duration];
            let due = due.into_iter().chain(tells.map(|_| next_tell)).min();
            let due = self.begin + due.unwrap_or_default();
            tokio::select! {
                biased;
                read = self.from_driver.read_buf(&mut self.input) => match read {
                    Ok(1..) => self.look()?,
                    end => return Err(format!("the driver ends: {end:?}")),
                },
                () = sleep_until(due) => {}
            }
            let now = self.begin.elapsed();
            if now >= plan.duration {
                hourly(&self.watch.counts);
                return Ok(self.watch.counts);
            }
            if now >= next_hour {
                hourly(&self.watch.counts);
                next_hour += HOUR;
            }
            if now >= next_check {
                next_check += CHECK;
                self.watch.check(now)?;
            }
            if now >= next_fault {
                self.fail(plan, place, &mut random)?;
                next_fault = self.after(plan, &mut random);
            }
            if let Some(period) = tells
                && now >= next_tell
            {
                next_tell += period;
                self.tell().await?;
            }
        }
    }

    /// When the next fault begins.
    fn after(&self, plan: &Plan, random: &mut Random) -> Duration {
        let calm = random.u64(1_000 * plan.calm_s.start..1_000 * plan.calm_s.end);
        self.watch.settled_at() + Duration::from_millis(calm)
    }

    fn fail(&mut self, plan: &Plan, place: &Place, random: &mut Random) -> Result<(), String> {
        let now = self.begin.elapsed();
        let length = Duration::from_millis(random.u64(plan.fault_ms.clone()));
        // A bus carries nothing that nobody has asked for.
        let causes = &Cause::ALL[1..if self.kind.is_at_bus() { 4 } else { 5 }];
        let cause = causes[random.usize(..causes.len())];
        let ends = now
            + if cause == Cause::Garbage {
                Duration::ZERO
            } else {
                length
            };
        self.watch.handle_fault(cause, ends)?;
        match cause {
            Cause::Start => {}
            Cause::Unplug => place.fail(Fault::Unplug, length),
            Cause::Silence => place.fail(Fault::Stall, length),
            Cause::Noise => place.fail(Fault::Corrupt, length),
            Cause::Garbage => place.spoil(random),
        }
        Ok(())
    }

    /// Takes the frames that have arrived.
    fn look(&mut self) -> Result<(), String> {
        let now = self.begin.elapsed();
        loop {
            let packet = FrameCodec.decode(&mut self.input);
            let packet = packet.map_err(|error| format!("a wrong frame: {error}"))?;
            let Some(Packet { header, message }) = packet else {
                return Ok(());
            };
            if header.client_ids == [CLIENT] {
                self.answered += u32::from(self.kind.is_outcome(&message));
                match self.kind.reading(&message) {
                    Some(true) => self.watch.handle_reading(now)?,
                    Some(false) => self.watch.handle_refusal(),
                    None => {}
                }
                continue;
            }
            let said = mediator::DriverMsg::decode(message).map_err(|error| error.to_string())?;
            if let Some(health) = said.health {
                let trouble = health.trouble().map_err(|error| format!("{error:?}"))?;
                self.watch.handle_health(trouble);
            }
        }
    }

    /// Sends the next command.
    async fn tell(&mut self) -> Result<(), String> {
        if self.kind.has_outcomes() && self.answered + 1 < self.told {
            let (told, answered) = (self.told, self.answered);
            return Err(format!("{answered} outcomes of {told} commands"));
        }
        self.told += 1;
        self.send(self.kind.command(self.told)).await
    }

    async fn send(&mut self, message: Vec<u8>) -> Result<(), String> {
        let header = DriverHdr {
            client_ids: vec![CLIENT],
            ..DriverHdr::default()
        };
        let message = message.into();
        let frame = Packet { header, message }.encode();
        let frame = frame.map_err(|error| format!("{error}"))?;
        let sent = self.to_driver.write_all(&frame).await;
        sent.map_err(|error| format!("the driver reads nothing: {error}"))
    }
}
