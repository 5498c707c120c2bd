//! The certificates that a program uses: what is in them, and how long they are valid. IO.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use x509_parser::pem::Pem;

use crate::config::Tls;
use crate::limits::{EXPIRY_PERIOD, EXPIRY_WARNING_DAYS};

const DAY_S: i64 = 86_400;

/// A file of the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

/// How long a certificate is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Validity {
    pub file: PathBuf,
    /// The days until it expires; negative after that.
    pub days_left: i64,
    /// Whether it is not valid yet, so the clock here may be wrong.
    pub is_early: bool,
}

impl Validity {
    /// What to say about it; `None` if it is valid for a while.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let file = self.file.display();
        match self.days_left {
            _ if self.is_early => Some(format!(
                "the certificate {file} is not valid yet: check the clock of this machine"
            )),
            ..0 => Some(format!("the certificate {file} has expired")),
            0 => Some(format!("the certificate {file} expires within a day")),
            days if days <= EXPIRY_WARNING_DAYS => {
                Some(format!("the certificate {file} expires in {days} days"))
            }
            _ => None,
        }
    }
}

/// Checks that all files exist and can be read. Returns the validity of each certificate.
///
/// # Errors
/// A file is missing, or is no certificate or key.
pub fn check(tls: &Tls) -> Result<Vec<Validity>, BadFile> {
    let key = read(&tls.key)?;
    if !key.contains("PRIVATE KEY-----") {
        return Err(bad(
            &tls.key,
            "it contains no private key in the format PEM",
        ));
    }
    [&tls.ca, &tls.certificate]
        .map(|path| validity(path))
        .into_iter()
        .collect()
}

/// The validity of the first certificate in a file.
///
/// # Errors
/// It is missing, or is no certificate.
pub fn validity(path: &Path) -> Result<Validity, BadFile> {
    let text = read(path)?;
    let none = |_| bad(path, "it contains no certificate in the format PEM");
    let pem = Pem::iter_from_buffer(text.as_bytes()).next();
    let pem = pem.ok_or_else(|| none(()))?.map_err(|_| none(()))?;
    let certificate = pem.parse_x509().map_err(|_| none(()))?;
    let validity = certificate.validity();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let left_s = validity.not_after.timestamp() - now_s;
    Ok(Validity {
        file: path.to_owned(),
        days_left: left_s.div_euclid(DAY_S),
        is_early: now_s < validity.not_before.timestamp(),
    })
}

/// Says when certificates expire soon, at the start and then twice a day. It never ends.
pub async fn watch(tls: Tls) {
    loop {
        match check(&tls) {
            Ok(all) => {
                for problem in all.iter().filter_map(Validity::trouble) {
                    tracing::warn!("{problem}; `amber-zenoh access` makes a new one");
                }
            }
            Err(error) => tracing::warn!("{error}"),
        }
        tokio::time::sleep(EXPIRY_PERIOD).await;
    }
}

fn read(path: &Path) -> Result<String, BadFile> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => bad(path, "there is no such file"),
        _ => bad(path, &error.to_string()),
    })
}

fn bad(path: &Path, why: &str) -> BadFile {
    BadFile {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid_for(days_left: i64) -> Option<String> {
        let validity = Validity {
            file: "r1.pem".into(),
            days_left,
            is_early: false,
        };
        validity.trouble()
    }

    #[test]
    fn the_end_of_a_certificate_is_announced_two_weeks_before() {
        assert_eq!(valid_for(15), None);
        assert_eq!(
            valid_for(14).unwrap(),
            "the certificate r1.pem expires in 14 days"
        );
        assert_eq!(
            valid_for(0).unwrap(),
            "the certificate r1.pem expires within a day"
        );
        assert_eq!(valid_for(-1).unwrap(), "the certificate r1.pem has expired");
    }

    #[test]
    fn files_are_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let rights = toml::from_str("[[robot]]\nname = 'r1'").unwrap();
        crate::access::certificates::make(&rights, folder.path(), 10).unwrap();
        let path = |name: &str| folder.path().join(name);
        let tls = Tls {
            ca: path("ca.pem"),
            certificate: path("r1.pem"),
            key: path("r1.key"),
        };
        let found = check(&tls).unwrap();
        // Not the second counts in which it was made.
        assert!((9..=10).contains(&found[1].days_left), "{found:?}");
        assert!(found[0].trouble().is_none() && found[1].trouble().is_some());
        let error = |tls: &Tls| check(tls).unwrap_err().to_string();
        let missing = Tls {
            certificate: path("r2.pem"),
            ..tls.clone()
        };
        assert!(error(&missing).ends_with("r2.pem: there is no such file"));
        let swapped = Tls {
            key: path("r1.pem"),
            ..tls.clone()
        };
        assert!(error(&swapped).ends_with("r1.pem: it contains no private key in the format PEM"));
        let swapped = Tls {
            certificate: path("r1.key"),
            ..tls
        };
        assert!(error(&swapped).contains("r1.key: it contains no certificate"));
    }
}
