//! The driver between the mediator and the StarGazer. IO.

use std::error::Error;
use std::time::Duration;

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError};
use amber_proto::stargazer::DriverMsg;
use amber_proto::stargazer::subscribe_action::Action;
use amber_values::MarkerPose;

use super::logic::{Fix, Known, Logic, Note, Output, Rate, Settings};
use crate::connection::{Connect, Port};
use crate::desk::{self, Desk, Inbox, now, report, until};

/// The driver of a Hagisonic StarGazer.
#[derive(Debug)]
pub struct Stargazer<C: Connect> {
    desk: Desk<Owner<C>>,
}

#[derive(Debug)]
struct Owner<C> {
    settings: Settings,
    connect: C,
}

#[derive(Debug)]
enum Order {
    Ask(Origin),
    Subscribe(Origin, Action, Rate),
    ClientDied(ClientId),
}

/// Events that wake the task.
enum Event {
    Ordered(Option<Order>),
    Read(Result<usize, String>),
    Timeout,
}

impl<C: Connect> Stargazer<C> {
    /// Creates a driver that reaches its device through `connect`.
    pub fn new(settings: Settings, connect: C) -> Self {
        Self {
            desk: Desk::new(Owner { settings, connect }),
        }
    }
}

impl<C: Connect> Driver for Stargazer<C> {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.desk.open(link);
        Ok(())
    }

    /// One message may subscribe and request a fix.
    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let Request { message, origin } = request;
        if message.subscribe_action.is_none() && message.data_request.is_none() {
            self.desk.complain_once(&origin);
        }
        if let Some(wanted) = message.subscribe_action {
            match Action::try_from(wanted.action) {
                Ok(action) => {
                    let rate = rate(wanted.freq);
                    let order = Order::Subscribe(origin.clone(), action, rate);
                    self.desk.order(order).await;
                }
                Err(_) => self.desk.complain_once(&origin),
            }
        }
        if message.data_request.is_some() && origin.syn.is_some() {
            self.desk.order(Order::Ask(origin)).await;
        }
        None
    }

    async fn client_died(&mut self, client: ClientId) {
        self.desk.order(Order::ClientDied(client)).await;
    }

    async fn shutdown(&mut self) {
        self.desk.close().await;
    }
}

impl<C: Connect> desk::Owner for Owner<C> {
    type Order = Order;
    type Message = DriverMsg;

    async fn run(self, mut inbox: Inbox<Order>, link: Link<DriverMsg>) {
        let mut logic = Logic::new(self.settings, now());
        let mut port = Port::new(self.connect);
        let mut buffer = vec![0; 1024];
        loop {
            while let Some(output) = logic.poll_output() {
                match output {
                    Output::Open => match port.open().await {
                        Ok(()) => logic.opened(now()),
                        Err(problem) => logic.failed(now(), &problem),
                    },
                    Output::Close => port.close(),
                    Output::Write(byte) => {
                        if let Err(problem) = port.write(&[byte]).await {
                            logic.failed(now(), &problem);
                        }
                    }
                    Output::Answer(origin, known) => {
                        complain(link.answer(&origin, answer(known)));
                    }
                    Output::PublishTo(origin, fix) => {
                        complain(link.publish_to(&origin, message(fix, None)));
                    }
                    Output::Publish(fix) => complain(link.publish(message(fix, None))),
                    Output::Say(note) => say(&note),
                    Output::End => {
                        let (counters, spoilt) = (logic.counters(), logic.spoilt());
                        tracing::debug!(?counters, spoilt, "ended");
                        return;
                    }
                }
                report(&link, logic.trouble());
            }
            let event = tokio::select! {
                order = inbox.next() => Event::Ordered(order),
                read = port.read(&mut buffer) => Event::Read(read),
                () = until(logic.wake_at()) => Event::Timeout,
            };
            match event {
                Event::Ordered(Some(Order::Ask(origin))) => logic.ask(now(), origin),
                Event::Ordered(Some(Order::Subscribe(origin, action, rate))) => match action {
                    Action::Subscribe => logic.subscribe(now(), &origin, rate),
                    Action::Unsubscribe => logic.unsubscribe(&origin, rate),
                },
                Event::Ordered(Some(Order::ClientDied(client))) => logic.client_died(client),
                Event::Ordered(None) => logic.shut_down(),
                Event::Read(Ok(length)) => logic.handle_bytes(now(), &buffer[..length]),
                Event::Read(Err(problem)) => logic.failed(now(), &problem),
                Event::Timeout => logic.handle_timeout(now()),
            }
        }
    }
}

/// The field is named a frequency but holds a period.
fn rate(freq: Option<u32>) -> Rate {
    match freq.unwrap_or(0) {
        0 => Rate::EachFix,
        ms => Rate::Period(Duration::from_millis(ms.into())),
    }
}

fn answer(known: Known) -> DriverMsg {
    match known {
        Known::Nothing => DriverMsg::default(),
        Known::Fresh(fix) => message(fix, None),
        Known::Old(fix, age) => message(fix, Some(age)),
    }
}

fn message(fix: Fix, lost: Option<Duration>) -> DriverMsg {
    let pose = MarkerPose {
        timestamp_ms: Some(ms(fix.since_start)),
        lost_ms: lost.map(ms),
        ..fix.pose
    };
    DriverMsg {
        localization_data: Some(pose.into()),
        ..DriverMsg::default()
    }
}

/// Wraps after seven weeks because the field has 32 bits.
fn ms(duration: Duration) -> u32 {
    (duration.as_millis() & u128::from(u32::MAX)) as u32
}

fn complain(sent: Result<(), SendError>) {
    if let Err(error) = sent {
        tracing::debug!("a fix was not sent: {error}");
    }
}

fn say(note: &Note) {
    match note {
        note if note.is_warning() => tracing::warn!("{note}"),
        Note::InView(_) => tracing::debug!("{note}"),
        note => tracing::info!("{note}"),
    }
}

#[cfg(test)]
mod tests;
