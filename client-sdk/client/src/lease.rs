//! The lease of a device that moves: while a client holds it, nobody else moves the device. IO.

use std::panic::resume_unwind;
use std::time::Duration;

use amber_proto::limits::{LEASE_MAX_MS, LEASE_MIN_MS, LEASE_MS};
use amber_proto::motion::lease_request::Action;
use amber_proto::motion::{DriverMsg, HaltRequest, LeaseRequest, MotionState};
use amber_proto::{ClientId, Device, DeviceMessage};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::error::{Error, Reason, Result};
use crate::proxy::Proxy;

mod claims;
mod errand;

pub use claims::{Claims, Use};
pub use errand::over as errand_over;

/// How often the lease is kept in one period: some datagrams get lost.
const KEEPS_PER_PERIOD: u32 = 4;
/// A lease is lost when its device has not answered for this long, or for two periods. The device ends it earlier: this is
/// for the client, and longer than a busy machine needs for an answer.
const SILENCE: Duration = Duration::from_secs(5);
/// The time between two requests of a client that waits in turn.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// How a client asks for the lease of a device.
///
/// ```no_run
/// use amber_client::{Client, WheelSpeeds, lease::Terms};
///
/// # async fn drive(client: &Client) -> amber_client::Result<()> {
/// let wheels = client.roboclaw(0);
/// let lease = Terms::new("my program").take(&client.device(wheels.address())).await?;
/// wheels.drive(WheelSpeeds::all(100)).await?;
/// lease.release().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Terms {
    name: String,
    period: Duration,
    for_client: Option<ClientId>,
}

impl Terms {
    /// The terms of a client with this name, which people see: "amber goto", not "goto-17".
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            period: Duration::from_millis(LEASE_MS.into()),
            for_client: None,
        }
    }

    /// Ends the lease, and the motion, after this time without a sign of this client, for example
    /// because it has frozen. The default is 2 s; the driver allows 0.2 to 10 s.
    #[must_use]
    pub fn with_period(mut self, period: Duration) -> Self {
        let (min, max) = (LEASE_MIN_MS, LEASE_MAX_MS);
        let bounds = [min, max].map(|ms| Duration::from_millis(ms.into()));
        self.period = period.clamp(bounds[0], bounds[1]);
        self
    }

    /// For a driver that moves this device for a client of its own. Both may move it.
    #[must_use]
    pub fn for_client(mut self, client: ClientId) -> Self {
        self.for_client = Some(client);
        self
    }

    /// Takes the lease if nobody holds it.
    ///
    /// # Errors
    /// Another client holds it: the error names that client. Or those of [`Proxy::request`].
    pub async fn take(self, device: &Proxy) -> Result<Lease> {
        self.take_by(device, Action::Take).await
    }

    /// Takes the lease from its holder. The device stops if the holder moved it.
    ///
    /// # Errors
    /// Those of [`Proxy::request`].
    pub async fn take_by_force(self, device: &Proxy) -> Result<Lease> {
        self.take_by(device, Action::TakeByForce).await
    }

    /// Waits until it is this client's turn. If the future is dropped, the client leaves the list
    /// after the period of the lease.
    ///
    /// # Errors
    /// Too many clients wait, or those of [`Proxy::request`].
    pub async fn wait(self, device: &Proxy) -> Result<Lease> {
        loop {
            let state = self.ask(device, Action::Wait).await?;
            if state.yours() {
                return Ok(Lease::new(self, device));
            }
            if let Some(why) = state.refused {
                return Err(refused(device.address(), why));
            }
            sleep(ASK_AGAIN.min(self.period / KEEPS_PER_PERIOD)).await;
        }
    }

    async fn take_by(self, device: &Proxy, action: Action) -> Result<Lease> {
        let state = self.ask(device, action).await?;
        match state.refused {
            None if state.yours() => Ok(Lease::new(self, device)),
            why => Err(refused(device.address(), why.unwrap_or_default())),
        }
    }

    async fn ask(&self, device: &Proxy, action: Action) -> Result<MotionState> {
        state_of(device, device.request(self.message(action)).await?)
    }

    fn message(&self, action: Action) -> DriverMsg {
        DriverMsg {
            lease_request: Some(LeaseRequest {
                action: action.into(),
                name: Some(self.name.clone()),
                period_ms: u32::try_from(self.period.as_millis()).ok(),
            }),
            for_client: self.for_client.map(|client| client.0),
            ..DriverMsg::data()
        }
    }
}

/// The lease of a device. It is kept until this is dropped, by a task on the runtime that took it;
/// the client's task must also run.
///
/// Dropping it releases the lease, which stops the device if this client moved it. It does not
/// wait; [`Lease::release`] does. Use that before you take the lease of the same device again.
#[must_use = "it is released when this is dropped"]
#[derive(Debug)]
pub struct Lease {
    device: Proxy,
    /// Its end tells the task to release the lease; a message tells it only to end.
    alive: mpsc::Sender<()>,
    /// The reason why the lease was lost.
    lost: watch::Receiver<Option<String>>,
}

impl Lease {
    fn new(terms: Terms, device: &Proxy) -> Self {
        let (alive, dropped) = mpsc::channel(1);
        let (lose, lost) = watch::channel(None);
        tokio::spawn(keep(terms, device.clone(), dropped, lose));
        Self {
            device: device.clone(),
            alive,
            lost,
        }
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device.address()
    }

    /// Resolves when the lease is lost: another client took it by force, it could not be kept in
    /// time, or the driver was restarted. Dropping the future does nothing.
    pub async fn lost(&self) -> Error {
        let mut lost = self.lost.clone();
        let why = match lost.wait_for(Option::is_some).await {
            Ok(why) => why.clone(),
            // The task has ended with its runtime.
            Err(_) => None,
        };
        let why = why.unwrap_or_else(|| "the lease is no longer kept".into());
        refused(self.device.address(), why)
    }

    /// Releases the lease, and waits until the device has done so.
    ///
    /// # Errors
    /// Those of [`Proxy::request`].
    pub async fn release(self) -> Result<()> {
        // The task must not release a lease that this client takes later.
        let _ = self.alive.try_send(());
        let message = DriverMsg {
            lease_request: Some(LeaseRequest {
                action: Action::Release.into(),
                ..LeaseRequest::default()
            }),
            ..DriverMsg::data()
        };
        self.device.request(message).await.map(drop)
    }
}

/// Keeps a lease until its handle is dropped or the lease is lost. An answer counts whenever it comes:
/// on a busy machine, each may take longer than the pause between two requests.
async fn keep(
    terms: Terms,
    device: Proxy,
    mut dropped: mpsc::Receiver<()>,
    lose: watch::Sender<Option<String>>,
) {
    let pause = terms.period / KEEPS_PER_PERIOD;
    let silence = SILENCE.max(2 * terms.period);
    let patient = device.clone().with_deadline(silence);
    let mut asking = JoinSet::new();
    let mut kept = Instant::now();
    let mut ask_at = kept + pause;
    let why = loop {
        let answer = tokio::select! {
            told = dropped.recv() => return end(&terms, &device, told).await,
            Some(answer) = asking.join_next() => answer,
            () = sleep_until(ask_at) => {
                ask_at = Instant::now() + pause;
                asking.spawn(ask_to_keep(terms.clone(), patient.clone()));
                continue;
            }
        };
        match answer {
            Ok((asked, Ok(state))) if state.yours() => kept = kept.max(asked),
            Ok((_, Ok(state))) => break state.refused.unwrap_or_default(),
            // Commands may have kept it.
            Ok((_, Err(error))) if kept.elapsed() >= silence => break error.to_string(),
            Ok((_, Err(_))) => {}
            Err(panic) => resume_unwind(panic.into_panic()),
        }
    };
    lose.send_replace(Some(why));
}

/// Also returns when it asked.
async fn ask_to_keep(terms: Terms, device: Proxy) -> (Instant, Result<MotionState>) {
    let asked = Instant::now();
    (asked, terms.ask(&device, Action::Keep).await)
}

/// The handle was dropped, or has released the lease itself.
async fn end(terms: &Terms, device: &Proxy, told: Option<()>) {
    if told.is_none() {
        let _ = device.send(terms.message(Action::Release)).await;
    }
}

impl Proxy {
    /// Who moves the device. Devices that do not move, and drivers without Amber's harness, do not
    /// answer.
    ///
    /// # Errors
    /// Those of [`Proxy::request`].
    pub async fn motion_state(&self) -> Result<MotionState> {
        let message = DriverMsg {
            get_motion_state: Some(true),
            ..DriverMsg::data()
        };
        state_of(self, self.request(message).await?)
    }

    /// Halts the device: it stops, and refuses motion until the halt is released, also after a
    /// restart of its driver. `name` says to people who halts it. This is no emergency stop: it
    /// needs every program and every connection on its way.
    ///
    /// # Errors
    /// Those of [`Proxy::request`].
    pub async fn halt(&self, name: &str) -> Result<MotionState> {
        self.change_halt(true, name).await
    }

    /// Releases a halt. While a client holds the lease, only that client may.
    ///
    /// # Errors
    /// Another client holds the lease, or those of [`Proxy::request`].
    pub async fn release_halt(&self, name: &str) -> Result<MotionState> {
        self.change_halt(false, name).await
    }

    async fn change_halt(&self, halt: bool, name: &str) -> Result<MotionState> {
        let name = Some(name.to_owned());
        let message = DriverMsg {
            halt_request: Some(HaltRequest { halt, name }),
            ..DriverMsg::data()
        };
        let state = state_of(self, self.request(message).await?)?;
        match state.refused {
            Some(why) => Err(refused(self.address(), why)),
            None => Ok(state),
        }
    }
}

fn state_of(device: &Proxy, answer: DriverMsg) -> Result<MotionState> {
    let state = answer.motion_state;
    state.ok_or_else(|| device.bad_answer("the motion state is missing"))
}

fn refused(device: Device, why: String) -> Error {
    Error::Refused {
        device,
        reason: Reason::Failed,
        message: why,
        hint: None,
    }
}

#[cfg(test)]
mod tests;
