//! Mail that a real SMTP server takes: aiosmtpd, where `LEASEHOLD_TEST_SMTP` names the folder that it keeps
//! them in (`.ci/run mail` starts it). The other tests have a server of their own, which can misbehave.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold::memory::MemoryStore;
use leasehold::notify::{Notifier, RowStatus, SmtpProvider};
use leasehold::{State, Store};
use libtest_mimic::{Failed, Trial};

use crate::mailing::{FROM, mail};
use crate::telling::{add, row, run, stands};

const FOLDER: &str = "LEASEHOLD_TEST_SMTP";

/// The trial; ignored where there is no such server.
pub(crate) fn trial() -> Trial {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let absent = folder.is_none();
    let story = move || match &folder {
        Some(folder) => crate::runtime().block_on(a_real_server_takes_each_mail(folder)),
        None => Err(format!("{FOLDER} is not set").into()),
    };
    Trial::test("smtp::a_real_server_takes_each_mail", story).with_ignored_flag(absent)
}

fn provider(folder: &Path, security: &str) -> Result<SmtpProvider, Failed> {
    let ports = std::fs::read_to_string(folder.join("ports"))?;
    let port = ports.lines().find_map(|line| line.strip_prefix(security)?.strip_prefix(' '));
    let port = port.ok_or("a port")?.parse()?;
    let begun = match security {
        "plain" => SmtpProvider::plain("127.0.0.1", FROM),
        "starttls" => SmtpProvider::starttls("127.0.0.1", FROM),
        _ => SmtpProvider::tls("127.0.0.1", FROM),
    };
    Ok(begun.port(port).trust(&std::fs::read(folder.join("tls.pem"))?).build()?)
}

/// Proves: DEL-2, DEL-6, DEL-7
async fn a_real_server_takes_each_mail(folder: &Path) -> Result<(), Failed> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for security in ["plain", "starttls", "tls"] {
        let notifier = Arc::new(Notifier::new(store.clone(), provider(folder, security)?));
        let id = add(&store).await?;
        let ann = format!("Änn <ann.{security}@example.com>");
        let nobody = format!("nobody@{security}.example.com");
        run(&store, &notifier, &mail(&[&ann, &nobody])?).await?;
        let (told, refused) = (row(&notifier, &ann).await?, row(&notifier, &nobody).await?);
        assert_eq!(told.status, RowStatus::Sent, "{security}: {:?}", told.log);
        assert_eq!(told.notification_id, Some(format!("2.0.0 kept as {security}-1")));
        assert_eq!(refused.status, RowStatus::Failed, "{security}: {:?}", refused.log);
        assert_eq!(stands(&store, id).await?.state, State::Waiting, "it rests");
        let kept = std::fs::read_to_string(folder.join(format!("{security}-1")))?;
        let secured = if security == "plain" { "no" } else { "yes" };
        assert!(kept.contains(&format!("secured {secured}\n")), "{kept}");
        assert!(kept.contains(&format!("to ann.{security}@example.com\n")), "{kept}");
        let message_id = format!("Message-ID: <{}@service.example>\r\n", told.token);
        assert!(kept.contains(&message_id), "{kept}");
        assert!(kept.contains("multipart/alternative") && kept.contains("\r\n"), "{kept}");
        // The next round has recipients of its own.
        notifier
            .waive(
                leasehold::notify::Which {
                    subject: crate::telling::SUBJECT,
                    version: 1,
                    recipient: &nobody,
                },
                leasehold::Actor::new("test")?,
                "not needed",
            )
            .await?;
    }
    Ok(())
}
