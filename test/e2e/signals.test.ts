import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { eventually, newPlace, type Place, type Running, run, start, started } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";
import { isStopped } from "./state.js";

const items = 6;
const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

describe.concurrent("a run that is interrupted", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "by %s once waits for the answers in flight, sends nothing new and ends 130; resume completes it",
    async (name) => {
      const { place, service, running } = await begun();
      let told = false;
      service.script(async ({ what, before }): Promise<Scripted> => {
        if (what === "POST generate" && before === 1) {
          running().signal(name);
          await running().prints(/interrupted: waiting for requests in flight/);
          told = true;
        }
        return "serve";
      });
      const end = await running(begin).ended;
      expect(end, end.stderr).toMatchObject({ code: 130, signal: null });
      expect(told).toBe(true);
      expect(end.stdout).toMatch(/at the service +2\n/);
      expect(end.stdout).toMatch(/Next: .*resume/);
      // The second was in flight, and a third may not follow.
      expect(service.count("POST generate")).toBe(2);
      await expectResumed(place, service);
    },
  );

  test("twice quits immediately with 130, and holds only what was in flight", async () => {
    const { place, service, running } = await begun();
    service.script(async ({ what, before }): Promise<Scripted> => {
      if (what !== "POST generate" || before !== 2) return "serve";
      running().signal("SIGINT");
      await running().prints(/interrupted: /);
      running().signal("SIGINT");
      await running().ended;
      return "serve";
    });
    const end = await running(begin).ended;
    expect(end).toMatchObject({ code: 130, signal: null });
    expect(service.count("POST generate")).toBe(3);

    const second = await run(place, ["resume"], service);
    expect(second, second.stderr).toMatchObject({ code: 10 });
    expect(second.stdout).toMatch(/held +1,/);
    expect(service.count("POST generate")).toBe(items);
    expectArchived(
      join(place.folder, "outputs", "set"),
      ids(items).filter((id) => id !== "a03"),
    );
  });

  test("while it asks about the account submits nothing and leaves nothing to resume", async () => {
    const { place, service } = await begun();
    service.script(async ({ what }): Promise<Scripted> => {
      if (what === "GET models") {
        asking.interrupt();
        await asking.prints(/interrupted: /);
      }
      return "serve";
    });
    const asking = started(place, begin, service);
    const end = await asking.ended;
    expect(end, end.stderr).toMatchObject({ code: 130, signal: null });
    expect(service.count("POST generate")).toBe(0);
  });
});

test("P20: a suspended process continues where it was", async () => {
  const { place, service, running } = await begun();
  service.script(async ({ what, before }): Promise<Scripted> => {
    if (what === "POST generate" && before === 2) {
      const { pid, signal } = running();
      signal("SIGSTOP");
      await eventually(() => (isStopped(pid) ? true : null));
      setImmediate(() => signal("SIGCONT"));
    }
    return "serve";
  });
  const end = await running(begin).ended;
  expect(end, end.stderr).toMatchObject({ code: 0 });
  expectArchived(join(place.folder, "outputs", "set"), ids(items));
  expect(service.count("POST generate")).toBe(items);
});

/** A place and a service, and the one process that the test is about: started by its first call. */
async function begun(): Promise<{
  place: Place;
  service: ScriptedService;
  running: (args?: readonly string[]) => Running;
}> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  let process: Running | null = null;
  return {
    place,
    service,
    running(args = []) {
      process ??= start(place, args, service);
      return process;
    },
  };
}

async function expectResumed(place: Place, service: ScriptedService): Promise<void> {
  const { stdout } = await run(place, ["status", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ counts: { submitting: 0, unknown: 0, held: 0 } });
  service.script(() => "serve");
  const second = await run(place, ["resume"], service);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expectArchived(join(place.folder, "outputs", "set"), ids(items));
  expect(service.count("POST generate")).toBe(items);
}
