import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { cheapModel, sheet } from "./sheet.js";

test("a manifest under another name is not paid again unawares", { timeout: 120_000 }, async () => {
  const { env } = await startSandbox();
  const place = newPlace();
  const spends = async (...args: string[]) => {
    const end = await run(place, ["run", ...args, "--yes", "--json"], { env });
    expect(end.code, end.stderr).toBe(0);
    return JSON.parse(end.stdout);
  };
  place.write("monday.csv", sheet(3));
  expect((await spends("monday.csv")).credits.spent).toBe(3);

  renameSync(join(place.folder, "monday.csv"), join(place.folder, "on tuesday.csv"));
  const renamed = await run(place, ["plan", "on tuesday.csv"], { env });
  expect(renamed.code).toBe(0);
  expect(renamed.stdout).toContain("monday.csv is gone and job monday has 3 of 3 items");
  expect(renamed.stdout).toContain("--job 'on tuesday' makes a separate job");
  expect(await spends("on tuesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });
  expect(await spends("on tuesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });

  // A copy, beside the one that it was made from.
  place.write("wednesday.csv", sheet(3).replace("picture of a02", "drawing of a02"));
  const copied = await run(place, ["plan", "wednesday.csv"], { env });
  expect(copied.code).toBe(2);
  expect(copied.stdout).toContain(
    "2 of 3 items were made before for job monday (on tuesday.csv) and would be paid again, for 2 credits",
  );
  // What pays for nothing is not refused.
  expect((await run(place, ["plan", "wednesday.csv", "--only-failed"], { env })).code).toBe(0);
  const refused = await run(place, ["run", "wednesday.csv", "--yes"], { env });
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--job monday continues that job"),
  });
  expect(await spends("wednesday.csv", "--job", "monday")).toMatchObject({ credits: { spent: 1 } });
  expect(await spends("wednesday.csv")).toMatchObject({ job: "monday", credits: { spent: 0 } });
  expect(await spends("wednesday.csv", "--job", "own")).toMatchObject({ job: "own", credits: { spent: 3 } });

  // A few rows in common do not make it that job, and are not paid for again unasked.
  place.write("other.csv", `${sheet(1)}\n${sheet(9).split("\n").slice(7).join("\n")}`);
  const partly = await run(place, ["plan", "other.csv"], { env });
  expect(partly).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(
      /1 of 4 items was made before for job \w+ .*would be paid again, for 1 credit/,
    ),
  });
  expect((await run(place, ["plan", "other.csv", "--job", "other"], { env })).code).toBe(0);
  expect((await run(place, ["plan", "other.csv", "--job", " "], { env })).stderr).toContain(
    "expected a name",
  );
});

describe.concurrent("P2: rows that moved between sheets", () => {
  /** Two sheets of two rows each, both made, and what a run pays now. */
  async function twoJobs() {
    const sandbox = await startSandbox();
    const place = newPlace();
    const [header = "", ...rows] = sheet(4).split("\n");
    const write = (name: string, from: number, to: number) =>
      place.write(name, [header, ...rows.slice(from, to)].join("\n"));
    const call = async (...words: string[]) => {
      const before = sandbox.madeSoFar().length;
      const { code, stdout, stderr } = await run(place, [...words, "--yes"], { env: sandbox.env });
      const said = (stdout + stderr).replace(/\s+/g, " ");
      return { code, said, paid: sandbox.madeSoFar().length - before };
    };
    write("a.csv", 0, 2);
    write("b.csv", 2, 4);
    for (const name of ["a.csv", "b.csv"]) expect((await call("run", name)).paid).toBe(2);
    return { place, write, call };
  }

  test("a sheet that joins two is refused, with what each job has and what the ways cost", async () => {
    const { write, call } = await twoJobs();
    write("all.csv", 0, 4);
    expect(await call("run", "all.csv")).toMatchObject({
      code: 2,
      paid: 0,
      said: expect.stringContaining(
        "4 of 4 items were made before for job a (a.csv) and for job b, and would be paid again, for 4 credits: --job a continues job a and pays again for the items of job b (2 credits), unless you leave their rows out; --job all makes all of them again.",
      ),
    });
    const named = await call("run", "all.csv", "--job", "a");
    expect(named).toMatchObject({ code: 0, paid: 2 });
    expect(named.said).toContain(
      "a03 and 1 more were made before for job b and are paid again, for 2 credits",
    );
  });

  test("a sheet that continues a job whose sheet is gone pays for no row of another job", async () => {
    const { place, write, call } = await twoJobs();
    write("all.csv", 0, 4);
    for (const name of ["a.csv", "b.csv"]) rmSync(join(place.folder, name));
    expect(await call("run", "all.csv")).toMatchObject({
      code: 2,
      paid: 0,
      said: expect.stringContaining("a03 and 1 more were made before for job b and would be paid again"),
    });
    write("all.csv", 0, 2);
    expect(await call("run", "all.csv")).toMatchObject({ code: 0, paid: 0 });
  });

  test("a sheet that takes another one's name continues its own job by --job", async () => {
    const { place, call } = await twoJobs();
    renameSync(join(place.folder, "b.csv"), join(place.folder, "a.csv"));
    expect(await call("run", "a.csv")).toMatchObject({
      code: 2,
      paid: 0,
      said: expect.stringContaining(
        "paid again, for 2 credits: --job b continues that job; or take the files",
      ),
    });
    expect(await call("run", "a.csv", "--job", "b")).toMatchObject({ code: 0, paid: 0 });
    expect(await call("run", "a.csv")).toMatchObject({ code: 0, paid: 0 });
  });

  test("a job file with another name pays for no item of the same edition again", async () => {
    const { place, call } = await twoJobs();
    const named = (name: string) =>
      place.write(
        "j.json",
        JSON.stringify({ name, rows: [{ id: "x", model: cheapModel, prompt: "a cup" }] }),
      );
    named("spring");
    expect((await call("run", "j.json", "--edition", "web")).paid).toBe(1);
    named("autumn");
    expect(await call("run", "j.json", "--edition", "web")).toMatchObject({
      code: 2,
      paid: 0,
      said: expect.stringContaining("x was made before for job spring"),
    });
    expect((await call("run", "j.json", "--edition", "print")).paid).toBe(1);
  });

  test("a renamed sheet continues a run that has paid for nothing yet", async () => {
    const { place, call } = await twoJobs();
    place.write("new.csv", `id,model,prompt\nz,${cheapModel},something new`);
    expect(await call("run", "new.csv", "--max-credits", "0.5")).toMatchObject({ code: 6, paid: 0 });
    renameSync(join(place.folder, "new.csv"), join(place.folder, "renamed.csv"));
    expect(await call("run", "renamed.csv")).toMatchObject({
      code: 0,
      paid: 1,
      said: expect.stringContaining("new.csv is gone and job new has 1 of 1 item: continuing that job"),
    });
    expect(await call("resume")).toMatchObject({ code: 0, paid: 0 });
  });

  test("rows that were moved out of an unfinished run are bought by no command that continues it", async () => {
    const { place, call } = await twoJobs();
    const [header, ...rows] = sheet(8).split("\n");
    const write = (name: string, ...some: number[]) =>
      place.write(name, [header, ...some.map((number) => rows[number - 1])].join("\n"));
    write("c.csv", 5, 6, 7, 8);
    expect(await call("run", "c.csv", "--max-credits", "2")).toMatchObject({ code: 6, paid: 2 });
    write("d.csv", 7, 8);
    expect(await call("run", "d.csv")).toMatchObject({ code: 0, paid: 2 });
    for (const words of [
      ["resume", "3", "--max-credits", "9"],
      ["redo", "3:a05"],
    ]) {
      const refused = await call(...words);
      expect(refused).toMatchObject({ code: 2, paid: 0 });
      expect(refused.said).toMatch(
        /a07 and 1 more were made meanwhile for job d, and run 3 would pay for them again, for 2 credits\. .*`bulkgen run \S*c\.csv`/,
      );
    }
    expect(await call("run", "c.csv")).toMatchObject({ code: 2, paid: 0 });
    write("c.csv", 5, 6);
    expect(await call("run", "c.csv")).toMatchObject({ code: 0, paid: 0 });
    expect(await call("redo", "a05")).toMatchObject({ code: 0, paid: 1 });
  });
});
