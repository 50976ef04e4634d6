/**
 * Installs the package as its users do, and tries it: packs it, installs the tarball into an empty project, and runs the
 * command, the demo and the library there.
 *
 *   npm run test:package [-- 22 24]
 *
 * Without versions the running Node is used; others come from npm. Prints the size of the package, and the packages and
 * the size of an installation.
 */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import S3rver from "s3rver";
import { SMTPServer } from "smtp-server";
import { packageProblems, packReport } from "../.ci/package.mjs";
import { startOwnPostgres } from "../scripts/postgres.mjs";
import { nodePackage } from "./node-package.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const headers = join(root, "scripts", "headers.mjs");
const { version: own, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** What only the sandbox needs: whoever never rehearses must not wait for it. */
const ofSandbox = ["sharp", "hono", "@hono", "h264-mp4-encoder", "@echogarden", "wasm-media-encoders"];

/** A program of a user. */
const libraryProgram = `
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createSandbox, plan, run } from "bulkgen";
writeFileSync("cup.csv", "id,model,prompt\\ncup,aurora-image-mini,a cup\\n");
const service = await createSandbox({ taskMs: { min: 0, max: 0 } });
const settings = { service, workspace: "rehearsal" };
const { money } = await plan("cup.csv", settings);
for await (const event of run("cup.csv", { ...settings, maxCredits: money.needed }))
  if (event.event === "run_finished") console.log(event.exitName, event.credits.spent);
await service.close();
const { title } = createRequire(import.meta.url)("bulkgen/schemas/status.json");
if (title !== "bulkgen status") throw new Error("the schema of status is " + title);
`;

/** Which files of CommonJS a process has loaded: the command is bundled into such parts. */
const tellLoaded = `process.on("exit", () => require("node:fs").writeFileSync(process.env.LOADED, JSON.stringify(Object.keys(require.cache))));`;

const install = ["install", "--no-fund", "--no-audit", "--loglevel=error"];
/** Whoever installs is logged in where they are; only what the program itself writes goes to a home of its own. */
const installer = { HOME: process.env.HOME };

const asked = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "bulkgen-package-"));
let failures = 0;
try {
  const tarball = await pack();
  // No version is the running Node.
  for (const version of asked.length > 0 ? asked : [null]) {
    try {
      console.log(await tryOn(version, tarball));
    } catch (error) {
      failures++;
      console.error(`node ${version ?? process.version}: ${error.message}`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures > 0 ? 1 : 0;

/** Packs the checkout, and checks the tarball's content. Returns its path. */
async function pack() {
  const report = packReport(await output("npm", ["pack", "--json", "--pack-destination", folder], root));
  const tarball = join(folder, report.filename);
  const unpacked = join(folder, "unpacked");
  mkdirSync(unpacked);
  await output("tar", ["-xzf", tarball, "-C", unpacked], folder);
  const files = report.files.map(({ path }) => path);
  const problems = await packageProblems(join(unpacked, "package"), files);
  rmSync(unpacked, { recursive: true });
  if (problems.length > 0) throw new Error(["the package is not right:", ...problems].join("\n"));
  console.log(
    `package: ${files.length} files, ${megabytes(report.size)} packed, ${megabytes(report.unpackedSize)} unpacked`,
  );
  return tarball;
}

/** Installs the tarball with that Node and tries everything. Returns the line to print. */
async function tryOn(version, tarball) {
  const project = mkdtempSync(join(folder, "project-"));
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
  const home = join(project, "home");
  mkdirSync(home);
  const on = await onNode(version, project, home);
  const name = await on("node", ["-p", "process.version"]);
  const nodedir = await on("node", [
    "-e",
    `import(${JSON.stringify(headers)}).then((m) => console.log(m.headersFolder() ?? ""))`,
  ]);
  const began = performance.now();
  await on("npm", [...install, tarball], {
    ...installer,
    ...(nodedir === "" ? {} : { npm_config_nodedir: nodedir }),
  });
  const seconds = Math.round((performance.now() - began) / 1_000);
  const lock = JSON.parse(readFileSync(join(project, "node_modules", ".package-lock.json"), "utf8"));
  const packages = Object.keys(lock.packages).length;
  const size = (await on("du", ["-sk", "node_modules"])).split(/\s/)[0];

  const command = join(project, "node_modules", ".bin", "bulkgen");
  expectEqual("bulkgen --version", await on("node", [command, "--version"]), own);
  cpSync(join(project, "node_modules", "bulkgen", "jobs", "demo.csv"), join(project, "demo.csv"));
  const demo = JSON.parse(
    await on("node", [command, "run", "demo.csv", "--sandbox", "--yes", "--json", "--quiet"]),
  );
  expectEqual("the demo's end", `${demo.exit} ${demo.exitName}`, "0 done");
  writeFileSync(join(project, "library.mjs"), libraryProgram);
  expectEqual("the library's run", await on("node", ["library.mjs"]), "done 1");
  checkTypes(project);
  await withServers(on, command);
  await withoutSandboxPackages(project, on, command);
  const napi = Number(await on("node", ["-p", "process.versions.napi"]));
  if (napi >= 10) await withoutCompiler(project, tarball, on);
  rmSync(project, { recursive: true });
  return `node ${name}: installed in ${seconds} s, ${packages} packages, ${megabytes(Number(size) * 1_024)}; command, demo, library, types, bucket, mail, MCP and fleet work`;
}

/** The examples, as a program that is compiled against the installed declarations, which are checked themselves too. */
function checkTypes(project) {
  cpSync(join(root, "examples"), join(project, "examples"), { recursive: true });
  const types = join(root, "node_modules", "@types");
  const options = { module: "nodenext", target: "es2023", strict: true, exactOptionalPropertyTypes: true };
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: { ...options, noEmit: true, types: ["node"], typeRoots: [types], skipLibCheck: false },
      include: ["examples"],
    }),
  );
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", project], { encoding: "utf8" });
  if (status !== 0) throw new Error(`a program does not compile against the package:\n${stdout}`);
}

/** A run that copies its file to a bucket and mails its result; an agent; then the same state in a database, with a worker. */
async function withServers(on, command) {
  const bucket = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory: mkdtempSync(join(folder, "s3-")),
    configureBuckets: [{ name: "archive" }],
  });
  const mails = [];
  const post = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    onData: (stream, session, done) => {
      mails.push(session.envelope.rcptTo[0].address);
      stream.resume().on("end", done);
    },
  });
  const postgres = await startOwnPostgres();
  try {
    const { port } = await bucket.run();
    await new Promise((done) => post.listen(0, "127.0.0.1", done));
    const mail = ["--notify", "mailto:ops@example.org", "--smtp-from", "bulkgen@example.org"];
    const env = {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
      BULKGEN_SMTP_URL: `smtp://127.0.0.1:${post.server.address().port}`,
    };
    const run = ["run", "cup.csv", "--sandbox", "--yes", "--quiet", "--json"];
    await on("node", [command, ...run, "--archive", "s3://archive", ...mail], env);
    await on("node", [command, "verify", "--read-data", "--sandbox"], env);
    expectEqual("the mails", mails.join(), "ops@example.org");
    await on("node", [command, "gallery", "--sandbox"]);
    const hello = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "try", version: "1" },
    };
    const asked = { jsonrpc: "2.0", id: 1, method: "initialize", params: hello };
    const told = await on("sh", ["-c", `echo '${JSON.stringify(asked)}' | node ${command} mcp --sandbox`]);
    expectEqual("the agent's server", JSON.parse(told).result.serverInfo.name, "bulkgen");
    const shared = { BULKGEN_DATABASE_URL: postgres.url };
    const refused = await on("node", [command, "fleet", "--json"], shared).catch(({ message }) => message);
    expectEqual("a fleet without its packages", /npm install pg\b/.test(refused), true);
    const peers = ["pg", "pg-boss"].map((name) => `${name}@${devDependencies[name]}`);
    await on("npm", [...install, ...peers], installer);
    const { exitName } = JSON.parse(await on("node", [command, ...run, "--workspace", "shared"], shared));
    expectEqual("the end of a run in a database", exitName, "done");
    const { workers } = JSON.parse(await on("node", [command, "fleet", "--json", "--sandbox"], shared));
    expectEqual("the workers", workers.length, 0);
  } finally {
    await postgres.stop();
    await bucket.close();
    await new Promise((done) => post.close(done));
  }
}

/** Help, a plan of a service elsewhere and the library do without the packages that only the sandbox needs. */
async function withoutSandboxPackages(project, on, command) {
  const sandbox = spawn(
    process.execPath,
    [join(root, "dist", "bin", "bulkgen.js"), "sandbox", "--state", ":memory:", "--json"],
    { cwd: project, stdio: ["ignore", "pipe", "inherit"] },
  );
  const aside = join(project, "aside");
  mkdirSync(aside);
  try {
    const { url, key } = JSON.parse(await firstLine(sandbox.stdout));
    const packages = join(project, "node_modules");
    for (const name of ofSandbox) renameSync(join(packages, name), join(aside, name.replace("/", "-")));
    writeFileSync(join(project, "loaded.cjs"), tellLoaded);
    const service = { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key };
    for (const words of [["--help"], ["plan", "cup.csv"]]) {
      const loaded = join(project, "loaded.json");
      await on("node", ["--require", "./loaded.cjs", command, ...words], { ...service, LOADED: loaded });
      const found = JSON.parse(readFileSync(loaded, "utf8")).filter((file) => bringsSandbox(file));
      if (found.length > 0)
        throw new Error(`bulkgen ${words[0]} loads what only the sandbox needs: ${found.join(", ")}`);
    }
    const program = `import { plan } from "bulkgen"; const service = { baseUrl: ${JSON.stringify(url)}, apiKey: process.env.BULKGEN_API_KEY };
console.log((await plan("cup.csv", { service })).money.needed);`;
    const needed = await on("node", ["--input-type=module", "-e", program], service);
    expectEqual("a plan without the sandbox's packages", needed, "1");
  } finally {
    sandbox.kill();
  }
}

/** Where nothing can be compiled, because there are no headers, the package is installed and finds its SQLite. */
async function withoutCompiler(project, tarball, on) {
  const bare = join(project, "bare");
  mkdirSync(bare);
  writeFileSync(join(bare, "package.json"), '{ "private": true }\n');
  await on("npm", [...install, "--prefix", bare, tarball], { ...installer, npm_config_nodedir: bare });
  const command = join(bare, "node_modules", ".bin", "bulkgen");
  const checked = JSON.parse(
    await on("node", [command, "doctor", "--sandbox", "--json", "--workspace", bare]),
  );
  expectEqual("what doctor says without a compiler", checked.ok, true);
}

/** The bundler heads the code of each module with its path. */
function bringsSandbox(file) {
  const heads = readFileSync(file, "utf8").match(/^\/\/ \S*node_modules\/(@[^/]+|[^/]+)/gm) ?? [];
  const names = [file, ...heads].map((path) => /node_modules\/(?!bulkgen\/)(@[^/]+|[^/]+)/.exec(path)?.[1]);
  return names.some((name) => ofSandbox.includes(name));
}

/** Runs programs with that Node in the project, with a home of their own. */
async function onNode(version, cwd, home) {
  const path =
    version === null
      ? process.execPath
      : await output("npx", ["-y", "-p", nodePackage(version), "node", "-p", "process.execPath"], cwd);
  const own = {
    PATH: [dirname(path), process.env.PATH].join(delimiter),
    HOME: home,
    XDG_STATE_HOME: join(home, "state"),
    NO_COLOR: "1",
  };
  return (program, args, env = {}) => output(program, args, cwd, { ...own, ...env });
}

/** What a program prints. Rejects with all that it said when it fails. */
function output(program, args, cwd, env = {}) {
  // Variables that npm set for this run would tell the other Node's npm to use this one.
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_|^NODE$|^BULKGEN_/i.test(name));
  return new Promise((done, broken) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...Object.fromEntries(inherited), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    let trouble = "";
    child.stdout.on("data", (piece) => {
      text += piece;
    });
    child.stderr.on("data", (piece) => {
      trouble += piece;
    });
    child.on("error", broken);
    child.on("close", (code) => {
      const line = [program, ...args].join(" ").slice(0, 200);
      if (code === 0) done(text.trim());
      else broken(new Error(`\`${line}\` ended with ${code}:\n${text}${trouble}`));
    });
  });
}

async function firstLine(stream) {
  let text = "";
  for await (const piece of stream) {
    text += piece;
    if (text.includes("\n")) break;
  }
  return text;
}

function expectEqual(what, found, wanted) {
  if (found !== wanted) throw new Error(`${what}: expected ${wanted}, got ${found}`);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
