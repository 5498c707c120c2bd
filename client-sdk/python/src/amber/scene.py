"""What a robot knows of its surroundings, as a drawing. PURE.

The frame is that of the map: metres, x to the right, y **down**, headings clockwise. Drawings are
SVG, so they need no other package.
"""

from __future__ import annotations

import base64
import html
import json
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .values import MapPose, Scan, Target

__all__ = ["Grid", "Place", "Scene", "Walls"]

#: A point on the map in metres: to the right and down.
Place = tuple[float, float]

#: From this quality on, the robot is where its pose says.
_DECIDED = 0.3
#: A scan carries the time of its end. The middle of a turn of most lasers is this much earlier.
_MIDDLE_S = 0.05
#: The robot does not drive this far between two poses: the driver has found it elsewhere.
_JUMP_M = 0.5
#: A wall of a map is at most this thick and this far away. Others are wrong.
_THICKEST_M, _FARTHEST_M = 10.0, 10_000.0
#: A gate that is blocked by more than this counts as a wall.
_BLOCKED = 0.5

#: The largest drawing, in pixels.
_WIDTH, _HEIGHT = 620.0, 520.0
#: Around the map there is space for the robot. Without a map, at least this is drawn.
_BORDER_M, _SMALLEST_M = 0.2, 3.0
#: The length of the arrow that stands for the robot.
_ROBOT_M = 0.37

_BACKGROUND, _WALL, _LASER, _PATH = "#fff", "#383c42", "#d62820", "#289646"
_ROBOT, _GUESS, _TEXT = "#2058a8", "#82868c", "#484e56"


@dataclass(frozen=True)
class Walls:
    """A map of straight walls."""

    #: The two ends of each wall.
    lines: tuple[tuple[Place, Place], ...] = field(repr=False)
    #: The thickness of each wall in metres; 0 if unknown.
    thicknesses_m: tuple[float, ...] = field(repr=False)
    #: The name of the map; may be empty.
    name: str = ""


@dataclass(frozen=True)
class Grid:
    """A map of square cells, as a picture."""

    #: The upper left corner of the picture.
    x_m: float
    y_m: float
    #: The side length of a cell.
    cell_m: float
    columns: int
    rows: int
    #: A PNG file: grey 0 is occupied, 254 is free, and 205 is unknown.
    png: bytes = field(repr=False)


@dataclass(frozen=True)
class Scene:
    """The map, the robot on it, what its laser sees, and where it drives.

    Notebooks show it as a drawing.
    """

    #: The map that the robot uses; None if it has none.
    map: Walls | Grid | None = None
    #: Where the robot is; None if it does not know.
    pose: MapPose | None = None
    #: Whether the robot is sure of its pose.
    is_sure: bool = False
    #: The points that the laser sees, on the map; empty without a pose, or if the robot does not
    #: know where its laser is.
    scan: Sequence[Place] = field(default=(), repr=False)
    #: The rest of the path to the next target.
    path: Sequence[Place] = field(default=(), repr=False)
    #: The targets that the robot has not reached yet.
    targets: Sequence[Target] = ()
    #: The parts that are missing, with the reason: ``map``, ``pose``, ``laser`` or ``path``.
    missing: dict[str, str] = field(default_factory=dict)

    def svg(self) -> str:
        """The drawing as the text of an SVG file.

        The laser is red, the path and the targets are green, and the robot is blue, or grey while
        it is not sure of its pose.
        """
        low, high = self._bounds()
        scale = min(_WIDTH / (high[0] - low[0]), _HEIGHT / (high[1] - low[1]))
        pen = _Pen(low, scale)
        if isinstance(self.map, Walls):
            for (start, end), thick_m in zip(self.map.lines, self.map.thicknesses_m):
                pen.line([start, end], _WALL, max(2.0, thick_m * scale))
        elif self.map is not None:
            pen.image(self.map)
        pen.line(self.path, _PATH, 2.5)
        pen.dots(self.scan, _LASER)
        for target in self.targets:
            pen.circle((target.x_m, target.y_m), max(4.0, target.radius_m * scale), _PATH)
        if self.pose is not None:
            pen.arrow(self.pose, _ROBOT if self.is_sure else _GUESS)
        pen.bar((high[0] - low[0]) / 4, (high[1] - low[1]) * scale)
        return pen.svg("The robot on its map", [it * scale for it in _minus(high, low)])

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f'<figure style="margin:0">{self.svg()}{self._caption()}</figure>'

    def _caption(self) -> str:
        words = []
        if isinstance(self.map, Walls) and self.map.name:
            words.append(f"map {self.map.name}")
        if self.pose is not None:
            pose = self.pose
            guess = "" if self.is_sure else "perhaps "
            degrees = math.degrees(pose.heading_rad)
            words.append(f"{guess}at x {pose.x_m:.2f} m, y {pose.y_m:.2f} m, {degrees:.0f}°")
        if self.targets:
            number = len(self.targets)
            words.append(f"{number} target{'s' if number > 1 else ''} left")
        lines = [", ".join(words), *(f"no {part}: {why}" for part, why in self.missing.items())]
        shown = "<br>".join(html.escape(line) for line in lines if line)
        return f"<figcaption>{shown}</figcaption>"

    def _bounds(self) -> tuple[Place, Place]:
        """The area of the drawing: the map, or else all known parts."""
        places = [*self.scan, *self.path, *((it.x_m, it.y_m) for it in self.targets)]
        if self.pose is not None:
            places.append((self.pose.x_m, self.pose.y_m))
        smallest = _SMALLEST_M
        if isinstance(self.map, Walls):
            places, smallest = [end for line in self.map.lines for end in line], 0.1
        elif self.map is not None:
            corner = (self.map.x_m, self.map.y_m)
            size = (self.map.columns * self.map.cell_m, self.map.rows * self.map.cell_m)
            places, smallest = [corner, (corner[0] + size[0], corner[1] + size[1])], 0.1
        places = [it for it in places if _is_finite(it)] or [(0.0, 0.0)]
        low = min(x for x, _ in places), min(y for _, y in places)
        high = max(x for x, _ in places), max(y for _, y in places)
        lacking = max(0.0, smallest - max(_minus(high, low)))
        border = _BORDER_M + lacking / 2
        return (low[0] - border, low[1] - border), (high[0] + border, high[1] + border)


def ground(message: Any) -> Walls | Grid:
    """The map in the answer of a driver. Raises ValueError if it is invalid."""
    if message.HasField("grid"):
        grid = message.grid
        # The size is at the start of each PNG file.
        if not grid.png.startswith(b"\x89PNG\r\n\x1a\n") or len(grid.png) < 24:
            raise ValueError("its picture is no PNG file")
        columns, rows = struct.unpack(">II", grid.png[16:24])
        if not (_is_finite((grid.x, grid.y)) and 0 < grid.resolution < _FARTHEST_M):
            raise ValueError("its place is not valid")
        return Grid(grid.x, grid.y, grid.resolution, columns, rows, bytes(grid.png))
    try:
        return _walls(json.loads(message.roson.lstrip("\ufeff")))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is not a .roson map: {error!r}") from error


def _walls(file: Any) -> Walls:
    gates = [gate for gate in file.get("gates") or () if (gate.get("blocked") or 0) > _BLOCKED]
    lines: list[tuple[Place, Place]] = []
    thicknesses: list[float] = []
    for wall in [*file["walls"], *gates]:
        if not (wall.get("from") and wall.get("to")):
            continue
        start, end = _place(wall["from"]), _place(wall["to"])
        if not max(map(abs, (*start, *end))) <= _FARTHEST_M:
            raise ValueError(f"the wall {wall.get('id')} is too far away")
        thick_m = float(wall.get("width") or 0)
        lines.append((start, end))
        thicknesses.append(thick_m if 0 < thick_m <= _THICKEST_M else 0.0)
    if not lines:
        raise ValueError("the map has no walls")
    return Walls(tuple(lines), tuple(thicknesses), str(file.get("name") or ""))


def _place(found: Any) -> Place:
    return float(found["x"]), float(found["y"])


def is_sure(pose: MapPose, has_quality: bool) -> bool:
    """Whether the robot is there. Drivers of the original system have no quality."""
    return pose.is_known and (not has_quality or pose.quality >= _DECIDED)


def pose_of(scan: Scan, poses: Sequence[MapPose]) -> MapPose | None:
    """The pose in the middle of a scan, between two poses; None if it is not known yet."""
    if scan.taken_at_s is None:
        return None
    at_s = scan.taken_at_s - _MIDDLE_S
    for before, after in zip(poses, poses[1:]):
        start, end = before.taken_at_s, after.taken_at_s
        if start is not None and end is not None and start <= at_s <= end and start < end:
            return _between(before, after, (at_s - start) / (end - start))
    return None


def _between(before: MapPose, after: MapPose, share: float) -> MapPose:
    way = after.x_m - before.x_m, after.y_m - before.y_m
    if math.hypot(*way) > _JUMP_M:
        return after
    turn = math.remainder(after.heading_rad - before.heading_rad, 2 * math.pi)
    return MapPose(
        before.x_m + share * way[0],
        before.y_m + share * way[1],
        before.heading_rad + share * turn,
        after.quality,
        after.taken_at_s,
    )


def places(scan: Scan, pose: MapPose, laser: Any) -> list[Place]:
    """The points of a scan on the map. ``laser`` is its Place on the robot, of ``robot.proto``."""
    sides = -1.0 if laser.upside_down else 1.0
    found: list[Place] = []
    for point in scan.points():
        ahead_m, right_m = point.x_y_m
        on_robot = _turned((ahead_m, sides * right_m), -laser.yaw)
        on_robot = on_robot[0] + laser.x, on_robot[1] - laser.y
        x_m, y_m = _turned(on_robot, pose.heading_rad)
        found.append((x_m + pose.x_m, y_m + pose.y_m))
    return found


def drawing_of(scan: Scan) -> str:
    """A scan around its laser, whose front is at the top, as the text of an SVG file."""
    # Ahead is up: the heading of a scanner at this pose.
    up = MapPose(0.0, 0.0, -math.pi / 2, 1.0)
    found = [_turned(point.x_y_m, up.heading_rad) for point in scan.points()]
    found = [place for place in found if _is_finite(place)]
    radius_m = max([1.0, *(math.hypot(*place) for place in found)]) * 1.05
    pen = _Pen((-radius_m, -radius_m), _HEIGHT / 2 / radius_m)
    step_m = _round_length(radius_m / 2)
    for number in range(1, int(radius_m / step_m) + 1):
        pen.circle((0.0, 0.0), number * step_m * pen.scale, "#d8d8d4", 1.0)
    pen.dots(found, _LASER)
    pen.arrow(up, _ROBOT)
    pen.bar(radius_m / 2, _HEIGHT)
    return pen.svg("A scan of a laser", [_HEIGHT, _HEIGHT])


class _Pen:
    """Draws on the map, in pixels."""

    def __init__(self, low: Place, scale: float) -> None:
        self.low = low
        #: Pixels per metre.
        self.scale = scale
        self._shapes: list[str] = []

    def _at(self, place: Place) -> str:
        x, y = ((there - low) * self.scale for there, low in zip(place, self.low))
        return f"{x:.1f} {y:.1f}"

    def line(self, all_places: Iterable[Place], colour: str, pixels: float) -> None:
        found = [self._at(place) for place in all_places if _is_finite(place)]
        if len(found) > 1:
            self._stroke("M" + "L".join(found), colour, pixels)

    def dots(self, all_places: Iterable[Place], colour: str) -> None:
        found = [f"M{self._at(place)}h0" for place in all_places if _is_finite(place)]
        if found:
            self._stroke("".join(found), colour, 3.5)

    def _stroke(self, path: str, colour: str, pixels: float) -> None:
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{pixels:.1f}" '
            'stroke-linecap="round" stroke-linejoin="round"/>'
        )

    def circle(self, centre: Place, radius: float, colour: str, pixels: float = 2.0) -> None:
        if _is_finite(centre) and math.isfinite(radius):
            x, y = self._at(centre).split()
            self._shapes.append(
                f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="none" stroke="{colour}" '
                f'stroke-width="{pixels:.1f}"/>'
            )

    def arrow(self, pose: MapPose, colour: str) -> None:
        if not _is_finite((pose.x_m, pose.y_m)) or not math.isfinite(pose.heading_rad):
            return
        length = max(_ROBOT_M, 9.0 / self.scale)
        corners = [(0.5, 0.0), (-0.5, 0.35), (-0.3, 0.0), (-0.5, -0.35)]
        turned = [_turned((x * length, y * length), pose.heading_rad) for x, y in corners]
        path = "L".join(self._at((x + pose.x_m, y + pose.y_m)) for x, y in turned)
        self._shapes.append(f'<path d="M{path}Z" fill="{colour}"/>')

    def image(self, grid: Grid) -> None:
        x, y = self._at((grid.x_m, grid.y_m)).split()
        cell = grid.cell_m * self.scale
        data = base64.b64encode(grid.png).decode()
        self._shapes.append(
            f'<image x="{x}" y="{y}" width="{grid.columns * cell:.1f}" '
            f'height="{grid.rows * cell:.1f}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )

    def bar(self, at_most_m: float, bottom: float) -> None:
        """A bar of a round length."""
        length_m = _round_length(at_most_m)
        end = 10 + length_m * self.scale
        self._shapes.append(
            f'<path d="M10 {bottom - 8:.1f}H{end:.1f}" stroke="{_TEXT}" stroke-width="2"/>'
            f'<text x="{end + 6:.1f}" y="{bottom - 4:.1f}" font-family="sans-serif" '
            f'font-size="12" fill="{_TEXT}">{length_m:g} m</text>'
        )

    def svg(self, title: str, size: Sequence[float]) -> str:
        width, height = size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.1f} {height:.1f}" role="img" style="max-width:100%;height:auto">'
            f'<title>{title}</title><rect width="100%" height="100%" fill="{_BACKGROUND}"/>'
            f"{''.join(self._shapes)}</svg>"
        )


def _round_length(at_most_m: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(at_most_m))
    return next((it * power for it in (5, 2) if it * power <= at_most_m), power)


def _turned(place: Place, clockwise_rad: float) -> Place:
    sin, cos = math.sin(clockwise_rad), math.cos(clockwise_rad)
    return place[0] * cos - place[1] * sin, place[0] * sin + place[1] * cos


def _minus(high: Place, low: Place) -> Place:
    return high[0] - low[0], high[1] - low[1]


def _is_finite(place: Place) -> bool:
    return math.isfinite(place[0]) and math.isfinite(place[1])
