import { parseAst } from "vitest/node";

/** A file as the checks see it: its path from the root of the checkout, with slashes, and its text. */
export interface SourceFile {
  path: string;
  text: string;
}

export interface Finding {
  path: string;
  line: number;
  message: string;
}

/** A node of the syntax tree (ESTree, with TypeScript's own nodes as `TS…`). */
export interface SyntaxNode {
  type: string;
  start: number;
  [field: string]: unknown;
}

export interface Visit {
  node: SyntaxNode;
  parent: SyntaxNode | undefined;
  /** The field of the parent in which the node lies. */
  field: string;
}

const parsed = new WeakMap<SourceFile, SyntaxNode>();

export function parse(file: SourceFile): SyntaxNode {
  let tree = parsed.get(file);
  if (tree === undefined) {
    tree = parseAst(
      file.text,
      { lang: file.path.endsWith(".tsx") ? "tsx" : "ts" },
      file.path,
    ) as unknown as SyntaxNode;
    parsed.set(file, tree);
  }
  return tree;
}

/** Every node, parents first. A node for which `enter` is false is passed over with all that it holds. */
export function visit(tree: SyntaxNode, enter: (node: SyntaxNode) => boolean = () => true): Visit[] {
  const visits: Visit[] = [];
  const walk = (node: SyntaxNode, parent: SyntaxNode | undefined, field: string) => {
    if (!enter(node)) return;
    visits.push({ node, parent, field });
    // There are millions of nodes, so nothing is built to look at their fields.
    for (const name in node) {
      const value = node[name];
      if (Array.isArray(value)) {
        for (const each of value) if (isNode(each)) walk(each, node, name);
      } else if (isNode(value)) walk(value, node, name);
    }
  };
  walk(tree, undefined, "");
  return visits;
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && typeof (value as SyntaxNode).type === "string";
}

/** The name of an identifier, the text of a string, or undefined. */
export function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === "Identifier") return node["name"] as string;
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"];
  return undefined;
}

function lineAt(file: SourceFile, offset: number): number {
  return file.text.slice(0, offset).split("\n").length;
}

export function finding(file: SourceFile, offset: number, message: string): Finding {
  return { path: file.path, line: lineAt(file, offset), message };
}

export interface Import {
  /** What is imported, as written; null when it is computed and nobody can read it. */
  from: string | null;
  /** The names taken, as the other module calls them; "*" for all of it. */
  names: string[];
  start: number;
}

/**
 * Everything a file loads: static, type-only, dynamic and re-exporting imports, `require`, a worker's URL, and a compiled
 * module of the package (`packageFile("dist/…")`).
 */
export function importsOf(file: SourceFile): readonly Import[] {
  let imports = imported.get(file);
  if (imports === undefined) {
    imports = visit(parse(file)).flatMap(({ node }) => {
      const from = sourceOf(node);
      return from === undefined ? [] : [{ from, names: takenNames(node), start: node.start }];
    });
    imported.set(file, imports);
  }
  return imports;
}

const imported = new WeakMap<SourceFile, readonly Import[]>();

function sourceOf(node: SyntaxNode): string | null | undefined {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "TSImportType":
      return literal(node["source"]);
    case "ExportNamedDeclaration":
      return node["source"] === null ? undefined : literal(node["source"]);
    case "CallExpression": {
      const [target] = node["arguments"] as SyntaxNode[];
      if (nameOf(node["callee"]) === "require") return literal(target);
      const isModule =
        nameOf(node["callee"]) === "packageFile" && /^dist\/.*\.js$/.test(nameOf(target) ?? "");
      return isModule ? nameOf(target) : undefined;
    }
    case "NewExpression": {
      const [target, base] = node["arguments"] as SyntaxNode[];
      const aModule =
        nameOf(node["callee"]) === "URL" && base?.type === "MemberExpression" && isNode(base["object"]);
      const path = nameOf(target);
      const isOwn = aModule && (base["object"] as SyntaxNode).type === "MetaProperty";
      return isOwn && path !== undefined && /\.[cm]?[jt]s$/.test(path) ? path : undefined;
    }
    default:
      return undefined;
  }
}

function literal(node: unknown): string | null {
  if (isNode(node) && node.type === "TemplateLiteral" && (node["expressions"] as unknown[]).length === 0) {
    const [only] = node["quasis"] as { value: { cooked: string } }[];
    return only?.value.cooked ?? null;
  }
  return isNode(node) && node.type === "Literal" ? String(node["value"]) : null;
}

function takenNames(node: SyntaxNode): string[] {
  const specifiers = node["specifiers"] as SyntaxNode[] | undefined;
  if (specifiers === undefined) return ["*"];
  return specifiers.map((specifier) => {
    if (specifier.type === "ImportDefaultSpecifier") return "default";
    return (
      nameOf(specifier["imported"] ?? (specifier.type === "ExportSpecifier" ? specifier["local"] : null)) ??
      "*"
    );
  });
}
