import { describe, expect, test } from "vitest";
import { commandList } from "../../src/cli/command-list.js";
import { allCommands } from "../cli/all-commands.js";
import { eventually, newPlace, type Place, run, started } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

/** The documents of a stream of which every line has to be one. */
function documentsIn(text: string): Record<string, unknown>[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function workspace(): Place {
  const place = newPlace();
  place.write("set.csv", sheet(2));
  place.write("bad.csv", "id,model,prompt\na,no-such-model,cup\n");
  return place;
}

/** Lines that are refused before they begin, with their exit codes and reasons. */
const refusals: [line: string, code: number, reason: string][] = [
  ["run gone.csv --sandbox --yes", 2, "manifest"],
  ["run bad.csv --sandbox --yes", 2, "manifest"],
  ["run set.csv --sandbox", 2, "usage"],
  ["run set.csv --sandbox --no-such-flag", 2, "usage"],
  ["run set.csv --sandbox --max-credits=many", 2, "usage"],
  ["plan set.csv", 2, "usage"],
  ["plan gone.csv --sandbox", 2, "manifest"],
  ["resume 7 --sandbox", 2, "usage"],
  ["export 7 --sandbox", 2, "usage"],
  ["gallery --sandbox", 2, "usage"],
  ["models", 2, "usage"],
  ["schedule remove none", 2, "usage"],
  ["schedule show none", 2, "usage"],
];

describe("a command with --json that is refused", () => {
  test.each(refusals)("prints one document that says why: %s", async (line, code, reason) => {
    const end = await run(workspace(), [...line.split(" "), "--json"]);
    expect(end.code, end.stderr).toBe(code);
    const [document, ...more] = documentsIn(end.stdout);
    expect(more).toEqual([]);
    expect(document).toMatchObject({ exit: code, reason, message: expect.any(String) });
    // The first problem of a sheet stands in the list above the message, too.
    const [message, problem = ""] = String(document?.["message"]).split(/(?<=nothing was submitted): /);
    expect(end.stderr).toContain(`bulkgen: ${message}`);
    expect(end.stderr).toContain(problem);
    if (reason === "manifest") expect(document?.["next"]).toBe(`bulkgen plan ${line.split(" ")[1]}`);
  });

  const named = { manifest: "gone.csv", folder: "gone" } as Record<string, string>;
  /** They would serve until they are interrupted. */
  const serving = ["dashboard", "schedule start", "sandbox"];
  /** Its report has its own exit code, with the checks that say why. */
  const reporting = ["doctor"];

  test("prints it whichever command it is, and whatever refuses it", async () => {
    const documented = {
      exit: 2,
      exitName: "usage",
      reason: expect.any(String),
      message: expect.any(String),
    };
    const tried = allCommands(commandList).filter(([, { flags = {}, load }]) => load && "json" in flags);
    expect(tried.length).toBeGreaterThan(30);
    const refused = new Set<string>();
    for (const [path, { positionals = [] }] of tried) {
      const name = path.join(" ");
      const words = [...path, ...positionals.map((each) => named[each.name] ?? "7")];
      const place = workspace();
      place.write("file", "");
      const ways = [["--no-such"], ["--workspace", "file"], ["--workspace", "file", "--sandbox"]];
      for (const way of serving.includes(name) ? ways.slice(0, 1) : ways) {
        const line = [...words, ...way, "--json"];
        const end = await run(place, line, { env: { BULKGEN_LOG_FORMAT: "json" } });
        // One that reads nothing ends well where there is nothing.
        if (end.code === 0 || (reporting.includes(name) && end.stdout.includes('"checks"'))) continue;
        const documents = documentsIn(end.stdout);
        expect([line, documents], end.stderr).toEqual([line, [expect.objectContaining(documented)]]);
        expect(Object.keys(documents[0] ?? {})).toContain("next");
        expect(documentsIn(end.stderr).at(-1)).toMatchObject({ level: "error", exit: 2 });
        refused.add(`${name}: ${way.length}`);
      }
    }
    expect(refused.size).toBeGreaterThan(1.5 * tried.length);
  });

  test.each(["credits", "price"] as const)("prints it when the %s keeps it from beginning", async (why) => {
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const service = await startService({ balance: why === "credits" ? 0 : 100 });
    const flags = why === "credits" ? [] : ["--max-price", "1"];
    const end = await run(place, ["run", "set.csv", "--json", "--yes", ...flags], service);
    const [document, ...more] = documentsIn(end.stdout);
    expect(more).toEqual([]);
    expect(document).toMatchObject({
      exit: end.code,
      reason: expect.any(String),
      message: expect.any(String),
    });
    expect(Object.keys(document ?? {})).toContain("next");
    expect(service.count("POST generate")).toBe(0);
  });

  test("names the command to type if the message does", async () => {
    const place = newPlace();
    const env = { BULKGEN_BASE_URL: "http://127.0.0.1:1", BULKGEN_API_KEY: "svc_short" };
    const end = await run(place, ["account", "--json"], { env });
    expect(JSON.parse(end.stdout)).toMatchObject({
      exit: 3,
      exitName: "key",
      reason: "key",
      next: "bulkgen doctor",
    });
  });

  test("prints nothing of it after --, and nothing without --json", async () => {
    expect((await run(workspace(), ["find", "--sandbox", "--no-such", "--", "--json"])).stdout).toBe("");
    expect((await run(workspace(), ["run", "gone.csv", "--sandbox"])).stdout).toBe("");
  });
});

describe("with --log-format json, standard error has nothing but JSON", () => {
  test.each([...refusals.map(([line]) => line), "run set.csv --sandbox --yes", "status --sandbox --json"])(
    "%s",
    async (line) => {
      const how = [["--log-format", "json"], ["--log-format=json"]];
      for (const words of how) {
        if (line.startsWith("schedule remove") || line.startsWith("schedule show") || line.startsWith("find"))
          continue;
        const end = await run(workspace(), [...line.split(" "), ...words]);
        for (const document of documentsIn(end.stderr))
          expect(document).toMatchObject({ level: expect.any(String), msg: expect.any(String) });
        if (end.code !== 0)
          expect(documentsIn(end.stderr).at(-1)).toMatchObject({ level: "error", exit: end.code });
      }
    },
  );

  test("when the environment or the settings file of the workspace says so", async () => {
    const place = workspace();
    const byEnv = await run(place, ["run", "gone.csv", "--sandbox"], { env: { BULKGEN_LOG_FORMAT: "json" } });
    expect(documentsIn(byEnv.stderr).at(-1)).toMatchObject({ level: "error", exit: 2 });
    place.write("bulkgen.config.yaml", "log-format: json\n");
    const byFile = await run(place, ["run", "gone.csv", "--sandbox"]);
    expect(documentsIn(byFile.stderr).at(-1)).toMatchObject({ level: "error", exit: 2 });
  });

  test("also what the runs of the schedule daemon say, and what refuses them", async () => {
    const place = workspace();
    for (const name of ["set", "bad"]) {
      const words = ["schedule", "add", name, `${name}.csv`, ...yearly, "--sandbox"];
      expect(await run(place, words)).toMatchObject({ code: 0 });
    }
    withSchedules(place, (db) => db.exec(aYearAgo));
    const daemon = started(place, ["schedule", "start", "--log-format", "json"], { serves: true });
    const notes = await eventually(() => {
      const sql = "SELECT note FROM scheduled_runs WHERE state = 'ended' ORDER BY schedule";
      const found = withSchedules(place, (db) => db.prepare(sql).pluck().all());
      return found.length < 2 ? null : found;
    });
    daemon.interrupt();
    await daemon.ended;
    expect(notes).toEqual([expect.stringMatching(/^1 problem in the manifest/), "2 of 2 archived"]);
    const said = documentsIn(daemon.stderr()).map(({ msg }) => String(msg));
    expect(said).toContainEqual(expect.stringContaining("1 problem in the manifest"));
  });
});
