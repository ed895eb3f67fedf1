//! Bars and tables of plain text.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A bar of `width` columns at most, filled in proportion, in eighths of a column.
pub fn bar(value: u64, most: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most == 0 {
        return String::new();
    }
    let eighths = u128::from(value.min(most)) * width as u128 * 8 / u128::from(most);
    let eighths = usize::try_from(eighths).expect("at most eight times the width");
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    bar
}

/// Rows in columns: the first aligned left, the others right, two blanks between.
pub fn table(rows: &[Vec<String>]) -> String {
    columns(rows, CellAlignment::Right)
}

/// Rows in columns that are all aligned left.
pub fn list(rows: &[Vec<String>]) -> String {
    columns(rows, CellAlignment::Left)
}

fn columns(rows: &[Vec<String>], but_first: CellAlignment) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let first = index == 0;
        column.set_padding((if first { 0 } else { 2 }, 0));
        column.set_cell_alignment(if first { CellAlignment::Left } else { but_first });
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A number with blanks between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Microseconds in the unit that reads best.
pub fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.2} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 3), "█▌");
        assert_eq!(bar(20, 10, 2), "██");
        assert_eq!(bar(1, 0, 2), "");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".into(), "1".into()], vec!["long".into(), "µ200".into()]];
        assert_eq!(table(&rows), "a        1\nlong  µ200\n");
        assert_eq!(list(&rows), "a     1\nlong  µ200\n");
        // Columns of a terminal, not characters: wide ones take two, accents of their own none.
        let rows = [vec!["鍵鍵".into(), "1".into()], vec!["e\u{301}".into(), "22".into()]];
        assert_eq!(table(&rows), "鍵鍵   1\ne\u{301}     22\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(micros(999), "999 µs");
        assert_eq!(micros(1_500), "1.50 ms");
        assert_eq!(micros(2_000_000), "2.00 s");
    }
}
