import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sections, withSections } from "../scripts/readme-sections.mjs";
import { errorTable } from "../src/api/errors.js";
import { type CommandDefinition, commandList } from "../src/cli/command-list.js";
import { nameOf } from "../src/cli/flags/definition.js";
import { exitCode, exitCodes } from "../src/core/exit.js";
import { transitionList } from "../src/core/item.js";
import { type StopKind, stopTable } from "../src/core/stop.js";

const readme = readFileSync("README.md", "utf8");
const made = await sections();

describe("README.md", () => {
  test("says what the code says; `npm run docs` writes its sections anew", () => {
    expect(readme).toBe(withSections(readme, made));
  });
});

describe("the generated sections", () => {
  test("name every error, every exit code and every step of an item's life", () => {
    for (const { code } of errorTable) expect(made["errors"]).toContain(`\`${code}\``);
    for (const { code, meaning } of exitCodes) expect(made["exits"]).toContain(`| ${code} | ${meaning} |`);
    for (const { from, event, to } of transitionList) {
      expect(made["states"]).toMatch(
        new RegExp(`^ {4}${from} --> ${to}: (.* / )?${event.replaceAll("_", " ")}( / |$)`, "m"),
      );
    }
  });

  test("show the help of the built command and the flags of run", () => {
    expect(made["help"]).toContain("Usage: bulkgen");
    expect(made["run-flags"]).toContain("| `--yes` |");
    expect(made["run-flags"]).toContain("| `--max-credits <n>` |");
  });
});

function allFlags({ flags = {}, subcommands = [] }: CommandDefinition): string[] {
  return [...Object.keys(flags).map((flag) => `--${nameOf(flag)}`), ...subcommands.flatMap(allFlags)];
}

describe("what happens when", () => {
  const section = readme.split("## What happens when…")[1]?.split("\n### ")[0] ?? "";
  const rows = section.split("\n").filter((line) => /^\| [^-]/.test(line));
  const rowOf = (what: string) => rows.find((row) => row.startsWith(`| ${what}`)) ?? `no row for ${what}`;

  /** The row that tells of each reason to end a run. */
  const stops: Record<StopKind, string> = {
    interrupted: "Ctrl-C",
    paused: "you want it to stop",
    cancelled: "you do not want the rest",
    key: "key revoked",
    subscription: "key revoked, subscription ended",
    unreachable: "service out of reach",
    credits: "out of credits",
    cap: "the cap of",
    keep: "the balance would fall below",
    daily: "the credits of a day",
    failures: "as many fail",
    time: "the time of",
    day: "the day's requests",
    reserve: "the day's requests",
    silence: "the service answers 429",
    collect: "files are lost",
    unread: "… and its counters cannot be read",
  };

  test.each(Object.entries(stops))("tells of the stop %s with its exit code", (kind, what) => {
    const { exit } = stopTable[kind as StopKind];
    expect(rowOf(what)).toContain(`exit ${exitCode(exit)}`);
  });

  test.each([
    ["failed", "a task fails"],
    ["overdue", "a task takes longer"],
    ["unknown", "a paid request was not answered"],
    ["held", "… and it was charged"],
  ] as const)("tells of items that are left %s with their exit code", (state, what) => {
    const exit = { failed: "failed", overdue: "unfinished", unknown: "unfinished", held: "held" } as const;
    expect(rowOf(what)).toContain(`exit ${exitCode(exit[state])}`);
  });

  test.each([
    ["cap", "a generation is charged more"],
    ["usage", "the workspace's database is lost"],
    ["usage", "… or was written by a newer"],
    ["usage", "the workspace was copied"],
    ["locked", "another run holds"],
  ] as const)("tells of what ends as %s: %s", (exit, what) => {
    expect(rowOf(what)).toContain(`exit ${exitCode(exit)}`);
  });

  test("names only flags and commands that there are", () => {
    const known = commandList.flatMap(allFlags);
    const flags = section.match(/--[a-z]+(-[a-z]+)*/g) ?? [];
    expect(flags.length).toBeGreaterThan(10);
    for (const flag of flags) expect(known).toContain(flag);
    const commands = [...section.matchAll(/`bulkgen ([a-z]+)/g)].map(([, name]) => name);
    expect(commands.length).toBeGreaterThan(5);
    for (const name of commands) expect(made["help"], name).toMatch(new RegExp(`^ +${name}\\b`, "m"));
  });
});

describe("the comparison", () => {
  const text = "# A\n<!-- begin: errors -->\nold\n<!-- end: errors -->\nmore\n";

  test("finds a section that is out of date, and changes nothing else", () => {
    expect(withSections(text, { errors: "new $& $1" })).toBe(text.replace("old", () => "new $& $1"));
  });

  test.each([
    ["a section that is missing", text, { errors: "a", exits: "b" }, "README.md lacks the sections exits"],
    ["a section that nothing makes", text, {}, "README.md names a section that nothing makes: errors"],
    [
      "a section without an end",
      "<!-- begin: errors -->\n",
      { errors: "a" },
      "README.md: section errors has no end",
    ],
  ])("refuses %s", (_, readmeText, generated, message) => {
    expect(() => withSections(readmeText, generated as Record<string, string>)).toThrow(message);
  });
});
