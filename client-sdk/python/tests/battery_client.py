"""Uses the battery gauge of battery_driver.py in every way, and the mediator itself.

    python3 battery_client.py plain|asyncio
"""

import asyncio
import os
import sys

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
battery = amber.load_proto(os.path.join(HERE, "battery.proto"))


def plain():
    with amber.Client(deadline=20) as robot:
        gauge = battery.BatteryGauge(robot, 0)
        print("charge", gauge.charge().percent)
        gauge.set_history([(1, 12.0), (2, 11.5)])
        print("history", gauge.set_capacity(500).history)
        print("test", gauge.test(duration_ms=300))
        try:
            gauge.set_capacity(5000)
        except amber.Refused as error:
            print(error)
        with gauge.volts() as volts:
            print("volts", volts.next(timeout=20))
        for charge in gauge.charges(period_ms=20, left=False):
            print("charges", charge.percent)
            break
        mediator = robot.mediator()
        stranger = mediator.load("210")  # from the driver, by way of the mediator
        print("described", stranger.BatteryGauge(robot).charge().percent)
        assert mediator.clients(), "this program is one"
        print("statistics", mediator.statistics().drivers)
        print("driver", mediator.driver("210").restart_policy)
        print(mediator.set_log_level("info"))
        print("configuration:", mediator.reload())
        with mediator.traced() as frames:
            mediator.trace("210")
            gauge.ping()
            print("traced", frames.next(timeout=20).device.type)
        with mediator.events() as events:
            print(mediator.restart("210"))
            while events.next(timeout=20).kind != amber.schemas.mediator.Event.DEVICE_UP:
                pass
        print("state", [driver.state for driver in mediator.drivers()])


async def with_asyncio():
    async with amber.aio.Client(deadline=20) as robot:
        gauge = battery.aio.BatteryGauge(robot, 0)
        print("charge", (await gauge.charge()).percent)
        await gauge.set_history({1: 12.0})
        print("history", (await gauge.set_capacity(500)).history)
        async for volts in gauge.volts():
            print("volts", volts)
            break
        async with gauge.charges(period_ms=20) as charges:
            print("charges", (await charges.next()).percent)


if __name__ == "__main__":
    plain() if sys.argv[1] == "plain" else asyncio.run(with_asyncio())
