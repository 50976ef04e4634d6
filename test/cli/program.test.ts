import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { commandGroups, commandList, leadingCommands } from "../../src/cli/command-list.js";
import { commandHelp, programHelp } from "../../src/cli/help.js";
import { parseLine } from "../../src/cli/parse.js";
import { newPlace, type Place, run, spawned } from "../e2e/command.js";
import { ManualClock } from "../manual-clock.js";
import { allCommands } from "./all-commands.js";

let at: Place;
beforeEach(() => {
  at = newPlace();
  at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\n");
});

describe("help", () => {
  test("is what bulkgen prints without a command, grouped by what people want to do", async () => {
    const bare = await run(at, []);
    expect(bare).toMatchObject({ code: 0, stderr: "" });
    for (const group of commandGroups) expect(bare.stdout).toContain(`\n${group}:\n`);
    for (const { name, group } of commandList) expect([name, group]).toEqual([name, expect.any(String)]);
    expect((await run(at, ["help"])).stdout).toBe(bare.stdout);
  });

  test.each(allCommands(commandList).map(([path]) => path))(
    "bulkgen help %s %s %s is the help of that command",
    async (...path) => {
      const words = path.filter((word) => typeof word === "string");
      const asked = await run(at, ["help", ...words]);
      expect(asked).toMatchObject({ code: 0, stdout: (await run(at, [...words, "--help"])).stdout });
      expect(asked.stdout).toContain(`Usage: bulkgen ${words.join(" ")}`);
    },
  );

  test("of an unknown command says so", async () => {
    const { code, stderr } = await run(at, ["help", "runn"]);
    expect([code, stderr]).toEqual([
      2,
      'bulkgen: unknown command "runn". Did you mean run? See `bulkgen --help`.\n',
    ]);
  });

  test.each([60, 80])("fits a terminal of %i columns", (columns) => {
    const texts = allCommands(commandList).map(([path]) => {
      const commands = leadingCommands(
        commandList,
        path.filter((word) => typeof word === "string"),
      );
      const { examples = [] } = commands.at(-1) ?? {};
      return commandHelp(commands, columns)
        .split("\n")
        .filter((line) => !examples.includes(line.trim()));
    });
    const lines = [...texts.flat(), ...programHelp(commandList, columns).split("\n")];
    expect(lines.filter((line) => line.length > columns)).toEqual([]);
  });

  test("gives examples that can be typed", () => {
    const examples = allCommands(commandList).flatMap(([path, { examples: lines = [] }]) =>
      lines.map((line) => [path, line] as const),
    );
    expect(examples.length).toBeGreaterThan(20);
    for (const [path, line] of examples) {
      const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      const parsed = parseLine(commandList, words.slice(1));
      expect([line, parsed.path.slice(0, path.length).map(({ name }) => name)]).toEqual([line, path]);
    }
  });
});

describe("the command line", () => {
  test.each([
    [["runn"], 'unknown command "runn". Did you mean run?'],
    [["run", "set.csv", "--max-credit", "5"], "unknown option --max-credit. Did you mean --max-credits?"],
    [["status", "-x"], "unknown option -x. See"],
    [
      ["schedule", "list", "--sandbox"],
      "unknown option --sandbox. `bulkgen schedule add` and `bulkgen schedule edit` take it. See",
    ],
    [
      ["reject", "cup", "--again", "--prompt", "a blue cup"],
      "unknown option --prompt. `bulkgen reject ITEM`, then `bulkgen redo ITEM --prompt TEXT` makes it anew with another prompt. See",
    ],
    [
      ["reject", "cup", "--param", "seed=1"],
      "unknown option --param. `bulkgen reject ITEM`, then `bulkgen redo ITEM --param KEY=VALUE` makes it anew with another param. See",
    ],
    [["status", "--rows"], "unknown option --rows. `bulkgen plan` takes it. See"],
    [
      ["run"],
      'expected manifest (CSV, XLSX, JSON, JSONL or YAML file with the rows; a folder or a "pattern" of files as rows; - reads standard input)',
    ],
    [
      ["plan", "set.csv", "more"],
      'unexpected argument "more"; expected only one manifest, or a pattern in quotes.',
    ],
    [["sandbox", "keyz"], 'unexpected argument "keyz". Did you mean keys?'],
    [
      ["plan", "set.csv", "--max-credits", "much"],
      "--max-credits: expected 0 or more credits, with at most six decimals",
    ],
    [["plan", "set.csv", "--max-credits"], "--max-credits: expected a value, got none."],
    [["plan", "set.csv", "--rows=yes"], "--rows: expected no value."],
    [["plan", "set.csv", "-o"], "--save: expected a value, got none."],
    [["plan", "set.csv", "--max-credits", "9999999999"], "--max-credits: expected at most 9000000000"],
    [["dashboard", "--port", "70000"], "--port: expected a port from 0 to 65535, got 70000"],
    [["schedule", "start", "--port", "70000"], "--port: expected a port from 0 to 65535, got 70000"],
    [["schedule", "lst"], 'unexpected argument "lst". Did you mean list? See'],
    [
      ["status", "first"],
      'run: expected the number of a run, as `bulkgen status --all` lists them, got "first".',
    ],
    [["schedule", "add", "nightly", "set.csv"], "--cron <line> is missing."],
    [["migrate"], "expected a move between files and a database: --from .bulkgen/state.db --to postgres://"],
    ...["poll", "submit,archive", "archive,walk", ""].map((parts): [string[], string] => [
      ["worker", "--only", parts],
      `--only: expected archive, or submit,poll (whoever submits also polls), got ${JSON.stringify(parts)}`,
    ]),
    [["run", "set.csv", "--fresh", "--edition", "may"], "--fresh cannot be used with --edition."],
    ...[
      ["run", "", "--model", "aurora-image"],
      ["plan", ""],
      ["trust", ""],
      ["adopt", "photos", ""],
      ["schedule", "add", "nightly", "", "--cron", "0 3 * * *"],
      ["schedule", "edit", "nightly", " "],
    ].map((words): [string[], string] => [
      words,
      "manifest: expected a value, got an empty text. A shell variable without a value leaves one.",
    ]),
    [["adopt", "", "set.csv"], "folder: expected a value, got an empty text."],
    [["run", "set.csv", "--workspace", ""], "--workspace: expected a path, got nothing."],
    [["export", "--to="], "--to: expected a path, got nothing."],
    [["run", "set.csv", "--edition", " "], "--edition: expected a name, got nothing."],
    [
      ["run", "set.csv", "--publish", "https://a.example", "--publish-command", "up"],
      "--publish cannot be used with --publish-command.",
    ],
    [["doctor", "--rebuild", "--separate"], "--separate cannot be used with --rebuild."],
    [["export", "--files-only"], "--files-only is for --zip. Add --zip <file>."],
    [["export", "--sidecars", "txt", "--to", "a.csv"], "--sidecars is for --zip. Add --zip <file>."],
    [["sandbox", "account", "--all", "--credits", "9"], "--all cannot be used with --credits."],
    [["resolve", "a", "--skip", "--refetch"], "--refetch cannot be used with --skip."],
    [["--json", "status"], "expected a command before --json."],
  ])("refuses %j and names the mistake", async (args, message) => {
    const { code, stdout, stderr } = await run(at, args);
    expect(stderr).toContain(`bulkgen: ${message}`);
    expect(stderr).toMatch(/ See `bulkgen .*--help`\.\n$/);
    expect(stderr).not.toContain("?.");
    expect(code).toBe(2);
    if (args.includes("--json")) expect(JSON.parse(stdout)).toMatchObject({ exit: 2, reason: "usage" });
    else expect(stdout).toBe("");
    expect(at.files()).toEqual(["here/set.csv"]);
  });

  test.each([
    ["takes no downloads refuses a number of them", "submit,poll", "downloads"],
    ["submits nothing refuses a number of lanes", "archive", "lanes"],
  ])("a worker that %s on its line, not in the settings", async (_, only, flag) => {
    const words = ["worker", "--sandbox", "--only", only];
    const refused = await run(at, [...words, `--${flag}`, "3"]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`--${flag} cannot be used with --only ${only}`);
    const set = await run(at, words, { env: { [`BULKGEN_${flag.toUpperCase()}`]: "3" } });
    expect(set.stderr).toContain("a fleet shares a database");
  });

  test.each(["mcp", "dashboard"])("%s is not served of a folder that is not there", async (command) => {
    const { code, stderr } = await run(at, [command, "--workspace", "nowhere"]);
    expect([code, stderr]).toEqual([
      2,
      `bulkgen: --workspace: there is no folder ${join(at.folder, "nowhere")}. Nothing was started.\n`,
    ]);
  });

  test("takes flags before the name of a subcommand, also where only that one has them", () => {
    const parsed = (line: string) => {
      const { path, given, args } = parseLine(commandList, line.split(" "));
      return [path.map(({ name }) => name).join(" "), given, args];
    };
    expect(parsed("schedule --json list")).toEqual(["schedule list", [["--json"]], {}]);
    expect(parsed("sandbox --json keys list")).toEqual(["sandbox keys list", [["--json"]], {}]);
    expect(parsed("sandbox keys --json create a")).toEqual([
      "sandbox keys create",
      [["--json"]],
      { name: "a" },
    ]);
    expect(parsed("sandbox --state keys keys list")).toEqual([
      "sandbox keys list",
      [["--state", "keys"]],
      {},
    ]);
    expect(() => parsed("schedule --fresh list")).toThrow("unknown option --fresh.");
  });

  test("takes words after -- as arguments, and values that start with a dash after =", async () => {
    at.write("--set.csv", "id,prompt\na,\n");
    const { code, stdout } = await run(at, [
      "plan",
      "--sandbox",
      "--rows",
      "--model=aurora-image-mini",
      "--prompt=- a cup",
      "--",
      "--set.csv",
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain("- a cup");
  });

  test("takes the last of a flag that is given twice, and all of one that may be repeated", async () => {
    at.write("set.csv", "id,model,prompt\na,aurora-image-mini,a cup\nb,aurora-image-mini,a jug\n");
    const plan = async (...flags: string[]) =>
      JSON.parse((await run(at, ["plan", "set.csv", "--sandbox", "--json", ...flags])).stdout);
    expect((await plan("--max-credits", "3", "--max-credits", "4")).money.maxCredits).toBe(4);
    expect((await plan("--filter", "id=*", "--filter", "prompt=a jug")).items).toHaveLength(1);
  });

  test("turns a switch off with --no-", async () => {
    await run(at, ["sandbox", "keys", "create", "first", "--state", "service.db"]);
    const account = async (...flags: string[]) =>
      JSON.parse((await run(at, ["sandbox", "account", "--state", "service.db", "--json", ...flags])).stdout);
    expect((await account("--cancel-at-period-end")).subscription.cancel_at_period_end).toBe(true);
    expect((await account("--no-cancel-at-period-end")).subscription.cancel_at_period_end).toBe(false);
    expect((await account()).subscription.cancel_at_period_end).toBe(false);
  });
});

describe("help", () => {
  test("leads with the commands that are used most", async () => {
    const { code, stdout } = await run(at, ["--help"]);
    expect(code).toBe(0);
    const [commands = ""] = stdout.split("\n\nOptions:");
    const names = [...commands.matchAll(/^ {2}([a-z]+) +\S/gm)].map(([, name]) => name);
    expect(names.slice(0, 6)).toEqual(["init", "plan", "run", "status", "redo", "export"]);
    expect(names).toEqual(commandList.map(({ name }) => name));
  });

  test("of a command lists its arguments and flags, wherever --help stands", async () => {
    const first = await run(at, ["run", "--help"]);
    expect(first.stdout).toMatch(/^Usage: bulkgen run \[options\] <manifest>\n/);
    expect(first.stdout).toMatch(/^ {2}--max-credits <n> +spend at most this many credits in this run$/m);
    expect(await run(at, ["run", "set.csv", "--yes", "-h"])).toEqual(first);
  });

  test("is what a command without its subcommand answers, on stderr", async () => {
    const { code, stdout, stderr } = await run(at, ["schedule"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^Usage: bulkgen schedule \[options\] <command>\n/);
  });

  test("the built command prints the same", async () => {
    for (const args of [["--help"], ["status", "--all"]])
      expect(await spawned(at, args)).toEqual(await run(at, args));
  });
});

describe("shell completion", () => {
  const next = async (...words: string[]) =>
    (await run(at, ["--get-completions", ...words])).stdout.split("\n").filter((word) => word !== "");

  test("offers commands, flags and the values of a flag, and nothing where a file is meant", async () => {
    expect(await next("re")).toEqual(["redo", "reject", "report", "resume", "retry", "resolve"]);
    expect(await next("sandbox", "keys", "")).toEqual(["create", "list", "revoke"]);
    expect(await next("run", "set.csv", "--max-c")).toEqual([
      "--max-credits",
      "--max-credits-per-model",
      "--max-credits-per-day",
    ]);
    expect(await next("run", "--order", "")).toEqual(["priority", "sheet", "cheapest"]);
    expect(await next("run", "se")).toEqual([]);
  });

  test("offers help, what it can be about, and the shells", async () => {
    expect(await next("help")).toEqual(["help"]);
    expect(await next("help", "m")).toEqual(["mcp", "models", "migrate", "manifests", "money"]);
    expect(await next("help", "sandbox", "")).toEqual(["keys", "account"]);
    expect(await next("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  test("prints a script for the shell in SHELL, or the one that is named", async () => {
    const script = async (args: string[], shell: string) =>
      (await run(at, ["completion", ...args], { env: { SHELL: shell } })).stdout;
    expect(await script([], "/bin/zsh")).toMatch(
      /^#compdef bulkgen[\s\S]*autoload -Uz compinit[\s\S]*compdef _bulkgen/,
    );
    expect(await script([], "/bin/bash")).toContain("complete -o filenames -F _bulkgen_completions bulkgen");
    expect(await script(["bash"], "/bin/zsh")).toContain("complete -o filenames");
    expect(await script(["fish"], "/bin/bash")).toContain(
      "complete -c bulkgen -f -a '(__bulkgen_completions)'",
    );
    expect(await script([], "/usr/bin/fish")).toBe(await script(["fish"], ""));
    const { code, stderr } = await run(at, ["completion", "csh"]);
    expect([code, stderr]).toEqual([2, 'bulkgen: shell: expected bash, zsh or fish, got "csh"\n']);
    expect((await run(at, ["completion", "toString"])).code).toBe(2);
  });
});

test("two calls in one process do not influence each other", async () => {
  const other = newPlace();
  other.write("set.csv", "id,model,prompt\nb,aurora-image-mini,a jug\n");
  const clock = new ManualClock(Date.UTC(2030, 0, 1));
  const [here, there] = await Promise.all([
    run(at, ["plan", "set.csv", "--rows", "--json"], {
      env: { BULKGEN_SANDBOX: "1", BULKGEN_MAX_CREDITS: "5" },
    }),
    run(other, ["plan", "set.csv", "--sandbox", "--json"], { clock }),
  ]);
  const [mine, its] = [JSON.parse(here.stdout), JSON.parse(there.stdout)];
  expect([mine.money.maxCredits, its.money.maxCredits]).toEqual([5, null]);
  expect([mine.items[0].rowId, its.items[0].rowId]).toEqual(["a", "b"]);
});
