// The WebSocket to the dashboard. It reconnects automatically.

const RETRY_MS = [300, 1000, 2000];
// The server pings every second, but pages do not see that: it also sends the drivers every second.
const SILENCE_MS = 4000;

export class Link extends EventTarget {
  constructor() {
    super();
    this.attempts = 0;
    this.nextId = 1;
    this.waiting = new Map();
    // The token stays in the address, so that a bookmark keeps it; it is never sent by HTTP.
    this.token = location.hash.slice(1) || null;
    this.connect();
    setInterval(() => this.watch(), 1000);
  }

  connect() {
    const socket = this.open("/socket");
    this.socket = socket;
    socket.onopen = () => {
      this.heard = performance.now();
    };
    socket.onmessage = ({ data }) => {
      this.heard = performance.now();
      if (typeof data === "string") this.take(JSON.parse(data));
      else this.dispatchEvent(new CustomEvent("points", { detail: data }));
    };
    socket.onclose = ({ code, reason }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      for (const { fail } of this.waiting.values()) fail("connection lost");
      this.waiting.clear();
      // 1013: try again later.
      this.dispatchEvent(new CustomEvent("lost", { detail: code === 1008 || code === 1013 ? reason : null }));
      // A rejected token stays invalid.
      if (code === 1008) return;
      const wait = RETRY_MS[Math.min(this.attempts++, RETRY_MS.length - 1)];
      setTimeout(() => this.connect(), wait);
    };
  }

  /** A WebSocket of the dashboard, which says hello. */
  open(path) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${path}`);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => socket.send(JSON.stringify({ t: "hello", token: this.token, at: performance.now() })));
    return socket;
  }

  take(message) {
    if (message.t === "hello") this.attempts = 0;
    if (message.t === "answer") {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error !== undefined) waiting?.fail(message.error);
      else waiting?.done(message.value);
      return;
    }
    this.dispatchEvent(new CustomEvent(message.t, { detail: message }));
  }

  /** A silent connection counts as lost, although the system may not have noticed yet. */
  watch() {
    if (this.isOpen && performance.now() - this.heard > SILENCE_MS) this.socket.close();
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a message, unless older ones still wait for the network: commands must not queue up. */
  send(message) {
    if (!this.isOpen || this.socket.bufferedAmount > 16384) return false;
    // The dashboard does not carry out motions that a failing network has delayed.
    this.socket.send(JSON.stringify({ ...message, at: performance.now() }));
    return true;
  }

  /** Sends a request. Resolves to its answer. */
  ask(message) {
    return new Promise((done, fail) => {
      const id = this.nextId++;
      if (!this.send({ ...message, id })) return fail("not connected");
      this.waiting.set(id, { done, fail });
    });
  }
}
