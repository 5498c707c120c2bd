"""Shows the voltage of the battery, until it is low."""

import amber

with amber.Robot() as robot:
    for state in robot.battery().state_updates():
        print(f"{state.voltage / 1000:.1f} V")
        if state.health == state.LOW:
            print("the battery is low: charge it")
            break
