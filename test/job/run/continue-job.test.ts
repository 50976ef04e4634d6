import { afterEach, beforeEach, expect, test } from "vitest";
import { continueJob } from "../../../src/job/run/continue-job.js";
import type { JobOptions } from "../../../src/job/run/run-job.js";
import { agreeToRun } from "../../../src/job/run/run-values.js";
import { takeLock } from "../../../src/store/lock.js";
import { unfinishedRun } from "../../../src/workspace/find-run.js";
import { newItem, runStart } from "../../store/item-fixture.js";
import { type ArchivedPlace, archivedPlace, quietJob } from "../../upkeep/archived-place.js";

let place: ArchivedPlace;
beforeEach(async () => {
  place = await archivedPlace();
  await place.store.enroll(place.run.id, [newItem("a")]);
  // Its manifest is elsewhere.
  agreeToRun(place.run, place.workspace, 0);
});
afterEach(() => place.close());

/** Continues the newest unfinished run, after waiting for a process in which `act` is done. */
function afterWaiting(act: () => Promise<unknown>): Promise<unknown> {
  const lock = takeLock(place.workspace.lockFile);
  const options: JobOptions = {
    ...quietJob(place),
    connect: async () => ({
      connection: { baseUrl: "http://127.0.0.1:9", key: "svc_none", origin: runStart.origin, sandbox: false },
      close: async () => undefined,
    }),
    clock: {
      ...place.clock,
      now: () => 0,
      monotonic: () => 0,
      alarm: () => () => undefined,
      async sleep() {
        await act();
        lock?.release();
      },
    },
    ifLocked: "wait",
  };
  return continueJob(options, { choose: unfinishedRun(undefined, options.workspace) }, async () => undefined);
}

test("P18: what another process has finished in the meantime is not continued", async () => {
  const end = () => place.store.setRun(place.run.id, { state: "finished", endedAt: 1 });
  await expect(afterWaiting(end)).rejects.toMatchObject({
    exit: "done",
    message: "nothing to resume: every run of this workspace is finished",
  });
});

test("P7: a run that took the place of the one that was meant is not continued under its terms", async () => {
  const start = async () => {
    await place.store.setRun(place.run.id, { state: "finished", endedAt: 1 });
    const { id } = await place.store.job("other");
    await place.store.startRun(id, { ...runStart, outFolder: place.workspace.outFolder });
  };
  await expect(afterWaiting(start)).rejects.toMatchObject({
    exit: "usage",
    message: expect.stringContaining("run 2 took the place of run 1"),
  });
});
