use amber_proto::DeviceType;

use super::*;

const DUMMY: Device = Device::new(DeviceType::DUMMY, 0);
const SYN: SynNum = SynNum(7);

/// The feed by SUBSCRIBE.
const FEED: FeedKey = FeedKey {
    device: DUMMY,
    request: None,
};
/// The feed by the request in field 113.
const WATCH: FeedKey = FeedKey {
    device: DUMMY,
    request: Some(113),
};
const CHARGE: u32 = 111;
const VOLTAGE: u32 = 114;

/// A message with a field.
fn message(kind: MsgType, number: u32, content: &str) -> Bytes {
    let mut bytes = Envelope::new(kind, None, None).bytes().to_vec();
    prost::encoding::string::encode(number, &content.into(), &mut bytes);
    bytes.into()
}

/// SUBSCRIBE with a parameter.
fn terms(how: &'static str) -> Terms {
    Terms {
        join: message(MsgType::Subscribe, 150, how),
        leave: Bytes::from(format!("not {how}")),
        period: Duration::ZERO,
    }
}

/// A stream by a request.
fn watch(how: &'static str) -> Terms {
    Terms {
        join: message(MsgType::Data, 113, how),
        leave: message(MsgType::Data, 113, "stop"),
        period: Duration::ZERO,
    }
}

fn data(field: u32) -> Bytes {
    message(MsgType::Data, field, "12")
}

struct Bench {
    table: Subscriptions,
    now: Instant,
}

impl Bench {
    /// One listener, and its SUBSCRIBE sent.
    fn asked() -> Self {
        let (mut table, now) = (Subscriptions::default(), Instant::now());
        assert_eq!(
            table.add(now, DUMMY, ListenerId(1), terms("usual"), &[]),
            Some(Ask::Subscribe(FEED))
        );
        table.sent(FEED, SYN);
        Self { table, now }
    }

    fn flowing() -> Self {
        let mut bench = Self::asked();
        assert!(!bench.flows(), "nothing was interrupted");
        bench
    }

    /// One listener to each of two streams, both flowing.
    fn both() -> Self {
        let (mut table, now) = (Subscriptions::default(), Instant::now());
        let charges = table.add(now, DUMMY, ListenerId(1), terms("usual"), &[CHARGE]);
        assert_eq!(charges, Some(Ask::Subscribe(FEED)));
        table.sent(FEED, SYN);
        let voltages = table.add(now, DUMMY, ListenerId(2), watch("first"), &[VOLTAGE]);
        assert_eq!(voltages, Some(Ask::Subscribe(WATCH)));
        table.sent(WATCH, SynNum(8));
        let mut bench = Self { table, now };
        assert_eq!(bench.delivered(CHARGE), [(FEED, false)]);
        assert_eq!(bench.delivered(VOLTAGE), [(WATCH, false)]);
        bench
    }

    /// A message arrives. Returns whether listeners are told that data flows again.
    fn flows(&mut self) -> bool {
        let published = self.table.published(self.now, DUMMY, b"");
        published.deliveries.iter().any(|delivery| delivery.resumed)
    }

    /// The feeds that get a message with this field.
    fn delivered(&mut self, field: u32) -> Vec<(FeedKey, bool)> {
        let published = self.table.published(self.now, DUMMY, &data(field));
        let deliveries = published.deliveries.into_iter();
        deliveries.map(|it| (it.feed, it.resumed)).collect()
    }

    fn unwanted(&mut self) -> Option<Bytes> {
        self.table.published(self.now, DUMMY, b"").leave
    }

    fn driver_died(&mut self, ack: Option<SynNum>) -> bool {
        !self.table.driver_died(self.now, DUMMY, ack).is_empty()
    }

    /// Moves on to the next timeout and gives the time until then in ms.
    fn next(&mut self) -> (u128, Vec<Ask>) {
        let at = self.table.next_timeout().expect("a timeout");
        assert!(
            at == self.now
                || self
                    .table
                    .handle_timeout(at - Duration::from_nanos(1))
                    .is_empty()
        );
        let waited = at.saturating_duration_since(self.now).as_millis();
        self.now = self.now.max(at);
        let asks = self.table.handle_timeout(at);
        for ask in &asks {
            let (Ask::Subscribe(key) | Ask::Renew(key)) = *ask;
            self.table.sent(key, SYN);
        }
        (waited, asks)
    }
}

#[test]
fn listeners_share_one_subscribe_and_the_last_one_ends_it() {
    let Bench { mut table, now } = Bench::flowing();
    assert_eq!(
        table.add(now, DUMMY, ListenerId(2), terms("usual"), &[]),
        None
    );
    assert_eq!(
        table.listeners(FEED).collect::<Vec<_>>(),
        [ListenerId(1), ListenerId(2)]
    );
    assert_eq!(table.remove(now, DUMMY, ListenerId(1)), None);
    assert_eq!(
        table.remove(now, DUMMY, ListenerId(2)),
        Some(terms("usual").leave)
    );
    assert_eq!(table.remove(now, DUMMY, ListenerId(2)), None);
    assert!(table.is_empty());
}

#[test]
fn other_parameters_are_a_renewal_for_all() {
    let Bench { mut table, now } = Bench::flowing();
    let faster = terms("faster");
    assert_eq!(
        table.add(now, DUMMY, ListenerId(2), faster.clone(), &[]),
        Some(Ask::Renew(FEED))
    );
    assert_eq!(table.terms(FEED), faster);
}

#[test]
fn a_driver_that_is_alive_is_never_asked_twice() {
    let mut bench = Bench::flowing();
    for _ in 0..1000 {
        bench.now += Duration::from_millis(4_900);
        assert!(bench.table.handle_timeout(bench.now).is_empty());
        assert!(!bench.flows());
    }
    // The answer to some request from when it was dead, late.
    let quiet_at = bench.table.next_timeout();
    assert!(!bench.driver_died(Some(SynNum(3))));
    assert_eq!(bench.table.next_timeout(), quiet_at);
}

#[test]
fn a_device_that_falls_silent_is_renewed_ever_more_slowly() {
    let mut bench = Bench::flowing();
    let times: Vec<_> = (0..4)
        .map(|_| {
            let (waited, asks) = bench.next();
            assert_eq!(asks, [Ask::Renew(FEED)]);
            waited
        })
        .collect();
    assert_eq!(times, [5_000, 8_000, 16_000, 32_000]);
    assert!(!bench.flows(), "nobody was told");
}

/// Some drivers count from the SUBSCRIBE; they must come to their next message.
#[test]
fn a_device_with_a_long_period_of_its_own_comes_to_speak() {
    for period_s in [1, 4, 10, 45, 200, 900] {
        let period = Duration::from_secs(period_s);
        let mut bench = Bench::asked();
        let (mut due, mut said, mut renewed_late) = (bench.now + period, 0, 0);
        while said < 20 {
            let timeout = bench.table.next_timeout().expect("a timeout");
            if due <= timeout {
                bench.now = due;
                bench.flows();
                said += 1;
                due += period;
            } else {
                bench.next();
                due = bench.now + period;
                renewed_late += usize::from(said > 0);
            }
        }
        assert_eq!(renewed_late, 0, "{period_s} s: its pace is known by then");
    }
}

#[test]
fn a_subscribe_that_may_be_lost_is_renewed_ever_more_slowly_until_data_comes() {
    let mut bench = Bench::asked();
    let times: Vec<_> = (0..7)
        .map(|_| {
            let (waited, asks) = bench.next();
            assert_eq!(asks, [Ask::Renew(FEED)]);
            waited
        })
        .collect();
    assert_eq!(times, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]);
}

#[test]
fn a_dead_driver_is_asked_again_until_it_is_back() {
    let mut bench = Bench::flowing();
    assert!(bench.driver_died(None), "listeners are told");
    let mut times = Vec::new();
    for _ in 0..6 {
        let (waited, asks) = bench.next();
        assert_eq!(asks, [Ask::Subscribe(FEED)]);
        times.push(waited);
        assert!(!bench.driver_died(Some(SYN)), "told only once");
    }
    assert_eq!(times, [100, 200, 400, 800, 1_600, 2_000]);
    bench.next();
    assert!(bench.flows(), "listeners are told");
    assert!(!bench.flows());
}

#[test]
fn a_device_that_goes_on_after_it_was_left_is_told_again() {
    let mut bench = Bench::flowing();
    let leave = bench.table.remove(bench.now, DUMMY, ListenerId(1));
    let second = Duration::from_secs(1);
    assert_eq!(bench.unwanted(), None, "on its way");
    bench.now += second;
    assert_eq!(bench.unwanted(), leave);
    assert_eq!(bench.unwanted(), None, "not at once");
    bench.now += second;
    assert_eq!(bench.unwanted(), leave);
    let listener = ListenerId(2);
    bench
        .table
        .add(bench.now, DUMMY, listener, terms("usual"), &[]);
    bench.now += second;
    assert_eq!(bench.unwanted(), None, "wanted again");
    let never = Device::new(DeviceType::HOKUYO, 0);
    assert_eq!(
        bench.table.published(bench.now, never, b""),
        Published::default()
    );
}

#[test]
fn nothing_is_sent_to_a_dead_driver_when_the_last_listener_goes() {
    let mut bench = Bench::flowing();
    bench.driver_died(None);
    assert_eq!(bench.table.remove(bench.now, DUMMY, ListenerId(1)), None);
}

#[test]
fn after_an_outage_or_a_restart_of_the_mediator_everything_is_renewed_at_once() {
    let mut bench = Bench::flowing();
    assert_eq!(bench.table.mediator_lost(bench.now), [FEED]);
    assert!(bench.table.mediator_lost(bench.now).is_empty());
    assert!(
        bench.table.mediator_back(bench.now).is_empty(),
        "told already"
    );
    assert_eq!(bench.next(), (0, vec![Ask::Renew(FEED)]));
    assert!(bench.flows());

    assert_eq!(bench.table.mediator_back(bench.now), [FEED]);
    assert_eq!(bench.next(), (0, vec![Ask::Renew(FEED)]));
}

#[test]
fn a_device_that_speaks_seldom_is_given_time() {
    let (mut table, now) = (Subscriptions::default(), Instant::now());
    let seldom = Terms {
        period: Duration::from_secs(60),
        ..terms("usual")
    };
    table.add(now, DUMMY, ListenerId(1), seldom, &[]);
    let asked_again = table.next_timeout().expect("a timeout");
    assert_eq!(asked_again - now, Duration::from_secs(61));
}

#[test]
fn two_kinds_of_stream_of_one_device_are_independent() {
    let mut bench = Bench::both();
    let Bench { table, now } = &mut bench;
    // Other terms of one of them leave the other alone.
    let third = ListenerId(3);
    let renewal = table.add(*now, DUMMY, third, watch("faster"), &[VOLTAGE]);
    assert_eq!(renewal, Some(Ask::Renew(WATCH)));
    assert_eq!(table.terms(FEED), terms("usual"));
    // So does the end of one of them.
    assert_eq!(table.remove(*now, DUMMY, third), None);
    let leave = table.remove(*now, DUMMY, ListenerId(1));
    assert_eq!(leave, Some(terms("usual").leave));
    assert_eq!(table.feeds().collect::<Vec<_>>(), [WATCH]);
    assert_eq!(bench.delivered(VOLTAGE), [(WATCH, false)]);
}

#[test]
fn both_kinds_of_stream_are_asked_for_again_when_the_driver_is_back() {
    let mut bench = Bench::both();
    let told = bench.table.driver_died(bench.now, DUMMY, None);
    assert_eq!(told, [FEED, WATCH]);
    let (_, asks) = bench.next();
    assert_eq!(asks, [Ask::Subscribe(FEED), Ask::Subscribe(WATCH)]);
    assert_eq!(bench.delivered(VOLTAGE), [(WATCH, true)]);
    // The charge has not come yet, so its SUBSCRIBE may be lost.
    bench.now += Duration::from_millis(900);
    assert_eq!(bench.delivered(VOLTAGE), [(WATCH, false)]);
    bench.now += Duration::from_millis(100);
    let asks = bench.table.handle_timeout(bench.now);
    assert_eq!(asks, [Ask::Renew(FEED)]);
    assert_eq!(bench.delivered(CHARGE), [(FEED, true)]);
}

#[test]
fn a_stream_that_goes_on_after_it_was_left_is_told_again_while_another_flows() {
    let mut bench = Bench::both();
    bench.table.remove(bench.now, DUMMY, ListenerId(2));
    bench.now += LEAVE_AGAIN;
    let published = bench.table.published(bench.now, DUMMY, &data(CHARGE));
    assert_eq!((published.deliveries.len(), published.leave), (1, None));
    let published = bench.table.published(bench.now, DUMMY, &data(VOLTAGE));
    assert!(published.deliveries.is_empty());
    assert_eq!(published.leave, Some(watch("").leave));
}

#[test]
fn a_listener_to_everything_gets_messages_of_all_streams() {
    let mut bench = Bench::both();
    let Bench { table, now } = &mut bench;
    table.add(*now, DUMMY, ListenerId(3), terms("usual"), &[]);
    assert_eq!(bench.delivered(VOLTAGE), [(FEED, false), (WATCH, false)]);
    assert_eq!(bench.delivered(CHARGE), [(FEED, false)]);
    // A message of no known stream belongs to all of them.
    assert_eq!(bench.delivered(139), [(FEED, false), (WATCH, false)]);
}
