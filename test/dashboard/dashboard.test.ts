import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import writeWorkbook from "write-excel-file/node";
import { openBucket } from "../../src/bucket/bucket.js";
import type {
  AccountOverTime,
  DroppedSheet,
  FilePage,
  ItemPage,
  ItemStory,
  OfferedPrice,
  ProgressOverTime,
  RunDetail,
  RunPage,
  ScheduleEntry,
  SheetCheck,
  SheetEntry,
  SheetRows,
  Standing,
  WaitingPage,
  ZipReady,
} from "../../src/documents/page.js";
import { openSqlite } from "../../src/sqlite.js";
import { s3Server } from "../bucket/s3-server.js";
import { run, started } from "../e2e/command.js";
import { models, type Script, type Scripted } from "../e2e/service.js";
import { unzip } from "../e2e/unzip.js";
import { openDashboard } from "./place.js";

const sheet = "id,model,prompt\ncup,plain-image,a cup\njar,plain-imag,a jar\n";

async function dropped(text: string, name = "autumn.csv", options: Parameters<typeof openDashboard>[0] = {}) {
  const dashboard = await openDashboard(options);
  const answer = await dashboard.ask(`/api/sheets?name=${encodeURIComponent(name)}`, {
    method: "POST",
    body: text,
  });
  const kept = (await answer.json()) as DroppedSheet;
  return { ...dashboard, kept };
}

/** A sheet with two pictures, made. */
async function madeTwo(options: Parameters<typeof openDashboard>[0] = {}) {
  const dashboard = await dropped(sheet.replace("plain-imag,", "plain-image,"), "autumn.csv", options);
  const started = await dashboard.act({ do: "start", choices: { file: dashboard.kept.file }, price: 10 });
  return { ...dashboard, started };
}

describe("start work", () => {
  test("a dropped sheet is kept, its problem shown in its cell with fixes, mended, priced and run", async () => {
    const { kept, get, post, act, service, place } = await dropped(sheet);
    expect(kept).toMatchObject({
      file: "sheets/autumn.csv",
      editable: true,
      columns: ["id", "model", "prompt"],
      rows: 2,
    });
    const wrong = await post<SheetCheck>("/api/check", { file: kept.file });
    expect(wrong).toMatchObject({ ready: false, problemCount: 1, credits: { needed: 2 } });
    expect(wrong.problems[0]).toMatchObject({ row: 3, column: "model", id: "jar", got: "plain-imag" });
    expect(wrong.problems[0]?.fixes[0]).toBe("plain-image");
    const query = `file=${encodeURIComponent(kept.file)}`;
    const change = [{ row: 3, column: "model", value: "plain-image" }];
    await post(`/api/sheet/cells?${query}&version=${encodeURIComponent(kept.version)}`, change);
    const { rows } = await get<SheetRows>(`/api/sheet/rows?${query}`);
    expect(rows[1]).toEqual({ number: 3, cells: ["jar", "plain-image", "a jar"] });
    const checked = await post<SheetCheck>("/api/check", { file: kept.file, maxCredits: 50 });
    expect(checked).toMatchObject({
      ready: true,
      due: 2,
      credits: { needed: 4, balance: 100 },
      line: "bulkgen run sheets/autumn.csv --max-credits=50",
    });
    expect(service.count("POST generate")).toBe(0);
    const started = await act({ do: "start", choices: { file: kept.file, maxCredits: 50 }, price: 4 });
    expect(started, started.message).toMatchObject({
      exit: 0,
      line: "bulkgen run sheets/autumn.csv --max-credits=50 --max-price=4",
    });
    expect(service.made.map(({ prompt }) => prompt)).toEqual(["a cup", "a jar"]);
    expect(place.read("sheets/autumn.csv")).toContain("jar,plain-image,a jar");
  });

  describe("the next version of a sheet under a new name", () => {
    const winter = "id,model,prompt\ncup,plain-image,a cup\njar,plain-image,a jar\npot,plain-image,a pot\n";

    test("continues the job that has most of it, or makes all of it again, each for its own price", async () => {
      const { place, post, act, service } = await madeTwo();
      place.write("winter.csv", winter);
      const checked = await post<SheetCheck>("/api/check", { file: "winter.csv" });
      expect(checked).toMatchObject({
        ready: false,
        problemCount: 0,
        blockers: [],
        question: {
          found: "2 of 3 items were made before for job autumn (autumn.csv)",
          continues: {
            job: "autumn",
            due: 1,
            existing: { archived: 2 },
            credits: { within: 2 },
            ready: true,
            line: "bulkgen run winter.csv --job=autumn",
          },
          again: { job: "winter", due: 3, credits: { within: 6 }, ready: true },
        },
      });
      const choices = { file: "winter.csv", job: "autumn" };
      expect(await act({ do: "start", choices, price: 2 })).toMatchObject({ exit: 0 });
      expect(service.made.map(({ prompt }) => prompt)).toEqual(["a cup", "a jar", "a pot"]);
      const after = await post<SheetCheck>("/api/check", { file: "winter.csv" });
      expect(after).toMatchObject({ question: null, due: 0, existing: { archived: 3 } });
    });

    test("is made again for its price once a person has chosen that", async () => {
      const { place, act, service } = await madeTwo();
      place.write("winter.csv", winter);
      const choices = { file: "winter.csv", job: "winter" };
      expect(await act({ do: "start", choices, price: 6 })).toMatchObject({ exit: 0 });
      expect(service.made).toHaveLength(5);
    });

    test("asks too when only a few of its items were made, and once its problems are fixed", async () => {
      const { place, post } = await madeTwo();
      const rows = ["a pot", "a pan", "a lid"].map((prompt, at) => `new${at},plain-image,${prompt}\n`);
      const few = `id,model,prompt\ncup,plain-image,a cup\n${rows.join("")}`;
      place.write("few.csv", `${few}bad,plain-imag,a bowl\n`);
      const wrong = await post<SheetCheck>("/api/check", { file: "few.csv" });
      expect(wrong).toMatchObject({ problemCount: 1, question: null });
      place.write("few.csv", few);
      expect(await post<SheetCheck>("/api/check", { file: "few.csv" })).toMatchObject({
        warnings: [],
        question: {
          continues: { due: 3, credits: { within: 6 } },
          again: { due: 4, credits: { within: 8 } },
        },
      });
    });
  });

  test("headings and totals of a sheet are left out by one choice, which the command shows", async () => {
    const { place, post } = await openDashboard();
    place.write("set.csv", "id,model,prompt\nKitchen,,\ncup,plain-image,a cup\nTotal,,\n");
    const checked = await post<SheetCheck>("/api/check", { file: "set.csv" });
    expect(checked.problems).toMatchObject([
      { row: 2, aside: "heading" },
      { row: 4, aside: "total" },
    ]);
    expect(await post<SheetCheck>("/api/check", { file: "set.csv", skipHeadings: true })).toMatchObject({
      ready: true,
      due: 1,
      problemCount: 0,
      line: "bulkgen run set.csv --skip-headings",
    });
  });

  test("a price that has risen since it was shown is refused, and nothing is paid", async () => {
    const { kept, act, service } = await dropped(sheet.replace("plain-imag,", "plain-image,"));
    const started = await act({ do: "start", choices: { file: kept.file }, price: 1 });
    expect(started).toMatchObject({
      exit: 2,
      message: "the price is 4 credits, more than --max-price 1 allows. Nothing was submitted.",
    });
    expect(service.count("POST generate")).toBe(0);
  });

  test("a sheet with nothing new to make says what became of its items", async () => {
    const { place, post, act } = await openDashboard({
      script: ({ what, body }) =>
        what === "POST generate" && body.includes("a jar")
          ? { status: 400, json: { error: { code: "INVALID_PARAMS", message: "no jars" } } }
          : "serve",
    });
    place.write("autumn.csv", sheet.replace("plain-imag,", "plain-image,"));
    expect(await act({ do: "start", choices: { file: "autumn.csv" }, price: 4 })).toMatchObject({ exit: 5 });
    expect(await post<SheetCheck>("/api/check", { file: "autumn.csv" })).toMatchObject({
      due: 0,
      existing: { archived: 1, failed: 1 },
    });
  });

  test("a sheet with a request in doubt says what that may add to its price", async () => {
    const { place, post, act } = await openDashboard({
      script: ({ what, body }) => (what === "POST generate" && body.includes("a cup") ? "cut" : "serve"),
    });
    place.write("one.csv", "id,model,prompt\ncup,plain-image,a cup\n");
    expect(await act({ do: "start", choices: { file: "one.csv" }, price: 2 })).toMatchObject({ exit: 8 });
    place.write("one.csv", "id,model,prompt\ncup,plain-image,a cup\njar,plain-image,a jar\n");
    expect(await post<SheetCheck>("/api/check", { file: "one.csv" })).toMatchObject({
      due: 1,
      existing: { unknown: 1 },
      credits: { needed: 2, inDoubt: 2 },
    });
  });

  test("a job file is shown with the rows that it lists, and changed in an editor", async () => {
    const job =
      "rows:\n  - { id: cup, model: plain-image, prompt: a cup }\n  - { id: jar, model: plain-image, prompt: a jar, constructor: Ada }\n";
    const { kept, refusal, get, post } = await dropped(job, "set.yaml");
    expect(kept).toMatchObject({ file: "sheets/set.yaml", editable: false, rows: 2 });
    const { rows } = await get<SheetRows>(`/api/sheet/rows?file=${kept.file}`);
    expect(rows.map(({ cells }) => cells.at(-1))).toEqual(["", "Ada"]);
    expect(await post<SheetCheck>("/api/check", { file: kept.file })).toMatchObject({ ready: true, due: 2 });
    const [status, message] = await refusal("/api/sheet/cells?file=sheets/set.yaml", {
      method: "POST",
      body: JSON.stringify([{ row: 1, column: "id", value: "x" }]),
    });
    expect([status, message]).toEqual([422, "sheets/set.yaml is changed in an editor, not here"]);
  });

  test("every kind of sheet that the page offers to take is taken, and listed", async () => {
    const line = '{"id": "a", "model": "plain-image", "prompt": "x"}\n';
    const texts: Record<string, string> = { txt: "a blue cup\na jar\n", jsonl: line, ndjson: line };
    for (const [ending, text] of Object.entries(texts)) {
      const { kept, get } = await dropped(text, `set.${ending}`);
      expect(kept).toMatchObject({
        file: `sheets/set.${ending}`,
        rows: ending === "txt" ? 2 : 1,
        trouble: null,
      });
      const listed = await get<SheetEntry[]>("/api/sheets");
      expect(listed.map(({ file }) => file)).toContain(`sheets/set.${ending}`);
    }
  });

  test("a file that is no sheet is refused, and one that cannot be read says why", async () => {
    const { refusal } = await openDashboard();
    expect(await refusal("/api/sheets?name=photo.png", { method: "POST", body: "x" })).toEqual([
      422,
      expect.stringContaining(
        'expected a sheet (.csv, .tsv, .xlsx, .json, .jsonl, .ndjson, .yaml, .yml, .txt), got "photo.png"',
      ),
    ]);
    const { kept } = await dropped("{", "broken.json");
    expect(kept.trouble).toMatch(/expected/);
  });

  test("a sheet that is gone, and one below what is a file now, is told of", async () => {
    const { refusal } = await dropped(sheet, "autumn.csv");
    for (const file of ["sheets/spring.csv", "sheets/autumn.csv/spring.csv"])
      expect(await refusal(`/api/sheet?file=${file}`)).toEqual([404, `${file} is gone`]);
  });

  test("another sheet of a workbook is shown, priced, changed and run", async () => {
    const { place, get, post, act } = await openDashboard();
    const notes = { sheet: "Notes", data: [["Please do not change"], ["Anna"]] };
    const rows = {
      sheet: "Autumn set",
      data: [
        ["id", "model", "prompt"],
        ["cup", "plain-image", "a cup"],
      ],
    };
    const bytes = await writeWorkbook([notes, rows]).toBuffer();
    writeFileSync(join(place.folder, "set.xlsx"), bytes);
    const first = await get<DroppedSheet>("/api/sheet?file=set.xlsx");
    expect(first).toMatchObject({ editable: false, rows: 0, sheets: ["Notes", "Autumn set"] });
    expect(first.trouble).toContain('the sheet "Autumn set" has');
    const query = "file=set.xlsx&sheet=Autumn+set";
    const opened = await get<DroppedSheet>(`/api/sheet?${query}`);
    expect(opened).toMatchObject({ editable: true, trouble: null });
    const { rows: shown } = await get<SheetRows>(`/api/sheet/rows?${query}`);
    expect(shown).toEqual([{ number: 2, cells: ["cup", "plain-image", "a cup"] }]);
    const choices = { file: "set.xlsx", sheet: "Autumn set" };
    expect(await post<SheetCheck>("/api/check", choices)).toMatchObject({
      ready: true,
      due: 1,
      line: "bulkgen run set.xlsx '--sheet=Autumn set'",
    });
    expect(await act({ do: "start", choices, price: 2 })).toMatchObject({ exit: 0 });
    const changes = [{ row: 2, column: "prompt", value: "a blue cup" }];
    const to = `/api/sheet/cells?${query}&version=${encodeURIComponent(opened.version)}`;
    expect(await post<DroppedSheet>(to, changes)).toMatchObject({
      file: "sheets/set.csv",
      sheets: [],
    });
    expect(place.read("sheets/set.csv")).toContain("a blue cup");
  });

  test("the name of a dropped file leads nowhere else", async () => {
    const { kept } = await dropped(sheet, "../../.bulkgen/..\\evil.csv");
    expect(kept.file).toBe("sheets/evil.csv");
  });

  test("a file that is dropped several times at once is kept once, and nothing else is left", async () => {
    const { ask, place } = await openDashboard();
    const drop = () => ask("/api/sheets?name=autumn.csv", { method: "POST", body: sheet });
    const answers = await Promise.all(Array.from({ length: 8 }, drop));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(readdirSync(join(place.folder, "sheets"))).toEqual(["autumn.csv"]);
    expect(place.read("sheets/autumn.csv")).toBe(sheet);
  });

  test("100,000 rows are read in pieces", async () => {
    const rows = Array.from({ length: 100_000 }, (_, index) => `r${index},plain-image,picture ${index}`);
    const { kept, get } = await dropped(["id,model,prompt", ...rows].join("\n"));
    expect(kept.rows).toBe(100_000);
    const { rows: last } = await get<SheetRows>("/api/sheet/rows?file=sheets/autumn.csv&from=99999&limit=10");
    expect(last).toEqual([{ number: 100_001, cells: ["r99999", "plain-image", "picture 99999"] }]);
  });

  test("a sheet of the user's own is not changed: the copy beside it is", async () => {
    const { place, post, get } = await openDashboard();
    place.write("mine.csv", sheet);
    // What Excel and macOS put beside it.
    for (const other of ["~$mine.xlsx", "._mine.csv"]) place.write(other, "x");
    expect((await get<SheetEntry[]>("/api/sheets")).map(({ file }) => file)).toEqual(["mine.csv"]);
    const { version } = await get<DroppedSheet>("/api/sheet?file=mine.csv");
    const cells = `/api/sheet/cells?file=mine.csv&version=${encodeURIComponent(version)}`;
    const changed = await post<DroppedSheet>(cells, [
      { row: 2, column: "prompt", value: "=1+1" },
      { row: 2, column: "priority", value: "5" },
    ]);
    expect(changed).toMatchObject({
      file: "sheets/mine.csv",
      columns: ["id", "model", "prompt", "priority"],
    });
    expect(place.read("mine.csv")).toBe(sheet);
    expect(place.read("sheets/mine.csv")).toContain("'=1+1");
    const before = place.read("sheets/mine.csv");
    const again = [{ row: 2, column: "prompt", value: "another cup" }];
    const other = await post<DroppedSheet>(cells, again);
    expect(other.file).toBe("sheets/2/mine.csv");
    expect([place.read("sheets/mine.csv"), place.read("sheets/2/mine.csv")]).toEqual([
      before,
      expect.stringContaining("another cup"),
    ]);
    const { rows } = await get<SheetRows>("/api/sheet/rows?file=sheets/mine.csv");
    expect(rows[0]?.cells).toEqual(["cup", "plain-image", "=1+1", "5"]);
  });

  test.each(["set.csv", "set.tsv"])(
    "a dropped sheet with tabs stays the file %s when a cell changes",
    async (name) => {
      const { kept, post, place } = await dropped(sheet.replaceAll(",", "\t"), name);
      const cells = `/api/sheet/cells?file=${kept.file}&version=${encodeURIComponent(kept.version)}`;
      const changed = await post<DroppedSheet>(cells, [{ row: 2, column: "prompt", value: "a blue cup" }]);
      expect(changed.file).toBe(kept.file);
      expect(place.read(kept.file)).toContain("\ta blue cup");
    },
  );

  test("a schedule is shown without the secrets in its addresses", async () => {
    const { get, kept, place } = await dropped(sheet.replace("plain-imag,", "plain-image,"));
    const addresses = [
      "--notify",
      "https://hooks.slack.com/services/T0/B0/s3cret",
      "--smtp-url",
      "smtp://ada:s3cret@mail.example",
    ];
    const words = [
      "schedule",
      "add",
      "night",
      kept.file,
      "--cron",
      "0 6 * * *",
      "--edition",
      "{{ date }}",
      ...addresses,
    ];
    expect(await run(place, words)).toMatchObject({ code: 0 });
    const [night] = await get<ScheduleEntry[]>("/api/schedules");
    expect(night?.flags).toEqual([
      "'--edition={{ date }}'",
      "--notify=hooks.slack.com",
      "--smtp-url=mail.example",
    ]);
  });

  test("a sheet is saved as a schedule, which is listed with its next run, and removed", async () => {
    const { act, get, kept } = await dropped(sheet.replace("plain-imag,", "plain-image,"));
    const when = { cron: "0 6 * * *", zone: "Europe/Berlin" };
    const added = await act({
      do: "schedule",
      choices: { file: kept.file, fresh: true },
      name: "morning",
      ...when,
    });
    expect(added, added.message).toMatchObject({ exit: 0 });
    // Only a daemon runs it, and the page starts none.
    expect(added.message).toMatch(
      /No daemon is running: `bulkgen schedule start` starts the runs that are due, `bulkgen schedule print` shows how to keep it running\.$/,
    );
    const [morning] = await get<ScheduleEntry[]>("/api/schedules");
    expect(morning).toMatchObject({
      name: "morning",
      manifest: "sheets/autumn.csv",
      ...when,
      flags: ["--fresh"],
      runs: [],
    });
    expect(morning?.next).toBeGreaterThan(0);
    expect(await act({ do: "pause schedule", name: "morning" })).toMatchObject({ exit: 0 });
    expect(await get("/api/schedules")).toMatchObject([{ next: null, pausedAt: expect.any(Number) }]);
    expect(await act({ do: "resume schedule", name: "morning" })).toMatchObject({ exit: 0 });
    expect(await get("/api/schedules")).toMatchObject([{ next: morning?.next, pausedAt: null }]);
    expect(await act({ do: "unschedule", name: "morning" })).toMatchObject({ exit: 0 });
    expect(await get("/api/schedules")).toEqual([]);
  });

  test("the page is told when schedules have changed, and not when they are read", async () => {
    const { act, get, kept } = await dropped(sheet.replace("plain-imag,", "plain-image,"));
    const changes: string[] = [];
    const see = async () => changes.push((await get<Standing>("/api/standing")).change);
    await see();
    const when = { cron: "0 6 * * *", zone: "Europe/Berlin" };
    await act({ do: "schedule", choices: { file: kept.file }, name: "morning", ...when });
    await see();
    await act({ do: "unschedule", name: "morning" });
    await see();
    expect(new Set(changes).size).toBe(3);
    await get("/api/schedules");
    await see();
    expect(changes[3]).toBe(changes[2]);
  });
});

describe("watch", () => {
  test("a run, its items, an item's story, and the credits and requests over time", async () => {
    // Requests are on record only where something limits them.
    const { get, started } = await madeTwo({ plan: "Starter" });
    expect(started, started.message).toMatchObject({ exit: 0 });
    const { runs, older } = await get<RunPage>("/api/runs");
    expect(runs).toMatchObject([
      { run: 1, job: "autumn", counts: { archived: 2 }, credits: { spent: 4, pending: 0 }, alive: false },
    ]);
    expect(older).toBeNull();
    expect(await get<RunDetail>("/api/runs/1")).toMatchObject({ canResume: false, trouble: [] });
    const page = await get<ItemPage>("/api/runs/1/items?text=jar");
    expect(page).toMatchObject({
      total: 1,
      items: [{ rowId: "jar", state: "archived", price: 2, mime: "image/png" }],
    });
    const story = await get<ItemStory>(`/api/items/${page.items[0]?.id}`);
    expect(story.events.map(({ event }) => event)).toEqual(["intended", "accepted", "completed", "saved"]);
    expect(story.attempts).toMatchObject([{ number: 1, charged: 2, outcome: "accepted" }]);
    expect(story.files).toMatchObject([{ file: "jar.png", bytes: expect.any(Number) }]);
    const progress = await get<ProgressOverTime>("/api/runs/1/progress");
    const sum = (amounts: { amount: number }[]) => amounts.reduce((all, { amount }) => all + amount, 0);
    expect(sum(progress.archived)).toBe(2);
    expect(sum(progress.credits)).toBe(4);
    expect(sum(progress.requests)).toBeGreaterThanOrEqual(4);
    for (const { at } of [...progress.archived, ...progress.requests]) expect(at % progress.stepMs).toBe(0);
    // The two may be in two steps of time.
    expect(sum((await get<AccountOverTime>("/api/account")).spent)).toBe(4);
  });

  test("no number of requests is shown where nothing limits the account, because not all are on record", async () => {
    const { get, started } = await madeTwo({ plan: "Enterprise" });
    expect(started, started.message).toMatchObject({ exit: 0 });
    expect((await get<ProgressOverTime>("/api/runs/1/progress")).requests).toEqual([]);
    expect((await get<AccountOverTime>("/api/account")).requests).toEqual([]);
  });

  test("a workspace without runs, one that is deleted under the page, and one of a newer bulkgen say what they are", async () => {
    const { get, act, place } = await openDashboard();
    const none = {
      running: null,
      problem: expect.stringMatching(/^nothing has been run in .* yet$/),
      isNew: true,
    };
    expect(await get<Standing>("/api/standing")).toMatchObject(none);
    // A first run makes its database before it makes the tables.
    mkdirSync(join(place.folder, ".bulkgen"));
    openSqlite(join(place.folder, ".bulkgen", "state.db")).pragma("journal_mode = WAL");
    expect(await get<Standing>("/api/standing")).toMatchObject(none);
    place.write("autumn.csv", "id,model,prompt\ncup,plain-image,a cup\n");
    expect(await act({ do: "start", choices: { file: "autumn.csv" }, price: 2 })).toMatchObject({ exit: 0 });
    expect(await get<Standing>("/api/standing")).toMatchObject({ problem: null });
    const made = await madeTwo();
    expect(await made.get<Standing>("/api/standing")).toMatchObject({
      problem: null,
      sandbox: false,
      version: "1.2.3",
    });
    const marker = join(made.place.folder, ".bulkgen");
    renameSync(marker, `${marker}-away`);
    expect(await made.get<Standing>("/api/standing")).toMatchObject({
      problem: expect.stringContaining("nothing"),
    });
    expect((await made.refusal("/api/runs/1"))[0]).toBe(404);
    renameSync(`${marker}-away`, marker);
    expect(await made.get<Standing>("/api/standing")).toMatchObject({ problem: null });
    const db = openSqlite(join(marker, "state.db"));
    db.pragma("user_version = 99");
    db.close();
    const other = await openDashboard();
    rmSync(join(other.place.folder, ".bulkgen"), { recursive: true, force: true });
    renameSync(marker, join(other.place.folder, ".bulkgen"));
    expect(await other.get<Standing>("/api/standing")).toMatchObject({
      problem: expect.stringContaining("was written by a newer bulkgen"),
      isNew: false,
    });
    expect(place.files()).not.toContain("state.db");
  });

  test("the page is told when something has changed", async () => {
    const { ask, kept, post } = await dropped(sheet.replace("plain-imag,", "plain-image,"));
    const answer = await ask("/api/events");
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    const events = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const told = async (pattern: RegExp) => {
      while (!pattern.test(text)) {
        const { value, done } = (await events?.read()) ?? { done: true };
        if (done) throw new Error(`the stream ended with ${text}`);
        text += value;
      }
    };
    await told(/"problem":"nothing/);
    await post("/api/act", { do: "start", choices: { file: kept.file }, price: 4 });
    await told(/"problem":null/);
    await told(/"commands":\[\{"id":1,[^\]]*"exit":0/);
    await events?.cancel();
    expect(text).toMatch(/^event: standing$/m);
  });
});

test("while the service cannot be reached, the page says so, and shows what is on record", async () => {
  const { service, post, get, kept } = await madeTwo();
  await service.down();
  await expect(post("/api/check", { file: kept.file })).rejects.toThrow(/422 .*(reach|answer)/);
  await expect(get("/api/models")).rejects.toThrow(/422 .*(reach|answer)/);
  expect(await get<Standing>("/api/standing")).toMatchObject({ problem: null });
  expect((await get<FilePage>("/api/files")).files).toHaveLength(2);
});

test("a run that cannot reach the service says so on the page, until it can be reached", async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { place, service, get } = await openDashboard({
    script: async ({ what }): Promise<Scripted> => {
      if (what === "GET task") await released;
      return "serve";
    },
  });
  place.write("autumn.csv", "id,model,prompt\ncup,plain-image,a cup\n");
  const reason = async () => (await get<Standing>("/api/standing")).running?.reason;
  const going = started(place, ["run", "autumn.csv", "--yes", "--unreachable-wait", "10h"], service);
  await service.wasAsked("GET task", 1);
  expect(await reason()).toBeNull();
  await service.down();
  await going.prints(/service unreachable/);
  expect((await reason())?.text).toMatch(/^service unreachable since \d\d:\d\d UTC \([^)]+\), next try in /);
  release();
  await service.up();
  expect((await going.ended).code).toBe(0);
});

describe("decide", () => {
  const toApprove =
    "name: set\nrows: [{ id: cup, prompt: a cup }]\ndefaults: { model: plain-image }\nsteps:\n  - { name: draft, approve: true }\n  - { name: final, image_url: '@draft' }\n";

  test("what waits is approved with its picture in view, and the run goes on when it is resumed", async () => {
    const { kept, act, get, ask, post, service } = await dropped(toApprove, "set.yaml");
    expect(await act({ do: "start", choices: { file: kept.file }, price: 4 })).toMatchObject({ exit: 10 });
    expect(await get<Standing>("/api/standing")).toMatchObject({
      waiting: { approval: 1, held: 0, failed: 0 },
    });
    expect((await get<RunPage>("/api/runs")).runs).toMatchObject([{ exitName: "held", awaiting: 1 }]);
    const { items } = await get<WaitingPage>("/api/waiting?what=approval");
    const [draft] = items;
    expect(draft).toMatchObject({ rowId: "cup-draft", approval: "waiting" });
    expect(
      (await ask(String(draft?.src), { headers: { authorization: "" } })).headers.get("content-type"),
    ).toBe("image/png");
    expect(await act({ do: "approve", items: [String(draft?.name)] })).toMatchObject({ exit: 0 });
    const offer = await post<OfferedPrice>("/api/offer", { do: "resume", run: 1, price: 0 });
    expect(offer).toMatchObject({ rest: { items: 1, credits: 2 }, total: 2 });
    expect(await act({ do: "resume", run: 1, price: 1 })).toMatchObject({
      exit: 2,
      message: "the price is 2 credits, more than --max-price 1 allows. Nothing was submitted.",
    });
    expect(service.made).toHaveLength(1);
    expect(await act({ do: "resume", run: 1, price: offer.total })).toMatchObject({ exit: 0 });
    expect(service.made).toHaveLength(2);
  });

  test("a redo is priced first, made at that price, and refused at a lower one", async () => {
    const { act, get, post, service } = await madeTwo();
    const { files } = await get<FilePage>("/api/files");
    const jar = String(files.find(({ rowId }) => rowId === "jar")?.name);
    const offer = await post<OfferedPrice>("/api/offer", { do: "redo", items: [jar], price: 0 });
    expect(offer).toMatchObject({ items: [{ rowId: "jar-v2", price: 2 }], credits: 2, total: 2 });
    expect(service.made).toHaveLength(2);
    expect(await act({ do: "redo", items: [jar], price: 0 })).toMatchObject({
      exit: 2,
      message: expect.stringContaining("--max-price"),
    });
    expect(service.made).toHaveLength(2);
    expect(await act({ do: "redo", items: [jar], price: offer.total })).toMatchObject({ exit: 0 });
    expect(service.made.map(({ prompt }) => prompt)).toEqual(["a cup", "a jar", "a jar"]);
  });

  test("an earlier version and a variant are named so that the same row of another job is not meant", async () => {
    const { get, act, place, service } = await openDashboard();
    const make = async (job: string, prompt: string, ids: readonly string[]) => {
      const lines = ids.map((id) => `${id},plain-image,${id === "cup" ? prompt : `a ${id}`}\n`);
      place.write(`${job}.csv`, `id,model,prompt\n${lines.join("")}`);
      const words = ["run", `${job}.csv`, "--yes", "--job", job];
      expect((await run(place, words, { env: service.env })).code).toBe(0);
    };
    const all = async () => (await get<FilePage>("/api/files")).files;
    await make("one", "a cup", ["cup"]);
    await make("two", "a cup", ["cup", "jar", "mug"]);
    for (const { name } of (await all()).filter(({ rowId }) => rowId === "cup"))
      expect(await act({ do: "redo", items: [name], price: 2 })).toMatchObject({ exit: 0 });
    await make("one", "a red cup", ["cup"]);
    const files = await all();
    expect(files).toHaveLength(7);
    for (const { itemId, name } of files) {
      expect((await get<ItemStory>(`/api/items/${itemId}`)).name).toBe(name);
      await act({ do: "pick", items: [name] });
      expect((await all()).filter(({ picked }) => picked).map((file) => file.itemId)).toEqual([itemId]);
      await act({ do: "unpick", items: [name] });
    }
  });

  test("a pick is kept, and taken back", async () => {
    const { act, get } = await madeTwo();
    const name = String((await get<FilePage>("/api/files")).files[0]?.name);
    const picked = async () => (await get<FilePage>("/api/files")).files.filter((file) => file.picked).length;
    expect(await act({ do: "pick", items: [name] })).toMatchObject({ exit: 0 });
    expect(await picked()).toBe(1);
    expect(await act({ do: "unpick", items: [name] })).toMatchObject({ exit: 0 });
    expect(await picked()).toBe(0);
  });

  test("a held item is shown with its evidence, and skipped or submitted again at its price", async () => {
    const held = await openDashboard({
      script: ({ what, before }) => (what === "POST generate" && before === 0 ? "serve and cut" : "serve"),
    });
    const { act, get, post, place, service } = held;
    place.write("one.csv", "id,model,prompt\ncup,plain-image,a cup\n");
    expect(await act({ do: "start", choices: { file: "one.csv" }, price: 2 })).toMatchObject({ exit: 10 });
    const { items } = await get<WaitingPage>("/api/waiting?what=held");
    expect(items).toMatchObject([
      { rowId: "cup", state: "held", evidence: { bodySha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
    ]);
    const name = String(items[0]?.name);
    const offer = await post<OfferedPrice>("/api/offer", { do: "resubmit", items: [name], price: 0 });
    expect(offer).toMatchObject({ total: 2, note: expect.stringContaining("charged before") });
    expect(await act({ do: "resubmit", items: [name], price: offer.total })).toMatchObject({ exit: 0 });
    expect(service.made).toHaveLength(2);
  });

  test("the credits of a lost request are not pending once its item is skipped, and nothing waits any more", async () => {
    const { act, get, place } = await openDashboard({
      script: ({ what, before }) => (what === "POST generate" && before === 0 ? "serve and cut" : "serve"),
    });
    place.write("two.csv", "id,model,prompt\ncup,plain-image,a cup\njar,plain-image,a jar\n");
    expect(await act({ do: "start", choices: { file: "two.csv" }, price: 4 })).toMatchObject({ exit: 10 });
    expect(await get<RunDetail>("/api/runs/1")).toMatchObject({
      awaiting: 0,
      credits: { spent: 2, pending: 2, lost: 0 },
    });
    const { items } = await get<WaitingPage>("/api/waiting?what=held");
    expect(await act({ do: "skip", items: [String(items[0]?.name)] })).toMatchObject({ exit: 0 });
    expect(await get<RunDetail>("/api/runs/1")).toMatchObject({
      awaiting: 0,
      credits: { spent: 2, pending: 0, lost: 2 },
    });
  });

  test("a task is adopted at the price of the items that its run submits with it, and refused at a lower one", async () => {
    const held = await openDashboard({
      script: ({ what, before }) => (what === "POST generate" && before === 0 ? "serve and cut" : "serve"),
    });
    const { act, get, post, place, service } = held;
    place.write("two.csv", "id,model,prompt\ncup,plain-image,a cup\njar,plain-image,a jar\n");
    const choices = { file: "two.csv", maxCredits: 2 };
    expect(await act({ do: "start", choices, price: 2 })).toMatchObject({ exit: 10 });
    const { items } = await get<WaitingPage>("/api/waiting?what=held");
    const adopt = {
      do: "adopt" as const,
      items: [String(items[0]?.name)],
      task: String(service.made[0]?.task),
    };
    const offer = await post<OfferedPrice>("/api/offer", { ...adopt, price: 0 });
    expect(offer).toMatchObject({ items: [], rest: { items: 1, credits: 2 }, total: 2 });
    expect(await act({ ...adopt, price: 0 })).toMatchObject({
      exit: 2,
      message: expect.stringContaining("--max-price"),
    });
    // At the price that was shown, only the task itself is in the way: it is not the one of this item.
    expect(await act({ ...adopt, price: offer.total })).toMatchObject({
      message: expect.stringMatching(/does not match cup/),
    });
    expect(service.made).toHaveLength(1);
  });

  test("a price with decimals is agreed to as it is shown: an item at 0.1 and two more at 0.1 are 0.3 credits", async () => {
    const list = { ...models, models: models.models.map((model) => ({ ...model, credits_cost: 0.1 })) };
    const { act, get, post, place } = await openDashboard({
      charge: 0.1,
      script: ({ what, before }) => {
        if (what === "GET models") return { json: list };
        return what === "POST generate" && before === 0 ? "serve and cut" : "serve";
      },
    });
    place.write(
      "three.csv",
      `id,model,prompt\n${["cup", "jar", "mug"].map((id) => `${id},plain-image,a ${id}\n`).join("")}`,
    );
    const choices = { file: "three.csv", maxCredits: 0.1 };
    expect(await act({ do: "start", choices, price: 0.1 })).toMatchObject({ exit: 10 });
    const { items } = await get<WaitingPage>("/api/waiting?what=held");
    const names = [String(items[0]?.name)];
    const offer = await post<OfferedPrice>("/api/offer", { do: "resubmit", items: names, price: 0 });
    expect(offer).toMatchObject({ credits: 0.1, rest: { items: 2, credits: 0.2 }, total: 0.3 });
    const resubmitted = await act({ do: "resubmit", items: names, price: offer.total });
    expect(resubmitted.line).toContain("--max-price=0.3");
    expect(resubmitted.exit).not.toBe(2);
  });

  test("an offer for what cannot be done says why", async () => {
    const { post } = await madeTwo();
    await expect(post("/api/offer", { do: "retry", run: 1, price: 0 })).rejects.toThrow(
      "nothing to retry in run 1: no item has failed",
    );
    await expect(post("/api/offer", { do: "redo", items: ["nobody"], price: 0 })).rejects.toThrow("no item");
  });
});

describe("look back", () => {
  test("a file is sent whole, in parts, and small; without its key, and once it is gone, it is not", async () => {
    const { get, ask, place } = await madeTwo();
    const { files } = await get<FilePage>("/api/files?text=cup");
    expect(files).toHaveLength(1);
    const [{ src, thumbnail, bytes }] = files as [FilePage["files"][0]];
    const anybody = { authorization: "" };
    const whole = new Uint8Array(await (await ask(src, { headers: anybody })).arrayBuffer());
    expect(whole).toHaveLength(bytes);
    const part = await ask(src, { headers: { ...anybody, range: "bytes=2-5" } });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 2-5/${bytes}`]);
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(whole.slice(2, 6));
    const tail = await ask(src, { headers: { range: "bytes=-3" } });
    expect(new Uint8Array(await tail.arrayBuffer())).toEqual(whole.slice(-3));
    expect((await ask(src, { headers: { range: `bytes=${bytes}-` } })).status).toBe(416);
    // It is so light that it is its own thumbnail.
    const small = await ask(String(thumbnail), { headers: anybody });
    expect(new Uint8Array(await small.arrayBuffer())).toEqual(whole);
    const archived = join(place.folder, "outputs", "autumn", "cup.png");
    writeFileSync(archived, await sharp(archived).resize(1_200).png().toBuffer());
    expect((await ask(String(thumbnail), { headers: anybody })).headers.get("content-type")).toBe(
      "image/webp",
    );
    expect((await ask(src.replace(/files\/../, "files/zz"), { headers: anybody })).status).toBe(404);
    rmSync(archived);
    expect((await ask(src, { headers: anybody })).status).toBe(404);
  });

  test("an SVG is an image of the page, and nothing that runs: opened by itself it is saved", async () => {
    const drawing = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
    const { get, ask, place, act } = await openDashboard({
      script: ({ what }) => (what === "GET file" ? { text: drawing } : "serve"),
    });
    place.write("autumn.csv", "id,model,prompt\ncup,plain-image,a cup\n");
    expect(await act({ do: "start", choices: { file: "autumn.csv" }, price: 2 })).toMatchObject({ exit: 0 });
    const { files } = await get<FilePage>("/api/files?text=cup");
    const [{ src }] = files as [FilePage["files"][0]];
    const { headers } = await ask(src);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "image/svg+xml",
      "content-disposition": "attachment",
      "content-security-policy": expect.stringMatching(/default-src 'none'; script-src 'self';/),
    });
  });

  test("a file that only a bucket has is sent from there, where the dashboard can reach it", async () => {
    const s3 = await s3Server();
    const { get, ask, place, service, kept, refusal } = await dropped(
      sheet.replace("plain-imag,", "plain-image,"),
      "autumn.csv",
      {
        environment: s3,
      },
    );
    const inBucket = ["--archive", "s3://inputs/team", "--archive-only"];
    const env = { ...service.env, ...s3 };
    expect((await run(place, ["run", kept.file, "--yes", ...inBucket], { env })).code).toBe(0);
    const { files } = await get<FilePage>("/api/files?text=cup");
    const [{ src, thumbnail, bytes }] = files as [FilePage["files"][0]];
    const whole = new Uint8Array(await (await ask(src)).arrayBuffer());
    expect(whole).toHaveLength(bytes);
    const part = await ask(src, { headers: { range: "bytes=2-5" } });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 2-5/${bytes}`]);
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(whole.slice(2, 6));
    expect((await ask(String(thumbnail))).headers.get("content-type")).toBe("image/webp");
    const zip = { method: "POST", body: JSON.stringify({ run: 1 }) };
    expect(await refusal("/api/zip", zip)).toEqual([404, expect.stringContaining("is not on this disk")]);
    await openBucket({ bucket: "inputs", prefix: "team" }, s3).remove("autumn/cup.png");
    expect(await refusal(src)).toEqual([
      404,
      "s3://inputs/team/autumn/cup.png is gone. `bulkgen verify` finds out what is missing.",
    ]);
    s3["AWS_SECRET_ACCESS_KEY"] = "";
    expect(await refusal(src)).toEqual([
      404,
      expect.stringMatching(
        /^s3:\/\/inputs\/team\/autumn\/cup\.png cannot be read: .* set AWS_SECRET_ACCESS_KEY$/,
      ),
    ]);
  });

  test("a run is loaded as one ZIP", async () => {
    const { post, ask } = await madeTwo();
    const ready = await post<ZipReady>("/api/zip", { run: 1 });
    expect(ready.name).toBe("autumn.zip");
    const answer = await ask(ready.src, { headers: { authorization: "" } });
    expect(answer.headers.get("content-type")).toBe("application/zip");
    const packed = unzip(Buffer.from(await answer.arrayBuffer()));
    expect([...packed.keys()].toSorted()).toEqual(["autumn/cup.png", "autumn/jar.png"]);
    await expect(post("/api/zip", { files: [{ item: 99, number: 1 }] })).rejects.toThrow(
      "there are no files to pack",
    );
  });

  test("the final set is loaded with the picked take under its row's name", async () => {
    const { post, ask, place, service } = await madeTwo();
    const { env } = service;
    expect((await run(place, ["redo", "cup", "--yes"], { env })).code).toBe(0);
    expect((await run(place, ["pick", "cup-v2"], { env })).code).toBe(0);
    const { src, note } = await post<ZipReady>("/api/zip", { run: 1, final: true });
    expect(note).toBeNull();
    const packed = unzip(Buffer.from(await (await ask(src)).arrayBuffer()));
    expect([...packed.keys()].toSorted()).toEqual(["autumn/cup.png", "autumn/jar.png"]);
    const second = readFileSync(join(place.folder, "outputs/autumn/cup-v2.png"));
    expect(packed.get("autumn/cup.png")?.equals(second)).toBe(true);
    expect((await run(place, ["reject", "jar"], { env })).code).toBe(0);
    const lacking = await post<ZipReady>("/api/zip", { run: 1, final: true });
    await expect(post("/api/zip", { run: 7, final: true })).rejects.toThrow("there is no run 7");
    expect(lacking.note).toMatch(/^1 row has no final file:\n {2}row 3 \(jar\): /);
  });

  test("a ZIP that is given up on its way leaves no file open", async () => {
    const { post, ask, place } = await madeTwo();
    for (const name of ["cup", "jar"]) place.write(`outputs/autumn/${name}.png`, "x".repeat(1_000_000));
    const { src } = await post<ZipReady>("/api/zip", { run: 1 });
    const reader = (await ask(src)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await expect.poll(() => filesOpenIn(join(place.folder, "outputs"))).toEqual([]);
  });

  test("files of one name in the folders of two runs are both in the ZIP", async () => {
    const { get, post, ask, place, service } = await openDashboard();
    const { env } = service;
    for (const [out, prompt] of Object.entries({
      drafts: "a cup",
      finals: "a red cup",
      more: "a blue cup",
    })) {
      place.write("cups.csv", `id,model,prompt\ncup,plain-image,${prompt}\n`);
      expect((await run(place, ["run", "cups.csv", "--yes", "--out", out], { env })).code).toBe(0);
    }
    const { files } = await get<FilePage>("/api/files");
    const { src } = await post<ZipReady>("/api/zip", {
      files: files.map(({ itemId, output }) => ({ item: itemId, number: output })),
    });
    const packed = unzip(Buffer.from(await (await ask(src)).arrayBuffer()));
    expect([...packed.keys()]).toEqual(["cups/cup.png", "cups/cup (2).png", "cups/cup (3).png"]);
  });
});

/** Linux alone lists them. */
function filesOpenIn(folder: string): string[] {
  if (!existsSync("/proc/self/fd")) return [];
  const paths = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // It was closed meanwhile.
      return "";
    }
  });
  return paths.filter((path) => path.startsWith(folder));
}

test("the dashboard goes on, whatever the service answers to what it has started", async () => {
  const page = "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>";
  const odd = { model_key: "odd", parameters: [{ key: "q", options: ["a"], default: null }] };
  const attacks: [string, Script, number][] = [
    ["POST generate", () => ({ status: 422, json: { detail: "too long" } }), 5],
    ["POST generate", () => ({ status: 403, text: page }), 5],
    ["POST generate", () => ({ status: 401, text: page }), 5],
    ["POST generate", () => ({ text: `\ufeff{"data":{"task_id":""}}` }), 8],
    ["GET models", () => ({ json: { ...models, models: [...models.models, odd, null] } }), 0],
    ["GET models", () => ({ text: page }), 4],
    ["GET me", () => ({ status: 403, text: page }), 3],
    ["GET me", () => ({ json: { user: null, credits: [], subscription: "active", api_key: 7 } }), 0],
    ["GET task", () => ({ json: { status: "canceled", completed_at: "2026-01-01T00:00:00Z" } }), 10],
    ["GET task", () => ({ json: { status: "failed", error: [{ loc: ["body"], msg: "no" }] } }), 5],
    ["GET file", () => ({ text: "<html>", headers: { "content-encoding": "gzip" } }), 10],
  ];
  for (const [attacked, answer, exit] of attacks) {
    const { act, get, place } = await openDashboard({
      script: (asked) => (asked.what === attacked ? answer(asked) : "serve"),
    });
    place.write("set.csv", "id,model,prompt\na,plain-image,a cup\n");
    const ended = await act({ do: "start", choices: { file: "set.csv" }, price: 2 });
    expect(ended, `${attacked}: ${ended.message}`).toMatchObject({ exit });
    expect(ended.message).not.toMatch(/undefined|NaN|\[object/);
    await get("/api/runs");
    await get("/api/waiting?what=held");
  }
});
