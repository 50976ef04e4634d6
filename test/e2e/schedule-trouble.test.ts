import { rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { startHook } from "../notify/receivers.js";
import { eventually, main, newPlace, type Place, run, started, startProcess } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

/** What goes wrong while nobody watches: the daemon, and receivers of its notifications. */
const daemonWords = ["schedule", "start", "--json"];

async function add(place: Place, name: string, flags: readonly string[], env: Record<string, string>) {
  const words = ["schedule", "add", name, `${name}.csv`, ...yearly, ...flags];
  const added = await run(place, words, { env });
  expect(added, added.stderr).toMatchObject({ code: 0 });
}

describe.concurrent("the schedule daemon reports trouble", () => {
  test("a missing manifest and a revoked key are reported, and the daemon keeps running", async () => {
    const service = await startService();
    const hook = await startHook(200);
    const place = newPlace();
    const env = { ...service.env, HOOK: hook.url };
    for (const name of ["gone", "revoked"]) {
      place.write(`${name}.csv`, sheet(2, "plain-image"));
      await add(place, name, ["--notify", "$HOOK"], env);
    }
    rmSync(join(place.folder, "gone.csv"));
    const refused = { error: { code: "INVALID_API_KEY", message: "The API key was revoked." } };
    service.script(() => ({ status: 401, json: refused }));
    withSchedules(place, (db) => db.exec(aYearAgo));
    const daemon = started(place, daemonWords, { env, serves: true });
    await hook.got(2);
    type Told = { event: string; summary: string; next: string | null };
    const told = hook.received.map(({ body }) => JSON.parse(body) as Told);
    expect(told.find(({ event }) => event === "usage")?.summary).toMatch(
      /^1 problem in the manifest; nothing was submitted: gone\.csv: the manifest does not exist/,
    );
    expect(told.find(({ event }) => event === "usage")?.next).toBe("bulkgen plan gone.csv");
    expect(told.find(({ event }) => event === "key")?.summary).toMatch(/refused the API key/);
    expect(told.find(({ event }) => event === "key")?.next).toBe("bulkgen doctor");
    // The record of each run says why as well, once its process has ended; an interrupted one would say that.
    const notes = await eventually(() => {
      const sql = "SELECT note FROM scheduled_runs WHERE state = 'ended' ORDER BY schedule";
      const found = withSchedules(place, (db) => db.prepare(sql).all());
      return found.length < 2 ? null : found;
    });
    daemon.interrupt();
    expect(await daemon.ended).toMatchObject({ code: 0 });
    expect(service.made).toEqual([]);
    expect(notes).toEqual([
      {
        note: expect.stringMatching(
          /^1 problem in the manifest; nothing was submitted: gone\.csv: the manifest does not exist/,
        ),
      },
      { note: expect.stringMatching(/^the service refused the API key/) },
    ]);
    expect(daemon.stderr()).toContain("gone.csv: the manifest does not exist");
    expect(daemon.stderr()).toMatch(
      /WARN: gone: the scheduled run of .*gone\.csv: the manifest does not exist.* \(exit 2\); `bulkgen plan .*gone\.csv`/,
    );
    const report = (await run(place, ["report", "--since", "8800h"], { env })).stdout;
    expect(report).toMatch(
      /gone +due [^\n]*UTC: 1 problem in the manifest; nothing was submitted: gone\.csv/,
    );
  });

  test("a killed run is reported, and the daemon continues it a minute later", async () => {
    const hook = await startHook(200);
    const place = newPlace();
    place.write("nightly.csv", sheet(1));
    place.write("killed.mjs", `if (process.argv[2] === "run") process.kill(process.pid, "SIGKILL");`);
    const env = { HOOK: hook.url, NODE_OPTIONS: `--import=${join(place.folder, "killed.mjs")}` };
    await add(place, "nightly", ["--sandbox", "--notify", "$HOOK"], env);
    withSchedules(place, (db) => db.exec(aYearAgo));
    const daemon = started(place, daemonWords, { env, serves: true });
    await hook.got(1);
    expect(JSON.parse(hook.received[0]?.body ?? "")).toMatchObject({
      event: "lost",
      summary: expect.stringMatching(/its process was ended by SIGKILL; continues at /),
    });
    const sql = "SELECT state, losses FROM scheduled_runs";
    expect(withSchedules(place, (db) => db.prepare(sql).all())).toEqual([{ state: "waiting", losses: 1 }]);
    daemon.interrupt();
    expect(await daemon.ended).toMatchObject({ code: 0 });
  });

  test("a full disk is reported once; no scheduled run starts until there is room", async () => {
    const hook = await startHook(200);
    const place = newPlace();
    place.write("nightly.csv", sheet(1));
    const env = { HOOK: hook.url };
    await add(place, "nightly", ["--sandbox", "--notify", "$HOOK"], env);
    // No file may grow beyond 2 MiB (4 where the shell counts in KiB), as on a disk that has no more room.
    // Its log lies there too.
    place.write("daemon.log", "");
    truncateSync(join(place.folder, "daemon.log"), 8 * 1024 * 1024);
    const limited = [
      "-c",
      `trap '' XFSZ; ulimit -f 4096; exec "$0" "$@" 2>>daemon.log`,
      process.execPath,
      main,
    ];
    const daemon = startProcess("sh", [...limited, ...daemonWords], {
      cwd: place.folder,
      env: { ...place.env, ...env, NODE_OPTIONS: `--import=${napsUntilWoken(place)}` },
    });
    const url = String((await daemon.prints(/"url":"([^"]+)"/))[1]);
    await daemon.prints(/napping/);
    const room = withSchedulesFull(place);
    daemon.signal("SIGUSR2");
    await hook.got(1);
    expect(JSON.parse(hook.received[0]?.body ?? "")).toMatchObject({
      event: "trouble",
      schedule: "nightly",
      exit: null,
      summary: expect.stringMatching(/^nightly: could not record the scheduled run of .* \(.+\); retrying/),
    });
    const { status, body } = await get(`${url}/healthz`);
    expect([status, body]).toEqual([503, expect.objectContaining({ ok: false })]);
    expect(body.trouble).toMatch(/could not record/);
    expect(withSchedules(place, (db) => db.prepare("SELECT * FROM scheduled_runs").all())).toEqual([]);
    room();
    daemon.signal("SIGUSR2");
    await hook.got(2);
    expect(JSON.parse(hook.received[1]?.body ?? "")).toMatchObject({ event: "done", archived: 1 });
    expect((await get(`${url}/healthz`)).status).toBe(200);
    expect(await eventually(() => scheduledRunOf(place))).toEqual({ state: "ended", exit: 0 });
    daemon.signal("SIGTERM");
    expect(await daemon.ended).toMatchObject({ code: 0, signal: null });
  });
});

/** A module for the daemon's process: it says when it naps, and its naps end when it is sent SIGUSR2. */
function napsUntilWoken(place: Place): string {
  place.write(
    "naps.mjs",
    `if (process.argv[2] === "schedule") {
       const { setTimeout, clearTimeout } = globalThis;
       const naps = new Map();
       globalThis.setTimeout = (call, ms, ...values) => {
         if (!(ms >= 10_000)) return setTimeout(call, ms, ...values);
         const timer = setTimeout(() => {}, 2 ** 31 - 1);
         naps.set(timer, call);
         process.stdout.write("napping ");
         return timer;
       };
       globalThis.clearTimeout = (timer) => {
         naps.delete(timer);
         clearTimeout(timer);
       };
       process.on("SIGUSR2", () => {
         for (const call of naps.values()) call();
       });
     }`,
  );
  return join(place.folder, "naps.mjs");
}

/**
 * Fills the journal up to the file size limit of the process, and makes a scheduled run due. Returns a function that
 * makes room.
 */
function withSchedulesFull(place: Place): () => void {
  const db = openSqlite(join(place.folder, ".bulkgen", "schedules.db"));
  db.pragma("synchronous = OFF");
  db.pragma("wal_autocheckpoint = 0");
  const write = db.prepare("UPDATE opened SET count = count + 1");
  for (let frame = 0; frame < 1_100; frame++) write.run();
  db.exec(aYearAgo);
  return () => {
    db.pragma("wal_checkpoint(TRUNCATE)");
    db.close();
  };
}

function scheduledRunOf(place: Place): object | null {
  const sql = "SELECT state, exit FROM scheduled_runs WHERE state = 'ended' ORDER BY due_at LIMIT 1";
  return withSchedules(place, (db) => (db.prepare(sql).get() as object | undefined) ?? null);
}

async function get(url: string): Promise<{ status: number; body: { ok: boolean; trouble: string | null } }> {
  const { request } = await import("undici");
  const { statusCode, body } = await request(url);
  return { status: statusCode, body: (await body.json()) as { ok: boolean; trouble: string | null } };
}
