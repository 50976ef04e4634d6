import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

/** A workspace `w` with a sheet of two rows that were made, and the acts of a person with folders. */
async function made(folder = "") {
  const service = await startService();
  const place = newPlace();
  const at = (name: string) => join(place.folder, folder, name);
  mkdirSync(at("w"), { recursive: true });
  const write = (file: string, rows: number) => {
    mkdirSync(dirname(at(file)), { recursive: true });
    writeFileSync(at(file), sheet(rows, "plain-image"));
  };
  write("w/set.csv", 2);
  const command = (cwd: string, ...args: string[]) => run(place, args, { ...service, cwd: at(cwd) });
  const first = await command("w", "run", "set.csv", "--yes");
  expect(first, first.stderr).toMatchObject({ code: 0 });
  return {
    service,
    write,
    command,
    at,
    /** By another process: closing a database's file here would drop its locks. */
    copy: (from: string, to: string) => execFileSync("cp", ["-a", at(from), at(to)]),
    move: (from: string, to: string) => renameSync(at(from), at(to)),
    remove: (name: string) => rmSync(at(name), { recursive: true }),
    /** A third row is added and paid for. */
    async goOn(cwd: string) {
      write(`${cwd}/set.csv`, 3);
      const end = await command(cwd, "run", "set.csv", "--yes");
      expect(end, end.stderr).toMatchObject({ code: 0 });
    },
  };
}

describe.concurrent.each([
  ["beside it", ""],
  ["in the state folder", "Dropbox"],
])("P2: a workspace whose state is %s", (_, folder) => {
  test("and that was restored from a copy under another name refuses as it does under its own", async () => {
    const { service, command, copy, move, remove, goOn } = await made(folder);
    copy("w", "copy");
    await goOn("w");
    remove("w");
    move("copy", "restored");
    for (let again = 0; again < 2; again++) {
      const end = await command("restored", "run", "set.csv", "--yes");
      // The state folder was not restored: it knows everything, and nothing is left to pay.
      if (folder !== "") expect(end, end.stderr).toMatchObject({ code: 0 });
      else expect(end.stderr).toMatch(/is older than \S+accounts\.db: it does not know the paid request/);
    }
    expect(service.made).toHaveLength(3);
  });

  test("and that was renamed is known when its sheet is run elsewhere, used since or not", async () => {
    const { service, write, command, move } = await made(folder);
    move("w", "renamed");
    write("other/set.csv", 2);
    const unused = await command("other", "run", "set.csv", "--yes");
    expect(unused).toMatchObject({ code: 2 });
    expect(unused.stderr).toMatch(
      /2 of 2 items were paid for in the workspace \S+\/w \(.*\), which is not there any more, and would be paid again here, for 4 credits: if you have moved it, --workspace FOLDER continues there, --job set pays for them again\. Nothing/,
    );
    expect((await command("renamed", "run", "set.csv", "--yes")).code).toBe(0);
    const used = await command("other", "run", "set.csv", "--yes");
    expect(used.stderr).toMatch(
      /2 of 2 items were paid for in the workspace \S+\/renamed \(.*\) and would be paid again here, for 4 credits: --workspace \S+\/renamed continues there/,
    );
    expect(service.made).toHaveLength(2);
    const agreed = await command("other", "run", "set.csv", "--yes", "--job", "set");
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(4);
  });
});

test("P2: a workspace that was renamed goes on, and pays for nothing again", async () => {
  const { service, command, move, goOn } = await made();
  move("w", "renamed");
  await goOn("renamed");
  move("renamed", "w");
  expect((await command("w", "run", "set.csv", "--yes")).code).toBe(0);
  expect((await command("w", "doctor", "--offline")).stdout).not.toMatch(/history.*older/);
  expect(service.made).toHaveLength(3);
});

test("P2: what was paid for before a folder was deleted is not paid for again unawares, there or elsewhere", async () => {
  const { service, write, command, remove } = await made();
  remove("w/.bulkgen");
  remove("w/outputs");
  const there = await command("w", "run", "set.csv", "--yes");
  expect(there).toMatchObject({ code: 2 });
  expect(there.stderr).toMatch(/2 of 2 items were paid for .*--job set pays for them again/);
  remove("w");
  write("new/set.csv", 2);
  expect((await command("new", "plan", "set.csv")).code).toBe(2);
  expect((await command("new", "run", "set.csv", "--yes")).code).toBe(2);
  expect(service.made).toHaveLength(2);
});

test("P2: a copy that became independent does not pay again for what the first one has paid for since", async () => {
  const { service, write, command, copy, move, goOn } = await made();
  copy("w", "copy");
  await goOn("w");
  expect((await command("copy", "run", "set.csv", "--yes")).stderr).toContain("is a copy of the workspace");
  const separate = await command("copy", "doctor", "--separate", "--yes");
  expect(separate, separate.stderr).toMatchObject({ code: 0 });
  write("copy/set.csv", 3);
  move("w", "first");
  const end = await command("copy", "run", "set.csv", "--yes");
  expect(end).toMatchObject({ code: 2 });
  expect(end.stderr).toMatch(/1 of 3 items was paid for in the workspace \S+\/w /);
  expect(service.made).toHaveLength(3);
});

test("P2: what only a lost history had is not paid for again after a rebuild without a word", async () => {
  const { service, write, command, copy, remove, goOn, at } = await made();
  copy("w/.bulkgen", "snapshot");
  copy("w/outputs", "files");
  await goOn("w");
  remove("w/.bulkgen");
  remove("w/outputs");
  copy("snapshot", "w/.bulkgen");
  copy("files", "w/outputs");
  expect((await command("w", "run", "set.csv", "--yes")).stderr).toContain("it was restored from a copy");
  const rebuilt = await command("w", "doctor", "--rebuild", "--yes");
  expect(rebuilt, rebuilt.stderr).toMatchObject({ code: 0 });
  const end = await command("w", "run", "set.csv", "--yes");
  expect(end).toMatchObject({ code: 2 });
  expect(end.stderr).toMatch(/1 of 3 items was paid for .*would be paid again/);
  const agreed = await command("w", "run", "set.csv", "--yes", "--job", "set");
  expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(4);
  expect(existsSync(at("w/outputs/set/a03.png"))).toBe(true);
  mkdirSync(at("later"));
  write("later/set.csv", 3);
  expect((await command("later", "run", "set.csv", "--yes")).code).toBe(2);
});
