import { EarlyExit } from "../../core/exit.js";
import {
  type DocumentDefinition,
  type DocumentName,
  documents,
  jsonSchemaOf,
} from "../../documents/documents.js";
import { nearest } from "../../text/nearest.js";
import { type Cell, table } from "../../text/table.js";
import { terminalStyle } from "../../text/terminal-style.js";
import type { Call } from "./call.js";

/** Prints the JSON Schema of a document, or lists the documents. */
export async function schema({ args, machine }: Call<unknown, { name?: string }>): Promise<undefined> {
  const { stdout, env } = machine;
  const { name } = args;
  if (name !== undefined) stdout.write(`${JSON.stringify(jsonSchemaOf(known(name)), null, 2)}\n`);
  else stdout.write(`${table(columns, rows(), terminalStyle(stdout, env))}\n`);
}

/** Throws EarlyExit. */
function known(name: string): DocumentName {
  if (Object.hasOwn(documents, name)) return name as DocumentName;
  const near = nearest(name, Object.keys(documents));
  const hint = near === undefined ? "`bulkgen schema` lists them." : `Did you mean ${near}?`;
  throw new EarlyExit("usage", `there is no document ${JSON.stringify(name)}. ${hint}`);
}

const columns = [
  { title: "name" },
  { title: "what it is", flexible: true },
  { title: "printed by", flexible: true },
];

function rows(): Cell[][] {
  return Object.entries<DocumentDefinition>(documents).map(([name, { what, commands = [] }]) => [
    name,
    what,
    commands.join(", "),
  ]);
}
