/**
 * The sections of README.md that are made from the code, so that they always agree with it: the error table, the
 * exit codes, the diagram of an item's life, the help. Each lies between `<!-- begin: NAME -->` and `<!-- end: NAME -->`.
 * Reads the compiled program.
 */
/** Name and Markdown of every section. */
export async function sections() {
  const [
    { errorTable },
    { exitCodes },
    { transitionList, itemStates },
    { commandList },
    { flagEntries, programHelp },
  ] = await Promise.all(
    ["api/errors.js", "core/exit.js", "core/item.js", "cli/command-list.js", "cli/help.js"].map(
      (path) => import(new URL(`../dist/${path}`, import.meta.url)),
    ),
  );
  return {
    errors: errors(errorTable),
    exits: exits(exitCodes),
    states: states(transitionList, itemStates),
    help: ["```", "$ bulkgen --help", programHelp(commandList, 100), "```"].join("\n"),
    "run-flags": flags(flagEntries(commandList.find(({ name }) => name === "run").flags)),
  };
}

/** The text with the content of its sections replaced. Throws when a marker has no section, or no end. */
export function withSections(text, made) {
  const pattern = /<!-- begin: ([\w-]+) -->\n[\s\S]*?<!-- end: \1 -->/g;
  const seen = [];
  const result = text.replace(pattern, (_, name) => {
    if (made[name] === undefined) throw new Error(`README.md names a section that nothing makes: ${name}`);
    seen.push(name);
    return `<!-- begin: ${name} -->\n${made[name]}\n<!-- end: ${name} -->`;
  });
  const begun = [...text.matchAll(/<!-- begin: ([\w-]+) -->/g)].map((match) => match[1]);
  const open = begun.find((name) => !seen.includes(name));
  if (open !== undefined) throw new Error(`README.md: section ${open} has no end`);
  const missing = Object.keys(made).filter((name) => !seen.includes(name));
  if (missing.length > 0) throw new Error(`README.md lacks the sections ${missing.join(", ")}`);
  return result;
}

function errors(errorTable) {
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
    : `${table}\n\n\\* not documented by the service; bulkgen copes all the same.`;
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

function markdownTable(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
