//! Draws the screen of `amber top`. PURE, except for the given terminal.

use std::borrow::Cow;

use amber_proto::printable_line;
use amber_terminal::millis;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::columns::{
    CLIENTS, Column, DEVICES, DROPS, fitting, memory, milliseconds, percent, rate,
};
use super::sample::{ClientRow, DeviceRow, DropRow, MediatorRow, View};
use super::state::{Panel, State};

/// Two tables fit side by side.
const WIDE: u16 = 110;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, state: &State) {
    let area = frame.area();
    let [head, devices, rest, foot] = areas(area, view.devices.len());
    let width = area.width.into();
    frame.render_widget(
        Line::from(title(&view.mediator, state, width)),
        line(head, 0),
    );
    frame.render_widget(Line::from(totals(&view.mediator, width)), line(head, 1));
    draw_devices(frame, devices, &view.devices, state);
    if rest.height >= 2 {
        if rest.width >= WIDE {
            let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Length(52)]);
            let [left, right] = halves.spacing(2).areas(rest);
            draw_clients(frame, left, &view.clients);
            draw_drops(frame, right, &view.drops);
        } else {
            match state.panel {
                Panel::Clients => draw_clients(frame, rest, &view.clients),
                Panel::Drops => draw_drops(frame, rest, &view.drops),
            }
        }
    }
    frame.render_widget(Line::from(footer(state, width)), foot);
}

/// The areas of the head, the devices, the other tables and the last line.
fn areas(area: Rect, devices: usize) -> [Rect; 4] {
    let rows = u16::try_from(devices).unwrap_or(u16::MAX).saturating_add(1);
    // Devices matter most, but the other tables get a third if there are many.
    let free = area.height.saturating_sub(5);
    let most = rows.max(1).min(free.saturating_sub(free / 3).max(2));
    Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(most),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area)
}

fn line(area: Rect, number: u16) -> Rect {
    let below = area.y + number.min(area.height);
    let height = area.height.saturating_sub(number).min(1);
    Rect::new(area.x, below, area.width, height)
}

/// As many parts as fit into a width, and always the first: a truncated number would be wrong.
fn whole(parts: &[String], separator: &str, width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        if text.is_empty() {
            text.clone_from(part);
        } else if text.chars().count() + separator.len() + part.chars().count() <= width {
            text.push_str(separator);
            text.push_str(part);
        } else {
            break;
        }
    }
    text
}

/// Text cut to a width, with a mark if it was cut.
fn cut(text: &str, width: usize) -> Cow<'_, str> {
    match text.char_indices().nth(width) {
        None => text.into(),
        Some(_) => {
            let most = text.chars().take(width.saturating_sub(1));
            most.chain(['…']).collect::<String>().into()
        }
    }
}

fn title(mediator: &MediatorRow, state: &State, width: usize) -> Vec<Span<'static>> {
    const NAME: &str = "amber";
    const PAUSED: &str = "  paused";
    let version = printable_line(&mediator.version);
    let about = [
        format!(" at {}", state.mediator),
        format!("version {version}"),
        format!("up {}", millis(mediator.uptime_ms)),
    ];
    let mut left = width.saturating_sub(NAME.len());
    if state.is_paused {
        left = left.saturating_sub(PAUSED.len());
    }
    let mut spans = vec![
        Span::styled(NAME, Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(whole(&about, ", ", left)),
    ];
    if state.is_paused {
        spans.push(Span::styled(PAUSED, Modifier::REVERSED));
    }
    spans
}

fn totals(mediator: &MediatorRow, width: usize) -> String {
    let parts = [
        format!("clients {}", mediator.clients),
        format!("in {}/s", rate(mediator.received_per_s)),
        format!("out {}/s", rate(mediator.sent_per_s)),
        format!("drops {}/s", rate(mediator.drops_per_s)),
        format!("CPU {} %", percent(mediator.cpu_percent)),
        format!("memory {}", memory(mediator.memory_bytes)),
        format!("round trip {} ms", milliseconds(mediator.round_trip_ms)),
    ];
    whole(&parts, ", ", width)
}

fn footer(state: &State, width: usize) -> Span<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    if let Some(question) = state.question() {
        return Span::styled(question, bold);
    }
    if let Some(message) = &state.message {
        return Span::styled(printable_line(message).into_owned(), bold);
    }
    // A wide terminal shows both tables.
    let other = match state.panel {
        _ if width >= WIDE.into() => None,
        Panel::Clients => Some("tab drops"),
        Panel::Drops => Some("tab clients"),
    };
    let keys = ["q quit", "up/down select", "r restart", "s stop/start"];
    let keys = keys.into_iter().chain(other).chain(["p pause"]);
    let keys: Vec<_> = keys.map(str::to_owned).collect();
    Span::raw(whole(&keys, "  ", width))
}

fn draw_devices(frame: &mut Frame<'_>, area: Rect, rows: &[DeviceRow], state: &State) {
    // The selected row stays visible.
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let selected = state.selected.min(rows.len().saturating_sub(1));
    let first = (selected + 1).saturating_sub(height);
    let style = |index: usize, row: &DeviceRow| {
        let mut style = Style::new();
        if state.has_colours {
            style = style.fg(match (row.state, &row.problem) {
                ("up", None) => Color::Reset,
                ("failed", _) => Color::Red,
                _ => Color::Yellow,
            });
        }
        match index + first == selected {
            true => style.add_modifier(Modifier::REVERSED),
            false => style,
        }
    };
    let behind = |row: &DeviceRow| row.problem.clone().unwrap_or_default();
    let shown = &rows[first.min(rows.len())..];
    table(frame, area, DEVICES, "PROBLEM", shown, style, behind);
    if rows.is_empty() {
        frame.render_widget(Line::from("no drivers are configured"), line(area, 1));
    }
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, rows: &[ClientRow]) {
    let behind = |row: &ClientRow| row.devices.join(" ");
    table(
        frame,
        area,
        CLIENTS,
        "DEVICES",
        rows,
        |_, _| Style::new(),
        behind,
    );
}

fn draw_drops(frame: &mut Frame<'_>, area: Rect, rows: &[DropRow]) {
    table(
        frame,
        area,
        DROPS,
        "",
        rows,
        |_, _| Style::new(),
        |_| String::new(),
    );
    if rows.is_empty() {
        frame.render_widget(Line::from("nothing"), line(area, 1));
    }
}

/// Draws the columns that fit, and the trailing text in the rest of the line.
fn table<T>(
    frame: &mut Frame<'_>,
    area: Rect,
    columns: &[Column<T>],
    heading_behind: &str,
    rows: &[T],
    style: impl Fn(usize, &T) -> Style,
    behind: impl Fn(&T) -> String,
) {
    let (columns, left) = fitting(columns, area.width);
    let has_room = usize::from(left) >= "  ".len() + heading_behind.len();
    let text = |cell: &dyn Fn(&Column<T>) -> String, behind: &str| {
        let mut text = String::new();
        for column in &columns {
            let (width, cell) = (usize::from(column.width), cell(column));
            let cell: String = printable_line(&cell).chars().take(width).collect();
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&match column.is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:width$}"),
            });
        }
        if has_room && !behind.is_empty() {
            text.push_str("  ");
            text.push_str(&cut(
                &printable_line(behind),
                usize::from(left) - "  ".len(),
            ));
        }
        text
    };
    let heading = text(&|column| column.heading.to_owned(), heading_behind);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(heading, bold), line(area, 0));
    for (index, row) in rows.iter().enumerate() {
        let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
        if number >= area.height {
            break;
        }
        let text = text(&|column| (column.cell)(row), &behind(row));
        let place = line(area, number);
        frame.render_widget(Line::raw(text), place);
        frame.buffer_mut().set_style(place, style(index, row));
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::sample::tests::look;
    use super::*;

    fn drawn(width: u16, height: u16, state: &State) -> Vec<String> {
        let view = View::between(Some(&look(1)), &look(3));
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &view, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        let rows = (0..height).map(row);
        rows.map(|row: String| row.trim_end().to_owned()).collect()
    }

    #[test]
    fn everything_is_shown_on_a_wide_terminal() {
        let state = State::new("127.0.0.1:26233".into(), true);
        let expected = "\
amber at 127.0.0.1:26233, version 0.1.0, up 3.0s
clients 1, in 300/s, out 250/s, drops 2.0/s, CPU 3.0 %, memory 3.0 MB, round trip 0.15 ms

DEVICE                  STATE        FOR   IN/s  OUT/s  OUT B/s  CPU %   MEMORY  RTT ms  DROPS  WAIT STARTS  PROBLEM
hokuyo:0 +1             up          3.0s     10    100    10.0k   20.0   3.0 MB    0.42      3     0      0
roboclaw:0              backoff     3.0s     20    200    20.0k      -        -       -      3     0      3  it exited with code 1
CLIENT ADDRESS               SENDS/s  GETS/s  SILENT  DEVICES                 DROPPED BECAUSE                     PER s    TOTAL
     7 127.0.0.1:5000            100      50    0.0s  hokuyo:0                driver queue full                     2.0        6
                                                                              unknown client                          0        4

q quit  up/down select  r restart  s stop/start  p pause";
        assert_eq!(drawn(130, 11, &state), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_narrow_terminal_shows_the_important_things() {
        let mut state = State::new("127.0.0.1:26233".into(), false);
        state.panel = Panel::Drops;
        let expected = "\
amber at 127.0.0.1:26233, version 0.1.0
clients 1, in 300/s, out 250/s

DEVICE                  STATE      IN/s
hokuyo:0 +1             up           10
roboclaw:0              backoff      20
DROPPED BECAUSE
driver queue full
q quit  up/down select  r restart";
        assert_eq!(drawn(40, 9, &state), expected.lines().collect::<Vec<_>>());
    }

    #[test]
    fn texts_that_do_not_fit_say_so() {
        for (width, shown) in [(3, "ab…"), (4, "abcd"), (9, "abcd"), (1, "…")] {
            assert_eq!(cut("abcd", width), shown);
        }
        let state = State::new("127.0.0.1:26233".into(), true);
        let screen = drawn(122, 11, &state);
        assert!(screen[5].ends_with("  it exited wi…"), "{}", screen[5]);
    }

    #[test]
    fn the_key_for_the_other_table_is_shown_where_it_is_needed() {
        let mut state = State::new("127.0.0.1:26233".into(), false);
        let last = |width, state: &State| drawn(width, 11, state)[10].clone();
        assert!(last(80, &state).ends_with("  tab drops  p pause"));
        state.panel = Panel::Drops;
        assert!(last(80, &state).ends_with("  tab clients  p pause"));
        assert!(last(60, &state).ends_with("  tab clients"));
        assert!(!last(130, &state).contains("tab"));
    }

    #[test]
    fn a_paused_screen_says_so_at_any_width() {
        let mut state = State::new("127.0.0.1:26233".into(), false);
        state.is_paused = true;
        for (width, first) in [
            (
                57,
                "amber at 127.0.0.1:26233, version 0.1.0, up 3.0s  paused",
            ),
            (50, "amber at 127.0.0.1:26233, version 0.1.0  paused"),
            (40, "amber at 127.0.0.1:26233  paused"),
        ] {
            assert_eq!(drawn(width, 9, &state)[0], first);
        }
    }

    #[test]
    fn any_size_is_drawn() {
        let state = State::new("127.0.0.1:26233".into(), true);
        for width in [1, 7, 20, 60, 111, 300] {
            for height in [1, 2, 3, 4, 5, 6, 9, 40] {
                drawn(width, height, &state);
            }
        }
    }
}
