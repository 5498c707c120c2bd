//! The leases of a program that moves devices now and then, such as a joystick or a web page. IO.

use std::collections::HashMap;
use std::time::Duration;

use amber_proto::Device;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Terms, errand};
use crate::error::{Error, Result};
use crate::proxy::Proxy;

/// How long the first command waits for the lease. Drivers with Amber's harness answer in
/// milliseconds; others never do, and get the command then.
const PATIENCE: Duration = Duration::from_millis(400);
/// A lease that another client holds may be free in a moment: that client has just released it.
const GRACE: Duration = Duration::from_millis(300);
const AGAIN: Duration = Duration::from_millis(50);
/// The time between two requests for a lease that another client holds.
const RETRY: Duration = Duration::from_millis(200);
/// A driver without leases is asked again after this time: it may have been replaced.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Devices that are remembered although no lease of them is held.
const MAX_KNOWN: usize = 32;
/// How long to wait for an answer.
const DEADLINE: Duration = Duration::from_secs(1);

/// Takes the lease of a device with the first command that moves it, and releases it a while after
/// the last one.
///
/// ```no_run
/// use std::time::Duration;
///
/// use amber_client::lease::{Claims, Terms, Use};
/// use amber_client::{Client, WheelSpeeds};
///
/// # async fn on_stick(client: &Client, claims: &mut Claims) -> amber_client::Result<()> {
/// // let mut claims = Claims::new(Terms::new("my joystick"), Duration::from_secs(1));
/// let wheels = client.roboclaw(0);
/// claims.claim(&client.device(wheels.address()), Use::Command).await?;
/// wheels.drive(WheelSpeeds::all(100)).await
/// # }
/// ```
#[derive(Debug)]
pub struct Claims {
    terms: Terms,
    /// How long a lease is kept after the last command.
    hold: Duration,
    by_force: bool,
    claims: HashMap<Device, Claim>,
    lose: mpsc::UnboundedSender<(Device, Error)>,
    lost: mpsc::UnboundedReceiver<(Device, Error)>,
}

/// What a lease is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A command, which is repeated while the motion goes on.
    Command,
    /// A motion that goes on without commands, such as targets of DriveToPoint. The lease is kept
    /// until the device has done it, or until [`Claims::release`]. If this is unknown of a device, no
    /// lease is taken: its end would stop the motion.
    Errand,
}

#[derive(Debug)]
struct Claim {
    state: watch::Receiver<State>,
    /// Dropping it releases the lease.
    release: Option<oneshot::Sender<()>>,
    /// Ends after the release.
    task: JoinHandle<()>,
    /// Until then a command waits for the answer.
    patience: Instant,
    /// The number of the last errand; 0 means none.
    errands: watch::Sender<u32>,
    /// When to release it; `None` during an errand.
    until: Option<Instant>,
}

#[derive(Clone, Debug)]
enum State {
    Asked,
    Held,
    /// The errand is over.
    Released,
    /// The driver keeps no leases. Found out at this time.
    Without(Instant),
    /// Since this time.
    Denied(Instant, Error),
}

impl Claim {
    fn is_of_use(&self, now: Instant, by_force: bool) -> bool {
        self.release.is_some()
            && match &*self.state.borrow() {
                State::Asked | State::Held => true,
                State::Released => false,
                State::Without(since) => now < *since + ASK_AGAIN,
                State::Denied(since, _) => !by_force && now < *since + RETRY,
            }
    }

    fn is_without(&self) -> bool {
        matches!(*self.state.borrow(), State::Without(_))
    }

    fn is_denied(&self) -> bool {
        matches!(*self.state.borrow(), State::Denied(..))
    }
}

impl Claims {
    /// No lease yet. Each is released when no command has come for the time `hold`.
    pub fn new(terms: Terms, hold: Duration) -> Self {
        let (lose, lost) = mpsc::unbounded_channel();
        Self {
            terms,
            hold,
            by_force: false,
            claims: HashMap::new(),
            lose,
            lost,
        }
    }

    /// Whether leases are taken from their holders from now on.
    pub fn set_force(&mut self, by_force: bool) {
        self.by_force = by_force;
    }

    /// Call it before each command that moves a device. It waits only if the lease is not known to be
    /// held: for one round trip, or for a moment with a driver that keeps no leases.
    ///
    /// Dropping the future is fine: the lease may or may not be taken, and ends as usual.
    ///
    /// # Errors
    /// Another client holds the lease, the device was halted... The command would be refused, so it
    /// should not be sent. The error names the client.
    pub async fn claim(&mut self, device: &Proxy, what: Use) -> Result<()> {
        let address = device.address();
        if what == Use::Errand && !errand::has_known_end(address) {
            return Ok(());
        }
        let now = Instant::now();
        let by_force = self.by_force;
        if self.claims.len() >= MAX_KNOWN {
            self.claims.retain(|_, claim| !claim.task.is_finished());
        }
        let old = self.claims.remove(&address);
        let mut claim = match old {
            Some(claim) if claim.is_of_use(now, by_force) => claim,
            old => self.ask(device, old, now),
        };
        match what {
            Use::Command if claim.until.is_none() => {}
            Use::Command => claim.until = Some(now + self.hold),
            Use::Errand => {
                claim.until = None;
                claim.errands.send_modify(|number| *number += 1);
            }
        }
        let (mut state, patience) = (claim.state.clone(), claim.patience);
        self.claims.insert(address, claim);
        let _ = timeout_at(
            patience,
            state.wait_for(|state| !matches!(state, State::Asked)),
        )
        .await;
        match &*state.borrow() {
            State::Denied(_, error) => Err(error.clone()),
            State::Asked | State::Held | State::Released | State::Without(_) => Ok(()),
        }
    }

    /// Whether another client has the lease, as far as is known. Then this program should not stop the
    /// device either, unless a person asks for it.
    pub fn is_denied(&self, device: Device) -> bool {
        self.claims.get(&device).is_some_and(Claim::is_denied)
    }

    /// The errand of a device is over, or this program no longer moves it.
    pub fn release(&mut self, device: Device) {
        if let Some(claim) = self.claims.get_mut(&device)
            && !claim.is_without()
        {
            claim.release = None;
        }
    }

    /// Releases what has not been used for a while. Call it when [`Claims::next_due`] has come.
    pub fn expire(&mut self) {
        let now = Instant::now();
        let due = |claim: &Claim| claim.until.is_some_and(|until| until <= now);
        let due = self.claims.iter().filter(|(_, claim)| due(claim));
        for device in due.map(|(device, _)| *device).collect::<Vec<_>>() {
            self.release(device);
        }
        self.claims
            .retain(|_, claim| claim.release.is_some() || !claim.task.is_finished());
    }

    /// When to call [`Claims::expire`]; `None` while there is nothing to release.
    pub fn next_due(&self) -> Option<std::time::Instant> {
        let is_kept =
            |claim: &&Claim| claim.release.is_some() && !claim.is_without() && !claim.is_denied();
        let kept = self.claims.values().filter(is_kept);
        let due = kept.filter_map(|claim| claim.until).min();
        due.map(Instant::into_std)
    }

    /// A lease that was lost: another client took it by force, or it could not be kept in time.
    /// Dropping the future loses nothing.
    pub async fn lost(&mut self) -> (Device, Error) {
        match self.lost.recv().await {
            Some(lost) => lost,
            // This holds a sender.
            None => std::future::pending().await,
        }
    }

    /// Releases all leases, and waits until that is done.
    pub async fn close(mut self) {
        for claim in self.claims.values_mut() {
            claim.release = None;
        }
        for (_, claim) in self.claims {
            let _ = claim.task.await;
        }
    }

    /// Begins to take the lease.
    fn ask(&self, device: &Proxy, old: Option<Claim>, now: Instant) -> Claim {
        // Nobody has to wait again for a driver that keeps no leases.
        let is_without = old.as_ref().is_some_and(Claim::is_without);
        let is_denied = old.as_ref().is_some_and(Claim::is_denied);
        let (say, state) = watch::channel(State::Asked);
        let (release, released) = oneshot::channel();
        let (errands, errand) = watch::channel(0);
        let taking = Taking {
            terms: self.terms.clone(),
            device: device.clone().with_deadline(DEADLINE),
            by_force: self.by_force,
            until: now + if is_denied { Duration::ZERO } else { GRACE },
        };
        let before = old.map(|claim| claim.task);
        let ends = Ends { released, errand };
        let task = tokio::spawn(hold(taking, before, say, ends, self.lose.clone()));
        Claim {
            state,
            release: Some(release),
            task,
            errands,
            patience: if is_without { now } else { now + PATIENCE },
            until: Some(now + self.hold),
        }
    }
}

/// How a lease is taken.
struct Taking {
    terms: Terms,
    device: Proxy,
    by_force: bool,
    /// Until then it is tried again if another client holds it.
    until: Instant,
}

impl Taking {
    async fn take(&self) -> Result<super::Lease> {
        loop {
            let terms = self.terms.clone();
            let taken = match self.by_force {
                true => terms.take_by_force(&self.device).await,
                false => terms.take(&self.device).await,
            };
            match taken {
                Err(Error::Refused { .. }) if Instant::now() < self.until => sleep(AGAIN).await,
                taken => return taken,
            }
        }
    }
}

/// What ends a lease.
struct Ends {
    released: oneshot::Receiver<()>,
    /// The number of the last errand.
    errand: watch::Receiver<u32>,
}

impl Ends {
    /// Resolves when the lease is no longer needed.
    async fn wait(&mut self, device: &Proxy) {
        loop {
            let errand = *self.errand.borrow_and_update();
            tokio::select! {
                _ = &mut self.released => return,
                () = errand::over(device), if errand > 0 => return,
                // A new errand.
                Ok(()) = self.errand.changed() => {}
            }
        }
    }
}

/// Takes a lease, after the previous one is released, and keeps it until it is released or lost.
async fn hold(
    taking: Taking,
    before: Option<JoinHandle<()>>,
    say: watch::Sender<State>,
    mut ends: Ends,
    lose: mpsc::UnboundedSender<(Device, Error)>,
) {
    if let Some(before) = before {
        let _ = before.await;
    }
    // Not cancelled by a release: the device may have granted it already.
    let lease = match taking.take().await {
        Ok(lease) => lease,
        Err(Error::TimedOut { .. }) => {
            say.send_replace(State::Without(Instant::now()));
            return;
        }
        Err(error) => {
            say.send_replace(State::Denied(Instant::now(), error));
            return;
        }
    };
    say.send_replace(State::Held);
    tokio::select! {
        () = ends.wait(&taking.device) => {
            say.send_replace(State::Released);
            let _ = lease.release().await;
        }
        error = lease.lost() => {
            say.send_replace(State::Denied(Instant::now(), error.clone()));
            let _ = lose.send((taking.device.address(), error));
        }
    }
}

#[cfg(test)]
mod tests;
