import { existsSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { pages, sections, sectionsIn, withSections } from "../scripts/readme-sections.mjs";
import { anchorOf } from "../scripts/site.mjs";
import { errorTable } from "../src/api/errors.js";
import { type CommandDefinition, commandList } from "../src/cli/command-list.js";
import { parseLine } from "../src/cli/parse.js";
import { exitCode, exitCodes } from "../src/core/exit.js";
import { transitionList } from "../src/core/item.js";
import { type StopKind, stopTable } from "../src/core/stop.js";
import { nameOf } from "../src/options/definition.js";
import { databaseAddress } from "../src/store/postgres/address.js";
import { wordsOf } from "./e2e/shown.js";
import { folders, ranks } from "./tidy/ranks.js";

const texts = new Map(pages().map((page) => [page, readFileSync(page, "utf8")]));
const readme = texts.get("README.md") ?? "";
const made = await sections();

test("README.md has fewer than 400 lines", () => {
  expect(readme.split("\n").length).toBeLessThan(400);
});

test("every generated section is on exactly one page", () => {
  const placed = [...texts.values()].flatMap(sectionsIn);
  expect(placed.toSorted()).toEqual(Object.keys(made).toSorted());
});

describe.each([...texts])("%s", (page, text) => {
  test("has the sections that the code makes; `npm run docs` rewrites them", () => {
    expect(text).toBe(withSections(text, made, page));
  });

  test("has rows in every table", () => {
    const empty = [...text.matchAll(/^\|.*\|\n\|[-:| ]+\|\n(?!\|)/gm)].map(([table]) => table);
    expect(empty).toEqual([]);
  });

  test("links only to files and headings that exist", () => {
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:)([^)]+)\)/g)) {
      const [file = "", heading] = target.split("#");
      const path = file === "" ? page : posix.join(posix.dirname(page), file);
      expect(existsSync(path), target).toBe(true);
      if (heading !== undefined) expect(anchorsOf(readFileSync(path, "utf8")), target).toContain(heading);
    }
  });

  test("shows only command lines that the command can read", () => {
    for (const line of commandLines(typedOf(text))) expect(readingOf(line), line).toBe("read");
    // Within a sentence a command may be named without what it needs.
    for (const line of commandLines(spansOf(text)))
      expect(readingOf(line), line).toMatch(/^read$|, got (none|nothing)|is missing/);
  });

  test("names only flags and commands that exist", () => {
    const ours = text.replace(/`npm [^`]*`|`UPDATE_GOLDEN[^`]*`/g, "");
    const known = ["--help", "--version", ...commandList.flatMap(allFlags)];
    for (const [flag] of ours.matchAll(/(?<![\w-])--[a-z]+(-[a-z]+)*/g)) expect(known).toContain(flag);
    const paths = commandList.flatMap((command) => pathsOf(command));
    for (const [, words = ""] of codeOf(ours).matchAll(/^(?:\$ )?(?:npx )?bulkgen ((?:[a-z]+ ?)+)/gm)) {
      const [first = "", second = ""] = words.trim().split(" ");
      expect(paths).toContain(first);
      if (paths.some((path) => path.startsWith(`${first} `)) && second !== "")
        expect(paths).toContain(`${first} ${second}`);
    }
  });
});

test("the compose file of a fleet starts workers by a command line and an address that can be read", () => {
  const [, text = ""] =
    /^```yaml\n(# compose\.yaml[\s\S]*?)^```$/m.exec(texts.get("docs/fleet.md") ?? "") ?? [];
  const { command, environment, depends_on: needs } = parse(text).services.worker;
  const [, line = ""] = /&& exec (bulkgen .*)"$/.exec(command) ?? [];
  expect(readingOf(line)).toBe("read");
  const url = environment.BULKGEN_DATABASE_URL.replace(/\$\{\w+\}/, "secret");
  expect(databaseAddress(url, { sandbox: false }).shown).toContain("@database/bulkgen");
  expect(Object.keys(parse(text).services)).toEqual([...Object.keys(needs), "worker"]);
});

/** A command line by itself, or in a crontab, or in a `case` of a script. */
const lineOf = /^\s*(?:\$ |[-*0-9 ]+ cd \S+ && |\d+\) )?(?:npx )?(bulkgen [a-z].*)$/;

/** The command lines in code, with a value in place of each name in capitals such as RUN or N. */
function commandLines(code: string): string[] {
  return code
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => lineOf.exec(line)?.[1] ?? "")
    .filter((line) => line !== "")
    .map((line) =>
      line
        .replace(/ +# .*$/, "")
        .replace(/ (>|\||\|\||&&|;;)( .*)?$/, "")
        .replace(/ \[[A-Z]+\]/g, "")
        .replace(/\bRUN\b/g, "3")
        .replace(/\bN\b/g, "5"),
    );
}

/** What the command makes of its line: `read`, or its complaint. */
function readingOf(line: string): string {
  try {
    parseLine(commandList, wordsOf(line).slice(1));
    return "read";
  } catch (error) {
    return String(error);
  }
}

/** What a page shows as code: its blocks, and each span on a line of its own. */
function codeOf(text: string): string {
  return `${blocksOf(text)}\n${spansOf(text)}`;
}

function blocksOf(text: string): string {
  return [...text.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block).join("\n");
}

/** The blocks without what commands print in them. */
function typedOf(text: string): string {
  const blocks = [...text.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  return blocks
    .map((block) => (block.startsWith("$ ") ? (block.match(/^\$ (?:.*\\\n)*.*$/gm) ?? []).join("\n") : block))
    .join("\n");
}

function spansOf(text: string): string {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "");
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => span.replaceAll("\n", " ")).join("\n");
}

/** The anchors of a page's headings; a comment in a code block is none. */
function anchorsOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, "");
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchorOf(heading));
}

function allFlags({ flags = {}, subcommands = [] }: CommandDefinition): string[] {
  const own = Object.entries(flags).flatMap(([flag, { negatable }]) =>
    negatable ? [`--${nameOf(flag)}`, `--no-${nameOf(flag)}`] : [`--${nameOf(flag)}`],
  );
  return [...own, ...subcommands.flatMap(allFlags)];
}

/** A command and those below it, such as `sandbox keys list`. */
function pathsOf({ name, subcommands = [] }: CommandDefinition): string[] {
  return [name, ...subcommands.flatMap(pathsOf).map((path) => `${name} ${path}`)];
}

describe("the generated sections", () => {
  test("name every error, every exit code and every transition of an item", () => {
    for (const { code } of errorTable) expect(made["errors"]).toContain(`\`${code}\``);
    for (const { code, meaning } of exitCodes) expect(made["exits"]).toContain(`| ${code} | ${meaning} |`);
    for (const { from, event, to } of transitionList) {
      expect(made["states"]).toMatch(
        new RegExp(`^ {4}${from} --> ${to}: (.* / )?${event.replaceAll("_", " ")}( / |$)`, "m"),
      );
    }
  });

  test("show the help, and every flag of every command", () => {
    expect(made["help"]).toContain("Usage: bulkgen");
    expect(made["run-flags"]).toContain("| `--max-credits <n>` |");
    const shown = `${made["run-flags"]}${made["other-flags"]}`;
    for (const flag of commandList.flatMap(allFlags)) expect(shown).toMatch(new RegExp(`${flag}[\` ,]`));
  });

  test("list what a settings file may set, and nothing that belongs to one call", () => {
    expect(made["settings"]).toContain("| `max-credits` | `BULKGEN_MAX_CREDITS` | any |");
    expect(made["settings"]).toContain("| `notify-command` | `BULKGEN_NOTIFY_COMMAND` | your own only |");
    expect(made["settings"]).not.toContain("`yes`");
  });
});

describe("what happens when", () => {
  const section = readme.split("## What happens when…")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => /^\| [^-]/.test(line));
  const rowOf = (what: string) => rows.find((row) => row.startsWith(`| ${what}`)) ?? `no row for ${what}`;

  /** The row about each reason to end a run. */
  const stops: Record<StopKind, string> = {
    interrupted: "you press Ctrl-C",
    paused: "you want it to stop",
    cancelled: "you do not want the rest",
    key: "the key was revoked",
    subscription: "the key was revoked or the subscription ended",
    unreachable: "the service cannot be reached",
    credits: "the account is out of credits",
    cap: "the cap of",
    price: "the service charges more than the price",
    keep: "the balance would fall below",
    daily: "the credits of a day",
    failures: "as many items fail",
    time: "the time of",
    day: "the day's requests",
    reserve: "the day's requests",
    silence: "the service answers 429",
    collect: "files are lost",
    unread: "the key's counters cannot be read",
    agreement: "the key was charged for requests",
  };

  test.each(Object.entries(stops))("says how the stop %s ends, with its exit code", (kind, what) => {
    const { exit } = stopTable[kind as StopKind];
    expect(rowOf(what)).toContain(`exit ${exitCode(exit)}`);
  });

  test.each([
    ["failed", "a task fails"],
    ["overdue", "a task takes longer"],
    ["unknown", "a paid request was not answered"],
    ["held", "it was charged"],
  ] as const)("says what becomes of items that are left %s, with the exit code", (state, what) => {
    const exit = { failed: "failed", overdue: "unfinished", unknown: "unfinished", held: "held" } as const;
    expect(rowOf(what)).toContain(`exit ${exitCode(exit[state])}`);
  });

  test.each([
    ["cap", "a generation is charged more"],
    ["usage", "the workspace's database is lost"],
    ["usage", "the database was written by a newer"],
    ["usage", "the workspace was copied"],
    ["locked", "another run is using"],
  ] as const)("says what ends as %s: %s", (exit, what) => {
    expect(rowOf(what)).toContain(`exit ${exitCode(exit)}`);
  });
});

describe("docs/architecture.md", () => {
  const text = texts.get("docs/architecture.md") ?? "";

  test("names only paths that exist", () => {
    const paths = [...text.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path = ""]) => path);
    expect(paths.length).toBeGreaterThan(40);
    for (const path of paths) expect(existsSync(path), path).toBe(true);
  });

  test("names functions and classes that are in the files it names", () => {
    const named = [...text.matchAll(/`(\w+)` in\s+`(src\/[^`]+)`/g)];
    expect(named.length).toBeGreaterThan(15);
    for (const [, name = "", path = ""] of named)
      expect(readFileSync(path, "utf8"), path).toMatch(new RegExp(`^export .*\\b${name}\\b`, "m"));
  });

  test("has the rooms, their ranks and the order of their folders as the tidy test checks them", () => {
    const rooms = [...text.matchAll(/^\| (\d+) \| `([^`]+)` \| .* \| (.*)\|$/gm)].map(
      ([, rank, room = "", order = ""]) => ({ rank: Number(rank), room, order: codes(order) }),
    );
    const real = Object.entries(ranks)
      .filter(([room]) => existsSync(`src/${room}`))
      .map(([room, rank]) => ({ rank, room, order: folders[room] ?? [] }));
    expect(rooms).toEqual(real);
    const aside = ["service", "sandbox", "providers", "serve"];
    for (const room of aside) {
      const order = new RegExp(`\\s\`${room}\` is [^:]*:((?:[^.]|\`\\.\`)*?)\\.\\s`).exec(text)?.[1] ?? "";
      expect(codes(order), room).toEqual(folders[room]);
    }
    const all = [...rooms.map(({ room }) => room), ...aside];
    expect(readdirSync("src").toSorted()).toEqual(all.toSorted());
  });
});

function codes(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

describe("the comparison", () => {
  const text = "# A\n<!-- begin: errors -->\nold\n<!-- end: errors -->\nmore\n";

  test("finds a section that is out of date, and changes nothing else", () => {
    expect(withSections(text, { errors: "new $& $1" })).toBe(text.replace("old", () => "new $& $1"));
  });

  test.each([
    ["a section that nothing makes", text, {}, "README.md names a section that nothing makes: errors"],
    [
      "a section without an end",
      "<!-- begin: errors -->\n",
      { errors: "a" },
      "README.md: section errors has no end",
    ],
  ])("refuses %s", (_, page, generated, message) => {
    expect(() => withSections(page, generated as Record<string, string>)).toThrow(message);
  });
});
