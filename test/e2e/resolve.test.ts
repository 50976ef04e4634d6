import { describe, expect, test } from "vitest";
import { filesWith, newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, startProxy, startService } from "./service.js";
import { sheet } from "./sheet.js";

const items = 6;
const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

/** A run that ended with two held items: their requests were served, and the answers lost. */
async function twoHeld() {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(items));
  const service = await startProxy(
    sandbox,
    ({ what, before }): Scripted =>
      what === "POST generate" && (before === 1 || before === 3) ? "serve and cut" : "serve",
  );
  const call = (...words: string[]) => run(place, words, service);
  const first = await call(...begin);
  expect(first, first.stderr).toMatchObject({ code: 10 });
  const counts = async () =>
    JSON.parse((await call("status", "--json")).stdout).counts as { held: number; archived: number };
  expect(await counts()).toMatchObject({ held: 2, archived: 4 });
  return { sandbox, place, call, counts, first };
}

describe.concurrent("held items", () => {
  test("are decided about together, after their price and what was charged before is shown", async () => {
    const { call, counts, first } = await twoHeld();
    expect(first.stdout).toContain("`bulkgen resolve --all --resubmit`");
    const refused = await call("resolve", "--all", "--resubmit");
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("2 items to be submitted again, 2 credits");
    expect(refused.stderr).toContain("2 of 2 items were charged before (2 credits)");
    expect(await counts()).toMatchObject({ held: 2 });
    const paid = await call("resolve", "--all", "--resubmit", "--yes");
    expect(paid, paid.stderr).toMatchObject({ code: 0 });
    expect(await counts()).toMatchObject({ held: 0, archived: items });
  });

  test("whose tasks are known are said to be paid for, and first of all to be fetched again", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    service.script(({ what, path }) =>
      what === "GET file" && path.includes("0001") ? { status: 404 } : "serve",
    );
    const { code, stdout } = await run(place, ["run", "set.csv", "--yes"], service);
    expect(code, stdout).toBe(10);
    expect(stdout).toMatch(/held +1, paid for, waiting for your decision/);
    const advice =
      "`bulkgen resolve --all --refetch` tries to download them again, at no cost; --accept keeps what came, even if it failed its check; or pay";
    expect(stdout).toContain(advice);
    expect((await run(place, ["status"])).stdout.replace(/\s+/g, " ")).toContain(advice);
    expect((await run(place, ["resume"], service)).stderr).toContain(
      "is finished except for 1 held item, which was paid for:",
    );
    service.script(() => "serve");
    expect(await run(place, ["resolve", "--all", "--refetch"], service)).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(2);
  });

  test("whose files failed their check are kept with --accept, marked as not proven", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const words = "1\n00:00:00,000 --> 00:00:01,000\nHello\n";
    // A picture and its subtitles, and a picture alone.
    service.script(({ what, path }) => {
      if (what === "GET file" && path.endsWith(".srt")) return { text: words };
      const [first] = service.made;
      if (what !== "GET task" || first === undefined || !path.endsWith(first.task)) return "serve";
      const files = [`${service.url}/files/${first.task}.srt`, `${service.url}/files/${first.task}.png`];
      const times = { created_at: "2026-01-02T03:04:05Z", completed_at: "2026-01-02T03:04:06Z" };
      return { json: { status: "completed", output_urls: files, credits_consumed: 2, ...times } };
    });
    const { code, stdout } = await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
    expect(code, stdout).toBe(10);
    expect(stdout).toContain("--accept");
    // What was good beside it has been kept.
    const all = () => filesWith(place.folder, "").filter((file) => file.startsWith("outputs/"));
    expect(all().filter((file) => file.endsWith(".png"))).toHaveLength(2);
    // It has gone at the service.
    service.script(({ what }) => (what === "GET file" || what === "GET task" ? { status: 404 } : "serve"));
    const accepted = await run(place, ["resolve", "--all", "--accept"], service);
    expect(accepted, accepted.stderr).toMatchObject({ code: 0 });
    expect(all().filter((file) => file.endsWith(".srt"))).toHaveLength(1);
    expect(service.made).toHaveLength(2);
    const verified = await run(place, ["verify", "--read-data"]);
    expect(verified.code).toBe(0);
    expect(verified.stdout).toMatch(/unproven +1, nothing proves that they are whole/);
    expect(verified.stdout).toContain("accepted, expected image, got no known media format");
    const exported = await run(place, ["export", "--columns", "id,state,reason"]);
    expect(exported.stdout).toMatch(/archived,"accepted, expected image/);
    expect((await run(place, ["resolve", "--all", "--accept"], service)).stderr).toContain("no item is held");
  });

  test("without any output have none to accept", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(1, "plain-image"));
    service.script(({ what }) =>
      what === "GET task" ? { json: { status: "completed", output_urls: [], credits_consumed: 2 } } : "serve",
    );
    expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(10);
    const refused = await run(place, ["resolve", "--all", "--accept"], service);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/has no output to accept: .* --refetch/);
    service.script(() => "serve");
    expect((await run(place, ["resolve", "--all", "--refetch"], service)).code).toBe(0);
    expect(service.made).toHaveLength(1);
  });

  test("are skipped by name or by a selection, and not without one", async () => {
    const { call, counts } = await twoHeld();
    expect(await call("resolve", "--skip")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("add --all"),
    });
    const [held] = JSON.parse((await call("status", "--json")).stdout).trouble as { rowId: string }[];
    const one = await call("resolve", "--skip", "--filter", `id=${held?.rowId}`);
    expect(one, one.stderr).toMatchObject({ code: 0 });
    expect(await counts()).toMatchObject({ held: 1 });
    expect((await call("resolve", "--all", "--adopt", "some-task")).code).toBe(2);
  });

  test("are submitted again by a resume that is allowed to pay for them, within that limit", async () => {
    const { call, sandbox } = await twoHeld();
    await call("redo", "a01", "--yes");
    const run1 = await call("resume", "1", "--orphans", "resubmit", "--orphan-credits", "1");
    expect([0, 10], run1.stderr).toContain(run1.code);
    expect(JSON.parse((await call("status", "1", "--json")).stdout).counts).toMatchObject({ held: 1 });
    expect(sandbox.madeSoFar()).toHaveLength(items + 2);
    expect((await call("resume", "1", "--orphans", "resubmit")).stderr).toContain("Add --orphan-credits N");
    const run2 = await call("resume", "1", "--orphan-credits", "2");
    expect([0, 10], run2.stderr).toContain(run2.code);
    expect(JSON.parse((await call("status", "1", "--json")).stdout).counts).toMatchObject({ held: 0 });
    expect(sandbox.madeSoFar()).toHaveLength(items + 3);
  });
});
