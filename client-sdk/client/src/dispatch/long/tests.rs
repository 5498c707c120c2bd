//! Long messages of a scripted device. Time is stopped.

use std::time::Duration;

use amber_proto::limits::LOCAL_PIECE_BYTES;
use amber_proto::{
    DeviceMessage, DeviceType, DriverMsg, Joins, MissingPieces, MsgType, Packet, Receipt, camera,
    dummy,
};

use super::*;
use crate::dispatch::tests::{Bench, DUMMY, poll};
use crate::wire::packet;

const BYTES: usize = 100_000;

/// A message of the device with a long text, encoded.
fn text(letter: &str, ack: u32) -> Bytes {
    let message = dummy::DriverMsg {
        ack_num: Some(ack),
        // An answer has both fields.
        enable: (ack != 0).then_some(true),
        message: Some(letter.repeat(BYTES)),
        ..dummy::DriverMsg::data()
    };
    message.encode_to_vec().into()
}

fn pieces(number: u32, stream: Option<u32>, bytes: Bytes) -> Vec<Packet> {
    pieces_of(DUMMY, number, stream, bytes)
}

fn pieces_of(device: Device, number: u32, stream: Option<u32>, bytes: Bytes) -> Vec<Packet> {
    let long = Long {
        number,
        stream,
        syn: None,
        bytes,
    };
    let pieces = (0..).map_while(|index| long.piece(LOCAL_PIECE_BYTES, index));
    pieces.map(|piece| packet(device, piece)).collect()
}

/// What the task has sent to the device.
fn sent(bench: &mut Bench) -> Vec<DriverMsg> {
    let packets = bench.settle_packets();
    let to_device = packets
        .into_iter()
        .filter(|it| it.header.device_type == Some(5));
    to_device
        .map(|packet| DriverMsg::decode(packet.message).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn published_messages_are_joined_and_only_the_newest_waits() {
    let (client, mut bench) = Bench::new();
    let proxy = client.dummy(0);
    let mut subscribing = Box::pin(proxy.messages());
    assert!(poll(subscribing.as_mut()).is_pending());
    let subscribe = sent(&mut bench).remove(0);
    let local = Joins {
        longest: None,
        piece_bytes: Some(LOCAL_PIECE_BYTES as u32),
    };
    assert_eq!(subscribe.joins, Some(local));
    let mut updates = subscribing.await.unwrap();

    let stream = amber_proto::pieces::stream_of(&text("a", 0));
    assert_eq!(stream, Some(51));
    for (number, letter) in [(1, "a"), (2, "b"), (3, "c")] {
        let mut packets = pieces(number, stream, text(letter, 0));
        assert_eq!(packets.len(), 4);
        if letter == "b" {
            packets.remove(2);
        }
        for packet in packets {
            bench.incoming.try_send(packet).unwrap();
        }
    }
    bench.settle_packets();
    let update = updates.next().await.unwrap();
    assert_eq!(update.message, "c".repeat(BYTES));
    // One was not read in time, and one was incomplete.
    assert_eq!(update.missed, 2);
}

/// What subscribing gives, once the task has sent its message.
macro_rules! subscribed {
    ($bench:expr, $subscribe:expr) => {{
        let mut subscribing = Box::pin($subscribe);
        assert!(poll(subscribing.as_mut()).is_pending());
        $bench.settle_packets();
        subscribing.await.unwrap()
    }};
}

#[tokio::test(start_paused = true)]
async fn a_picture_that_never_gets_whole_is_missed_by_those_who_read_pictures() {
    let (client, mut bench) = Bench::new();
    let proxy = client.camera(0);
    let of_camera = Device::new(DeviceType(17), 0);
    let period = Duration::from_millis(100);
    let wanted = camera::PictureStream::default();
    let pictures = subscribed!(bench, proxy.pictures(period, wanted));
    let infos = subscribed!(bench, proxy.info_updates());
    let device = client.device(of_camera);
    let everything = subscribed!(bench, device.subscribe_raw());
    let picture = camera::DriverMsg {
        ack_num: Some(0),
        picture: Some(camera::Picture {
            data: Some(vec![7; BYTES].into()),
            ..camera::Picture::default()
        }),
        ..camera::DriverMsg::data()
    };
    let bytes = picture.encode_to_vec().into();
    for packet in &pieces_of(of_camera, 7, Some(261), bytes)[..2] {
        bench.incoming.try_send(packet.clone()).unwrap();
    }
    bench.settle_packets();
    let missed = || (pictures.missed(), infos.missed(), everything.missed());
    assert_eq!(missed(), (0, 0, 0));
    // Nothing else may ever come, so this does not wait for the next message.
    tokio::time::advance(Duration::from_millis(1_001)).await;
    bench.settle_packets();
    assert_eq!(missed(), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_told_with_the_next_message_of_the_stream() {
    let (client, mut bench) = Bench::new();
    let proxy = client.dummy(0);
    let mut updates = subscribed!(bench, proxy.messages());
    let mut packets = pieces(1, Some(51), text("a", 0));
    packets.remove(2);
    packets.extend(pieces(2, Some(51), text("b", 0)));
    let enabled = dummy::DriverMsg {
        ack_num: Some(0),
        enable: Some(true),
        ..dummy::DriverMsg::data()
    };
    // It belongs to another stream, and is read first.
    packets.insert(3, packet(DUMMY, enabled.encode_to_vec().into()));
    // The first long message is known to be lost before that one is read.
    let last = packets.split_off(4);
    for packet in packets {
        bench.incoming.try_send(packet).unwrap();
    }
    bench.settle_packets();
    tokio::time::advance(Duration::from_millis(1_001)).await;
    for packet in last {
        bench.incoming.try_send(packet).unwrap();
    }
    bench.settle_packets();
    assert_eq!(updates.missed(), 1);
    let update = updates.next().await.unwrap();
    assert_eq!((update.message, update.missed), ("b".repeat(BYTES), 1));
    assert_eq!(updates.missed(), 0);
}

#[tokio::test(start_paused = true)]
async fn missing_pieces_of_an_answer_are_called_for() {
    let (client, mut bench) = Bench::new();
    let dummy = client.dummy(0);
    let mut call = Box::pin(dummy.status());
    assert!(poll(call.as_mut()).is_pending());
    let syn = sent(&mut bench)[0].syn_num.unwrap();
    let mut packets = pieces(7, None, text("a", syn));
    let late = packets.remove(1);
    for packet in packets {
        bench.incoming.try_send(packet).unwrap();
    }
    assert!(sent(&mut bench).is_empty());
    tokio::time::advance(Duration::from_millis(6)).await;
    let calls = sent(&mut bench);
    let expected = MissingPieces {
        message: Some(7),
        index: vec![1],
    };
    assert_eq!(calls[0].missing, Some(expected));
    bench.incoming.try_send(late).unwrap();
    sent(&mut bench);
    assert_eq!(call.await.unwrap().message, "a".repeat(BYTES));
}

#[tokio::test(start_paused = true)]
async fn a_long_request_follows_the_receipts() {
    let (client, mut bench) = Bench::new();
    let device = client.device(DUMMY);
    let mut call = Box::pin(device.request_raw(text("a", 0)));
    assert!(poll(call.as_mut()).is_pending());
    let first = sent(&mut bench);
    assert_eq!(first.len(), 1, "only the first piece before a receipt");
    let syn = first[0].syn_num.expect("the mediator must know the number");
    let piece = first[0].piece.clone().unwrap();
    assert_eq!((piece.index, piece.count), (Some(0), Some(4)));

    let receipt = |upto| DriverMsg {
        r#type: MsgType::Data.into(),
        receipt: Some(Receipt {
            message: piece.message,
            upto: Some(upto),
        }),
        ..DriverMsg::default()
    };
    let answer = |bench: &Bench, message: DriverMsg| {
        let packet = packet(DUMMY, message.encode_to_vec().into());
        bench.incoming.try_send(packet).unwrap();
    };
    answer(&bench, receipt(1));
    let rest = sent(&mut bench);
    assert!(rest.iter().all(|message| message.syn_num.is_none()));
    let mut joined = piece.data.unwrap().to_vec();
    for message in rest {
        joined.extend(message.piece.unwrap().data.unwrap());
    }
    let request = DriverMsg::decode(&joined[..]).unwrap();
    assert_eq!(request.syn_num, Some(syn));
    assert!(request.joins.is_some());
    assert_eq!(
        dummy::DriverMsg::decode(&joined[..])
            .unwrap()
            .message()
            .len(),
        BYTES
    );

    answer(&bench, receipt(4));
    assert!(sent(&mut bench).is_empty());
    let status = DriverMsg {
        r#type: MsgType::Data.into(),
        ack_num: Some(syn),
        ..DriverMsg::default()
    };
    answer(&bench, status);
    sent(&mut bench);
    assert!(call.await.is_ok());
    assert!(bench.dispatch.next_piece_timeout().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_cannot_join_is_named_before_the_deadline() {
    let (client, mut bench) = Bench::new();
    let device = client.device(DUMMY);
    let mut call = Box::pin(device.request_raw(text("a", 0)));
    assert!(poll(call.as_mut()).is_pending());
    let mut pieces = 0;
    for _ in 0..90 {
        pieces += sent(&mut bench).len();
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    assert_eq!(pieces, 4, "the first one, and three times again");
    let error = call.await.unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upload_ends_with_its_call() {
    let (client, mut bench) = Bench::new();
    let device = client.device(DUMMY);
    let mut call = Box::pin(device.request_raw(text("a", 0)));
    assert!(poll(call.as_mut()).is_pending());
    sent(&mut bench);
    assert!(bench.dispatch.next_piece_timeout().is_some());
    drop(call);
    assert!(sent(&mut bench).is_empty());
    assert!(bench.dispatch.next_piece_timeout().is_none());
}
