import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { galleryData } from "../report/gallery-data.js";
import { newPlace, type Place, run, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { startProxy } from "./service.js";
import { cheapModel, sheet } from "./sheet.js";

const slow = { timeout: 120_000 };

function filesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name !== "index.jsonl")
    .toSorted();
}

/** Lets the runs have ended at that time by their --until. */
function endedAt(place: Place, until: string): void {
  const db = openSqlite(join(place.folder, ".bulkgen", "sandbox", "state.db"));
  db.prepare("UPDATE runs SET options = json_set(options, '$.until', ?)").run(until);
  db.close();
}

describe.concurrent("what did not work, or did not please", () => {
  test(
    "retry submits failed items of a kind again, at a price that is shown; another kind is left",
    slow,
    async () => {
      const place = newPlace();
      const rows = [
        `a,${cheapModel},fine`,
        `b,${cheapModel},a [[provider-error]]`,
        `c,${cheapModel},[[moderation]]`,
      ];
      place.write("s.csv", ["id,model,prompt", ...rows].join("\n"));
      expect((await run(place, ["run", "s.csv", "--sandbox", "--yes", "--retries", "0"])).code).toBe(5);

      const unasked = await run(place, ["retry", "--sandbox"]);
      expect(unasked.code).toBe(2);
      expect(unasked.stderr).toContain("2 items to be submitted again, 2 credits");
      expect(unasked.stderr).toContain("Add --yes");

      const provider = await run(place, ["retry", "--sandbox", "--only", "provider", "--yes"]);
      expect(provider.code).toBe(5);
      expect(provider.stderr).toContain("1 item to be submitted again, 1 credit");
      expect(provider.stderr).toContain("- b: 1");
      const none = await run(place, ["retry", "--sandbox", "--only", "input", "--yes"]);
      expect(none).toMatchObject({ code: 0, stderr: expect.stringContaining("nothing to retry in run 1") });
      expect((await run(place, ["retry", "--sandbox", "--only", "weather"])).stderr).toContain(
        "expected one of moderation",
      );
    },
  );

  test("the morning after, a person continues what the end of a scheduled run cut short", slow, async () => {
    const place = newPlace();
    const past = "2020-01-01T06:00:00.000Z";
    place.write("s.csv", `id,model,prompt\na,${cheapModel},fine\nb,${cheapModel},[[provider-error]]`);
    const env = { BULKGEN_SCHEDULED_BY: "night", BULKGEN_SCHEDULED_FOR: past };
    const words = ["run", "s.csv", "--sandbox", "--yes", "--retries", "0", "--until", past];
    expect((await run(place, words, { env })).code).toBe(8);
    // Of the schedule's own resume, the end holds.
    const byDaemon = await run(place, ["resume", "1", "--sandbox", "--until", past], { env });
    expect(byDaemon).toMatchObject({ code: 8, stdout: expect.stringContaining("archived   0 of 2") });
    const ended = async (...args: string[]) => {
      const { stdout, stderr } = await run(place, [...args, "--sandbox", "--json"]);
      expect(stdout, stderr).not.toBe("");
      return JSON.parse(stdout) as { stops: string[]; counts: { archived: number; failed: number } };
    };
    expect(await ended("resume")).toMatchObject({ stops: [], counts: { archived: 1, failed: 1 } });
    endedAt(place, past);
    expect(await ended("retry", "--yes")).toMatchObject({ stops: [], counts: { archived: 1, failed: 1 } });
    endedAt(place, past);
    expect(await ended("redo", "a", "--yes")).toMatchObject({ stops: [], counts: { archived: 1 } });
    const status = (await ended("status")) as unknown as { beganBy: object };
    expect(status).toMatchObject({ run: 2, options: ["--retries 0", "--sandbox"], forecast: null });
    expect(status.beganBy).not.toHaveProperty("schedule");
  });

  test("a run counts only the files that it archived itself", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(2));
    const facts = async () => {
      const { stdout } = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--json"]);
      return JSON.parse(stdout) as { files: number; bytes: number; requestsPerItem: number | null };
    };
    const first = await facts();
    expect(first).toMatchObject({ files: 2, before: 0 });
    expect(first.requestsPerItem).toBeGreaterThan(2);
    expect(await facts()).toMatchObject({ files: 0, bytes: 0, before: 2, requestsPerItem: null });
    place.write("s.csv", sheet(3));
    expect(await facts()).toMatchObject({ files: 1, before: 2, requestsPerItem: 5 });
  });

  test("redo makes variants beside the old file, priced first, by row id and by path", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(1));
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    expect((await run(place, ["redo", "a01", "--sandbox", "--yes"])).code).toBe(0);
    const twice = await run(place, [
      "redo",
      join("sandbox-outputs", "s", "a01.png"),
      "a01-v2",
      "--sandbox",
      "--yes",
    ]);
    expect(twice.code, twice.stderr).toBe(0);
    expect(twice.stderr).toContain("2 items to be made again, 2 credits");
    expect(filesIn(join(place.folder, "sandbox-outputs", "s"))).toEqual([
      "a01-v2.png",
      "a01-v3.png",
      "a01-v4.png",
      "a01.png",
    ]);
    expect((await run(place, ["redo", "nobody", "--sandbox", "--yes"])).stderr).toContain('no item "nobody"');
    const again = await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    expect(again.stdout).toContain("1 of 1 item, all of them before, not paid again");
  });
});

describe.concurrent("a file's name without its folder", () => {
  test(
    "is the item's if only one has it, and else the command names the files to choose from",
    slow,
    async () => {
      const place = newPlace();
      place.write(
        "s.csv",
        "id,model,prompt,output\na,aurora-image-mini,a jar,jar/pic\nb,aurora-image-mini,a cup,cup/pic\nc,aurora-image-mini,a lid,cup/lid\n",
      );
      await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
      for (const name of ["lid.png", "cup/lid", "lid"]) {
        const picked = await run(place, ["pick", name, "--sandbox"]);
        expect(picked, picked.stderr).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(/^c (is|was) picked/),
        });
      }
      expect(await run(place, ["redo", "pic.png", "--sandbox", "--yes"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('did you mean "jar/pic.png" or "cup/pic.png"?'),
      });
      expect((await run(place, ["redo", "jar/pic.png", "--sandbox", "--yes"])).stderr).toContain("a-v2: 1");
      const hero = join("sandbox-outputs", "s", "hero.png");
      renameSync(join(place.folder, "sandbox-outputs", "s", "cup", "lid.png"), join(place.folder, hero));
      const renamed = await run(place, ["redo", hero, "--sandbox", "--yes"]);
      const advice = `\`bulkgen find ${hero} --sandbox\` shows the row that this file came from`;
      expect(renamed).toMatchObject({ code: 2, stderr: expect.stringContaining(advice) });
      expect((await run(place, ["find", hero, "--sandbox"])).stdout).toContain("(c)");
    },
  );
});

describe.concurrent("a held item", () => {
  test(
    "its task is adopted when it fits, refused when it does not, and nothing is paid for it",
    slow,
    async () => {
      const sandbox = await startSandbox();
      const place = newPlace();
      place.write("set.csv", sheet(2));
      const made: Record<string, string> = {};
      const proxy = await startProxy(sandbox, ({ what, body }) =>
        what === "POST generate" && body.includes("a01") ? "serve and cut" : "serve",
      );
      expect((await run(place, ["run", "set.csv", "--yes"], proxy)).code).toBe(10);
      for (const task of sandbox.madeSoFar()) made[task.prompt] = task.id;
      const lost = made["a picture of a01"] ?? "";
      const other = made["a picture of a02"] ?? "";

      const owned = await run(place, ["resolve", "a01", "--adopt", other], proxy);
      expect(owned).toMatchObject({ code: 2, stderr: expect.stringContaining("already belongs to a02") });
      const unknown = await run(place, ["resolve", "a01", "--adopt", crypto.randomUUID()], proxy);
      expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("TASK_NOT_FOUND") });
      const notHeld = await run(place, ["resolve", "a02", "--skip"], proxy);
      expect(notHeld).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("expected held, got archived"),
      });
      expect((await run(place, ["resolve", "a01"], proxy)).stderr).toContain("expected one of --adopt TASK");

      const adopted = await run(place, ["resolve", "a01", "--adopt", lost], proxy);
      expect(adopted.code, adopted.stderr).toBe(0);
      expect(filesIn(join(place.folder, "outputs", "set"))).toEqual(["a01.png", "a02.png"]);
      expect(await sandbox.tasks()).toHaveLength(2);
    },
  );

  test("a task whose words are not the item's is not adopted", slow, async () => {
    const sandbox = await startSandbox();
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const proxy = await startProxy(sandbox, ({ what }) =>
      what === "POST generate" ? "serve and cut" : "serve",
    );
    await run(place, ["run", "set.csv", "--yes"], proxy);
    const foreign = newPlace();
    foreign.write("x.csv", ["id,model,prompt", `x,${cheapModel},something else`].join("\n"));
    await run(foreign, ["run", "x.csv", "--yes"], { env: sandbox.env });
    const { id } = sandbox.madeSoFar().find((task) => task.prompt === "something else") ?? { id: "" };
    const refused = await run(place, ["resolve", "a01", "--adopt", id], proxy);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('prompt: expected "a picture of a01", got "something else"');
  });

  test("a person may authorise one more charge, or give it up", slow, async () => {
    const sandbox = await startSandbox();
    const place = newPlace();
    place.write("set.csv", sheet(2));
    let cuts = 2;
    const proxy = await startProxy(sandbox, ({ what }) =>
      what === "POST generate" && cuts-- > 0 ? "serve and cut" : "serve",
    );
    expect((await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], proxy)).code).toBe(10);
    const skipped = await run(place, ["resolve", "a02", "--skip"]);
    expect(skipped.code, skipped.stderr).toBe(0);
    const asked = await run(place, ["resolve", "a01", "--resubmit"], proxy);
    expect(asked).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("1 item to be submitted again, 1 credit"),
    });
    const paid = await run(place, ["resolve", "a01", "--resubmit", "--yes"], proxy);
    expect(paid.code, paid.stderr).toBe(0);
    expect(filesIn(join(place.folder, "outputs", "set"))).toEqual(["a01.png"]);
    expect(await sandbox.tasks()).toHaveLength(3);
  });
});

describe.concurrent("a sheet that changes", () => {
  test("pays only for new and changed rows, and names them", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(3));
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    const rows = [
      `a03,${cheapModel},a picture of a03`,
      `a02,${cheapModel},another picture`,
      `a04,${cheapModel},a fourth`,
    ];
    place.write("s.csv", ["id,model,prompt", ...rows].join("\n"));
    const plan = await run(place, ["plan", "s.csv", "--sandbox"]);
    expect(plan.code).toBe(0);
    expect(plan.stdout).toContain("2 needed");
    expect(plan.stdout).toContain("row 3 (a02): prompt");
    expect(plan.stdout).toContain("a01 is no longer in the manifest; its file stays");
    const json = JSON.parse((await run(place, ["plan", "s.csv", "--sandbox", "--json"])).stdout);
    expect(json.money.needed).toBe(2);
    expect(json.items.map((item: { state: string }) => item.state)).toEqual(["archived", "new", "new"]);
  });

  test("--fresh and --edition make everything again once, and only once", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(1));
    const pays = async (...flags: string[]) => {
      const end = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--json", ...flags]);
      expect(end.code, end.stderr).toBe(0);
      return JSON.parse(end.stdout).credits.spent as number;
    };
    expect(await pays()).toBe(1);
    expect(await pays("--edition", "2026-11-20")).toBe(1);
    expect(await pays("--edition", "2026-11-20")).toBe(0);
    expect(await pays("--fresh")).toBe(1);
    expect(await pays("--fresh")).toBe(1);
    expect(await pays()).toBe(0);
  });

  test(
    "each edition after the first has a folder, and its files have the names of the first",
    slow,
    async () => {
      const place = newPlace();
      place.write("s.csv", sheet(2));
      for (const flags of [[], ["--fresh"], ["--edition", "2026-11-23T01:00Z"], ["--fresh"]]) {
        const end = await run(place, ["run", "s.csv", "--sandbox", "--yes", ...flags]);
        expect(end.code, end.stderr).toBe(0);
      }
      const folder = join(place.folder, "sandbox-outputs", "s");
      const editions = ["edition-2", "edition-2026-11-23T01-00Z", "edition-3"];
      expect(filesIn(folder)).toEqual(["a01.png", "a02.png", ...editions].toSorted());
      for (const edition of editions) expect(filesIn(join(folder, edition))).toEqual(["a01.png", "a02.png"]);
    },
  );

  test(
    "the gallery has the files of all runs, variants and earlier versions beside their originals",
    slow,
    async () => {
      const place = newPlace();
      const call = async (...args: string[]) => {
        const end = await run(place, [...args, "--sandbox"]);
        expect(end.code, end.stderr).toBe(0);
      };
      const shownFiles = () => {
        const page = readFileSync(join(place.folder, "sandbox-outputs", "s", "gallery.html"), "utf8");
        return galleryData(page).cards.map(({ file }) => file?.path);
      };
      place.write("s.csv", sheet(2));
      await call("run", "s.csv", "--yes");
      await call("redo", "a01", "--yes");
      const expected = ["a01.png", "a01-v2.png", "a02.png"];
      await call("gallery");
      expect(shownFiles()).toEqual(expected);
      await call("run", "s.csv", "--yes");
      for (const which of [[], ["1"], ["2"]]) {
        await call("gallery", ...which);
        expect(shownFiles()).toEqual(expected);
      }
      place.write("s.csv", sheet(2).replace("a picture of a01", "a better picture of a01"));
      await call("run", "s.csv", "--yes");
      await call("run", "s.csv", "--yes", "--fresh");
      await call("gallery");
      expect(shownFiles()).toEqual([
        "edition-2/a01.png",
        "edition-2/a02.png",
        "a01.png",
        "a01-v2.png",
        "_superseded/a01.png",
        "a02.png",
      ]);
    },
  );

  test("--skip-invalid continues with the valid rows and lists the others in a file", slow, async () => {
    const place = newPlace();
    place.write("s.csv", ["id,model,prompt", `a,${cheapModel},fine`, "b,no-such-model,x"].join("\n"));
    expect((await run(place, ["run", "s.csv", "--sandbox", "--yes"])).code).toBe(2);
    const end = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--skip-invalid"]);
    expect(end.code, end.stderr).toBe(0);
    expect(end.stdout).toMatch(/left out +1 invalid row, listed in sandbox-outputs\/s\/problems.csv/);
    const planned = await run(place, ["plan", "s.csv", "--sandbox", "--skip-invalid"]);
    expect(planned).toMatchObject({ code: 0, stdout: expect.stringContaining("1 invalid row left out") });
    expect(place.read("sandbox-outputs/s/problems.csv")).toMatch(/,3,.*b.*no-such-model/);
    expect(existsSync(join(place.folder, "sandbox-outputs", "s", "a.png"))).toBe(true);
  });

  test("flags give the rows a model, a prompt and params that they do not have", slow, async () => {
    const place = newPlace();
    place.write("s.csv", "id,params.aspect_ratio\na,16:9\nb,\n");
    const flags = ["--model", cheapModel, "--prompt", "a hill", "--param", "aspect_ratio=4:3"];
    const { stdout, code } = await run(place, ["plan", "s.csv", "--sandbox", "--json", ...flags]);
    expect(code).toBe(0);
    const items = JSON.parse(stdout).items as { prompt: string; params: Record<string, string> }[];
    expect(items.map((item) => item.params["aspect_ratio"])).toEqual(["16:9", "4:3"]);
    expect(items.map((item) => item.prompt)).toEqual(["a hill", "a hill"]);
  });
});

describe.concurrent("a workspace that is held", () => {
  test("P18: is waited for, or skipped, as asked", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(2));
    const first = started(place, ["run", "s.csv", "--sandbox", "--yes"]);
    await first.prints(/to submit|at the service/);
    const skipped = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--if-locked", "skip"]);
    expect(skipped).toMatchObject({ code: 0, stderr: expect.stringContaining("skipped, nothing was sent") });
    const waited = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--if-locked", "wait"]);
    expect((await first.ended).code).toBe(0);
    expect(waited.code, waited.stderr).toBe(0);
    expect(waited.stdout).toContain("2 of 2 items, all of them before, not paid again");
  });
});
