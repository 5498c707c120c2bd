"""Tests of drivers as processes with stdin and stdout, as the mediator runs them."""

import os
import signal
import subprocess
import sys
import threading
import unittest

import amber
from amber import schemas
from amber.frame import FrameReader, Header, encode
from amber.schemas import DriverMsg

PATIENCE = 20
#: The folder of the package under test: the source, or where a wheel was installed.
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(amber.__file__)))
INSTALLED = "site-packages" in SOURCE
#: Lets programs in other folders import it. What is installed is found without.
ENVIRONMENT = {**os.environ, **({} if INSTALLED else {"PYTHONPATH": SOURCE})}

DRIVER = """
import sys, time
import amber
from amber import schemas

class Test(amber.Driver):
    period = 0.05
    count = 0

    def request(self, request):
        text = request.message.Extensions[schemas.dummy.message]
        if text == "crash":
            raise ValueError("a mistake")
        if text == "slow":
            time.sleep(1.0)
        if text == "print":
            print("a stray line")
        if text.startswith("trouble"):
            self.trouble(text)
        if text == "recovered":
            self.recovered()
        if text == "laser":
            text = str(self.robot.hokuyo().scan().nearest().distance_mm)
        answer = amber.DriverMsg()
        answer.Extensions[schemas.dummy.message] = f"{text} from {request.client}"
        return answer

    def publish(self):
        self.count += 1
        message = amber.DriverMsg()
        message.Extensions[schemas.dummy.message] = f"number {self.count}"
        return message

    def client_gone(self, client):
        print("gone", client, file=sys.stderr, flush=True)

    def stop(self):
        print("stopped", file=sys.stderr, flush=True)

amber.serve(Test())
"""


#: Prints in several ways before it serves.
EARLY = """
import os, subprocess, sys
import amber
print("from print")
os.write(1, b"from a library in C\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
""" + DRIVER.replace("import amber\n", "", 1)

#: Has no mediator of this project as its parent.
EARLY_AND_ALONE = EARLY.replace("import amber\n", "import amber; amber.claim_stdout()\n", 1)

#: A program that is not a driver, but has a driver as its parent.
CLIENT = "import amber; print('for the parent')"


class Bench:
    def __init__(self, device="dummy:0", driver=DRIVER):
        environment = dict(ENVIRONMENT)
        environment.pop("AMBER_DEVICE", None)
        if device is not None:
            environment["AMBER_DEVICE"] = device
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", driver],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Drivers lead a process group, as under the mediator.
            start_new_session=True,
        )
        self.guard = threading.Timer(PATIENCE, self.process.kill)
        self.guard.start()
        self.reader = FrameReader()
        self.frames = []

    def send(self, message, clients=(7,), header=None):
        frame = encode(header or Header(clients=clients), message.SerializeToString())
        self.process.stdin.write(frame)
        self.process.stdin.flush()

    def receive(self):
        while not self.frames:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                raise EOFError("the driver has ended")
            self.frames += self.reader.feed(piece)
        frame = self.frames.pop(0)
        return frame.header, DriverMsg.FromString(frame.message)

    def ask(self, text, number=1, clients=(7,)):
        message = DriverMsg(type=DriverMsg.DATA, synNum=number)
        message.Extensions[schemas.dummy.message] = text
        self.send(message, clients)

    def end(self):
        self.process.stdin.close()
        words = self.process.stderr.read().decode()
        self.process.stdout.close()
        code = self.process.wait(PATIENCE)
        self.guard.cancel()
        self.process.stderr.close()
        return code, words


def text(message):
    return message.Extensions[schemas.dummy.message]


class Drivers(unittest.TestCase):
    def setUp(self):
        self.bench = Bench()

    def tearDown(self):
        self.bench.guard.cancel()
        self.bench.process.kill()
        self.bench.process.wait()
        for stream in ("stdin", "stdout", "stderr"):
            getattr(self.bench.process, stream).close()

    def test_answers(self):
        self.bench.ask("hello", 5, (7, 9))
        header, message = self.bench.receive()
        self.assertEqual(header, Header(clients=(7, 9)))
        self.assertEqual((message.type, message.ackNum), (DriverMsg.DATA, 5))
        self.assertEqual(text(message), "hello from 7")

    def test_output_before_serve_goes_to_the_log(self):
        for device, driver in [("dummy:0", EARLY), (None, EARLY_AND_ALONE)]:
            self.tearDown()
            self.bench = Bench(device, driver)
            self.bench.ask("hello", 5)
            self.assertEqual(text(self.bench.receive()[1]), "hello from 7")
            code, words = self.bench.end()
            self.assertEqual(code, 0)
            for line in ["from print", "from a library in C", "from a child"]:
                self.assertIn(line, words.splitlines())

    def test_the_output_of_a_client_started_by_a_driver_is_unchanged(self):
        said = subprocess.run(
            [sys.executable, "-c", CLIENT],
            env={**ENVIRONMENT, "AMBER_DEVICE": "dummy:0"},
            stdout=subprocess.PIPE,
            check=True,
        )
        self.assertEqual(said.stdout, b"for the parent\n")

    def test_a_request_without_a_number_gets_no_answer(self):
        message = DriverMsg(type=DriverMsg.DATA)
        message.Extensions[schemas.dummy.message] = "quiet"
        self.bench.send(message)
        self.bench.ask("next", 6)
        self.assertEqual(self.bench.receive()[1].ackNum, 6)

    def test_ping_is_answered_while_a_request_takes_long(self):
        self.bench.ask("slow", 1)
        self.bench.send(DriverMsg(type=DriverMsg.PING, synNum=2))
        self.bench.send(DriverMsg(type=DriverMsg.PING))
        numbers = []
        for _ in range(3):
            message = self.bench.receive()[1]
            numbers.append((message.type, message.ackNum, message.HasField("ackNum")))
        self.assertEqual(
            numbers,
            [(DriverMsg.PONG, 2, True), (DriverMsg.PONG, 0, False), (DriverMsg.DATA, 1, True)],
        )

    def test_exceptions_and_garbage_do_not_end_it(self):
        self.bench.ask("crash", 1)
        self.bench.process.stdin.write(encode(Header(clients=(7,)), b"\xff\xff"))
        self.bench.process.stdin.write(encode(Header(clients=(7,)), b"\x10\x63"))
        self.bench.process.stdin.write(encode(Header(clients=(7,)), b""))
        self.bench.ask("print", 2)
        self.assertEqual(self.bench.receive()[1].ackNum, 2)
        code, words = self.bench.end()
        self.assertEqual(code, 0)
        self.assertIn("ValueError: a mistake", words)
        self.assertIn("a stray line", words)

    def test_a_client_that_asks_for_the_outcome_learns_that_the_driver_failed(self):
        message = DriverMsg(type=DriverMsg.DATA, synNum=3)
        message.Extensions[schemas.dummy.message] = "crash"
        message.Extensions[schemas.mediator.want_outcome] = True
        self.bench.send(message)
        answer = self.bench.receive()[1]
        refused = answer.Extensions[schemas.mediator.outcome].refused
        self.assertEqual(answer.ackNum, 3)
        self.assertRegex(refused, "the driver failed: ValueError: a mistake; `amber logs dummy:0`")

    def test_subscribers(self):
        self.bench.send(DriverMsg(type=DriverMsg.SUBSCRIBE), (7,))
        self.bench.send(DriverMsg(type=DriverMsg.SUBSCRIBE), (9,))
        while True:
            header, message = self.bench.receive()
            self.assertTrue(message.HasField("ackNum"))
            self.assertEqual(message.ackNum, 0)
            if header.clients == (7, 9):
                break
        self.bench.send(DriverMsg(type=DriverMsg.CLIENT_DIED), (7,))
        while self.bench.receive()[0].clients != (9,):
            pass
        self.bench.send(DriverMsg(type=DriverMsg.UNSUBSCRIBE), (9,))
        self.bench.ask("last", 3)
        while self.bench.receive()[1].ackNum != 3:
            pass
        code, words = self.bench.end()
        self.assertEqual((code, words.split()), (0, ["gone", "7", "stopped"]))

    def test_it_calls_other_devices_over_its_own_pipe(self):
        self.bench.ask("laser", 4)
        header, message = self.bench.receive()
        self.assertEqual((header.device_type, message.type), (0, DriverMsg.PING))
        header, message = self.bench.receive()
        self.assertEqual(header, Header(4, 0))
        answer = DriverMsg(type=DriverMsg.DATA, ackNum=message.synNum)
        answer.Extensions[schemas.hokuyo.scan].angles.append(0.0)
        answer.Extensions[schemas.hokuyo.scan].distances.append(321)
        self.bench.send(answer, header=Header(4, 0))
        header, message = self.bench.receive()
        self.assertEqual(text(message), "321 from 7")

    def health(self):
        """The health reports before its answer."""
        said = []
        while True:
            header, message = self.bench.receive()
            if message.HasField("ackNum"):
                return said
            self.assertEqual(header, Header())
            health = message.Extensions[schemas.mediator.health]
            said.append((health.state, health.text))

    def test_trouble_is_reported_when_it_changes(self):
        ok, trouble = schemas.mediator.Health.OK, schemas.mediator.Health.TROUBLE
        for words, expected in [
            ("recovered", []),
            ("trouble: no\n cable", [(trouble, "trouble: no cable")]),
            ("trouble: no cable", []),
            ("trouble " + 300 * "x", [(trouble, "trouble " + 192 * "x")]),
            ("recovered", [(ok, "")]),
            ("recovered", []),
        ]:
            self.bench.ask(words)
            self.assertEqual(self.health(), expected, words)

    def test_the_original_mediator_gets_no_reports(self):
        self.tearDown()
        self.bench = Bench(device=None)
        self.bench.ask("trouble")
        self.assertEqual(self.health(), [])

    def test_it_ends_with_stdin(self):
        self.bench.ask("hello", 1)
        self.bench.receive()
        self.assertEqual(self.bench.end(), (0, "stopped\n"))

    def test_sigterm(self):
        self.bench.ask("hello", 1)
        self.bench.receive()
        self.bench.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.bench.process.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
