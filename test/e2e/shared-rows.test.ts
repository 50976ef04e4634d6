import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, type Place, type Running, run, start } from "./command.js";
import { type Script, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

const noCredits = { status: 402, json: { error: { code: "INSUFFICIENT_CREDITS", message: "too few" } } };

/** Two jobs of one workspace with the same row; the second one's paid request is served, and the process killed. */
async function killedInSecond(firstJob: Script): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService({ script: firstJob });
  const place = newPlace();
  place.write("set.csv", sheet(1, "plain-image"));
  const begin = (job: string) => ["run", "set.csv", "--job", job, "--yes", "--lanes", "1"];
  for (let again = 0; again < 2; again++) await run(place, begin("one"), service);
  expect(service.made).toHaveLength(1);

  let running: Running | null = null;
  service.script(({ what }) => {
    if (what !== "POST generate") return "serve";
    running?.signal("SIGKILL");
    return "serve and cut";
  });
  running = start(place, begin("two"), service);
  expect((await running.ended).signal).toBe("SIGKILL");
  service.script(() => "serve");
  return { place, service };
}

describe.concurrent("two jobs with the same row", () => {
  test.each<[name: string, firstJob: Script]>([
    [
      "refused first, then accepted",
      ({ what, before }) => (what === "POST generate" && before === 0 ? noCredits : "serve"),
    ],
    ["accepted at once", () => "serve"],
  ])("P2: the answer to the one (%s) is not taken for that to the other", async (_, firstJob) => {
    const { place, service } = await killedInSecond(firstJob);
    for (let again = 0; again < 2; again++) {
      const end = await run(place, ["resume"], service);
      expect([8, 10], end.stderr).toContain(end.code);
      expect(end.stderr).not.toMatch(/\bat .*\.c?js:\d+/);
    }
    expect(service.made).toHaveLength(2);
    const rebuilt = await run(place, ["doctor", "--rebuild", "--yes"]);
    expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +2: 1 unknown, 1 archived/m);
    expectArchived(join(place.folder, "outputs", "one"), ["a01"]);
  });
});
