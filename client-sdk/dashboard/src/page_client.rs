//! Sends the motions of one page, with its own client. IO.
//!
//! Each page that drives is a separate client of the mediator. When the page is gone, its client
//! leaves, and the drivers stop its motions. If the dashboard is killed, the next message
//! to this client fails because its port is closed, so the mediator removes the client immediately.
//! Therefore each client subscribes to a device that publishes several times per second.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amber_client::lease::{Claims, Terms, Use};
use amber_client::values::Target;
use amber_client::{Client, DriveToPoint, Error, MappingService, NineDof, Roboclaw, WheelSpeeds};
use amber_proto::Device;
use amber_proto::mapping::Explore;
use amber_proto::ninedof::SubscribeAction;
use amber_scene::moving;
use amber_scene::trip::{Trip, TripEnd};
use amber_web::calls::{self, in_words};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use crate::hub::{Permission, Ticket, ViewerId};
use crate::input::Input;
use crate::limits::{
    BETWEEN_STOPS, LAST_WORDS, LEASE_HOLD, LEASE_PERIOD, MAX_CALLS, MOTION_DEADLINE,
    MOTION_VALIDITY, PROOF_PERIOD, STOPS, TAKE_OVER_TIME, TELL_AGAIN,
};
use crate::panel;
use crate::parts::Parts;

pub(crate) struct PageClients {
    mediator: String,
    inputs: mpsc::Sender<Input>,
    new_targets: Arc<Notify>,
    handles: HashMap<ViewerId, Handle>,
    tasks: JoinSet<()>,
}

/// The client of one page.
pub(crate) struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<Motion>>,
    orders: mpsc::Sender<PageOrder>,
}

/// Wheel speeds of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Motion {
    device: Device,
    speeds: WheelSpeeds,
    /// A stop that a person asks for, and not only a stick that comes to rest.
    is_asked: bool,
}

type Motions = watch::Receiver<Option<Motion>>;

/// An order of a page for a device.
pub(crate) enum PageOrder {
    /// Drive to a target.
    Goal(Ticket, Device, Target),
    /// Explore.
    Explore(Ticket, Device),
    /// End the targets or the exploration of this page.
    EndErrand(Device),
    /// Stop a driver that drives by itself, for whichever client.
    Stop(Device),
    /// Halt everything that moves, or release the halt.
    Halt(bool),
    /// Take the leases of what the page moves next from their holders.
    TakeOver,
    /// Send a request.
    Call(Ticket, Device, String, Vec<String>, Permission),
}

impl PageClients {
    /// No page has one. `new_targets` is notified when a driver has new targets.
    pub(crate) fn new(
        mediator: String,
        inputs: mpsc::Sender<Input>,
        new_targets: Arc<Notify>,
    ) -> Self {
        Self {
            mediator,
            inputs,
            new_targets,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// The client of a page leaves the mediator, after its last motion and orders are sent.
    pub(crate) fn leave(&mut self, viewer: ViewerId) {
        self.handles.remove(&viewer);
        // Forgets those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// All leave.
    pub(crate) async fn end(&mut self) {
        self.handles.clear();
        let left = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, left).await.is_err() {
            tracing::warn!("some stop commands were not sent in time");
        }
    }

    /// The client of a page, which begins when the page first needs it. `name` says to people who
    /// drives.
    pub(crate) fn handle(&mut self, viewer: ViewerId, parts: Parts, name: String) -> &Handle {
        self.handles.entry(viewer).or_insert_with(|| {
            let (motion, motions) = watch::channel(None);
            let (orders, received) = mpsc::channel(MAX_CALLS);
            let page_client = PageClient {
                viewer,
                parts,
                name,
                inputs: self.inputs.clone(),
                new_targets: self.new_targets.clone(),
                calls: Arc::new(Semaphore::new(MAX_CALLS)),
                told: Arc::default(),
                trip: Mutex::default(),
            };
            self.tasks
                .spawn(page_client.run(self.mediator.clone(), motions, received));
            Handle { motion, orders }
        })
    }
}

impl Handle {
    pub(crate) fn drive(&self, device: Device, speeds: WheelSpeeds) {
        self.set(device, speeds, false);
    }

    /// Stops wheels, whoever moves them.
    pub(crate) fn stop(&self, device: Device) {
        self.set(device, WheelSpeeds::STOP, true);
    }

    fn set(&self, device: Device, speeds: WheelSpeeds, is_asked: bool) {
        self.motion.send_replace(Some(Motion {
            device,
            speeds,
            is_asked,
        }));
    }

    /// Forwards an order; `false` if it is dropped because too many wait.
    pub(crate) fn order(&self, order: PageOrder) -> bool {
        self.orders.try_send(order).is_ok()
    }
}

struct PageClient {
    viewer: ViewerId,
    parts: Parts,
    name: String,
    inputs: mpsc::Sender<Input>,
    new_targets: Arc<Notify>,
    calls: Arc<Semaphore>,
    /// What the page was last told about its motions, and when.
    told: Arc<Mutex<Option<(Instant, String)>>>,
    /// The last trip of the page.
    trip: Mutex<Option<Trip>>,
}

impl PageClient {
    async fn run(self, mediator: String, motions: Motions, orders: mpsc::Receiver<PageOrder>) {
        let client = match Client::connect(&mediator).await {
            Ok(client) => client,
            Err(error) => return self.notice(error.to_string()).await,
        };
        let terms = Terms::new(self.name.clone()).with_period(LEASE_PERIOD);
        let mut leases = Leases {
            claims: Claims::new(terms, LEASE_HOLD),
            of_calls: calls::Leases::new(client.clone(), &self.name),
            denied: None,
            by_force_until: None,
        };
        tokio::select! {
            () = self.serve(&client, &mut leases, motions, orders) => {}
            () = subscribe(&client, self.parts) => {}
        }
        client.close().await;
    }

    /// Performs all orders until the page is gone.
    async fn serve(
        &self,
        client: &Client,
        leases: &mut Leases,
        mut motions: Motions,
        mut orders: mpsc::Receiver<PageOrder>,
    ) {
        let mut orders_open = true;
        loop {
            let due = leases.claims.next_due();
            tokio::select! {
                biased;
                // If the page is gone, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.drive(client, leases, &mut motions).await;
                }
                order = orders.recv(), if orders_open => match order {
                    Some(order) => self.perform(client, leases, order).await,
                    None => orders_open = false,
                },
                (device, error) = leases.claims.lost() => {
                    leases.denied = Some(device);
                    self.refused(&error).await;
                }
                () = until(due) => leases.claims.expire(),
            }
        }
        while let Ok(order) = orders.try_recv() {
            if let PageOrder::EndErrand(_) | PageOrder::Stop(_) = order {
                self.perform(client, leases, order).await;
            }
        }
    }

    /// Sends the newest motion, if this page may move the wheels.
    async fn drive(&self, client: &Client, leases: &mut Leases, motions: &mut Motions) {
        loop {
            let newest = *motions.borrow_and_update();
            let Some(motion) = newest else {
                return;
            };
            if motion.speeds == WheelSpeeds::STOP {
                // A stick that comes to rest must not stop the robot of another program.
                if motion.is_asked || !leases.claims.is_denied(motion.device) {
                    self.send(client, motion, motions).await;
                }
                return;
            }
            if let Err(error) = leases.claim(client, motion.device, Use::Command).await {
                return self.refused(&error).await;
            }
            // The page may have released the stick in the meantime.
            let is_newest = *motions.borrow() == newest;
            if is_newest {
                return self.send(client, motion, motions).await;
            }
        }
    }

    async fn send(&self, client: &Client, motion: Motion, motions: &Motions) {
        // CollisionAvoidance accepts the same message.
        // The next motion must not wait, and a refusal belongs on the page.
        let (viewer, inputs, told) = (self.viewer, self.inputs.clone(), self.told.clone());
        let refused = move |error: Error| {
            let why = error.to_string();
            if is_news(&told, &why) && inputs.try_send(Input::Refused(viewer, why)).is_err() {
                tracing::debug!("dropped a refusal: the dashboard is busy");
            }
        };
        let Motion { device, speeds, .. } = motion;
        let wheels = Roboclaw::new(client.device(device))
            .with_deadline(MOTION_DEADLINE)
            .with_validity(MOTION_VALIDITY)
            .without_waiting(refused);
        let times = if speeds == WheelSpeeds::STOP {
            STOPS
        } else {
            1
        };
        for again in 0..times {
            if again > 0 {
                sleep(BETWEEN_STOPS).await;
                if motions.has_changed().unwrap_or(false) {
                    return;
                }
            }
            if let Err(error) = wheels.drive(speeds).await {
                tracing::warn!(%device, "a motion command was not sent: {error}");
                let why = error.to_string();
                if is_news(&self.told, &why) {
                    let refused = Input::Refused(self.viewer, why);
                    let _ = self.inputs.send(refused).await;
                }
            }
        }
    }

    async fn perform(&self, client: &Client, leases: &mut Leases, order: PageOrder) {
        match order {
            PageOrder::Goal(ticket, device, target) => {
                match leases.claim(client, device, Use::Errand).await {
                    Ok(()) => self.begin_trip(client, ticket, device, target),
                    Err(error) => {
                        // Offers to take over.
                        self.refused(&error).await;
                        self.answer(ticket, Err(in_words(&error))).await;
                    }
                }
            }
            PageOrder::Explore(ticket, device) => {
                let begun = self.explore(client, leases, device).await;
                let answer = begun.map(|()| Value::Null);
                let answer = answer.map_err(|error| in_words(&error));
                self.answer(ticket, answer).await;
            }
            PageOrder::EndErrand(device) => {
                // What drivers do for other programs is no business of this page.
                if let Err(error) = leases.claim(client, device, Use::Command).await {
                    return self.refused(&error).await;
                }
                self.end_errand(client, leases, device).await;
            }
            PageOrder::Stop(device) => self.end_errand(client, leases, device).await,
            PageOrder::Halt(is_halted) => self.halt(client, is_halted),
            PageOrder::TakeOver => {
                leases.by_force_until = Some(Instant::now() + TAKE_OVER_TIME);
                let device = leases.denied.or(self.parts.wheels);
                if let Some(device) = device
                    && let Err(error) = leases.claim(client, device, Use::Command).await
                {
                    self.refused(&error).await;
                }
            }
            PageOrder::Call(ticket, device, method, args, permission) => {
                let Ok(permit) = self.calls.clone().try_acquire_owned() else {
                    let why = "too many pending requests".to_owned();
                    return self.answer(ticket, Err(why)).await;
                };
                let (client, inputs) = (client.clone(), self.inputs.clone());
                let calls = leases.of_calls.clone();
                tokio::spawn(async move {
                    let called = panel::call(&client, &calls, device, &method, &args, permission);
                    let answer = called.await;
                    let _ = inputs.send(Input::Answer(ticket, answer)).await;
                    drop(permit);
                });
            }
        }
    }

    /// Gives the robot a target, and tells the page how this goes on. A stop need not wait for it.
    fn begin_trip(&self, client: &Client, ticket: Ticket, device: Device, target: Target) {
        let (trip, mut driving) = Trip::new(DriveToPoint::new(client.device(device)));
        let order = trip.order();
        self.replace_trip(Some(trip));
        let (name, inputs) = (self.name.clone(), self.inputs.clone());
        let (viewer, new_targets) = (self.viewer, self.new_targets.clone());
        tokio::spawn(async move {
            let begun = driving.begin(&[target], &name).await;
            new_targets.notify_one();
            let refused = match &begun {
                Err(TripEnd::Refused(why) | TripEnd::Cancelled(why)) => Some(why.clone()),
                _ => None,
            };
            // The page knows the end by it.
            let answer = refused.map_or(Ok(order.into()), Err);
            let _ = inputs.send(Input::Answer(ticket, answer)).await;
            if begun.is_ok() {
                let end = driving.end(|_| {}).await;
                let _ = inputs.send(Input::TripEnded(viewer, order, end)).await;
            }
        });
    }

    /// A trip that has not begun yet must not begin after this.
    fn replace_trip(&self, new: Option<Trip>) {
        let mut trip = self.trip.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = mem::replace(&mut *trip, new) {
            old.supersede();
        }
    }

    /// Lets the robot explore.
    async fn explore(
        &self,
        client: &Client,
        leases: &mut Leases,
        device: Device,
    ) -> Result<(), Error> {
        if let Err(error) = leases.claim(client, device, Use::Errand).await {
            // Offers to take over.
            self.refused(&error).await;
            return Err(error);
        }
        set_exploring(client, device, true).await
    }

    /// Ends the targets or the exploration of a driver, and gives its lease back.
    async fn end_errand(&self, client: &Client, leases: &mut Leases, device: Device) {
        let ended = match Some(device) == self.parts.mapping {
            true => set_exploring(client, device, false).await,
            false => self.forget_targets(client, device).await,
        };
        if let Err(error) = ended {
            self.refused(&error).await;
        }
        leases.claims.release(device);
    }

    /// Forgets all targets of a driver.
    async fn forget_targets(&self, client: &Client, device: Device) -> Result<(), Error> {
        self.replace_trip(None);
        let driver = DriveToPoint::new(client.device(device));
        let forgotten = driver.set_targets(&[]).await;
        self.new_targets.notify_one();
        forgotten
    }

    /// Halts everything that moves, or releases the halt, while motions go on.
    fn halt(&self, client: &Client, is_halted: bool) {
        let (client, name) = (client.clone(), self.name.clone());
        let (viewer, inputs) = (self.viewer, self.inputs.clone());
        tokio::spawn(async move {
            let failures = match moving::devices(&client).await {
                Ok(devices) => moving::change_halts(&client, devices, is_halted, &name).await,
                Err(error) => vec![(Device::MEDIATOR, Err(error))],
            };
            for (_, done) in failures {
                if let Err(error) = done {
                    let _ = inputs.send(Input::Notice(viewer, error.to_string())).await;
                }
            }
        });
    }

    /// The robot does not obey this page.
    async fn refused(&self, error: &Error) {
        let text = error.to_string();
        if is_news(&self.told, &text) {
            let refused = match error {
                Error::Refused { .. } => Input::Refused(self.viewer, text),
                _ => Input::Notice(self.viewer, text),
            };
            let _ = self.inputs.send(refused).await;
        }
    }

    async fn notice(&self, text: String) {
        let _ = self.inputs.send(Input::Notice(self.viewer, text)).await;
    }

    async fn answer(&self, ticket: Ticket, answer: Result<Value, String>) {
        let _ = self.inputs.send(Input::Answer(ticket, answer)).await;
    }
}

async fn set_exploring(client: &Client, device: Device, on: bool) -> Result<(), Error> {
    let explore = Explore {
        on: Some(on),
        ..Explore::default()
    };
    let mapping = MappingService::new(client.device(device));
    mapping.explore(explore).await
}

/// The leases of one page.
struct Leases {
    claims: Claims,
    /// Those of requests in panels.
    of_calls: calls::Leases,
    /// The last device that another program did not release.
    denied: Option<Device>,
    /// Until then, the next lease is taken from its holder.
    by_force_until: Option<Instant>,
}

impl Leases {
    async fn claim(&mut self, client: &Client, device: Device, what: Use) -> Result<(), Error> {
        let by_force = self.by_force_until.is_some_and(|it| Instant::now() < it);
        self.claims.set_force(by_force);
        let claimed = self.claims.claim(&client.device(device), what).await;
        match &claimed {
            // Once: two pages must not take the robot from each other again and again.
            Ok(()) => {
                self.by_force_until = None;
                if self.denied == Some(device) {
                    self.denied = None;
                }
            }
            Err(_) => self.denied = Some(device),
        }
        claimed
    }
}

/// Waits until this time, or endlessly.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Whether to tell the page: motions are many, and their refusals are all the same.
fn is_news(told: &Mutex<Option<(Instant, String)>>, text: &str) -> bool {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |(at, known): &(Instant, String)| known == text && at.elapsed() < TELL_AGAIN;
    if told.as_ref().is_some_and(is_known) {
        return false;
    }
    *told = Some((Instant::now(), text.to_owned()));
    true
}

/// Keeps messages coming to this client, as described above.
async fn subscribe(client: &Client, parts: Parts) {
    let readings = async {
        let wanted = SubscribeAction {
            gyro: Some(true),
            ..SubscribeAction::default()
        };
        let sensors = NineDof::new(client.device(parts.imu?));
        sensors.readings(PROOF_PERIOD, wanted).await.ok()
    };
    let scans = async { client.device(parts.scanner?).subscribe_raw().await.ok() };
    let _kept = match parts.imu {
        Some(_) => (readings.await, None),
        None => (None, scans.await),
    };
    std::future::pending().await
}
