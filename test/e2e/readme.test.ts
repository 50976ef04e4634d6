import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { newPlace, run, startOnTerminal } from "./command.js";

/**
 * Examples of README.md are what the command prints, word by word but for days and times. UPDATE_TRANSCRIPTS=1 writes
 * them anew from a real run.
 */
const file = new URL("../../README.md", import.meta.url);
const readme = readFileSync(file, "utf8");
const jobs = new URL("../../jobs/", import.meta.url);

const examples = [...readme.matchAll(/```\n\$ bulkgen ((?:.*\\\n)*.*)\n([\s\S]*?)```/g)].map(
  ([, command = "", output = ""]) => ({ command, output }),
);

test.each([
  ["plan jobs/product-shots.yaml", 96],
  ["schedule add", null],
])("README: bulkgen %s …", async (begin, columns) => {
  const example = examples.find(({ command }) => command.startsWith(begin));
  if (!example) throw new Error(`README.md has no example of bulkgen ${begin}`);
  const place = newPlace();
  for (const name of readdirSync(jobs)) place.write(`jobs/${name}`, readFileSync(new URL(name, jobs)));
  const words = wordsOf(example.command);
  const env = { SLACK_URL: "https://hooks.slack.com/services/T/B/x", NO_COLOR: "1" };
  const ended = await (columns === null
    ? run(place, words, { env })
    : startOnTerminal(place, columns, words, { env }).ended);
  expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: "" });
  const printed = ended.stdout.replaceAll("\r\n", "\n");
  if (process.env["UPDATE_TRANSCRIPTS"] === "1") {
    const now = readFileSync(file, "utf8");
    writeFileSync(
      file,
      now.replace(example.output, () => printed),
    );
    return;
  }
  expect(timeless(printed)).toBe(timeless(example.output));
});

function wordsOf(command: string): string[] {
  return [...command.replaceAll("\\\n", " ").matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** Without what the day and the time of day make of it. */
function timeless(text: string): string {
  return text
    .replace(/\w{3} \d{4}-\d\d-\d\d \d\d:\d\d CES?T/g, "<when>")
    .replace(/, in \d.*$/gm, ", in <time>")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\dZ/g, "<when>");
}
