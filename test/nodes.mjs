/**
 * Runs the whole suite on every Node that bulkgen promises to run on, and prints one line for each.
 *
 *   npm run test:nodes [-- 22 24]
 *
 * Each Node comes from npm. The checkout is copied for each of them, because native modules are built
 * for one Node and must not replace those of the checkout that people work in.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodePackage } from "./node-package.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const asked = process.argv.slice(2);
const versions = asked.length > 0 ? asked : ["20", "22", "24"];

let failures = 0;
for (const version of versions) {
  const { line, passed } = await testOn(version);
  console.log(line);
  if (!passed) failures++;
}
process.exitCode = failures > 0 ? 1 : 0;

async function testOn(version) {
  const folder = mkdtempSync(join(tmpdir(), `bulkgen-node${version}-`));
  const log = join(folder, "log.txt");
  const checkout = join(folder, "checkout");
  let passed = false;
  try {
    copyCheckout(checkout);
    const results = join(folder, "results.json");
    const name = await outputOf(version, ["-p", "process.version"], folder);
    const node = (...args) => onNode(version, args, checkout, log);
    if ((await node("scripts/ready.mjs", "--build")) !== 0)
      return { line: failed(name, "could not be set up", log), passed };
    const suite = await node(
      "node_modules/vitest/vitest.mjs",
      "run",
      "-c",
      "test/vitest.config.ts",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${results}`,
    );
    const count = spawnSync(process.execPath, [join(root, ".ci", "test-count.mjs"), results], {
      encoding: "utf8",
    });
    passed = suite === 0 && count.status === 0;
    const counted = count.stdout.trim().split("\n").join("; ");
    return { line: passed ? `node ${name}: ${counted}` : failed(name, counted, log), passed };
  } catch (error) {
    return { line: `node ${version}: ${error.message}`, passed };
  } finally {
    if (passed) rmSync(folder, { recursive: true, force: true });
    else rmSync(join(checkout, "node_modules"), { recursive: true, force: true });
  }
}

/** The files that git knows or would take, so that no build, packages or outputs come along. */
function copyCheckout(to) {
  const git = (args, cwd) => {
    const { status, stdout, stderr } = spawnSync("git", args, {
      cwd,
      encoding: "utf8",
      maxBuffer: 64 * 2 ** 20,
    });
    if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr}`);
    return stdout;
  };
  const files = git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"], root)
    .split("\0")
    .filter(Boolean);
  for (const file of files.filter((name) => existsSync(join(root, name)))) {
    mkdirSync(dirname(join(to, file)), { recursive: true });
    copyFileSync(join(root, file), join(to, file));
  }
  // Tests ask git for the files of the checkout.
  git(["init", "--quiet"], to);
}

/** Runs Node of that version and answers with its exit code; what it prints goes to the log. */
function onNode(version, args, cwd, log) {
  return new Promise((done, broken) => {
    const output = createWriteStream(log, { flags: "a" });
    const child = start(version, args, cwd);
    child.stdout.pipe(output, { end: false });
    child.stderr.pipe(output, { end: false });
    child.on("error", broken);
    child.on("close", (code) => output.end(() => done(code ?? 1)));
  });
}

function outputOf(version, args, cwd) {
  return new Promise((done, broken) => {
    const child = start(version, args, cwd);
    let text = "";
    let trouble = "";
    child.stdout.on("data", (piece) => (text += piece));
    child.stderr.on("data", (piece) => (trouble += piece));
    child.on("error", broken);
    child.on("close", (code) =>
      code === 0 ? done(text.trim()) : broken(new Error(`cannot be run: ${trouble.trim()}`)),
    );
  });
}

function start(version, args, cwd) {
  // Variables that npm set for this run would tell the other Node's npm to use this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_|^NODE$/i.test(name)));
  return spawn("npx", ["-y", "-p", nodePackage(version), "node", ...args], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function failed(name, what, log) {
  const tail = existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n").slice(-40) : [];
  return [`node ${name}: ${what}; the end of ${log}:`, ...tail.map((line) => `    ${line}`)].join("\n");
}
