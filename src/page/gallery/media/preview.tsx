import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { GalleryCard, GalleryFile } from "../../../upkeep/archive/gallery.js";
import { Icon } from "../../parts/icon.js";
import { type MediaKind, mediaKind, posterAddress } from "../../parts/medium.js";
import { visible } from "../../parts/visible.js";
import { address } from "./address.js";
import { scrubbed } from "./scrub.js";

/** A file that a bucket has instead of this disk cannot be shown. */
export function kindOf({ mime, address }: GalleryFile): MediaKind {
  return address === null ? mediaKind(mime) : "other";
}

/** What stands for a file on a card or in a list. */
export function Preview({ card, scrubs = false }: { card: GalleryCard; scrubs?: boolean }) {
  const { file, trouble, state } = card;
  const [isLost, setLost] = useState(false);
  if (file === null)
    return (
      <span class={`no-file ${state}`}>
        <Icon name="warn" />
        <span>{trouble?.reason.slice(0, 240)}</span>
      </span>
    );
  if (isLost) return <Lost file={file} />;
  const lost = () => setLost(true);
  const kind = kindOf(file);
  if (kind === "clip") return <Clip file={file} scrubs={scrubs} onLost={lost} />;
  if (kind === "sound") return <Waveform file={file} />;
  if (kind === "picture" && file.thumbnail !== null)
    return (
      <img
        src={address(file.thumbnail.file)}
        width={file.thumbnail.width}
        height={file.thumbnail.height}
        alt=""
        decoding="async"
        draggable={false}
        onError={lost}
      />
    );
  const extension = <span class="extension">{file.path.split(".").at(-1)?.slice(0, 8)}</span>;
  if (file.address === null) return extension;
  return (
    <span class="no-file">
      {extension}
      <span dir="auto">{visible(file.address)}</span>
    </span>
  );
}

/** In the place of a file that does not load: it is gone, or the page was sent without its folder. */
export function Lost({ file }: { file: GalleryFile }) {
  return (
    <span class="no-file">
      <Icon name="warn" />
      <span dir="auto">
        {`${visible(file.path)} cannot be loaded. Keep this page in the folder with its files.`}
      </span>
    </span>
  );
}

interface ClipProps {
  file: GalleryFile;
  scrubs: boolean;
  onLost: () => void;
}

function Clip({ file, scrubs, onLost }: ClipProps) {
  const clip = useUnloaded<HTMLVideoElement>();
  const line = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const place = clip.current?.closest("button");
    if (!place || clip.current === null || line.current === null) return;
    return scrubbed(place, clip.current, line.current);
  }, []);
  return (
    <>
      <video
        ref={clip}
        muted
        src={posterAddress(address(file.path))}
        preload="metadata"
        playsInline
        loop
        tabIndex={-1}
        onError={onLost}
      />
      {scrubs && (
        <>
          <span ref={line} class="scrub" />
          <span class="kind">
            <Icon name="play" />
          </span>
        </>
      )}
    </>
  );
}

/** A clip or a sound that stops loading when it is removed from the page, which it would not do by itself. */
export function useUnloaded<Media extends HTMLMediaElement>(): RefObject<Media | null> {
  const place = useRef<Media>(null);
  useLayoutEffect(() => {
    const media = place.current;
    return () => {
      media?.pause();
      media?.removeAttribute("src");
      media?.load();
    };
  }, []);
  return place;
}

interface WaveformProps {
  file: GalleryFile;
  onClick?: (event: MouseEvent) => void;
}

/** The outline of a sound; what has been played of it is in another colour. */
export function Waveform({ file: { loudness }, onClick }: WaveformProps) {
  const values = loudness ?? new Array<number>(96).fill(0);
  const bars = values.map((value, at) => {
    const half = Math.max(0.6, (value / 100) * 23);
    return `M${at * 2 + 1} ${(24 - half).toFixed(1)}v${(2 * half).toFixed(1)}`;
  });
  const drawing = (kind: string) => (
    <svg viewBox={`0 0 ${values.length * 2} 48`} preserveAspectRatio="none" class={kind} aria-hidden="true">
      <path d={bars.join("")} />
    </svg>
  );
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the player beside it is for keys
    // biome-ignore lint/a11y/noStaticElementInteractions: the player beside it is for keys
    <span class={loudness === null ? "wave flat" : "wave"} onClick={onClick}>
      {drawing("base")}
      {drawing("played")}
    </span>
  );
}
