import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { wordsOf } from "./shown.js";

/**
 * docs/recipes.md: each section is played in a place of its own. Its files are saved and its lines with `$` are run, word
 * for word, and must end well. test/docs.test.ts parses its other command lines.
 */
const [head = "", ...sections] = readFileSync("docs/recipes.md", "utf8").split(/^## /m);
const files = /^<!-- save as (\S+) -->\n```\w+\n([\s\S]*?)^```$/gm;

/** What the sections read from the environment. */
const env = {
  NO_COLOR: "1",
  SLACK_URL: "https://hooks.slack.com/services/T/B/x",
  OPS_URL: "https://ops.example.org/bulkgen",
  SMTP_URL: "smtp://user:password@mail.example.org:587",
};

describe("the recipe", () => {
  test.each(sections.map((text) => [/.*/.exec(text)?.[0] ?? "", text]))("%s works", async (_, text) => {
    const place = newPlace();
    for (const [, name = "", content = ""] of `${head}${text}`.matchAll(files)) place.write(name, content);
    const lines = [...text.matchAll(/^\$ bulkgen (.*)$/gm)].map(([, line = ""]) => line);
    expect(lines.length + [...text.matchAll(files)].length).toBeGreaterThan(0);
    for (const line of lines) {
      const { code, stderr } = await run(place, wordsOf(line), { env });
      expect(code, `${line}\n${stderr}`).toBe(0);
    }
  });
});
