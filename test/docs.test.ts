import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sections, withSections } from "../scripts/readme-sections.mjs";
import { errorTable } from "../src/api/errors.js";
import { exitCodes } from "../src/core/exit.js";
import { transitionList } from "../src/core/item.js";

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
