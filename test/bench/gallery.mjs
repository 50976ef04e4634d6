/**
 * What the gallery of many pictures takes: the first call, which makes the previews, and the second, which finds them,
 * beside a bare loop of sharp that makes the same previews of the same files, four at once, and keeps none. The workspace is
 * made as for *Resume*, and its pictures are written beside. Needs the build in dist/.
 *
 *   node test/bench/gallery.mjs [--short] [--items N] [--side PIXELS] [--format png|jpeg|webp]
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import sharp from "sharp";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { ended, newFolder, numberOf, short, start, startService, wordOf } from "./setup.mjs";

const Sqlite = createRequire(import.meta.url)("better-sqlite3");
const items = numberOf("--items", short ? 40 : 5_000);
const side = numberOf("--side", 640);
const format = wordOf("--format", "png");
/** As the gallery. */
const [thumbnailSide, atOnce] = [560, 4];
const kinds = 8;

const url = await startService();
const folder = newFolder("gallery");
await makeBigWorkspace({ folder, url, archived: items });
const pictures = await Promise.all(Array.from({ length: kinds }, (_, seed) => pictureOf(seed)));
const files = writeFiles(pictures);
const bytes = Math.round(pictures.reduce((all, { length }) => all + length, 0) / kinds / 1_000);
console.log(
  `gallery of ${items} pictures of ${side} × ${side}, ${format}, ${bytes} kB each, Node ${process.version}`,
);
const first = await secondsOf(gallery);
const second = await secondsOf(gallery);
const bare = await secondsOf(bareLoop);
console.log(`first call   ${told(first)}, ${(first / bare).toFixed(2)} of the bare loop`);
console.log(`second call  ${told(second)}, ${(second / first).toFixed(3)} of the first`);
console.log(`bare loop    ${told(bare)}`);

/** Shapes on a gradient: neither as plain as a colour nor as hard to compress as noise. */
async function pictureOf(seed) {
  const shapes = Array.from({ length: 40 }, (_, n) => {
    const at = (prime) => (prime * (n + 1) * (seed + 3)) % side;
    return `<circle cx="${at(7_919)}" cy="${at(104_729)}" r="${8 + (at(1_299_709) % (side / 6))}" fill="hsl(${at(611_953)} 60% 50%)" fill-opacity=".35"/>`;
  });
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="${side}" height="${side}"><defs><linearGradient id="g" x2="1" y2="1"><stop stop-color="#246"/><stop offset="1" stop-color="#eb8"/></linearGradient></defs><rect width="${side}" height="${side}" fill="url(#g)"/>${shapes.join("")}</svg>`;
  return sharp(Buffer.from(drawing)).removeAlpha().toFormat(format).toBuffer();
}

/** A file for each item, each with a hash of its own, as pictures of different prompts have. */
function writeFiles(pictures) {
  const db = new Sqlite(join(folder, ".bulkgen/state.db"));
  const mime = `image/${format}`;
  db.prepare(
    "UPDATE outputs SET mime = ?, sha256 = printf('%08x%056x', (item_id * 2654435761) % 4294967296, item_id)",
  ).run(mime);
  const files = db.prepare("SELECT file FROM outputs ORDER BY item_id").pluck().all();
  db.close();
  return files.map((file, n) => {
    const path = join(folder, "outputs/sheet", file);
    writeFileSync(path, pictures[n % kinds]);
    return path;
  });
}

async function gallery() {
  await ended(start(folder, url, ["gallery"]));
}

async function bareLoop() {
  const left = [...files];
  const lane = async () => {
    for (let file = left.pop(); file !== undefined; file = left.pop())
      await sharp(readFileSync(file))
        .resize(thumbnailSide, thumbnailSide, { fit: "inside", withoutEnlargement: true })
        .webp()
        .toBuffer();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

async function secondsOf(act) {
  const began = performance.now();
  await act();
  return (performance.now() - began) / 1_000;
}

function told(seconds) {
  return `${seconds.toFixed(2)} s`.padStart(8);
}
