import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually, newPlace, run, started } from "./command.js";
import { aYearAgo, withSchedules, yearly } from "./due-schedule.js";
import { sheet } from "./sheet.js";

/** A port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("the daemon serves figures for Prometheus, and its health tells how the last run ended", async () => {
  const place = newPlace();
  place.write("good.csv", sheet(2));
  place.write("poor.csv", sheet(3).replaceAll("a0", "b0"));
  for (const [name, ...flags] of [["good"], ["poor", "--max-credits", "1"]])
    await run(place, ["schedule", "add", `${name}`, `${name}.csv`, ...yearly, "--sandbox", ...flags]);
  await run(place, ["schedule", "add", "later", "good.csv", ...yearly, "--sandbox"]);
  await run(place, ["schedule", "pause", "later"]);
  withSchedules(place, (db) => db.exec(aYearAgo));
  const words = ["schedule", "start", "--json", "--metrics", String(await freePort())];
  const daemon = started(place, words, { serves: true });
  const [line] = await daemon.prints(/^\{.*\}\n/);
  const { url, metrics } = JSON.parse(line) as { url: string; metrics: string };
  await eventually(() => {
    const sql = "SELECT count(*) FROM scheduled_runs WHERE state = 'ended'";
    return withSchedules(place, (db) => db.prepare(sql).pluck().get()) === 2 || null;
  });
  const answer = await fetch(`${metrics}/metrics`);
  const text = await answer.text();
  const health = await (await fetch(`${url}/healthz`)).json();
  const { last } = health as { last: { exit: number } };
  expect(health).toMatchObject({
    schedules: 3,
    paused: ["later"],
    next: { schedule: expect.stringMatching(/good|poor/) },
  });
  daemon.interrupt();
  await daemon.ended;
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const figure of [
    "bulkgen_schedules 3",
    'bulkgen_schedule_paused{schedule="later"} 1',
    'bulkgen_schedule_paused{schedule="good"} 0',
    'bulkgen_scheduled_runs{schedule="good",state="ended"} 1',
    'bulkgen_scheduled_run_last_exit_code{schedule="good"} 0',
    'bulkgen_scheduled_run_last_exit_code{schedule="poor"} 6',
    'bulkgen_items{job="good",sandbox="true",state="archived"} 2',
    'bulkgen_items{job="poor",sandbox="true",state="archived"} 1',
    'bulkgen_items{job="poor",sandbox="true",state="planned"} 2',
    'bulkgen_credits_spent{job="good",sandbox="true"} 2',
  ])
    expect(text).toContain(`${figure}\n`);
  expect(text).toMatch(/^bulkgen_requests\{job="good",sandbox="true"\} \d+$/m);
  expect(text).toMatch(/^bulkgen_scheduled_run_last_success_timestamp_seconds\{schedule="good"\} \d+/m);
  expect(text).not.toMatch(/last_success_timestamp_seconds\{schedule="poor"\}/);
  expect(text).not.toMatch(/next_due_timestamp_seconds\{schedule="later"\}/);
  expect([0, 6]).toContain(last.exit);
});

test("a port that is taken is named, and nothing is started", async () => {
  const place = newPlace();
  place.write("good.csv", sheet(1));
  await run(place, ["schedule", "add", "good", "good.csv", ...yearly, "--sandbox"]);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const end = await run(place, ["schedule", "start", "--metrics", String(port)]);
  server.close();
  expect(end).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`--metrics: expected a free port, got ${port}`),
  });
});

test("--quiet is quiet when all is well, and not when something is wrong", async () => {
  const place = newPlace();
  place.write("set.csv", sheet(2));
  const quiet = (...words: string[]) => run(place, [...words, "--sandbox", "--yes", "--quiet"]);
  expect(await quiet("run", "set.csv")).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(await quiet("run", "set.csv")).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(await quiet("redo", "a01")).toMatchObject({ code: 0, stdout: "", stderr: "" });
  for (const words of [["resume"], ["resume", "--all"]])
    expect(await quiet(...words)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  for (const words of [["gallery"], ["verify"], ["prune", "--older-than", "90d", "--yes"]])
    expect(await run(place, [...words, "--sandbox", "--quiet"]), words[0]).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "",
    });
  rmSync(join(place.folder, "sandbox-outputs", "set", "a02.png"));
  expect((await run(place, ["verify", "--sandbox", "--quiet"])).stdout).toContain("missing");
  expect((await quiet("run", "set.csv", "--missing", "fetch")).code).toBe(0);
  place.write("set.csv", sheet(4));
  const capped = await quiet("run", "set.csv", "--max-credits", "1");
  expect(capped.code).toBe(6);
  expect(capped.stdout).not.toBe("");
  const json = await quiet("run", "set.csv", "--max-credits", "20", "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({ exit: 0 });
});

test("schedule print gives a crontab the PATH of this shell", async () => {
  const place = newPlace();
  const env = { PATH: "/opt/node/bin:/usr/bin:/bin" };
  const { stdout } = await run(place, ["schedule", "print"], { env });
  expect(stdout).toContain("\nPATH=/opt/node/bin:/usr/bin:/bin\n");
  expect(JSON.parse((await run(place, ["schedule", "print", "--json"], { env })).stdout).path).toBe(
    "PATH=/opt/node/bin:/usr/bin:/bin",
  );
});
