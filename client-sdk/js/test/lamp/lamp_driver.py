"""The driver of a lamp, which sends its description to the mediator."""

import os

import amber

lamp = amber.load_proto(os.path.join(os.path.dirname(__file__), "lamp.proto"))


class Lamp(lamp.LampDriver):
    period = 0.1
    percent = 0

    def set_brightness(self, set_brightness):
        if set_brightness > 100:
            raise amber.Refused("brighter than 100 %")
        self.percent = set_brightness
        return self.lights()

    def light(self):
        return self.lights()

    def lights(self):
        return {"brightness_percent": self.percent, "can_be": ["WHITE", "WARM_WHITE"]}


amber.serve(Lamp())
