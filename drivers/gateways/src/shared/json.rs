//! Limits of JSON texts. PURE.

/// The nesting depth of arrays and objects. Needs neither recursion nor memory, so it can come
/// before the parser.
#[must_use]
pub fn depth(text: &[u8]) -> usize {
    let (mut deepest, mut depth) = (0_usize, 0_usize);
    let (mut quoted, mut escaped) = (false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        for (text, expected) in [
            ("", 0),
            ("7", 0),
            ("[]", 1),
            (r#"{"a":[{"b":1}],"c":[]}"#, 3),
            (r#"{"a":"[[[{{{"}"#, 1),
            (r#"{"a":"\"[[["}"#, 1),
            (r#"["\\",[]]"#, 2),
            ("]]][", 1),
        ] {
            assert_eq!(depth(text.as_bytes()), expected, "{text}");
        }
    }
}
