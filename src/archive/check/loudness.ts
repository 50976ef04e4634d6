import type { InputAudioTrack } from "mediabunny";
import type { Disk } from "../../core/ports/disk.js";
import { wholeOf } from "../../text/pieces.js";

/**
 * The outline of a sound for the gallery. For uncompressed sound it is the highest sample of each slice. An MP3 is not
 * decoded: each of its frames says how far its spectrum has to be amplified (`global_gain`), which follows the loudness
 * closely enough for a drawing. Other formats have no outline.
 */

/** Slices of the outline. */
export const slices = 96;
/** Longer files are not read whole for a drawing. */
const bytesMax = 256 * 2 ** 20;

/** From 0 to 100 for each slice; null if the format has no outline. Rejects with errors of the disk. */
export async function loudnessOf(disk: Disk, path: string): Promise<number[] | null> {
  const bytes = await readWhole(disk, path);
  return bytes === null ? null : measured(bytes);
}

async function readWhole(disk: Disk, path: string): Promise<Buffer | null> {
  const size = await disk.size(path);
  if (size === null || size > bytesMax) return null;
  return wholeOf(disk.read(path));
}

async function measured(bytes: Buffer): Promise<number[] | null> {
  const { ALL_FORMATS, BufferSource, Input } = await import("mediabunny");
  const input = new Input({ formats: ALL_FORMATS, source: new BufferSource(bytes) });
  try {
    const track = await input.getPrimaryAudioTrack();
    return track === null ? null : await outlineOf(track);
  } catch {
    // What cannot be read is shown without an outline.
    return null;
  } finally {
    input.dispose();
  }
}

async function outlineOf(track: InputAudioTrack): Promise<number[] | null> {
  const loudest = track.codec === "mp3" ? loudestOfMp3 : sampleReaders[track.codec ?? ""];
  const duration = await track.computeDuration();
  if (loudest === undefined || !(duration > 0)) return null;
  const { EncodedPacketSink } = await import("mediabunny");
  const peaks = new Array<number>(slices).fill(0);
  for await (const { data, timestamp, duration: length } of new EncodedPacketSink(track).packets()) {
    const first = sliceAt(timestamp / duration);
    const last = Math.max(first, sliceAt((timestamp + length) / duration - 1e-9));
    const parts = last - first + 1;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    for (let part = 0; part < parts; part++)
      peaks[first + part] = Math.max(
        peaks[first + part] ?? 0,
        loudest(view, part / parts, (part + 1) / parts),
      );
  }
  const isMp3 = track.codec === "mp3";
  // A frame of an MP3 that is hard to encode stands out far beyond its loudness.
  const full = isMp3 ? peaks.toSorted((a, b) => a - b)[Math.floor(slices * 0.9)] : Math.max(...peaks);
  if (!full) return peaks.map((peak) => (peak > 0 ? 100 : 0));
  return peaks.map((peak) => Math.round(100 * Math.min(1, peak / full) ** (isMp3 ? 0.75 : 1)));
}

function sliceAt(share: number): number {
  return Math.min(slices - 1, Math.max(0, Math.floor(share * slices)));
}

/** The highest value in a stretch of a packet; `from` and `to` are fractions of its length. */
type Loudest = (packet: DataView, from: number, to: number) => number;

const sampleReaders: Readonly<Record<string, Loudest>> = {
  "pcm-u8": samples(1, (view, at) => (view.getUint8(at) - 128) / 128),
  "pcm-s8": samples(1, (view, at) => view.getInt8(at) / 128),
  "pcm-s16": samples(2, (view, at) => view.getInt16(at, true) / 2 ** 15),
  "pcm-s16be": samples(2, (view, at) => view.getInt16(at) / 2 ** 15),
  "pcm-s24": samples(3, (view, at) => view.getInt16(at + 1, true) / 2 ** 15),
  "pcm-s24be": samples(3, (view, at) => view.getInt16(at) / 2 ** 15),
  "pcm-s32": samples(4, (view, at) => view.getInt32(at, true) / 2 ** 31),
  "pcm-s32be": samples(4, (view, at) => view.getInt32(at) / 2 ** 31),
  "pcm-f32": samples(4, (view, at) => view.getFloat32(at, true)),
  "pcm-f32be": samples(4, (view, at) => view.getFloat32(at)),
};

function samples(bytes: number, read: (view: DataView, at: number) => number): Loudest {
  return (view, from, to) => {
    const count = Math.floor(view.byteLength / bytes);
    let highest = 0;
    for (let at = Math.floor(count * from); at < Math.floor(count * to); at++)
      highest = Math.max(highest, Math.abs(read(view, at * bytes)) || 0);
    return Math.min(1, highest);
  };
}

/** The side information of an MP3's frame follows its header, and has a block for each granule and channel. */
function loudestOfMp3(frame: DataView): number {
  const version = (frame.getUint8(1) >> 3) & 3;
  const isMono = frame.getUint8(3) >> 6 === 3;
  const channels = isMono ? 1 : 2;
  const hasChecksum = (frame.getUint8(1) & 1) === 0;
  const isFirstVersion = version === 3;
  // Where the first block begins, and how long each is, in bits.
  const begin = 8 * (hasChecksum ? 6 : 4) + (isFirstVersion ? (isMono ? 18 : 20) : isMono ? 9 : 10);
  const blockBits = isFirstVersion ? 59 : 63;
  let highest = 0;
  for (let block = 0; block < (isFirstVersion ? 2 : 1) * channels; block++) {
    const at = begin + block * blockBits;
    const isSilent = bitsAt(frame, at, 12) === 0;
    const gain = bitsAt(frame, at + 21, 8);
    if (!isSilent) highest = Math.max(highest, 2 ** ((gain - 210) / 4));
  }
  return highest;
}

function bitsAt(view: DataView, at: number, count: number): number {
  let value = 0;
  for (let bit = at; bit < at + count; bit++)
    value = value * 2 + ((view.getUint8(bit >> 3) >> (7 - (bit & 7))) & 1);
  return value;
}
