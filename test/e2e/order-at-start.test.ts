import { expect, test } from "vitest";
import { newPlace, run, started } from "./command.js";
import { me, type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

test.each(["cancel", "pause"])(
  "%s means the run that a command is about to begin, not the one that has ended",
  async (what) => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(0);
    let answerMe: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      answerMe = resolve;
    });
    let wasAsked: () => void = () => {};
    const isAsked = new Promise<void>((resolve) => {
      wasAsked = resolve;
    });
    service.script(async ({ what: request, path }): Promise<Scripted> => {
      if (request === "GET me") {
        wasAsked();
        await asked;
      }
      const made = service.made.find(({ task }) => path.endsWith(task));
      // Its task is never done before the order.
      if (request === "GET task" && made !== undefined && !isOrdered)
        return { status: 500, json: { error: { code: "INTERNAL_ERROR", message: "busy" } } };
      return "serve";
    });
    let isOrdered = false;
    const redo = started(place, ["redo", "a01", "--yes"], service);
    await isAsked;
    const order = started(place, [what], service);
    answerMe();
    const end = await order.ended;
    isOrdered = true;
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(end.stdout).toMatch(what === "cancel" ? /^run 2 is cancelled/ : /^run 2 is paused/);
    expect([8, 130]).toContain((await redo.ended).code);
    expect((await run(place, ["status", "1"], service)).stdout).toContain("finished");
  },
);

test("the report of a run does not ask to top up for items that a later run has made", async () => {
  const service = await startService({ balance: 2 });
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes", "--on-insufficient", "fit")).code).toBe(7);
  expect((await command("status", "1")).stdout).toContain("top up, then");
  service.script(({ what }): Scripted => (what === "GET me" ? { json: me({ balance: 90 }) } : "serve"));
  const end = await command("run", "set.csv", "--yes");
  expect([0, 10], end.stderr).toContain(end.code);
  for (const words of [
    ["status", "1"],
    ["report", "1"],
  ])
    expect((await command(...words)).stdout).not.toContain("top up");
});
