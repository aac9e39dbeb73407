//! A table that gives up detail until it fits.

use super::bars::bar;
use super::style::{Style, Tint};
use super::text;

/// Spaces between two columns.
const GAP: usize = 2;
/// A label is not cut shorter than this.
const SHORTEST_LABEL: usize = 8;
/// Columns of a full bar: with fewer there is none, and with more it tells no more.
const BAR: [usize; 2] = [4, 12];

/// One cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    tint: Tint,
}

impl Cell {
    pub(super) fn new(text: &str, tint: Tint) -> Self {
        Self {
            text: text.to_owned(),
            tint,
        }
    }

    pub(super) fn plain(text: String) -> Self {
        Self {
            text,
            tint: Tint::Plain,
        }
    }
}

/// One column in one or more forms, the widest first.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// What stands above it and those to its right that have none.
    group: String,
    title: String,
    /// What is given up last has the largest weight.
    weight: u8,
    forms: Vec<Vec<Cell>>,
    /// How much of a full bar stands behind each figure where there is room; none for no bars.
    shares: Vec<f64>,
    is_left: bool,
}

impl Column {
    /// The column of labels, which is cut rather than given up.
    pub(super) fn left(title: &str, cells: Vec<Cell>) -> Self {
        Self {
            group: String::new(),
            title: title.to_owned(),
            weight: u8::MAX,
            forms: vec![cells],
            shares: Vec::new(),
            is_left: true,
        }
    }

    /// A column of figures.
    pub(super) fn right(title: &str, weight: u8, forms: Vec<Vec<Cell>>) -> Self {
        Self {
            group: String::new(),
            title: title.to_owned(),
            weight,
            forms,
            shares: Vec::new(),
            is_left: false,
        }
    }

    /// The same, and the first of those below a common heading.
    pub(super) fn headed(self, group: &str) -> Self {
        let group = group.to_owned();
        Self { group, ..self }
    }

    /// The same, with bars behind its figures where a table has room for them: for each cell
    /// how much of a full one.
    pub(super) fn with_bars(self, shares: Vec<f64>) -> Self {
        Self { shares, ..self }
    }

    /// Puts the bars behind the figures, blanks behind those that are shorter.
    fn draw(&mut self, longest: usize) {
        let behind = |text: &str, share| format!("{text} {:<longest$}", bar(share, longest));
        let space = text::width(&self.title);
        let space = self.width().saturating_sub(space);
        self.title = behind(&(" ".repeat(space) + &self.title), 0.0);
        for (cell, share) in self.forms[0].iter_mut().zip(&self.shares) {
            cell.text = behind(&cell.text, *share);
        }
    }

    fn width(&self) -> usize {
        let cells = self.forms.first().into_iter().flatten();
        let widest = cells.map(|cell| text::width(&cell.text)).max();
        widest.unwrap_or(0).max(text::width(&self.title))
    }
}

/// Columns side by side.
pub(super) struct Columns {
    columns: Vec<Column>,
}

impl Columns {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns }
    }

    /// How narrow it can be without losing a column or a letter of a label.
    pub(super) fn least_width(&self) -> usize {
        let narrow = |column: &Column| Column {
            forms: column.forms[column.forms.len() - 1..].to_vec(),
            ..column.clone()
        };
        Self::new(self.columns.iter().map(narrow).collect()).width()
    }

    /// The table in lines no wider than `style.width`, as long as that leaves
    /// room for a label and one figure.
    pub(super) fn render(mut self, style: Style) -> String {
        self.merge_heading();
        self.fit(style.width);
        self.draw(style.width);
        let rows = self.columns[0].forms[0].len();
        let titles: Vec<Cell> = self
            .columns
            .iter()
            .map(|column| Cell::new(&column.title, Tint::Faint))
            .collect();
        let mut out = self.groups(style);
        out += &self.line(&titles.iter().collect::<Vec<_>>(), style);
        for row in 0..rows {
            let cells: Vec<&Cell> = self.columns.iter().map(|one| &one.forms[0][row]).collect();
            out += &self.line(&cells, style);
        }
        out
    }

    /// A heading that all columns share takes the place of the labels' title, and so
    /// no line of its own.
    fn merge_heading(&mut self) {
        let mut headed = self.columns.iter_mut().filter(|it| !it.group.is_empty());
        if let (Some(one), None) = (headed.next(), headed.next()) {
            self.columns[0].title = std::mem::take(&mut one.group);
        }
    }

    /// The headings above titles, where there are any.
    fn groups(&self, style: Style) -> String {
        let mut line = String::new();
        let mut end = 0;
        for column in &self.columns {
            if !column.group.is_empty() {
                let gap = end - text::width(&line);
                line += &format!("{}{}", " ".repeat(gap), column.group);
            }
            end = (end + column.width() + GAP).max(text::width(&line) + 1);
        }
        match line.is_empty() {
            true => line,
            false => format!("{}\n", style.paint(Tint::Heading, &line)),
        }
    }

    /// Gives up the widest form of the column that weighs least, of equal ones the last,
    /// until the table fits; cuts the labels before a figure is lost.
    fn fit(&mut self, width: usize) {
        while self.width() > width {
            let excess = self.width() - width;
            let label = self.columns[0].width();
            let is_last_form = |one: &&mut Column| one.forms.len() > 1;
            let spare = self
                .columns
                .iter_mut()
                .rev()
                .filter(is_last_form)
                .min_by_key(|one| one.weight);
            if let Some(column) = spare {
                column.forms.remove(0);
            } else if label >= SHORTEST_LABEL + excess {
                self.cut_labels(label - excess);
            } else if self.columns.len() > 2 {
                let least = (1..self.columns.len()).min_by_key(|&i| self.columns[i].weight);
                self.columns.remove(least.unwrap_or(1));
            } else {
                self.cut_labels(SHORTEST_LABEL);
                return;
            }
        }
    }

    /// Bars of one length for as many columns as have room for them, from the left.
    fn draw(&mut self, width: usize) {
        let spare = width.saturating_sub(self.width());
        let barred = |one: &&mut Column| !one.shares.is_empty();
        let columns: Vec<&mut Column> = self.columns.iter_mut().filter(barred).collect();
        let [least, most] = BAR;
        let length = |columns: usize| (spare / columns).saturating_sub(1).min(most);
        let fitting = (1..=columns.len()).rev().find(|&it| length(it) >= least);
        let Some(fitting) = fitting else { return };
        for column in columns.into_iter().take(fitting) {
            column.draw(length(fitting));
        }
    }

    fn cut_labels(&mut self, width: usize) {
        for cell in &mut self.columns[0].forms[0] {
            cell.text = text::cut(&cell.text, width);
        }
    }

    /// How wide it is with every column in its widest form that is left.
    pub(super) fn width(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::width).sum();
        columns + GAP * (self.columns.len() - 1)
    }

    fn line(&self, cells: &[&Cell], style: Style) -> String {
        let mut line = String::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            let space = " ".repeat(column.width() - text::width(&cell.text));
            // Outside the colour, blanks at the end of a line can be trimmed.
            let visible = cell.text.trim_end();
            let blanks = &cell.text[visible.len()..];
            let painted = style.paint(cell.tint, visible) + blanks;
            let gap = if line.is_empty() { "" } else { "  " };
            line += gap;
            line += &if column.is_left {
                format!("{painted}{space}")
            } else {
                format!("{space}{painted}")
            };
        }
        format!("{}\n", line.trim_end())
    }
}
