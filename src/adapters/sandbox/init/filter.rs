//! System calls that no candidate needs and that enlarge what it could attack: the same list in both sandboxes.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
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

/// Denied as well where we add up the memory of processes: memory that belongs to none.
const UNOWNED_MEMORY: &[libc::c_long] = &[
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_msgget,
];

/// Denied when the first argument is process 1, which has the candidate's user: limits and priorities that would keep it
/// from ending a launch in time.
const ON_PROCESS_ONE: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Denied when the second argument is process 1 or its group, or the first says that all of the user's are meant: the
/// number that says so.
const ON_PRIORITY: &[(libc::c_long, u64)] = &[
    (libc::SYS_setpriority, libc::PRIO_USER as u64),
    // IOPRIO_WHO_USER
    (libc::SYS_ioprio_set, 3),
];

/// Kinds of sockets that there are. Of the others some know no network namespaces: AF_VSOCK reaches the machine that
/// ours runs on.
const SOCKETS: [libc::c_int; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// The filters to be applied in a child before exec, in order.
pub fn programs(by_process: bool) -> Result<Vec<BpfProgram>, Failure> {
    let unowned = UNOWNED_MEMORY.iter().filter(|_| by_process);
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED
        .iter()
        .chain(unowned)
        .map(|call| (*call, Vec::new()))
        .collect();
    let new_user = libc::CLONE_NEWUSER as u64;
    denied.insert(
        libc::SYS_clone,
        vec![rule(&[(0, SeccompCmpOp::MaskedEq(new_user), new_user)])?],
    );
    for call in ON_PROCESS_ONE {
        denied.insert(*call, vec![rule(&[(0, SeccompCmpOp::Eq, 1)])?]);
    }
    for (call, all_of_user) in ON_PRIORITY {
        let rules = vec![
            rule(&[(1, SeccompCmpOp::Eq, 1)])?,
            rule(&[(0, SeccompCmpOp::Eq, *all_of_user)])?,
        ];
        denied.insert(*call, rules);
    }
    let other_socket = SOCKETS.map(|family| (0, SeccompCmpOp::Ne, family as u64));
    let sockets = BTreeMap::from([(libc::SYS_socket, vec![rule(&other_socket)?])]);
    // The flags of clone3 are in memory, out of a filter's reach. C libraries fall back on clone when it is missing.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![
        one_numbering(),
        compile(missing, libc::ENOSYS)?,
        compile(sockets, libc::EAFNOSUPPORT)?,
        compile(denied, libc::EPERM)?,
    ])
}

/// Refuses the second set of numbers that some kernels have for the same system calls (x32), which would pass all the
/// filters that follow.
fn one_numbering() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        // The number is the first word of what a filter sees.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Fits when all comparisons of an argument with a value do. Arguments are those of 32 bits: the kernel looks at no more.
fn rule(comparisons: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Failure> {
    let conditions = comparisons.iter().map(|(argument, operator, value)| {
        let operator = operator.clone();
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator, *value)
    });
    conditions
        .collect::<Result<Vec<_>, _>>()
        .and_then(SeccompRule::new)
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
