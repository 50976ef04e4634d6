import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { showCarried } from "../../src/cli/commands/pause.js";
import type { Carried } from "../../src/job/orders/give.js";
import type { Machine } from "../../src/machine.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import { Screen } from "../cli/screen.js";
import { Caller } from "../sandbox/caller.js";
import { ManualClock } from "../sandbox/manual-clock.js";
import { newPlace, type Place, run } from "./command.js";

/** Sets the window's title, colours, reverses the reading direction, in old and new forms. */
const evil = "\u001b]0;owned\u0007\u001b[31mred\u009b2J\u202e";
const control = /(?!\n|\r|\u200c|\u200d)[\p{Cc}\p{Cf}]/u;

let place: Place;
let caller: Caller;
beforeEach(async () => {
  place = newPlace();
  const faults = { rules: [{ fault: { kind: "task-fails" as const, error: `refused ${evil}` }, rate: 1 }] };
  const file = join(place.root, "service.db");
  caller = await Caller.start({ file, faults, taskMs: { min: 0, max: 0 } }, new ManualClock());
  const { db } = new SqliteState(file);
  db.prepare("update accounts set plan = ?, name = ?").run(evil, evil);
  db.close();
  place.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\n");
});
afterEach(() => caller.sandbox.close());

test("texts of the service reach no terminal with control characters: not the plan's name, not a task's error", async () => {
  const env = { BULKGEN_BASE_URL: caller.sandbox.url, BULKGEN_API_KEY: caller.sandbox.key };
  const bulkgen = (...words: string[]) => run(place, words, { env });
  const said = new Map<string, string>();
  for (const line of [
    "account",
    "account --json",
    "plan set.csv",
    "plan set.csv --json",
    "run set.csv --yes",
    "run set.csv --yes --events --fresh",
    "status",
    "status --json",
    "export",
    "export --format json",
    "export --failed",
  ]) {
    const { stdout, stderr } = await bulkgen(...line.split(" "));
    const text = stdout.replace(/^\ufeff/, "") + stderr;
    expect(control.exec(text), `${line}: ${JSON.stringify(text)}`).toBeNull();
    said.set(line, stdout);
  }
  expect(said.get("status")).toContain("refused red");
  expect(said.get("export")).toContain("refused red");
  expect(JSON.parse(said.get("status --json") ?? "").trouble[0].reason).toContain(`refused ${evil}`);
  expect(JSON.parse(said.get("account --json") ?? "").subscription.plan).toBe(evil);
});

test("P24: a terminal gets no sequence of a row's id or cells: not from an order, not from an export", async () => {
  const env = { BULKGEN_BASE_URL: caller.sandbox.url, BULKGEN_API_KEY: caller.sandbox.key };
  place.write(
    "set.csv",
    `id,model,prompt,"note ${evil}"\n"a${evil}\npaid",aurora-image-mini,a cup,"${evil}"\n`,
  );
  await run(place, ["run", "set.csv", "--yes"], { env });
  for (const words of [["export"], ["export", "--columns", "x"], ["approve", `a${evil}\npaid`]]) {
    const { stdout, stderr } = await run(place, words, { env, columns: 80 });
    expect(control.exec(stdout + stderr), JSON.stringify([words, stdout, stderr])).toBeNull();
    if (words[0] === "approve") expect(stderr).toMatch(/^bulkgen: ared paid needs no approval.*\n$/);
  }
  const written: string[] = [];
  const stdout = { write: (text: string) => written.push(text) };
  const machine = { stdout, cwd: place.folder, env: {} } as unknown as Machine;
  const order = { do: "approve", items: [] };
  const carried = { run: { id: 1 }, order, kind: "done", by: null, message: `a${evil} is approved` };
  showCarried(carried as unknown as Carried, {}, machine);
  expect(control.exec(written.join(""))).toBeNull();
});

test("on a terminal a live view of hostile names and errors fits its width, and has no sequence of theirs", async () => {
  const env = { BULKGEN_BASE_URL: caller.sandbox.url, BULKGEN_API_KEY: caller.sandbox.key };
  const ids = [
    `a${"\u0301".repeat(500)}`,
    "مرحبا בעולם",
    "👩\u200d👩".repeat(200),
    "x".repeat(300),
    `b${evil}`,
  ];
  const name = `set ${evil.replaceAll("/", "")} ملف.csv`;
  place.write(name, ["id,model,prompt", ...ids.map((id) => `"${id}",aurora-image-mini,a cup`)].join("\n"));
  for (const columns of [60, 200]) {
    const words = ["run", name, "--yes", "--fresh"];
    const { stdout, stderr } = await run(place, words, { env: { ...env, NO_COLOR: "1" }, columns });
    // It refuses sequences that the view does not use, and a line of the view that is too wide.
    const screen = new Screen(columns, 100);
    screen.write(stderr.slice(stderr.indexOf("\u001b[?7l")));
    expect(stderr).toContain("archived    ");
    expect(control.exec(screen.lines().join("\n") + stdout)).toBeNull();
  }
});
