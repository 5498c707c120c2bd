//! Tests of drivers that call other devices over the same pipes.

use super::*;

#[test]
fn a_handler_calls_another_device_and_pings_are_answered_meanwhile() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "call").await;
        let call = mediator.read_first_call().await;
        let other = DriverHdr {
            device_type: Some(5),
            device_id: Some(1),
            client_ids: vec![],
        };
        assert_eq!(call.header, other);
        let question = DriverMsg::decode(call.message).unwrap();
        assert_eq!(question.kind(), Some(MsgType::Data));
        assert_eq!(question.get_status, Some(true));

        mediator.ping(2).await;
        mediator.expect_pong(2).await;

        let mut answer = data("I am another");
        answer.enable = Some(true);
        answer.set_ack(question.syn());
        let packet = Packet {
            header: other,
            message: answer.encode_to_vec().into(),
        };
        mediator.write_packet(packet).await;
        mediator.expect(5, 1, "I am another").await;
        mediator.end().await.unwrap();
    });
}

#[test]
fn a_call_to_a_device_that_has_died_fails() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        mediator.ask(1, "call").await;
        let call = mediator.read_first_call().await;
        let packet = Packet {
            header: call.header,
            message: DriverMsg::of_kind(MsgType::DriverDied)
                .encode_to_vec()
                .into(),
        };
        let start = Instant::now();
        mediator.write_packet(packet).await;
        let (_, answer) = mediator.hear().await;
        let error = answer.message.unwrap();
        assert!(error.contains("dummy:1"), "{error}");
        assert!(
            start.elapsed() < Duration::from_millis(100),
            "the call waited for a timeout: {error}"
        );
        mediator.end().await.unwrap();
    });
}

impl Mediator {
    /// The first request to another device; the driver announces itself first.
    async fn read_first_call(&mut self) -> Packet {
        let ping = self.read().await.unwrap();
        let mediator = (ping.header.device_type, ping.header.device_id);
        assert_eq!(mediator, (Some(0), Some(0)));
        let ping = DriverMsg::decode(ping.message).unwrap();
        assert_eq!(ping.kind(), Some(MsgType::Ping));
        self.read().await.unwrap()
    }
}
