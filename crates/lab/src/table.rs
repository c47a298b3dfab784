//! Figures side by side.

/// A title, names and figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The heads of the columns; the first is that of the names.
    pub head: Vec<String>,
    /// Each row has a name and its figures.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of a title and two columns of figures.
    pub(crate) fn new(head: [&str; 3]) -> Self {
        let [title, columns @ ..] = head;
        Self {
            title: title.into(),
            head: ["".into()]
                .into_iter()
                .chain(columns.map(Into::into))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// A row with one figure for each of two subjects.
    pub(crate) fn both<T: ?Sized>(
        &mut self,
        name: &str,
        of: [&T; 2],
        figure: impl Fn(&T) -> String,
    ) {
        let figures = of.into_iter().map(figure);
        self.rows
            .push([name.into()].into_iter().chain(figures).collect());
    }

    /// A row with a figure only in the second column.
    pub(crate) fn second(&mut self, name: &str, figure: String) {
        self.rows.push(vec![name.into(), "-".into(), figure]);
    }
}
