//! The messages of the driver. PURE.

use std::time::Duration;

use amber_driver::devices::mapping::progress::{self, State as Shown};
use amber_driver::devices::mapping::{
    Grid, Location, Piece, Points, Progress, SavedMap, Target, Tile, piece,
};
use amber_map::tiles::Tiles;
use amber_map::{MapPose, Occupancy, Point, Pose};
use amber_navigation::explore::State;
use amber_navigation::slam::recording::{self, Finished, Gaps};

use super::board::{Board, Exploration};
use super::mapper::Report;

/// The longest list of tiles, and the longest piece: with the rest of a message, they fit into one
/// packet of a network.
const MAX_BYTES: usize = 1200;
const MAX_SCAN_POINTS: usize = 150;
const MAX_PATH_POINTS: usize = 50;

/// The state of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    Grows,
    Stopped,
}

/// A map that was saved, for [`piece`].
#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    /// Its number; 0 if there is none.
    pub(super) number: u32,
    pub(super) roson: String,
    pub(super) png: Vec<u8>,
}

/// The progress without a map.
pub(super) fn no_map() -> Progress {
    let mut message = Progress {
        words: Some("no map".into()),
        ..Progress::default()
    };
    message.set_state(Shown::None);
    message.set_exploration(progress::Exploration::Never);
    message
}

/// The progress of a map.
pub(super) fn progress(report: &Report, board: &Board, growth: Growth, time: Duration) -> Progress {
    let so_far = &report.progress;
    let counters = &so_far.counters;
    let not_returned = || Some(board.not_returned?.to_string());
    let location = report.pose.map(|added| Location {
        time_stamp: board.pose_unix_ms,
        ..MapPose {
            quality: added.overlap,
            ..MapPose::from(added.pose)
        }
        .into()
    });
    let target = board.target.map(|target| {
        let MapPose { x_m, y_m, .. } = on_map(target.at);
        Target {
            x: Some(x_m),
            y: Some(y_m),
            radius: Some(target.radius_m),
        }
    });
    let mut message = Progress {
        words: Some(words(growth, board.exploration).into()),
        trouble: (board.trouble.clone())
            .or_else(not_returned)
            .or_else(|| Some(report.found.first()?.sentence.clone())),
        time: u64::try_from(time.as_millis()).ok(),
        distance: Some(so_far.way_m),
        area: Some(so_far.free_m2),
        scans: Some(counters.scans),
        key_scans: Some(so_far.keys as u64),
        loops: Some(counters.loops),
        location,
        map: Some(report.tiles.map()),
        grid: Some(report.tiles.number()),
        scan: Some(points(&board.scan, MAX_SCAN_POINTS)),
        path: Some(points(&board.path, MAX_PATH_POINTS)),
        remaining: board.remaining_m,
        target,
        unreachable: u32::try_from(board.unreachable).ok(),
        ..Progress::default()
    };
    message.set_state(match growth {
        Growth::Grows => Shown::Growing,
        Growth::Stopped => Shown::Stopped,
    });
    message.set_exploration(match board.exploration {
        Exploration::Never => progress::Exploration::Never,
        Exploration::StoppedEarly => progress::Exploration::StoppedEarly,
        Exploration::Runs(State::Waiting) => progress::Exploration::Waiting,
        Exploration::Runs(State::Exploring) => progress::Exploration::Exploring,
        Exploration::Runs(State::Returning) => progress::Exploration::Returning,
        Exploration::Runs(State::Finished) => progress::Exploration::Finished,
        Exploration::Runs(State::NotReturned) => progress::Exploration::NotReturned,
    });
    message
}

fn words(growth: Growth, exploration: Exploration) -> &'static str {
    match (growth, exploration) {
        (Growth::Stopped, _) => "stopped",
        (Growth::Grows, Exploration::Never) => "growing",
        (Growth::Grows, Exploration::StoppedEarly) => "growing; the exploration was stopped",
        (Growth::Grows, Exploration::Runs(state)) => match state {
            State::Waiting => "waiting",
            State::Exploring => "exploring",
            State::Returning => "returning",
            State::Finished => "finished exploring",
            State::NotReturned => "could not return",
        },
    }
}

fn on_map(at: Point) -> MapPose {
    Pose { at, heading: 0.0 }.into()
}

/// At most so many points, evenly left out.
fn points(all: &[Point], most: usize) -> Points {
    let step = all.len().div_ceil(most).max(1);
    let cm = |metres: f64| (100.0 * metres).round() as i32;
    let places = all.iter().step_by(step).map(|point| on_map(*point));
    let (xs, ys) = places.map(|at| (cm(at.x_m), cm(at.y_m))).unzip();
    Points { xs, ys }
}

/// The changed tiles that a client asks for.
pub(super) fn grid(tiles: &Tiles, asked: &Grid) -> Grid {
    let part = tiles.since(asked.map(), asked.number(), MAX_BYTES);
    let tiles_of = part.tiles.into_iter().map(|tile| Tile {
        x: Some(tile.x),
        y: Some(tile.y),
        png: Some(tile.png.to_vec().into()),
    });
    Grid {
        map: Some(tiles.map()),
        number: Some(part.number),
        left: u32::try_from(part.left).ok(),
        resolution: Some(tiles.cell_m()),
        tiles: tiles_of.collect(),
    }
}

/// A piece of a saved map.
pub(super) fn piece(saved: &Saved, asked: &Piece) -> Piece {
    let file: &[u8] = match asked.file() {
        _ if asked.saved() != saved.number => &[],
        piece::File::Roson => saved.roson.as_bytes(),
        piece::File::Png => &saved.png[..],
    };
    let start = (asked.offset() as usize).min(file.len());
    let end = (start + MAX_BYTES).min(file.len());
    Piece {
        saved: asked.saved,
        file: asked.file,
        offset: asked.offset,
        data: Some(file[start..end].to_vec().into()),
        length: u32::try_from(file.len()).ok(),
    }
}

/// The result of saving. The caller adds what became of it.
pub(super) fn saved(finished: &Finished, missing: Vec<String>) -> SavedMap {
    let corner = upper_left(&finished.occupancy);
    SavedMap {
        area: Some(finished.progress.free_m2),
        walls: u32::try_from(finished.walls).ok(),
        missing,
        wrong: finished
            .found
            .iter()
            .map(|it| it.sentence.clone())
            .collect(),
        lines: (finished.found.iter())
            .flat_map(|it| it.lines.iter().cloned())
            .collect(),
        x: Some(corner.x_m),
        y: Some(corner.y_m),
        resolution: Some(finished.occupancy.layout().cell_m),
        ..SavedMap::default()
    }
}

fn upper_left(grid: &Occupancy) -> MapPose {
    let layout = grid.layout();
    on_map(Point::new(layout.low.x, layout.high().y))
}

/// The missing and dropped data, in words. `dropped` measurements did not reach the mapper.
pub(super) fn missing(progress: &recording::Progress, dropped: u64, board: &Board) -> Vec<String> {
    let counters = &progress.counters;
    let gaps = |gaps: &Gaps, what: &str| {
        let longest_s = gaps.longest.as_secs_f64();
        (gaps.count, format!("{what}, the longest {longest_s:.1} s"))
    };
    let count = |count: u64, what: &str| (count, what.to_owned());
    let all = [
        gaps(&progress.scan_gaps, "gaps between scans"),
        gaps(&progress.wheels_gaps, "gaps between wheel speeds"),
        count(dropped, "measurements dropped: this computer is too slow"),
        count(board.invalid_speeds, "invalid wheel speeds"),
        count(counters.speeds_refused, "wheel speeds that came too late"),
        count(counters.scans_late, "scans that came too late"),
        count(counters.scans_blind, "scans that saw too little"),
        count(
            counters.scans_without_odometry,
            "scans without wheel speeds",
        ),
        count(counters.unmatched, "scans that did not match the map"),
        count(counters.keys_dropped, "scans beyond the largest map"),
        count(counters.loops_false, "loops that contradict the others"),
        count(
            board.unreachable as u64,
            "places that the robot could not reach",
        ),
    ];
    let all = all.into_iter().filter(|(count, _)| *count > 0);
    all.map(|(count, what)| format!("{count} {what}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amber_driver::devices::mapping::DriverMsg;
    use amber_driver::proto::DeviceMessage;
    use amber_map::{Cell, Layout};
    use amber_navigation::slam::{Added, Counters};
    use prost::Message;

    use super::*;

    #[test]
    fn everything_that_was_missing_is_named() {
        let board = Board::default();
        let progress = recording::Progress::default();
        assert_eq!(missing(&progress, 0, &board), [""; 0]);
        let board = Board {
            invalid_speeds: 3,
            unreachable: 1,
            ..board
        };
        let progress = recording::Progress {
            counters: Counters {
                scans_without_odometry: 7,
                ..Counters::default()
            },
            ..progress
        };
        let expected = [
            "2 measurements dropped: this computer is too slow",
            "3 invalid wheel speeds",
            "7 scans without wheel speeds",
            "1 places that the robot could not reach",
        ];
        assert_eq!(missing(&progress, 2, &board), expected);
    }

    /// Many points, far away from the origin.
    fn crowd(count: i32) -> Vec<Point> {
        let at = |index| Point::new(70.0 + 0.01 * f64::from(index), -60.0);
        (0..count).map(at).collect()
    }

    #[test]
    fn a_busy_progress_fits_into_one_packet() {
        let report = Report {
            progress: recording::Progress {
                way_m: 1234.5,
                free_m2: 999.9,
                ..recording::Progress::default()
            },
            pose: Some(Added {
                time: Duration::from_secs(1),
                pose: Pose::new(1.0, 2.0, 0.5),
                overlap: 0.75,
                is_key: true,
            }),
            survey: None,
            tiles: Arc::new(Tiles::new(u32::MAX)),
            found: Vec::new(),
        };
        let board = Board {
            exploration: Exploration::Runs(State::Exploring),
            trouble: Some("x".repeat(200)),
            scan: crowd(682),
            path: crowd(500),
            pose_unix_ms: Some(1_800_000_000_000),
            ..Board::default()
        };
        let progress = progress(&report, &board, Growth::Grows, Duration::from_secs(5));
        assert_eq!(progress.words(), "exploring");
        let at = MapPose::from(progress.location.unwrap());
        assert_eq!((at.x_m, at.y_m, at.quality), (1.0, -2.0, 0.75));
        let scan = progress.scan.as_ref().unwrap();
        assert!((100..=MAX_SCAN_POINTS).contains(&scan.xs.len()));
        assert_eq!((scan.xs[0], scan.ys[0]), (7_000, 6_000));
        let message = DriverMsg {
            map_progress: Some(progress),
            ..DriverMsg::data()
        };
        let bytes = message.encode_to_vec().len();
        assert!(bytes < 1400, "{bytes}");
    }

    #[test]
    fn without_a_map_there_are_no_tiles_and_the_words_say_so() {
        assert_eq!(no_map().words(), "no map");
        let empty = grid(&Tiles::new(5), &Grid::default());
        assert_eq!((empty.map(), empty.left()), (5, 0));
        assert!(empty.tiles.is_empty());
    }

    #[test]
    fn a_client_that_has_the_last_number_gets_nothing_again() {
        let layout = Layout {
            low: Point::default(),
            cell_m: 0.025,
            columns: 10,
            rows: 10,
        };
        let cells = vec![Cell::Free; layout.cells()];
        let mut tiles = Tiles::new(5);
        let room = Occupancy::from_cells(layout, cells).unwrap();
        tiles.update(&room).unwrap();
        let first = grid(&tiles, &Grid::default());
        assert_eq!((first.tiles.len(), first.resolution()), (1, 0.025));
        assert_eq!((first.tiles[0].x(), first.tiles[0].y()), (0, -1));
        let again = Grid {
            map: first.map,
            number: first.number,
            ..Grid::default()
        };
        assert!(grid(&tiles, &again).tiles.is_empty());
    }

    #[test]
    fn pieces_make_up_the_file_of_the_saved_map_only() {
        let saved = Saved {
            number: 4,
            roson: "r".repeat(2 * MAX_BYTES + 10),
            png: b"png".to_vec(),
        };
        let mut found = Vec::new();
        loop {
            let asked = Piece {
                saved: Some(4),
                offset: Some(found.len() as u32),
                ..Piece::default()
            };
            let piece = piece(&saved, &asked);
            assert_eq!(piece.length() as usize, saved.roson.len());
            if piece.data().is_empty() {
                break;
            }
            found.extend_from_slice(piece.data());
        }
        assert_eq!(found, saved.roson.as_bytes());
        let mut png = Piece {
            saved: Some(4),
            offset: Some(u32::MAX),
            ..Piece::default()
        };
        png.set_file(piece::File::Png);
        assert_eq!(piece(&saved, &png).length(), 3);
        png.saved = Some(3);
        assert_eq!(piece(&saved, &png).length(), 0);
    }
}
