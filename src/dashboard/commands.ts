import PQueue from "p-queue";
import { exitCode } from "../core/exit.js";
import type { Act, StartChoices, StartedCommand } from "../documents/page.js";
import { type Launch, type LaunchedCommand, lineOf, sheetFlags } from "../launch.js";
import { Refused } from "./refused.js";

/**
 * The words of the command for an act. For everything that the page changes or spends, it starts a bulkgen command in a
 * separate process. So there is one way to do it, the person sees a command that they could have typed, and a run
 * continues when the dashboard ends. Values are written as `--flag=value`, so that no value is taken for a flag.
 */
export function wordsOf(act: Act): string[] {
  switch (act.do) {
    case "start":
      return ["run", act.choices.file, ...flagsOf(act.choices), `--max-price=${act.price}`];
    case "schedule":
      return [
        "schedule",
        "add",
        act.name,
        act.choices.file,
        `--cron=${act.cron}`,
        `--tz=${act.zone}`,
        ...flagsOf(act.choices),
      ];
    case "unschedule":
      return ["schedule", "remove", act.name];
    case "pause schedule":
      return ["schedule", "pause", act.name];
    case "resume schedule":
      return ["schedule", "resume", act.name];
    case "redo":
      return ["redo", ...act.items, `--max-price=${act.price}`];
    case "reject again":
      return ["reject", ...act.items, "--again", `--max-price=${act.price}`];
    case "resubmit":
      return ["resolve", ...act.items, "--resubmit", `--max-price=${act.price}`];
    // Both continue the run, which submits what it has still planned.
    case "adopt":
      return ["resolve", ...act.items, `--adopt=${act.task}`, `--max-price=${act.price}`];
    case "refetch":
    case "accept":
      return ["resolve", ...act.items, `--${act.do}`, `--max-price=${act.price}`];
    case "skip":
      return ["resolve", ...act.items, "--skip"];
    case "approve":
    case "reject":
    case "pick":
      return [act.do, ...act.items];
    case "unpick":
      return ["pick", ...act.items, "--undo"];
    case "retry":
      return ["retry", String(act.run), `--max-price=${act.price}`];
    case "resume":
      return ["resume", String(act.run), `--max-price=${act.price}`];
    case "pause":
    case "cancel":
      return [act.do, String(act.run)];
  }
}

/** The flags that say how a sheet is read and run. */
export function flagsOf(choices: StartChoices): string[] {
  const { job, sheet, maxCredits, fresh, canary, repair } = choices;
  return [
    ...(job ? [`--job=${job}`] : []),
    ...(sheet ? [`--sheet=${sheet}`] : []),
    ...sheetFlags(choices),
    ...(maxCredits === undefined ? [] : [`--max-credits=${maxCredits}`]),
    ...(fresh ? ["--fresh"] : []),
    ...(canary ? ["--canary"] : []),
    ...(repair ? ["--repair"] : []),
  ];
}

/** Commands that the page shows; the others are forgotten. */
const shownMax = 20;
const messageCharactersMax = 4_000;

/** How many questions of the page may wait for their turn. */
const askedMax = 20;

/** Starts the commands of the page, in the workspace, and remembers how they ended. */
export class Commands {
  /** Each is a process, and a plan of a large sheet needs a whole processor. */
  private readonly asking = new PQueue({ concurrency: 2 });
  private started: {
    id: number;
    line: string;
    startedAt: number;
    exit: number | null;
    launched: LaunchedCommand;
  }[] = [];
  private lastId = 0;

  constructor(
    private readonly launch: Launch,
    private readonly place: { sandbox: boolean; now(): number },
  ) {}

  /** Starts a command; resolves with it when it has ended, or when `patience` has. */
  async start(words: readonly string[], patience: Promise<void>): Promise<StartedCommand> {
    const own = this.place.sandbox ? [...words, "--sandbox"] : words;
    const command = {
      id: ++this.lastId,
      line: lineOf(own),
      startedAt: this.place.now(),
      exit: null as number | null,
      launched: this.launch(own),
    };
    this.started.unshift(command);
    const ended = command.launched.ended.then((code) => {
      command.exit = code ?? exitCode("crash");
      this.forget();
    });
    await Promise.race([ended, patience]);
    return shownCommand(command);
  }

  /** Runs a command that only reads, and returns what it printed. */
  async ask(words: readonly string[]): Promise<{ exit: number; stdout: string; message: string }> {
    if (this.asking.size >= askedMax)
      throw new Refused(
        "The page has asked for too many checks at once. Wait for those in progress, and ask again.",
      );
    return this.asking.add(() => this.answerTo(words));
  }

  private async answerTo(
    words: readonly string[],
  ): Promise<{ exit: number; stdout: string; message: string }> {
    const launched = this.launch(this.place.sandbox ? [...words, "--sandbox"] : words);
    const exit = (await launched.ended) ?? exitCode("crash");
    return { exit, stdout: launched.stdout(), message: messageOf(launched, exit) };
  }

  list(): StartedCommand[] {
    return this.started.slice(0, shownMax).map(shownCommand);
  }

  /** Those that still run are kept, however many. */
  private forget(): void {
    this.started = this.started.filter(({ exit }, index) => exit === null || index < shownMax);
  }
}

function shownCommand({
  id,
  line,
  startedAt,
  exit,
  launched,
}: Omit<StartedCommand, "message"> & { launched: LaunchedCommand }): StartedCommand {
  return { id, line, startedAt, exit, message: messageOf(launched, exit) };
}

/** While a command runs, its last line of progress; in the end what it printed, or why it could not do it. */
function messageOf({ stdout, stderr }: LaunchedCommand, exit: number | null): string {
  const [said, errors] = [stdout().trim(), stderr().trim()];
  if (exit === null) return shortened(errors.split("\n").at(-1) ?? "");
  // A plan or a log may come before the error.
  const reason = `\n${errors}`.split("\nbulkgen: ").slice(1).at(-1);
  return shortened(exit === 0 ? said || errors : (reason ?? (said || errors)));
}

function shortened(text: string): string {
  return text.slice(-messageCharactersMax);
}
