// Starts Chromium of the system.

import { chromium } from "playwright-core";

export function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // In containers, the sandbox of Chromium does not work.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}
