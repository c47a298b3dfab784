//! The loop that answers lines.

use std::io::{self, BufRead, Write};

use serde::Serialize;

use crate::arguments::{Arguments, RivalName};
use crate::databases::{Database, Lmdb, Redb};
use crate::durable::{DurableLmdb, DurableRedb, Fjall, Sqlite};
use crate::failure::Failure;
use crate::libpmemobj::{Libpmemobj, Library, POOL_BYTES, Pool};
use crate::protocol::{Answer, Complaint, Hello, Line, Request};

/// A system that is measured.
pub trait Rival {
    /// Identifies itself, and lists the possible requests.
    fn hello(&self) -> Hello;

    /// Carries out a request, or says why not.
    fn answer(&mut self, request: Request) -> Result<Answer, Failure>;
}

/// Answers standard input line by line until `quit` or its end.
pub fn serve(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.rival {
        RivalName::Libpmemobj => {
            let library = Library::open(&arguments.library)?;
            let pool = Pool::create_in(&library, &arguments.dir, POOL_BYTES)?;
            talk(Libpmemobj::new(arguments, &library, &pool))
        }
        RivalName::Lmdb => {
            talk(Database::<DurableLmdb>::new(&arguments.dir)?.with_phases::<Lmdb>())
        }
        RivalName::Redb => {
            talk(Database::<DurableRedb>::new(&arguments.dir)?.with_phases::<Redb>())
        }
        RivalName::Sqlite => talk(Database::<Sqlite>::new(&arguments.dir)?),
        RivalName::Fjall => talk(Database::<Fjall>::new(&arguments.dir)?),
    }
}

fn talk(mut rival: impl Rival) -> Result<(), Failure> {
    match exchange(&mut rival, io::stdin().lock(), io::stdout().lock()) {
        // The client is gone: nobody is left to tell.
        Err(gone) if gone.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|source| Failure::Io {
            doing: "talking over the pipes",
            source,
        }),
    }
}

fn exchange(
    rival: &mut impl Rival,
    mut lines: impl BufRead,
    mut out: impl Write,
) -> io::Result<()> {
    say(&mut out, &rival.hello())?;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if lines.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let answer = match Line::parse(&bytes) {
            Ok(Line::Quit) => break,
            Ok(Line::Request(request)) => rival.answer(request).map_err(|f| f.to_string()),
            Err(problem) => Err(problem),
        };
        match answer {
            Ok(answer) => say(&mut out, &answer)?,
            Err(error) => say(&mut out, &Complaint { line, error })?,
        }
    }
    Ok(())
}

fn say(out: &mut impl Write, answer: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}
