import { ALL_FORMATS, BufferSource, Input } from "mediabunny";
import sharp, { type OverlayOptions } from "sharp";
import { camera, type Film, film, framesPerSecond } from "./film.js";
import type { MediaJob } from "./job.js";
import { lettering } from "./lettering.js";
import { music } from "./music.js";
import { reelFile } from "./mux.js";
import { painting, sides } from "./painting.js";
import { inputPicture } from "./retouching.js";
import { Seeded } from "./seeded.js";
import { loudness, readSound, soundFile } from "./sound.js";

/** The video makers: what each of them puts before the camera. */

const longSide = 640;
const performanceSecondsMax = 12;

/** Text to video: a painted scene with the camera moving over it and the prompt over that. */
export async function filmed(job: MediaJob): Promise<Uint8Array> {
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

/** Image to video: the camera moves over the input; with a prompt, that is set over it. */
export async function animated(job: MediaJob): Promise<Uint8Array> {
  const still = await inputStill(job);
  const prompt = job.input["prompt"];
  const overlay = prompt === undefined ? undefined : await caption(prompt, still.width, still.height);
  const moving = camera(job.input["motion"], new Seeded(job.seed));
  const made = await film({ still, camera: moving, frames: framesOf(job), ...(overlay && { overlay }) });
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
      : await (await painting(job, longSide, false)).png().toBuffer();
    const moving = camera(job.input["motion"], new Seeded(job.seed));
    const whole = { zoom: 1, x: 0.5, y: 0.5 };
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

/** A picture that moves to a sound: the given one, or a tune of its own. */
export async function performed(job: MediaJob): Promise<Uint8Array> {
  const still = await inputStill(job);
  const given = job.media["audio_url"];
  const sound = given ? await readSound(given) : music(job, framesOf(job) / framesPerSecond);
  const file = sound ? await soundFile(sound, "mp3") : given;
  if (!file) throw new Error("audio_url: no sound arrived");
  const seconds = sound ? sound.samples.length / sound.rate : await secondsOf(file);
  const frames = Math.max(
    framesPerSecond,
    Math.round(Math.min(seconds, performanceSecondsMax) * framesPerSecond),
  );
  const seeded = new Seeded(job.seed);
  const levels = sound
    ? loudness(sound, framesPerSecond, frames)
    : Array.from(
        { length: frames },
        (_, frame) => 0.3 + 0.7 * Math.abs(Math.sin(frame * 0.6)) * seeded.next(),
      );
  const overlay = (frame: number) => [{ input: bars(still, levels, frame), left: 0, top: 0 }];
  const made = await film({ still, camera: camera("push-in", seeded), frames, overlay });
  return reelFile({ films: [made.mp4], sound: file, lastFrame: made.lastFrame });
}

async function secondsOf(file: Uint8Array): Promise<number> {
  return new Input({ source: new BufferSource(file), formats: ALL_FORMATS }).computeDuration();
}

/** The loudness of the last moments as bars along the lower edge. */
function bars(
  { width, height }: { width: number; height: number },
  levels: readonly number[],
  frame: number,
): Buffer {
  const count = 24;
  const step = width / (count + 4);
  const rects = Array.from({ length: count }, (_, index) => {
    const level = levels[Math.max(0, frame - Math.abs(index - count / 2) / 2) | 0] ?? 0;
    const size = Math.max(
      step * 0.5,
      level * height * 0.26 * (1 - Math.abs(index - (count - 1) / 2) / count),
    );
    const x = step * (index + 2) + step * 0.2;
    return `<rect x="${x}" y="${height * 0.94 - size}" width="${step * 0.6}" height="${size}" rx="${step * 0.3}" fill="#fff" opacity=".88"/>`;
  });
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${rects.join("")}</svg>`,
  );
}

async function inputStill(job: MediaJob) {
  const { data, width, height } = await inputPicture(job, longSide * 2);
  const fitted = sides(job.input["aspect_ratio"] ?? `${width}:${height}`, longSide);
  return { picture: data, ...fitted };
}

function framesOf(job: MediaJob): number {
  return Number.parseInt(job.input["duration"] ?? "4", 10) * framesPerSecond;
}

/** The prompt over a shade along the lower edge, there from the first quarter second on. */
async function caption(
  prompt: string,
  width: number,
  height: number,
): Promise<(frame: number) => OverlayOptions[]> {
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
  const input = await sharp(layer)
    .composite([{ input: Buffer.from(shade) }, words])
    .png()
    .toBuffer();
  return (frame) => (frame < framesPerSecond / 4 ? [] : [{ input, left: 0, top: 0 }]);
}

async function withMusic(job: MediaJob, made: Film): Promise<Uint8Array> {
  const wanted = job.input["sound"] === "music";
  const sound = wanted ? await soundFile(music(job, framesOf(job) / framesPerSecond), "mp3") : null;
  return reelFile({ films: [made.mp4], sound, lastFrame: made.lastFrame });
}
