//! Certificates for a fleet: its own authority, and one certificate for each name. IO.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use super::Rights;

/// How long the authority is valid: longer than any certificate that it signs.
const AUTHORITY_DAYS: i64 = 3_650;
/// Certificates are valid a little earlier, for machines whose clocks are late.
const EARLIER: Duration = Duration::hours(1);

/// The reason why certificates cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A certificate cannot be made or read.
    #[error("certificate of '{name}': {error}")]
    Certificate {
        /// The name in the certificate.
        name: String,
        /// The reason.
        error: rcgen::Error,
    },
}

/// Creates the missing files in the folder: the authority, and certificates for the router and all
/// names. Existing certificates stay; remove a file to renew it. Returns the names with new ones.
///
/// # Errors
/// A file cannot be read or written, or is invalid.
pub fn make(rights: &Rights, folder: &Path, days: u32) -> Result<Vec<String>, CertificateError> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let authority = authority(folder)?;
    let mut made = Vec::new();
    let mut leaf = |name: &str, hosts: &[String], usage| {
        let path = folder.join(name).with_extension("pem");
        if path.exists() {
            return Ok(());
        }
        let (certificate, key) =
            signed(&authority, name, hosts, usage, days).map_err(|error| refused(name, error))?;
        write_secret(&folder.join(name).with_extension("key"), &key)?;
        fs::write(&path, certificate).map_err(|error| failed(&path, error))?;
        made.push(name.to_owned());
        Ok(())
    };
    let router = ExtendedKeyUsagePurpose::ServerAuth;
    leaf("router", &rights.router.names, router)?;
    for name in rights.names() {
        leaf(name.as_str(), &[], ExtendedKeyUsagePurpose::ClientAuth)?;
    }
    Ok(made)
}

/// The authority of this folder; a new one if there is none.
fn authority(folder: &Path) -> Result<Issuer<'static, KeyPair>, CertificateError> {
    let (path, key_path) = (folder.join("ca.pem"), folder.join("ca.key"));
    let broken = |error| refused("ca", error);
    if path.exists() {
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| failed(path, error));
        let key = KeyPair::from_pem(&read(&key_path)?).map_err(broken)?;
        return Issuer::from_ca_cert_pem(&read(&path)?, key).map_err(broken);
    }
    let mut params = params("Amber fleet", &[], AUTHORITY_DAYS).map_err(broken)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().map_err(broken)?;
    let certificate = params.self_signed(&key).map_err(broken)?;
    write_secret(&key_path, &key.serialize_pem())?;
    fs::write(&path, certificate.pem()).map_err(|error| failed(&path, error))?;
    Ok(Issuer::new(params, key))
}

/// A certificate and its key.
fn signed(
    authority: &Issuer<'_, KeyPair>,
    name: &str,
    hosts: &[String],
    usage: ExtendedKeyUsagePurpose,
    days: u32,
) -> Result<(String, String), rcgen::Error> {
    let mut params = params(name, hosts, days.into())?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn params(name: &str, hosts: &[String], days: i64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::now_utc();
    params.not_before = now - EARLIER;
    params.not_after = now + Duration::days(days);
    Ok(params)
}

/// Only the owner may read it.
fn write_secret(path: &Path, text: &str) -> Result<(), CertificateError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> CertificateError {
    CertificateError::File {
        path: path.to_owned(),
        error,
    }
}

fn refused(name: &str, error: rcgen::Error) -> CertificateError {
    CertificateError::Certificate {
        name: name.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificates_are_made_once_and_keys_are_secret() {
        let folder = tempfile::tempdir().unwrap();
        let rights: Rights = toml::from_str("[[robot]]\nname = 'r1'").unwrap();
        assert_eq!(make(&rights, folder.path(), 30).unwrap(), ["router", "r1"]);
        let read = |file: &str| fs::read(folder.path().join(file)).unwrap();
        let before = (read("ca.pem"), read("r1.pem"));
        let more = "[[robot]]\nname = 'r1'\n[[operator]]\nname = 'alice'";
        let rights: Rights = toml::from_str(more).unwrap();
        assert_eq!(make(&rights, folder.path(), 30).unwrap(), ["alice"]);
        assert_eq!((read("ca.pem"), read("r1.pem")), before);
        for key in ["ca.key", "router.key", "r1.key", "alice.key"] {
            let metadata = fs::metadata(folder.path().join(key)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{key}");
        }
    }
}
