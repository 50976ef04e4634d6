import { expect } from "vitest";
import { openSchedules } from "../../src/store/schedules.js";
import { ManualClock } from "../manual-clock.js";
import { newPlace, type Place, run } from "./command.js";
import { type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** A scheduled run that ended at its cap, another run with failed items, and a scheduled run that was missed. `second` is the environment of the other. */
export async function endedScheduledRuns(second: Readonly<Record<string, string>> = {}): Promise<Place> {
  const service = await startService();
  const place = newPlace();
  place.write("night.csv", sheet(4, "plain-image"));
  const env = {
    ...service.env,
    BULKGEN_SCHEDULED_BY: "night",
    BULKGEN_SCHEDULED_FOR: "2026-11-23T01:00:00Z",
  };
  const capped = await run(place, ["run", "night.csv", "--yes", "--max-credits", "4"], { env });
  expect(capped, capped.stderr).toMatchObject({ code: 6 });
  place.write("day.csv", sheet(2, "plain-image").replaceAll("a picture", "another picture"));
  service.script(({ what }): Scripted => (what === "POST generate" ? refusal : "serve"));
  const failed = await run(place, ["run", "day.csv", "--yes"], { env: { ...service.env, ...second } });
  expect(failed, failed.stderr).toMatchObject({ code: 5 });
  await missed(place, Date.now() - 3_600_000);
  return place;
}

const refusal = {
  status: 400,
  json: { error: { code: "INVALID_PARAMETER", message: "the seed must be a number" } },
};

async function missed(place: Place, dueAt: number): Promise<void> {
  const schedules = openSchedules(`${place.folder}/.bulkgen/schedules.db`, new ManualClock());
  await schedules.claim("noon", dueAt, { state: "missed", note: "the daemon was not running" });
  schedules.close();
}
