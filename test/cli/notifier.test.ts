import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { openNotifier } from "../../src/cli/output/notifier.js";
import type { Reason } from "../../src/core/reason.js";
import type { Machine } from "../../src/machine.js";
import type { Workspace } from "../../src/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";
import { startHook } from "../notify/receivers.js";

test("a run that waits for room says so when the waiting begins, once", async () => {
  const hook = await startHook(200);
  const env = { BULKGEN_SCHEDULED_BY: "night", BULKGEN_SCHEDULED_FOR: "2026-11-21T02:00:00.000Z" };
  const machine = { env, cwd: "/", clock: new ManualClock(), stderr: new PassThrough() };
  const workspace = { root: "/srv/campaign" } as Workspace;
  const notifier = await openNotifier(
    { notify: [hook.url], sandbox: false } as Parameters<typeof openNotifier>[0],
    machine as unknown as Machine,
    workspace,
  );
  notifier?.begin({ id: 7, jobName: "night" });
  const full = (text: string): Reason => ({
    kind: "disk",
    text: `files cannot be saved: ${text}`,
    until: null,
  });
  notifier?.waits(null);
  notifier?.waits(full("67.8 MB free and 69.2 MB needed"));
  await hook.got(1);
  notifier?.waits(full("67.7 MB free and 69.2 MB needed"));
  await notifier?.ended("crash", null, "the process was ended");
  const [begins, ends] = hook.received.map(({ body }) => JSON.parse(body));
  expect(begins).toMatchObject({
    event: "trouble",
    exit: null,
    run: 7,
    schedule: "night",
    summary: "night, run 7 waits: files cannot be saved: 67.8 MB free and 69.2 MB needed",
    next: "make room or restore access; the run continues by itself",
  });
  expect(ends).toMatchObject({ event: "crash", workspace: "/srv/campaign" });
  expect(hook.received).toHaveLength(2);
});
