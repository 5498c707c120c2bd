//! Every maximum of the JSON relay, each with its reason. PURE.

use std::time::Duration;

/// The longest datagram, in bytes: all that UDP over IPv4 can carry, as in the original server.
pub const MAX_DATAGRAM: usize = 65_507;

/// How deep JSON may be nested. Messages have two levels.
pub const MAX_DEPTH: usize = 8;

/// The longest id of a client, in bytes. It appears in logs and in the status.
pub const MAX_CLIENT_ID: usize = 64;

/// The longest secret, in bytes.
pub const MAX_SECRET: usize = 256;

/// The highest number of fragments of an image: 1.2 MB in fragments for the internet.
pub const MAX_FRAGMENTS: u32 = 1024;

/// The longest image, in bytes of base64.
pub const MAX_IMAGE: usize = 8 << 20;

/// How long an incomplete image is kept.
pub const MAX_IMAGE_AGE: Duration = Duration::from_secs(2);

/// The longest datagram with an image on any network, in bytes: it needs no fragments of IP.
pub const USUAL_MTU: usize = 1200;

/// The longest datagram with an image that can be configured, in bytes.
pub const MAX_MTU: usize = 60_000;

/// The shortest datagram with an image that can be configured, in bytes: twice what the JSON
/// around it needs.
pub const MIN_MTU: usize = 256;
