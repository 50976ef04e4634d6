/**
 * Releases the version of package.json to the registry, or says why not: `npm run release`, described in
 * docs/releasing.md. Without `--publish` it does everything but publish.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({
  options: {
    publish: { type: "boolean", default: false },
    sbom: { type: "string", default: "bulkgen.cdx.json" },
  },
});
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

const reasons = [...unclean(), ...unlisted()];
if (reasons.length > 0) refuse(reasons);
run("npm", ["run", "--silent", "test:package"]);
writeSbom();
const publish = ["publish", "--provenance", "--access", "public"];
if (values.publish) run("npm", publish);
say(
  values.publish
    ? `${name} ${version} is published`
    : `dry run, nothing was published: with --publish, \`npm ${publish.join(" ")}\` follows`,
);

/** What is released must be in a commit. */
function unclean() {
  const changes = output("git", ["status", "--porcelain"]);
  return changes === "" ? [] : [`the checkout has changes that are not committed:\n${changes}`];
}

/** Readers find out what a version brings. */
function unlisted() {
  const headings = readFileSync(join(root, "CHANGELOG.md"), "utf8").match(/^## .*$/gm) ?? [];
  const isListed = headings.some((heading) => heading.slice(3).split(/[\s,]/)[0] === version);
  return isListed ? [] : [`CHANGELOG.md has no heading \`## ${version}\``];
}

/** The list of all packages that an installation brings, in the format of CycloneDX. */
function writeSbom() {
  const text = output("npm", ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"]);
  writeFileSync(values.sbom, `${text}\n`);
  say(`${values.sbom} lists ${JSON.parse(text).components.length} packages`);
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: "inherit" });
  if (error || status !== 0) refuse([`\`${[program, ...args].join(" ")}\` failed; nothing was published`]);
}

function output(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) refuse([`\`${[program, ...args].join(" ")}\` failed: ${stderr}`]);
  return stdout.trim();
}

function refuse(lines) {
  for (const line of lines) console.error(`release: ${line}`);
  process.exit(1);
}

function say(line) {
  console.log(`release: ${line}`);
}
