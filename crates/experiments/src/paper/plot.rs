//! Plots: panels beside each other, lines with a mark at each point.

use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::element::{Circle, PathElement};
use plotters::prelude::{
    DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, LineSeries, SVGBackend,
};
use plotters::style::{BLACK, Color, RGBColor, WHITE};

/// One diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// What the x axis shows.
    pub x: &'static str,
    /// What stands at 0, 1, 2, ... of the x axis; empty if that shows numbers.
    pub places: Vec<String>,
    /// What the y axis shows.
    pub y: &'static str,
    /// Whether the y axis is logarithmic; else it begins at 0.
    pub logarithmic: bool,
    /// The lines, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// Its points, x and y.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    /// Adds a point to the curve of this name, which is begun if there is none.
    pub fn add(&mut self, name: &str, x: f64, y: f64) {
        match self.curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((x, y)),
            None => self.curves.push(Curve { name: name.to_owned(), points: vec![(x, y)] }),
        }
    }

    /// Where a value lies on the y axis.
    fn height(&self, y: f64) -> f64 {
        if self.logarithmic { y.max(1.0).log10() } else { y }
    }

    fn y_text(&self, height: f64) -> String {
        let value = if self.logarithmic { 10_f64.powf(height) } else { height };
        if value >= 10.0 || value.fract() == 0.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.2}")
        }
    }

    fn x_text(&self, x: f64) -> String {
        if self.places.is_empty() {
            return format!("{x:.0}");
        }
        // Between two places stands nothing.
        let place = (x - x.round()).abs() < 0.01 && x >= -0.01;
        let text = self.places.get(x.round().max(0.0) as usize);
        text.filter(|_| place).cloned().unwrap_or_default()
    }

    /// Ends of both axes.
    fn ranges(&self) -> ([f64; 2], [f64; 2]) {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        if points().next().is_none() {
            return ([0.0, 1.0], [0.0, 1.0]);
        }
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::MAX, f64::MIN], |[low, high], it| [low.min(it), high.max(it)])
        };
        let [left, right] = ends(&mut points().map(|(x, _)| *x));
        let [bottom, top] = ends(&mut points().map(|(_, y)| self.height(*y)));
        let margin = if self.places.is_empty() { (right - left) * 0.03 } else { 0.5 };
        let bottom = if self.logarithmic { bottom.floor() } else { 0.0 };
        // Above the highest point is room for the legend.
        let top = if self.logarithmic { top + LEGEND_DECADES } else { top * LEGEND_TIMES };
        ([left - margin, right + margin.max(0.5)], [bottom, top.max(bottom + 1e-3)])
    }
}

/// What the y axis goes on by beyond the highest point.
const LEGEND_DECADES: f64 = 0.5;
const LEGEND_TIMES: f64 = 1.25;

/// Size of one panel.
const WIDTH: u32 = 720;
const HEIGHT: u32 = 480;
const TITLE_HEIGHT: u32 = 36;
const FONT: &str = "sans-serif";

/// Colours that people who do not tell red from green can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

/// The SVG document.
pub(crate) fn draw(title: &str, panels: &[Panel]) -> String {
    let mut svg = String::new();
    let count = u32::try_from(panels.len()).expect("few panels");
    let size = (WIDTH * count, HEIGHT + TITLE_HEIGHT);
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    try_draw(&root, title, panels).expect("a string takes whatever is drawn");
    drop(root);
    svg
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn try_draw(root: &Area<'_>, title: &str, panels: &[Panel]) -> Drawn {
    root.fill(&WHITE)?;
    let body = root.titled(title, (FONT, 22))?;
    for (area, panel) in body.split_evenly((1, panels.len())).iter().zip(panels) {
        draw_panel(area, panel)?;
    }
    root.present()
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> Drawn {
    let ([left, right], [bottom, top]) = panel.ranges();
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, 17))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(84)
        .build_cartesian_2d(left..right, bottom..top)?;
    let x_labels = if panel.places.is_empty() { 10 } else { 2 * panel.places.len() + 1 };
    let y_labels = if panel.logarithmic { (top - bottom) as usize + 1 } else { 8 };
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels(x_labels)
        .y_labels(y_labels)
        .x_label_formatter(&|x| panel.x_text(*x))
        .y_label_formatter(&|y| panel.y_text(*y))
        .light_line_style(WHITE)
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .draw()?;
    for (curve, colour) in panel.curves.iter().zip(COLOURS.iter().cycle()) {
        let points = || curve.points.iter().map(|(x, y)| (*x, panel.height(*y)));
        chart
            .draw_series(LineSeries::new(points(), colour.stroke_width(2)))?
            .label(&curve.name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        if curve.points.len() <= MARKS_MAX {
            chart.draw_series(points().map(|at| Circle::new(at, 4, colour.filled())))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 14))
        .draw()
}

/// Points of a curve that get a mark: more would run together.
const MARKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(logarithmic: bool, places: &[&str]) -> Panel {
        let places = places.iter().map(ToString::to_string).collect();
        let (title, curves) = ("panel".to_owned(), Vec::new());
        Panel { title, x: "across", places, y: "up", logarithmic, curves }
    }

    #[test]
    fn a_plot_names_its_axes_places_and_curves() {
        let mut panel = panel(true, &["here", "there"]);
        panel.add("one", 0.0, 100.0);
        panel.add("one", 1.0, 10_000.0);
        panel.add("two", 1.0, 500.0);
        let svg = draw("plot", &[panel.clone(), panel]);
        let texts = ["plot", "panel", "across", "up", "here", "there", "one", "two", "10000"];
        for text in texts {
            assert!(svg.contains(&format!("\n{text}\n")), "{text} in {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 6);
    }

    #[test]
    fn without_points_there_are_only_axes() {
        let svg = draw("plot", &[panel(false, &[])]);
        assert!(svg.contains("across") && !svg.contains("<circle"));
    }

    #[test]
    fn every_point_lies_within_the_axes() {
        for (logarithmic, places) in [(true, &["a", "b"][..]), (false, &[]), (true, &[])] {
            let mut panel = panel(logarithmic, places);
            for (x, y) in [(0.0, 0.0), (1.0, 12.5), (0.5, 99_999.0)] {
                panel.add("curve", x, y);
                let ([left, right], [bottom, top]) = panel.ranges();
                assert!(left <= x && x <= right, "{x} between {left} and {right}");
                let height = panel.height(y);
                assert!(bottom <= height && height < top, "{y} between {bottom} and {top}");
            }
        }
    }
}
