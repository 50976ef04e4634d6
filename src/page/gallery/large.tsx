import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fileSize } from "../../text/amounts.js";
import type { GalleryCard, GalleryFile } from "../../upkeep/archive/gallery.js";
import { Icon, IconButton } from "../parts/icon.js";
import { visible } from "../parts/visible.js";
import { ChoiceButtons, canChoose, Marks } from "./choosing.js";
import { CommandLine, CopyButton, copy } from "./copy.js";
import { address } from "./media/address.js";
import { kindOf, Lost, Preview, useUnloaded, Waveform } from "./media/preview.js";
import { Overlay } from "./overlay.js";
import type { GalleryView } from "./view.js";

interface CardProps {
  view: GalleryView;
  card: GalleryCard;
}

/** One file as large as there is room, with everything known about it. */
export function Large({ view, card }: CardProps) {
  const at = view.shown.indexOf(card);
  useEffect(() => {
    for (const beside of [at + 1, at - 1]) preload(view.shown[beside]);
  }, [card]);
  return (
    <Overlay
      view={view}
      title="Large view"
      class="large"
      hasOwnHead
      shown={card}
      onClose={() => view.open(null)}
    >
      <div class="stage" key={`stage ${view.numberOf(card)}`}>
        <Stage card={card} />
        {at >= 0 && (
          <>
            <IconButton
              name="left"
              class="tool turn back"
              label="Previous (←)"
              disabled={at === 0}
              onClick={() => view.step(-1)}
            />
            <IconButton
              name="right"
              class="tool turn on"
              label="Next (→)"
              disabled={at === view.shown.length - 1}
              onClick={() => view.step(1)}
            />
          </>
        )}
      </div>
      <Details key={`details ${view.numberOf(card)}`} view={view} card={card} />
    </Overlay>
  );
}

function preload(card: GalleryCard | undefined): void {
  if (card?.file && kindOf(card.file) === "picture" && card.file.thumbnail)
    new Image().src = address(card.file.path);
}

function Details({ view, card }: CardProps) {
  const { file, trouble, prompt, params } = card;
  const at = view.shown.indexOf(card);
  const entries = Object.entries(params);
  const siblings = view.siblings(card);
  return (
    <div class="details">
      <div class="details-head">
        <span class="quiet">{at >= 0 && `${at + 1} of ${view.shown.length}`}</span>
        <IconButton name="close" class="tool close" label="Close (Esc)" onClick={() => view.open(null)} />
      </div>
      <div class="titled">
        <h2 dir="auto">{visible(card.rowId)}</h2>
        <CopyButton view={view} text={card.rowId} what="Id" />
      </div>
      <Marks view={view} card={card} />
      {canChoose(view, card) && (
        <div class="choices">
          <ChoiceButtons view={view} card={card} hasWords />
        </div>
      )}
      {trouble !== null && (
        <Section title="What happened">
          <p class="text" dir="auto">
            {visible(trouble.reason)}
          </p>
          {trouble.evidence !== null && <p class="quiet text">{visible(trouble.evidence)}</p>}
          {trouble.commands.map((command) => (
            <CommandLine key={command} view={view} command={command} />
          ))}
        </Section>
      )}
      {prompt !== null && (
        <Section title="Prompt" button={<CopyButton view={view} text={prompt} what="Prompt" />}>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
          <p class="text prompt-text" dir="auto" tabIndex={0}>
            {visible(prompt)}
          </p>
        </Section>
      )}
      {entries.length > 0 && (
        <Section
          title="Params"
          button={
            <CopyButton
              view={view}
              text={entries.map(([key, value]) => `${key}=${value}`).join("\n")}
              what="Params"
            />
          }
        >
          <Pairs entries={entries} onClick={(key, value) => void copy(view, `${key}=${value}`, "Param")} />
        </Section>
      )}
      <Section title="About">
        <Pairs entries={factsOf(card)} />
      </Section>
      {file !== null && file.address === null && !isActive(file) && (
        <a class="file-link" href={address(file.path)} target="_blank" rel="noopener noreferrer">
          <Icon name="open" />
          <span dir="auto">{visible(file.path)}</span>
        </a>
      )}
      {siblings.length > 0 && file !== null && (
        <Section title="Other takes of this row">
          <div class="takes">
            {siblings.slice(0, 24).map((other) => {
              const label = `Compare with ${visible(other.rowId.slice(0, 120))}`;
              return (
                <button
                  type="button"
                  key={view.numberOf(other)}
                  class="flat take"
                  title={label}
                  aria-label={label}
                  onClick={() => view.compare(card, other)}
                >
                  <Preview card={other} />
                </button>
              );
            })}
          </div>
        </Section>
      )}
    </div>
  );
}

interface SectionProps {
  title: string;
  button?: ComponentChildren;
  children: ComponentChildren;
}

function Section({ title, button, children }: SectionProps) {
  return (
    <section>
      <div class="titled">
        <h3>{title}</h3>
        {button}
      </div>
      {children}
    </section>
  );
}

interface PairsProps {
  entries: readonly (readonly [string, string])[];
  onClick?: (key: string, value: string) => void;
}

function Pairs({ entries, onClick }: PairsProps) {
  return (
    <dl class="pairs">
      {entries.map(([key, value]) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the button above copies all of them
        // biome-ignore lint/a11y/noStaticElementInteractions: the button above copies all of them
        <div
          key={key}
          class={onClick ? "pair copied" : "pair"}
          title={onClick && "Click to copy"}
          onClick={() => onClick?.(key, value)}
        >
          <dt dir="auto">{visible(key)}</dt>
          <dd dir="auto">{visible(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function factsOf({ file, columns, model, rowNumber, edition }: GalleryCard): [string, string][] {
  const facts: [string, string][] = [
    ["model", model],
    ...Object.entries(columns),
    ["row", String(rowNumber)],
  ];
  if (edition !== "") facts.push(["edition", edition.replace(/^#/, "")]);
  if (file === null) return facts;
  if (file.address !== null) facts.push(["address", file.address]);
  facts.push(["size", fileSize(file.bytes)], ["saved", new Date(file.savedAt).toLocaleString()]);
  if (file.unproven !== null) facts.push(["not proven", file.unproven]);
  if (file.price !== null) facts.push(["price", file.price]);
  return facts;
}

/** An SVG is shown as an image, which runs no script; opened by itself it would. */
function isActive({ mime }: GalleryFile): boolean {
  return mime === "image/svg+xml";
}

/** The file itself, to be looked at or played. */
function Stage({ card }: { card: GalleryCard }) {
  const { file } = card;
  if (file === null) return <Preview card={card} />;
  const kind = kindOf(file);
  if (kind === "clip") return <ClipStage file={file} />;
  if (kind === "sound") return <SoundStage file={file} />;
  if (kind === "picture" && file.thumbnail !== null) return <PictureStage file={file} />;
  if (file.address !== null || isActive(file)) return <Preview card={card} />;
  return (
    <a class="bare" href={address(file.path)}>
      <Preview card={card} />
    </a>
  );
}

function ClipStage({ file }: { file: GalleryFile }) {
  const clip = useUnloaded<HTMLVideoElement>();
  const [isLost, setLost] = useState(false);
  if (isLost) return <Lost file={file} />;
  return (
    <video
      ref={clip}
      muted
      src={address(file.path)}
      controls
      playsInline
      loop
      autoplay
      onError={() => setLost(true)}
    />
  );
}

/** A click shows the picture at full size; another click fits it to the window. */
function PictureStage({ file }: { file: GalleryFile }) {
  const frame = useRef<HTMLButtonElement>(null);
  const picture = useRef<HTMLImageElement>(null);
  const [isLost, setLost] = useState(false);
  if (isLost) return <Lost file={file} />;
  const turnSize = ({ clientX, clientY }: MouseEvent) => {
    if (frame.current === null || picture.current === null) return;
    const { left, top, width, height } = picture.current.getBoundingClientRect();
    if (!frame.current.classList.toggle("full")) return;
    frame.current.scrollTo(
      ((clientX - left) / width) * picture.current.naturalWidth - frame.current.clientWidth / 2,
      ((clientY - top) / height) * picture.current.naturalHeight - frame.current.clientHeight / 2,
    );
  };
  return (
    <button
      ref={frame}
      type="button"
      class="flat picture"
      aria-label="Show at full size, or fit to the window"
      onClick={turnSize}
    >
      <img ref={picture} src={address(file.path)} alt="" draggable={false} onError={() => setLost(true)} />
    </button>
  );
}

function SoundStage({ file }: { file: GalleryFile }) {
  const place = useRef<HTMLDivElement>(null);
  const sound = useUnloaded<HTMLAudioElement>();
  const [isLost, setLost] = useState(false);
  const show = () => {
    const { currentTime = 0, duration = 0 } = sound.current ?? {};
    place.current?.style.setProperty("--at", String(duration > 0 ? currentTime / duration : 0));
  };
  const seek = (event: MouseEvent) => {
    const wave = event.currentTarget;
    if (!(wave instanceof Element) || sound.current === null) return;
    const { left, width } = wave.getBoundingClientRect();
    const { duration } = sound.current;
    if (duration > 0) sound.current.currentTime = duration * ((event.clientX - left) / width);
    show();
  };
  return (
    <div ref={place} class="sound-stage">
      <Waveform file={file} onClick={seek} />
      {isLost ? (
        <Lost file={file} />
      ) : (
        // biome-ignore lint/a11y/useMediaCaption: a generated sound has no captions
        <audio
          ref={sound}
          src={address(file.path)}
          controls
          preload="metadata"
          autoplay
          onTimeUpdate={show}
          onError={() => setLost(true)}
        />
      )}
    </div>
  );
}
