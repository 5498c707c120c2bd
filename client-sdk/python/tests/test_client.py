"""Tests of a client with a fake mediator on the loopback interface."""

import asyncio
import queue
import socket
import threading
import time
import unittest

import amber
from amber import schemas
from amber.frame import Header, decode, encode
from amber.schemas import DriverMsg

PATIENCE = 20  # seconds after which a test gives up


class FakeMediator:
    """Stores received messages, and sends prepared answers."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.seen = queue.Queue()
        self.answers = {}
        self.joins = 0
        self.uptime_ms = 1000
        self.client_id = 3
        self.answered = queue.Queue()
        self.client = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                datagram, self.client = self.socket.recvfrom(65536)
            except OSError:
                return
            frame = decode(datagram)
            message = DriverMsg.FromString(frame.message)
            # Each request says what its client joins, and most tests are about the rest.
            self.joins = message.joins.piece_bytes
            message.ClearField("joins")
            device = (frame.header.device_type, frame.header.device_id)
            request = message.Extensions[schemas.mediator.request]
            if device == (0, 0) and request.HasField("get_statistics"):
                reply = DriverMsg(type=DriverMsg.DATA, ackNum=message.synNum)
                statistics = reply.Extensions[schemas.mediator.reply].statistics
                statistics.uptime_ms = self.uptime_ms
                statistics.client_id = self.client_id
                self.send(device, reply)
                self.answered.put(self.client_id)
                continue
            self.seen.put((device, message))
            for reply in self.answers.get(device, lambda _: ())(message):
                self.send(device, reply)

    def send(self, device, message):
        self.socket.sendto(encode(Header(*device), message.SerializeToString()), self.client)

    def device_up(self, device):
        event = DriverMsg(type=DriverMsg.DATA, ackNum=0)
        up = event.Extensions[schemas.mediator.event]
        up.kind = schemas.mediator.Event.DEVICE_UP
        up.device.type, up.device.id = device
        self.send((0, 0), event)

    def wait_for(self, device, kind):
        while True:
            seen, message = self.seen.get(timeout=PATIENCE)
            if seen == device and message.type == kind:
                return message

    def close(self):
        self.socket.close()


def speeds(number, value):
    message = DriverMsg(type=DriverMsg.DATA, ackNum=number)
    message.Extensions[schemas.roboclaw.currentSpeed].frontLeftSpeed = value
    return message


def scan(distance):
    message = DriverMsg(type=DriverMsg.DATA, ackNum=0)
    message.Extensions[schemas.hokuyo.scan].angles.append(0.0)
    message.Extensions[schemas.hokuyo.scan].distances.append(distance)
    return message


class Clients(unittest.TestCase):
    def setUp(self):
        self.mediator = FakeMediator()
        self.addCleanup(self.mediator.close)
        self.robot = amber.Client(self.mediator.address, deadline=PATIENCE)
        self.addCleanup(self.robot.close)

    def sent(self, name):
        """What the client has sent to a device since the last time."""
        device = amber.Device.parse(name)
        pong = DriverMsg.PONG
        self.mediator.answers[(device.type, device.id)] = lambda ask: (
            [DriverMsg(type=pong, ackNum=ask.synNum)] if ask.type == DriverMsg.PING else []
        )
        self.robot.device(name).ping()
        found = self.until(None, name)
        self.mediator.answers.clear()
        return found

    def until(self, last, name):
        """What the client sends to a device, until a message or a PING."""
        device = amber.Device.parse(name)
        found = []
        while not found or found[-1] != last:
            seen, message = self.mediator.seen.get(timeout=PATIENCE)
            if seen != (device.type, device.id):
                continue
            if message.type == DriverMsg.PING:
                break
            found.append(message)
        return found

    def test_commands_say_how_long_they_hold_if_that_is_wanted(self):
        forward, valid_ms = amber.WheelSpeeds.all(100), schemas.motion.valid_ms
        wheels = self.robot.roboclaw()
        for device, expected in ((wheels, None), (wheels.with_validity(0.3), 300)):
            device.drive(forward)
            (command,) = self.sent("roboclaw")
            told = command.Extensions[valid_ms] if command.HasExtension(valid_ms) else None
            self.assertEqual(told, expected)
        # An errand is not limited.
        self.robot.drive_to_point().with_validity(0.3).set_targets([(1.0, 2.0, 0.1)])
        (command,) = self.sent("drive-to-point")
        self.assertFalse(command.HasExtension(valid_ms))

    def orders(self, states):
        """A drive-to-point whose order has these states, one for each question. Returns the ids."""
        ids, states = [], iter(states)

        def device(message):
            reply = DriverMsg(type=DriverMsg.DATA, ackNum=message.synNum)
            point = schemas.drive_to_point
            order = reply.Extensions[point.order]
            if message.HasExtension(point.go):
                ids.append(message.Extensions[point.go].id)
            elif message.HasExtension(point.getProgress):
                reply.ClearExtension(point.order)
                reply.Extensions[point.progress].remaining = 0.0
                reply.Extensions[point.location].x = 1.5
                return [reply]
            elif not message.HasExtension(point.orderId):
                return []
            order.id, order.reason = ids[-1], "because"
            state = next(states)
            if state is None:
                return []
            order.state = schemas.order.Order.State.Value(state)
            return [reply]

        self.mediator.answers[(8, 0)] = device
        return ids

    def test_drive_to_waits_for_the_end_of_its_order(self):
        drive = self.robot.drive_to_point()
        self.orders(["RUNNING", "RUNNING", "ARRIVED"])
        end = drive.drive_to(amber.Target(1.5, 2.0))
        self.assertEqual((end.arrived, end.pose.x_m), (True, 1.5))
        ids = self.orders(["RUNNING", "REPLACED"])
        end = drive.drive_to(amber.Target(1.5, 2.0))
        self.assertEqual((end.arrived, end.state, end.reason), (False, "REPLACED", "because"))
        self.assertIsNone(end.pose)
        self.assertTrue(2**32 <= ids[0] < 2**53)
        self.orders(["UNKNOWN"])
        self.assertIn("restarted", drive.drive_to(amber.Target(1.5, 2.0)).reason)

    def test_lost_answers_about_an_order_are_asked_for_again(self):
        drive = self.robot.drive_to_point().with_deadline(0.2)
        # The first answer is lost; a driver of this version answers the question that follows.
        asked = self.orders([None, "RUNNING", None, None, "ARRIVED"])
        known = self.mediator.answers[(8, 0)]

        def device(message):
            if message.HasExtension(schemas.drive_to_point.getConfiguration):
                reply = DriverMsg(type=DriverMsg.DATA, ackNum=message.synNum)
                reply.Extensions[schemas.drive_to_point.configuration].maxSpeed = 300.0
                return [reply]
            return known(message)

        self.mediator.answers[(8, 0)] = device
        self.assertTrue(drive.drive_to(amber.Target(1.5, 2.0)).arrived)
        self.assertEqual(len(set(asked)), 1, "the same order again")
        # A driver of the original system never answers.
        self.orders([None] * 3)
        known = self.mediator.answers[(8, 0)]
        self.mediator.answers[(8, 0)] = device
        with self.assertRaisesRegex(amber.Refused, "knows no orders with ids"):
            drive.drive_to(amber.Target(1.5, 2.0))

    def test_a_lease_is_kept_and_its_refusal_names_the_holder(self):
        asked, holder = [], None

        def device(message):
            if not message.HasExtension(schemas.motion.lease_request):
                return []
            asked.append(message.Extensions[schemas.motion.lease_request].action)
            reply = DriverMsg(type=DriverMsg.DATA, ackNum=message.synNum)
            state = reply.Extensions[schemas.motion.motion_state]
            state.yours = holder is None
            if holder is not None:
                state.refused = f"{holder} holds the lease of this device"
            return [reply]

        self.mediator.answers[(2, 0)] = device
        action = schemas.motion.LeaseRequest
        with self.robot.device("roboclaw").lease("me", period=0.2) as lease:
            end = time.monotonic() + PATIENCE
            while asked.count(action.KEEP) < 3 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertIsNone(lease.lost)
        self.assertEqual((asked[0], asked[-1]), (action.TAKE, action.RELEASE))
        self.assertEqual(set(asked[1:-1]), {action.KEEP})
        holder = "amber goto"
        with self.assertRaisesRegex(amber.Refused, "amber goto holds the lease"):
            self.robot.device("roboclaw").lease("me").take()

    def test_it_announces_itself(self):
        self.mediator.wait_for((0, 0), DriverMsg.PING)

    def test_an_answer_is_matched_with_its_request(self):
        # A late answer, a duplicate, and one of another device do not match.
        self.mediator.answers[(2, 0)] = lambda ask: [
            speeds(ask.synNum + 1000, 1),
            speeds(ask.synNum, 2),
            speeds(ask.synNum, 3),
        ]
        self.assertEqual(self.robot.roboclaw().speeds().front_left_mm_s, 2)
        self.assertEqual(self.robot.roboclaw().speeds().front_left_mm_s, 2)
        self.assertGreaterEqual(self.robot.late_answers, 3)

    def test_no_answer(self):
        with self.assertRaisesRegex(amber.NoAnswer, "roboclaw:0 within 0.05 s"):
            self.robot.roboclaw().with_deadline(0.05).speeds()

    def test_a_driver_that_died(self):
        self.mediator.answers[(2, 1)] = lambda ask: [DriverMsg(type=DriverMsg.DRIVER_DIED)]
        with self.assertRaises(amber.DriverDied):
            self.robot.roboclaw(1).speeds()

    def test_a_death_with_a_number_ends_only_that_request(self):
        self.mediator.answers[(2, 1)] = lambda ask: [
            DriverMsg(type=DriverMsg.DRIVER_DIED, ackNum=ask.synNum + 500),
            speeds(ask.synNum, 4),
        ]
        self.assertEqual(self.robot.roboclaw(1).speeds().front_left_mm_s, 4)

    def test_an_answer_that_does_not_fit(self):
        self.mediator.answers[(4, 0)] = lambda ask: [speeds(ask.synNum, 1)]
        with self.assertRaises(amber.BadAnswer):
            self.robot.hokuyo().scan()

    def test_a_forgotten_client_subscribes_again(self):
        subscription = self.robot.hokuyo().scans()
        self.addCleanup(subscription.close)
        reader = threading.Thread(target=lambda: list(subscription), daemon=True)
        reader.start()
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
        self.mediator.answered.get(timeout=PATIENCE)
        self.mediator.client_id = 8
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)

    def test_it_answers_the_mediator(self):
        self.mediator.wait_for((0, 0), DriverMsg.PING)
        self.mediator.send((0, 0), DriverMsg(type=DriverMsg.PING, synNum=42))
        self.assertEqual(self.mediator.wait_for((0, 0), DriverMsg.PONG).ackNum, 42)

    def test_garbage_is_counted(self):
        self.mediator.wait_for((0, 0), DriverMsg.PING)
        self.mediator.socket.sendto(b"\xff\xff\xff", self.mediator.client)
        self.mediator.socket.sendto(encode(Header(2, 0), b"\xff"), self.mediator.client)
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 2)]
        self.robot.roboclaw().speeds()
        self.assertEqual(self.robot._aio.malformed, 2)

    def test_a_subscription_starts_and_ends(self):
        self.mediator.answers[(4, 0)] = lambda ask: (
            [scan(500), scan(600)] if ask.type == DriverMsg.SUBSCRIBE else []
        )
        found = []
        for one in self.robot.hokuyo().scans():
            found.append(one.nearest().distance_mm)
            if len(found) == 2:
                break
        self.assertEqual(found, [500, 600])
        self.mediator.wait_for((4, 0), DriverMsg.UNSUBSCRIBE)

    def test_two_listeners_are_one_subscription(self):
        one = self.robot.hokuyo().scans().open()
        two = self.robot.hokuyo().scans().open()
        # After a second SUBSCRIBE, a driver of the original system sends everything twice.
        self.assertEqual(self.sent("hokuyo"), [DriverMsg(type=DriverMsg.SUBSCRIBE)])
        self.mediator.send((4, 0), scan(700))
        for listener in (one, two):
            self.assertEqual(listener.next(PATIENCE).nearest().distance_mm, 700)
        one.close()
        self.mediator.send((4, 0), scan(800))
        self.assertEqual(two.next(PATIENCE).nearest().distance_mm, 800)
        self.assertEqual(self.sent("hokuyo"), [])
        two.close()
        self.mediator.wait_for((4, 0), DriverMsg.UNSUBSCRIBE)

    def test_two_kinds_of_stream_of_a_device_are_independent(self):
        subscribe, unsubscribe = (
            DriverMsg(type=kind) for kind in (DriverMsg.SUBSCRIBE, DriverMsg.UNSUBSCRIBE)
        )

        def by_request(freq):
            message = DriverMsg(type=DriverMsg.DATA)
            wanted = message.Extensions[schemas.ninedof.subscribeAction]
            wanted.freq = freq
            wanted.accel = wanted.gyro = wanted.magnet = wanted.extended = True
            return message

        stop = 0
        readings = self.robot.ninedof().readings(200).open()
        everything = self.robot.device("ninedof").messages().open()
        self.assertEqual(self.sent("ninedof"), [by_request(200), subscribe])
        # Another period is a change of one of them.
        faster = self.robot.ninedof().readings(50).open()
        self.assertEqual(self.sent("ninedof"), [by_request(stop), by_request(50)])
        readings.close()
        self.assertEqual(self.sent("ninedof"), [])
        # A new driver gets both, and so does one that may have forgotten this client.
        self.mediator.device_up((1, 0))
        both = [by_request(50), subscribe]
        self.assertEqual(self.until(subscribe, "ninedof"), both)
        self.mediator.client_id = 8
        renewed = [by_request(stop), by_request(50), unsubscribe, subscribe]
        self.assertEqual(self.until(subscribe, "ninedof"), renewed)
        everything.close()
        self.assertEqual(self.sent("ninedof"), [unsubscribe])
        faster.close()
        self.assertEqual(self.sent("ninedof"), [by_request(stop)])

    def test_a_slow_reader_misses_the_oldest_values(self):
        scans = self.robot.hokuyo().scans().open()
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
        for number in range(amber.aio.BUFFER + 5):
            self.mediator.send((4, 0), scan(1000 + number))
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 2)]
        self.robot.roboclaw().speeds()  # all scans have arrived by now
        self.assertEqual(scans.next(PATIENCE).nearest().distance_mm, 1005)
        self.assertEqual(scans.missed, 5)

    def test_a_restarted_driver_is_subscribed_again(self):
        self.robot.hokuyo().scans().open()
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
        self.mediator.wait_for((0, 0), DriverMsg.SUBSCRIBE)
        self.mediator.device_up((4, 0))
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)

    def test_closing_announces_the_end(self):
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 2)]
        self.robot.roboclaw().speeds()
        self.robot.close()
        self.mediator.wait_for((2, 0), DriverMsg.CLIENT_DIED)
        self.mediator.wait_for((0, 0), DriverMsg.CLIENT_DIED)
        with self.assertRaises(amber.Closed):
            self.robot.roboclaw().speeds()

    def test_periods_are_in_the_message(self):
        self.robot.ninedof().readings(50, magnetometer=False).open()
        order = self.mediator.wait_for((1, 0), DriverMsg.DATA)
        action = order.Extensions[schemas.ninedof.subscribeAction]
        self.assertEqual((action.freq, action.accel, action.magnet), (50, True, False))

    def test_new_drivers_report_more_motion_data(self):
        def reading(ask):
            message = DriverMsg(type=DriverMsg.DATA, ackNum=ask.synNum)
            data = message.Extensions[schemas.ninedof.sensorData]
            asked = ask.Extensions[schemas.ninedof.dataRequest]
            data.gyro.xAxis, data.gyro.yAxis, data.gyro.zAxis = 0, 0, -40
            if asked.extended:
                milli = data.gyroMilli
                milli.xAxis, milli.yAxis, milli.zAxis = 18, 0, -40250
                data.attitude.headingDeg = 87.5
                data.attitude.headingCalibrated = True
            return [message]

        self.mediator.answers[(1, 0)] = reading
        told = self.robot.ninedof().data(accelerometer=False)
        self.assertEqual(told.rate_deg_s, (0.018, 0.0, -40.25))
        self.assertEqual(told.attitude, amber.Attitude(87.5, 0.0, 0.0, True))
        # An older driver does not report whether it is calibrated.
        message = schemas.ninedof.SensorData()
        message.attitude.headingDeg = 137.0
        self.assertFalse(amber.ImuReading._read(message).attitude.heading_calibrated)
        self.assertIsNone(told.acceleration_mg)

    def test_asyncio(self):
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 2)]
        self.mediator.answers[(4, 0)] = lambda ask: (
            [scan(500)] if ask.type == DriverMsg.SUBSCRIBE else []
        )

        async def work():
            async with amber.aio.Client(self.mediator.address, deadline=PATIENCE) as robot:
                asked = [robot.roboclaw().speeds() for _ in range(10)]
                for answer in await asyncio.gather(*asked):
                    self.assertEqual(answer.front_left_mm_s, 2)
                async for one in robot.hokuyo().scans():
                    return one.nearest().distance_mm

        self.assertEqual(asyncio.run(asyncio.wait_for(work(), PATIENCE)), 500)


class Addresses(unittest.TestCase):
    def test_host_and_port(self):
        for text, expected in [
            ("robot", ("robot", 26233)),
            ("robot:1", ("robot", 1)),
            ("[::1]:7", ("::1", 7)),
            ("[::1]", ("::1", 26233)),
            ("::1", ("::1", 26233)),
        ]:
            self.assertEqual(amber.udp.host_and_port(text), expected)
        with self.assertRaises(ValueError):
            amber.udp.host_and_port("robot:x")

    def test_no_mediator_is_listening(self):
        unused = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        unused.close()
        with amber.Client(f"127.0.0.1:{port}", deadline=PATIENCE) as robot:
            with self.assertRaises(amber.Unreachable):
                robot.dummy().status()


class Values(unittest.TestCase):
    def test_scans(self):
        one = amber.Scan((-90.0, 0.0, 90.0), (300, 0, 400))
        self.assertEqual([p.distance_mm for p in one.points()], [300, 400])
        self.assertEqual(one.nearest().angle_deg, -90.0)
        self.assertEqual(one.nearest(0, 180).distance_mm, 400)
        self.assertIsNone(one.nearest(-10, 10))
        x, y = one.nearest(0, 180).x_y_m
        self.assertAlmostEqual(x, 0.0)
        self.assertAlmostEqual(y, 0.4)  # to the right
        with self.assertRaises(amber.BadAnswer):
            amber.Scan((1.0,), ())


if __name__ == "__main__":
    unittest.main()
