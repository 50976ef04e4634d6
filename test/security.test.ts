import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { proofsIn } from "./proofs.js";

const page = readFileSync("docs/security.md", "utf8");

test("docs/security.md names tests that exist", () => {
  const proofs = proofsIn(page, "docs");
  expect(proofs.size).toBeGreaterThan(10);
  for (const [file, titles] of proofs) {
    expect(existsSync(file), file).toBe(true);
    for (const title of titles) expect(readFileSync(file, "utf8"), file).toContain(title);
  }
});

test("each threat names a test", () => {
  const threats = page.split(/^\*\*/m).slice(1);
  expect(threats.length).toBeGreaterThan(10);
  for (const threat of threats) expect(proofsIn(threat, "docs").size, threat).toBeGreaterThan(0);
});

test("packages that users install have licences that are allowed, or that docs/security.md lists", () => {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, { dev?: boolean; peer?: boolean; license?: string }>;
  };
  const listed = [...page.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(([, name = "", licence = ""]) => ({
    name: new RegExp(`^${name.replace("*", ".*")}$`),
    licence: licence.trim(),
  }));
  const allowed = /^(MIT|ISC|BSD-\d-Clause|Apache-2\.0|MPL-2\.0)$/;
  const others = Object.entries(packages).filter(
    ([path, { dev, peer, license = "none" }]) =>
      path !== "" &&
      !dev &&
      !peer &&
      !license
        .replace(/[()]/g, "")
        .split(" OR ")
        .every((one) => allowed.test(one)),
  );
  const unlisted = others.filter(([path, { license = "none" }]) => {
    const name = path.replace(/^.*node_modules\//, "");
    const line = listed.find((each) => each.name.test(name));
    return line === undefined || !license.includes(line.licence.split(" ")[0] ?? "");
  });
  expect(unlisted.map(([path, { license }]) => `${path}: ${license}`)).toEqual([]);
});
