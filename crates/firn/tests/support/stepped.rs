//! Programs that are killed at one of their system calls.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Calls after which a file's name, length, lock or content may differ. A kill between two of these leaves the state
/// that a kill at the second one leaves, except for the stores to mapped files.
const CHANGES: [i64; 16] = [
    libc::SYS_openat,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_msync,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_pwritev2,
    libc::SYS_copy_file_range,
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlink,
    libc::SYS_mremap,
    libc::SYS_close,
];

/// Runs a program, and kills it as it enters call number `kill_at` of [`CHANGES`], counted from 1. Returns whether it
/// got that far.
pub fn killed_at(command: &mut Command, kill_at: u64) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let traced = || match ptrace(libc::PTRACE_TRACEME, 0, 0) {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: between fork and exec the child makes one system call, and does nothing else.
    let mut child = unsafe { command.pre_exec(traced) }
        .spawn()
        .expect("it starts");
    let pid = child.id() as libc::pid_t;
    wait(pid).expect("it stops at its exec");
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SETOPTIONS, pid, options as usize);
    let (mut entered, mut calls, mut signal) = (false, 0, 0);
    loop {
        ptrace(libc::PTRACE_SYSCALL, pid, signal);
        let Some(stopped_by) = wait(pid) else {
            return false;
        };
        if stopped_by != libc::SIGTRAP | 0x80 {
            signal = stopped_by as usize;
            continue;
        }
        (signal, entered) = (0, !entered);
        const ORIG_RAX: usize = 15 * 8;
        let call = ptrace_peek(pid, ORIG_RAX);
        calls += u64::from(entered && CHANGES.contains(&call));
        if calls == kill_at {
            child.kill().expect("it is there");
            child.wait().expect("it is gone");
            return true;
        }
    }
}

fn ptrace(request: libc::c_uint, pid: libc::pid_t, data: usize) -> libc::c_long {
    // SAFETY: none of the requests above writes to this process's memory.
    unsafe { libc::ptrace(request, pid, 0usize, data) }
}

fn ptrace_peek(pid: libc::pid_t, offset: usize) -> i64 {
    // SAFETY: it reads a word of the child's registers.
    unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, pid, offset, 0usize) }
}

/// The signal that the child stops with, or nothing if it ended.
fn wait(pid: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    let found = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    assert_eq!(found, pid, "{}", io::Error::last_os_error());
    libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
}
