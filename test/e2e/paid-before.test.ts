import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, run, started } from "./command.js";
import { failedTask, type Scripted, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 3;

describe.concurrent("P2: a sheet that was made in one workspace and is run in another", () => {
  async function made() {
    const service = await startService();
    const place = newPlace();
    place.write("one/jobs/set.csv", sheet(items, "plain-image"));
    const command = (cwd: string, ...args: string[]) =>
      run(place, args, { ...service, cwd: join(place.folder, cwd) });
    expect((await command("one", "run", "jobs/set.csv", "--yes")).code).toBe(0);
    return { service, place, command };
  }

  const refusal = {
    code: 2,
    stderr: expect.stringMatching(
      /3 of 3 items were paid for in the workspace \S+\/one \(the newest on \d{4}-\d\d-\d\d\) and would be paid again here, for 6 credits: --workspace \S+\/one continues there, --job set pays for them again\. Nothing/,
    ),
  };

  test("because it was moved is refused, continues there, or is paid for again if agreed", async () => {
    const { service, place, command } = await made();
    mkdirSync(join(place.folder, "two"));
    renameSync(join(place.folder, "one/jobs/set.csv"), join(place.folder, "two/set.csv"));
    expect((await command("two", "plan", "set.csv")).code).toBe(2);
    expect(await command("two", "run", "set.csv", "--yes")).toMatchObject(refusal);
    const there = await command("two", "run", "set.csv", "--yes", "--workspace", "../one");
    expect(there, there.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    const agreed = await command("two", "run", "set.csv", "--yes", "--job", "set");
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(agreed.stderr.replace(/\s+/g, " ")).toContain("are paid again here, for 6 credits");
    expect((await command("two", "run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(2 * items);
  });

  test("because a nearer one was made is refused, also without the first one, or is made if agreed", async () => {
    const { service, place, command } = await made();
    expect((await command("one/jobs", "init")).code).toBe(0);
    expect(await command("one", "run", "jobs/set.csv", "--yes")).toMatchObject(refusal);
    expect(service.made).toHaveLength(items);
    rmSync(join(place.folder, "one/.bulkgen"), { recursive: true });
    const gone = await command("one", "run", "jobs/set.csv", "--yes");
    expect(gone.stderr).toMatch(
      /3 of 3 items were paid for in the workspace \S+\/one \(.*\), which is not there any more, /,
    );
    expect((await command("one", "run", "jobs/set.csv", "--yes", "--job", "set")).code).toBe(0);
    expect(service.made).toHaveLength(2 * items);
  });
});

test("P2: a request of another workspace that was not answered may have been charged, and its item is not paid for again unawares", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (cwd: string, ...args: string[]) =>
    run(place, args, { ...service, cwd: join(place.folder, cwd) });
  for (const folder of ["one", "two"]) place.write(`${folder}/set.csv`, sheet(1, "plain-image"));
  service.script(({ what }) => (what === "POST generate" ? "cut" : "serve"));
  expect((await command("one", "run", "set.csv", "--yes")).code).toBe(8);
  service.script(() => "serve");
  expect(await command("two", "run", "set.csv", "--yes")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /1 of 1 item may have been paid for in the workspace \S+\/one \(the newest on \S+\) and would be paid again here, for 2 credits/,
    ),
  });
  expect(service.made).toEqual([]);
});

test("P2: what another workspace has paid for since a run began is not paid for again by that run", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (cwd: string, ...args: string[]) =>
    run(place, args, { ...service, cwd: join(place.folder, cwd) });
  place.write("one/set.csv", sheet(items, "plain-image"));
  place.write("two/part.csv", sheet(items, "plain-image").replace(/\na01.*/, ""));
  expect((await command("one", "run", "set.csv", "--yes", "--max-credits", "2")).code).toBe(6);
  expect((await command("two", "run", "part.csv", "--yes")).code).toBe(0);
  expect(service.made).toHaveLength(items);
  const planned = await command("one", "plan", "set.csv");
  expect(planned.code).toBe(2);
  expect(planned.stdout).toMatch(
    /2 of 3 items were paid for in the workspace \S+\/two \(the newest on \S+\) and would be paid again here, for 4 credits/,
  );
  const resumed = await command("one", "resume", "--max-credits", "6");
  expect(resumed).toMatchObject({ code: 2 });
  expect(resumed.stderr).toMatch(
    /a02 and 1 more were paid for meanwhile in the workspace \S+\/two, and run 1 would pay for them again, for 4 credits\. Nothing was sent\. `bulkgen run \S+set\.csv` continues the run/,
  );
  const agreed = await command("one", "run", "set.csv", "--yes", "--job", "set");
  expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(items + 2);
});

test("P16: a file is repaired although its run has rows left that another job has paid for", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  place.write("part.csv", sheet(items, "plain-image").replace(/\na01.*/, ""));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes", "--max-credits", "2")).code).toBe(6);
  expect((await command("run", "part.csv", "--yes", "--job", "part")).code).toBe(0);
  expect((await command("resume", "1", "--max-credits", "6")).stderr).toContain(
    "made meanwhile for job part",
  );
  rmSync(join(place.folder, "outputs/set/a01.png"));
  const repaired = await command("verify", "--repair");
  expect(repaired, repaired.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(items);
});

/** A run that was interrupted while all of its tasks were at the service. */
async function interrupted() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  service.script(async ({ what, path, before }): Promise<Scripted> => {
    const asked = service.made.find(({ task }) => path.endsWith(task));
    if (asked)
      return { json: { ...failedTask(asked), status: "processing", error: null, completed_at: null } };
    if (what === "POST generate" && before === items - 1) {
      running.interrupt();
      await running.prints(/interrupted: /);
    }
    return "serve";
  });
  const running = started(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  expect((await running.ended).code).toBe(130);
  service.script(() => "serve");
  return { service, place, command, state: join(place.folder, ".bulkgen") };
}

describe.concurrent("P2: tasks at the service whose workspace", () => {
  test("was deleted are not paid for again: plan and run refuse, other commands work, --fresh makes them again", async () => {
    const { service, place, command, state } = await interrupted();
    rmSync(state, { recursive: true });
    const planned = await command("plan", "set.csv");
    expect(planned.code, planned.stderr).toBe(2);
    expect(planned.stdout.replace(/\s+/g, " ")).toContain("3 of 3 items were sent from");
    expect(existsSync(state)).toBe(false);
    place.write("rehearsed.csv", sheet(1, "aurora-image"));
    expect((await run(place, ["run", "rehearsed.csv", "--sandbox", "--yes"])).code).toBe(0);
    for (let again = 0; again < 2; again++) {
      const refused = await command("run", "set.csv", "--yes");
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(
        /3 of 3 items were sent from \S+ before \(the newest on \d{4}-\d\d-\d\d\).*: a01 \(00000000-\S+-000000000001\), a02 .*--fresh .*Nothing was submitted/,
      );
    }
    expect(service.made).toHaveLength(items);

    place.write("other.csv", "id,model,prompt\nb01,plain-image,something else\n");
    const other = await command("run", "other.csv", "--yes");
    expect(other, other.stderr).toMatchObject({ code: 0 });
    expect((await command("run", "set.csv", "--yes")).code).toBe(2);
    const anew = await command("run", "set.csv", "--yes", "--fresh");
    expect(anew, anew.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(2 * items + 1);
    expect((await command("run", "set.csv", "--yes")).stdout).toContain("3 of 3 items");
    expectArchived(join(place.folder, "outputs", "set"), ids(items));
  });

  test("was deleted are not paid for again under another name of the sheet, once they are in the archive", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(items, "plain-image"));
    const command = (...args: string[]) => run(place, args, service);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    rmSync(join(place.folder, ".bulkgen"), { recursive: true });
    renameSync(join(place.folder, "set.csv"), join(place.folder, "autumn.csv"));
    const refused = await command("run", "autumn.csv", "--yes");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/3 of 3 items are in the archive \S+outputs\/set .*doctor --rebuild/),
    });
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    const again = await command("run", "autumn.csv", "--yes");
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
  });

  test("was moved are collected there, and are not paid for again where it was unless that is agreed", async () => {
    const { service, place, command, state } = await interrupted();
    const moved = join(place.folder, "moved");
    mkdirSync(moved);
    renameSync(state, join(moved, ".bulkgen"));
    expect((await command("run", "set.csv", "--yes")).stderr).toContain("3 of 3 items were sent from");
    const resumed = await command("resume", "--workspace", "moved");
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items);
    expect((await command("run", "set.csv", "--yes")).stderr).toMatch(
      /3 of 3 items were paid for in the workspace \S+\/moved .*--workspace \S+\/moved continues there/,
    );
    const anew = await command("run", "set.csv", "--yes", "--job", "set");
    expect(anew, anew.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(2 * items);
  });
});
