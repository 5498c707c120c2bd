//! The token for clients. PURE.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The hash of the token. The token itself is not kept, and never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The hash of a token.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Reads a SHA-256 hash: 64 hex digits.
    #[must_use]
    pub fn from_hash(hex: &str) -> Option<Self> {
        if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Whether a client knows the token. The time does not depend on how much of it is right: the
    /// hashes are compared, and all their bytes.
    #[must_use]
    pub fn is(&self, given: &str) -> bool {
        self.0.ct_eq(&Self::new(given).0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_right() {
        let token = Token::new("28b1c5");
        assert!(token.is("28b1c5"));
        for wrong in ["", "28b1c4", "28b1c", "28b1c5 ", "28B1C5", "undefined"] {
            assert!(!token.is(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_hash_stands_for_the_token() {
        // printf abc | sha256sum
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let token = Token::from_hash(hash).unwrap();
        assert!(token.is("abc"));
        assert_eq!(token, Token::new("abc"));
        assert_eq!(Token::from_hash(&hash[..63]), None);
        assert_eq!(Token::from_hash(&hash.replace('b', "+")), None);
    }

    #[test]
    fn the_token_is_not_in_debug_output() {
        assert_eq!(format!("{:?}", Token::new("secret")), "Token(..)");
    }
}
