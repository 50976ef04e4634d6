#!/usr/bin/env node
/**
 * A fleet on this machine: a database, three workers, and a run that hands its downloads out to them. One worker is
 * killed on the way. Everything is in a temporary folder, and costs nothing: the service is the sandbox.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startOwnPostgres } from "./postgres.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bulkgen = join(root, "dist", "bin", "bulkgen.js");
const folder = mkdtempSync(join(tmpdir(), "bulkgen-fleet-"));
console.log("Starting a database …");
const given = process.env.TEST_DATABASE_URL;
const database =
  given === undefined
    ? await startOwnPostgres()
    : { url: `${given}?schema=demo_${process.pid}`, stop: async () => {} };
const children = new Set();

function start(args, shown) {
  if (shown) console.log(`\n$ bulkgen ${args.join(" ")}`);
  const child = spawn(process.execPath, [bulkgen, ...args, "--sandbox", "--workspace", folder], {
    env: { ...process.env, BULKGEN_DATABASE_URL: database.url },
    stdio: ["ignore", shown ? "inherit" : "pipe", shown ? "inherit" : "pipe"],
  });
  children.add(child);
  const ended = new Promise((resolve) =>
    child.once("close", (code) => {
      children.delete(child);
      resolve(code);
    }),
  );
  return { child, ended };
}

function startWorker(number) {
  const { child, ended } = start(["worker", "--only", "archive", "--downloads", "2"], false);
  return new Promise((resolve) => {
    child.stderr.setEncoding("utf8").on("data", (text) => {
      process.stdout.write(text.replace(/^bulkgen:/gm, `worker ${number}:`));
      if (text.includes("is ready")) resolve({ child, ended });
    });
    void ended.then(() => resolve({ child, ended }));
  });
}

try {
  console.log("\n$ bulkgen worker --only archive --downloads 2     (three times)");
  const workers = [await startWorker(1), await startWorker(2), await startWorker(3)];
  const running = start(["run", join(root, "jobs", "demo.csv"), "--yes", "--no-work"], true);
  const killed = new Promise((resolve) => setTimeout(resolve, 6_000)).then(() => {
    console.log("\n(worker 1 is killed)\n");
    workers[0].child.kill("SIGKILL");
  });
  const code = await running.ended;
  await killed;
  await start(["fleet"], true).ended;
  await start(["verify"], true).ended;
  console.log("\n(the workers are asked to end)");
  for (const { child } of workers) child.kill("SIGTERM");
  await Promise.all(workers.map(({ ended }) => ended));
  process.exitCode = code ?? 1;
} finally {
  for (const child of children) child.kill("SIGKILL");
  await database.stop();
  rmSync(folder, { recursive: true, force: true });
}
