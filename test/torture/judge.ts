import type { Auditor, Cut } from "./auditor.js";
import { pause } from "./kill.js";
import { badEnd, openItems, type Runner, toldBy } from "./runner.js";
import type { Service } from "./service.js";

/** Starts after which a run that is left alone must have done all that can be done. */
const startsMax = 12;
/** Between two starts while nothing is left but lost answers, whose time has not come. */
const settleMs = 1_500;

/** Starts the runner again and again until nothing is left that it could do by itself. `look` is called after each. */
export async function untilDone(runner: Runner, look: () => void): Promise<string[]> {
  const violations: string[] = [];
  for (let starts = 1; ; starts++) {
    const end = await ((await runner.status()) === null ? runner.run() : runner.resume()).ended;
    violations.push(...badEnd("a run that was left alone", end));
    look();
    const status = await runner.status();
    const [open, lost] = status === null ? [1, 0] : [openItems(status), status.counts.unknown];
    const isCapped = end.stdout.includes('"kind":"cap"');
    if (lost === 0 && (open === 0 || isCapped)) return violations;
    if (starts === startsMax) {
      const left = `${open} items are still open and ${lost} answers unsettled after ${starts} starts`;
      return [...violations, `${left} (${end.code}: ${end.stderr.slice(-200)})`];
    }
    if (lost > 0) await pause(settleMs);
  }
}

/** Judges a workspace as a whole: the service must answer without faults by now. */
export async function judge(
  service: Service,
  runner: Runner,
  auditor: Auditor,
  cuts: readonly Cut[] | null,
): Promise<{ violations: string[]; tasks: number; files: number }> {
  const tasks = service.ledger().filter((task) => runner.rows.has(task.prompt));
  const archive = runner.archive();
  const outputs = new Map<string, Buffer[]>();
  for (const { id, outcome } of tasks) {
    if (outcome === "completed") outputs.set(id, await service.outputsOf(id));
  }
  const told = toldBy(await runner.status());
  const violations = auditor.close({ tasks, archive, told, outputs, cuts });
  return { violations, tasks: tasks.length, files: archive.files.size };
}
