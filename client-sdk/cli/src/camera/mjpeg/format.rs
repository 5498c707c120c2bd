//! The bytes of a stream of pictures over HTTP (MJPEG), and the paths of the server. PURE.
//!
//! All known readers understand this form: the boundary has no dashes in the header, the first one
//! comes before the first picture, and lines end with CRLF. Browsers draw a picture when the whole
//! header of the next one has come, so that header follows each picture at once. It cannot know the
//! length of the next picture.

use bytes::{BufMut, Bytes, BytesMut};

/// The type of the answer.
pub(super) const CONTENT_TYPE: &str = "multipart/x-mixed-replace; boundary=picture";
/// What comes before the first picture.
pub(super) const BEGIN: &[u8] = b"--picture\r\nContent-Type: image/jpeg\r\n\r\n";
/// What comes after each picture.
const NEXT: &[u8] = b"\r\n--picture\r\nContent-Type: image/jpeg\r\n\r\n";

/// A picture in the stream, with the header of the next one.
pub(super) fn part(jpeg: &[u8]) -> Bytes {
    let mut part = BytesMut::with_capacity(jpeg.len() + NEXT.len());
    part.put_slice(jpeg);
    part.put_slice(NEXT);
    part.freeze()
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A page with the stream.
    Page,
    Stream,
    /// One picture.
    Snapshot,
    /// The counters.
    Status,
}

impl Place {
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/" => Self::Page,
            "/stream" => Self::Stream,
            "/snapshot" => Self::Snapshot,
            "/status" => Self::Status,
            _ => return None,
        })
    }
}

/// The token in front of a path, and the rest.
pub(super) fn token(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.find('/') {
        Some(end) => path.split_at(end),
        None => (path, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_what_readers_expect() {
        let stream = [BEGIN, &part(b"one"), &part(b"two")].concat();
        let expected = "--picture\r\nContent-Type: image/jpeg\r\n\r\none\r\n\
                        --picture\r\nContent-Type: image/jpeg\r\n\r\ntwo\r\n\
                        --picture\r\nContent-Type: image/jpeg\r\n\r\n";
        assert_eq!(String::from_utf8(stream).unwrap(), expected);
        let (_, boundary) = CONTENT_TYPE.split_once("boundary=").unwrap();
        assert!(expected.starts_with(&format!("--{boundary}\r\n")));
    }

    #[test]
    fn a_token_stands_before_the_path() {
        for (path, expected) in [
            ("/abc/stream", ("abc", "/stream")),
            ("/abc/", ("abc", "/")),
            ("/abc", ("abc", "")),
            ("/stream", ("stream", "")),
            ("/", ("", "")),
            ("", ("", "")),
            ("//stream", ("", "/stream")),
        ] {
            assert_eq!(token(path), expected, "{path}");
        }
        for (path, expected) in [
            ("/", Some(Place::Page)),
            ("/stream", Some(Place::Stream)),
            ("/snapshot", Some(Place::Snapshot)),
            ("/status", Some(Place::Status)),
            ("", None),
            ("/stream/", None),
        ] {
            assert_eq!(Place::of(path), expected, "{path}");
        }
    }
}
