import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { newPlace, run, started } from "./command.js";
import { failedTask, type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

const items = 4;
const charged = /8 credits were charged to this key for requests that this machine did not send/;

/** Everything of this machine as it was when two of four items were made, restored after the others were made too. */
async function restored() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes", "--max-credits", "4")).code).toBe(6);
  // By another process: closing a database's file here would drop its locks.
  execFileSync("cp", ["-a", place.root, `${place.root}-copy`]);
  place.write("more.csv", sheet(2, "plain-image").replaceAll("picture", "drawing"));
  expect((await command("run", "set.csv", "--yes", "--max-credits", "8")).code).toBe(0);
  expect((await command("run", "more.csv", "--yes")).code).toBe(0);
  rmSync(place.root, { recursive: true });
  execFileSync("mv", [`${place.root}-copy`, place.root]);
  expect(service.made).toHaveLength(6);
  return { service, place, command };
}

describe.concurrent("P2: a workspace that was restored with the state of its machine", () => {
  test.each([
    ["run", ["run", "set.csv", "--yes", "--max-credits", "8"]],
    ["plan", ["plan", "set.csv"]],
    ["resume", ["resume", "--max-credits", "8"]],
    ["redo", ["redo", "a01", "--yes"]],
  ])("is asked about what %s would pay for again, however often", async (_, words) => {
    const { service, command } = await restored();
    for (let again = 0; again < 2; again++) {
      const refused = await command(...words);
      expect(refused).toMatchObject({ code: 2 });
      expect((refused.stdout + refused.stderr).replace(/\s+/g, " ")).toMatch(charged);
    }
    expect(service.made).toHaveLength(6);
  });

  test("is asked also after another workspace has bought with the key", async () => {
    const { service, place, command } = await restored();
    place.write("other/new.csv", sheet(1, "plain-image").replaceAll("picture", "statue"));
    const other = await command("run", "other/new.csv", "--yes", "--workspace", "other");
    expect(other, other.stderr).toMatchObject({ code: 0 });
    expect(await command("run", "set.csv", "--yes")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(charged),
    });
    expect(service.made).toHaveLength(7);
    const agreed = await command("run", "set.csv", "--yes", "--accept-foreign-use");
    expect([0, 10], agreed.stderr).toContain(agreed.code);
    expect(service.made).toHaveLength(9);
    // What was agreed to is not asked again.
    place.write("set.csv", sheet(items + 1, "plain-image"));
    const later = await command("run", "set.csv", "--yes");
    expect([0, 10], later.stderr).toContain(later.code);
    expect(service.made).toHaveLength(10);
  });

  test.each([
    ["an edition with a name, which the copy may have made too", ["--edition", "second"], items],
    ["the rest of an edition that --fresh continues", ["--fresh"], 2],
  ])("is asked about %s", async (_, words, more) => {
    const { service, command } = await restored();
    const refused = await command("run", "set.csv", "--yes", "--max-credits", "20", ...words);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(charged) });
    expect(service.made).toHaveLength(6);
    const agree = ["--max-credits", "20", ...words, "--accept-foreign-use"];
    const end = await command("run", "set.csv", "--yes", ...agree);
    expect([0, 10], end.stderr).toContain(end.code);
    expect(service.made).toHaveLength(6 + more);
  });
});

test("P2: what is paid for is collected without a question, and the rest is bought once that is agreed to", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  service.script(async ({ what, path }): Promise<Scripted> => {
    const made = service.made.find(({ task }) => path.endsWith(task));
    if (what !== "GET task" || made === undefined) return "serve";
    running.interrupt();
    await running.prints(/interrupted: /);
    return { json: { ...failedTask(made), status: "processing", error: null, completed_at: null } };
  });
  const running = started(place, ["run", "set.csv", "--yes", "--max-credits", "4"], service);
  expect((await running.ended).code).toBe(130);
  service.script(() => "serve");
  expect(service.made).toHaveLength(2);
  const other = newPlace();
  other.write("set.csv", sheet(items, "plain-image").replaceAll("picture", "drawing"));
  expect((await run(other, ["run", "set.csv", "--yes"], service)).code).toBe(0);
  for (let again = 0; again < 2; again++) {
    const collected = await command("resume", "--max-credits", "8");
    expect(collected.code, collected.stderr).toBe(again === 0 ? 10 : 2);
    expect(collected.stderr.replace(/\s+/g, " ")).toMatch(charged);
    expect(place.files().filter((name) => name.endsWith(".png"))).toHaveLength(2);
  }
  expect(service.made).toHaveLength(2 + items);
  const agreed = await command("resume", "--max-credits", "8", "--accept-foreign-use");
  expect([0, 10], agreed.stderr).toContain(agreed.code);
  expect(place.files().filter((name) => name.endsWith(".png"))).toHaveLength(items);
});

describe.concurrent("P2: an old copy of a workspace on a machine that knows nothing of it", () => {
  /** Two of four items were made when the copy was taken; the machine is a new one. */
  async function onNewMachine() {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(items, "plain-image"));
    const first = await run(place, ["run", "set.csv", "--yes", "--max-credits", "4"], service);
    expect(first.code).toBe(6);
    const other = newPlace();
    execFileSync("cp", ["-a", `${place.folder}/.`, other.folder]);
    const rest = await run(place, ["run", "set.csv", "--yes", "--max-credits", "8"], service);
    expect(rest.code).toBe(0);
    expect(service.made).toHaveLength(items);
    return { service, command: (...words: string[]) => run(other, words, service) };
  }

  test.each([
    ["run", ["run", "set.csv", "--yes", "--max-credits", "8"]],
    ["plan", ["plan", "set.csv"]],
    ["resume", ["resume", "--max-credits", "8", "--yes"]],
  ])("is asked about what %s would pay for again", async (_, words) => {
    const { service, command } = await onNewMachine();
    const refused = await command(...words);
    expect(refused.code, refused.stderr).toBe(2);
    expect((refused.stdout + refused.stderr).replace(/\s+/g, " ")).toMatch(
      /this machine has no record of the newest purchase of this workspace \(.*--accept-foreign-use/,
    );
    expect(service.made).toHaveLength(items);
  });

  test("is asked once: what it buys then is on record", async () => {
    const { service, command } = await onNewMachine();
    const agreed = await command("run", "set.csv", "--yes", "--max-credits", "6", "--accept-foreign-use");
    expect(agreed.code, agreed.stderr).toBe(6);
    expect(service.made).toHaveLength(items + 1);
    const later = await command("run", "set.csv", "--yes", "--max-credits", "8");
    expect(later.code, later.stderr).toBe(0);
    expect(service.made).toHaveLength(items + 2);
  });
});
