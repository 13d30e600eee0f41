//! What can go wrong on our side. None of it is ever the candidate's result.

use super::protocol::Failure;

/// A sandbox failed. One variant for each thing a caller does differently.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine does not let us isolate anything. No case can run; the text says what to type.
    #[error("{what}: not permitted on this machine; {hint}")]
    NotPermitted { what: String, hint: String },

    /// No Docker daemon answers, or it is too old or of a kind we cannot use. No case can run.
    #[error("docker daemon unusable: {why}; {hint}")]
    Daemon { why: String, hint: String },

    /// The base image is not on this machine. No case can run until it is made.
    #[error("image {image} is not there; make it with `.ci/base-image`")]
    ImageMissing { image: String },

    /// The disk, or a quota, is full. Later cases would fail too.
    #[error("no space left: {what}")]
    DiskFull { what: String },

    /// The cell cannot be made as described, for example because a folder to be mounted does not exist. Trying again
    /// does not help.
    #[error("cell {label} cannot be set up: {why}")]
    Setup { label: String, why: String },

    /// The cell died, hung, or stopped making sense. Worth one more try in a fresh cell.
    #[error("cell {label} was lost: {why}")]
    Lost { label: String, why: String },
}

impl SandboxError {
    /// Whether the same case may succeed in a fresh cell without anybody doing something first.
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(self, SandboxError::Lost { .. })
    }

    /// Sorts a failure reported by process 1 while the cell was set up.
    pub(super) fn from_setup(label: &str, failure: &Failure) -> Self {
        let making_namespaces = failure.step == super::init::STEP_NAMESPACES;
        let mounting = failure.step.starts_with("mount");
        match failure.errno {
            libc::EPERM => SandboxError::not_permitted(failure),
            libc::EACCES if making_namespaces || mounting => SandboxError::not_permitted(failure),
            libc::ENOSYS | libc::EINVAL | libc::ENOSPC | libc::EUSERS if making_namespaces => {
                SandboxError::not_permitted(failure)
            }
            libc::ENOSPC | libc::EDQUOT => SandboxError::DiskFull {
                what: failure.to_string(),
            },
            libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE => SandboxError::Lost {
                label: label.into(),
                why: failure.to_string(),
            },
            _ => SandboxError::Setup {
                label: label.into(),
                why: failure.to_string(),
            },
        }
    }

    fn not_permitted(failure: &Failure) -> Self {
        SandboxError::NotPermitted {
            what: failure.to_string(),
            hint: NAMESPACE_HINT.into(),
        }
    }
}

/// What to type when the kernel refuses namespaces. `doctor` finds out which of these it is.
pub(super) const NAMESPACE_HINT: &str = "run as root, or allow user namespaces: \
     `sysctl -w user.max_user_namespaces=15000`, on Ubuntu also \
     `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, on old Debian \
     `sysctl -w kernel.unprivileged_userns_clone=1`; or use `--sandbox docker`";
