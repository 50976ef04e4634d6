import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run, started } from "./command.js";
import { testKey } from "./leaked-key.js";
import { failedTask, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

/** Four people's days, each from the first command to the last, on a service that is not the sandbox. */

const refusal = { code: "CONTENT_POLICY", message: "The prompt names a brand." };

const caller = (place: Place, service: ScriptedService) => {
  const call = (...words: string[]) => run(place, words, service);
  const ends = async (code: number, ...words: string[]) => {
    const end = await call(...words);
    expect(end, end.stderr).toMatchObject({ code });
    return (end.stdout + end.stderr).replace(/\s+/g, " ");
  };
  return { call, ends };
};

/** The command in a line such as ``Next: …`bulkgen resume` ``. */
const advised = (text: string, pattern: RegExp) => (pattern.exec(text)?.[1] ?? "").split(" ");

describe.concurrent("on a service of their own", () => {
  test("a marketing manager mends the failed rows of an office sheet, and picks", async () => {
    const service = await startService();
    service.script(({ what, path, body }) => {
      if (what === "POST generate" && body.includes("brand"))
        return { status: 400, json: { error: refusal } };
      const task = service.made.find((made) => path.endsWith(made.task));
      return what === "GET task" && task?.prompt.includes("busy") ? { json: failedTask(task) } : "serve";
    });
    const place = newPlace();
    const { ends } = caller(place, service);
    const rows = (...lines: string[]) =>
      ["Herbstkampagne 2026;;;", "Stand 20.11.;;;", "ID;Model;Prompt;Preis", ...lines].join("\n");
    place.write(
      "herbst.csv",
      rows(
        "1;plain-imag;Ein Krug;9,90",
        "2;plain-image;?????? ???;9",
        "3;plain-image;GrÃ¶ÃŸe;9",
        "4;plain-image;#REF!;9",
      ),
    );
    const wrong = await ends(2, "plan", "herbst.csv");
    expect(wrong).toContain("Rows 1-2 above the header in row 3 were skipped");
    expect(wrong).toContain('row 4, id 1, column model: unknown model "plain-imag"');
    expect(wrong).toMatch(
      /row 5, id 2, .* characters were lost.* row 6, id 3, .* wrong encoding.* row 7, id 4, .* formula error/,
    );

    const unmended = rows(
      "1;plain-image;Ein Krug;9,90",
      "2;plain-image;Ein brand;9",
      "3;plain-image;Ein busy;9",
    );
    place.write("herbst.csv", unmended);
    await ends(5, "run", "herbst.csv", "--yes");
    await ends(0, "export", "--failed", "--to", "failed.csv");
    const mended = (text: string) =>
      text.replace("Ein brand", "Ein Becher").replace("Ein busy", "Ein Teller");
    place.write("failed.csv", mended(place.read("failed.csv")));
    await ends(0, "run", "failed.csv", "--yes");
    const paid = service.count("POST generate");

    // The sheet itself still has the rows as they failed.
    const again = await ends(5, "run", "herbst.csv", "--yes");
    expect(again).toContain("- 2: the row no longer asks for its archived version");
    expect(again).not.toContain("no longer in the manifest");
    place.write("herbst.csv", mended(unmended));
    expect(await ends(0, "run", "herbst.csv", "--yes")).not.toContain("no longer in the manifest");
    expect(service.count("POST generate")).toBe(paid);

    await ends(0, "redo", "1", "--yes");
    await ends(0, "pick", "1-v2", "2");
    expect(await ends(0, "export", "--picked", "--zip", "picked.zip", "--files-only")).toContain("2 files");
    expect(await ends(0, "gallery")).toContain("4 files of job herbst");
    expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(
      ["Ein Becher", "Ein Krug", "Ein Krug", "Ein Teller", "Ein busy", "Ein busy"].toSorted(),
    );
  });

  test("an operator is told of an outage and of six lost answers, and decides about them together", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("night.csv", sheet(16, "plain-image"));
    const six = ids(16).slice(4, 10);
    const cut = new Set<string>();
    service.script(({ what, body }) => {
      const id = six.find((each) => what === "POST generate" && body.includes(`of ${each}`));
      if (id === undefined || cut.has(id)) return "serve";
      cut.add(id);
      return "serve and cut";
    });
    const night = started(place, ["run", "night.csv", "--yes", "--lanes", "1"], service);
    await service.wasAsked("POST generate", 3);
    await service.down();
    await night.prints(/service unreachable since/);
    await service.up();
    const end = await night.ended;
    expect(end, end.stderr).toMatchObject({ code: 10 });
    const { call, ends } = caller(place, service);
    const { trouble } = JSON.parse((await call("status", "--json")).stdout) as {
      trouble: { rowId: string }[];
    };
    // The outage may have cut off one more.
    const held = trouble.map(({ rowId }) => rowId);
    expect(held).toEqual(expect.arrayContaining(six));
    expect(end.stdout).toContain(`${held.length}, possibly charged, waiting for your decision`);
    const words = advised(end.stdout, /pay for all of them again with `bulkgen (.+?)`/);
    expect(words).toEqual(["resolve", "--all", "--resubmit"]);

    const paid = service.count("POST generate");
    expect(await ends(2, ...words)).toMatch(
      / items to be submitted again, .* charged before .* Add --yes to agree/,
    );
    expect(service.count("POST generate")).toBe(paid);
    await ends(0, "resolve", "a05", "--skip");
    await ends(0, ...words, "--yes");
    expect(await ends(0, "status")).toMatch(/items 15 archived, 1 dropped/);
    const paidFor = (id: string) => service.made.filter(({ prompt }) => prompt.endsWith(id)).length;
    expect(ids(16).filter((id) => paidFor(id) > 1)).toEqual(held.filter((id) => id !== "a05"));
  });

  test("a colleague takes over an interrupted run, raises its cap, and rebuilds its lost database", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(8, "plain-image"));
    const anna = started(place, ["run", "set.csv", "--yes", "--lanes", "1", "--max-credits", "8"], service);
    await service.wasAsked("POST generate", 2);
    anna.interrupt();
    expect((await anna.ended).code).toBe(130);

    const { ends } = caller(place, service);
    expect(await ends(0, "status")).toMatch(
      /options --max-credits 8 --lanes 1 .*next `bulkgen resume` continues/,
    );
    const words = advised(await ends(6, "resume"), /Next: 4 items are left: `bulkgen (.+?)`/);
    expect(words).toEqual(["resume", "1", "--max-credits", "16"]);
    await ends(0, ...words);
    rmSync(join(place.folder, ".bulkgen", "state.db"));
    expect(await ends(2, "status")).toContain("`bulkgen doctor --rebuild` restores it");
    await ends(0, "doctor", "--rebuild", "--yes");
    const rebuilt = await ends(0, "status");
    expect(rebuilt).toMatch(
      /rebuilt .* UTC from receipts and archive options lost; it submits nothing without --max-credits items 8 archived/,
    );
    expect(rebuilt).not.toMatch(/started|--retries|--on-insufficient|requests 0/);
    expect(await ends(0, "run", "set.csv", "--yes")).toContain(
      "8 of 8 items, all of them before, not paid again",
    );
    expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(
      ids(8).map((id) => `a picture of ${id}`),
    );
  });

  test("a newcomer comes from init to the first picture, over a mistyped address", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("key.txt", `${testKey} \n`);
    const call = async (code: number, ...words: string[]) => {
      const end = await run(place, words);
      expect(end, end.stderr).toMatchObject({ code });
      return (end.stdout + end.stderr).replace(/ +/g, " ");
    };
    const init = (url: string) => ["init", "--base-url", url, "--api-key-file", "key.txt"];
    expect(await call(2, ...init(`${service.url}/api/v1`))).toContain(`leave off /api/v1: ${service.url}`);
    expect(await call(4, ...init(`${service.url}/wrong`))).toContain("Check the base URL");
    expect(place.files().filter((name) => name.startsWith("here/"))).toEqual(["here/key.txt"]);
    const first = await call(0, ...init(service.url));
    rmSync(join(place.folder, "key.txt"));
    expect(first).toContain("bulkgen run jobs/first.csv make it, for about 2 credits");
    await call(0, "plan", "jobs/first.csv");
    const made = await call(0, "run", "jobs/first.csv", "--yes");
    expect(made).toContain("archived 1 of 1 item");
    expect(await call(0, "gallery")).toContain("1 file of job first");
    expect(await call(0, "account")).not.toMatch(/not made from here|\d requests?, no limit/);
    // Who types init again is not sent to a rehearsal of a sheet that the sandbox does not know.
    expect(await call(0, "init")).toMatch(/next:\n bulkgen plan jobs\/first.csv /);
    expect(service.made).toHaveLength(1);
  });
});
