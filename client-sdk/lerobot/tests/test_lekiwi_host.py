"""LeRobot's own LeKiwiClient, the host, and a simulated LeKiwi: AMBER is the program `amber`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from typing import Any, Callable, Optional

import amber
import zmq
from lerobot.robots.lekiwi import LeKiwiClient, LeKiwiClientConfig
from test_demo import AMBER, PATIENCE_S, Demo, knows, wait_for

STILL = {"x.vel": 0.0, "y.vel": 0.0, "theta.vel": 0.0}
#: The base stops so soon after the last command.
STOPS_MS = 600


class Host:
    """The host as a process, and what it says."""

    def __init__(self, mediator: str, *options: str) -> None:
        command = [sys.executable, "-m", "amber_lekiwi_host", "--mediator", mediator]
        command += ["--ports", "0,0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        found = self.says(r"port (\d+) for commands, port (\d+) for observations")
        self.ports = int(found[1]), int(found[2])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            print(f"    host: {line}", end="")
            self.lines.append(line)

    def says(self, pattern: str, after: int = 0) -> Any:
        """Waits for a line, among those after the first ones."""

        def found() -> Any:
            matches = (re.search(pattern, line) for line in self.lines[after:])
            return next((match for match in matches if match), None)

        return wait_for(f"line {pattern!r} of the host", found)

    def end(self, signal_number: int = signal.SIGTERM) -> int:
        self.process.send_signal(signal_number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        return code


class Client(LeKiwiClient):
    """LeRobot's own client, with what a test needs around it: it sends commands as a program does."""

    def __init__(self, host: Host) -> None:
        commands, observations = host.ports
        config = LeKiwiClientConfig(
            remote_ip="127.0.0.1",
            port_zmq_cmd=commands,
            port_zmq_observations=observations,
            connect_timeout_s=int(PATIENCE_S),
        )
        super().__init__(config)
        self.connect()
        self.sent_s = 0.0

    def observed(self, *cameras: str) -> Any:
        """An observation with pictures of these cameras. On a busy machine, the first ones are late."""

        def found() -> Any:
            observation = self.get_observation()
            return set(cameras) <= set(observation) and observation

        return wait_for(f"pictures of {cameras}", found)

    def until(self, what: str, action: dict[str, float], found: Callable[[Any], Any]) -> Any:
        """Sends an action 30 times a second until an observation fits."""

        def is_found() -> Any:
            self.send_action(action)
            self.sent_s = time.time()
            observation = self.get_observation()
            return bool(observation) and found(observation)

        return wait_for(what, is_found)


class LeKiwiHost(unittest.TestCase):
    demo: Demo
    other: amber.Robot

    @classmethod
    def setUpClass(cls) -> None:
        cls.demo = Demo()
        cls.other = amber.Robot(cls.demo.address)
        wait_for("arm", lambda: knows(cls.other.arm(), "state"))
        wait_for("base", lambda: knows(cls.other.base(), "state"))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.other.close()
        cls.demo.close()

    def setUp(self) -> None:
        print()

    def host(self, *options: str) -> Host:
        host = Host(self.demo.address, *options)
        self.addCleanup(lambda: host.process.poll() is None and host.end())
        return host

    def client(self, host: Host) -> Client:
        client = Client(host)
        self.addCleanup(lambda: client.is_connected and client.disconnect())
        return client

    def base(self) -> Any:
        """What the base is told and does, by another program than the host."""
        return repeated(self.other.base().state)

    def drives(self, _: Any = None) -> bool:
        """A client may still have observations that are older."""
        return drives(self.other)

    def stands(self) -> bool:
        state = self.base()
        return is_still(state.told) and is_still(state.measured)

    def test_the_client_observes_drives_and_moves_the_arm(self) -> None:
        host = self.host("--camera", "front=camera:0", "--camera", "wrist=camera:0")
        client = self.client(host)
        observation = client.observed("front", "wrist")
        self.assertEqual(set(client.observation_features) - set(observation), set())
        self.assertEqual(observation["front"].shape, (480, 640, 3))
        self.assertEqual(observation["wrist"].shape, (480, 640, 3))
        self.assertGreater(observation["front"].std(), 1.0, "the picture shows something")

        before = travelled_m(self.demo)
        ahead = {**STILL, "x.vel": 0.1}
        client.until("base that drives", ahead, lambda it: abs(it["x.vel"] - 0.1) < 0.02)
        client.until("way of 20 cm", ahead, lambda _: travelled_m(self.demo) > before + 0.2)
        left = {**STILL, "y.vel": 0.1}
        client.until("base that drives left", left, lambda it: abs(it["y.vel"] - 0.1) < 0.02)
        turn = {**STILL, "theta.vel": -30.0}
        client.until("base that turns", turn, lambda it: abs(it["theta.vel"] + 30) < 5)

        posture = {**STILL, "arm_elbow_flex.pos": 15.0, "arm_gripper.pos": 1000.0}

        def is_there(found: Any) -> bool:
            elbow, gripper = found["arm_elbow_flex.pos"], found["arm_gripper.pos"]
            return abs(elbow - 15) < 1 and abs(gripper - 100) < 2

        client.until("arm that is there", posture, is_there)
        client.disconnect()
        host.says("other programs may move base:0 and arm:0 now")
        self.assertEqual(host.end(), 0)
        self.assertRegex(host.lines[-1], r"\d+ commands, 0 malformed, 0 of other clients")

    def test_the_program_of_the_page_drives(self) -> None:
        host = self.host()
        here = os.path.dirname(__file__)
        with open(os.path.join(here, "..", "host", "README.md")) as page:
            program = page.read().partition("```python\n")[2].partition("```")[0]
        commands, observations = host.ports
        ports = f", port_zmq_cmd={commands}, port_zmq_observations={observations}"
        program = program.replace('="127.0.0.1"', f'="127.0.0.1", connect_timeout_s=60{ports}')
        self.client(host).observed("front")

        def does_what_it_says() -> bool:
            said: list[Any] = []
            exec(compile(program, "README.md", "exec"), {"print": lambda *it: said.extend(it)})
            gripper, ahead, size = said
            self.assertEqual(size, (480, 640, 3))
            # On a busy machine, it may miss commands.
            return abs(gripper - 80) < 1 and abs(ahead - 0.1) < 0.03

        wait_for("program that drives", does_what_it_says)

    def test_the_base_stops_soon_after_the_last_command(self) -> None:
        host = self.host()
        client = self.client(host)
        figures = []

        def stops_in_time() -> bool:
            client.until("drive", {**STILL, "x.vel": 0.1}, self.drives)
            # On a busy machine, the last command itself may be late: the next attempt counts then.
            state = wait_for("base that stands", lambda: self.stands() and self.base())
            figures.append(round(state.time / 1000 - client.sent_s * 1000))
            return figures[-1] <= STOPS_MS

        wait_for(f"base that stops within {STOPS_MS} ms", stops_in_time)
        print(f"    the base stood {figures} ms after the last command")
        host.says("no command for 0.45 s")

    def test_the_base_stops_if_the_host_is_killed(self) -> None:
        host = self.host()
        client = self.client(host)
        client.until("drive", {**STILL, "x.vel": 0.1}, self.drives)
        client.send_action({**STILL, "x.vel": 0.1})
        killed_s = time.time()
        host.end(signal.SIGKILL)
        state = wait_for("base that stands", lambda: self.stands() and self.base())
        print(f"    the base stood {state.time / 1000 - killed_s * 1000:.0f} ms after the SIGKILL")
        # A new host takes its place, for the same client or another one.
        client = self.client(self.host())
        client.until("drive again", {**STILL, "x.vel": -0.1}, lambda it: it["x.vel"] < -0.05)

    def test_the_base_stops_while_the_host_is_frozen(self) -> None:
        host = self.host()
        client = self.client(host)
        ahead = {**STILL, "x.vel": 0.1}
        client.until("drive", ahead, self.drives)
        host.process.send_signal(signal.SIGSTOP)
        # Commands go on, and wait.
        client.until("base that stands", ahead, lambda _: self.stands())
        host.process.send_signal(signal.SIGCONT)
        client.until("drive again", ahead, self.drives)

    def test_another_program_is_told_and_not_fought(self) -> None:
        host = self.host()
        client = self.client(host)
        ahead = {**STILL, "x.vel": 0.1, "arm_wrist_roll.pos": 5.0}
        with repeated(self.other.device("arm:0").lease("the other program").take):
            client.until("line", ahead, lambda _: any("other program" in it for it in host.lines))
            host.says("arm:0 does not move: .*the other program holds the lease")
            self.assertTrue(is_still(self.base().told))
        client.until("drive", ahead, self.drives)
        # Now the host has the leases: others are told.
        others = self.other.base().drive
        client.until("refusal", ahead, lambda _: is_refused(lambda: others(10.0), "LeRobot"))
        with repeated(self.other.device("base:0").lease("a person", force=True).take):
            client.until("loss", ahead, lambda _: any("its lease is lost" in it for it in host.lines))
            host.says("base:0 does not move: .*a person")
            wait_for("base that stands", self.stands)
        client.until("drive again", ahead, self.drives)

    def test_a_halt_is_told(self) -> None:
        host = self.host()
        client = self.client(host)
        ahead = {**STILL, "x.vel": 0.1}
        client.until("drive", ahead, self.drives)
        base = self.other.device("base:0")
        repeated(lambda: base.halt("a person"))
        try:
            client.until("refusal", ahead, lambda _: any("a person" in it for it in host.lines))
            host.says("base:0 does not move: .*a person")
            wait_for("base that stands", self.stands)
        finally:
            # The holder of the lease may release it, or anybody when the lease has ended.
            repeated(lambda: base.release_halt("the test"))
        client.until("drive again", ahead, self.drives)

    def test_a_second_client_only_observes(self) -> None:
        host = self.host()
        first, second = self.client(host), self.client(host)
        ahead = {**STILL, "x.vel": 0.1}
        first.until("drive", ahead, self.drives)

        def is_ignored(_: Any) -> bool:
            second.send_action({**STILL, "x.vel": -0.1})
            found = second.get_observation()
            self.assertGreaterEqual(self.base().told.forward, 0.0)
            says_so = any("commands of 127" in line for line in host.lines)
            return says_so and found["x.vel"] > 0.05

        first.until("commands that are ignored", ahead, is_ignored)
        first.disconnect()
        second.until("turn of the other", {**STILL, "x.vel": -0.1}, lambda it: it["x.vel"] < -0.05)

    def test_malformed_messages_harm_nothing(self) -> None:
        host = self.host()
        client = self.client(host)
        context = zmq.Context()
        self.addCleanup(context.destroy, 0)
        attacker, other = context.socket(zmq.PUSH), context.socket(zmq.PUSH)
        for it in (attacker, other):
            it.connect(f"tcp://127.0.0.1:{host.ports[0]}")
        for parts in [
            [b""],
            [b"nonsense"],
            [b'{"x.vel": NaN, "y.vel": 0, "theta.vel": 0}'],
            [json.dumps({**STILL, "x.vel": True}).encode()],
            [b"{}", b"{}"],
            [b"[" * 60_000],
        ]:
            attacker.send_multipart(parts)
        host.says("malformed: a command of 127.0.0.1:.* is ignored: it is not JSON")
        # Too long, then no ZeroMQ at all.
        other.send(b"x" * 100_000)
        for port in host.ports:
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.until("drive", {**STILL, "x.vel": 0.1}, lambda it: it["x.vel"] > 0.05)
        self.assertEqual(host.end(), 0)
        self.assertRegex(host.lines[-1], r" 6 malformed")

    def test_a_camera_that_is_missing_is_told(self) -> None:
        host = self.host("--camera", "front=camera:0", "--camera", "wrist=camera:7")
        host.says("the robot has no camera:7, but camera:0")
        client = self.client(host)
        self.assertNotIn("wrist", client.observed("front"))
        host.says("wrist: no pictures: .*camera:7")

    def test_the_robot_may_go_away_and_return(self) -> None:
        port = free_port()
        host = Host(f"127.0.0.1:{port}")
        self.addCleanup(lambda: host.process.poll() is None and host.end())
        host.says("mediator: no ")
        demo: Optional[Demo] = Demo(port)
        try:
            host.says("cameras: front is camera:0")
            client = self.client(host)
            ahead = {**STILL, "x.vel": 0.1}
            client.until("drive", ahead, lambda it: it["x.vel"] > 0.05)
            seen = len(host.lines)
            demo.process.kill()
            demo.close()
            demo = None
            host.says("the robot: no observations: ", seen)
            demo = Demo(port)
            host.says("the robot: works again", seen)
            with amber.Robot(demo.address) as robot:
                client.until("drive again", ahead, lambda _: drives(robot))
        finally:
            if demo is not None:
                demo.close()

    def test_mistakes_are_told(self) -> None:
        host = self.host()
        ports = ",".join(map(str, host.ports))
        for options, code, why in [
            (["--ports", ports], 1, "cannot listen on 127.0.0.1, ports .*\n\nhint: is another host"),
            (["--ports", "5555"], 2, "not two ports"),
            (["--arm", "base:0"], 2, "base:0 is no arm"),
            (["--camera", "camera:0"], 2, "not NAME=DEVICE"),
            (["--listen", "everywhere"], 2, "no IP address"),
            (["--mediator", "nowhere.invalid", "--ports", "0,0"], 1, "error: .*nowhere.invalid"),
        ]:
            command = [sys.executable, "-m", "amber_lekiwi_host", *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
            with self.subTest(options):
                self.assertRegex(done.stderr, why)
                self.assertEqual(done.returncode, code)


def is_still(velocity: Any) -> bool:
    """In mm/s and degrees per second; a measurement of servos that stand is exact."""
    return max(abs(velocity.forward), abs(velocity.left), abs(velocity.turn)) < 0.5


def drives(robot: amber.Robot) -> bool:
    state = attempted(robot.base().state)
    return state is not None and bool(state.measured.forward > 50)


def repeated(ask: Callable[[], Any]) -> Any:
    return wait_for("answer", lambda: attempted(ask))


def attempted(ask: Callable[[], Any]) -> Any:
    """The answer, or None. On a busy machine, it may be late, and drivers do without each other."""
    try:
        return ask()
    except amber.AmberError:
        return None


def is_refused(command: Callable[[], Any], why: str) -> bool:
    try:
        command()
        return False
    except amber.Refused as error:
        return why in str(error)


def travelled_m(demo: Demo) -> float:
    """The way of the simulated robot, by the simulation itself."""
    folder = os.path.join(demo.folder.name, "sim")
    command = [AMBER, "sim", "state", "--dir", folder]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"travelled +([\d.]+) m", said)
    assert found is not None, said
    return float(found[1])


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


if __name__ == "__main__":
    unittest.main()
