//! A drawing made of escaped text: inline SVG that takes its colours from the
//! page, so that one picture serves light, dark and paper.

use std::fmt::Write as _;

/// A drawing in the making. Lengths are in units of the view box.
pub(super) struct Svg {
    out: String,
}

/// Where a text starts from.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty drawing; `label` is what a screen reader says.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        let mut out = String::new();
        let label = escape(label);
        let _ = write!(
            out,
            r#"<svg viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">"#
        );
        Self { out }
    }

    /// The drawing as text.
    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.out,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (at, (size.0.max(0.0), size.1.max(0.0)));
        let _ = write!(
            self.out,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        );
    }

    pub(super) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let (x, y) = at;
        let _ = write!(
            self.out,
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#
        );
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(self.out, r#"<polyline class="{class}" points=""#);
        for (x, y) in points {
            let _ = write!(self.out, "{x:.1},{y:.1} ");
        }
        self.out.push_str(r#""/>"#);
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = at;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = write!(
            self.out,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// Draws what belongs together, with a text that appears on hovering.
    pub(super) fn group(&mut self, class: &str, title: &str, draw: impl FnOnce(&mut Self)) {
        let title = escape(title);
        let _ = write!(self.out, r#"<g class="{class}"><title>{title}</title>"#);
        draw(self);
        self.out.push_str("</g>");
    }
}

/// Text that can stand in an element or an attribute, whatever it holds (S-8).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
