//! Owns SIGTERM and SIGINT: the first asks for a clean end, the second ends at once, with
//! the commands that run.

use leasehold::{CancellationToken, Error, ErrorKind, Result};

/// Cancels `shutdown` on the first signal; exits with 130 on the second.
///
/// # Errors
/// `Unavailable` where no handler can be set.
#[cfg(unix)]
pub(crate) fn listen(shutdown: &CancellationToken) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Unavailable, "listen for signals", error.to_string())
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if shutdown.is_cancelled() {
                super::worker::kill_all();
                std::process::exit(130);
            }
            crate::log_line!(info, "asked to end; a second signal ends at once");
            shutdown.cancel();
        }
    });
    Ok(())
}

/// Cancels `shutdown` on Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn listen(shutdown: &CancellationToken) -> Result<()> {
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && !shutdown.is_cancelled() {
            shutdown.cancel();
        }
        std::process::exit(130);
    });
    Ok(())
}
