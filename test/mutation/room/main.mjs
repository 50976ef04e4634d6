/**
 * Changes all the code of one room (`core`, `plan` or `archive`) in every small way, and says which changes no test of that
 * room notices:
 *
 *   npm run mutation:room -- core
 *   npm run mutation:room -- plan --only names.ts   the changes of these files, one below the other
 *
 * The changes are Stryker's own. Stryker loads all code again for each of them; here each test is repeated in one process
 * with one change after the other, which takes a tenth of the time. What is decided when code is loaded, such as a table or
 * a regular expression at the top of a file, cannot be changed so, and is left out: `npm run mutation` has it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  options: { only: { type: "string" } },
  allowPositionals: true,
});
const [room = "core"] = positionals;
const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const packages = join(root, "node_modules");
const copy = mkdtempSync(join(tmpdir(), "bulkgen-mutation-"));
const folder = join(copy, ".mutation");

try {
  copyTree();
  const changes = await instrument();
  run({ MUTATION_COVER: "1" });
  // A change is tried with quick tests first: most are noticed by one of those.
  for (const ms of [30, 300, undefined]) run(ms === undefined ? {} : { MUTATION_MS: String(ms) });
  report(changes);
} finally {
  rmSync(copy, { recursive: true, force: true });
}

function copyTree() {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  for (const file of files.split("\n"))
    if (file !== "" && existsSync(join(root, file))) cpSync(join(root, file), join(copy, file));
  cpSync(join(root, "dist"), join(copy, "dist"), { recursive: true });
  symlinkSync(packages, join(copy, "node_modules"));
  mkdirSync(folder);
}

/** Puts every change into the copy's code, each behind a question. Returns the changes. */
async function instrument() {
  const { createInstrumenter } = await import(
    join(packages, "@stryker-mutator/instrumenter/dist/src/index.js")
  );
  const { createInjector } = await import(join(packages, "typed-inject/dist/src/index.js"));
  const silent = { debug() {}, info() {}, isDebugEnabled: () => false };
  const instrumenter = createInjector()
    .provideValue("logger", silent)
    .provideValue("options", {})
    .injectFunction(createInstrumenter);
  const files = execFileSync("git", ["ls-files", `src/${room}`], { cwd: root, encoding: "utf8" });
  const sources = files
    .split("\n")
    .filter((file) => file.endsWith(".ts") && file.includes(values.only ?? ""))
    .map((file) => ({
      name: join(copy, file),
      mutate: true,
      content: readFileSync(join(copy, file), "utf8"),
    }));
  const options = { ignorers: [], excludedMutations: [], plugins: null, noHeader: false };
  const made = await instrumenter.instrument(sources, options);
  for (const { name, content } of made.files) writeFileSync(name, content);
  return made.mutants.map((change) => ({ ...change, file: change.fileName.slice(copy.length + 1) }));
}

function run(environment) {
  spawnSync(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "-c", "test/mutation/room/vitest.config.ts"],
    {
      cwd: copy,
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, NODE_NO_WARNINGS: "1", ROOM: room, MUTATION_FOLDER: folder, ...environment },
    },
  );
}

function report(changes) {
  const cover = JSON.parse(readFileSync(join(folder, "cover.json"), "utf8"));
  const noticed = new Set(
    readFileSync(join(folder, "noticed.txt"), "utf8")
      .split("\n")
      .map((line) => line.split(" ")[0]),
  );
  const tried = changes.filter(({ id }) => !cover.static[id]);
  const share = (of) => `${((100 * of.filter(({ id }) => noticed.has(id)).length) / of.length).toFixed(1)}%`;
  for (const file of new Set(tried.map((change) => change.file))) {
    const own = tried.filter((change) => change.file === file);
    console.log(`${file}  ${own.length} changes, ${share(own)} noticed`);
    if (values.only !== undefined) for (const change of own) if (!noticed.has(change.id)) show(change);
  }
  console.log(
    `${room}  ${tried.length} changes, ${share(tried)} noticed; ${changes.length - tried.length} at load left out`,
  );
}

function show({ file, location: { start, end }, replacement }) {
  const line = readFileSync(join(root, file), "utf8").split("\n")[start.line] ?? "";
  const was = line.slice(start.column, start.line === end.line ? end.column : undefined);
  console.log(
    `  ${start.line + 1}:${start.column + 1}  ${was}  →  ${replacement.replace(/\s+/g, " ").slice(0, 100)}`,
  );
}
