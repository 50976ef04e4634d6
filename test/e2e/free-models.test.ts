import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { models, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** A service may have models that cost nothing. */
async function freeService(plan = "Pro") {
  const free = { models: models.models.map((model) => ({ ...model, credits_cost: 0 })) };
  const script = ({ what }: { what: string }) =>
    what === "GET models" ? { json: free } : ("serve" as const);
  return startService({ charge: 0, balance: 0, plan, script });
}

test("what costs nothing is made without a question, by every command", async () => {
  const at = newPlace();
  at.write("set.csv", sheet(2, "plain-image"));
  const service = await freeService();
  const ended = await run(at, ["run", "set.csv"], service);
  expect(ended.code, ended.stderr).toBe(0);
  const again = await run(at, ["redo", "a01"], service);
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain("1 item to be made again, at no cost\n- a01-v2\n");
  expect(service.count("POST generate")).toBe(3);
  expect(ended.stderr + again.stderr).not.toMatch(/0 credits/);
});

test("identical rows that cost nothing are not said to be paid for", async () => {
  const at = newPlace();
  at.write("set.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-image,a cup\n");
  const { stdout } = await run(at, ["plan", "set.csv"], await freeService());
  expect(stdout).toContain("rows 2, 3 are identical; each is made\n");
});

test("--max-credits 0 makes what is free, and buys nothing and asks nothing for the rest", async () => {
  const at = newPlace();
  at.write("set.csv", sheet(2, "plain-image"));
  const free = await run(at, ["run", "set.csv", "--max-credits", "0"], await freeService());
  expect(free.code, free.stderr).toBe(0);
  const other = newPlace();
  other.write("set.csv", sheet(2, "plain-image"));
  const service = await startService({ balance: 100 });
  const { code, stderr } = await run(other, ["run", "set.csv", "--max-credits", "0"], service);
  expect([code, stderr]).toEqual([
    6,
    expect.stringContaining("4 needed, 0 within the caps, 100 on the account, 100 after, cap 0\n"),
  ]);
  expect(service.count("POST generate")).toBe(0);
});

test.each(["pro", "PRO", " Pro "])(
  "the plan's name is known however the service writes it: %s",
  async (plan) => {
    const at = newPlace();
    at.write("set.csv", sheet(1, "plain-image"));
    const service = await freeService(plan);
    const planned = await run(at, ["plan", "set.csv"], service);
    expect(planned.stdout).toContain("plan Pro: 60 requests a minute, 10000 a day");
    const account = await run(at, ["account"], service);
    expect(account.stdout).toMatch(/^plan +Pro, active/m);
    expect(account.stdout).toContain("of 60 requests");
    expect(planned.stderr + account.stderr).not.toContain("unknown plan");
  },
);
