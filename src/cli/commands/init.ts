import { relative, resolve } from "node:path";
import { type Command, Option } from "commander";
import type { Started } from "../../job/starter.js";
import type { ServiceAnswers } from "./init-questions.js";

interface InitFlags {
  baseUrl?: string;
  apiKeyFile?: string;
  sandbox?: boolean;
  schema?: boolean;
}

export function defineInit(program: Command): void {
  program
    .command("init")
    .description("make a starter workspace: settings, a first job; asks on a terminal, overwrites nothing")
    .argument("[folder]", "where (default: the current folder)", ".")
    .option("--base-url <url>", "address of the service")
    .option("--api-key-file <file>", "file with the API key, to be copied to .env")
    .addOption(
      new Option("--sandbox", "for the sandbox alone; asks nothing").conflicts(["baseUrl", "apiKeyFile"]),
    )
    .addOption(
      new Option("--schema", "print the JSON Schema of JSON and YAML manifests, for editors").conflicts([
        "baseUrl",
        "apiKeyFile",
        "sandbox",
      ]),
    )
    .action((folder: string, flags: InitFlags) => (flags.schema ? printSchema() : init(folder, flags)));
}

async function printSchema(): Promise<void> {
  const { manifestSchema } = await import("../../manifest/job-file/json-schema.js");
  process.stdout.write(`${JSON.stringify(manifestSchema(), null, 2)}\n`);
}

async function init(named: string, flags: InitFlags): Promise<void> {
  const folder = resolve(named);
  const [{ makeStarter }, { existsSync }, { envFile }] = await Promise.all([
    import("../../job/starter.js"),
    import("node:fs"),
    import("../settings/env.js"),
  ]);
  const hasSettings = existsSync(envFile(folder));
  const given = await givenBy(flags);
  const asks = !flags.sandbox && !hasSettings && process.stdin.isTTY && process.stderr.isTTY;
  const answers = asks ? await asked(given) : given;
  const started = makeStarter({ folder, ...answers });
  const lost = hasSettings && (given.baseUrl !== null || given.key !== null);
  process.stdout.write(`${[...report(started, lost), "", ...next(folder, answers)].join("\n")}\n`);
}

/** What the flags say, checked. Throws EarlyExit. */
async function givenBy(flags: InitFlags): Promise<ServiceAnswers> {
  const [{ keyFromFile }, { address, checkedKey }] = await Promise.all([
    import("../settings/env.js"),
    import("../settings/connect.js"),
  ]);
  return {
    baseUrl: flags.baseUrl === undefined ? null : address(flags.baseUrl).baseUrl,
    key: flags.apiKeyFile === undefined ? null : checkedKey(keyFromFile(flags.apiKeyFile)),
  };
}

async function asked(given: ServiceAnswers): Promise<ServiceAnswers> {
  const [{ askService }, { interruption }] = await Promise.all([
    import("./init-questions.js"),
    import("../output/signals.js"),
  ]);
  return askService(given, { input: process.stdin, output: process.stderr, signal: interruption() });
}

function report({ made, kept, ignored }: Started, lost: boolean): string[] {
  return [
    ...made.map((name) => `made   ${name}${name === ".env" ? " (only you can read it)" : ""}`),
    ...kept.map((name) => `kept   ${name}, which was there before`),
    ...(ignored.length === 0 ? [] : [`added  ${ignored.join(" ")} to .gitignore`]),
    ...(lost ? ["note   address and key were not written: .env was there before"] : []),
  ];
}

function next(folder: string, { baseUrl, key }: ServiceAnswers): string[] {
  const way = relative(process.cwd(), folder);
  const steps: [string, string][] = [
    ...(way === "" ? [] : [[`cd ${quoted(way)}`, ""] as [string, string]]),
    ["bulkgen run jobs/first.csv --sandbox", "a rehearsal: no key, no cost"],
    ...(baseUrl === null || key === null
      ? [["bulkgen models --sandbox", "what to write into the model column"] as [string, string]]
      : [
          ["bulkgen doctor", "whether address and key work"] as [string, string],
          ["bulkgen models", "what to write into the model column"] as [string, string],
        ]),
  ];
  const width = Math.max(...steps.map(([command]) => command.length));
  return ["next:", ...steps.map(([command, why]) => `  ${command.padEnd(width)}  ${why}`.trimEnd())];
}

/** A name that a shell takes as it is. */
function quoted(name: string): string {
  return /^[\w./-]+$/.test(name) && !name.startsWith("-") ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
