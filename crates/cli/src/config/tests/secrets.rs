//! Owns what is refused and hidden of secrets. Refuses to know how a message is made.

use super::{File, env, pairs, refused};
use crate::config::{json, load, show_yaml};

/// Proves: SEC-1, SEC-2
#[test]
fn a_secret_is_a_reference_and_is_never_shown() {
    const MARK: &str = "hunter2-marker";
    for text in [
        format!("store:\n  password: {MARK}\n"),
        format!("store:\n  url: postgres://user:{MARK}@host/db\n"),
        format!("store:\n  url: postgres://user@host/db?password={MARK}\n"),
        format!("store:\n  password: file:/no/such/{}\n", "place"),
    ] {
        let got = refused("literal", text);
        assert!(!got.contains(MARK), "{got}");
        assert!(got.contains("env:NAME") || got.contains("cannot be opened"), "{got}");
    }
    let from_file =
        File::new("reference", "store:\n  addr: host:5432\n  password: env:DB_PASSWORD\n");
    let loaded = load(Some(&from_file.0), &pairs(&[("DB_PASSWORD", MARK)])).unwrap();
    assert_eq!(loaded.config.secret("store.password").unwrap().expose(), MARK);
    let url = format!("postgres://user:{MARK}@host/db?password={MARK}&sslmode=require");
    let direct = env(&[("STORE_PASSWORD", MARK), ("STORE_URL", &url)]).unwrap();
    assert_eq!(direct.config.text("store.url"), url);
    for config in [&loaded.config, &direct.config] {
        let shown =
            [show_yaml(config), json(config), format!("{:?}", config.secret("store.password"))];
        assert!(shown.iter().all(|text| !text.contains(MARK)), "{shown:?}");
    }
    assert!(show_yaml(&loaded.config).contains("password: \"env:DB_PASSWORD\""));
    for environment in [&[("OTHER", "x")][..], &[("DB_PASSWORD", "")][..]] {
        let problems = load(Some(&from_file.0), &pairs(environment)).unwrap_err().to_string();
        assert!(problems.contains("the environment variable DB_PASSWORD is"), "{problems}");
    }
}

/// Proves: SEC-2
#[test]
fn a_password_is_not_shown_of_what_is_no_url_either() {
    const MARK: &str = "hunter2-marker";
    for url in [
        format!("postgres:/u:{MARK}@h/db"),
        format!(" Postgres://u:{MARK}@h/db"),
        format!("mysql:u:{MARK}@h/db"),
        format!("host=h password={MARK} user=u"),
        format!("sqlite:x?password={MARK}"),
    ] {
        let config = env(&[("STORE_URL", &url)]).unwrap().config;
        let refused = crate::place::check(&config).err().map(|problems| problems.to_string());
        let shown = [show_yaml(&config), json(&config), refused.unwrap_or_default()];
        assert!(shown.iter().all(|text| !text.contains(MARK)), "{shown:?}");
        let got = super::refused("odd-url", format!("store:\n  url: {url:?}\n"));
        assert!(got.contains("holds a password") && !got.contains(MARK), "{got}");
    }
}

/// Proves: SEC-1
#[cfg(unix)]
#[test]
fn a_secret_file_is_for_its_owner_and_group() {
    use std::os::unix::fs::PermissionsExt;
    let secret = File::new("secret-file", "s3cret\n");
    let config = File::new(
        "mounted",
        format!("store:\n  addr: h:1\n  password: file:{}\n", secret.0.display()),
    );
    for (mode, is_fine) in
        [(0o400, true), (0o440, true), (0o644, false), (0o604, false), (0o620, false)]
    {
        std::fs::set_permissions(&secret.0, std::fs::Permissions::from_mode(mode)).unwrap();
        match load(Some(&config.0), &[]) {
            Ok(loaded) => {
                assert!(is_fine, "{mode:o} was taken");
                assert_eq!(loaded.config.secret("store.password").unwrap().expose(), "s3cret");
            }
            Err(problems) => {
                let problems = problems.to_string();
                assert!(
                    !is_fine && problems.contains("others must not read or write it"),
                    "{mode:o}: {problems}"
                );
                assert!(!problems.contains("s3cret"), "{problems}");
            }
        }
    }
}
