import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { commandList } from "../../src/cli/command-list.js";
import { configFiles, effectiveSettings, flagValues, runFlagsOf } from "../../src/cli/settings/settings.js";
import { commandVariables } from "../../src/notify/command-variables.js";
import { exportFlags, verifyFlags } from "../../src/options/archive.js";
import { approveFlags } from "../../src/options/orders.js";
import { runFlags } from "../../src/options/run.js";
import { ownVariables } from "../../src/shell.js";
import { newPlace, type Place, run } from "../e2e/command.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
  at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\nb,aurora-image-mini,a jug\n");
  at.write("bulkgen.config.yaml", "sandbox: true\n");
  mkdirSync(join(at.folder, ".bulkgen"));
});

/** Each line repeats the one before nine times. */
const bomb = [..."bcdefgh"]
  .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefg"[index]}`)}]\n`)
  .join("");

const own = (text: string) => {
  const path = join(at.root, "home", ".config", "bulkgen", "bulkgen.config.yaml");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
};

interface Doctor {
  settings: { name: string; value: string; from: string }[];
}

async function held(flags: string[] = [], env: Record<string, string> = {}) {
  const { stdout } = await run(at, ["doctor", "--json", ...flags], { env });
  const { settings } = JSON.parse(stdout) as Doctor;
  return Object.fromEntries(settings.map(({ name, value, from }) => [name, `${value} (${from})`]));
}

describe("settings", () => {
  test("flags win over the environment, it over the workspace's file, that over one's own, that over the default", async () => {
    const mine = own("max-credits: 3\nretries: 3\ndownloads: 3\nlanes: 3\n");
    at.write("bulkgen.config.yaml", "sandbox: true\nmax-credits: 2\nretries: 2\n");
    const file = join(at.folder, "bulkgen.config.yaml");
    expect(await held([], { BULKGEN_MAX_CREDITS: "1" })).toMatchObject({
      "max-credits": "1 (BULKGEN_MAX_CREDITS)",
      retries: `2 (${file}:3:1)`,
      downloads: `3 (${mine}:3:1)`,
      lanes: `3 (${mine}:4:1)`,
      "on-insufficient": "refuse (default)",
      "overdue-wait": "0m (default)",
    });
    const capped = (flags: string[], env: Record<string, string> = {}) =>
      run(at, ["plan", "set.csv", "--json", ...flags], { env }).then(
        ({ stdout }) => JSON.parse(stdout).money.maxCredits,
      );
    expect(await capped(["--max-credits", "9"], { BULKGEN_MAX_CREDITS: "1" })).toBe(9);
    expect(await capped([], { BULKGEN_MAX_CREDITS: "1" })).toBe(1);
    expect(await capped([])).toBe(2);
    at.write("bulkgen.config.yaml", "sandbox: true\n");
    expect(await capped([])).toBe(3);
  });

  test("a misspelled variable is refused, and variables with another purpose are not", async () => {
    const plan = (env: Record<string, string>) => run(at, ["plan", "set.csv"], { env });
    for (const [wrong, right] of [
      ["BULKGEN_MAX_CREDIT", "BULKGEN_MAX_CREDITS"],
      ["BULKGEN_BASEURL", "BULKGEN_BASE_URL"],
      ["BULKGEN_APIKEY", "BULKGEN_API_KEY"],
    ] as const)
      expect(await plan({ [wrong]: "5" })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`the variable ${wrong} is not a setting. Did you mean ${right}?`),
      });
    const others = [...commandVariables, ...Object.values(ownVariables), "BULKGEN_SITE", "BULKGENERAL_MODE"];
    const env = Object.fromEntries(others.map((name) => [name, ""]));
    expect(await plan(env)).toMatchObject({ code: 0, stderr: "" });
  });

  test("lists and maps are a flag given again and again, and paths are meant from the file's folder", async () => {
    at.write(
      "bulkgen.config.yaml",
      "sandbox: true\nparam: {aspect_ratio: '16:9'}\nout: made\nnotify: [mailto:a@b.c, {url: $HOOK, on: [failed]}]\n",
    );
    expect(await held()).toMatchObject({
      param: expect.stringContaining("aspect_ratio=16:9"),
      notify: expect.stringMatching(/^a@b\.c, \$HOOK \(/),
    });
    at.write("bulkgen.config.yaml", "sandbox: true\nout: made\n");
    mkdirSync(join(at.folder, "below"));
    const cwd = join(at.folder, "below");
    expect((await run(at, ["run", "../set.csv", "--yes", "--quiet"], { cwd })).code).toBe(0);
    expect(at.files().filter((file) => file.startsWith("here/made/set/"))).not.toEqual([]);
  });

  test("of two settings that cannot be used together, the one that is said first counts", async () => {
    own("publish-command: up\n");
    at.write("bulkgen.config.yaml", "sandbox: true\npublish: https://file.example\n");
    const command = { BULKGEN_PUBLISH_COMMAND: "up" };
    const publish = async (flags: string[], env: Record<string, string>) => {
      const given = flags.map((word) => ["--publish", word] as const);
      const files = await configFiles(at.folder, { HOME: join(at.root, "home") });
      const { publish: place, publishCommand } = runFlagsOf(given, files, env);
      return [place, publishCommand];
    };
    expect(await publish([], {})).toEqual(["https://file.example", undefined]);
    expect(await publish([], command)).toEqual([undefined, "up"]);
    expect(await publish(["https://flag.example"], command)).toEqual(["https://flag.example", undefined]);
    expect(Object.keys(await held([], command))).not.toContain("publish");
    await expect(publish([], { ...command, BULKGEN_PUBLISH: "https://a.example" })).rejects.toThrow(
      "BULKGEN_PUBLISH: publish cannot be used with publish-command.",
    );
  });

  test("a number is meant as it is written, like a number of a manifest", async () => {
    at.write(
      "bulkgen.config.yaml",
      "sandbox: true\njob: 007\nparam: {strength: 1.0, seed: 12345678901234567890}\n",
    );
    expect(await held()).toMatchObject({
      job: expect.stringMatching(/^007 /),
      param: expect.stringMatching(/^strength=1\.0, seed=12345678901234567890 /),
    });
  });

  test.each([
    [
      "max-credit: 2",
      /bulkgen\.config\.yaml:1:1: "max-credit" is not a setting\. Did you mean max-credits\?/,
    ],
    ["sandbox: true\nmax-credits: much", /yaml:2:1: max-credits: expected 0 or more credits/],
    ["skip-invalid: perhaps", /yaml:1:1: skip-invalid: expected true or false, got "perhaps"/],
    ["sandbox: true\nout:", /yaml:2:1: out: expected a path, got nothing/],
    ["yes: true", /"yes" applies to one call only\. Give it as a flag/],
    ["api-key: svc_1", /a key does not belong in this file/],
    ["notify-command: rm -rf .", /notify-command is read from your own settings only/],
    ["api-key-file: ../key", /api-key-file is read from your own settings only/],
    ["- a list", /expected settings such as "max-credits: 200"/],
    ["a: [", /yaml:\d+:\d+: /],
    ["sandbox: true\nsandbox: true", /^bulkgen: \S+yaml:2:1: expected YAML, .* got two fields of one name$/m],
  ])("%j is refused with its place, and nothing is made", async (text, message) => {
    at.write("bulkgen.config.yaml", text);
    const { code, stderr } = await run(at, ["run", "set.csv", "--sandbox", "--yes"]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  test.each([
    ["aliases without end", `a: &a [x,x,x,x,x,x,x,x,x]\n${bomb}`, /yaml:[2-9]:1: too many aliases/],
    [
      "an alias of itself",
      "notify: &a [{url: *a}]\n",
      /yaml:1:1: too many aliases \(\*name\), or one that contains itself/,
    ],
    [
      "values nested without end",
      `notify: ${"[".repeat(20_000)}\n`,
      /yaml:1:1: values are too deeply nested/,
    ],
  ])("%s are refused with file and place", async (_, text, message) => {
    at.write("bulkgen.config.yaml", text);
    const { code, stderr } = await run(at, ["plan", "set.csv", "--sandbox"]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  test("a variable that its flag would not take is refused by its name", async () => {
    const { code, stderr } = await run(at, ["run", "set.csv"], { env: { BULKGEN_ON_INSUFFICIENT: "beg" } });
    expect(stderr).toMatch(
      /BULKGEN_ON_INSUFFICIENT: on-insufficient: expected one of refuse, fit, stop, wait/,
    );
    expect(code).toBe(2);
  });

  test("only flags of run are read from variables and files, and a flag of another command that is only called like one is not", async () => {
    at.write("bulkgen.config.yaml", "repair: true\nif-locked: wait\n");
    const files = await configFiles(at.folder, { XDG_CONFIG_HOME: at.root });
    const environment = { BULKGEN_FAILED: "2", BULKGEN_ALL: "1", BULKGEN_TOLERANCE: "5" };
    expect(flagValues(runFlags, {}, files, environment)).toMatchObject({ repair: true, ifLocked: "wait" });
    expect(flagValues(exportFlags, {}, files, environment)).not.toHaveProperty("failed");
    expect(flagValues(verifyFlags, {}, files, environment)).not.toHaveProperty("repair");
    const approve = flagValues(approveFlags, {}, files, environment);
    expect(approve).toMatchObject({ ifLocked: "order" });
    expect(approve).not.toHaveProperty("all");
    const { flags = {} } = commandList.find(({ name }) => name === "run") ?? {};
    expect(flagValues(flags, {}, files, environment)).toMatchObject({ tolerance: 0 });
  });

  test("a switch that is turned off stays off where the flags are kept, as in a schedule", () => {
    expect(runFlagsOf([["--no-work"]], [], {})).toMatchObject({ work: false });
    expect(runFlagsOf([["--work"]], [], { BULKGEN_WORK: "0" })).toMatchObject({ work: true });
  });

  test("a message about your own settings names the file that is read", async () => {
    at.write("bulkgen.config.yaml", "notify-command: true\n");
    await expect(configFiles(at.folder, { XDG_CONFIG_HOME: "/x" })).rejects.toThrow(
      "BULKGEN_NOTIFY_COMMAND, or /x/bulkgen/bulkgen.config.yaml), because",
    );
  });

  test.each(["{url: https://x}", '{"url": 5}', '{"url": "{"}', "{oops"])(
    "a target of notifications that cannot be read is not shown: %s",
    (target) => {
      const settings = effectiveSettings([], [], { BULKGEN_NOTIFY: target });
      expect(settings).toContainEqual({ name: "notify", value: "…", from: "BULKGEN_NOTIFY" });
    },
  );

  test("P26: an address set by the folder does not get the user's own key before they agree", async () => {
    at.write("bulkgen.config.yaml", "base-url: http://127.0.0.1:1\n");
    const env = { BULKGEN_API_KEY: `svc_${"a".repeat(32)}` };
    const { code, stderr } = await run(at, ["account"], { env });
    expect(stderr).toContain(
      "the key from BULKGEN_API_KEY would be sent to http://127.0.0.1:1, the address set in",
    );
    expect(code).toBe(2);
  });

  test("the secrets of notifications are not shown", async () => {
    own("smtp-url: smtp://ada:s3cret@mail.example\nnotify: https://hooks.slack.com/services/s3cret\n");
    const { stdout } = await run(at, ["doctor"]);
    expect(stdout).toContain("hooks.slack.com");
    expect(stdout).toContain("mail.example");
    expect(stdout).not.toContain("s3cret");
  });
});
