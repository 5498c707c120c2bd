"""Tests of a robot with a fake mediator on the loopback interface."""

import asyncio
import os
import pickle
import socket
import sys
import tempfile
import time
import unittest
from unittest import mock

import amber
from amber import schemas
from amber.schemas import DriverMsg
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from test_client import PATIENCE, FakeMediator
from test_described import HAS_COMPILER
from test_motion import PROTO
from test_scene import ROSON

MEDIATOR, WHEELS, LASER, LOCATION, DRIVE, ROBOT = (
    amber.Device.parse(name)
    for name in ("0:0", "wheels:1", "laser:0", "location:0", "drive-to-point:0", "robot:0")
)

UP, FAILED = schemas.mediator.DriverState.UP, schemas.mediator.DriverState.FAILED

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

    def answer_for_halts(self, drivers, descriptions=None):
        """Answers of a mediator with drivers: a device and a state for each. Returns the devices
        that are asked with their requests, and fields that all their answers have."""
        asked, told = [], {}
        mediator = schemas.mediator

        def answer(ask):
            request = ask.Extensions[mediator.request]
            reply = DriverMsg(type=DriverMsg.DATA, ackNum=ask.synNum)
            if ask.type == DriverMsg.PING:
                return [DriverMsg(type=DriverMsg.PONG, ackNum=ask.synNum)]
            if request.HasField("list_drivers"):
                found = reply.Extensions[mediator.reply].drivers
                found.total = len(drivers)
                for device, state in drivers[request.list_drivers.skip :][:2]:
                    driver = found.drivers.add(state=state)
                    driver.devices.add(type=device.type, id=device.id)
                return [reply]
            if request.HasField("get_description"):
                files = (descriptions or {}).get(request.get_description.type)
                if files is None:
                    refused = reply.Extensions[mediator.reply].refused
                    refused.reason, refused.message = mediator.Refusal.FAILED, "it has sent none"
                else:
                    reply.Extensions[mediator.reply].description.files = files
                return [reply]
            return []

        def device(which):
            def answer(ask):
                if ask.HasExtension(schemas.motion.halt_request):
                    asked.append((which, ask.Extensions[schemas.motion.halt_request]))
                state = {"halt": {"by": "me"}, **told}
                return [data(ask, motion__motion_state=state)]

            return answer

        self.mediator.answers[MEDIATOR] = answer
        for which, _ in drivers:
            self.mediator.answers[which] = device(which)
        return asked, told

    def test_a_halt_reaches_all_that_move(self):
        names = ("wheels:1", "dummy:0", "drive-to-point:0", "202:0")
        drivers = [(amber.Device.parse(name), UP) for name in names]
        drivers.append((amber.Device.parse("wheels:2"), FAILED))
        robot = self.robot()
        asked, _ = self.answer_for_halts(drivers)
        self.assertEqual(robot.halt("me"), [WHEELS, DRIVE])
        self.assertEqual(sorted(device for device, _ in asked), [WHEELS, DRIVE])
        self.assertTrue(all(it.halt and it.name == "me" for _, it in asked))
        state = robot.device(WHEELS).motion_state()
        self.assertEqual(state, amber.MotionState(None, False, (), "me"))
        asked.clear()
        self.assertEqual(robot.release_halt("you"), [WHEELS, DRIVE])
        self.assertTrue(all(not it.halt and it.name == "you" for _, it in asked))
        # One that fails does not keep the others from it.
        asked.clear()
        self.mediator.answers[WHEELS] = lambda ask: [
            DriverMsg(type=DriverMsg.DRIVER_DIED, ackNum=ask.synNum)
        ]
        with self.assertRaises(amber.DriverDied):
            robot.halt("me")
        self.assertEqual([device for device, _ in asked], [DRIVE])
        del drivers[2], drivers[0]
        with self.assertRaisesRegex(amber.AmberError, "no running driver has a device that moves"):
            robot.halt("me")

    @unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
    def test_a_halt_reaches_devices_of_users_by_their_descriptions(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "crane.proto")
            with open(path, "w") as file:
                file.write(PROTO)
            files = FileDescriptorSet(file=schemas.compile_files(path)).SerializeToString()
        crane = amber.Device(230, 1)
        robot = self.robot()
        asked, _ = self.answer_for_halts([(crane, UP)], {crane.type: files})
        self.assertEqual(robot.halt("me"), [crane])
        self.assertEqual([device for device, _ in asked], [crane])

    def test_a_halt_of_one_device_tells_who_holds_its_lease(self):
        robot = self.robot()
        _, told = self.answer_for_halts([(WHEELS, UP)])
        wheels = robot.device(WHEELS)
        told.update(holder={"client_id": 7}, waiting=[{"client_id": 8, "name": "you"}])
        self.assertEqual(wheels.halt("me"), amber.MotionState("client 7", False, ("you",), "me"))
        told.update(refused="client 7 holds the lease of this device")
        with self.assertRaisesRegex(amber.Refused, "roboclaw:1 refused the request: client 7 hol"):
            wheels.release_halt("me")
        self.mediator.answers[WHEELS] = lambda ask: [data(ask)]
        with self.assertRaisesRegex(amber.BadAnswer, "without the motion state"):
            wheels.motion_state()

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
