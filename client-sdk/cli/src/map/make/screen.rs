//! Shows progress: as lines, as one updated line, or as the growing map. IO.

use std::io::IsTerminal;
use std::time::Duration;

use amber_scene::Scene;
use amber_terminal::{Failure, Human, print, print_over, print_text, show};

use super::picture;
use super::shown::Shown;
use crate::drive;
use crate::screen::{self, Screen as Terminal};

/// Update interval of progress in one updated line, ...
const LINE_PERIOD: Duration = Duration::from_millis(500);
/// ...as a drawing, ...
const DRAWING_PERIOD: Duration = Duration::from_millis(200);
/// ...as JSON, ...
const JSON_PERIOD: Duration = Duration::from_secs(1);
/// ...and as lines in a file.
const LINES_PERIOD: Duration = Duration::from_secs(10);

/// The output for progress.
pub(super) enum Screen {
    /// One JSON object per line.
    Json,
    /// One line after the other.
    Lines,
    /// One updated line; true once it was shown.
    Line(bool),
    /// The whole terminal.
    Drawing(Terminal),
}

impl Screen {
    pub(super) fn new(json: bool, draws: bool) -> Result<Self, Failure> {
        Ok(match (json, draws) {
            (true, _) => Self::Json,
            (false, true) => Self::Drawing(Terminal::open()?),
            (false, false) if std::io::stdout().is_terminal() => Self::Line(false),
            (false, false) => Self::Lines,
        })
    }

    pub(super) fn period(&self) -> Duration {
        match self {
            Self::Json => JSON_PERIOD,
            Self::Lines => LINES_PERIOD,
            Self::Line(_) => LINE_PERIOD,
            Self::Drawing(_) => DRAWING_PERIOD,
        }
    }

    /// Shows progress, and below the drawing also the lines about the `keys`.
    pub(super) fn show(
        &mut self,
        shown: &Shown,
        keys: Vec<String>,
        scene: impl FnOnce() -> Scene,
    ) -> Result<(), Failure> {
        match self {
            Self::Json => show(shown, true),
            Self::Lines => print_text(&format!("{}\n", shown.human())),
            Self::Line(was_shown) => {
                *was_shown = true;
                let line = shown.human();
                print_over(drive::fit(&line))
            }
            Self::Drawing(terminal) => {
                let lines: Vec<String> = [shown.human()].into_iter().chain(keys).collect();
                let has_colours = amber_terminal::has_colours();
                terminal.draw(&picture::draw(
                    &scene(),
                    &lines,
                    screen::size(),
                    has_colours,
                ))
            }
        }
    }

    /// Restores the terminal for other output.
    pub(super) fn end(self) -> Result<(), Failure> {
        match self {
            Self::Line(true) => print(b"\n"),
            Self::Json | Self::Lines | Self::Line(false) | Self::Drawing(_) => Ok(()),
        }
    }
}
