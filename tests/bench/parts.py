#!/usr/bin/env python3
"""Measures the CPU time and the memory of the driver of each part beside its simulated device, with
one client that takes everything it publishes.

  scripts/bench parts [--amber PATH] [--seconds N] [--json] [PART...]

One part after the other. The messages per second show whether something was lost; servos publish
nothing, and one of them turns slowly. Run it on a machine that does nothing else.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from bus import ROOT, Robot, cpu_s

#: The name for people, the options of the simulation, the device, its driver, and what the client
#: takes (None: nothing is published). {} is the place of the simulated device.
PARTS = {
    "hokuyo urg-04lx": ([], "hokuyo", "hokuyo --port {}/hokuyo", []),
    "ldrobot ld19": (["--ldrobot", "ld19"], "hokuyo", "ldrobot --port {}/ldrobot", []),
    "ldrobot stl-27l": (
        ["--ldrobot", "stl-27l"], "hokuyo", "ldrobot --model stl-27l --port {}/ldrobot", []),
    "rplidar a1": (["--rplidar", "a1"], "hokuyo", "rplidar --port {}/rplidar", []),
    "rplidar c1": (["--rplidar", "c1"], "hokuyo", "rplidar --port {}/rplidar", []),
    "rplidar s3": (["--rplidar", "s3"], "hokuyo", "rplidar --port {}/rplidar", []),
    "ydlidar x4": (
        ["--ydlidar", "x4"], "hokuyo", "ydlidar --model x4 --port {}/ydlidar", []),
    "ydlidar g4": (
        ["--ydlidar", "g4"], "hokuyo", "ydlidar --model g4 --port {}/ydlidar", []),
    "ydlidar t-mini": (
        ["--ydlidar", "t-mini"], "hokuyo", "ydlidar --model t-mini --port {}/ydlidar", []),
    "ninedof": ([], "ninedof", "ninedof --bus sim:{}/ninedof", ["--period", "10ms"]),
    "mpu mpu9250": (
        ["--mpu", "mpu9250"], "ninedof", "mpu --bus sim:{}/mpu", ["--period", "10ms"]),
    "lsm6dsox": (
        ["--lsm6dsox", "lsm6dsox"], "ninedof", "lsm6dsox --bus sim:{}/lsm6dsox",
        ["--period", "10ms"]),
    "icm20948": (
        ["--icm20948", "icm20948"], "ninedof", "icm20948 --bus sim:{}/icm20948",
        ["--period", "10ms"]),
    "bno055": (
        ["--bno055", "bno055"], "ninedof", "bno055 --bus sim:{}/bno055", ["--period", "10ms"]),
    "roboclaw, two": ([], "roboclaw", "roboclaw --port {}/roboclaw", []),
    "roboclaw, one": (
        ["--one-roboclaw"], "roboclaw", "roboclaw --address 128 --port {}/roboclaw", []),
    "diffdrive bridge": (
        ["--diffdrive", "bridge"], "roboclaw",
        "diffdrive --counts-per-turn 1865 --wheel-diameter-mm 120 --port {}/diffdrive", []),
    "create2": (["--create2"], "roboclaw", "create2 --port {}/create2", []),
    "vesc": (
        ["--vesc", "6.02"], "roboclaw",
        "vesc --can-id 12 --pole-pairs 7 --gear-ratio 10 --wheel-diameter-mm 120 --min-erpm 100"
        " --port {}/vesc", []),
    "odrive": (
        ["--odrive", "0.5.6"], "roboclaw", "odrive --wheel-diameter-mm 120 --port {}/odrive", []),
    "pca9685": (["--pca9685"], "maestro", "pca9685 --bus sim:{}/pca9685", None),
    "ina2xx ina219": (
        ["--ina2xx", "ina219"], "battery",
        "ina2xx --cells 3 --chemistry li-ion --bus sim:{}/ina2xx", []),
    "gps neo-m8": (["--gps", "neo-m8"], "gps", "gps --port {}/gps", []),
    "gps zed-f9p": (["--gps", "zed-f9p"], "gps", "gps --port {}/gps", []),
    "gamepad": (["--gamepad", "xbox"], "gamepad", "gamepad --port {}/gamepad", []),
    "firmata": (
        ["--firmata", "uno"], "board",
        "firmata --pin bumper=2:input-pull-up --pin battery=A0:analog --pin wall=A1:analog"
        " --port {}/firmata", []),
}
#: What moves a servo for a minute and more: the driver changes its pulse every 20 ms.
SLOW_SERVO = ["set-speed 0 1", "set-angle 0 0", "set-angle 0 180"]
#: Until the driver has found its device, and a scanner turns.
SETTLE_S = 6.0


def memory_mb(pid):
    """The resident memory of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024


class Messages:
    """What a client gets: one line each."""

    def __init__(self, stream):
        self.count = 0
        self._stream = stream
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        for _ in self._stream:
            self.count += 1


@contextlib.contextmanager
def running(amber, arguments, environment):
    """A program that ends with the block."""
    process = subprocess.Popen(
        [amber, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


def measure(amber, name, seconds):
    options, device, driver, taken = PARTS[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sim = os.path.join(folder, "sim")
        environment = {**os.environ, "AMBER_SIM_DIR": sim}
        environment.pop("AMBER_MEDIATOR", None)

        def start(arguments):
            return stack.enter_context(running(amber, arguments, environment))

        start(["sim", "--dir", sim, *options])
        control = os.path.join(sim, "control")
        Robot.wait_for("the simulation", lambda: os.path.exists(control))
        command = f"{device}:0=amber driver {driver.format(sim)}"
        mediator = start(["mediator", "--listen", "127.0.0.1:0", "--driver", command])
        address = None
        for line in mediator.stdout:
            if address := re.search(r"127\.0\.0\.1:\d+", line):
                break
        threading.Thread(target=mediator.stdout.read, daemon=True).start()
        to = ["--mediator", address.group(0)]
        time.sleep(1.0 if taken is None else 0.0)
        messages = Messages(
            [] if taken is None else start([*to, "watch", device, "--json", *taken]).stdout)
        for command in SLOW_SERVO if device == "maestro" else []:
            subprocess.run(
                [amber, *to, "call", device, *command.split()], env=environment, check=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(SETTLE_S)
        shown = subprocess.run(
            [amber, *to, "devices", "--json"], capture_output=True, env=environment, check=True)
        rows = json.loads(shown.stdout)["devices"]
        pid = next(row["pid"] for row in rows if row["device"] == f"{device}:0")
        before, count, began = cpu_s(pid), messages.count, time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return {
            "part": name,
            "messages_per_s": round((messages.count - count) / took, 1),
            "cpu_percent": round(100 * (cpu_s(pid) - before) / took, 2),
            "memory_mb": round(memory_mb(pid), 1),
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = os.path.join(ROOT, "target/dist/amber")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)}")
    parser.add_argument("--amber", default=usual, help="the program to measure")
    parser.add_argument("--seconds", type=float, default=20.0, help="per row [default: 20]")
    parser.add_argument("--json", action="store_true", help="one object per row")
    options = parser.parse_args()
    wrong = [part for part in options.parts if part not in PARTS]
    if wrong:
        parser.error(f"no such part: {wrong[0]}; there are {', '.join(PARTS)}")
    if not options.json:
        print("| part | messages/s | CPU of one core | memory |")
        print("|---|---|---|---|")
    for name in options.parts or PARTS:
        row = measure(options.amber, name, options.seconds)
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"| {row['part']} | {row['messages_per_s']} | {row['cpu_percent']} % "
                  f"| {row['memory_mb']} MB |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
