import type { MediaJob } from "./job.js";
import { Seeded } from "./seeded.js";
import type { Sound } from "./sound.js";

/**
 * A small piece of music: a chord progression in a seeded key, held by a pad, walked by an arpeggio and kept in time
 * by a soft beat. Notes are semitones above the A of 110 Hz.
 */

const rate = 32_000;

interface Mood {
  tempo: readonly [low: number, high: number];
  scale: readonly number[];
  /** Chords as steps of the scale. */
  progressions: readonly (readonly number[])[];
  beat: number;
}

const major = [0, 2, 4, 5, 7, 9, 11];
const minor = [0, 2, 3, 5, 7, 8, 10];

const moods: Readonly<Record<string, Mood>> = {
  calm: {
    tempo: [66, 80],
    scale: major,
    progressions: [
      [0, 4, 5, 3],
      [0, 5, 3, 4],
    ],
    beat: 0.05,
  },
  bright: {
    tempo: [108, 124],
    scale: major,
    progressions: [
      [0, 3, 4, 3],
      [0, 4, 5, 3],
    ],
    beat: 0.3,
  },
  dark: {
    tempo: [72, 92],
    scale: minor,
    progressions: [
      [0, 5, 2, 6],
      [0, 3, 5, 4],
    ],
    beat: 0.22,
  },
};

export function music(job: MediaJob, seconds: number): Sound {
  const seeded = new Seeded(job.seed);
  const names = Object.keys(moods);
  const mood = moods[job.input["mood"] ?? seeded.pick(names)] ?? (moods["calm"] as Mood);
  const beatSeconds = 60 / seeded.between(...mood.tempo);
  const root = seeded.whole(0, 9);
  const progression = seeded.pick(mood.progressions);
  const samples = new Float32Array(Math.round(seconds * rate));
  const beats = Math.ceil(seconds / beatSeconds);
  for (let beat = 0; beat < beats; beat++) {
    const step = progression[Math.floor(beat / 4) % progression.length] ?? 0;
    const chord = [0, 2, 4].map((offset) => root + note(mood.scale, step + offset));
    const start = beat * beatSeconds;
    if (beat % 4 === 0) for (const pitch of chord) add(samples, start, beatSeconds * 4.4, pitch, 0.08, "pad");
    if (beat % 2 === 0) add(samples, start, beatSeconds * 1.8, (chord[0] ?? 0) - 12, 0.16, "pad");
    for (const half of [0, 0.5]) {
      const pitch = seeded.pick(chord) + 12 * seeded.whole(1, 2);
      add(samples, start + half * beatSeconds, beatSeconds * 1.6, pitch, 0.13, "pluck");
    }
    thump(samples, start, mood.beat);
  }
  return { rate, samples: faded(samples) };
}

/** The semitones of a step of the scale, going on into the next octave. */
function note(scale: readonly number[], step: number): number {
  return (scale[step % scale.length] ?? 0) + 12 * Math.floor(step / scale.length);
}

function add(
  out: Float32Array,
  start: number,
  length: number,
  pitch: number,
  size: number,
  kind: "pad" | "pluck",
): void {
  const turn = (2 * Math.PI * 110 * 2 ** (pitch / 12)) / rate;
  const first = Math.floor(start * rate);
  const count = Math.min(Math.floor(length * rate), out.length - first);
  for (let index = 0; index < count; index++) {
    const at = index / (length * rate);
    const swell = kind === "pad" ? Math.sin(Math.PI * at) : Math.exp(-5 * at) * Math.min(1, index / 160);
    const phase = turn * index;
    const tone = Math.sin(phase) + 0.35 * Math.sin(2 * phase) + 0.12 * Math.sin(3 * phase);
    out[first + index] = (out[first + index] ?? 0) + tone * swell * size;
  }
}

function thump(out: Float32Array, start: number, size: number): void {
  const first = Math.floor(start * rate);
  const count = Math.min(Math.floor(0.16 * rate), out.length - first);
  for (let index = 0; index < count; index++) {
    const fade = Math.exp(-index / (0.035 * rate));
    out[first + index] =
      (out[first + index] ?? 0) + Math.sin((2 * Math.PI * 58 * index) / rate) * fade * size;
  }
}

/** As loud as the loudest moment allows, and silent at both ends. */
function faded(samples: Float32Array): Float32Array {
  const edge = Math.min(rate / 2, samples.length / 4);
  const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-6);
  return samples.map((sample, index) => {
    const gain = Math.min(1, index / 400, (samples.length - index) / edge);
    return (sample / loudest) * 0.85 * gain;
  });
}
