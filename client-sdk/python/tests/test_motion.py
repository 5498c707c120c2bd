"""A user's own motor, described in one file, with lease, expiry and halt but no code for them."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import amber
from amber import motion, schemas
from amber.frame import FrameReader, Header, encode
from amber.schemas import DriverMsg
from test_driver import ENVIRONMENT, PATIENCE

PROTO = """syntax = "proto2";
package crane;
import "drivermsg.proto";
import "interface.proto";

extend amber.DriverMsg {
  optional Lift lift = 130;
  optional bool get_height = 131;
  optional double height = 132;
}

message Lift {
  required int32 speed = 1 [(amber.unit) = "mm/s"];
}

service Crane {
  option (amber.device) = { type: 230 name: "crane" };

  // Lifts the hook.
  rpc Lift(DriverMsg) returns (Nothing) {
    option (amber.tell) = { request: "lift" };
    option (amber.moves) = { stop: { set: { field: "lift.speed" value: "0" } } };
  }
  // The height.
  rpc Height(DriverMsg) returns (DriverMsg) {
    option (amber.ask) = { flag: "get_height" answer: "height" reads: true };
  }
}
""".replace("(DriverMsg)", "(amber.DriverMsg)").replace("(Nothing)", "(amber.Nothing)")

DRIVER = """
import sys
import amber

crane = amber.load_proto(sys.argv[1])

class Crane(crane.CraneDriver):
    def lift(self, speed):
        print("speed", speed, file=sys.stderr, flush=True)

    def height(self):
        return 1.5

amber.serve(Crane())
"""


class Process:
    """The driver, as the mediator runs it."""

    def __init__(self, folder, **environment):
        proto, driver = (os.path.join(folder, name) for name in ("crane.proto", "crane.py"))
        for path, text in ((proto, PROTO), (driver, DRIVER)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.crane = amber.load_proto(proto)
        self.process = subprocess.Popen(
            [sys.executable, driver, proto],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, "AMBER_DEVICE": "230:0", **environment},
        )
        self.changed = threading.Condition()
        self.messages, self.speeds = [], []
        for read in (self._read_frames, self._read_speeds):
            threading.Thread(target=read, daemon=True).start()

    def _read_frames(self):
        reader = FrameReader()
        while True:
            piece = self.process.stdout.read1(65536)
            if not piece:
                return
            with self.changed:
                self.messages += [DriverMsg.FromString(it.message) for it in reader.feed(piece)]
                self.changed.notify_all()

    def _read_speeds(self):
        for line in self.process.stderr:
            with self.changed:
                if line.startswith(b"speed "):
                    self.speeds.append((int(line.split()[1]), time.monotonic()))
                self.changed.notify_all()

    def write(self, client, **extensions):
        message = DriverMsg(type=DriverMsg.DATA)
        syn = extensions.pop("syn", None)
        if syn is not None:
            message.synNum = syn
        for name, value in extensions.items():
            namespace = next(
                it for it in (self.crane, schemas.motion, schemas.mediator) if hasattr(it, name)
            )
            extension = getattr(namespace, name)
            if isinstance(value, dict):
                message.Extensions[extension].SetInParent()
                for field, one in value.items():
                    setattr(message.Extensions[extension], field, one)
            else:
                message.Extensions[extension] = value
        self._send(client, message)

    def _send(self, client, message):
        self.process.stdin.write(encode(Header(clients=(client,)), message.SerializeToString()))
        self.process.stdin.flush()

    def die(self, client):
        self._send(client, DriverMsg(type=DriverMsg.CLIENT_DIED))

    def lift(self, client, speed, **terms):
        self.write(client, lift={"speed": speed}, **terms)

    def wait(self, what):
        with self.changed:
            assert self.changed.wait_for(what, PATIENCE), (self.messages, self.speeds)

    def wait_for_speeds(self, *speeds):
        self.wait(lambda: [speed for speed, _ in self.speeds] == list(speeds))

    def answer(self, syn):
        def found():
            return [it for it in self.messages if it.HasField("ackNum") and it.ackNum == syn]

        self.wait(found)
        return found()[0].Extensions

    def state(self, syn):
        return self.answer(syn)[schemas.motion.motion_state]

    def news(self):
        report = schemas.motion.motion_report
        with self.changed:
            told = [it for it in self.messages if it.HasExtension(report)]
            return [it.Extensions[report].text for it in told]

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class MotorOfAUser(unittest.TestCase):
    def driver(self, **environment):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        process = Process(folder.name, **environment)
        self.addCleanup(process.end)
        return process

    def test_it_stops_when_the_last_command_is_no_longer_valid(self):
        driver = self.driver()
        # On a busy machine, this process learns late that the motor turns.
        began = time.monotonic()
        driver.lift(5, 100, valid_ms=300)
        driver.wait_for_speeds(100, 0)
        (_, known), (_, ended) = driver.speeds
        self.assertGreaterEqual(ended - began, 0.3)
        self.assertLess(ended - known, 2.0)
        driver.wait(lambda: any("no longer valid" in text for text in driver.news()))

    def test_a_lease_keeps_others_away_and_names_its_holder(self):
        driver = self.driver()
        action = schemas.motion.LeaseRequest
        take = {"action": action.TAKE, "name": "amber goto"}
        driver.write(5, lease_request=take, syn=1)
        self.assertTrue(driver.state(1).yours)
        driver.lift(6, 50, want_outcome=True, syn=2)
        why = "amber goto holds the lease of this device"
        self.assertEqual(driver.answer(2)[schemas.mediator.outcome].refused, why)
        driver.lift(5, 70)
        driver.wait_for_speeds(70)
        # Everybody may stop it, and read.
        driver.lift(6, 0)
        driver.write(6, get_height=True, syn=3)
        self.assertEqual(driver.answer(3)[driver.crane.height], 1.5)
        driver.wait_for_speeds(70, 0)
        driver.lift(5, 80)
        driver.wait_for_speeds(70, 0, 80)
        driver.write(6, lease_request={"action": action.TAKE_BY_FORCE, "name": "b"}, syn=4)
        self.assertTrue(driver.state(4).yours)
        driver.wait_for_speeds(70, 0, 80, 0)
        driver.wait(lambda: "b took the lease from amber goto by force" in driver.news())

    def test_it_stops_when_its_client_is_gone_or_its_lease_ends(self):
        driver = self.driver()
        driver.lift(5, 60)
        driver.wait_for_speeds(60)
        driver.die(5)
        driver.wait_for_speeds(60, 0)
        lease = {"action": schemas.motion.LeaseRequest.TAKE, "period_ms": 200}
        driver.write(6, lease_request=lease, syn=1)
        driver.lift(6, 90)
        driver.wait_for_speeds(60, 0, 90)
        driver.wait_for_speeds(60, 0, 90, 0)
        driver.write(6, get_motion_state=True, syn=2)
        self.assertFalse(driver.state(2).HasField("holder"))

    def test_a_halt_stops_it_until_the_release(self):
        driver = self.driver()
        driver.lift(5, 60)
        driver.wait_for_speeds(60)
        driver.write(7, halt_request={"halt": True, "name": "the operator"}, syn=1)
        self.assertEqual(driver.state(1).halt.by, "the operator")
        driver.wait_for_speeds(60, 0)
        driver.lift(5, 61, want_outcome=True, syn=2)
        why = "the device was halted by the operator"
        self.assertEqual(driver.answer(2)[schemas.mediator.outcome].refused, why)
        driver.write(7, halt_request={"halt": False}, syn=3)
        self.assertFalse(driver.state(3).HasField("halt"))
        driver.lift(5, 62)
        driver.wait_for_speeds(60, 0, 62)

    def test_a_halt_survives_a_restart(self):
        driver = self.driver(AMBER_HALTED="230:0=the operator")
        driver.lift(5, 61, want_outcome=True, syn=2)
        outcome = driver.answer(2)[schemas.mediator.outcome]
        self.assertIn("halted by the operator", outcome.refused)


def let_pass(control, now):
    """All timeouts until a time, each when it is due."""
    while (due := control.next_timeout()) is not None and due <= now:
        control.timeout(due)


class Rules(unittest.TestCase):
    """The same rules as in Rust; its tests have more of them."""

    def test_without_lease_and_validity_nothing_is_refused_or_stopped(self):
        control = motion.Control()
        for client in (7, 9, 7):
            control.command(0.0, motion.MOVES, client)
        self.assertIsNone(control.next_timeout())
        control.timeout(3600.0)
        self.assertIsNone(control.poll_stop())

    def test_clients_get_the_lease_in_turn(self):
        control = motion.Control()
        action = schemas.motion.LeaseRequest

        def ask(now, client, what):
            message = DriverMsg(type=DriverMsg.DATA)
            request = message.Extensions[schemas.motion.lease_request]
            request.action, request.period_ms = what, 1000
            let_pass(control, now)
            return control.request(now, client, message)

        self.assertTrue(ask(0.0, 1, action.TAKE).yours)
        self.assertFalse(ask(0.0, 2, action.WAIT).yours)
        self.assertFalse(ask(0.1, 3, action.WAIT).yours)
        self.assertEqual(
            ask(0.2, 4, action.TAKE).refused, "client 1 holds the lease of this device"
        )
        ask(0.9, 3, action.WAIT)
        # Client 2 has fallen silent.
        self.assertEqual(ask(1.05, 3, action.WAIT).holder.client_id, 3)
        control.command(1.1, motion.MOVES, 3)
        let_pass(control, 2.15)
        stop = control.poll_stop()
        self.assertEqual((stop.client, stop.outdated), (3, {3}))

    def test_a_lease_gets_another_period_if_the_driver_itself_was_late(self):
        control = motion.Control()
        take = DriverMsg(type=DriverMsg.DATA)
        take.Extensions[schemas.motion.lease_request].period_ms = 1000
        self.assertTrue(control.request(0.0, 1, take).yours)
        state = DriverMsg(type=DriverMsg.DATA)
        state.Extensions[schemas.motion.get_motion_state] = True
        control.timeout(1.5)
        self.assertTrue(control.request(1.5, 1, state).yours)
        # Only once.
        control.timeout(3.0)
        self.assertFalse(control.request(3.0, 1, state).yours)

    def test_commands_that_waited_too_long_move_nothing(self):
        control = motion.Control()
        with self.assertRaisesRegex(motion.Refusal, "too late"):
            control.command(1.0, motion.MOVES, 7, None, 1.0)
        control.command(1.0, motion.STOPS, 7, None, 1.0)


if __name__ == "__main__":
    unittest.main()
