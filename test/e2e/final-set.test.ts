import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { galleryData } from "../report/gallery-data.js";
import { newPlace, type Place, run, started } from "./command.js";
import { type ScriptedService, startService } from "./service.js";
import { unzip } from "./unzip.js";

/** Pictures that have to be approved, and clips of them. */
const film = `
name: film
rows:
  - { id: cup, prompt: a cup }
  - { id: jar, prompt: a jar }
defaults: { model: plain-image }
steps:
  - { name: frame, approve: true }
  - { name: clip, image_url: "@frame" }
`;

async function place(files: Record<string, string>): Promise<[Place, ScriptedService]> {
  const service = await startService({ balance: 100 });
  const made = newPlace();
  for (const [name, text] of Object.entries(files)) made.write(name, text);
  return [made, service];
}

/** The files in a ZIP, and the lines of its sheet. */
function zipped(where: Place, file = "set.zip"): { names: string[]; sheet: string } {
  const parts = unzip(join(where.folder, file));
  return { names: [...parts.keys()].toSorted(), sheet: String(parts.get("sheet.csv") ?? "") };
}

test("a film is handed over with the approved take of each frame, and never with a rejected one", async () => {
  const [where, service] = await place({ "film.yaml": film });
  await run(where, ["run", "film.yaml", "--yes"], service);
  await run(where, ["approve", "jar-frame"]);
  await run(where, ["reject", "cup-frame", "--again", "--yes"], service);
  const early = await run(where, ["export", "--final", "--zip", "early.zip"]);
  expect(early).toMatchObject({ code: 10 });
  expect(early.stderr).toContain("2 rows have no final file:\n");
  expect(early.stderr).toContain("row 1 (cup-frame): cup-frame-v2 waits for approval\n");
  expect(zipped(where, "early.zip").names).toEqual([
    "index.jsonl",
    "jar-clip.png",
    "jar-frame.png",
    "sheet.csv",
  ]);
  await run(where, ["approve", "--all"]);
  const rest = await run(where, ["resume", "--yes"], service);
  expect(rest.code, rest.stderr).toBe(0);
  const done = await run(where, ["export", "--final", "--zip", "set.zip"]);
  expect(done).toMatchObject({
    code: 0,
    stderr:
      "set.zip: 4 files, index.jsonl, sheet.csv\n2 credits for replaced, removed or rejected files are not listed\n",
  });
  const { names, sheet } = zipped(where);
  expect(names).toEqual([
    "cup-clip.png",
    "cup-frame.png",
    "index.jsonl",
    "jar-clip.png",
    "jar-frame.png",
    "sheet.csv",
  ]);
  expect(sheet).toContain("cup-frame-v2,cup-frame.png,,approved,archived");
  const parts = unzip(join(where.folder, "set.zip"));
  const second = readFileSync(join(where.folder, "outputs/film/cup-frame-v2.png"));
  expect(parts.get("cup-frame.png")?.equals(second)).toBe(true);
  expect(String(parts.get("index.jsonl"))).toContain('"file":"cup-frame.png"');
  // The clip says which take it was made of.
  expect(String(parts.get("index.jsonl"))).toContain('"made_from":{"image_url":"cup-frame-v2"}');
  // Beside the folder itself, files have their names there.
  const plain = await run(where, ["export", "--final", "--columns", "item,file"]);
  expect(plain.stdout).toContain("cup-frame-v2,cup-frame-v2.png");
  // A plain ZIP leaves out what was rejected, unless it is asked for.
  const whole = await run(where, ["export", "--zip", "whole.zip", "--files-only"]);
  expect(whole.stderr).toContain("1 rejected file is left out; --filter approval=rejected packs them");
  expect(zipped(where, "whole.zip").names).not.toContain("cup-frame.png");
  await run(where, ["export", "--zip", "no.zip", "--files-only", "--filter", "approval=rejected"]);
  expect(zipped(where, "no.zip").names).toEqual(["cup-frame.png"]);
  const clips = await run(where, ["export", "--final", "--filter", "step=clip", "--columns", "file"]);
  expect(clips.stdout.split("\r\n")).toEqual(["\uFEFFfile", "cup-clip.png", "jar-clip.png", ""]);
});

const cups = "id,model,prompt\na,plain-image,a cup\nb,plain-image,a jar\nc,plain-image,a pot\n";

test("the picked take is final under the name of its row; several picks of a row keep their own names", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  await run(where, ["redo", "a", "b", "--yes"], service);
  await run(where, ["pick", "a-v2", "b", "b-v2"]);
  const final = await run(where, ["export", "--final", "--zip", "set.zip"]);
  expect(final.code, final.stderr).toBe(0);
  expect(zipped(where).names).toEqual(["a.png", "b-v2.png", "b.png", "c.png", "index.jsonl", "sheet.csv"]);
  const page = await run(where, ["gallery", "--final"]);
  expect(page.stdout).toContain("final.html: 4 final files of job cups");
  const html = readFileSync(join(where.folder, "outputs/cups/final.html"), "utf8");
  expect(html).toContain("a-v2.png");
  expect(html).not.toContain('"a.png"');
});

test("whoever chooses another take is told what was made of the first one, and what making it again costs", async () => {
  const [where, service] = await place({ "film.yaml": film });
  await run(where, ["run", "film.yaml", "--yes"], service);
  await run(where, ["approve", "--all"]);
  expect((await run(where, ["resume", "--yes"], service)).code).toBe(0);
  await run(where, ["redo", "cup-frame", "--yes"], service);
  const picked = await run(where, ["pick", "cup-frame-v2"]);
  expect(picked.stdout).toBe(
    "cup-frame-v2 is picked. cup-clip was made of cup-frame: `bulkgen reject cup-frame`, `bulkgen approve cup-frame-v2`, then `bulkgen redo cup-clip` makes it of cup-frame-v2, for 2 credits\n",
  );
  const early = await run(where, ["redo", "cup-clip", "--max-price", "1"], service);
  expect(early.code).toBe(2);
  expect(early.stdout + early.stderr).toContain(
    "cup-clip is made of cup-frame again; reject that first to have it made of cup-frame-v2",
  );
  const rejected = await run(where, ["reject", "cup-frame"]);
  expect(rejected.stdout).toContain(
    "cup-frame is rejected. cup-clip was made of what is rejected, and is left out of the final set: approve another take, then redo it",
  );
  const without = await run(where, ["export", "--final", "--filter", "step=clip", "--columns", "file"]);
  expect(without).toMatchObject({
    code: 10,
    stderr: expect.stringContaining("cup-clip was made of a rejected take; redo it, or pick it as it is"),
  });
  const approved = await run(where, ["approve", "cup-frame-v2"]);
  expect(approved.stdout).toContain(
    "cup-frame-v2 is approved. cup-clip was made of cup-frame: `bulkgen redo cup-clip` makes it of cup-frame-v2, for 2 credits",
  );
  const again = await run(where, ["redo", "cup-clip", "--yes"], service);
  expect(again.code, again.stderr).toBe(0);
  expect((await run(where, ["pick", "cup-frame-v2"])).stdout).toBe("cup-frame-v2 was picked already\n");
  // The clip of the chosen frame is handed over, without a pick of its own.
  const final = await run(where, ["export", "--final", "--columns", "item,file"]);
  expect(final.code, final.stderr).toBe(0);
  expect(final.stdout).toContain("cup-frame-v2,cup-frame-v2.png\r\ncup-clip-v2,cup-clip-v2.png");
  // A person's own choice comes first.
  await run(where, ["pick", "cup-clip"]);
  expect((await run(where, ["export", "--final", "--columns", "item"])).stdout).toContain("cup-clip\r\n");
});

test("a pick that waits for approval, or is rejected, is named in place of another take", async () => {
  const [where, service] = await place({ "film.yaml": film.replace(/ {2}- \{ name: clip.*\n/, "") });
  await run(where, ["run", "film.yaml", "--yes"], service);
  await run(where, ["approve", "--all"]);
  await run(where, ["redo", "cup-frame", "--yes"], service);
  await run(where, ["pick", "cup-frame-v2"]);
  const waits = await run(where, ["export", "--final"]);
  expect(waits.code).toBe(10);
  expect(waits.stderr).toContain("cup-frame-v2 is picked, but waits for approval");
  await run(where, ["reject", "cup-frame-v2"]);
  expect((await run(where, ["export", "--final"])).stderr).toContain(
    "cup-frame-v2 is picked, but is rejected",
  );
});

test("what is rejected is left out, also where nothing has to be approved", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  where.write("review.csv", "id,decision\nb,reject\nc,pick\n");
  expect((await run(where, ["reject", "--from", "review.csv"])).stdout).toContain("b is rejected");
  expect((await run(where, ["approve", "a"])).stderr).toContain("a needs no approval");
  const left = async () => {
    const { code, stdout, stderr } = await run(where, ["export", "--final", "--columns", "item,file"]);
    return { code, files: stdout.match(/[\w-]+\.png/g), stderr };
  };
  const without = { code: 10, files: ["a.png", "c.png"], stderr: expect.stringContaining("(b): rejected") };
  expect(await left()).toMatchObject(without);
  // The sheet does not ask for approval, but a decision stays.
  await run(where, ["run", "cups.csv", "--yes"], service);
  expect(await left()).toMatchObject(without);
  expect((await run(where, ["redo", "b", "--yes"], service)).code).toBe(10);
  await run(where, ["approve", "b-v2"]);
  expect(await left()).toMatchObject({ code: 0, files: ["a.png", "b-v2.png", "c.png"] });
});

/** Pictures that nobody has to approve, and two things made of each, one after the other. */
const chain = film
  .replace("approve: true", "model: plain-image")
  .replace(/( {2}- \{ name: clip.*\n)/, '$1  - { name: big, image_url: "@clip" }\n')
  .replace("  - { id: jar, prompt: a jar }\n", "");

test("where nothing has to be approved, a rejected item's next take is approved and used by what follows", async () => {
  const [where, service] = await place({ "film.yaml": chain });
  const did = async (line: string, code = 0) => {
    const end = await run(where, line.split(" "), service);
    expect(end.code, `${line}: ${end.stderr}`).toBe(code);
    return end.stdout + end.stderr;
  };
  await did("run film.yaml --yes");
  await did("reject cup-frame --again --yes", 10);
  await did("approve cup-frame-v2");
  await did("redo cup-clip --yes");
  // The last one would be made of the first clip again, which was made of the rejected frame.
  expect(await did("redo cup-big --yes", 2)).toContain(
    "cup-big would be made of cup-clip again, which was made of a rejected take. Make cup-clip again first, reject it and approve its new take. Nothing was changed.",
  );
  await did("reject cup-clip");
  expect(await did("pick cup-clip-v2")).toContain(
    "`bulkgen approve cup-clip-v2`, then `bulkgen redo cup-big`",
  );
  await did("approve cup-clip-v2");
  await did("redo cup-big --yes");
  const files = async () => (await did("export --final --columns file")).match(/cup-[\w-]+\.png/g);
  expect(await files()).toEqual(["cup-frame-v2.png", "cup-clip-v2.png", "cup-big-v2.png"]);
  // A run of the same sheet takes back no decision.
  await did("run film.yaml --yes");
  expect(await files()).toEqual(["cup-frame-v2.png", "cup-clip-v2.png", "cup-big-v2.png"]);
  await did("approve cup-clip");
  await did("run film.yaml --yes");
  expect(await did("export --columns item,approval")).toContain("cup-clip,approved\r\n");
});

test("the page of a final set names the rows that it lacks, and a ZIP with a missing file ends as the sheet does", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  rmSync(join(where.folder, "outputs/cups/b.png"));
  const page = await run(where, ["gallery", "--final"]);
  expect(page).toMatchObject({ code: 5, stdout: expect.stringContaining("2 final files of job cups") });
  expect(page.stderr).toContain("1 row has no final file:\n  row 3 (b): b.png is missing or changed");
  const said = await run(where, ["gallery", "--final", "--json"]);
  expect(JSON.parse(said.stdout).missing).toMatchObject([{ row: 3, rowId: "b" }]);
  expect((await run(where, ["export", "--final", "--zip", "set.zip"])).code).toBe(5);
});

test("a retake is called as its row is, also after rows have swapped their ids", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  await run(where, ["redo", "a", "b", "c", "--yes"], service);
  await run(where, ["pick", "a-v2", "b-v2"]);
  // a is the jar now, b the cup, and c is called d.
  where.write("cups.csv", "id,model,prompt\na,plain-image,a jar\nb,plain-image,a cup\nd,plain-image,a pot\n");
  const again = await run(where, ["run", "cups.csv", "--yes"], service);
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).not.toContain("pick again");
  const final = await run(where, [
    ..."export --final --zip set.zip --sidecars txt --columns id,item,file,prompt".split(" "),
  ]);
  expect(final, final.stderr).toMatchObject({ code: 0, stderr: expect.not.stringContaining("replaced") });
  const parts = unzip(join(where.folder, "set.zip"));
  expect(String(parts.get("a.txt"))).toBe("a jar");
  expect(String(parts.get("b.txt"))).toBe("a cup");
  expect(String(parts.get("sheet.csv"))).toBe(
    "\uFEFFid,item,file,prompt\r\na,a-v2,a.png,a jar\r\nb,b-v2,b.png,a cup\r\nd,d,d.png,a pot\r\n",
  );
  const files = readdirSync(join(where.folder, "outputs/cups")).filter((name) => name.endsWith("png"));
  expect(files.toSorted()).toEqual(["a-v2.png", "a.png", "b-v2.png", "b.png", "d-v2.png", "d.png"]);
  expect((await run(where, ["redo", "d-v2", "--yes"], service)).code).toBe(0);
  expect(readdirSync(join(where.folder, "outputs/cups"))).toContain("d-v3.png");
});

test("a name that another row has is left to it", async () => {
  const rows = "id,model,prompt,output\na,plain-image,a cup,x\nb,plain-image,a jar,x-v2\n";
  const [where, service] = await place({ "two.csv": rows });
  await run(where, ["run", "two.csv", "--yes"], service);
  await run(where, ["redo", "a", "--yes"], service);
  await run(where, ["pick", "a-v2"]);
  expect((await run(where, ["export", "--final", "--zip", "set.zip"])).code).toBe(0);
  expect(zipped(where).names.filter((name) => name.endsWith("png"))).toEqual(["x-v2.png", "x.png"]);
});

test("rows without a file are named, and decide the exit", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  const no = { status: 400, json: { error: { code: "VALIDATION_ERROR", message: "not with us" } } };
  service.script(({ what, body }) => (what === "POST generate" && body.includes("a jar") ? no : "serve"));
  await run(where, ["run", "cups.csv", "--yes"], service);
  const some = await run(where, ["export", "--final", "--columns", "id,file,reason"]);
  expect(some).toMatchObject({
    code: 5,
    stdout: expect.stringContaining("a,a.png,\r\nb,,"),
    stderr: expect.stringMatching(/^1 row has no final file:\n {2}row 3 \(b\): failed: .*not with us/),
  });
  expect((await run(where, ["export", "--final", "--filter", "id=b", "--zip", "b.zip"])).stderr).toContain(
    "no row has a final file yet, so b.zip would be empty. Nothing was written.",
  );
});

test("a final set while the run goes on has what is made, and names the rest", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  let goesOn = () => {};
  const held = new Promise<"serve">((resolve) => {
    goesOn = () => resolve("serve");
  });
  service.script(({ what, body }) => (what === "POST generate" && body.includes("a pot") ? held : "serve"));
  const running = started(where, ["run", "cups.csv", "--yes", "--events"], service);
  for (const id of ["a", "b"]) await running.prints(new RegExp(`"archived".*"${id}"|"${id}".*"archived"`));
  const early = await run(where, ["export", "--final", "--zip", "early.zip"]);
  expect(early.code, early.stderr).toBe(8);
  expect(early.stderr).toContain("1 row has no final file:\n  row 4 (c): ");
  expect(zipped(where, "early.zip").names).toEqual(["a.png", "b.png", "index.jsonl", "sheet.csv"]);
  goesOn();
  expect((await running.ended).code).toBe(0);
  expect((await run(where, ["export", "--final", "--zip", "whole.zip"])).code).toBe(0);
});

test("a training set is packed with its captions, its facts and a page", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  const words = "export --final --zip set.zip --format jsonl --sidecars txt --with-gallery --columns";
  const packed = await run(where, [...words.split(" "), "file=file_name,prompt=text,width,height"]);
  expect(packed.code, packed.stderr).toBe(0);
  const parts = unzip(join(where.folder, "set.zip"));
  const [first = ""] = String(parts.get("metadata.jsonl")).split("\n");
  expect(JSON.parse(first)).toEqual({
    file_name: "a.png",
    text: "a cup",
    width: expect.any(Number),
    height: expect.any(Number),
  });
  expect(String(parts.get("b.txt"))).toBe("a jar");
  expect(String(parts.get("gallery.html"))).toContain("c.png");
  const alone = await run(where, ["export", "--sidecars", "txt"]);
  expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining("--sidecars is for --zip") });
  const near = await run(where, ["export", "--columns", "file=name,heigth"]);
  expect(near).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean height?") });
});

test("a catalogue has one line for each row", async () => {
  const job =
    "name: shop\nrows:\n  - { id: cup }\nmatrix: { side: [front, back] }\ndefaults: { model: plain-image }\nprompt: the {{ side }}\n";
  const [where, service] = await place({ "shop.yaml": job });
  const made = await run(where, ["run", "shop.yaml", "--yes"], service);
  expect(made.code, made.stderr).toBe(0);
  const sheet = await run(where, ["export", "--per-row", "--columns", "id,file=image"]);
  expect(sheet.stdout).toBe("\uFEFFid,image_1,image_2\r\ncup,cup-front.png,cup-back.png\r\n");
});

/** The first view of A1 is left out, and that of A3 fails. */
const views = `
name: views
rows:
  - { sku: A1, note: x }
  - { sku: A2, lead: "yes" }
  - { sku: A3, lead: "yes", scene: no such thing }
id: "{{ sku }}"
defaults: { model: plain-image }
matrix: { view: [{ value: front, when: "{{ lead }}" }, side] }
prompt: the {{ view }} of {{ sku }}{% if view == "front" %} {{ scene }}{% endif %}
`;

test("in a catalogue a number stands for the same view in every row, and what differs in a row is numbered", async () => {
  const [where, service] = await place({ "views.yaml": views });
  const no = { status: 400, json: { error: { code: "VALIDATION_ERROR", message: "not with us" } } };
  service.script(({ what, body }) =>
    what === "POST generate" && body.includes("no such thing") ? no : "serve",
  );
  await run(where, ["run", "views.yaml", "--yes"], service);
  const words = "export --final --per-row --columns sku,note,view,state,file=image";
  const sheet = await run(where, words.split(" "));
  expect(sheet.code).toBe(5);
  expect(sheet.stdout.replace("\uFEFF", "").trimEnd().split("\r\n")).toEqual([
    "sku,note,view_1,view_2,state_1,state_2,image_1,image_2",
    "A1,x,,side,,archived,,A1-side.png",
    "A2,,front,side,archived,archived,A2-front.png,A2-side.png",
    "A3,,front,side,failed,archived,,A3-side.png",
  ]);
});

const shots = `
name: shots
rows:
  - { id: s-01, client: Ames, note: in a hurry }
  - { id: s-02, client: Baker, note: late with money }
defaults: { model: plain-image }
steps:
  - { name: frame, prompt: a frame }
  - { name: clip, prompt: a clip }
`;

test("a page of a final set names rows and steps, not takes; with --columns it shows only those columns", async () => {
  const [where, service] = await place({ "shots.yaml": shots });
  await run(where, ["run", "shots.yaml", "--yes"], service);
  await run(where, ["redo", "s-01-clip", "s-02-clip", "--yes"], service);
  await run(where, ["pick", "s-01-clip-v2", "s-02-clip", "s-02-clip-v2"]);
  const words = ["export", "--final", "--with-gallery", "--zip"];
  expect((await run(where, [...words, "all.zip"])).code).toBe(0);
  expect((await run(where, [...words, "few.zip", "--columns", "id,step=part,file"])).code).toBe(0);
  expect((await run(where, ["gallery", "--final"])).code).toBe(0);
  const packed = (file: string) => String(unzip(join(where.folder, file)).get("gallery.html"));
  const final = readFileSync(join(where.folder, "outputs/shots/final.html"), "utf8");
  for (const html of [packed("all.zip"), final]) {
    const { cards } = galleryData(html);
    // Of the second row both takes were picked.
    expect(cards.map(({ rowId, variant }) => [rowId, variant])).toEqual([
      ["s-01-frame", 1],
      ["s-01-clip", 1],
      ["s-02-frame", 1],
      ["s-02-clip", 1],
      ["s-02-clip-v2", 2],
    ]);
    expect(cards[1]?.columns).toEqual({ client: "Ames", note: "in a hurry", step: "clip" });
  }
  const few = packed("few.zip");
  expect(galleryData(few).cards[1]?.columns).toEqual({ part: "clip" });
  expect(few).not.toMatch(/Ames|hurry/);
  // Whoever packs takes by name sees which they are.
  await run(where, ["export", "--zip", "take.zip", "--with-gallery", "--filter", "item=s-01-clip-v2"]);
  expect(galleryData(packed("take.zip")).cards).toMatchObject([{ rowId: "s-01-clip-v2", variant: 2 }]);
});

test("a file that is gone is not handed over: the sheet says so, as the ZIP does", async () => {
  const [where, service] = await place({ "cups.csv": cups });
  await run(where, ["run", "cups.csv", "--yes"], service);
  rmSync(join(where.folder, "outputs/cups/b.png"));
  const said = "b.png is missing or changed; `bulkgen verify --repair` downloads it again, free of charge";
  const sheet = await run(where, ["export", "--final", "--columns", "id,file,reason"]);
  expect(sheet).toMatchObject({
    code: 5,
    stdout: expect.stringContaining(`a,a.png,\r\nb,b.png,"${said}"\r\nc,c.png,`),
    stderr: `1 row has no final file:\n  row 3 (b): ${said}\n`,
  });
  const zip = await run(where, ["export", "--final", "--zip", "set.zip"]);
  expect(zip).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("1 file is missing or changed: b.png."),
  });
  expect((await run(where, ["verify", "--repair"], service)).code).toBe(0);
  expect((await run(where, ["export", "--final", "--zip", "set.zip"])).code).toBe(0);
});
