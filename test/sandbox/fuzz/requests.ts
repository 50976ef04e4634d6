import fc from "fast-check";
import { endpoints } from "../../../src/api/endpoints.js";
import { catalogue } from "../../../src/sandbox/catalogue/catalogue.js";
import { operations } from "../../../src/service/reference/operations.js";
import { componentSchemas } from "../../../src/service/reference/schemas.js";
import type { Call } from "../suite/subject.js";
import { fromSchema, text } from "./from-schema.js";

const schemas = componentSchemas();

const params = fc
  .constantFrom(...catalogue)
  .chain((model) =>
    fc.record(
      Object.fromEntries(
        model.parameters.map(({ key, options }) => [
          key,
          fc.oneof(fc.constantFrom(...options.map((option) => option.value)), text),
        ]),
      ),
      { requiredKeys: [] },
    ),
  );

/** Likely values of the fields of a body. Nothing beyond this machine is named: a service may fetch what it takes. */
function hintsWith(inputs: readonly string[]): Record<string, fc.Arbitrary<unknown>> {
  const url = fc.oneof(
    fc
      .tuple(fc.constantFrom(...inputs), fc.webQueryParameters(), fc.webFragments())
      .map(([input, query, fragment]) => `${input}?${query}#${fragment}`),
    fc.constantFrom(
      "file:///etc/passwd",
      "http://169.254.169.254/",
      "data:image/png;base64,AA",
      "javascript:0",
      "//x",
    ),
    text,
  );
  return {
    model: fc.constantFrom(...catalogue.map((model) => model.key)),
    prompt: text,
    params,
    image_url: url,
    video_url: url,
    audio_url: url,
  };
}

/** Requests made from each operation's own schema. `taskIds` are ids that mean something to somebody. */
export function requests(
  keys: readonly string[],
  taskIds: readonly string[],
  inputs: readonly string[],
): fc.Arbitrary<Call> {
  const hints = hintsWith(inputs);
  const headers = headersWith(keys);
  const each = operations.map((operation): fc.Arbitrary<Call> => {
    const { method, path } = endpoints[operation.endpoint];
    const query = fc.dictionary(
      fc.oneof(fc.constantFrom(...operation.parameters.map(({ name }) => name), "x"), text),
      fc.oneof(fc.constantFrom("true", "false", "image", "video", "audio"), text),
      { maxKeys: 3 },
    );
    const id = fc.oneof(fc.constantFrom(...taskIds), fc.uuid(), text);
    const methods = fc.oneof(
      { weight: 12, arbitrary: fc.constant(method) },
      { weight: 1, arbitrary: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") },
    );
    const body = operation.body ? fromSchema(schemas[operation.body], hints) : fc.constant(undefined);
    const written = fc.oneof(
      { weight: 12, arbitrary: body.map((value) => (value === undefined ? "" : JSON.stringify(value))) },
      { weight: 1, arbitrary: text },
    );
    return fc.record({ method: methods, query, id, headers, body: written }).map((made) => {
      const asked = new URLSearchParams(
        Object.entries(made.query).map(([k, v]) => [wellFormed(k), wellFormed(v)]),
      );
      const full = path.replace(":taskId", escaped(made.id)) + (asked.size > 0 ? `?${asked}` : "");
      const hasBody = made.method !== "GET" && made.body !== "";
      return {
        method: made.method,
        path: full,
        headers: made.headers,
        ...(hasBody ? { body: made.body } : {}),
      };
    });
  });
  return fc.oneof(...each);
}

function headersWith(keys: readonly string[]): fc.Arbitrary<Record<string, string>> {
  const key = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...keys) },
    { weight: 1, arbitrary: fc.string({ maxLength: 50 }).map((name) => name.replace(/[^\x21-\x7e]/g, "")) },
  );
  const type = fc.oneof(
    { weight: 12, arbitrary: fc.constant("application/json") },
    { weight: 1, arbitrary: fc.constantFrom("application/json; charset=utf-8", "text/plain", "x", "") },
  );
  return fc.record({ key, type, bearer: fc.boolean() }).map(({ key: value, type: contentType, bearer }) => ({
    "content-type": contentType,
    ...(bearer ? { authorization: `Bearer ${value}` } : { "x-api-key": value }),
  }));
}

/** Halves of characters cannot be sent as a part of an address. */
function wellFormed(value: string): string {
  return value.replace(/[\ud800-\udfff]/g, "?");
}

function escaped(id: string): string {
  return encodeURIComponent(wellFormed(id)) || "-";
}
