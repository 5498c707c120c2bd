//! The driver between the mediator and the bus. IO.
//!
//! One task owns the bus, and lends it to a thread for as long as a transfer
//! takes; handlers only give it orders.

use std::error::Error;
use std::future::pending;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError};
use amber_proto::ninedof::service_request::Service;
use amber_proto::ninedof::{DataRequest, DriverMsg, ServiceRequest, SubscribeAction};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use super::board::Board;
use super::bus::{Bus, OpenBus};
use super::calibration::Calibration;
use super::logic::{Logic, Output, Settings, Step};
use super::registers::Sensors;
use super::service::Kind;
use super::store;

/// How many orders may wait for the end of a transfer.
const MAX_ORDERS: usize = 64;

/// How often those are published to who are subscribed by SUBSCRIBE, which
/// does not say how often.
const USUAL_PERIOD: Duration = Duration::from_millis(100);

/// The driver of a board with accelerometer, gyroscope and magnetometer.
#[derive(Debug)]
pub struct NineDof<B> {
    /// What the task needs, until it starts.
    owner: Option<Owner<B>>,
    orders: Option<mpsc::Sender<Order>>,
    has_warned: bool,
}

/// How the driver runs, but for the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What it does.
    pub settings: Settings,
    /// Where calibrations are kept, if they are.
    pub calibration: Option<PathBuf>,
}

#[derive(Debug)]
struct Owner<B> {
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
    /// A driver that opens its bus by `place`.
    pub fn new(setup: Setup, place: B) -> Self {
        Self {
            owner: Some(Owner { setup, place }),
            orders: None,
            has_warned: false,
        }
    }

    async fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // The task ends only with the last sender.
            let _ = orders.send(order).await;
        }
    }
}

impl<B: OpenBus> Driver for NineDof<B> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(owner) = self.owner.take() {
            let (orders, received) = mpsc::channel(MAX_ORDERS);
            self.orders = Some(orders);
            tokio::spawn(owner.run(received, link));
        }
        Ok(())
    }

    /// One message may ask, subscribe and want a service, all at once.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        let can_be_answered = origin.syn.is_some();
        let is_known = message.subscribe_action.is_some()
            || message.data_request.is_some()
            || message.service_request.is_some();
        if let Some(action) = message.subscribe_action {
            self.order(Order::Subscribe(origin.clone(), action)).await;
        }
        if let Some(asked) = message.data_request.filter(|_| can_be_answered) {
            self.order(Order::Ask(origin.clone(), asked)).await;
        }
        if let Some(asked) = message.service_request.filter(|_| can_be_answered) {
            let time = asked.milliseconds.map(|ms| Duration::from_millis(ms.into()));
            if let Some(kind) = kind(&asked) {
                self.order(Order::Serve(origin.clone(), kind, time)).await;
            }
        }
        if !is_known && !self.has_warned {
            self.has_warned = true;
            tracing::warn!(client = ?origin.clients, "not a request for a ninedof (logged once)");
        }
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(USUAL_PERIOD)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        self.order(Order::Publish).await;
        None
    }

    async fn client_died(&mut self, client: ClientId) {
        self.order(Order::ClientDied(client)).await;
    }
}

impl<B: OpenBus> Owner<B> {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, link: Link<DriverMsg>) {
        let calibration = load(self.setup.calibration.clone()).await;
        let settings = self.setup.settings.clone();
        let mut board = Board::new(settings.gain(), now());
        let mut logic = Logic::new(settings, calibration, now());
        let mut bus: Option<Box<dyn Bus>> = None;
        loop {
            while let Ok(order) = orders.try_recv() {
                obey(&mut logic, order);
            }
            let step = logic.poll_step(now());
            tell(&mut logic, &link);
            match step {
                None => tokio::select! {
                    order = orders.recv() => match order {
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
                        Err(error) => {
                            logic.failed(now(), &format!("cannot open the bus: {error}"));
                        }
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

/// What is known from before. A file that makes no sense is no reason not to
/// measure.
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

/// The name of the file, or why it could not be written.
async fn store(path: Option<PathBuf>, calibration: Calibration) -> Option<Result<String, String>> {
    let save = move |path: &mut PathBuf| store::save(path, &calibration);
    let (path, saved) = on_a_thread(path?, save).await;
    let path = path.display();
    Some(match saved {
        Ok(()) => Ok(format!("kept in {path}")),
        Err(error) => Err(format!("cannot keep it in {path}: {error}")),
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
    let transfers = move |(board, bus): &mut (Board, Box<dyn Bus>)| {
        board.read(begun, bus.as_mut(), wanted)
    };
    let ((mut board, bus), result) = on_a_thread((board, bus), transfers).await;
    while let Some(note) = board.poll_note() {
        match note.is_warning() {
            true => tracing::warn!("{note}"),
            false => tracing::info!("{note}"),
        }
    }
    match result {
        Ok(reading) => logic.read(now(), reading, board.is_incomplete()),
        Err(why) => logic.failed(now(), &why),
    }
    (board, Some(bus))
}

/// Does what blocks, with something that it takes and gives back.
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
        // A panic has ended the process already, and nobody aborts it.
        Err(_) => pending().await,
    }
}

fn kind(request: &ServiceRequest) -> Option<Kind> {
    // Not the generated getter: it says self-test for all that is unknown.
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

/// The clock of tokio, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
