// Words for people.

/** An error of the package in one line, with its hint. */
export function inWords({ message, hint }) {
  return hint ? `${message.split("\nhint: ")[0]} (${hint})` : message;
}
