import { isRefusal } from "../core/exit.js";
import type { Documents } from "../documents/documents.js";
import type {
  JobQuestion,
  JobWay,
  ModelEntry,
  SheetCheck,
  SheetProblem,
  StartChoices,
} from "../documents/page.js";
import { lineOf } from "../launch.js";
import type { Commands } from "./commands.js";
import { flagsOf } from "./commands.js";
import { Refused } from "./refused.js";

const problemsMax = 2_000;
const fixesMax = 40;

type ParsedPlan = Documents["plan"];
type PlanFinding = ParsedPlan["blockers"][number];

/** Plans a sheet. Throws Refused, with the command's message, if the command failed, for example without a key. */
export async function check(choices: StartChoices, commands: Pick<Commands, "ask">): Promise<SheetCheck> {
  const { exit, plan } = await planned(choices, commands);
  const { due, existing } = workOf(plan);
  const question = await questionOf(plan, choices, commands);
  const isAsked = ({ choice }: PlanFinding) => question !== null && choice !== undefined;
  return {
    job: plan.job,
    problems: plan.problems.slice(0, problemsMax).map(problemOf),
    problemCount: plan.problems.length,
    blockers: messagesOf(plan.blockers.filter((each) => !isAsked(each))),
    warnings: messagesOf(plan.warnings.filter((each) => !isAsked(each))),
    notes: plan.notes,
    due,
    existing,
    credits: plan.money,
    requests: plan.requests,
    forecast: due === 0 ? null : plan.requests.forecast,
    models: plan.models,
    line: lineOf(["run", choices.file, ...flagsOf(choices)]),
    ready: exit === 0 && due > 0,
    question,
  };
}

async function planned(
  choices: StartChoices,
  commands: Pick<Commands, "ask">,
): Promise<{ exit: number; plan: ParsedPlan }> {
  const { exit, stdout, message } = await commands.ask(["plan", choices.file, "--json", ...flagsOf(choices)]);
  if (stdout.trim() === "") throw new Refused(message);
  const document = JSON.parse(stdout) as unknown;
  if (isRefusal(document)) throw new Refused(message);
  return { exit, plan: document as ParsedPlan };
}

function workOf({ models, states }: ParsedPlan): Pick<SheetCheck, "due" | "existing"> {
  const { new: _, ...existing } = states;
  return { due: models.reduce((sum, model) => sum + model.due, 0), existing };
}

const messagesOf = (findings: readonly PlanFinding[]) => findings.map(({ message }) => message);

/**
 * The ways on when items may be paid for already, each with its price. What `--job` does in a terminal is a button in
 * the page. Rows with problems come first.
 */
async function questionOf(
  plan: ParsedPlan,
  choices: StartChoices,
  commands: Pick<Commands, "ask">,
): Promise<JobQuestion | null> {
  const asked = plan.blockers.concat(plan.warnings).find(({ choice }) => choice !== undefined)?.choice;
  if (asked === undefined || (plan.problems.length > 0 && !choices.skipInvalid)) return null;
  const { found, continues, again } = asked;
  const isOnlyThis = plan.blockers.every(({ choice }) => choice !== undefined);
  const named = continues === null ? null : { ...choices, job: continues };
  const other = named === null ? null : await planned(named, commands);
  return {
    found,
    continues: named && other && wayOf(other.plan, named, other.exit === 0),
    again: isOnlyThis ? wayOf(plan, { ...choices, job: again }, true) : null,
  };
}

function wayOf(plan: ParsedPlan, choices: StartChoices, ready: boolean): JobWay {
  const { due, existing } = workOf(plan);
  return {
    job: choices.job ?? plan.job,
    due,
    existing,
    credits: plan.money,
    forecast: due === 0 ? null : plan.requests.forecast,
    line: lineOf(["run", choices.file, ...flagsOf(choices)]),
    ready,
  };
}

function problemOf({
  place,
  message,
  expected,
  got,
  nearest,
  repair,
  aside,
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
    aside: aside ?? null,
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
