//! The log filter: one level for everything, or levels for targets. PURE.
//!
//! A filter is a list such as `info,amber_mediator=debug`. Clients that may change the log level
//! send it. Therefore it has no regular expressions, and nothing else that is slow to parse or
//! apply.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use amber_core::limits::{LOG_FILTER_BYTES, LOG_FILTER_PARTS};

/// The hint for an invalid filter.
pub const HINT: &str = "write a level (off, error, warn, info, debug or trace), or levels for \
     targets, such as `info,amber_mediator=debug`";

/// Parses a filter. An empty one, as from a variable that is set to nothing, means `info`.
///
/// # Errors
/// The filter is invalid; the text says why.
pub(super) fn parse(filter: &str) -> Result<Targets, String> {
    if filter.len() > LOG_FILTER_BYTES {
        let bytes = filter.len();
        return Err(format!(
            "the log filter has {bytes} bytes, more than {LOG_FILTER_BYTES}"
        ));
    }
    if filter.split(',').count() > LOG_FILTER_PARTS {
        return Err(format!(
            "the log filter has more than {LOG_FILTER_PARTS} parts"
        ));
    }
    if filter.trim().is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::INFO));
    }
    let mut targets = Targets::new();
    for part in filter.split(',').map(str::trim) {
        targets = match part.split_once('=') {
            None => targets.with_default(level(part)?),
            Some((target, part)) => targets.with_target(self::target(target)?, level(part)?),
        };
    }
    Ok(targets)
}

fn level(word: &str) -> Result<LevelFilter, String> {
    let word = word.trim();
    // The parser accepts an empty text.
    let level = word.parse().ok().filter(|_| !word.is_empty());
    level.ok_or_else(|| format!("'{}' is not a log level", word.escape_debug()))
}

fn target(word: &str) -> Result<&str, String> {
    let word = word.trim();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.:".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Ok(word),
        false => Err(format!("'{}' is not a log target", word.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tracing::Level;

    use super::*;

    #[test]
    fn levels_apply_to_everything_or_to_targets() {
        let filter = parse("info, amber_mediator::core=debug,driver = off").unwrap();
        for (target, level, expected) in [
            ("other", Level::INFO, true),
            ("other", Level::DEBUG, false),
            ("amber_mediator::core", Level::DEBUG, true),
            ("amber_mediator::core::control", Level::DEBUG, true),
            ("amber_mediator::router", Level::DEBUG, false),
            ("driver", Level::ERROR, false),
        ] {
            let is_logged = filter.would_enable(target, &level);
            assert_eq!(is_logged, expected, "{target} {level}");
        }
        let only = parse("amber_mediator=trace").unwrap();
        assert!(only.would_enable("amber_mediator", &Level::TRACE));
        assert!(!only.would_enable("other", &Level::ERROR));
        let unset = parse("").unwrap();
        assert!(unset.would_enable("x", &Level::INFO) && !unset.would_enable("x", &Level::DEBUG));
    }

    #[test]
    fn everything_else_is_rejected() {
        for (filter, problem) in [
            ("info,", "'' is not a log level"),
            ("amber_mediator", "'amber_mediator' is not a log level"),
            ("=info", "'' is not a log target"),
            ("a=", "'' is not a log level"),
            ("a=loud", "'loud' is not a log level"),
            ("a=b=info", "'b=info' is not a log level"),
            ("a[span]=info", "'a[span]' is not a log target"),
            ("a[{x}]=info", "'a[{x}]' is not a log target"),
            ("a\u{1b}=info", "'a\\u{1b}' is not a log target"),
        ] {
            assert_eq!(parse(filter).unwrap_err(), problem, "{filter}");
        }
        let error = |filter: String| parse(&filter).unwrap_err();
        assert!(error("a".repeat(1 + LOG_FILTER_BYTES)).contains("bytes, more than"));
        assert!(error("info,".repeat(LOG_FILTER_PARTS)).contains("parts"));
    }

    #[test]
    fn an_exploding_regular_expression_is_rejected_at_once() {
        let bomb = format!("a[{{x=(a|b)*a{}}}]=trace", "(a|b)".repeat(20));
        let begin = Instant::now();
        assert!(parse(&bomb).is_err());
        assert!(begin.elapsed() < Duration::from_millis(100));
    }
}
