/**
 * What banners of an HTML template take: 200 in three sizes, one after the other, after the first has started the browser.
 * Needs the build in dist/, and Chromium or Chrome.
 *
 *   node test/bench/banners.mjs [--short] [--items N]
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { templateKind } from "../../dist/providers/template/kind.js";
import { systemClock, systemRandom } from "../../dist/system.js";
import { newFolder, numberOf, short } from "./setup.mjs";

const items = numberOf("--items", short ? 6 : 200);
const sizes = ["1200x628", "1080x1080", "1080x1920"];
const place = newFolder("banners");
writeFileSync(
  join(place, "logo.svg"),
  '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="60"><rect width="160" height="60" rx="12" fill="#fff"/></svg>',
);
writeFileSync(
  join(place, "sale.html"),
  `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; height: {{ height }}px; display: grid; place-content: center; text-align: center; color: #fff;
    background: linear-gradient(135deg, #f06, #60f 60%, #0cf); font: 64px/1.1 sans-serif }
  strong { font-size: 140px; text-shadow: 0 8px 40px #0008 }
  img { position: fixed; right: 40px; bottom: 40px; filter: drop-shadow(0 4px 12px #0006) }
</style><p>{{ prompt }}</p><strong>{{ price }}</strong><img src="logo.svg">`,
);
const { PATH = "", HOME = "" } = process.env;
const settings = { addresses: [], timeoutMs: 60_000, details: {} };
const provider = templateKind.open(settings, {
  clock: systemClock,
  random: systemRandom,
  folder: place,
  key: () => null,
  env: { PATH, HOME },
});
const { signal } = new AbortController();
try {
  await made(0);
  const bySize = new Map(sizes.map((size) => [size, []]));
  const [begin, before] = [performance.now(), processorMs()];
  for (let index = 0; index < items; index++) {
    const { size, ms } = await made(index);
    bySize.get(size).push(ms);
  }
  const [all, processor] = [performance.now() - begin, processorMs() - before];
  for (const [size, times] of [...bySize].filter(([, times]) => times.length > 0)) {
    const sorted = times.sort((a, b) => a - b);
    const at = (share) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]);
    console.log(`${size}: median ${at(0.5)} ms, p95 ${at(0.95)} ms, ${times.length} banners`);
  }
  console.log(
    `${items} banners in ${(all / 1_000).toFixed(1)} s: ${Math.round(all / items)} ms each (aim: 500)`,
  );
  console.log(`processor time of bulkgen and browser: ${Math.round(processor / items)} ms each`);
} finally {
  await provider.close();
  rmSync(place, { recursive: true });
}

/** What this process and all below it have had of the processor (Linux, which counts in 1/100 s). */
function processorMs() {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        // The name, in brackets, may hold anything.
        const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ");
        return [
          { pid: Number(pid), parent: Number(fields[1]), ms: 10 * (Number(fields[11]) + Number(fields[12])) },
        ];
      } catch {
        return [];
      }
    });
  const below = new Set([process.pid]);
  for (const pid of below) for (const each of all) if (each.parent === pid) below.add(each.pid);
  return all.reduce((sum, { pid, ms }) => sum + (below.has(pid) ? ms : 0), 0);
}

/** Makes one banner, and answers with what it took. */
async function made(index) {
  const size = sizes[index % sizes.length];
  const folder = join(place, `job-${index}`);
  mkdirSync(folder, { recursive: true });
  const model = {
    key: "banner",
    name: "Banner",
    category: "image",
    input: "text",
    details: { template: "sale.html" },
  };
  const params = { size, price: `€ ${index}.99` };
  const prompt = `Offer ${index}: everything for kites, מבצע ענק`;
  const begin = performance.now();
  const { outputs } = await provider.submit(
    { id: systemRandom.uuid(), model, prompt, params, media: {}, folder },
    signal,
  );
  if (outputs.length !== 1) throw new Error("no banner was made");
  return { size, ms: performance.now() - begin };
}
