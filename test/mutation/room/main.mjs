/**
 * Changes all the code of one room in every small way, and says which changes no test of that room notices:
 *
 *   npm run mutation:room -- core
 *   npm run mutation:room -- plan names.ts requests.ts   those of these files, each that is left in a line
 *   npm run mutation:room -- store windows.ts sqlite.test.ts   by these tests alone, where a room has many slow ones
 *
 * The changes are Stryker's own. Stryker loads all code again for each of them; here each test is repeated in one process
 * with one change after the other. What is decided when code is loaded, such as a table or a regular expression at the top
 * of a file, cannot be changed so, and is left out: `npm run mutation` has it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [room = "core", ...named] = process.argv.slice(2);
const isTest = (name) => name.endsWith(".test.ts");
const only = named.filter((name) => !isTest(name));
const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const packages = join(root, "node_modules");
const copy = mkdtempSync(join(tmpdir(), "bulkgen-mutation-"));
const folder = join(copy, ".mutation");
const scratch = join(copy, ".scratch");

try {
  cpSync(root, copy, { recursive: true, filter: (path) => ![packages, join(root, ".git")].includes(path) });
  symlinkSync(packages, join(copy, "node_modules"));
  for (const path of [folder, scratch]) mkdirSync(path);
  const changes = await instrument();
  // A change is tried with quick tests first: most are noticed by one of those.
  for (const tests of ["cover", "quick", "slow"]) run(tests);
  report(changes);
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** Puts every change into the copy's code, each behind a question. Returns the changes. */
async function instrument() {
  const { createInstrumenter } = await import(
    join(packages, "@stryker-mutator/instrumenter/dist/src/index.js")
  );
  const { createInjector } = await import(join(packages, "typed-inject/dist/src/index.js"));
  const instrumenter = createInjector()
    .provideValue("logger", { debug() {}, info() {}, isDebugEnabled: () => false })
    .provideValue("options", {})
    .injectFunction(createInstrumenter);
  const files = execFileSync("git", ["ls-files", `src/${room}`], { cwd: root, encoding: "utf8" }).split("\n");
  const sources = files
    .filter((file) => file.endsWith(".ts") && (only.length === 0 || only.includes(basename(file))))
    .map((file) => ({
      name: join(copy, file),
      mutate: true,
      content: readFileSync(join(copy, file), "utf8"),
    }));
  const options = { ignorers: [], excludedMutations: [], plugins: null, noHeader: false };
  const made = await instrumenter.instrument(sources, options);
  for (const { name, content } of made.files) writeFileSync(name, content);
  const before = new Map(sources.map(({ name, content }) => [name, content]));
  return made.mutants.map((change) => ({ ...change, content: before.get(change.fileName) }));
}

function run(tests) {
  const chosen = named.filter(isTest).join();
  const own = {
    ROOM: room,
    ROOM_TESTS: chosen,
    MUTATION_FOLDER: folder,
    MUTATION_TESTS: tests,
    TMPDIR: scratch,
  };
  spawnSync(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "-c", "test/mutation/room/vitest.config.ts"],
    {
      cwd: copy,
      stdio: "ignore",
      env: { ...process.env, NODE_NO_WARNINGS: "1", ...own },
    },
  );
}

function report(changes) {
  const cover = JSON.parse(readFileSync(join(folder, "cover.json"), "utf8"));
  const lines = readFileSync(join(folder, "noticed.txt"), "utf8").split("\n");
  const noticed = new Set(lines.map((line) => line.split(" ")[0]));
  const late = lines.filter((line) => line.endsWith(" took too long")).length;
  const tried = changes.filter(({ id }) => !cover.static[id]);
  if (cover.failed.length > 0)
    console.log(`${cover.failed.length} tests failed without any change and were left out`);
  const share = (of) => `${((100 * of.filter(({ id }) => noticed.has(id)).length) / of.length).toFixed(1)}%`;
  for (const file of new Set(tried.map(({ fileName }) => fileName))) {
    const own = tried.filter(({ fileName }) => fileName === file);
    console.log(`${file.slice(copy.length + 1)}  ${own.length} changes, ${share(own)} noticed`);
    if (only.length > 0) for (const change of own) if (!noticed.has(change.id)) show(change);
  }
  console.log(
    `${room}  ${tried.length} changes, ${share(tried)} noticed, ${late} by a test that took too long; ${changes.length - tried.length} at load left out`,
  );
}

function show({ content, location: { start, end }, replacement }) {
  const line = content.split("\n")[start.line] ?? "";
  const was = line.slice(start.column, start.line === end.line ? end.column : undefined);
  console.log(
    `  ${start.line + 1}:${start.column + 1}  ${was}  →  ${replacement.replace(/\s+/g, " ").slice(0, 100)}`,
  );
}
