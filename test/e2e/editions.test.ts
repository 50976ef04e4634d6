import { expect, test } from "vitest";
import { newPlace, type Running, run, start } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { startProxy } from "./service.js";
import { sheet } from "./sheet.js";

test("P7: an edition continues under its own run and cap after the run of another edition was killed; both keep their items", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(6));
  let running: Running | null = null;
  const proxy = await startProxy(sandbox, ({ what }) => {
    if (what !== "POST generate" || running === null) return "serve";
    running.signal("SIGKILL");
    return "cut";
  });
  const words = ["run", "set.csv", "--yes", "--lanes", "1", "--edition"];
  const first = await run(place, [...words, "spring", "--max-credits", "2"], proxy);
  expect(first.code, first.stderr).toBe(6);
  running = start(place, [...words, "autumn"], proxy);
  expect((await running.ended).signal).toBe("SIGKILL");
  running = null;
  const again = await run(place, [...words, "spring", "--max-credits", "2"], proxy);
  // Two credits pay for two pictures, and the killed request never reached the service.
  expect(await sandbox.tasks(), `${again.stdout}\n${again.stderr}`).toHaveLength(2);
  const { stdout } = await run(place, ["status", "2", "--json"]);
  expect(JSON.parse(stdout).counts, stdout).toMatchObject({ planned: 5, dropped: 0 });
});
