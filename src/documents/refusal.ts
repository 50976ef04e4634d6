import { z } from "zod";
import { exit, exitName, text } from "./values.js";

/** How any command with `--json` ends that has nothing else to print. */
export const refusal = z.strictObject({
  exit,
  exitName,
  reason: z
    .union([exitName, z.literal("manifest")])
    .describe("why, as a code: the name of the exit code, or `manifest` if the rows have problems"),
  message: text("what happened, why, and what to do, for people"),
  next: text("the command to type now").nullable(),
});
