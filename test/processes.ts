import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync } from "node:fs";
import { processTally } from "./e2e/leaked-key-tally.js";

/** Writes down each process that a worker's tests start, a line each. Vitest's own process starts no tests, only workers. */
subscribe("child_process", (message) => {
  const { process: child } = message as { process: ChildProcess };
  const file = process.env[processTally];
  // The process has its arguments only after this call.
  if (file !== undefined) setImmediate(() => appendFileSync(file, `${JSON.stringify(child.spawnargs)}\n`));
});
