import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, type Place, started } from "./command.js";
import { timeless, wordsOf } from "./shown.js";

/**
 * docs/tutorial.md, played from its beginning to its end in one place: files are saved and changed as it says, every
 * command is run word for word, and what it shows is what they print, except days, times, sizes and ids.
 * UPDATE_TRANSCRIPTS=1 writes the outputs again.
 */
const page = "docs/tutorial.md";
const shownAddress = "https://service.example";

/** A block of code with the comment before it, which says what to do with it. */
const block = /(?:^<!-- (.*) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm;

test("the tutorial works, and shows what its reader will see", async () => {
  const text = readFileSync(page, "utf8");
  const place = newPlace();
  const account = await anAccount(place);
  let folder = place.folder;
  let played = "";
  let commands = 0;
  let end = 0;
  for (const match of text.matchAll(block)) {
    const [whole, act = "", , content = ""] = match;
    let shown = content;
    if (content.startsWith("$ ")) {
      shown = "";
      for (const [line = ""] of content.matchAll(/^\$ .*\n/gm)) {
        const words = wordsOf(line.slice("$ ".length).trim());
        commands++;
        shown += line;
        if (words[0] === "bulkgen") shown += await told(place, folder, words.slice(1), act, account);
        else folder = done(words, folder);
      }
    } else change(act, content, folder);
    played += text.slice(end, match.index) + whole.replace(content, () => shown);
    end = match.index + whole.length;
  }
  played += text.slice(end);
  expect(commands).toBeGreaterThan(15);
  if (process.env["UPDATE_TRANSCRIPTS"] === "1") writeFileSync(page, played);
  else expect(unmeasured(played)).toBe(unmeasured(text));
});

/** Saves or changes a file as the comment before the block says. */
function change(act: string, content: string, folder: string): void {
  const [, how, file] = /^(save as|add to) (\S+)$/.exec(act) ?? [];
  if (file === undefined) throw new Error(`a block of the tutorial that nothing is done with: ${content}`);
  writeFileSync(join(folder, file), content, { flag: how === "add to" ? "a" : "w" });
}

/** What a command prints, without its progress and the plan that a run shows again. Questions are answered with yes. */
async function told(
  place: Place,
  folder: string,
  words: readonly string[],
  act: string,
  account: { url: string; env: Record<string, string> },
): Promise<string> {
  const [, file, wrong = "", right = ""] = /^in (\S+): (\S+) => (\S+)$/.exec(act) ?? [];
  if (file !== undefined) {
    const text = readFileSync(join(folder, file), "utf8");
    expect(text).toContain(wrong);
    writeFileSync(join(folder, file), text.replace(wrong, right));
  }
  const given = words.map((word) => (word === shownAddress ? account.url : word));
  const command = started(place, given, {
    cwd: folder,
    env: { ...account.env, NO_COLOR: "1" },
    keyboard: true,
  });
  void command.prints(/\[y\/N\]/).then(
    () => command.type("y\n"),
    () => {},
  );
  if (act.startsWith("Ctrl-C")) {
    await command.prints(/archived · /);
    command.interrupt();
  }
  const { code, stdout, stderr } = await command.ended;
  if (act.startsWith("Ctrl-C")) {
    expect(code).toBe(130);
    return "";
  }
  expect(code, stdout + stderr).toBe(act === "exit 2" ? 2 : 0);
  const asked = stderr.replace(/^[\s\S]*?(?=Spend )/, words[0] === "run" ? "…\n" : "$&");
  const shown = asked.replace(/(\[y\/N\] )/, "$1y\n").replace(progress, "");
  return `${words[0] === "resume" ? "…\n" : shown}${stdout}`.replaceAll(account.url, shownAddress);
}

/** Lines that depend on how fast the machine is. */
const progress = /^(\d+\/\d+ archived.*|\d+ of \d+ files)\n/gm;

/** The few other commands that the tutorial uses; returns the folder after it. */
function done([command, ...files]: readonly string[], folder: string): string {
  const [first = "", second = ""] = files.map((file) => join(folder, file));
  if (command === "cd") return first;
  if (command === "cp") copyFileSync(first, second);
  else if (command === "rm") rmSync(first);
  else throw new Error(`the tutorial uses ${command}`);
  return folder;
}

/** An account at a service of its own, with its key in key.txt. */
async function anAccount(place: Place): Promise<{ url: string; env: Record<string, string> }> {
  const flags = ["--json", "--state", ":memory:", "--task-ms", "2000-4000"];
  const service = started(newPlace(), ["sandbox", ...flags], { serves: true });
  const [line] = await service.prints(/^\{.*\}\n/);
  const { url, key } = JSON.parse(line) as { url: string; key: string };
  place.write("key.txt", `${key}\n`);
  return { url, env: {} };
}

/** Without what depends on the time that something took, and without sizes of files. */
function unmeasured(text: string): string {
  return timeless(text)
    .replace(/^(time|requests|forecast) +\d.*$/gm, "$1 <measured>")
    .replace(/\d[\d.]* [kM]?B\b/g, "<size>")
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}/g, "<id>")
    .replace(/renews \d{4}-\d\d-\d\d/g, "renews <day>");
}
