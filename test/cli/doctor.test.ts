import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import type { Check } from "../../src/upkeep/doctor/machine.js";
import { tryLock } from "../../src/workspace/state-folder/filesystem.js";
import { filesWith, main, newPlace, type Place, run, startProcess } from "../e2e/command.js";
import { testKey } from "../e2e/leaked-key.js";
import { models } from "../e2e/service.js";
import { ManualClock } from "../manual-clock.js";
import { answering, json, me } from "./service.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
});

interface Found {
  code: number | null;
  /** State and what was got, by the name of the check. */
  of: Record<string, string>;
  checks: Check[];
  exitName: string;
  text: string;
}

async function doctor(flags: string[], env: Record<string, string> = {}): Promise<Found> {
  const { code, stdout, stderr } = await run(at, ["doctor", "--json", ...flags], { env });
  const { checks, exitName } = JSON.parse(stdout) as { checks: Check[]; exitName: string };
  const of = Object.fromEntries(checks.map(({ name, state, got }) => [name, `${state}: ${got}`]));
  return { code, of, checks, exitName, text: stdout + stderr };
}

/** What doctor finds of a service that answers so. */
async function asked(answer: (response: ServerResponse) => void, list: object = models): Promise<Found> {
  const service = await answering((request, response) =>
    request.url?.includes("/models") ? json(response, 200, list) : answer(response),
  );
  try {
    const found = await doctor(["--trust-address"], {
      BULKGEN_BASE_URL: service.url,
      BULKGEN_API_KEY: testKey,
    });
    expect(new Set(service.keys)).toEqual(new Set([`Bearer ${testKey}`]));
    expect(service.keys.length).toBeLessThanOrEqual(2);
    expect(found.text).not.toContain(testKey);
    expect(filesWith(at.root, testKey)).toEqual([]);
    return found;
  } finally {
    await service.close();
  }
}

const subscribed = (change: object) => ({ ...me, subscription: { ...me.subscription, ...change } });

describe("doctor", () => {
  test("finds nothing wrong with the sandbox, and leaves nothing behind", async () => {
    const { code, stdout, stderr } = await run(at, ["doctor", "--sandbox"], { locks: tryLock });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^ok +lock +refused while held, given after$/m);
    expect(stdout).toMatch(/^ok +SQLite +\S+, journal wal, synchronous FULL$/m);
    expect(stdout).toMatch(/^ok +subscription +Pro, active/m);
    expect(stdout).toMatch(/^no problems/m);
    expect(readdirSync(at.folder)).toEqual([]);
  });

  test("says that a full disk needs space, not another disk", async () => {
    // No file may grow beyond 4 KiB: no database can be made.
    const command = `trap '' XFSZ; ulimit -f 8; exec "$0" "$@"`;
    const args = ["-c", command, process.execPath, main, "doctor", "--json"];
    const end = await startProcess("sh", args, { cwd: at.folder, env: at.env }).ended;
    const { checks } = JSON.parse(end.stdout) as { checks: Check[] };
    expect(checks.find(({ name }) => name === "SQLite")).toMatchObject({
      state: "problem",
      todo: expect.stringMatching(/free (some )?space/),
    });
  });

  test("tells of locks that refuse nothing", async () => {
    const locks = () => "it was granted to both";
    const { code, stdout } = await run(at, ["doctor", "--sandbox", "--json"], { locks });
    expect(code).toBe(2);
    expect(JSON.parse(stdout).checks).toContainEqual(
      expect.objectContaining({ name: "lock", state: "problem", got: "it was granted to both" }),
    );
  });

  test("a budget of a key that is used up is renewed by itself, and nobody needs to top up", async () => {
    const budget = { left: 0, of: 12, per: "day", renews_at: "2026-11-29T00:00:00.000Z" };
    const told = { ...me, credits: { ...me.credits, balance: 0 }, service: { budget } };
    const { of } = await asked((response) => json(response, 200, told));
    expect(of["credits"]).toMatch(/^warning: 0 of 12 credits left today, renewed at 00:00 UTC/);
  });

  test("spends two requests and says how many are left", async () => {
    const { code, of, exitName } = await asked((response) => json(response, 200, me));
    expect([code, exitName]).toEqual([0, "done"]);
    expect(of).toMatchObject({
      key: "ok: accepted",
      "key form": "ok: as expected (from BULKGEN_API_KEY)",
      subscription: "ok: Pro, active, renews 2026-12-01",
      credits: "ok: 250.5 left",
      limits: "ok: 58 of 60 left this minute, 9998 of 10000 left in 24 hours, as far as this machine knows",
      models: "ok: 1 model",
      history: "ok: none yet",
    });
    expect(of["clock"]).toMatch(/^ok: /);
  });

  test.each([
    ["no subscription", { ...me, subscription: null }, 3, "problem: none"],
    ["a payment that is past due", subscribed({ status: "past_due" }), 3, "problem: Pro, past_due"],
    [
      "a canceled subscription",
      subscribed({ status: "canceled" }),
      0,
      "warning: Pro, canceled, ends 2026-12-01",
    ],
    ["one that ends", subscribed({ cancel_at_period_end: true }), 0, "warning: Pro, active, ends 2026-12-01"],
    ["a status that is new", subscribed({ status: "trialing" }), 0, "warning: Pro, trialing"],
  ])("tells of %s", async (_, body, code, subscription) => {
    const found = await asked((response) => json(response, 200, body));
    expect(found.code).toBe(code);
    expect(found.of["subscription"]).toContain(subscription);
    expect(found.of["key"]).toBe("ok: accepted");
  });

  test("names what it does not understand of the account and of the models, and that it reads the rest", async () => {
    const odd = { models: [...models.models, { model_key: "b", parameters: [7] }, null] };
    const { code, of } = await asked((response) => json(response, 200, { ...me, user: { name: "x" } }), odd);
    expect(code).toBe(0);
    expect(of["models"]).toBe(
      "warning: 2 models, and not understood: user.id is absent: the user is not known; " +
        "model b: category is absent: read as unknown; " +
        "model b: input_type is absent: the service decides what the model needs; " +
        "model b: parameters[0].key is absent: left out, and the service checks the params of the model; " +
        "models[2]: model_key is absent: the model is left out",
    );
    const { code: other, of: none } = await asked((response) => json(response, 200, me), { hello: 1 });
    expect([other, none["models"]]).toEqual([
      4,
      "problem: GET /api/v1/models: expected the documented record, got something else",
    ]);
  });

  const error = (code: string) => ({ error: { code, message: "told so" } });
  test.each([
    ["refuses the key", 401, error("INVALID_API_KEY"), 3, { key: "problem: 401 INVALID_API_KEY: told so" }],
    [
      "knows the key and no plan",
      403,
      error("SUBSCRIPTION_REQUIRED"),
      3,
      { key: "ok: known to the service", subscription: "problem: none: the service answered 403" },
    ],
    [
      "asks for a pause",
      429,
      error("RATE_LIMITED"),
      0,
      { service: "warning: 429 RATE_LIMITED: told so", key: "not checked: the service asked for a pause" },
    ],
    [
      "has trouble",
      503,
      error("BUSY"),
      4,
      { service: "problem: 503 BUSY: told so", key: "not checked: the service was not reached" },
    ],
    [
      "is another program",
      200,
      { hello: "world" },
      4,
      { service: expect.stringMatching(/^problem: 200 with something else/) },
    ],
  ])("tells of a service that %s", async (_, status, body, code, of) => {
    const found = await asked((response) => json(response, status, body));
    expect(found.code).toBe(code);
    expect(found.of).toMatchObject(of);
  });

  test.each([
    ["ahead", -90_000],
    ["behind", 90_000],
  ])("tells of a clock that is %s of the service's", async (word, ms) => {
    const date = new Date(Date.now() + ms).toUTCString();
    const { code, of } = await asked((response) => json(response, 200, me, { date }));
    expect(code).toBe(0);
    expect(of["clock"]).toMatch(new RegExp(`^warning: (8|9)\\d s ${word}$`));
  });

  test("names every check that it could not make because no request is left", async () => {
    const service = await answering((_, response) => {
      response.setHeader("retry-after", "600");
      json(response, 429, error("RATE_LIMITED"));
    });
    const env = { BULKGEN_BASE_URL: service.url, BULKGEN_API_KEY: testKey };
    await doctor([], env);
    const { of } = await doctor([], env);
    await service.close();
    expect(service.keys).toHaveLength(1);
    expect(of["limits"]).toMatch(/^warning: none until /);
    for (const name of ["service", "key", "subscription", "credits", "clock"])
      expect(of[name], name).toBe("not checked: no request is left");
  });

  test("says what it could not check when nothing answers", async () => {
    const service = await answering(() => {});
    await service.close();
    const found = await doctor(["--trust-address"], {
      BULKGEN_BASE_URL: service.url,
      BULKGEN_API_KEY: testKey,
    });
    expect([found.code, found.exitName]).toEqual([4, "unreachable"]);
    expect(found.of["service"]).toContain("problem: connect ECONNREFUSED");
    for (const name of ["key", "subscription", "credits", "limits", "clock"]) {
      expect(found.of[name], name).toMatch(/^not checked: /);
    }
  });

  test("reports missing and wrong settings offline, and never shows a key", async () => {
    expect(await doctor([])).toMatchObject({
      code: 2,
      of: { "base URL": "problem: nothing", "key form": "problem: nothing" },
      checks: expect.arrayContaining([
        expect.objectContaining({ expected: "the service's address, such as https://service.example" }),
      ]),
    });
    const env = { BULKGEN_BASE_URL: "http://far.example", BULKGEN_API_KEY: `${testKey}x` };
    const { code, of, text, checks } = await doctor([], env);
    expect(code).toBe(3);
    expect(of["base URL"]).toContain("http only for this machine");
    expect(of["key form"]).toBe("problem: 37 characters beginning with svc_ (from BULKGEN_API_KEY)");
    expect(text).not.toContain(testKey);
    for (const check of checks)
      expect(check.todo === null).toBe(!["problem", "warning"].includes(check.state));
  });

  /** A workspace whose database is whole, and its folder. */
  async function whole(): Promise<string> {
    const folder = join(at.folder, ".bulkgen", "sandbox");
    await openWorkspace({ stateFile: join(folder, "state.db"), root: at.folder }, new ManualClock()).close();
    return folder;
  }

  test("a history that a newer bulkgen wrote asks for a newer bulkgen, and not to be replaced", async () => {
    const db = openSqlite(join(await whole(), "state.db"));
    db.pragma("user_version = 999");
    db.close();
    const { code, of, checks } = await doctor(["--sandbox"]);
    expect(code).toBe(2);
    expect(of["history"]).toMatch(/^problem: .*written by a newer bulkgen/);
    expect(checks.find(({ name }) => name === "history")?.todo).toBe("update bulkgen");
  });

  test("a history on a disk that is full is not to be replaced", async () => {
    await whole();
    // No file may grow at all: the log of the database cannot be written.
    const command = `trap '' XFSZ; ulimit -f 0; "$0" "$@" | cat`;
    const args = ["-c", command, process.execPath, main, "doctor", "--sandbox", "--json"];
    const { stdout } = await startProcess("sh", args, { cwd: at.folder, env: at.env }).ended;
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    expect(checks.find(({ name }) => name === "history")).toMatchObject({
      state: "problem",
      got: expect.stringMatching(/state\.db: (disk I\/O error|database or disk is full)/),
      todo: expect.stringMatching(/^(check that its disk has free space|free some space)/),
    });
  });

  test("what nobody changed of the settings is not listed, only counted; --json has it", async () => {
    const plain = await run(at, ["doctor", "--sandbox"]);
    expect(plain.stdout).toMatch(
      /\nall \d+ settings have their defaults: `bulkgen doctor --json` lists them\n$/,
    );
    expect(plain.stdout).not.toContain("settle-seconds");
    const own = await run(at, ["doctor", "--sandbox"], { env: { BULKGEN_RETRIES: "3" } });
    expect(own.stdout).toMatch(/^retries +3 +BULKGEN_RETRIES\nthe other \d+ settings have their defaults/m);
    const { stdout } = await run(at, ["doctor", "--sandbox", "--json"]);
    expect(stdout).toContain('"settle-seconds"');
  });

  test("if HOME cannot be written, doctor and commands say so, with the command that helps", async () => {
    writeFileSync(join(at.root, "no-home"), "");
    writeFileSync(join(at.folder, "set.csv"), "id,model,prompt\na,plain-image,a cup\n");
    const { BULKGEN_BASE_URL, ...env } = {
      BULKGEN_BASE_URL: "http://127.0.0.1:1",
      BULKGEN_API_KEY: testKey,
      HOME: join(at.root, "no-home"),
      XDG_STATE_HOME: "",
    };
    const folder = join(env.HOME, ".local", "state", "bulkgen");
    const advice = `from now on: \`export XDG_STATE_HOME=${join(at.folder, ".state")}\``;
    for (const words of [["account"], ["run", "set.csv", "--yes"]]) {
      const refused = await run(at, words, { env: { ...env, BULKGEN_BASE_URL } });
      expect(refused, words[0]).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`${folder} cannot be made (ENOTDIR)`),
      });
      expect(refused.stderr).toContain(advice);
    }
    const { of, checks } = await doctor([], { ...env, BULKGEN_BASE_URL });
    expect(of["accounts"]).toBe(`problem: ${folder} cannot be made (ENOTDIR)`);
    expect(checks.find(({ name }) => name === "accounts")?.todo).toContain(advice);
  });

  test("a workspace that cannot be written is no reason for a rehearsal to move what workspaces share", async () => {
    writeFileSync(join(at.folder, ".bulkgen"), "");
    const { code, of, checks } = await doctor(["--sandbox"]);
    expect(code).toBe(2);
    expect(of["accounts"]).toMatch(/cannot be made \(ENOTDIR\)$/);
    const todo = "see that no file lies in the way of it, or name another workspace with --workspace";
    for (const name of ["state folder", "accounts"])
      expect(checks.find((each) => each.name === name)?.todo).toBe(todo);
  });

  test("a damaged accounts.db is one line that says what it contains, and the rest is checked", async () => {
    writeFileSync(join(await whole(), "accounts.db"), "no database ".repeat(200));
    const { code, of, checks } = await doctor(["--sandbox"]);
    expect(code).toBe(2);
    expect(of["accounts"]).toMatch(/^problem: .*accounts\.db: file is not a database$/);
    expect(checks.find(({ name }) => name === "accounts")?.todo).toMatch(/quota ledger.*move it away/);
    expect(of["history"]).toMatch(/^ok: /);
    expect(of["service"]).toBe("not checked: no request can be counted without accounts.db");
  });

  test("damage in a part of a database that no other check reads is found", async () => {
    const folder = await whole();
    writeFileSync(join(at.folder, "set.csv"), "id,model,prompt\na,aurora-image-mini,a cup\n");
    expect(await run(at, ["run", "set.csv", "--sandbox", "--yes"])).toMatchObject({ code: 0 });
    const spoil = (file: string, table: string) => {
      const db = openSqlite(file);
      const size = db.pragma("page_size", { simple: true }) as number;
      const root = db
        .prepare("SELECT rootpage FROM sqlite_master WHERE name = ?")
        .pluck()
        .get(table) as number;
      db.close();
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.fill(0xff, (root - 1) * size, root * size));
    };
    spoil(join(folder, "state.db"), "events");
    spoil(join(folder, "accounts.db"), "spend_log");
    const { code, of } = await doctor(["--sandbox"]);
    expect(code).toBe(2);
    expect(of["history"]).toMatch(/^problem: .*state\.db: damaged \(.*page/);
    expect(of["accounts"]).toMatch(/^problem: .*accounts\.db: damaged \(.*page/);
  });

  test("reports a history that is no database, and outputs that cannot be written", async () => {
    mkdirSync(join(at.folder, ".bulkgen", "sandbox"), { recursive: true });
    writeFileSync(join(at.folder, ".bulkgen", "sandbox", "state.db"), "no database ".repeat(200));
    writeFileSync(join(at.folder, "taken"), "a file");
    const { code, of, checks } = await doctor(["--sandbox", "--out", "taken/outputs"]);
    expect(code).toBe(2);
    expect(of["history"]).toMatch(/^problem: .*state\.db: file is not a database$/);
    expect(checks.find(({ name }) => name === "history")?.todo).toMatch(
      /`bulkgen doctor --sandbox --rebuild`/,
    );
    expect(of["output folder"]).toMatch(/^problem: ENOTDIR in .*taken$/);
  });
});
