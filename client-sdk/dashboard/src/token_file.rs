//! The file that keeps the tokens of a dashboard, so that its addresses stay the same. IO.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use amber_terminal::Failure;
use amber_web::{Token, Tokens, place};

/// More than two tokens need.
const MAX_BYTES: u64 = 1024;

/// How a file is kept from other users.
#[cfg(unix)]
mod rights {
    use std::fs::{Metadata, OpenOptions};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    pub(super) fn keep_private(new: &mut OpenOptions) {
        new.mode(0o600);
    }

    pub(super) fn is_open_to_others(file: &Metadata) -> bool {
        file.mode() & 0o077 != 0
    }
}

/// On Windows, the folder of a user keeps others out, and the library does not tell more.
#[cfg(not(unix))]
mod rights {
    use std::fs::{Metadata, OpenOptions};

    pub(super) fn keep_private(_: &mut OpenOptions) {}

    pub(super) fn is_open_to_others(_: &Metadata) -> bool {
        false
    }
}

/// Reads the tokens, or makes the file with new ones.
///
/// # Errors
/// The file cannot be read or made, others can read it, or it has no tokens.
pub(crate) fn tokens(path: &Path) -> Result<Tokens, Failure> {
    let shown = path.display();
    let failed = |what: &str, error: io::Error| {
        Failure::new(format!("cannot {what} {shown}: {error}")).hint("--tokens names another file")
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let tokens = fresh()?;
            make(path, &tokens).map_err(|error| failed("write", error))?;
            return Ok(tokens);
        }
        Err(error) => return Err(failed("read", error)),
    };
    let found = file.metadata().map_err(|error| failed("read", error))?;
    if rights::is_open_to_others(&found) {
        return Err(
            Failure::new(format!("others can read {shown}, and so drive the robot"))
                .hint(format!("chmod 600 {shown}")),
        );
    }
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(|error| failed("read", error))?;
    parse(&text).ok_or_else(|| {
        Failure::wrong(format!("{shown} has no tokens"))
            .hint("remove it: the next start makes a new one")
    })
}

/// New tokens.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn fresh() -> Result<Tokens, Failure> {
    Ok(Tokens {
        drive: place::token()?,
        look: Some(place::token()?),
    })
}

fn make(path: &Path, tokens: &Tokens) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    rights::keep_private(&mut options);
    let mut file = options.open(path)?;
    file.write_all(text(tokens).as_bytes())
}

fn text(tokens: &Tokens) -> String {
    let look = tokens.look.as_ref().map_or("", Token::text);
    format!("drive {}\nlook {look}\n", tokens.drive.text())
}

fn parse(text: &str) -> Option<Tokens> {
    let token = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| Token::of_text(line.strip_prefix(name)?.trim()))
    };
    Some(Tokens {
        drive: token("drive ")?,
        look: Some(token("look ")?),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_stay_the_same_and_only_their_user_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let first = text(&tokens(&path).unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(text(&tokens(&path).unwrap()), first);
        assert_eq!(fs::read_to_string(&path).unwrap(), first);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = tokens(&path).unwrap_err();
        assert!(error.text().starts_with("others can read"), "{error:?}");
    }

    #[test]
    fn a_file_without_tokens_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for content in [
            "",
            "drive short\nlook short\n",
            "drive AAAAAAAAAAAAAAAAAAAAAA\n",
        ] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = tokens(&path).unwrap_err();
            assert!(
                error.text().ends_with("has no tokens"),
                "{content}: {error:?}"
            );
        }
    }
}
