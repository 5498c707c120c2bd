//! What a driver says of its device reaches the mediator.

use std::collections::HashMap;

use super::*;

#[test]
fn trouble_and_its_end_are_told_to_the_mediator_once() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        for (syn, text) in [(1, "mend"), (2, "break")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(None, Some("it is broken")).await;
        for (syn, text) in [(3, "break"), (4, "break one")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.expect_health(Some(0), Some("loose")).await;
        mediator.ask(5, "mend one").await;
        mediator.expect(5, 5, "mend one").await;
        mediator.expect_health(Some(0), None).await;
        mediator.ask(6, "mend").await;
        mediator.expect(5, 6, "mend").await;
        mediator.expect_health(None, None).await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn trouble_never_waits_and_its_last_state_arrives_when_nobody_reads() {
    run(async {
        let mut mediator = Mediator::with_pipes(Probe::default(), 16);
        mediator.ask(1, "wait").await;
        while mediator.notes.borrow().is_empty() {
            tokio::task::yield_now().await;
        }
        // Fills the pipe, which holds less than an answer.
        mediator.go.notify_one();
        for (syn, text) in [(2, "break"), (3, "mend"), (4, "break"), (5, "break one")] {
            mediator.ask(syn, text).await;
        }
        let asked = mediator.notes.clone();
        while asked.borrow().len() < 5 {
            tokio::task::yield_now().await;
        }
        let mut last = HashMap::new();
        mediator.to_driver.shutdown().await.unwrap();
        while let Some(packet) = mediator.read().await {
            let message = mediator::DriverMsg::decode(packet.message).unwrap();
            if let Some(health) = message.health {
                last.insert(packet.header.device_id, health.text);
            }
        }
        let expected = [(None, "it is broken"), (Some(0), "loose")];
        let expected = expected.map(|(id, text)| (id, Some(text.to_owned())));
        assert_eq!(last, HashMap::from(expected));
    });
}

#[test]
fn a_mediator_that_may_be_an_old_one_hears_nothing_of_trouble() {
    run(async {
        let mut mediator = Mediator::of_peer(Peer::Unknown, Probe::default(), 4096);
        for (syn, text) in [(1, "break"), (2, "break one"), (3, "mend")] {
            mediator.ask(syn, text).await;
            mediator.expect(5, syn, text).await;
        }
        mediator.end().await.unwrap();
    });
}

impl Mediator {
    /// What the driver says about all its devices, or the one with this id.
    async fn expect_health(&mut self, id: Option<i32>, trouble: Option<&str>) {
        let packet = self.read().await.expect("the driver still runs");
        let header = DriverHdr {
            device_type: id.map(|_| DeviceType::DUMMY.0),
            device_id: id,
            client_ids: Vec::new(),
        };
        assert_eq!(packet.header, header);
        let message = mediator::DriverMsg::decode(packet.message).unwrap();
        assert_eq!(message.kind(), Some(MsgType::Data));
        assert_eq!((message.syn(), message.ack()), (None, None));
        let trouble = Ok(trouble.map(str::to_owned));
        assert_eq!(message.health.unwrap().trouble(), trouble);
    }
}
