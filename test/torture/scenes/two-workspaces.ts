import { join } from "node:path";
import { Auditor, type Cut } from "../auditor.js";
import { judge, untilDone } from "../judge.js";
import { told } from "../kill.js";
import { badEnd, Runner } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";

/** Two workspaces share an account and its lanes at the same time; one of them is killed and continues. */
export const twoWorkspaces: Scene = { name: "two workspaces", play: playTwoWorkspaces };

async function playTwoWorkspaces({ place, later }: Stage): Promise<Played> {
  const lanes = 2;
  const service = await Service.start(place);
  later(() => service.kill());
  const [one, other] = ["one", "other"].map(
    (name) =>
      new Runner(place, { folder: join(place.folder, name), service, items: 10, lanes, subject: name }),
  ) as [Runner, Runner];
  const from = Date.now();
  const killed = one.run();
  const left = other.run();
  await told(killed, 4);
  killed.signal("SIGKILL");
  await killed.ended;
  // What the process had sent off may arrive at a busy service after its end, but before the next one begins.
  await one.status();
  const cuts: Cut[] = [{ from, to: Date.now(), lanes }];
  const violations: string[] = [];
  violations.push(...(await untilDone(one, () => undefined)));
  violations.push(...badEnd("the workspace that was left alone", await left.ended));
  violations.push(...(await untilDone(other, () => undefined)));
  let [tasks, files] = [0, 0];
  for (const [runner, own] of [
    [one, cuts],
    [other, []],
  ] as const) {
    const judgement = await judge(service, runner, new Auditor({ rows: runner.rows, cap: null }), own);
    violations.push(...judgement.violations);
    tasks += judgement.tasks;
    files += judgement.files;
  }
  return { facts: `one account, both at once, one killed: ${tasks} tasks, ${files} files`, violations };
}
