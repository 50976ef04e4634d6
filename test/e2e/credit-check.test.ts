import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { failedTask, me, startService, taskId } from "./service.js";
import { skippingClock } from "./skipping-clock.js";

/** One picture whose task fails, on a service whose key then counts so many credits. */
async function checked(used: number, failedAt: number) {
  const at = newPlace();
  at.write("set.csv", "id,model,prompt\na,plain-image,a cup\n");
  const service = await startService();
  service.script(({ what }) => {
    const [first] = service.made;
    if (first === undefined) return "serve";
    if (what === "GET me")
      return { json: me({ balance: 100 - used, used, requests: service.asked.length - 2 }) };
    const completed_at = new Date(skippingClock.now() + failedAt).toISOString();
    return what === "GET task" ? { json: { ...failedTask(first), completed_at } } : "serve";
  });
  const ended = await run(at, ["run", "set.csv", "--yes", "--retries", "0"], { env: service.env });
  expect([ended.code, service.made[0]?.task]).toEqual([5, taskId(1)]);
  return ended.stdout;
}

test.each([-2_000, 900])(
  "credits that came back with a task that has just failed are no alarm, by whichever clock (%d ms)",
  async (failedAt) => expect(await checked(0, failedAt)).not.toContain("credit check"),
);
