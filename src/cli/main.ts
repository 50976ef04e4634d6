import { packageFile } from "../package-file.js";
import { runOnSystem } from "../system.js";
import { runCommand } from "./program.js";

/** The start of the command (`scripts/start.mjs`) waits for it. */
export const ended = runOnSystem(runCommand, packageFile("dist/bin/bulkgen.js"));
