//! How commands end, and what is kept of them.

use leasehold::State;
use leasehold_cli::role::LOG_KEYS;
use libtest_mimic::Failed;

use super::yard::{Yard, runs, same};

/// Two failures open the breaker while two jobs still wait, each behind a rest of two seconds: the log says once
/// why nothing runs.
///
/// Proves: CB-1
pub(crate) fn an_open_breaker_is_told_of_once(yard: &Yard) -> Result<(), Failed> {
    yard.configure(
        &["sh", "-c", "exit 75"],
        "worker: max_retries: 0
         worker: count: 1
         worker: exit_codes: {75: network}",
    )?;
    for name in ["a", "b", "c", "d"] {
        yard.put(name, "x")?;
    }
    let out = yard
        .command(&["--role=all", "--once"])
        .env("CIRCUIT_BREAKER_MIN_SAMPLES", "2")
        .env("CIRCUIT_BREAKER_COOLDOWN_PERIOD", "2s")
        .output()?;
    same("exit code", out.status.code(), Some(6))?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains("the circuit breaker is open")).collect();
    same(&log, told.len(), 1)?;
    same(&log, told.iter().all(|line| line.contains("\"queue\":\"")), true)
}

/// Proves: RT-1, CFG-4
pub(crate) fn exit_codes_are_classes(yard: &Yard) -> Result<(), Failed> {
    yard.configure(
        &["sh", "-c", "echo to-err >&2; exit $(cat \"$1\")", "sh", "{path}"],
        "worker: max_retries: 1
         worker: backoff: {base: 10ms, max: 20ms}
         worker: exit_codes: {65: validation, 75: network, 9: policy}",
    )?;
    for code in ["0", "1", "9", "65", "75"] {
        yard.put(code, code)?;
    }
    let out = yard.run_to(6, &["--role=all", "--once"])?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    same(&said, said.contains("4 jobs were given up"), true)?;
    yard.run(&["--role=all", "--once"])?; // those are no news
    for job in yard.jobs()? {
        let path = job.payload.as_str().to_owned();
        let is = |code: &str| path.contains(&format!("/in/{code}\""));
        let failure = job.failure.as_ref().map(|text| text.as_str().to_owned()).unwrap_or_default();
        let (state, executions, class) = match () {
            () if is("0") => (State::Succeeded, 1, ""),
            () if is("1") => (State::DeadLetter, 2, "upstream"),
            () if is("9") => (State::DeadLetter, 1, "policy"),
            () if is("65") => (State::DeadLetter, 1, "validation"),
            () => (State::DeadLetter, 2, "network"),
        };
        same(&path, (job.state, job.executions), (state, executions))?;
        let is_told = failure.contains(class) && failure.contains("to-err");
        if !class.is_empty() && !is_told {
            return Err(format!("{path}: {failure}").into());
        }
    }
    Ok(())
}

/// Proves: RT-1
pub(crate) fn a_command_ends_with_all_it_started(yard: &Yard) -> Result<(), Failed> {
    let ids = yard.beside("ids").display().to_string();
    yard.configure(
        &[
            "sh",
            "-c",
            "trap '' TERM; sleep 300 & echo $! >> \"$1\"; echo $$ >> \"$1\"; wait",
            "sh",
            &ids,
        ],
        "worker: command_timeout: 300ms
         worker: max_retries: 0",
    )?;
    yard.put("file", "x")?;
    yard.run_to(6, &["--role=all", "--once"])?;
    let job = yard.jobs()?.pop().ok_or("no job")?;
    same("state", job.state, State::DeadLetter)?;
    let failure = job.failure.map(|text| text.as_str().to_owned()).unwrap_or_default();
    same("says why", failure.contains("DEADLINE_EXCEEDED"), true)?;
    let ids = std::fs::read_to_string(ids)?;
    same("two processes were started", ids.lines().count(), 2)?;
    for id in ids.lines() {
        same("a process is left", runs(id), false)?;
    }
    Ok(())
}

/// An operator calls the job off: the command that runs for it is ended with all it started, and is not run again.
///
/// Proves: QUE-2
pub(crate) fn a_job_that_is_called_off_ends_its_command(yard: &Yard) -> Result<(), Failed> {
    let ids = yard.beside("ids").display().to_string();
    yard.configure(
        &["sh", "-c", "sleep 300 & echo $! >> \"$1\"; echo $$ >> \"$1\"; wait", "sh", &ids],
        "",
    )?;
    yard.put("file", "x")?;
    let mut running = yard.start(&["--role=all"])?;
    let started = || std::fs::read_to_string(&ids).unwrap_or_default();
    yard.until("it runs", |_| Ok(started().lines().count() == 2))?;
    let job = yard.jobs()?.pop().ok_or("no job")?.id.to_string();
    yard.run(&["jobs", "cancel", &job, "--reason", "not wanted"])?;
    yard.until("it is called off", |yard| {
        Ok(yard.jobs()?.iter().all(|job| job.state == State::Cancelled))
    })?;
    for id in started().lines() {
        same("a process is left", runs(id), false)?;
    }
    same("exit code", running.terminate()?, Some(0))?;
    same("started", started().lines().count(), 2)
}

/// Proves: DL-2, SEC-2, LOG-1
pub(crate) fn output_is_bounded_and_masked(yard: &Yard) -> Result<(), Failed> {
    yard.configure(
        &["sh", "-c", "echo 'password=hunter2-hunter2'; head -c 100000 /dev/zero | tr '\\0' y"],
        "worker: command_output_max: 1000",
    )?;
    yard.put("file", "x")?;
    let out = yard.run(&["--role=all", "--once"])?;
    let job = yard.jobs()?.pop().ok_or("no job")?;
    let result = job.result.map(|result| result.as_str().to_owned()).unwrap_or_default();
    same("cut", result.contains("\"truncated\":true") && result.len() < 2_000, true)?;
    same("masked", result.contains("[redacted:"), true)?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    same("shown", result.contains("hunter2") || log.contains("hunter2"), false)?;
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line)?;
        let keys = line.as_object().ok_or("a line that is no object")?.keys();
        same(
            "keys of a log line",
            keys.filter(|key| !LOG_KEYS.contains(&key.as_str())).count(),
            0,
        )?;
    }
    Ok(())
}

/// Proves: SEC-2
pub(crate) fn a_command_sees_only_listed_variables(yard: &Yard) -> Result<(), Failed> {
    let seen = yard.beside("seen").display().to_string();
    yard.configure(
        &["sh", "-c", "env > \"$1\"", "sh", &seen],
        "worker: command_env: [PATH, SHOWN]",
    )?;
    yard.put("file", "x")?;
    let mut command = yard.command(&["--role=all", "--once"]);
    command
        .env("SHOWN", "yes")
        .env("HIDDEN", "secret-marker")
        .env("STORE_PASSWORD", "secret-marker");
    same("ends well", command.status()?.success(), true)?;
    let seen = std::fs::read_to_string(seen)?;
    for name in ["SHOWN=yes", "LEASEHOLD_JOB_ID=", "LEASEHOLD_TOKEN="] {
        same(name, seen.lines().any(|line| line.starts_with(name)), true)?;
    }
    same(
        "seen what is not listed",
        seen.contains("secret-marker") || seen.contains("STORE_URL"),
        false,
    )
}

/// Proves: CLI-1
pub(crate) fn a_bad_start_says_why(yard: &Yard) -> Result<(), Failed> {
    // What a role refuses, the check of the configuration refuses too, in the same words.
    let fails = |arguments: &[&str], code: i32, why: &str| {
        let role = arguments.first().and_then(|role| role.strip_prefix("--role=")).unwrap_or("all");
        for arguments in [arguments, &["config", "check", "--role", role]] {
            let out = yard.command(arguments).output()?;
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            same(&text, (out.status.code(), text.contains(why)), (Some(code), true))?;
        }
        Ok::<(), Failed>(())
    };
    let stands = yard.beside("no-program");
    std::fs::write(&stands, "")?;
    yard.configure(&[&stands.display().to_string()], "")?;
    fails(&["--role=worker"], 3, "is no program here")?;
    yard.configure(&["no-such-program-here"], "")?;
    fails(
        &["--role=all"],
        3,
        "worker.command: \"no-such-program-here\": is no program in the PATH",
    )?;
    yard.configure(&["true"], "worker: queues: {high: high, low: \"a\\tb\"}")?;
    fails(&["--role=worker"], 3, "worker.queues")?;
    yard.configure(&[], "")?;
    fails(&["--role=worker"], 3, "worker.command: must name a program")?;
    yard.configure(&["no-such-program-here"], "worker: count: 0")?;
    fails(&["--role=all"], 3, "worker.count: \"0\": must be at least 1")?;
    yard.configure(&["true"], "producer: include_globs: ['[']")?;
    fails(&["--role=producer"], 3, "producer.include_globs: \"[\": is no glob")?;
    fails(&["--role=nothing"], 2, "possible values: producer, worker, all")?;
    yard.configure(&["true"], "")?;
    std::fs::remove_dir_all(yard.inbox())?;
    fails(&["--role=all"], 3, "producer.scan_dir")?;
    std::fs::create_dir_all(yard.inbox())?;
    for url in ["mysql://h/d", "sqlite:x.db?sync=no", "postgres://u@h/d?migrate=perhaps"] {
        for arguments in [&["--role=all"][..], &["config", "check"]] {
            let out = yard.command(arguments).env("STORE_URL", url).output()?;
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            same(&text, (out.status.code(), text.contains("store.url: ")), (Some(3), true))?;
        }
    }
    std::fs::rename(yard.beside("leasehold.yaml"), yard.beside("elsewhere.yaml"))?;
    for arguments in [&["status"][..], &["config", "show"]] {
        let out = yard.command(arguments).output()?;
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        same(&text, (out.status.code(), text.contains("leasehold.yaml")), (Some(3), true))?;
    }
    fails(&["--role=all"], 3, "there is no such file")?;
    std::fs::rename(yard.beside("elsewhere.yaml"), yard.beside("leasehold.yaml"))?;
    for url in ["host=127.0.0.1 password=PW user=u", "Postgres:/u:PW@h/db", "mysql:u:PW@h/db"] {
        for arguments in [&["migrate", "--url", url][..], &["status", "--url", url]] {
            let out = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"))
                .args(arguments)
                .current_dir(yard.beside(""))
                .output()?;
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            same(&text, (out.status.code(), text.contains("PW")), (Some(2), false))?;
        }
        same(url, yard.beside(url).exists(), false)?;
    }
    let out = yard
        .command(&["--role=worker"])
        .env("STORE_URL", "sqlite:/no/such/folder/jobs.db")
        .output()?;
    same("no folder", out.status.code(), Some(1))
}
