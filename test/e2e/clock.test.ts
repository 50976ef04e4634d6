import sharp from "sharp";
import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";
import { skippingClock } from "./skipping-clock.js";

test("every wait of a run is by the clock that it is handed", async () => {
  const place = newPlace();
  const service = await startService({ plan: "Starter" });
  place.write("set.csv", sheet(3, "plain-image"));
  const begun = skippingClock.now();
  const { code, stdout } = await run(place, ["run", "set.csv", "--yes"], { env: service.env });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^archived +3 of 3 items$/m);
  // The first poll comes two seconds after a submit.
  expect(skippingClock.now() - begun).toBeGreaterThanOrEqual(2_000);
});

test("P20: a clock that is set back in the middle of a run changes none of its figures", async () => {
  const place = newPlace();
  let setBackMs = 0;
  const script = ({ what, before }: { what: string; before: number }) => {
    if (what === "POST generate" && before === 2) setBackMs = 3 * 3_600_000;
    return "serve" as const;
  };
  const service = await startService({ script });
  place.write("set.csv", sheet(6, "plain-image"));
  const clock = Object.create(skippingClock, { now: { value: () => skippingClock.now() - setBackMs } });
  const ending = run(place, ["run", "set.csv", "--yes", "--lanes", "1"], { env: service.env, clock });
  const { code, stdout, stderr } = await skippingClock.during(ending);
  expect(code, stderr).toBe(0);
  expect(setBackMs).toBeGreaterThan(0);
  expect(stdout).toMatch(/^files +6 files, /m);
  const [, requests = "", each = ""] = /^requests +(\d+), ([\d.]+) for each/m.exec(stdout) ?? [];
  expect(Number(each)).toBeCloseTo(Number(requests) / 6, 1);
});

test("no time is skipped while a picture is decoded, which may take far longer on a busy machine", async () => {
  const gone = new AbortController();
  const painting = sharp({ create: { width: 4_000, height: 4_000, channels: 3, background: "red" } })
    .png()
    .toBuffer();
  const begun = skippingClock.now();
  const sleeping = skippingClock.sleep(3_600_000, gone.signal);
  await skippingClock.during(painting);
  expect(skippingClock.now() - begun).toBeLessThan(3_600_000);
  gone.abort();
  await sleeping;
});
