import HME from "h264-mp4-encoder";
import sharp, { type OverlayOptions } from "sharp";
import type { Seeded } from "./seeded.js";

/** Films of a still picture: a camera that moves over it, and what lies over the picture in each frame. */

export const framesPerSecond = 12;

interface Still {
  /** A PNG, at least as large as the film. */
  picture: Buffer;
  width: number;
  height: number;
}

/** Where the camera looks: how much of the picture's width it sees, and the middle of that, all from 0 to 1. */
interface View {
  zoom: number;
  x: number;
  y: number;
}

export interface Camera {
  from: View;
  to: View;
}

/** The camera's way for a name; a pan goes to a seeded side. */
export function camera(name: string | undefined, seeded: Seeded): Camera {
  const side = seeded.pick([-1, 1]);
  const whole = { zoom: 1, x: 0.5, y: 0.5 };
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
  /** What lies over a frame; `at` goes from 0 to 1. */
  overlay?: (frame: number, at: number) => OverlayOptions[];
}

export interface Film {
  /** H.264 in MP4, without sound. */
  mp4: Uint8Array;
  /** A JPEG of the last frame: whoever wants to go on from here begins with it. */
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
  const seen = await sharp(source.data, { raw: source.info })
    .extract(window)
    .resize(width, height)
    .raw()
    .toBuffer();
  const overlay = plan.overlay?.(frame, at) ?? [];
  if (overlay.length === 0) return Buffer.from(seen);
  const over = sharp(seen, { raw: { width, height, channels: 4 } }).composite(overlay);
  return Buffer.from(await over.raw().toBuffer());
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
