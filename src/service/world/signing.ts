import { createHmac, timingSafeEqual } from "node:crypto";

/** One output file of a task. */
export interface FileName {
  taskId: string;
  /** From 1. */
  number: number;
  extension: string;
}

const filePath = /^\/files\/([^/]+)\/(\d{1,4})\.([a-z0-9]{1,5})$/;

/** Path and query of an output's URL that expires at `expires` (milliseconds since 1970). */
export function signedPath(secret: string, name: FileName, expires: number): string {
  const path = `/files/${name.taskId}/${name.number}.${name.extension}`;
  return `${path}?expires=${expires}&signature=${signature(secret, path, String(expires))}`;
}

/** What a path under /files/ names; null when it names nothing. */
export function parseFilePath(path: string): FileName | null {
  const found = filePath.exec(path);
  if (!found?.[1] || !found[2] || !found[3]) return null;
  return { taskId: found[1], number: Number(found[2]), extension: found[3] };
}

/** Whether the signature of a file's URL is right, and has not expired at `now`. */
export function checkSignature(
  secret: string,
  path: string,
  query: Readonly<Record<string, string>>,
  now: number,
): "good" | "wrong" | "expired" {
  const expires = query["expires"] ?? "";
  const given = Buffer.from(query["signature"] ?? "");
  const expected = Buffer.from(signature(secret, path, expires));
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return "wrong";
  return now < Number(expires) ? "good" : "expired";
}

function signature(secret: string, path: string, expires: string): string {
  return createHmac("sha256", secret).update(`${path}?${expires}`).digest("hex");
}
