import { useState } from "preact/hooks";
import type { FileEntry } from "../../../dashboard/shapes.js";
import { Icon } from "../../parts/icon.js";
import { mediaKind, posterAddress } from "../../parts/medium.js";

/** An archived file, small or large. */

interface Shown {
  src: string;
  thumbnail: string | null;
  mime: string;
  /** What it is, for those who do not see it. */
  name: string;
}

export function Thumbnail({ src, thumbnail, mime, name }: Shown) {
  const [isBroken, setBroken] = useState(false);
  const picture = thumbnail ?? (mediaKind(mime) === "picture" ? src : null);
  if (picture !== null && !isBroken)
    return (
      <img
        class="thumbnail"
        src={picture}
        alt={name}
        loading="lazy"
        decoding="async"
        onError={() => setBroken(true)}
      />
    );
  if (mediaKind(mime) === "clip" && !isBroken)
    return (
      <span class="thumbnail">
        <video
          src={posterAddress(src)}
          preload="metadata"
          muted
          tabIndex={-1}
          aria-label={name}
          onError={() => setBroken(true)}
        />
        <span class="kind">
          <Icon name="play" />
        </span>
      </span>
    );
  return (
    <span
      class="thumbnail bare"
      {...(name === "" ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": name })}
    >
      {mediaKind(mime) === "sound" ? <Icon name="sound" /> : <Icon name="file" />}
      <span>{mediaKind(mime) === "sound" ? "audio" : mime.split("/")[1]}</span>
    </span>
  );
}

export function Medium({ src, mime, name }: Omit<Shown, "thumbnail">) {
  const [broken, setBroken] = useState<string | null>(null);
  if (broken === src)
    return <p class="missing">This file cannot be shown. It may have been moved or deleted.</p>;
  const lost = () => setBroken(src);
  if (mediaKind(mime) === "picture")
    return <img class="medium" key={src} src={src} alt={name} onError={lost} />;
  if (mediaKind(mime) === "clip")
    return (
      // biome-ignore lint/a11y/useMediaCaption: a generated clip has no captions
      <video
        class="medium"
        key={src}
        src={src}
        controls
        loop
        preload="metadata"
        aria-label={name}
        onError={lost}
      />
    );
  if (mediaKind(mime) === "sound")
    return (
      <div class="medium sound">
        <Icon name="sound" />
        {/* biome-ignore lint/a11y/useMediaCaption: a generated sound has no captions */}
        <audio key={src} src={src} controls preload="metadata" aria-label={name} onError={lost} />
      </div>
    );
  return (
    <a class="medium bare" href={src} download>
      <Icon name="file" /> Download {mime}
    </a>
  );
}

interface StripProps {
  files: readonly FileEntry[];
  /** The place of the file that is shown large. */
  shown: number;
  onShow: (index: number) => void;
  isSmall?: boolean;
}

/** The files of an item to choose from; nothing if it has only one. */
export function FileStrip({ files, shown, onShow, isSmall = false }: StripProps) {
  if (files.length < 2) return null;
  return (
    <div class={isSmall ? "strip small" : "strip"}>
      {files.map(({ number, src, thumbnail, mime }, index) => (
        <button
          type="button"
          key={number}
          aria-pressed={index === shown}
          aria-label={`File ${number}`}
          onClick={() => onShow(index)}
        >
          <Thumbnail src={src} thumbnail={thumbnail} mime={mime} name="" />
        </button>
      ))}
    </div>
  );
}
