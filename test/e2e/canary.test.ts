import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { canaryKey, searchPlaces, tracesOfKey } from "./canary.js";
import { makePlace } from "./process.js";

describe("P21: a key that was written down is found", () => {
  const base64 = (before: string) => Buffer.from(`${before}${canaryKey} and more`).toString("base64");
  test.each([
    ["as it is", `Authorization: Bearer ${canaryKey}`],
    ["as it is", encodeURIComponent(`key=${canaryKey}`)],
    ["as it is", Buffer.concat([Buffer.from([0, 255]), Buffer.from(canaryKey)])],
    ["in base64", base64("")],
    ["in base64", base64("B")],
    ["in base64", base64("Be")],
    ["in base64", Buffer.from(`user:${canaryKey}`).toString("base64url")],
    ["URL-encoded", [...Buffer.from(canaryKey)].map((byte) => `%${byte.toString(16)}`).join("")],
    ["in hexadecimal", Buffer.from(canaryKey).toString("hex")],
    ["in capital hexadecimal", Buffer.from(canaryKey).toString("hex").toUpperCase()],
    ["in UTF-16", Buffer.from(canaryKey, "utf16le")],
  ])("%s", (form, bytes) => {
    expect(tracesOfKey(bytes)).toContain(form);
  });

  test("and nothing else is", () => {
    expect(tracesOfKey(`svc_${"a".repeat(32)}`)).toBeNull();
  });

  test("in a file below a place, but not where a person keeps it", () => {
    const place = makePlace("canary");
    place.write(".env", `BULKGEN_API_KEY=${canaryKey}`);
    mkdirSync(join(place.root, "state", "deep"));
    const path = join(place.root, "state", "deep", "log");
    writeFileSync(path, `{"headers":"${base64("Bearer ")}"}`);
    const { files, found } = searchPlaces([place.root]);
    rmSync(place.root, { recursive: true });
    expect(files).toBe(1);
    expect(found).toEqual([expect.stringMatching(`^in base64, shifted by \\d in ${path}$`)]);
  });
});
