"""Tests of a client whose commands are refused, whose network changes, or which others use."""

import asyncio
import os
import socket
import threading
import time
import unittest

import amber
from amber import schemas
from amber.schemas import DriverMsg
from amber.udp import UdpTransport
from test_client import PATIENCE, FakeMediator, scan, speeds


def refused(why):
    """The report of a driver, by the command."""

    def report(command):
        message = DriverMsg(type=DriverMsg.DATA, ackNum=command.synNum)
        outcome = message.Extensions[schemas.mediator.outcome]
        outcome.SetInParent()
        if why is not None:
            outcome.refused = why
        return [message] if command.Extensions[schemas.mediator.want_outcome] else []

    return report


class Base(unittest.TestCase):
    def setUp(self):
        self.mediator = FakeMediator()
        self.addCleanup(self.mediator.close)
        self.mediator.answers[(0, 0)] = lambda ask: (
            [DriverMsg(type=DriverMsg.PONG, ackNum=ask.synNum)]
            if ask.type == DriverMsg.PING
            else []
        )

    def client(self, **settings):
        robot = amber.Client(self.mediator.address, **settings)
        self.addCleanup(robot.close)
        return robot


class Commands(Base):
    def setUp(self):
        super().setUp()
        robot = self.client()
        robot.mediator().ping()
        self.servos = robot.maestro()
        self.device = (self.servos.address.type, self.servos.address.id)

    def test_a_refusal_reaches_its_caller(self):
        self.mediator.answers[self.device] = refused("servo 3 has no angle 4500")
        with self.assertRaisesRegex(amber.Refused, "maestro:0 refused .*servo 3 has no angle 4500"):
            self.servos.set_angle(3, 4500)
        self.mediator.answers[self.device] = refused(None)
        self.servos.set_angle(3, 45)

    def test_a_missing_driver_is_an_error_of_its_caller(self):
        self.mediator.answers[self.device] = lambda ask: [
            DriverMsg(type=DriverMsg.DRIVER_DIED, ackNum=ask.synNum)
        ]
        with self.assertRaises(amber.DriverDied):
            self.servos.set_angle(3, 45)

    def test_a_driver_that_reports_nothing_is_waited_for_once(self):
        self.servos.set_angle(3, 45)
        began = time.monotonic()
        for _ in range(20):
            self.servos.set_angle(3, 45)
        self.assertLess(time.monotonic() - began, 20 * 0.25 / 2)

    def test_without_waiting_a_refusal_is_passed_on_later(self):
        found = []
        passed_on = threading.Event()

        def on_refusal(error):
            found.append(error)
            passed_on.set()

        may_answer = threading.Event()

        def late(command):
            may_answer.wait(PATIENCE)
            return refused("no such servo")(command)

        self.mediator.answers[self.device] = lambda ask: (
            late(ask) if ask.type == DriverMsg.DATA else []
        )
        self.servos.without_waiting(on_refusal).set_angle(99, 1)
        # It has returned, and the driver has not answered.
        self.assertEqual(found, [])
        may_answer.set()
        self.assertTrue(passed_on.wait(PATIENCE))
        self.assertIn("no such servo", str(found[0]))
        with self.assertLogs("amber", "WARNING") as logs:
            self.servos.without_waiting().set_angle(99, 1)
            while not logs.output:
                time.sleep(0.01)
        self.assertIn("no such servo", logs.output[0])

    def test_a_mediator_that_never_answers_gets_the_bytes_of_before(self):
        self.mediator.answers.clear()
        self.client().maestro().set_angle(3, 45)
        command = self.mediator.wait_for(self.device, DriverMsg.DATA)
        self.assertFalse(command.HasExtension(schemas.mediator.want_outcome))

    def test_a_command_that_cannot_be_sent_is_an_error(self):
        # A link-local address without its network card is no destination.
        with amber.Client("fe80::1") as robot:
            with self.assertRaisesRegex(amber.Unreachable, "no way to the mediator fe80::1"):
                robot.roboclaw().drive(amber.WheelSpeeds.all(100))
            with self.assertRaises(amber.Unreachable):
                robot.roboclaw().without_waiting().drive(amber.WheelSpeeds.all(100))


class Addresses(unittest.TestCase):
    def test_the_scope_of_an_address_is_kept(self):
        async def look_up():
            return await UdpTransport("[fe80::1%lo]:7", None)._look_up()

        [(family, address)] = asyncio.run(look_up())
        self.assertEqual(family, socket.AF_INET6)
        self.assertEqual((address[1], address[3]), (7, socket.if_nametoindex("lo")))

    def test_an_unknown_host_is_an_error_of_amber(self):
        with self.assertRaisesRegex(amber.Unreachable, "cannot find the mediator 1.2.3.4.5"):
            amber.Client("1.2.3.4.5")


class Loops(Base):
    def test_a_loop_that_cannot_watch_sockets_is_an_error_with_a_remedy(self):
        class Loop(asyncio.SelectorEventLoop):
            """Like the default one of Windows."""

            def add_reader(self, *_):
                raise NotImplementedError

        loop = Loop()
        self.addCleanup(loop.close)
        client = amber.aio.Client(self.mediator.address)
        with self.assertRaisesRegex(RuntimeError, "SelectorEventLoop"):
            loop.run_until_complete(client.connect())
        loop.run_until_complete(client.close())


class Moves(Base):
    def test_a_client_that_has_moved_announces_itself_and_subscribes_again(self):
        robot = self.client()
        subscription = robot.hokuyo().scans().open()
        self.mediator.wait_for((0, 0), DriverMsg.PING)
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
        self.mediator.answered.get(timeout=PATIENCE)
        before = self.mediator.client

        async def move():
            transport = robot._aio._transport
            family, address = transport._mediator
            transport._take_first([(family, address)])

        robot._run(move())
        self.mediator.wait_for((0, 0), DriverMsg.PING)
        self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
        self.assertNotEqual(self.mediator.client, before)
        self.mediator.send((4, 0), scan(700))
        self.assertEqual(subscription.next(PATIENCE).nearest().distance_mm, 700)


class Sharing(Base):
    def joined(self, work):
        results = []

        def run():
            try:
                results.append(work())
            except amber.AmberError as error:
                results.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, results

    def test_threads_that_read_or_ask_return_when_the_client_is_closed(self):
        for _ in range(10):
            robot = amber.Client(self.mediator.address, deadline=PATIENCE)
            waiting = [self.joined(lambda: list(robot.hokuyo().scans())) for _ in range(3)]
            waiting += [self.joined(lambda: robot.hokuyo().scans().next()) for _ in range(3)]
            asking = [self.joined(lambda: robot.roboclaw().speeds()) for _ in range(3)]
            self.mediator.wait_for((4, 0), DriverMsg.SUBSCRIBE)
            robot.close()
            for thread, _ in waiting + asking:
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())
            for _, results in asking:
                self.assertIsInstance(results[0], amber.Closed)

    def test_a_child_does_not_use_the_client_of_its_parent(self):
        robot = self.client()
        # The mediator notices what the child sends.
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                robot.roboclaw().drive(amber.WheelSpeeds.all(0))
            except amber.Closed as error:
                os.write(writer, str(error).encode())
            robot.close()
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as words:
            self.assertIn("parent of this process", words.read())
        os.waitpid(child, 0)
        # The client of the parent still works.
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 5)]
        self.assertEqual(robot.roboclaw().speeds().front_left_mm_s, 5)

    def test_a_client_works_in_a_second_event_loop(self):
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 5)]
        robot = amber.aio.Client(self.mediator.address, deadline=PATIENCE)

        async def connect_and_ask(close=False):
            await robot.connect()
            robot.hokuyo().scans().open()
            speeds = await robot.roboclaw().speeds()
            if close:
                await robot.close()
            return speeds.front_left_mm_s

        async def ask():
            return await robot.roboclaw().speeds()

        self.assertEqual(asyncio.run(connect_and_ask()), 5)
        with self.assertRaisesRegex(amber.Closed, "event loop of the client has ended"):
            asyncio.run(ask())
        self.assertEqual(asyncio.run(connect_and_ask(close=True)), 5)

    def test_numbers_of_requests_begin_again_after_the_last(self):
        self.mediator.answers[(2, 0)] = lambda ask: [speeds(ask.synNum, 5)]
        robot = self.client()
        robot._aio._last_number = 0xFFFF_FFFE
        for _ in range(3):
            self.assertEqual(robot.roboclaw().speeds().front_left_mm_s, 5)


if __name__ == "__main__":
    unittest.main()
