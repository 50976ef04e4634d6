/**
 * The types of docs/api.md, from the compiled declarations: each with the members that it takes from elsewhere, the values
 * that it allows, and, where it is inferred from a schema, what the schema says of each field.
 *
 * Not typedoc: it needs TypeScript 5 or 6, which npm refuses to install beside TypeScript 7. Of a type that is inferred
 * from a schema it shows only `z.infer`, and its pages need scripts.
 */
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { declarations, declared, exportedNames } from "./library-surface.mjs";

/** Types that equal what a schema describes, which says more. */
const described = { PlannedJob: ["plan", ["graph"]] };

/** Every exported type and error, and what these name without being exported: name, comment and code. */
export async function typesOfLibrary() {
  const exported = exportedNames();
  const importable = new Set(exported.map(({ name }) => name));
  const types = exported.filter(({ text }) => !text.startsWith("export declare function "));
  const page = { importable, named: new Map() };
  const shown = [];
  for (const { name, path, doc } of types) shown.push({ name, doc, code: await codeOf(page, path, name) });
  const parts = [];
  const done = new Set(importable);
  for (let next = nextOf(page, done); next !== undefined; next = nextOf(page, done)) {
    const [name, path] = next;
    done.add(name);
    parts.push({ name, doc: declared(path, name).doc, code: await codeOf(page, path, name) });
  }
  return { shown, parts: parts.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
}

function nextOf({ named }, done) {
  return [...named].find(([name]) => !done.has(name));
}

async function codeOf(page, path, name) {
  const shape = await shapeOf(path, name);
  if (shape !== null) return `type ${name} = ${shape};`;
  const node = nodeOf(path, name);
  const code =
    node.type === "TSInterfaceDeclaration"
      ? interfaceOf(page, path, node)
      : taken(page, path, textOf(path, node)).replace(/^(export |declare )+/, "");
  return code.replace(/^( {4})+/gm, (indent) => " ".repeat(indent.length / 2)).replace(/ +$/gm, "");
}

function nodeOf(path, name) {
  const node = declarations(path).own.get(name);
  return node.declaration ?? node;
}

function textOf(path, { start, end }) {
  return declarations(path).text.slice(start, end);
}

/** A type that is the values of a table or of a schema, written out; null for any other. */
async function shapeOf(path, name) {
  if (described[name] !== undefined) {
    const [document, left] = described[name];
    const { documents } = await moduleOf("../dist/documents/documents.js");
    return shapeText(
      z.toJSONSchema(documents[document].schema.omit(Object.fromEntries(left.map((key) => [key, true])))),
    );
  }
  const text = declared(path, name).text;
  const [, inferred] = /\bz\.(?:infer|output|input)<typeof (\w+)>/.exec(text) ?? [];
  const [, keys, values, member] =
    /= (?:keyof typeof (\w+)|\(typeof (\w+)\)\[number\](?:\["(\w+)"\])?);$/.exec(text) ?? [];
  const constant = inferred ?? keys ?? values;
  if (constant === undefined) return null;
  const value = (await moduleOf(path.replace(/\.d\.ts$/, ".js")))[constant];
  if (inferred !== undefined) {
    const schema = z.toJSONSchema(value, { io: text.includes("z.input<") ? "input" : "output" });
    const isNullable = schema.anyOf?.length === 2 && schema.anyOf[1].type === "null";
    return shapeText(text.includes("NonNullable<") && isNullable ? schema.anyOf[0] : schema);
  }
  const all =
    keys === undefined ? value.map((row) => (member === undefined ? row : row[member])) : Object.keys(value);
  return unionOf(all.map((each) => JSON.stringify(each)));
}

function moduleOf(path) {
  return import(path.startsWith("..") ? new URL(path, import.meta.url) : pathToFileURL(path).href);
}

/** An interface with the members of those that it extends and that nobody can import. */
function interfaceOf(page, path, node) {
  const isKept = (base) => base.from === undefined || page.importable.has(base.name);
  const bases = basesOf(path, node);
  const kept = bases.filter(isKept).map(({ text }) => text);
  const members = [
    ...bases.filter((base) => !isKept(base)).flatMap(membersOfBase),
    ...ownMembers(path, node),
  ];
  const lines = members.map((member) => taken(page, member.path, member.text));
  const head = kept.length === 0 ? "" : ` extends ${kept.join(", ")}`;
  return [`interface ${node.id.name}${head} {`, ...lines, "}"].join("\n");
}

/** What an interface extends: the name, where that is declared, and which of its members are taken. */
function basesOf(path, node) {
  return (node.extends ?? []).map(({ expression, typeArguments, start, end }) => {
    const [base, keys] = typeArguments?.params ?? [];
    const name = base?.typeName.name ?? expression.name;
    const names = (keys?.types ?? (keys ? [keys] : [])).map(({ literal }) => literal.value);
    const takes = (key) => names.includes(key) === (expression.name === "Pick");
    return { name, from: placeOf(path, name), takes, text: textOf(path, { start, end }) };
  });
}

function membersOfBase({ from, takes }) {
  return membersOf(...from).filter(({ key }) => takes(key));
}

/** Where a name that a file uses is declared; undefined if it is not ours. */
function placeOf(path, name) {
  const { own, taken: others } = declarations(path);
  if (own.has(name)) return [path, name];
  const other = others.get(name);
  return other && [other.file, other.original];
}

/** The members of an interface and of its bases, each with its comment. */
function membersOf(path, name) {
  const node = nodeOf(path, name);
  const bases = basesOf(path, node).filter(({ from }) => from !== undefined);
  return [...bases.flatMap(membersOfBase), ...ownMembers(path, node)];
}

function ownMembers(path, node) {
  const { text } = declarations(path);
  let end = node.body.start + 1;
  return node.body.body.map((member) => {
    const from = end;
    end = member.end;
    const type = member.typeAnnotation?.typeAnnotation;
    return { path, key: member.key?.name, type, text: text.slice(from, end).replace(/^\n/, "") };
  });
}

/** A text of a file with `Type["member"]` replaced by the member's type. What else it names is noted. */
function taken(page, path, text) {
  const resolved = text.replace(/\b(\w+)\["(\w+)"\]/g, (whole, name, key) => {
    const from = placeOf(path, name);
    if (from === undefined || page.importable.has(name)) return whole;
    const member = membersOf(...from).find((each) => each.key === key);
    return taken(page, member.path, textOf(member.path, member.type));
  });
  for (const [name] of resolved.replace(/\/\*\*[\s\S]*?\*\/|"[^"]*"/g, "").matchAll(/\b[A-Z]\w*\b/g)) {
    const from = placeOf(path, name);
    if (from !== undefined && !page.importable.has(name)) page.named.set(name, from[0]);
  }
  return resolved;
}

/** A JSON Schema as a TypeScript type. */
export function shapeText(schema, indent = "") {
  const { type, anyOf, oneOf, properties = {}, items, prefixItems, examples } = schema;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return unionOf(schema.enum.map((each) => JSON.stringify(each)));
  if (anyOf ?? oneOf) return unionOf((anyOf ?? oneOf).map((each) => shapeText(each, indent)));
  if (prefixItems !== undefined) return `[${prefixItems.map((each) => shapeText(each, indent)).join(", ")}]`;
  if (type === "array") {
    const item = shapeText(items, indent);
    const isUnion = items.anyOf ?? items.oneOf ?? items.enum ?? items.examples;
    return isUnion ? `(${item})[]` : `${item}[]`;
  }
  if (type === "object") {
    const keys = Object.keys(properties);
    if (keys.length > 0) return objectText(schema, indent);
    const key = schema.propertyNames === undefined ? "string" : shapeText(schema.propertyNames);
    const record = `Record<${key}, ${shapeText(schema.additionalProperties ?? {}, indent)}>`;
    return key === "string" || schema.required !== undefined ? record : `Partial<${record}>`;
  }
  if (Array.isArray(type)) return unionOf(type.map((each) => shapeText({ ...schema, type: each }, indent)));
  if (examples !== undefined) return unionOf([...examples.map((each) => JSON.stringify(each)), type]);
  return type === "integer" ? "number" : (type ?? "unknown");
}

function objectText({ properties, required = [] }, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(properties).flatMap(([key, schema]) => [
    ...commentOf(schema).map((comment) => `${inner}/** ${comment} */`),
    `${inner}${key}${required.includes(key) ? "" : "?"}: ${shapeText(schema, inner)};`,
  ]);
  return ["{", ...lines, `${indent}}`].join("\n");
}

function commentOf({ description: own, anyOf, default: value }) {
  // What may be null is described inside.
  const description = own ?? anyOf?.find((each) => each.description !== undefined)?.description;
  const isPlain = value !== undefined && (value === null || typeof value !== "object");
  const parts = [description, isPlain ? `default: ${JSON.stringify(value)}` : undefined];
  const comment = parts.filter((part) => part !== undefined).join("; ");
  return comment === "" ? [] : [comment];
}

function unionOf(types) {
  return [...new Set(types)].join(" | ");
}
