// Exits with 0 if a browser can be driven here.

import { launch } from "./browser.mjs";

const browser = await launch();
await browser.close();
