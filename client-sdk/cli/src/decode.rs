//! `amber decode`: explains bytes of the protocol. IO.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use amber_proto::{Frame, Header};
use amber_reflect::explain::{self, Explained, Malformed};
use amber_reflect::{Schemas, hex, read_hex};
use amber_terminal::{Failure, Human, note, show};
use serde::Serialize;
use serde_json::{Map, Value};

use super::capture;

/// Options of `amber decode`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber decode 0004 0805 1000 0008 1001 18ac02 a00301
  xxd -p frames.bin | amber decode
  tcpdump -i lo -w wire.pcap udp port 26233    (then)    amber decode wire.pcap
  amber decode --proto my_device.proto --message 10 01 f2 06 02 68 69

The input is hex (spaces, colons and 0x are ignored) as arguments or on stdin, a file of raw
bytes, or a capture of tcpdump or Wireshark. Exit code 1 means that something is malformed.")]
pub struct Options {
    /// Hex, or a file name [default: hex on stdin]
    #[arg(value_name = "HEX|FILE", allow_hyphen_values = false)]
    what: Vec<String>,
    /// Decode a message without a frame
    #[arg(long)]
    message: bool,
    /// Show one line for each frame instead of all bytes
    #[arg(long)]
    brief: bool,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// In a capture, show only datagrams from or to this port; 0 for all
    #[arg(long, default_value_t = amber_client::address::DEFAULT_PORT)]
    port: u16,
}

/// The longest input, in bytes: some minutes of all traffic of a robot. It is kept in memory.
const INPUT_BYTES: u64 = 32 * 1024 * 1024;

/// The longest message that a frame can hold.
const MESSAGE_BYTES: usize = u16::MAX as usize;

enum Input {
    Bytes(Vec<u8>),
    Capture(capture::Capture),
}

/// Reads the whole input, up to the limit.
fn read(from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES {
        let mib = INPUT_BYTES >> 20;
        return Err(Failure::wrong(format!("{name} is longer than {mib} MiB"))
            .hint("decode only a part, e.g. `head -c 1000000 FILE | amber decode`"));
    }
    Ok(bytes)
}

impl Options {
    /// Runs the command.
    ///
    /// # Errors
    /// The input is malformed, or the options are invalid.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        let schemas = Schemas::with(&self.proto)?;
        match self.input()? {
            Input::Bytes(bytes) if self.message && bytes.len() > MESSAGE_BYTES => {
                let count = bytes.len();
                Err(
                    Failure::wrong(format!("a message of {count} bytes is too long"))
                        .hint(format!("the limit of a frame is {MESSAGE_BYTES} bytes")),
                )
            }
            Input::Bytes(bytes) if self.message => self.one_message(&schemas, &bytes, json),
            Input::Bytes(bytes) => self.frames(&schemas, &bytes, json),
            Input::Capture(capture) => self.capture(&schemas, capture, json),
        }
    }

    fn input(&self) -> Result<Input, Failure> {
        if let [name] = self.what.as_slice()
            && let Ok(file) = File::open(name)
            // The error for a folder follows below.
            && file.metadata().is_ok_and(|found| !found.is_dir())
        {
            let bytes = read(file, name)?;
            return Ok(match capture::read(&bytes) {
                Some(capture) => Input::Capture(capture),
                None => Input::Bytes(bytes),
            });
        }
        let mut text = self.what.join(" ");
        if self.what.is_empty() {
            if io::stdin().is_terminal() {
                note("reading hex from stdin; Ctrl-D ends it");
            }
            let bytes = read(io::stdin(), "stdin")?;
            if capture::is_capture(&bytes)
                && let Some(capture) = capture::read(&bytes)
            {
                return Ok(Input::Capture(capture));
            }
            text = match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(binary) => return Ok(Input::Bytes(binary.into_bytes())),
            };
        }
        let bytes = read_hex(&text).map_err(|_| match self.what.as_slice() {
            [name] if name.contains(['.', '/']) => {
                Failure::wrong(format!("'{name}' is neither a readable file nor hex"))
            }
            _ => Failure::wrong("invalid hex")
                .hint("write two digits per byte, e.g. `amber decode 0004 0805 1000 0002 1002`"),
        })?;
        Ok(Input::Bytes(bytes))
    }

    fn one_message(&self, schemas: &Schemas, bytes: &[u8], json: bool) -> Result<(), Failure> {
        let schemas = schemas.for_device(None);
        let (lines, error) = schemas.explain_message(bytes);
        let shown = ShownFrame {
            text: match self.brief {
                true => schemas.brief_message(bytes) + "\n",
                false => explain::table(bytes, &lines),
            },
            message: schemas.brief_values(bytes),
            error: error.as_ref().map(ErrorShown::from),
            ..ShownFrame::default()
        };
        show(&shown, json)?;
        match error {
            None => Ok(()),
            Some(error) => Err(malformed(bytes, &error)),
        }
    }

    fn frames(&self, schemas: &Schemas, bytes: &[u8], json: bool) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Err(Failure::wrong("the input is empty").hint("`--help` shows what to pass"));
        }
        // One frame at a time: its explanation takes hundreds of times as much memory.
        let mut at = 0;
        while at < bytes.len() {
            let frame = schemas.explain_frame(bytes, at);
            let frame = frame.map_err(|error| malformed(bytes, &error))?;
            let mut shown = ShownFrame::of(schemas, bytes, &frame);
            if !self.brief {
                let gap = if at == 0 { "" } else { "\n" };
                shown.text = format!("{gap}{}", explain::table(bytes, &frame.lines));
            }
            show(&shown, json)?;
            if let Some(error) = &frame.message_error {
                note(format!(
                    "byte {}: {}: the message is not a DriverMsg (the mediator still forwards it)",
                    error.offset, error.why
                ));
            }
            if let Some(error) = &frame.header_error {
                return Err(malformed(bytes, error));
            }
            at += frame.length;
        }
        Ok(())
    }

    fn capture(
        &self,
        schemas: &Schemas,
        capture: capture::Capture,
        json: bool,
    ) -> Result<(), Failure> {
        let ours = |port: u16| self.port == 0 || port == self.port;
        let (mut shown, mut bad, mut first) = (0, 0, None);
        for datagram in &capture.datagrams {
            if !ours(datagram.from.port()) && !ours(datagram.to.port()) {
                continue;
            }
            shown += 1;
            let start = *first.get_or_insert(datagram.time);
            let seconds = datagram.time.saturating_sub(start).as_secs_f64();
            let bytes = &datagram.payload;
            let mut line = match Frame::from_datagram(bytes) {
                Ok(_) => match schemas.explain(bytes).0.first() {
                    Some(frame) => ShownFrame::of(schemas, bytes, frame),
                    None => ShownFrame::default(),
                },
                Err(error) => {
                    let (_, place) = schemas.explain(bytes);
                    let why = place.map_or(error.to_string(), |place| {
                        format!("byte {}: {}", place.offset, place.why)
                    });
                    ShownFrame {
                        text: format!("malformed: {why}\n"),
                        hex: Some(hex(bytes)),
                        ..ShownFrame::default()
                    }
                }
            };
            bad += usize::from(line.bytes == 0);
            let (from, to) = (datagram.from.to_string(), datagram.to.to_string());
            line.text = format!("{seconds:10.6}  {from} > {to}  {}", line.text);
            (line.time_s, line.from, line.to) = (Some(seconds), Some(from), Some(to));
            show(&line, json)?;
        }
        if capture.incomplete > 0 {
            note(format!(
                "{} packets are incomplete: cut off, or sent in fragments",
                capture.incomplete
            ));
        }
        if capture.cut_off {
            note("the capture ends within a packet");
        }
        if shown == 0 {
            return Err(
                Failure::new(format!("no datagram from or to port {}", self.port))
                    .hint("`--port 0` shows all UDP datagrams"),
            );
        }
        match bad {
            0 => Ok(()),
            many => Err(Failure::new(format!("{many} datagrams are malformed"))),
        }
    }
}

fn malformed(bytes: &[u8], error: &Malformed) -> Failure {
    let at = error.offset.min(bytes.len());
    let around = explain::spaced(&bytes[at..], 8);
    let place = match around.is_empty() {
        true => "the end of the input".to_owned(),
        false => format!("at {around}"),
    };
    Failure::new(format!("byte {}: {}", error.offset, error.why)).hint(format!(
        "the error is {place}; a frame is 2 bytes length, header, 2 bytes length, message \
         (use `--message` for a message without a frame)"
    ))
}

#[derive(Debug, Default, Serialize)]
struct ShownFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    time_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    offset: usize,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    clients: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorShown>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct ErrorShown {
    offset: usize,
    why: String,
}

impl From<&Malformed> for ErrorShown {
    fn from(error: &Malformed) -> Self {
        Self {
            offset: error.offset,
            why: error.why.clone(),
        }
    }
}

impl ShownFrame {
    fn of(schemas: &Schemas, bytes: &[u8], frame: &Explained) -> Self {
        let (header, message) = (&bytes[frame.header.clone()], &bytes[frame.message.clone()]);
        let parsed = Header::parse(header).unwrap_or_default();
        let error = frame.header_error.as_ref().or(frame.message_error.as_ref());
        let values = schemas.for_device(parsed.device_type).brief_values(message);
        Self {
            offset: frame.offset,
            bytes: frame.length,
            device: parsed.device().map(|device| device.to_string()),
            clients: parsed.client_ids().map(|id| id.0).collect(),
            hex: values.is_none().then(|| hex(message)),
            message: values,
            error: error.map(ErrorShown::from),
            text: schemas.brief(header, message) + "\n",
            ..Self::default()
        }
    }
}

impl Human for ShownFrame {
    fn human(&self) -> String {
        self.text.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_an_object_for_programs() {
        let schemas = Schemas::built_in();
        let bytes = b"\0\x04\x08\x05\x10\0\0\x08\x10\x01\x18\xac\x02\xa0\x03\x01";
        let (frames, _) = schemas.explain(bytes);
        let shown = ShownFrame::of(&schemas, bytes, &frames[0]);
        assert_eq!(
            serde_json::to_value(&shown).unwrap(),
            serde_json::json!({
                "offset": 0, "bytes": 16, "device": "dummy:0", "clients": [],
                "message": { "type": "DATA", "synNum": 300, "get_status": true },
            })
        );
        assert_eq!(
            shown.human(),
            "dummy:0  DATA synNum 300  get_status: true\n"
        );
    }
}
