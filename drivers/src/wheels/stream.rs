//! Runs a model whose controllers are at a byte stream. IO.

use std::time::Instant;

use amber_driver::devices::roboclaw::{DriverMsg, RoboclawLink};
use amber_driver::now;
use tokio::sync::watch;

use super::besides::Besides;
use super::driver::{WheelRequest, WheelsDriver, answer, tell};
use super::{StopReason, StreamAction, StreamModel};
use crate::connection::Connect;
use crate::device_task::Next;
use crate::stream::{PortAction, PortEvent, StreamDevice, StreamLogic};

/// The driver of a model, which reaches its controllers through `connect`.
pub(crate) fn driver<M: StreamModel, C: Connect>(
    settings: M::Settings,
    connect: C,
) -> WheelsDriver<StreamDevice<Logic<M>, C>> {
    made(settings, connect, None)
}

/// The same for a base that brings more than wheels, and says it here.
pub(crate) fn driver_and_besides<M: StreamModel, C: Connect>(
    settings: M::Settings,
    connect: C,
    besides: watch::Sender<Besides>,
) -> WheelsDriver<StreamDevice<Logic<M>, C>> {
    made(settings, connect, Some(besides))
}

fn made<M: StreamModel, C: Connect>(
    settings: M::Settings,
    connect: C,
    besides: Option<watch::Sender<Besides>>,
) -> WheelsDriver<StreamDevice<Logic<M>, C>> {
    WheelsDriver::new(move || {
        let model = M::new(settings, now());
        StreamDevice::new(Logic { model, besides }, connect)
    })
}

/// The logic of a model, in the task that owns the port.
pub(crate) struct Logic<M> {
    model: M,
    besides: Option<watch::Sender<Besides>>,
}

impl<M: StreamModel> Logic<M> {
    /// Says what the base brings besides its wheels.
    fn say_besides(&self, now: Instant) {
        if let Some(besides) = &self.besides {
            let next = Besides::of(&self.model, now);
            besides.send_if_modified(|last| {
                let is_news = !next.feels_like(last);
                *last = next;
                is_news
            });
        }
    }
}

impl<M: StreamModel> StreamLogic for Logic<M> {
    type Request = WheelRequest;
    type Message = DriverMsg;
    type Link = RoboclawLink;

    fn request(&mut self, _now: Instant, link: &RoboclawLink, request: WheelRequest) {
        answer(&mut self.model, link, request);
    }

    fn handle(&mut self, now: Instant, event: PortEvent<'_>) {
        match event {
            PortEvent::Opened => self.model.opened(now),
            PortEvent::Failed(problem) => self.model.failed(now, problem),
            PortEvent::Bytes(bytes) => self.model.handle_bytes(now, bytes),
            PortEvent::Timeout => self.model.handle_timeout(now),
            PortEvent::ShutDown => self.model.shut_down(),
        }
    }

    fn next(&mut self, now: Instant, link: &RoboclawLink) -> Next<PortAction> {
        self.model.set_listened(now, link.subscriptions() > 0);
        let action = self.model.poll_action(now);
        tell(&mut self.model, link);
        self.say_besides(now);
        match action {
            Some(StreamAction::Open) => Next::Perform(PortAction::Open),
            Some(StreamAction::Close) => Next::Perform(PortAction::Close),
            Some(StreamAction::Write(bytes)) => Next::Perform(PortAction::Write(bytes)),
            Some(StreamAction::End) => Next::End,
            None => Next::Wait,
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.model.wake_at()
    }

    fn trouble(&self) -> Option<&str> {
        self.model
            .service()
            .trouble()
            .or_else(|| self.model.hindrance())
    }

    fn last_words(&self) -> Option<Vec<u8>> {
        self.model.last_words()
    }

    fn handle_guard_acted(&mut self) {
        self.model.stop(StopReason::Late);
    }

    fn counters(&self) -> String {
        format!("{:?}", self.model.service().counters())
    }
}
