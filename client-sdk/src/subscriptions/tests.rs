use amber_proto::DeviceType;

use super::*;

const DUMMY: Device = Device::new(DeviceType::DUMMY, 0);
const SYN: SynNum = SynNum(7);

fn terms(how: &'static str) -> Terms {
    Terms {
        join: Bytes::from(how),
        leave: Bytes::from(format!("not {how}")),
        period: Duration::ZERO,
    }
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
            table.add(now, DUMMY, ListenerId(1), terms("usual")),
            Some(Ask::Subscribe(DUMMY))
        );
        table.sent(DUMMY, SYN);
        Self { table, now }
    }

    fn flowing() -> Self {
        let mut bench = Self::asked();
        assert!(
            !bench.table.flows(bench.now, DUMMY),
            "nothing was interrupted"
        );
        bench
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
            assert!(matches!(ask, Ask::Subscribe(DUMMY) | Ask::Renew(DUMMY)));
            self.table.sent(DUMMY, SYN);
        }
        (waited, asks)
    }
}

#[test]
fn listeners_share_one_subscribe_and_the_last_one_ends_it() {
    let Bench { mut table, now } = Bench::flowing();
    assert_eq!(table.add(now, DUMMY, ListenerId(2), terms("usual")), None);
    assert_eq!(table.listeners(DUMMY), [ListenerId(1), ListenerId(2)]);
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
        table.add(now, DUMMY, ListenerId(2), faster.clone()),
        Some(Ask::Renew(DUMMY))
    );
    assert_eq!(table.terms(DUMMY), faster);
}

#[test]
fn a_driver_that_is_alive_is_never_asked_twice() {
    let mut bench = Bench::flowing();
    for _ in 0..1000 {
        bench.now += Duration::from_millis(4_900);
        assert!(bench.table.handle_timeout(bench.now).is_empty());
        assert!(!bench.table.flows(bench.now, DUMMY));
    }
    // The answer to some request from when it was dead, late.
    let quiet_at = bench.table.next_timeout();
    assert!(!bench.table.driver_died(bench.now, DUMMY, Some(SynNum(3))));
    assert_eq!(bench.table.next_timeout(), quiet_at);
}

#[test]
fn a_device_that_falls_silent_is_renewed_ever_more_slowly() {
    let mut bench = Bench::flowing();
    let times: Vec<_> = (0..4)
        .map(|_| {
            let (waited, asks) = bench.next();
            assert_eq!(asks, [Ask::Renew(DUMMY)]);
            waited
        })
        .collect();
    assert_eq!(times, [5_000, 8_000, 16_000, 32_000]);
    assert!(!bench.table.flows(bench.now, DUMMY), "nobody was told");
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
                bench.table.flows(due, DUMMY);
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
            assert_eq!(asks, [Ask::Renew(DUMMY)]);
            waited
        })
        .collect();
    assert_eq!(times, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]);
}

#[test]
fn a_dead_driver_is_asked_again_until_it_is_back() {
    let mut bench = Bench::flowing();
    assert!(
        bench.table.driver_died(bench.now, DUMMY, None),
        "listeners are told"
    );
    let mut times = Vec::new();
    for _ in 0..6 {
        let (waited, asks) = bench.next();
        assert_eq!(asks, [Ask::Subscribe(DUMMY)]);
        times.push(waited);
        assert!(
            !bench.table.driver_died(bench.now, DUMMY, Some(SYN)),
            "told only once"
        );
    }
    assert_eq!(times, [100, 200, 400, 800, 1_600, 2_000]);
    bench.next();
    assert!(bench.table.flows(bench.now, DUMMY), "listeners are told");
    assert!(!bench.table.flows(bench.now, DUMMY));
}

#[test]
fn a_device_that_goes_on_after_it_was_left_is_told_again() {
    let mut bench = Bench::flowing();
    let leave = bench.table.remove(bench.now, DUMMY, ListenerId(1));
    let second = Duration::from_secs(1);
    assert_eq!(bench.table.unwanted(bench.now, DUMMY), None, "on its way");
    bench.now += second;
    assert_eq!(bench.table.unwanted(bench.now, DUMMY), leave);
    assert_eq!(bench.table.unwanted(bench.now, DUMMY), None, "not at once");
    bench.now += second;
    assert_eq!(bench.table.unwanted(bench.now, DUMMY), leave);
    let listener = ListenerId(2);
    bench.table.add(bench.now, DUMMY, listener, terms("usual"));
    bench.now += second;
    assert_eq!(bench.table.unwanted(bench.now, DUMMY), None, "wanted again");
    let never = Device::new(DeviceType::HOKUYO, 0);
    assert_eq!(bench.table.unwanted(bench.now, never), None);
}

#[test]
fn nothing_is_sent_to_a_dead_driver_when_the_last_listener_goes() {
    let mut bench = Bench::flowing();
    bench.table.driver_died(bench.now, DUMMY, None);
    assert_eq!(bench.table.remove(bench.now, DUMMY, ListenerId(1)), None);
}

#[test]
fn after_an_outage_or_a_restart_of_the_mediator_everything_is_renewed_at_once() {
    let mut bench = Bench::flowing();
    assert_eq!(bench.table.mediator_lost(bench.now), [DUMMY]);
    assert!(bench.table.mediator_lost(bench.now).is_empty());
    assert!(
        bench.table.mediator_back(bench.now).is_empty(),
        "told already"
    );
    assert_eq!(bench.next(), (0, vec![Ask::Renew(DUMMY)]));
    assert!(bench.table.flows(bench.now, DUMMY));

    assert_eq!(bench.table.mediator_back(bench.now), [DUMMY]);
    assert_eq!(bench.next(), (0, vec![Ask::Renew(DUMMY)]));
}

#[test]
fn a_device_that_speaks_seldom_is_given_time() {
    let (mut table, now) = (Subscriptions::default(), Instant::now());
    let seldom = Terms {
        period: Duration::from_secs(60),
        ..terms("usual")
    };
    table.add(now, DUMMY, ListenerId(1), seldom);
    let asked_again = table.next_timeout().expect("a timeout");
    assert_eq!(asked_again - now, Duration::from_secs(61));
}
