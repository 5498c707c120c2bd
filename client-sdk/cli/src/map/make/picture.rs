//! The growing map as a drawing for the terminal. PURE.

use amber_scene::Scene;

use crate::map::show::plot;

/// The drawing with lines below it, in at most this many columns and rows.
pub(super) fn draw(
    scene: &Scene,
    lines: &[String],
    (columns, rows): (usize, usize),
    has_colours: bool,
) -> String {
    let rows = rows.saturating_sub(lines.len());
    let mut text = plot::draw(scene, columns, rows, has_colours);
    for line in lines {
        text.extend(line.chars().take(columns.saturating_sub(1)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use amber_proto::mapping::{Location, Progress};

    use super::*;

    /// The robot looks up.
    fn scene() -> Scene {
        let progress = Progress {
            location: Some(Location {
                alfa: Some(-std::f64::consts::FRAC_PI_2),
                p: Some(0.9),
                ..Location::default()
            }),
            ..Progress::default()
        };
        Scene::of_growing(None, &progress, "by hand")
    }

    #[test]
    fn the_robot_is_drawn_with_the_lines_below() {
        let lines = ["1 m driven".to_owned(), "left 200".to_owned()];
        let text = draw(&scene(), &lines, (60, 24), false);
        assert!(text.contains('↑'), "{text}");
        assert!(text.contains("drive: by hand\n"), "{text}");
        assert!(text.ends_with("1 m driven\nleft 200\n"), "{text}");
        assert!(!text.contains("particles"), "{text}");
        assert!(text.lines().count() <= 24, "{text}");
        let long = ["x".repeat(200)];
        let text = draw(&scene(), &long, (60, 24), false);
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
    }

    #[test]
    fn before_the_first_scan_the_reasons_are_shown() {
        let scene = Scene::of_growing(None, &Progress::default(), "by hand");
        let text = draw(&scene, &["0 m driven".to_owned()], (60, 24), false);
        assert!(text.contains("no map: "), "{text}");
        assert!(text.contains("no pose: there is no scan yet\n"), "{text}");
        assert!(text.ends_with("0 m driven\n"), "{text}");
    }
}
