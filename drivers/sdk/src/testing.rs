//! The mediator's side of a driver in tests. IO.

use std::time::Duration;

use amber_proto::{Device, DeviceMessage, DriverHdr, FrameCodec, MsgType, Packet, SynNum};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;
use tokio_util::codec::Decoder;

/// The mediator's ends of the pipes.
pub(crate) struct Mediator {
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
}

impl Mediator {
    /// The mediator, and the driver's ends.
    pub(crate) fn new() -> (Self, DuplexStream, DuplexStream) {
        let (to_driver, reader) = duplex(64 * 1024);
        let (writer, from_driver) = duplex(64 * 1024);
        let mediator = Self {
            to_driver,
            from_driver,
            input: BytesMut::new(),
        };
        (mediator, reader, writer)
    }

    pub(crate) async fn write(&mut self, header: DriverHdr, message: &impl DeviceMessage) {
        self.write_bytes(header, message.encode_to_vec()).await;
    }

    pub(crate) async fn write_bytes(&mut self, header: DriverHdr, message: Vec<u8>) {
        let message = message.into();
        let frame = Packet { header, message }.encode().unwrap();
        self.write_raw(&frame).await;
    }

    pub(crate) async fn write_raw(&mut self, bytes: &[u8]) {
        self.to_driver.write_all(bytes).await.unwrap();
    }

    /// Sends a request of client 5.
    pub(crate) async fn ask<M: DeviceMessage>(&mut self, syn: u32, mut message: M) {
        message.set_kind(MsgType::Data);
        message.set_syn(Some(SynNum(syn)));
        self.write(from(5), &message).await;
    }

    /// Sends a message without content from a client.
    pub(crate) async fn tell(&mut self, client: i32, kind: MsgType) {
        let message = amber_proto::dummy::DriverMsg::of_kind(kind);
        self.write(from(client), &message).await;
    }

    /// The next frame within ten seconds; `None` at the end.
    pub(crate) async fn read(&mut self) -> Option<Packet> {
        let reading = async {
            loop {
                if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                    return Some(packet);
                }
                if self.from_driver.read_buf(&mut self.input).await.unwrap() == 0 {
                    assert!(self.input.is_empty());
                    return None;
                }
            }
        };
        let read = timeout(Duration::from_secs(10), reading).await;
        read.expect("a frame or the end")
    }

    /// The next message and its receivers.
    pub(crate) async fn hear<M: DeviceMessage>(&mut self) -> (Vec<i32>, M) {
        let packet = self.read().await.expect("the driver still runs");
        (packet.header.client_ids, M::decode(packet.message).unwrap())
    }

    /// Checks that the driver sends nothing for a while.
    pub(crate) async fn expect_silence(&mut self, duration: Duration) {
        let reading = async {
            let read = self.from_driver.read_buf(&mut self.input).await;
            assert_ne!(read.unwrap(), 0, "the driver has ended");
        };
        assert!(timeout(duration, reading).await.is_err());
    }

    /// Closes the driver's stdin.
    pub(crate) async fn close(&mut self) {
        self.to_driver.shutdown().await.unwrap();
    }
}

/// The header of a frame from a client, to a process that serves one device.
pub(crate) fn from(client: i32) -> DriverHdr {
    DriverHdr {
        client_ids: vec![client],
        ..DriverHdr::default()
    }
}

/// The header of a frame from a client, to one device of several.
pub(crate) fn from_to(client: i32, device: Device) -> DriverHdr {
    DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        client_ids: vec![client],
    }
}

/// Runs on one thread with a clock that jumps to the next event.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test);
}
