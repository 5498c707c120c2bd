//! Sends the motions of one page, with its own client. IO.
//!
//! Each page that drives is a separate client of the mediator. When the page is gone, its client
//! leaves, and the drivers stop its motions. If the dashboard is killed, the next message
//! to this client fails because its port is closed, so the mediator removes the client immediately.
//! Therefore each client subscribes to a device that publishes several times per second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amber_client::values::Target;
use amber_client::{Client, DriveToPoint, Error, MappingService, NineDof, Roboclaw, WheelSpeeds};
use amber_proto::Device;
use amber_proto::mapping::Explore;
use amber_proto::ninedof::SubscribeAction;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::hub::{Permission, Ticket, ViewerId};
use crate::input::Input;
use crate::limits::{
    BETWEEN_STOPS, LAST_WORDS, MAX_CALLS, MOTION_DEADLINE, MOTION_VALIDITY, PROOF_PERIOD, STOPS,
    TELL_AGAIN,
};
use crate::panel;
use crate::parts::Parts;

/// The clients of all pages.
pub(crate) struct Pilots {
    mediator: String,
    inputs: mpsc::Sender<Input>,
    new_targets: Arc<Notify>,
    handles: HashMap<ViewerId, Handle>,
    tasks: JoinSet<()>,
}

struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<(Device, WheelSpeeds)>>,
    orders: mpsc::Sender<Order>,
}

/// An order of a page for a device.
pub(crate) enum Order {
    /// Set targets; none stops the robot.
    Targets(Device, Vec<Target>),
    /// End the exploration.
    StopExploring(Device),
    /// Send a request.
    Call(Ticket, Device, String, Vec<String>, Permission),
}

impl Pilots {
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

    pub(crate) fn drive(
        &mut self,
        viewer: ViewerId,
        parts: Parts,
        device: Device,
        speeds: WheelSpeeds,
    ) {
        let motion = &self.handle(viewer, parts).motion;
        motion.send_replace(Some((device, speeds)));
    }

    /// Forwards an order; `false` if it is dropped because too many wait.
    pub(crate) fn order(&mut self, viewer: ViewerId, parts: Parts, order: Order) -> bool {
        self.handle(viewer, parts).orders.try_send(order).is_ok()
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

    /// The client of a page, which begins when the page first needs it.
    fn handle(&mut self, viewer: ViewerId, parts: Parts) -> &Handle {
        self.handles.entry(viewer).or_insert_with(|| {
            let (motion, motions) = watch::channel(None);
            let (orders, received) = mpsc::channel(MAX_CALLS);
            let pilot = Pilot {
                viewer,
                parts,
                inputs: self.inputs.clone(),
                new_targets: self.new_targets.clone(),
                calls: Arc::new(Semaphore::new(MAX_CALLS)),
                told: Arc::default(),
            };
            self.tasks
                .spawn(pilot.run(self.mediator.clone(), motions, received));
            Handle { motion, orders }
        })
    }
}

struct Pilot {
    viewer: ViewerId,
    parts: Parts,
    inputs: mpsc::Sender<Input>,
    new_targets: Arc<Notify>,
    calls: Arc<Semaphore>,
    /// What the page was last told about its motions, and when.
    told: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Pilot {
    async fn run(
        self,
        mediator: String,
        motions: watch::Receiver<Option<(Device, WheelSpeeds)>>,
        orders: mpsc::Receiver<Order>,
    ) {
        let client = match Client::connect(&mediator).await {
            Ok(client) => client,
            Err(error) => return self.notice(error.to_string()).await,
        };
        tokio::select! {
            () = self.serve(&client, motions, orders) => {}
            () = subscribe(&client, self.parts) => {}
        }
        client.close().await;
    }

    /// Performs all orders until the page is gone.
    async fn serve(
        &self,
        client: &Client,
        mut motions: watch::Receiver<Option<(Device, WheelSpeeds)>>,
        mut orders: mpsc::Receiver<Order>,
    ) {
        let mut orders_open = true;
        loop {
            tokio::select! {
                biased;
                // If the page is gone, this still returns the last motion first.
                changed = motions.changed() => {
                    let motion = *motions.borrow_and_update();
                    if let (Ok(()), Some((device, speeds))) = (changed.as_ref(), motion) {
                        self.drive(client, device, speeds, &motions).await;
                    }
                    if changed.is_err() {
                        break;
                    }
                }
                order = orders.recv(), if orders_open => match order {
                    Some(order) => self.perform(client, order).await,
                    None => orders_open = false,
                },
            }
        }
        while let Ok(order) = orders.try_recv() {
            if let Order::Targets(..) | Order::StopExploring(_) = order {
                self.perform(client, order).await;
            }
        }
    }

    async fn drive(
        &self,
        client: &Client,
        device: Device,
        speeds: WheelSpeeds,
        motions: &watch::Receiver<Option<(Device, WheelSpeeds)>>,
    ) {
        // CollisionAvoidance accepts the same message.
        // The next motion must not wait, and a refusal belongs on the page.
        let (viewer, inputs, told) = (self.viewer, self.inputs.clone(), self.told.clone());
        let refused = move |error: Error| {
            let text = error.to_string();
            if is_news(&told, &text) && inputs.try_send(Input::Notice(viewer, text)).is_err() {
                tracing::debug!("dropped a notice: the dashboard is busy");
            }
        };
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
                let text = error.to_string();
                if is_news(&self.told, &text) {
                    self.notice(text).await;
                }
            }
        }
    }

    async fn perform(&self, client: &Client, order: Order) {
        match order {
            Order::Targets(device, targets) => {
                let driver = DriveToPoint::new(client.device(device));
                match driver.set_targets(&targets).await {
                    Ok(()) => self.new_targets.notify_one(),
                    Err(error) => self.notice(error.to_string()).await,
                }
            }
            Order::StopExploring(device) => {
                let stop = Explore {
                    on: Some(false),
                    ..Explore::default()
                };
                let mapping = MappingService::new(client.device(device));
                if let Err(error) = mapping.explore(stop).await {
                    self.notice(error.to_string()).await;
                }
            }
            Order::Call(ticket, device, method, args, permission) => {
                let Ok(permit) = self.calls.clone().try_acquire_owned() else {
                    let why = "too many pending requests".to_owned();
                    return self.answer(ticket, Err(why)).await;
                };
                let (client, inputs) = (client.clone(), self.inputs.clone());
                tokio::spawn(async move {
                    let answer = panel::call(&client, device, &method, &args, permission).await;
                    let _ = inputs.send(Input::Answer(ticket, answer)).await;
                    drop(permit);
                });
            }
        }
    }

    async fn notice(&self, text: String) {
        let _ = self.inputs.send(Input::Notice(self.viewer, text)).await;
    }

    async fn answer(&self, ticket: Ticket, answer: Result<Value, String>) {
        let _ = self.inputs.send(Input::Answer(ticket, answer)).await;
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
