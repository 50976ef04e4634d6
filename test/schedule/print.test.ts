import { describe, expect, test } from "vitest";
import { printed } from "../../src/schedule/print.js";

const place = { node: "/usr/bin/node", main: "/opt/bulkgen/main.js", root: "/srv/our jobs 100%" };

const schedule = (cron: string) => ({
  name: "nightly",
  manifest: "set.csv",
  cron,
  zone: "Europe/Berlin",
  flags: [],
  ...({ missed: "once", seenUntil: 0 } as const),
});

const calendar = (cron: string) =>
  printed("systemd", { ...place, schedule: schedule(cron) })
    .split("\n")
    .filter((line) => line.startsWith("OnCalendar="))
    .map((line) => line.slice("OnCalendar=".length));

describe("a schedule for others", () => {
  test.each([
    ["0 2 * * *", ["*-*-* 2:0:00 Europe/Berlin"]],
    ["@daily", ["*-*-* 0:0:00 Europe/Berlin"]],
    ["*/15 8-18 * * *", ["*-*-* 8..18:0/15:00 Europe/Berlin"]],
    ["30 6 * * 1-5", ["Mon,Tue,Wed,Thu,Fri *-*-* 6:30:00 Europe/Berlin"]],
    ["30 6 * * 7", ["Sun *-*-* 6:30:00 Europe/Berlin"]],
    ["0 0 1,15 JAN-MAR *", ["*-1..3-1,15 0:0:00 Europe/Berlin"]],
    // Cron takes either the day or the weekday, systemd both: so it is two lines.
    ["0 0 13 * FRI", ["Fri *-*-* 0:0:00 Europe/Berlin", "*-*-13 0:0:00 Europe/Berlin"]],
  ])("%s in systemd's words", (cron, lines) => expect(calendar(cron)).toEqual(lines));

  test("is quoted for each of them", () => {
    const all = (["systemd", "cron", "windows"] as const).map((scheduler) =>
      printed(scheduler, { ...place, schedule: schedule("5 2 * * *") }),
    );
    expect(all[0]).toContain('--workspace "/srv/our jobs 100%%"');
    expect(all[1]).toContain("CRON_TZ=Europe/Berlin\n5 2 * * * /usr/bin/node");
    expect(all[1]).toContain("--workspace '/srv/our jobs 100\\%'");
    expect(all[2]).toContain("/SC DAILY /ST 02:05");
    expect(all[2]).toContain(String.raw`run nightly --workspace \"/srv/our jobs 100%\""`);
  });

  test("that Windows has no words for is refused", () => {
    expect(() => printed("windows", { ...place, schedule: schedule("*/5 * * * *") })).toThrow(
      "cannot be said in the words of the Task Scheduler",
    );
  });
});
