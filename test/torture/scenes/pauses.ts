import { chance } from "../../sim/chance.js";
import { Auditor } from "../auditor.js";
import { judge, untilDone } from "../judge.js";
import { pause, told } from "../kill.js";
import { badEnd, Runner } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";

/** The runner, and then the service, are suspended with SIGSTOP at random moments and continued with SIGCONT. */
export const pauses: Scene = { name: "SIGSTOP, SIGCONT", play: playPauses };

const pausesEach = 6;

async function playPauses({ place, seed, later }: Stage): Promise<Played> {
  const random = chance(seed, "pauses");
  const service = await Service.start(place);
  later(() => service.kill());
  const runner = new Runner(place, { folder: place.folder, service, items: 12, lanes: 2 });
  const auditor = new Auditor({ rows: runner.rows, cap: null });
  const running = runner.run();
  for (let number = 1; number <= pausesEach; number++) {
    await told(running, number * 2);
    const stopped = number % 2 === 0 ? service : running;
    stopped.signal("SIGSTOP");
    await pause(random.whole(20, 500));
    stopped.signal("SIGCONT");
  }
  const violations = badEnd("a run that was stopped and let go", await running.ended);
  violations.push(...(await untilDone(runner, () => undefined)));
  const judgement = await judge(service, runner, auditor, []);
  return {
    facts: `${pausesEach} times, runner and service in turn: ${judgement.tasks} tasks, ${judgement.files} files`,
    violations: [...violations, ...judgement.violations],
  };
}
