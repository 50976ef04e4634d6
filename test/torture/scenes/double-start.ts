import { Auditor } from "../auditor.js";
import { judge, untilDone } from "../judge.js";
import { told } from "../kill.js";
import { Runner } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";

/** P18: while a process holds the workspace every other is refused; when it is killed its locks are gone at once. */
export const doubleStart: Scene = { name: "double start", play: playDoubleStart };

async function playDoubleStart({ place, later }: Stage): Promise<Played> {
  const service = await Service.start(place);
  later(() => service.kill());
  const lanes = 2;
  const runner = new Runner(place, { folder: place.folder, service, items: 10, lanes });
  const auditor = new Auditor({ rows: runner.rows, cap: null });
  const from = Date.now();
  const first = runner.run();
  await told(first, 2);
  const violations: string[] = [];
  const refused = async (circumstance: string) => {
    const ends = await Promise.all([runner.run().ended, runner.resume().ended]);
    for (const { code, stderr } of ends)
      if (code !== 9)
        violations.push(`P18: a second start ${circumstance} ended ${code}: ${stderr.slice(-200)}`);
  };
  // Stopped, so that it cannot have ended before the second one looks.
  first.signal("SIGSTOP");
  await refused("beside a process that was stopped");
  first.signal("SIGCONT");
  await told(first, 4);
  first.signal("SIGKILL");
  await first.ended;
  // What the process had sent off may arrive at a busy service after its end, but before the next one begins.
  await runner.status();
  const cut = { from, to: Date.now(), lanes };
  const next = runner.resume();
  await told(next, 1);
  await refused("beside the one that went on after a kill");
  await next.ended;
  violations.push(...(await untilDone(runner, () => undefined)));
  const judgement = await judge(service, runner, auditor, [cut]);
  return {
    facts: `4 seconds refused with exit 9; ${judgement.tasks} tasks, ${judgement.files} files`,
    violations: [...violations, ...judgement.violations],
  };
}
