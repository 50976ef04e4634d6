import { posix } from "node:path";
import { type Finding, finding, importsOf, isNode, nameOf, parse, type SourceFile, visit } from "./syntax.js";

const filesMax = 20;

/** A folder is a subject that a newcomer takes in at a glance. */
export function checkFolderSizes(files: readonly SourceFile[]): Finding[] {
  const counts = new Map<string, number>();
  for (const { path } of sourcesOf(files)) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > filesMax)
    .map(([path, count]) => ({
      path,
      line: 1,
      message: `has ${count} files, more than ${filesMax}: give a subject in it a folder of its own`,
    }));
}

/** No two files import each other, directly or through others. Imports of types count. */
export function checkCircles(files: readonly SourceFile[]): Finding[] {
  const sources = new Map(sourcesOf(files).map((file) => [file.path, file]));
  const imports = new Map([...sources].map(([path, file]) => [path, importedBy(file, sources)]));
  return circlesIn(imports).map((circle) => ({
    path: circle[0] ?? "",
    line: 1,
    message: `is in a circle of imports: ${circle.join(", ")}`,
  }));
}

function importedBy(file: SourceFile, sources: ReadonlyMap<string, SourceFile>): string[] {
  return importsOf(file).flatMap(({ from }) => {
    if (from === null || !from.startsWith(".")) return [];
    const path = posix.join(posix.dirname(file.path), from);
    return [".ts", ".tsx"].map((ending) => path.replace(/\.js$/, ending)).filter((each) => sources.has(each));
  });
}

/** The strongly connected components of more than one file (Tarjan's algorithm), each sorted by name. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const enter = (path: string): number => {
    const index = order.size;
    order.set(path, index);
    open.push(path);
    let lowest = index;
    for (const next of graph.get(path) ?? []) {
      if (!order.has(next)) lowest = Math.min(lowest, enter(next));
      else if (open.includes(next)) lowest = Math.min(lowest, order.get(next) ?? lowest);
    }
    low.set(path, lowest);
    if (lowest === index) {
      const component = open.splice(open.indexOf(path));
      if (component.length > 1) circles.push(component.sort());
    }
    return lowest;
  };
  for (const path of graph.keys()) if (!order.has(path)) enter(path);
  return circles;
}

/** A type has one name and one home; two types of one name are distinguished only by where they are imported from. */
export function checkTypeNames(files: readonly SourceFile[]): Finding[] {
  const homes = new Map<string, string>();
  const findings: Finding[] = [];
  for (const file of sourcesOf(files)) {
    for (const { name, start } of exportedTypes(file)) {
      const home = homes.get(name);
      if (home === undefined) homes.set(name, file.path);
      else
        findings.push(finding(file, start, `exports the type ${name}, as ${home} does: rename one of them`));
    }
  }
  return findings;
}

const typeNodes = [
  "TSInterfaceDeclaration",
  "TSTypeAliasDeclaration",
  "ClassDeclaration",
  "TSEnumDeclaration",
];

function exportedTypes(file: SourceFile): { name: string; start: number }[] {
  const body = parse(file)["body"] as { type: string; start: number; declaration?: unknown }[];
  return body.flatMap(({ type, declaration, start }) => {
    if (type !== "ExportNamedDeclaration" || !isNode(declaration)) return [];
    const name = typeNodes.includes(declaration.type) ? nameOf(declaration["id"]) : undefined;
    return name === undefined ? [] : [{ name, start }];
  });
}

/** `...{ a, b }` means `a, b`; it only keeps the formatter from giving each property a line of its own. */
export function checkSpreads(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) =>
    visit(parse(file)).flatMap(({ node, parent }) => {
      if (node.type !== "SpreadElement" || !isNode(node["argument"])) return [];
      const into = parent?.type === "ObjectExpression" ? "ObjectExpression" : "ArrayExpression";
      return node["argument"].type === into
        ? [finding(file, node.start, "spreads a literal into a literal: write its contents there")]
        : [];
    }),
  );
}

function sourcesOf(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(({ path }) => /^src\/.*\.tsx?$/.test(path));
}
