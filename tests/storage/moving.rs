//! Files that come from places and go there: over plain HTTP, and below a local folder without links; and
//! what a requester reads when that fails.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use leasehold::storage::{Access, Place, Storage};
use leasehold::webhook::{Targets, WayOut};
use leasehold::workspace::{Limits, Workspace, Workspaces};
use leasehold::{Failure, FailureCode, WorkerId};
use serde_json::json;

use crate::sending::here;
use crate::server::{Act, Seen, Server};
use crate::{Told, pure, runtime};

pure![
    files_come_and_go_over_plain_http,
    folders_of_webdav_are_made_for_files_of_any_size,
    what_a_server_answers_decides_over_the_attempt,
    an_expired_session_of_s3_is_a_refusal_and_a_busy_one_says_how_long,
    local_files_are_reached_over_no_link,
    failures_name_nothing_of_the_machine,
    private_storage_is_refused_for_good,
];

/// A folder of this test's own, and a workspace in it; both go with it.
struct Desk {
    root: PathBuf,
    workspace: Option<Workspace>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.workspace = None;
        let _it_may_be_gone = std::fs::remove_dir_all(&self.root);
    }
}

impl Desk {
    fn new() -> Self {
        let place = std::env::var_os("LEASEHOLD_TEST_DIR");
        let place = place.map_or_else(std::env::temp_dir, PathBuf::from);
        let root = place.join(format!("storage_{}", WorkerId::new().as_uuid().as_simple()));
        std::fs::create_dir_all(root.join("shared")).expect("a folder");
        let spaces = Workspaces::open(root.join("scratch"), Limits::default()).expect("a root");
        let workspace = Some(spaces.begin().expect("a workspace"));
        Self { root, workspace }
    }

    fn shared(&self) -> PathBuf {
        self.root.join("shared")
    }

    /// Fetches a place; what came.
    async fn fetch(&self, storage: &Storage, from: &Place) -> Result<Vec<u8>, Failure> {
        let workspace = self.workspace.as_ref().expect("a workspace");
        let path = workspace.path("in").expect("a path");
        let _there_may_be_one = std::fs::remove_file(&path);
        let mut file = workspace.source("in", None).expect("a file");
        let size = storage.fetch(from, &Access::default(), &mut file).await?;
        let bytes = std::fs::read(path).expect("the file");
        assert_eq!(size, bytes.len() as u64);
        Ok(bytes)
    }

    async fn store(&self, storage: &Storage, bytes: &[u8], to: &Place) -> Result<(), Failure> {
        let path = self.root.join("out");
        std::fs::write(&path, bytes).expect("written");
        storage.store(&path, to, &Access::default()).await
    }
}

fn place(place: serde_json::Value) -> Place {
    serde_json::from_value(place).expect("a place")
}

fn over_http(server: &Server, path: &str) -> Place {
    place(
        json!({ "at": "http", "base": format!("http://{}/files/", server.address), "path": path }),
    )
}

fn local(path: &str) -> Place {
    place(json!({ "at": "local", "path": path }))
}

fn storage(desk: &Desk) -> Storage {
    Storage::builder().way_out(here()).local(desk.shared()).build().expect("storage")
}

/// A server that keeps what is put, and gives it.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl Shelf {
    fn answer(&self, seen: &Seen) -> Act {
        let mut files = self.0.lock().expect("no panic under this lock");
        match (seen.method.as_str(), files.get(&seen.path)) {
            ("PUT", _) => {
                files.insert(seen.path.clone(), seen.body.clone());
                Act::status(201)
            }
            ("GET", Some(bytes)) => Act::Answer(200, "", String::from_utf8_lossy(bytes).into()),
            _ => Act::status(404),
        }
    }

    fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.0.lock().expect("no panic under this lock").get(path).cloned()
    }
}

/// Proves: CR-2
fn files_come_and_go_over_plain_http() -> Told {
    runtime().block_on(async {
        let (desk, shelf) = (Desk::new(), Shelf::default());
        let keeping = shelf.clone();
        let server = Server::start(move |seen| keeping.answer(seen)).await;
        let storage = storage(&desk);
        let small = over_http(&server, "a folder/ü.txt");
        desk.store(&storage, b"a few words", &small).await?;
        assert_eq!(desk.fetch(&storage, &small).await?, b"a few words");
        // More than a part: one request, read from the file as it goes.
        let large: Vec<u8> = (0..9_000_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
        desk.store(&storage, &large, &over_http(&server, "a folder/large é.bin")).await?;
        let kept = shelf.file("/files/a%20folder/large%20%C3%A9.bin").ok_or("not there")?;
        assert!(kept == large, "{} bytes came", kept.len());
        assert_eq!(desk.fetch(&storage, &over_http(&server, "a folder/large é.bin")).await?, large);
        let gone = desk.fetch(&storage, &over_http(&server, "none")).await.expect_err("not there");
        assert_eq!(gone.code(), FailureCode::NotFound);
        let odd =
            json!({ "at": "http", "base": format!("http://{}/?a=b", server.address), "path": "x" });
        assert!(desk.store(&storage, &large, &place(odd)).await.is_err());
        Ok(())
    })
}

/// A server that takes a file only into a folder that is there, as WebDAV does, or says so by 404.
///
/// Proves: CR-2
fn folders_of_webdav_are_made_for_files_of_any_size() -> Told {
    runtime().block_on(async {
        for missing in [409, 404] {
            let (desk, shelf) = (Desk::new(), Shelf::default());
            let folders = Arc::new(Mutex::new(vec!["/files".to_owned()]));
            let (keeping, made) = (shelf.clone(), folders.clone());
            let server = Server::start(move |seen| {
                let mut folders = made.lock().expect("no panic under this lock");
                let above = seen.path.rsplit_once('/').map_or("", |(above, _)| above);
                match seen.method.as_str() {
                    "MKCOL" if folders.contains(&seen.path) => Act::status(405),
                    "MKCOL" | "PUT" if !folders.iter().any(|it| it == above) => {
                        Act::status(missing)
                    }
                    "MKCOL" => {
                        folders.push(seen.path.clone());
                        Act::status(201)
                    }
                    _ => keeping.answer(seen),
                }
            });
            let server = server.await;
            let storage = storage(&desk);
            let large: Vec<u8> = (0..9_000_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
            for name in ["one/two/large é.bin", "one/two/again", "one/other/large"] {
                desk.store(&storage, &large, &over_http(&server, name)).await?;
                assert!(desk.fetch(&storage, &over_http(&server, name)).await? == large, "{name}");
            }
            desk.store(&storage, b"small", &over_http(&server, "three/small")).await?;
            let made = folders.lock().expect("no panic under this lock").clone();
            let wanted =
                ["/files", "/files/one", "/files/one/two", "/files/one/other", "/files/three"];
            assert_eq!(made, wanted);
        }
        Ok(())
    })
}

/// Proves: RT-1, RT-3, WH-4
fn what_a_server_answers_decides_over_the_attempt() -> Told {
    runtime().block_on(async {
        let (desk, inner) = (Desk::new(), Server::always(Act::status(200)).await);
        let elsewhere: &'static str = format!("location: {}\r\n", inner.url()).leak();
        let server = Server::start(move |seen| match &seen.path["/files/".len()..] {
            "elsewhere" => Act::Answer(302, elsewhere, String::new()),
            status => Act::status(status.parse().expect("a status")),
        });
        let server = server.await;
        let storage = storage(&desk);
        for (path, code, retried) in [
            ("401", FailureCode::AuthDenied, false),
            ("403", FailureCode::AuthDenied, false),
            ("404", FailureCode::NotFound, false),
            ("400", FailureCode::PayloadInvalid, false),
            ("413", FailureCode::SizeExceeded, false),
            ("423", FailureCode::ResourceLocked, true),
            ("429", FailureCode::RateLimited, true),
            ("500", FailureCode::UpstreamError, true),
            ("503", FailureCode::UpstreamUnavailable, true),
            ("elsewhere", FailureCode::UnexpectedResponse, false),
        ] {
            let at = over_http(&server, path);
            let read = desk.fetch(&storage, &at).await.expect_err("no file");
            let written = desk.store(&storage, b"x", &at).await.expect_err("not taken");
            for failure in [read, written] {
                assert_eq!((failure.code(), failure.is_retryable()), (code, retried), "{path}");
            }
        }
        assert!(inner.seen().is_empty(), "nobody went there");
        Ok(())
    })
}

/// What S3 says of a session that is over, and of too many requests.
///
/// Proves: CR-1, RT-1, RT-2
fn an_expired_session_of_s3_is_a_refusal_and_a_busy_one_says_how_long() -> Told {
    runtime().block_on(async {
        let desk = Desk::new();
        let server = Server::start(|seen| match seen.path.rsplit('/').next() {
            Some("over") => {
                let why = "<Error><Code>ExpiredToken</Code><Message>over</Message></Error>";
                Act::Answer(400, "content-type: application/xml\r\n", why.to_owned())
            }
            Some("busy") => Act::Answer(429, "retry-after: 77\r\n", String::new()),
            _ => Act::Answer(400, "", "<Error><Code>InvalidRequest</Code></Error>".to_owned()),
        });
        let server = server.await;
        let storage = storage(&desk);
        let access =
            json!({ "access_key_id": "id", "secret_access_key": "key", "session_token": "t" });
        let access = Access::read(access.to_string().as_bytes())?;
        let endpoint = format!("http://{}", server.address);
        let file = desk.root.join("out");
        std::fs::write(&file, "x")?;
        for (key, code) in [
            ("over", FailureCode::CredentialsExpired),
            ("busy", FailureCode::RateLimited),
            ("wrong", FailureCode::PayloadInvalid),
        ] {
            let at = json!({
                "at": "s3", "endpoint": endpoint, "region": "r", "bucket": "b", "key": key
            });
            let failure = storage.store(&file, &place(at), &access).await.expect_err("not taken");
            assert_eq!(failure.code(), code, "{key}: {failure}");
            let wait = failure.retry_after().map(|wait| wait.as_secs());
            assert_eq!(wait, (key == "busy").then_some(77));
        }
        Ok(())
    })
}

/// Proves: DSK-1
fn local_files_are_reached_over_no_link() -> Told {
    runtime().block_on(async {
        let desk = Desk::new();
        let (shared, storage) = (desk.shared(), storage(&desk));
        std::fs::create_dir(desk.root.join("secret"))?;
        std::fs::write(desk.root.join("secret/key"), "outside")?;
        std::fs::create_dir(shared.join("inner"))?;
        std::fs::write(shared.join("inner/file"), "inside")?;
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, shared.join(name));
        link(&desk.root.join("secret"), "folder")?;
        link(&desk.root.join("secret/key"), "file")?;
        link(&desk.root.join("secret/made"), "dangling")?;
        link(&shared.join("inner"), "same")?;
        link(Path::new("../.."), "inner/up")?;
        let pipe = shared.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
        let refused =
            ["folder/key", "file", "dangling", "same/file", "inner/up/secret/key", "pipe"];
        for path in refused {
            for failure in [
                desk.fetch(&storage, &local(path)).await.map(|_| ()).expect_err(path),
                desk.store(&storage, b"x", &local(path)).await.expect_err(path),
            ] {
                assert_eq!(failure.code(), FailureCode::PolicyRejected, "{path}: {failure}");
            }
        }
        assert_eq!(std::fs::read(desk.root.join("secret/key"))?, b"outside");
        assert!(!desk.root.join("secret/made").exists());
        for odd in ["../secret/key", "/etc/hostname", "a//b", "inner/../../secret/key"] {
            assert!(desk.fetch(&storage, &local(odd)).await.is_err(), "{odd}");
        }
        // Without links it works, new folders and all; the folder itself may be reached by one.
        assert_eq!(desk.fetch(&storage, &local("inner/file")).await?, b"inside");
        desk.store(&storage, b"made", &local("new/deep/file")).await?;
        assert_eq!(std::fs::read(shared.join("new/deep/file"))?, b"made");
        std::os::unix::fs::symlink(&shared, desk.root.join("alias"))?;
        let alias = Storage::builder().local(desk.root.join("alias")).build()?;
        assert_eq!(desk.fetch(&alias, &local("inner/file")).await?, b"inside");
        let none = Storage::builder().build()?;
        let refused = desk.fetch(&none, &local("inner/file")).await.expect_err("no folder");
        assert_eq!(refused.code(), FailureCode::PayloadInvalid);
        Ok(())
    })
}

/// Proves: SEC-1, WH-3
fn failures_name_nothing_of_the_machine() -> Told {
    runtime().block_on(async {
        let desk = Desk::new();
        std::fs::write(desk.shared().join("file"), "a file")?;
        let storage = storage(&desk);
        let shut = "http://user-part.invalid:1/secret-part";
        let away = place(json!({ "at": "http", "base": shut, "path": "hidden-part" }));
        let key = json!({ "at": "s3", "endpoint": shut, "region": "r", "bucket": "b", "key": "k" });
        for at in [local("none.wav"), local("file/below"), local(""), away, place(key)] {
            for failure in [
                desk.fetch(&storage, &at).await.map(|_| ()).expect_err("no file"),
                desk.store(&storage, b"x", &at).await.err().unwrap_or_else(|| {
                    Failure::new(FailureCode::NotFound, "taken") // `none.wav` can be made
                }),
            ] {
                let text = failure.message();
                let root = desk.root.display().to_string();
                for part in [root.as_str(), "shared", "scratch", "secret-part", "hidden-part"] {
                    assert!(!text.contains(part), "{at:?}: {text}");
                }
            }
        }
        Ok(())
    })
}

/// Proves: WH-4
fn private_storage_is_refused_for_good() -> Told {
    runtime().block_on(async {
        let (desk, server) = (Desk::new(), Server::always(Act::status(200)).await);
        let way = WayOut::to(Targets::public().allow_http());
        let storage = Storage::builder().way_out(way).build()?;
        let failure = desk.fetch(&storage, &over_http(&server, "x")).await.expect_err("private");
        assert_eq!(failure.code(), FailureCode::PolicyRejected, "{failure}");
        assert!(!failure.is_retryable() && server.seen().is_empty());
        Ok(())
    })
}
