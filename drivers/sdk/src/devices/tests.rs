//! Tests of generated traits: a driver between two pipes, and the test as the mediator.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use amber_proto::{DeviceMessage, MsgType, mediator as wire, order};
use prost::Message;
use tokio::time::sleep;

use super::drive_to_point::{self as drive, DriveToPointDriver};
use super::dummy::{self, DummyDriver, DummyLink, StatusAnswer};
use super::mediator::MediatorDriver;
use super::ninedof::{self, DataRequest, NineDofDriver, NineDofLink, ServiceReport};
use super::ninedof::{SensorData, ServiceRequest, SubscribeAction};
use crate::testing::{Mediator, from, run};
use crate::{ClientId, Driver, Origin, Outcome, Periodic, Reply, StreamRequest};

mod motion;

pub(crate) type Notes = Rc<RefCell<Vec<String>>>;

/// A Dummy that refuses texts with a line break, and answers late while it is enabled.
#[derive(Default)]
pub(crate) struct Lamp {
    enable: bool,
    message: String,
    published: u32,
    link: Option<DummyLink>,
    pub(crate) notes: Notes,
}

impl DummyDriver for Lamp {
    async fn start(&mut self, link: DummyLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn status(&mut self, reply: Reply<StatusAnswer>) {
        let answer = StatusAnswer {
            enable: self.enable,
            message: self.message.clone(),
        };
        if self.message == "silent" {
            return;
        }
        if self.message == "out of order" {
            return reply.refuse("the lamp is broken");
        }
        if !self.enable {
            return reply.send(answer);
        }
        tokio::spawn(async move {
            sleep(Duration::from_secs(2)).await;
            reply.send(answer);
        });
    }

    async fn enable(&mut self, enable: bool, outcome: Outcome) {
        self.enable = enable;
        outcome.done();
    }

    async fn message(&mut self, message: String, outcome: Outcome) {
        if message.contains('\n') {
            return outcome.refuse("a line break");
        }
        if message == "say it" {
            let link = self.link.as_ref().unwrap();
            link.messages("said".into()).unwrap();
        }
        self.message = message;
        outcome.done();
    }

    fn period(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    async fn publish(&mut self) -> Option<String> {
        self.published += 1;
        Some(self.published.to_string())
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.notes.borrow_mut().push(format!("{client} is gone"));
    }

    async fn shutdown(&mut self) {
        self.notes.borrow_mut().push("shutdown".into());
    }
}

/// A gauge whose readings only have a timestamp.
#[derive(Default)]
pub(crate) struct Gauge {
    readings: Periodic<SubscribeAction>,
    link: Option<NineDofLink>,
    pub(crate) notes: Notes,
}

impl NineDofDriver for Gauge {
    async fn start(&mut self, link: NineDofLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn data(&mut self, request: DataRequest, reply: Reply<SensorData>) {
        assert_eq!(request.accel, Some(true));
        reply.send(reading(1));
    }

    async fn readings(&mut self, origin: Origin, request: StreamRequest<SubscribeAction>) {
        let what = match &request {
            StreamRequest::Start(_) => "start",
            StreamRequest::Stop(_) => "stop",
            StreamRequest::ClientGone => "gone",
        };
        let client = origin.client().unwrap();
        self.notes.borrow_mut().push(format!("{what} {client}"));
        let period = |action: &SubscribeAction| Duration::from_millis(action.freq().into());
        let now = crate::now();
        assert!(self.readings.handle(now, &origin, request, period));
    }

    async fn self_test(&mut self, request: ServiceRequest, reply: Reply<ServiceReport>) {
        assert_eq!(request.milliseconds, Some(9));
        self.notes.borrow_mut().push("self-test".into());
        reply.send(ServiceReport::default());
    }

    async fn calibrate_gyro(&mut self, _: ServiceRequest, reply: Reply<ServiceReport>) {
        self.notes.borrow_mut().push("gyro".into());
        let link = self.link.clone().unwrap();
        let origin = reply.into_origin();
        link.answer_calibrate_gyro(&origin, ServiceReport::default())
            .unwrap();
    }

    async fn calibrate_magnet(&mut self, _: ServiceRequest, _: Reply<ServiceReport>) {
        unreachable!("nothing asks for it");
    }

    fn wake_at(&self) -> Option<Instant> {
        self.readings.next_due()
    }

    async fn wake(&mut self) {
        for (origin, action) in self.readings.take_due(crate::now()) {
            let link = self.link.as_ref().unwrap();
            link.readings(&origin, reading(action.freq())).unwrap();
        }
    }
}

fn reading(timestamp: u32) -> SensorData {
    SensorData {
        timestamp: Some(timestamp),
        ..SensorData::default()
    }
}

/// Runs a driver during the scenario, and then until the end of its stdin.
fn check(driver: impl Driver, scenario: impl AsyncFnOnce(&mut Mediator)) {
    run(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let (served, ()) = tokio::join!(crate::serve_on(driver, reader, writer), async {
            scenario(&mut mediator).await;
            mediator.close().await;
            assert_eq!(mediator.read().await, None);
        });
        served.unwrap();
    });
}

fn get_status() -> dummy::DriverMsg {
    dummy::DriverMsg {
        get_status: Some(true),
        ..dummy::DriverMsg::default()
    }
}

fn text(text: &str) -> dummy::DriverMsg {
    dummy::DriverMsg {
        message: Some(text.into()),
        ..dummy::DriverMsg::default()
    }
}

/// Sends a command of client 5 that asks for its outcome, and returns why it was refused.
async fn outcome(mediator: &mut Mediator, syn: u32, command: &dummy::DriverMsg) -> Option<String> {
    let mut message = dummy::DriverMsg::data().encode_to_vec();
    message.extend(command.encode_to_vec());
    let wish = wire::DriverMsg {
        want_outcome: Some(true),
        syn_num: Some(syn),
        ..wire::DriverMsg::default()
    };
    message.extend(wish.encode_to_vec());
    mediator.write_bytes(from(5), message).await;
    let (clients, reply): (_, wire::DriverMsg) = mediator.hear().await;
    assert_eq!((clients, reply.ack_num), (vec![5], Some(syn)));
    reply.outcome.unwrap().why_refused()
}

#[test]
fn answers_come_at_once_or_later() {
    check(dummy::driver(Lamp::default()), async |mediator| {
        let status = |ack, enable, message: &str| dummy::DriverMsg {
            ack_num: Some(ack),
            enable: Some(enable),
            message: Some(message.into()),
            ..dummy::DriverMsg::data()
        };
        mediator.ask(1, text("hello")).await;
        mediator.ask(2, get_status()).await;
        let heard = mediator.hear().await;
        assert_eq!(heard, (vec![5], status(2, false, "hello")));
        let enable = dummy::DriverMsg {
            enable: Some(true),
            ..dummy::DriverMsg::default()
        };
        mediator.ask(3, enable).await;
        mediator.ask(4, get_status()).await;
        mediator.ask(5, text("changed")).await;
        // Requests that come after it are carried out before its answer.
        mediator.expect_silence(Duration::from_millis(1900)).await;
        let heard = mediator.hear().await;
        assert_eq!(heard, (vec![5], status(4, true, "hello")));
    });
}

#[test]
fn a_request_without_a_number_or_with_a_dropped_reply_has_no_answer() {
    check(dummy::driver(Lamp::default()), async |mediator| {
        let mut ask = get_status();
        ask.set_kind(MsgType::Data);
        mediator.write(from(5), &ask).await;
        mediator.ask(1, text("silent")).await;
        mediator.ask(2, get_status()).await;
        mediator.expect_silence(Duration::from_secs(5)).await;
    });
}

#[test]
fn of_several_requests_in_one_message_the_first_takes_effect() {
    check(dummy::driver(Lamp::default()), async |mediator| {
        let mut both = get_status();
        both.message = Some("both".into());
        mediator.ask(1, both).await;
        mediator.ask(2, get_status()).await;
        for syn in [1, 2] {
            let (_, reply): (_, dummy::DriverMsg) = mediator.hear().await;
            assert_eq!(reply.ack_num, Some(syn));
            assert_eq!(reply.message.as_deref(), Some(""));
        }
    });
}

#[test]
fn one_message_may_start_a_stream_and_ask() {
    check(ninedof::driver(Gauge::default()), async |mediator| {
        let both = ninedof::DriverMsg {
            data_request: Some(DataRequest {
                accel: Some(true),
                ..DataRequest::default()
            }),
            subscribe_action: Some(SubscribeAction {
                freq: Some(50),
                ..SubscribeAction::default()
            }),
            ..ninedof::DriverMsg::default()
        };
        mediator.ask(1, both).await;
        for ack in [1, 0, 0] {
            let (_, reply): (_, ninedof::DriverMsg) = mediator.hear().await;
            assert_eq!(reply.ack_num, Some(ack));
        }
        mediator.tell(5, MsgType::ClientDied).await;
    });
}

/// A mediator that can do nothing. It is the device whose answers have a field for refusals.
struct Refusing;

impl MediatorDriver for Refusing {
    async fn list_drivers(&mut self, _: wire::ListDrivers, reply: Reply<wire::DriverList>) {
        reply.refuse("no lists");
    }
    async fn describe_driver(&mut self, _: wire::Device, _: Reply<wire::Driver>) {}
    async fn get_description(&mut self, _: wire::Device, _: Reply<wire::Description>) {}
    async fn list_clients(&mut self, _: wire::ListClients, _: Reply<wire::ClientList>) {}
    async fn list_processes(&mut self, _: wire::ListProcesses, _: Reply<wire::ProcessList>) {}
    async fn statistics(&mut self, _: wire::GetStatistics, _: Reply<wire::Statistics>) {}
    async fn explain_counters(&mut self, _: wire::ExplainCounters, _: Reply<wire::CounterList>) {}
    async fn read_log(&mut self, _: wire::ReadLog, _: Reply<wire::LogPage>) {}
    async fn change_driver(&mut self, _: wire::ChangeDriver, _: Reply<String>) {}
    async fn open_feed(&mut self, _: wire::OpenFeed, _: Reply<wire::Feed>) {}
    async fn reload(&mut self, _: wire::Reload, reply: Reply<String>) {
        reply.send("done".into());
    }
    async fn set_log_level(&mut self, _: wire::SetLogLevel, _: Reply<String>) {}
    async fn trace(&mut self, _: wire::Trace, _: Reply<String>) {}
    async fn describe(&mut self, _: wire::Description, _: Outcome) {}
    async fn health(&mut self, _: wire::Health, _: Outcome) {}
}

#[test]
fn a_refusal_is_an_answer_if_the_description_has_a_field_for_it() {
    check(super::mediator::driver(Refusing), async |mediator| {
        let request = |what| wire::DriverMsg {
            request: Some(wire::Request { what: Some(what) }),
            ..wire::DriverMsg::default()
        };
        let list = request(wire::request::What::ListDrivers(Default::default()));
        mediator.ask(1, list).await;
        let (clients, reply): (_, wire::DriverMsg) = mediator.hear().await;
        assert_eq!((clients, reply.ack_num), (vec![5], Some(1)));
        let refusal = wire::Refusal {
            reason: wire::refusal::Reason::Failed.into(),
            message: "no lists".into(),
            hint: None,
        };
        let expected = wire::reply::What::Refused(refusal);
        assert_eq!(reply.reply.unwrap().what, Some(expected));

        let reload = request(wire::request::What::Reload(wire::Reload {}));
        mediator.ask(2, reload).await;
        let (_, reply): (_, wire::DriverMsg) = mediator.hear().await;
        let expected = wire::reply::What::Done("done".into());
        assert_eq!(reply.reply.unwrap().what, Some(expected));
    });
}

#[test]
fn clients_that_ask_for_the_outcome_learn_it() {
    check(dummy::driver(Lamp::default()), async |mediator| {
        assert_eq!(outcome(mediator, 1, &text("yes")).await, None);
        let refused = outcome(mediator, 2, &text("no\n")).await;
        assert_eq!(refused.as_deref(), Some("a line break"));
        let unknown = outcome(mediator, 3, &dummy::DriverMsg::default()).await;
        assert_eq!(unknown.as_deref(), Some("not a request for this device"));
        assert_eq!(outcome(mediator, 4, &text("out of order")).await, None);
        let broken = outcome(mediator, 5, &get_status()).await;
        assert_eq!(broken.as_deref(), Some("the lamp is broken"));
        // Others learn nothing.
        mediator.ask(6, text("no\n")).await;
        mediator.ask(7, dummy::DriverMsg::default()).await;
        mediator.ask(8, get_status()).await;
        mediator.expect_silence(Duration::from_secs(5)).await;
    });
}

#[test]
fn subscribers_get_the_stream_until_they_leave_or_die() {
    let lamp = Lamp::default();
    let notes = lamp.notes.clone();
    check(dummy::driver(lamp), async |mediator| {
        mediator.tell(7, MsgType::Subscribe).await;
        for expected in ["1", "2"] {
            let (clients, message): (_, dummy::DriverMsg) = mediator.hear().await;
            assert_eq!(clients, [7]);
            assert_eq!((message.ack_num, message.message()), (Some(0), expected));
        }
        mediator.ask(1, text("say it")).await;
        let (clients, message): (_, dummy::DriverMsg) = mediator.hear().await;
        assert_eq!((clients, message.message()), (vec![7], "said"));
        mediator.tell(7, MsgType::ClientDied).await;
        mediator.expect_silence(Duration::from_secs(5)).await;
    });
    assert_eq!(*notes.borrow(), ["7 is gone", "shutdown"]);
}

#[test]
fn a_stream_with_a_request_has_its_own_period_per_client() {
    let gauge = Gauge::default();
    let notes = gauge.notes.clone();
    check(ninedof::driver(gauge), async |mediator| {
        let subscribe = |freq| ninedof::DriverMsg {
            subscribe_action: Some(SubscribeAction {
                freq,
                ..SubscribeAction::default()
            }),
            ..ninedof::DriverMsg::data()
        };
        mediator.write(from(5), &subscribe(Some(100))).await;
        mediator.write(from(6), &subscribe(Some(1000))).await;
        let mut heard = Vec::new();
        while heard.len() < 21 {
            let (clients, message): (_, ninedof::DriverMsg) = mediator.hear().await;
            assert_eq!(message.ack_num, Some(0));
            heard.push((clients[0], message.sensor_data.unwrap().timestamp.unwrap()));
        }
        let count = |one| heard.iter().filter(|heard| **heard == one).count();
        assert!((18..=20).contains(&count((5, 100))), "{heard:?}");
        assert!((1..=2).contains(&count((6, 1000))), "{heard:?}");

        // An absent period stops it, too.
        mediator.write(from(5), &subscribe(None)).await;
        mediator.write(from(6), &subscribe(Some(200))).await;
        mediator.tell(5, MsgType::Ping).await;
        while mediator.hear::<ninedof::DriverMsg>().await.1.kind() != Some(MsgType::Pong) {}
        let (clients, message): (_, ninedof::DriverMsg) = mediator.hear().await;
        assert_eq!(clients, [6]);
        assert_eq!(message.sensor_data.unwrap().timestamp, Some(200));

        mediator.tell(6, MsgType::ClientDied).await;
        mediator.expect_silence(Duration::from_secs(5)).await;
    });
    let expected = ["start 5", "start 6", "stop 5", "start 6", "gone 6"];
    assert_eq!(*notes.borrow(), expected);
}

#[test]
fn a_value_in_the_request_chooses_the_method() {
    let gauge = Gauge::default();
    let notes = gauge.notes.clone();
    check(ninedof::driver(gauge), async |mediator| {
        for (syn, service) in [(1, Some(1)), (2, Some(99)), (3, None), (4, Some(2))] {
            let request = ninedof::DriverMsg {
                service_request: Some(ServiceRequest {
                    service,
                    milliseconds: Some(9),
                }),
                ..ninedof::DriverMsg::default()
            };
            mediator.ask(syn, request).await;
        }
        for syn in [1, 4] {
            let (_, reply): (_, ninedof::DriverMsg) = mediator.hear().await;
            assert_eq!(reply.ack_num, Some(syn));
            assert_eq!(reply.service_report, Some(ServiceReport::default()));
        }
    });
    assert_eq!(*notes.borrow(), ["self-test", "gyro"]);
}

/// A driver without hooks: these methods are all that the compiler demands.
struct Router;

impl DriveToPointDriver for Router {
    async fn set_targets(&mut self, targets: drive::Targets, outcome: Outcome) {
        assert_eq!(targets, drive::Targets::default());
        outcome.done();
    }

    async fn go(&mut self, _: drive::Go, _: Reply<order::Order>) {}

    async fn order(&mut self, _: u64, _: Reply<order::Order>) {}

    async fn cancel_order(&mut self, _: u64, _: Reply<order::Order>) {}

    async fn orders(&mut self, _: Reply<order::Orders>) {}

    async fn next_target(&mut self, reply: Reply<drive::NextTargetAnswer>) {
        reply.send(drive::NextTargetAnswer {
            targets: drive::Targets {
                radiuses: vec![0.5],
                ..drive::Targets::default()
            },
            location: drive::Location::default(),
        });
    }

    async fn next_targets(&mut self, _: Reply<drive::NextTargetsAnswer>) {}

    async fn visited_target(&mut self, _: Reply<drive::VisitedTargetAnswer>) {}

    async fn visited_targets(&mut self, _: Reply<drive::VisitedTargetsAnswer>) {}

    async fn configuration(&mut self, _: Reply<drive::Configuration>) {}

    async fn progress(&mut self, _: Reply<drive::ProgressAnswer>) {}
}

#[test]
fn a_flag_alone_is_a_request_and_the_answer_repeats_it_where_described() {
    check(drive::driver(Router), async |mediator| {
        let set = drive::DriverMsg {
            set_targets: Some(true),
            ..drive::DriverMsg::default()
        };
        mediator.ask(1, set).await;
        let flag = drive::DriverMsg {
            get_next_target: Some(true),
            ..drive::DriverMsg::default()
        };
        mediator.ask(2, flag).await;
        let (_, reply): (_, drive::DriverMsg) = mediator.hear().await;
        assert_eq!(reply.ack_num, Some(2));
        assert_eq!(reply.get_next_target, Some(true));
        assert_eq!(reply.set_targets, None);
        assert_eq!(reply.targets.unwrap().radiuses, [0.5]);
        assert_eq!(reply.location, Some(drive::Location::default()));
    });
}
