import { expect, test } from "vitest";
import { ManualClock } from "../manual-clock.js";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";
import { skipWaits } from "./skip-waits.js";

test("every wait of a run is by the clock that it is handed", async () => {
  const place = newPlace();
  const service = await startService({ plan: "Starter" });
  place.write("set.csv", sheet(3, "plain-image"));
  const clock = new ManualClock(Date.now());
  const begun = clock.now();
  const ended = run(place, ["run", "set.csv", "--yes"], { env: service.env, clock });
  const { code, stdout } = await skipWaits(clock, ended);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^archived +3 of 3 items$/m);
  // The first poll comes two seconds after a submit, and the clock moves only when it is moved.
  expect(clock.now() - begun).toBeGreaterThanOrEqual(2_000);
});
