//! The way to the daemon, and what its answers mean to us.

use std::path::Path;

use bollard::errors::Error;

use crate::adapters::sandbox::error::SandboxError;

/// The oldest interface we know to work.
const API: (u32, u32) = (1, 41);

/// How long the daemon may take for one answer. Removing a container is the slowest.
const ANSWER_LIMIT_S: u64 = 120;

const HINT: &str = "start it with `systemctl start docker` or `.ci/start-docker`, join the group `docker` if it is a \
                    matter of rights, or use `--sandbox namespace`";

/// A client of a daemon that is new enough.
pub(super) async fn connect(socket: Option<&Path>) -> Result<bollard::Docker, SandboxError> {
    let unusable = |why: String| SandboxError::Daemon {
        why,
        hint: HINT.into(),
    };
    let client = match socket {
        Some(socket) => bollard::Docker::connect_with_unix(
            &socket.to_string_lossy(),
            ANSWER_LIMIT_S,
            bollard::API_DEFAULT_VERSION,
        ),
        None => match std::env::var("DOCKER_HOST") {
            Ok(host) if !host.starts_with("unix://") => {
                let why = format!(
                    "DOCKER_HOST is {host}, but only a daemon on this machine can show folders"
                );
                return Err(unusable(why));
            }
            _ => bollard::Docker::connect_with_unix_defaults(),
        },
    };
    let client = client.map_err(|error| unusable(error.to_string()))?;
    let client = client
        .negotiate_version()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let version = client
        .version()
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let api = version.api_version.unwrap_or_default();
    let parsed = api
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    if parsed.is_none_or(|parsed: (u32, u32)| parsed < API) {
        return Err(unusable(format!(
            "its interface is version {api}, and {}.{} is needed",
            API.0, API.1
        )));
    }
    Ok(client)
}

/// Sorts what the daemon, or the way to it, answered.
pub(super) fn sort(label: &str, what: &str, error: Error) -> SandboxError {
    let (label, why) = (label.to_string(), format!("{what}: {error}"));
    match error {
        Error::DockerResponseServerError { message, .. }
            if message.contains("no space left on device") =>
        {
            SandboxError::DiskFull { what: why }
        }
        Error::DockerResponseServerError {
            status_code: 400, ..
        } => SandboxError::Setup { label, why },
        Error::DockerResponseServerError { .. } | Error::RequestTimeoutError => {
            SandboxError::Lost { label, why }
        }
        _ => SandboxError::Daemon {
            why,
            hint: HINT.into(),
        },
    }
}
