import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { deliver } from "../../src/notify/deliver.js";
import { endNotification } from "../../src/notify/facts.js";
import { targetsOf } from "../../src/notify/target.js";
import { type FlagDefinition, nameOf, variableOf } from "../../src/options/definition.js";
import { runFlags } from "../../src/options/run.js";
import { serveSandbox } from "../../src/sandbox/serve.js";
import { scheduledCommand, scheduledIn } from "../../src/schedule/scheduled-run.js";
import { systemRandom } from "../../src/system.js";
import { newPlace, type Place, run, spawned } from "../e2e/command.js";
import { testKey } from "../e2e/leaked-key.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { ManualClock } from "../manual-clock.js";
import { origin, runFacts } from "../report/facts.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
  writeFileSync(
    join(at.folder, "set.csv"),
    "id,model,prompt\ncup,aurora-image-mini,a cup\nbad,aurora-image-mini,[[moderation]] a knife\n",
  );
});

const schedule = {
  name: "night",
  manifest: "set.csv",
  cron: "0 2 * * *",
  zone: "UTC",
  flags: [],
  missed: "once",
  seenUntil: 0,
  pausedAt: null,
} as const;

/** Writes down its environment, and a line each time it is called. */
const note = "env > environment; echo called >> calls";
const environment = () =>
  Object.fromEntries(
    readFileSync(join(at.folder, "environment"), "utf8")
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
const calls = () => readFileSync(join(at.folder, "calls"), "utf8");

describe("the command of the built program", () => {
  test("is called once, when all is over, with the facts", async () => {
    const command = `${note}; echo from the command`;
    // What the command prints goes to the stderr of the process.
    const ended = await spawned(at, [
      "run",
      "set.csv",
      "--sandbox",
      "--yes",
      "--json",
      "--notify-command",
      command,
    ]);
    expect(ended.code).toBe(5);
    expect(calls()).toBe("called\n");
    expect(environment()).toMatchObject({
      BULKGEN_RUN: "1",
      BULKGEN_JOB_NAME: "set",
      BULKGEN_EXIT: "5",
      BULKGEN_EXIT_NAME: "failed",
      BULKGEN_ITEMS: "2",
      BULKGEN_ARCHIVED: "1",
      BULKGEN_FAILED: "1",
      BULKGEN_HELD: "0",
      BULKGEN_CREDITS_SPENT: "1",
      BULKGEN_CREDITS_PENDING: "0",
      BULKGEN_CREDITS_LEFT: "499",
      BULKGEN_FAILURES: expect.stringMatching(/^1 × moderation: .+ \(bad\)$/),
      BULKGEN_HOST: hostname(),
      BULKGEN_WORKSPACE: at.folder,
      BULKGEN_REHEARSAL: "true",
      BULKGEN_SCHEDULE: "",
      BULKGEN_FOLDER: join(at.folder, "sandbox-outputs", "set"),
      BULKGEN_SUMMARY: "set, run 1: 1 of 2 archived, 1 failed, 1 credit spent (failed)",
    });
    const settings = Object.entries<FlagDefinition>(runFlags).filter(
      ([, { inFiles }]) => inFiles !== "never",
    );
    const names = settings.map(([attribute]) => variableOf(nameOf(attribute)));
    expect(names.filter((name) => name in environment())).toEqual([]);
    expect(JSON.parse(ended.stdout).run).toBe(1);
    expect(ended.stderr).toContain("from the command");
  });

  test("finds the workspace free", async () => {
    const command = `"$NODE" "$MAIN" resume --sandbox > second 2>&1; echo $? >> second`;
    const env = {
      NODE: process.execPath,
      MAIN: new URL("../../dist/bin/bulkgen.js", import.meta.url).pathname,
    };
    await run(at, ["run", "set.csv", "--sandbox", "--yes", "--notify-command", command], { env });
    expect(readFileSync(join(at.folder, "second"), "utf8")).toBe(
      "bulkgen: nothing to resume: every run of this workspace is finished\n0\n",
    );
  });

  test("P21: has no key in its environment, whether it came from there or from the .env", async () => {
    const sandbox = await serveSandbox({ clock: skippingClock, random: systemRandom, file: ":memory:" });
    try {
      const args = ["run", "set.csv", "--yes", "--notify-command", note];
      const env = { BULKGEN_BASE_URL: sandbox.url, BULKGEN_API_KEY: sandbox.key };
      expect((await run(at, args, { env })).code).toBe(5);
      expect(environment()).toMatchObject({ BULKGEN_BASE_URL: sandbox.url, BULKGEN_EXIT: "5" });
      expect(readFileSync(join(at.folder, "environment"), "utf8")).not.toContain(sandbox.key);
      writeFileSync(
        join(at.folder, ".env"),
        `BULKGEN_BASE_URL=${sandbox.url}\nBULKGEN_API_KEY=${sandbox.key}\n`,
      );
      await run(at, args);
      expect(calls()).toBe("called\ncalled\n");
      expect(readFileSync(join(at.folder, "environment"), "utf8")).not.toContain(sandbox.key);
    } finally {
      await sandbox.close();
    }
  });

  test("of a scheduled run is told the schedule, and a bulkgen that it starts is not that run", async () => {
    const due = "2026-11-21T02:00:00.000Z";
    const { variables } = scheduledCommand(schedule, { dueAt: Date.parse(due), run: null });
    const args = ["run", "set.csv", "--sandbox", "--yes", "--notify-command", note];
    await run(at, args, { env: { ...variables } });
    expect(environment()).toMatchObject({ BULKGEN_SCHEDULE: "night", BULKGEN_DUE: due });
    expect(scheduledIn(environment())).toEqual({ schedule: null, due: null });
    const { stdout } = await run(at, ["status", "--sandbox", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ beganBy: { schedule: "night", due } });
  });

  test("runs also for a run that could not start", async () => {
    const env = { BULKGEN_BASE_URL: "https://nowhere.invalid", BULKGEN_API_KEY: `${testKey}x` };
    const ended = await run(at, ["run", "set.csv", "--yes", "--notify-command", note], { env });
    expect(ended.code).toBe(3);
    expect(environment()).toMatchObject({
      BULKGEN_EXIT: "3",
      BULKGEN_EXIT_NAME: "key",
      BULKGEN_RUN: "",
      BULKGEN_SUMMARY: expect.stringContaining("wrong form"),
    });
    expect(readFileSync(join(at.folder, "environment"), "utf8")).not.toContain(testKey);
  });

  test.each([
    ["a command that fails", "exit 7", "ended with 7"],
    ["a command that is missing", "no-such-program-here", "ended with 127 (not found)"],
    ["a command that is killed", "kill -9 $$", "ended with SIGKILL"],
  ])("%s is one warning and no other exit code", async (_, command, warning) => {
    const args = ["run", "set.csv", "--sandbox", "--yes", "--quiet", "--notify-command", command];
    const { code, stderr } = await run(at, args);
    expect(code).toBe(5);
    expect(stderr.split("\n").filter((line) => line.startsWith("bulkgen:"))).toEqual([
      `bulkgen: --notify-command ${warning}`,
    ]);
  });
});

describe("the notify command", () => {
  const warnings: string[] = [];
  const clock = new ManualClock();
  const delivery = { environment: process.env, clock, warn: (line: string) => warnings.push(line) };
  const command = (text: string) => targetsOf({ notifyCommand: text }, {});

  test("is given 30 seconds, and then all that it started is ended", async () => {
    const pidFile = join(at.folder, "pid");
    const sleeper = `(exec sleep 1000) & echo $! > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; wait`;
    const done = deliver(
      command(sleeper),
      endNotification("done", runFacts, { message: "", origin }),
      delivery,
    );
    while (!existsSync(pidFile)) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(29_999);
    expect(isAlive(Number(readFileSync(pidFile, "utf8")))).toBe(true);
    clock.advance(1);
    await done;
    expect(warnings.splice(0)).toEqual(["--notify-command did not end in time and was stopped"]);
    while (isAlive(Number(readFileSync(pidFile, "utf8"))))
      await new Promise((resolve) => setImmediate(resolve));
  });

  test("is not run when there was nothing to do", async () => {
    expect((await run(at, ["run", "set.csv", "--sandbox", "--yes"])).code).toBe(5);
    const ended = await run(at, ["resume", "--sandbox", "--notify-command", note]);
    expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining("nothing to resume") });
    expect(existsSync(join(at.folder, "calls"))).toBe(false);
  });

  test("gets the service's text on one line, without control characters", async () => {
    const file = join(at.folder, "summary");
    const job = "nasty\n\u001b[31mjob";
    const facts = endNotification("failed", { ...runFacts, job }, { message: "", origin });
    await deliver(command(`printf %s "$BULKGEN_SUMMARY" > ${file}`), facts, delivery);
    expect(readFileSync(file, "utf8")).toMatch(/^nasty job, run 3: 20 of 26 archived/);
  });
});

function isAlive(pid: number): boolean {
  if (!existsSync("/proc/self/stat")) return answersSignal(pid);
  try {
    // A process that has ended and that nobody has waited for yet is no longer alive either.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

function answersSignal(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
