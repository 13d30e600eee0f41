//! System calls that no candidate needs and that enlarge what it could attack: the same list in both sandboxes.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::super::protocol::Failure;

/// Answered with "not permitted".
const DENIED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];

/// The filters to be applied in a child before exec, in order.
pub fn programs() -> Result<Vec<BpfProgram>, Failure> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let new_user = libc::CLONE_NEWUSER as u64;
    denied.insert(
        libc::SYS_clone,
        vec![rule(0, SeccompCmpOp::MaskedEq(new_user), new_user)?],
    );
    // The flags of clone3 are in memory, out of a filter's reach. C libraries fall back on clone when it is missing.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![
        compile(missing, libc::ENOSYS)?,
        compile(denied, libc::EPERM)?,
    ])
}

fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, Failure> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(|error| failure(&error))
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, Failure> {
    let arch = std::env::consts::ARCH
        .try_into()
        .map_err(|error| failure(&error))?;
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        arch,
    )
    .and_then(BpfProgram::try_from)
    .map_err(|error| failure(&error))
}

fn failure(error: &dyn std::fmt::Display) -> Failure {
    Failure {
        step: format!("compile the system call filter ({error})"),
        errno: libc::EINVAL,
    }
}
