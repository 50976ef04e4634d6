import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

/**
 * The script runs for real in a small checkout; npm, the compiler and the bundlers are stand-ins, because a real
 * installation takes a minute. The script starts them with sh in place of Node, which takes thirty times as long.
 */
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "bulkgen-ready-"));
  mkdirSync(join(root, "scripts"));
  for (const name of ["ready.mjs", "headers.mjs"])
    copyFileSync(`scripts/${name}`, join(root, "scripts", name));
  write("package.json", "{}");
  write("tsconfig.json", "{}");
  write("package-lock.json", lockfile({ "node_modules/zod": { version: "4.0.0", integrity: "sha512-a" } }));
  write("src/cli/main.ts", "one");
  write(
    "bin/npm",
    `#!/bin/sh\necho "npm $*" >> calls\nmkdir -p node_modules\ncp package-lock.json node_modules/.package-lock.json\n`,
  );
  chmodSync(join(root, "bin/npm"), 0o755);
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("packages", () => {
  test("are installed when there are none, and only then", () => {
    expect(ready().stderr).toBe(
      "bulkgen setup: installing packages (npm ci), the first time takes a minute or two\n",
    );
    expect(ready()).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(calls()).toEqual(["npm ci --no-fund --no-audit --loglevel=error"]);
  });

  test("that npm itself installed are taken as they are", () => {
    installed();
    expect(ready()).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(calls()).toEqual([]);
  });

  test("are installed again when the lockfile names another version or one more package", () => {
    ready();
    write("package-lock.json", lockfile({ "node_modules/zod": { version: "4.0.1", integrity: "sha512-b" } }));
    ready();
    expect(calls()).toHaveLength(2);
    write(
      "package-lock.json",
      lockfile({
        "node_modules/zod": { version: "4.0.1", integrity: "sha512-b" },
        "node_modules/undici": { version: "7.0.0", integrity: "sha512-c" },
      }),
    );
    ready();
    expect(calls()).toHaveLength(3);
  });

  test("for other platforms need not be there", () => {
    ready();
    write(
      "package-lock.json",
      lockfile({
        "node_modules/zod": { version: "4.0.0", integrity: "sha512-a" },
        "node_modules/sharp-elsewhere": { version: "1.0.0", integrity: "sha512-d", optional: true },
      }),
    );
    ready();
    expect(calls()).toHaveLength(1);
  });

  test("built for another Node are installed again", () => {
    ready();
    write("node_modules/.bulkgen-node", `${process.platform} ${process.arch} modules 1`);
    ready();
    expect(calls()).toHaveLength(2);
  });

  test("are installed without their native modules when these may wait, and the next call compiles them", () => {
    ready("--native-later");
    ready("--native-later");
    const unpacked = "npm ci --no-fund --no-audit --loglevel=error --ignore-scripts";
    expect(calls()).toEqual([unpacked]);
    expect(ready().stderr).toBe("bulkgen setup: compiling native modules (npm rebuild)\n");
    expect(ready().stderr).toBe("");
    expect(calls()).toEqual([unpacked, "npm rebuild --loglevel=error"]);
  });

  test("that could not be installed stop everything with npm's exit code", () => {
    write("bin/npm", "#!/bin/sh\necho no space left >&2\nexit 7\n");
    const result = ready("--build");
    expect(result.status).toBe(7);
    expect(result.stderr).toContain("no space left\nbulkgen setup: npm ci failed\n");
  });
});

describe("the build", () => {
  beforeEach(() => {
    installed();
    // Writes the text of the only source, so that the test sees what was compiled.
    compiler('mkdir -p "$out/cli"; cp src/cli/main.ts "$out/cli/main.js"');
    bundler('mkdir "$out/bin"; printf "bundled %s" "$(cat "$out/cli/main.js")" > "$out/bin/bulkgen.js"');
    write("src/page/dashboard/styles/page.css", "body {}");
    write("scripts/man.mjs", "");
    write("scripts/schemas.mjs", "");
    write("scripts/page.mjs", 'cp src/page/dashboard/styles/page.css "$1/page.css"');
  });

  test("is made when it is missing, is executable, and is not made twice", () => {
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    expect(statSync(join(root, "dist/bin/bulkgen.js")).mode & 0o111).toBe(0o111);
    expect(ready("--build").stderr).toBe("");
  });

  test("follows a changed source, a removed source, the compiler's settings and the bundler", () => {
    ready("--build");
    write("src/cli/main.ts", "two");
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    expect(command()).toBe("bundled two");
    write("src/extra.ts", "");
    ready("--build");
    rmSync(join(root, "src/extra.ts"));
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    write("tsconfig.json", "{ }");
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    bundler('mkdir "$out/bin"; printf "bundled otherwise" > "$out/bin/bulkgen.js"');
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    expect(command()).toBe("bundled otherwise");
  });

  test("has the manual, whose maker's failure stops it", () => {
    write("scripts/man.mjs", "exit 3");
    const stderr = "bulkgen setup: compiling\nbulkgen setup: the manual failed\n";
    expect(ready("--build")).toMatchObject({ status: 3, stderr });
  });

  test("has the schemas, whose maker's failure stops it", () => {
    write("scripts/schemas.mjs", "exit 4");
    const stderr = "bulkgen setup: compiling\nbulkgen setup: the schemas failed\n";
    expect(ready("--build")).toMatchObject({ status: 4, stderr });
  });

  test("holds the page, and follows its styles", () => {
    ready("--build");
    write("src/page/dashboard/styles/page.css", "main {}");
    expect(ready("--build").stderr).toBe("bulkgen setup: compiling\n");
    expect(readFileSync(join(root, "dist/page.css"), "utf8")).toBe("main {}");
    write("scripts/page.mjs", "exit 4");
    expect(ready("--build")).toMatchObject({
      status: 4,
      stderr: "bulkgen setup: compiling\nbulkgen setup: the page's bundler failed\n",
    });
  });

  test("holds nothing of a source that was deleted", () => {
    ready("--build");
    write("dist/gone.js", "");
    write("src/cli/main.ts", "two");
    ready("--build");
    expect(existsSync(join(root, "dist/gone.js"))).toBe(false);
  });

  test("stays as it was when the compiler fails, and the exit code shows it", () => {
    ready("--build");
    write("src/cli/main.ts", "broken");
    compiler("exit 2");
    const failed = ready("--build");
    expect(failed.status).toBe(2);
    expect(failed.stderr).toBe("bulkgen setup: compiling\nbulkgen setup: tsc failed\n");
    expect(command()).toBe("bundled one");
    expect(ready("--build").status).toBe(2);
  });

  test("stays as it was when the bundler fails or makes nothing", () => {
    ready("--build");
    bundler('mkdir "$out/bin"; exit 3');
    const failed = ready("--build");
    expect(failed.status).toBe(3);
    expect(failed.stderr).toBe("bulkgen setup: compiling\nbulkgen setup: the bundler failed\n");
    expect(command()).toBe("bundled one");
    bundler("");
    expect(ready("--build").status).toBe(1);
    expect(command()).toBe("bundled one");
    expect(ready("--build").status).toBe(1);
  });
});

/** The script takes sh for the program that runs it. */
const withSh = 'data:text/javascript,process.execPath="sh"';

function ready(...args: string[]) {
  const env = { ...process.env, PATH: `${join(root, "bin")}:${process.env["PATH"]}` };
  const words = ["--import", withSh, join(root, "scripts/ready.mjs"), ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8" });
  return { status, stdout, stderr };
}

/** The packages are there, as after `npm ci`. */
function installed() {
  write("node_modules/.package-lock.json", readFileSync(join(root, "package-lock.json"), "utf8"));
}

function calls(): string[] {
  const path = join(root, "calls");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

function command(): string {
  return readFileSync(join(root, "dist/bin/bulkgen.js"), "utf8");
}

function bundler(body: string) {
  write("scripts/bundle.mjs", `out="$1"; ${body}`);
}

function compiler(body: string) {
  const findsOut = 'while [ "$1" != --outDir ]; do shift; done; out="$2"';
  write("node_modules/typescript/bin/tsc", `${findsOut}; ${body}`);
}

function write(path: string, text: string) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function lockfile(packages: Record<string, object>) {
  return JSON.stringify({ packages: { "": {}, ...packages } });
}
