import { relative, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { isCancel, password, select, text } from "@clack/prompts";
import { type Command, Option } from "commander";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import type { Started } from "../../job/workspace/starter.js";
import { address, shapeOf } from "../settings/connect.js";

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
  const { manifestSchema } = await import("../../manifest/job-file/job-shape.js");
  process.stdout.write(`${JSON.stringify(manifestSchema(), null, 2)}\n`);
}

async function init(named: string, flags: InitFlags): Promise<void> {
  const folder = resolve(named);
  const [{ makeStarter }, { existsSync }, { envFile }] = await Promise.all([
    import("../../job/workspace/starter.js"),
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
    import("./init.js"),
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

export interface Terminal {
  input: Readable;
  output: Writable;
  /** Ends the question as Ctrl-C does. */
  signal: AbortSignal;
}

export interface ServiceAnswers {
  baseUrl: string | null;
  key: string | null;
}

/** Asks which service the workspace is for; what was given as a flag is not asked. Throws EarlyExit when it is cut off. */
export async function askService(given: ServiceAnswers, terminal: Terminal): Promise<ServiceAnswers> {
  if (given.baseUrl === null && given.key === null) {
    const which = answered(
      await select({
        ...terminal,
        message: "What shall this workspace work with?",
        options: [
          { value: "sandbox", label: "The sandbox on this machine", hint: "no key, no cost" },
          { value: "service", label: "The service", hint: "needs its address and an API key" },
        ],
      }),
    );
    if (which === "sandbox") return given;
  }
  return {
    baseUrl: given.baseUrl ?? (await askBaseUrl(terminal)),
    key: given.key ?? (await askKey(terminal)),
  };
}

async function askBaseUrl(terminal: Terminal): Promise<string> {
  const entered = answered(
    await text({
      ...terminal,
      message: "The service's address",
      placeholder: "https://service.example",
      validate: (value) => objection(value ?? ""),
    }),
  );
  return address(entered.trim()).baseUrl;
}

async function askKey(terminal: Terminal): Promise<string | null> {
  const entered = answered(
    await password({
      ...terminal,
      message: "The API key (hidden; Enter leaves it for later)",
      validate: (value) => {
        const key = (value ?? "").trim();
        if (key === "" || isKeyForm(key)) return undefined;
        return `expected svc_ and 32 letters or digits, got ${shapeOf(key)}`;
      },
    }),
  );
  return entered?.trim() || null;
}

function objection(value: string): string | undefined {
  try {
    address(value.trim());
    return undefined;
  } catch (error) {
    if (error instanceof EarlyExit) return error.message;
    throw error;
  }
}

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new EarlyExit("interrupted", "cut off; nothing was made");
  return answer as Exclude<Answer, symbol>;
}
