export type MediaKind = "picture" | "clip" | "sound" | "other";

/** How a file can be shown. */
export function mediaKind(mime: string): MediaKind {
  if (mime.startsWith("image/")) return "picture";
  if (mime.startsWith("video/")) return "clip";
  return mime.startsWith("audio/") ? "sound" : "other";
}

/** The first frame of many clips is black. */
export const posterSeconds = 0.1;

/** The address of a clip that shows a frame before it plays. */
export function posterAddress(src: string): string {
  return `${src}#t=${posterSeconds}`;
}
