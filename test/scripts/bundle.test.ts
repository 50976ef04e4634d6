import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { unzip } from "../e2e/unzip.js";

describe("the bundled command", () => {
  const files = readdirSync("dist/bin", { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.c?js$/.test(name),
  );
  /** The bundler heads the code of each module with its path from the folder of the build, which lies two below the packages. */
  const packages = [
    ...new Set(
      files
        .flatMap((name) => readFileSync(join("dist/bin", name), "utf8").split("\n"))
        .flatMap((line) => /^\/\/ \.\.\/\.\.\/((?:@[^/]+\/)?\w[^/]*)\//.exec(line)?.[1] ?? []),
    ),
  ].sort();
  const notices = readFileSync("dist/bin/NOTICES.txt", "utf8");

  test("is the only one: the module that it was made of is gone", () => {
    expect(existsSync("dist/cli/commands/plan.js")).toBe(true);
    expect(existsSync("dist/cli/main.js")).toBe(false);
  });

  test("loads in each thread only what that thread is made of", () => {
    const roomsOf = (thread: string) =>
      files
        .filter((name) => name.includes(thread))
        .flatMap(
          (name) => readFileSync(join("dist/bin", name), "utf8").match(/^\/\/ (archive|sandbox)\//gm) ?? [],
        );
    expect(new Set(roomsOf("inspector-worker"))).toEqual(new Set());
    expect(new Set(roomsOf("studio/worker"))).toEqual(new Set(["// sandbox/"]));
  });

  test("starts without an HTTP client, which few commands need", () => {
    const atStart = new Set(["main.cjs"]);
    for (const part of atStart) {
      const text = readFileSync(join("dist/bin/parts", part), "utf8");
      // What is loaded later is required within a function.
      for (const [, other] of text.matchAll(/^const \w+ = require\("\.\/([^"]+)"\);$/gm))
        atStart.add(other as string);
    }
    expect(atStart).toContain("command-list.cjs");
    expect([...atStart].filter((part) => /undici|agent/.test(part))).toEqual([]);
  });

  test("packs ZIPs with the checksums that readers expect", async () => {
    const { ZipFile } = createRequire(import.meta.url)("../../dist/bin/parts/yazl.cjs").default;
    const zip = new ZipFile();
    zip.addFile("package-lock.json", "large.json", { compress: false });
    zip.addBuffer(Buffer.from("hello"), "small.txt");
    zip.end();
    const files = unzip(await buffer(zip.outputStream));
    expect(files.get("large.json")).toEqual(readFileSync("package-lock.json"));
    expect(String(files.get("small.txt"))).toBe("hello");
  });

  test("names each package that is in it", () => {
    expect(packages).toContain("undici");
    expect(packages).toContain("@hono/node-server");
    const named = notices.match(/^\S+ \d\S* \(.*\)$/gm);
    for (const name of packages) {
      const { version, license } = packageJson(join("node_modules", name));
      expect(named).toContain(`${name} ${version} (${license})`);
    }
  });

  test.each(packages)("may hold %s, and says so in the words of its licence", (name) => {
    const folder = join("node_modules", name);
    expect(packageJson(folder).license).toMatch(
      /^(MIT|MIT-0|ISC|0BSD|BSD-2-Clause|BSD-3-Clause|Apache-2\.0|MPL-2\.0|BlueOak-1\.0\.0)$/,
    );
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file)) ?? "";
    expect(notices).toContain(readFileSync(join(folder, licence), "utf8").trim());
  });
});

describe("the bundled command without what it needs", () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "bulkgen-alone-"));
    cpSync("dist/bin", join(folder, "dist/bin"), { recursive: true });
    cpSync("package.json", join(folder, "package.json"));
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  test("asks for the driver of PostgreSQL, which most never need", () => {
    const env = { BULKGEN_DATABASE_URL: "postgres://user@127.0.0.1:1/none" };
    expect(said(["status"], env)).toEqual({
      status: 2,
      stderr:
        "bulkgen: a database URL needs the package pg, which is not installed. Nothing was sent. Install it where bulkgen is: npm install pg\n",
    });
  });

  // From Node 22.14 on, another version of better-sqlite3 is used.
  const newer = Number(process.versions.napi) >= 10;
  const again = "Install bulkgen again with this Node and with its optional packages";
  const compiler =
    "Install bulkgen again where Python, make and a C++ compiler are, or with Node 22.14 or newer";
  const rebuild = "Run `npm rebuild better-sqlite3` where bulkgen is installed";

  test.each([
    ["not there", [], newer ? again : compiler],
    [
      "there without its machine code",
      newer
        ? ["better-sqlite3-napi/lib", "better-sqlite3-napi/package.json"]
        : ["better-sqlite3/lib", "better-sqlite3/package.json", "bindings", "file-uri-to-path"],
      newer ? again : rebuild,
    ],
  ])("says what to do when SQLite is %s", (_, parts, advice) => {
    for (const part of parts)
      cpSync(join("node_modules", part), join(folder, "node_modules", part), { recursive: true });
    const { status, stderr } = said(["plan", "sheet.csv", "--sandbox"]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^bulkgen: SQLite cannot be loaded by Node .*\. Nothing was sent\. .*\n$/);
    expect(stderr).toContain(advice);
  });

  function said(words: readonly string[], env: Record<string, string> = {}) {
    writeFileSync(join(folder, "sheet.csv"), "model,prompt\naurora-image-mini,a red fox\n");
    const started = spawnSync(process.execPath, [join(folder, "dist/bin/bulkgen.js"), ...words], {
      cwd: folder,
      env: { HOME: folder, XDG_STATE_HOME: folder, ...env },
      encoding: "utf8",
    });
    return { status: started.status, stderr: started.stderr };
  }
});

describe("bundling", () => {
  let root: string;
  const out = () => join(root, "node_modules", ".cache", "build");

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "bulkgen-bundle-"));
    write("node_modules/.cache/build/package.json", `{"type":"module"}`);
    write("node_modules/.cache/build/cli/main.d.ts", "");
    for (const thread of ["archive/check/inspector-worker.js", "sandbox/studio/worker.js"])
      write(`node_modules/.cache/build/${thread}`, `import { greeting } from "kind"; console.log(greeting);`);
    write(
      "node_modules/kind/package.json",
      `{"name":"kind","version":"1.2.3","license":"MIT","main":"kind.js"}`,
    );
    write("node_modules/kind/kind.js", `exports.greeting = "good day";`);
    write("node_modules/kind/LICENSE", "Be kind.\n");
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  test("includes packages with their licences, and keeps modules that are loaded later in separate files", async () => {
    main(
      `export const ended = import("./later.js").then(({ greeting }) => { globalThis.greeting = greeting; });`,
    );
    write("node_modules/.cache/build/cli/later.js", `export { greeting } from "kind";`);
    expect(bundle()).toEqual({ status: 0, stderr: "" });
    rmSync(join(root, "node_modules/kind"), { recursive: true });
    expect(readFileSync(join(out(), "bin/parts/main.cjs"), "utf8")).not.toContain("good day");
    const parts = readdirSync(join(out(), "bin/parts"));
    expect(parts).toEqual(
      expect.arrayContaining(["main.cjs", "main.cjs.code", "later.cjs", "later.cjs.code"]),
    );
    // What V8 does not accept is compiled anew.
    writeFileSync(join(out(), "bin/parts/later.cjs.code"), "spoiled");
    await import(pathToFileURL(join(out(), "bin/bulkgen.js")).href);
    expect(globalThis).toMatchObject({ greeting: "good day" });
    expect(readFileSync(join(out(), "bin/NOTICES.txt"), "utf8")).toContain(
      "kind 1.2.3 (MIT)\n================\n\nBe kind.\n",
    );
    expect(existsSync(join(out(), "cli/main.js"))).toBe(false);
  });

  test("bundles each worker thread where it is, so that it needs no package", async () => {
    main(`console.log("main");`);
    expect(bundle()).toEqual({ status: 0, stderr: "" });
    rmSync(join(root, "node_modules/kind"), { recursive: true });
    for (const thread of ["archive/check/inspector-worker.js", "sandbox/studio/worker.js"]) {
      const { stdout } = spawnSync(process.execPath, [join(out(), thread)], { encoding: "utf8" });
      expect(stdout).toBe("good day\n");
    }
  });

  test("fails for a package without the text of its licence", () => {
    main(`import { greeting } from "kind"; console.log(greeting);`);
    rmSync(join(root, "node_modules/kind/LICENSE"));
    const { status, stderr } = bundle();
    expect(status).toBe(1);
    expect(stderr).toContain("kind brings no licence text");
  });

  test("fails for what cannot be found, rather than leaving it for the start", () => {
    main(`import "cruel"; import { greeting } from "kind"; console.log(greeting);`);
    const { status, stderr } = bundle();
    expect(status).toBe(1);
    expect(stderr).toContain("cruel");
  });

  test("fails for a name that the smaller undici of the command does not have", () => {
    main(`import { MockAgent } from "undici"; console.log(MockAgent);`);
    const { status, stderr } = bundle();
    expect(status).toBe(1);
    expect(stderr).toContain('"MockAgent" is not exported');
  });

  function main(text: string) {
    write("node_modules/.cache/build/cli/main.js", text);
  }

  function bundle() {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/bundle.mjs", out()], {
      encoding: "utf8",
    });
    return { status, stderr };
  }

  function write(path: string, text: string) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
});

function packageJson(folder: string): { version: string; license: string } {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}
