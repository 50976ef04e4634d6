import { z } from "zod";
import { count, milliseconds, runNumber, text, time } from "./values.js";

const owner = { pid: z.int().describe("its process"), host: text("its machine") };

export const fleet = z.strictObject({
  workers: z.array(
    z.strictObject({
      ...owner,
      version: text("of bulkgen"),
      downloads: count(
        "downloads that it does at once; 0 while it finishes its last, and for one that only stands by",
      ),
      busy: count("downloads in progress"),
      done: count("downloads that it has done since it began"),
      does: z
        .enum(["run", "archive", "standby", "submit"])
        .describe(
          "it is the run itself, downloads only, also stands by to go on with a run whose process is gone, or does that alone",
        ),
      startedAt: time("when it began, by the clock of the database"),
    }),
  ),
  waiting: count("downloads that nobody has taken yet"),
  longestWaitMs: milliseconds("how long the first of these has waited").nullable(),
  active: count("downloads that workers have taken"),
  lockOwner: z
    .strictObject({
      ...owner,
      since: time("since when"),
      run: runNumber.nullable().describe("the run that it executes; null before that begins"),
    })
    .nullable()
    .describe("the process that uses the workspace"),
});

export const fleetRebuild = z.strictObject({
  queue: z.literal("rebuilt").describe("the queue of downloads was dropped and made again"),
});

export const migration = z.strictObject({
  state: text("where the state is now: a file, or a database's address without its password"),
  items: count("items of the workspace"),
  attempts: count("paid requests of the workspace"),
  spendLog: count("requests in the spend log of the accounts that came along"),
});
