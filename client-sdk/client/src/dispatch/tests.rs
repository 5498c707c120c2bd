//! The task, its handles and a scripted mediator. Time is stopped.

use std::task::Waker;

use amber_proto::{DeviceType, SynNum, dummy};
use tokio::sync::mpsc;
use tokio::time::Instant as Clock;

use super::*;
use crate::client::Client;
use crate::subscription::Event;
use crate::transport::ChannelTransport;

pub(super) const DUMMY: Device = Device::new(DeviceType::DUMMY, 0);
const DIED: MsgType = MsgType::DriverDied;

/// A task that is polled by hand, and the other end of its transport.
pub(super) struct Bench {
    pub(super) dispatch: Dispatch<ChannelTransport>,
    sent: mpsc::Receiver<Packet>,
    pub(super) incoming: mpsc::Sender<Packet>,
}

impl Bench {
    pub(super) fn new() -> (Client, Self) {
        let (outgoing, sent) = mpsc::channel(64);
        let (incoming, received) = mpsc::channel(64);
        let transport = ChannelTransport::new(outgoing, received, Role::Client);
        let (client, mut dispatch) = Client::with_task(transport, "the test".into());
        // Numbers that tests know.
        dispatch.pending = Pending::new(0);
        (
            client,
            Self {
                dispatch,
                sent,
                incoming,
            },
        )
    }

    /// Lets the task do all that it can do now; gives what it has sent.
    fn settle(&mut self) -> Vec<(MsgType, Option<SynNum>)> {
        let packets = self.settle_packets().into_iter();
        let envelopes = packets.map(|packet| Envelope::decode(packet.message).unwrap());
        envelopes.map(|it| (it.kind().unwrap(), it.syn())).collect()
    }

    /// The same, as packets.
    pub(super) fn settle_packets(&mut self) -> Vec<Packet> {
        let mut sent = Vec::new();
        while let Poll::Ready(Turn::GoOn) = poll(Box::pin(self.dispatch.turn()).as_mut()) {}
        while let Ok(packet) = self.sent.try_recv() {
            assert!(packet.header.client_ids.is_empty());
            sent.push(packet);
        }
        sent
    }

    fn receive(&self, device: Device, kind: MsgType, ack: Option<u32>) {
        let envelope = Envelope::new(kind, None, ack.map(SynNum));
        self.incoming
            .try_send(packet(device, envelope.bytes()))
            .unwrap();
    }

    fn publish(&self, text: &str) {
        let message = dummy::DriverMsg {
            ack_num: Some(0),
            message: Some(text.into()),
            ..dummy::DriverMsg::data()
        };
        self.incoming
            .try_send(packet(DUMMY, message.encode_to_vec().into()))
            .unwrap();
    }

    fn nothing_in_flight(&self) -> bool {
        self.dispatch.pending.is_empty()
    }
}

pub(super) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn data() -> Bytes {
    Envelope::new(MsgType::Data, None, None).bytes()
}

/// A call that has been asked for, but that the task has not looked at.
macro_rules! call {
    ($name:ident, $client:expr) => {
        let device = $client.device(DUMMY);
        let mut $name = Box::pin(device.request_raw(data()));
        assert!(poll($name.as_mut()).is_pending());
    };
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_its_caller() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    assert_eq!(bench.settle(), [(MsgType::Data, Some(SynNum(1)))]);
    bench.receive(DUMMY, MsgType::Data, Some(2));
    bench.receive(Device::MEDIATOR, MsgType::Data, Some(1));
    bench.settle();
    assert!(
        poll(call.as_mut()).is_pending(),
        "neither of them answers this call"
    );
    bench.receive(DUMMY, MsgType::Data, Some(1));
    bench.settle();
    assert!(matches!(poll(call.as_mut()), Poll::Ready(Ok(_))));
    assert!(bench.nothing_in_flight());
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_before_it_is_sent_is_never_sent() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    drop(call);
    assert!(bench.settle().is_empty());
    assert!(bench.nothing_in_flight());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_cancellation_comes_first_is_never_sent() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    drop(call);
    // What `select` may do: the cancellation is looked at before the command.
    let cancellation = bench.dispatch.cancellations.try_recv().unwrap();
    bench.dispatch.handle_cancellation(now(), cancellation);
    assert!(bench.settle().is_empty());
    assert!(bench.nothing_in_flight());
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_after_it_is_sent_leaves_nothing_behind() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    assert_eq!(bench.settle().len(), 1);
    assert!(!bench.nothing_in_flight());
    drop(call);
    assert!(bench.settle().is_empty());
    assert!(bench.nothing_in_flight());
    bench.receive(DUMMY, MsgType::Data, Some(1));
    assert!(bench.settle().is_empty(), "a late answer changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_after_it_is_answered_disturbs_no_other() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    call!(other, client);
    bench.settle();
    bench.receive(DUMMY, MsgType::Data, Some(1));
    bench.settle();
    drop(call);
    bench.settle();
    assert!(!bench.nothing_in_flight());
    bench.receive(DUMMY, MsgType::Data, Some(2));
    bench.settle();
    assert!(matches!(poll(other.as_mut()), Poll::Ready(Ok(_))));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finished_posts_no_cancellation() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    bench.settle();
    bench.receive(DUMMY, MsgType::Data, Some(1));
    bench.settle();
    assert!(poll(call.as_mut()).is_ready());
    drop(call);
    assert!(bench.dispatch.cancellations.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn errors_say_who_how_long_and_why() {
    let ms = Duration::from_millis;
    for (ack, expected) in [
        (Some(1), "no driver serves dummy:0 now"),
        (None, "the driver of dummy:0 died 300 ms after the request"),
    ] {
        let (client, mut bench) = Bench::new();
        call!(call, client);
        bench.settle();
        tokio::time::advance(ms(300)).await;
        bench.receive(DUMMY, DIED, ack);
        bench.settle();
        match poll(call.as_mut()) {
            Poll::Ready(Err(error)) => assert_eq!(error.to_string(), expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_also_when_nothing_can_be_sent() {
    // Nobody takes what is sent, and there is room for one packet.
    let (outgoing, _sent) = mpsc::channel(1);
    let (_incoming, received) = mpsc::channel(1);
    let client = Client::over(ChannelTransport::new(outgoing, received, Role::Client));
    let device = client
        .device(DUMMY)
        .with_deadline(Duration::from_millis(250));
    let start = Clock::now();
    let calls: Vec<_> = (0..300)
        .map(|_| {
            let device = device.clone();
            tokio::spawn(async move { device.request_raw(data()).await })
        })
        .collect();
    for call in calls {
        match call.await.unwrap() {
            Err(error @ Error::TimedOut { .. }) => {
                assert_eq!(error.to_string(), "no answer from dummy:0 within 250 ms");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(start.elapsed() < Duration::from_millis(260));
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_the_mediator_is_answered() {
    let (_client, mut bench) = Bench::new();
    let ping = Envelope::new(MsgType::Ping, Some(SynNum(77)), None);
    bench
        .incoming
        .try_send(packet(Device::MEDIATOR, ping.bytes()))
        .unwrap();
    while let Poll::Ready(Turn::GoOn) = poll(Box::pin(bench.dispatch.turn()).as_mut()) {}
    let pong = bench.sent.try_recv().unwrap();
    let bytes = pong.encode().unwrap();
    // synNum of a PONG means nothing.
    assert_eq!(bytes, &b"\0\x04\x08\0\x10\0\0\x04\x10\x03\x20\x4d"[..]);
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_says_goodbye_to_a_mediator_that_answers() {
    let (client, mut bench) = Bench::new();
    bench.receive(Device::MEDIATOR, MsgType::Pong, Some(9));
    bench.settle();
    let clone = client.clone();
    drop(client);
    bench.settle();
    assert!(!bench.dispatch.commands.is_closed());
    drop(clone);
    bench.dispatch.run().await;
    assert_eq!(
        kinds_to(&mut bench.sent),
        [(MsgType::ClientDied, Device::MEDIATOR)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_mediator_may_be_an_old_one_so_each_device_is_told() {
    let (client, mut bench) = Bench::new();
    {
        call!(call, client);
        bench.settle();
        drop(call);
    }
    let task = tokio::spawn(bench.dispatch.run());
    client.close().await;
    task.await.unwrap();
    let told = kinds_to(&mut bench.sent);
    assert_eq!(
        told,
        [
            (MsgType::ClientDied, DUMMY),
            (MsgType::ClientDied, Device::MEDIATOR)
        ]
    );
}

fn kinds_to(sent: &mut mpsc::Receiver<Packet>) -> Vec<(MsgType, Device)> {
    let mut packets = Vec::new();
    while let Ok(packet) = sent.try_recv() {
        let kind = Envelope::decode(packet.message).unwrap().kind().unwrap();
        packets.push((kind, sender(&packet.header).unwrap()));
    }
    packets
}

/// Subscribes while the task is polled by hand.
macro_rules! subscribe {
    ($name:ident, $client:expr, $bench:expr, $sent:expr) => {
        let proxy = $client.dummy(0);
        let mut subscribe = Box::pin(proxy.messages());
        assert!(poll(subscribe.as_mut()).is_pending());
        let sent: Vec<_> = $bench.settle().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(sent, $sent);
        let Poll::Ready(Ok(mut $name)) = poll(subscribe.as_mut()) else {
            panic!("subscribed")
        };
    };
}

fn event(subscription: &mut crate::Subscription<String>) -> Option<Event<String>> {
    match poll(Box::pin(subscription.next_event()).as_mut()) {
        Poll::Ready(event) => Some(event.expect("an open stream")),
        Poll::Pending => None,
    }
}

fn text(event: Option<Event<String>>) -> String {
    match event {
        Some(Event::Message(update)) => update.message,
        other => panic!("{other:?}"),
    }
}

/// SUBSCRIBE, and the first question whether the mediator is still there.
const FIRST: [MsgType; 2] = [MsgType::Subscribe, MsgType::Data];
const NONE: [MsgType; 0] = [];

#[tokio::test(start_paused = true)]
async fn subscriptions_share_one_subscribe() {
    let (client, mut bench) = Bench::new();
    subscribe!(first, client, bench, FIRST);
    subscribe!(second, client, bench, NONE);
    bench.publish("Response 1");
    bench.settle();
    assert_eq!(text(event(&mut first)), "Response 1");
    assert_eq!(text(event(&mut second)), "Response 1");
    assert_eq!(event(&mut first), None);
    drop(first);
    assert!(bench.settle().is_empty());
    drop(second);
    assert_eq!(bench.settle()[0].0, MsgType::Unsubscribe);
    assert!(bench.dispatch.queues.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_dropped_before_it_is_sent_leaves_nothing_behind() {
    let (client, mut bench) = Bench::new();
    let dummy = client.dummy(0);
    let mut subscribe = Box::pin(dummy.messages());
    assert!(poll(subscribe.as_mut()).is_pending());
    drop(subscribe);
    assert!(bench.settle().is_empty());
    assert!(bench.dispatch.queues.is_empty() && bench.dispatch.subscriptions.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_comes_back_is_subscribed_to_again() {
    let (client, mut bench) = Bench::new();
    subscribe!(updates, client, bench, FIRST);
    bench.publish("Response 1");
    bench.settle();
    assert_eq!(text(event(&mut updates)), "Response 1");

    bench.receive(DUMMY, DIED, None);
    assert!(bench.settle().is_empty());
    assert_eq!(
        event(&mut updates),
        Some(Event::Interrupted(Interruption::DriverDown))
    );

    tokio::time::advance(Duration::from_millis(100)).await;
    let again = bench.settle();
    assert_eq!(again[0].0, MsgType::Subscribe);
    // Still dead.
    bench.receive(DUMMY, DIED, again[0].1.map(|syn| syn.0));
    assert!(bench.settle().is_empty());
    tokio::time::advance(Duration::from_millis(200)).await;
    assert_eq!(bench.settle()[0].0, MsgType::Subscribe);

    bench.publish("Response 1");
    bench.settle();
    assert_eq!(event(&mut updates), Some(Event::Resumed));
    match event(&mut updates) {
        Some(Event::Message(update)) => assert_eq!((update.interruptions, update.missed), (1, 0)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_mediator_that_was_restarted_is_subscribed_to_again() {
    let (client, mut bench) = Bench::new();
    subscribe!(updates, client, bench, FIRST);
    bench.publish("Response 1");
    let mut asked = 2;
    for uptime_ms in [60_000, 62_000] {
        statistics(&bench, asked, uptime_ms, 3);
        assert!(bench.settle().is_empty());
        tokio::time::advance(Duration::from_secs(2)).await;
        let question = bench.settle();
        assert_eq!(question.len(), 1, "nothing is sent again while all is well");
        asked = question[0].1.unwrap().0;
    }
    statistics(&bench, asked, 1_000, 3);
    let sent: Vec<_> = bench.settle().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(sent, [MsgType::Unsubscribe, MsgType::Subscribe]);
    assert_eq!(text(event(&mut updates)), "Response 1");
    let why = Interruption::MediatorRestarted;
    assert_eq!(event(&mut updates), Some(Event::Interrupted(why)));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_forgotten_unnoticed_subscribes_again() {
    let (client, mut bench) = Bench::new();
    subscribe!(updates, client, bench, FIRST);
    bench.publish("Response 1");
    statistics(&bench, 2, 60_000, 3);
    assert!(bench.settle().is_empty());
    tokio::time::advance(Duration::from_secs(2)).await;
    let asked = bench.settle()[0].1.unwrap().0;
    statistics(&bench, asked, 62_000, 8);
    let sent: Vec<_> = bench.settle().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(sent, [MsgType::Unsubscribe, MsgType::Subscribe]);
    assert_eq!(text(event(&mut updates)), "Response 1");
    let why = Interruption::Forgotten;
    assert_eq!(event(&mut updates), Some(Event::Interrupted(why)));
}

fn statistics(bench: &Bench, ack: u32, uptime_ms: u64, client_id: i32) {
    let statistics = mediator::Statistics {
        uptime_ms: Some(uptime_ms),
        client_id: Some(client_id),
        ..Default::default()
    };
    let message = mediator::DriverMsg {
        ack_num: Some(ack),
        reply: Some(mediator::Reply {
            what: Some(reply::What::Statistics(statistics)),
        }),
        ..mediator::DriverMsg::data()
    };
    let packet = packet(Device::MEDIATOR, message.encode_to_vec().into());
    bench.incoming.try_send(packet).unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_the_transport_ends_everybody_is_told() {
    let (client, mut bench) = Bench::new();
    call!(call, client);
    bench.settle();
    subscribe!(updates, client, bench, FIRST);
    drop(bench.incoming);
    bench.dispatch.run().await;
    let cause = "the client is closed: the connection from the mediator is closed";
    assert_eq!(call.await.unwrap_err().to_string(), cause);
    assert_eq!(updates.next().await, None);
    assert_eq!(
        client.dummy(0).status().await.unwrap_err().to_string(),
        cause
    );
}

#[tokio::test(start_paused = true)]
async fn streams_end_when_the_client_is_closed() {
    let (client, mut bench) = Bench::new();
    subscribe!(updates, client, bench, FIRST);
    bench.publish("Response 1");
    bench.settle();
    let task = tokio::spawn(bench.dispatch.run());
    client.close().await;
    task.await.unwrap();
    assert_eq!(updates.next().await.unwrap().message, "Response 1");
    assert_eq!(updates.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn other_messages_than_ours_are_published_as_they_are() {
    let (client, mut bench) = Bench::new();
    let device = client.device(DUMMY);
    let mut subscribe = Box::pin(device.subscribe_raw());
    assert!(poll(subscribe.as_mut()).is_pending());
    bench.settle();
    let Poll::Ready(Ok(mut updates)) = poll(subscribe.as_mut()) else {
        panic!("subscribed")
    };
    bench
        .incoming
        .try_send(packet(DUMMY, Bytes::from_static(b"\xff\xffhi")))
        .unwrap();
    bench.settle();
    let update = poll(Box::pin(updates.next()).as_mut());
    assert!(matches!(update, Poll::Ready(Some(update)) if update.message == b"\xff\xffhi"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_call_fails_with_the_reason_that_the_mediator_gives() {
    let (client, mut bench) = Bench::new();
    let say = |bench: &Bench, reason: Unavailability, ack: Option<u32>| {
        let why = Unavailable {
            reason: reason.into(),
            message: Some("it exited".into()),
            hint: Some("start it".into()),
        };
        let mut message = mediator::DriverMsg::of_kind(DIED);
        message.set_ack(ack.map(SynNum));
        message.unavailable = Some(why);
        let packet = packet(DUMMY, message.encode_to_vec().into());
        bench.incoming.try_send(packet).unwrap();
    };
    let outcome = async |bench: &mut Bench, reason, ack: bool| {
        let dummy = client.dummy(0);
        let mut call = Box::pin(dummy.status());
        assert!(poll(call.as_mut()).is_pending());
        let syn = bench.settle()[0].1.unwrap();
        say(bench, reason, ack.then_some(syn.0));
        bench.settle();
        call.await.unwrap_err()
    };
    let error = outcome(&mut bench, Unavailability::Failed, true).await;
    assert_eq!(error.to_string(), "dummy:0 is unavailable: it exited");
    assert_eq!(error.hint().as_deref(), Some("start it"));
    let error = outcome(&mut bench, Unavailability::NoSuchDevice, true).await;
    assert!(matches!(error, Error::NoSuchDevice { .. }), "{error:?}");
    let error = outcome(&mut bench, Unavailability::Restarting, false).await;
    assert!(
        error.to_string().ends_with("after the request: it exited"),
        "{error}"
    );
}
