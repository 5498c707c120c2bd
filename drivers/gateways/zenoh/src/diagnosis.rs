//! Why there is no link to a router, in words. IO.
//!
//! Zenoh only says that there is none. So this tries what Zenoh does, step by step: the name of the host,
//! the port, and the certificates.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore,
};

use crate::certificate::{self, Validity};
use crate::config::{FleetLink, Tls};

/// How long to wait for each step.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a router takes at most to refuse a certificate that it has got.
const REFUSAL: Duration = Duration::from_millis(700);

/// Why there is no link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub hint: String,
}

/// Finds out why there is no link. It takes some seconds.
pub async fn find(link: &FleetLink) -> Trouble {
    let link = link.clone();
    let found = tokio::task::spawn_blocking(move || look(&link)).await;
    found.unwrap_or_else(|_| trouble("no router", "check that a Zenoh router runs"))
}

fn look(link: &FleetLink) -> Trouble {
    if let Some(tls) = &link.tls {
        let own = match certificate::check(tls) {
            Ok(all) => all,
            Err(error) => return trouble(error.to_string(), "check the table [zenoh]"),
        };
        let over = |it: &&Validity| it.days_left < 0 || it.is_early;
        if let Some(problem) = own.iter().find(over).and_then(Validity::trouble) {
            return trouble(
                problem,
                "`amber-zenoh access` makes a new one: remove the old files",
            );
        }
    }
    let found = link
        .connect
        .iter()
        .map(|router| of(router, link.tls.as_ref()));
    let found: Vec<_> = found.collect();
    let hint = found.first().map(|it| it.hint.clone()).unwrap_or_default();
    let texts: Vec<_> = found.into_iter().map(|it| it.text).collect();
    Trouble {
        text: texts.join("; "),
        hint,
    }
}

/// The trouble with one router.
fn of(router: &str, tls: Option<&Tls>) -> Trouble {
    let (protocol, address) = router.split_once('/').unwrap_or(("tcp", router));
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = match address.to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(_) => {
            let hint = "check the name, or use the address of the router";
            return trouble(
                format!("no router at {router}: unknown host '{host}'"),
                hint,
            );
        }
    };
    let mut why = "no address".to_owned();
    let mut connected = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                connected = Some(stream);
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                why = "nothing listens there".to_owned();
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                why = "that machine does not answer".to_owned();
            }
            Err(error) => why = error.to_string(),
        }
    }
    let Some(stream) = connected else {
        let hint = "check that a Zenoh router runs there: `amber-zenoh router`, or `zenohd`";
        return trouble(format!("no router at {router}: {why}"), hint);
    };
    let (text, hint) = match (protocol, tls) {
        ("tls", Some(tls)) => match shaken(stream, host, tls) {
            Ok(()) => (
                "it accepts the certificate, but opens no session".to_owned(),
                "another program may listen there, or the router is full".to_owned(),
            ),
            Err(error) => in_words(&error, host, tls),
        },
        _ if speaks_tls(stream) => (
            "it requires TLS".to_owned(),
            "use tls/ instead of tcp/, with `ca`, `certificate` and `key`".to_owned(),
        ),
        _ => (
            "what listens there is no Zenoh router, or does not answer".to_owned(),
            "check the port".to_owned(),
        ),
    };
    trouble(format!("no link to {router}: {text}"), hint)
}

/// A TLS connection, as Zenoh makes it.
fn shaken(stream: TcpStream, host: &str, tls: &Tls) -> io::Result<()> {
    let invalid = |error: rustls::pki_types::pem::Error| io::Error::other(error.to_string());
    let mut roots = RootCertStore::empty();
    for authority in certificates(&tls.ca)? {
        roots.add(authority).map_err(io::Error::other)?;
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(invalid)?;
    let config = builder()?
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(&tls.certificate)?, key)
        .map_err(io::Error::other)?;
    shake(stream, host, config)
}

/// Whether TLS is spoken there: then the answer is a certificate that nobody here knows.
fn speaks_tls(stream: TcpStream) -> bool {
    let shaken = builder().and_then(|builder| {
        let config = builder.with_root_certificates(RootCertStore::empty());
        shake(stream, "localhost", config.with_no_client_auth())
    });
    let error = shaken.err();
    let error = error.as_ref().and_then(tls_error);
    matches!(error, Some(Error::InvalidCertificate(_)))
}

fn builder() -> io::Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)
}

fn shake(mut stream: TcpStream, host: &str, config: ClientConfig) -> io::Result<()> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
    }
    // The router refuses a certificate of ours only now.
    stream.set_read_timeout(Some(REFUSAL))?;
    let mut byte = [0];
    match rustls::Stream::new(&mut tls, &mut stream).read(&mut byte) {
        Err(error) if is_silence(&error) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

fn certificates(path: &std::path::Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let file = BufReader::new(File::open(path)?);
    let all: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(file).collect();
    all.map_err(|error| io::Error::other(error.to_string()))
}

fn is_silence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// The error of a TLS connection, and what to do.
fn in_words(error: &io::Error, host: &str, tls: &Tls) -> (String, String) {
    let (ca, own) = (tls.ca.display(), tls.certificate.display());
    let renew = "make a new one with `amber-zenoh access`";
    let (text, hint) = match tls_error(error) {
        Some(Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
                "the certificate of the router has expired".to_owned(),
                format!("{renew}, or check the clock of this machine"),
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
                "the certificate of the router is not valid yet".to_owned(),
                "check the clock of this machine".to_owned(),
            ),
            CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                format!("the certificate of the router is of another authority than {ca}"),
                "copy ca.pem from the folder with the certificates of the router".to_owned(),
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                (
                    format!("the certificate of the router is not for '{host}'"),
                    format!("add '{host}' to `names` in [router], and {renew} for the router"),
                )
            }
            other => (
                format!("the certificate of the router: {other:?}"),
                renew.to_owned(),
            ),
        },
        Some(Error::AlertReceived(alert)) => match alert {
            AlertDescription::CertificateExpired => (
                format!("the router says that the certificate {own} has expired"),
                format!("{renew}, or check the clocks"),
            ),
            // An authority of the same name has another key.
            AlertDescription::UnknownCA | AlertDescription::DecryptError => (
                format!("the router does not know the authority of the certificate {own}"),
                "use a certificate from the folder of the router".to_owned(),
            ),
            other => (
                format!("the router refuses the certificate {own}: {other:?}"),
                "use a certificate from the folder of the router".to_owned(),
            ),
        },
        _ => (
            "it does not answer with TLS".to_owned(),
            "use tcp/ instead of tls/ if the router needs no certificates".to_owned(),
        ),
    };
    (text, hint)
}

fn trouble(text: impl Into<String>, hint: impl Into<String>) -> Trouble {
    Trouble {
        text: text.into(),
        hint: hint.into(),
    }
}
