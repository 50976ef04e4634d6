import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { type DocumentName, documents, jsonSchemaOf } from "../../src/documents/documents.js";

/** A JSON Schema, as far as ours use it. */
interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema | false;
  prefixItems?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  const?: string;
}

/**
 * Which fields of the printed JSON Schemas were seen in documents with a value other than null. Where the same object
 * is described in several places, a field of it counts as seen in all of them.
 */
export class Coverage {
  private readonly ajv = new Ajv2020({
    strictTuples: false,
    formats: { "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/ },
  });
  private readonly checks = new Map<string, ValidateFunction>();
  private readonly seen = new Set<string>();
  readonly names = new Set<DocumentName>();

  /** Throws for a document that the printed schema does not describe. */
  add(name: DocumentName, value: unknown): void {
    const schema = jsonSchemaOf(name) as Schema;
    const check = this.checkOf(schema);
    if (!check(value))
      throw new Error(`${name}: ${this.ajv.errorsText(check.errors)}\n${JSON.stringify(value)}`);
    this.names.add(name);
    this.walk(schema, value);
  }

  /** The fields that were never seen, such as `plan: items[].parents`. */
  missing(): string[] {
    return Object.keys(documents)
      .filter((name) => name !== "manifest")
      .flatMap((name) => this.unseen(jsonSchemaOf(name as DocumentName) as Schema, `${name}: `));
  }

  private walk(schema: Schema, value: unknown): void {
    if (value === null || value === undefined) return;
    const branches = schema.anyOf ?? schema.oneOf;
    if (branches) {
      for (const branch of branches.filter((each) => this.checkOf(each)(value))) this.walk(branch, value);
      return;
    }
    if (Array.isArray(value)) {
      for (const [index, entry] of value.entries()) {
        const of = schema.prefixItems?.[index] ?? schema.items;
        if (of) this.walk(of, entry);
      }
      return;
    }
    if (typeof value !== "object") return;
    for (const [key, entry] of Object.entries(value)) {
      if (entry === null) continue;
      const own = schema.properties?.[key];
      this.seen.add(fieldOf(schema, own ? key : "*"));
      const of = own ?? schema.additionalProperties;
      if (typeof of === "object") this.walk(of, entry);
    }
  }

  private unseen(schema: Schema, at: string): string[] {
    const branches = schema.anyOf ?? schema.oneOf;
    if (branches) return branches.flatMap((branch) => this.unseen(branch, at));
    if (schema.items) return this.unseen(schema.items, `${at}[]`);
    const event = schema.properties?.["event"]?.const;
    if (event !== undefined) return this.unseenFields(schema, `${at}(${event})`);
    return this.unseenFields(schema, at);
  }

  private unseenFields(schema: Schema, at: string): string[] {
    return Object.entries(schema.properties ?? {}).flatMap(([key, of]) =>
      this.seen.has(fieldOf(schema, key)) ? this.unseen(of, `${at}.${key}`) : [`${at}.${key}`],
    );
  }

  private checkOf(schema: Schema): ValidateFunction {
    const text = JSON.stringify(schema);
    const known = this.checks.get(text) ?? this.ajv.compile(JSON.parse(text));
    this.checks.set(text, known);
    return known;
  }
}

function fieldOf(schema: Schema, key: string): string {
  return `${JSON.stringify(schema.properties)} ${key}`;
}
