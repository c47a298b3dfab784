//! The command line of Firn: parses arguments, calls the tools or the lab, prints their results.
#![forbid(unsafe_code)]

mod arguments;
mod bars;
mod bench;
mod churn;
mod commands;
mod crash;
mod damage;
mod demo;
mod domains;
mod failure;
mod figures;
mod output;
mod reproduce;
mod simulate;
mod top;
mod values;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::output::Output;

/// An exploration opens and drops tens of thousands of pools a second, all with small volatile parts.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The result of a command that ran to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// All is well.
    Well,
    /// A check found something, or a key is not there.
    Finding,
}

const FINDING: u8 = 1;
const ERROR: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut output = Output::new(arguments.json);
    let ended = run(arguments.command, &mut output).and_then(|verdict| {
        output.flush()?;
        Ok(verdict)
    });
    match ended {
        Ok(Verdict::Well) => ExitCode::SUCCESS,
        Ok(Verdict::Finding) => FINDING.into(),
        // The reader of the output has seen enough.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            output::remark(&format!("firn: {failure}"));
            ERROR.into()
        }
    }
}

fn run(command: Command, output: &mut Output) -> Result<Verdict, Failure> {
    match command {
        Command::Load(load) => commands::load(&load, output),
        Command::Get(get) => commands::get(&get, output),
        Command::Scan(scan) => commands::scan(&scan, output),
        Command::Delete(delete) => commands::delete(&delete, output),
        Command::Stat(pool) => commands::stat(&pool.pool, output),
        Command::Top(top) => top::run(&top, output),
        Command::Map(map) => commands::map(&map, output),
        Command::Check(check) => commands::check(&check, output),
        Command::Limit(limit) => commands::limit(&limit, output),
        Command::Convert(pool) => commands::convert(&pool, output),
        Command::Copy(copy) => commands::copy(&copy, output),
        Command::Backup(backup) => commands::backup(&backup, output),
        Command::Defrag(defrag) => commands::defrag(&defrag, output),
        Command::Churn(churn) => churn::run(&churn, output),
        Command::Demo(demo) => demo::run(&demo, output),
        Command::Crash(crash) => crash::run(&crash, output),
        Command::Damage(damage) => damage::run(&damage, output),
        Command::Machines(machines) => simulate::machines(&machines, output),
        Command::Mechanisms => simulate::mechanisms(output),
        Command::Workloads => simulate::workloads(output),
        Command::Reproduce(reproduce) => reproduce::run(&reproduce, output),
        Command::Simulate(simulate) => simulate::run(&simulate, output),
        Command::Bench(bench) => bench::run(&bench, output),
        Command::DemoWriter(writer) => demo::write(&writer),
    }
}
