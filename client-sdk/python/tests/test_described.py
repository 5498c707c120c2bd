"""Tests of clients and drivers that come from descriptions."""

import asyncio
import importlib.util
import inspect
import os
import pydoc
import shutil
import subprocess
import sys
import tempfile
import unittest

import amber
from amber import schemas, stubs
from amber.frame import Header
from amber.interface import OURS
from amber.schemas import DriverMsg
from test_client import PATIENCE, FakeMediator
from test_driver import ENVIRONMENT, SOURCE, Bench

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "..", "..", "..", "proto")

HAS_COMPILER = bool(importlib.util.find_spec("grpc_tools") or shutil.which("protoc"))

#: Has the numbers and names of battery.proto.
LAMP = """
syntax = "proto2";
package lamp;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional string set_color = 140;
  optional bool get_color = 141;
  optional string color = 142;
}
service Lamp {
  option (amber.device) = { type: 211 name: "lamp" };
  rpc SetColor(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "set_color" };
  }
  // The "color", in \\\\LaTeX\\\\.
  rpc Color(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_color" answer: "color" };
  }
}
"""


def load(text, name="lamp.proto"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(text)
        return amber.load_proto(path)


class Surfaces(unittest.TestCase):
    def test_all_classes_have_the_methods_of_the_descriptions(self):
        files = [schemas._SHARED.files[name] for name in schemas._BASE_NAMES]
        self.assertEqual(len(OURS), sum(len(file.service) for file in files))
        for interface in OURS:
            file = schemas._SHARED.files[interface.file]
            rpcs = {rpc.name for service in file.service for rpc in service.method}
            extras = dir(getattr(amber.extras, interface.service, object))
            for module in (amber.proxies, amber.devices):
                made = getattr(module, interface.service)
                methods = {name for name in dir(made) if not name.startswith("_")}
                methods -= set(dir(amber.typed.Typed)) | {"interface", "proxy"}
                camel = {"".join(it.title() for it in name.split("_")): name for name in methods}
                self.assertEqual(rpcs - set(camel), set(), interface.service)
                more = {camel[name] for name in set(camel) - rpcs}
                self.assertEqual(more - set(extras), set(), interface.service)
            if interface.device_type != 0:
                driver = getattr(amber.drivers, f"{interface.service}Driver")
                names = {"".join(it.title() for it in name.split("_")) for name in vars(driver)}
                self.assertEqual(rpcs - names, set(), interface.service)
        for client in (amber.aio.Client, amber.Client):
            for interface in OURS:
                self.assertTrue(callable(getattr(client, interface.name.replace("-", "_"))))

    def test_the_stubs_are_up_to_date(self):
        """If this fails, run scripts/python-schemas."""
        for name, text in stubs.package_stubs().items():
            with open(os.path.join(SOURCE, "amber", name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text, name)

    @unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
    @unittest.skipUnless(os.path.isdir(PROTO), "not in the repository")
    def test_the_comments_match_the_repository(self):
        for interface in OURS:
            file = schemas._SHARED.files[interface.file]
            with open(os.path.join(PROTO, interface.file), encoding="utf-8") as source:
                text = source.read()
            places = file.source_code_info.location
            for line in [line for it in places for line in it.leading_comments.splitlines()]:
                self.assertIn(line.strip(), text)
            self.assertTrue(any(tuple(it.path) == (6, 0, 2, 0) for it in places), interface.file)

    def test_help_has_the_comments_and_signatures(self):
        for made in (amber.proxies.Maestro, amber.devices.Maestro):
            words = pydoc.plain(pydoc.render_doc(made))
            self.assertIn("set_angle(self, servo_address: 'int', angle_deg: 'int')", words)
            self.assertIn("Turns one servo.", words)
            self.assertIn("At most 23.", words)

    def test_old_names_remain(self):
        self.assertIs(amber.proxies.Location, amber.proxies.LocationService)
        self.assertIs(amber.client.Roboclaw, amber.devices.Roboclaw)
        self.assertIs(amber.Pose, amber.MarkerPose)


class Requests(unittest.TestCase):
    """What Amber's own devices are sent, and what their answers mean."""

    def setUp(self):
        self.mediator = FakeMediator()
        self.addCleanup(self.mediator.close)
        self.robot = amber.Client(self.mediator.address, deadline=PATIENCE)
        self.addCleanup(self.robot.close)

    def sent(self, device, work):
        """What a method without an answer sends."""
        work()
        return self.mediator.wait_for(device, DriverMsg.DATA)

    def answering(self, device, answer):
        def reply(ask):
            if ask.type != DriverMsg.DATA:
                return []
            message = DriverMsg(type=DriverMsg.DATA, ackNum=ask.synNum)
            answer(ask, message)
            return [message]

        self.mediator.answers[device] = reply

    def test_bytes(self):
        servos = self.robot.maestro()
        point = self.robot.drive_to_point()
        line = self.robot.pid_follow_trajectory()
        targets = [amber.Target(1.0, 2.0), (3.0, 4.0, 0.5)]
        points = [amber.TrajectoryPoint(1.0, 2.0, 3)]
        configuration = {"loopSleepTime": 5}
        for device, work, expected in [
            ((5, 0), lambda: self.robot.dummy().enable(True), "1001900301"),
            ((5, 0), lambda: self.robot.dummy().set_enable(False), "1001900300"),
            ((5, 0), lambda: self.robot.dummy().message("a"), "10019a030161"),
            ((2, 0), self.robot.roboclaw().stop, "1001a201080800100018002000"),
            ((7, 0), lambda: servos.set_angle(2, 90), "1001b2040408 02105a"),
            ((7, 0), lambda: servos.set_same_angle([0, 1], 45), "1001ba04060a020001102d"),
            ((7, 0), lambda: servos.set_angles({0: 45, 1: 135}), "1001c204090a02000112032d8701"),
            (
                (7, 0),
                lambda: servos.set_angles([(0, 45), (1, 135)]),
                "1001c204090a02000112032d8701",
            ),
            ((7, 0), lambda: servos.set_speed(servo_address=2, speed=20), "1001ca040408021014"),
            ((8, 0), point.stop, "1001800501aa0500"),
            (
                (8, 0),
                lambda: point.set_targets(targets),
                "1001800501aa0536"
                "0a10000000000000f03f0000000000000840"
                "121000000000000000400000000000001040"
                "1a109a9999999999c93f000000000000e03f",
            ),
            (
                (10, 0),
                lambda: line.set_trajectory(points),
                "1001a00601ba06170a0800000000000000401208000000000000f03f1a0103",
            ),
            ((10, 0), line.start, "1001d00601"),
            ((10, 0), line.stop, "1001c80601"),
            (
                (10, 0),
                lambda: line.set_targets([], configuration),
                "1001a00601ba0600c206023805",
            ),
            ((6, 0), lambda: self.robot.location().upload_map("m"), "1001f203016d"),
        ]:
            with self.subTest(expected=expected):
                sent = self.sent(device, work)
                expected = DriverMsg.FromString(bytes.fromhex(expected))
                self.assertEqual(sent, expected)

    def test_streams_by_request(self):
        found = 0
        for interface in OURS:
            device = (interface.device_type, 0)
            for method in [it for it in interface.methods if it.period is not None]:
                found += 1
                client = getattr(self.robot, interface.name.replace("-", "_"))()
                stream = getattr(client, method.name)(200)
                start, stop = self.sent(device, stream.open), self.sent(device, stream.close)
                for message, stops in (start, False), (stop, True):
                    self.assertTrue(method.fits(message), interface.name)
                    self.assertEqual(method.is_stop(message), stops, interface.name)
                self.assertEqual(method.read_arguments(start)["period_ms"], 200)
                # A stream has the period that help names, unless the caller gives another one.
                signature = inspect.signature(getattr(client, method.name))
                stream = getattr(client, method.name)()
                start = self.sent(device, stream.open)
                self.sent(device, stream.close)
                period_ms = signature.parameters["period_ms"].default
                self.assertEqual(method.read_arguments(start)["period_ms"], period_ms)
        self.assertGreaterEqual(found, 2)
        readings = self.robot.ninedof().readings(100, magnetometer=False)
        start, stop = self.sent((1, 0), readings.open), self.sent((1, 0), readings.close)
        for sent, period in (start, "64"), (stop, "00"):
            expected = bytes.fromhex(f"1001620a08{period}1001180120002801")
            self.assertEqual(sent, DriverMsg.FromString(expected))
        with self.assertRaisesRegex(ValueError, "period_ms is at least 1, not 0"):
            self.robot.ninedof().readings(0)

    def test_values_of_the_wrong_kind_are_errors_that_name_the_argument(self):
        for work, words in [
            (lambda: self.robot.roboclaw().drive(5), "motorsCommand: 5 is not a WheelSpeeds"),
            (lambda: self.robot.maestro().set_angle("one", 5), "servoAddress: "),
            (lambda: self.robot.maestro().set_angles([(1, 2, 3)]), "a row has 2 values, not 3"),
            (lambda: self.robot.mediator().change_driver("dummy", "BEND"), "'BEND' is not one of"),
            (lambda: self.robot.maestro().set_angle(1), "angle_deg"),
        ]:
            with self.assertRaisesRegex((TypeError, ValueError), words):
                work()

    def test_several_answers_are_a_named_tuple(self):
        def answer(ask, message):
            self.assertTrue(ask.Extensions[schemas.drive_to_point.getNextTargets])
            targets = message.Extensions[schemas.drive_to_point.targets]
            targets.longitudes.append(1.0)
            targets.latitudes.append(2.0)
            targets.radiuses.append(0.5)
            message.Extensions[schemas.drive_to_point.location].x = 7.0

        self.answering((8, 0), answer)
        targets, location = told = self.robot.drive_to_point().next_targets()
        self.assertEqual(targets, [amber.Target(1.0, 2.0, 0.5)])
        self.assertEqual((location.x_m, told.location.is_known), (7.0, True))

    def test_a_missing_field_is_a_bad_answer_that_names_it(self):
        def answer(ask, message):
            message.Extensions[schemas.dummy.enable] = True

        self.answering((5, 0), answer)
        with self.assertRaisesRegex(amber.BadAnswer, "dummy:0 answered without message"):
            self.robot.dummy().status()

    def test_columns_of_different_lengths_are_a_bad_answer(self):
        def answer(ask, message):
            message.Extensions[schemas.pid_follow_trajectory.targets].times.append(1)

        self.answering((10, 0), answer)
        with self.assertRaisesRegex(amber.BadAnswer, "different lengths"):
            self.robot.pid_follow_trajectory().next_points()

    def test_services_of_the_ninedof(self):
        def answer(ask, message):
            request = ask.Extensions[schemas.ninedof.serviceRequest]
            service = schemas.ninedof.ServiceRequest.CALIBRATE_GYRO
            self.assertEqual((request.service, request.milliseconds), (service, 500))
            finding = message.Extensions[schemas.ninedof.serviceReport].findings.add()
            finding.about, finding.good, finding.text = "gyro", True, "fine"

        self.answering((1, 0), answer)
        told = self.robot.ninedof().calibrate_gyro(500)
        self.assertEqual(told, [amber.Finding("gyro", True, "fine")])

    def test_values_are_written_as_they_are_read(self):
        vector = (1.0, -2.0, 3.0)
        attitude = amber.Attitude(10.0, 1.5, -2.5, True)
        samples = [
            attitude,
            amber.Finding("gyro", False, "no"),
            amber.ImuReading(vector, vector, vector, 5, attitude),
            amber.MapPose(1.0, 2.0, 3.0, 0.5, 6.0),
            amber.Pose(1.0, 2.0, 3.0, 4.0, 5, 6, 7),
            amber.Scan((1.0, 2.0), (3, 4)),
            amber.Sensors(True, False, True),
            amber.WheelSpeeds(1, 2, 3, 4),
        ]
        samples = {type(value): value for value in samples}
        options, used = OURS[0].methods[0].codec.options, set()
        for file in schemas._SHARED.files.values():
            for message in [f"{file.package}.{it.name}" for it in file.message_type]:
                made = amber.values.CLASSES.get(options.get(message, "value") or "")
                # The rows of a table are written by the codec.
                if made is None or hasattr(made, "_columns"):
                    continue
                used.add(made)
                sent = schemas._SHARED.message(message)()
                samples[made]._write(sent)
                self.assertEqual(made._read(sent), samples[made], message)
        self.assertEqual(used, set(samples))


class Mediators(unittest.TestCase):
    """The mediator as a device. (The fake one answers statistics only.)"""

    def test_requests_and_answers(self):
        methods = {method.name: method for method in OURS[0].methods}
        order = methods["change_driver"].order({"device": "hokuyo:1", "action": "STOP"})
        request = order.Extensions[schemas.mediator.request].change_driver
        self.assertEqual((request.device.type, request.device.id, request.action), (4, 1, 2))
        self.assertEqual(methods["change_driver"].timeout_s, 5.0)
        answer = DriverMsg(type=DriverMsg.DATA)
        answer.Extensions[schemas.mediator.reply].done = "it stops"
        self.assertEqual(methods["change_driver"].answer(answer, "mediator:0"), "it stops")

    def test_a_refusal_has_reason_and_hint(self):
        answer = DriverMsg(type=DriverMsg.DATA)
        refusal = answer.Extensions[schemas.mediator.reply].refused
        refusal.reason, refusal.message, refusal.hint = 3, "not from here", "use ssh"
        method = next(it for it in OURS[0].methods if it.name == "reload")
        with self.assertRaisesRegex(amber.Refused, "mediator:0 refused .*not from here") as caught:
            method.answer(answer, "mediator:0")
        error = caught.exception
        self.assertEqual((error.reason, error.hint), ("NOT_ALLOWED", "use ssh"))
        self.assertIsInstance(caught.exception, amber.BadAnswer)


@unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
class Files(unittest.TestCase):
    """Files of users."""

    def test_two_files_with_equal_numbers(self):
        battery = amber.load_proto(os.path.join(HERE, "battery.proto"))
        lamp = load(LAMP)
        self.assertIs(load(LAMP), lamp)
        self.assertIsNot(lamp.DriverMsg, battery.DriverMsg)
        message = lamp.DriverMsg(type=lamp.DriverMsg.DATA)
        message.Extensions[lamp.color] = "red"
        self.assertEqual(message.SerializeToString().hex(), "1001f20803726564")
        other = battery.DriverMsg(type=battery.DriverMsg.DATA)
        other.Extensions[battery.charge].percent = 5
        self.assertEqual(other.SerializeToString().hex(), "1001f208020805")
        # A device of Amber and both of the user, in one program.
        mediator = FakeMediator()
        self.addCleanup(mediator.close)

        def reply(kind, extension, value):
            def answer(ask):
                made = kind(type=kind.DATA, ackNum=ask.synNum)
                if isinstance(value, str):
                    made.Extensions[extension] = value
                else:
                    made.Extensions[extension].percent = value
                return [made] if ask.synNum else []

            return answer

        mediator.answers[(210, 0)] = reply(battery.DriverMsg, battery.charge, 5)
        mediator.answers[(211, 1)] = reply(lamp.DriverMsg, lamp.color, "red")
        with amber.Client(mediator.address, deadline=PATIENCE) as robot:
            self.assertEqual(lamp.Lamp(robot, 1).color(), "red")
            self.assertEqual(battery.BatteryGauge(robot).charge().percent, 5)
            asked = lamp.DriverMsg()
            asked.Extensions[lamp.get_color] = True
            answer = robot.device("211:1").request(asked)
            self.assertEqual(answer.Extensions[lamp.color], "red")

        async def work():
            async with amber.aio.Client(mediator.address, deadline=PATIENCE) as robot:
                charge = await battery.aio.BatteryGauge(robot).charge()
                return await lamp.aio.Lamp(robot, 1).color(), charge.percent

        self.assertEqual(asyncio.run(work()), ("red", 5))

    def test_a_bad_description_is_an_error_that_names_the_place(self):
        for old, new, words in [
            ('answer: "color"', 'answer: "colour"', "method Color: there is no field 'colour'"),
            ("rpc Color", "rpc Ping", "every client already has a method ping"),
            ('option (amber.tell) = { request: "set_color" };', "", "needs one of the options"),
            ("rpc SetColor", "rpc setcolor", ""),
        ]:
            text = LAMP.replace(old, new).replace("package lamp", f"package bad{len(words)}")
            if words:
                with self.assertRaisesRegex(ValueError, words):
                    load(text)
            else:
                load(text)

    def test_a_driver_without_a_method_cannot_be_made(self):
        lamp = load(LAMP)

        class Broken(lamp.LampDriver):
            def color(self):
                return "red"

        with self.assertRaisesRegex(TypeError, "set_color"):
            Broken()

    def test_stubs_of_a_users_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("battery.proto", "battery_driver.py"):
                shutil.copy(os.path.join(HERE, name), folder)
            with open(os.path.join(folder, "lamp.proto"), "w") as file:
                file.write(LAMP)
            with open(os.path.join(folder, "program.py"), "w") as file:
                file.write(PROGRAM)
            environment = dict(ENVIRONMENT)
            if "PYTHONPATH" in environment:
                environment["MYPYPATH"] = SOURCE

            def run(*words):
                return subprocess.run(
                    [sys.executable, *words],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )

            made = run("-m", "amber.stubs", "battery.proto", "lamp.proto")
            self.assertEqual(made.stdout, "wrote battery.pyi\nwrote lamp.pyi\n")
            with open(os.path.join(folder, "battery.pyi")) as file:
                charges = "def charges(self, period_ms: int = 0, left: bool = True)"
                self.assertIn(charges, file.read())
            failed = run("-m", "amber.stubs", "missing.proto")
            self.assertEqual(failed.returncode, 1)
            self.assertEqual(failed.stdout, "error: missing.proto does not exist\n")
            try:
                import mypy  # noqa: F401
            except ImportError:
                return
            checked = run("-m", "mypy", "--strict", "program.py")
            problems = [line for line in checked.stdout.splitlines() if ": error: " in line]
            self.assertEqual(len(problems), 3, checked.stdout)
            self.assertIn('"charge_level"', problems[0])
            self.assertIn("incompatible type", problems[1])


PROGRAM = """
from __future__ import annotations

from typing import TYPE_CHECKING

import amber

if TYPE_CHECKING:
    import battery
    import lamp
else:
    battery = amber.load_proto("battery.proto")
    lamp = amber.load_proto("lamp.proto")


def plain(robot: amber.Client) -> float | None:
    gauge = battery.BatteryGauge(robot, 0)
    gauge.charge_level()
    gauge.set_history([(1, "high")])
    with gauge.volts() as volts:
        return volts.next(1.0)


async def asynchronous(robot: amber.aio.Client) -> str:
    async for volts in battery.aio.BatteryGauge(robot).volts():
        print(volts + 1.0)
    return await lamp.aio.Lamp(robot, 1).color()


class Shade(lamp.LampDriver):
    def color(self) -> str:
        return "red"


amber.serve(Shade())
"""


@unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
class Drivers(unittest.TestCase):
    """The driver of the battery gauge, as the mediator runs it."""

    def setUp(self):
        self.battery = amber.load_proto(os.path.join(HERE, "battery.proto"))
        self.DriverMsg = self.battery.DriverMsg
        program = os.path.join(HERE, "battery_driver.py")
        program = f"import runpy; runpy.run_path({program!r}, run_name='__main__')"
        self.bench = Bench("210:0", program)
        interface = self.battery.aio.BatteryGauge.interface
        self.methods = {method.name: method for method in interface.methods}
        header, message = self.bench.receive()
        self.assertEqual(header, Header())
        self.description = message.Extensions[schemas.mediator.description].files

    def tearDown(self):
        self.bench.guard.cancel()
        self.bench.process.kill()
        self.bench.process.wait()
        for stream in ("stdin", "stdout", "stderr"):
            getattr(self.bench.process, stream).close()

    def send(self, method, number=0, settings=(), clients=(7,), want_outcome=False, **arguments):
        given = {it.name: it.default for it in self.methods[method].arguments}
        message = self.methods[method].order({**given, **arguments}, settings)
        if number:
            message.synNum = number
        if want_outcome:
            message.Extensions[self.battery.aio.BatteryGauge.interface.want_outcome] = True
        self.bench.send(message, clients)

    def receive(self):
        while not self.bench.frames:
            piece = os.read(self.bench.process.stdout.fileno(), 65536)
            if not piece:
                raise EOFError(self.bench.process.stderr.read().decode())
            self.bench.frames += self.bench.reader.feed(piece)
        frame = self.bench.frames.pop(0)
        return frame.header, self.DriverMsg.FromString(frame.message)

    def answer(self, method, **arguments):
        self.send(method, 5, **arguments)
        header, message = self.receive()
        self.assertEqual((header.clients, message.ackNum), ((7,), 5))
        return message, self.methods[method].answer(message, "210:0")

    def test_the_driver_hands_over_its_description(self):
        again = schemas.from_description(self.description)
        self.assertIsNot(again, self.battery)
        interface = again.aio.BatteryGauge.interface
        self.assertEqual([it.name for it in interface.methods], list(self.methods))
        self.assertEqual(interface.docs, "A gauge of a battery.")
        self.assertIn("The charge.", again.BatteryGauge.charge.__doc__)
        short = self.description[:-1]
        no_number = self.description.replace(b"capacity", b"capacitY", 1)
        for invalid in (b"", b"\xff", short, no_number):
            with self.assertRaises(ValueError):
                schemas.from_description(invalid)

    def test_asks(self):
        message, value = self.answer("set_capacity", capacity_kj=500)
        self.assertEqual((value.charge.percent, value.history), (70, None))
        self.send("set_history", history=[(1, 12.0), (2, 11.5)])
        message, value = self.answer("set_capacity", capacity_kj=500)
        self.assertEqual(value.history, [(1, 12.0), (2, 11.5)])
        message, value = self.answer("charge")
        self.assertTrue(message.Extensions[self.battery.get_charge])
        self.assertEqual(value.percent, 80)
        self.assertEqual(self.answer("test")[1], None)
        told = self.answer("test", duration_ms=300, second="QUICK")[1]
        self.assertEqual(told, "300 1 for 7")

    def test_refusals(self):
        with self.assertRaisesRegex(amber.Refused, "210:0 refused the request: too much"):
            self.answer("set_capacity", capacity_kj=5000)

    def test_a_driver_that_fails_says_so(self):
        words = (
            "210:0 refused the request: the driver failed: ZeroDivisionError: .*amber logs 210:0"
        )
        with self.assertRaisesRegex(amber.Refused, words):
            self.answer("set_capacity", capacity_kj=0)
        # It goes on.
        self.assertEqual(self.answer("set_capacity", capacity_kj=500)[1].charge.percent, 70)

    def test_the_outcome_of_a_command(self):
        outcome = self.battery.aio.BatteryGauge.interface.outcome
        for history, refused in [([(1, 2.0)], ""), ([], "it is empty")]:
            self.send("set_history", 6, want_outcome=True, history=history)
            message = self.receive()[1]
            self.assertEqual(message.ackNum, 6)
            self.assertEqual(message.Extensions[outcome].refused, refused)
        # Without that wish, a command has no answer.
        self.send("set_history", 7, history=[])
        self.assertEqual(self.answer("charge")[1].percent, 80)

    def test_a_client_may_ask_whether_commands_have_outcomes(self):
        interface = self.battery.aio.BatteryGauge.interface
        for wish in (True, False):
            ping = self.DriverMsg(type=self.DriverMsg.PING, synNum=8)
            if wish:
                ping.Extensions[interface.want_outcome] = True
            self.bench.send(ping)
            pong = self.receive()[1]
            self.assertEqual((pong.type, pong.ackNum), (self.DriverMsg.PONG, 8))
            self.assertEqual(pong.HasExtension(interface.outcome), wish)

    def test_a_stream_by_subscribe(self):
        self.bench.send(self.DriverMsg(type=self.DriverMsg.SUBSCRIBE))
        for _ in range(3):
            header, message = self.receive()
            self.assertEqual((header.clients, message.ackNum), ((7,), 0))
            self.assertEqual(self.methods["volts"].published(message), 12.5)

    def test_a_stream_by_request_serves_each_client_in_its_own_way(self):
        start, stop = self.methods["charges"].start, self.methods["charges"].stop
        self.send("charges", settings=start, period_ms=10)
        self.send("charges", settings=start, clients=(9,), period_ms=15, left=False)
        seen = set()
        while len(seen) < 2:
            header, message = self.receive()
            seen.add((header.clients, self.methods["charges"].published(message).percent))
        self.assertEqual(seen, {((7,), 60), ((9,), 40)})
        self.send("charges", settings=stop)
        self.bench.send(self.DriverMsg(type=self.DriverMsg.CLIENT_DIED), (9,))
        self.send("charge", 8)
        while self.receive()[1].ackNum != 8:
            pass
        code, words = self.bench.end()
        self.assertEqual((code, words), (0, "gone 9\n"))
        self.assertEqual(self.bench.frames, [])

    def test_unknown_and_incomplete_requests_are_logged(self):
        message = self.DriverMsg(type=self.DriverMsg.DATA)
        message.Extensions[self.battery.self_test] = True
        self.bench.send(message)
        self.assertEqual(self.answer("charge")[1].percent, 80)
        self.assertIn("ignored an unknown request", self.bench.end()[1])


if __name__ == "__main__":
    unittest.main()
