import { compile, search } from "@jmespath-community/jmespath";
import type { Json } from "../provider.js";

/**
 * Where something stands in an answer: JMESPath, as in `data[].url`. A query only reads, and always ends, so a description that
 * somebody else wrote can do no harm.
 */
export function queryFault(query: string): string | null {
  try {
    compile(query);
  } catch (error) {
    return (error as Error).message;
  }
  try {
    search(null, query);
  } catch (error) {
    // Wrong types are about the data.
    if (/unknown function|variable/i.test((error as Error).message)) return (error as Error).message;
  }
  return null;
}

/** What stands there; null if nothing does, or if the answer is not made as the query expects. */
export function find(data: Json | undefined, query: string): Json {
  if (data === undefined) return null;
  try {
    return (search(data, query) as Json | undefined) ?? null;
  } catch {
    return null;
  }
}

/** A text or number that stands there, as text; null for anything else and for "". */
export function findText(data: Json | undefined, query: string): string | null {
  const found = find(data, query);
  if (typeof found === "number" || typeof found === "boolean") return String(found);
  return typeof found === "string" && found !== "" ? found : null;
}
