#!/usr/bin/env python3
"""Compares the mediator with other brokers, all in the same run.

Client and service are small Python programs, the same for all brokers but for the protocol. Their
cost is part of each result, so a ratio says less about the broker than one of `scripts/bench`, and
the CPU time of the broker alone is measured, too. A broker that is not installed is skipped:

    apt install nats-server mosquitto
    pip install eclipse-zenoh dora-rs dora-rs-cli

`scripts/bench neighbours` builds the programs and starts this.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from ends import free_port, wait_for_port  # noqa: E402

HERE = pathlib.Path(__file__).parent
CORES = sorted(os.sched_getaffinity(0))
# Where the client runs; broker and service share the last core.
PLACEMENTS = {"on one core": CORES[-1], "apart": CORES[0]}
SIZES = {"64 B": 64, "6.8 kB": 6800}
WINDOWS = {"round trip": 1, "64 in flight": 64}
# A broker or a service that does not answer by then is broken.
PATIENCE_S = 20


class Skip(Exception):
    """This broker is not installed."""


def python(*words):
    return [sys.executable, str(HERE / "ends.py"), *map(str, words)]


class Broker:
    """A running broker. `stack` ends its processes."""

    def __init__(self, stack, core):
        self.stack, self.core = stack, core
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.start()

    def spawn(self, *command, **more):
        """Starts a program on the core of the broker, and ends it with the run."""
        pinned = ["taskset", "-c", str(self.core), *map(str, command)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(pinned, **{**quiet, **more})
        self.stack.callback(end, process)
        return process

    def ask(self, core, size, window, seconds):
        """Runs the client; returns what it measured."""
        out = self.folder / "measured.json"
        command = python("ask", self.protocol, self.address, size, window, seconds, out)
        client = subprocess.Popen(["taskset", "-c", str(core), *command])
        try:
            if client.wait(seconds + PATIENCE_S) != 0:
                raise RuntimeError(f"{self.name}: the client failed")
        finally:
            end(client)
        return json.loads(out.read_text())


class Floor(Broker):
    name, protocol, options = "`floor -b`", "amber", ["-b"]

    def start(self):
        self.run_program(ARGUMENTS.floor, *self.options, *python("echo"))

    def run_program(self, *command):
        process = self.spawn(*command, stdout=subprocess.PIPE, text=True)
        self.address = process.stdout.readline().strip().removeprefix("listening on ")
        self.pids = [process.pid]


class Amber(Floor):
    name, protocol = "Amber", "amber"

    def start(self):
        driver = "5:0=" + " ".join(f"'{word}'" for word in python("echo"))
        words = ["mediator", "--listen", "127.0.0.1:0", "--log", "error", "--driver", driver]
        self.run_program(ARGUMENTS.amber, *words)


class Nats(Broker):
    name, protocol = "NATS", "nats"

    def start(self):
        program = installed("nats-server")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.pids = [self.spawn(program, "--addr", "127.0.0.1", "--port", port).pid]
        wait_for_port(port, PATIENCE_S)
        self.spawn(*python("serve", self.protocol, self.address))


class Mqtt(Broker):
    name, protocol = "MQTT (Mosquitto)", "mqtt"

    def start(self):
        program = installed("mosquitto")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        settings = self.folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n"
            "max_queued_messages 0\nmax_inflight_messages 0\nlog_type none\n"
        )
        self.pids = [self.spawn(program, "-c", settings).pid]
        wait_for_port(port, PATIENCE_S)
        self.spawn(*python("serve", self.protocol, self.address))


class Zenoh(Broker):
    name, protocol = "Zenoh (router)", "zenoh"

    def start(self):
        needs_module("zenoh", "eclipse-zenoh")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.pids = [self.spawn(*python("zenoh-router", self.address)).pid]
        wait_for_port(port, PATIENCE_S)
        self.spawn(*python("serve", self.protocol, self.address))


class Dora(Broker):
    """dora starts client and service itself, so each load is a data flow of its own."""

    name, protocol = "dora", "dora"

    def start(self):
        needs_module("dora", "dora-rs")
        folder = pathlib.Path(sys.executable).parent
        self.program = shutil.which("dora", path=f"{folder}:{os.environ['PATH']}")
        if self.program is None:
            raise Skip("pip install dora-rs-cli")

    def ask(self, core, size, window, seconds):
        out = self.folder / "measured.json"
        out.unlink(missing_ok=True)
        node = python("ask", self.protocol, core, size, window, seconds, out)
        service = python("serve", self.protocol, self.core)
        flow = self.folder / "flow.yml"
        flow.write_text(json.dumps({"nodes": [
            self.node("client", node, "service/answers"),
            self.node("service", service, "client/requests"),
        ]}))
        process = self.spawn(self.program, "run", flow, cwd=self.folder)
        # The client tells the CPU time of its parent, the daemon, because all end together.
        if process.wait(seconds + PATIENCE_S) != 0 or not out.exists():
            raise RuntimeError("dora: the data flow failed")
        return json.loads(out.read_text())

    def node(self, name, command, source):
        # The name of the input is that of the other node's output.
        other, topic = source.split("/")
        return {
            "id": name,
            "path": command[0],
            "args": " ".join(command[1:]),
            "inputs": {topic: {"source": source, "queue_size": 10_000}},
            "outputs": ["requests" if name == "client" else "answers"],
        }


BROKERS = [Floor, Amber, Nats, Mqtt, Zenoh, Dora]


def installed(program):
    found = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    if found is None:
        raise Skip(f"apt install {program}")
    return found


def needs_module(module, package):
    if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
        raise Skip(f"pip install {package}")


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_ns(pids):
    """The CPU time of all threads of these processes."""
    files = (path for pid in pids for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))
    total = 0
    for path in files:
        with contextlib.suppress(OSError):
            total += int(path.read_text().split()[0])
    return total


def measure(kind, placement, size, window, seconds):
    """One load on one broker that was just started."""
    with contextlib.ExitStack() as stack:
        broker = kind(stack, CORES[-1])
        if kind is not Dora:
            # The first requests find connections, and warm everything up.
            broker.ask(PLACEMENTS[placement], size, window, seconds / 10)
            before = cpu_ns(broker.pids)
        seen = broker.ask(PLACEMENTS[placement], size, window, seconds)
        if kind is not Dora:
            seen["cpu_us"] = (cpu_ns(broker.pids) - before) / 1e3 / max(seen["received"], 1)
    return seen


def table(results, rounds):
    """All results as Markdown. Ratios are computed from the values shown."""
    lines = [
        "| load | broker | replies/s | ratio | worst round | p50, us | ratio | broker's CPU, us | lost |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (load, broker), seen in results.items():
        reference = results.get((load, Floor.name))

        def shown(key, of=seen):
            return float(f"{statistics.median(it[key] for it in of):.3g}")

        def ratio(key):
            return f"{shown(key) / shown(key, reference):.2f}" if reference else ""

        rates = [it["per_s"] for it in seen]
        worst = ""
        if reference:
            worst = f"{min(a / b['per_s'] for a, b in zip(rates, reference)):.2f}"
        cells = [load, broker, f"{shown('per_s'):.0f}", ratio("per_s"), worst,
                 f"{shown('p50_us'):g}", ratio("p50_us"), f"{shown('cpu_us'):g}",
                 str(sum(it["lost"] for it in seen))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Rounds: {rounds}. The values are medians, and ratios are to `floor -b`."])


def main():
    skipped, results = {}, {}
    rounds, seconds = (1, 0.1) if ARGUMENTS.quick else (ARGUMENTS.rounds, ARGUMENTS.seconds)
    start = time.monotonic()
    for number in range(1, rounds + 1):
        for placement in PLACEMENTS:
            for size_name, size in SIZES.items():
                for window_name, window in WINDOWS.items():
                    load = f"{window_name}, {size_name}, {placement}"
                    for kind in BROKERS:
                        if kind.name in skipped:
                            continue
                        try:
                            seen = measure(kind, placement, size, window, seconds)
                        except Skip as why:
                            skipped[kind.name] = str(why)
                            print(f"SKIP {kind.name}: {why}", flush=True)
                            continue
                        results.setdefault((load, kind.name), []).append(seen)
        passed = time.monotonic() - start
        print(f"round {number} of {rounds} done after {passed:.0f} s", file=sys.stderr, flush=True)
    text = table(results, rounds)
    if skipped:
        text += "\n\nNot installed: " + ", ".join(skipped) + "."
    print(text)
    lost = sum(it["lost"] for name in (Floor.name, Amber.name)
               for (_, broker), seen in results.items() if broker == name for it in seen)
    if not ARGUMENTS.quick and ARGUMENTS.out:
        ARGUMENTS.out.parent.mkdir(parents=True, exist_ok=True)
        ARGUMENTS.out.write_text(text + "\n")
    if lost:
        sys.exit(f"error: {lost} requests were lost")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("amber", type=pathlib.Path, help="the program amber")
    parser.add_argument("floor", type=pathlib.Path, help="the program bench-floor")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, in which brokers take turns [3]")
    parser.add_argument("--seconds", type=float, default=0.7, help="seconds per load [0.7]")
    parser.add_argument("--quick", action="store_true", help="only check that it works")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table to this file")
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = arguments()
    main()
