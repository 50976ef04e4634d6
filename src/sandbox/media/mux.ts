import {
  ALL_FORMATS,
  type AudioCodec,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  type InputTrack,
  Mp4OutputFormat,
  Output,
} from "mediabunny";

/** One MP4 put together from encoded parts, none of which is decoded. */
export interface Reel {
  /** H.264 films, played one after the other. */
  films: readonly Uint8Array[];
  /** A file whose sound is laid under the films from the start. */
  sound: Uint8Array | null;
  /** A JPEG of the last frame, kept in the file for whoever extends it. */
  lastFrame: Uint8Array;
}

interface Track {
  packets: EncodedPacket[];
  seconds: number;
  track: InputTrack;
}

/** The reel as one file: the same parts make the same bytes. */
export async function reelFile(reel: Reel): Promise<Uint8Array> {
  const films = await Promise.all(reel.films.map((bytes) => readTrack(bytes, "video")));
  const sound = reel.sound && (await readTrack(reel.sound, "audio").catch(() => null));
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: "in-memory" }), target });
  output.setMetadataTags({ images: [{ data: reel.lastFrame, mimeType: "image/jpeg", kind: "coverFront" }] });
  const pictures = new EncodedVideoPacketSource("avc");
  output.addVideoTrack(pictures);
  const voice = sound ? new EncodedAudioPacketSource(sound.track.codec as AudioCodec) : null;
  if (voice) output.addAudioTrack(voice);
  await output.start();
  await Promise.all([writeFilms(pictures, films), sound && voice ? writeSound(voice, sound, films) : null]);
  await output.finalize();
  return withoutStamps(new Uint8Array(target.buffer ?? new ArrayBuffer(0)));
}

/** The packets of a file's first track of a kind. Throws when there is none. */
async function readTrack(bytes: Uint8Array, kind: "video" | "audio"): Promise<Track> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const track = kind === "video" ? await input.getPrimaryVideoTrack() : await input.getPrimaryAudioTrack();
  if (!track) throw new Error(`there is no ${kind} in it`);
  if (kind === "video" && track.codec !== "avc") throw new Error("only H.264 video can be extended");
  const packets: EncodedPacket[] = [];
  for await (const packet of new EncodedPacketSink(track).packets()) packets.push(packet);
  return { packets, seconds: await track.computeDuration(), track };
}

async function writeFilms(out: EncodedVideoPacketSource, films: readonly Track[]): Promise<void> {
  let offset = 0;
  for (const [index, { packets, seconds, track }] of films.entries()) {
    const config = track.isVideoTrack() ? await track.getDecoderConfig() : null;
    if (!config) throw new Error("the video cannot be described");
    for (const packet of packets) {
      // Films of other encoders have other parameter sets: they go before each picture that can be started from.
      const start = isStart(packet.data);
      const data = start && index > 0 ? joined(parameterSets(config.description), packet.data) : packet.data;
      const moved = new EncodedPacket(
        data,
        start ? "key" : "delta",
        packet.timestamp + offset,
        packet.duration,
      );
      await out.add(moved, { decoderConfig: config });
    }
    offset += seconds;
  }
}

async function writeSound(
  out: EncodedAudioPacketSource,
  sound: Track,
  films: readonly Track[],
): Promise<void> {
  const end = films.reduce((sum, film) => sum + film.seconds, 0);
  const config = sound.track.isAudioTrack() ? await sound.track.getDecoderConfig() : null;
  if (!config) throw new Error("the sound cannot be described");
  for (const packet of sound.packets) {
    if (packet.timestamp < end) await out.add(packet, { decoderConfig: config });
  }
}

/** Whether a picture can be decoded without the ones before it: one of its NAL units (length, then type) is an IDR. */
function isStart(data: Uint8Array): boolean {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at + 5 <= data.length; at += 4 + view.getUint32(at)) {
    if ((view.getUint8(at + 4) & 31) === 5) return true;
  }
  return false;
}

/** The sequence and picture parameter sets of an avcC record, as NAL units with four bytes of length. */
function parameterSets(description: AllowSharedBufferSource | undefined): Uint8Array {
  if (!description) return new Uint8Array();
  const record = ArrayBuffer.isView(description)
    ? new Uint8Array(description.buffer, description.byteOffset, description.byteLength)
    : new Uint8Array(description);
  const units: Uint8Array[] = [];
  let at = 5;
  for (const mask of [31, 255]) {
    const count = (record[at++] ?? 0) & mask;
    for (let unit = 0; unit < count; unit++) {
      const length = ((record[at] ?? 0) << 8) | (record[at + 1] ?? 0);
      units.push(Uint8Array.of(0, 0, length >> 8, length & 255), record.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
  }
  return joined(...units);
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** Writers stamp the time of writing into three kinds of boxes; without it the same request gives the same bytes. */
function withoutStamps(mp4: Uint8Array): Uint8Array {
  const bytes = Buffer.from(mp4.buffer, mp4.byteOffset, mp4.byteLength);
  const end = bytes.indexOf("mdat");
  for (const name of ["mvhd", "tkhd", "mdhd"]) {
    for (let at = bytes.indexOf(name); at >= 0 && at < end; at = bytes.indexOf(name, at + 4)) {
      // After the name: version and flags, then creation and modification, of eight bytes each in version 1.
      const size = bytes[at + 4] === 1 ? 16 : 8;
      bytes.fill(0, at + 8, at + 8 + size);
    }
  }
  return bytes;
}
