import type { GalleryCard, GalleryFile } from "../../upkeep/archive/gallery.js";
import { el, icon, svg } from "./dom.js";
import { address, visible } from "./text.js";

export type MediaKind = "picture" | "clip" | "sound" | "other";

export function kindOf({ mime, address }: GalleryFile): MediaKind {
  if (address !== null) return "other";
  if (mime.startsWith("image/")) return "picture";
  if (mime.startsWith("video/")) return "clip";
  return mime.startsWith("audio/") ? "sound" : "other";
}

/** The first frame of many clips is black. */
const posterSeconds = 0.1;

/** Puts words in the place of a file that does not load: it is gone, or the page was sent without its folder. */
export function orTrouble<Media extends HTMLElement>(
  media: Media,
  { path }: GalleryFile,
  place: HTMLElement = media,
): Media {
  media.addEventListener("error", () => {
    const words = `${visible(path)} cannot be loaded. Keep this page in the folder with its files.`;
    place.replaceWith(el("span", { class: "no-file" }, icon("warning"), el("span", { dir: "auto" }, words)));
  });
  return media;
}

function clipElement(file: GalleryFile): HTMLVideoElement {
  const clip = el("video", {
    src: `${address(file.path)}#t=${posterSeconds}`,
    preload: "metadata",
    playsinline: true,
    loop: true,
    tabindex: -1,
  });
  clip.muted = true;
  return orTrouble(clip, file);
}

/** Without this, a clip that was removed from the page goes on loading. */
export function unload(place: Element): void {
  for (const media of place.querySelectorAll<HTMLMediaElement>("video, audio")) {
    media.pause();
    media.removeAttribute("src");
    media.load();
  }
}

const calm = matchMedia("(prefers-reduced-motion: reduce)");
/** A pointer that rests this long (ms) on a clip lets it play on. */
const restMs = 450;

/** A clip plays while the pointer or the focus is on `place`, and follows a pointer that moves. */
export function scrubbed(place: HTMLElement, clip: HTMLVideoElement): void {
  const line = el("span", { class: "scrub" });
  place.append(line);
  let isHere = false;
  let movedAt = 0;
  const show = () =>
    line.style.setProperty("--at", String(clip.duration > 0 ? clip.currentTime / clip.duration : 0));
  const play = () => {
    if (!calm.matches) void clip.play().catch(() => {});
  };
  const watch = (now: number) => {
    if (!isHere || !clip.isConnected) return;
    if (clip.paused && movedAt > 0 && now - movedAt > restMs) {
      movedAt = 0;
      play();
    }
    show();
    requestAnimationFrame(watch);
  };
  const begin = () => {
    if (isHere) return;
    isHere = true;
    place.classList.add("playing");
    play();
    requestAnimationFrame(watch);
  };
  const end = () => {
    isHere = false;
    place.classList.remove("playing");
    clip.pause();
    if (clip.readyState > 0) clip.currentTime = Math.min(posterSeconds, clip.duration || 0);
  };
  place.addEventListener("pointerenter", ({ pointerType }) => pointerType !== "touch" && begin());
  place.addEventListener("pointerleave", end);
  place.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || !(clip.duration > 0)) return;
    // The pointer also stands still while the page scrolls below it.
    if (event.movementX === 0 && event.movementY === 0) return;
    const { left, width } = place.getBoundingClientRect();
    clip.pause();
    movedAt = event.timeStamp;
    clip.currentTime = clip.duration * Math.min(0.999, Math.max(0, (event.clientX - left) / width));
    show();
  });
  place.addEventListener("focusin", () => place.matches(":focus-visible") && begin());
  place.addEventListener("focusout", end);
}

/** The outline of a sound; what has been played of it is in another colour. */
export function waveform({ loudness }: GalleryFile): HTMLElement {
  const values = loudness ?? new Array<number>(96).fill(0);
  const bars = values.map((value, at) => {
    const half = Math.max(0.6, (value / 100) * 23);
    return `M${at * 2 + 1} ${(24 - half).toFixed(1)}v${(2 * half).toFixed(1)}`;
  });
  const drawing = (kind: string) =>
    svg(
      "svg",
      {
        viewBox: `0 0 ${values.length * 2} 48`,
        preserveAspectRatio: "none",
        class: kind,
        "aria-hidden": "true",
      },
      svg("path", { d: bars.join("") }),
    );
  return el("span", { class: loudness === null ? "wave flat" : "wave" }, drawing("base"), drawing("played"));
}

/** One sound plays at a time. */
const player = new Audio();
player.preload = "none";
let playing: { path: string; place: HTMLElement } | null = null;
player.addEventListener("timeupdate", () => {
  const share = player.duration > 0 ? player.currentTime / player.duration : 0;
  playing?.place.style.setProperty("--at", String(share));
});
player.addEventListener("ended", () => stopSound());

/** Plays a sound, or pauses it; `place` shows how far it is. */
export function toggleSound(file: GalleryFile, place: HTMLElement): void {
  if (playing?.path === file.path && playing.place === place) {
    if (player.paused) void player.play().catch(() => {});
    else player.pause();
    place.classList.toggle("playing", !player.paused);
    return;
  }
  stopSound();
  playing = { path: file.path, place };
  player.src = address(file.path);
  place.classList.add("playing");
  void player.play().catch(() => stopSound());
}

export function stopSound(): void {
  player.pause();
  playing?.place.classList.remove("playing");
  playing?.place.style.removeProperty("--at");
  playing = null;
}

export function isSounding(place: HTMLElement): boolean {
  return playing?.place === place;
}

/** What stands for a file on a card or in a list. */
export function preview(card: GalleryCard): HTMLElement {
  const { file, trouble, state } = card;
  if (file === null)
    return el(
      "span",
      { class: `no-file ${state}` },
      icon("warning"),
      el("span", {}, trouble?.reason.slice(0, 240) ?? ""),
    );
  switch (kindOf(file)) {
    case "picture":
      if (file.thumbnail === null) break;
      return orTrouble(
        el("img", {
          src: address(file.thumbnail.file),
          width: file.thumbnail.width,
          height: file.thumbnail.height,
          alt: "",
          decoding: "async",
          draggable: "false",
        }),
        file,
      );
    case "clip":
      return clipElement(file);
    case "sound":
      return waveform(file);
    default:
  }
  const extension = el("span", { class: "extension" }, file.path.split(".").at(-1)?.slice(0, 8) ?? "");
  if (file.address === null) return extension;
  return el("span", { class: "no-file" }, extension, el("span", { dir: "auto" }, visible(file.address)));
}
