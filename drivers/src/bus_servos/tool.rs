//! What a person does with new servos: finds them, and gives them ids, a speed and a middle. IO.
//!
//! Unlike the drivers, it writes to the memory of a servo: only what it is told to, and it reads that
//! back. The port belongs to it alone, so no driver moves a servo meanwhile. Nothing moves.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{sleep, sleep_until, timeout_at};

use super::bus::Bus;
use super::port::QuickPort;
use super::wire::{MAX_ID, Request, Status};
use super::{Maker, Measured, Model, Write};
use crate::connection::{Connect as _, Endpoint, Port, in_words};

/// A servo writes its memory in less than this.
const MEMORY_TIME: Duration = Duration::from_millis(100);
/// How often a question is asked whose answer was damaged.
const TRIES: usize = 3;
/// So near to its middle a servo is in the middle, in degrees.
const CENTERED_DEG: f64 = 2.0;
/// The middle of a turn.
const MIDDLE_DEG: f64 = 180.0;

/// What a servo keeps while it is switched off.
pub trait Memory: Model {
    /// Speeds of the line in bits per second, and what stands for them. The first one is usual.
    const BAUDS: &'static [(u32, u8)];
    /// The register of its id.
    const ID: u16;
    /// The register of its speed.
    const BAUD: u16;

    /// Lets its memory be written, or no longer. Its motor is off.
    fn unlock(&self, is_open: bool) -> Vec<Write>;

    /// Makes the angle at which it stands the middle.
    ///
    /// # Errors
    /// It cannot do that: why.
    fn center(&self, found: &Measured) -> Result<Vec<Write>, String>;
}

/// A servo on the bus.
#[derive(Clone, Debug)]
pub struct FoundServo<M> {
    /// Its id.
    pub id: u8,
    /// What it is.
    pub model: M,
    /// What it does.
    pub measured: Measured,
}

/// Why a servo was not found or not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The port does not work.
    #[error("{0}")]
    Port(String),
    /// Another program has locked the port.
    #[error("another program uses {0}")]
    Busy(String),
    /// No servo has this id.
    #[error("servo {id} does not answer at {baud} bits per second")]
    Silent {
        /// The id.
        id: u8,
        /// Bits per second.
        baud: u32,
    },
    /// The answers are damaged.
    #[error("the answers of servo {0} are damaged")]
    Damaged(u8),
    /// Another servo has the new id.
    #[error("another servo on the bus has the id {0}")]
    Taken(u8),
    /// It has no such speed.
    #[error("the {model} cannot use {baud} bits per second, but {known}")]
    NoSuchSpeed {
        /// What it is.
        model: String,
        /// What was wanted.
        baud: u32,
        /// What it can use.
        known: String,
    },
    /// Its motor is on.
    #[error("the motor of servo {0} is on: it must be off for that")]
    Holds(u8),
    /// It cannot do that.
    #[error("servo {id} {why}")]
    Refused {
        /// The id.
        id: u8,
        /// The reason.
        why: String,
    },
    /// It was told, and has not done it.
    #[error("servo {id} has not taken {what}")]
    Unchanged {
        /// The id.
        id: u8,
        /// What it was told, such as "the id 6".
        what: String,
    },
}

impl ToolError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Port(_) => "`ls /dev/serial/by-id` lists the adapters; say --port",
            Self::Busy(_) => "a driver must be stopped first, such as by `amber stop bus-servos`",
            Self::Silent { .. } => "`amber servo scan` looks for it at other speeds",
            Self::Damaged(_) => {
                "two servos may have the same id, as new ones do: connect one at a time. If it is alone, \
                 check the cable, and that data, supply and ground of adapter and servo are joined"
            }
            Self::Taken(_) => "choose another id, or connect only the servo that gets the new id",
            Self::Holds(_) => {
                "hold what the servo carries, and say --release: then its motor is switched off first"
            }
            Self::Unchanged { .. } => "switch its supply off and on, and try again",
            Self::NoSuchSpeed { .. } | Self::Refused { .. } => return None,
        })
    }
}

/// Runs what a person wants done, and blocks until it is.
///
/// # Errors
/// The system cannot provide the runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?.block_on(work))
}

/// A bus of servos of one maker.
pub struct ServoTool<M> {
    port: Port<QuickPort>,
    bus: Bus<M>,
    baud: u32,
}

impl<M: Maker> ServoTool<M>
where
    M::Model: Memory,
{
    /// Opens the bus at a serial port. `patience` is how long an answer may take, beside the time on the
    /// wire.
    ///
    /// # Errors
    /// It cannot be opened, such as while a driver uses it.
    pub async fn open(path: &Path, baud: u32, patience: Duration) -> Result<Self, ToolError> {
        let path = path.to_owned();
        let mut connect = QuickPort::new(Endpoint::Serial { path, baud });
        let connection = connect.connect().await;
        let connection = connection.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => ToolError::Busy(connect.place()),
            _ => ToolError::Port(in_words(&error, &connect.place())),
        })?;
        Ok(Self {
            port: Port::opened(connect, connection),
            bus: Bus::new(amber_driver::now(), baud, patience),
            baud,
        })
    }

    /// The servo with this id, if there is one.
    ///
    /// # Errors
    /// Its answers are damaged, or the port has failed.
    pub async fn look(&mut self, id: u8) -> Result<Option<FoundServo<M::Model>>, ToolError> {
        let Some(identity) = self.read(id, M::IDENTITY).await? else {
            return Ok(None);
        };
        let Some(state) = self.read(id, M::STATE).await? else {
            return Err(ToolError::Damaged(id));
        };
        let model = M::Model::decode(&identity.data);
        let found = model.and_then(|model| {
            let measured = model.measured(state.error, &state.data)?;
            Some(FoundServo {
                id,
                model,
                measured,
            })
        });
        found.map(Some).ok_or(ToolError::Damaged(id))
    }

    /// Gives a servo another id. `releases`, here and below: its motor is switched off, should it be on.
    ///
    /// # Errors
    /// It does not answer, its motor is on, another one has this id, or it has not taken it.
    pub async fn set_id(&mut self, id: u8, new: u8, releases: bool) -> Result<(), ToolError> {
        if id == new {
            return self.expect(id).await.map(drop);
        }
        match self.look(new).await {
            Ok(None) => {}
            Ok(Some(_)) | Err(ToolError::Damaged(_)) => return Err(ToolError::Taken(new)),
            Err(other) => return Err(other),
        }
        let servo = self.released(id, releases).await?;
        self.tell(id, servo.model.unlock(true)).await?;
        self.tell(id, vec![(M::Model::ID, vec![new])]).await?;
        let what = || format!("the id {new}");
        // Its memory stays open if it has not taken the id.
        let lock = servo.model.unlock(false);
        self.tell(new, lock.clone()).await?;
        match self.look(new).await? {
            Some(_) => Ok(()),
            None => {
                self.tell(id, lock).await?;
                Err(ToolError::Unchanged { id, what: what() })
            }
        }
    }

    /// Gives a servo another speed of the line. It answers only at this speed then.
    ///
    /// # Errors
    /// It does not answer, its motor is on, it has no such speed, or has not taken it.
    pub async fn set_baud(
        mut self,
        path: &Path,
        id: u8,
        baud: u32,
        releases: bool,
    ) -> Result<(), ToolError> {
        let servo = self.expect(id).await?;
        let bauds = M::Model::BAUDS;
        let Some((_, code)) = bauds.iter().find(|(known, _)| *known == baud) else {
            let known: Vec<_> = bauds.iter().map(|(known, _)| known.to_string()).collect();
            return Err(ToolError::NoSuchSpeed {
                model: servo.model.to_string(),
                baud,
                known: known.join(", "),
            });
        };
        if baud == self.baud {
            // It has just answered at this speed. Its memory wears with each write.
            return Ok(());
        }
        self.released(id, releases).await?;
        self.tell(id, servo.model.unlock(true)).await?;
        self.tell(id, vec![(M::Model::BAUD, vec![*code])]).await?;
        let patience = self.bus.patience();
        // The port belongs to one at a time.
        drop(self);
        let mut fast = Self::open(path, baud, patience).await?;
        fast.tell(id, servo.model.unlock(false)).await?;
        let at = (M::Model::BAUD, 1);
        match fast.read(id, at).await? {
            Some(status) if status.data == [*code] => Ok(()),
            _ => Err(ToolError::Unchanged {
                id,
                what: format!("{baud} bits per second"),
            }),
        }
    }

    /// Makes the angle at which a servo stands its middle.
    ///
    /// # Errors
    /// It does not answer, its motor is on, it cannot do that, or has not done it.
    pub async fn center(&mut self, id: u8, releases: bool) -> Result<(), ToolError> {
        let servo = self.released(id, releases).await?;
        let refused = |why| ToolError::Refused { id, why };
        let center = servo.model.center(&servo.measured).map_err(refused)?;
        self.tell(id, servo.model.unlock(true)).await?;
        self.tell(id, center).await?;
        // What makes the middle may switch it on.
        self.tell(id, vec![servo.model.torque(false)]).await?;
        self.tell(id, servo.model.unlock(false)).await?;
        let angle_deg = self.expect(id).await?.measured.angle_deg;
        match (angle_deg - MIDDLE_DEG).abs() <= CENTERED_DEG {
            true => Ok(()),
            false => Err(ToolError::Unchanged {
                id,
                what: format!("the middle: it is at {angle_deg:.1} degrees"),
            }),
        }
    }

    /// The servo, with its motor off.
    async fn released(
        &mut self,
        id: u8,
        releases: bool,
    ) -> Result<FoundServo<M::Model>, ToolError> {
        let servo = self.expect(id).await?;
        match (servo.measured.torque, releases) {
            (false, _) => {}
            (true, true) => self.tell(id, vec![servo.model.torque(false)]).await?,
            (true, false) => return Err(ToolError::Holds(id)),
        }
        Ok(servo)
    }

    async fn expect(&mut self, id: u8) -> Result<FoundServo<M::Model>, ToolError> {
        let baud = self.baud;
        let found = self.look(id).await?;
        found.ok_or(ToolError::Silent { id, baud })
    }

    /// The registers of a servo; `None` if it does not answer.
    async fn read(&mut self, id: u8, (at, count): (u16, u8)) -> Result<Option<Status>, ToolError> {
        for _ in 0..TRIES {
            match self.ask(Request::Read { id, at, count }).await? {
                Answer::Status(status) => return Ok(Some(status)),
                Answer::Silent => return Ok(None),
                Answer::Damaged => {}
            }
        }
        Err(ToolError::Damaged(id))
    }

    /// Asks one servo, and waits for its answer.
    async fn ask(&mut self, request: Request) -> Result<Answer, ToolError> {
        let now = amber_driver::now;
        while !self.bus.is_free(now()) {
            let until = self.bus.wake_at(now()).unwrap_or_else(now);
            sleep_until(until.into()).await;
        }
        let bytes = self.bus.ask(now(), request);
        self.port.write(&bytes).await.map_err(ToolError::Port)?;
        let mut buffer = [0; 256];
        loop {
            if let Some((_, status)) = self.bus.next() {
                return Ok(Answer::Status(status));
            }
            if let Some(missing) = self.bus.expire(now()) {
                return Ok(match missing.is_damaged {
                    true => Answer::Damaged,
                    false => Answer::Silent,
                });
            }
            let until = self.bus.wake_at(now()).unwrap_or_else(now);
            if let Ok(read) = timeout_at(until.into(), self.port.read(&mut buffer)).await {
                let length = read.map_err(ToolError::Port)?;
                self.bus.push(&buffer[..length]);
            }
        }
    }

    /// Writes registers of one servo, one after another, and leaves it the time that its memory takes.
    async fn tell(&mut self, id: u8, writes: Vec<Write>) -> Result<(), ToolError> {
        for (at, bytes) in writes {
            let values = vec![(id, bytes)];
            let request = Request::GroupWrite { at, values };
            let bytes = self.bus.write(amber_driver::now(), &request);
            self.port.write(&bytes).await.map_err(ToolError::Port)?;
            sleep(MEMORY_TIME).await;
        }
        Ok(())
    }
}

/// What comes after a question.
enum Answer {
    Status(Status),
    Silent,
    Damaged,
}

/// The ids that servos can have.
pub const IDS: std::ops::RangeInclusive<u8> = 0..=MAX_ID;
