import { type ExitName, exitCode } from "../core/exit.js";
import { showCredits } from "../core/money.js";
import { type Look, plainLook } from "./look.js";
import { minute, type RunLine, stateText } from "./status.js";
import { type Cell, type Column, table } from "./table.js";

const columns: readonly Column[] = [
  { title: "run", align: "right" },
  { title: "job", flexible: true },
  { title: "state" },
  { title: "begun (UTC)" },
  { title: "ended (UTC)" },
  { title: "archived", align: "right" },
  { title: "failed", align: "right" },
  { title: "held", align: "right" },
  { title: "credits", align: "right" },
  { title: "exit", flexible: true },
];

/** Every run on a line, and below them how to go on with those that are not finished. */
export function runsTable(runs: readonly RunLine[], look: Look = plainLook): string {
  const rows = runs.map((run): Cell[] => [
    run.run,
    run.job,
    run.resume === null ? stateText(run) : { text: stateText(run), tone: "warning" },
    minute(run.startedAt),
    run.endedAt === null ? "" : minute(run.endedAt),
    run.archived,
    run.failed === 0 ? 0 : { text: String(run.failed), tone: "bad" },
    run.held === 0 ? 0 : { text: String(run.held), tone: "warning" },
    showCredits(run.spent) + (run.pending === 0 ? "" : ` +${showCredits(run.pending)}`),
    run.exit === null ? "" : `${exitCode(run.exit as ExitName)} ${run.exit}`,
  ]);
  const next = runs.flatMap(({ run, resume }) =>
    resume === null ? [] : [`run ${run}: \`${resume}\` goes on`],
  );
  return [table(columns, rows, look), ...next].join("\n");
}
