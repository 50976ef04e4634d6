import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { GalleryCard, GalleryFile } from "../../upkeep/archive/gallery.js";
import { IconButton } from "../parts/icon.js";
import { brief } from "../parts/visible.js";
import { ChoiceButtons } from "./choosing.js";
import { address } from "./media/address.js";
import { kindOf, Lost, Preview, useUnloaded, Waveform } from "./media/preview.js";
import { Overlay } from "./overlay.js";
import type { GalleryView } from "./view.js";

interface CompareProps {
  view: GalleryView;
  pair: readonly [GalleryCard, GalleryCard];
}

/** Two files side by side, or one over the other with a line between them to move. Clips play together. */
export function Compare({ view, pair }: CompareProps) {
  const [a, b] = pair;
  const stage = useRef<HTMLDivElement>(null);
  const kinds = pair.map(({ file }) => (file === null ? "other" : kindOf(file)));
  const canLieOver = kinds[0] === kinds[1] && (kinds[0] === "picture" || kinds[0] === "clip");
  const isOver = canLieOver && view.isOver;
  const key = pair.map((card) => view.numberOf(card)).join(" ");
  return (
    <Overlay
      view={view}
      title="Compare two files"
      class="compare"
      hasOwnHead
      shown={key}
      onClose={() => view.closeComparison()}
    >
      <div class="compare-head">
        <Side view={view} card={a} letter="A" pickKey="1" />
        <div class="ways">
          {canLieOver &&
            [false, true].map((way) => (
              <button
                type="button"
                key={String(way)}
                class="way"
                aria-pressed={isOver === way}
                onClick={() => view.update({ isOver: way })}
              >
                {way ? "Slider" : "Side by side"}
              </button>
            ))}
        </div>
        <Side view={view} card={b} letter="B" pickKey="2" />
        <IconButton
          name="close"
          class="tool close"
          label="Close (Esc)"
          onClick={() => view.closeComparison()}
        />
      </div>
      <div key={key} ref={stage} class={`pair-stage ${isOver ? "over" : "beside"}`}>
        {pair.map((card) => (
          <div key={view.numberOf(card)} class="half">
            <Half card={card} />
          </div>
        ))}
        {isOver && (
          <input
            type="range"
            class="divider"
            min={0}
            max={1000}
            defaultValue="500"
            aria-label="How much of A is shown"
            onInput={({ currentTarget: { valueAsNumber } }) =>
              stage.current?.style.setProperty("--split", `${valueAsNumber / 10}%`)
            }
          />
        )}
      </div>
      {kinds[0] === "clip" && kinds[1] === "clip" && <Together key={`${key} together`} stage={stage} />}
    </Overlay>
  );
}

interface SideProps {
  view: GalleryView;
  card: GalleryCard;
  letter: string;
  pickKey: string;
}

function Side({ view, card, letter, pickKey }: SideProps) {
  return (
    <div class="side">
      <span class="mark compared">{letter}</span>
      <span class="side-name" dir="auto">
        {brief(card.rowId, 80)}
      </span>
      <span class="side-tools">
        <ChoiceButtons view={view} card={card} pickKey={pickKey} />
      </span>
    </div>
  );
}

function Half({ card }: { card: GalleryCard }) {
  const { file } = card;
  const [isLost, setLost] = useState(false);
  if (file === null) return <Preview card={card} />;
  if (isLost) return <Lost file={file} />;
  const kind = kindOf(file);
  if (kind === "clip") return <HalfClip file={file} onLost={() => setLost(true)} />;
  if (kind === "sound") return <HalfSound file={file} onLost={() => setLost(true)} />;
  if (kind !== "picture" || file.thumbnail === null) return <Preview card={card} />;
  return (
    <img
      src={address(file.path)}
      alt={brief(card.rowId, 120)}
      draggable={false}
      onError={() => setLost(true)}
    />
  );
}

interface HalfProps {
  file: GalleryFile;
  onLost: () => void;
}

function HalfClip({ file, onLost }: HalfProps) {
  const clip = useUnloaded<HTMLVideoElement>();
  return <video ref={clip} muted src={address(file.path)} playsInline loop preload="auto" onError={onLost} />;
}

function HalfSound({ file, onLost }: HalfProps) {
  const sound = useUnloaded<HTMLAudioElement>();
  return (
    <div class="sound-stage">
      <Waveform file={file} />
      {/* biome-ignore lint/a11y/useMediaCaption: a generated sound has no captions */}
      <audio ref={sound} src={address(file.path)} controls onError={onLost} />
    </div>
  );
}

/** The two clips of the stage as one: the second follows the first. */
function Together({ stage }: { stage: RefObject<HTMLDivElement | null> }) {
  const range = useRef<HTMLInputElement>(null);
  const [isPaused, setPaused] = useState(true);
  const clips = () => [...(stage.current?.querySelectorAll("video") ?? [])];
  const play = () => {
    for (const clip of clips()) {
      const shown = () => setPaused(clip.paused);
      void clip.play().then(shown, shown);
    }
  };
  useLayoutEffect(() => {
    const [a, b] = clips();
    if (a === undefined || b === undefined) return;
    const follow = () => {
      if (a.duration > 0 && range.current !== null)
        range.current.value = String((1000 * a.currentTime) / a.duration);
      const isApart = b.duration > a.currentTime && Math.abs(b.currentTime - a.currentTime) > 0.2;
      if (isApart && !a.paused) b.currentTime = a.currentTime;
    };
    a.addEventListener("timeupdate", follow);
    play();
    return () => a.removeEventListener("timeupdate", follow);
  }, []);
  const toggle = () => {
    if (clips()[0]?.paused) return play();
    for (const clip of clips()) clip.pause();
    setPaused(true);
  };
  return (
    <div class="together">
      <IconButton
        name={isPaused ? "play" : "pause"}
        class="tool"
        label="Play or pause (Space)"
        onClick={toggle}
      />
      <input
        ref={range}
        type="range"
        min={0}
        max={1000}
        defaultValue="0"
        aria-label="Time"
        onInput={({ currentTarget: { valueAsNumber } }) => {
          for (const clip of clips())
            if (clip.duration > 0) clip.currentTime = (clip.duration * valueAsNumber) / 1000;
        }}
      />
    </div>
  );
}
