import { rmSync } from "node:fs";
import { makePlace, type Place } from "../e2e/process.js";

/** Something that is played once and judged. */
export interface Scene {
  name: string;
  play(stage: Stage): Promise<Played>;
}

export interface Stage {
  place: Place;
  seed: number;
  /** Called when the scene is over, the last first. */
  later(work: () => Promise<unknown> | unknown): void;
}

export interface Played {
  /** False where this machine does not let it be played. */
  isPlayed?: false;
  /** What was done and seen, or why nothing was, in a line. */
  facts: string;
  violations: string[];
}

export async function play(scene: Scene, seed: number): Promise<Played> {
  const place = makePlace("torture");
  const afterwards: (() => Promise<unknown> | unknown)[] = [];
  const stage: Stage = { place, seed, later: (work) => afterwards.unshift(work) };
  const played = await scene.play(stage).catch(
    (error: unknown): Played => ({
      facts: "could not be played",
      violations: [error instanceof Error ? error.message : String(error)],
    }),
  );
  for (const work of afterwards) await work();
  if (played.violations.length === 0) rmSync(place.root, { recursive: true, force: true });
  else played.violations.push(`seed ${seed}: its files are left in ${place.root}`);
  return played;
}
