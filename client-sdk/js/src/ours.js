// Amber's own devices. PURE.

import { Names } from "./address.js";
import { interfacesOf } from "./interface.js";
import { OURS } from "./schemas.js";

/** The interfaces of Amber's own devices, by device type. */
export const INTERFACES = interfacesOf(OURS);

/** Their names. */
export const NAMES = new Names();
for (const { type, name, alias, codec } of INTERFACES) {
  NAMES.add(type, name, alias);
  codec.names = NAMES;
}
