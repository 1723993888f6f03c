//! Owns where a database is and how it is spoken to: the URL grammar, TLS, the roles of pooler,
//! schema and migration. Never repeats a URL in an error, since it may hold a password.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::schema::Schema;

/// How many connections the verbs share unless the URL says otherwise.
const POOL_SIZE: usize = 16;
/// The longest wait for one of the hosts to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// The port of a server whose URL names none.
const PORT: u16 = 5432;
/// How long the wire may be silent before the server is asked whether it lives.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A database and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeRustlsConnect>,
    pub(crate) schema: Arc<Schema>,
    /// What errors tell of where it is.
    pub(crate) place: Place,
    /// Whether opening may change the schema.
    pub(crate) migrates: bool,
    /// Whether nothing of a session may be relied on.
    pub(crate) behind_pooler: bool,
    pub(crate) pool_size: usize,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("schema", &self.schema.name())
            .field("tls", &self.tls.is_some())
            .field("behind_pooler", &self.behind_pooler)
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

/// The hosts and ports that are tried, in words; `None` where they cannot be told for certain.
#[derive(Clone, Debug)]
pub(crate) struct Place(Option<Arc<str>>);

impl Place {
    /// Reads them from what the driver made of a URL.
    pub(crate) fn of(url: &str, config: &Config) -> Self {
        // A password with an `@` that is not escaped: what the driver takes for the host is a part of it.
        if url.matches('@').count() > 1 {
            return Self(None);
        }
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        });
        let mut hosts: Vec<String> = hosts.collect();
        if hosts.is_empty() {
            hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let places = hosts.iter().enumerate().map(|(at, host)| match host.contains(':') {
            true => format!("[{host}]:{}", port(at)),
            false => format!("{host}:{}", port(at)),
        });
        let places = places.collect::<Vec<_>>().join(", ");
        Self(Some(places).filter(|places| !places.is_empty()).map(Arc::from))
    }

    /// Names the place in an error that its server, or the way to it, is the reason of.
    pub(crate) fn named(&self, error: Error) -> Error {
        match &self.0 {
            Some(place) if error.kind() == ErrorKind::Unavailable => {
                error.about(format_args!("at {place}"))
            }
            _ => error,
        }
    }
}

/// The store's own parameters of a URL.
#[derive(Debug, Default)]
struct Own {
    schema: Option<String>,
    migrates: bool,
    behind_pooler: bool,
    pool_size: Option<usize>,
    ssl_mode: Option<String>,
    ssl_roots: Option<String>,
}

impl Target {
    /// Reads a `postgres://` or `postgresql://` URL.
    ///
    /// # Errors
    /// `Invalid` naming the part that is not understood.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(refuse("a URL begins with postgres:// or postgresql://"));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = Own::default();
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|text| !text.is_empty()) {
            if !own.take(parameter)? {
                rest.push(parameter);
            }
        }
        let text =
            if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            use std::error::Error as _;
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            refuse(&format!("the URL is not understood: {why}"))
        })?;
        if config.get_application_name().is_none() {
            config.application_name("leasehold");
        }
        notice_a_dead_server(&mut config, &rest);
        let tls = own.tls(&mut config)?;
        Ok(Self {
            place: Place::of(url, &config),
            config,
            tls,
            schema: Arc::new(Schema::new(own.schema.as_deref().unwrap_or("leasehold"))?),
            migrates: own.migrates,
            behind_pooler: own.behind_pooler,
            pool_size: own.pool_size.unwrap_or(POOL_SIZE),
        })
    }
}

impl Own {
    /// Takes a parameter of ours; `false` for one that is the driver's.
    fn take(&mut self, parameter: &str) -> Result<bool> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match (name, value) {
            ("schema", name) => self.schema = Some(name.to_owned()),
            ("migrate", "auto") => self.migrates = true,
            ("migrate", "never") => self.migrates = false,
            ("migrate", _) => return Err(refuse("migrate is auto or never")),
            ("pooler", "transaction") => self.behind_pooler = true,
            ("pooler", "none") => self.behind_pooler = false,
            ("pooler", _) => return Err(refuse("pooler is transaction or none")),
            ("pool_size", number) => {
                let size = number.parse().ok().filter(|size| (1..=1000).contains(size));
                self.pool_size = Some(size.ok_or_else(|| refuse("pool_size is 1 to 1000"))?);
            }
            ("sslmode", mode) => self.ssl_mode = Some(mode.to_owned()),
            ("sslrootcert", path) => self.ssl_roots = Some(decoded(path)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the driver's mode; a connector where the URL asks for TLS.
    fn tls(&self, config: &mut Config) -> Result<Option<MakeRustlsConnect>> {
        use tokio_postgres::config::SslMode;
        let mode = match self.ssl_mode.as_deref() {
            None | Some("disable") => SslMode::Disable,
            Some("prefer") => SslMode::Prefer,
            // The certificate and the host's name are always checked.
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(_) => {
                return Err(refuse(
                    "sslmode is disable, prefer, require, verify-ca or verify-full",
                ));
            }
        };
        config.ssl_mode(mode);
        if mode == SslMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(&format!("TLS: {error}")))?;
        let roots = roots(self.ssl_roots.as_deref())?;
        let client = versions.with_root_certificates(roots).with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(client)))
    }
}

/// A server that is gone without a word is noticed within a minute, unless the URL says otherwise.
fn notice_a_dead_server(config: &mut Config, given: &[&str]) {
    let is_given = |name: &str| given.iter().any(|parameter| parameter.starts_with(name));
    if !is_given("connect_timeout=") {
        config.connect_timeout(CONNECT_WAIT);
    }
    if !is_given("tcp_user_timeout=") {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    if !is_given("keepalives") {
        config.keepalives_idle(SILENCE_MAX).keepalives_interval(SILENCE_MAX / 6);
        config.keepalives_retries(3);
    }
}

/// The certificates that a server's may be signed by: those of a file, else the machine's.
fn roots(path: Option<&str>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let unusable =
        |why: String| Error::new(ErrorKind::Unavailable, "open", format!("sslrootcert: {why}"));
    if let Some(path) = path {
        let found = CertificateDer::pem_file_iter(path).map_err(|e| unusable(e.to_string()))?;
        for certificate in found {
            let certificate = certificate.map_err(|e| unusable(e.to_string()))?;
            roots.add(certificate).map_err(|e| unusable(e.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unusable("the file holds no certificate".to_owned()));
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = "the machine has no certificate roots; name a file by sslrootcert";
        return Err(Error::new(ErrorKind::Unavailable, "open", why));
    }
    Ok(roots)
}

fn refuse(why: &str) -> Error {
    Error::invalid("open", why)
}

fn decoded(text: &str) -> Result<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next().unwrap_or(b'-'), bytes.next().unwrap_or(b'-')];
        let number =
            std::str::from_utf8(&digits).ok().and_then(|it| u8::from_str_radix(it, 16).ok());
        out.push(number.ok_or_else(|| refuse("a %-escape is broken"))?);
    }
    String::from_utf8(out).map_err(|_| refuse("a %-escape is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: GLO-4
    #[test]
    fn the_stores_own_parameters_are_taken_out() {
        let url = "postgres://me@db/app?schema=work&migrate=auto&pooler=transaction&pool_size=3&host=/run";
        let target = Target::parse(url).expect("a URL");
        assert_eq!(target.schema.name(), "work");
        assert!(target.migrates && target.behind_pooler && target.tls.is_none());
        assert_eq!(target.pool_size, 3);
        assert_eq!(target.config.get_dbname(), Some("app"));
        let plain = Target::parse("postgresql://db/app").expect("a URL");
        assert_eq!(plain.schema.name(), "leasehold");
        assert!(!plain.migrates && !plain.behind_pooler);
        assert_eq!(plain.config.get_connect_timeout(), Some(&CONNECT_WAIT));
        let own = Target::parse("postgres://db/app?connect_timeout=3").expect("a URL");
        assert_eq!(own.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(own.config.get_tcp_user_timeout(), Some(&SILENCE_MAX));
        let url = "postgres://db/app?keepalives_idle=7&tcp_user_timeout=9000";
        let own = Target::parse(url).expect("a URL").config;
        assert_eq!(own.get_keepalives_idle(), Duration::from_secs(7));
        assert!(own.get_tcp_user_timeout().is_some_and(|wait| *wait != SILENCE_MAX));
    }

    /// Proves: GLO-4
    #[test]
    fn what_is_unknown_is_refused_without_the_password() {
        for url in [
            "sqlite:a.db",
            "host=/run user=me",
            "postgres://db/app?migrate=yes",
            "postgres://db/app?pooler=session",
            "postgres://db/app?pool_size=0",
            "postgres://db/app?sslmode=allow",
            "postgres://db/app?schema=a.b",
            "postgres://me:hunter2@db/app?colour=red",
        ] {
            let error = Target::parse(url).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let target = Target::parse("postgres://me:hunter2@db/app").expect("a URL");
        assert!(!format!("{target:?}").contains("hunter2"));
    }

    /// Proves: GLO-4
    #[test]
    fn tls_is_spoken_when_the_url_asks() {
        let error =
            Target::parse("postgres://db/app?sslmode=require&sslrootcert=/nowhere/ca%2epem");
        assert_eq!(error.expect_err("no file").kind(), ErrorKind::Unavailable);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/open.rs");
        let url = format!("postgres://db/app?sslmode=require&sslrootcert={source}");
        let error = Target::parse(&url).expect_err("no certificate in it");
        assert!(error.to_string().contains("holds no certificate"), "{error}");
        assert!(Target::parse("postgres://db/app?sslmode=disable").expect("off").tls.is_none());
        match Target::parse("postgres://db/app?sslmode=prefer") {
            Ok(target) => assert!(target.tls.is_some()),
            Err(error) => assert!(error.to_string().contains("no certificate roots"), "{error}"),
        }
    }

    /// Proves: GLO-4, ERR-1
    #[test]
    fn hosts_and_ports_are_told_and_never_who_logs_in() {
        for (url, wanted) in [
            ("postgres://me:hunter2@db.local:5433/app", "open at db.local:5433: "),
            ("postgres://db.local/app?user=me&password=hunter2", "open at db.local:5432: "),
            ("postgres://me:hunter2@a:1,b/app", "open at a:1, b:5432: "),
            ("postgres://me:hunter2@[::1]:7/app", "open at [::1]:7: "),
            ("postgres:///app?host=/run/pg&user=me&port=6", "open at /run/pg:6: "),
            ("postgres:///app?hostaddr=127.0.0.1&user=me", "open at 127.0.0.1:5432: "),
            ("postgres://me:hun@ter2@db/app", "open: "),
            ("postgres://me:hun@ter/2@db/app", "open: "),
        ] {
            let place = Target::parse(url).expect(url).place;
            let unavailable = Error::new(ErrorKind::Unavailable, "open", "gone");
            let told = place.named(unavailable).to_string();
            assert!(told.starts_with(wanted), "{told}");
            for secret in ["me", "hun", "ter"] {
                assert!(!told.contains(secret), "{told}");
            }
            let busy = place.named(Error::new(ErrorKind::Busy, "open", "locked")).to_string();
            assert!(busy.starts_with("open: "), "{busy}");
        }
    }
}
