import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { searchPlaces, testKey, tracesOfKey } from "./leaked-key.js";
import { makePlace } from "./process.js";

describe("P21: a key that was written down is found", () => {
  const base64 = (before: string) => Buffer.from(`${before}${testKey} and more`).toString("base64");
  test.each([
    ["as it is", `Authorization: Bearer ${testKey}`],
    ["as it is", encodeURIComponent(`key=${testKey}`)],
    ["as it is", Buffer.concat([Buffer.from([0, 255]), Buffer.from(testKey)])],
    ["in base64", base64("")],
    ["in base64", base64("B")],
    ["in base64", base64("Be")],
    ["in base64", Buffer.from(`user:${testKey}`).toString("base64url")],
    ["URL-encoded", [...Buffer.from(testKey)].map((byte) => `%${byte.toString(16)}`).join("")],
    ["in hexadecimal", Buffer.from(testKey).toString("hex")],
    ["in capital hexadecimal", Buffer.from(testKey).toString("hex").toUpperCase()],
    ["in UTF-16", Buffer.from(testKey, "utf16le")],
  ])("%s", (form, bytes) => {
    expect(tracesOfKey(bytes)).toContain(form);
  });

  test("and nothing else is", () => {
    expect(tracesOfKey(`svc_${"a".repeat(32)}`)).toBeNull();
  });

  test("in a file below a place, but not where a person keeps it", () => {
    const place = makePlace("leaked-key");
    place.write(".env", `BULKGEN_API_KEY=${testKey}`);
    mkdirSync(join(place.root, "state", "deep"));
    const path = join(place.root, "state", "deep", "log");
    writeFileSync(path, `{"headers":"${base64("Bearer ")}"}`);
    const { files, found } = searchPlaces([place.root]);
    rmSync(place.root, { recursive: true });
    expect(files).toBe(1);
    expect(found).toEqual([expect.stringMatching(`^in base64, shifted by \\d in ${path}$`)]);
  });
});
