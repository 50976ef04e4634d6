import type { ServiceModel } from "./model.js";

/**
 * Maps params of another service to the names and formats that our makers know. What looks like an aspect ratio,
 * a length in seconds or a file format is taken for that; all else is left as it is, and the makers ignore it.
 * Our own models' params come out as they went in.
 */
const names = {
  aspect_ratio: ["aspect_ratio", "aspectRatio", "ratio", "image_size", "size", "resolution", "dimensions"],
  duration: ["duration", "duration_seconds", "seconds", "length"],
  output_format: ["output_format", "format", "file_format", "image_format", "audio_format"],
} as const;

const secondsMax = 30;
/** The long side of a picture is at most this many times its short side. */
const ratioMax = 4;

const readers: Readonly<Record<keyof typeof names, (value: string) => string | null>> = {
  aspect_ratio: ratioOf,
  duration: secondsOf,
  output_format: formatOf,
};

/** The params with the familiar ones under our names. One of our names without a meaningful value is left out. */
export function familiarParams(params: Readonly<Record<string, string>>): Record<string, string> {
  const { aspect_ratio: _ratio, duration: _duration, output_format: _format, ...others } = params;
  const read = Object.keys(readers).flatMap((name) => {
    const found = familiarParam(params, name as keyof typeof readers);
    return found ? [[name, found]] : [];
  });
  return { ...others, ...Object.fromEntries(read) };
}

/** A familiar param in our format; null if none of its names has a meaningful value. */
function familiarParam(params: Readonly<Record<string, string>>, name: keyof typeof readers): string | null {
  for (const alias of names[name]) {
    const value = params[alias];
    const found = value === undefined ? null : readers[name](value);
    if (found) return found;
  }
  return null;
}

/** `16:9` of "16:9", "1920x1080", "landscape_16_9" or "landscape". */
function ratioOf(value: string): string | null {
  const text = value.toLowerCase();
  const portrait = /portrait|vertical/.test(text);
  const sides = /(\d{1,5})\s*[:x×*/_-]\s*(\d{1,5})/.exec(text);
  if (!sides) {
    if (portrait) return "9:16";
    return /landscape|horizontal|wide/.test(text) ? "16:9" : /square/.test(text) ? "1:1" : null;
  }
  const [across, down] = [Number(sides[1]), Number(sides[2])];
  if (across === 0 || down === 0) return null;
  if (portrait && across > down) return bounded(down, across);
  return bounded(across, down);
}

function bounded(across: number, down: number): string {
  if (across > down * ratioMax) return `${ratioMax}:1`;
  return down > across * ratioMax ? `1:${ratioMax}` : `${across}:${down}`;
}

/** Whole seconds of "5", "5s", "7.5 seconds" or "1m". */
function secondsOf(value: string): string | null {
  const found = /^(\d{1,4}(?:\.\d+)?)\s*(m|min|minutes?|s|secs?|seconds?)?$/i.exec(value.trim());
  if (!found) return null;
  const seconds = Number(found[1]) * (/^m/i.test(found[2] ?? "") ? 60 : 1);
  return String(Math.min(secondsMax, Math.max(1, Math.round(seconds))));
}

function formatOf(value: string): string | null {
  const text = value.toLowerCase().replace(/^(image|audio)\/|^\./, "");
  if (text === "jpg") return "jpeg";
  if (text === "mpeg") return "mp3";
  return ["png", "jpeg", "webp", "mp3", "wav"].includes(text) ? text : null;
}

/** The extension of a model's output files for these (complete) params. */
export function outputExtension(
  model: Pick<ServiceModel, "category">,
  params: Readonly<Record<string, string>>,
): string {
  const format = familiarParam(params, "output_format");
  if (model.category === "video") return "mp4";
  if (model.category === "audio") return format === "wav" ? "wav" : "mp3";
  if (format === "jpeg") return "jpg";
  return format === "webp" ? "webp" : "png";
}
