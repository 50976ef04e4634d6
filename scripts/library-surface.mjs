/**
 * What `import "bulkgen"` offers, read from the compiled declarations (dist/index.d.ts and what it names): for the file
 * that keeps the surface (test/library/surface.txt) and for docs/api.md.
 */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";

const root = fileURLToPath(new URL("../dist/", import.meta.url));
const files = new Map();

/** A declaration file: what it declares, by name, and which names it takes from which file. */
export function declarations(path) {
  let known = files.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(path, "utf8");
  known = { path, text, own: new Map(), taken: new Map(), exported: [] };
  files.set(path, known);
  for (const node of parseAst(text, { lang: "dts" }).body) {
    const from = node.source?.value;
    const file = from?.startsWith(".") ? join(dirname(path), from.replace(/\.js$/, ".d.ts")) : null;
    for (const { local, exported, imported } of node.specifiers ?? []) {
      const names = { name: (exported ?? local).name, file, original: (imported ?? local).name };
      if (file !== null && node.type === "ImportDeclaration") known.taken.set(local.name, names);
      if (file !== null && node.type === "ExportNamedDeclaration") known.exported.push(names);
    }
    const declared = node.declaration ?? node;
    for (const name of namesOf(declared)) {
      known.own.set(name, node);
      if (node.type === "ExportNamedDeclaration") known.exported.push({ name, file: path, original: name });
    }
  }
  return known;
}

function namesOf(node) {
  if (node.type === "VariableDeclaration") return node.declarations.map(({ id }) => id.name);
  return node.id?.name === undefined ? [] : [node.id.name];
}

/** Everything that is exported, in its order: name, where it is declared, its text with and without comments. */
export function exportedNames() {
  return declarations(join(root, "index.d.ts")).exported.map(({ name, file, original }) => ({
    name,
    ...declared(file, original),
  }));
}

export function declared(path, name) {
  const file = declarations(path);
  const node = file.own.get(name);
  if (node === undefined) throw new Error(`${path} does not declare ${name}`);
  const { start, end } = node;
  const doc = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(file.text.slice(0, start))?.[1] ?? "";
  const full = file.text.slice(start, end);
  const lines = full.replace(/\/\*\*[\s\S]*?\*\//g, "").split("\n");
  const text = lines.filter((line) => line.trim() !== "").join("\n");
  return { path, doc: doc.replace(/^ *\* ?/gm, "").trim(), text };
}

/** The declarations of ours that a declaration names, as `[path, name]`. */
function named({ path, text }) {
  const { own, taken } = declarations(path);
  const found = [...text.matchAll(/import\("(\.[^"]+)"\)\.(\w+)/g)].map(([, from, name]) => [
    join(dirname(path), from.replace(/\.js$/, ".d.ts")),
    name,
  ]);
  for (const [word] of text.matchAll(/\b[A-Za-z_]\w*\b/g)) {
    if (own.has(word)) found.push([path, word]);
    const other = taken.get(word);
    if (other !== undefined) found.push([other.file, other.original]);
  }
  return found;
}

/** The exported declarations, and then those that they name, without comments. */
export function surface() {
  const exported = exportedNames();
  const seen = new Set(exported.map(({ path, text }) => `${path} ${text}`));
  const others = [];
  const waiting = exported.flatMap(named);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const found = declared(...next);
    const key = `${found.path} ${found.text}`;
    if (seen.has(key)) continue;
    seen.add(key);
    others.push(found);
    waiting.push(...named(found));
  }
  const told = others.map(({ path, text }) => `// ${relative(root, path)}\n${text}`).toSorted();
  return [
    '// What `import "bulkgen"` exports.',
    ...exported.map(({ text }) => text),
    "// What that names.",
    ...told,
    "",
  ].join("\n\n");
}
