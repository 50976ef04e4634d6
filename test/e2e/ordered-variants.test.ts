import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

const broke = { status: 402, json: { error: { code: "INSUFFICIENT_CREDITS", message: "no credits" } } };

/** Two rows that are made, of which one was ordered again when the account had no credits. */
async function ordered(...words: string[]) {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  service.script(({ what }): Scripted => (what === "POST generate" ? broke : "serve"));
  const end = await command(...words, "--yes");
  expect(end, end.stderr).toMatchObject({ code: 7 });
  service.script(() => "serve");
  const files = () => place.files().filter((name) => name.endsWith(".png") && !name.includes("_superseded"));
  return { service, place, command, files };
}

describe.concurrent("a variant that was agreed to and could not be made", () => {
  test("is made by the next run of its sheet, which says so", async () => {
    const { service, command, files } = await ordered("redo", "a01");
    expect((await command("plan", "set.csv")).stdout.replace(/\s+/g, " ")).toContain(
      "a01-v2, which you ordered, is made too: 2 credits",
    );
    const end = await command("run", "set.csv", "--yes");
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(3);
    expect(files().some((name) => name.endsWith("/a01-v2.png"))).toBe(true);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(3);
  });

  test("is in the price of the plan, and in what is asked before it is spent", async () => {
    const { service, place, command } = await ordered("redo", "a01");
    place.write("set.csv", sheet(3, "plain-image"));
    const plan = async (...words: string[]) => {
      const { stdout } = await command("plan", "set.csv", "--json", ...words);
      const { ordered, money } = JSON.parse(stdout) as Record<string, Record<string, number>>;
      return { ordered, needed: money?.["needed"], within: money?.["within"], after: money?.["after"] };
    };
    const variant = { items: 1, credits: 2 };
    expect(await plan()).toEqual({ ordered: variant, needed: 4, within: 4, after: 92 });
    expect(await plan("--max-credits", "3")).toMatchObject({ needed: 4, within: 3 });
    expect(await plan("--filter", "id=a02")).toMatchObject({ ordered: { items: 0 }, needed: 0 });
    expect(await command("run", "set.csv", "--max-price", "3")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the price is 4 credits, more than --max-price 3 allows"),
    });
    // Nothing but the variant is left to make.
    expect(await command("run", "set.csv", "--range", "1:2")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("this run would spend credits"),
    });
    expect(service.made).toHaveLength(2);
    expect((await command("run", "set.csv", "--max-price", "4")).code).toBe(0);
    expect(service.made).toHaveLength(4);
  });

  test("is more than a plan of before the order agreed to", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const command = (...args: string[]) => run(place, args, service);
    expect((await command("run", "set.csv", "--yes", "--first", "1")).code).toBe(0);
    expect((await command("plan", "set.csv", "-o", "saved.json")).code).toBe(0);
    service.script(({ what }): Scripted => (what === "POST generate" ? broke : "serve"));
    expect((await command("redo", "a01", "--yes")).code).toBe(7);
    service.script(() => "serve");
    const refused = await command("run", "saved.json", "--yes");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "orders: 1 variant ordered by now, for 2 credits more than when planned",
      ),
    });
    expect(service.made).toHaveLength(1);
    expect((await command("plan", "set.csv", "-o", "saved.json")).code).toBe(0);
    expect((await command("run", "saved.json", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(3);
  });

  test("is not made unasked by a copy of the workspace", async () => {
    const { service, place, command } = await ordered("redo", "a01");
    const other = newPlace();
    execFileSync("cp", ["-a", `${place.folder}/.`, other.folder]);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(3);
    const refused = await run(other, ["run", "set.csv", "--yes"], service);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--accept-foreign-use") });
    expect(service.made).toHaveLength(3);
  });

  test("waits while its row is not selected, and while another row is", async () => {
    const { service, command } = await ordered("redo", "a01");
    expect((await command("run", "set.csv", "--yes", "--filter", "id=a02")).code).toBe(0);
    expect(service.made).toHaveLength(2);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(3);
  });

  test("belongs to its row under another id too", async () => {
    const { service, place, command } = await ordered("redo", "a01");
    place.write("set.csv", sheet(2, "plain-image").replace("\na01,", "\nfirst,"));
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(3);
  });

  test("of a row that has changed is named as not made", async () => {
    const { service, place, command } = await ordered("redo", "a01");
    place.write("set.csv", sheet(2, "plain-image").replace("picture of a01", "drawing of a01"));
    const end = await command("run", "set.csv", "--yes");
    expect(end.stderr.replace(/\s+/g, " ")).toContain(
      "a01-v2, which you ordered, is not made: its row has changed or is gone",
    );
    expect(service.made.map(({ prompt }) => prompt)).toHaveLength(3);
    expect((await command("status", "--json")).stdout).not.toContain("a01-v2");
  });

  test("is not made again after it was cancelled", async () => {
    const { service, command } = await ordered("redo", "a01");
    expect((await command("cancel")).code).toBe(0);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect(service.made).toHaveLength(2);
  });
});
