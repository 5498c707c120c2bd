// Drivers that use most of the package. They are only compiled: see `npm run check`.
import { Refused, serve } from "amber-robot/driver";
import type { Caller, Driver, RoboclawDriver, RoboclawPort, roboclaw } from "amber-robot/driver";

class Wheels implements RoboclawDriver {
  periodMs = 50;
  #speeds = { frontLeftSpeed: 0, frontRightSpeed: 0, rearLeftSpeed: 0, rearRightSpeed: 0 };
  #port: RoboclawPort | undefined;

  async start(port: RoboclawPort) {
    this.#port = port;
    port.trouble("no power");
    port.recovered();
  }

  drive(request: roboclaw.MotorsSpeed, { client }: Caller) {
    if (request.frontLeftSpeed > 1000) throw new Refused("too fast", { reason: "TOO_FAST", hint: "drive slower" });
    console.log(client, this.#port?.subscribers.length);
    Object.assign(this.#speeds, request);
  }

  speeds() {
    return this.#speeds;
  }

  async speedUpdates() {
    return { currentSpeed: this.#speeds, speedAge: 20 };
  }

  battery() {
    return { voltage: 12_100 };
  }

  stop() {}
}

const wheels = serve("wheels", new Wheels());
wheels.publishSpeedUpdates({ currentSpeed: {} });
// @ts-expect-error There is no such stream.
wheels.publishSpeeds({});
// @ts-expect-error There is no such device.
serve("wings", {});

// Methods of a plain object know their arguments, and it may have more.
const laser = serve("laser", {
  scan: () => ({ angles: [1, 2], distances: [300, 400] }),
  scanner: async () => ({}),
  turned: 0,
  clientGone(client) {
    console.log(client.toFixed());
  },
});
laser.publishScans({ angles: [1], distances: [300] });
// @ts-expect-error A scan has distances, too: it lacks the method.
serve("laser", { scans: () => undefined });

const lamp = serve(new URL("lamp.proto", import.meta.url), { periodMs: 1000, getBrightness: () => 40 });
lamp.publishBrightness?.(40);
serve("lamp.proto", { handlesGoneClients: true } satisfies Driver);
