import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Inspector, openInspector } from "../../../src/archive/check/inspector.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { JobIndex } from "../../../src/archive/index-file.js";
import { configName } from "../../../src/cli/settings/config-file.js";
import { serviceSettings } from "../../../src/cli/settings/env.js";
import { flagsOfPlan, savedPlanIn } from "../../../src/cli/settings/saved-plan.js";
import { configFiles, flagValues } from "../../../src/cli/settings/settings.js";
import type { Clock } from "../../../src/clock.js";
import { EarlyExit } from "../../../src/core/exit.js";
import { openReader } from "../../../src/library/workspace.js";
import type { Machine } from "../../../src/machine.js";
import { runFlags } from "../../../src/options/run.js";
import { driftOf } from "../../../src/plan/saved-plan.js";
import { KnownAttempts, lineIn } from "../../../src/run/receipts/receipt-lines.js";
import { readSwitches } from "../../../src/sandbox/switch-file.js";
import { allSwitches } from "../../../src/service/state/switches.js";
import { systemClock } from "../../../src/system.js";
import { jsonPieces } from "../../../src/text/pieces.js";
import { afterThisFile } from "../../after-file.js";
import { media } from "../../archive/media.js";
import { planOf } from "../../plan/account.js";
import { intentLine } from "../../receipt-line.js";
import { archivedPlace } from "../../upkeep/archived-place.js";
import type { Outcome, Parser } from "../cases.js";
import { fileOf, scratch } from "./scratch.js";

/** Files: settings, saved plans, state, receipts, indexes, switches, and the media of an archive. */

const texts =
  (...samples: string[]) =>
  () =>
    samples.map((sample) => Buffer.from(sample));
const jsonWords = [...'{ } [ ] , : " null true 0 1.5 -1 1e999 "x" \n'.split(" "), "\n"];

/** Refused means an EarlyExit, whose message is for people. */
async function takenUnlessEarlyExit(work: () => unknown): Promise<Outcome> {
  try {
    await work();
    return "taken";
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    expect(error.message).not.toMatch(/undefined|\[object/);
    return "refused";
  }
}

function readConfig(bytes: Buffer): Promise<Outcome> {
  fileOf(configName, bytes);
  return takenUnlessEarlyExit(async () => {
    const files = await configFiles(scratch(), { XDG_CONFIG_HOME: join(scratch(), "none") });
    const values = flagValues(runFlags, {}, files, {});
    for (const value of Object.values(values)) expect(value).not.toBeNaN();
  });
}

function readEnv(bytes: Buffer): Promise<Outcome> {
  fileOf(".env", bytes);
  return takenUnlessEarlyExit(() => {
    const { baseUrl, key } = serviceSettings({}, scratch(), { env: {}, cwd: scratch() } as never);
    for (const setting of [baseUrl, key])
      expect(setting === null || typeof setting.value === "string").toBe(true);
  });
}

const savedPlan = {
  bulkgen: "plan",
  version: 1,
  savedAt: "2026-11-20T00:00:00.000Z",
  manifest: "/srv/set.csv",
  workspace: "/srv",
  sandbox: false,
  flags: [["--max-credits", "5"], ["--skip-invalid"], ["--model", "paint"]],
  origin: "https://service.example",
  user: "u",
  edition: "",
  balance: 100,
  limits: { minute: 10, day: 1_000 },
  items: [{ key: "k1:a", row: 2, id: "a", model: "paint", credits: 4, due: true, content: { prompt: "x" } }],
};

/** As it is written: an item a line. */
const listedPlan = {
  ...savedPlan,
  items: new Set([...savedPlan.items, { ...savedPlan.items[0], key: "k1:b" }]),
};

let sheet: ReturnType<typeof planOf> | null = null;

/** What saved plans are compared with. */
function planned() {
  sheet ??= planOf("id,model,prompt\na,paint,x\nb,paint,y\nc,paint,z\n");
  return sheet;
}

function readPlan(bytes: Buffer): Promise<Outcome> {
  const file = fileOf("plan.json", bytes);
  return takenUnlessEarlyExit(async () => {
    const machine = {
      cwd: scratch(),
      env: { XDG_CONFIG_HOME: join(scratch(), "none") },
    } as unknown as Machine;
    const saved = savedPlanIn(file, machine);
    if (saved === null) throw new EarlyExit("usage", "no saved plan");
    const { origin, user, edition } = saved;
    const now = { ...(await planned()), origin, user, edition };
    for (const { message } of driftOf(saved, now, 5)) expect(message).not.toMatch(/undefined|NaN|\[object/);
    await flagsOfPlan(saved, { workspace: join(scratch(), "none") }, [], machine);
  });
}

const intent = {
  ...intentLine,
  sentAt: intentLine.at,
  spendLogId: 1,
  price: 4.5,
  request: { model: "paint", prompt: "x", params: { mood: "calm" } },
};
const answer = {
  type: "answer",
  at: intent.at,
  job: "set",
  key: "k1:a",
  attempt: 1,
  event: "accepted",
  status: 200,
  taskId: "t",
  charged: 4.5,
  remaining: 95.5,
  nextAt: 1,
};
const lines = (...all: unknown[]) => all.map((each) => `${JSON.stringify(each)}\n`).join("");

/** P4: a line that is damaged is left out, and the others are understood. */
function readReceipts(bytes: Buffer): Outcome {
  const known = new KnownAttempts();
  let taken = 0;
  for (const row of bytes.toString("utf8").split("\n")) {
    const line = lineIn(row);
    if (line === null) continue;
    taken++;
    if (line.type !== "decision") known.note(line);
  }
  for (const { number, intent: asked, answer: came } of known.all) {
    expect(Number.isInteger(number)).toBe(true);
    if (asked !== null) expect(Number.isFinite(asked.price)).toBe(true);
    const charged = came?.conclusion.outcome.charged;
    expect(charged === undefined || Number.isSafeInteger(charged)).toBe(true);
  }
  return taken > 0 ? "taken" : "refused";
}

const indexLine = {
  item: "a",
  key: "k1:a",
  task: "t",
  external_task: null,
  model: "paint",
  prompt: "x",
  params: {},
  inputs: {},
  credits: 4,
  created: "2026-11-20T00:00:00Z",
  completed: "2026-11-20T00:00:09Z",
  output: 1,
  file: "a.png",
  bytes: 3,
  sha256: "0".repeat(64),
  mime: "image/png",
  check: "decoded",
  saved: "2026-11-20T00:00:10.000Z",
  bulkgen: "0.1.0",
};

/** P23: no line leads out of the folder, and every line has what names its output. */
async function readIndex(bytes: Buffer): Promise<Outcome> {
  fileOf("index.jsonl", bytes);
  const all = (await JobIndex.open(nodeDisk, scratch())).all();
  for (const { file, key, task, output, sha256, bytes: size } of all) {
    expect(join("/out", file).startsWith("/out/")).toBe(true);
    expect([typeof key, typeof task, typeof output, typeof sha256, typeof size]).toEqual([
      "string",
      "string",
      "number",
      "string",
      "number",
    ]);
  }
  return all.length > 0 ? "taken" : "refused";
}

function readSwitchFile(bytes: Buffer): Outcome {
  try {
    allSwitches(readSwitches(bytes.toString("utf8"), "switches.json"));
    return "taken";
  } catch (error) {
    expect((error as Error).message).toMatch(/^switches\.json is /);
    return "refused";
  }
}

/** A damaged database is read, or is reported with its folder. */
async function readState(bytes: Buffer): Promise<Outcome> {
  const { root, stateFile, clock } = await state();
  for (const ending of ["-wal", "-shm", "-journal"]) rmSync(stateFile + ending, { force: true });
  writeFileSync(stateFile, bytes);
  const host = { cwd: root, env: { XDG_STATE_HOME: root }, clock } as unknown as Machine;
  try {
    const reader = await openReader(host, root, {});
    try {
      for (const { run } of await reader.runs()) await reader.items(run, { text: "a" });
      await reader.outputs();
      await reader.report(new Date(0));
      return (await reader.status()) === null ? "refused" : "taken";
    } finally {
      await reader.close();
    }
  } catch (error) {
    // SQLite does not see that a value is another one: null, or no time. The command ends with a crash, which names doctor.
    if (!(error instanceof TypeError || error instanceof RangeError))
      expect((error as Error).message).toContain(root);
    return "refused";
  }
}

interface State {
  bytes: Buffer;
  root: string;
  stateFile: string;
  clock: Clock;
}

let made: Promise<State> | null = null;

/** A workspace with an archived item, whose database is closed. */
function state(): Promise<State> {
  made ??= (async () => {
    const place = await archivedPlace();
    await place.archive("a", [await media.png()]);
    await place.store.close();
    const { root, stateFile } = place.workspace;
    afterThisFile(() => rmSync(root, { recursive: true, force: true }));
    return { bytes: readFileSync(stateFile), root, stateFile, clock: place.clock };
  })();
  return made;
}

/**
 * P13, P22: a file is what was ordered, or bad for a reason. Libraries do not get to the end of some files, so they are
 * checked as a run checks them: in a thread, which is stopped.
 */
function mediaParser(category: string, kinds: readonly (keyof typeof media)[]): Parser {
  return {
    samples: () => Promise.all(kinds.map((kind) => media[kind]())),
    words: [],
    cases: 150,
    async read(bytes) {
      const content = await inspector().inspect(fileOf(`a.${category}`, bytes), category, bytes.length);
      if (content.kind === "bad") expect(content.reason).toMatch(/./);
      else {
        expect(content.extension).toMatch(/^[a-z0-9]+$/);
        expect(content.mime).toMatch(/^[a-z]+\/[\w.+-]+$/);
      }
      return content.kind === "media" ? "taken" : "refused";
    },
  };
}

let opened: Inspector | null = null;

function inspector(): Inspector {
  if (opened !== null) return opened;
  const made = openInspector({ clock: systemClock, msMax: 1_000 });
  opened = made;
  afterThisFile(() => {
    opened = null;
    return made.close();
  });
  return made;
}

export const fileParsers: Readonly<Record<string, Parser>> = {
  config: {
    samples: texts(
      "max-credits: 200\nparam: { mood: calm, aspect_ratio: '16:9' }\npoll: balanced\nmax-failures: 5%\n",
      "lanes: 2\nkeep-credits: 10.5\nuntil: '22:00'\nnotify:\n  - https://hook.example/x\nsidecars: true\n",
      "base-url: https://service.example\nrange: '2:9'\nout: made\nfilter: season=autumn\nfirst: 3\nuntil: 2027-01-01T00:00:00Z\n",
    ),
    words: [
      ...Object.keys(runFlags).map((name) => `${name}: `),
      ...["api-key", "base-url", "sandbox-latency"].map((name) => `${name}: `),
      ..."200 5% 22:00 2:3 3:2 2027-01-01T00:00:00Z 0 -1 1e9 .inf .nan ~ true [ ] { } , & * ! | > \" ' #".split(
        " ",
      ),
      "\n",
      "- ",
      "  ",
      "<<: ",
      "a: ",
    ],
    read: readConfig,
  },
  env: {
    samples: texts(
      "BULKGEN_BASE_URL=https://service.example\nBULKGEN_API_KEY='x'\n# note\nexport A=\"b\\nc\"\n",
    ),
    words: [
      "BULKGEN_BASE_URL",
      "BULKGEN_API_KEY",
      "=",
      '"',
      "'",
      "`",
      "\n",
      "#",
      " ",
      "\\",
      "export ",
      "\r",
      "\u0000",
      "x",
    ],
    read: readEnv,
  },
  plan: {
    samples: texts(JSON.stringify(savedPlan), [...jsonPieces(listedPlan, "\n")].join("")),
    words: jsonWords,
    isJson: true,
    read: readPlan,
  },
  receipts: {
    samples: texts(lines(intent, answer), lines(intent, { ...intent, attempt: 2 }, answer)),
    words: [],
    isJson: true,
    read: readReceipts,
  },
  index: {
    samples: texts(lines(indexLine, { ...indexLine, output: 2, file: "a-2.png" })),
    words: jsonWords,
    isJson: true,
    read: readIndex,
  },
  state: { samples: async () => [(await state()).bytes], words: [], cases: 200, read: readState },
  switches: {
    samples: texts(
      '{"limiter": {"kind": "fixed-window", "alignMs": 0}, "tooMany": {"retryAfter": "date"}, "price": {"factor": 2, "models": {"a": 1}}}',
      '{"refund": {"at": "seen"}, "outputs": {"number": 2, "parameter": "n"}, "errorShape": "flat", "urlMs": 1000}',
    ),
    words: jsonWords,
    isJson: true,
    read: readSwitchFile,
  },
  image: mediaParser("image", ["png", "jpeg", "webp", "webpLossy", "gif", "avif"]),
  video: mediaParser("video", ["mp4", "mp4IndexFirst", "mp4Fragmented", "webm"]),
  audio: mediaParser("audio", ["wav", "mp3", "mp3Noted", "ogg"]),
};
