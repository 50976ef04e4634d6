/**
 * The sections of README.md and docs/ that are made from the code, so that they always agree with it: help, flags,
 * settings, the error table, the exit codes, an item's states. Each is between `<!-- begin: NAME -->` and
 * `<!-- end: NAME -->`. Reads the compiled program.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { typesOfLibrary } from "./api-page.mjs";
import { exportedNames } from "./library-surface.mjs";

/** README.md, CONTRIBUTING.md and every page of docs/, as paths from the root of the checkout, the current folder. */
export function pages() {
  const docs = readdirSync("docs", { recursive: true }).toSorted();
  const ours = docs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
  return ["README.md", "CONTRIBUTING.md", ...ours].filter((page) => existsSync(page));
}

/** Name and Markdown of every section. */
export async function sections() {
  const [
    apiErrors,
    { exitCodes },
    { transitionList, itemStates },
    { commandList },
    { flagEntries, programHelp },
    { nameOf, variableOf },
    { documents },
  ] = await Promise.all(
    [
      "api/errors.js",
      "core/exit.js",
      "core/item.js",
      "cli/command-list.js",
      "cli/help.js",
      "options/definition.js",
      "documents/documents.js",
    ].map((path) => import(new URL(`../dist/${path}`, import.meta.url))),
  );
  const library = await typesOfLibrary();
  const run = commandList.find(({ name }) => name === "run");
  const others = commandList.filter((command) => command !== run);
  return {
    errors: errors(apiErrors),
    exits: exits(exitCodes),
    states: states(transitionList, itemStates),
    help: ["```", "$ bulkgen --help", programHelp(commandList, 100), "```"].join("\n"),
    "run-flags": flags(flagEntries(run.flags)),
    "other-flags": otherFlags(others, flagEntries, new Set(texts(flagEntries(run.flags)))),
    settings: settings(run.flags, nameOf, variableOf),
    "trusted-settings": trustedSettings(run.flags, nameOf),
    "json-documents": jsonDocuments(
      documents,
      JSON.parse(readFileSync("test/documents/examples.txt", "utf8")),
    ),
    "library-functions": libraryFunctions(exportedNames()),
    "library-types": types(library.shown),
    "library-parts": types(library.parts),
    ...examples(),
  };
}

/** The text with the content of its sections replaced. Throws when a marker has no section, or no end. */
export function withSections(text, made, file = "README.md") {
  const pattern = /<!-- begin: ([\w-]+) -->\n[\s\S]*?<!-- end: \1 -->/g;
  const seen = [];
  const result = text.replace(pattern, (_, name) => {
    if (made[name] === undefined) throw new Error(`${file} names a section that nothing makes: ${name}`);
    seen.push(name);
    return `<!-- begin: ${name} -->\n${made[name]}\n<!-- end: ${name} -->`;
  });
  const open = sectionsIn(text).find((name) => !seen.includes(name));
  if (open !== undefined) throw new Error(`${file}: section ${open} has no end`);
  return result;
}

/** Names of the sections that a text has a place for. */
export function sectionsIn(text) {
  return [...text.matchAll(/<!-- begin: ([\w-]+) -->/g)].map((match) => match[1]);
}

/** Each document, the commands that print it, and an example; of events one of each kind. */
function jsonDocuments(documents, examples) {
  return Object.entries(documents)
    .filter(([name]) => name !== "manifest")
    .map(([name, { what, commands = [] }]) => {
      const lines = commands.map((command) => `\`bulkgen ${command} --json\``).join(", ");
      const shown = Object.entries(examples)
        .filter(([key]) => key === name || key.startsWith(`${name} `))
        .map(([, example]) => example);
      const text =
        name === "event"
          ? shown.map((each) => JSON.stringify(each)).join("\n")
          : shown.map((each) => JSON.stringify(each, null, 2)).join("\n");
      const said = `This is ${what}.${lines === "" ? "" : ` Printed by ${lines}.`}`;
      return [`### ${name}`, said, ["```json", text, "```"].join("\n")].join("\n\n");
    })
    .join("\n\n");
}

/** The exported functions with their comments. */
function libraryFunctions(exported) {
  return exported
    .filter(({ text }) => text.startsWith("export declare function "))
    .map(({ name, text, doc }) =>
      [`### ${name}`, typescript(text.replace(/^export declare /, "")), doc].join("\n\n"),
    )
    .join("\n\n");
}

/** Types with their comments. */
function types(list) {
  return list
    .map(({ name, doc, code }) =>
      [`### ${name}`, ...(doc === "" ? [] : [doc]), typescript(code)].join("\n\n"),
    )
    .join("\n\n");
}

/** The examples, each as a section of its own: they are type-checked and run by tests. */
function examples() {
  const names = readdirSync("examples").filter((name) => name.endsWith(".ts"));
  return Object.fromEntries(
    names.map((name) => [
      `example-${name.slice(0, -".ts".length)}`,
      typescript(readFileSync(`examples/${name}`, "utf8").trimEnd()),
    ]),
  );
}

function typescript(code) {
  return ["```ts", code, "```"].join("\n");
}

function orList(all) {
  return `${all.slice(0, -1).join(", ")} or ${all.at(-1)}`;
}

function errors({ errorTable, refusingStatuses }) {
  const rows = errorTable.map(({ code, status, endpoint, condition, runner, documented }) => [
    `\`${code}\`${documented ? "" : " *"}`,
    status,
    endpoint,
    condition,
    runner,
  ]);
  const table = markdownTable(["Code", "Status", "Endpoint", "When", "What bulkgen does"], rows);
  return errorTable.every((row) => row.documented)
    ? table
    : [
        table,
        "\\* not documented by the service, but handled.",
        `Other statuses: a paid request with a complete ${orList(refusingStatuses)} was not carried out, so its item fails and ` +
          "nothing was charged; its words are the item's reason. Any other status may have been charged, and is settled. A 401, " +
          "402 or 403 without its code from the table may come from a firewall: bulkgen reads the account, and if nothing is wrong " +
          "with it, the answer is about this request alone, and its item fails.",
      ].join("\n\n");
}

function exits(exitCodes) {
  return markdownTable(
    ["Exit code", "Meaning"],
    exitCodes.map(({ code, meaning }) => [code, meaning]),
  );
}

/** Steps that lead the same way share an arrow. */
function states(transitionList, itemStates) {
  const arrows = new Map();
  for (const { from, event, to } of transitionList) {
    const arrow = `${from} --> ${to}`;
    arrows.set(arrow, [...(arrows.get(arrow) ?? []), event.replaceAll("_", " ")]);
  }
  const first = itemStates.includes("blocked") ? ["blocked", "planned"] : ["planned"];
  const lines = [
    "stateDiagram-v2",
    ...first.map((state) => `    [*] --> ${state}`),
    ...[...arrows].map(([arrow, events]) => `    ${arrow}: ${events.join(" / ")}`),
  ];
  return ["```mermaid", ...lines, "```"].join("\n");
}

/** The flags of a command, as a table. */
function flags(entries) {
  return markdownTable(
    ["Flag", "What it does"],
    entries.map(({ entry: [flag, text] }) => [`\`${flag}\``, text]),
  );
}

/** The flags of the other commands, each where it first comes; `shown` has those that are listed already. */
function otherFlags(commands, flagEntries, shown, above = "bulkgen") {
  return commands
    .map(({ name, flags: own = {}, subcommands = [] }) => {
      const path = `${above} ${name}`;
      const entries = flagEntries(own).filter(({ entry }) => !shown.has(entry.join()));
      for (const text of texts(entries)) shown.add(text);
      const table = entries.length === 0 ? [] : [`### Flags of \`${path}\``, flags(entries)];
      const below = otherFlags(subcommands, flagEntries, shown, path);
      return [...table, ...(below === "" ? [] : [below])].join("\n\n");
    })
    .filter((text) => text !== "")
    .join("\n\n");
}

function texts(entries) {
  return entries.map(({ entry }) => entry.join());
}

/** The flags that may be set in a file or in the environment. */
function settings(runFlags, nameOf, variableOf) {
  const rows = Object.entries(runFlags)
    .filter(([, { inFiles }]) => inFiles !== "never")
    .map(([attribute, { inFiles, fromFolder }]) => {
      const name = nameOf(attribute);
      // A key in the environment is the key itself, not the file it is in.
      const variable = attribute === "apiKeyFile" ? "" : `\`${variableOf(name)}\``;
      return [`\`${name}\``, variable, fileRule(inFiles, fromFolder)];
    });
  return markdownTable(["Key", "Variable", "File"], rows);
}

function fileRule(inFiles, fromFolder) {
  if (inFiles === "own files") return "your own only";
  return fromFolder === "free" ? "any" : "any; a folder's once you have agreed";
}

/** What the settings file of a folder may not set without a question. */
function trustedSettings(runFlags, nameOf) {
  const rules = {
    asks: "once you have agreed to the value",
    "asks outside": "once you have agreed, if it leads out of the folder",
  };
  const rows = Object.entries(runFlags).flatMap(([attribute, { describe, inFiles, fromFolder }]) => {
    const rule = inFiles === "own files" ? "never" : rules[fromFolder];
    return rule === undefined ? [] : [[`\`${nameOf(attribute)}\``, describe, rule]];
  });
  return markdownTable(["Setting", "What it does", "From a folder's file"], rows);
}

function markdownTable(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
