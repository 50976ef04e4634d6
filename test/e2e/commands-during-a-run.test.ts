import { expect, test } from "vitest";
import { type Ended, newPlace, type Place, run } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

async function stage(): Promise<[Place, ScriptedService]> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(1, "plain-image"));
  return [place, service];
}

test("a request that is about to be answered is in flight, and in doubt only if nobody waits for its answer", async () => {
  const [place, service] = await stage();
  let during: Ended | null = null;
  service.script(async ({ what }): Promise<Scripted> => {
    if (what !== "POST generate") return "serve";
    during = await run(place, ["status"]);
    return "cut";
  });
  const end = await run(place, ["run", "set.csv", "--yes"], service);
  expect(end, end.stderr).toMatchObject({ code: 8 });
  expect(during).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^credits +0 spent, up to \d+ for 1 request in flight$/m),
  });
  const after = await run(place, ["status"]);
  expect(after.stdout).toMatch(/^credits +0 spent, up to \d+ for 1 request in doubt$/m);
});

test("a download of the run in progress is no leftover to be removed, and is one once no run is in progress", async () => {
  const [place, service] = await stage();
  let during: Ended | null = null;
  service.script(async ({ what, before }): Promise<Scripted> => {
    if (what !== "GET file" || before !== 0) return "serve";
    place.write("outputs/set/.bulkgen-0123456789abcdef-1.part", "half");
    during = await run(place, ["verify"]);
    return "serve";
  });
  const end = await run(place, ["run", "set.csv", "--yes"], service);
  expect(end, end.stderr).toMatchObject({ code: 0 });
  expect(during).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^partial +\d, downloads of the run in progress/m),
  });
  expect(during).toMatchObject({ stdout: expect.not.stringMatching(/^(leftover|next)/m) });
  const after = await run(place, ["verify"]);
  expect(after.stdout).toMatch(/^leftover +1, partial downloads and files that failed their check$/m);
  expect(after.stdout).toMatch(/^next +`bulkgen verify --clean --yes` removes the leftovers$/m);
});
