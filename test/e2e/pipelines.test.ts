import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { wordsOf } from "./shown.js";
import { unzip } from "./unzip.js";

/**
 * docs/pipelines.md: each section's lines with `$` are run in a copy of its folder of jobs/pipelines, word for word, and the
 * set that they hand over is opened.
 */
const sections = readFileSync("docs/pipelines.md", "utf8")
  .split(/^## /m)
  .flatMap((text) => {
    const [, folder] = /\(\.\.\/jobs\/pipelines\/([\w-]+)\/\1\.yaml\)/.exec(text) ?? [];
    return folder === undefined ? [] : [{ folder, text }];
  });

/** These lines end with 10: somebody has to approve. Others end with 0. */
const waiting = [
  "bulkgen run film.yaml --sandbox --yes",
  "bulkgen reject s030-frame --again --sandbox --yes",
];

interface HandedOver {
  /** How many items the plan has, and its notes. */
  plan: [number, ...string[]];
  /** Without index and sheet. */
  files: readonly string[];
  /** Columns of the sheet in the ZIP, and one of its lines; absent if it has none. */
  sheet?: [string, string];
  /** What lies beside the files: a page, captions. */
  others?: readonly string[];
  also?: (parts: Parts, place: Place) => Promise<void>;
}

type Parts = ReadonlyMap<string, Buffer>;

const leftOut = (count: number) => `${count} combinations are left out by when`;
const unused = (column: string) => `column "${column}" is not used (it is kept for the export)`;

/** A name for each combination of what stands for `*`; the first changes slowest. */
function names(pattern: string, ...lists: readonly string[][]): string[] {
  const [list, ...rest] = lists;
  return list === undefined ? [pattern] : list.flatMap((word) => names(pattern.replace("*", word), ...rest));
}

const sizes = ["square", "story", "wide"];
const lessons = ["01", "02", "03", "04"];
const icons = ["home", "search", "basket", "delivery", "repair", "kiln", "calendar", "gift"];
const numbers = Array.from({ length: 24 }, (_, index) => String(index + 1).padStart(4, "0"));

const sets: Readonly<Record<string, HandedOver>> = {
  "mock-ups": {
    plan: [11, "1 combination is left out by when"],
    files: [
      ...names("*/*.png", ["mug", "tote-bag"], ["alpine-swift", "wild-thyme", "low-tide", "night-train"]),
      ...names("poster/*.png", ["alpine-swift", "wild-thyme", "night-train"]),
    ],
  },
  catalogue: {
    plan: [18, leftOut(2), unused("price")],
    files: ["MUG-030-CHK", "MUG-030-INK", "BWL-140-CHK", "BWL-140-INK", "JUG-080-RST"].flatMap((sku) => {
      const views = ["front", "side", "detail", "in-use"];
      return names(`${sku}/${sku}-*.jpg`, sku.endsWith("INK") ? views.slice(0, 3) : views);
    }),
    sheet: [
      "sku,product,colour,price,image_1,image_2,image_3,image_4",
      "BWL-140-INK,Bowl 14 cm,Ink,28.00,BWL-140-INK/BWL-140-INK-front.jpg,BWL-140-INK/BWL-140-INK-side.jpg,BWL-140-INK/BWL-140-INK-detail.jpg,",
    ],
  },
  banners: {
    plan: [24, leftOut(3)],
    files: [
      ...names("*/*-*.png", ["en", "de", "fr"], ["autumn-firing", "open-studio"], sizes),
      ...names("*/free-repairs-*.png", ["en", "de"], sizes),
    ],
    others: ["gallery.html"],
  },
  "social-calendar": {
    plan: [11, leftOut(5), unused("caption")],
    files: [
      ...names("2026-11-*-instagram.png", ["02", "14"]),
      ...names("2026-11-*-linkedin.png", ["06", "18"]),
      ...names("2026-11-*-story.png", ["04", "13", "27"]),
      "2026-11-10-pinterest.png",
      ...names("2026-11-*-story-reel.mp4", ["04", "13", "27"]),
    ],
    sheet: [
      "date,channel,step,caption,file",
      "04/11/2026,Story,reel,Kiln day. Sound on.,2026-11-04-story-reel.mp4",
    ],
  },
  audiobook: {
    plan: [10, leftOut(6)],
    files: [
      ...names("chapter-01/*.wav", [
        "001-0-tune",
        "001-1-narrator",
        "002-1-tom",
        "003-1-harbourmaster",
        "004-1-narrator",
      ]),
      ...names("chapter-02/*.wav", [
        "005-0-tune",
        "005-1-narrator",
        "006-1-mrs-ames",
        "007-1-tom",
        "008-1-mrs-ames",
      ]),
    ],
    sheet: ["chapter,speaker,file,duration,text", "1,Tom,chapter-01/002-1-tom.wav,"],
  },
  "icon-set": { plan: [16], files: names("*/*.png", ["light", "dark"], icons) },
  film: {
    plan: [
      11,
      "1 combination is left out by when",
      "4 items will wait for your approval (`bulkgen approve`) before anything is made of their outputs",
    ],
    files: [
      ...names("clips/*.mp4", ["s010", "s020", "s030", "s040"]),
      ...names("voices/*.wav", ["s010", "s020", "s040"]),
    ],
    sheet: ["shot,step,file,duration,line", "s030,clip,clips/s030.mp4,4,"],
    also: isOfApprovedFrames,
  },
  "phone-prompts": {
    plan: [11, "1 combination is left out by when"],
    files: [
      ...names("*/*.wav", ["en", "de"], ["welcome", "menu", "queue", "closed", "voicemail"]),
      "en/us-holiday.wav",
    ],
  },
  "training-set": {
    plan: [24],
    files: names("*.png", numbers),
    others: ["metadata.jsonl", ...names("*.txt", numbers)],
    also: hasCaptions,
  },
  "real-estate": {
    plan: [10, leftOut(2)],
    files: [
      ...names("elm-street-12/*.jpg", [
        "living-room",
        "living-room-staged",
        "kitchen",
        "bedroom",
        "bedroom-staged",
      ]),
      ...names("mill-lane-3/*.jpg", ["living-room", "living-room-staged", "study", "study-staged", "garden"]),
    ],
    others: ["gallery.html"],
  },
  "old-archive": {
    plan: [6],
    files: [
      ...names("1962/*.webp", ["harbour-01", "harbour-02", "launch"]),
      ...names("1971/*.webp", ["harbour-01", "bakery", "school-trip"]),
    ],
    sheet: ["scan,file,width,height,sha256", "scans/1971/harbour-01.jpg,1971/harbour-01.webp,"],
  },
  course: {
    plan: [20],
    files: [
      ...names("lesson-*/slide.png", lessons),
      ...names("lesson-*/narration-*.mp3", lessons, ["en", "de"]),
      ...names("lesson-*/lecture-*.mp4", lessons, ["en", "de"]),
    ],
    sheet: ["lesson,title,step,lang,file,duration", "2,Centring,lecture,de,lesson-02/lecture-de.mp4,"],
  },
  "extended-clips": {
    plan: [13, leftOut(3)],
    files: names("takes/*.mp4", ["s01", "s02", "s03", "s04"]),
    sheet: ["shot,file,duration", "s01,takes/s01.mp4,18"],
  },
};

/** The lines of a sheet, without the mark at its beginning. */
const linesOf = (text: string): string[] => text.replace(/^\uFEFF/, "").split(/\r?\n/);

describe("the pipeline", () => {
  test.each(sections)("of $folder hands over the set of the page", { timeout: 60_000 }, async (section) => {
    const { folder, text } = section;
    const set = sets[folder] as HandedOver;
    const place = newPlace();
    cpSync(join("jobs", "pipelines", folder), place.folder, { recursive: true });
    const plan = await run(place, ["plan", `${folder}.yaml`, "--sandbox", "--json"]);
    expect(plan.code, plan.stdout + plan.stderr).toBe(0);
    const { items, problems, notes } = JSON.parse(plan.stdout);
    expect([items.length, problems, notes.toSorted()]).toEqual([
      set.plan[0],
      [],
      set.plan.slice(1).toSorted(),
    ]);
    const zip = await play(place, text);
    const parts = unzip(join(place.folder, zip));
    const isFromUs = (name: string) => ["index.jsonl", "sheet.csv"].includes(name);
    const found = [...parts.keys()].filter((name) => !isFromUs(name));
    expect(found.toSorted()).toEqual([...set.files, ...(set.others ?? [])].toSorted());
    await set.also?.(parts, place);
    if (set.sheet === undefined) return;
    const [columns, ...lines] = linesOf(String(parts.get("sheet.csv")));
    expect(columns).toBe(set.sheet[0]);
    const [, beginning] = set.sheet;
    expect(lines.filter((line) => line.startsWith(beginning))).toHaveLength(1);
  });

  test.each(sections)(
    "of $folder is short, and its sheet or its files are those that the page shows",
    ({ folder, text }) => {
      const files = readdirSync(join("jobs", "pipelines", folder));
      const read = (end: string) =>
        readFileSync(
          join("jobs", "pipelines", folder, files.find((name) => name.endsWith(end)) ?? ""),
          "utf8",
        );
      // The header of the sheet is one more line.
      const job = read(".yaml").trimEnd().split("\n");
      expect(job.length).toBeLessThan(30);
      const [, ofFiles] = /^```yaml\n(files: .*)\n```$/m.exec(text) ?? [];
      if (ofFiles !== undefined) {
        expect(job).toContain(ofFiles);
        return;
      }
      const [, shown = ""] = /^```csv\n([\s\S]*?)^```$/m.exec(text) ?? [];
      const lines = linesOf(read(".csv"));
      const [header, ...rows] = shown.trimEnd().split("\n");
      expect(lines[0]).toBe(header);
      expect(rows.length).toBeGreaterThan(0);
      expect(lines).toEqual(expect.arrayContaining(rows));
    },
  );

  test("of each folder is on the page", () => {
    const folders = readdirSync(join("jobs", "pipelines")).toSorted();
    expect(sections.map(({ folder }) => folder).toSorted()).toEqual(folders);
    expect(Object.keys(sets).toSorted()).toEqual(folders);
  });
});

/** Runs the lines of a section, and returns the name of the ZIP that they pack. */
async function play(place: Place, text: string): Promise<string> {
  const lines = [...text.matchAll(/^\$ (bulkgen .*)$/gm)].map(([, line = ""]) => line);
  for (const line of lines) {
    const { code, stdout, stderr } = await run(place, wordsOf(line).slice(1));
    expect(code, `${line}\n${stdout}${stderr}`).toBe(waiting.includes(line) ? 10 : 0);
  }
  return /--zip (\S+)/.exec(lines.at(-1) ?? "")?.[1] ?? "";
}

/** Each picture has the caption that was asked for, in the list and beside it. */
async function hasCaptions(parts: Parts): Promise<void> {
  const lines = linesOf(String(parts.get("metadata.jsonl"))).filter((line) => line !== "");
  expect(lines).toHaveLength(numbers.length);
  for (const line of lines) {
    const { file_name: file, text: caption, ...more } = JSON.parse(line);
    expect(more).toEqual({});
    expect(caption).toMatch(/^kilnco, a .* (evening light|daylight)$/);
    expect(String(parts.get(file.replace(".png", ".txt")))).toBe(caption);
  }
}

/** The clip of a shot whose first frame was rejected is made of the second. */
async function isOfApprovedFrames(_: Parts, place: Place): Promise<void> {
  const frames = ["--filter", "step=frame", "--columns", "item,file,approval"];
  const { code, stdout } = await run(place, ["export", "--sandbox", "--final", ...frames]);
  expect(code).toBe(0);
  expect(linesOf(stdout)).toContain("s030-frame-v2,frames/s030-v2.png,approved");
  expect(stdout).not.toContain("rejected");
}
