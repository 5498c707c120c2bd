"""Tests of the drawing of a robot on its map."""

import math
import struct
import unittest
from xml.etree import ElementTree

from amber import scene, schemas
from amber.scene import Grid, Scene, Walls
from amber.values import MapPose, Scan, Target

ROSON = """{
  "name": "room <1>",
  "walls": [
    {"id": "a", "width": 0.1, "from": {"x": 0, "y": 0}, "to": {"x": 4, "y": 0}},
    {"id": "b", "from": {"x": 4, "y": 0}, "to": {"x": 4, "y": 3}},
    {"id": "no end", "from": {"x": 4, "y": 0}}
  ],
  "gates": [
    {"blocked": 1.0, "from": {"x": 0, "y": 0}, "to": {"x": 0, "y": 3}},
    {"blocked": 0.0, "from": {"x": 0, "y": 3}, "to": {"x": 4, "y": 3}}
  ]
}"""
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 40, 30, 8, 0, 0, 0, 0)
NAMESPACE = "{http://www.w3.org/2000/svg}"


def pose(x=0.0, heading=0.0, at=None):
    return MapPose(x, 0.0, heading, 0.9, at)


def map_of(**fields):
    return schemas.location.Map(**fields)


class Scenes(unittest.TestCase):
    def shapes(self, drawn, name):
        """The shapes of this kind in a drawing, whose numbers are all finite."""
        svg = drawn.svg()
        self.assertNotIn("nan", svg)
        self.assertNotIn("inf", svg)
        return ElementTree.fromstring(svg).findall(NAMESPACE + name)

    def test_both_kinds_of_maps_are_read(self):
        walls = scene.ground(map_of(roson=ROSON))
        self.assertEqual(walls.name, "room <1>")
        self.assertEqual(walls.lines[0], ((0.0, 0.0), (4.0, 0.0)))
        self.assertEqual(walls.thicknesses_m, (0.1, 0.0, 0.0), "two walls and a closed gate")
        grid = scene.ground(map_of(grid={"x": -1.0, "y": -2.0, "resolution": 0.05, "png": PNG}))
        self.assertEqual((grid.columns, grid.rows, grid.cell_m), (40, 30, 0.05))

    def test_invalid_maps_are_errors(self):
        far = ROSON.replace('"x": 4', '"x": 1e9')
        for roson in ("", "[]", "{}", '{"walls": []}', '{"walls": [3]}', ROSON[:-9], far):
            with self.assertRaises(ValueError, msg=roson):
                scene.ground(map_of(roson=roson))
        for png, cell in ((b"", 0.05), (PNG[:20], 0.05), (PNG, 0.0), (PNG, math.nan)):
            with self.assertRaises(ValueError):
                scene.ground(map_of(grid={"x": 0.0, "resolution": cell, "png": png}))

    def test_points_are_on_the_map_where_the_laser_sees_them(self):
        scan = Scan((0.0, 90.0), (1000, 500))  # ahead, and to its right
        place = schemas.robot.Place
        for laser, robot, expected in (
            (place(), pose(), [(1.0, 0.0), (0.0, 0.5)]),
            (place(x=0.2, y=0.1), pose(), [(1.2, -0.1), (0.2, 0.4)]),
            (place(upside_down=True), pose(), [(1.0, 0.0), (0.0, -0.5)]),
            (place(yaw=math.pi / 2), pose(), [(0.0, -1.0), (0.5, 0.0)]),
            (place(x=0.2), pose(3.0, math.pi / 2), [(3.0, 1.2), (2.5, 0.2)]),
        ):
            found = scene.places(scan, robot, laser)
            for (x, y), (right_x, right_y) in zip(found, expected):
                self.assertAlmostEqual(x, right_x, msg=laser)
                self.assertAlmostEqual(y, right_y, msg=laser)

    def test_a_scan_has_the_pose_of_its_middle(self):
        scan = Scan((), (), 10.1)
        poses = [pose(1.0, 3.0, 10.0), pose(1.2, -3.0, 10.1)]
        found = scene.pose_of(scan, poses)
        self.assertAlmostEqual(found.x_m, 1.1)
        self.assertAlmostEqual(math.cos(found.heading_rad), -1.0, msg="the shorter way")
        self.assertIsNone(scene.pose_of(scan, poses[:1]), "it is not known yet")
        self.assertIsNone(scene.pose_of(Scan((), ()), poses), "no time")
        jump = [pose(1.0, at=10.0), pose(5.0, at=10.1)]
        self.assertEqual(scene.pose_of(scan, jump).x_m, 5.0)

    def test_a_pose_of_low_quality_is_a_guess(self):
        low = MapPose(1.0, 1.0, 0.0, 0.1)
        self.assertFalse(scene.is_sure(low, has_quality=True))
        self.assertTrue(scene.is_sure(low, has_quality=False))
        self.assertFalse(scene.is_sure(MapPose(0.0, 0.0, 0.0, 0.0), has_quality=False))

    def test_everything_is_drawn(self):
        walls = scene.ground(map_of(roson=ROSON))
        whole = Scene(
            map=walls,
            pose=pose(2.0),
            is_sure=True,
            scan=[(4.0, 1.0), (4.0, 2.0)],
            path=[(2.0, 0.0), (3.0, 1.0)],
            targets=[Target(3.0, 1.0)],
        )
        # Three walls, the path, the scan, the robot and the scale.
        self.assertEqual(len(self.shapes(whole, "path")), 7)
        (target,) = self.shapes(whole, "circle")
        self.assertEqual(len(self.shapes(Scene(map=Grid(0.0, 0.0, 0.1, 40, 30, PNG)), "image")), 1)
        # The map is drawn with a border of 0.2 m: 4.4 m are 620 pixels.
        pixels = 620 / 4.4
        self.assertAlmostEqual(float(target.get("cx")), 3.2 * pixels, delta=0.1)
        self.assertAlmostEqual(float(target.get("cy")), 1.2 * pixels, delta=0.1)

    def test_numbers_that_are_not_finite_are_left_out(self):
        broken = Scene(
            map=Walls((((0.0, 0.0), (math.inf, 1.0)),), (0.0,)),
            pose=MapPose(math.nan, 0.0, 0.0, 1.0),
            scan=[(math.nan, 1.0)],
            targets=[Target(math.inf, 1.0), Target(1.0, 1.0, math.nan)],
        )
        self.assertEqual(self.shapes(broken, "circle")[:-1], [])
        for empty in (Scene(), Scan((), ()), Scan((math.nan,), (1000,))):
            self.assertEqual(len(self.shapes(empty, "rect")), 1)

    def test_a_scan_is_drawn_around_its_laser(self):
        scan = Scan((0.0, 90.0), (2000, 1000))
        dots = next(it for it in self.shapes(scan, "path") if "h0" in it.get("d"))
        pixels = 520 / 2 / 2.1
        ahead, right = (
            [float(number) for number in dot.split("h")[0].split()]
            for dot in dots.get("d").split("M")[1:]
        )
        self.assertAlmostEqual(ahead[1], 260 - 2 * pixels, delta=0.1)
        self.assertAlmostEqual(right[0], 260 + pixels, delta=0.1)
        self.assertEqual(scan._repr_html_(), scan.svg())

    def test_the_caption_is_text(self):
        walls = scene.ground(map_of(roson=ROSON))
        shown = Scene(map=walls, missing={"path": "<b>"})._repr_html_()
        self.assertIn("map room &lt;1&gt;<br>no path: &lt;b&gt;", shown)


if __name__ == "__main__":
    unittest.main()
