//! Tests of publications: their receivers and their times.

use super::*;

#[test]
fn subscribers_get_ten_messages_per_second_and_without_any_nothing_is_sent() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(100)),
            ..Probe::default()
        });
        // Long before the first subscriber.
        sleep(Duration::from_secs(10)).await;
        mediator.tell(5, MsgType::Subscribe).await;
        mediator.tell(6, MsgType::Subscribe).await;
        let start = Instant::now();
        for n in 1..=600u32 {
            let (clients, message) = mediator.hear().await;
            assert_eq!(clients, [5, 6]);
            assert_eq!(message.ack_num, Some(0));
            assert_eq!(message.message, Some(n.to_string()));
            let late = start.elapsed() - Duration::from_millis(100) * (n - 1);
            assert!(late <= Duration::from_millis(2), "{n} is late by {late:?}");
        }
        mediator.tell(5, MsgType::ClientDied).await;
        mediator.tell(6, MsgType::Unsubscribe).await;
        sleep(Duration::from_secs(10)).await;
        mediator.ping(1).await;
        mediator.expect_pong(1).await;
        let notes = mediator.notes.clone();
        mediator.end().await.unwrap();
        assert_eq!(
            *notes.borrow(),
            ["5 subscribed", "6 subscribed", "5 died", "shutdown"]
        );
    });
}

#[test]
fn a_busy_driver_skips_missed_publications() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(100)),
            ..Probe::default()
        });
        mediator.tell(5, MsgType::Subscribe).await;
        mediator.expect(5, 0, "1").await;
        mediator.ask(1, "wait").await;
        sleep(Duration::from_secs(1)).await;
        mediator.go.notify_one();
        let start = Instant::now();
        mediator.expect(5, 1, "wait").await;
        mediator.expect(5, 0, "2").await;
        mediator.expect(5, 0, "3").await;
        mediator.expect(5, 0, "4").await;
        assert!(start.elapsed() > Duration::from_millis(100));
        mediator.end().await.unwrap();
    });
}

#[test]
fn continuous_publishing_leaves_time_for_requests() {
    run(async {
        let mut mediator = Mediator::start(Probe {
            period: Some(Duration::from_millis(1)),
            publishing_takes: Duration::from_millis(5),
            ..Probe::default()
        });
        mediator.tell(6, MsgType::Subscribe).await;
        mediator.ask(1, "hello").await;
        let mut heard = 0;
        while mediator.hear().await.1.ack_num != Some(1) {
            heard += 1;
            assert!(heard < 10);
        }
        mediator.to_driver.shutdown().await.unwrap();
        let start = Instant::now();
        while mediator.hear().await.1 != published("bye") {}
        assert!(start.elapsed() < Duration::from_millis(100));
    });
}

#[test]
fn a_link_publishes_and_answers_later() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.tell(7, MsgType::Subscribe).await;
        mediator.ask(1, "publish").await;
        let heard = [mediator.hear().await, mediator.hear().await];
        let find = |ack| heard.iter().find(|(_, m)| m.ack_num == Some(ack)).unwrap();
        assert_eq!(find(0).0, [7]);
        assert_eq!(find(0).1.message.as_deref(), Some("published"));
        assert_eq!(find(1).0, [5]);

        mediator.ask(2, "publish to it").await;
        mediator.expect(5, 0, "published").await;

        mediator.ask(2, "answer later").await;
        mediator.ask(3, "hello").await;
        mediator.expect(5, 3, "hello").await;
        mediator.go.notify_one();
        mediator.expect(5, 2, "later").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_link_knows_whether_there_are_subscribers() {
    run(async {
        let (subscriptions, watched) = watch::channel(0);
        let (outgoing, _) = mpsc::channel(1);
        let (_, incoming) = mpsc::channel(1);
        let transport = ChannelTransport::new(outgoing, incoming, Role::Driver);
        let (_holder, held) = watch::channel(None);
        let (mut link, _commands) =
            Link::<DriverMsg>::new(None, Client::over(transport), watched, held);
        let mut waiting = link.clone();
        let waited = spawn_local(async move { waiting.listened_to().await });
        subscriptions.send(2).unwrap();
        assert!(waited.await.unwrap());
        assert_eq!(link.subscriptions(), 2);
        subscriptions.send(0).unwrap();
        drop(subscriptions);
        assert!(!link.listened_to().await);
    });
}
