"""A driver of one's own: a lamp, which ``lamp.proto`` describes."""

from pathlib import Path

import amber

lamp = amber.load_proto(Path(__file__).with_name("lamp.proto"))


class Lamp(lamp.LampDriver):
    period = 1.0  # seconds between publications
    percent = 0

    def set_brightness(self, percent):
        self.percent = percent  # your hardware here
        return self.percent

    def get_brightness(self):
        return self.percent

    def brightness(self):
        return self.percent


amber.serve(Lamp())
