import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, expectTypeOf, test } from "vitest";
import { EarlyExit } from "../../src/core/exit.js";
import { documents } from "../../src/documents/documents.js";
import type { RunEvent } from "../../src/documents/run.js";
import type { ClientOptions } from "../../src/library/client.js";
import { type PlanSettings, planManifest, type RunDetails } from "../../src/library/plan.js";
import { type RunRequirements, runManifest } from "../../src/library/run.js";
import { type SandboxSettings, startSandbox } from "../../src/library/sandbox.js";
import type {
  ClientSettingName,
  ManifestSettingName,
  SandboxSettingName,
} from "../../src/library/settings.js";
import { readRows } from "../../src/library/sheet.js";
import { openReader, readIndexOf } from "../../src/library/workspace.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { all, libraryPlace } from "./place.js";

const sheet = "id,model,prompt\ncup,aurora-image-mini,a cup\njug,aurora-image-mini,a jug\n";

const names = (events: readonly RunEvent[], id: string) =>
  events.filter((event) => "rowId" in event && event.rowId === id).map(({ event }) => event);

describe("a run by the library", () => {
  test("reports each item's steps, leaves a workspace and an archive that can be read, and is not paid again", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", sheet);
    const settings = { service: sandbox, maxCredits: 2 };
    const events = await all(runManifest(on, "set.csv", settings));
    expect(events[0]).toMatchObject({ event: "run_started", job: "set", sandbox: true });
    expect(names(events, "cup")).toEqual(["submitted", "completed", "archived"]);
    expect(events.at(-1)).toMatchObject({
      event: "run_finished",
      exitName: "done",
      credits: { spent: 2, pending: 0, left: 498 },
    });

    const workspace = await openReader(on, ".", { sandbox: true });
    expect(await workspace.runs()).toMatchObject([
      { run: 1, job: "set", state: "finished", credits: { spent: 2 }, exitName: "done" },
    ]);
    expect(await workspace.run(2)).toBeNull();
    expect(await workspace.items(1, { text: "jug" })).toMatchObject({
      items: [{ rowId: "jug", state: "archived", price: 1, files: 1, picked: false }],
      total: 1,
    });
    const final = await workspace.finalSet();
    expect(final?.missing).toEqual([]);
    expect(final?.files.every(({ path }) => existsSync(path))).toBe(true);
    expect(final?.files.map(({ name }) => name)).toContain("cup.png");
    expect(await workspace.finalSet(99)).toBeNull();
    const [output] = await workspace.outputs({ text: "cup" });
    expect(existsSync(join(output?.folder ?? "", output?.file ?? ""))).toBe(true);
    expect(documents.status.schema.parse(await workspace.status())).toMatchObject({
      run: 1,
      exit: 0,
      exitName: "done",
      counts: { archived: 2 },
    });
    expect(await workspace.status(2)).toBeNull();
    const report = documents.report.schema.parse(await workspace.report(new Date(0)));
    expect(report).toMatchObject({ workspace: place.folder, sandbox: true, totals: { archived: 2 } });
    await workspace.close();
    const index = await readIndexOf(on, output?.folder ?? "");
    expect(index.map(({ item, credits }) => [item, credits]).toSorted()).toEqual([
      ["cup", 1],
      ["jug", 1],
    ]);

    const again = await all(runManifest(on, "set.csv", settings));
    expect(again.map(({ event }) => event)).toEqual(["run_started", "run_finished"]);
  });

  test("P7: spends no more than maxCredits", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", sheet);
    const events = await all(runManifest(on, "set.csv", { service: sandbox, maxCredits: 1 }));
    expect(events.at(-1)).toMatchObject({ exitName: "cap", credits: { spent: 1 } });
  });

  test("spends nothing unless the caller names a limit or agrees to the plan", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", sheet);
    // @ts-expect-error A program without a limit does not compile either.
    const unlimited: RunRequirements = { service: sandbox };
    await expect(all(runManifest(on, "set.csv", unlimited))).rejects.toThrow("name the most with maxCredits");
    for (const maxCredits of [Number.NaN, Number.POSITIVE_INFINITY, -1, "5" as unknown as number])
      await expect(all(runManifest(on, "set.csv", { service: sandbox, maxCredits }))).rejects.toThrow(
        RangeError,
      );
    for (const odd of [{ lanes: 0 }, { limits: { rpd: 2 } }, { maxFailures: 0.5 }])
      await expect(
        all(runManifest(on, "set.csv", { service: sandbox, maxCredits: 1, ...odd })),
      ).rejects.toThrow(RangeError);
    const priced: number[] = [];
    const disagreed = runManifest(on, "set.csv", {
      service: sandbox,
      agree: ({ money }) => {
        priced.push(money.within);
        return "yes" as unknown as boolean;
      },
    });
    await expect(all(disagreed)).rejects.toThrow("not confirmed; nothing was submitted");
    expect(priced).toEqual([2]);
    const { money } = await planManifest(on, "set.csv", { service: sandbox });
    expect(money.balance).toBe(500);
  });

  test("leaving the loop interrupts the run, and the next run collects what was paid", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", sheet);
    const settings = { service: sandbox, maxCredits: 2 };
    await skippingClock.during(
      (async () => {
        for await (const { event } of runManifest(on, "set.csv", settings)) if (event === "submitted") break;
      })(),
    );
    const workspace = await openReader(on, ".", { sandbox: true });
    expect(await workspace.runs()).toMatchObject([{ state: "interrupted", exitName: "interrupted" }]);
    await workspace.close();
    const rest = await all(runManifest(on, "set.csv", settings));
    expect(rest.at(-1)).toMatchObject({
      exitName: "done",
      counts: { archived: 2 },
      credits: { spent: 2, left: 498 },
    });
  });

  test("an aborted signal ends it as an interruption", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", sheet);
    const stop = new AbortController();
    const run = runManifest(on, "set.csv", { service: sandbox, maxCredits: 2, signal: stop.signal });
    const events = await skippingClock.during(
      (async () => {
        const seen: RunEvent[] = [];
        for await (const event of run) {
          seen.push(event);
          if (event.event === "submitted") stop.abort();
        }
        return seen;
      })(),
    );
    expect(events.at(-1)).toMatchObject({ event: "run_finished", exitName: "interrupted" });
  });

  test("a sandbox with a state file goes on in its workspace, and another one is refused there", async () => {
    const { on, place } = await libraryPlace();
    place.write("set.csv", sheet);
    const ends: unknown[] = [];
    for (const state of ["service.db", "service.db", "other.db"]) {
      const service = await startSandbox(on, { state, taskMs: { min: 0, max: 0 } });
      const events = all(runManifest(on, "set.csv", { service, maxCredits: 2 }));
      ends.push(
        await events.then(
          (told) => told.length,
          (error: Error) => error.message,
        ),
      );
      await service.close();
    }
    expect(ends).toEqual([8, 2, expect.stringContaining("were made with another sandbox")]);
  });

  test("a manifest that cannot be run is thrown with its problems", async () => {
    const { on, sandbox, place } = await libraryPlace();
    place.write("set.csv", "id,model,prompt\ncup,aurora-image-minni,a cup\n");
    const error = await all(runManifest(on, "set.csv", { service: sandbox, maxCredits: 1 })).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(EarlyExit);
    expect(error).toMatchObject({
      exit: "usage",
      problems: { count: 1, reported: [{ problem: { nearest: "aurora-image-mini" } }] },
      message: expect.stringMatching(
        /^1 problem in the manifest; nothing was submitted\nset.csv, row 2, id cup, column model: unknown model/,
      ),
    });
    const missing = planManifest(on, "sett.csv", { service: sandbox });
    await expect(missing).rejects.toThrow("sett.csv: the manifest does not exist");
  });
});

test("a plan is whole after it was made, in plain numbers, and changes nothing", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", `${sheet}bad,aurora-image-mini\n`);
  const before = place.files();
  const made = await planManifest(on, "set.csv", { service: sandbox, filter: { id: "cup" } });
  expect(made).toMatchObject({
    job: "set",
    money: { needed: 1, balance: 500, after: 499 },
    items: [{ rowId: "cup", price: 1, due: true, state: "new" }],
    selection: { rows: 1 },
  });
  expect(JSON.parse(JSON.stringify(made))).toEqual(made);
  expect(place.files()).toEqual(before);
});

test("a manifest's rows are read with their problems, and no service is asked", async () => {
  const { on, place } = await libraryPlace();
  place.write("set.csv", "id,prompt,priority\ncup,a {{ id }},high\njug,a jug,2\n");
  const { name, rows, problems } = await readRows(on, "set.csv", { model: "aurora-image-mini" });
  expect(name).toBe("set");
  expect(rows.map(({ id, model, priority }) => ({ id, model, priority }))).toContainEqual({
    id: "jug",
    model: "aurora-image-mini",
    priority: 2,
  });
  expect(problems.map(({ place: { row, column } }) => ({ row, column }))).toEqual([
    { row: 2, column: "priority" },
  ]);
});

test("a number that means nothing is a rejection, and never no limit", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", sheet);
  await expect(readRows(on, "set.csv", { maxItems: Number.NaN })).rejects.toThrow("maxItems");
  const planned = planManifest(on, "set.csv", { service: sandbox, maxCredits: Number.NaN });
  await expect(planned).rejects.toThrow("maxCredits");
});

test("a setting that has no meaning is a rejection that names it, before anything is sent", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", sheet);
  const service = { ...sandbox };
  const wrong: [settings: object, message: RegExp][] = [
    [{ keepcredits: 400 }, /^unknown setting "keepcredits"; did you mean "keepCredits"\?/],
    [{ until: "18:00" }, /^unknown setting "until"/],
    [{ onInsufficient: "refused" }, /^onInsufficient: .*"refuse"/],
    [{ onDailyLimit: true }, /^onDailyLimit: /],
    [{ filter: "id=cup" }, /^filter: .*expected record/],
    [{ params: { seed: 1 } }, /^params\.seed: .*expected string/],
    [{ agree: true }, /^agree: expected a function/],
    [{ signal: {} }, /^signal: expected an AbortSignal/],
  ];
  for (const [settings, message] of wrong) {
    const given = { service, maxCredits: 5, ...settings } as RunRequirements;
    const thrown = await all(runManifest(on, "set.csv", given)).catch((error: unknown) => error);
    expect(thrown, JSON.stringify(settings)).toBeInstanceOf(RangeError);
    expect((thrown as Error).message).toMatch(message);
    await expect(planManifest(on, "set.csv", given)).rejects.toThrow(message);
  }
  const path = 5 as unknown as string;
  await expect(planManifest(on, path, { service })).rejects.toThrow(
    "manifest: expected a path (a string), got number",
  );
  for (const empty of ["", " "]) {
    const named = "manifest: expected a path, got an empty text";
    await expect(planManifest(on, empty, { service })).rejects.toThrow(named);
    await expect(readRows(on, empty, {})).rejects.toThrow(named);
    await expect(all(runManifest(on, empty, { service, maxCredits: 5 }))).rejects.toThrow(named);
  }
  await expect(planManifest(on, "set.csv", undefined as never)).rejects.toThrow(
    "settings: expected an object",
  );
  // The settings of a run serve its plan too, and what is undefined counts as absent.
  const shared = { service, maxCredits: 5, lanes: 2, agree: () => false, skipInvalid: true };
  expect((await planManifest(on, "set.csv", { ...shared, edition: undefined as never })).money.needed).toBe(
    2,
  );
  expect((await readRows(on, "set.csv", shared as never)).rows).toHaveLength(2);
});

test("every setting that the types offer is known, and no other", () => {
  expectTypeOf<ManifestSettingName>().toEqualTypeOf<keyof (PlanSettings & RunDetails)>();
  expectTypeOf<ClientSettingName>().toEqualTypeOf<keyof ClientOptions>();
  expectTypeOf<SandboxSettingName>().toEqualTypeOf<keyof SandboxSettings>();
});

test("a setting of the sandbox that has no meaning is a rejection", async () => {
  const { on } = await libraryPlace();
  const wrong: [settings: object, message: string][] = [
    [{ credit: 5 }, 'unknown setting "credit"; did you mean "credits"?'],
    [{ plan: "Free" }, "plan: "],
    [{ credits: -5 }, "credits: "],
    [{ taskMs: 5 }, "taskMs: "],
    [{ taskMs: { min: 5, max: 1 } }, "taskMs: min is above max"],
  ];
  for (const [settings, message] of wrong) {
    const started = startSandbox(on, settings as never);
    await expect(started, JSON.stringify(settings)).rejects.toThrow(RangeError);
    await expect(startSandbox(on, settings as never)).rejects.toThrow(message);
  }
});

test("a state that cannot be used is an EarlyExit that says what to do", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", sheet);
  const settings = { service: sandbox, maxCredits: 2 };
  const away = { ...settings, databaseUrl: "postgres://user@127.0.0.1:9/none" };
  const unreachable = {
    name: "EarlyExit",
    exit: "unreachable",
    message: /127\.0\.0\.1:9.*; see that it runs/,
  };
  await expect(all(runManifest(on, "set.csv", away))).rejects.toMatchObject(matching(unreachable));
  await expect(planManifest(on, "set.csv", away)).rejects.toMatchObject(matching(unreachable));
  await all(runManifest(on, "set.csv", settings));
  await expect(openReader(on, ".", {})).rejects.toThrow(/only rehearsals in .*; add --sandbox/);
  place.write(".bulkgen/sandbox/state.db", "damaged ".repeat(1_000));
  const damaged = { name: "EarlyExit", exit: "usage", message: /not a database; .*bulkgen doctor/ };
  await expect(all(runManifest(on, "set.csv", settings))).rejects.toMatchObject(matching(damaged));
  await expect(planManifest(on, "set.csv", settings)).rejects.toMatchObject(matching(damaged));
  await expect(openReader(on, ".", { sandbox: true })).rejects.toMatchObject(matching(damaged));
});

const matching = ({ message, ...facts }: { message: RegExp }) => ({
  ...facts,
  message: expect.stringMatching(message),
});

test("a key that the service refuses is said to be the one that the program gave", async () => {
  const { on, paid, place } = await libraryPlace();
  place.write("set.csv", sheet);
  const service = { ...paid, apiKey: `svc_${"z".repeat(32)}` };
  await expect(planManifest(on, "set.csv", { service })).rejects.toMatchObject({
    exit: "key",
    message: expect.stringMatching(/Set a valid one in service\.apiKey\.$/),
  });
});

test("an argument of a workspace that has no meaning is a RangeError that names it", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", sheet);
  await expect(openReader(on, undefined as never, {})).rejects.toThrow(
    "folder: expected a path (a string), got undefined",
  );
  await expect(openReader(on, ".", { sandBox: true } as never)).rejects.toThrow(
    'unknown setting "sandBox"; did you mean "sandbox"?',
  );
  await all(runManifest(on, "set.csv", { service: sandbox, maxCredits: 2 }));
  const workspace = await openReader(on, ".", { sandbox: true });
  const wrong: [call: () => Promise<unknown>, message: string][] = [
    [() => workspace.run("1" as never), "run: "],
    [() => workspace.runs({ limit: -1 }), "limit: "],
    [() => workspace.runs({ before: new Date(0) as never }), "before: "],
    [() => workspace.items(1, { state: "done" as never }), "state: "],
    [() => workspace.items(1, { text: 5 as never }), "text: "],
    [() => workspace.outputs({ run: 0.5 }), "run: "],
    [() => workspace.status("newest" as never), "run: "],
    [() => workspace.report("2026-01-01" as never), "since: "],
    [() => workspace.report(new Date("never")), "since: "],
  ];
  for (const [call, message] of wrong) {
    const thrown = await call().catch((error: unknown) => error);
    expect(thrown, message).toBeInstanceOf(RangeError);
    expect((thrown as Error).message).toMatch(new RegExp(`^${message}`));
  }
  await workspace.close();
});

test("what is not there is said", async () => {
  const { on } = await libraryPlace();
  await expect(openReader(on, ".", {})).rejects.toThrow("no runs in");
  await expect(readIndexOf(on, ".")).rejects.toThrow("has no index.jsonl");
});
