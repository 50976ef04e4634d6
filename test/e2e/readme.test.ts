import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pages } from "../../scripts/readme-sections.mjs";
import { newPlace, type Place, run } from "./command.js";
import { endedScheduledRuns } from "./ended-scheduled-runs.js";
import { startService } from "./service.js";
import { timeless, wordsOf } from "./shown.js";

/**
 * Examples in README.md and docs/ are what the command prints, word for word except days, times and ids.
 * UPDATE_TRANSCRIPTS=1 writes them again from a real run.
 */
const texts = new Map(
  pages()
    // These are played whole, by tests of their own names.
    .filter((page) => !["docs/tutorial.md", "docs/recipes.md", "docs/pipelines.md"].includes(page))
    .map((page) => [page, readFileSync(page, "utf8")]),
);

interface Example {
  page: string;
  /** The command lines, with what each prints. */
  text: string;
}

const examples = [...texts].flatMap(([page, text]): Example[] =>
  [...text.matchAll(/(?<=^```\n)\$ (?:npx )?bulkgen [\s\S]*?(?=^```$)/gm)].map(([shown]) => ({
    page,
    text: shown,
  })),
);

/** How each example is made, by the beginning of its first command. The help is a generated section. */
const recipes: Readonly<Record<string, (words: readonly string[]) => Promise<string>>> = {
  "plan jobs/product-shots.yaml": onTerminal,
  "plan jobs/clips.yaml": onTerminal,
  "schedule add nightly": (words) =>
    printed(placeWithJobs(), words, { SLACK_URL: "https://hooks.slack.com/services/T/B/x" }),
  "export --sandbox": async (words) => {
    const place = newPlace();
    place.write("shelf.csv", shelf);
    expect(await run(place, ["run", "shelf.csv", "--sandbox", "--yes"])).toMatchObject({ code: 5 });
    const sheet = await printed(place, words);
    return sheet.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  },
  "report --since 12h": async (words) =>
    printed(
      await endedScheduledRuns({
        BULKGEN_SCHEDULED_BY: "day",
        BULKGEN_SCHEDULED_FOR: "2026-11-23T06:00:00Z",
      }),
      words,
    ),
  "verify --read-data": verified,
};

async function onTerminal(words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(placeWithJobs(), words, { env: { NO_COLOR: "1" }, columns: 96 });
  return stderr + stdout;
}

const shelf = `Product,id,model,prompt,Shelf
Teapot,t1,aurora-image-mini,A stoneware teapot on a dark table,7
Cup,t2,aurora-image-mini,"[[moderation]] A cup, close",
Lid,t3,aurora-image-mini,The lid alone on linen,3
`;

const tea = `id,model,prompt,output
square,plain-image,a tea pot on oak,hero/square
wide,plain-image,a tea pot on slate,hero/wide
story,plain-image,a tea pot on linen,story
`;

test("every example has a recipe, and every recipe an example", () => {
  const shown = examples.map(commandOf).filter((command) => command !== "--help" && !ofDemo(command));
  expect(shown.map(recipeOf).toSorted()).toEqual(Object.keys(recipes).toSorted());
});

test.each(Object.entries(recipes))("bulkgen %s …", { timeout: 120_000 }, async (name, recipe) => {
  const example = examples.find((each) => commandOf(each).startsWith(name));
  if (!example) throw new Error(`no page has an example of bulkgen ${name}`);
  const command = /^\$ bulkgen (?:.*\\\n)*.*\n/.exec(example.text)?.[0] ?? "";
  const made = await recipe(wordsOf(command.replace(/^\$ bulkgen /, "")));
  const whole = made.startsWith("$ ") ? made : command + made;
  if (process.env["UPDATE_TRANSCRIPTS"] === "1") {
    const text = readFileSync(example.page, "utf8");
    writeFileSync(
      example.page,
      text.replace(example.text, () => whole),
    );
    return;
  }
  expect(timeless(whole)).toBe(timeless(example.text));
});

test("README.md shows the plan of the demo", async () => {
  const shown = /<!-- demo: .*\n```\n([\s\S]*?)(?=^0\/26)/m.exec(texts.get("README.md") ?? "")?.[1];
  expect(await printed(placeWithJobs(), ["plan", "jobs/demo.csv", "--sandbox"])).toBe(shown);
});

/** A file that is missing and one that is damaged, found, repaired, and the leftovers removed. */
async function verified(): Promise<string> {
  const place = newPlace();
  const service = await startService();
  place.write("tea.csv", tea);
  expect(await run(place, ["run", "tea.csv", "--yes"], service)).toMatchObject({ code: 0 });
  const file = (name: string) => join(place.folder, "outputs", "tea", name);
  rmSync(file("hero/wide.png"));
  const flipped = readFileSync(file("hero/square.png"));
  flipped[40] = (flipped[40] ?? 0) ^ 1;
  writeFileSync(file("hero/square.png"), flipped);
  let told = "";
  for (const flags of [["--read-data"], ["--read-data", "--repair"], ["--clean", "--yes"]]) {
    const { stdout } = await run(place, ["verify", ...flags], service);
    told += `$ bulkgen verify ${flags.join(" ")}\n${stdout}`;
  }
  return told;
}

async function printed(
  place: Place,
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  const ended = await run(place, [...words], { env: { ...env, NO_COLOR: "1" } });
  expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: "" });
  return ended.stdout;
}

function placeWithJobs(): Place {
  const place = newPlace();
  cpSync("jobs", join(place.folder, "jobs"), { recursive: true });
  return place;
}

function commandOf({ text }: Example): string {
  return /bulkgen (.*)/.exec(text)?.[1] ?? "";
}

/** The demo takes long, so test/e2e/demo.test.ts looks at its gallery, where it is made anyway. */
function ofDemo(command: string): boolean {
  return command === "gallery --sandbox";
}

function recipeOf(command: string): string {
  return Object.keys(recipes).find((name) => command.startsWith(name)) ?? `no recipe for ${command}`;
}
