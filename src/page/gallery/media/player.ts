import type { GalleryFile } from "../../../upkeep/archive/gallery.js";
import { address } from "./address.js";

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

/** Plays or pauses a clip or a sound of the page itself. */
export function togglePlay(media: HTMLMediaElement): void {
  if (media.paused) void media.play().catch(() => {});
  else media.pause();
}
