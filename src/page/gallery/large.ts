import { fileSize } from "../../text/amounts.js";
import type { GalleryCard, GalleryFile } from "../../upkeep/archive/gallery.js";
import { choiceButtons, marksOf } from "./card.js";
import { commandLine, copy, copyButton, Dialog } from "./dialog.js";
import { el, icon, iconButton } from "./dom.js";
import { kindOf, orTrouble, preview, waveform } from "./media.js";
import { address, visible } from "./text.js";
import type { GalleryView } from "./view.js";

/** One file as large as there is room, with everything known about it. */
export class Large {
  private readonly dialog = new Dialog("large", "Large view");
  private card: GalleryCard | null = null;
  private refreshChoices: () => void = () => {};

  constructor(
    private readonly view: GalleryView,
    private readonly actions: {
      compare(a: GalleryCard, b: GalleryCard): void;
      closed(card: GalleryCard): void;
    },
  ) {
    view.on("choices", () => {
      if (this.card !== null) this.refreshChoices();
    });
  }

  get current(): GalleryCard | null {
    return this.card;
  }

  open(card: GalleryCard): void {
    this.card = card;
    const stage = el("div", { class: "stage" }, stageOf(card));
    const at = this.view.shown.indexOf(card);
    const previous = iconButton("left", "Previous (←)", () => this.step(-1), { class: "tool turn back" });
    const next = iconButton("right", "Next (→)", () => this.step(1), { class: "tool turn on" });
    previous.disabled = at <= 0;
    next.disabled = at === this.view.shown.length - 1;
    if (at >= 0) stage.append(previous, next);
    this.dialog.show([stage, this.details(card, at)], () => {
      this.card = null;
      this.actions.closed(card);
    });
    for (const beside of [at + 1, at - 1]) this.preload(this.view.shown[beside]);
  }

  /** Shows the card this many places away, if there is one. */
  step(by: number): void {
    const at = this.card === null ? -1 : this.view.shown.indexOf(this.card);
    const other = at < 0 ? undefined : this.view.shown[at + by];
    if (other === undefined) return;
    this.open(other);
  }

  close(): void {
    this.dialog.close();
  }

  /** Plays or pauses what can be played. */
  togglePlay(): void {
    const media = this.dialog.element.querySelector<HTMLMediaElement>(".stage video, .stage audio");
    if (media === null) return;
    if (media.paused) void media.play().catch(() => {});
    else media.pause();
  }

  private preload(card: GalleryCard | undefined): void {
    if (card?.file && kindOf(card.file) === "picture" && card.file.thumbnail)
      new Image().src = address(card.file.path);
  }

  private details(card: GalleryCard, at: number): HTMLElement {
    const { file, trouble, prompt, params } = card;
    const marks = el("div", { class: "marks" });
    const choosing = choiceButtons(this.view, () => card);
    this.refreshChoices = () => {
      choosing.refresh();
      const current = this.view.choices.choiceFor(card);
      marks.replaceChildren(...marksOf(card, current));
    };
    this.refreshChoices();
    for (const [at, button] of choosing.buttons.entries())
      button.append(el("span", {}, ["Pick", "Reject", "Redo"][at] ?? ""));
    const siblings = this.view.siblings(card);
    const entries = Object.entries(params);
    return el(
      "div",
      { class: "details" },
      el(
        "div",
        { class: "details-head" },
        el("span", { class: "quiet" }, at < 0 ? "" : `${at + 1} of ${this.view.shown.length}`),
        this.dialog.closeButton(),
      ),
      el(
        "div",
        { class: "titled" },
        el("h2", { dir: "auto" }, visible(card.rowId)),
        copyButton(() => card.rowId, "Id"),
      ),
      marks,
      choosing.buttons.length === 0 ? null : el("div", { class: "choices" }, ...choosing.buttons),
      trouble === null
        ? null
        : section(
            "What happened",
            el("p", { class: "text", dir: "auto" }, visible(trouble.reason)),
            trouble.evidence === null ? null : el("p", { class: "quiet text" }, visible(trouble.evidence)),
            ...trouble.commands.map(commandLine),
          ),
      prompt === null
        ? null
        : section(
            ["Prompt", copyButton(() => prompt, "Prompt")],
            el("p", { class: "text prompt-text", dir: "auto", tabindex: 0 }, visible(prompt)),
          ),
      entries.length === 0
        ? null
        : section(
            [
              "Params",
              copyButton(() => entries.map(([key, value]) => `${key}=${value}`).join("\n"), "Params"),
            ],
            pairs(entries, (key, value) => void copy(`${key}=${value}`, "Param")),
          ),
      section("About", pairs(this.facts(card))),
      file === null || file.address !== null || isActive(file)
        ? null
        : el(
            "a",
            { class: "file-link", href: address(file.path), target: "_blank", rel: "noopener noreferrer" },
            icon("open"),
            el("span", { dir: "auto" }, visible(file.path)),
          ),
      siblings.length === 0 || file === null
        ? null
        : section(
            "Other takes of this row",
            el("div", { class: "takes" }, ...siblings.slice(0, 24).map((other) => this.take(card, other))),
          ),
    );
  }

  private take(card: GalleryCard, other: GalleryCard): HTMLElement {
    const label = `Compare with ${visible(other.rowId.slice(0, 120))}`;
    const compare = () => this.actions.compare(card, other);
    return el(
      "button",
      { type: "button", class: "take", title: label, "aria-label": label, click: compare },
      preview(other),
    );
  }

  private facts(card: GalleryCard): [string, string][] {
    const { file, columns, model, rowNumber, edition } = card;
    return [
      ["model", model],
      ...Object.entries(columns),
      ["row", String(rowNumber)],
      ...(edition === "" ? [] : ([["edition", edition.replace(/^#/, "")]] as [string, string][])),
      ...(file === null
        ? []
        : ([
            ...(file.address === null ? [] : [["address", visible(file.address)]]),
            ["size", fileSize(file.bytes)],
            ["saved", new Date(file.savedAt).toLocaleString()],
            ...(file.unproven === null ? [] : [["not proven", visible(file.unproven)]]),
            ...(file.price === null ? [] : [["price", file.price]]),
          ] as [string, string][])),
    ];
  }
}

/** An SVG is shown as an image, which runs no script; opened by itself it would. */
function isActive({ mime }: GalleryFile): boolean {
  return mime === "image/svg+xml";
}

/** The file itself, to be looked at or played. */
function stageOf(card: GalleryCard): HTMLElement {
  const { file } = card;
  if (file === null) return preview(card);
  switch (kindOf(file)) {
    case "clip": {
      const clip = el("video", {
        src: address(file.path),
        controls: true,
        playsinline: true,
        loop: true,
        autoplay: true,
      });
      clip.muted = true;
      return orTrouble(clip, file);
    }
    case "sound":
      return soundStage(file);
    case "picture":
      if (file.thumbnail !== null) return pictureStage(file);
      break;
    default:
  }
  if (file.address !== null || isActive(file)) return preview(card);
  return el("a", { class: "bare", href: address(file.path) }, preview(card));
}

/** A click shows the picture at full size; another click fits it to the window. */
function pictureStage(file: GalleryFile): HTMLElement {
  const picture = el("img", { src: address(file.path), alt: "", draggable: "false" });
  const frame = el(
    "button",
    {
      type: "button",
      class: "picture",
      "aria-label": "Show at full size, or fit to the window",
      click: (event: MouseEvent) => {
        const { left, top, width, height } = picture.getBoundingClientRect();
        const isFull = frame.classList.toggle("full");
        if (!isFull) return;
        frame.scrollTo(
          ((event.clientX - left) / width) * picture.naturalWidth - frame.clientWidth / 2,
          ((event.clientY - top) / height) * picture.naturalHeight - frame.clientHeight / 2,
        );
      },
    },
    picture,
  );
  orTrouble(picture, file, frame);
  return frame;
}

function soundStage(file: GalleryFile): HTMLElement {
  const sound = el("audio", { src: address(file.path), controls: true, preload: "metadata", autoplay: true });
  const wave = waveform(file);
  const place = el("div", { class: "sound-stage" }, wave, sound);
  const show = () =>
    place.style.setProperty("--at", String(sound.duration > 0 ? sound.currentTime / sound.duration : 0));
  sound.addEventListener("timeupdate", show);
  orTrouble(sound, file);
  wave.addEventListener("click", (event) => {
    const { left, width } = wave.getBoundingClientRect();
    if (sound.duration > 0) sound.currentTime = sound.duration * ((event.clientX - left) / width);
    show();
  });
  return place;
}

function section(
  title: string | readonly [string, HTMLElement],
  ...content: readonly (Node | null)[]
): HTMLElement {
  const [words, button] = typeof title === "string" ? [title, null] : title;
  return el("section", {}, el("div", { class: "titled" }, el("h3", {}, words), button), ...content);
}

function pairs(
  entries: readonly (readonly [string, string])[],
  click?: (key: string, value: string) => void,
): HTMLElement {
  const shown = entries.map(([key, value]) => {
    const words = [el("dt", { dir: "auto" }, visible(key)), el("dd", { dir: "auto" }, visible(value))];
    const pair = el("div", { class: click ? "pair copied" : "pair" }, ...words);
    if (click) setCopied(pair, () => click(key, value));
    return pair;
  });
  return el("dl", { class: "pairs" }, ...shown);
}

function setCopied(pair: HTMLElement, act: () => void): void {
  pair.title = "Click to copy";
  pair.addEventListener("click", act);
}
