import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

interface Shown {
  manifest: string;
  cron: string;
  zone: string;
  missed: string;
  pausedAt: string | null;
  nextAt: string | null;
  scheduledRuns: { state: string }[];
}

async function shown(place: Place): Promise<Shown> {
  return JSON.parse((await run(place, ["schedule", "show", "nightly", "--json"])).stdout) as Shown;
}

/** The flags of its runs, as they are kept. */
function flagsOf(place: Place): string[] {
  const kept = withSchedules(place, (db) => db.prepare("SELECT flags FROM schedules").pluck().get());
  return (JSON.parse(String(kept)) as string[][]).map((words) => words.join("="));
}

async function scheduled(...words: string[]): Promise<Place> {
  const place = newPlace();
  place.write("set.csv", sheet(2));
  const add = ["schedule", "add", "nightly", "set.csv", ...yearly, "--sandbox", ...words];
  expect(await run(place, add)).toMatchObject({ code: 0 });
  return place;
}

const edit = (place: Place, ...words: string[]) => run(place, ["schedule", "edit", "nightly", ...words]);

describe("edit", () => {
  test("changes what is named, keeps all else, and needs no second yes", async () => {
    const place = await scheduled(
      "--max-credits",
      "9",
      "--notify",
      "mailto:a@example.org",
      "--smtp-url",
      "smtp://mail.invalid",
      "--no-work",
    );
    withSchedules(place, (db) =>
      db.exec("INSERT INTO scheduled_runs (schedule, due_at, state) VALUES ('nightly', 0, 'ended')"),
    );
    const edited = await edit(place, "--cron", "30 3 * * *", "--max-credits", "20", "--work", "--fresh");
    expect(edited, edited.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^due +30 3 \* \* \* in UTC$/m),
    });
    const after = await shown(place);
    expect(after).toMatchObject({ manifest: "set.csv", cron: "30 3 * * *", zone: "UTC", missed: "once" });
    expect(flagsOf(place)).toEqual([
      "--sandbox",
      "--notify=mailto:a@example.org",
      "--smtp-url=smtp://mail.invalid",
      "--fresh",
      "--max-credits=20",
      "--work",
    ]);
    expect(after.scheduledRuns).toMatchObject([{ state: "ended" }]);
    expect((await run(place, ["schedule", "list"])).stdout).not.toContain("not agreed to");
    expect(
      (
        await edit(
          place,
          "--unset",
          "max-credits",
          "--unset",
          "fresh",
          "--missed",
          "skip",
          "--tz",
          "Europe/Berlin",
        )
      ).code,
    ).toBe(0);
    const last = await shown(place);
    expect(last).toMatchObject({ missed: "skip", zone: "Europe/Berlin", cron: "30 3 * * *" });
    expect(flagsOf(place)).toEqual([
      "--sandbox",
      "--notify=mailto:a@example.org",
      "--smtp-url=smtp://mail.invalid",
      "--work",
    ]);
  });

  test("takes another manifest, whose path is that of this folder", async () => {
    const place = await scheduled();
    place.write("sheets/other.csv", sheet(1));
    const cwd = join(place.folder, "sheets");
    expect((await run(place, ["schedule", "edit", "nightly", "other.csv"], { cwd })).code).toBe(0);
    expect(await shown(place)).toMatchObject({ manifest: "sheets/other.csv", cron: yearly[1] });
  });

  test.each([
    [[], "nothing of nightly is to be changed. Name what should be, such as --cron"],
    [["--max-credits", "9"], "nothing of nightly is to be changed"],
    [["--cron", "0 2"], "--cron: expected five fields"],
    [["--tz", "Mars/Olympus"], "--tz: expected a zone"],
    [["--until", "2026-01-01T00:00Z"], "--until: expected a time of day"],
    [["--edition", "{{ date"], "--edition: expected a name"],
    [["--edition", "x", "--fresh"], "--fresh cannot be used with --edition"],
    [["nowhere.csv"], "nowhere.csv: expected a manifest, found no file"],
    [["-"], "scheduled runs cannot read standard input"],
    [["--unset", "max-credit"], 'nightly has no flag "max-credit". Did you mean max-credits?'],
    [["--unset", "canary"], 'nightly has no flag "canary"; it has sandbox, max-credits'],
  ])("is refused with %j, and nothing is changed", async (words, message) => {
    const place = await scheduled("--max-credits", "9");
    const before = await shown(place);
    expect(await edit(place, ...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(await shown(place)).toEqual(before);
  });

  test("a flag that the schedule's other flags exclude is refused until those are dropped", async () => {
    const place = await scheduled("--edition", "{{ date }}");
    expect(await edit(place, "--fresh")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/cannot be used with (edition|fresh)/),
    });
    expect((await edit(place, "--fresh", "--unset", "edition")).code).toBe(0);
    expect(flagsOf(place)).toEqual(["--sandbox", "--fresh"]);
  });

  test("says what its runs may spend and where, and that they are no rehearsals any more", async () => {
    const place = await scheduled("--max-price", "5");
    expect((await run(place, ["schedule", "show", "nightly"])).stdout).toMatch(
      /^spends +nothing if a run's price is above 5 credits$/m,
    );
    const edited = await edit(place, "--unset", "sandbox", "--base-url", "http://127.0.0.1:9");
    expect(edited.stderr).toContain(
      "the runs of nightly were rehearsals; from now on they spend credits, as shown below",
    );
    expect(edited.stdout).toMatch(/^service +http:\/\/127\.0\.0\.1:9$/m);
    const { settings } = JSON.parse((await run(place, ["schedule", "show", "nightly", "--json"])).stdout);
    expect(settings).toEqual(
      expect.arrayContaining([
        { name: "max-price", value: "5", from: "--max-price" },
        { name: "base-url", value: "http://127.0.0.1:9", from: "--base-url" },
      ]),
    );
    expect((await edit(place, "--max-price", "6")).stderr).not.toContain("rehearsals");
    const { stdout } = await run(place, ["schedule", "add", "--help"]);
    expect(stdout.replace(/\s+/g, " ")).toContain("not needed: who adds a schedule agrees to what its runs");
  });

  test("another time makes nothing missed; another flag leaves what was missed", async () => {
    const seen = (place: Place) =>
      withSchedules(place, (db) => db.prepare("SELECT seen_until FROM schedules").pluck().get()) as number;
    const place = await scheduled();
    withSchedules(place, (db) => db.exec(aYearAgo));
    const before = seen(place);
    expect((await edit(place, "--max-credits", "5")).code).toBe(0);
    expect(seen(place)).toBe(before);
    expect((await edit(place, "--cron", "0 * * * *")).code).toBe(0);
    expect(seen(place)).toBeGreaterThan(before);
  });
});

describe("what a schedule has begun", () => {
  const waiting = `INSERT INTO scheduled_runs (schedule, due_at, state, started_at, run, resume_at, losses)
    VALUES ('nightly', 0, 'waiting', 0, 1, 1, 0)`;
  const last = (place: Place) =>
    withSchedules(place, (db) => db.prepare("SELECT state, note, resume_at FROM scheduled_runs").get());

  test.each([
    ["is not a rehearsal any more", [["edit", "nightly", "--unset", "sandbox"]]],
    ["has another service", [["edit", "nightly", "--base-url", "http://127.0.0.1:9"]]],
    ["has another state", [["edit", "nightly", "--database-url", "postgres://127.0.0.1:9/x"]]],
    [
      "is removed and added again",
      [
        ["remove", "nightly"],
        ["add", "nightly", "set.csv", ...yearly],
      ],
    ],
  ])("is not continued once it %s, and the record says what continues it", async (_, changes) => {
    const place = await scheduled();
    withSchedules(place, (db) => db.exec(waiting));
    for (const words of changes) {
      const changed = await run(place, ["schedule", ...words]);
      // The database cannot be reached to show what it is like.
      expect(changed.code, changed.stderr).toBe(words.includes("--database-url") ? 4 : 0);
    }
    expect(last(place)).toEqual({
      state: "ended",
      resume_at: null,
      note: expect.stringMatching(
        /^its schedule was (changed|removed), so it is no longer continued automatically; `bulkgen resume --sandbox` continues it$/,
      ),
    });
  });

  test("goes on after any other change", async () => {
    const place = await scheduled();
    withSchedules(place, (db) => db.exec(waiting));
    expect((await edit(place, "--max-credits", "5", "--cron", "0 3 * * *")).code).toBe(0);
    expect(last(place)).toMatchObject({ state: "waiting", resume_at: 1 });
  });

  test("is shown as it is now where no daemon runs: waiting for one, or continued by a person", async () => {
    const place = await scheduled();
    const due = "2026-01-01T00:00:00.000Z";
    const env = { BULKGEN_SCHEDULED_BY: "nightly", BULKGEN_SCHEDULED_FOR: due };
    const words = ["run", "set.csv", "--sandbox", "--yes", "--max-credits", "1"];
    expect((await run(place, words, { env })).code).toBe(6);
    withSchedules(place, (db) =>
      db
        .prepare(
          "INSERT INTO scheduled_runs (schedule, due_at, state, run, resume_at) VALUES ('nightly', ?, 'waiting', 1, 1)",
        )
        .run(Date.parse(due)),
    );
    const listed = async () => (await run(place, ["schedule", "list"])).stdout.replace(/\s+/g, " ");
    expect(await listed()).toContain("continues as soon as a daemon runs");
    const resumed = await run(place, ["resume", "--sandbox", "--yes", "--max-credits", "9"]);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(await listed()).toContain("done: resumed, 2 archived");
    expect((await shown(place)).scheduledRuns).toMatchObject([{ state: "ended", archived: 2, run: 1 }]);
  });

  test("that could not begin stays in the report when the schedule is removed", async () => {
    const place = await scheduled();
    withSchedules(place, (db) =>
      db.exec(`INSERT INTO scheduled_runs (schedule, due_at, state, exit, note)
        VALUES ('nightly', ${Date.UTC(2026, 0, 1)}, 'ended', 2, 'the price is too high')`),
    );
    const reported = async () => (await run(place, ["report", "--sandbox", "--since", "2020-01-01"])).stdout;
    expect(await reported()).toContain("the price is too high");
    expect((await run(place, ["schedule", "remove", "nightly"])).code).toBe(0);
    expect(await reported()).toContain("the price is too high");
  });

  test("is never taken for another run of its number, whatever has changed around the schedule", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("other.csv", sheet(3, "plain-image"));
    expect((await run(place, ["run", "other.csv", "--yes", "--max-credits", "2"], service)).code).toBe(6);
    const { length } = service.made;
    const env = {
      ...service.env,
      BULKGEN_SCHEDULED_BY: "nightly",
      BULKGEN_SCHEDULED_FOR: "2026-01-01T00:00:00.000Z",
    };
    const resume = ["resume", "--max-credits", "9", "--yes", "1"];
    expect(await run(place, resume, { ...service, env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "run 1 of this workspace was not begun by the schedule nightly for 2026-01-01T00:00:00.000Z",
      ),
    });
    expect(service.made).toHaveLength(length);
    expect(
      await run(place, ["run", "other.csv", "--yes", "--edition", "x", "--max-credits", "0"], {
        ...service,
        env,
      }),
    ).toMatchObject({ code: 6 });
    const own = await run(place, [...resume.slice(0, -1), "2"], { ...service, env });
    expect(own, own.stderr).toMatchObject({ code: 0 });
  });
});

describe("the agreement to a schedule", () => {
  test("is to what it does now: what was changed or removed, and is put back by somebody else, asks again", async () => {
    const place = await scheduled("--max-credits", "9");
    const read = () => withSchedules(place, (db) => db.prepare("SELECT flags FROM schedules").pluck().get());
    const putBack = (flags: unknown) =>
      withSchedules(place, (db) => db.prepare("UPDATE schedules SET flags = ?").run(flags));
    const asks = async () => {
      const refused = await run(place, ["schedule", "run", "nightly"]);
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("that you have not agreed to on this machine"),
      });
    };
    const first = read();
    expect((await edit(place, "--max-credits", "2")).code).toBe(0);
    const second = read();
    putBack(first);
    await asks();
    putBack(second);
    expect((await run(place, ["schedule", "list"])).stdout).not.toContain("not agreed to");
    withSchedules(place, (db) => db.exec("CREATE TABLE kept AS SELECT * FROM schedules"));
    expect((await run(place, ["schedule", "remove", "nightly"])).code).toBe(0);
    withSchedules(place, (db) => db.exec("INSERT INTO schedules SELECT * FROM kept; DROP TABLE kept"));
    await asks();
  });
});

describe("pause and resume", () => {
  test("a paused schedule is told everywhere, and nothing of it is missed", async () => {
    const place = await scheduled();
    const paused = await run(place, ["schedule", "pause", "nightly"]);
    expect(paused).toMatchObject({
      code: 0,
      stdout: "nightly is paused: `bulkgen schedule resume nightly` starts its runs again\n",
    });
    expect((await run(place, ["schedule", "pause", "nightly"])).stdout).toContain(
      "nightly was paused already",
    );
    expect(await shown(place)).toMatchObject({ pausedAt: expect.stringMatching(/Z$/), nextAt: null });
    expect((await run(place, ["schedule", "list"])).stdout).toMatch(/^nightly .* paused since /m);
    expect((await run(place, ["schedule", "show"])).stdout).toMatch(
      /^paused +since .*; `bulkgen schedule resume nightly` starts its runs again$/m,
    );
    withSchedules(place, (db) => db.exec(aYearAgo));
    const resumed = await run(place, ["schedule", "resume", "nightly"]);
    expect(resumed).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^nightly is resumed; its next run: \w{3} \d{4}-01-01 00:00 UTC\n$/),
    });
    const again = await run(place, ["schedule", "resume", "nightly", "--json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({
      name: "nightly",
      pausedAt: null,
      nextAt: expect.any(String),
    });
    const seen = withSchedules(place, (db) => db.prepare("SELECT seen_until FROM schedules").pluck().get());
    expect(seen).toBeGreaterThan(Date.now() - 3_600_000);
    expect((await run(place, ["schedule", "resume", "nightly"])).stdout).toContain("nightly was not paused");
    expect(await run(place, ["schedule", "pause", "nightl"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Did you mean nightly?"),
    });
  });

  test("says what becomes of a run that is not over, from any folder", async () => {
    const place = await scheduled();
    withSchedules(place, (db) =>
      db.exec("INSERT INTO scheduled_runs (schedule, due_at, state) VALUES ('nightly', 0, 'waiting')"),
    );
    const words = ["schedule", "pause", "nightly", "--workspace", place.folder];
    const { stdout } = await run(place, words, { cwd: place.root });
    expect(stdout).toMatch(
      /^nightly is paused: `bulkgen schedule resume nightly --workspace \S+` starts its runs again\. What it has begun goes on; `bulkgen pause --workspace \S+ --sandbox` stops that\n$/,
    );
  });
});
