//! Tests of messages that are longer than a frame.

use amber_proto::pieces::{Ability, Joiner};

use super::*;

#[test]
fn the_pieces_of_an_answer_go_in_bursts_also_while_the_driver_is_busy() {
    run(async {
        let mut mediator = Mediator::start(Probe::default());
        let mut request = data("answer too much");
        request.set_syn(Some(SynNum(1)));
        let joins = Ability::of_client(false).to_append();
        let message = [&request.encode_to_vec()[..], &joins].concat().into();
        let header = packet(5, &request).header;
        mediator.write_packet(Packet { header, message }).await;
        mediator.ask(2, "wait").await;
        let start = Instant::now();
        let mut joiner = Joiner::default();
        let mut joined = None;
        let mut count = 0;
        while joined.is_none() {
            let packet = mediator.read().await.expect("the driver still runs");
            assert_eq!(packet.header.client_ids, [5]);
            let message = amber_proto::DriverMsg::decode(packet.message).unwrap();
            let piece = message.piece.expect("a piece");
            joined = joiner.piece(Instant::now().into_std(), 0, &piece);
            count += 1;
            let pause = start.elapsed();
            match count {
                ..=16 => assert!(pause < Duration::from_millis(5), "{pause:?}"),
                _ => assert!(pause >= Duration::from_millis(5), "{pause:?}"),
            }
        }
        assert_eq!(count, 28);
        let answer = DriverMsg::decode(joined.unwrap().message).unwrap();
        assert_eq!(answer.ack_num, Some(1));
        assert_eq!(answer.message().len(), 32_768);
        mediator.go.notify_one();
        mediator.expect(5, 2, "wait").await;
        mediator.end().await.unwrap();
    });
}
