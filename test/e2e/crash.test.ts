import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived, indexOf } from "./archive.js";
import { eventually, newPlace, type Place, type Running, run, start } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, startProxy } from "./service.js";
import { ids, sheet } from "./sheet.js";
import { itemCounts } from "./state.js";

describe.concurrent("a run that was killed", () => {
  test("in the middle of a rehearsal continues with its tasks", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(8));
    const first = start(place, ["run", "set.csv", "--sandbox", "--yes"]);
    const seen = await eventually(() => {
      const counts = itemCounts(place, "sandbox");
      return counts?.["processing"] && !counts["planned"] && !counts["submitting"] ? counts : null;
    });
    first.signal("SIGKILL");
    expect((await first.ended).signal).toBe("SIGKILL");
    expect(seen["archived"] ?? 0).toBeLessThan(8);
    expect(await status(place, "--sandbox")).toMatchObject({ state: "running", alive: false });

    const second = await run(place, ["resume", "--sandbox"]);
    expect(second, second.stderr).toMatchObject({ code: 0 });
    expectArchived(join(place.folder, "sandbox-outputs", "set"), ids(8));
    expect(second.stdout).toContain("8 spent, 492 left");
  });

  test("P2, P3: during a paid request holds only that item and never sends it again", async () => {
    const sandbox = await startSandbox();
    const place = newPlace();
    place.write("set.csv", sheet(7));
    let running: Running | null = null;
    const proxy = await startProxy(sandbox, ({ what, before }) => {
      if (what !== "POST generate" || before !== 3) return "serve";
      running?.signal("SIGKILL");
      return "serve and cut";
    });
    running = start(place, ["run", "set.csv", "--yes", "--lanes", "1"], proxy);
    expect((await running.ended).signal).toBe("SIGKILL");

    const second = await run(place, ["resume"], proxy);
    expect(second, second.stderr).toMatchObject({ code: 10 });
    const [held, ...others] = (await status(place))?.trouble ?? [];
    expect(held).toMatchObject({
      state: "held",
      reason: expect.stringContaining("the process ended before"),
    });
    expect(others).toEqual([]);
    expectArchived(
      join(place.folder, "outputs", "set"),
      ids(7).filter((id) => id !== held?.rowId),
    );
    // The service took the request that was cut off: paid once, and only once.
    const tasks = await sandbox.tasks();
    expect(tasks.map((task) => task.prompt).toSorted()).toEqual(ids(7).map((id) => `a picture of ${id}`));
  });

  // `npm run torture` kills at random as often as is wanted.
  test("P2, P4: three times at random moments pays nothing twice and loses no completed task", async () => {
    const sandbox = await startSandbox();
    const place = newPlace();
    const [items, kills, lanes] = [16, 3, 2];
    place.write("set.csv", sheet(items));
    const next = seeded(20_260_101);
    let running: Running | null = null;
    let left = Number.POSITIVE_INFINITY;
    const proxy = await startProxy(sandbox, async ({ what }) => {
      if (left === Number.POSITIVE_INFINITY && what === "POST generate" && running) left = 1 + next(8);
      left--;
      if (left !== 0) return "serve";
      // Before the service sees the request, after it has answered, or with the answer on its way.
      const instant = next(3);
      const scripted: Scripted = instant === 0 ? "cut" : instant === 1 ? "serve and cut" : "serve";
      running?.signal("SIGKILL");
      return scripted;
    });
    for (let kill = 0; kill < kills; kill++) {
      const args = kill === 0 ? ["run", "set.csv", "--yes"] : ["resume"];
      left = kill === 0 ? Number.POSITIVE_INFINITY : 2 + next(9);
      running = start(
        place,
        [
          ...args,
          ...(kill === 0 ? ["--lanes", String(lanes), "--settle-seconds", "1,2", "--settle", "wait"] : []),
        ],
        proxy,
      );
      const end = await running.ended;
      expect(end.signal, `kill ${kill}: ${end.stderr}`).toBe("SIGKILL");
    }
    left = -1;
    const last = await run(place, ["resume"], proxy);
    const facts = await status(place);
    const held = (facts?.trouble ?? []).filter((item) => item.state === "held").map((item) => item.rowId);
    expect(last, last.stderr).toMatchObject({ code: held.length > 0 ? 10 : 0 });
    expect(held.length).toBeLessThanOrEqual(kills * lanes);

    const folder = join(place.folder, "outputs", "set");
    expectArchived(
      folder,
      ids(items).filter((id) => !held.includes(id)),
    );
    const tasks = await sandbox.tasks();
    const prompts = tasks.map((task) => task.prompt);
    expect(prompts).toHaveLength(new Set(prompts).size);
    const archived = new Set(indexOf(folder).map((line) => line.task));
    const missing = tasks.filter((task) => !archived.has(task.id)).map((task) => task.prompt);
    expect(held.map((id) => `a picture of ${id}`)).toEqual(expect.arrayContaining(missing));
  });
});

interface Facts {
  state: string;
  alive: boolean;
  counts: Record<"planned" | "submitting" | "processing" | "archived" | "held", number>;
  trouble: { rowId: string; state: string; reason: string }[];
}

async function status(place: Place, ...flags: string[]): Promise<Facts | null> {
  const { stdout, stderr, code } = await run(place, ["status", "--json", ...flags]);
  if (code !== 0) throw new Error(`status ended ${code}: ${stderr}`);
  return JSON.parse(stdout) as Facts | null;
}

/** Whole numbers below the given one, the same for the same seed. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
