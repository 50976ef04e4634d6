import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync } from "node:fs";

/** Writes each process that the tests start down in the file of this name, a line each. */
export const processTally = "BULKGEN_PROCESS_TALLY";

subscribe("child_process", (message) => {
  const { process: child } = message as { process: ChildProcess };
  const file = process.env[processTally];
  // The process has its arguments only after this call.
  if (file !== undefined) setImmediate(() => appendFileSync(file, `${JSON.stringify(child.spawnargs)}\n`));
});
