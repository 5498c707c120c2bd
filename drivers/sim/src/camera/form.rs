//! The forms in which cameras and programs send pictures by HTTP, with their faults. PURE.

use std::time::Duration;

/// The form of an answer, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it should be: each reader understands it.
    Stream,
    /// One picture.
    Snapshot,
    /// mjpg-streamer: the boundary follows each picture.
    MjpgStreamer,
    /// An ESP32-CAM: in chunks, with the boundary before each picture.
    Esp32,
    /// One with a program from before 2020: the first boundary is missing.
    Esp32Old,
    /// motion: blanks before the length, and lower case.
    Motion,
    /// Dashes in the header.
    Dashes,
    /// A boundary in quotes.
    Quoted,
    /// No lengths.
    NoLength,
    /// Lines end with LF only.
    Lf,
    /// No line end behind pictures.
    NoLineEnd,
    /// Lengths that are too large.
    WrongLength,
    /// Files back to back.
    BackToBack,
}

/// What a browser shows at `/`.
pub(super) const PAGE: &str = "<!doctype html><title>Simulated camera</title><img src=\"/stream\" alt=\"the view of the robot\">\n";

const BOUNDARY: &str = "simulated";

impl Form {
    /// All, with their paths.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::Stream, "/stream"),
        (Self::Snapshot, "/snapshot"),
        (Self::MjpgStreamer, "/?action=stream"),
        (Self::Esp32, "/esp32"),
        (Self::Esp32Old, "/esp32-old"),
        (Self::Motion, "/motion"),
        (Self::Dashes, "/dashes"),
        (Self::Quoted, "/quoted"),
        (Self::NoLength, "/no-length"),
        (Self::Lf, "/lf"),
        (Self::NoLineEnd, "/no-line-end"),
        (Self::WrongLength, "/wrong-length"),
        (Self::BackToBack, "/back-to-back"),
    ];

    /// The form at a path.
    pub(super) fn of(path: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == path).map(|(form, _)| *form)
    }

    /// What comes before the first picture.
    pub(super) fn head(self) -> String {
        let boundary = match self {
            Self::Dashes => format!("--{BOUNDARY}"),
            Self::Quoted => format!("\"{BOUNDARY}\""),
            _ => BOUNDARY.to_owned(),
        };
        let kind = match self {
            Self::Snapshot | Self::BackToBack => "image/jpeg".to_owned(),
            _ => format!("multipart/x-mixed-replace;boundary={boundary}"),
        };
        let more = match self {
            Self::Esp32 => "Transfer-Encoding: chunked\r\n",
            _ => "Connection: close\r\nCache-Control: no-store\r\n",
        };
        let version = if self == Self::Esp32 { "1.1" } else { "1.0" };
        let first = match self {
            Self::MjpgStreamer => format!("--{BOUNDARY}\r\n"),
            _ => String::new(),
        };
        self.ended(format!(
            "HTTP/{version} 200 OK\r\n{more}Content-Type: {kind}\r\n\r\n{first}"
        ))
    }

    /// A picture, with what is before and behind it.
    pub(super) fn part(self, file: &[u8], time: Duration) -> Vec<u8> {
        let length = file.len();
        let stamp = format!(
            "X-Timestamp: {}.{:06}\r\n",
            time.as_secs(),
            time.subsec_micros()
        );
        let before = format!("--{BOUNDARY}\r\n");
        let usual = format!("Content-Type: image/jpeg\r\nContent-Length: {length}\r\n{stamp}\r\n");
        let (before, behind) = match self {
            Self::Snapshot | Self::BackToBack => (String::new(), String::new()),
            Self::MjpgStreamer | Self::Esp32Old => (usual, format!("\r\n{before}")),
            Self::Esp32 => {
                let pieces = [
                    format!("\r\n{before}").into_bytes(),
                    usual.into_bytes(),
                    file.to_vec(),
                ];
                return pieces.iter().flat_map(|piece| chunk(piece)).collect();
            }
            Self::Motion => (
                format!("{before}Content-type: image/jpeg\r\nContent-length: {length:>9}\r\n\r\n"),
                "\r\n".to_owned(),
            ),
            Self::NoLength => (
                format!("{before}Content-Type: image/jpeg\r\n\r\n"),
                "\r\n".to_owned(),
            ),
            Self::WrongLength => {
                let length = length + 7;
                let headers =
                    format!("Content-Type: image/jpeg\r\nContent-Length: {length}\r\n\r\n");
                (format!("{before}{headers}"), "\r\n".to_owned())
            }
            Self::NoLineEnd => (format!("{before}{usual}"), String::new()),
            Self::Stream | Self::Dashes | Self::Quoted | Self::Lf => {
                (format!("{before}{usual}"), "\r\n".to_owned())
            }
        };
        let [before, behind] = [before, behind].map(|text| self.ended(text));
        [before.as_bytes(), file, behind.as_bytes()].concat()
    }

    /// A text with the line ends of this form.
    fn ended(self, text: String) -> String {
        match self {
            Self::Lf => text.replace('\r', ""),
            _ => text,
        }
    }
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    let length = format!("{:x}\r\n", piece.len());
    [length.as_bytes(), piece, b"\r\n"].concat()
}
