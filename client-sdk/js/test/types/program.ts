// A program that uses most of the package. It is only compiled: see `npm run check`.
import { Claims, DeviceDiedError, RefusedError, Robot, nearest, newOrderId, sides } from "amber-robot";
import type { Hokuyo, Subscription, hokuyo, roboclaw } from "amber-robot";

const robot = await Robot.connect("192.168.2.201", { timeoutMs: 500, signal: AbortSignal.timeout(9000) });
const wheels = robot.wheels();
const speeds: roboclaw.MotorsSpeed = await wheels.speeds();
const left: number = speeds.frontLeftSpeed;
await wheels.drive({ frontLeftSpeed: left }, { validMs: 300 });
await wheels.drive(sides(200, 250), { onRefusal: (error) => console.warn(error.hint) });
await wheels.stop();
// @ts-expect-error The description has no such field.
await wheels.drive({ frontLeft: 1 });
// @ts-expect-error A command needs its arguments.
await wheels.drive();

const laser: Hokuyo = robot.device("laser:0");
const scans: Subscription<hokuyo.Scan & { timestamp?: number }> = laser.scans({ buffer: 4 });
for await (const scan of scans) {
  console.log(nearest(scan, -30, 30)?.distance, scan.timestamp, scans.missed);
  break;
}

const camera = robot.camera(0);
for await (const picture of camera.pictures({ period: 200, format: "JPEG" })) {
  const bytes: Uint8Array = picture.data;
  console.log(bytes.length, picture.format === "GRAY8");
  break;
}
// @ts-expect-error A stream with a period needs it.
camera.pictures({});
// @ts-expect-error There is no such format.
await camera.picture({ format: "PNG" });

const order = await robot.driveToPoint().go({
  id: newOrderId(),
  targets: { longitudes: [1], latitudes: [2], radiuses: [0.2] },
});
console.log(order.state satisfies string);
console.log((await robot.driveToPoint().driveTo({ x: 1.4, y: 1 })).reason);
console.log((await robot.mediator().describeDriver("wheels:0")).state);

const lease = await wheels.with({ validMs: 500 }).lease("program", { wait: true });
try {
  await wheels.drive(sides(100, 100), { signal: lease.signal });
} catch (error) {
  if (error instanceof RefusedError) console.log(error.words, error.reason);
  if (error instanceof DeviceDiedError) console.log(error.reason);
} finally {
  await lease.release();
}

const claims = new Claims("program", { holdMs: 500, onLost: (device, error) => console.log(device, error.message) });
await claims.claim(wheels, { force: true });
if (claims.isDenied(wheels) || claims.held.includes("roboclaw:0")) await claims.release(wheels);
await claims.close();

const halted: string[] = await robot.halt("program", { timeoutMs: 300 });
const { halt, holder } = await wheels.motionState();
console.log(halted.length, halt?.by, holder?.name);
await wheels.releaseHalt("program");
// @ts-expect-error A halt says who halts.
await robot.halt();

const lamp = await robot.load("lamp");
console.log(await lamp.brightness?.());
await robot.close();
