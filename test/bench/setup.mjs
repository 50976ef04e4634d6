/** What benches have in common: flags, a folder, the built command, a service, sheets and medians. */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const short = process.argv.includes("--short");

/** The built command. */
export const main = fileURLToPath(new URL("../../dist/bin/bulkgen.js", import.meta.url));

/** The word behind a flag of the command line. */
export function wordOf(flag, fallback) {
  const at = process.argv.indexOf(flag);
  return at < 0 ? fallback : process.argv[at + 1];
}

export function numberOf(flag, fallback) {
  return Number(wordOf(flag, fallback));
}

/** A folder that is gone when the process ends; on tmpfs, if asked for and where there is one. */
export function newFolder(name, { onTmpfs = false } = {}) {
  const folder = mkdtempSync(
    join(onTmpfs && existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), `bulkgen-bench-${name}-`),
  );
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The address of a service that a bench (see throughput.mjs) is in a process of its own, which ends with this one. */
export async function startService(bench = "throughput", ...args) {
  const file = fileURLToPath(new URL(`${bench}.mjs`, import.meta.url));
  const server = fork(file, ["serve", ...args.map(String)]);
  const [url] = await once(server, "message");
  server.unref();
  server.channel.unref();
  process.once("exit", () => server.kill());
  return url;
}

/** What a command is started with that has all its files in a folder. */
export function environmentOf(folder, url) {
  const own = { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: `svc_${"b".repeat(32)}` };
  return { ...process.env, ...own, XDG_STATE_HOME: join(folder, "state"), HOME: folder };
}

/** Starts the command in a folder. */
export function start(
  folder,
  url,
  words,
  { node = [], stdout = "ignore", stderr = "inherit", more = [] } = {},
) {
  return spawn(process.execPath, [...node, main, ...words], {
    cwd: folder,
    env: environmentOf(folder, url),
    stdio: ["ignore", stdout, stderr, ...more],
  });
}

/** Waits until a process has ended well. */
export async function ended(child) {
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`${child.spawnargs.slice(1).join(" ")} ended with ${code}`);
}

/** Writes a sheet of so many rows, the first of which is `first`. */
export function writeSheet(path, header, count, row, first = 0) {
  mkdirSync(dirname(path), { recursive: true });
  const descriptor = openSync(path, "w");
  let text = `${header}\n`;
  for (let n = first; n < first + count; n++) {
    text += `${row(n)}\n`;
    if (text.length < 1_000_000) continue;
    writeSync(descriptor, text);
    text = "";
  }
  writeSync(descriptor, text);
  closeSync(descriptor);
}

/** Rows that the service of throughput.mjs makes. */
export function writePictures(path, count, letter = "n") {
  writeSheet(path, "id,model,prompt", count, (n) => `${letter}-${n},plain-image,picture ${n}`);
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}
