import HME from "h264-mp4-encoder";
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
import sharp from "sharp";
import type { MediaJob } from "./job.js";
import { lettering } from "./lettering.js";
import { painting, sides } from "./painting.js";
import { inputPicture } from "./retouching.js";
import { Seeded } from "./seeded.js";
import { music, readSound, soundFile } from "./sound.js";

/** The video makers: what each of them puts before the camera. */

/** The longer side of a film in pixels, if its model has no other. */
const usualSide = 640;
const performanceSecondsMax = 12;

/** Text to video: a painted scene with the camera moving over it and the prompt over that. */
export async function filmed(job: MediaJob): Promise<Uint8Array> {
  const longSide = sideOf(job);
  const { width, height } = sides(job.input["aspect_ratio"] ?? "16:9", longSide);
  const picture = await (await painting(job, longSide * 2, false)).png().toBuffer();
  const overlay = await caption(job.input["prompt"] ?? "", width, height);
  const moving = camera(job.input["motion"], new Seeded(job.seed));
  const made = await film({
    still: { picture, width, height },
    camera: moving,
    frames: framesOf(job),
    overlay,
  });
  return withMusic(job, made);
}

/** Image to video: the camera moves over the input, as the prompt's seed says. The input may have a caption of its own, so none is added. */
export async function animated(job: MediaJob): Promise<Uint8Array> {
  const still = await inputStill(job);
  const moving = camera(job.input["motion"], new Seeded(job.seed));
  const made = await film({ still, camera: moving, frames: framesOf(job) });
  return withMusic(job, made);
}

/** Video extension: the input's own frames and sound, untouched, and after them new ones that start from its last. */
export async function extended(job: MediaJob): Promise<Uint8Array> {
  const bytes = job.media["video_url"];
  if (!bytes) throw new Error("video_url: no video arrived");
  try {
    const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw new Error("there is no video in it");
    const size = { width: track.codedWidth, height: track.codedHeight };
    if (size.width % 2 || size.height % 2) throw new Error("only videos with even sides can be extended");
    const [cover] = (await input.getMetadataTags()).images ?? [];
    const picture = cover
      ? Buffer.from(cover.data)
      : await (await painting(job, sideOf(job), false)).png().toBuffer();
    const moving = camera(job.input["motion"], new Seeded(job.seed));
    const made = await film({
      still: { picture, ...size },
      camera: { from: whole, to: moving.to },
      frames: framesOf(job),
    });
    return await reelFile({ films: [bytes, made.mp4], sound: bytes, lastFrame: made.lastFrame });
  } catch (error) {
    throw new Error(`video_url: ${error instanceof Error ? error.message : error}`);
  }
}

/** A picture that moves for as long as a sound lasts: the given one, or a tune of its own. */
export async function performed(job: MediaJob): Promise<Uint8Array> {
  const still = await inputStill(job);
  const sound = await performedSound(job);
  const seconds = Math.min(await secondsOf(sound), performanceSecondsMax);
  const frames = Math.max(framesPerSecond, Math.round(seconds * framesPerSecond));
  const made = await film({ still, camera: camera("push-in", new Seeded(job.seed)), frames });
  return reelFile({ films: [made.mp4], sound, lastFrame: made.lastFrame });
}

async function performedSound(job: MediaJob): Promise<Uint8Array> {
  const given = job.media["audio_url"];
  const sound = given ? await readSound(given) : music(job, framesOf(job) / framesPerSecond);
  // What is compressed already is laid under the film as it is.
  return sound ? soundFile(sound, "mp3") : (given as Uint8Array);
}

async function secondsOf(file: Uint8Array): Promise<number> {
  return new Input({ source: new BufferSource(file), formats: ALL_FORMATS }).computeDuration();
}

async function inputStill(job: MediaJob) {
  const longSide = sideOf(job);
  const { data, width, height } = await inputPicture(job, longSide * 2);
  const fitted = sides(job.input["aspect_ratio"] ?? `${width}:${height}`, longSide);
  return { picture: data, ...fitted };
}

function sideOf(job: MediaJob): number {
  return job.longSide ?? usualSide;
}

function framesOf(job: MediaJob): number {
  return Number.parseInt(job.input["duration"] ?? "4", 10) * framesPerSecond;
}

/** The prompt over a shade along the lower edge, as a picture to lay over each frame. */
async function caption(prompt: string, width: number, height: number): Promise<Buffer> {
  const margin = Math.round(Math.min(width, height) * 0.06);
  const boxHeight = Math.round(height * 0.2);
  const box = {
    left: margin,
    top: height - boxHeight - margin,
    width: width - margin * 2,
    height: boxHeight,
  };
  const shade = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><defs><linearGradient id="g" x2="0" y2="1"><stop offset=".5" stop-opacity="0"/><stop offset="1" stop-opacity=".72"/></linearGradient></defs><rect width="${width}" height="${height}" fill="url(#g)"/></svg>`;
  const words = await lettering(prompt, "#ffffff", box, Math.min(width, height) * 0.08);
  const layer = { create: { width, height, channels: 4 as const, background: "#0000" } };
  return sharp(layer)
    .composite([{ input: Buffer.from(shade) }, words])
    .png()
    .toBuffer();
}

async function withMusic(job: MediaJob, made: Film): Promise<Uint8Array> {
  const wanted = job.input["sound"] === "music";
  const sound = wanted ? await soundFile(music(job, framesOf(job) / framesPerSecond), "mp3") : null;
  return reelFile({ films: [made.mp4], sound, lastFrame: made.lastFrame });
}

/** Films of a still picture: a camera moves over it, with an overlay in each frame. */

const framesPerSecond = 12;

interface Still {
  /** A PNG, at least as large as the film. */
  picture: Buffer;
  width: number;
  height: number;
}

/** The camera's view: the visible share of the picture's width and its centre, all from 0 to 1. */
interface View {
  zoom: number;
  x: number;
  y: number;
}

export interface Camera {
  from: View;
  to: View;
}

const whole: View = { zoom: 1, x: 0.5, y: 0.5 };

/** The camera's path for a name; a pan goes to a seeded side. */
export function camera(name: string | undefined, seeded: Seeded): Camera {
  const side = seeded.pick([-1, 1]);
  const near = { zoom: 0.66, x: seeded.between(0.42, 0.58), y: seeded.between(0.4, 0.52) };
  if (name === "pull-out") return { from: near, to: whole };
  if (name === "pan")
    return {
      from: { zoom: 0.74, x: 0.5 - 0.13 * side, y: 0.5 },
      to: { zoom: 0.74, x: 0.5 + 0.13 * side, y: 0.5 },
    };
  if (name === "drift") return { from: { zoom: 0.8, x: 0.4, y: 0.44 }, to: { zoom: 0.72, x: 0.6, y: 0.56 } };
  return { from: whole, to: near };
}

export interface FilmPlan {
  still: Still;
  camera: Camera;
  frames: number;
  /** A picture of the film's size that is laid over each frame. */
  overlay?: Buffer | undefined;
}

export interface Film {
  /** H.264 in MP4, without sound. */
  mp4: Uint8Array;
  /** A JPEG of the last frame, from which an extension starts. */
  lastFrame: Uint8Array;
}

/** Encodes the film. The encoder is synchronous and adds listeners to its process: worker threads only. */
export async function film(plan: FilmPlan): Promise<Film> {
  const { width, height } = plan.still;
  // Twice the film's size, so that whole-pixel crops move by half pixels of the film.
  const { data, info } = await sharp(plan.still.picture)
    .resize(width * 2, height * 2, { fit: "cover" })
    .flatten({ background: "#fff" })
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const source = { data, info: { width: info.width, height: info.height, channels: 4 as const } };
  const encoder = await HME.createH264MP4Encoder();
  Object.assign(encoder, { width, height, frameRate: framesPerSecond, groupOfPictures: framesPerSecond });
  Object.assign(encoder, { quantizationParameter: 26, speed: 5 });
  encoder.initialize();
  try {
    let last = Buffer.alloc(0);
    for (let frame = 0; frame < plan.frames; frame++) {
      last = await frameOf(plan, source, frame);
      encoder.addFrameRgba(last);
    }
    encoder.finalize();
    const lastFrame = await sharp(last, { raw: { width, height, channels: 4 } })
      .jpeg({ quality: 90 })
      .toBuffer();
    return { mp4: encoder.FS.readFile(encoder.outputFilename).slice(), lastFrame };
  } finally {
    encoder.delete();
  }
}

interface Source {
  data: Buffer;
  info: { width: number; height: number; channels: 4 };
}

async function frameOf(plan: FilmPlan, source: Source, frame: number): Promise<Buffer<ArrayBuffer>> {
  const { width, height } = plan.still;
  const at = plan.frames > 1 ? frame / (plan.frames - 1) : 0;
  const window = windowAt(plan.camera, at, source.info);
  const seen = sharp(source.data, { raw: source.info }).extract(window).resize(width, height);
  if (plan.overlay) seen.composite([{ input: plan.overlay, left: 0, top: 0 }]);
  return Buffer.from(await seen.raw().toBuffer());
}

function windowAt({ from, to }: Camera, at: number, picture: { width: number; height: number }) {
  // Slow at both ends, as a camera starts and stops.
  const eased = at * at * (3 - 2 * at);
  const mix = (low: number, high: number) => low + (high - low) * eased;
  const zoom = mix(from.zoom, to.zoom);
  const width = Math.min(picture.width, Math.round(picture.width * zoom));
  const height = Math.min(picture.height, Math.round(picture.height * zoom));
  const left = Math.round(mix(from.x, to.x) * picture.width - width / 2);
  const top = Math.round(mix(from.y, to.y) * picture.height - height / 2);
  return {
    left: Math.max(0, Math.min(left, picture.width - width)),
    top: Math.max(0, Math.min(top, picture.height - height)),
    width,
    height,
  };
}

/** Joins encoded parts into one MP4 without decoding them. */
export interface Reel {
  /** H.264 films, played one after the other. */
  films: readonly Uint8Array[];
  /** A file whose sound is laid under the films from the start. */
  sound: Uint8Array | null;
  /** A JPEG of the last frame, stored in the file for extensions. */
  lastFrame: Uint8Array;
}

interface Track {
  packets: EncodedPacket[];
  seconds: number;
  track: InputTrack;
}

/** The reel as one file: the same parts make the same bytes. */
async function reelFile(reel: Reel): Promise<Uint8Array> {
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
      // Films of other encoders have other parameter sets: they go before each picture that decoding can start from.
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
