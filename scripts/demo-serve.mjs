#!/usr/bin/env node
/**
 * A service of one's own on this machine: `bulkgen serve` with the models of examples/studio, a key with a budget, a sheet that
 * is made through it, and its gallery. Nothing is installed or paid for. All is in outputs/demo-serve, made anew each time.
 */
import { spawn } from "node:child_process";
import { accessSync, constants, cpSync, mkdirSync, rmSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bulkgen = join(root, "dist", "bin", "bulkgen.js");
const folder = join(root, "outputs", "demo-serve");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
cpSync(join(root, "examples", "studio"), folder, { recursive: true });

/** Starts a command in the folder, and shows its line. What it prints is shown, or given to `read`. */
function start(args, { env = {}, read } = {}) {
  console.log(`\n$ bulkgen ${args.map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ")}`);
  const child = spawn(process.execPath, [bulkgen, ...args], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", read ? "pipe" : "inherit", "inherit"],
  });
  if (read) child.stdout.setEncoding("utf8").on("data", read);
  const ended = new Promise((resolve) => child.once("close", resolve));
  return { child, ended };
}

async function output(args) {
  let text = "";
  const { ended } = start(args, { read: (piece) => (text += piece) });
  return (await ended) === 0 ? text.trim() : Promise.reject(new Error(`bulkgen ${args[0]} failed`));
}

function isInstalled(program) {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((each) => each !== "");
  return folders.some((each) => {
    try {
      accessSync(join(each, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const hasVoice = isInstalled("espeak-ng");
if (!hasVoice) console.log("espeak-ng is not installed, so the two voices are left out.");

// A models file may come from somebody else, so what it starts or sends is agreed to first.
await start(["trust", "--models", "models.yaml", "--yes"]).ended;
let served;
// Also when nobody reads the output any more.
process.on("exit", () => served?.child.kill("SIGTERM"));
try {
  const url = await new Promise((resolve, reject) => {
    let text = "";
    served = start(["serve", "--json"], {
      read: (piece) => {
        text += piece;
        if (text.includes("\n")) resolve(JSON.parse(text).url);
      },
    });
    void served.ended.then((code) => reject(new Error(`bulkgen serve ended with ${code}`)));
  });
  console.log(`serving the models of examples/studio at ${url}`);
  const key = await output(["serve", "keys", "create", "anna", "--credits-per-month", "50"]);
  const env = { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key };
  await start(["models"], { env }).ended;
  const rows = hasVoice ? [] : ["--filter", "model=tea-banner"];
  const code = await start(["run", "jobs/demo.csv", "--yes", ...rows], { env }).ended;
  await start(["serve", "keys", "list"]).ended;
  await start(["gallery"]).ended;
  console.log(`\nopen ${relative(process.cwd(), join(folder, "outputs", "demo", "gallery.html"))}`);
  process.exitCode = code ?? 1;
} finally {
  served?.child.kill("SIGTERM");
  await served?.ended;
}
