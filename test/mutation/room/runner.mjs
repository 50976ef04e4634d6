import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { TestRunner } from "vitest";

/**
 * Repeats each test once for each change that it covers and that no test has noticed yet. The instrumented code asks
 * `globalThis.__stryker__` which change is active, so nothing is loaded again. After a change was noticed the test runs
 * once without any: if it fails then, the change has left something behind, and this process does not go on with it.
 */
const folder = process.env.MUTATION_FOLDER;
const isTrial = process.env.MUTATION_TESTS !== "cover";
const isQuickTurn = process.env.MUTATION_TESTS === "quick";
/** Of a core: how long a test waits depends on what else the machine does. */
const quickMs = 25;
globalThis.__stryker__ ??= {};
const stryker = globalThis.__stryker__;
const cover = isTrial ? JSON.parse(readFileSync(`${folder}/cover.json`, "utf8")) : { ms: {}, failed: [] };
const noticed = new Set(existsSync(`${folder}/noticed.txt`) ? idsOf("noticed.txt") : []);
// A test may replace the timers.
const { setTimeout, clearTimeout } = globalThis;

function idsOf(name) {
  return readFileSync(`${folder}/${name}`, "utf8")
    .split("\n")
    .map((line) => line.split(" ")[0]);
}

export default class extends TestRunner {
  trial = null;

  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test);
    this.trial = null;
    if (!isTrial) return;
    const hits = cover.perTest[test.id] ?? {};
    const left = Object.keys(hits).filter((id) => !(noticed.has(id) || cover.static[id]));
    const isDue = cover.ms[test.id] <= quickMs === isQuickTurn && !cover.failed.includes(test.id);
    if (left.length === 0 || !isDue) test.mode = "skip";
    else {
      this.trial = { left, hits, active: null, isControl: true, isOver: false };
      // Each may be noticed, and needs a control then.
      test.repeats = 2 * left.length;
    }
  }

  async onBeforeTryTask(test, options) {
    const { trial } = this;
    if (!isTrial) stryker.currentTestId = test.id;
    if (trial !== null) {
      test.result.state = "run";
      test.result.errors = undefined;
      trial.active =
        trial.isControl || trial.isOver ? null : (trial.left.find((id) => !noticed.has(id)) ?? null);
      trial.isOver ||= trial.active === null && !trial.isControl;
      if (trial.active !== null) trial.left.splice(0, trial.left.indexOf(trial.active) + 1);
      stryker.activeMutant = trial.active ?? undefined;
      stryker.hitCount = 0;
      // A loop that the change makes endless ends here.
      stryker.hitLimit = 1_000 + 100 * (trial.hits[trial.active] ?? 0);
    }
    this.begun = process.cpuUsage();
    await super.onBeforeTryTask(test, options);
  }

  async runTask(test) {
    const { trial } = this;
    if (trial?.isOver) return;
    const run = TestRunner.getTestFn(test)();
    await (trial?.active == null ? run : inTime(run, 3_000 + 10 * cover.ms[test.id]));
  }

  async onAfterRetryTask(test, options) {
    await super.onAfterRetryTask?.(test, options);
    const { trial } = this;
    const hasFailed = test.result.state === "fail";
    if (!isTrial) {
      stryker.currentTestId = undefined;
      const { user, system } = process.cpuUsage(this.begun);
      cover.ms[test.id] = (user + system) / 1_000;
      if (hasFailed) cover.failed.push(test.id);
      return;
    }
    if (trial === null) return;
    stryker.activeMutant = undefined;
    if (trial.isControl) trial.isOver ||= hasFailed;
    trial.isControl = trial.active !== null && hasFailed;
    if (!trial.isControl) return;
    noticed.add(trial.active);
    const how = test.result.errors?.some(({ message }) => message === tooLong) ? tooLong : test.name;
    appendFileSync(`${folder}/noticed.txt`, `${trial.active} ${how.replaceAll("\n", " ")}\n`);
  }

  async onAfterRunTask(test) {
    if (this.trial !== null) test.result.state = "pass";
    await super.onAfterRunTask(test);
  }

  async onAfterRunFiles() {
    await super.onAfterRunFiles();
    const { perTest = {}, static: atLoad = {} } = stryker.mutantCoverage ?? {};
    if (!isTrial)
      writeFileSync(`${folder}/cover.json`, JSON.stringify({ ...cover, perTest, static: atLoad }));
  }
}

const tooLong = "took too long";

/** A test that waits for what the change keeps from happening has noticed it. */
async function inTime(run, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(tooLong)), ms);
  });
  await Promise.race([run, late]).finally(() => clearTimeout(timer));
}
