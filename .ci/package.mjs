/**
 * Checks what `npm publish` would take, without installing it: publint's rules, and those of "are the types wrong", as
 * far as a package that is an ES module alone can break them. Also prints the size.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What npm packs: the report of `npm pack --json`, whose form depends on npm's version. */
export function packReport(text) {
  const report = JSON.parse(text);
  return Array.isArray(report) ? report[0] : Object.values(report)[0];
}

/** Problems of a package in `folder`, whose files are these paths. */
export async function packageProblems(folder, files) {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const packed = new Set(files);
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true });
  return [
    ...messages.map((message) => formatMessage(message, manifest)),
    ...strangers(files),
    ...entryProblems(manifest, packed),
    ...importProblems(folder, manifest, packed),
  ];
}

/** What nobody who installs the package needs. */
function strangers(files) {
  const needless =
    /^(test|scripts|\.ci)\/|^examples\/(?!models\/)|^src\/(?!sandbox\/assets\/|providers\/descriptions\/)|^dist\/cli\/|\.(map|webp|tgz|tsbuildinfo)$|(^|\/)\.(env|bulkgen|built-from)/;
  return files.filter((file) => needless.test(file)).map((file) => `${file} is packed, and nobody needs it`);
}

/** Every entry leads to a file, with types of its own format that are named first. */
function entryProblems({ exports, bin, man, type }, packed) {
  const problems =
    type === "module" ? [] : ['type is not "module": the .js files would be taken for CommonJS'];
  /** A file, or with a star in its path at least one. */
  const has = (path) => {
    const [before, after] = normalize(path).split("*");
    if (after === undefined) return packed.has(before);
    return [...packed].some((file) => file.startsWith(before) && file.endsWith(after));
  };
  for (const path of Object.values(bin)) if (!has(path)) problems.push(`bin ${path} is not packed`);
  for (const path of man) if (!has(path)) problems.push(`man ${path} is not packed`);
  for (const [name, entry] of Object.entries(exports)) {
    const conditions = typeof entry === "string" ? { default: entry } : entry;
    for (const path of Object.values(conditions))
      if (!has(path)) problems.push(`${name}: ${path} is not packed`);
    if (typeof entry === "string") continue;
    const [first] = Object.keys(entry);
    if (first !== "types") problems.push(`${name}: types are not the first condition`);
    if (entry.types?.replace(/\.d\.ts$/, ".js") !== entry.default)
      problems.push(`${name}: the types are not those of ${entry.default}`);
    if ("require" in entry) problems.push(`${name}: has a CommonJS entry, which there is none of`);
  }
  return problems;
}

/** All that an entry imports, code and types, is packed, is an ES module, or is a package that is installed with it. */
function importProblems(folder, manifest, packed) {
  const { exports, dependencies, peerDependencies = {}, optionalDependencies = {} } = manifest;
  // Optional packages may be absent, which only what is loaded later can bear, and types.
  const optional = Object.keys({ ...peerDependencies, ...optionalDependencies });
  const problems = [];
  for (const entry of [exports["."].default, exports["."].types]) {
    const seen = new Set();
    const waiting = [normalize(entry)];
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      if (seen.has(file) || !packed.has(file)) continue;
      seen.add(file);
      const text = readFileSync(join(folder, file), "utf8");
      if (/^(module\.exports|exports\.\w+) =/m.test(text))
        problems.push(`${file} is CommonJS in an ES module's place`);
      for (const [, how, from = ""] of text.matchAll(/\b(from |import |import\()"([^"]+)"/g)) {
        if (from.startsWith("node:")) continue;
        if (!from.startsWith(".")) {
          const name = from.split("/", from.startsWith("@") ? 2 : 1).join("/");
          const mayBeAbsent = how === "import(" || file.endsWith(".d.ts");
          if (!(name in dependencies) && !(mayBeAbsent && optional.includes(name)))
            problems.push(`${file} imports ${name}, which is no dependency`);
          if (file.endsWith(".d.ts") && !hasTypes(name))
            problems.push(`${file} imports ${name}, which brings no types`);
          continue;
        }
        const target = join(dirname(file), entry.endsWith(".d.ts") ? from.replace(/\.js$/, ".d.ts") : from);
        if (!packed.has(target)) problems.push(`${file} imports ${from}, which is not packed`);
        waiting.push(target);
      }
    }
  }
  return problems;
}

/** Those of `@types/` are not installed with the package. */
function hasTypes(name) {
  const { types, typings } = JSON.parse(
    readFileSync(join(root, "node_modules", name, "package.json"), "utf8"),
  );
  return (types ?? typings) !== undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!existsSync(join(root, "dist", "index.js"))) throw new Error("not built: run `npm run build` first");
  const { status, stdout, stderr } = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: resolve(root),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  const report = packReport(stdout);
  const problems = await packageProblems(
    root,
    report.files.map(({ path }) => path),
  );
  for (const problem of problems) console.error(problem);
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  console.log(
    `package: ${report.entryCount} files, ${megabytes(report.size)} packed, ${megabytes(report.unpackedSize)} unpacked`,
  );
  process.exitCode = problems.length > 0 ? 1 : 0;
}
