import { z } from "zod";

/**
 * The content of a user's JSON file. Throws an error that says what is wrong with it, and where; `what` names the
 * expected content.
 */
export function readJson<Schema extends z.ZodType>(
  text: string,
  file: string,
  { schema, what }: { schema: Schema; what: string },
): z.input<Schema> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
  const read = schema.safeParse(content);
  if (!read.success) throw new Error(`${file} is not a ${what}:\n${z.prettifyError(read.error)}`);
  return content as z.input<Schema>;
}
