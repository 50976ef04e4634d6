import { describe, expect, test } from "vitest";
import { openManifest } from "../../src/manifest/read.js";
import { workflowDiagram, workflowText } from "../../src/report/workflow.js";
import { textWidth } from "../../src/text/terminal.js";
import { fileWith } from "../manifest/folder.js";
import { kept, me, plan } from "./account.js";

/** The steps of a plan, in which the first items stand in these states. */
async function steps(name: string, text: string, ...states: Parameters<typeof kept>[1][]) {
  const file = await fileWith(name, text);
  const whole = await plan(await openManifest(file));
  const existing = kept(whole, ...states).slice(0, states.length);
  return (await plan(await openManifest(file), { existing, me: me(1_000_000) })).workflow;
}

const job = `
rows: [{ id: cup, thing: a cup }, { id: jug, thing: a jug }]
steps:
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: picture, model: paint, prompt: "{{ thing }}" }
  - { name: finer, model: edit, prompt: finer, image_url: "@picture" }
  - { name: longer, model: extend, video_url: "@clip" }
`;

describe("the workflow of a plan", () => {
  test("has each step once, with its items, their cost and states, below a step that it takes outputs of", async () => {
    const made = await steps(
      "job.yaml",
      job,
      "planned",
      "archived",
      "archived",
      "planned",
      "planned",
      "archived",
    );
    expect(workflowText(made).split("\n")).toEqual([
      "picture  2 items · 0 credits · paint · 2 archived → clip, finer",
      "├─ clip  2 items · 40 credits · animate · 2 planned → longer",
      "│  └─ longer  2 items · 60 credits · extend · 1 planned, 1 new",
      "└─ finer  2 items · 6.5 credits · edit · 1 archived, 1 new",
    ]);
    expect(made[0]).toMatchObject({ name: "picture", items: 2, due: 0, next: ["clip", "finer"] });
  });

  test("tells steps of one name apart by their models", async () => {
    const made = await steps(
      "job.yaml",
      `
rows: [{ id: a }]
steps:
  - { name: look, prompt: x, matrix: { model: [paint, edit] }, image_url: "{% if model == 'edit' %}https://files.example/a.png{% endif %}" }
  - { name: one, model: animate, image_url: "@look-paint" }
`,
    );
    expect(workflowText(made).split("\n")).toEqual([
      "look (paint)  1 item · 4 credits → one",
      "└─ one  1 item · 20 credits · animate",
      "look (edit)  1 item · 6.5 credits",
    ]);
  });

  test("groups rows without steps by model and by their place in the chain", async () => {
    const made = await steps(
      "sheet.csv",
      "id,model,prompt,image_url,video_url\na,paint,x,,\nb,paint,y,,\nc,animate,,@a,\nd,extend,,,@c\ne,extend,,,@d\n",
    );
    expect(workflowText(made).split("\n")).toEqual([
      "paint  2 items · 8 credits → animate",
      "└─ animate  1 item · 20 credits → extend 3",
      "   └─ extend 3  1 item · 30 credits → extend 4",
      "      └─ extend 4  1 item · 30 credits",
    ]);
  });

  test("is readable however many rows there are and however long a chain is", async () => {
    const rows = Array.from({ length: 300 }, (_, n) =>
      n === 0 ? "i0,https://files.example/a.mp4" : `i${n},@i${n % 2 === 0 ? n - 1 : 0}`,
    );
    const chain = rows.map((_, n) => `c${n},${n === 0 ? "https://files.example/b.mp4" : `@c${n - 1}`}`);
    const made = await steps(
      "sheet.csv",
      `id,model,video_url\n${[...rows, ...chain].map((row) => row.replace(",", ",extend,")).join("\n")}\n`,
    );
    expect(made).toHaveLength(9);
    expect(made.reduce((sum, { items }) => sum + items, 0)).toBe(600);
    for (const width of [60, 200])
      for (const line of workflowText(made, { width, colour: false }).split("\n"))
        expect(textWidth(line)).toBeLessThanOrEqual(width);
  });

  test("of a plain sheet is one step", async () => {
    const made = await steps("sheet.csv", "model,prompt\npaint,x\npaint,y\n");
    expect(workflowText(made)).toBe("paint  2 items · 8 credits");
    expect(workflowDiagram(made)).toBe('flowchart LR\n  s1["paint<br>2 items<br>8 credits"]');
  });

  test("that goes round between rows is drawn all the same", async () => {
    const made = await steps(
      "job.yaml",
      `
rows: [{ id: a, from: "https://files.example/a.mp4" }, { id: b, from: "@a.back" }]
steps:
  - { name: on, model: extend, video_url: "{{ from }}" }
  - { name: back, model: extend, video_url: "@on" }
`,
    );
    expect(workflowText(made).split("\n")).toEqual([
      "on  2 items · 60 credits · extend → back",
      "└─ back  2 items · 60 credits · extend → on",
    ]);
  });
});

const step = (name: string, next: string[] = []) => ({
  name,
  step: name,
  model: "paint",
  category: "image",
  items: 5,
  due: 5,
  credits: 40_000 as never,
  states: { new: 5 },
  next,
});

describe("drawn", () => {
  test("for a narrow terminal, lines are broken between facts, and long names are cut", () => {
    const long = "a step of a name that is far too long for any terminal".repeat(3);
    const all = [step("picture", ["clip", long, "voice-over"]), step("clip"), step(long), step("voice-over")];
    const text = workflowText(all, { width: 60, colour: false });
    for (const line of text.split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(60);
    expect(text.split("\n").slice(0, 3)).toEqual([
      expect.stringMatching(/^picture {2}5 items · [\d.]+ credits? · paint → clip,$/),
      expect.stringMatching(/^│ {3}a step of a name .*…, voice-over$/),
      expect.stringMatching(/^├─ clip/),
    ]);
  });

  test("without what moves the cursor or turns the text round", () => {
    const text = workflowText([step("a\u001b[31m\u202eb\nc")]);
    expect(text).toMatch(/^ab c {2}5 items/);
  });

  test("as a diagram, whose labels hold no sign that Mermaid reads", () => {
    const evil = '1. "]; click s1 "javascript:x" [b](c) `d` <script>|{#quot;\u202e\nend';
    const [, label] = workflowDiagram([step(evil, ["next"]), step("next")]).split("\n");
    expect(label).toMatch(/^ {2}s1\["[^"\]]+"\]$/);
    expect(label?.replaceAll("<br>", "")).toMatch(/^ {2}s1\["[\p{L}\p{N} ·._#;-]+"\]$/u);
    expect(label).toContain("1#46; #34;#93;");
  });

  test("as a diagram with an arrow for each output that is taken", () => {
    const text = workflowDiagram([step("picture", ["clip", "both"]), step("clip", ["both"]), step("both")]);
    expect(text.split("\n").slice(4)).toEqual(["  s1 --> s2", "  s1 --> s3", "  s2 --> s3"]);
  });
});

test("a chain without steps has a place for each of its items, and one for all from the ninth on", async () => {
  const rows = Array.from(
    { length: 11 },
    (_, n) => `i${n},extend,,${n === 0 ? "https://x.example/v" : `@i${n - 1}`}`,
  );
  const made = await steps("sheet.csv", `id,model,prompt,video_url\n${rows.join("\n")}\n`);
  expect(made.length).toBe(9);
  expect([...made].map(({ name, items }) => [name, items]).slice(-2)).toEqual([
    ["extend 8", 1],
    ["extend 9+", 3],
  ]);
});

test("a step that is called as another one's name in full is told from it", async () => {
  const made = await steps(
    "job.yaml",
    `
rows: [{ id: a, prompt: x }]
steps:
  - { name: "p (paint)", model: paint }
  - { name: p, model: paint }
  - { name: p, model: edit, image_url: "https://x.example/a.png" }
`,
  );
  const names = [...made].map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
