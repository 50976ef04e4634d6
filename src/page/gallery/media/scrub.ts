import { posterSeconds } from "../../parts/medium.js";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
/** A pointer that rests this long (ms) on a clip lets it play on. */
const restMs = 450;

/**
 * A clip plays while the pointer or the focus is on `place`, and follows a pointer that moves; `line` shows how far it is.
 * Returns how to end that.
 */
export function scrubbed(place: HTMLElement, clip: HTMLVideoElement, line: HTMLElement): () => void {
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
  const follow = (event: PointerEvent) => {
    if (event.pointerType === "touch" || !(clip.duration > 0)) return;
    // The pointer also stands still while the page scrolls below it.
    if (event.movementX === 0 && event.movementY === 0) return;
    const { left, width } = place.getBoundingClientRect();
    clip.pause();
    movedAt = event.timeStamp;
    clip.currentTime = clip.duration * Math.min(0.999, Math.max(0, (event.clientX - left) / width));
    show();
  };
  const gone = new AbortController();
  const options = { signal: gone.signal };
  place.addEventListener("pointerenter", ({ pointerType }) => pointerType !== "touch" && begin(), options);
  place.addEventListener("pointerleave", end, options);
  place.addEventListener("pointermove", follow, options);
  place.addEventListener("focusin", () => place.matches(":focus-visible") && begin(), options);
  place.addEventListener("focusout", end, options);
  return () => {
    isHere = false;
    gone.abort();
  };
}
