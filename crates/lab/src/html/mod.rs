//! HTML pages that need no other file: their common beginning, their parts, and their end.

use std::fmt::Write as _;

use crate::Table;

/// The beginning of every page.
pub(crate) const DOCTYPE: &str = "<!doctype html>";
const STYLE: &str = include_str!("style.css");
const TAIL: &str = "</main></body></html>\n";

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names and figures.
    Figures,
    /// Names and figures, with words in the last column.
    Reasons,
}

/// A page that is being written.
pub(crate) struct Page {
    html: String,
}

impl Page {
    /// A page with nothing but its heading.
    pub(crate) fn new(title: &str, heading: &str) -> Self {
        let (title, heading) = (escaped(title), escaped(heading));
        let html = format!(
            "{DOCTYPE}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body><main>\n<h1>{heading}</h1>\n"
        );
        Self { html }
    }

    /// A part, with a name that links may use.
    pub(crate) fn named_part(&mut self, name: &str, heading: &str) {
        let (name, heading) = (escaped(name), escaped(heading));
        self.line(format_args!("<h2 id=\"{name}\">{heading}</h2>"));
    }

    /// A part.
    pub(crate) fn part(&mut self, heading: &str) {
        self.line(format_args!("<h2>{}</h2>", escaped(heading)));
    }

    /// A part of a part.
    pub(crate) fn smaller_part(&mut self, heading: &str) {
        self.line(format_args!("<h3>{}</h3>", escaped(heading)));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.line(format_args!("<p>{}</p>", escaped(text)));
    }

    /// A picture and its caption.
    pub(crate) fn picture(&mut self, svg: &str, caption: &str) {
        self.line(format_args!("<figure>\n{svg}"));
        if !caption.is_empty() {
            self.line(format_args!(
                "<figcaption>{}</figcaption>",
                escaped(caption)
            ));
        }
        self.line(format_args!("</figure>"));
    }

    /// A table without its title.
    pub(crate) fn table(&mut self, table: &Table, kind: Kind) {
        let class = match kind {
            Kind::Figures => "",
            Kind::Reasons => " class=\"reasons\"",
        };
        self.line(format_args!("<table{class}>"));
        self.row("th", &table.head);
        for cells in &table.rows {
            self.row("td", cells);
        }
        self.line(format_args!("</table>"));
    }

    fn row(&mut self, tag: &str, cells: &[String]) {
        if cells.is_empty() {
            return;
        }
        let cell = |cell: &String| format!("<{tag}>{}</{tag}>", escaped(cell));
        let cells: String = cells.iter().map(cell).collect();
        self.line(format_args!("<tr>{cells}</tr>"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.html, "{line}");
    }

    /// The whole page.
    pub(crate) fn end(self) -> String {
        self.html + TAIL
    }
}

/// Escapes text for HTML: names of files may hold any character.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
    html
}
