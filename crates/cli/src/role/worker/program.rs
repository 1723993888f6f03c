//! Owns the look for the program of `worker.command` before anything is started: in the folders that the
//! command's own `PATH` names, as the system will look. Starts nothing.

use std::ffi::OsString;
use std::path::Path;

use crate::config::Config;

/// Where the system looks for a program that gets no `PATH`.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Says why a program cannot be started; `None` for one that can, or whose name is known only once there
/// is a file.
pub(super) fn missing(config: &Config, program: &str) -> Option<String> {
    if program.contains('{') {
        return None;
    }
    if program.contains('/') {
        return (!is_program(Path::new(program))).then(|| "is no program here".to_owned());
    }
    let passes = config.list("worker.command_env").iter().any(|name| name == "PATH");
    let path = passes.then(|| std::env::var_os("PATH")).flatten();
    let path = path.unwrap_or_else(|| OsString::from(WITHOUT_PATH));
    if std::env::split_paths(&path).any(|folder| is_program(&folder.join(program))) {
        return None;
    }
    Some(format!("is no program in the PATH of commands, {}", path.display()))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    let runs = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    runs && path.is_file()
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}
