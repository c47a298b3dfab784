//! Each run adds an object to a pool and prints all objects, newest first.
use firn_heap::{Error, Pool, PoolOptions, Ref, Stored, View};
use firn_mapped::{Mapped, MappedError, MappedOptions};

#[derive(Stored)]
#[repr(C)]
struct Run {
    before: Ref<Run>,
    number: u64,
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("runs.firn".into());
    let (on, options) = (MappedOptions::default(), PoolOptions::new("runs"));
    let pool = match Mapped::open(&path, &on) {
        Ok(file) => Pool::open(file, &options)?,
        Err(MappedError::NotFound { .. }) => {
            Pool::create(Mapped::create(&path, 16 << 20, &on)?, &options)?
        }
        Err(error) => return Err(error.into()),
    };
    let mut session = pool.session()?;
    session.transaction(|tx| {
        let newest = tx.find_root::<Run>("newest")?;
        let number = newest.map_or(1, |run| run.load(Run::NUMBER) + 1);
        let before = Ref::null();
        let run = tx.alloc(Run { before, number })?;
        run.link(Run::BEFORE, newest);
        tx.set_root("newest", run) // durable when the transaction returns, or not at all
    })?;
    session.read(|view| {
        let mut next = view.find_root::<Run>("newest")?;
        while let Some(run) = next {
            println!("run {}", run.load(Run::NUMBER));
            next = run.follow(Run::BEFORE);
        }
        Ok::<_, Error>(())
    })?;
    Ok(())
}
