//! The headers of all pages. PURE.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The headers of every file of a page, besides its type and its policy: names in lower case, and
/// values.
pub const ALWAYS: [(&str, &str); 4] = [
    // A newer program has newer files.
    ("cache-control", "no-cache"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    // For browsers that do not know `frame-ancestors`.
    ("x-frame-options", "DENY"),
];

/// The name of the header with the policy.
pub const POLICY_NAME: &str = "content-security-policy";

/// The policy of a page of several files: it may load only files of its own server, and no other
/// page may show it in a frame, because a click that is meant for that page would drive the robot.
pub const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; \
                          form-action 'none'; frame-ancestors 'none'";

/// The policy of a page that is one file: its scripts and styles are in it, and it may connect to
/// any WebSocket, because its user enters the address of a robot.
#[must_use]
pub fn policy_of(html: &str) -> String {
    let hashes = |tag| {
        let hash = |text: &str| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        contents(html, tag).map(hash).collect::<String>()
    };
    format!(
        "{POLICY}; connect-src 'self' ws: wss:; script-src 'self'{}; style-src 'self'{}",
        hashes("script"),
        hashes("style")
    )
}

/// The contents of all elements with this tag, which has no attributes, except for modules.
fn contents<'a>(html: &'a str, tag: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let mut rest = html;
    std::iter::from_fn(move || {
        let after = loop {
            let (_, after) = rest.split_once(&open)?;
            let starts = [">", " type=\"module\">"];
            match starts.iter().find_map(|it| after.strip_prefix(it)) {
                Some(content) => break content,
                None => rest = after,
            }
        };
        let (content, after) = after.split_once(&close)?;
        rest = after;
        Some(content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_one_file_may_run_its_own_script_only() {
        let policy = policy_of("<style>a{}</style><p>x</p><script>alert(1)</script>");
        // From `printf %s 'alert(1)' | openssl dgst -sha256 -binary | base64`.
        let script = "script-src 'self' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        assert!(policy.contains(script), "{policy}");
        assert!(policy.contains("; style-src 'self' 'sha256-"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let module = policy_of("<script src=x></script><script type=\"module\">alert(1)</script>");
        assert!(module.contains(script), "{module}");
    }

    #[test]
    fn pages_without_scripts_have_no_hashes() {
        let policy = policy_of("<script src=x></script>");
        assert!(
            policy.ends_with("script-src 'self'; style-src 'self'"),
            "{policy}"
        );
    }
}
