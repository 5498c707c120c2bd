// Values that programs often need. PURE, except for new ids.

/** Distances of a laser scanner outside of these are not measured, in mm. */
const DISTANCES_MM = { least: 20, most: 60_000 };

/**
 * Wheel speeds for each side in mm/s; the robot turns to its slower side.
 * @param {number} left
 * @param {number} right
 */
export function sides(left, right) {
  const [l, r] = [Math.round(left), Math.round(right)];
  return { frontLeftSpeed: l, frontRightSpeed: r, rearLeftSpeed: l, rearRightSpeed: r };
}

/**
 * The points of a scan with a valid distance.
 * @param {{ angles: number[], distances: number[] }} scan
 */
export function points({ angles, distances }) {
  return angles
    .map((angle, i) => ({ angle, distance: distances[i] }))
    .filter(({ distance }) => distance >= DISTANCES_MM.least && distance <= DISTANCES_MM.most);
}

/**
 * The nearest point of a scan between two angles in degrees; undefined if there is none.
 * @param {{ angles: number[], distances: number[] }} scan
 * @param {number} [from]
 * @param {number} [to]
 */
export function nearest(scan, from = -180, to = 180) {
  const within = points(scan).filter(({ angle }) => angle >= from && angle <= to);
  return within.reduce(
    (/** @type {{ angle: number, distance: number } | undefined} */ best, it) =>
      best && best.distance <= it.distance ? best : it,
    undefined,
  );
}

/** A new id for an order, at random: two clients do not choose the same one. */
export function newOrderId() {
  return 2 ** 32 + Math.floor(Math.random() * (2 ** 53 - 2 ** 32));
}
