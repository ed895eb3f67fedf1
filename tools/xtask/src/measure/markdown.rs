//! Tables as Markdown, and figures with as many digits as are worth reading.

use std::fmt::Write as _;

/// Which way the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table in the making. Columns of words come first and are aligned left, those of figures right.
#[derive(Debug)]
pub(super) struct Markdown {
    columns: usize,
    text: String,
}

impl Markdown {
    /// A table whose first columns, so many, are words.
    pub(super) fn new(words: usize, heads: &[&str]) -> Self {
        let aligned = |at: usize| if at < words { Align::Left } else { Align::Right };
        let rule = (0..heads.len()).map(|at| match aligned(at) {
            Align::Left => "---",
            Align::Right => "--:",
        });
        let mut table = Self { columns: heads.len(), text: String::new() };
        table.line(heads.iter().copied());
        table.text.push('|');
        rule.for_each(|it| {
            table.text.push_str(it);
            table.text.push('|');
        });
        table.text.push('\n');
        table
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[String]) {
        assert_eq!(cells.len(), self.columns, "a cell for each column: {cells:?}");
        self.line(cells.iter().map(String::as_str));
    }

    fn line<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        self.text.push('|');
        for cell in cells {
            // Infallible: it is a string.
            let _ = write!(self.text, " {cell} |");
        }
        self.text.push('\n');
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// Three digits, or all before the point.
pub(super) fn digits(number: f64) -> String {
    let size = number.abs();
    if size >= 99.95 {
        grouped(number.round())
    } else if size >= 9.995 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

/// A whole number in groups of three digits.
fn grouped(number: f64) -> String {
    let whole = format!("{:.0}", number.abs());
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time, from microseconds.
pub(super) fn time(us: f64) -> String {
    if us < 999.5 {
        format!("{us:.0} us")
    } else if us < 999_500.0 {
        format!("{} ms", digits(us / 1e3))
    } else {
        format!("{} s", digits(us / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_rule_below_its_heads() {
        let mut table = Markdown::new(1, &["a", "b"]);
        table.row(&["x".to_owned(), "1".to_owned()]);
        assert_eq!(table.text(), "| a | b |\n|---|--:|\n| x | 1 |\n");
    }

    #[test]
    fn figures_have_three_digits_and_times_a_unit() {
        let of = [0.0, 0.734, 9.994, 9.996, 45.67, 99.96, 12_523.4, -1_234_567.0].map(digits);
        assert_eq!(of, ["0.00", "0.73", "9.99", "10.0", "45.7", "100", "12,523", "-1,234,567"]);
        let of = [0.4, 78.2, 999.4, 1_030.0, 53_000.0, 1_700_000.0].map(time);
        assert_eq!(of, ["0 us", "78 us", "999 us", "1.03 ms", "53.0 ms", "1.70 s"]);
    }
}
