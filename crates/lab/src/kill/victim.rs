//! A child that is to be killed, and the operations that it acknowledged until then.

use std::io::Read;
use std::process::{Child, ChildStdout, ExitStatus};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A child that does not outlive this value, and the thread that reads what it acknowledges.
pub(super) struct Victim {
    child: Child,
    reader: Option<JoinHandle<(Vec<u8>, Option<Instant>)>>,
    first: mpsc::Receiver<()>,
}

/// The remains of a child.
pub(super) struct End {
    pub(super) acknowledged: Vec<u8>,
    pub(super) status: ExitStatus,
    /// Time from the first acknowledgement to the kill.
    pub(super) written: Duration,
}

impl Victim {
    pub(super) fn new(mut child: Child) -> Self {
        let (tell, first) = mpsc::channel();
        let pipe = child.stdout.take();
        let reader = thread::spawn(move || pipe.map(|p| read_all(p, &tell)).unwrap_or_default());
        Self {
            child,
            reader: Some(reader),
            first,
        }
    }

    /// Waits until the child has acknowledged something, ended, or taken too long.
    pub(super) fn wait_for_first(&self, limit: Duration) {
        let _ = self.first.recv_timeout(limit);
    }

    /// Kills the child and reads the pipe to its end.
    pub(super) fn kill(mut self) -> End {
        let moment = Instant::now();
        // Fails only if the child has ended; its status says so.
        let _ = self.child.kill();
        let status = self.child.wait().unwrap_or_default();
        let reader = self.reader.take().map(JoinHandle::join);
        let (acknowledged, first) = reader.and_then(Result::ok).unwrap_or_default();
        End {
            acknowledged,
            status,
            written: first.map_or(Duration::ZERO, |first| moment.duration_since(first)),
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end. Returns the bytes, and the time of the first of them.
fn read_all(mut pipe: ChildStdout, tell_first: &mpsc::Sender<()>) -> (Vec<u8>, Option<Instant>) {
    const STEP: usize = 64 << 10;
    let (mut bytes, mut first, mut piece) = (Vec::new(), None, vec![0; STEP]);
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return (bytes, first),
            Ok(read) => {
                if first.is_none() {
                    first = Some(Instant::now());
                    // If the victim was early, there is no waiting receiver.
                    let _ = tell_first.send(());
                }
                bytes.extend_from_slice(&piece[..read]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return (bytes, first),
        }
    }
}
