//! The attachment of each message: number, time and identity of the sender. PURE.

/// The length of an attachment. A node of ROS 2 ends when it receives another length.
pub const LENGTH: usize = 33;

/// The length of an identity.
const GID: usize = 16;

/// The attachment of a message, request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The number of the message, from 1. The reply to a request has that of the request.
    pub sequence: i64,
    /// When it was sent, in nanoseconds since 1970, by the clock of the sender.
    pub source_ns: i64,
    /// The identity of the publisher or client. The reply to a request has that of the request.
    pub gid: Gid,
}

/// The identity of a publisher, subscription, service or client: see [`crate::Token::gid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gid(pub [u8; GID]);

/// These bytes are not an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    /// The wrong length.
    #[error("an attachment of {0} bytes: expected {LENGTH}")]
    Length(usize),
    /// The wrong length of the identity.
    #[error("an attachment with an identity of {0} bytes: expected {GID}")]
    Gid(u8),
}

impl Attachment {
    /// The bytes of the attachment.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source_ns.to_le_bytes());
        bytes[16] = GID as u8;
        bytes[17..].copy_from_slice(&self.gid.0);
        bytes
    }

    /// Reads an attachment.
    ///
    /// # Errors
    /// It has another length, or another format.
    pub fn decode(bytes: &[u8]) -> Result<Self, AttachmentError> {
        let wrong_length = |_| AttachmentError::Length(bytes.len());
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(wrong_length)?;
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            i64::from_le_bytes(number)
        };
        if usize::from(bytes[16]) != GID {
            return Err(AttachmentError::Gid(bytes[16]));
        }
        let mut gid = [0; GID];
        gid.copy_from_slice(&bytes[17..]);
        Ok(Self {
            sequence: number(0),
            source_ns: number(8),
            gid: Gid(gid),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// That of a node of ROS 2 Jazzy.
    const REAL: [u8; LENGTH] = [
        0x01, 0, 0, 0, 0, 0, 0, 0, 0x33, 0x5d, 0xfe, 0x12, 0xdf, 0x65, 0xea, 0x18, 0x10, 0xb7,
        0x6e, 0x7f, 0x43, 0x7f, 0x3d, 0x37, 0xd7, 0xb0, 0xef, 0xa5, 0xa4, 0xff, 0xbf, 0x06, 0x9f,
    ];

    #[test]
    fn an_attachment_of_a_real_node_is_read_and_written() {
        let read = Attachment::decode(&REAL).unwrap();
        assert_eq!(read.sequence, 1);
        assert_eq!(read.source_ns, 0x18ea_65df_12fe_5d33);
        assert_eq!(read.gid.0[..2], [0xb7, 0x6e]);
        assert_eq!(read.encode(), REAL);
    }

    #[test]
    fn other_lengths_are_refused() {
        assert_eq!(
            Attachment::decode(&REAL[..32]),
            Err(AttachmentError::Length(32))
        );
        assert_eq!(Attachment::decode(&[]), Err(AttachmentError::Length(0)));
        let mut wrong = REAL;
        wrong[16] = 12;
        assert_eq!(Attachment::decode(&wrong), Err(AttachmentError::Gid(12)));
    }

    proptest! {
        #[test]
        fn every_attachment_survives(sequence: i64, source_ns: i64, gid: [u8; GID]) {
            let gid = Gid(gid);
            let attachment = Attachment { sequence, source_ns, gid };
            prop_assert_eq!(Attachment::decode(&attachment.encode()), Ok(attachment));
        }
    }
}
