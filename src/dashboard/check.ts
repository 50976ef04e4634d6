import { isRefusal } from "../core/exit.js";
import type { ItemStanding } from "../core/ports/draft.js";
import { lineOf } from "../launch.js";
import { Refused } from "./asked.js";
import type { Commands } from "./commands.js";
import { flagsOf } from "./commands.js";
import type { ModelEntry, SheetCheck, SheetProblem, StartChoices } from "./shapes.js";

const problemsMax = 2_000;
const fixesMax = 40;

/** What `bulkgen plan --json` prints, as far as the page shows it. */
interface ParsedPlan {
  job: string;
  problems: {
    place: { row: number | null; column?: string; id?: string; line?: number };
    message: string;
    expected: string;
    got: string;
    nearest?: string;
    repair?: string;
  }[];
  blockers: { message: string }[];
  warnings: { message: string }[];
  notes: string[];
  standings: Partial<Record<ItemStanding, number>>;
  models: { model: string; items: number; due: number; credits: number }[];
  money: { needed: number; within: number; inDoubt: number; balance: number | null; after: number | null };
  requests: {
    atLeast: number;
    plan: string | null;
    perMinute: number | null;
    perDay: number | null;
    forecast: SheetCheck["forecast"];
  };
}

/** Plans a sheet. Throws Refused, with the command's message, if the command failed, for example without a key. */
export async function check(choices: StartChoices, commands: Pick<Commands, "ask">): Promise<SheetCheck> {
  const { exit, stdout, message } = await commands.ask(["plan", choices.file, "--json", ...flagsOf(choices)]);
  if (stdout.trim() === "") throw new Refused(message);
  const document = JSON.parse(stdout) as unknown;
  if (isRefusal(document)) throw new Refused(message);
  const plan = document as ParsedPlan;
  const due = plan.models.reduce((sum, model) => sum + model.due, 0);
  const { new: _, ...existing } = plan.standings;
  return {
    job: plan.job,
    problems: plan.problems.slice(0, problemsMax).map(problemOf),
    problemCount: plan.problems.length,
    blockers: plan.blockers.map((each) => each.message),
    warnings: plan.warnings.map((each) => each.message),
    notes: plan.notes,
    due,
    existing,
    credits: plan.money,
    requests: plan.requests,
    forecast: due === 0 ? null : plan.requests.forecast,
    models: plan.models,
    line: lineOf(["run", choices.file, ...flagsOf(choices)]),
    ready: exit === 0 && due > 0,
  };
}

function problemOf({
  place,
  message,
  expected,
  got,
  nearest,
  repair,
}: ParsedPlan["problems"][number]): SheetProblem {
  const [, choices] = /^one of: ([^()]*)/.exec(expected) ?? [];
  const fixes = [repair, nearest, ...(choices?.split(", ").map((each) => each.trim()) ?? [])];
  return {
    row: place.row,
    column: place.column ?? null,
    id: place.id ?? null,
    line: place.line ?? null,
    message,
    expected,
    got,
    fixes: [...new Set(fixes.filter((fix) => fix !== undefined && fix !== ""))].slice(
      0,
      fixesMax,
    ) as string[],
  };
}

/** The service's models. Throws Refused when they cannot be read. */
export async function modelsFor(commands: Pick<Commands, "ask">): Promise<ModelEntry[]> {
  const { exit, stdout, message } = await commands.ask(["models", "--json"]);
  if (exit !== 0) throw new Refused(message);
  const { models } = JSON.parse(stdout) as {
    models: { model_key: string; model_name: string; category: string; credits_cost: number }[];
  };
  return models.map(({ model_key: id, model_name: name, category, credits_cost: credits }) => ({
    id,
    name,
    category,
    credits,
  }));
}
