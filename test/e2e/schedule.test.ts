import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { startHook, startMailServer } from "../notify/receivers.js";
import { newPlace, type Place, type Running, run, spawned, start } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { testKey } from "./leaked-key.js";
import { sheet } from "./sheet.js";

const daemonWords = ["schedule", "start", "--json"];
const rehearsed = ["--sandbox", "--edition", "{{ date }} {{ time }}"];
const minutely = ["--cron", "* * * * *", "--tz", "UTC", ...rehearsed];

function ask<Row>(place: Place, file: string, sql: string): Row[] {
  const db = openSqlite(join(place.folder, ".bulkgen", file), { readonly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

interface ShownRun {
  name: string;
  scheduledRuns: { state: string; exit: number | null; dueAt: string; archived: number }[];
}

async function shown(place: Place, name: string): Promise<ShownRun> {
  return JSON.parse((await run(place, ["schedule", "show", name, "--json"])).stdout) as ShownRun;
}

async function health(daemon: Running): Promise<string> {
  return String((await daemon.prints(/"url":"([^"]+)"/))[1]);
}

describe.concurrent("schedules of the built command", () => {
  test("a daemon starts a run that is due; killed and restarted, it finishes that run once and notifies", async () => {
    const place = newPlace();
    const hook = await startHook(500, 200);
    const box = await startMailServer("ada", "s3cret");
    place.write("set.csv", sheet(3));
    const env = { HOOK: `${hook.url}/T0/very-secret`, SMTP: box.url };
    const notify = ["--notify", "$HOOK", "--notify", "mailto:ops@example.org", "--smtp-url", "$SMTP"];
    const words = ["schedule", "add", "soon", "set.csv", ...yearly, ...rehearsed, ...notify];
    const added = await run(place, words, { env });
    expect(added, added.stderr).toMatchObject({ code: 0 });
    withSchedules(place, (db) => db.exec(aYearAgo));
    const first = start(place, daemonWords, { env });
    await first.prints(/the scheduled run of .* starts/);
    first.signal("SIGKILL");
    expect((await first.ended).signal).toBe("SIGKILL");
    const missing = /^No daemon is running: `bulkgen schedule start` starts the runs that are due, /m;
    for (const words of [["list"], ["show"], ["show", "soon"]])
      expect((await run(place, ["schedule", ...words])).stdout).toMatch(missing);

    const second = start(place, daemonWords, { env });
    const url = await health(second);
    await second.prints(/the scheduled run of .* continues/);
    const third = await run(place, daemonWords, { env });
    expect(third).toMatchObject({ code: 9, stderr: expect.stringContaining("another daemon") });
    for (const words of [["list"], ["show"]])
      expect((await run(place, ["schedule", ...words])).stdout).not.toMatch(missing);
    await second.prints(/3 of 3 archived/);
    const { status, text } = await get(`${url}/healthz`);
    expect([status, JSON.parse(text)]).toEqual([200, expect.objectContaining({ ok: true, schedules: 1 })]);
    expect((await get(`${url}/healthz`, "evil.example")).status).toBe(421);
    second.signal("SIGTERM");
    const ended = await second.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });

    const [scheduledRun] = (await shown(place, "soon")).scheduledRuns.toReversed();
    expect(scheduledRun).toMatchObject({ state: "ended", exit: 0, archived: 3 });
    const posts = ask<{ posts: number }>(
      place,
      "sandbox/state.db",
      `SELECT count(*) AS posts FROM attempts JOIN runs ON runs.id = run_id
       WHERE edition = '${scheduledRun?.dueAt.slice(0, 10)} ${scheduledRun?.dueAt.slice(11, 16)}'`,
    );
    expect(posts).toEqual([{ posts: 3 }]);
    await hook.got(2);
    expect(JSON.parse(hook.received.at(-1)?.body ?? "")).toMatchObject({
      event: "done",
      archived: 3,
      schedule: "soon",
      due: scheduledRun?.dueAt,
      workspace: place.folder,
      sandbox: true,
    });
    expect(box.mails[0]?.to).toEqual(["ops@example.org"]);
    expect(ended.stderr + added.stdout + added.stderr).not.toContain("very-secret");
  });

  test("what is typed from another folder is advised with the workspace that it is about", async () => {
    const place = newPlace();
    place.write("the sheets/set.csv", sheet(1));
    mkdirSync(join(place.folder, "else"));
    const cwd = join(place.folder, "else");
    const typed = (...words: string[]) => run(place, ["schedule", ...words], { cwd });
    const add = ["add", "nightly", "../the sheets/set.csv", "--cron", "0 2 * * *", "--sandbox"];
    const added = await typed(...add);
    expect(added.stdout).toContain("`bulkgen schedule start --workspace '../the sheets'` starts the runs");
    const again = await typed(...add);
    expect(again.stderr).toContain("`bulkgen schedule remove nightly --workspace '../the sheets'` first");
    expect((await typed("remove", "nightly", "--workspace", "../the sheets")).code).toBe(0);
    const other = await run(place, ["status", "9", "--sandbox", "--workspace", "../the sheets"], { cwd });
    expect(other.stderr).toContain("`bulkgen status --all --workspace '../the sheets' --sandbox` lists");
  });

  test("show says in plain words what happens next; list lists and remove removes", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    const flags = ["--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--sandbox", "--fresh", "--until", "6:00"];
    const policy = ["--max-credits", "9", "--on-insufficient", "fit", "--on-daily-limit", "wait"];
    const added = await run(place, ["schedule", "add", "nightly", "set.csv", ...flags, ...policy]);
    expect(added.stdout).toContain("\nNo daemon is running: `bulkgen schedule start` starts");
    const { stdout } = await run(place, ["schedule", "show"]);
    expect(stdout).toMatch(/^next +\w{3} \d{4}-\d\d-\d\d 02:00 CES?T, in /m);
    expect(stdout).toMatch(/^makes +all items again, once, as edition /m);
    expect(stdout).toMatch(/^ends +submits nothing after 06:00/m);
    expect(stdout).toMatch(/^spends +at most 9 credits a run$/m);
    expect(stdout).toMatch(/^credits +if the balance does not cover the plan, the items it covers are made/m);
    expect(stdout).toMatch(/^day limit +waits when the day's requests are used up/m);
    expect((await run(place, ["schedule", "list"])).stdout).toMatch(/^nightly +set.csv +0 2 \* \* \*/m);
    const again = await run(place, ["schedule", "add", "nightly", "set.csv", ...flags]);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("a schedule nightly exists") });
    const growing = await run(place, [
      "schedule",
      "add",
      "growing",
      "set.csv",
      ...yearly,
      "--max-credits",
      "9",
    ]);
    expect(growing.stdout).toMatch(
      /^spends +at most 9 credits a run, also when a later scheduled run continues it$/m,
    );
    expect((await run(place, ["schedule", "remove", "nightly"])).code).toBe(0);
    expect((await run(place, ["schedule", "show", "nightly"])).code).toBe(2);
  });

  test("remove says what happens with a run that is not over", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const removed = async (state: string, more: readonly string[]) => {
      await run(place, ["schedule", "add", "nightly", "set.csv", ...yearly, ...more]);
      withSchedules(place, (db) =>
        db.exec(
          `INSERT OR REPLACE INTO scheduled_runs (schedule, due_at, state) VALUES ('nightly', 0, '${state}')`,
        ),
      );
      return (await run(place, ["schedule", "remove", "nightly"])).stdout;
    };
    expect(await removed("ended", [])).toBe("removed nightly\n");
    expect(await removed("running", ["--sandbox"])).toBe(
      "removed nightly; its run of Thu 1970-01-01 00:00 UTC goes on until it ends: `bulkgen status --sandbox` shows it, `bulkgen pause --sandbox` stops it\n",
    );
    expect(await removed("waiting", [])).toBe(
      "removed nightly; its run of Thu 1970-01-01 00:00 UTC is not over, and no longer continues automatically: `bulkgen resume` continues it\n",
    );
  });

  test("print names the settings that are only in this shell, which a service and cron do not have", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    await run(place, ["schedule", "add", "nightly", "set.csv", ...yearly]);
    const env = {
      BULKGEN_BASE_URL: "https://service.invalid",
      BULKGEN_API_KEY: testKey,
      BULKGEN_RPM: "5",
      https_proxy: "http://proxy.invalid:3128",
      XDG_CONFIG_HOME: join(place.folder, "settings"),
    };
    const printed = async () => (await run(place, ["schedule", "print"], { env })).stdout;
    expect(await printed()).toContain(
      "# Set in this shell, and not for systemd and cron: BULKGEN_API_KEY, BULKGEN_BASE_URL, BULKGEN_RPM, XDG_CONFIG_HOME, XDG_STATE_HOME, https_proxy.\n",
    );
    place.write(".env", `BULKGEN_BASE_URL=https://service.invalid\nBULKGEN_API_KEY=${testKey}\n`);
    expect(await printed()).toContain(
      "# Set in this shell, and not for systemd and cron: BULKGEN_RPM, XDG_CONFIG_HOME, XDG_STATE_HOME, https_proxy.\n",
    );
    expect(await printed()).not.toContain(testKey);
    expect((await printed()).match(/this shell/g)).toHaveLength(1);
    const { stdout } = await run(place, ["schedule", "print"]);
    expect(stdout).toContain("# Set in this shell, and not for systemd and cron: XDG_STATE_HOME.\n");
    // That is where the tests keep the state; with nothing set, nothing is named.
    const nothing = { XDG_CONFIG_HOME: "", XDG_STATE_HOME: "", HOME: place.folder };
    expect((await run(place, ["schedule", "print"], { env: nothing })).stdout).not.toContain("this shell");
  });

  test("a workspace without schedules has an empty list, before the first and after the last one", async () => {
    const place = newPlace();
    const empty = { code: 0, stdout: `no schedules in ${place.folder}; \`bulkgen schedule add\` adds one\n` };
    expect(await run(place, ["schedule", "list"])).toMatchObject(empty);
    expect(await run(place, ["schedule", "list", "--json"])).toMatchObject({ code: 0, stdout: "[]\n" });
    expect(place.files()).toEqual([]);
    place.write("set.csv", sheet(1));
    await run(place, ["schedule", "add", "nightly", "set.csv", ...minutely]);
    await run(place, ["schedule", "remove", "nightly"]);
    expect(await run(place, ["schedule", "list"])).toMatchObject(empty);
  });

  test("schedule run prints the output of the run and exits with its code", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    const hook = await startHook(200);
    const flags = ["--max-credits", "1", "--notify", hook.url];
    await run(place, ["schedule", "add", "nightly", "set.csv", ...minutely, ...flags]);
    // The scheduled run is a process of its own and prints to this one's stdout.
    const ended = await spawned(place, ["schedule", "run", "nightly"]);
    expect(ended).toMatchObject({ code: 6, stdout: expect.stringMatching(/archived +1 of 2/) });
    const results = { state: "ended", exit: 6, run: 1, archived: 1, failed: 0, held: 0, credits: 1 };
    expect((await shown(place, "nightly")).scheduledRuns).toMatchObject([results]);
    const [listed] = JSON.parse((await run(place, ["schedule", "list", "--json"])).stdout) as [ShownRun];
    expect(listed.scheduledRuns).toMatchObject([results]);
    expect(JSON.parse(hook.received[0]?.body ?? "")).toMatchObject({
      event: "cap",
      schedule: "nightly",
      due: expect.stringMatching(/^\d{4}-.*Z$/),
      why: "the credit cap is reached",
      next: "1 item is left: `bulkgen resume 1 --max-credits 2 --sandbox`",
    });

    // How a scheduled run stands is what its run says now, not how its first process ended.
    const reported = await run(place, ["report", "--sandbox"]);
    expect(reported.stdout).toMatch(/^total +1 run, 1 archived\ncredits +1 spent\n/m);
    expect(reported.stdout).toMatch(/^ +1 .* set +schedule nightly /m);
    const resumed = await run(place, ["resume", "1", "--max-credits", "2", "--sandbox"]);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect((await shown(place, "nightly")).scheduledRuns).toMatchObject([
      { state: "ended", exit: 0, run: 1, archived: 2, credits: 2 },
    ]);
    expect((await run(place, ["schedule", "show", "nightly"])).stdout).toMatch(
      /^last +.*: done: resumed, 2 archived, 2 credits$/m,
    );
    expect((await run(place, ["schedule", "list"])).stdout).toContain(": done: resumed, 2 archived");
  });

  test("after a schedule run was killed, its run says how it ended", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    await run(place, ["schedule", "add", "nightly", "set.csv", ...minutely, "--max-credits", "1"]);
    expect((await spawned(place, ["schedule", "run", "nightly"])).code).toBe(6);
    // What the command records before its run ends.
    withSchedules(place, (db) =>
      db.exec(
        "UPDATE scheduled_runs SET state = 'running', note = 'by hand', ended_at = NULL, exit = NULL, run = NULL, credits = NULL, archived = NULL, failed = NULL, held = NULL",
      ),
    );
    const results = { state: "ended", run: 1, archived: 1, failed: 0, held: 0, credits: 1 };
    expect((await shown(place, "nightly")).scheduledRuns).toMatchObject([
      { ...results, exit: 6, note: "1 archived" },
    ]);
    const state = openSqlite(join(place.folder, ".bulkgen", "sandbox", "state.db"));
    state.exec("UPDATE runs SET state = 'running', exit = NULL, ended_at = NULL");
    state.close();
    expect((await shown(place, "nightly")).scheduledRuns).toMatchObject([
      { ...results, exit: null, note: "its process was killed; 1 archived" },
    ]);
  });

  test("in a crontab, schedule run --quiet prints nothing unless the run fails", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    place.write("poor.csv", sheet(2).replaceAll("a0", "b0"));
    await run(place, ["schedule", "add", "good", "set.csv", ...minutely, "--notify-command", "true"]);
    await run(place, ["schedule", "add", "poor", "poor.csv", ...minutely, "--max-credits", "1"]);
    await run(place, ["schedule", "add", "gone", "set.csv", ...minutely]);
    expect(await spawned(place, ["schedule", "run", "good", "--quiet"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "",
    });
    expect((await shown(place, "good")).scheduledRuns).toMatchObject([{ state: "ended", archived: 2 }]);
    expect(await spawned(place, ["schedule", "run", "poor", "--quiet"])).toMatchObject({
      code: 6,
      stdout: "",
      stderr: expect.stringMatching(
        /^bulkgen: scheduled run of poor: 1 of 2 archived, 1 credit \(exit 6\): `bulkgen status --workspace \S+ --sandbox` says why/,
      ),
    });
    place.write("set.csv", "");
    expect(await spawned(place, ["schedule", "run", "gone", "--quiet"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /^bulkgen: scheduled run of gone: .*set\.csv: the file is empty.*\(exit 2\): `bulkgen plan --workspace \S+ --sandbox \S+set\.csv` says what is wrong$/m,
      ),
    });
  });

  test("a key of the wrong form gives a scheduled run its exit code", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    await run(place, ["schedule", "add", "key", "set.csv", "--cron", "0 2 * * *"]);
    const env = { BULKGEN_BASE_URL: "http://127.0.0.1:1", BULKGEN_API_KEY: "svc_short" };
    expect((await run(place, ["schedule", "run", "key"], { env })).code).toBe(3);
  });

  test.each([
    [["--cron", "0 0 30 2 *"], /never does: no such day is in any year/],
    [["--cron", "0 25 * * *"], /--cron: expected five fields .* got "0 25 \* \* \*"/],
    [["--cron", "0 2 1"], /--cron: expected five fields .* got "0 2 1", which has 3 fields$/m],
    [["--cron", "0 0 2 * * *"], /--cron: expected five fields .* got "0 0 2 \* \* \*", which has 6 fields$/m],
    [
      ["--cron", "0 2 * * *", "--tz", "Mars/Base"],
      /--tz: expected a zone .*"Mars\/Base", which does not exist/,
    ],
    [
      ["--cron", "0 2 * * *", "--edition", "{{ day }}"],
      /--edition: expected a name.*undefined variable: day/s,
    ],
    [["--cron", "0 2 * * *", "--fresh", "--edition", "a"], /--fresh cannot be used with --edition/],
    [["--cron", "0 2 * * *", "--until", "26:00"], /expected a time such as 06:00/],
    [["--cron", "0 2 * * *", "--notify", "hook"], /--notify: expected an address/],
  ])("add refuses %j", async (flags, message) => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const ended = await run(place, ["schedule", "add", "nightly", "set.csv", "--sandbox", ...flags]);
    expect(ended.stderr).toMatch(message);
    expect(ended.code).toBe(2);
    expect(place.files().filter((file) => file.includes("schedules"))).toEqual([]);
  });

  test("add refuses a job file whose `publish` is no place for files, and the same in the settings", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const job = (publish: string) =>
      place.write("set.yaml", `{ name: set, publish: "${publish}", rows: [{ model: m, prompt: p }] }`);
    const add = (manifest: string) =>
      run(place, ["schedule", "add", "nightly", manifest, "--cron", "0 2 * * *"]);
    job("s3://Inputs/photos");
    const wrong = await add("set.yaml");
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("local inputs cannot be published there");
    place.write("bulkgen.config.yaml", "publish: s3://Inputs/photos\n");
    const settings = await add("set.csv");
    expect(settings).toMatchObject({ code: 2, stderr: expect.stringContaining("s3://bucket/prefix") });
    rmSync(join(place.folder, "bulkgen.config.yaml"));
    job("s3://inputs/photos");
    expect((await add("set.yaml")).code).toBe(0);
  });
});

async function get(url: string, host?: string): Promise<{ status: number; text: string }> {
  const { request } = await import("undici");
  const { statusCode, body } = await request(url, host === undefined ? {} : { headers: { host } });
  return { status: statusCode, text: await body.text() };
}
