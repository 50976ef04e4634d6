/**
 * Writes the JSON Schemas of all documents that other programs read:
 *
 *   node scripts/schemas.mjs FOLDER
 *
 * FOLDER is a build: its compiled schemas are read, and FOLDER/json-schemas gets a file of each.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const from = (file) => import(pathToFileURL(join(folder, "documents", file)).href);
const { documents, jsonSchemaOf } = await from("documents.js");
const target = join(folder, "json-schemas");
mkdirSync(target);
for (const name of Object.keys(documents))
  writeFileSync(join(target, `${name}.json`), `${JSON.stringify(jsonSchemaOf(name), null, 2)}\n`);
