//! Printing: results to standard output, remarks to standard error.

use std::io::{self, BufWriter, Stdout, Write};

use firn_lab::Table;
use serde::Serialize;

/// Standard output, buffered. Writing fails where `println!` would panic: on a closed pipe.
pub struct Output {
    stdout: BufWriter<Stdout>,
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self {
            stdout: BufWriter::new(io::stdout()),
            json,
        }
    }

    /// Whether results are wanted as JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Prints a result as JSON.
    pub fn object(&mut self, result: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.stdout, result)?;
        self.stdout.write_all(b"\n")
    }

    /// Prints a line of text.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.stdout.write_all(text.as_bytes())?;
        self.stdout.write_all(b"\n")
    }

    /// Prints a table below an empty line, the first column to the left, the others to the right.
    pub fn table(&mut self, table: &Table) -> io::Result<()> {
        let width = |column: usize| {
            let cells = table.rows.iter().chain([&table.head]);
            let widths = cells
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count());
            widths.max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
        self.line("")?;
        self.line(&table.title)?;
        for row in [&table.head].into_iter().chain(&table.rows) {
            let cells = row.iter().zip(&widths).enumerate();
            let padded = cells.map(|(column, (cell, width))| match column {
                0 => format!("  {cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            self.line(padded.collect::<String>().trim_end())?;
        }
        Ok(())
    }

    /// Prints a line of arbitrary bytes, given in parts.
    pub fn bytes(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.stdout.write_all(part)?;
        }
        self.stdout.write_all(b"\n")
    }

    /// Shows what was printed.
    pub fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Prints a remark on standard error; failures are ignored.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
