//! The contract of a Dummy in any language, tested through its stdin and stdout.

use std::time::Duration;

use amber_proto::dummy::DriverMsg;
use amber_proto::{DeviceMessage, DriverHdr, FrameCodec, MsgType, Packet, SynNum};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_util::codec::Decoder;

const PATIENCE: Duration = Duration::from_secs(20);

/// Tests a Dummy that has just been started, until it exits.
pub(crate) async fn check_dummy(reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) {
    let mut dummy = Dummy {
        reader,
        writer,
        input: BytesMut::new(),
    };
    answers_pings(&mut dummy).await;
    keeps_flag_and_text(&mut dummy).await;
    ignores_what_it_does_not_know(&mut dummy).await;
    publishes_ten_times_a_second(&mut dummy).await;
    dummy.writer.shutdown().await.unwrap();
    drop(dummy.writer);
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, dummy.reader.read_to_end(&mut rest)).await;
    ended.expect("it ends with its stdin").unwrap();
    assert!(rest.is_empty(), "{rest:02x?}");
}

async fn answers_pings(dummy: &mut Dummy<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>) {
    for (ids, ping, pong) in [
        (&[5][..], &b"\x10\x02\x18\x07"[..], &b"\x10\x03\x20\x07"[..]),
        (&[], b"\x10\x02\x18\x08", b"\x10\x03\x20\x08"),
        (&[5, 6, 5], b"\x10\x02", b"\x10\x03"),
    ] {
        dummy.tell(ids, ping).await;
        let packet = dummy.hear().await;
        assert_eq!((&packet.header, &packet.message[..]), (&header(ids), pong));
    }
}

async fn keeps_flag_and_text(dummy: &mut Dummy<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>) {
    dummy.expect_status(false, "Message").await;
    dummy.set(Some(true), None, None).await;
    dummy.expect_status(true, "Message").await;
    dummy.set(None, Some("żółw"), None).await;
    dummy.expect_status(true, "żółw").await;
    // Only the first of several fields takes effect; its presence matters, not its value.
    dummy.set(Some(false), Some("not this"), Some(true)).await;
    dummy.expect_status(false, "żółw").await;
    dummy.set(None, Some(""), Some(true)).await;
    dummy.expect_status(false, "").await;
}

async fn ignores_what_it_does_not_know(
    dummy: &mut Dummy<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) {
    for message in [
        &b""[..],
        b"\x10\x01\x18\x09",             // DATA without a request
        b"\x10\x01\x18\x09\xa8\x01\x01", // DATA for a Roboclaw
        b"\x10\x63\x18\x09\xa0\x03\x01", // an unknown type
        b"\x18\x09\xa0\x03\x01",         // no type
        b"\x10\x01\xa0\x03\x01",         // no number
        b"\xff\xff not a DriverMsg",
        b"\x10\x03\x20\x09", // PONG
        b"\x10\x05",         // DRIVER_DIED
    ] {
        dummy.tell(&[5], message).await;
    }
    dummy.expect_status(false, "").await;
}

async fn publishes_ten_times_a_second(
    dummy: &mut Dummy<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) {
    dummy.tell(&[7], b"\x10\x06").await;
    let start = Instant::now();
    let mut last = dummy.hear_response(&[7]).await;
    assert_eq!(last, 1);
    dummy.tell(&[7, 8], b"\x10\x06").await;
    // The next one may already be in transit.
    let heard = dummy.hear().await;
    assert!(heard.header == header(&[7]) || heard.header == header(&[7, 8]));
    last += 1;
    // Over so many periods that the delay of one message on a busy machine does not count.
    while last < 20 {
        assert_eq!(dummy.hear_response(&[7, 8]).await, last + 1);
        last += 1;
    }
    let took = start.elapsed();
    assert!(
        took >= Duration::from_millis(1750),
        "20 responses in {took:?}"
    );
    assert!(took <= Duration::from_secs(15), "20 responses in {took:?}");

    dummy.tell(&[7], b"\x10\x07").await;
    dummy.tell(&[9, 8], b"\x10\x04").await;
    dummy.tell(&[5], b"\x10\x02\x18\x0a").await;
    // Messages in transit arrive before the PONG, and then no more.
    while dummy.hear().await.message != b"\x10\x03\x20\x0a"[..] {}
    let silence = timeout(Duration::from_millis(350), dummy.hear()).await;
    assert!(silence.is_err(), "still published: {silence:?}");

    dummy.tell(&[7], b"\x10\x06").await;
    assert!(dummy.hear_response(&[7]).await > last);
    dummy.tell(&[7], b"\x10\x04").await;
    dummy.tell(&[5], b"\x10\x02\x18\x0b").await;
    while dummy.hear().await.message != b"\x10\x03\x20\x0b"[..] {}
}

struct Dummy<R, W> {
    reader: R,
    writer: W,
    input: BytesMut,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Dummy<R, W> {
    async fn tell(&mut self, ids: &[i32], message: &[u8]) {
        let packet = Packet {
            header: header(ids),
            message: message.to_vec().into(),
        };
        self.writer
            .write_all(&packet.encode().unwrap())
            .await
            .unwrap();
        self.writer.flush().await.unwrap();
    }

    async fn set(&mut self, enable: Option<bool>, text: Option<&str>, status: Option<bool>) {
        let mut message = DriverMsg {
            enable,
            message: text.map(Into::into),
            get_status: status,
            ..DriverMsg::data()
        };
        message.set_syn(Some(SynNum(1)));
        self.tell(&[5], &message.encode_to_vec()).await;
    }

    async fn expect_status(&mut self, enable: bool, text: &str) {
        self.tell(&[5, 6], b"\x10\x01\x18\xac\x02\xa0\x03\x01")
            .await;
        let packet = self.hear().await;
        let status = DriverMsg {
            ack_num: Some(300),
            enable: Some(enable),
            message: Some(text.into()),
            ..DriverMsg::data()
        };
        assert_eq!(DriverMsg::decode(packet.message).unwrap(), status);
        assert_eq!(packet.header, header(&[5, 6]));
    }

    /// The N of a published "Response N".
    async fn hear_response(&mut self, ids: &[i32]) -> u64 {
        let packet = self.hear().await;
        assert_eq!(packet.header, header(ids));
        let message = DriverMsg::decode(packet.message).unwrap();
        assert_eq!(message.kind(), Some(MsgType::Data));
        assert_eq!(message.ack(), Some(SynNum(0)));
        let text = message.message.unwrap();
        text.strip_prefix("Response ").unwrap().parse().unwrap()
    }

    async fn hear(&mut self) -> Packet {
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                return packet;
            }
            let read = timeout(PATIENCE, self.reader.read_buf(&mut self.input)).await;
            assert_ne!(
                read.expect("an answer arrives").unwrap(),
                0,
                "the driver has ended"
            );
        }
    }
}

fn header(ids: &[i32]) -> DriverHdr {
    DriverHdr {
        client_ids: ids.to_vec(),
        ..DriverHdr::default()
    }
}
