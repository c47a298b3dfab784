//! Steps a child process through its windows.

use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use thiserror::Error;

use super::instruction::{Instruction, LONGEST};
use super::tally::Tally;

/// The signal that the traced process sends itself where a window starts.
pub const WINDOW_START: Signal = Signal::SIGUSR1;
/// The signal that it sends itself where the window ends.
pub const WINDOW_END: Signal = Signal::SIGUSR2;

/// Why nothing was counted.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The process to trace did not start.
    #[error("cannot start the process to single-step: {0}")]
    Start(#[source] io::Error),
    /// The system refused to trace it, or it has gone.
    #[error("cannot single-step: {doing} failed: {source}")]
    Ptrace {
        /// The request that failed.
        doing: &'static str,
        /// The system's error.
        source: Errno,
    },
    /// It did not end by returning success.
    #[error("the process to single-step ended early ({0}); its last words are on standard error")]
    Ended(String),
    /// It ended well but showed no window except the empty one.
    #[error("the process to single-step marked no operation")]
    NothingMarked,
}

/// Starts `command`, which asks to be traced, and tallies each of its windows.
///
/// The first window is empty. It is subtracted from all others, which are returned.
pub fn trace(command: &mut Command) -> Result<Vec<Tally>, TraceError> {
    let child = command.spawn().map_err(TraceError::Start)?;
    let mut watched = Watched {
        pid: Pid::from_raw(child.id().cast_signed()),
        child: Some(child),
        decoded: HashMap::new(),
    };
    let mut windows = Vec::new();
    loop {
        match watched.wait()? {
            WaitStatus::Stopped(_, WINDOW_START) => {
                watched.check(
                    "exit-kill",
                    ptrace::setoptions(watched.pid, Options::PTRACE_O_EXITKILL),
                )?;
                windows.push(watched.window()?);
                watched.check("continuing", ptrace::cont(watched.pid, None))?;
            }
            WaitStatus::Stopped(_, other) => {
                watched.check("continuing", ptrace::cont(watched.pid, other))?;
            }
            WaitStatus::Exited(_, 0) => break,
            ended => return Err(TraceError::Ended(format!("{ended:?}"))),
        }
    }
    match windows.split_first() {
        Some((empty, rest)) if !rest.is_empty() => {
            Ok(rest.iter().map(|window| window.less(*empty)).collect())
        }
        _ => Err(TraceError::NothingMarked),
    }
}

/// The child, and its decoded instructions. Killed when dropped before its end.
struct Watched {
    pid: Pid,
    child: Option<Child>,
    decoded: HashMap<u64, Instruction>,
}

impl Watched {
    /// Steps from the signal that started a window to the one that ends it.
    fn window(&mut self) -> Result<Tally, TraceError> {
        let mut tally = Tally::default();
        let mut last = 0;
        loop {
            let at = self
                .check("reading registers", ptrace::getregs(self.pid))?
                .rip;
            // A repeated string instruction stops at every iteration, and counts once.
            if at != last {
                tally.add(self.instruction(at)?);
            }
            last = at;
            self.check("stepping", ptrace::step(self.pid, None))?;
            match self.wait()? {
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
                WaitStatus::Stopped(_, WINDOW_END) => return Ok(tally),
                ended => return Err(TraceError::Ended(format!("{ended:?}"))),
            }
        }
    }

    fn instruction(&mut self, at: u64) -> Result<Instruction, TraceError> {
        if let Some(known) = self.decoded.get(&at) {
            return Ok(*known);
        }
        let mut bytes = [0; LONGEST];
        let first = self.check(
            "reading code",
            ptrace::read(self.pid, at as ptrace::AddressType),
        )?;
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        // A short instruction may be the last of its mapping, with nothing after it to read.
        if let Ok(second) = ptrace::read(self.pid, (at + 8) as ptrace::AddressType) {
            bytes[8..].copy_from_slice(&second.to_le_bytes()[..LONGEST - 8]);
        }
        let instruction = Instruction::decode(&bytes);
        self.decoded.insert(at, instruction);
        Ok(instruction)
    }

    fn wait(&mut self) -> Result<WaitStatus, TraceError> {
        let status = waitpid(self.pid, None);
        let status = self.check("waiting", status)?;
        if matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
            // From here on, its process number may be another process's.
            self.child = None;
        }
        Ok(status)
    }

    fn check<T>(&self, doing: &'static str, outcome: nix::Result<T>) -> Result<T, TraceError> {
        outcome.map_err(|source| TraceError::Ptrace { doing, source })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Both calls can fail only because the child ended meanwhile, which is intended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
