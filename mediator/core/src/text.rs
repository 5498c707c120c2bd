//! The beginning of a text.

/// As much of the beginning as fits into so many bytes, without a part of a character. Rust 1.91 has
/// `floor_char_boundary`.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        assert_eq!(beginning("aä€", 0), "");
        assert_eq!(beginning("aä€", 1), "a");
        assert_eq!(beginning("aä€", 2), "a");
        assert_eq!(beginning("aä€", 3), "aä");
        assert_eq!(beginning("aä€", 5), "aä");
        assert_eq!(beginning("aä€", 6), "aä€");
        assert_eq!(beginning("aä€", 7), "aä€");
    }
}
