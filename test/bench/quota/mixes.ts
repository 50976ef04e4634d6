import { type Chance, chance } from "../../sim/chance.js";

/** One generation to make: of which model, and how long the service will take for it. */
export interface Job {
  model: string;
  category: string;
  durationMs: number;
  /** It will end as failed. */
  fails: boolean;
}

type Draw = (lot: Chance, index: number) => Omit<Job, "fails">;

/** A standard normal number. */
function normal(lot: Chance): number {
  return Math.sqrt(-2 * Math.log(1 - lot.next())) * Math.cos(2 * Math.PI * lot.next());
}

function lognormal(lot: Chance, medianS: number, sigma: number): number {
  return 1_000 * medianS * Math.exp(sigma * normal(lot));
}

function pareto(lot: Chance, medianS: number, alpha: number): number {
  return (1_000 * medianS * (1 - lot.next()) ** (-1 / alpha)) / 2 ** (1 / alpha);
}

const kinds = {
  image: { medianS: 8, sigma: 0.4 },
  audio: { medianS: 15, sigma: 0.5 },
  video: { medianS: 90, sigma: 0.35 },
} as const;

type Kind = keyof typeof kinds;

function kindOf(lot: Chance): Kind {
  const at = lot.next();
  return at < 0.7 ? "image" : at < 0.8 ? "audio" : "video";
}

const of = (kind: Kind, durationMs: number) => ({ model: `${kind}-model`, category: kind, durationMs });
const usual = (lot: Chance, kind: Kind) => lognormal(lot, kinds[kind].medianS, kinds[kind].sigma);

/** What people make: how long each generation takes is drawn anew for every seed. */
export const mixes = {
  mixed: (lot) => {
    const kind = kindOf(lot);
    return of(kind, usual(lot, kind));
  },
  images: (lot) => of("image", usual(lot, "image")),
  video: (lot) => of("video", usual(lot, "video")),
  "video of 180 s": (lot) => of("video", lognormal(lot, 180, 0.35)),
  "9 minutes": (lot) => of("video", lognormal(lot, 540, 0.03)),
  "lognormal, sigma 1": (lot) => {
    const kind = kindOf(lot);
    return of(kind, lognormal(lot, kinds[kind].medianS, 1));
  },
  "Pareto 1.5": (lot) => {
    const kind = kindOf(lot);
    return of(kind, pareto(lot, kinds[kind].medianS, 1.5));
  },
  /** Ten models of each category, whose paces differ by up to four times from the usual ones. */
  "unseen models": (lot) => {
    const kind = kindOf(lot);
    const number = lot.whole(0, 2);
    const pace = [0.5, 1, 2][number] ?? 1;
    return { ...of(kind, usual(lot, kind) * pace), model: `${kind}-model-${number}` };
  },
} as const satisfies Record<string, Draw>;

export type Mix = keyof typeof mixes;

export interface Wanted {
  mix: Mix;
  items: number;
  seed: number;
  /** From the middle of the run on, everything takes so many times as long. */
  paceAfterHalf?: number;
  /** The share of tasks that fail. */
  failing?: number;
}

/** The generations of a seed, in the manifest's order. What changes in mid-run changes for the later rows. */
export function jobsOf({ mix, items, seed, failing = 0 }: Wanted): Job[] {
  const lot = chance(seed, "jobs", mix, items);
  return Array.from({ length: items }, (_, index) => {
    const draw: Draw = mixes[mix];
    const job = draw(lot, index);
    return { ...job, fails: lot.is(failing) };
  });
}

/** The response time of one request, in ms. */
export function responseMs(lot: Chance): number {
  return 300 + 700 * lot.next();
}
