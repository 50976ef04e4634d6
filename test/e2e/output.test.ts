import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { main, newPlace, type Place, run, started, startOnTerminal, startProcess } from "./command.js";
import { type ScriptedService, startService } from "./service.js";
import { cheapModel, ids, sheet } from "./sheet.js";
import { skippingClock } from "./skipping-clock.js";

const escapeCode = "\u001b";

describe.concurrent("output", () => {
  test("in a file or a pipe holds no escape codes and no rewritten lines", async () => {
    const { place, service } = await ready(3);
    for (const args of [
      ["plan", "set.csv", "--rows"],
      ["run", "set.csv", "--yes"],
      ["status"],
      ["models"],
      ["account"],
      ["--help"],
    ]) {
      const end = await run(place, args, {
        env: { ...service.env, FORCE_COLOR: "1", COLORTERM: "truecolor" },
      });
      expect(end, end.stderr).toMatchObject({ code: 0 });
      expect(stripVTControlCharacters(end.stdout), args[0]).toBe(end.stdout);
      expect(stripVTControlCharacters(end.stderr), args[0]).toBe(end.stderr);
      expect(end.stdout + end.stderr, args[0]).not.toContain("\r");
    }
  });

  test("with --json is one document on stdout", async () => {
    const { place, service } = await ready(2);
    for (const args of [
      ["plan", "set.csv"],
      ["run", "set.csv", "--yes"],
      ["status"],
      ["models"],
      ["account"],
    ]) {
      const end = await run(place, [...args, "--json"], service);
      expect(end, end.stderr).toMatchObject({ code: 0 });
      expect(end.stdout.trimEnd().split("\n"), args[0]).toHaveLength(1);
      expect(JSON.parse(end.stdout), args[0]).toBeTypeOf("object");
    }
  });

  test("with --quiet is nothing if all is well, and the summary alone if not", async () => {
    const { place, service } = await ready(2);
    const end = await run(place, ["run", "set.csv", "--yes", "--quiet"], service);
    expect(end).toMatchObject({ code: 0, stdout: "", stderr: "" });
    place.write("set.csv", sheet(3, "plain-image"));
    const capped = await run(place, ["run", "set.csv", "--yes", "--quiet", "--max-credits", "1"], service);
    expect(capped.code).toBe(6);
    expect(capped.stdout).toContain("2 of 3 items");
  });

  test("compares its forecast with the figures that the status has", async () => {
    const { place, service } = await ready(2);
    const forecast = async (...words: string[]) =>
      /^forecast +(.*; it took .*)$/m.exec((await run(place, words, service)).stdout)?.[1];
    const told = await forecast("run", "set.csv", "--yes");
    expect(told).toBeDefined();
    expect(await forecast("status")).toBe(told);
  });

  test("ends with the command that shows the pictures, as it works when typed", async () => {
    const place = newPlace();
    place.write("team/set.csv", sheet(1));
    place.write("team/.bulkgen/.keep", "");
    place.write("wrong.csv", `id,model,prompt\na,${cheapModel},[[moderation]]`);
    const failed = await run(place, ["run", "wrong.csv", "--sandbox", "--yes"]);
    expect(failed.stdout).not.toContain("gallery");
    const { stdout } = await run(place, ["run", "team/set.csv", "--sandbox", "--yes"]);
    const [, command = ""] = /^look +`bulkgen (.*)`$/m.exec(stdout) ?? [];
    expect(command).toBe("gallery --workspace team --sandbox");
    expect(await run(place, command.split(" "))).toMatchObject({
      code: 0,
      stdout: "team/sandbox-outputs/set/gallery.html: 1 file of job set\n",
    });
  });

  test("names commands that work where they are typed, also in errors and after orders", async () => {
    const place = newPlace();
    place.write("team/set.csv", sheet(2));
    place.write("team/.bulkgen/.keep", "");
    const call = (...words: string[]) => run(place, [...words, "--sandbox"]);
    expect((await call("run", "team/set.csv", "--yes", "--max-credits", "1")).code).toBe(6);
    const unknown = await call("export", "9", "--workspace", "team");
    expect(unknown.stderr).toContain("`bulkgen status --all --sandbox --workspace team` lists them");
    const paused = await call("pause", "--workspace", "team");
    const [, command = ""] = /continue with `bulkgen (.*)`$/m.exec(paused.stdout) ?? [];
    expect(command).toBe("resume 1 --sandbox --workspace team");
    expect(await run(place, command.split(" "))).toMatchObject({ code: 6 });
    const there = await run(place, ["pause", "--sandbox"], { cwd: join(place.folder, "team") });
    expect(there.stdout).toContain("continue with `bulkgen resume 1 --sandbox`\n");
  });

  test("for a reader that closes early is cut, and that is no error", async () => {
    // More than a pipe holds, so that the reader is gone before the end.
    const { place, service } = await ready(2_500);
    const end = await inShell(place, service, "plan set.csv --rows", "2>&1 | head -1");
    expect(end.stderr).toBe("code 0\n");
    expect(end.stdout).toContain("set");
  });

  test("whose reader has gone does not end a run that pays", async () => {
    const { place, service } = await ready(5);
    const end = await inShell(place, service, "run set.csv --yes --log-level debug", "2>&1 | head -1");
    expect(end.stderr).toBe("code 0\n");
    expectArchived(join(place.folder, "outputs", "set"), ids(5));
    expect(service.made).toHaveLength(5);
  });

  test("that cannot be written is missing, which is said once, and the run is not ended by it", async () => {
    const { place, service } = await ready(2);
    // What can only be read stands for a full disk, which not every machine can play.
    const run = await inShell(place, service, "run set.csv --yes --events --quiet", "1< /dev/null");
    const status = await inShell(place, service, "status", "1< /dev/null");
    const sheet = await inShell(place, service, "export", "1< /dev/null");
    for (const { stderr } of [run, status, sheet]) {
      expect(stderr.match(/^bulkgen: the results cannot be written to standard output: /gm)).toHaveLength(1);
      expect(stderr.match(/EBADF/g)).toHaveLength(1);
      expect(stderr).toMatch(/^code 1\n$/m);
    }
    expectArchived(join(place.folder, "outputs", "set"), ids(2));
  });
});

describe.concurrent("on a terminal of 60 columns", () => {
  test("no line of a run, a plan or a table is longer", async () => {
    const { place, service } = await ready(4);
    for (const args of [
      ["plan", "set.csv", "--rows"],
      ["run", "set.csv", "--yes"],
      ["run", "set.csv", "--yes"],
      ["status"],
      ["status", "--all"],
      ["models"],
      ["account"],
    ]) {
      const pays = args[0] === "run" && service.made.length === 0;
      const end = pays
        ? await startOnTerminal(place, 60, args, service).ended
        : await run(place, args, { ...service, columns: 60 });
      expect(end, end.stdout).toMatchObject({ code: 0 });
      const lines = stripVTControlCharacters(end.stdout + end.stderr).split(/[\r\n]+/);
      expect(
        lines.filter((line) => [...line].length > 60),
        args[0],
      ).toEqual([]);
      expect(lines.length).toBeGreaterThan(2);
    }
  });

  test("models of one category alone are listed by its name", async () => {
    const { place, service } = await ready(1);
    const images = await run(place, ["models", "image", "--json"], service);
    expect(JSON.parse(images.stdout)).toMatchObject({ total: 1, models: [{ category: "image" }] });
    const typo = await run(place, ["models", "images"], service);
    expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining("expected a category") });
  });

  test("NO_COLOR is obeyed", async () => {
    const { place, service } = await ready(1);
    const env = { ...service.env, NO_COLOR: "1" };
    const end = await run(place, ["models"], { env, columns: 60 });
    expect(end.code).toBe(0);
    expect(end.stdout).not.toContain(escapeCode);
    const coloured = await run(place, ["models"], { ...service, columns: 60 });
    expect(coloured.stdout).toContain(escapeCode);
  });

  test("a person is asked before anything is paid: no submits nothing and exits with 2, yes continues", async () => {
    const { place, service } = await ready(2);
    const refused = started(place, ["run", "set.csv"], { ...service, keyboard: true, columns: 60 });
    await refused.prints(/Spend 4 credits on 2 items .*\[y\/N\]/);
    refused.type("\n");
    const no = await refused.ended;
    expect(no, no.stdout).toMatchObject({ code: 2 });
    expect(service.count("POST generate")).toBe(0);

    const agreed = started(place, ["run", "set.csv"], { ...service, keyboard: true, columns: 60 });
    await agreed.prints(/Spend 4 credits on 2 items .*\[y\/N\]/);
    expect(service.count("POST generate")).toBe(0);
    // Thinking about it is no part of the run's time.
    await skippingClock.sleep(600_000);
    agreed.type("y\n");
    const yes = await agreed.ended;
    expect(yes, yes.stdout).toMatchObject({ code: 0 });
    expect(stripVTControlCharacters(yes.stdout)).toMatch(/^time +[\d.]+m?s$/m);
    expect(service.made).toHaveLength(2);
  });

  test("Ctrl-C at the question is no consent", async () => {
    const { place, service } = await ready(2);
    const asked = startOnTerminal(place, 60, ["run", "set.csv"], service);
    await asked.prints(/Spend 4 credits on 2 items .*\[y\/N\]/);
    asked.type("\u0003");
    const end = await asked.ended;
    expect(end, end.stdout).toMatchObject({ code: 130 });
    expect(end.stdout).toContain("bulkgen: interrupted. Nothing was submitted");
    expect(service.count("POST generate")).toBe(0);
  });

  test("Ctrl-D at the question is no consent", async () => {
    const { place, service } = await ready(2);
    const asked = started(place, ["run", "set.csv"], { ...service, keyboard: true, columns: 60 });
    await asked.prints(/Spend 4 credits on 2 items .*\[y\/N\]/);
    asked.type("\u0004");
    const end = await asked.ended;
    expect(end, end.stderr).toMatchObject({ code: 2 });
    expect(end.stderr).toContain("bulkgen: not confirmed; nothing was submitted");
    expect(service.count("POST generate")).toBe(0);
  });
});

test.each(["SIGTERM", "SIGHUP"] as const)(
  "one %s at the question ends it with 130, and nothing is submitted",
  async (name) => {
    const { place, service } = await ready(2);
    const asked = startOnTerminal(place, 60, ["run", "set.csv"], service);
    await asked.prints(/Spend 4 credits on 2 items .*\[y\/N\]/);
    process.kill(lockOwnerOf(place), name);
    const end = await asked.ended;
    expect(end, end.stdout).toMatchObject({ code: 130 });
    expect(end.stdout).toContain("bulkgen: interrupted. Nothing was submitted");
    expect(service.count("POST generate")).toBe(0);
  },
);

/** The process that holds the workspace: on a terminal it is not the one that was started. */
function lockOwnerOf(place: Place): number {
  return (JSON.parse(place.read(".bulkgen/run.lock.owner.json")) as { pid: number }).pid;
}

async function ready(items: number): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService({ balance: 100_000 });
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  return { place, service };
}

/** Runs the command in a shell whose own stderr shows the command's exit code. */
function inShell(place: Place, service: ScriptedService, words: string, rest: string) {
  const script = `exec 3>&2; { "$0" "$1" ${words}; echo "code $?" >&3; } ${rest}`;
  const env = { ...place.env, ...service.env };
  return startProcess("sh", ["-c", script, process.execPath, main], { cwd: place.folder, env }).ended;
}
