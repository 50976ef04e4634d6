import {
  type Finding,
  finding,
  importsOf,
  nameOf,
  parse,
  type SourceFile,
  type SyntaxNode,
  type Visit,
  visit,
} from "./syntax.js";

/**
 * Clock, timers, randomness, fetch and the process come as arguments; only one file may take the real ones. The check works on
 * the syntax tree and forbids every way to the forbidden thing that someone takes without meaning harm: an alias, a
 * destructuring, an import of `node:timers/promises`, a call of SQLite's own clock inside a statement.
 */
const exempt = "src/system.ts";

/** A page runs in a browser, where it has a clock, timers and fetch of its own. */
const exemptInBrowser = ["src/page/dashboard/system.ts", "src/page/parts/service/system.ts"];

/** Worker threads have a process of their own to talk to. */
const threads = ["src/archive/check/inspector-worker.ts", "src/sandbox/studio/worker.ts"];

/** What a file may use all the same. */
const allowances: Readonly<Record<string, string>> = {
  // Group commits end with the turn of the event loop, which is no time: a simulation hands in its own turn all the same.
  "src/store/open.ts": "setImmediate",
  // The S3 client is handed undici's, whose requests end with the run. It never speaks to the service.
  "src/bucket/bucket.ts": "fetch",
};

/** What any file may ask of the process. Streams, environment, folder, arguments, signals and exit come as a machine. */
const processMembers = ["platform", "pid", "versions", "execPath", "getuid", "kill"];

/** Globals of which some uses are harmless: as `new` with an argument, or through these members. */
const globals: Readonly<Record<string, { members: readonly string[]; newWithArgument?: true }>> = {
  Date: { members: ["parse", "UTC", "prototype"], newWithArgument: true },
  AbortSignal: { members: ["any", "abort", "prototype"] },
};

const forbiddenMembers: Readonly<Record<string, readonly string[]>> = {
  Math: ["random"],
  Atomics: ["wait", "waitAsync"],
};

const forbiddenNames = new Set([
  "systemClock",
  "systemRandom",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "performance",
  "fetch",
  "globalThis",
  "global",
  "randomUUID",
  "randomBytes",
  "randomInt",
  "randomFill",
  "randomFillSync",
  "getRandomValues",
  "hrtime",
]);

/** Forbidden as members of anything, because the object has many names (`crypto`, `webcrypto`, a namespace). */
const forbiddenProperties = new Set(["randomUUID", "randomBytes", "randomInt", "getRandomValues", "hrtime"]);

const forbiddenModules = /^(node:)?(timers|timers\/promises|perf_hooks|process)$/;

const sqlClock =
  /\bcurrent_(timestamp|date|time)\b|\b(datetime|date|time|strftime|julianday|unixepoch)\s*\(([^()]*,\s*)?'now'|\bunixepoch\s*\(\s*\)|\brandom\s*\(\s*\)|\brandomblob\s*\(/i;

/** The service and the sandbox have the connections of a service. */
function isAside(path: string): boolean {
  return /^src\/(service|sandbox)\//.test(path) || /^src\/serve\/(serve|page\/serve-page)\.ts$/.test(path);
}

export function checkBans(files: readonly SourceFile[]): Finding[] {
  const sources = files.filter((file) => file.path.startsWith("src/"));
  return [
    ...sources
      .filter(({ path }) => path !== exempt && !exemptInBrowser.includes(path) && !threads.includes(path))
      .flatMap((file) => [...bannedImports(file), ...bannedUses(file)]),
    ...sources.filter((file) => file.path !== client).flatMap(secondClients),
    ...sources.filter(({ path }) => !isAside(path)).flatMap(otherConnections),
    ...sources
      .filter(({ path }) => ![payment, repeating].includes(path) && path !== client && !isAside(path))
      .flatMap(otherPayments),
    ...sources.filter((file) => file.path !== transition).flatMap(otherTransitions),
    ...sources.filter((file) => importsOf(file).some(({ from }) => from === "../script.js")).flatMap(unasked),
  ];
}

/** The one file that may change the state of an item. */
const transition = "src/store/workspace/transition.ts";

/** A statement that sets the state: what comes after WHERE only compares it. */
const setsState = /\bupdate\s+items\s+set\b(?:(?!\bwhere\b)[\s\S])*?\bstate\s*=/i;

function otherTransitions(file: SourceFile): Finding[] {
  return visit(parse(file), holdsValues)
    .filter(({ node }) => setsState.test(stringOf(node) ?? ""))
    .map(({ node }) =>
      finding(file, node.start, `sets the state of an item: only applyTransition in ${transition} does`),
    );
}

/** In a script of queries (`src/store/script.ts`), a call whose result nobody takes is a query that is never asked. */
function unasked(file: SourceFile): Finding[] {
  const all = visit(parse(file), holdsValues);
  const functions = all.map(({ node }) => node).filter(({ type }) => /Function/.test(type));
  const isInScript = ({ start }: SyntaxNode) =>
    functions.findLast((one) => one.start <= start && start < Number(one["end"]))?.["generator"] === true;
  return all.flatMap(({ node, parent }) => {
    if (!isInScript(node)) return [];
    if (node.type !== "CallExpression" || parent?.type !== "ExpressionStatement") return [];
    const callee = node["callee"] as SyntaxNode;
    const name = nameOf(callee) ?? nameOf(callee["property"]) ?? "";
    if (callee.type !== "Identifier" && !["run", "insert", "get", "all", "value"].includes(name)) return [];
    return [finding(file, node.start, `calls ${name} and drops the result: without yield* nothing is asked`)];
  });
}

/** The one file that may open HTTP to the service: there the key is removed from every answer (P21). */
const client = "src/client/service.ts";

function secondClients(file: SourceFile): Finding[] {
  return importsOf(file)
    .filter(({ from, names }) => names.includes("openHttp") || (from?.endsWith("client/http.js") ?? false))
    .map(({ start }) =>
      finding(
        file,
        start,
        `imports openHttp: only ${client} opens HTTP to the service, so that the key is removed from every answer`,
      ),
    );
}

/**
 * The one file that sends paid requests: there each is on record before it leaves (P1). The other one repeats what has left, where
 * the service knows it by its key.
 */
const payment = "src/run/submit.ts";
const repeating = "src/run/repeat.ts";

function otherPayments(file: SourceFile): Finding[] {
  return visit(parse(file), holdsValues)
    .filter(({ node, parent }) =>
      node.type === "MemberExpression"
        ? propertyOf(node) === "generate"
        : parent?.type === "ObjectPattern" && nameOf(node["key"]) === "generate",
    )
    .map(({ node }) =>
      finding(
        file,
        node.start,
        `uses generate: only ${payment} sends a paid request, and ${repeating} repeats one, so that each is on record before it leaves`,
      ),
    );
}

/** Who opens connections, and to what. Only the first speaks to the service; the sandbox, which is one, stands aside. */
const connecting: Readonly<Record<string, string>> = {
  "src/client/http.ts": "the service",
  "src/proxy/tunnel.ts": "proxies, for the others",
  "src/archive/download/download.ts": "the addresses of outputs",
  "src/bucket/bucket.ts": "S3-compatible stores",
  "src/notify/deliver.ts": "webhooks",
  "src/providers/send.ts": "providers",
  "src/serve/works/inputs.ts": "the addresses of inputs",
  "src/serve/works/outputs.ts": "the files of providers",
  "src/store/postgres/connection.ts": "PostgreSQL",
  "src/providers/comfyui/machine.ts": "machines with ComfyUI",
};

const networkModules = /^(undici|(node:)?(https?|http2|net|tls|dgram))$/;

/** Types, and what only reads an address, connect to nothing. */
const harmless = new Set(["AddressInfo", "LookupFunction", "isIP"]);

function otherConnections(file: SourceFile): Finding[] {
  if (connecting[file.path] !== undefined) return [];
  return importsOf(file)
    .filter(
      ({ from, names }) => networkModules.test(from ?? "") && !names.every((name) => harmless.has(name)),
    )
    .map(({ from, start }) =>
      finding(
        file,
        start,
        `imports ${from}: requests to the service go through ${client}, and connections to anything else are opened by the files that test/tidy/bans.ts names`,
      ),
    );
}

function bannedImports(file: SourceFile): Finding[] {
  return importsOf(file).flatMap(({ from, names, start }) => {
    if (from !== null && forbiddenModules.test(from)) return [banned(file, start, from)];
    return names
      .filter((name) => forbiddenNames.has(name) && allowances[file.path] !== name)
      .map((name) => banned(file, start, name));
  });
}

function bannedUses(file: SourceFile): Finding[] {
  return visit(parse(file), holdsValues).flatMap((at) => {
    const name = offence(at);
    return name === undefined || allowances[file.path] === name ? [] : [banned(file, at.node.start, name)];
  });
}

function banned(file: SourceFile, start: number, name: string): Finding {
  return finding(
    file,
    start,
    `uses ${name}: clock, timers, randomness, fetch and the process are arguments; only ${exempt} has the real ones`,
  );
}

/** Types name a clock without using it. */
function holdsValues(node: SyntaxNode): boolean {
  const expressions = ["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression", "TSTypeAssertion"];
  return (
    !node.type.startsWith("TS") || expressions.includes(node.type) || node.type === "TSParameterProperty"
  );
}

function offence({ node, parent, field }: Visit): string | undefined {
  if (node.type === "Identifier" && isReference(node, parent, field))
    return globalOffence(node, parent, field);
  if (node.type === "MemberExpression") {
    const property = propertyOf(node);
    return property !== undefined && forbiddenProperties.has(property) ? property : undefined;
  }
  const sql = stringOf(node);
  return sql === undefined ? undefined : sqlClock.exec(sql)?.[0];
}

/** Whether an identifier stands for a value, and is not the name of a member or of a property. */
function isReference(node: SyntaxNode, parent: SyntaxNode | undefined, field: string): boolean {
  if (parent === undefined) return true;
  if (parent.type === "MemberExpression") return field === "object" || parent["computed"] === true;
  if (["Property", "MethodDefinition", "PropertyDefinition", "AccessorProperty"].includes(parent.type)) {
    return field === "value" || parent["computed"] === true;
  }
  if (["ImportSpecifier", "ExportSpecifier"].includes(parent.type))
    return field === "local" && node !== parent["imported"];
  return true;
}

function globalOffence(node: SyntaxNode, parent: SyntaxNode | undefined, field: string): string | undefined {
  const name = nameOf(node) ?? "";
  if (forbiddenNames.has(name)) return name;
  if (name === "process") return processOffence(parent, field);
  const member = parent?.type === "MemberExpression" && field === "object" ? propertyOf(parent) : undefined;
  const forbidden = forbiddenMembers[name];
  if (forbidden !== undefined) {
    if (member !== undefined) return forbidden.includes(member) ? `${name}.${member}` : undefined;
    const taken = parent?.type === "VariableDeclarator" ? destructured(parent) : undefined;
    if (taken !== undefined) return taken.find((key) => key === "*" || forbidden.includes(key));
    // `Math[word]` and `const other = Math`: nobody can see what is taken.
    return parent?.type === "VariableDeclarator" || parent?.type === "MemberExpression" ? name : undefined;
  }
  const allowed = globals[name];
  if (allowed === undefined) return undefined;
  if (member !== undefined) return allowed.members.includes(member) ? undefined : `${name}.${member}`;
  if (parent?.type === "BinaryExpression" && parent["operator"] === "instanceof") return undefined;
  if (allowed.newWithArgument && parent?.type === "NewExpression" && field === "callee") {
    const [first] = parent["arguments"] as SyntaxNode[];
    return first !== undefined && first.type !== "SpreadElement" ? undefined : `new ${name}() without a time`;
  }
  return name;
}

function processOffence(parent: SyntaxNode | undefined, field: string): string | undefined {
  const isObject = parent?.type === "MemberExpression" && field === "object";
  const taken = parent?.type === "VariableDeclarator" ? destructured(parent) : undefined;
  const names = isObject ? [propertyOf(parent) ?? "*"] : (taken ?? ["*"]);
  const found = names.find((member) => !processMembers.includes(member));
  return found === undefined ? undefined : found === "*" ? "process" : `process.${found}`;
}

/** The names that `const { … } = thing` takes, "*" for those that cannot be read; undefined when nothing is taken apart. */
function destructured(declarator: SyntaxNode): string[] | undefined {
  const pattern = declarator["id"] as SyntaxNode;
  if (pattern.type !== "ObjectPattern") return undefined;
  return (pattern["properties"] as SyntaxNode[]).map((property) => nameOf(property["key"]) ?? "*");
}

function propertyOf(member: SyntaxNode): string | undefined {
  const property = member["property"] as SyntaxNode;
  return member["computed"] === true && property.type !== "Literal" ? undefined : nameOf(property);
}

function stringOf(node: SyntaxNode): string | undefined {
  if (node.type === "Literal") return nameOf(node);
  return node.type === "TemplateElement" ? (node["value"] as { raw: string }).raw : undefined;
}
