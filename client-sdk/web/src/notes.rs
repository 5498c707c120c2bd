//! Limits how often refusals are shown. PURE.

use std::collections::HashMap;
use std::time::Duration;

use crate::limits::NOTE_PERIOD;

/// At most one line for each reason in [`NOTE_PERIOD`]. The others are counted.
#[derive(Debug, Default)]
pub(crate) struct Notes(HashMap<&'static str, Shown>);

#[derive(Debug, Default)]
struct Shown {
    last: Option<Duration>,
    unshown: u64,
}

impl Notes {
    /// The line to show for a refusal at this time, if any.
    pub(crate) fn line(
        &mut self,
        now: Duration,
        why: &'static str,
        line: String,
    ) -> Option<String> {
        let shown = self.0.entry(why).or_default();
        let is_due = (shown.last).is_none_or(|last| now.saturating_sub(last) >= NOTE_PERIOD);
        if !is_due {
            shown.unshown += 1;
            return None;
        }
        shown.last = Some(now);
        Some(match std::mem::take(&mut shown.unshown) {
            0 => line,
            more => format!("{line}; {more} more were refused since the last line"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_that_are_not_shown_are_counted() {
        let mut notes = Notes::default();
        let mut line = |ms| notes.line(Duration::from_millis(ms), "why", "no".into());
        assert_eq!(line(5).as_deref(), Some("no"));
        assert_eq!(line(6), None);
        assert_eq!(line(1_004), None);
        let counted = "no; 2 more were refused since the last line";
        assert_eq!(line(1_005).as_deref(), Some(counted));
        assert_eq!(line(9_000).as_deref(), Some("no"));
        // A flood for one reason hides no other.
        let other = notes.line(Duration::from_millis(9_001), "another", "yes".into());
        assert_eq!(other.as_deref(), Some("yes"));
    }
}
