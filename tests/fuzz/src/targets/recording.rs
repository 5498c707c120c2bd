//! Recordings from others.

use std::io::Cursor;

use amber_record::{Effect, Info, Unverified, recover};

/// What can be read of a damaged file becomes a file without damage, with the same messages.
pub(super) fn recording(bytes: &[u8]) {
    let file = || Cursor::new(bytes);
    let Ok(info) = Info::read(file()) else {
        assert!(recover(file(), Cursor::new(Vec::new()), Unverified::Keep).is_err());
        return;
    };
    let kept = recover(file(), Cursor::new(Vec::new()), Unverified::Keep);
    let (kept, copy) = kept.expect("a file that was read is recovered");
    assert!(kept.messages <= info.messages + info.others, "{kept:?}");
    let copy = Info::read(Cursor::new(copy.into_inner())).expect("the new file is read");
    assert!(copy.finished, "{copy:?}");
    assert!(
        copy.damage.iter().all(|it| it.effect == Effect::Harmless),
        "{copy:?}"
    );
    let (left, _) = recover(file(), Cursor::new(Vec::new()), Unverified::Leave)
        .expect("a file that was read is recovered");
    assert!(left.messages <= kept.messages, "{left:?} {kept:?}");
}
