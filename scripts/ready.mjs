#!/usr/bin/env node
/**
 * Makes a checkout ready: installs the packages when they are not those of the lockfile, and with `--build` compiles
 * and bundles when the build is not that of the sources. Silent when there is nothing to do. It runs before anything is
 * installed, so it uses Node's own modules alone. `--native-later` leaves native modules (SQLite, a minute of one core) to
 * the next call, so that what does not need them can run beside their compiler.
 *
 * Contents are compared, never times: a fresh clone gives every file the time of the clone.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { headersFolder } from "./headers.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const inRoot = (...names) => join(root, ...names);
const bundler = inRoot("scripts", "bundle.mjs");
const pageBundler = inRoot("scripts", "page.mjs");
const manual = inRoot("scripts", "man.mjs");
const schemas = inRoot("scripts", "schemas.mjs");
const nativeLater = process.argv.includes("--native-later");
/** Which Node the native modules are compiled for. */
const builtForNote = inRoot("node_modules", ".bulkgen-node");
const notCompiled = "not compiled yet";

class SetupFailure extends Error {
  constructor(message, exitCode) {
    super(message);
    this.exitCode = exitCode;
  }
}

try {
  if (!isInstalled()) install();
  else if (!nativeLater && readText(builtForNote) === notCompiled) compileNative();
  if (process.argv.includes("--build") && !isBuilt()) build();
} catch (error) {
  if (!(error instanceof SetupFailure)) throw error;
  say(error.message);
  process.exitCode = error.exitCode;
}

/** npm writes down what it installed, last of all; so an installation that broke off never counts. */
function isInstalled() {
  const wanted = packagesOf(inRoot("package-lock.json"));
  const present = packagesOf(inRoot("node_modules", ".package-lock.json"));
  const same = Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const installed = present[path];
    // Binaries for other platforms are in the lockfile but not on the disk.
    if (installed === undefined) return entry.optional === true;
    return installed.version === entry.version && installed.integrity === entry.integrity;
  });
  // Native modules are compiled for one Node; without a note of which, they are taken for this one's.
  const builtFor = readText(builtForNote);
  return same && Object.keys(present).length > 0 && [null, notCompiled, nodeFlavour()].includes(builtFor);
}

function install() {
  say("installing packages (npm ci), the first time takes a minute or two");
  const options = nativeLater ? ["--ignore-scripts"] : [];
  // npm's messages go to stderr: stdout belongs to the command that runs after this.
  run("npm ci", "npm", ["ci", "--no-fund", "--no-audit", "--loglevel=error", ...options], compilerEnv());
  writeFileSync(builtForNote, nativeLater ? notCompiled : nodeFlavour());
}

function compileNative() {
  say("compiling native modules (npm rebuild)");
  run("npm rebuild", "npm", ["rebuild", "--loglevel=error"], compilerEnv());
  writeFileSync(builtForNote, nodeFlavour());
}

function compilerEnv() {
  const nodedir = headersFolder();
  return nodedir === null ? process.env : { ...process.env, npm_config_nodedir: nodedir };
}

function nodeFlavour() {
  return `${process.platform} ${process.arch} modules ${process.versions.modules}`;
}

function isBuilt() {
  return readText(inRoot("dist", ".built-from")) === fingerprint();
}

/** Compiles and bundles aside and then swaps, so that deleted sources do not linger and no one meets half a build. */
function build() {
  say("compiling");
  const from = fingerprint();
  const fresh = inRoot("node_modules", ".cache", `bulkgen-build-${process.pid}`);
  const old = `${fresh}-old`;
  try {
    const compiler = inRoot("node_modules", "typescript", "bin", "tsc");
    run("tsc", process.execPath, [compiler, "-p", "tsconfig.json", "--outDir", fresh]);
    run("the bundler", process.execPath, [bundler, fresh]);
    run("the page's bundler", process.execPath, [pageBundler, fresh]);
    run("the manual", process.execPath, [manual, fresh]);
    run("the schemas", process.execPath, [schemas, fresh]);
    chmodSync(join(fresh, "bin", "bulkgen.js"), 0o755);
    writeFileSync(join(fresh, ".built-from"), from);
    if (existsSync(inRoot("dist"))) renameSync(inRoot("dist"), old);
    renameSync(fresh, inRoot("dist"));
  } finally {
    rmSync(fresh, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

/** A hash over all that the build is made from. */
function fingerprint() {
  const sources = readdirSync(inRoot("src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(tsx?|css|html|svg)$/.test(entry.name))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  const hash = createHash("sha256");
  for (const file of [
    inRoot("package.json"),
    inRoot("tsconfig.json"),
    inRoot("package-lock.json"),
    inRoot("src", "page", "tsconfig.json"),
    bundler,
    pageBundler,
    manual,
    schemas,
    ...[
      "bundled-undici.mjs",
      "bundled-sharp.mjs",
      "bundled-crc32.mjs",
      "start.mjs",
      "keep-code.mjs",
      "notices.mjs",
    ].map((name) => inRoot("scripts", name)),
    ...sources,
  ]) {
    const text = readText(file) ?? "";
    hash.update(`${file.slice(root.length)}\0${text.length}\0${text}`);
  }
  return hash.digest("hex");
}

function run(name, command, args, env = process.env) {
  const result = spawnSync(command, args, { cwd: root, env, stdio: ["ignore", 2, 2] });
  if (result.error) throw new SetupFailure(`cannot start ${name}: ${result.error.message}`, 1);
  if (result.status !== 0) throw new SetupFailure(`${name} failed`, result.status ?? 1);
}

function say(message) {
  process.stderr.write(`bulkgen setup: ${message}\n`);
}

function packagesOf(path) {
  const text = readText(path);
  return text === null ? {} : JSON.parse(text).packages;
}

function readText(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}
