"""The decisions of the host, without a network."""

import json
import math
import random
import subprocess
import sys
import unittest
from types import SimpleNamespace
from typing import Any, Optional

from amber_lekiwi_host.messages import (
    JOINTS,
    MAX_COMMAND_BYTES,
    Command,
    Malformed,
    Unknown,
    Velocity,
    joints_of,
    observation,
    read_command,
    velocity_of,
)
from amber_lekiwi_host.problems import Problems
from amber_lekiwi_host.seat import FREE_S, VALIDITY_S, Change, Freshness, Seat

STILL = {"x.vel": 0.0, "y.vel": 0.0, "theta.vel": 0.0}


def command(found: Any) -> Command:
    return read_command([json.dumps(found).encode()])


class Commands(unittest.TestCase):
    def test_units_are_those_of_amber(self) -> None:
        found = command({"arm_wrist_roll.pos": -12.5, "x.vel": 0.1, "y.vel": -0.2, "theta.vel": 30})
        self.assertEqual(found, Command({"wrist_roll": -12.5}, Velocity(100.0, -200.0, 30.0)))
        self.assertEqual(command(STILL), Command({}, Velocity(0.0, 0.0, 0.0)))
        self.assertEqual(command({"arm_gripper.pos": 50}), Command({"gripper": 50.0}, None))
        everything = {f"arm_{name}.pos": 1.0 for name in JOINTS} | STILL | {"unknown": "x"}
        self.assertEqual(set(command(everything).joints), set(JOINTS))

    def test_what_no_base_can_be_told_becomes_slower_the_same_way(self) -> None:
        for given, wanted in [
            ((20.0, 10.0, 0.0), (10_000.0, 5_000.0, 0.0)),
            ((0.0, -40.0, 720.0), (0.0, -10_000.0, 180.0)),
            ((1e300, 0.0, 0.0), (10_000.0, 0.0, 0.0)),
            ((0.1, 0.0, -7200.0), (50.0, 0.0, -3600.0)),
        ]:
            found = command(dict(zip(STILL, given))).velocity
            assert found is not None
            for value, expected in zip(found, wanted):
                self.assertAlmostEqual(value, expected, msg=str(given))

    def test_malformed_commands_are_told(self) -> None:
        for data, why in [
            (b"", "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"[" * 50_000, "not JSON"),
            (b"[1]", "not a JSON object"),
            (b"{}", "neither a joint nor a velocity"),
            (b'{"other": 1}', "neither a joint nor a velocity"),
            (b'{"x.vel": 1, "y.vel": 0}', "theta.vel missing"),
            (b'{"arm_gripper.pos": 1, "y.vel": 0}', "x.vel and theta.vel missing"),
            (b'{"arm_gripper.pos": NaN}', "arm_gripper.pos is not a finite number"),
            (b'{"arm_gripper.pos": -Infinity}', "arm_gripper.pos is not a finite number"),
            (b'{"arm_gripper.pos": "1"}', "arm_gripper.pos is not a finite number"),
            (b'{"arm_gripper.pos": true}', "arm_gripper.pos is not a finite number"),
            (b'{"arm_gripper.pos": null}', "arm_gripper.pos is not a finite number"),
            (b'{"arm_gripper.pos": 1' + b"0" * 400 + b"}", "not a finite number"),
            (b'{"x.vel": 1e999, "y.vel": 0, "theta.vel": 0}', "x.vel is not a finite number"),
            (b" " * (MAX_COMMAND_BYTES + 1), "may have"),
        ]:
            with self.subTest(data[:60]), self.assertRaisesRegex(Malformed, why):
                read_command([data])
        with self.assertRaisesRegex(Malformed, "2 parts"):
            read_command([b"{}", b""])

    def test_no_bytes_have_another_effect(self) -> None:
        seed = 7
        chance = random.Random(seed)
        good = json.dumps({"arm_gripper.pos": 1.5, "x.vel": -0.1, "y.vel": 0, "theta.vel": 9}).encode()
        accepted = 0
        for _ in range(2_000):
            data = bytearray(good)
            for _ in range(chance.randrange(4)):
                at = chance.randrange(len(data))
                data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
            try:
                found = read_command([bytes(data)])
            except Malformed:
                continue
            accepted += 1
            numbers = [*found.joints.values(), *(found.velocity or ())]
            self.assertTrue(all(map(math.isfinite, numbers)), f"seed {seed}: {bytes(data)!r}")
        self.assertGreater(accepted, 100)

    def test_a_message_has_one_part(self) -> None:
        with self.assertRaisesRegex(Malformed, "2 parts"):
            read_command([b"{}", b""])


class Observations(unittest.TestCase):
    def test_the_first_part_names_the_cameras_of_the_others(self) -> None:
        joints = {name: float(number) for number, name in enumerate(JOINTS)}
        parts = observation(joints, Velocity(100.0, -50.0, 3.0), {"front": b"jpeg", "wrist": b""})
        self.assertEqual(parts[1:], [b"jpeg", b""])
        found = json.loads(parts[0])
        self.assertEqual(found.pop("_cams"), ["front", "wrist"])
        self.assertEqual(found.pop("x.vel"), 0.1)
        self.assertEqual(found.pop("y.vel"), -0.05)
        self.assertEqual(found.pop("theta.vel"), 3.0)
        self.assertEqual(found, {f"arm_{name}.pos": float(it) for it, name in enumerate(JOINTS)})

    def test_an_unknown_joint_is_no_zero(self) -> None:
        state = SimpleNamespace(joints=[joint(name, 1.5) for name in JOINTS])
        self.assertEqual(joints_of(state), dict.fromkeys(JOINTS, 1.5))
        state.joints[2] = joint("elbow_flex", None, "does not answer")
        with self.assertRaisesRegex(Unknown, "elbow_flex does not answer"):
            joints_of(state)
        state.joints = state.joints[:1]
        with self.assertRaisesRegex(Unknown, "no joint shoulder_lift, but shoulder_pan"):
            joints_of(state)

    def test_the_velocity_is_the_measured_one(self) -> None:
        measured = SimpleNamespace(forward=1.0, left=2.0, turn=3.0)
        self.assertEqual(velocity_of(SimpleNamespace(measured=measured)), Velocity(1.0, 2.0, 3.0))


def joint(name: str, position: Optional[float], problem: str = "") -> Any:
    has = {"position": position is not None}
    return SimpleNamespace(
        name=name, position=position, problem=problem, HasField=lambda field: has[field]
    )


class Seats(unittest.TestCase):
    def test_the_first_client_that_commands_has_the_seat(self) -> None:
        seat = Seat()
        self.assertIsNone(seat.changed(0.0))
        self.assertTrue(seat.claims(0.0, 1))
        self.assertFalse(seat.claims(0.1, 2))
        self.assertTrue(seat.claims(0.2, 1))
        self.assertEqual(seat.holder, 1)

    def test_a_silent_client_pauses_once_and_then_loses_the_seat(self) -> None:
        seat = Seat()
        seat.claims(10.0, 1)
        self.assertIsNone(seat.changed(10.0 + VALIDITY_S - 0.01))
        paused, free = 10.01 + VALIDITY_S, 10.01 + FREE_S
        self.assertIs(seat.changed(paused), Change.PAUSED)
        self.assertIsNone(seat.changed(paused))
        self.assertFalse(seat.claims(paused, 2), "the seat is not free yet")
        self.assertIs(seat.changed(free), Change.FREE)
        self.assertIsNone(seat.changed(free))
        self.assertTrue(seat.claims(free, 2))

    def test_a_command_ends_the_pause(self) -> None:
        seat = Seat()
        seat.claims(0.0, 1)
        self.assertIs(seat.changed(VALIDITY_S), Change.PAUSED)
        seat.claims(1.0, 1)
        self.assertIsNone(seat.changed(1.1))
        self.assertIs(seat.changed(1.01 + VALIDITY_S), Change.PAUSED)

    def test_a_client_that_leaves_frees_the_seat(self) -> None:
        seat = Seat()
        seat.claims(0.0, 1)
        seat.left(2)
        self.assertIsNone(seat.changed(0.0))
        seat.left(1)
        self.assertIs(seat.changed(0.0), Change.FREE)
        self.assertIsNone(seat.holder)


class Old(unittest.TestCase):
    def test_commands_count_as_they_come(self) -> None:
        freshness = Freshness(0.0)
        for turn in range(1, 300):
            self.assertTrue(freshness.turn(turn / 100, 1 if turn % 3 == 0 else 0))

    def test_a_pause_may_end_with_one_command(self) -> None:
        freshness = Freshness(0.0)
        freshness.turn(0.1, 1)
        for turn in range(2, 50):
            freshness.turn(turn / 10, 0)
        self.assertTrue(freshness.turn(5.0, 1))

    def test_commands_that_have_waited_are_old(self) -> None:
        freshness = Freshness(0.0)
        freshness.turn(0.1, 1)
        for turn in range(2, 50):
            freshness.turn(turn / 10, 0)
        self.assertFalse(freshness.turn(5.0, 64), "the network was away")
        self.assertFalse(freshness.turn(5.1, 20))
        self.assertFalse(freshness.turn(5.4, 1))
        self.assertTrue(freshness.turn(5.5, 1))

    def test_a_host_that_was_stopped_does_not_trust_what_has_come(self) -> None:
        freshness = Freshness(0.0)
        self.assertTrue(freshness.turn(0.1, 1))
        self.assertFalse(freshness.turn(3.0, 2))
        self.assertFalse(freshness.turn(3.1, 1))
        for turn in range(32, 36):
            freshness.turn(turn / 10, 1)
        self.assertTrue(freshness.turn(3.6, 1))

    def test_a_fast_client_is_not_old(self) -> None:
        freshness = Freshness(0.0)
        freshness.turn(0.01, 1)
        for turn in range(2, 100):
            self.assertTrue(freshness.turn(turn / 100, 10))


class Lines(unittest.TestCase):
    def test_a_condition_is_said_when_it_begins_changes_and_ends(self) -> None:
        problems = Problems()
        self.assertEqual(problems.condition(0.0, "arm:0", "is away"), "arm:0: is away")
        for tenth in range(1, 50):
            self.assertIsNone(problems.condition(tenth / 10, "arm:0", "is away"))
            self.assertEqual(problems.over(tenth / 10), [])
        self.assertEqual(problems.condition(5.0, "arm:0", "is cold"), "arm:0: is cold")
        self.assertEqual(problems.over(7.9), [])
        self.assertEqual(problems.over(8.0), ["arm:0: works again"])
        self.assertEqual(problems.over(8.1), [])
        self.assertEqual(problems.condition(8.2, "arm:0", "is cold"), "arm:0: is cold")

    def test_some_ends_are_silent(self) -> None:
        problems = Problems()
        problems.condition(0.0, "base:0", "refuses", says_end=False)
        self.assertEqual(problems.over(9.0), [])
        again = problems.condition(9.1, "base:0", "refuses", says_end=False)
        self.assertEqual(again, "base:0: refuses")

    def test_events_are_counted_between_their_lines(self) -> None:
        problems = Problems()
        self.assertEqual(problems.event(0.0, "malformed", "one"), "malformed: one")
        for second in range(1, 10):
            self.assertIsNone(problems.event(float(second), "malformed", "more"))
        line = problems.event(10.0, "malformed", "last")
        self.assertEqual(line, "malformed: last (9 more before)")


class Imports(unittest.TestCase):
    def test_the_host_needs_neither_lerobot_nor_numpy(self) -> None:
        program = (
            "import sys, amber_lekiwi_host.__main__;"
            "print({'lerobot', 'numpy', 'cv2', 'torch'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("set()\n", ""))


if __name__ == "__main__":
    unittest.main()
