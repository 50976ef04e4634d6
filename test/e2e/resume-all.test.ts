import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, run, started } from "./command.js";
import { type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** Runs of two jobs that ended at their caps, with half of their items, and one that is finished. */
async function unfinished() {
  const service = await startService();
  const place = newPlace();
  for (const [job, cap] of [
    ["a", "4"],
    ["b", "4"],
    ["c", "8"],
  ] as const) {
    place.write(`${job}.csv`, sheet(4, "plain-image").replaceAll("a0", `${job}0`));
    const ended = await run(place, ["run", `${job}.csv`, "--yes", "--max-credits", cap], service);
    expect([0, 6], ended.stderr).toContain(ended.code);
  }
  expect(service.made).toHaveLength(8);
  return { service, place };
}

const all = ["resume", "--all", "--max-credits", "8"];

describe.concurrent("resume --all", () => {
  test("continues every unfinished run, the oldest first, and ends with one summary", async () => {
    const { service, place } = await unfinished();
    const resumed = await run(place, all, service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(resumed.stderr).toContain("resuming 2 runs: 4 items of 2 runs left to make, 8 credits\n");
    expect(resumed.stderr).toMatch(/^ +1 +a +2 +4 +\S+ on \S+$/m);
    expect(resumed.stdout).toMatch(
      /^run +job +archived +failed +held +credits +ended\n +1 +a +4 of 4 +0 +0 +8 +done\n +2 +b +4 of 4 +0 +0 +8 +done\n$/,
    );
    expect(service.made).toHaveLength(12);
    expect(await run(place, all, service)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("nothing to resume: every run of this workspace is finished"),
    });
  });

  test("asks once on a terminal, about all of them", async () => {
    const { service, place } = await unfinished();
    const how = { ...service, columns: 100, keyboard: true };
    const refused = started(place, all, how);
    await refused.prints(/Spend 8 credits on 4 items of 2 runs\? \[y\/N\]/);
    refused.type("\n");
    expect((await refused.ended).code).toBe(2);
    expect(service.made).toHaveLength(8);
    const asked = started(place, all, how);
    await asked.prints(/Spend 8 credits on 4 items of 2 runs\? \[y\/N\]/);
    asked.type("y\n");
    expect((await asked.ended).code).toBe(0);
    expect(service.made).toHaveLength(12);
  });

  test("buys within --max-price for all together, or nothing", async () => {
    const { service, place } = await unfinished();
    expect(await run(place, [...all, "--max-price", "7"], service)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the price is 8 credits, more than --max-price 7 allows"),
    });
    expect(service.made).toHaveLength(8);
    expect((await run(place, [...all, "--max-price", "8"], service)).code).toBe(0);
    expect(service.made).toHaveLength(12);
  });

  test("shows each run with its question, and leaves out of the sum what this key cannot continue", async () => {
    const { service, place } = await unfinished();
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
    place.write("d.csv", sheet(4, "plain-image").replaceAll("a0", "d0"));
    const third = await run(place, ["run", "d.csv", "--yes", "--max-credits", "4"], service);
    expect(third.code, third.stderr).toBe(6);
    db.exec(`UPDATE runs SET account_id = '22222222-2222-4222-8222-222222222222' WHERE id = 2;
      UPDATE runs SET options = json_set(options, '$.beganBy.host', 'elsewhere', '$.beganBy.user', 'ben') WHERE id = 4`);
    db.close();
    const length = service.made.length;
    const asked = started(place, all, { ...service, columns: 120, keyboard: true });
    await asked.prints(/Spend 8 credits on 4 items of 2 runs\? \[y\/N\]/);
    asked.type("y\n");
    const ended = await asked.ended;
    const shown = stripVTControlCharacters(ended.stderr);
    const told = stripVTControlCharacters(ended.stdout);
    expect(shown).toContain("resuming 3 runs: 4 items of 2 runs left to make, 8 credits");
    expect(shown).toMatch(/^ +1 +a +2 +4 +\S+ on \S+\s*$/m);
    expect(shown).toMatch(/^ +2 +b +another user or service: this key cannot continue it\s*$/m);
    expect(shown).toMatch(/^ +4 +d +2 +4 +ben on elsewhere\s*$/m);
    expect(told).toMatch(/^ +2 +b +2 of 4 +0 +0 +4 +usage \(exit 2\)\s*$/m);
    expect(ended.code).toBe(2);
    expect(service.made).toHaveLength(length + 4);
    const refused = await run(place, [...all, "--json"], service);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      exit: 2,
      runs: [
        {
          run: 2,
          items: 4,
          archived: 2,
          failed: 0,
          spent: 4,
          message: expect.stringContaining("belongs to another account or service"),
        },
      ],
    });
  });

  test("goes on after a run that fails, ends with the worst code, and is one document for programs", async () => {
    const { service, place } = await unfinished();
    service.script(
      ({ what, body }): Scripted =>
        what === "POST generate" && body.includes("of a0")
          ? { status: 400, json: { error: { code: "INVALID_MODEL", message: "no such model" } } }
          : "serve",
    );
    const resumed = await run(place, [...all, "--json"], service);
    expect(resumed.code, resumed.stderr).toBe(5);
    expect(JSON.parse(resumed.stdout)).toMatchObject({
      exit: 5,
      exitName: "failed",
      runs: [
        {
          run: 1,
          job: "a",
          exit: 5,
          items: 4,
          archived: 2,
          failed: 1,
          message: null,
          nextStep: expect.any(String),
        },
        { run: 2, job: "b", exit: 0, items: 4, archived: 4, spent: 8, message: null, nextStep: null },
      ],
      left: [],
    });
  });

  test("stops where the next would be stopped too, and names what was not begun", async () => {
    const { service, place } = await unfinished();
    service.script(
      (): Scripted => ({
        status: 401,
        json: { error: { code: "INVALID_API_KEY", message: "revoked" } },
      }),
    );
    const resumed = await run(place, all, service);
    expect(resumed.code).toBe(3);
    expect(resumed.stdout).toMatch(/^ +1 +a +.*key \(exit 3\)$/m);
    expect(resumed.stdout).toContain("Not continued: run 2.\n");
    expect(resumed.stderr).toMatch(/^bulkgen: run 1: /m);
  });

  test("is quiet when all is well, and takes no number", async () => {
    const { service, place } = await unfinished();
    expect(await run(place, ["resume", "1", "--all"], service)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("expected the number of a run or --all, got both"),
    });
    expect(await run(place, [...all, "--quiet"], service)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });
});
