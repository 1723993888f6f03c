//! Owns notifications as mail over SMTP: the same bytes and the same Message-ID on every attempt. SMTP
//! can neither be asked for a message nor told that it is a repeat; receivers know it by the Message-ID.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Error, Failure, FailureCode, Result};
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message as MailMessage, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::provider::{Message, Provider};

/// What a mail's payload holds; make one with `Json::of(&mail)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The subject line.
    pub title: String,
    /// The text.
    pub text: String,
    /// The same as HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// How the connection is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    StartTls,
    Tls,
    Plain,
}

/// Puts an [`SmtpProvider`] together.
pub struct SmtpProviderBuilder {
    host: String,
    port: u16,
    security: Security,
    from: String,
    domain: Option<String>,
    login: Option<(String, SecretString)>,
    trusted: Vec<Vec<u8>>,
    timeout: Duration,
}

impl fmt::Debug for SmtpProviderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = (&self.host, self.port, self.security);
        f.debug_struct("SmtpProviderBuilder").field("place", &place).finish_non_exhaustive()
    }
}

impl SmtpProviderBuilder {
    /// Sets the port in place of the usual one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets who logs in.
    #[must_use]
    pub fn login(mut self, user: impl Into<String>, password: SecretString) -> Self {
        self.login = Some((user.into(), password));
        self
    }

    /// Sets the right side of Message-IDs; the sender's domain unless set.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Sets how long one command may take; 20 s unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts a certificate besides the machine's, given as PEM.
    #[must_use]
    pub fn trust(mut self, pem: &[u8]) -> Self {
        self.trusted.push(pem.to_vec());
        self
    }

    /// Builds the provider; it connects when the first mail is sent.
    ///
    /// # Errors
    /// `Invalid` for a sender that is no mailbox and a certificate that is none.
    pub fn build(self) -> Result<SmtpProvider> {
        let refuse = |why: &str| Error::invalid("build SMTP provider", why);
        let from: Mailbox = self.from.parse().map_err(|_| refuse("the sender is no mailbox"))?;
        let domain = self.domain.clone().unwrap_or_else(|| from.email.domain().to_owned());
        let tls = match self.security {
            Security::Plain => Tls::None,
            Security::StartTls => Tls::Required(self.tls()?),
            Security::Tls => Tls::Wrapper(self.tls()?),
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(self.host)
            .port(self.port)
            .tls(tls)
            .timeout(Some(self.timeout))
            .hello_name(ClientId::Domain(domain.clone()));
        if let Some((user, password)) = self.login {
            let password = password.expose_secret().to_owned();
            transport = transport.credentials(Credentials::new(user, password));
        }
        Ok(SmtpProvider { transport: transport.build(), from, domain })
    }

    fn tls(&self) -> Result<TlsParameters> {
        let refuse = |error: lettre::transport::smtp::Error| {
            Error::invalid("build SMTP provider", "no TLS").with_source(error)
        };
        let mut tls = TlsParameters::builder(self.host.clone());
        for pem in &self.trusted {
            tls = tls.add_root_certificate(Certificate::from_pem(pem).map_err(refuse)?);
        }
        tls.build_rustls().map_err(refuse)
    }
}

/// Sends each message as one mail to its recipient, a mailbox such as `Ann <ann@example.com>`.
///
/// The payload is a [`Mail`]. The provider's id of a mail is what the server answered to it.
pub struct SmtpProvider {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    domain: String,
}

impl fmt::Debug for SmtpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpProvider").field("domain", &self.domain).finish_non_exhaustive()
    }
}

impl SmtpProvider {
    /// Begins a provider that goes over to TLS once connected, on port 587; without TLS it sends nothing.
    pub fn starttls(host: impl Into<String>, from: impl Into<String>) -> SmtpProviderBuilder {
        Self::at(host.into(), 587, Security::StartTls, from.into())
    }

    /// Begins a provider that speaks TLS from the first byte, on port 465.
    pub fn tls(host: impl Into<String>, from: impl Into<String>) -> SmtpProviderBuilder {
        Self::at(host.into(), 465, Security::Tls, from.into())
    }

    /// Begins a provider without TLS, on port 25: for a server on the same machine.
    pub fn plain(host: impl Into<String>, from: impl Into<String>) -> SmtpProviderBuilder {
        Self::at(host.into(), 25, Security::Plain, from.into())
    }

    fn at(host: String, port: u16, security: Security, from: String) -> SmtpProviderBuilder {
        let timeout = Duration::from_secs(20);
        let (domain, login, trusted) = (None, None, Vec::new());
        SmtpProviderBuilder { host, port, security, from, domain, login, trusted, timeout }
    }

    /// The mail of a message: its Message-ID, date and bytes depend on the message alone.
    fn mail(&self, message: &Message<'_>) -> Result<MailMessage, Box<Failure>> {
        let refuse = |why: String| Box::new(Failure::new(FailureCode::PayloadInvalid, why));
        let mail: Mail = serde_json::from_str(message.payload)
            .map_err(|error| refuse(format!("the payload is no mail: {error}")))?;
        let to: Mailbox = message
            .recipient
            .parse()
            .map_err(|_| refuse("the recipient is no mailbox".to_owned()))?;
        let head = MailMessage::builder()
            .from(self.from.clone())
            .to(to)
            .subject(mail.title)
            .date(message.planned_at.to_system_time())
            .message_id(Some(format!("<{}@{}>", message.token, self.domain)));
        let text = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(mail.text);
        let built = match mail.html {
            None => head.singlepart(text),
            Some(html) => {
                let boundary = message.token.chars().take(40).collect::<String>();
                let html = SinglePart::builder().header(ContentType::TEXT_HTML).body(html);
                let both = MultiPart::alternative().boundary(boundary);
                head.multipart(both.singlepart(text).singlepart(html))
            }
        };
        built.map_err(|error| refuse(format!("no mail: {error}")))
    }
}

#[async_trait]
impl Provider for SmtpProvider {
    async fn send(&self, message: &Message<'_>) -> Result<String, Failure> {
        let mail = self.mail(message).map_err(|failure| *failure)?;
        let answer = self.transport.send(mail).await.map_err(|error| failure_of(&error))?;
        let said: String = answer.message().take(1).flat_map(str::chars).take(200).collect();
        Ok(match said.trim() {
            "" => format!("<{}@{}>", message.token, self.domain),
            said => said.to_owned(),
        })
    }
}

/// What a server's answer, or its silence, means.
fn failure_of(error: &lettre::transport::smtp::Error) -> Failure {
    let code = error.status().map(u16::from);
    let kind = match code {
        Some(421) => FailureCode::UpstreamUnavailable,
        Some(400..=499) => FailureCode::UpstreamError,
        Some(530 | 534 | 535 | 538) => FailureCode::AuthDenied,
        Some(552) => FailureCode::SizeExceeded,
        Some(554) => FailureCode::PolicyRejected,
        Some(500..=599) => FailureCode::RequestRejected,
        _ if error.is_timeout() => FailureCode::NetworkTimeout,
        _ if error.is_client() => FailureCode::ConfigInvalid,
        _ if error.is_response() => FailureCode::UpstreamError,
        _ => FailureCode::ConnectionReset,
    };
    Failure::new(kind, error.to_string())
}
