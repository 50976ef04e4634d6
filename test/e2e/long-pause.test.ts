import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { skippingClock } from "./skipping-clock.js";

const dayMs = 86_400_000;
const passes = (ms: number) => skippingClock.during(skippingClock.sleep(ms));

test("a pause of more than a day is said, asked again after a day, and can be forgotten", async () => {
  const place = newPlace();
  const service = await startService();
  const how = { env: service.env };
  service.script(({ before }) =>
    before === 0 ? { status: 429, headers: { "Retry-After": "31536000" }, json: {} } : "serve",
  );
  const first = await run(place, ["account"], how);
  expect([first.code, first.stderr]).toEqual([8, expect.stringContaining("it is asked again once a day")]);
  const asked = service.asked.length;
  const second = await run(place, ["models"], how);
  expect([second.code, second.stderr]).toEqual([
    8,
    expect.stringContaining("`bulkgen account --forget-pause`"),
  ]);
  const doctor = await run(place, ["doctor"], how);
  expect([doctor.code, doctor.stdout]).toEqual([
    4,
    expect.stringContaining("because the service asked for a pause"),
  ]);
  expect(service.asked).toHaveLength(asked);
  const forgotten = await run(place, ["account", "--forget-pause"], how);
  expect([forgotten.code, forgotten.stderr]).toEqual([0, expect.stringContaining("forgot the pause until")]);
  expect((await run(place, ["account"], how)).code).toBe(0);
  const none = await run(place, ["account", "--forget-pause"], how);
  expect(none.stderr).toContain("there is no pause to forget");
});

test("the service is asked again after a day, whatever it said", async () => {
  const place = newPlace();
  const service = await startService();
  const how = { env: service.env };
  service.script(() => ({ status: 429, headers: { "Retry-After": "99999999999" }, json: {} }));
  expect((await run(place, ["account"], how)).code).toBe(8);
  for (let day = 1; day <= 3; day++) {
    const before = service.asked.length;
    await passes(dayMs - 7_200_000);
    expect((await run(place, ["account"], how)).code).toBe(8);
    expect(service.asked).toHaveLength(before);
    await passes(7_200_000);
    expect((await run(place, ["account"], how)).code).toBe(8);
    expect(service.asked).toHaveLength(before + 1);
  }
});
