/**
 * Writes the JSON Schemas of all documents that other programs read, and that of a models file for editors:
 *
 *   node scripts/schemas.mjs FOLDER
 *
 * FOLDER is a build: its compiled schemas are read, and FOLDER/json-schemas gets a file of each.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const from = (file) => import(pathToFileURL(join(folder, file)).href);
const { documents, jsonSchemaOf } = await from("documents/documents.js");
const { modelsFileSchema } = await from("serve/models/schema.js");
const { kinds } = await from("serve/kinds.js");
const target = join(folder, "json-schemas");
mkdirSync(target);
const write = (name, schema) =>
  writeFileSync(join(target, `${name}.json`), `${JSON.stringify(schema, null, 2)}\n`);
for (const name of Object.keys(documents)) write(name, jsonSchemaOf(name));
write("models-file", modelsFileSchema(kinds));
