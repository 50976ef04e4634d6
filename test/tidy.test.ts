import { homedir } from "node:os";
import { describe, expect, test } from "vitest";
import { checkBans } from "./tidy/bans.js";
import { checkoutFiles } from "./tidy/files.js";
import { checkRanks } from "./tidy/ranks.js";
import { checkLaterWords, checkPaths, checkSources, checkTests } from "./tidy/shape.js";
import type { Finding } from "./tidy/syntax.js";
import { checkCircles, checkFolderSizes, checkSpreads, checkTypeNames } from "./tidy/tree.js";

const files = checkoutFiles();
const sources = files.filter((file) => /^(src|test)\/.*\.tsx?$/.test(file.path));

describe("this checkout", () => {
  test("has sources to check", () => {
    expect(sources.map((file) => file.path)).toContain("src/core/item.ts");
  });

  test("imports flow one way through the ranks", () => expectNone(checkRanks(sources)));
  test("clock, timers, randomness, fetch and the process are arguments", () =>
    expectNone(checkBans(sources)));
  test("files have one subject, a name that says it, and no default exports", () =>
    expectNone(checkSources(sources)));
  test("no folder is crowded", () => expectNone(checkFolderSizes(sources)));
  test("no file imports itself by way of others", () => expectNone(checkCircles(sources)));
  test("no two exported types share a name", () => expectNone(checkTypeNames(sources)));
  test("no literal is spread into a literal", () => expectNone(checkSpreads(sources)));
  test("no test is skipped, picked out or put off", () => expectNone(checkTests(sources)));
  test("no comment leaves work for later", () => expectNone(checkLaterWords(files)));
  test("no file names a path of one machine", () =>
    expectNone(checkPaths(files, [process.cwd(), homedir()])));
});

describe("the check of ranks", () => {
  test.each([
    [
      "src/core/next.ts",
      `import { loop } from "../run/loop.js";`,
      "core has rank 1 and imports only lower ranks; run has rank 5",
    ],
    ["src/core/next.ts", `import type { Loop } from "../run/loop.js";`, "core has rank 1"],
    ["src/core/next.ts", `const { loop } = await import("../run/loop.js");`, "core has rank 1"],
    ["src/core/next.ts", `type Loop = import("../run/loop.js").Loop;`, "core has rank 1"],
    ["src/core/next.ts", `export { loop } from "../run/loop.js";`, "core has rank 1"],
    ["src/core/next.ts", `export * from "../run/loop.js";`, "core has rank 1"],
    ["src/core/next.ts", `const { loop } = require("../run/loop.js");`, "core has rank 1"],
    ["src/core/next.ts", `new Worker(new URL("../run/worker.js", import.meta.url));`, "core has rank 1"],
    ["src/core/next.ts", `new Worker(packageFile("dist/run/worker.js"));`, "core has rank 1"],
    ["src/schedule/due.ts", `spawn(packageFile("dist/bin/bulkgen.js"));`, "cli has rank 12"],
    [
      "src/store/open.ts",
      `import { fetchMe } from "../client/me.js";`,
      "store has rank 4 and imports only lower ranks; client has rank 4",
    ],
    [
      "src/clock.ts",
      `import { me } from "./api/records.js";`,
      "clock.ts has rank 0 and imports only lower ranks; api has rank 0",
    ],
    ["src/core/next.ts", `import { clock } from "../system.js";`, "system.ts has rank 12"],
    ["src/core/next.ts", `import { readFile } from "node:fs/promises";`, "core decides and never acts"],
    ["src/plan/price.ts", `import { request } from "undici";`, "plan decides and never acts"],
    ["src/core/next.ts", `import { openSqlite } from "../sqlite.js";`, "core decides and never acts"],
    ["src/core/next.ts", "await import(name);", "what is loaded must be readable in the source"],
    [
      "src/core/next.ts",
      `import { sample } from "../../test/sample.js";`,
      "sources import nothing from outside src",
    ],
    [
      "src/sandbox/world.ts",
      `import { follow } from "../core/item.js";`,
      "the sandbox imports only api, sqlite.ts, clock.ts, package-file.ts, service",
    ],
    [
      "src/service/world/world.ts",
      `import type { Fault } from "../../sandbox/faults/fault.js";`,
      "the service imports only api, sqlite.ts, clock.ts, package-file.ts",
    ],
    [
      "src/providers/command/program.ts",
      `import { follow } from "../../core/item.js";`,
      "the providers imports only api, clock.ts, package-file.ts, proxy, text, whole-file.ts",
    ],
    [
      "src/providers/provider.ts",
      `import { commandKind } from "./command/kind.js";`,
      "in providers, . comes before command",
    ],
    [
      "src/run/loop.ts",
      `import { admit } from "../service/limiter/admit.js";`,
      "only cli and library know the service",
    ],
    [
      "src/job/start.ts",
      `import { serve } from "../sandbox/http.js";`,
      "only cli and library know the sandbox",
    ],
    ["src/newroom/a.ts", `import { follow } from "../core/item.js";`, "the room newroom has no rank"],
    ["src/cli/run.ts", `import { a } from "../newroom/a.js";`, "the room newroom has no rank"],
    [
      "src/core/quota/quota.ts",
      `import type { Store } from "../ports/store.js";`,
      "in core, quota comes before ports and does not import from it",
    ],
    ["src/core/item.ts", `import { next } from "./next/next.js";`, "in core, . comes before next"],
    ["src/run/attic/a.ts", `import { a } from "../loop.js";`, "the folder attic of run has no place"],
    ["src/notify/attic/a.ts", `import { a } from "../facts.js";`, "the folder attic of notify has no place"],
    ["src/report/status.ts", `import { a } from "./gallery/a.js";`, "in report, . comes before gallery"],
  ])("in %s forbids %s", (path, text, reason) => {
    expect(messages(checkRanks([{ path, text }]))).toEqual([expect.stringContaining(reason)]);
  });

  test.each([
    ["src/core/next.ts", `import { limitsOf } from "../api/plans.js";`],
    [
      "src/core/next.ts",
      `import { follow } from "./item.js"; import { createHash } from "node:crypto"; import PQueue from "p-queue";`,
    ],
    [
      "src/cli/run.ts",
      `import { clock } from "../system.js"; import { serve } from "../sandbox/http.js"; import { start } from "../job/start.js";`,
    ],
    [
      "src/sandbox/world.ts",
      `import { openSqlite } from "../sqlite.js"; import type { Clock } from "../clock.js"; import { me } from "../api/records.js";`,
    ],
    ["src/cli/version.ts", `const { version } = require("../../package.json");`],
    ["src/sandbox/media.ts", `new Worker(packageFile("dist/sandbox/worker.js"));`],
    ["src/sandbox/media.ts", `readFile(packageFile("src/sandbox/assets/font.ttf"));`],
    ["src/cli/schedule.ts", `spawn(packageFile("dist/bin/bulkgen.js"));`],
    ["src/sandbox/media.ts", `readFile(new URL("./assets/font.ttf", import.meta.url));`],
  ])("in %s allows %s", (path, text) => expectNone(checkRanks([{ path, text }])));
});

describe("the check of clock, chance and process", () => {
  test.each([
    "const at = Date.now();",
    "const at = new Date();",
    "const at = new Date;",
    "const at = new Date(...times);",
    "const at = Date();",
    "const { now } = Date;",
    "const now = Date['now'];",
    "const Time = Date; Time.now();",
    "const later = { now: Date.now };",
    "items.map(Date.now);",
    "export const clock = (now = Date.now) => now();",
    "const chance = Math.random();",
    "const { random } = Math;",
    "const { max, ...rest } = Math;",
    "const M = Math; M.random();",
    "const chance = Math['random']();",
    "setTimeout(save, 5);",
    "const later = setTimeout;",
    "queue({ setTimeout });",
    "setInterval(save, 5);",
    "setImmediate(save);",
    "globalThis.setTimeout(save, 5);",
    "const { setTimeout: later } = globalThis;",
    "const at = performance.now();",
    "const at = process.hrtime.bigint();",
    "const at = process.uptime();",
    "process.stdout.write(text);",
    "const { stderr } = process;",
    "const home = process.env['HOME'];",
    "const here = process.cwd();",
    "process.exitCode = 2;",
    "process.on('SIGINT', stop);",
    "const words = process['argv'];",
    "const own = process; own.exit(1);",
    "serve(process);",
    `import { stdin } from "node:process";`,
    `import { systemClock } from "../system.js";`,
    "Atomics.wait(cell, 0, 0, 500);",
    "const signal = AbortSignal.timeout(500);",
    "const limit = AbortSignal; limit.timeout(5);",
    "const reply = await fetch(url);",
    "const send = (get = fetch) => get(url);",
    `import { fetch } from "undici";`,
    `import { fetch as get } from "undici";`,
    `import { setTimeout } from "node:timers/promises";`,
    `import { setTimeout as sleep } from "timers/promises";`,
    `import * as timers from "node:timers";`,
    `const { setTimeout: sleep } = await import("node:timers/promises");`,
    `const timers = require("timers");`,
    `export { setTimeout } from "node:timers/promises";`,
    `import { performance } from "node:perf_hooks";`,
    `import { randomUUID } from "node:crypto";`,
    `import { randomBytes as bytes } from "node:crypto";`,
    "const id = crypto.randomUUID();",
    `import * as c from "node:crypto"; const id = c.randomUUID();`,
    `import { hrtime } from "node:process";`,
    `const at = (Date as unknown as Fake).now();`,
    "const at = Date!.now();",
    `db.exec("insert into runs values (datetime('now'))");`,
    "db.prepare(`select * from items where at < unixepoch()`);",
    `db.exec("create table runs (at text default current_timestamp)");`,
    `db.exec("select strftime('%s', 'now')");`,
    `db.exec("select * from items order by random()");`,
  ])("forbids %s", (text) => {
    const found = messages(checkBans([{ path: "src/core/next.ts", text }]));
    expect(found).not.toEqual([]);
    expect(found[0]).toContain("only src/system.ts has the real ones");
  });

  test.each([
    "const at = new Date(clock.now()).toISOString();",
    "const at = Date.parse(text); const day = Date.UTC(2026, 1, 1);",
    "const isDate = value instanceof Date;",
    "function show(at: Date, get: typeof fetch, signal: AbortSignal): string { return String(at); }",
    "const signal = AbortSignal.any([a, b]);",
    "const top = Math.max(1, 2); const { pid } = process; process.kill(pid, 0);",
    "app.fetch(request); const server = { fetch: app.fetch }; class A { fetch() {} }",
    "socket.setTimeout(0);",
    "const at = clock.now(); const id = random.uuid();",
    `const text = "the time is now, at random";`,
    `db.prepare("select date(at) from runs where at < ?");`,
  ])("allows %s", (text) => expectNone(checkBans([{ path: "src/core/next.ts", text }])));

  test("leaves the one file with the real ones alone, and the entry of a worker thread", () => {
    expectNone(checkBans([{ path: "src/system.ts", text: "export const now = Date.now;" }]));
    expectNone(checkBans([{ path: "src/sandbox/studio/worker.ts", text: "process.exit(1);" }]));
  });

  test("allows one file to change the state of an item", () => {
    const text = 'sql("UPDATE items SET note = ?, state = ? WHERE id = ?");';
    expect(messages(checkBans([{ path: "src/store/workspace/items.ts", text }])).join()).toContain(
      "applyTransition",
    );
    expectNone(checkBans([{ path: "src/store/workspace/transition.ts", text }]));
    expectNone(
      checkBans([
        {
          path: "src/store/workspace/items.ts",
          text: `sql("UPDATE items SET note = ? WHERE state = 'held'");`,
        },
      ]),
    );
  });

  test.each([
    "const answer = await account.service.generate(body, ticket);",
    "const { generate } = account.service;",
    "const { service: { generate: pay } } = account;",
    `const pay = service["generate"];`,
  ])("P1: only one file sends paid requests: %s", (text) => {
    expect(messages(checkBans([{ path: "src/library/client.ts", text }])).join()).toContain(
      "only src/run/submit.ts sends a paid request",
    );
    expectNone(checkBans([{ path: "src/run/submit.ts", text }]));
  });

  test("finds a query that is never asked", () => {
    const script = (text: string) => [
      {
        path: "src/store/workspace/picks.ts",
        text: `import type { Script } from "../script.js";\nfunction* put(): Script<void> { ${text} }`,
      },
    ];
    expect(messages(checkBans(script('sql("DELETE FROM picks").run();'))).join()).toContain(
      "drops the result",
    );
    expect(messages(checkBans(script("put();"))).join()).toContain("drops the result");
    expectNone(checkBans(script('yield* sql("DELETE FROM picks").run(); yield* put(); rows.push(1);')));
  });

  test.each([
    `import { openHttp } from "../../client/http.js";`,
    `const { openHttp } = await import("../../client/http.js");`,
    `import * as http from "../../client/http.js";`,
  ])("allows %s in one file only", (text) => {
    expect(messages(checkBans([{ path: "src/upkeep/doctor/service.ts", text }])).join()).toContain(
      "imports openHttp",
    );
    expectNone(checkBans([{ path: "src/client/service.ts", text }]));
  });
});

describe("the check of connections", () => {
  test.each([
    `import { request } from "undici";`,
    `const { Pool } = await import("undici");`,
    `import { get } from "node:https";`,
    `import net from "net";`,
  ])("forbids %s", (text) => {
    expect(messages(checkBans([{ path: "src/upkeep/doctor/service.ts", text }])).join()).toContain(
      "requests to the service go through src/client/service.ts",
    );
    expectNone(checkBans([{ path: "src/notify/deliver.ts", text }]));
  });

  test("allows the types of an address, and the sandbox its server", () => {
    const types = `import { isIP, type LookupFunction } from "node:net";`;
    expectNone(checkBans([{ path: "src/archive/download/address.ts", text: types }]));
    const server = `import { createServer } from "node:http";`;
    expectNone(checkBans([{ path: "src/service/http/http.ts", text: server }]));
  });
});

describe("the checks of the tree", () => {
  test("find a folder of more than 20 files", () => {
    const files = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ path: `src/core/a${index}.ts`, text: "" }));
    expectNone(checkFolderSizes(files(20)));
    expect(messages(checkFolderSizes(files(21)))).toEqual([expect.stringContaining("has 21 files")]);
  });

  test("find a circle of imports through types, however long", () => {
    const a = { path: "src/core/a.ts", text: `import type { B } from "./next/b.js";` };
    const b = { path: "src/core/next/b.ts", text: `const c = await import("./c.js");` };
    const c = { path: "src/core/next/c.ts", text: `import { a } from "../a.js";` };
    expect(messages(checkCircles([a, b, c]))).toEqual([
      "is in a circle of imports: src/core/a.ts, src/core/next/b.ts, src/core/next/c.ts",
    ]);
    expectNone(checkCircles([a, b, { ...c, text: `import { d } from "../d.js";` }]));
  });

  test("find an exported type of a name that is taken", () => {
    const text = "export interface Item { id: number }";
    const taken = checkTypeNames([
      { path: "src/core/item.ts", text },
      { path: "src/run/item.ts", text: "interface Row {}\nexport type Item = Row;" },
    ]);
    expect(taken).toEqual([
      {
        path: "src/run/item.ts",
        line: 2,
        message: "exports the type Item, as src/core/item.ts does: rename one of them",
      },
    ]);
    expectNone(checkTypeNames([{ path: "src/core/item.ts", text: `${text}\ninterface Row {}` }]));
  });

  test.each(["const a = { ...{ b, c } };", "const a = [...[b, c], d];"])("find %s", (text) => {
    expect(checkSpreads([{ path: "src/core/a.ts", text }])).toHaveLength(1);
  });

  test.each(["const a = { ...b };", "const a = [...b()];", "const a = { ...(b ? { c } : {}) };"])(
    "allow %s",
    (text) => expectNone(checkSpreads([{ path: "src/core/a.ts", text }])),
  );
});

describe("the check of files", () => {
  test.each([
    ["src/core/utils.ts", "export const a = 1;", "is named utils.ts"],
    ["src/core/helpers/pad.ts", "export const a = 1;", "is named helpers"],
    ["src/core/types.ts", "export type A = 1;", "is named types.ts"],
    ["src/api/common.ts", "export const a = 1;", "is named common.ts"],
    ["src/core/next.ts", "export default function next() {}", "has a default export"],
    ["src/core/next.ts", "const next = 1; export { next as default };", "has a default export"],
    ["src/core/index.ts", "export const a = 1;", "is a barrel"],
    ["src/core/all.ts", `export * from "./item.js"; export { a } from "./a.js";`, "is a barrel"],
  ])("forbids %s with %j", (path, text, reason) => {
    expect(messages(checkSources([{ path, text }]))).toEqual([expect.stringContaining(reason)]);
  });

  test("allows the public library to export what others define", () =>
    expectNone(checkSources([{ path: "src/index.ts", text: `export { a } from "./core/a.js";` }])));
});

describe("the check of tests", () => {
  test.each([
    "test.skip('a', () => {});",
    "it.only('a', () => {});",
    "describe.todo('a');",
    "test.skipIf(slow)('a', () => {});",
    "test.concurrent.only('a', () => {});",
    "test.each([1]).skip('a', () => {});",
    "test.fails('a', () => {});",
    "test('a', { skip: true }, () => {});",
    "test('a', ({ skip }) => skip());",
    "test('a', (context) => context.skip());",
    "xit('a', () => {});",
  ])("forbids %s", (text) => {
    expect(messages(checkTests([{ path: "test/core/next.test.ts", text }]))).not.toEqual([]);
  });

  test("allows tests that run, and a field of that name", () => {
    const text =
      "test('a', () => { rows.skip(1); const options = { only: 2 }; describe.each([1])('b', () => {}); });";
    expectNone(checkTests([{ path: "test/core/next.test.ts", text }]));
  });
});

describe("the check of words and paths", () => {
  // Put together here, or the checks would find this file.
  const slash = "/";

  test.each(["TO" + "DO", "FIX" + "ME"])("forbids %s in a comment", (word) => {
    expect(messages(checkLaterWords([{ path: "src/a.ts", text: `// ${word} later` }]))).toEqual([
      `leaves work in a comment: ${word}`,
    ]);
  });

  test.each([
    `cd ${slash}root/bulkgen`,
    `"${slash}home/ada/outputs"`,
    `(${slash}Users/ada/outputs)`,
    `"${slash}work/main"`,
    `C:${"\\"}Users${"\\"}ada`,
    "see /srv/checkout/of/ours now",
  ])("forbids the path in %s", (text) => {
    expect(checkPaths([{ path: "README.md", text }], ["/srv/checkout"])).toHaveLength(1);
  });

  test.each([
    "https://example.com/home/ada",
    "src/work/a.ts",
    "~/outputs",
    "/tmp/a",
    "homework/root",
    "../root/a",
  ])("allows %s", (text) => expectNone(checkPaths([{ path: "README.md", text }], ["/app"])));
});

test("a finding names file and line", () => {
  expect(checkBans([{ path: "src/core/next.ts", text: "\n\nconst at = Date.now();" }])).toEqual([
    { path: "src/core/next.ts", line: 3, message: expect.stringContaining("uses Date.now: ") },
  ]);
});

function messages(findings: Finding[]): string[] {
  return findings.map((found) => found.message);
}

function expectNone(findings: Finding[]): void {
  expect(findings.map(({ path, line, message }) => `${path}:${line} ${message}`)).toEqual([]);
}
