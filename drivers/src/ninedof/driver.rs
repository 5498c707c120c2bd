//! The driver between the mediator and the bus. IO.
//!
//! One task owns the bus and lends it to a thread for the duration of a transfer; handlers only
//! send orders to the task.

use std::error::Error;
use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError};
use amber_proto::ninedof::service_request::Service;
use amber_proto::ninedof::{DataRequest, DriverMsg, ServiceRequest, SubscribeAction};
use tokio::task::spawn_blocking;

use super::board::Board;
use super::bus::{Bus, OpenBus};
use super::calibration::Calibration;
use super::logic::{Logic, Output, Settings, Step};
use super::registers::Sensors;
use super::service::Kind;
use super::store;
use crate::desk::{Desk, Inbox, Owner, now, report, until};

/// The publishing period for clients that send SUBSCRIBE, which does not state a period.
const USUAL_PERIOD: Duration = Duration::from_millis(100);

/// The driver of a board with accelerometer, gyroscope and magnetometer.
#[derive(Debug)]
pub struct NineDof<B: OpenBus> {
    desk: Desk<Holder<B>>,
}

/// How the driver runs, apart from the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The settings of the logic.
    pub settings: Settings,
    /// The file for calibrations, if any.
    pub calibration: Option<PathBuf>,
}

/// Owns the bus.
#[derive(Debug)]
struct Holder<B> {
    setup: Setup,
    place: B,
}

#[derive(Debug)]
enum Order {
    Ask(Origin, DataRequest),
    Subscribe(Origin, SubscribeAction),
    Serve(Origin, Kind, Option<Duration>),
    Publish,
    ClientDied(ClientId),
}

impl<B: OpenBus> NineDof<B> {
    /// Creates a driver that opens its bus through `place`.
    pub fn new(setup: Setup, place: B) -> Self {
        Self {
            desk: Desk::new(Holder { setup, place }),
        }
    }
}

impl<B: OpenBus> Driver for NineDof<B> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.desk.open(link);
        Ok(())
    }

    /// One message may request data, subscribe and request a service at the same time.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        let can_be_answered = origin.syn.is_some();
        let is_known = message.subscribe_action.is_some()
            || message.data_request.is_some()
            || message.service_request.is_some();
        if let Some(action) = message.subscribe_action {
            self.desk
                .order(Order::Subscribe(origin.clone(), action))
                .await;
        }
        if let Some(asked) = message.data_request.filter(|_| can_be_answered) {
            self.desk.order(Order::Ask(origin.clone(), asked)).await;
        }
        if let Some(asked) = message.service_request.filter(|_| can_be_answered) {
            let time = asked
                .milliseconds
                .map(|ms| Duration::from_millis(ms.into()));
            if let Some(kind) = kind(&asked) {
                self.desk
                    .order(Order::Serve(origin.clone(), kind, time))
                    .await;
            }
        }
        if !is_known {
            self.desk.complain_once(&origin);
        }
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(USUAL_PERIOD)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        self.desk.order(Order::Publish).await;
        None
    }

    async fn client_died(&mut self, client: ClientId) {
        self.desk.order(Order::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl<B: OpenBus> Owner for Holder<B> {
    type Order = Order;
    type Message = DriverMsg;

    async fn run(mut self, mut inbox: Inbox<Order>, link: Link<DriverMsg>) {
        let calibration = load(self.setup.calibration.clone()).await;
        let settings = self.setup.settings.clone();
        let mut board = Board::new(settings.gain(), now());
        let mut logic = Logic::new(settings, calibration, now());
        let mut bus: Option<Box<dyn Bus>> = None;
        'orders: loop {
            while let Some(order) = inbox.try_next() {
                match order {
                    Some(order) => obey(&mut logic, order),
                    None => break 'orders,
                }
            }
            let step = logic.poll_step(now());
            tell(&mut logic, &link);
            match step {
                None => tokio::select! {
                    order = inbox.next() => match order {
                        Some(order) => obey(&mut logic, order),
                        None => break,
                    },
                    () = until(logic.wake_at()) => {}
                },
                Some(Step::Open) => {
                    let opened;
                    (self.place, opened) = on_a_thread(self.place, OpenBus::open).await;
                    match opened {
                        Ok(opened) => {
                            bus = Some(opened);
                            board.reopened(now());
                            logic.opened(now());
                        }
                        Err(why) => logic.failed(now(), &why),
                    }
                }
                Some(Step::Close) => bus = None,
                Some(Step::Read(wanted)) => {
                    (board, bus) = read(&mut logic, board, bus, wanted).await;
                }
                Some(Step::Store(calibration)) => {
                    let file = self.setup.calibration.clone();
                    let stored = store(file, calibration).await;
                    logic.stored(stored);
                }
            }
            tell(&mut logic, &link);
        }
        tracing::debug!(counters = ?logic.counters(), "ended");
    }
}

/// Loads the stored calibration. An invalid file does not prevent measuring.
async fn load(path: Option<PathBuf>) -> Calibration {
    let Some(path) = path else {
        return Calibration::default();
    };
    let (path, loaded) = on_a_thread(path, |path| store::load(path)).await;
    loaded.unwrap_or_else(|why| {
        let path = path.display();
        tracing::warn!("cannot use the calibration in {path}: {why}");
        tracing::warn!("hint: `amber call ninedof calibrate-gyro` writes a new one");
        Calibration::default()
    })
}

/// Returns the name of the file, or why it could not be written.
async fn store(path: Option<PathBuf>, calibration: Calibration) -> Option<Result<String, String>> {
    let save = move |path: &mut PathBuf| store::save(path, &calibration);
    let (path, saved) = on_a_thread(path?, save).await;
    let path = path.display();
    Some(match saved {
        Ok(()) => Ok(format!("saved in {path}")),
        Err(error) => Err(format!("cannot save it in {path}: {error}")),
    })
}

async fn read(
    logic: &mut Logic,
    board: Board,
    bus: Option<Box<dyn Bus>>,
    wanted: Sensors,
) -> (Board, Option<Box<dyn Bus>>) {
    let Some(bus) = bus else {
        logic.failed(now(), "the bus is closed");
        return (board, bus);
    };
    let begun = now();
    let transfers =
        move |(board, bus): &mut (Board, Box<dyn Bus>)| board.read(begun, bus.as_mut(), wanted);
    let ((mut board, bus), result) = on_a_thread((board, bus), transfers).await;
    while let Some(note) = board.poll_note() {
        match note.is_warning() {
            true => tracing::warn!("{note}"),
            false => tracing::info!("{note}"),
        }
    }
    match result {
        Ok(reading) => logic.read(now(), reading, board.trouble()),
        Err(why) => logic.failed(now(), &why),
    }
    (board, Some(bus))
}

/// Runs a blocking function that takes a value and returns it.
async fn on_a_thread<T: Send + 'static, R: Send + 'static>(
    mut thing: T,
    work: impl FnOnce(&mut T) -> R + Send + 'static,
) -> (T, R) {
    let blocking = spawn_blocking(move || {
        let result = work(&mut thing);
        (thing, result)
    });
    match blocking.await {
        Ok(done) => done,
        // A panic has already ended the process, and nothing aborts the thread.
        Err(_) => pending().await,
    }
}

fn kind(request: &ServiceRequest) -> Option<Kind> {
    // The generated getter is not usable: it returns self-test for unknown values.
    Some(match Service::try_from(request.service?).ok()? {
        Service::SelfTest => Kind::SelfTest,
        Service::CalibrateGyro => Kind::Gyro,
        Service::CalibrateMagnet => Kind::Magnet,
    })
}

fn obey(logic: &mut Logic, order: Order) {
    match order {
        Order::Ask(origin, asked) => logic.ask(now(), origin, asked),
        Order::Subscribe(origin, action) => logic.subscribe(now(), &origin, action),
        Order::Serve(origin, kind, time) => logic.serve(now(), origin, kind, time),
        Order::Publish => logic.publish(),
        Order::ClientDied(client) => logic.client_died(client),
    }
}

fn tell(logic: &mut Logic, link: &Link<DriverMsg>) {
    report(link, logic.trouble());
    while let Some(output) = logic.poll_output() {
        let sent: Result<(), SendError> = match output {
            Output::Answer(origin, message) => link.answer(&origin, message),
            Output::PublishTo(origin, message) => link.publish_to(&origin, message),
            Output::Publish(message) => link.publish(message),
            Output::Say(note) if note.is_warning() => {
                tracing::warn!("{note}");
                Ok(())
            }
            Output::Say(note) => {
                tracing::info!("{note}");
                Ok(())
            }
        };
        if let Err(error) = sent {
            tracing::debug!("a reading was not sent: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
