//! Mail over SMTP: by TLS, STARTTLS or neither, the same bytes each time, and what the server's codes
//! mean.

use std::sync::Arc;

use leasehold::notify::{Mail, Notification, Notifier, Outcome, RowStatus, SmtpProvider};
use leasehold::{Json, State, Store};

use crate::mailbox::{Mailbox, Security};
use crate::telling::{SUBJECT, add, row, run, stands};
use crate::{Told, stories};

stories![
    mail_goes_by_tls_starttls_and_plainly,
    a_mail_sent_again_is_the_same_mail,
    an_unknown_mailbox_fails_its_row_only,
    a_server_without_trust_gets_nothing,
];

pub(crate) const FROM: &str = "Reviews <reviews@service.example>";

pub(crate) fn mail(names: &[&str]) -> leasehold::Result<Notification> {
    let html = Some("<p>Änderung 7</p>".to_owned());
    let mail = Mail { title: "Merged: 7".to_owned(), text: ".Änderung 7\n".to_owned(), html };
    let payload = Json::of(&mail)?;
    let what = Notification::new(SUBJECT, 1);
    Ok(names.iter().fold(what, |it, name| it.recipient(*name, payload.clone())))
}

fn provider(mailbox: &Mailbox, security: Security) -> leasehold::Result<SmtpProvider> {
    let host = mailbox.address.ip().to_string();
    let begun = match security {
        Security::Plain => SmtpProvider::plain(host, FROM),
        Security::StartTls => SmtpProvider::starttls(host, FROM),
        Security::Tls => SmtpProvider::tls(host, FROM),
    };
    begun.port(mailbox.address.port()).trust(mailbox.certificate.as_bytes()).build()
}

fn notifier(store: &Arc<dyn Store>, provider: SmtpProvider) -> Arc<Notifier> {
    Arc::new(Notifier::new(store.clone(), provider))
}

/// Proves: DEL-2, DEL-6
async fn mail_goes_by_tls_starttls_and_plainly(store: Arc<dyn Store>) -> Told {
    for (n, security) in [Security::Tls, Security::StartTls, Security::Plain].iter().enumerate() {
        let mailbox = Mailbox::open(*security).await;
        let notifier = notifier(&store, provider(&mailbox, *security)?);
        let id = add(&store).await?;
        let name = format!("Ann <ann{n}@example.com>");
        run(&store, &notifier, &mail(&[&name])?).await?;
        let row = row(&notifier, &name).await?;
        let taken = mailbox.taken();
        assert_eq!(taken.len(), 1, "{security:?} {:?}", row.log);
        assert_eq!(taken[0].encrypted, *security != Security::Plain);
        assert_eq!(taken[0].to, format!("ann{n}@example.com"));
        assert_eq!(taken[0].header("Message-ID"), format!("<{}@service.example>", row.token));
        assert_eq!(row.notification_id.as_deref(), Some("2.0.0 queued as 1"));
        // The rows of earlier rounds are sent, so this job is done too.
        assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    }
    Ok(())
}

/// SMTP offers neither lookup nor idempotency: receivers know the mail by its Message-ID.
///
/// Proves: DEL-2, DEL-3
async fn a_mail_sent_again_is_the_same_mail(store: Arc<dyn Store>) -> Told {
    let mailbox = Mailbox::open(Security::Plain).await;
    mailbox.be_busy(1);
    mailbox.lose_answers(1);
    let notifier = notifier(&store, provider(&mailbox, Security::Plain)?);
    let id = add(&store).await?;
    run(&store, &notifier, &mail(&["ann@example.com"])?).await?;
    assert_eq!(stands(&store, id).await?.state, State::Succeeded);
    let taken = mailbox.taken();
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].data, taken[1].data);
    assert!(taken[0].data.contains("multipart/alternative"));
    let log: Vec<_> =
        row(&notifier, "ann@example.com").await?.log.iter().map(|it| it.outcome).collect();
    assert_eq!(log, [Outcome::Failed, Outcome::Failed, Outcome::Sent]);
    Ok(())
}

/// Proves: DEL-6, DEL-7
async fn an_unknown_mailbox_fails_its_row_only(store: Arc<dyn Store>) -> Told {
    let mailbox = Mailbox::open(Security::Plain).await;
    let notifier = notifier(&store, provider(&mailbox, Security::Plain)?);
    let id = add(&store).await?;
    let names = ["nobody@example.com", "no mailbox", "ann@example.com"];
    run(&store, &notifier, &mail(&names)?).await?;
    assert_eq!(stands(&store, id).await?.state, State::Waiting, "it rests");
    assert_eq!(mailbox.taken().len(), 1);
    let stood = [RowStatus::Failed, RowStatus::Failed, RowStatus::Sent];
    for (name, status) in names.iter().zip(stood) {
        assert_eq!(row(&notifier, name).await?.status, status, "{name}");
    }
    Ok(())
}

/// Proves: DEL-7
async fn a_server_without_trust_gets_nothing(store: Arc<dyn Store>) -> Told {
    for security in [Security::Tls, Security::StartTls] {
        let mailbox = Mailbox::open(security).await;
        let other = Mailbox::open(security).await;
        let host = mailbox.address.ip().to_string();
        let begun = match security {
            Security::Tls => SmtpProvider::tls(host, FROM),
            _ => SmtpProvider::starttls(host, FROM),
        };
        let trust = other.certificate.as_bytes();
        let provider = begun.port(mailbox.address.port()).trust(trust).build()?;
        let notifier = notifier(&store, provider);
        let id = add(&store).await?;
        run(&store, &notifier, &mail(&["ann@example.com"])?).await?;
        assert_eq!(stands(&store, id).await?.state, State::DeadLetter);
        assert!(mailbox.taken().is_empty());
    }
    Ok(())
}
