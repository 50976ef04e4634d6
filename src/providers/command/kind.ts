import { lstatSync } from "node:fs";
import { access, constants, lstat, readdir } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { duration, fileSize } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { clientText } from "../client-text.js";
import type { ProviderKind } from "../kind.js";
import { liquidText } from "../liquid.js";
import {
  type Done,
  type JobOutput,
  JobRefused,
  type ModelSettings,
  type Provider,
  type ProviderJob,
  type ProviderPlace,
  type ProviderSettings,
} from "../provider.js";
import { filledWords, type ProgramWords, wordMistakes } from "./arguments.js";
import { type ProgramEnd, runProgram } from "./program.js";

/** The largest file that a program may leave (bytes). */
const fileBytesMax = 2 * 1024 ** 3;
const filesMax = 100;

/** `out.png`, or `out-1.png`, `out-2.png`. */
const outputName = /^out(?:-(\d+))?\.[^.]+$/;

export const commandKind: ProviderKind = {
  name: "command",
  describe: "programs of this machine",
  provider: {},
  model: {
    command: z
      .array(
        z.string("expected text: write numbers in quotes"),
        'expected a list of words, such as [draw, --, "{{ prompt }}"]',
      )
      .min(1, "expected a program and its words"),
    stdin: z.string("expected text").optional(),
  },
  defaults: { addresses: [], concurrency: 1, timeoutMs: 10 * 60_000 },
  needsKey: false,
  check({ details, input }, folder, params) {
    const words = details as unknown as ProgramWords;
    const [program = ""] = words.command;
    const isMissing = isPath(program) && !program.includes("{{") && !isFile(resolve(folder, program));
    return [
      ...(isMissing ? [{ path: ["command", 0], message: `there is no program ${program}` }] : []),
      ...wordMistakes(words, input, params),
    ];
  },
  reach(_, { key, details }) {
    const { command, stdin } = details as unknown as ProgramWords;
    const given = stdin === undefined ? [] : ["<<<", shellWord(stdin)];
    return {
      values: [
        { setting: `command of model ${key}`, value: [...command.map(shellWord), ...given].join(" ") },
      ],
    };
  },
  open: (settings, place) => new Programs(settings, place),
};

/** Jobs that a program does here, in the job's own folder. */
class Programs implements Provider {
  readonly repeatable = "yes";

  constructor(
    private readonly settings: Pick<ProviderSettings, "timeoutMs">,
    private readonly place: Pick<ProviderPlace, "folder" | "env" | "clock">,
  ) {}

  async submit(job: ProviderJob, signal: AbortSignal): Promise<Done> {
    const { command, stdin } = job.model.details as unknown as ProgramWords;
    const values = {
      ...job.params,
      prompt: job.prompt,
      ...Object.fromEntries(Object.entries(job.media).map(([name, { path }]) => [name, path])),
      out: join(job.folder, "out"),
      folder: this.place.folder,
    };
    const [program = "", ...words] = filledWords(command, values);
    const end = await this.run(
      program,
      words,
      stdin === undefined ? null : liquidText(stdin).filled(values),
      job,
      signal,
    );
    const folders = [job.folder, this.place.folder, this.place.env["HOME"] ?? ""];
    if (end.hasTimedOut)
      throw new JobRefused(
        "provider",
        `the program was ended after ${duration(this.settings.timeoutMs)}`,
        false,
      );
    if (end.code !== 0) throw new JobRefused("provider", failureText(end, folders), false);
    return { outputs: await outputsIn(job.folder, end, folders) };
  }

  async check(_: AbortSignal, models: readonly ModelSettings[]): Promise<string | null> {
    for (const { key, details } of models) {
      const [program = ""] = (details as unknown as ProgramWords).command;
      if ((await this.path(program)) === null) {
        const where = isPath(program) ? "is no program that can be run" : "is not on the PATH";
        return `${program}, which ${key} needs, ${where}: install it, or write its whole path`;
      }
    }
    return null;
  }

  private async run(
    program: string,
    words: string[],
    stdin: string | null,
    job: ProviderJob,
    signal: AbortSignal,
  ): Promise<ProgramEnd> {
    const { clock, env } = this.place;
    const path = await this.path(program);
    if (path === null)
      throw new JobRefused("provider", "the program is not installed on the service's machine", false);
    const { timeoutMs } = this.settings;
    try {
      return await runProgram({
        program: path,
        words,
        stdin,
        cwd: job.folder,
        env,
        clock,
        timeoutMs,
        signal,
      });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "E2BIG")
        throw new JobRefused("input", "the prompt is too long for a program's argument", false);
      throw error;
    }
  }

  /** A path is relative to the models file, a name is looked up on the PATH; null if there is no such program. */
  private async path(program: string): Promise<string | null> {
    const { folder, env } = this.place;
    const folders = (env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
    const endings = process.platform === "win32" ? ["", ".exe"] : [""];
    const paths = isPath(program)
      ? [resolve(folder, program)]
      : folders.flatMap((each) => endings.map((ending) => join(each, `${program}${ending}`)));
    for (const path of paths) if (await canRun(path)) return path;
    return null;
  }
}

function isPath(program: string): boolean {
  return /[\\/]/.test(program);
}

function isFile(path: string): boolean {
  try {
    return !lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

async function canRun(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return isFile(path);
  } catch {
    return false;
  }
}

function failureText({ code, signal, said }: ProgramEnd, folders: readonly string[]): string {
  const last = lastLine(said, folders);
  const how =
    code === null ? `the program was ended by ${signal}` : `the program failed with exit code ${code}`;
  return last === "" ? how : `${how}: ${last}`;
}

/** What a line of an error has in it, in most programs. */
const errorLine = /error\b|\b(failed|cannot|denied|no such)\b/i;

/** The last line that tells of an error, else the last one: Node, for one, ends a crash with its version. */
function lastLine(said: string, folders: readonly string[]): string {
  const lines = said.split(/\r?\n|\r/).map((line) => clientText(line, folders));
  return lines.findLast((line) => errorLine.test(line)) ?? lines.findLast((line) => line !== "") ?? "";
}

/** The files that it left, in the order of their numbers. Links are not followed. */
async function outputsIn(
  folder: string,
  { said }: ProgramEnd,
  folders: readonly string[],
): Promise<JobOutput[]> {
  const found: { number: number; name: string }[] = [];
  for (const name of await readdir(folder)) {
    const match = outputName.exec(name);
    if (match !== null) found.push({ number: Number(match[1] ?? 0), name });
  }
  found.sort((a, b) => a.number - b.number || a.name.localeCompare(b.name, "en"));
  if (found.length > filesMax)
    throw new JobRefused("provider", `the program wrote ${found.length} files, more than ${filesMax}`, false);
  const outputs: JobOutput[] = [];
  for (const { name } of found) {
    const path = join(folder, name);
    const facts = await lstat(path);
    if (!facts.isFile()) continue;
    if (facts.size === 0) throw new JobRefused("provider", `the program left ${name} empty`, false);
    if (facts.size > fileBytesMax)
      throw new JobRefused(
        "provider",
        `${name} has ${fileSize(facts.size)}, more than ${fileSize(fileBytesMax)}`,
        false,
      );
    outputs.push({ path });
  }
  if (outputs.length > 0) return outputs;
  const last = lastLine(said, folders);
  throw new JobRefused(
    "provider",
    `the program ended without a file named {{ out }} and an ending, such as out.png${last === "" ? "" : `; it said: ${last}`}`,
    false,
  );
}
