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
  if (name === undefined) stdout.write(`${table(columns, rows(), terminalStyle(stdout, env))}\n`);
  else stdout.write(`${JSON.stringify(await schemaNamed(name), null, 2)}\n`);
}

/** Of what people write, not bulkgen: no other program reads it as a document. */
const modelsFile = "models-file";

/** Throws EarlyExit. */
async function schemaNamed(name: string): Promise<object> {
  if (name !== modelsFile) return jsonSchemaOf(known(name));
  const [{ modelsFileSchema }, { kinds }] = await Promise.all([
    import("../../serve/models/schema.js"),
    import("../../serve/kinds.js"),
  ]);
  return modelsFileSchema(kinds);
}

/** Throws EarlyExit. */
function known(name: string): DocumentName {
  if (Object.hasOwn(documents, name)) return name as DocumentName;
  const near = nearest(name, [...Object.keys(documents), modelsFile]);
  const hint = near === undefined ? "`bulkgen schema` lists them." : `Did you mean ${near}?`;
  throw new EarlyExit("usage", `there is no document ${JSON.stringify(name)}. ${hint}`);
}

const columns = [
  { title: "name" },
  { title: "what it is", flexible: true },
  { title: "printed by", flexible: true },
];

function rows(): Cell[][] {
  const printed = Object.entries<DocumentDefinition>(documents).map(([name, { what, commands = [] }]) => [
    name,
    what,
    commands.join(", "),
  ]);
  return [...printed, [modelsFile, "a models file in YAML", ""]];
}
