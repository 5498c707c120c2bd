"""The driver of a simulated battery gauge."""

import os
import sys

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
battery = amber.load_proto(os.path.join(HERE, "battery.proto"))


class Gauge(battery.BatteryGaugeDriver):
    period = 0.02
    capacity = 0
    history = None
    count = 0

    def set_capacity(self, capacity):
        if capacity > 1000:
            raise amber.Refused("too much")
        self.capacity = 1000 * capacity // capacity
        return {"percent": 70}, self.history

    def charge(self):
        return battery.Charge(percent=80)

    def test(self, duration_ms, second):
        return None if duration_ms is None else f"{duration_ms} {second} for {self.client}"

    def set_history(self, history):
        if not history:
            raise amber.Refused("it is empty")
        self.history = history

    def volts(self):
        self.count += 1
        return 12.5 if self.count % 2 else None

    def charges(self, left):
        return {"percent": 60 if left else 40}

    def client_gone(self, client):
        print("gone", client, file=sys.stderr, flush=True)


if __name__ == "__main__":
    amber.serve(Gauge())
