//! The driver between the mediator and the bus. IO.
//!
//! One task owns the bus and lends it to a thread for the duration of a transfer; handlers only
//! send requests to the task.

use std::borrow::Cow;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use super::board::Board;
use super::calibration::Calibration;
use super::logic::{ImuAction, ImuLogic, Output};
use super::model::Model;
use super::sensors::Sensors;
use super::service::ServiceKind;
use super::store;
use crate::device_task::{DeviceTask, Next, Owner, on_a_thread, until};
use crate::i2c::{Bus, OpenBus};
use crate::stream::{complain, say};
use amber_driver::devices::ninedof::{
    DataRequest, DriverMsg, NineDofDriver, NineDofLink, SensorData, ServiceReport, ServiceRequest,
    SubscribeAction,
};
use amber_driver::{ClientId, Origin, Reply, StreamRequest, now};

/// The publishing period for clients that send SUBSCRIBE, which does not state a period.
const USUAL_PERIOD: Duration = Duration::from_millis(100);

/// The driver of motion sensors.
#[derive(Debug)]
pub struct MotionDriver<M, B> {
    /// `Some` until the start.
    setup: Option<(Setup<M>, B)>,
    task: DeviceTask<ImuRequest>,
}

/// How the driver runs, apart from the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup<M> {
    /// The settings of the model.
    pub settings: M,
    /// The file for calibrations, if any.
    pub calibration: Option<PathBuf>,
}

/// A request for the task that owns the bus.
#[derive(Debug)]
enum ImuRequest {
    Ask(Origin, DataRequest),
    Subscribe(Origin, SubscribeAction),
    Serve(Origin, ServiceKind, Option<Duration>),
    Publish,
    ClientDied(ClientId),
}

impl<M: Model, B: OpenBus> MotionDriver<M, B> {
    /// Creates a driver that opens its bus through `place`.
    pub fn new(setup: Setup<M>, place: B) -> Self {
        Self {
            setup: Some((setup, place)),
            task: DeviceTask::default(),
        }
    }

    async fn serve(&self, kind: ServiceKind, request: ServiceRequest, reply: Reply<ServiceReport>) {
        if reply.is_possible() {
            let ms = request.milliseconds;
            let time = ms.map(|ms| Duration::from_millis(ms.into()));
            let request = ImuRequest::Serve(reply.into_origin(), kind, time);
            self.task.request(request).await;
        }
    }
}

impl<M: Model, B: OpenBus> NineDofDriver for MotionDriver<M, B> {
    async fn start(&mut self, link: NineDofLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((setup, place)) = self.setup.take() {
            let calibration = load(setup.calibration.clone()).await;
            let mut settings = setup.settings;
            settings.recall(&calibration);
            let sensors = Chips {
                hardware: Some(Hardware {
                    board: Board::of(settings.chips(), now()),
                    place,
                    bus: None,
                }),
                logic: ImuLogic::new(settings, calibration, now()),
                file: setup.calibration,
                is_ending: false,
            };
            self.task.open(sensors, link);
        }
        Ok(())
    }

    async fn data(&mut self, request: DataRequest, reply: Reply<SensorData>) {
        if reply.is_possible() {
            let request = ImuRequest::Ask(reply.into_origin(), request);
            self.task.request(request).await;
        }
    }

    async fn readings(&mut self, origin: Origin, request: StreamRequest<SubscribeAction>) {
        match request {
            // A period of 0 stops the stream.
            StreamRequest::Start(action) | StreamRequest::Stop(action) => {
                self.task
                    .request(ImuRequest::Subscribe(origin, action))
                    .await;
            }
            // `client_gone` follows.
            StreamRequest::ClientGone => {}
        }
    }

    async fn self_test(&mut self, request: ServiceRequest, reply: Reply<ServiceReport>) {
        self.serve(ServiceKind::SelfTest, request, reply).await;
    }

    async fn calibrate_gyro(&mut self, request: ServiceRequest, reply: Reply<ServiceReport>) {
        self.serve(ServiceKind::Gyro, request, reply).await;
    }

    async fn calibrate_magnet(&mut self, request: ServiceRequest, reply: Reply<ServiceReport>) {
        self.serve(ServiceKind::Magnet, request, reply).await;
    }

    fn period(&self) -> Option<Duration> {
        Some(USUAL_PERIOD)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        self.task.request(ImuRequest::Publish).await;
        None
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(ImuRequest::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// The chips on their bus, with the logic.
struct Chips<M: Model, B> {
    logic: ImuLogic<M>,
    /// `None` while a thread has it.
    hardware: Option<Hardware<M::Raw, B>>,
    /// The file for calibrations, if any.
    file: Option<PathBuf>,
    is_ending: bool,
}

struct Hardware<D, B> {
    board: Board<D>,
    place: B,
    bus: Option<Box<dyn Bus>>,
}

impl<M: Model, B: OpenBus> Owner for Chips<M, B> {
    type Request = ImuRequest;
    type Message = DriverMsg;
    type Link = NineDofLink;
    type Action = ImuAction;

    fn request(&mut self, _link: &NineDofLink, request: ImuRequest) {
        let logic = &mut self.logic;
        match request {
            ImuRequest::Ask(origin, asked) => logic.ask(now(), origin, asked),
            ImuRequest::Subscribe(origin, action) => logic.subscribe(now(), &origin, action),
            ImuRequest::Serve(origin, kind, time) => logic.serve(now(), origin, kind, time),
            ImuRequest::Publish => logic.publish(),
            ImuRequest::ClientDied(client) => logic.client_died(client),
        }
    }

    fn shut_down(&mut self) {
        self.is_ending = true;
    }

    fn next(&mut self, link: &NineDofLink) -> Next<ImuAction> {
        if self.is_ending {
            return Next::End;
        }
        let step = self.logic.poll_action(now());
        tell(&mut self.logic, link);
        step.map_or(Next::Wait, Next::Perform)
    }

    async fn perform(&mut self, step: ImuAction) {
        match step {
            ImuAction::Open => self.open().await,
            ImuAction::Close => self.close(),
            ImuAction::Read(wanted) => self.read(wanted).await,
            ImuAction::Store(calibration) => {
                let stored = store(self.file.clone(), calibration).await;
                self.logic.stored(stored);
            }
        }
    }

    async fn wait(&mut self) {
        until(self.logic.wake_at()).await;
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::from)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.counters(), "ended");
    }
}

impl<M: Model, B: OpenBus> Chips<M, B> {
    async fn open(&mut self) {
        let opened = self.on_a_thread(|hardware| {
            hardware.bus = Some(hardware.place.open()?);
            hardware.board.reopened(now());
            Ok(())
        });
        match opened.await {
            Ok(()) => self.logic.opened(now()),
            Err(why) => self.logic.failed(now(), &why),
        }
    }

    async fn read(&mut self, wanted: Sensors) {
        let begun = now();
        let read = self.on_a_thread(move |Hardware { board, bus, .. }| match bus {
            Some(bus) => board.read(begun, bus.as_mut(), wanted),
            None => Err("the bus is closed".into()),
        });
        let read = read.await;
        let Some(board) = self.hardware.as_mut().map(|hardware| &mut hardware.board) else {
            return;
        };
        while let Some(note) = board.poll_note() {
            say(&note, note.is_warning());
        }
        match read {
            Ok(reading) => self.logic.read(now(), reading, board.trouble()),
            Err(why) => self.logic.failed(now(), &why),
        }
    }

    fn close(&mut self) {
        if let Some(hardware) = &mut self.hardware {
            hardware.bus = None;
        }
    }

    /// Runs a blocking function on the hardware.
    async fn on_a_thread<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Hardware<M::Raw, B>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let hardware = self.hardware.take().ok_or("a transfer is unfinished")?;
        let (hardware, result) = on_a_thread(hardware, work).await;
        self.hardware = Some(hardware);
        result
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

fn tell<M: Model>(logic: &mut ImuLogic<M>, link: &NineDofLink) {
    while let Some(output) = logic.poll_output() {
        match output {
            Output::Answer(origin, message) => complain(link.answer(&origin, message)),
            Output::PublishTo(origin, message) => complain(link.publish_to(&origin, message)),
            Output::Publish(message) => complain(link.publish(message)),
            Output::Say(note) => say(&note, note.is_warning()),
        }
    }
}

#[cfg(test)]
mod tests;
