import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type ExitName, exitCode, exitCodes } from "../../src/core/exit.js";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, type Started, start, started } from "./command.js";
import { type Script, type Scripted, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** One way to each exit code. */
interface Way {
  /** A stack needs the built command; it also shows that a process ends with what the program returns. */
  isProcess?: boolean;
  flags?: readonly string[];
  balance?: number;
  /** Whether the run begins, and so has a summary. */
  begins: boolean;
  script?: (stage: { place: Place; running(): Started }) => Script;
  before?: (place: Place, service: ScriptedService) => Promise<unknown>;
}

const error = (status: number, code: string) => ({ status, json: { error: { code, message: "no" } } });
const onPost =
  (number: number, scripted: Scripted): (() => Script) =>
  () =>
  ({ what, before }) =>
    what === "POST generate" && before === number ? scripted : "serve";

const ways: Record<ExitName, Way> = {
  done: { begins: true },
  crash: {
    isProcess: true,
    begins: false,
    // Damage that no answer of a service and no setting can do.
    script:
      ({ place }) =>
      ({ what }) => {
        if (what === "GET task") dropEvents(place);
        return "serve";
      },
  },
  usage: { flags: [], begins: false },
  key: { begins: true, script: onPost(1, error(401, "INVALID_API_KEY")) },
  unreachable: { begins: false, before: (_, service) => service.down() },
  failed: {
    flags: ["--yes", "--retries", "0"],
    begins: true,
    script:
      () =>
      ({ what, before, path }) =>
        what === "GET task" && before === 0 ? { json: failedTask(path) } : "serve",
  },
  cap: { flags: ["--yes", "--max-credits", "3"], begins: true },
  credits: { begins: true, script: onPost(1, error(402, "INSUFFICIENT_CREDITS")) },
  unfinished: { flags: ["--yes", "--rpd", "4"], begins: true },
  locked: { begins: false, before: openSession },
  held: { begins: true, script: onPost(1, "serve and cut") },
  interrupted: {
    begins: true,
    script:
      ({ running }) =>
      async ({ what }): Promise<Scripted> => {
        if (what === "POST generate") {
          running().interrupt();
          await running().prints(/interrupted: /);
        }
        return "serve";
      },
  },
};

describe.concurrent("every documented exit code is reached", () => {
  test.each(exitCodes.map(({ name, code }) => [code, name] as const))("%i: %s", async (code, name) => {
    const { flags = ["--yes"], begins, script, before, isProcess = false, ...options } = ways[name];
    const service = await startService({ plan: "Starter", ...options });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    await before?.(place, service);
    let running: Started | null = null;
    const stage = {
      place,
      running: () => {
        if (!running) throw new Error("no command is under way");
        return running;
      },
    };
    if (script) service.script(script(stage));
    const words = ["run", "set.csv", "--json", ...flags];
    if (!isProcess) running = started(place, words, service);
    const end = await (running ?? start(place, words, service)).ended;
    expect(end, end.stderr).toMatchObject({ code, signal: null });
    expect(JSON.parse(end.stdout)).toMatchObject({ exit: code, exitName: name });
    if (!begins) {
      expect(JSON.parse(end.stdout)).toMatchObject({
        reason: expect.any(String),
        message: expect.any(String),
      });
      expect(end.stderr).toMatch(/^bulkgen: /m);
    }
    // A stack is for defects alone; it names the positions in the bundle with their modules.
    expect(/\bat .*\.c?js:\d+/.test(end.stderr)).toBe(code === exitCode("crash"));
    if (code === exitCode("crash")) {
      expect(end.stderr).toMatch(/\.c?js:\d+:\d+, store\/[\w-]+\.js\b/);
      expect(end.stderr).toContain("`bulkgen doctor` checks them");
    }
  });
});

/** Another run that has the workspace until this file ends. */
async function openSession(place: Place, service: ScriptedService): Promise<void> {
  const other = await startService({
    script: async ({ what }): Promise<Scripted> => {
      if (what === "GET models") await new Promise(() => {});
      return "serve";
    },
  });
  started(place, ["run", "set.csv", "--yes"], other);
  await other.wasAsked("GET models", 1);
  expect(service.asked).toEqual([]);
}

function dropEvents(place: Place): void {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
  try {
    db.exec("DROP TABLE IF EXISTS events");
  } finally {
    db.close();
  }
}

function failedTask(path: string) {
  return {
    task_id: path.slice(-36),
    status: "failed",
    output_urls: null,
    error: "The prompt was rejected by content moderation.",
    credits_consumed: 0,
    completed_at: "2026-01-02T03:04:05.000Z",
  };
}

test("0: help and the version are no errors", async () => {
  const place = newPlace();
  for (const flag of ["--help", "--version"]) {
    expect(await started(place, [flag]).ended).toMatchObject({ code: 0, stderr: "" });
  }
});
