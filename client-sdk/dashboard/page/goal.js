// A click on the map: the target that the robot is given, and the reason why it does not drive there.

const MARKED_MS = 2000; // The path shows a target sooner, unless it is reached or given up at once.
const SAID_MS = 20000; // A reason that nobody can mistake for one of the next click.
const SAME_M = 0.002; // Targets come rounded to millimetres.

export class Goal {
  /** `ask(place)` gives the robot a target. `changed` is called when there is another problem. */
  constructor(map, ask, changed) {
    this.map = map;
    this.ask = ask;
    this.changed = changed;
    Object.assign(this, { place: null, isSet: false, skipped: [], problem: null });
  }

  /** Nothing is wanted any more. */
  clear() {
    this.refuse(null);
  }

  async set(place) {
    clearTimeout(this.ending);
    Object.assign(this, { place, isSet: false, problem: null });
    this.map.markGoal(place);
    this.changed();
    try {
      await this.ask(place);
    } catch (why) {
      if (this.place === place) this.refuse(String(why));
      return;
    }
    if (this.place !== place) return;
    this.isSet = true;
    setTimeout(() => this.place === place && this.map.markGoal(null), MARKED_MS);
    this.check();
  }

  /** The robot does not drive there, or no page may ask it to. */
  refuse(why) {
    Object.assign(this, { place: null, problem: why });
    clearTimeout(this.ending);
    if (why) this.ending = setTimeout(() => this.refuse(null), SAID_MS);
    this.map.markGoal(null);
    this.changed();
  }

  takePath({ targets, skipped }) {
    this.skipped = skipped ?? [];
    // Another page may have set them.
    if (targets?.length) {
      clearTimeout(this.ending);
      this.problem = null;
      this.map.markGoal(null);
    }
    this.check();
  }

  check() {
    const { place } = this;
    const isHere = ([x, y]) => Math.hypot(x - place.x, y - place.y) < SAME_M;
    if (!place || !this.isSet || !this.skipped.some(isHere)) return;
    this.refuse(this.map.has(place) ? "The robot cannot reach this point." : "This point is outside the map.");
  }
}
