import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  MovOutputFormat,
  Output,
  type PCM_AUDIO_CODECS,
} from "mediabunny";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMp3Encoder } from "wasm-media-encoders";
import { loudnessOf } from "../../../src/archive/check/loudness.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import { media } from "../media.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-loudness-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const rate = 44_100;

/** Two seconds: silence, a soft tone, silence, and a loud one. */
function rising(): Float32Array {
  const volumes = [0, 0.05, 0, 0.8];
  return Float32Array.from(
    { length: 2 * rate },
    (_, at) => (volumes[Math.floor((2 * at) / rate)] ?? 0) * Math.sin(at / 8),
  );
}

function wav(samples: Float32Array): Buffer {
  const bytes = Buffer.alloc(44 + 2 * samples.length);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(2 * rate, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(2 * samples.length, 40);
  for (const [at, value] of samples.entries()) bytes.writeInt16LE(Math.round(value * 32_767), 44 + 2 * at);
  return bytes;
}

async function mp3(samples: Float32Array, channels: 1 | 2): Promise<Buffer> {
  const encoder = await createMp3Encoder();
  encoder.configure({ sampleRate: rate, channels, bitrate: 128 });
  const first = Buffer.from(encoder.encode(channels === 1 ? [samples] : [samples, samples]));
  return Buffer.concat([first, Buffer.from(encoder.finalize())]);
}

async function outlineOf(name: string, bytes: Uint8Array): Promise<number[] | null> {
  writeFileSync(join(folder, name), bytes);
  return loudnessOf(nodeDisk, join(folder, name));
}

/** The mean of the middle of each of the four parts. */
function parts(outline: readonly number[]): number[] {
  return [0, 1, 2, 3].map((part) => {
    const slices = outline.slice(part * 24 + 8, part * 24 + 18);
    return slices.reduce((sum, value) => sum + value, 0) / slices.length;
  });
}

test.each([
  ["WAV", async () => wav(rising())],
  ["MP3 in mono", () => mp3(rising(), 1)],
  ["MP3 in stereo", () => mp3(rising(), 2)],
])("the outline of a %s file is high where it is loud, and flat where it is silent", async (_, make) => {
  const outline = (await outlineOf("a", await make())) ?? [];
  expect(outline).toHaveLength(96);
  const [silent = 9, soft = 0, between = 9, loud = 0] = parts(outline);
  expect(silent).toBeLessThan(1);
  expect(between).toBeLessThan(1);
  expect(soft).toBeGreaterThan(1);
  expect(loud).toBeGreaterThan(5 * soft);
  expect(Math.max(...outline)).toBe(100);
});

type PcmAudioCodec = (typeof PCM_AUDIO_CODECS)[number];

/** The samples in a QuickTime file, as `write` puts each into so many bytes. */
async function mov(
  codec: PcmAudioCodec,
  samples: Float32Array,
  bytes: number,
  write: (view: DataView, at: number, sample: number) => void,
): Promise<Buffer> {
  const data = new Uint8Array(bytes * samples.length);
  const view = new DataView(data.buffer);
  for (const [at, sample] of samples.entries()) write(view, at * bytes, sample);
  const target = new BufferTarget();
  const output = new Output({ format: new MovOutputFormat({ fastStart: false }), target });
  const source = new EncodedAudioPacketSource(codec);
  output.addAudioTrack(source);
  await output.start();
  const packet = new EncodedPacket(data, "key", 0, samples.length / rate);
  await source.add(packet, { decoderConfig: { codec, numberOfChannels: 1, sampleRate: rate } });
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

const whole = (bits: number, sample: number) => Math.round(sample * (2 ** (bits - 1) - 1));

test.each<[PcmAudioCodec, number, (view: DataView, at: number, sample: number) => void]>([
  ["pcm-u8", 1, (view, at, sample) => view.setUint8(at, 128 + whole(8, sample))],
  ["pcm-s8", 1, (view, at, sample) => view.setInt8(at, whole(8, sample))],
  ["pcm-s16", 2, (view, at, sample) => view.setInt16(at, whole(16, sample), true)],
  ["pcm-s16be", 2, (view, at, sample) => view.setInt16(at, whole(16, sample))],
  [
    "pcm-s24",
    3,
    (view, at, sample) => {
      view.setUint8(at, whole(24, sample) & 255);
      view.setInt16(at + 1, whole(24, sample) >> 8, true);
    },
  ],
  [
    "pcm-s24be",
    3,
    (view, at, sample) => {
      view.setInt16(at, whole(24, sample) >> 8);
      view.setUint8(at + 2, whole(24, sample) & 255);
    },
  ],
  ["pcm-s32", 4, (view, at, sample) => view.setInt32(at, whole(32, sample), true)],
  ["pcm-s32be", 4, (view, at, sample) => view.setInt32(at, whole(32, sample))],
  ["pcm-f32", 4, (view, at, sample) => view.setFloat32(at, sample, true)],
  ["pcm-f32be", 4, (view, at, sample) => view.setFloat32(at, sample)],
])("the outline of uncompressed sound as %s is the one that others have", async (codec, bytes, write) => {
  const expected = (await outlineOf("a", wav(rising()))) ?? [];
  const outline = (await outlineOf("b", await mov(codec, rising(), bytes, write))) ?? [];
  expect(outline).toHaveLength(96);
  // Where the volume changes, a slice depends on how the sound is cut into packets.
  const steady = [...outline.entries()].filter(([slice]) => slice % 24 !== 0 && slice % 24 !== 23);
  for (const [slice, value] of steady)
    expect(Math.abs(value - (expected[slice] ?? 0)), `slice ${slice}`).toBeLessThanOrEqual(1);
});

test("silence has an outline, which is flat", async () => {
  expect(await outlineOf("a", wav(new Float32Array(rate)))).toEqual(new Array(96).fill(0));
});

test("a short sound in an MP3 that is silent otherwise stands out", async () => {
  const short = Float32Array.from({ length: 2 * rate }, (_, at) =>
    at > rate && at < 1.05 * rate ? Math.sin(at / 8) : 0,
  );
  const outline = (await outlineOf("a", await mp3(short, 1))) ?? [];
  expect(new Set(outline)).toEqual(new Set([0, 100]));
  expect(outline.filter((value) => value === 100).length).toBeLessThan(10);
  expect(outline.indexOf(100)).toBeGreaterThan(40);
});

test("formats that tell nothing, and files that cannot be read, have no outline", async () => {
  expect(await outlineOf("o", await media.ogg())).toBeNull();
  expect(await outlineOf("x", Buffer.from("no sound at all"))).toBeNull();
  const cut = await mp3(rising(), 1);
  expect((await outlineOf("c", cut.subarray(0, cut.length / 3)))?.length ?? 96).toBe(96);
  expect(await outlineOf("e", wav(new Float32Array(0)))).toBeNull();
});
