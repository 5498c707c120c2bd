"""Tests of a robot with a fake mediator on the loopback interface."""

import asyncio
import os
import pickle
import socket
import sys
import time
import unittest
from unittest import mock

import amber
from amber import schemas
from amber.schemas import DriverMsg
from test_client import PATIENCE, FakeMediator
from test_scene import ROSON

MEDIATOR, WHEELS, LASER, LOCATION, DRIVE, ROBOT = (
    amber.Device.parse(name)
    for name in ("0:0", "wheels:1", "laser:0", "location:0", "drive-to-point:0", "robot:0")
)

PATIENT = {"connect_timeout": PATIENCE, "deadline": PATIENCE}


def data(ask, **extensions):
    """An answer: ``module__field`` with its value, or with the fields of its message."""
    reply = DriverMsg(type=DriverMsg.DATA, ackNum=ask.synNum)
    for name, value in extensions.items():
        module, field = name.split("__")
        extension = getattr(getattr(schemas, module), field)
        if isinstance(value, dict):
            reply.Extensions[extension].MergeFrom(extension.message_type._concrete_class(**value))
        else:
            reply.Extensions[extension] = value
    return reply


class Robots(unittest.TestCase):
    def setUp(self):
        self.mediator = FakeMediator()
        self.addCleanup(self.mediator.close)
        self.answer_pings(lambda ask: True)

    def answer_pings(self, does_it):
        self.mediator.answers[MEDIATOR] = lambda ask: (
            [DriverMsg(type=DriverMsg.PONG, ackNum=ask.synNum)]
            if ask.type == DriverMsg.PING and does_it(ask)
            else []
        )

    def robot(self, **options):
        robot = amber.Robot(self.mediator.address, **{**PATIENT, **options})
        self.addCleanup(robot.close)
        return robot

    def answer_for_a_robot(self):
        """Answers of a robot in a room, whose wheels have the number 1."""
        shape = {
            "laser": {"x": 0.1},
            "roles": [{"role": "wheels", "type": WHEELS.type, "id": WHEELS.id}],
        }
        laser = {"angles": [0.0, 90.0], "distances": [1000, 500]}

        def location(ask):
            if ask.HasExtension(schemas.location.get_map):
                return [data(ask, location__map={"roson": ROSON})]
            if ask.HasExtension(schemas.location.get_location):
                return [data(ask, location__currentLocation={"x": 2.0, "y": 1.0, "p": 0.9})]
            return [data(ask, location__quality={"decided": True})]

        def drive(ask):
            if ask.HasExtension(schemas.drive_to_point.getProgress):
                progress = {"path": {"xs": [2.0, 3.0], "ys": [1.0, 1.0]}}
                parts = {"progress": progress, "location": {}, "order": {}}
                return [data(ask, **{f"drive_to_point__{it}": parts[it] for it in parts})]
            targets = {"longitudes": [3.0], "latitudes": [1.0], "radiuses": [0.2]}
            return [data(ask, drive_to_point__targets=targets, drive_to_point__location={})]

        self.mediator.answers.update({
            ROBOT: lambda ask: [data(ask, robot__shape=shape)],
            LASER: lambda ask: [data(ask, hokuyo__scan=laser)],
            LOCATION: location,
            DRIVE: drive,
        })

    def test_it_waits_until_the_mediator_answers(self):
        asked = []

        def third(ask):
            asked.append(ask)
            return len(asked) == 3

        self.answer_pings(third)
        robot = self.robot()
        self.assertGreaterEqual(len(asked), 3)
        self.assertEqual(repr(robot), f"<amber.Robot at {self.mediator.address}>")
        self.assertEqual(repr(robot.wheels(1)), "<Roboclaw roboclaw:1>")

    def test_a_silent_mediator_is_an_error_with_a_hint(self):
        self.answer_pings(lambda ask: False)
        with self.assertRaisesRegex(amber.Unreachable, "no mediator answers at .* 0.3 s") as caught:
            self.robot(connect_timeout=0.3)
        error = pickle.loads(pickle.dumps(caught.exception))
        for one in (caught.exception, error):
            self.assertIn("AMBER_MEDIATOR", one.hint)
            if sys.version_info >= (3, 11):
                self.assertEqual(one.__notes__, [f"hint: {one.hint}"])
        # It may come later.
        self.robot(connect_timeout=0)

    def test_a_port_where_nobody_listens_is_an_error_at_once(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        with self.assertRaisesRegex(amber.Unreachable, "no mediator is listening at") as caught:
            amber.Robot(address, connect_timeout=PATIENCE)
        self.assertIn("amber demo", caught.exception.hint)

    def test_the_environment_says_where_it_is(self):
        with mock.patch.dict(os.environ, {"AMBER_MEDIATOR": self.mediator.address}):
            with amber.Robot(connect_timeout=PATIENCE) as robot:
                self.assertEqual(robot.mediator_address, self.mediator.address)

    def test_it_tells_used_devices_that_it_leaves(self):
        with self.robot() as robot:
            robot.wheels().without_waiting().stop()
        self.mediator.wait_for((2, 0), DriverMsg.CLIENT_DIED)
        with self.assertRaises(amber.Closed):
            robot.wheels().stop()

    def test_devices_have_roles(self):
        robot = self.robot()
        self.answer_for_a_robot()
        self.assertEqual(robot.with_role("wheels"), WHEELS)
        self.assertIsNone(robot.with_role("arm"))
        self.mediator.answers[ROBOT] = lambda ask: [DriverMsg(type=DriverMsg.DRIVER_DIED)]
        self.assertIsNone(robot.with_role("wheels"))

    def test_the_lease_of_the_wheels_is_taken_once_and_released(self):
        robot = self.robot()
        self.answer_for_a_robot()
        asked = []

        def wheels(ask):
            asked.append(ask.Extensions[schemas.motion.lease_request].action)
            return [data(ask, motion__motion_state={"yours": True})]

        self.mediator.answers[WHEELS] = wheels
        with robot.take_wheels("me", period=10.0) as lease:
            self.assertIsNone(lease.lost)
        action = schemas.motion.LeaseRequest
        self.assertEqual(asked, [action.TAKE, action.RELEASE])

    def test_a_lost_lease_can_be_taken_again(self):
        robot = self.robot()
        self.answer_for_a_robot()
        action, asked = schemas.motion.LeaseRequest, []

        def wheels(ask):
            asked.append(ask.Extensions[schemas.motion.lease_request].action)
            is_lost = asked.count(action.TAKE) == 1 and asked[-1] == action.KEEP
            state = {"yours": False, "refused": "another"} if is_lost else {"yours": True}
            return [data(ask, motion__motion_state=state)]

        self.mediator.answers[WHEELS] = wheels
        lease = robot.take_wheels("me", period=0.2)
        end = time.monotonic() + PATIENCE
        while lease.lost is None and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(lease.lost, "another")
        self.assertIsNone(lease.take().lost)
        lease.release()
        self.assertEqual(asked.count(action.TAKE), 2)
        self.assertEqual(asked[-1], action.RELEASE)

    def test_a_notebook_shows_it_also_while_an_event_loop_runs(self):
        self.answer_for_a_robot()

        async def notebook():
            return robot._repr_html_()

        with self.robot() as robot:
            shown = asyncio.run(notebook())
        self.assertIn("<svg ", shown)
        self.assertIn("at x 2.00 m, y 1.00 m, 0°", shown)
        self.assertIn("1 target left", shown)
        self.assertNotIn("no ", shown.split("<figcaption>")[1])
        self.assertIn("closed", robot._repr_html_())

    def test_a_scene_says_what_is_missing(self):
        self.answer_for_a_robot()
        died = lambda ask: [DriverMsg(type=DriverMsg.DRIVER_DIED)]  # noqa: E731
        with self.robot() as robot:
            scene = robot.scene()
            (ahead, right) = scene.scan
            self.assertAlmostEqual(ahead[0], 3.1)
            self.assertAlmostEqual(right[1], 1.5)
            self.assertEqual((list(scene.path)[1], scene.missing), ((3.0, 1.0), {}))
            self.mediator.answers[ROBOT] = self.mediator.answers[DRIVE] = died
            scene = robot.scene()
            self.assertEqual(sorted(scene.missing), ["laser", "path"])
            self.mediator.answers[LOCATION] = died
            scene = robot.scene()
            self.assertEqual(sorted(scene.missing), ["laser", "map", "path", "pose"])
            self.assertIn("no map: location:0 is unavailable", scene._repr_html_())

    def test_the_form_for_asyncio(self):
        self.answer_for_a_robot()

        async def program():
            async with amber.aio.Robot(self.mediator.address, **PATIENT) as robot:
                self.assertEqual(await robot.with_role("wheels"), WHEELS)
                self.assertIn("await robot.scene()", robot._repr_html_())
                return await robot.scene()

        scene = asyncio.run(program())
        self.assertTrue(scene.is_sure)
        self.assertIn("<svg ", scene._repr_html_())

    def test_a_cancelled_connection_is_closed(self):
        self.answer_pings(lambda ask: False)

        async def program():
            robot = amber.aio.Robot(self.mediator.address, connect_timeout=PATIENCE)
            task = asyncio.ensure_future(robot.connect())
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            with self.assertRaises(amber.Closed):
                await robot.wheels().stop()

        asyncio.run(program())


if __name__ == "__main__":
    unittest.main()
