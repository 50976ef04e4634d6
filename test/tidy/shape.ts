import {
  type Finding,
  finding,
  isNode,
  nameOf,
  parse,
  type SourceFile,
  type SyntaxNode,
  visit,
} from "./syntax.js";

const emptyNames = /(^|\/)(utils?|helpers?|common|types|misc)(\.[a-z.]+)?$/;

/** Files are named after their subject, hold one, and are imported from where the thing is. */
export function checkSources(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => file.path.startsWith("src/"))
    .flatMap((file) => [...checkName(file), ...checkExports(file)]);
}

function checkName(file: SourceFile): Finding[] {
  const folderOrFile = file.path.split("/").find((part) => emptyNames.test(part));
  return folderOrFile === undefined
    ? []
    : [finding(file, 0, `is named ${folderOrFile}: name it after its subject`)];
}

function checkExports(file: SourceFile): Finding[] {
  const body = parse(file)["body"] as SyntaxNode[];
  const found = body
    .filter((node) => node.type === "ExportDefaultDeclaration" || exportsAsDefault(node))
    .map((node) => finding(file, node.start, "has a default export: export it by name"));
  const reexportsAll =
    body.length > 0 && body.every((node) => node.type.startsWith("Export") && isNode(node["source"]));
  const isBarrel = file.path !== "src/index.ts" && (reexportsAll || /\/index\.ts$/.test(file.path));
  return isBarrel
    ? [...found, finding(file, 0, "is a barrel inside a room: import from the file itself")]
    : found;
}

function exportsAsDefault(node: SyntaxNode): boolean {
  const specifiers = (node["specifiers"] ?? []) as SyntaxNode[];
  return specifiers.some((specifier) => nameOf(specifier["exported"]) === "default");
}

const skipping = ["skip", "only", "todo", "skipIf", "runIf", "fails"];
const runners = ["test", "it", "describe", "suite", "bench", "context", "ctx"];

/** Every test runs, every time. */
export function checkTests(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => /^test\/.*\.ts$/.test(file.path))
    .flatMap((file) =>
      visit(parse(file)).flatMap(({ node }) => {
        const word = skippingWord(node);
        return word === undefined
          ? []
          : [finding(file, node.start, `uses ${word}: every test runs, every time`)];
      }),
    );
}

function skippingWord(node: SyntaxNode): string | undefined {
  if (node.type === "MemberExpression") {
    const word = nameOf(node["property"]);
    return word !== undefined && skipping.includes(word) && runners.includes(rootOf(node)) ? word : undefined;
  }
  if (node.type !== "CallExpression") return undefined;
  const called = nameOf(node["callee"]);
  if (called !== undefined && ["xit", "xtest", "xdescribe", "fit", "fdescribe"].includes(called))
    return called;
  if (!runners.includes(rootOf(node["callee"]))) return undefined;
  return (node["arguments"] as SyntaxNode[]).map(skippingOption).find((word) => word !== undefined);
}

/** `test(name, { skip: true }, …)` and `test(name, ({ skip }) => …)`. */
function skippingOption(argument: SyntaxNode): string | undefined {
  const pattern = /Function/.test(argument.type) ? (argument["params"] as SyntaxNode[])[0] : argument;
  if (pattern?.type !== "ObjectExpression" && pattern?.type !== "ObjectPattern") return undefined;
  return (pattern["properties"] as SyntaxNode[])
    .map((property) => nameOf(property["key"]))
    .find((word) => word !== undefined && skipping.includes(word));
}

/** The first name of `describe.each(…).only`. */
function rootOf(node: unknown): string {
  if (!isNode(node)) return "";
  return nameOf(node) ?? rootOf(node["object"] ?? node["callee"] ?? node["tag"]);
}

// Written so that this file does not hold them itself.
const laterWords = /\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b/;

/** Open work is listed where work is planned, not in the code. */
export function checkLaterWords(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => /^(src|test|scripts)\//.test(file.path))
    .flatMap((file) => matches(file, laterWords, "leaves work in a comment"));
}

const machinePaths = /(?<![\w.}~:/-])(\/(work|root|home\/\w+|Users\/\w+)(?=[/\s"'`),]|$)|[A-Z]:\\Users\\)/m;

/** No file knows the machine on which it was written. */
export function checkPaths(files: readonly SourceFile[], ownPaths: readonly string[]): Finding[] {
  // A checkout in "/app" must not forbid that word.
  const own = ownPaths.filter((path) => path.split(/[\\/]/).filter(Boolean).length >= 2);
  return files.flatMap((file) => {
    const named = own
      .filter((path) => file.text.includes(path))
      .map((path) => finding(file, file.text.indexOf(path), `names ${path}, a path of this machine`));
    return named.length > 0 ? named : matches(file, machinePaths, "names a path of one machine");
  });
}

function matches(file: SourceFile, pattern: RegExp, message: string): Finding[] {
  const match = pattern.exec(file.text);
  return match === null ? [] : [finding(file, match.index, `${message}: ${match[0]}`)];
}
