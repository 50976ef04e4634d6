// The archive's way of saving (transfer, hash, check, sync, link, index) against a bare stream from undici into a file
// with one fsync: bytes a second of one large output, and of outputs of 1 MiB of which sixteen are saved at once, taking
// turns within one run; and the memory while a large output is saved. The server is a process of its own. Needs the
// build in dist/.
//
//   node test/bench/archive.mjs [--short]
import { mkdirSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { median, newFolder, short, startService } from "./setup.mjs";

const mebibyte = 2 ** 20;
const rounds = short ? 1 : 7;
const bytesARound = (short ? 8 : 256) * mebibyte;
/** Outputs of 1 MiB, and how many are saved at the same time. The server sends whole MiB. */
const smallBytes = mebibyte;
const filesARound = short ? 32 : 320;
const atOnce = 16;
const largeBytes = (short ? 64 : 2048) * mebibyte;

if (process.argv[2] === "serve") serve();
else await measure();

/** Bitmaps of any size: their first bytes are all that a check can read, so the transfer is what is measured. */
function serve() {
  const piece = Buffer.alloc(mebibyte, 7);
  const server = createServer((request, reply) => {
    const size = Number(request.url.slice(1));
    reply.writeHead(200, { "content-length": size });
    const head = Buffer.from(piece);
    head.write("BM", 0, "latin1");
    // What it states of its size is true.
    head.writeUInt32LE(size, 2);
    let sent = 0;
    const more = () => {
      while (sent < size) {
        const bytes = sent === 0 ? head : piece;
        sent += bytes.length;
        if (!reply.write(bytes)) return;
      }
      reply.end();
    };
    reply.on("drain", more);
    more();
  });
  server.listen(0, "127.0.0.1", () => process.send(`http://127.0.0.1:${server.address().port}`));
}

async function measure() {
  const url = await startService("archive");
  const folder = newFolder("archive");
  const archive = await openOurs(url);
  await compare("one output of", bytesARound, folder, {
    ours: (name) => save(archive, url, folder, name, bytesARound),
    bare: (name) => stream(`${url}/${bytesARound}`, join(folder, `${name}.bmp`)),
  });
  await compare(`${filesARound} outputs, ${atOnce} at once, together`, filesARound * smallBytes, folder, {
    ours: (name) => many((n) => save(archive, url, join(folder, name), `${n}`, smallBytes)),
    bare: (name) => {
      mkdirSync(join(folder, name));
      return many((n) => stream(`${url}/${smallBytes}`, join(folder, name, `${n}`)));
    },
  });
  await memory(archive, url, folder);
  await archive.close();
  await archive.end();
}

/** Ours and the bare way in turns. */
async function compare(what, bytes, folder, ways) {
  const rates = { ours: [], bare: [] };
  for (let round = 0; round <= rounds; round++) {
    // Who comes first finds the disk as the other left it, so they take turns at that too. The first round warms up.
    const order = round % 2 === 0 ? ["ours", "bare"] : ["bare", "ours"];
    for (const way of order) {
      const rate = bytes / (await timed(() => ways[way](`${way}-${round}`))) / 1000;
      if (round > 0) rates[way].push(rate);
    }
    for (const name of order.flatMap((way) => [`${way}-${round}`, `${way}-${round}.bmp`]))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
  const [ours, bare] = [median(rates.ours), median(rates.bare)];
  console.log(
    `archive  ${what} ${(bytes / 1e6).toFixed(0)} MB: ${ours.toFixed(0)} MB/s   bare stream with fsync ${bare.toFixed(0)} MB/s   ratio ${(ours / bare).toFixed(2)}`,
  );
}

async function many(act) {
  let next = 0;
  const lane = async () => {
    while (next < filesARound) await act(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

async function openOurs(url) {
  const [{ openArchive }, { undiciDownloads }, { openInspector }, { nodeDisk }, { systemClock }] =
    await Promise.all(
      [
        "archive/save",
        "archive/download/download",
        "archive/check/inspector",
        "archive/disk/node-disk",
        "system",
      ].map((module) => import(`../../dist/${module}.js`)),
    );
  const downloads = undiciDownloads({ baseUrl: url });
  const inspector = openInspector({ clock: systemClock });
  const ports = { disk: nodeDisk, download: downloads.download, clock: systemClock, version: "bench" };
  const archive = openArchive({ ...ports, inspect: inspector.inspect });
  const end = () => Promise.all([inspector.close(), downloads.close()]);
  return { ...archive, end };
}

async function save(archive, url, jobFolder, name, size) {
  const facts = { item: name, key: name, task: name, external_task: null, model: "m", prompt: null };
  const index = { ...facts, params: {}, inputs: {}, credits: null, created: null, completed: null };
  const address = { url: `${url}/${size}`, jobFolder, name, outputNumber: 1, outputCount: 1 };
  const result = await archive.save({ ...address, category: "any", index });
  if (result.kind !== "saved") throw new Error(JSON.stringify(result));
}

async function stream(url, path) {
  const { request } = await import("undici");
  const { body } = await request(url);
  const file = await open(path, "wx");
  for await (const piece of body) await file.write(piece);
  await file.sync();
  await file.close();
}

async function memory(archive, url, folder) {
  let most = 0;
  const before = process.memoryUsage().rss;
  const looking = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 50);
  await save(archive, url, folder, "large", largeBytes);
  clearInterval(looking);
  const mb = (bytes) => `${(bytes / mebibyte).toFixed(0)} MiB`;
  console.log(`memory   ${mb(largeBytes)} saved: resident ${mb(before)} before, ${mb(most)} at most`);
}

async function timed(act) {
  const start = process.hrtime.bigint();
  await act();
  return Number(process.hrtime.bigint() - start) / 1e6;
}
