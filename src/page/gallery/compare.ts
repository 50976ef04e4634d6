import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { choiceButtons } from "./card.js";
import { Dialog } from "./dialog.js";
import { el, icon, iconButton } from "./dom.js";
import { kindOf, orTrouble, preview, waveform } from "./media.js";
import { address, brief } from "./text.js";
import type { GalleryView } from "./view.js";

type Way = "beside" | "over";

/** Two files side by side, or one over the other with a line between them to move. Clips play together. */
export class Compare {
  private readonly dialog = new Dialog("compare", "Compare two files");
  private pair: [GalleryCard, GalleryCard] | null = null;
  private way: Way = "beside";
  private refreshChoices: (() => void)[] = [];

  constructor(
    private readonly view: GalleryView,
    private readonly closed: (card: GalleryCard) => void,
  ) {
    view.on("choices", () => {
      for (const refresh of this.refreshChoices) refresh();
    });
  }

  get isOpen(): boolean {
    return this.pair !== null;
  }

  open(a: GalleryCard, b: GalleryCard): void {
    this.pair = [a, b];
    const kinds = [a, b].map(({ file }) => (file === null ? "none" : kindOf(file)));
    const canLieOver = kinds[0] === kinds[1] && (kinds[0] === "picture" || kinds[0] === "clip");
    const way = canLieOver ? this.way : "beside";
    const media = [a, b].map(mediaOf);
    const stage = el(
      "div",
      { class: `pair-stage ${way}` },
      ...media.map((each) => el("div", { class: "half" }, each)),
    );
    if (way === "over") stage.append(this.divider(stage));
    const clips = media.filter((each) => each instanceof HTMLVideoElement);
    const head = el(
      "div",
      { class: "compare-head" },
      this.side(a, "A", 1),
      el("div", { class: "ways" }, ...(canLieOver ? this.wayButtons(a, b, way) : [])),
      this.side(b, "B", 2),
      this.dialog.closeButton(),
    );
    this.dialog.show(
      [head, stage, ...(clips.length === 2 ? [together(clips as [HTMLVideoElement, HTMLVideoElement])] : [])],
      () => {
        this.pair = null;
        this.refreshChoices = [];
        this.closed(a);
      },
    );
  }

  /** Shows another file as B: the next take of the row, or the next file shown. */
  turn(by: number): void {
    if (this.pair === null) return;
    const [a, b] = this.pair;
    const takes = this.view.siblings(a);
    const others = (takes.includes(b) ? takes : this.view.shown).filter(
      (card) => card !== a && card.file !== null,
    );
    const other = others[(others.indexOf(b) + by + others.length) % others.length];
    if (other !== undefined && other !== b) this.open(a, other);
  }

  swap(): void {
    if (this.pair !== null) this.open(this.pair[1], this.pair[0]);
  }

  pick(which: 0 | 1): void {
    const card = this.pair?.[which];
    if (card === undefined) return;
    this.view.choose(card, this.view.choices.of(card) === "pick" ? null : "pick");
  }

  toggleWay(): void {
    if (this.pair === null) return;
    this.way = this.way === "beside" ? "over" : "beside";
    this.open(...this.pair);
  }

  togglePlay(): void {
    this.dialog.element.querySelector<HTMLButtonElement>(".together .tool")?.click();
  }

  private side(card: GalleryCard, letter: string, key: number): HTMLElement {
    const choosing = choiceButtons(this.view, () => card);
    this.refreshChoices = letter === "A" ? [choosing.refresh] : [...this.refreshChoices, choosing.refresh];
    choosing.refresh();
    const [pickButton] = choosing.buttons;
    if (pickButton) pickButton.title = `Pick (${key})`;
    return el(
      "div",
      { class: "side" },
      el("span", { class: "mark compared" }, letter),
      el("span", { class: "side-name", dir: "auto" }, brief(card.rowId, 80)),
      el("span", { class: "side-tools" }, ...choosing.buttons),
    );
  }

  private wayButtons(a: GalleryCard, b: GalleryCard, shown: Way): HTMLElement[] {
    const button = (way: Way, label: string) => {
      const click = () => {
        this.way = way;
        this.open(a, b);
      };
      return el(
        "button",
        { type: "button", class: "way", "aria-pressed": String(shown === way), click },
        label,
      );
    };
    return [button("beside", "Side by side"), button("over", "Slider")];
  }

  private divider(stage: HTMLElement): HTMLElement {
    const range = el("input", {
      type: "range",
      min: 0,
      max: 1000,
      value: 500,
      class: "divider",
      "aria-label": "How much of A is shown",
      input: () => stage.style.setProperty("--split", `${range.valueAsNumber / 10}%`),
    });
    return range;
  }
}

function mediaOf(card: GalleryCard): HTMLElement {
  const { file } = card;
  if (file === null) return preview(card);
  switch (kindOf(file)) {
    case "picture":
      if (file.thumbnail === null) break;
      return orTrouble(
        el("img", { src: address(file.path), alt: brief(card.rowId, 120), draggable: "false" }),
        file,
      );
    case "clip": {
      const clip = el("video", { src: address(file.path), playsinline: true, loop: true, preload: "auto" });
      clip.muted = true;
      return clip;
    }
    case "sound":
      return el(
        "div",
        { class: "sound-stage" },
        waveform(file),
        el("audio", { src: address(file.path), controls: true }),
      );
    default:
  }
  return preview(card);
}

/** Two clips as one: the second follows the first. */
function together([a, b]: readonly [HTMLVideoElement, HTMLVideoElement]): HTMLElement {
  const range = el("input", {
    type: "range",
    min: 0,
    max: 1000,
    value: 0,
    "aria-label": "Time",
    input: () => {
      for (const clip of [a, b])
        if (clip.duration > 0) clip.currentTime = (clip.duration * range.valueAsNumber) / 1000;
    },
  });
  const button = iconButton("pause", "Play or pause (Space)", () => {
    if (a.paused) play();
    else for (const clip of [a, b]) clip.pause();
    show();
  });
  const show = () => button.replaceChildren(icon(a.paused ? "play" : "pause"));
  const play = () => {
    for (const clip of [a, b]) void clip.play().then(show, show);
  };
  a.addEventListener("timeupdate", () => {
    if (a.duration > 0) range.value = String((1000 * a.currentTime) / a.duration);
    const isApart = b.duration > a.currentTime && Math.abs(b.currentTime - a.currentTime) > 0.2;
    if (isApart && !a.paused) b.currentTime = a.currentTime;
  });
  play();
  return el("div", { class: "together" }, button, range);
}
