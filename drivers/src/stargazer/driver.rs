//! The driver between the mediator and the StarGazer. IO.

use std::error::Error;
use std::time::{Duration, Instant};

use amber_driver::devices::stargazer::{
    DataRequest, DriverMsg, LocalizationData, StargazerDriver, StargazerLink, SubscribeAction,
};
use amber_driver::{Origin, Reply, StreamRequest, now};
use amber_values::MarkerPose;

use super::logic::{Fix, Known, MarkerLogic, Note, Output, Rate, Settings};
use crate::connection::Connect;
use crate::device_task::{DeviceTask, Next};
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic, complain, say};

/// The driver of a Hagisonic StarGazer.
#[derive(Debug)]
pub struct Stargazer<C> {
    /// `Some` until the start.
    setup: Option<(Settings, C)>,
    task: DeviceTask<PoseRequest>,
}

/// A request for the task that owns the device.
#[derive(Debug)]
pub(crate) enum PoseRequest {
    Ask(Origin),
    Poses(Origin, StreamRequest<SubscribeAction>),
}

impl<C: Connect> Stargazer<C> {
    /// Creates a driver that reaches its device through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            setup: Some((settings, connect)),
            task: DeviceTask::default(),
        }
    }
}

impl<C: Connect> StargazerDriver for Stargazer<C> {
    async fn start(&mut self, link: StargazerLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, connect)) = self.setup.take() {
            let logic = MarkerLogic::new(settings, now());
            self.task.open(StreamDevice::new(logic, connect), link);
        }
        Ok(())
    }

    async fn pose(&mut self, _: DataRequest, reply: Reply<Option<LocalizationData>>) {
        if reply.is_possible() {
            self.task
                .request(PoseRequest::Ask(reply.into_origin()))
                .await;
        }
    }

    async fn poses(&mut self, origin: Origin, request: StreamRequest<SubscribeAction>) {
        self.task.request(PoseRequest::Poses(origin, request)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

impl StreamLogic for MarkerLogic {
    type Request = PoseRequest;
    type Message = DriverMsg;
    type Link = StargazerLink;

    fn request(&mut self, now: Instant, _link: &StargazerLink, request: PoseRequest) {
        match request {
            PoseRequest::Ask(origin) => self.ask(now, origin),
            PoseRequest::Poses(origin, StreamRequest::Start(wanted)) => {
                self.subscribe(now, &origin, rate(wanted.freq));
            }
            PoseRequest::Poses(origin, StreamRequest::Stop(wanted)) => {
                self.unsubscribe(&origin, rate(wanted.freq));
            }
            PoseRequest::Poses(origin, StreamRequest::ClientGone) => {
                origin
                    .clients
                    .iter()
                    .for_each(|client| self.client_died(*client));
            }
        }
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.opened(now),
            PortEvent::Failed(problem) => self.failed(now, problem),
            PortEvent::Bytes(bytes) => self.handle_bytes(now, bytes),
            PortEvent::Timeout => self.handle_timeout(now),
            PortEvent::ShutDown => self.shut_down(),
        }
    }

    fn next(&mut self, _now: Instant, link: &StargazerLink) -> Next<PortAction> {
        while let Some(output) = self.poll_output() {
            match output {
                Output::Open => return Next::Perform(PortAction::Open),
                Output::Close => return Next::Perform(PortAction::Close),
                Output::Write(byte) => return Next::Perform(PortAction::Write(vec![byte])),
                Output::Answer(origin, known) => {
                    complain(link.answer_pose(&origin, answer(known)));
                }
                Output::PublishTo(origin, fix) => complain(link.poses(&origin, data(fix, None))),
                // For clients that sent SUBSCRIBE, which the description does not mention.
                Output::Publish(fix) => complain(link.publish(DriverMsg {
                    localization_data: Some(data(fix, None)),
                    ..DriverMsg::default()
                })),
                Output::Say(note @ Note::InView(_)) => tracing::debug!("{note}"),
                Output::Say(note) => say(&note, note.is_warning()),
                Output::End => return Next::End,
            }
        }
        Next::Wait
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble()
    }

    fn counters(&self) -> String {
        format!("{:?}, {} invalid frames", self.counters(), self.spoilt())
    }
}

/// The field is named a frequency but holds a period.
fn rate(freq: Option<u32>) -> Rate {
    match freq.unwrap_or(0) {
        0 => Rate::EachFix,
        ms => Rate::Period(Duration::from_millis(ms.into())),
    }
}

fn answer(known: Known) -> Option<LocalizationData> {
    match known {
        Known::Nothing => None,
        Known::Fresh(fix) => Some(data(fix, None)),
        Known::Old(fix, age) => Some(data(fix, Some(age))),
    }
}

fn data(fix: Fix, lost: Option<Duration>) -> LocalizationData {
    let pose = MarkerPose {
        timestamp_ms: Some(ms(fix.since_start)),
        lost_ms: lost.map(ms),
        ..fix.pose
    };
    pose.into()
}

/// Wraps after seven weeks because the field has 32 bits.
fn ms(duration: Duration) -> u32 {
    (duration.as_millis() & u128::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests;
