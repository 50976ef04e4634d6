import { cpSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived, indexOf } from "./archive.js";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 3;

/** The outputs of a finished run in a folder whose `.bulkgen` is gone, as in a fresh clone. */
async function outputsOnly(...out: string[]) {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const command = (...args: string[]) => run(place, args, service);
  expect((await command("run", "set.csv", "--yes", ...out)).code).toBe(0);
  rmSync(join(place.folder, ".bulkgen"), { recursive: true });
  return { service, place, command };
}

describe.concurrent("P2: what is in the archive though its workspace is gone", () => {
  test("is not paid for again: plan and run refuse, a rebuild brings it back, new rows are made", async () => {
    const { service, place, command } = await outputsOnly();
    const planned = await command("plan", "set.csv");
    expect(planned.code, planned.stderr).toBe(2);
    expect(planned.stdout.replace(/\s+/g, " ")).toContain("3 of 3 items are in the archive");
    expect(existsSync(join(place.folder, ".bulkgen"))).toBe(false);
    for (let again = 0; again < 2; again++) {
      const refused = await command("run", "set.csv", "--yes");
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(
        /3 of 3 items are in the archive \S+\/outputs\/set \(the newest from \d{4}-\d\d-\d\d\), .*`bulkgen doctor --rebuild` in \S+ .*--fresh .*Nothing was submitted/,
      );
    }
    expect(service.made).toHaveLength(items);
    const rebuilt = await command("doctor", "--rebuild", "--yes");
    expect(rebuilt.stdout, rebuilt.stderr).toMatch(/^items +3: 3 archived$/m);
    place.write("set.csv", sheet(items + 1, "plain-image"));
    const more = await command("run", "set.csv", "--yes");
    expect(more, more.stderr).toMatchObject({ code: 0 });
    expect(service.made.map(({ prompt }) => prompt)).toEqual(
      ids(items + 1).map((id) => `a picture of ${id}`),
    );
    expectArchived(join(place.folder, "outputs", "set"), ids(items + 1));
  });

  test("is not paid for again either if the history is older and the sheet was renamed", async () => {
    const service = await startService();
    const place = newPlace();
    const command = (...args: string[]) => run(place, args, service);
    const [state, copy] = [join(place.folder, ".bulkgen"), join(place.folder, "copy")];
    place.write("set.csv", sheet(items, "plain-image"));
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    cpSync(state, copy, { recursive: true });
    place.write("set.csv", sheet(items + 1, "plain-image"));
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    rmSync(state, { recursive: true });
    renameSync(copy, state);
    renameSync(join(place.folder, "set.csv"), join(place.folder, "renamed.csv"));
    expect((await command("run", "renamed.csv", "--yes")).stderr).toMatch(/is older than \S+accounts\.db/);
    rmSync(join(place.env["XDG_STATE_HOME"] ?? "", "bulkgen"), { recursive: true });
    const refused = await command("run", "renamed.csv", "--yes");
    expect(refused.code, refused.stdout).toBe(2);
    expect(refused.stderr).toContain("1 of 4 items is in the archive");
    expect(service.made).toHaveLength(items + 1);
  });

  test("is told by status and resume, with the command that restores its history", async () => {
    const { place, command } = await outputsOnly();
    const told = `no runs in ${place.folder}, but outputs of 3 items lie in ${place.folder}/outputs. \`bulkgen doctor --rebuild\` restores their history, so that nothing is paid again\n`;
    expect(await command("status")).toMatchObject({ code: 0, stdout: told });
    expect(await command("resume")).toMatchObject({ code: 2, stderr: `bulkgen: ${told}` });
  });

  test("comes back with a single rebuild, also from a separate folder", async () => {
    const { service, place, command } = await outputsOnly("--out", "elsewhere");
    const refused = await command("run", "set.csv", "--yes", "--out", "elsewhere");
    expect(refused.stderr).toMatch(/`bulkgen doctor --rebuild --out \S+\/elsewhere` in /);
    rmSync(join(place.folder, ".bulkgen"), { recursive: true });
    expect((await command("doctor", "--rebuild", "--out", "elsewhere", "--yes")).code).toBe(0);
    const again = await command("run", "set.csv", "--yes", "--out", "elsewhere");
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(again.stdout).toContain("not paid again");
    expect(service.made).toHaveLength(items);
  });

  test("is checked item by item after a rehearsal too, which knows of no real files", async () => {
    const { service, place, command } = await outputsOnly();
    place.write("other.csv", sheet(1, "aurora-image"));
    expect((await run(place, ["run", "other.csv", "--sandbox", "--yes"])).code).toBe(0);
    expect((await command("run", "set.csv", "--yes")).stderr).toContain("3 of 3 items are in the archive");
    place.write("new.csv", sheet(1, "plain-image"));
    expect((await command("run", "new.csv", "--yes")).stderr).toContain("1 of 1 item is in the archive");
    place.write("new.csv", "id,model,prompt\nb01,plain-image,something new");
    expect(await command("run", "new.csv", "--yes")).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items + 1);
  });

  test.each([[["--fresh"]], [["--edition", "autumn"]]])(
    "is made anew where %s asks for it",
    async (flags) => {
      const { service, place, command } = await outputsOnly();
      expect((await command("plan", "set.csv", ...flags)).code).toBe(0);
      const anew = await command("run", "set.csv", "--yes", ...flags);
      expect(anew, anew.stderr).toMatchObject({ code: 0 });
      expect(service.made).toHaveLength(2 * items);
      expect(indexOf(join(place.folder, "outputs", "set"))).toHaveLength(2 * items);
    },
  );

  test("is not paid for again where files are gone too: a rebuild brings it back, and --missing decides", async () => {
    const { service, place, command } = await outputsOnly();
    for (const id of ids(items - 1)) rmSync(join(place.folder, "outputs", "set", `${id}.png`));
    const refused = await command("run", "set.csv", "--yes");
    expect(refused.code, refused.stdout).toBe(2);
    expect(refused.stderr).toMatch(
      /3 of 3 items are in the archive .*; the files of 2 are gone\), .*--rebuild/,
    );
    expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
    expect((await command("resume", "1")).stderr).toContain("which does not say whose run it was");
    expect((await command("run", "set.csv", "--yes", "--missing", "fetch")).code).toBe(0);
    expect(service.made).toHaveLength(items);
    expectArchived(join(place.folder, "outputs", "set"), ids(items));
  });

  test("stops nothing else: another job, rows that are not there or not selected", async () => {
    const { service, place, command } = await outputsOnly();
    const [head, ...rows] = sheet(items, "plain-image").split("\n");
    place.write("set.csv", [head, "b01,plain-image,a picture of b01", ...rows].join("\n"));
    const selected = await command("run", "set.csv", "--yes", "--first", "1");
    expect(selected, selected.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(items + 1);
    expect((await command("run", "set.csv", "--yes")).code).toBe(2);
    place.write("other.csv", sheet(items, "plain-image"));
    expect((await command("run", "other.csv", "--job", "other", "--yes")).code).toBe(0);
  });
});

test("plan and run say where a job's files are if not in the output folder, and that nothing is renamed there", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, ["run", "set.csv", "--yes", ...args], service);
  place.write("set.csv", sheet(items, "plain-image"));
  const first = await command("--out", "elsewhere");
  expect(first.stdout + first.stderr).not.toContain("files of earlier runs");
  place.write("set.csv", sheet(items, "plain-image").replace("a02,", "b02,"));
  expect((await command()).stderr.replace(/\s+/g, " ")).toMatch(
    /files of earlier runs are in \S+\/elsewhere\/set and stay there under their names; --out \S+\/elsewhere continues in that folder/,
  );
  await command("--out", "elsewhere");
  expect(readdirSync(join(place.folder, "elsewhere", "set")).toSorted()).toEqual([
    "a01.png",
    "a03.png",
    "b02.png",
    "index.jsonl",
  ]);
  expect(service.made).toHaveLength(items);
});

test("P16: a file of a folder that is no longer the output folder is repaired into the new one, and found there", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.csv", sheet(items, "plain-image"));
  await command("run", "set.csv", "--yes", "--out", "elsewhere");
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  rmSync(join(place.folder, "elsewhere/set/a01.png"));
  expect((await command("verify")).code).toBe(5);
  const repaired = await command("verify", "--repair");
  expect(repaired, repaired.stdout).toMatchObject({ code: 0 });
  expect(repaired.stdout).toContain(`files     ${items} files in 2 folders`);
  expect((await command("verify", "--read-data")).code).toBe(0);
  expect((await command("find", "a01")).stdout).toContain("outputs/set/a01.png");
  expect(service.made).toHaveLength(items);
});

test("a file is not called lost because its unfinished run goes on in another output folder", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.csv", sheet(items, "plain-image"));
  await command("run", "set.csv", "--yes", "--out", "elsewhere", "--max-credits", "2");
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  const planned = await command("plan", "set.csv");
  expect(planned.stdout).not.toContain("lost files");
  const verified = await command("verify", "--read-data");
  expect(verified, verified.stdout).toMatchObject({ code: 0 });
  expect(verified.stdout).toContain(`${items} files in 2 folders`);
  expect((await command("find", "a01")).stdout).toContain("elsewhere/set/a01.png");
});

test("P2: a file is not called lost, or paid for again, if its output folder was renamed and --out names it", async () => {
  const service = await startService();
  const place = newPlace();
  const command = (...args: string[]) => run(place, args, service);
  place.write("set.csv", sheet(items, "plain-image"));
  expect((await command("run", "set.csv", "--yes", "--out", "before")).code).toBe(0);
  renameSync(join(place.folder, "before"), join(place.folder, "after"));
  const again = await command("run", "set.csv", "--yes", "--out", "after", "--missing", "pay");
  expect(again, again.stderr).toMatchObject({ code: 0 });
  expect(again.stderr).not.toContain("lost files");
  expect(service.made).toHaveLength(items);
  const verified = await command("verify", "--repair");
  expect(verified, verified.stdout).toMatchObject({ code: 0 });
  expectArchived(join(place.folder, "after", "set"), ids(items));
  expect(service.made).toHaveLength(items);
});
